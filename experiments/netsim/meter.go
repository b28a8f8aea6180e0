package netsim

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
)

// meter collects the counts and ages of a run within the averaging window. Only total covers the whole run.
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

// workerMeter contains the measurements of one worker. It fits in a cache line.
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

// Window returns the time span over which t's ages are averaged, from the end of the warm-up to the end of the run.
// With ns-3's timing every age is 0 at time 0, as in the comparison with ns-3. Otherwise a sawtooth begins with its
// first delivery.
func (t *Topology) Window() results.Window {
	w := results.Window{From: olaf.Time(t.Warmup), To: olaf.Time(t.Warmup + t.Duration), InitialAge: results.UnknownAge}
	if t.Timing == NS3 {
		w.InitialAge = 0
	}
	return w
}

// countSend counts an update that a worker sends; gen is the time of its generation. sumSent later adds the worker's
// count to its cluster, because only the worker is in the CPU cache here.
func (m *meter) countSend(w *worker, gen int64) {
	m.total[countGenerated]++
	m.total[countSent]++
	if gen >= m.from {
		w.sent++
	}
}

// sumSent adds up, for each cluster, the updates that its workers sent and generated.
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

// recordFrame records the delivery of a cluster's frame with count updates. gen is the generation time of the newest
// update in it.
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
	gen := olaf.UnwrapStamp(at, u.GenNS)
	m.recordFrame(c, at, gen, u.Count)
	first := s.clusters[c].firstWorker
	if len(inside) == 0 {
		m.deliverWorker(first+int32(u.Worker), at, gen)
	}
	for i := range inside {
		in := &inside[i]
		m.deliverWorker(first+int32(in.Worker), at, olaf.UnwrapStamp(at, in.GenNS))
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

// ErrAccounting is matched by errors about violated accounting identities.
var ErrAccounting = olaf.ErrAccounting

// checkAccounts verifies that the simulator neither created nor lost updates. Every update that was sent must have been
// delivered, dropped by an engine, replaced or lost on a link, or must still be in the network. It also verifies every
// engine's own accounting identities.
func (s *sim) checkAccounts() error {
	var saturated uint64
	for i := range s.ports {
		d := s.ports[i].output.Discipline()
		if err := engine.AuditDiscipline(d); err != nil {
			return fmt.Errorf("port %s: %w", s.portName(i), err)
		}
		saturated += d.Stats().CountSaturations
	}
	if err := s.auditPrograms(); err != nil {
		return err
	}
	if f := s.countFates(); saturated == 0 && f.Sent != f.sumParts() {
		return fmt.Errorf("%w: sent = delivered + dropped + replaced + lost on links + inside + flying: %d ≠ %d + %d + %d + %d + %d + %d",
			ErrAccounting, f.Sent, f.Delivered, f.Dropped, f.Replaced, f.LostOnLinks, f.Queued, f.Flying)
	}
	return s.meter.total.counts().Balance()
}

// Fate counts all sent updates, including those in the warm-up, by what happened to them. Its parts add up to Sent.
type Fate struct {
	Sent        uint64
	Delivered   uint64 // merged ones included
	Dropped     uint64 // by queues, or by a program that did not add them
	Replaced    uint64 // by a newer update from the same worker
	LostOnLinks uint64
	Queued      uint64 // in slots of ports or of switches that add; excludes the frame on the wire
	Flying      uint64 // on links
}

func (f *Fate) sumParts() uint64 {
	return f.Delivered + f.Dropped + f.Replaced + f.LostOnLinks + f.Queued + f.Flying
}

// countFates counts the sent updates by what happened to them.
func (s *sim) countFates() Fate {
	t := &s.meter.total
	f := Fate{Sent: t[countSent], Delivered: t[countUpdates], Dropped: t[countDroppedUpdates],
		Flying: uint64(s.meter.airborne)}
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
	for i := range s.stations {
		f.Queued += s.stations[i].countHeld()
	}
	for i := range s.cables {
		f.LostOnLinks += s.cables[i].up.Lost
	}
	for i := range s.sources {
		f.Flying += uint64(s.sources[i].sent.len())
	}
	f.Flying += uint64(s.held.len())
	return f
}

// networkCounts returns counts for a network, with the counts after the warm-up taken from window. The other counts are
// 0.
func networkCounts(window metric.Values) olaf.Counts {
	c := olaf.NewCounts(system.NetworkDeclaration().Ledger)
	for _, counter := range metric.OfWindow().Counters {
		if window.Has(counter.Name) {
			c.Add(counter.Name, int64(window.Of(counter.Name)))
		}
	}
	return c
}

// sumTotals returns the counts of all updates in the whole run, including the warm-up, as if the network were a single
// queue. It counts merges and losses at any hop, but not transfers to the next hop. Updates in flight at the end count
// as queued, and frames lost on links as flushed. window contains the counts after the warm-up, which are included.
func (s *sim) sumTotals(window metric.Values) olaf.Counts {
	t, f := &s.meter.total, s.countFates()
	c := networkCounts(window)
	for name, n := range map[string]uint64{
		"sent": t[countSent], "tc_withheld": t[countWithheld], "in": t[countSent], "delivered": t[countDelivered],
		"received": t[countDelivered], "queued": uint64(s.framesInside()),
		"count_delivered": f.Delivered, "count_queued": f.Queued + f.Flying, "count_flushed": f.LostOnLinks,
		// A dropped merged frame also loses the other updates in it.
		"count_discarded": f.Replaced + t[countDroppedUpdates] - t[countDropped],
	} {
		c.Add(name, int64(n))
	}
	appended := int64(t[countSent])
	for i := range s.ports {
		p := &s.ports[i]
		st := p.output.Discipline().Stats()
		for class := range engine.Classes {
			if n := int64(st.Class[class]); class != engine.Appended {
				c.Add(class.String(), n)
				appended -= n
			}
		}
		c.Add("flushed", int64(p.updateFramesLost))
		c.Add("count_saturations", int64(st.CountSaturations))
		c.Add("reward_saturations", int64(st.RewardSaturations))
	}
	for i := range s.stations {
		st := &s.stations[i]
		c.Add(engine.Aggregated.String(), int64(st.merged))
		c.Add(engine.DroppedMismatch.String(), int64(st.refused))
		appended -= int64(st.merged + st.refused)
	}
	for i := range s.cables {
		c.Add("flushed", int64(s.cables[i].up.Lost))
	}
	c.Add(engine.Appended.String(), appended)
	return c
}

// framesInside counts the frames that are in slots or on links.
func (s *sim) framesInside() int64 {
	n := int64(s.meter.airborne)
	for i := range s.ports {
		p := &s.ports[i]
		n += int64(p.output.Discipline().Waiting())
		for k := range p.link.len() {
			if p.link.at(k).update.Count > 0 {
				n++
			}
		}
	}
	for i := range s.stations {
		n += int64(s.stations[i].countHeld())
	}
	for i := range s.sources {
		n += int64(s.sources[i].sent.len())
	}
	n += int64(s.held.len())
	return n
}
