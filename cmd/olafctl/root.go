package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

// run executes one command line and returns its exit code. Everything it prints goes through env.
func run(ctx context.Context, env *environment, args []string) int {
	started := false
	env.args = args
	root := newRootCmd(env)
	root.PersistentPreRun = func(*cobra.Command, []string) { started = true }
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	code := exitCode(err)
	if !started && code == exitFailed {
		code = exitUsage // cobra's own complaints: unknown command, missing argument
	}
	if exit, ok := err.(*exitError); !ok || exit.err != nil {
		fmt.Fprintf(env.stderr, "olafctl: %s\n", oneLine(err))
	}
	return code
}

func newRootCmd(env *environment) *cobra.Command {
	root := &cobra.Command{
		Use:   "olafctl",
		Short: "Run an in-network-aggregation testbed: card or software twin, tables, generator, capture, AoM",
		Long: `olafctl runs an in-network-aggregation testbed end to end: it programs an OLAF card or its software twin,
fires the packet generator, captures what reaches the parameter server, and turns that into Age of Model, loss,
speed-up and aggregation CDFs beside the published numbers.

Without --device everything runs on the software twin, in virtual time at 250 MHz; nothing else is needed.`,
		Example: `  olafctl bench --queue olaf --rate 60G            # the paper's Table 1, ours beside theirs
  olafctl experiment list                          # what else can be reproduced
  olafctl device info                              # look inside the twin`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetIn(env.stdin)
	root.SetOut(env.stdout)
	root.SetErr(env.stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError("%v; see '%s --help'", err, cmd.CommandPath())
	})
	root.AddGroup(
		&cobra.Group{ID: "run", Title: "Run:"},
		&cobra.Group{ID: "results", Title: "Keep and hand on results:"},
		&cobra.Group{ID: "device", Title: "Look at and drive a device:"},
	)
	for _, c := range commands {
		cmd := c.new(env)
		cmd.GroupID = c.group
		root.AddCommand(cmd)
	}
	return root
}

// commands is the table of nouns and verbs, in the order of the help.
var commands = []struct {
	group string
	new   func(*environment) *cobra.Command
}{
	{"run", newBenchCmd},
	{"run", newTuiCmd},
	{"run", newReplayCmd},
	{"run", newExperimentCmd},
	{"run", newTraceCmd},
	{"run", newTrainCmd},
	{"run", newVerifyCmd},
	{"run", newReproduceCmd},
	{"run", newSimulateCmd},
	{"run", newTopologyCmd},
	{"results", newRunsCmd},
	{"results", newExportCmd},
	{"device", newDeviceCmd},
	{"device", newTablesCmd},
	{"device", newClusterCmd},
	{"device", newRegCmd},
	{"device", newServeCmd},
	{"", newVersionCmd},
}
