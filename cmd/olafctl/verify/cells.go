package verify

import (
	"encoding/json"
	"slices"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	sweepcmd "github.com/olafctl/olaf/cmd/olafctl/sweep"
	"github.com/olafctl/olaf/experiments/aomcheck"
	experimentsweep "github.com/olafctl/olaf/experiments/sweep"
	"github.com/olafctl/olaf/experiments/sweep/cells"
	"github.com/olafctl/olaf/experiments/sweep/grid"
)

// SweepCommand returns the command that sweeps verification questions.
func SweepCommand() *experimentsweep.Command {
	c := &experimentsweep.Command{Name: "verify", Subject: "model", Headline: []string{"holds"}, Runs: 1, Once: true,
		Timed: true, Metrics: cells.QuestionMetrics(), Run: cells.Verify}
	c.Options, c.Fields = sweepcmd.OptionsOf(newVerifyCells().cmd.Flags(), []string{"quiet"}, ofSearch)
	for i := range c.Fields {
		if f := &c.Fields[i]; f.Name == "interval" || f.Name == "jitter" { // one value for all clusters
			f.Type = grid.Duration
		}
	}
	c.Resolve = func(file string, options []experimentsweep.Option) (experimentsweep.Resolver, error) {
		return newVerifyCells().begin(file, options)
	}
	return c
}

// verifyCells turns the flags of verify, or a problem file, into the questions of a sweep's cells.
type verifyCells struct {
	verifyFlags
	cmd  *cobra.Command
	file string
	base aomcheck.Problem // problem from the file
}

func newVerifyCells() *verifyCells {
	c := &verifyCells{verifyFlags: verifyFlags{objective: string(aomcheck.Fairness), objectives: true},
		cmd: &cobra.Command{Use: "verify"}}
	cli.Choose(c.cmd, &c.objective, "objective", "objective to prove", objectiveNames()...)
	c.problemFlags(c.cmd)
	c.searchFlags(c.cmd)
	c.tightenFlag(c.cmd)
	return c
}

// ofSearch lists the options that affect only how an answer is found, and not the question.
var ofSearch = []string{"solver", "time-limit", "simulate", "tighten"}

func (c *verifyCells) begin(file string, options []experimentsweep.Option) (experimentsweep.Resolver, error) {
	if err := sweepcmd.SetOptions(c.cmd.Flags(), options); err != nil {
		return nil, err
	}
	if c.file = file; file == "" {
		return c, nil
	}
	for _, o := range options {
		if !slices.Contains(ofSearch, o.Name) {
			return nil, cli.UsageError("%s: the question is in %s; leave the option out, or vary it", o.Name, file)
		}
	}
	var err error
	c.base, err = readProblem(file)
	return c, err
}

// Axes returns nil, because the command has no axes without --sweep.
func (c *verifyCells) Axes([]string) []grid.Axis { return nil }

// Cell returns the question for a cell.
func (c *verifyCells) Cell(values []experimentsweep.Option) (json.RawMessage, error) {
	p, err := c.problemOf(values)
	if err != nil {
		return nil, err
	}
	p = p.WithDefaults()
	if err := p.Validate(); err != nil {
		return nil, nameFlag(err)
	}
	if _, err := c.searchOptions(nil); err != nil {
		return nil, err
	}
	return json.Marshal(cells.Question{Problem: p, Solver: c.solver, LimitS: c.limit.Seconds(), Simulate: c.simulate,
		Tighten: c.tighten})
}

// problemOf returns the problem for a cell, from the file with the cell's values applied or from the flags.
func (c *verifyCells) problemOf(values []experimentsweep.Option) (p aomcheck.Problem, err error) {
	if c.file == "" {
		if err := sweepcmd.SetOptions(c.cmd.Flags(), values); err != nil {
			return p, err
		}
		return c.buildProblem(c.cmd)
	}
	p = c.base
	for _, v := range values {
		if p, err = p.With(v.Name, v.Value); err != nil {
			return p, nameFile(c.file, err)
		}
	}
	return p, nil
}
