package netsim

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
)

func (s *sim) makeResult() (*Result, error) {
	if err := s.checkAccounts(); err != nil {
		return nil, err
	}
	r := s.measureRun()
	if err := r.setTotals(s.sumTotals(r.Values)); err != nil {
		return nil, err
	}
	for i := range s.ports {
		r.Ports = append(r.Ports, s.portResult(i, s.end, s.ports[i].up.Busy))
	}
	return r, nil
}

// measureRun ends the averaging window and returns all measurements except those of the ports.
func (s *sim) measureRun() *Result {
	m := &s.meter
	r := &Result{Topology: s.t.Name, Queue: s.t.Queue, Control: s.t.Control.Enabled, Seed: s.t.Seed,
		Window: m.window.String(),
		Time:   olaf.Duration(s.end), Events: s.events, LostPct: results.Missing(),
		Background: [2]uint64{m.backgroundSent, m.backgroundDelivered}}
	all := new(measured)
	r.Groups = s.measureGroups(all, func(i int) *measured {
		c := &s.clusters[i]
		one := s.measureCluster(i, m.window, 0, func(j int32, age results.Float) {
			all.Workers.Add(age)
			if s.opt.Workers {
				r.Workers = append(r.Workers, s.workerResult(c, j, age))
			}
		})
		r.Clusters = append(r.Clusters, ClusterResult{int(c.id), s.groups[c.group], one.values(partStatistics)})
		return one
	})
	r.Values, r.swept = s.runValues(all, s.end), all.values(sweepStatistics)
	return r
}

// measureGroups measures all clusters, adds up their measurements in all, and returns the result of each group.
func (s *sim) measureGroups(all *measured, cluster func(i int) *measured) []GroupResult {
	s.sumSent()
	out, groups := make([]GroupResult, len(s.groups)), make([]measured, len(s.groups))
	for i := range s.clusters {
		one, g := cluster(i), s.clusters[i].group
		all.addCluster(one)
		groups[g].addCluster(one)
		out[g].Clusters++
		out[g].Workers += int(s.clusters[i].workers)
	}
	for g := range groups {
		out[g].Group, out[g].Values = s.groups[g], groups[g].values(partStatistics)
	}
	all.tally[countAcks], all.tally[countAcksLost] = s.meter.acks, s.meter.acksLost
	return out
}

// measureCluster measures a cluster over a window. It subtracts early, the number of updates that were counted as sent
// too early. It calls visit with the age of each worker, or with a missing value if the worker has no age.
func (s *sim) measureCluster(i int, w results.Window, early uint64,
	visit func(worker int32, age results.Float)) *measured {
	c, k := &s.clusters[i], &s.meter.clusters[i]
	out := &measured{tally: k.tally}
	out.Nameless = s.meter.nameless
	out.tally[countSent] -= early
	out.tally[countGenerated] -= early
	out.Clusters.Add(averageAge(k.age, w))
	out.Peaks.Add(k.peaks.MeanNS())
	var own metric.Series
	for j := c.firstWorker; j < c.firstWorker+c.workers; j++ {
		age := s.meter.workers[j].age
		if age.Deliveries() < 2 {
			out.Never++
		}
		mean := averageAge(age, w)
		own.Add(mean)
		visit(j, mean)
	}
	out.WorkerMeans.Add(own.Mean())
	return out
}

// averageAge returns the average of a sawtooth over a window. It is missing if there are too few deliveries.
func averageAge(age results.Age, w results.Window) results.Float {
	age.Close(w)
	if age.Deliveries() >= 2 || w.InitialAge >= 0 {
		return age.MeanNS()
	}
	return results.Missing()
}

func (s *sim) workerResult(c *cluster, i int32, age results.Float) WorkerResult {
	w := &s.workers[s.places[i]]
	share := 0.0
	if w.period > 0 {
		share = float64(w.offset%w.period) / float64(w.period)
	}
	return WorkerResult{int(c.id), int(i - c.firstWorker), share, w.sent, s.meter.workers[i].received, age}
}

// portResult returns the result of a port at the instant now. busy is the time that the port has spent on transmission.
// Both are in ps.
func (s *sim) portResult(i int, now, busy int64) PortResult {
	p := &s.ports[i]
	sw := &s.t.Switches[p.from]
	m := portMeasured{p.output.Discipline().Stats(), &p.portState, busy, now}
	return PortResult{s.portName(i), s.t.queueOf(sw), sw.Slots, m.values()}
}

// ClusterResult contains the results of one cluster.
type ClusterResult struct {
	Cluster int
	Group   string
	Values  metric.Values // within the window
}

// GroupResult contains the averages over all clusters in a group.
type GroupResult struct {
	Group    string
	Clusters int
	Workers  int
	Values   metric.Values // within the window
}

