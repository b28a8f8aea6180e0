package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/expect"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
)

// expectFlags are thresholds for what is going to be measured.
type expectFlags struct {
	texts []string
	rules []*expect.Rule
	at    []expect.Configuration
}

func (f *expectFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.texts, "expect", nil, "a mean that must come out, such as 'olaf.40G.aom_cluster_ns < 1300', else the exit code is 4; one `rule` each time")
}

// resolve reads the rules of a file and of the flags, before anything runs for them. An error about one of the file's says
// which, as olaf.FieldOf gives it.
func (f *expectFlags) resolve(inFile []string, d *metric.Declaration, at []expect.Configuration) error {
	f.at = at
	for i, text := range inFile {
		rule, err := expect.Parse(text, d, at)
		if err != nil {
			return olaf.InField(fmt.Sprintf("expect[%d]", i), err)
		}
		f.rules = append(f.rules, rule)
	}
	for _, text := range f.texts {
		rule, err := expect.Parse(text, d, at)
		if err != nil {
			return err
		}
		f.rules = append(f.rules, rule)
	}
	return nil
}

// judge says line by line what was missed. The rows are those of the configurations, in their order.
func (f *expectFlags) judge(env *cli.Env, rows []results.Row) error {
	missed := false
	for _, rule := range f.rules {
		for _, line := range rule.Missed(f.at, rows) {
			missed = true
			fmt.Fprintln(env.Stderr, line)
		}
	}
	if missed {
		return &cli.Exit{Kind: olaf.Missed}
	}
	return nil
}
