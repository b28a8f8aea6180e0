package netsim

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
)

// Watcher observes a run, and may slow, pause or end it. A run has only virtual time, so a watcher can slow it by
// waiting before it returns. It cannot change results, except by ending the run.
type Watcher interface {
	// Before is called between events: before the first, whenever the last returned instant is reached, every few
	// thousand events, and once at the end, with the end as next. last and next are the instants of the latest and the
	// next event. look returns a snapshot at an instant from last to next, only during the call. If on is true, the run
	// need not call again before until. Otherwise it ends there, or at the nearest instant from last to next, and is
	// measured up to that instant.
	Before(last, next olaf.Time, look func(at olaf.Time) *Snapshot) (until olaf.Time, on bool)
}

// Snapshot is the state of a run at an instant. It is immutable.
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

// PortSnapshot contains an output port's values since the start.
type PortSnapshot struct {
	PortResult
	Occupancy int // slots in use
	Down      bool
}

// ClusterSnapshot contains a cluster's values since the end of the warm-up.
type ClusterSnapshot struct {
	Cluster int
	Group   string
	Workers int
	Values  metric.Values                // over the window so far
	AoM     [olaf.Readings]results.Float // at this instant, in ns; missing before the first delivery
}

// MeanAoM returns the age averaged over the window so far, in ns.
func MeanAoM(part metric.Values, reading olaf.Reading) results.Float {
	return part.Of([olaf.Readings]string{"aom_cluster_ns", "aom_worker_ns"}[reading])
}

// callWatcher calls the watcher before the event at next.
func (s *sim) callWatcher(next int64) error {
	until, on := s.opt.Watcher.Before(olaf.Time(s.now), olaf.Time(next), s.takeSnapshot)
	if !on {
		s.stopAt(min(max(int64(until), s.now), next))
		return nil
	}
	s.limit = min(max(int64(until), next+1), s.end)
	return nil
}

// stopAt ends the run at an instant.
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

// isEarly reports whether a worker's latest update was counted as sent although its generation is at or after an instant.
// Updates without a decision are counted when they are scheduled.
func (s *sim) isEarly(w *worker, at int64) bool {
	return s.direct && w.gen >= at && w.gen < s.sources[w.source].end
}

// takeSnapshot returns a snapshot of the run.
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

// lookAtCluster adds a cluster to a snapshot.
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

// ageAt returns the age of a sawtooth at an instant, missing before its first delivery.
func ageAt(age results.Age, at olaf.Time) results.Float {
	if d, ok := age.At(at); ok {
		return results.Float(d.NS())
	}
	return results.Missing()
}
