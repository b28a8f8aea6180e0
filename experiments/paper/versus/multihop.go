package versus

import (
	"context"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/result"
)

// crosser is a system with a column in the comparison over several hops.
type crosser struct {
	name, system string
	waiting      *netsim.Waiting // nil for open-loop workers
}

var crossers = []crosser{
	{"fifo", "fifo", nil},
	{"olaf", "olaf", nil},
	{"iswitch async H=10", "iswitch", &netsim.Waiting{Mode: "async", H: 10}},
	{"iswitch sync", "iswitch", &netsim.Waiting{Mode: "sync"}},
	{"switchml 1024B", "switchml", &netsim.Waiting{Packet: 1024}},
	{"switchml 256B", "switchml", &netsim.Waiting{}},
	{"atp", "atp", &netsim.Waiting{}},
}

// hopTables lists OLAF's two tables in §8.3. They differ in the period of the second half of the clusters.
var hopTables = []struct {
	name    string
	period2 olaf.Duration
}{{"Table 2", 100 * olaf.Millisecond}, {"Table 3", 300 * olaf.Millisecond}}

// hopConfig contains the parameters of the comparison over several hops.
type hopConfig struct {
	Topology string          `json:"topology"`
	Period1  olaf.Duration   `json:"period_s1"`
	Period2  []olaf.Duration `json:"period_s2"`
	Columns  []string        `json:"columns"`
	Seeds    []uint64        `json:"seeds"`
}

// hopTerms lists the rules of a fair comparison that apply to the comparison over several hops.
var hopTerms = []string{
	"All systems have the same network, OLAF's preset multihop as fitted to Tables 2 and 3: ten clusters of ten " +
		"workers on two switches of 5 slots, a third switch of 8 slots before the server at 848 kbps, 50 ms per " +
		"hop.",
	"All systems have the same gradients of 234 values. A worker's k-th gradient takes the time between the " +
		"sends k-1 and k of workers that send every 100 ms (Table 3: the second half every 300 ms).",
	"fifo, olaf: workers send without waiting. iswitch async: workers apply what arrives and never wait. All " +
		"others: a gradient begins when the sum of the last one has come back.",
	"Ages are measured at the server for all systems (topology P): the switch with the workers adds, sums cross " +
		"both links, and the server answers. Answers of systems that wait take the links' rate, the preset's " +
		"ACKs only the delay.",
	"Every system has its own frames: OLAF and FIFO 1,000 B, iSwitch 986 B, SwitchML one packet of 1024B or four " +
		"of 256B, ATP four. Slots take frames of any length.",
	"Workers resend after four times a round trip and a gradient, because the systems' own timeouts, 0.2 to 50 " +
		"ms, are shorter than the round trip of 300 ms.",
}

// standing is the name of the block with the number of stalled clusters.
const standing = "clusters without a packet at the server in the last ten timeouts"

// hopMeasures lists the blocks of a table. Their values are per group or for the whole run.
var hopMeasures = []struct {
	name, unit string
	by         float64
	rows       []hopRow
}{
	{"AoM at the server", "ms", 1e-6, []hopRow{
		{"S1 per cluster", ofGroup(0, "aom_cluster_ns")}, {"S2 per cluster", ofGroup(1, "aom_cluster_ns")},
		{"S1 per worker", ofGroup(0, "aom_worker_ns")}, {"S2 per worker", ofGroup(1, "aom_worker_ns")},
	}},
	{"Jain's index", "", 1, []hopRow{{"of clusters", ofRun("jain")},
		{"of clusters' workers", ofRun("jain_worker_means")}}},
	{"updates in 60 s", "thousands", 1e-3,
		[]hopRow{{"sent", ofRun("window_sent")}, {"inside frames at the server", ofRun("window_delivered_updates")},
			{"frames at the server", ofRun("window_delivered_frames")}}},
	{"lost", "% of updates sent", 1, []hopRow{{"frames dropped", ofRun("loss_packets_pct")},
		{"updates that never arrive", ofRun("loss_updates_pct")}}},
}

type hopRow struct {
	name string
	of   func(*netsim.Result) results.Float
}

func ofRun(name string) func(*netsim.Result) results.Float {
	return func(r *netsim.Result) results.Float { return r.Of(name) }
}

func ofGroup(group int, name string) func(*netsim.Result) results.Float {
	return func(r *netsim.Result) results.Float { return r.Groups[group].Values.Of(name) }
}

