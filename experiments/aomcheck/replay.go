package aomcheck

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/tc"
	"github.com/olafctl/olaf/fpga/engine"
)

// Fate is the outcome of one update on a path, such as delivered or dropped.
type Fate uint8

const (
	Unsent Fate = iota // not sent, because of the transmission control
	Queued             // started a frame
	Merged             // joined the waiting frame of its cluster, or was overtaken (paper)
	Lost               // found the queue full
)

var fateNames = [...]string{"unsent", "queued", "merged", "lost"}

func (f Fate) String() string { return fateNames[f] }

// Delivery is one departed frame. Its times are in steps of the path.
type Delivery struct {
	At, Generated int64 // departure, and generation time of the newest update inside
	Update        int   // index of that newest update
	Peak          int64 // AoM just before; 0 for the first delivery, which has no peak
}

// Run records how the updates of a path passed through the queue.
type Run struct {
	Path       *Path
	Deliveries [][]Delivery // by cluster
	Fates      [][]Fate     // by cluster and update
}

// arrivalEvent is the arrival of one update at the engine.
type arrivalEvent struct {
	at   int64
	u, k int
}

// events returns a path's arrivals, sorted by time and then by cluster.
func (path *Path) events() []arrivalEvent {
	var out []arrivalEvent
	for u, times := range path.Arrivals {
		for k, at := range times {
			out = append(out, arrivalEvent{at, u, k})
		}
	}
	slices.SortFunc(out, func(a, b arrivalEvent) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.u, b.u), cmp.Compare(a.k, b.k))
	})
	return out
}

// Replay runs a path through fpga/engine's olaf discipline, with an output that takes p/C per frame. Times are in steps
// of the path, because cycles of 4 ns would round a counter-example that depends on a strict inequality. Open decisions
// are made along the way, by the seeded draws or, if they are free, by rng. Decisions that the control forbids are an
// error.
func (p *Problem) Replay(path *Path, rng *rand.Rand) (*Run, error) {
	run := p.newRun(path)
	decider := newDecider(p, path, rng)
	port, err := engine.NewPort("olaf", engine.Config{Slots: p.Slots, Clusters: len(p.Clusters)}, engine.Output{}, &listener{run, decider})
	if err != nil {
		return nil, err
	}
	port.SetClock(engine.StepClock(int64(p.Service/p.tick()) * path.PerTick))
	for _, ev := range path.events() {
		port.Advance(olaf.Time(ev.at)) // a departure and its ACK precede an arrival of the same instant
		send, err := decider.decide(ev)
		if err != nil {
			return nil, err
		}
		if send {
			run.Fates[ev.u][ev.k] = offer(port, ev)
		}
	}
	port.Drain()
	return run, nil
}

// newRun returns a run in which no update has arrived yet.
func (p *Problem) newRun(path *Path) *Run {
	return &Run{Path: path, Deliveries: make([][]Delivery, len(p.Clusters)),
		Fates: olaf.Map(path.Arrivals, func(times []int64) []Fate { return make([]Fate, len(times)) })}
}

func offer(port *engine.Port, ev arrivalEvent) Fate {
	update := olaf.Update{Cluster: olaf.ClusterID(ev.u), Seq: uint32(ev.k), GenNS: uint64(ev.k), Count: 1}
	o := port.Offer(olaf.Time(ev.at), &update, nil)
	switch {
	case o.Merged:
		return Merged
	case o.Slot == engine.NoSlot:
		return Lost
	}
	return Queued
}

// listener is the sink of the replayed queue's port. It passes departures to the run and to the decider.
type listener struct {
	run     *Run
	decider *decider
}

// Deliver records a departure in the run, and as an ACK for the frame's cluster.
func (l *listener) Deliver(d *engine.Departure) {
	u := &d.Frame.Update
	l.run.deliver(int(u.Cluster), int(u.Seq), int64(d.At))
	l.decider.acks[u.Cluster] = append(l.decider.acks[u.Cluster], int64(d.At)+l.decider.delay)
}

func (r *Run) deliver(u, k int, at int64) {
	d := Delivery{At: at, Generated: r.Path.Arrivals[u][k], Update: k}
	if n := len(r.Deliveries[u]); n > 0 {
		d.Peak = at - r.Deliveries[u][n-1].Generated
	}
	r.Deliveries[u] = append(r.Deliveries[u], d)
}

// decider makes the send decisions for all clusters while a path is replayed.
type decider struct {
	p     *Problem
	path  *Path
	rng   *rand.Rand
	delay int64
	acks  [][]int64 // by cluster: when ACKs reach the workers
	draws [][]int
}

func newDecider(p *Problem, path *Path, rng *rand.Rand) *decider {
	d := &decider{p: p, path: path, rng: rng, delay: int64(p.Control.AckDelay/p.tick()) * path.PerTick, acks: make([][]int64, len(p.Clusters))}
	for u := range p.Clusters {
		d.draws = append(d.draws, p.Draws(u))
	}
	return d
}

func (d *decider) decide(ev arrivalEvent) (bool, error) {
	p := d.p
	switch {
	case p.Control.Sends == SendsGiven:
		return p.Clusters[ev.u].Sends[ev.k], nil
	case !p.Throttles():
		return true, nil
	}
	age, heard := d.age(ev)
	switch {
	case d.draws[ev.u] != nil:
		return !heard || age >= d.steps(p.Control.sendsAfter(p.Slots, d.draws[ev.u][ev.k])), nil
	case d.path.Sent != nil:
		send := d.path.Sent[ev.u][ev.k]
		if !send && (!heard || age >= d.steps(p.Control.sendsAfter(p.Slots, certain))) {
			return false, fmt.Errorf("cluster %s keeps update %d back although Ps is 1", p.Clusters[ev.u].Name, ev.k)
		}
		return send, nil
	}
	return !heard || d.draw(age), nil
}

// draw decides randomly whether to send an update, with the probability that the workers' rule assigns to an ACK of the
// given age.
func (d *decider) draw(age int64) bool {
	cfg := tc.Config{Threshold: d.p.Control.DeltaT, Slope: d.p.Control.Slope}
	status := tc.Status{Active: uint32(d.p.Control.Active), Slots: uint32(d.p.Slots)}
	since := olaf.Duration(float64(age) / float64(d.path.PerTick) * float64(d.p.tick()))
	return d.rng.Float64() < cfg.SendProbability(status, since)
}

// steps converts a span to steps of the path. The result saturates, because a flat slope leads to ages that no path
// reaches.
func (d *decider) steps(span olaf.Duration) int64 {
	return min(int64(span/d.p.tick()), (1<<60)/d.path.PerTick) * d.path.PerTick
}

// age returns the age of the newest ACK at the time of an arrival. It returns false if there is no ACK yet.
func (d *decider) age(ev arrivalEvent) (int64, bool) {
	acks := d.acks[ev.u]
	for i := len(acks) - 1; i >= 0; i-- {
		if acks[i] <= ev.at {
			return ev.at - acks[i], true
		}
	}
	return 0, false
}
