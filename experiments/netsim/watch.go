package netsim

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/results"
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
	Seed     uint64

	Now, Warmup, End olaf.Time
	Events           uint64
	Workers          int
	Withheld         uint64 // by transmission control
	Fate             Fate
	Ports            []PortSnapshot // those that something can pass
	Clusters         []ClusterSnapshot
}

// Fate is what became of all updates that were sent, warm-up included. Its parts add up to Sent.
type Fate struct {
	Sent        uint64
	Delivered   uint64 // merged ones included
	Dropped     uint64 // by queues
	Replaced    uint64 // by a newer one of the same worker
	LostOnLinks uint64
	Queued      uint64 // in slots; the frame on the wire is not
	Flying      uint64 // on links
}

func (f *Fate) accounted() uint64 {
	return f.Delivered + f.Dropped + f.Replaced + f.LostOnLinks + f.Queued + f.Flying
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
	Counts
	Loss
	// Ages are in ns: at this instant, missing before the first delivery, and averaged over the window so far.
	AoM, MeanAoM [olaf.Readings]results.Float
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
		s.meter.total.generated--
		s.meter.total.sent--
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

// fate sums up what became of updates.
func (s *sim) fate() Fate {
	t := &s.meter.total
	f := Fate{Sent: t.sent, Delivered: t.updates, Dropped: t.dropped, Flying: uint64(s.meter.airborne)}
	for i := range s.ports {
		p := &s.ports[i]
		f.Replaced += p.output.Discipline().Stats().SumDiscarded
		f.LostOnLinks += p.updatesLost
		for i := range p.link.len() {
			f.Flying += uint64(p.link.at(i).update.Count)
		}
		var frame engine.Frame
		p.output.Discipline().Queued(func(slot engine.Slot, locked bool) bool {
			if !locked {
				p.output.Discipline().View(slot, &frame)
				f.Queued += uint64(frame.Update.Count)
			}
			return true
		})
	}
	for i := range s.sources {
		f.Flying += uint64(s.sources[i].sent.len())
	}
	f.Flying += uint64(s.held.len())
	return f
}

// look takes a picture of the run.
func (s *sim) look(at olaf.Time) *Snapshot {
	v := &Snapshot{
		Topology: s.t.Name, Queue: s.t.Queue, Control: s.t.Control.Enabled, Seed: s.t.Seed,
		Now: at, Warmup: olaf.Time(s.meter.from), End: olaf.Time(s.t.Warmup + s.t.Duration), Events: s.events, Workers: len(s.workers),
		Withheld: s.meter.total.withheld, Fate: s.fate(),
		Clusters: make([]ClusterSnapshot, 0, len(s.clusters)),
	}
	s.sumSent()
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
	for i := range s.clusters {
		v.Clusters = append(v.Clusters, s.lookAtCluster(i, at, early[i]))
	}
	used := make([]bool, len(s.ports))
	for i := range s.trees {
		for _, h := range s.trees[i].hops {
			used[h.uplink] = true
		}
	}
	for i := range s.ports {
		p := &s.ports[i]
		if !used[i] && p.busy == 0 {
			continue
		}
		port := PortSnapshot{PortResult: s.portResult(i, int64(at)), Occupancy: p.output.Discipline().Occupancy(), Down: !p.output.Up()}
		port.Utilisation = min(port.Utilisation, 1) // the frame on the wire counts as a whole
		v.Ports = append(v.Ports, port)
	}
	return v
}

func (s *sim) lookAtCluster(i int, at olaf.Time, early uint64) ClusterSnapshot {
	c, k := &s.clusters[i], &s.meter.clusters[i]
	v := ClusterSnapshot{Cluster: int(c.id), Group: s.groups[c.group], Workers: int(c.workers)}
	v.Counts.add(&k.tally)
	v.Sent -= early
	v.Generated -= early
	v.Loss = v.Counts.loss()
	w := s.meter.window
	w.To = max(w.From, at)
	v.AoM[olaf.PerCluster], v.MeanAoM[olaf.PerCluster] = agesAt(k.age, at, w)
	var now, averaged []results.Float
	for i := c.firstWorker; i < c.firstWorker+c.workers; i++ {
		age, mid := agesAt(s.meter.workers[i].age, at, w)
		if age.Known() {
			now = append(now, age)
		}
		if mid.Known() {
			averaged = append(averaged, mid)
		}
	}
	v.AoM[olaf.PerWorker], v.MeanAoM[olaf.PerWorker] = mean(now), mean(averaged)
	return v
}

// agesAt is the age of a sawtooth at an instant, and its average over a window that ends there.
func agesAt(age results.Age, at olaf.Time, w results.Window) (now, averaged results.Float) {
	now, averaged = results.Missing(), results.Missing()
	if d, ok := age.At(at); ok {
		now = results.Float(d.NS())
	}
	age.Close(w)
	if age.Deliveries() >= 2 || w.InitialAge >= 0 {
		averaged = age.MeanNS()
	}
	return now, averaged
}