func runMultiHop(ctx context.Context, set system.Set, o experiments.Options) (result.Report, error) {
	c := hopConfig{Topology: "multihop", Period1: 100 * olaf.Millisecond, Seeds: o.ListSeeds(enoughSeeds, 3)}
	for _, k := range crossers {
		c.Columns = append(c.Columns, k.name)
	}
	t := experiments.NewResult("versus/multihop", "Multi-hop", &o, &c)
	t.Terms, t.Short = hopTerms, result.TooShort(len(c.Seeds), enoughSeeds)
	done, total := 0, len(hopTables)*len(crossers)
	still := result.Block{Name: standing, Unit: "of 10", Columns: c.Columns}
	for _, table := range hopTables {
		c.Period2 = append(c.Period2, table.period2)
		first := len(t.Blocks)
		for _, m := range hopMeasures {
			b := result.Block{Name: table.name + ", " + m.name, Unit: m.unit, Columns: c.Columns}
			for _, row := range m.rows {
				b.Rows = append(b.Rows, result.Line{Name: row.name})
			}
			t.Blocks = append(t.Blocks, b)
		}
		for i := range crossers {
			out, err := crossers[i].runColumn(ctx, set, &c, table.period2)
			if err != nil {
				return nil, err
			}
			if i == 0 {
				still.Rows = append(still.Rows, result.Line{Name: table.name})
			}
			line := &still.Rows[len(still.Rows)-1]
			line.Cells = append(line.Cells, describeRuns(out, stalledClusters, 1))
			for b, m := range hopMeasures {
				for r, row := range m.rows {
					line := &t.Blocks[first+b].Rows[r]
					line.Cells = append(line.Cells, describeRuns(out, row.of, m.by))
				}
			}
			done++
			o.ReportProgress(done, total)
		}
	}
	t.Blocks = append(t.Blocks, still)
	judgeHops(t)
	return t, nil
}

func describeRuns(runs []*netsim.Result, of func(*netsim.Result) results.Float, by float64) results.Statistic {
	return results.Describe(olaf.Map(runs, func(r *netsim.Result) results.Float { return of(r) * results.Float(by) }),
		"merged frames do not name their contributors")
}

// stalledClusters returns the number of clusters that stalled. It is 0 for open-loop workers, which never stall.
func stalledClusters(r *netsim.Result) results.Float {
	if r.Waited == nil {
		return 0
	}
	return results.Float(r.Waited.Stalled)
}

// runColumn runs one column of a table.
func (k *crosser) runColumn(ctx context.Context, set system.Set, c *hopConfig, period2 olaf.Duration) ([]*netsim.Result,
	error) {
	s, err := set.Find(k.system)
	if err != nil {
		return nil, err
	}
	t, err := netsim.Preset(set, c.Topology, netsim.Scale{Interval: c.Period1, Interval2: period2})
	if err != nil {
		return nil, err
	}
	if t.Queue = s.Discipline; k.waiting != nil {
		waiting := *k.waiting
		waiting.System, t.Waiting = s.Name, &waiting
	}
	return netsim.RunSeeds(ctx, t, c.Seeds, netsim.Options{}, nil)
}

// judgeHops states the expectations that were written before the first run, and whether they were met.
func judgeHops(t *result.Result) {
	cell := func(block, row int, column string) *results.Statistic {
		return &t.Blocks[block].Rows[row].Cells[slices.Index(t.Blocks[block].Columns, column)]
	}
	waiting := []string{"iswitch sync", "switchml 1024B", "switchml 256B", "atp"}
	below := func(a, b *results.Statistic) bool { return a.Mean+a.CI95 < b.Mean-b.CI95 }
	const second = 4 // first block of Table 3
	fresher, perWorker, near, even, whole := true, true, true, true, true
	for _, block := range []int{0, second} {
		for row := range 2 {
			o, h := cell(block, row, "olaf"), cell(block, row, "iswitch async H=10")
			near = near && float64(h.Mean) < 1.2*float64(o.Mean) && float64(h.Mean) > 0.8*float64(o.Mean)
			for _, name := range waiting {
				fresher = fresher && below(o, cell(block, row, name))
				perWorker = perWorker && below(cell(block, row+2, name), cell(block, row+2, "fifo"))
			}
		}
		for _, name := range waiting {
			even = even && cell(block+1, 0, name).Mean > 0.95
			whole = whole && cell(block+3, 1, name).Mean == 0
		}
	}
	t.Say("expected before the run: per cluster OLAF is fresher than every system whose workers wait, in both "+
		"tables and groups, and the intervals do not overlap: %s", formatVerdict(t, fresher))
	t.Say("expected: per worker every system whose workers wait is fresher than FIFO: %s", formatVerdict(t, perWorker))
	t.Say("expected: asynchronous iSwitch, with H equal to the workers of a cluster, is within 20 %% of OLAF per "+
		"cluster: %s", formatVerdict(t, near))
	t.Say("expected: if workers wait, nothing is lost for good, and Jain's index of clusters is above 0.95: %s",
		formatVerdict(t, whole && even))
	sync := cell(0, 0, "iswitch sync")
	t.Say("expected: a round takes a round trip and a gradient, so in Table 2 iSwitch's model is 300 to 450 ms "+
		"old: %.0f ms, %s", float64(sync.Mean), formatVerdict(t, sync.Mean >= 300 && sync.Mean <= 450))
	t.Say("a synchronous row has fewer updates, because its workers wait a round trip for each. Its queues never " +
		"contain more than one gradient per cluster, so the bottleneck of Tables 2 and 3 does not limit it")
}
