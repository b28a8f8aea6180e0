// Package testbed implements 'olafctl testbed', 'worker' and 'ps', which run namespaces, programs and processes with
// real packets.
package testbed

import (
	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
)

func New(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "testbed",
		Short: "Run testbeds with real packets, on one machine or on several hosts",
		Long: `Run testbeds with real packets. On one machine they are network namespaces with processes in them and the Linux kernel as
the switch; one process owns everything through file descriptors, so nothing is left when it ends. On several hosts, a file
gives each role (generator, queue, server) a host that ssh reaches. See docs/reference/testbed-file.md and
docs/guide/three-machines.md.`,
		Example: `  olafctl testbed init paper.yaml --like paper
  olafctl testbed doctor paper.yaml
  olafctl testbed up paper.yaml && olafctl bench -d testbed:paper && olafctl testbed down paper`,
	}
	cmd.AddCommand(newTestbedDoctorCmd(env), newTestbedDemoCmd(env), newTestbedInitCmd(env), newTestbedPlanCmd(env),
		newTestbedReserveCmd(env), newTestbedReleaseCmd(env), newTestbedUpCmd(env), newTestbedHoldCmd(env),
		newTestbedShowCmd(env), newTestbedEpochCmd(env), newTestbedDownCmd(env),
		NewWorker(env), NewPS(env), newSwitchCmd(env))
	return cmd
}
