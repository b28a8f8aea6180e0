package olaf

import (
	"context"
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/result"
)

// claimsOfText returns the experiment that judges the paper's verbal claims about its micro-benchmark (§§8.1 and 10).
func claimsOfText(set system.Set) experiments.Experiment {
	return experiments.Experiment{
		Name:     "olaf/text",
		Artefact: "§§8.1 and 10",
		About:    "statements without a number: FIFO's age by queue size, ACKs and downlink bytes of Olaf and FIFO",
		Needs:    "10 s",
		Inputs:   experiments.InputsByTenth(experiments.OfferedRate, experiments.FrameSize),
		Run:      experiments.On(set, runText),
	}
}

// textExpected states the expected results. It was written before the first run.
const textExpected = "expected before the first run: FIFO's age grows with its queue at every step, and Olaf " +
	"saves ACKs at both rates, but on the links to the workers its multicast costs more bytes than it saves"

// fifoSlots lists the queue sizes with which the statement on FIFO's age is tested. The paper's size is 8.
var fifoSlots = []int{4, 8, 16, 32}

// textConfig contains all settings that the results of claimsOfText depend on.
type textConfig struct {
	Table1 bench.Spec `json:"table1"`
	Slots  []int      `json:"fifo_slots"`
}

func runText(ctx context.Context, set system.Set, o experiments.Options) (result.Report, error) {
	c := textConfig{Table1: Table1(set), Slots: fifoSlots}
	c.Table1.Experiment = "olaf/text"
	c.Table1.Runs, c.Table1.Seed = o.Seeds(c.Table1.Runs, 6)
	w := &c.Table1.Workload
	w.MeanRate = experiments.ScaleInput(&o, experiments.OfferedRate, w.MeanRate)
	w.Size = experiments.ScaleInput(&o, experiments.FrameSize, w.Size)
	t := experiments.NewResult("olaf/text", "§§8.1 and 10", &o, &c)
	ours := paper.Ours{}
	if err := countDownlink(ctx, t, &c, ours, &o); err != nil {
		return nil, err
	}
	if err := ageByQueue(ctx, t, &c, ours, &o); err != nil {
		return nil, err
	}
	t.Compare(ours)
	t.Say("%s", textExpected)
	t.Say("a FIFO ACK goes to one worker, and an Olaf ACK goes to a cluster and is copied at the last switch " +
		"(§10); both cross the links before it once")
	return t, nil
}

// listValues returns a number from each run of a configuration.
func listValues(out *bench.Outcome, queue string, rate olaf.Rate, of func(*results.Run) float64) (values []results.Float) {
	for config := range out.Plan.Configs {
		if c := &out.Plan.Configs[config]; c.Queue == queue && c.OutRate == rate {
			for i := range out.Runs[config] {
				values = append(values, results.Float(of(&out.Runs[config][i])))
			}
		}
	}
	return values
}

// countDownlink counts the ACKs of the server and their bytes. The server sends one ACK for each frame that it
// receives.
func countDownlink(ctx context.Context, t *result.Result, c *textConfig, ours paper.Ours, o *experiments.Options) error {
	m, err := o.Measure(ctx, c.Table1, o.Stream, nil)
	if err != nil {
		return err
	}
	w := &c.Table1.Workload
	ack := float64(w.Size + olaf.AckStatusBytes)
	perCluster := float64(w.Workers) / float64(w.Clusters)
	block := result.Block{Name: "ACKs of Table 1's runs", Columns: []string{"ACKs", "kB before the last switch", "kB to the workers"}}
	acks := map[string][]results.Float{}
	for _, rate := range c.Table1.OutRates {
		for _, q := range []struct {
			name   string
			copies float64
		}{{"fifo", 1}, {"olaf", perCluster}} {
			received := listValues(m.Outcome, q.name, rate, counter("received"))
			acks[q.name] = received
			line := result.Line{Name: fmt.Sprintf("%s %v", q.name, rate)}
			for _, scale := range []float64{1, ack / 1000, ack / 1000 * q.copies} {
				line.Cells = append(line.Cells, results.Describe(scaleValues(received, scale), ""))
			}
			block.Rows = append(block.Rows, line)
		}
		gbps := fmt.Sprintf("%dg", rate/olaf.Gbps)
		ours["olaf/text.fewer_acks."+gbps] = percentFewer(acks["fifo"], acks["olaf"], 1)
		bytes := percentFewer(acks["fifo"], acks["olaf"], 1)
		toWorkers := percentFewer(acks["fifo"], acks["olaf"], perCluster)
		bytes.Others = []paper.Other{{Assumption: "on the links to the workers", Statistic: toWorkers.Statistic, Judged: true}}
		ours["olaf/text.fewer_downlink_bytes."+gbps] = bytes
	}
	t.Blocks = append(t.Blocks, block)
	return nil
}

// scaleValues returns the values multiplied by a factor, to convert them to another unit.
func scaleValues(values []results.Float, by float64) []results.Float {
	return olaf.Map(values, func(v results.Float) results.Float { return v * results.Float(by) })
}

// percentFewer returns, seed by seed, the percentage by which each·b is smaller than a.
func percentFewer(a, b []results.Float, each float64) paper.Measured {
	var values []results.Float
	for i := range a {
		values = append(values, 100*(1-results.Float(each)*b[i]/a[i]))
	}
	return paper.Of(results.Describe(values, "no run has both"))
}

// ageByQueue measures FIFO's age at 20 Gbps with queues of increasing size.
func ageByQueue(ctx context.Context, t *result.Result, c *textConfig, ours paper.Ours, o *experiments.Options) error {
	const rate = 20 * olaf.Gbps
	block := result.Block{Name: "FIFO's age at 20 Gbps, by queue size", Unit: "µs", Columns: []string{"per worker", "per cluster"}}
	ages := [2][][]results.Float{}
	for _, slots := range c.Slots {
		s := c.Table1
		s.Queue, s.Versus, s.Slots, s.OutRates = "fifo", "", slots, []olaf.Rate{rate}
		m, err := o.Measure(ctx, s, o.Stream, nil)
		if err != nil {
			return err
		}
		line := result.Line{Name: fmt.Sprintf("%d slots", slots)}
		for i, name := range []string{"aom_worker_ns", "aom_cluster_ns"} {
			age := listValues(m.Outcome, "fifo", rate,
				func(r *results.Run) float64 { return float64(r.Metrics.Of(name)) / 1000 })
			ages[i] = append(ages[i], age)
			line.Cells = append(line.Cells, results.Describe(age, ""))
		}
		block.Rows = append(block.Rows, line)
	}
	t.Blocks = append(t.Blocks, block)
	older := findLeastStep(ages[0])
	older.Others = []paper.Other{{Assumption: "per cluster", Statistic: findLeastStep(ages[1]).Statistic, Judged: true}}
	ours["olaf/text.fifo.older_with_more_slots"] = older
	return nil
}

// findLeastStep returns the smallest increase from one point to the next. If it is positive, the curve rises
// everywhere.
func findLeastStep(values [][]results.Float) paper.Measured {
	least := paper.Over(values[1], values[0])
	for i := 2; i < len(values); i++ {
		if step := paper.Over(values[i], values[i-1]); step.Mean < least.Mean {
			least = step
		}
	}
	return least
}