// PortResult contains the results of one output port over the whole run, including the warm-up.
type PortResult struct {
	Port   string
	Queue  string
	Slots  int
	Values metric.Values
}

// WorkerResult contains the results of one worker.
type WorkerResult struct {
	Cluster, Worker int
	Share           float64 // phase divided by period, in [0, 1)
	Sent, Received  uint32
	AoM             results.Float // ns
}

// Result contains the measurements of one run.
type Result struct {
	Topology   string
	Queue      string
	Control    bool
	Seed       uint64
	Window     string
	Time       olaf.Duration `json:"-"` // simulated, including the warm-up
	Events     uint64
	Values     metric.Values // within the window: updates, ages in ns and shares in per cent, as the names indicate
	Background [2]uint64
	Groups     []GroupResult
	Clusters   []ClusterResult
	Ports      []PortResult
	Workers    []WorkerResult `json:"-"`
	// Totals is the balanced account of the whole run, including the warm-up; Values cover the window only. LostPct is
	// the loss according to Totals, as in stored runs; missing for an imported trace.
	Totals  olaf.Counts `json:",omitzero"`
	LostPct results.Float
	Waited  *Waited `json:"-"` // nil for open-loop runs

	swept metric.Values // sweep statistics
}

// Of returns the run's value with the given name. It is missing if the run has no such value.
func (r *Result) Of(name string) results.Float { return r.Values.Of(name) }

// SweepValues returns the run's values for the metrics in SweepStatistics.
func (r *Result) SweepValues() metric.Values { return r.swept }

// setTotals sets the counts of the whole run and the loss computed from them.
func (r *Result) setTotals(totals olaf.Counts) error {
	r.Totals = totals
	if sent := totals.SumOffered(); sent > 0 {
		r.LostPct = results.Float(100 * float64(totals.SumLost()) / float64(sent))
	}
	return totals.Balance()
}

// OnTheWayPct returns the percentage of sent updates that were in flight at the end of the run. It is missing if no
// update was sent.
func (r *Result) OnTheWayPct() results.Float {
	sent := r.Totals.SumOffered()
	if sent == 0 {
		return results.Missing()
	}
	return results.Float(100 * float64(r.Totals.SumInside()) / float64(sent))
}

// Watcher observes a run and may slow it down, pause it or end it. A run has only virtual time, so a watcher slows it
// down by waiting before it returns. Except by ending the run, a watcher cannot change results.
type Watcher interface {
	// Before is called between events: before the first event, whenever the last returned instant is reached, every few
	// thousand events, and once at the end, with the end as next. last and next are the instants of the latest and of
	// the next event. look returns a snapshot at an instant from last to next; it may be called only during Before. If
	// on is true, Before need not be called again before until. If on is false, the run ends at until, or at the
	// nearest instant from last to next, and is measured up to that instant.
	Before(last, next olaf.Time, look func(at olaf.Time) *Snapshot) (until olaf.Time, on bool)
}

// Snapshot is the state of a run at one instant. It is immutable.
type Snapshot struct {
	Topology string
	Queue    string
	Control  bool
	Sums     string // how switches add updates; empty if they only forward
	Waits    string // system and mode of closed-loop workers; empty for open loop
	Seed     uint64

	Now, Warmup, End olaf.Time
	Events           uint64
	Workers          int
	Withheld         uint64 // by transmission control
	Fate             Fate
	Values           metric.Values  // since the end of the warm-up
	Ports            []PortSnapshot // ports that a packet can pass
	Groups           []GroupResult  // since the end of the warm-up
	Clusters         []ClusterSnapshot
}

// PortSnapshot contains the measurements of an output port since the start of the run.
type PortSnapshot struct {
	PortResult
	Occupancy int // slots in use
	Down      bool
}

// ClusterSnapshot contains the measurements of a cluster since the end of the warm-up.
type ClusterSnapshot struct {
	Cluster int
	Group   string
	Workers int
	Values  metric.Values                // over the window so far
	AoM     [olaf.Readings]results.Float // at this instant, in ns; missing before the first delivery
}

// MeanAoM returns the age averaged over the window so far, in ns. part contains the measurements.
func MeanAoM(part metric.Values, reading olaf.Reading) results.Float {
	return part.Of([olaf.Readings]string{"aom_cluster_ns", "aom_worker_ns"}[reading])
}

// callWatcher calls the watcher before the event at the time next.
func (s *sim) callWatcher(next int64) error {
	until, on := s.opt.Watcher.Before(olaf.Time(s.now), olaf.Time(next), s.takeSnapshot)
	if !on {
		s.stopAt(min(max(int64(until), s.now), next))
		return nil
	}
	s.limit = min(max(int64(until), next+1), s.end)
	return nil
}

