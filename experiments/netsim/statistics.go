package netsim

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
)

// tally holds the counts of one cluster, or of more.
type tally [counts]uint64

// What is counted. docs/reference/metrics.md defines the losses.
const (
	countGenerated = iota
	countWithheld
	countSent
	countDelivered
	countUpdates
	countAggregated
	countReplaced
	countDropped
	countDroppedUpdates
	countAcks
	countAcksLost
	counts
)

func (t *tally) add(o *tally) {
	for i := range t {
		t[i] += o[i]
	}
}

func (t *tally) counts() olaf.Counts {
	c := olaf.NewCounts(ledger)
	for i, n := range t {
		c.SetAt(i, int64(n))
	}
	return c
}

// scope says of what a statistic is listed, in documents, in text and on screen.
type scope uint8

const (
	ofParts  scope = 1 << iota // clusters, their groups, and the whole run
	ofRuns                     // the whole run alone
	ofSweeps                   // every value of a sweep, over its runs
)

// statistic is one number that a run is measured by.
type statistic struct {
	*metric.Metric
	of      scope
	count   int           // its place in a tally
	counter *olaf.Counter // nil of what is not counted
}

// statistics is every number that a run is measured by, in the order of documents. A new one is a row here, and where it
// is counted, a constant above.
var statistics = []statistic{
	counted(countGenerated, ofParts, "window_generated", ""),
	counted(countWithheld, ofParts, "window_withheld", ""),
	counted(countSent, ofParts, "window_sent", "SENT"),
	counted(countDelivered, ofParts, "window_delivered_frames", "DELIVERED"),
	counted(countUpdates, ofParts, "window_delivered_updates", ""),
	counted(countAggregated, ofParts, "window_aggregated", "AGGREGATED"),
	counted(countReplaced, ofParts, "window_replaced", ""),
	counted(countDropped, ofParts, "window_dropped_frames", ""),
	counted(countDroppedUpdates, ofParts, "window_dropped_updates", ""),
	share("loss_packets_pct", ofParts|ofSweeps, "LOSS/PACKETS"),
	share("loss_updates_pct", ofParts, "LOSS/UPDATES"),
	share("loss_replaced_pct", ofParts, "LOSS/REPLACED"),
	benched("aom_cluster_ns", ofParts|ofSweeps, "AOM/CLUSTER"),
	benched("aom_worker_ns", ofParts|ofSweeps, "AOM/WORKER"),
	{Metric: &metric.Metric{Name: "aom_worker_max_ns", Title: "AoM of the oldest worker", Unit: "ns", Age: true, Column: "AOM/OLDEST",
		Doc: "the largest average of a worker", Of: func(m *metric.Measured) results.Float { return m.Workers.Max() }}, of: ofSweeps},
	benched("peak_aom_ns", ofParts, "AOM/PEAK"),
	benched("never_delivered", ofParts, "NEVER/DELIVERED"),
	benched("jain", ofRuns, "JAIN/CLUSTERS"),
	benched("jain_worker_means", ofRuns, "JAIN/MEANS"),
	benched("jain_workers", ofRuns|ofSweeps, "JAIN/WORKERS"),
	benched("never_delivered", ofSweeps, "NEVER/DELIVERED"),
	event(countAcks, olaf.Counter{Name: "acks", Title: "ACKs heard", Doc: "ACKs received by the workers behind one switch, over the whole run"}),
	event(countAcksLost, olaf.Counter{Name: "acks_lost", Title: "ACKs lost", Doc: "copies of ACKs lost on links, at failed links or for lack of room, over the whole run"}),
}

// counted returns the statistic of a count that networks declare for the time after the warm-up.
func counted(count int, of scope, name, column string) statistic {
	c := metric.OfWindow().Counters[metric.OfWindow().Index(name)]
	c.Column = column
	return statistic{metric.CountOf(&c), of, count, &c}
}

// event returns the statistic of a count of whole runs that only the simulator has.
func event(count int, c olaf.Counter) statistic {
	return statistic{metric.CountOf(&c), ofRuns, count, &c}
}

// benched is a number of benches as well.
func benched(name string, of scope, column string) statistic {
	row := *metric.ByName(name)[0]
	row.Column = column
	return statistic{Metric: &row, of: of}
}

// share returns the statistic of a share of what was sent after the warm-up.
func share(name string, of scope, column string) statistic {
	row := *metric.WindowShare(name)
	row.Column = column
	return statistic{Metric: &row, of: of}
}

// ledger declares what is counted, in the order of a tally.
var ledger = func() *olaf.Ledger {
	l := &olaf.Ledger{
		Counters:   make([]olaf.Counter, counts),
		Identities: metric.OfWindow().Identities,
	}
	for i := range statistics {
		if row := &statistics[i]; row.counter != nil {
			l.Counters[row.count] = *row.counter
		}
	}
	return l
}()

