package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/aomcheck"
	"github.com/olafctl/olaf/experiments/axis"
	experimentsweep "github.com/olafctl/olaf/experiments/sweep"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/sweep"
)

// verifyMetrics are what a question comes to. Who answered it, how soon and by which counter-example are not among them: the
// solvers race.
var verifyMetrics = plain([3]string{"holds", "Objective holds", ""}, [3]string{"least_bound_ns", "Least bound that is proved", "ns"},
	[3]string{"variables", "Variables of the question", ""}, [3]string{"assertions", "Assertions of the question", ""})

// verifySweepCommand is what can be varied of a question about all arrival patterns.
func verifySweepCommand() *experimentsweep.Command {
	c := &experimentsweep.Command{Name: "verify", Subject: "model", Headline: []string{"holds"}, Runs: 1, Once: true, Metrics: verifyMetrics, Run: verifyLot}
	c.Options, c.Fields = optionsOf(newVerifyCells().cmd.Flags(), []string{"quiet"}, ofSearch)
	for i := range c.Fields {
		if f := &c.Fields[i]; f.Name == "interval" || f.Name == "jitter" { // one for all clusters
			f.Type = axis.Duration
		}
	}
	c.Resolve = func(file string, options []experimentsweep.Option) (experimentsweep.Resolver, error) {
		return newVerifyCells().begin(file, options)
	}
	return c
}

// verifyCells makes questions of what the flags of verify say, or of a file.
type verifyCells struct {
	verifyFlags
	cmd  *cobra.Command
	file string
	base aomcheck.Problem // of the file
}

func newVerifyCells() *verifyCells {
	c := &verifyCells{verifyFlags: verifyFlags{objective: string(aomcheck.Fairness), objectives: true}, cmd: &cobra.Command{Use: "verify"}}
	cli.Choose(c.cmd, &c.objective, "objective", "what must hold", objectiveNames()...)
	c.problemFlags(c.cmd)
	c.searchFlags(c.cmd)
	c.tightenFlag(c.cmd)
	return c
}

// ofSearch are the options that say how an answer is looked for, and not what is asked.
var ofSearch = []string{"solver", "time-limit", "simulate", "tighten"}

func (c *verifyCells) begin(file string, options []experimentsweep.Option) (experimentsweep.Resolver, error) {
	if err := give(c.cmd.Flags(), options); err != nil {
		return nil, err
	}
	if c.file = file; file == "" {
		return c, nil
	}
	for _, o := range options {
		if !slices.Contains(ofSearch, o.Name) {
			return nil, cli.UsageError("%s: the question stands in %s; leave the option out, or vary it", o.Name, file)
		}
	}
	var err error
	c.base, err = readProblem(file)
	return c, err
}

// Axes are none of its own.
func (c *verifyCells) Axes([]string) []axis.Axis { return nil }

// question is everything that decides a verdict.
type question struct {
	Problem  aomcheck.Problem `json:"problem"`
	Solver   string           `json:"solver"`
	LimitS   float64          `json:"limit_s"`
	Simulate int              `json:"simulate"`
	Tighten  bool             `json:"tighten,omitempty"`
}

// Cell is the question of a cell.
func (c *verifyCells) Cell(values []experimentsweep.Option) (json.RawMessage, error) {
	p, err := c.problemOf(values)
	if err != nil {
		return nil, err
	}
	p = p.WithDefaults()
	if err := p.Validate(); err != nil {
		return nil, inFlags(err)
	}
	if _, err := c.options(nil); err != nil {
		return nil, err
	}
	return json.Marshal(question{p, c.solver, c.limit.Seconds(), c.simulate, c.tighten})
}

// problemOf is the file's with the cell's values, or what the flags say.
func (c *verifyCells) problemOf(values []experimentsweep.Option) (p aomcheck.Problem, err error) {
	if c.file == "" {
		if err := give(c.cmd.Flags(), values); err != nil {
			return p, err
		}
		return c.resolve(c.cmd)
	}
	p = c.base
	for _, v := range values {
		if p, err = p.With(v.Name, v.Value); err != nil {
			return p, inFile(c.file, err)
		}
	}
	return p, nil
}

// verifyLot answers such a question. One that nobody answers in time has no result: another machine may have the time.
func verifyLot(ctx context.Context, spec json.RawMessage, from, n int) (*sweep.Lot, error) {
	var q question
	if err := json.Unmarshal(spec, &q); err != nil {
		return nil, err
	}
	f := verifyFlags{solver: q.Solver, limit: time.Duration(q.LimitS * float64(time.Second)), simulate: q.Simulate, quiet: true}
	o, err := f.options(nil)
	if err != nil {
		return nil, err
	}
	v, err := aomcheck.Verify(ctx, q.Problem, o)
	if err != nil {
		return nil, err
	}
	answered := map[aomcheck.Answer]results.Float{aomcheck.Holds: 1, aomcheck.Violated: 0}
	holds, ok := answered[v.Answer]
	if !ok {
		return nil, fmt.Errorf("no answer within %v; give it more --time-limit", f.limit)
	}
	run := sweep.Run{Values: []results.Float{holds, results.Missing(), results.Missing(), results.Missing()}}
	if v.Script.Variables > 0 {
		run.Values[2], run.Values[3] = results.Float(v.Script.Variables), results.Float(v.Script.Assertions)
	}
	if q.Tighten && v.Answer == aomcheck.Holds {
		tight, err := aomcheck.Tighten(ctx, v.Problem, o)
		if err != nil {
			return nil, err
		}
		run.Values[1] = results.Float(tight.Proved.NS())
	}
	return &sweep.Lot{Metrics: namesOf(verifyMetrics), Runs: []sweep.Run{run}}, nil
}
