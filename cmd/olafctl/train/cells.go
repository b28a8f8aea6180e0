package train

import (
	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	sweepcmd "github.com/olafctl/olaf/cmd/olafctl/sweep"
	experimentsweep "github.com/olafctl/olaf/experiments/sweep"
	"github.com/olafctl/olaf/experiments/sweep/cells"
	"github.com/olafctl/olaf/experiments/system"
)

// SweepCommand returns the command that sweeps training runs.
func SweepCommand(set system.Set) *experimentsweep.Command {
	c := &experimentsweep.Command{Name: "train", Subject: sweepcmd.SystemField,
		Headline: []string{"reward", "greedy_reward"}, Runs: 1, Metrics: cells.TrainingMetrics(),
		Run: cells.Carrier{Systems: set}.Train}
	c.Options, c.Fields = sweepcmd.OptionsOf(newTrainCells(set).Cmd.Flags(), nil, []string{"seed", "network"})
	c.Resolve = func(file string, options []experimentsweep.Option) (experimentsweep.Resolver, error) {
		return newTrainCells(set).Begin("train", file, options)
	}
	return c
}

func newTrainCells(set system.Set) *sweepcmd.Cells[trainFlags] {
	f := newTrainFlags(set)
	cmd := &cobra.Command{Use: "train"}
	f.addConfig(cmd)
	f.job.add(cmd)
	return &sweepcmd.Cells[trainFlags]{Cmd: cmd, Flags: f, Spec: func(f *trainFlags) (any, error) {
		f.config.Control = cli.SettleControl(f.tc)
		if f.waitsForAnswers() {
			return f.buildTraining(cmd)
		}
		if err := f.job.refuseFlags(cmd, f.config.Network.Kind); err != nil {
			return nil, err
		}
		return &cells.Training{Config: f.config}, f.config.Check()
	}}
}