// The statistics of clusters, their groups and whole runs, of runs alone, and of sweeps.
var partStatistics, runStatistics, sweepStatistics = listed(ofParts), listed(ofParts | ofRuns), listed(ofSweeps)

// RunStatistics lists what whole runs are measured by; the first of these are PartStatistics, which clusters and groups
// have too. SweepStatistics are described of the runs of each value of a sweep.
func RunStatistics() []*metric.Metric   { return runStatistics }
func PartStatistics() []*metric.Metric  { return partStatistics }
func SweepStatistics() []*metric.Metric { return sweepStatistics }

func listed(of scope) (rows []*metric.Metric) {
	for i := range statistics {
		if statistics[i].of&of != 0 {
			rows = append(rows, statistics[i].Metric)
		}
	}
	return rows
}

// measured is what was measured of a part of the network, before it has names.
type measured struct {
	tally
	metric.Measured
}

// values are the numbers of some statistics.
func (m *measured) values(rows []*metric.Metric) metric.Values {
	m.Counts = m.tally.counts()
	m.AgeBelow = func(float64) results.Float { return results.Missing() } // nobody keeps how often there was which age
	return metric.Evaluate(rows, &m.Measured)
}

// take adds a cluster to a group or a run.
func (m *measured) take(cluster *measured) {
	m.tally.add(&cluster.tally)
	m.Clusters.Add(cluster.Clusters.Mean())
	m.WorkerMeans.Add(cluster.WorkerMeans.Mean())
	m.Peaks.Add(cluster.Peaks.Mean())
	m.Never += cluster.Never
	m.Nameless = m.Nameless || cluster.Nameless
}

// portMeasured is an output port at an instant.
type portMeasured struct {
	engine.Stats
	*portState
	busy, now int64
}

// portStatistics is every number of an output port, in the order of documents. A new one is a row here.
var portStatistics = []struct {
	metric.Metric
	of func(*portMeasured) float64
}{
	{metric.Metric{Name: "in", Title: "In", Unit: "frames", Column: "IN", Doc: "reached the queue"}, func(p *portMeasured) float64 { return float64(p.In()) }},
	{metric.Metric{Name: "appended", Title: "Appended", Unit: "frames", Doc: "took a free slot"}, classed(engine.Appended)},
	{metric.Metric{Name: "aggregated", Title: "Aggregated", Unit: "frames", Column: "AGGREGATED", Doc: "merged into a waiting one"}, classed(engine.Aggregated)},
	{metric.Metric{Name: "replaced", Title: "Replaced", Unit: "frames", Column: "REPLACED", Doc: "took the place of a waiting one"}, classed(engine.Replaced, engine.ReplacedReward)},
	{metric.Metric{Name: "dropped", Title: "Dropped", Unit: "frames", Column: "DROPPED", Doc: "dropped by the queue"}, classed(engine.DroppedFull, engine.DroppedReward, engine.DroppedMismatch)},
	{metric.Metric{Name: "left", Title: "Left", Unit: "frames", Column: "LEFT", Doc: "their last bit has left"}, func(p *portMeasured) float64 { return float64(p.Released) }},
	{metric.Metric{Name: "peak_occupancy", Title: "Peak occupancy", Unit: "slots", Column: "PEAK", Doc: "most slots in use at once"}, func(p *portMeasured) float64 { return float64(p.PeakOccupancy) }},
	{metric.Metric{Name: "utilisation", Title: "Utilisation", Column: "UTILISATION", Doc: "share of the time that the link was sending"}, func(p *portMeasured) float64 { return float64(p.busy) / float64(p.now) }},
	{metric.Metric{Name: "lost_on_link", Title: "Lost on the link", Unit: "frames", Doc: "the link lost, or were leaving when it failed"}, func(p *portMeasured) float64 { return float64(p.framesLost) }},
	{metric.Metric{Name: "bypass_dropped", Title: "Background dropped", Unit: "frames", Doc: "frames of background traffic that found no room"}, func(p *portMeasured) float64 { return float64(p.bypassDropped) }},
}

// classed counts the arrivals of some classes.
func classed(classes ...engine.Class) func(*portMeasured) float64 {
	return func(p *portMeasured) float64 {
		n := uint64(0)
		for _, c := range classes {
			n += p.Class[c]
		}
		return float64(n)
	}
}

var portMetrics = func() (rows []*metric.Metric) {
	for i := range portStatistics {
		rows = append(rows, &portStatistics[i].Metric)
	}
	return rows
}()

// PortStatistics lists every number of an output port.
func PortStatistics() []*metric.Metric { return portMetrics }

func (p *portMeasured) values() metric.Values {
	return metric.NewValues(portMetrics, func(i int) results.Float { return results.Float(portStatistics[i].of(p)) })
}
