// Command olafctl runs a testbed for in-network aggregation. It programs an OLAF card or its software twin, starts the
// packet generator, captures the packets that reach the parameter server, and prints AoM, loss and aggregation next to
// the published numbers.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	devicecmd "github.com/olafctl/olaf/cmd/olafctl/device"
	"github.com/olafctl/olaf/cmd/olafctl/mute"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/program/programs"
)

func main() {
	mute.End()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := start(ctx, process(), os.Args[1:])
	stop()
	os.Exit(code)
}

// start runs a command line. Unless the output is a terminal, the output goes through a pipe.
func start(ctx context.Context, env *cli.Env, args []string) int {
	if env.Terminal {
		return run(ctx, env, args)
	}
	return runPiped(ctx, env, args)
}

// process returns the environment of this process, with all systems, devices and experiments in this program.
func process() *cli.Env {
	env := cli.System()
	env.Bus.Guard = devicecmd.CommandGuard
	env.Systems, env.Programs = system.All(), programs.AllPrograms()
	env.Devices, env.Published, env.Declared, env.Layouts = listDevices(env.Systems, &env.Bus), listExperiments(env.Systems),
		env.Systems.FindDeclaration, layouts()
	return env
}
