package main

import (
	benchcmd "github.com/olafctl/olaf/cmd/olafctl/bench"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	experimentcmd "github.com/olafctl/olaf/cmd/olafctl/experiment"
	schedulecmd "github.com/olafctl/olaf/cmd/olafctl/schedule"
	simulatecmd "github.com/olafctl/olaf/cmd/olafctl/simulate"
	traincmd "github.com/olafctl/olaf/cmd/olafctl/train"
	verifycmd "github.com/olafctl/olaf/cmd/olafctl/verify"
	experimentsweep "github.com/olafctl/olaf/experiments/sweep"
)

// sweepCommands returns the commands whose runs can be swept, with the options from their command lines.
func sweepCommands(env *cli.Env) experimentsweep.Commands {
	return experimentsweep.Commands{benchcmd.SweepCommand(env), simulatecmd.SweepCommand(env),
		simulatecmd.JobSweepCommand(env.Systems), traincmd.SweepCommand(env.Systems), schedulecmd.SweepCommand(),
		verifycmd.SweepCommand()}
}

// workCommands returns all commands whose jobs can be run by workers of a sweep queue.
func workCommands(env *cli.Env) experimentsweep.Commands {
	return append(sweepCommands(env), experimentcmd.WorkCommand(env.Published))
}
