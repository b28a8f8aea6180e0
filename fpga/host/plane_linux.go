package host

import (
	"errors"
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/dataplane"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/realtime"
)

// NewBackend returns a backend whose planes run the engine in this process. built lists the switch programs available
// to closed-loop hosts.
func NewBackend(built ...program.Description) dataplane.Backend {
	return dataplane.Backend{
		Kind: "host", Address: "host:", Build: "host-1", Disciplines: engine.DisciplineNames(), Forwards: true, Programs: built,
		Load: func(discipline string, b dataplane.Build) (dataplane.Plane, error) { return loadPlane(discipline, b) },
	}
}

// logged is the number of decisions that the log can store between two reads.
const logged = 1 << 18

// plane is a switch plane with one queue. Its lock is acquired separately for each decision.
type plane struct {
	name  string
	build dataplane.Build

	mu         realtime.Lock
	settings   dataplane.Settings
	discipline engine.Discipline
	running    bool
	senders    map[[4]byte]dataplane.Sender
	headers    [][olaf.HeaderBytes]byte // headers of the newest contributors, by slot
	leaving    engine.Slot
	number     uint64
	log        []dataplane.Decision
	counts     counts
	clusters   []dataplane.ClusterCounts
	lanes      []int32

	activity *engine.Activity // activity of the senders; if nil, ACKs count the clusters inside
	weights  []uint32         // weight of each cluster in activity

	ways atomic.Pointer[forwarding] // nil if packets are not forwarded
}

var _ dataplane.Plane = (*plane)(nil)

func loadPlane(discipline string, b dataplane.Build) (*plane, error) {
	p := &plane{name: discipline, build: b, clusters: make([]dataplane.ClusterCounts, b.Clusters),
		lanes: make([]int32, b.FrameLanes)}
	return p, p.Configure(dataplane.Settings{Depth: 1})
}

// readClock returns the kernel's monotonic clock in nanoseconds.
func readClock() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // ClockGettime cannot fail
	return t.Nano()
}

// toEngineTime converts a time in nanoseconds to the engine's picoseconds.
func toEngineTime(ns int64) olaf.Time { return olaf.Time(ns) * olaf.Time(olaf.Nanosecond) }

// SetSenders replaces the table that maps senders' addresses to workers.
func (p *plane) SetSenders(list []dataplane.Sender) error {
	if len(list) > p.build.Senders {
		return fmt.Errorf("host: %d senders; there is room for %d", len(list), p.build.Senders)
	}
	table := make(map[[4]byte]dataplane.Sender, len(list))
	for _, s := range list {
		if !s.Address.Is4() {
			return fmt.Errorf("host: %v is no IPv4 address of a sender", s.Address)
		}
		table[s.Address.As4()] = s
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.senders = table
	return nil
}

// Configure replaces the queue by an empty queue with the given settings.
func (p *plane) Configure(s dataplane.Settings) error {
	d, err := engine.New(p.name, engine.Config{
		Slots: s.Depth, Clusters: p.build.Clusters, LaneMemory: p.build.Lanes, FreeSlotOnStart: s.FreeSlotOnStart,
		RewardFilter: s.RewardFilter, RewardThreshold: s.RewardThreshold,
	})
	if err != nil {
		return fmt.Errorf("host: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settings, p.discipline, p.leaving = s, d, engine.NoSlot
	p.headers = make([][olaf.HeaderBytes]byte, s.Depth+1) // a frame on the wire may have no slot
	p.counts.stats = engine.Stats{}
	return nil
}

// Reset empties the queue, clears the counts and restarts the numbering of decisions.
func (p *plane) Reset() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.discipline.Reset()
	p.leaving, p.number, p.log, p.counts = engine.NoSlot, 0, p.log[:0], counts{}
	clear(p.clusters)
	return nil
}

// Run starts the admission of updates to the queue, or stops it if on is false.
func (p *plane) Run(on bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = on
	return nil
}

// arrive offers a received frame to the queue. It returns true if the frame bypasses the queue and must be forwarded.
func (p *plane) arrive(b []byte) (bypassed bool) {
	f, err := olaf.ParseFrame(b)
	at := readClock()
	p.mu.Lock()
	defer p.mu.Unlock()
	u, fate := p.judge(f, err)
	if fate != nil {
		*fate++
		return fate == &p.counts.bypassed
	}
	if p.activity != nil && int(u.Cluster) < len(p.weights) {
		p.activity.Record(int64(toEngineTime(at)), u.Cluster, p.weights[u.Cluster])
	}
	lanes := p.lanes[:f.Lanes(p.lanes)]
	p.counts.settle(at, p.discipline)
	o := p.discipline.Offer(toEngineTime(at), &u, lanes, nil)
	if o.Slot != engine.NoSlot {
		copy(p.headers[o.Slot][:], b)
	}
	p.clusters[u.Cluster].Class[o.Class]++
	p.counts.bytes += uint64(u.Size())
	p.counts.peak = max(p.counts.peak, p.discipline.Occupancy())
	p.logDecision(dataplane.Decision{AtNS: uint64(at), Kind: dataplane.Arrival, Class: o.Class, Slot: o.Slot, Update: u})
	return false
}

// judge returns the update in a frame that is admitted to the queue. For other frames, it returns the counter to
// increment.
func (p *plane) judge(f olaf.Frame, fault error) (u olaf.Update, fate *uint64) {
	c := &p.counts
	switch {
	case errors.Is(fault, olaf.ErrNotOLAF):
		c.foreign++
		return u, &c.bypassed
	case fault != nil:
		return u, &c.malformed
	case f.Kind() == olaf.KindAck:
		return u, &c.bypassed
	case f.LaneCount() > p.build.FrameLanes:
		return u, &c.malformed
	}
	s, known := p.senders[f.Addresses().SrcIP]
	switch {
	case !known:
		return u, &c.bypassed
	case int(s.Cluster) >= p.build.Clusters:
		c.beyond++
		return u, &c.bypassed
	case !p.running:
		return u, &c.lost
	}
	u = f.Update()
	if u.Cluster != s.Cluster || u.Worker != s.Worker {
		c.misidentified++
	}
	u.Cluster, u.Worker = s.Cluster, s.Worker
	return u, nil
}

// logDecision assigns the next number to a decision and appends it to the log.
func (p *plane) logDecision(d dataplane.Decision) {
	d.Number = p.number
	p.number++
	if len(p.log) == logged {
		p.counts.unlogged++
		return
	}
	p.log = append(p.log, d)
}

// Decisions calls visit for each decision since its previous call.
func (p *plane) Decisions(visit func(*dataplane.Decision)) error {
	p.mu.Lock()
	log := p.log
	p.log = nil
	p.mu.Unlock()
	for i := range log {
		visit(&log[i])
	}
	return nil
}

// countActive lets ACKs count the clusters that sent an update in this window or the previous one, each with its weight; a
// window of 0 lets them count the clusters inside.
func (p *plane) countActive(window olaf.Duration, weights []uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.activity, p.weights = nil, weights; window > 0 {
		a := engine.NewActivity(int64(window), len(weights))
		p.activity = &a
	}
}

// Cluster returns the counts of one cluster since they were last cleared.
func (p *plane) Cluster(c olaf.ClusterID) (dataplane.ClusterCounts, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.clusters[c], nil
}

// Close does nothing, because the plane uses no resources that must be released.
func (p *plane) Close() error { return nil }
