// Package atp reproduces claims from the slides on "ATP: In-network Aggregation for Multi-tenant Learning" (NSDI 2021)
// about jobs that share a switch, on simulated hosts. The slides print no measured number. The model of the hosts
// follows a published run of ATP's stack.
package atp

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/system"
	program "github.com/olafctl/olaf/fpga/program/atp"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/result"
)

// Experiments returns the experiments that reproduce the slides. set contains the available systems.
func Experiments(set system.Set) experiments.Set {
	return experiments.Set{{
		Name: "atp/sharing", Artefact: "Sharing", Needs: "40 s",
		About: "three VGG16 jobs that share aggregators or have a third each, with half to three times the " +
			"number that one job needs",
		Run:    experiments.On(set, runSharing),
		Inputs: experiments.InputsByTenth(gradientSize),
	}, {
		Name: "atp/loss", Artefact: "Loss", Needs: "20 s",
		About: "one job under loss: ATP in both profiles, SwitchML with both of its timeouts, ATP without " +
			"resending",
		Run: experiments.On(set, runLoss),
	}}
}

// gradientSize is the name of the input of the experiment atp/sharing.
const gradientSize = "values of a gradient"

// amounts lists the numbers of aggregators in the switch, relative to the number that one job needs at its peak.
var amounts = []string{"0.5pta", "1pta", "1.5pta", "2pta", "3pta"}

// sharingSeeds is the number of runs per cell. The runs differ only in the start times of the hosts, so that a few are
// enough.
const sharingSeeds = 3

func runSharing(ctx context.Context, set system.Set, o experiments.Options) (result.Report, error) {
	seeds := o.ListSeeds(sharingSeeds, 1)
	vgg, err := FindModel("vgg16")
	if err != nil {
		return nil, err
	}
	vgg.Values = experiments.ScaleInput(&o, gradientSize, vgg.Values)
	base := Grid{
		Setting:  Setting{System: program.Describe().Name, Model: vgg, Jobs: LabJobs, Workers: LabWorkers, Fraction: 0.01, Updates: 1},
		Sharings: []string{system.Static, system.Dynamic}, Amounts: amounts, Losses: []float64{0},
	}
	t := experiments.NewResult("atp/sharing", "Sharing", &o, base.config(seeds))
	t.Terms = base.terms()
	peak, err := findPTA(ctx, set, vgg)
	if err != nil {
		return nil, err
	}
	t.Blocks = append(t.Blocks, result.Block{Name: "aggregators that one job needs for its peak",
		Columns: []string{"by search", "window × payload ÷ round trip"},
		Rows: []result.Line{{Name: "PTA",
			Cells: []results.Statistic{results.Exactly(float64(peak)), results.Exactly(float64(pta()))}}}})
	mixes := []struct {
		prefix  string
		workers int
		compute float64 // time per gradient, relative to its communication at the peak
	}{{"2 workers: ", 2, 0}, {"8 workers: ", 8, 0}, {"2 workers, computing as long as communicating: ", 2, 1}}
	if o.Changed.Name != "" {
		mixes = mixes[:1] // only the judged one
	}
	ours := paper.Ours{}
	done, total := 0, len(mixes)*base.Runs(len(seeds))
	for i, mix := range mixes {
		g := base
		g.Workers = mix.workers
		if mix.compute > 0 {
			g.Updates = 3
			g.Compute = olaf.Duration(mix.compute * g.Fraction * float64(vgg.Values) / program.Lanes * float64(labFrame))
		}
		at := len(t.Blocks)
		if err := g.Fill(ctx, set, t, mix.prefix, seeds, func() { done++; o.ReportProgress(done, total) }); err != nil {
			return nil, err
		}
		if i == 0 { // the slides' mix
			ours["atp/sharing.too_little.static_over_dynamic"] = paper.Of(t.Blocks[at+1].Rows[0].Cells[0])
			ours["atp/sharing.enough.difference"] = paper.Of(g.difference)
		}
	}
	t.Compare(ours)
	base.basis(t)
	sayMiddle(t)
	return t, nil
}

// sayMiddle describes where dynamic sharing loses, and why.
func sayMiddle(t *result.Result) {
	i := slices.IndexFunc(t.Blocks, func(b result.Block) bool { return b.Name == "8 workers: completion, static over dynamic" })
	k := slices.IndexFunc(t.Blocks, func(b result.Block) bool { return b.Name == "8 workers: packets at a server for each of a vector" })
	if i < 0 || k < 0 {
		return
	}
	worst := 0
	for r, line := range t.Blocks[i].Rows {
		if line.Cells[0].Mean < t.Blocks[i].Rows[worst].Cells[0].Mean {
			worst = r
		}
	}
	if len(t.Blocks[k].Rows) <= worst || len(t.Blocks[k].Rows[worst].Cells) < 2 {
		return
	}
	t.Say("with 8 workers per job, dynamic sharing is slower in the middle: at %s it takes %.2f times as long, "+
		"because a collision costs the server's link a packet of every worker: %.1f packets for each packet of a "+
		"vector, against 1 without collisions",
		t.Blocks[i].Rows[worst].Name, 1/float64(t.Blocks[i].Rows[worst].Cells[0].Mean), float64(t.Blocks[k].Rows[worst].Cells[1].Mean))
}

