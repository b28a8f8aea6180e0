package netsim

import (
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
)

// tally contains the counts of one cluster or of several clusters.
type tally [counts]uint64

// The counters; docs/reference/metrics.md defines the losses.
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

func (t *tally) addCounts(o *tally) {
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

// scope selects the parts of a simulation for which a statistic is listed: clusters and groups, whole runs, or sweeps.
type scope uint8

const (
	ofParts  scope = 1 << iota // clusters, their groups and the whole run
	ofRuns                     // the whole run only
	ofSweeps                   // each value of a sweep, over its runs
)

// statistic is one metric of a run, with the scope for which it is listed.
type statistic struct {
	*metric.Metric
	of      scope
	count   int           // index in a tally
	counter *olaf.Counter // nil if it is not a counter
}

// statistics lists every metric of a run, in the order in which documents list them. To add a metric, add a row here. A
// counter also needs a constant above.
var statistics = []statistic{
	countStatistic(countGenerated, ofParts, "window_generated", ""),
	countStatistic(countWithheld, ofParts, "window_withheld", ""),
	countStatistic(countSent, ofParts, "window_sent", "SENT"),
	countStatistic(countDelivered, ofParts, "window_delivered_frames", "DELIVERED"),
	countStatistic(countUpdates, ofParts, "window_delivered_updates", ""),
	countStatistic(countAggregated, ofParts, "window_aggregated", "AGGREGATED"),
	countStatistic(countReplaced, ofParts, "window_replaced", ""),
	countStatistic(countDropped, ofParts, "window_dropped_frames", ""),
	countStatistic(countDroppedUpdates, ofParts, "window_dropped_updates", ""),
	shareStatistic("loss_packets_pct", ofParts|ofSweeps, "LOSS/PACKETS"),
	shareStatistic("loss_updates_pct", ofParts, "LOSS/UPDATES"),
	shareStatistic("loss_replaced_pct", ofParts, "LOSS/REPLACED"),
	benchStatistic("aom_cluster_ns", ofParts|ofSweeps, "AOM/CLUSTER"),
	benchStatistic("aom_worker_ns", ofParts|ofSweeps, "AOM/WORKER"),
	{Metric: &metric.Metric{Name: "aom_worker_max_ns", Title: "AoM of the oldest worker", Unit: "ns", Age: true,
		Column: "AOM/OLDEST",
		Doc:    "the largest average of a worker",
		Of:     func(m *metric.Measured) results.Float { return m.Workers.Max() }},
		of: ofSweeps},
	benchStatistic("peak_aom_ns", ofParts, "AOM/PEAK"),
	benchStatistic("never_delivered", ofParts, "NEVER/DELIVERED"),
	benchStatistic("jain", ofRuns, "JAIN/CLUSTERS"),
	benchStatistic("jain_worker_means", ofRuns, "JAIN/MEANS"),
	benchStatistic("jain_workers", ofRuns|ofSweeps, "JAIN/WORKERS"),
	benchStatistic("never_delivered", ofSweeps, "NEVER/DELIVERED"),
	eventStatistic(countAcks, olaf.Counter{Name: "acks", Title: "ACKs heard",
		Doc: "ACKs received by the workers behind one switch, over the whole run"}),
	eventStatistic(countAcksLost, olaf.Counter{Name: "acks_lost", Title: "ACKs lost",
		Doc: "copies of ACKs lost on links, at failed links or for lack of room, over the whole run"}),
}

// countStatistic returns the statistic for a counter that networks count after the warm-up.
func countStatistic(count int, of scope, name, column string) statistic {
	c := metric.OfWindow().Counters[metric.OfWindow().Index(name)]
	c.Column = column
	return statistic{metric.CountOf(&c), of, count, &c}
}

// eventStatistic returns the statistic for a counter that only the simulator has. It covers the whole run.
func eventStatistic(count int, c olaf.Counter) statistic {
	return statistic{metric.CountOf(&c), ofRuns, count, &c}
}

// benchStatistic returns a statistic that benches have as well.
func benchStatistic(name string, of scope, column string) statistic {
	row := *metric.ByName(name)[0]
	row.Column = column
	return statistic{Metric: &row, of: of}
}

// shareStatistic returns the statistic for a percentage of the updates that were sent after the warm-up.
func shareStatistic(name string, of scope, column string) statistic {
	row := *metric.WindowShare(name)
	row.Column = column
	return statistic{Metric: &row, of: of}
}

// ledger is the declaration of the counters, in the order of a tally.
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

// partStatistics are listed for clusters, groups and whole runs, runStatistics for whole runs, and sweepStatistics for
// sweeps.
var partStatistics, runStatistics, sweepStatistics = listStatistics(ofParts), listStatistics(ofParts | ofRuns),
	listStatistics(ofSweeps)

// RunStatistics returns the metrics of whole runs. They begin with PartStatistics, which clusters and groups have too.
// SweepStatistics are aggregated over all runs with the same value in a sweep.
func RunStatistics() []*metric.Metric   { return runStatistics }
func PartStatistics() []*metric.Metric  { return partStatistics }
func SweepStatistics() []*metric.Metric { return sweepStatistics }

func listStatistics(of scope) (rows []*metric.Metric) {
	for i := range statistics {
		if statistics[i].of&of != 0 {
			rows = append(rows, statistics[i].Metric)
		}
	}
	return rows
}

// measured contains the measurements of a part of the network. values converts them to named values.
type measured struct {
	tally
	metric.Measured
}

// values returns the measured values for the given metrics.
func (m *measured) values(rows []*metric.Metric) metric.Values {
	m.Counts = m.tally.counts()
	m.AgeBelow = func(float64) results.Float { return results.Missing() } // the distribution of ages is not recorded
	return metric.Evaluate(rows, &m.Measured)
}

// addCluster adds the measurements of a cluster to those of a group or a run.
func (m *measured) addCluster(cluster *measured) {
	m.tally.addCounts(&cluster.tally)
	m.Clusters.Add(cluster.Clusters.Mean())
	m.WorkerMeans.Add(cluster.WorkerMeans.Mean())
	m.Peaks.Add(cluster.Peaks.Mean())
	m.Never += cluster.Never
	m.Nameless = m.Nameless || cluster.Nameless
}

// portMeasured contains the measurements of an output port at one instant.
type portMeasured struct {
	engine.Stats
	*portState
	busy, now int64
}

// portStatistics lists every metric of an output port, in the order in which documents list them. To add a metric, add
// a row.
var portStatistics = []struct {
	metric.Metric
	of func(*portMeasured) float64
}{
	{metric.Metric{Name: "in", Title: "In", Unit: "frames", Column: "IN", Doc: "reached the queue"},
		func(p *portMeasured) float64 { return float64(p.In()) }},
	{metric.Metric{Name: "appended", Title: "Appended", Unit: "frames", Doc: "took a free slot"},
		countClasses(engine.Appended)},
	{metric.Metric{Name: "aggregated", Title: "Aggregated", Unit: "frames", Column: "AGGREGATED",
		Doc: "merged into a waiting one"}, countClasses(engine.Aggregated)},
	{metric.Metric{Name: "replaced", Title: "Replaced", Unit: "frames", Column: "REPLACED",
		Doc: "took the place of a waiting one"}, countClasses(engine.Replaced, engine.ReplacedReward)},
	{metric.Metric{Name: "dropped", Title: "Dropped", Unit: "frames", Column: "DROPPED", Doc: "dropped by the queue"},
		countClasses(engine.DroppedFull, engine.DroppedReward, engine.DroppedMismatch)},
	{metric.Metric{Name: "left", Title: "Left", Unit: "frames", Column: "LEFT", Doc: "their last bit has left"},
		func(p *portMeasured) float64 { return float64(p.Released) }},
	{metric.Metric{Name: "peak_occupancy", Title: "Peak occupancy", Unit: "slots", Column: "PEAK",
		Doc: "most slots in use at once"}, func(p *portMeasured) float64 { return float64(p.PeakOccupancy) }},
	{metric.Metric{Name: "utilisation", Title: "Utilisation", Column: "UTILISATION",
		Doc: "share of the time that the link was sending"},
		func(p *portMeasured) float64 { return float64(p.busy) / float64(p.now) }},
	{metric.Metric{Name: "lost_on_link", Title: "Lost on the link", Unit: "frames",
		Doc: "the link lost, or were leaving when it failed"},
		func(p *portMeasured) float64 { return float64(p.framesLost) }},
	{metric.Metric{Name: "bypass_dropped", Title: "Background dropped", Unit: "frames",
		Doc: "frames of background traffic that found no room"},
		func(p *portMeasured) float64 { return float64(p.bypassDropped) }},
}

// countClasses returns a function that counts the arrivals that belong to the given classes.
func countClasses(classes ...engine.Class) func(*portMeasured) float64 {
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

// PortStatistics returns every metric of an output port.
func PortStatistics() []*metric.Metric { return portMetrics }

func (p *portMeasured) values() metric.Values {
	return metric.NewValues(portMetrics, func(i int) results.Float { return results.Float(portStatistics[i].of(p)) })
}

// tables contains the occupancy of the tables in all adding switches, within the averaging window.
type tables struct {
	area, bytes float64 // slots × ps, and B × ps
	peak        int     // sum over the switches
	span        int64   // length of the window, ps
}

// measureTables measures the tables at an instant. It has no side effects.
func (s *sim) measureTables(now int64) (all tables) {
	all.span = max(now-s.meter.from, 0)
	for i := range s.stations {
		st := &s.stations[i]
		if st.front == nil {
			continue
		}
		held := st.OccupancyAt(now)
		all.area += held.Area
		all.bytes += held.Area * float64(st.Memory()) / float64(st.Slots())
		all.peak += held.Peak
	}
	return all
}

// meanOver returns the mean over the window of a quantity with the given time integral. It is missing if the window is
// empty.
func (t *tables) meanOver(area float64) results.Float {
	if t.span == 0 {
		return results.Missing()
	}
	return results.Float(area / float64(t.span))
}

// tableStatistics lists the additional metrics of runs with adding switches, in the order in which documents list them.
var tableStatistics = []struct {
	metric.Metric
	of func(*tables) results.Float
}{
	{ofTables(metric.OfHosts("slots_held"), "SLOTS/HELD"), func(t *tables) results.Float { return t.meanOver(t.area) }},
	{ofTables(metric.OfHosts("slots_held_peak"), "SLOTS/MOST"),
		func(t *tables) results.Float { return results.Float(t.peak) }},
	{ofTables(metric.OfHosts("held_bytes"), "BYTES/HELD"),
		func(t *tables) results.Float { return t.meanOver(t.bytes) }},
}

// ofTables returns a metric with the given column title and with the name, unit and description of h. Closed-loop hosts
// have the same metric.
func ofTables(h metric.Host, column string) metric.Metric {
	return metric.Metric{Name: h.Name, Title: h.Title, Unit: h.Unit, Doc: h.Doc, Column: column}
}

// StatisticsOf returns the metrics for whole runs of t.
func StatisticsOf(t *Topology) []*metric.Metric {
	if t.Program == "" {
		return runStatistics
	}
	return summingStatistics
}

// TableStatistics returns the additional metrics of whole runs with adding switches.
func TableStatistics() (rows []*metric.Metric) {
	for i := range tableStatistics {
		rows = append(rows, &tableStatistics[i].Metric)
	}
	return rows
}

// summingStatistics lists the metrics of runs with adding switches.
var summingStatistics = slices.Concat(runStatistics, TableStatistics())

// runValues returns the values of the whole run up to now.
func (s *sim) runValues(all *measured, now int64) metric.Values {
	plain := all.values(runStatistics)
	if s.stations == nil {
		return plain
	}
	held := s.measureTables(now)
	return metric.NewValues(summingStatistics, func(i int) results.Float {
		if i < len(runStatistics) {
			return plain.Of(summingStatistics[i].Name)
		}
		return tableStatistics[i-len(runStatistics)].of(&held)
	})
}
