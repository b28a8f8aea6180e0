package versus

import (
	"context"
	"fmt"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/result"
)

// Experiments returns the experiments that compare systems from different papers. set contains the available systems.
func Experiments(set system.Set) experiments.Set {
	return experiments.Set{{
		Name:     "versus/aom",
		Artefact: "AoM",
		About: "FIFO, OLAF and iSwitch with H = 2, 3, 6 under Table 1's load from 80 to 5 Gbps, to a server " +
			"and back to the workers; iSwitch, SwitchML and ATP in rounds",
		Needs: "20 s",
		Run:   experiments.On(set, runAoM),
	}, {
		Name:     "versus/multihop",
		Artefact: "Multi-hop",
		About: "OLAF's Tables 2 and 3 with every system: FIFO, OLAF, iSwitch in both modes, SwitchML and ATP " +
			"over two levels of switches",
		Needs: "30 s",
		Run:   experiments.On(set, runMultiHop),
	}, {
		Name:     "versus/memory",
		Artefact: "Memory",
		About:    "switch memory × time, iterations and bytes of synchronous jobs under stragglers and loss: iSwitch, SwitchML, ATP, a server",
		Needs:    "10 s",
		Run:      experiments.On(set, runMemory),
	}, {
		Name:     "versus/reward",
		Artefact: "Reward",
		About:    "LunarLander through FIFO, OLAF, iSwitch, SwitchML and ATP: rewards over gradients and over virtual time",
		Needs:    "25 min",
		Long:     true,
		Run:      experiments.On(set, runReward),
		Parts:    rewardParts(set),
	}}
}

// enoughSeeds is the number of seeds that a comparison of ages needs before it judges the order of systems.
const enoughSeeds = 30

// rates lists the output rates in the comparison.
var rates = []olaf.Rate{80 * olaf.Gbps, 40 * olaf.Gbps, 20 * olaf.Gbps, 10 * olaf.Gbps, 5 * olaf.Gbps}

// config contains the parameters of the comparison.
type config struct {
	Workers  int         `json:"workers"`
	Clusters int         `json:"clusters"`
	Offered  olaf.Rate   `json:"offered"`
	Frame    olaf.Size   `json:"frame"`
	Overhead olaf.Size   `json:"overhead"`
	Slots    int         `json:"slots"`
	Updates  int         `json:"updates_per_worker"`
	Rates    []olaf.Rate `json:"rates"`
	Seeds    []uint64    `json:"seeds"`
}

// terms lists the rules of a fair comparison that apply to this experiment.
var terms = []string{
	"All systems get the same arrivals and seeds: 27 workers in 9 clusters, 60 Gbps, 256 B frames + 24 B on the " +
		"line.",
	"Bottleneck: P, the link from the switch to the server; S, the links from the switch to the workers (systems that answer).",
	"Engine cycles and the accelerator cost nothing (profile ideal), unless a block says otherwise. Ages are " +
		"those of the newest contribution, per cluster; those of the oldest are next to them.",
	"In rounds (S), the workers of a cluster are a job. Links have the output rate in both directions and no " +
		"delay; ATP has one more to the server of each job. Frames are the same 256 B.",
	"Switch memory: FIFO and OLAF have 8 slots of 256 B; iSwitch has one segment per cluster, 9 × 256 B, and 8 " +
		"slots behind them. The last block has the memory in bytes next to the published values; in the blocks " +
		"with equal bytes FIFO and OLAF have 17 slots.",
	"Arithmetic: OLAF adds fixed-point lanes that saturate, iSwitch adds float32, FIFO adds nothing. Ages do not " +
		"depend on this, and no lanes are added here, so no block in Q16.16 is needed.",
	"Loss: nothing is resent. Updates that find no room in a queue or before the accelerator are lost in every " +
		"system; links lose nothing.",
	"Progress is counted in gradient vectors of one frame, and ages are in virtual time. Iterations are not " +
		"compared, because their batches differ between papers.",
}

func runAoM(ctx context.Context, set system.Set, o experiments.Options) (result.Report, error) {
	c := config{workers, clusters, offered, size, overhead, slots, 1000, rates, o.ListSeeds(enoughSeeds, 5)}
	all, err := contestants(set)
	if err != nil {
		return nil, err
	}
	t := experiments.NewResult("versus/aom", "AoM", &o, &c)
	t.Terms, t.Short = terms, result.TooShort(len(c.Seeds), enoughSeeds)
	loads := Loads()
	settings := Settings()
	done, total := 0, (2*len(loads)+len(settings))*len(all)+len(rates)*len(players)
	report := func() { done++; o.ReportProgress(done, total) }
	for i, load := range loads {
		traffic, err := load.makeTraffic(c.Seeds, c.Updates)
		if err != nil {
			return nil, err
		}
		for _, topology := range []Topology{toServer, toWorkers} {
			blocks, err := compareLoad(ctx, load.Name, traffic, topology, new(setting), all, &c, report)
			if err != nil {
				return nil, err
			}
			t.Blocks = append(t.Blocks, blocks...)
		}
		if i > 0 {
			continue // settings are shown for the first load only
		}
		for k := range settings {
			blocks, err := compareLoad(ctx, load.Name, traffic, toServer, &settings[k], all, &c, report)
			if err != nil {
				return nil, err
			}
			t.Blocks = append(t.Blocks, blocks...)
		}
	}
	judgeAoM(t)
	if err := compareRounds(ctx, set, t, &c, &t.Blocks[openAtWorkers], report); err != nil {
		return nil, err
	}
	if err := addMemory(t, all); err != nil {
		return nil, err
	}
	for _, s := range settings {
		t.Say("%s, no order was expected: %s", s.Name, s.About)
	}
	return t, nil
}