// findPTA searches for the smallest number of aggregators with which a single job reaches 99 % of its maximum
// throughput.
func findPTA(ctx context.Context, set system.Set, m Model) (int, error) {
	throughput := func(n int) (float64, error) {
		c := Setting{System: program.Describe().Name, Model: m, Jobs: 1, Workers: LabWorkers, Aggregators: n,
			Window: n, Fraction: 0.01, Updates: 1}
		o, err := c.Run(ctx, set, []uint64{1}, nil)
		if err != nil {
			return 0, err
		}
		return float64(o.Number("goodput_bps").Mean), o.Err()
	}
	high := 2 * pta()
	most, err := throughput(high)
	if err != nil {
		return 0, err
	}
	for low := 1; low < high; {
		middle := (low + high) / 2
		have, err := throughput(middle)
		if err != nil {
			return 0, err
		}
		if have >= 0.99*most {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return high, nil
}

// contestant is one column of the experiment on loss: a system with its options.
type contestant struct {
	name, system string
	options      system.Options
}

var contestants = []contestant{
	{"ATP p4ml", "atp", system.Options{}},
	{"ATP paper", "atp", system.Options{Profile: program.Paper}},
	{"SwitchML 1 ms", "switchml", system.Options{}},
	{"SwitchML 10 ms", "switchml", system.Options{Timeout: 10 * olaf.Millisecond}},
	{"ATP, no resends", "atp", system.Options{Recovery: system.RecoverNone}},
}

func runLoss(ctx context.Context, set system.Set, o experiments.Options) (result.Report, error) {
	seeds := o.ListSeeds(5, 2)
	vgg, err := FindModel("vgg16")
	if err != nil {
		return nil, err
	}
	losses := []float64{0, 0.0001, 0.001, 0.01}
	base := Grid{
		Setting:  Setting{Model: vgg, Jobs: 1, Workers: LabWorkers, Aggregators: pta(), Fraction: 0.01, Updates: 1, Limit: 60 * olaf.Second},
		Sharings: []string{system.Dynamic}, Amounts: []string{"1pta"}, Losses: losses,
	}
	t := experiments.NewResult("atp/loss", "Loss", &o, base.config(seeds))
	t.Terms = []string{fmt.Sprintf("One job of %d workers, %s gradients, %g %% of each; every system has %d "+
		"packets in flight per worker.", LabWorkers, vgg.Name, 100*base.Fraction, pta())}
	blocks := []result.Block{{Name: "completion of the job", Unit: "ms"}, {Name: "runs that hung"},
		{Name: "sent again, of packets of vectors", Unit: "%"}, {Name: "packets of sums that are inexact"}}
	for i := range blocks {
		blocks[i].Columns = olaf.Map(contestants, func(c contestant) string { return c.name })
	}
	done, total := 0, len(losses)*len(contestants)*len(seeds)
	for _, loss := range losses {
		lines := make([]result.Line, len(blocks))
		for i := range lines {
			lines[i].Name = fmt.Sprintf("%g %%", 100*loss)
		}
		for _, k := range contestants {
			c := base.Setting
			c.System, c.Options, c.Loss = k.system, k.options, loss
			out, err := c.Run(ctx, set, seeds, func() { done++; o.ReportProgress(done, total) })
			if err != nil {
				return nil, err
			}
			for i, cell := range []results.Statistic{results.Scale(out.Number("jct_ns"), 1e-6), results.Exactly(float64(out.Hung)),
				share(out.Endpoints.Of("packets_resent"), out), results.Exactly(float64(out.Endpoints.Of("packets_inexact")))} {
				lines[i].Cells = append(lines[i].Cells, cell)
			}
			if k.options.Recovery == "" {
				t.Fail(errors.Join(t.Err(), out.Err()))
			}
		}
		for i := range blocks {
			blocks[i].Rows = append(blocks[i].Rows, lines[i])
		}
	}
	t.Blocks = blocks
	base.basis(t)
	t.Say("a lost packet costs ATP a round trip, because acknowledgements out of order reveal it; it costs " +
		"SwitchML its timeout, so its times depend on --timeout and are always given with it")
	t.Say("if workers do not resend, ATP waits forever for what was lost; this is reported, and such runs are " +
		"excluded from all means")
	return t, nil
}
