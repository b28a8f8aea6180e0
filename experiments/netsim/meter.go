package netsim

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/results"
)

// meter collects a run's counts and ages. They cover the window only, total the whole run.
type meter struct {
	window   results.Window
	from     int64
	total    tally
	clusters []clusterMeter
	workers  []workerMeter

	airborne                            int // counted as sent, but not yet at the first switch
	backgroundSent, backgroundDelivered uint64
	acks, acksLost                      uint64
	deliveries                          uint32 // distinguishes consecutive deliveries
	nameless                            bool   // frames do not name their contributors
	obs                                 olaf.Observation
}

type clusterMeter struct {
	tally
	age   results.Age
	peaks results.Peaks
}

// workerMeter is a worker's part of the meter; it fits in a cache line.
type workerMeter struct {
	age      results.Age
	last     uint32 // last delivery that contained this worker
	received uint32
}

func newMeter(t *Topology, n *network) meter {
	m := meter{from: int64(t.Warmup), clusters: make([]clusterMeter, len(n.clusters)),
		workers: make([]workerMeter, n.workerCount)}
	m.window = t.Window()
	for i := range m.clusters {
		m.clusters[i].age.Begin(m.window)
	}
	for i := range m.workers {
		m.workers[i].age.Begin(m.window)
	}
	return m
}

// Window returns the span over which t's ages are averaged: from the end of the warm-up to the end. With ns-3's timing
// every age is 0 at time 0, as in the ns-3 comparison; otherwise a sawtooth begins with its first delivery.
func (t *Topology) Window() results.Window {
	w := results.Window{From: olaf.Time(t.Warmup), To: olaf.Time(t.Warmup + t.Duration), InitialAge: results.UnknownAge}
	if t.Timing == NS3 {
		w.InitialAge = 0
	}
	return w
}

// countSend counts an update that a worker sends, generated at gen. sumSent later counts it for the cluster: here the
// worker is in the CPU cache, the cluster is not.
func (m *meter) countSend(w *worker, gen int64) {
	m.total[countGenerated]++
	m.total[countSent]++
	if gen >= m.from {
		w.sent++
	}
}

// sumSent counts the updates that clusters sent and generated.
func (s *sim) sumSent() {
	clusters := s.meter.clusters
	for i := range clusters {
		clusters[i].tally[countSent] = 0
	}
	for i := range s.workers {
		w := &s.workers[i]
		clusters[w.cluster].tally[countSent] += uint64(w.sent)
	}
	for i := range clusters {
		t := &clusters[i].tally
		t[countGenerated] = t[countSent] + t[countWithheld]
	}
}

func (m *meter) countWithhold(cluster int32, gen int64) {
	m.total[countGenerated]++
	m.total[countWithheld]++
	if gen >= m.from {
		m.clusters[cluster].tally[countWithheld]++
	}
}

func (m *meter) countMerge(cluster int32, class engine.Class, now int64) {
	count := countReplaced
	if class == engine.Aggregated {
		count = countAggregated
	}
	m.total[count]++
	if now >= m.from {
		m.clusters[cluster].tally[count]++
	}
}

func (m *meter) countDrop(cluster int32, u *olaf.Update, now int64) {
	m.total[countDropped]++
	m.total[countDroppedUpdates] += uint64(u.Count)
	if now >= m.from {
		t := &m.clusters[cluster].tally
		t[countDropped]++
		t[countDroppedUpdates] += uint64(u.Count)
	}
}

// recordFrame records the delivery of a frame with count updates of a cluster, the newest generated at gen.
func (m *meter) recordFrame(c int32, at, gen olaf.Time, count uint16) {
	m.deliveries++
	m.total[countDelivered]++
	m.total[countUpdates] += uint64(count)
	k := &m.clusters[c]
	peak := k.age.Deliver(m.window, at, gen)
	if int64(at) < m.from {
		return
	}
	k.tally[countDelivered]++
	k.tally[countUpdates] += uint64(count)
	if peak > 0 {
		k.peaks.Add(peak)
	}
}

func (m *meter) recordDelivery(s *sim, server, c int32, f *frame, inside []olaf.Contributor) {
	u := &f.update
	at := olaf.Time(s.now)
	gen := unwrapStamp(at, u.GenNS)
	m.recordFrame(c, at, gen, u.Count)
	first := s.clusters[c].firstWorker
	if len(inside) == 0 {
		m.deliverWorker(first+int32(u.Worker), at, gen)
	}
	for i := range inside {
		in := &inside[i]
		m.deliverWorker(first+int32(in.Worker), at, unwrapStamp(at, in.GenNS))
	}
	if s.opt.Observer == nil {
		return
	}
	m.obs = olaf.Observation{At: at, Queued: at.Sub(f.appended), Update: *u, Contributors: inside}
	s.opt.Observer.Deliver(int(server), int(first)+int(u.Worker), &m.obs)
}

func (m *meter) deliverWorker(i int32, at, gen olaf.Time) {
	w := &m.workers[i]
	if int64(at) >= m.from {
		w.received++
	}
	if w.last == m.deliveries {
		w.age.Renew(gen)
		return
	}
	w.last = m.deliveries
	w.age.Deliver(m.window, at, gen)
}
