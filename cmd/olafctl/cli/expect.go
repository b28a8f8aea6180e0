package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/expect"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
)

// ExpectFlags are the flags for expectations, which are thresholds for the measured values.
type ExpectFlags struct {
	Texts []string
	Rules []*expect.Rule
	at    []expect.Configuration
}

func (f *ExpectFlags) Add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.Texts, "expect", nil, "`rule` for a mean, 'olaf.lost_pct < 12'; exit 4 if missed")
}

// ResolveRules parses the rules from a file and from the flags before anything runs. An error in a rule from the file
// identifies the rule for olaf.FieldOf.
func (f *ExpectFlags) ResolveRules(inFile []string, d *metric.Declaration, at []expect.Configuration) error {
	f.at = at
	for i, text := range slices.Concat(inFile, f.Texts) {
		rule, err := expect.ParseRule(text, d, at)
		switch {
		case err != nil && i < len(inFile):
			return olaf.InField(fmt.Sprintf("expect[%d]", i), err)
		case err != nil:
			return err
		}
		f.Rules = append(f.Rules, rule)
	}
	return nil
}

// JudgeRows prints a line for each expectation that is not met and returns an error if there are any. rows are in the
// order of the configurations.
func (f *ExpectFlags) JudgeRows(env *Env, rows []results.Row) error {
	missed := false
	for _, rule := range f.Rules {
		for _, line := range rule.FindMisses(f.at, rows) {
			missed = true
			fmt.Fprintln(env.Stderr, line)
		}
	}
	if missed {
		return &Exit{Kind: olaf.Missed}
	}
	return nil
}
