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
		Short: "Run testbeds with real packets on this machine",
		Long: `Run testbeds with real packets on this machine: network namespaces, processes in them, and the Linux kernel as the switch.
One process owns everything through file descriptors, so nothing is left when it ends. See docs/reference/testbed-file.md.`,
	}
	cmd.AddCommand(newTestbedDoctorCmd(env), newTestbedDemoCmd(env), newTestbedInitCmd(env), newTestbedPlanCmd(env), newTestbedReserveCmd(env), newTestbedReleaseCmd(env), newTestbedUpCmd(env), newTestbedHoldCmd(env),
		newTestbedShowCmd(env), newTestbedEpochCmd(env), newTestbedDownCmd(env),
		NewWorker(env), NewPS(env), newSwitchCmd(env))
	return cmd
}