// stopAt ends the run at the given instant.
func (s *sim) stopAt(at int64) {
	for i := range s.workers {
		w := &s.workers[i]
		if !s.isEarly(w, at) {
			continue
		}
		s.meter.total[countGenerated]--
		s.meter.total[countSent]--
		s.meter.airborne--
		if w.gen >= s.meter.from {
			w.sent--
		}
	}
	s.end = at
	s.meter.window.To = max(s.meter.window.From, olaf.Time(at))
}

// isEarly reports whether a worker's latest update was counted as sent although it is generated at or after the given
// instant. An update that needs no decision is counted when it is scheduled.
func (s *sim) isEarly(w *worker, at int64) bool {
	return s.direct && w.gen >= at && w.gen < s.sources[w.source].end
}

// takeSnapshot returns a snapshot of the run at the given instant.
func (s *sim) takeSnapshot(at olaf.Time) *Snapshot {
	v := &Snapshot{
		Topology: s.t.Name, Queue: s.t.Queue, Sums: s.t.DescribeSums(), Control: s.t.Control.Enabled, Seed: s.t.Seed,
		Now: at, Warmup: olaf.Time(s.meter.from), End: olaf.Time(s.t.Warmup + s.t.Duration), Events: s.events,
		Workers:  len(s.workers),
		Withheld: s.meter.total[countWithheld], Fate: s.countFates(),
		Clusters: make([]ClusterSnapshot, 0, len(s.clusters)),
	}
	early := make([]uint64, len(s.clusters)) // per cluster, to subtract from its counts
	for i := range s.workers {
		w := &s.workers[i]
		if !s.isEarly(w, int64(at)) {
			continue
		}
		v.Fate.Sent--
		v.Fate.Flying--
		if w.gen >= s.meter.from {
			early[w.cluster]++
		}
	}
	all := new(measured)
	v.Groups = s.measureGroups(all, func(i int) *measured { return s.lookAtCluster(i, at, early[i], all, v) })
	v.Values = s.runValues(all, int64(at))
	used := make([]bool, len(s.ports))
	for i := range s.trees {
		for _, h := range s.trees[i].hops {
			used[h.uplink] = true
		}
	}
	for i := range s.ports {
		p := &s.ports[i]
		if !used[i] && p.up.Busy == 0 {
			continue
		}
		result := s.portResult(i, int64(at), min(p.up.Busy, int64(at))) // the whole frame on the wire is counted
		v.Ports = append(v.Ports, PortSnapshot{result, p.output.Discipline().Occupancy(), !p.output.Up()})
	}
	return v
}

// lookAtCluster adds a cluster's measurements to a snapshot.
func (s *sim) lookAtCluster(i int, at olaf.Time, early uint64, all *measured, v *Snapshot) *measured {
	c := &s.clusters[i]
	w := s.meter.window
	w.To = max(w.From, at)
	var now metric.Series
	m := s.measureCluster(i, w, early, func(worker int32, age results.Float) {
		all.Workers.Add(age)
		now.Add(ageAt(s.meter.workers[worker].age, at))
	})
	v.Clusters = append(v.Clusters, ClusterSnapshot{
		int(c.id), s.groups[c.group], int(c.workers), m.values(partStatistics),
		[olaf.Readings]results.Float{ageAt(s.meter.clusters[i].age, at), now.Mean()},
	})
	return m
}

// ageAt returns the age of a sawtooth at an instant. It is missing before the first delivery.
func ageAt(age results.Age, at olaf.Time) results.Float {
	if d, ok := age.At(at); ok {
		return results.Float(d.NS())
	}
	return results.Missing()
}

// CollectorConfig returns the configuration of a results.Collector for the deliveries in a run of t. Its output rate is
// the sum of the initial rates of all links to servers.
func (t *Topology) CollectorConfig() results.Config {
	m := results.Config{Declared: system.NetworkDeclaration(), Window: t.Window(), OwnFrames: t.Waiting != nil}
	for i := range t.Clusters {
		k := &t.Clusters[i]
		m.Jobs = append(m.Jobs, results.Job{Cluster: olaf.ClusterID(k.ID), Clusters: k.clusterCount(),
			Workers: k.Workers})
	}
	for _, l := range t.serverLinks() {
		m.OutRate += l.Rate
		m.OverheadBytes = max(m.OverheadBytes, l.Overhead)
	}
	return m
}

// serverLinks returns the links that lead to a server.
func (t *Topology) serverLinks() (links []*Link) {
	for i := range t.Links {
		l := &t.Links[i]
		for s := range t.Servers {
			if l.From == t.Servers[s].Name || l.To == t.Servers[s].Name {
				links = append(links, l)
				break
			}
		}
	}
	return links
}
