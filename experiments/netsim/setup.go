package netsim

import (
	"cmp"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/tc"
	"github.com/olafctl/olaf/internal/calendar"
)

func newSim(t *Topology, n *network, opt Options) *sim {
	s := &sim{network: n, t: t, opt: opt, end: int64(t.Warmup + t.Duration), ns3: t.Timing == NS3,
		acks: t.Acks != AcksNone, ack: min(t.Update+olaf.AckStatusBytes, olaf.MaxFrame),
		control: t.Control.buildLaw()}
	s.limit, s.rest = s.end, seldom
	if opt.Watcher != nil {
		s.limit = 0 // the watcher is called before the first event
	}
	s.initNodes()
	s.meter = newMeter(t, n)
	s.addWorkers()
	s.addCables()
	s.addExtras()
	s.queue = calendar.NewQueue(len(s.workers)+len(s.extras)+4*len(n.ports), s.estimateHorizon())
	s.queue.Opening = s.prefetchWorkers
	// Without a decision at generation time, and without ns-3's order for equal instants, that event can be omitted.
	if s.direct = !t.Control.Enabled && !s.ns3; !s.direct {
		s.waiting = make([]access, len(s.workers))
	}
	if !s.ns3 {
		s.late = 1 << 63
	}
	s.scheduleFirst()
	return s
}

// initNodes initialises servers, ports and stations before the workers are added.
func (s *sim) initNodes() {
	t, n := s.t, s.network
	s.active = s.acks && t.Control.Enabled
	s.listeners = make([]tc.Controller, n.listeners)
	s.servers = make([]serverState, len(t.Servers))
	for i := range t.Servers {
		s.servers[i].processing = int64(t.Servers[i].Processing)
	}
	window := int64(t.Control.Window)
	if window == 0 {
		window = int64(olaf.Second)
	}
	for i := range n.ports {
		n.ports[i].activity.window = window
	}
	if t.sends != nil {
		s.script = newScript(t.sends, n.workerCount)
	}
	s.byID = make([]int32, maxClusterID+1)
	for i := range n.clusters {
		s.byID[n.clusters[i].id] = int32(i)
	}
	for i := range n.stations {
		n.stations[i].sim, n.stations[i].Table.From = s, int64(t.Warmup)
	}
}

// scheduleFirst schedules the first events.
func (s *sim) scheduleFirst() {
	if s.script != nil {
		s.number = uint64(len(s.t.sends))
	}
	for _, w := range s.places {
		s.scheduleUpdate(w)
	}
	for i := range s.extras {
		s.scheduleExtra(i)
	}
	for i := range s.t.Schedule {
		s.queue.Push(calendar.Event{At: int64(s.t.Schedule[i].At), Ord: 0, What: kindChange | uint64(i)})
	}
}

func (s *sim) addWorkers() {
	byEntry := map[*Clusters]int32{}
	s.workers = make([]worker, 0, s.workerCount)
	for c := range s.clusters {
		k := &s.clusters[c]
		tr := &s.trees[k.tree]
		src, ok := byEntry[tr.spec]
		if !ok {
			src = int32(len(s.sources))
			byEntry[tr.spec] = src
			s.sources = append(s.sources, s.newSource(tr.spec))
		}
		k.source = src
		for i := range int(k.workers) {
			w := tr.spec.newWorker(s.t.Seed, len(s.workers))
			at := i % len(tr.attached)
			w.cluster, w.source, w.id, w.number = uint16(c), uint16(src), k.id, olaf.WorkerID(i)
			w.port = s.portToward(k.server, tr.attached[at])
			w.listener = k.listen + tr.leafOf[at]
			if s.sources[src].lossy {
				w.listener = k.listen + int32(i)
			}
			s.workers = append(s.workers, w)
		}
	}
	s.sortWorkers()
}

// addCables creates the lossy links of workers, if there are any. They are numbered after the ports.
func (s *sim) addCables() {
	if !slices.ContainsFunc(s.sources, func(src source) bool { return src.lossy }) {
		return
	}
	s.cables = make([]cable, len(s.workers))
	for i, place := range s.places {
		number := 2 * (len(s.ports) + i)
		loss := s.trees[s.clusters[s.workers[place].cluster].tree].spec.Access.Loss
		s.cables[place].up.SetLoss(loss, 0, s.t.Seed, number)
		s.cables[place].down.SetLoss(loss, 0, s.t.Seed, number+1)
	}
}

// sortWorkers sorts workers by offset, so that consecutive events access adjacent memory. places maps their original
// indices.
func (s *sim) sortWorkers() {
	order := make([]int32, len(s.workers))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(s.workers[a].offset, s.workers[b].offset) })
	sorted := make([]worker, len(s.workers))
	s.places = make([]int32, len(s.workers))
	for place, i := range order {
		sorted[place] = s.workers[i]
		s.places[i] = int32(place)
	}
	s.workers = sorted
}

func (s *sim) newSource(k *Clusters) source {
	src := source{poisson: k.Arrivals == Poisson, jitter: uint64(k.Jitter) / 1000, start: int64(k.Start), end: s.end,
		delay: int64(k.Access.Delay), lossy: k.Access.Loss > 0}
	if k.Stop > 0 {
		src.end = min(src.end, int64(k.Stop))
	}
	if k.Access.Rate > 0 {
		clock := s.t.linkClock(k.Access.Rate, k.Access.Overhead)
		src.transmit = clock.Ticks(s.t.Update)
	}
	return src
}

// estimateHorizon estimates how far ahead most events are scheduled.
func (s *sim) estimateHorizon() int64 {
	far := int64(olaf.Microsecond)
	for i := range s.t.Clusters {
		k := &s.t.Clusters[i]
		far = max(far, int64(k.Period+k.Jitter+k.Access.Delay))
	}
	for i := range s.ports {
		far = max(far, s.ports[i].delay)
	}
	return min(far, int64(10*olaf.Second))
}
