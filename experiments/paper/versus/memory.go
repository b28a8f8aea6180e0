package versus

import (
	"context"
	"errors"
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/bench/job"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/result"
)

// waiting is a synchronous system with a column in the comparison.
type waiting struct {
	name, system string
	options      system.Options
}

// waitings lists the synchronous systems, each with its published memory: iSwitch's board, SwitchML's pool in its 10G
// experiments, and ATP's registers.
var waitings = []waiting{
	{"iswitch isw-1", "iswitch", system.Options{Wrap: true}},
	{"iswitch isw-x", "iswitch", system.Options{Profile: "isw-x"}},
	{"switchml", "switchml", system.Options{}},
	{"atp p4ml", "atp", system.Options{}},
	{"ps", "ps", system.Options{}},
}

// memoryConfig contains the parameters of the comparison of memory.
type memoryConfig struct {
	Workers   int           `json:"workers"`
	Values    int           `json:"values"`
	Rate      olaf.Rate     `json:"rate"`
	Delay     olaf.Duration `json:"delay"`
	Compute   olaf.Duration `json:"compute"`
	Updates   uint32        `json:"updates"`
	Straggler []int         `json:"straggler_takes_times"`
	Losses    []float64     `json:"loss"`
	Seeds     []uint64      `json:"seeds"`
}

// memoryTerms lists the rules of a fair comparison that apply to the comparison of memory.
var memoryTerms = []string{
	"All systems have the same load: 8 workers on one switch, 10 Gbps, gradients of 100,000 values (0.4 MB) that " +
		"take 1 ms each; one worker takes 1, 2 or 4 times as long.",
	"Topology S: the switch answers, except in ATP and ps, whose server has its own link. Hosts take no time. " +
		"Every system has its own frames, with 24 B of overhead each.",
	"Switch memory as published: iSwitch 2,048 segments (isw-x: as many as the vector has), SwitchML 128 slots of " +
		"two sets, ATP 20,000 aggregators.",
	"Each system handles loss in its own way; the parameter server's transport is assumed to be reliable and is " +
		"not run under loss.",
}

// memoryMeasures lists the blocks of the comparison of memory, in the order of display.
var memoryMeasures = []struct {
	name, unit string
	of         func(*job.Outcome) results.Statistic
}{
	{"iteration", "ms", func(o *job.Outcome) results.Statistic {
		return results.Scale(o.Number("iteration_ns"), 1e-6)
	}},
	{"memory in use, mean over time", "kB", func(o *job.Outcome) results.Statistic { return results.Scale(o.Number("held_bytes"), 1e-3) }},
	{"memory in use × time for an update", "kB·ms", func(o *job.Outcome) results.Statistic {
		held, took := o.Number("held_bytes"), o.Number("iteration_ns")
		return results.Scale(held, took.Mean*1e-9)
	}},
	{"bytes on links for an update", "MB", func(o *job.Outcome) results.Statistic {
		return results.Scale(o.Number("wire_bytes"), 1e-6/results.Float(o.Spec.Job.Updates))
	}},
	{"AoM of the newest contribution", "ms",
		func(o *job.Outcome) results.Statistic { return results.Scale(o.Number("aom_newest_ns"), 1e-6) }},
	{"packets of sums that are inexact", "", func(o *job.Outcome) results.Statistic {
		return results.Statistic{Mean: results.Float(o.Endpoints.Of("packets_inexact")), N: len(o.Runs)}
	}},
}

// memorySeeds is the number of seeds that the comparison of memory needs before it judges the order of systems.
const memorySeeds = 3

func runMemory(ctx context.Context, set system.Set, o experiments.Options) (result.Report, error) {
	c := memoryConfig{
		Seeds:   o.ListSeeds(memorySeeds, 1),
		Workers: 8, Values: 100_000, Rate: 10 * olaf.Gbps, Delay: 500 * olaf.Nanosecond, Compute: olaf.Millisecond,
		Updates:   5,
		Straggler: []int{1, 2, 4}, Losses: []float64{0, 0.0001, 0.001},
	}
	t := experiments.NewResult("versus/memory", "Memory", &o, &c)
	t.Terms, t.Short = memoryTerms, result.TooShort(len(c.Seeds), memorySeeds)
	t.Blocks = make([]result.Block, len(memoryMeasures))
	for i, m := range memoryMeasures {
		t.Blocks[i] = result.Block{Name: m.name, Unit: m.unit}
		for _, w := range waitings {
			t.Blocks[i].Columns = append(t.Blocks[i].Columns, w.name)
		}
	}
	done, total := 0, len(c.Straggler)*len(c.Losses)*len(waitings)*len(c.Seeds)
	for _, slow := range c.Straggler {
		for _, loss := range c.Losses {
			lines := make([]result.Line, len(memoryMeasures))
			for i := range lines {
				lines[i].Name = fmt.Sprintf("straggler ×%d, %g %% lost", slow, 100*loss)
			}
			for _, w := range waitings {
				out, err := c.runCell(ctx, set, &w, slow, loss, func() { done++; o.ReportProgress(done, total) })
				if err != nil {
					return nil, err
				}
				for i, m := range memoryMeasures {
					cell := results.Describe(nil, "its transport is taken to be reliable")
					if out != nil {
						cell = m.of(out)
					}
					lines[i].Cells = append(lines[i].Cells, cell)
				}
				if out != nil && out.Err() != nil {
					t.Say("%s, %s: %s", lines[0].Name, w.name, out.Err())
					t.Fail(errors.Join(t.Err(), out.Err()))
				}
			}
			for i := range t.Blocks {
				t.Blocks[i].Rows = append(t.Blocks[i].Rows, lines[i])
			}
		}
	}
	t.Say("a slot is in use while the slowest worker's packet is missing: in every system that waits, memory × " +
		"time grows with the straggler's delay, and with what the system lets fast workers store meanwhile")
	t.Say("SwitchML's pool limits the memory in use to its slots, and the second sets are reserved in addition; " +
		"ATP's window does the same; iSwitch uses as much as its table takes of a vector")
	return t, nil
}

// runCell runs one cell of the comparison. It returns nil for a system that does not work with loss.
func (c *memoryConfig) runCell(ctx context.Context, set system.Set, w *waiting, slow int, loss float64,
	done func()) (*job.Outcome, error) {
	s, mode, err := set.FindMode(w.system, "sync")
	if err != nil {
		return nil, err
	}
	if s.Program == nil && loss > 0 {
		for range c.Seeds {
			done()
		}
		return nil, nil
	}
	spec := &job.Spec{System: s, Mode: mode, Options: w.options}
	spec.Network = closedloop.Network{Workers: c.Workers,
		Link: closedloop.Link{Rate: c.Rate, Delay: c.Delay, Overhead: overhead, Loss: loss}}
	spec.Job = closedloop.Job{Updates: c.Updates, Limit: 60 * olaf.Second, Compute: c.Compute,
		Late: []olaf.Duration{c.Compute * olaf.Duration(slow-1)}}
	spec.Job.Layout.Values = c.Values
	return job.Run(ctx, spec, c.Seeds, done)
}
