// Command olafctl runs an in-network-aggregation testbed: it programs an OLAF card or its software twin, fires the
// packet generator, captures what reaches the parameter server, and prints AoM, loss and aggregation beside the
// published numbers.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
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

// start runs a command line. What a terminal shows needs the terminal itself.
func start(ctx context.Context, env *cli.Env, args []string) int {
	if env.Terminal {
		return run(ctx, env, args)
	}
	return piped(ctx, env, args)
}

// process is the world of this process, and what the program was built of.
func process() *cli.Env {
	env := cli.System()
	env.Systems, env.Programs = system.All(), programs.AllPrograms()
	env.Devices, env.Published, env.Declared, env.Layouts = devices(env.Systems), published(env.Systems), env.Systems.Declared, layouts()
	return env
}
