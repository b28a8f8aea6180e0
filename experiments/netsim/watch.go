package netsim

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
)

// Watcher sees a run while it goes on, and may slow, hold or end it. A run knows no clock but its own: a watcher that
// wants it slower waits before it answers. What it does changes no result, unless it ends the run.
type Watcher interface {
	// Before is asked between two events: before the first, whenever the instant of the latest answer is reached, every
	// some thousand events, and once when the run is over, with its end as next. last and next are the instants of the
	// latest event and of the next one; nothing happens between them. look takes a picture at an instant from last to
	// next, during the call only. With on, the run need not ask again before until; without, it ends there, or at the
	// nearest instant from last to next, and is measured up to there.
	Before(last, next olaf.Time, look func(at olaf.Time) *Snapshot) (until olaf.Time, on bool)
}

// Snapshot is a run at an instant. It does not change, whatever the run does next.
type Snapshot struct {
	Topology string
	Queue    string
	Control  bool
	Sums     string // what switches do with updates on their way; empty where they pass them on
	Waits    string // the system whose workers wait, and how; empty where nobody waits
	Seed     uint64

	Now, Warmup, End olaf.Time
	Events           uint64
	Workers          int
	Withheld         uint64 // by transmission control
	Fate             Fate
	Values           metric.Values  // since the end of the warm-up
	Ports            []PortSnapshot // those that something can pass
	Groups           []GroupResult  // since the end of the warm-up
	Clusters         []ClusterSnapshot
}

// PortSnapshot is an output port since the start.
type PortSnapshot struct {
	PortResult
	Occupancy int // slots in use
	Down      bool
}

// ClusterSnapshot is a cluster since the end of the warm-up.
type ClusterSnapshot struct {
	Cluster int
	Group   string
	Workers int
	Values  metric.Values                // over the window so far
	AoM     [olaf.Readings]results.Float // at this instant, in ns; missing before the first delivery
}

// MeanAoM is the age averaged over the window so far, in ns.
func MeanAoM(part metric.Values, reading olaf.Reading) results.Float {
	return part.Of([olaf.Readings]string{"aom_cluster_ns", "aom_worker_ns"}[reading])
}

// watch asks the watcher what to do before the event at next.
func (s *sim) watch(next int64) error {
	until, on := s.opt.Watcher.Before(olaf.Time(s.now), olaf.Time(next), s.look)
	if !on {
		s.stop(min(max(int64(until), s.now), next))
		return nil
	}
	s.limit = min(max(int64(until), next+1), s.end)
	return nil
}

// stop makes at the end of the run.
func (s *sim) stop(at int64) {
	for i := range s.workers {
		w := &s.workers[i]
		if !s.early(w, at) {
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

// early says that a worker's latest update is noted as sent already though it is generated at an instant or later:
// updates without a decision are noted when they are scheduled.
func (s *sim) early(w *worker, at int64) bool {
	return s.direct && w.gen >= at && w.gen < s.sources[w.source].end
}

// look takes a picture of the run.
func (s *sim) look(at olaf.Time) *Snapshot {
	v := &Snapshot{
		Topology: s.t.Name, Queue: s.t.Queue, Sums: s.t.Sums(), Control: s.t.Control.Enabled, Seed: s.t.Seed,
		Now: at, Warmup: olaf.Time(s.meter.from), End: olaf.Time(s.t.Warmup + s.t.Duration), Events: s.events, Workers: len(s.workers),
		Withheld: s.meter.total[countWithheld], Fate: s.fate(),
		Clusters: make([]ClusterSnapshot, 0, len(s.clusters)),
	}
	early := make([]uint64, len(s.clusters)) // of what the clusters count
	for i := range s.workers {
		w := &s.workers[i]
		if !s.early(w, int64(at)) {
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
		result := s.portResult(i, int64(at), min(p.up.Busy, int64(at))) // the frame on the wire counts as a whole
		v.Ports = append(v.Ports, PortSnapshot{result, p.output.Discipline().Occupancy(), !p.output.Up()})
	}
	return v
}

// lookAtCluster adds a cluster to a picture.
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

// ageAt is the age of a sawtooth at an instant, missing before its first delivery.
func ageAt(age results.Age, at olaf.Time) results.Float {
	if d, ok := age.At(at); ok {
		return results.Float(d.NS())
	}
	return results.Missing()
}