// addMemory adds a block with the memory of each contestant's switch.
func addMemory(t *result.Result, all []contestant) error {
	b := result.Block{Name: "switch memory", Unit: "B",
		Rows: []result.Line{{Name: "in this comparison"}, {Name: "as published"}}}
	for i := range all {
		here, published, err := all[i].switchMemory()
		if err != nil {
			return err
		}
		b.Columns = append(b.Columns, all[i].Name)
		for row, bytes := range []olaf.Size{here, published} {
			b.Rows[row].Cells = append(b.Rows[row].Cells, results.Describe([]results.Float{results.Float(bytes)}, ""))
		}
	}
	t.Blocks = append(t.Blocks, b)
	return nil
}

// openAtWorkers is the index of the block with the newest ages at the workers under Poisson arrivals. It follows the
// three blocks for the server.
const openAtWorkers = 3

// compareLoad returns the blocks for one load and topology, with one row per rate: ages by the newest and the oldest
// timestamp, and losses.
func compareLoad(ctx context.Context, load string, traffic [][]arrival, topology Topology, set *setting,
	all []contestant, c *config, done func()) ([]result.Block, error) {
	what := []struct{ name, unit string }{{"AoM, newest", "ns"}, {"AoM, oldest", "ns"}, {"lost", "%"}}
	if topology == toWorkers {
		what = what[:2] // links to workers are unbounded
	}
	blocks := make([]result.Block, len(what))
	for i, b := range what {
		blocks[i] = result.Block{Name: set.blockPrefix(load, topology) + b.name, Unit: b.unit,
			Rows: make([]result.Line, len(c.Rates))}
		for k, rate := range c.Rates {
			blocks[i].Rows[k].Name = rate.String()
		}
	}
	for i := range all {
		done()
		if topology == toWorkers && all[i].System.Program == nil {
			continue // the system does not answer its workers
		}
		for b := range blocks {
			blocks[b].Columns = append(blocks[b].Columns, all[i].Name)
		}
		for k, rate := range c.Rates {
			cell, err := all[i].Play(ctx, traffic, rate, topology, set)
			if err != nil {
				return nil, err
			}
			values := [][]results.Float{cell.Newest, cell.Oldest, cell.Loss}
			for b := range blocks {
				line := &blocks[b].Rows[k]
				line.Cells = append(line.Cells, results.Describe(values[b], "fewer than two deliveries"))
			}
		}
	}
	return blocks, nil
}

// formatVerdict returns a text that states whether an expectation was met, or that the result has too few seeds to
// judge it.
func formatVerdict(t *result.Result, ok bool) string {
	switch {
	case t.Short != "":
		return "too short"
	case ok:
		return "it is so"
	}
	return "it is NOT so"
}

// blockPrefix returns the first part of a block's name.
func (s *setting) blockPrefix(load string, topology Topology) string {
	if s.Name == "" {
		return fmt.Sprintf("%s %s ", load, topology)
	}
	return fmt.Sprintf("%s %s, %s, ", load, topology, s.Name)
}

// judgeAoM states the expectations that were written before the first run, and whether they were met. They apply to
// ages at the server under Poisson arrivals, at 20 Gbps.
func judgeAoM(t *result.Result) {
	ages := &t.Blocks[0]
	const at20 = 2
	cell := func(name string) *results.Statistic {
		if i := slices.Index(ages.Columns, name); i >= 0 {
			return &ages.Rows[at20].Cells[i]
		}
		return &results.Statistic{Mean: results.Missing()}
	}
	o, i, f := cell("olaf"), cell("iswitch H=3"), cell("fifo")
	apart := o.Mean+o.CI95 < i.Mean-i.CI95 && i.Mean+i.CI95 < f.Mean-f.CI95
	above := 100 * (float64(i.Mean)/float64(o.Mean) - 1)
	t.Say("expected before the run, Poisson to the server at 20 Gbps: OLAF is fresher than iSwitch H=3, which is "+
		"fresher than FIFO, and the 95 %% intervals do not overlap: %s", formatVerdict(t, apart))
	t.Say("expected: iSwitch H=3 within 30 %% of OLAF there: it is %.1f %% above, so %s", above,
		formatVerdict(t, above <= 30))
	t.Say("with H just above offered / carried load iSwitch comes near OLAF, whose queue finds that number by " +
		"itself; with any other H it waits too long or drops")
	t.Say("for bursts and the recorded training nothing was expected; if the oldest contribution counts, every " +
		"merging system is older than if the newest counts")
	t.Say("S has no server: FIFO and OLAF cannot answer there and are left out, and nothing is lost; ages in S " +
		"and P belong to different receivers")
}
