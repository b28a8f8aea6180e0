package slowmotion

import (
	"context"
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/pktgen"
	"github.com/olafctl/olaf/results"
)

// Arrival is one update in a capture. If the capture has generation times, they are on the same clock as arrival times.
type Arrival struct {
	At     olaf.Time
	Update olaf.Update
}

// Capture is the input of a replay.
type Capture struct {
	Name     string
	Arrivals []Arrival // in order of time
	// NoAges is the reason why there are no ages; empty if there are. Coarse is the reason why the queue's counts are
	// not valid either; empty if they are.
	NoAges, Coarse string

	Queue  string
	Engine engine.Config
	Output engine.Output
}

// replayed is a capture that is replayed through a queue and can be watched like a session. It has no device and no
// tables.
type replayed struct {
	capture Capture
	plan    *bench.Plan
	port    *engine.Port
	rec     *record
	place   pktgen.Placement
	next    int
	begin   olaf.Time // shortly before the first arrival
	latest  olaf.Time // time of the latest event
	now     olaf.Time
	end     olaf.Time
	done    bool
	stopped bool
	sending bool // a frame was on the wire at the last call of started
	left    bool // a frame has left since then
	watched olaf.ClusterID
}

// NewReplay returns a player for a capture. The error matches bench.ErrSpec or engine.ErrConfig.
func NewReplay(c Capture, speed Speed, paused bool, pace Pace) (*Player, error) {
	if len(c.Arrivals) == 0 {
		return nil, fmt.Errorf("%w: %s has no update to watch", bench.ErrSpec, c.Name)
	}
	c.Engine.Clusters = engine.MaxClusters
	l := &replayed{capture: c, rec: new(record)}
	l.renumberWorkers()
	l.plan = l.describePlan()
	if err := l.rewindReplay(); err != nil {
		return nil, err
	}
	return newPlaying(l, speed, paused, pace), nil
}

// renumberWorkers makes worker numbers unique across clusters. It also shifts the clock, so that no update is generated
// before time 0.
func (l *replayed) renumberWorkers() {
	cluster := map[olaf.WorkerID]olaf.ClusterID{}
	alike, early := false, olaf.Time(0)
	for i := range l.capture.Arrivals {
		a := &l.capture.Arrivals[i]
		first, known := cluster[a.Update.Worker]
		alike = alike || known && first != a.Update.Cluster
		cluster[a.Update.Worker] = a.Update.Cluster
		early = min(early, a.At.Add(-arrivalAge(a)))
	}
	const cycle = olaf.Time(olaf.Cycle)
	early = (early - cycle + 1) / cycle * cycle // whole cycles, so that the queue's cycles do not shift
	numbers := map[uint32]olaf.WorkerID{}
	arrivals := make([]Arrival, len(l.capture.Arrivals))
	for i, a := range l.capture.Arrivals {
		generated := a.At.Add(-arrivalAge(&a)) - early
		a.At -= early
		a.Update.GenNS = uint64(generated.NS())
		if alike {
			key := uint32(a.Update.Cluster)<<16 | uint32(a.Update.Worker)
			if _, known := numbers[key]; !known {
				numbers[key] = olaf.WorkerID(len(numbers))
			}
			a.Update.Worker = numbers[key]
		}
		l.place.Workers = max(l.place.Workers, int(a.Update.Worker)+1)
		l.place.Clusters = max(l.place.Clusters, int(a.Update.Cluster)+1)
		arrivals[i] = a
	}
	l.capture.Arrivals = arrivals
}

// arrivalAge returns the age of an update at its arrival. It allows for generation times that wrap after 48 bits.
func arrivalAge(a *Arrival) olaf.Duration {
	const shift = 64 - 48
	return olaf.Duration(int64((uint64(a.At.NS())-a.Update.GenNS)<<shift)>>shift) * olaf.Nanosecond
}

// describePlan returns a plan that describes the replay. It is used for display only.
func (l *replayed) describePlan() *bench.Plan {
	c := &l.capture
	rate := c.Output.Rate.Rate()
	s := bench.Spec{
		Experiment: "replay", Queue: c.Queue, OutRates: []olaf.Rate{rate}, Slots: c.Engine.Slots,
		Overhead: olaf.Size(c.Output.OverheadBytes), Runs: 1,
		Workload: pktgen.Burst{Placement: l.place, Size: c.Arrivals[0].Update.Size(), LineRate: engine.Line.Rate(),
			BurstPackets: 1},
	}
	bits, last := int64(0), c.Arrivals[len(c.Arrivals)-1].At
	for i := range c.Arrivals {
		bits += c.Arrivals[i].Update.Size().Bits()
	}
	if span := last.Sub(c.Arrivals[0].At).Seconds(); span > 0 {
		s.Workload.MeanRate = olaf.Rate(float64(bits)/span) / olaf.Mbps * olaf.Mbps // rounded for display
	}
	return &bench.Plan{Spec: s, Configs: []bench.Config{{Queue: c.Queue, OutRate: rate,
		DequeueCycles: c.Output.DequeueCycles, MergeCycles: c.Output.MergeCycles}}, Seeds: []uint64{0}}
}

func (l *replayed) rewindReplay() (err error) {
	c := &l.capture
	if l.port, err = engine.NewPort(c.Queue, c.Engine, c.Output, l); err != nil {
		return err
	}
	first, last := c.Arrivals[0].At, c.Arrivals[len(c.Arrivals)-1].At
	l.begin = max(0, first.Add(-last.Sub(first)/100))
	l.next, l.now, l.latest, l.end, l.done, l.stopped, l.sending, l.left = 0, l.begin, l.begin, last, false, false,
		false, false
	width := max(last.Sub(first)/(16*seriesPoints)/olaf.Cycle, 1) * olaf.Cycle
	l.rec.reset(l.place, nil, 1, c.Engine.Slots, width, max(last.Sub(first)/100, olaf.Microsecond))
	for i := range c.Arrivals {
		u := &c.Arrivals[i].Update
		w, k := l.rec.workerOf(u.Worker), l.rec.clusterOf(u.Cluster)
		w.cluster, w.left, k.left = int(u.Cluster), max(w.left, 0)+1, max(k.left, 0)+1
		l.rec.unknown = l.rec.unknown || u.Count > 1
	}
	l.rec.advanceTime(l.begin)
	return nil
}

// Deliver records that a frame has left the queue.
func (l *replayed) Deliver(d *engine.Departure) {
	l.left = true
	l.rec.Departure(d.At, d.Slot, &d.Frame.Update)
}

// recordStart records the frame that began to leave since the last call, if any.
func (l *replayed) recordStart(at olaf.Time) {
	slot, sending := l.port.Sending()
	if sending && (l.left || !l.sending) {
		l.rec.Start(at, slot)
	}
	l.left, l.sending = false, sending
}

// drainTo advances the queue through all departures that are due.
func (l *replayed) drainTo(to olaf.Time) {
	for {
		at, busy := l.port.Next()
		if !busy || at > to {
			return
		}
		l.port.Advance(at)
		l.recordStart(at)
		l.latest = at
	}
}

func (l *replayed) IsSampled() bool              { return false }
func (l *replayed) Sample(context.Context) error { return ErrOwnTime }
func (l *replayed) IsDone() bool                 { return l.done }
func (l *replayed) Watch(c olaf.ClusterID)       { l.watched = c }
func (l *replayed) Close() error                 { return nil }

// Stop ends the arrivals. The queue still drains.
func (l *replayed) Stop() error {
	l.stopped = true
	return nil
}

// Advance advances the replay by d.
func (l *replayed) Advance(_ context.Context, d olaf.Duration) error {
	if l.done || d <= 0 {
		return nil
	}
	to := l.now.Add(d)
	for !l.stopped && l.next < len(l.capture.Arrivals) && l.capture.Arrivals[l.next].At <= to {
		a := &l.capture.Arrivals[l.next]
		l.next++
		l.drainTo(a.At)
		o := l.port.Offer(a.At, &a.Update, nil)
		l.rec.Arrival(a.At, o.Class, o.Slot, &a.Update, nil)
		l.recordStart(a.At)
		l.latest = a.At
	}
	l.drainTo(to)
	if _, busy := l.port.Next(); !busy && (l.stopped || l.next == len(l.capture.Arrivals)) {
		to = max(l.now, l.latest) // the time of the last event
		l.done, l.end, l.rec.over = true, to, true
	}
	l.now = to
	l.rec.advanceTime(to)
	return nil
}

// Step advances to the next event.
func (l *replayed) Step(ctx context.Context) error {
	before := l.rec.events.next
	for !l.done && l.rec.events.next == before {
		to, busy := l.port.Next()
		if !l.stopped && l.next < len(l.capture.Arrivals) && (!busy || l.capture.Arrivals[l.next].At < to) {
			to = l.capture.Arrivals[l.next].At
		}
		if err := l.Advance(ctx, max(to.Sub(l.now), 1)); err != nil {
			return err
		}
	}
	return nil
}

// StepBack goes back to the time of the previous event.
func (l *replayed) StepBack(ctx context.Context) error {
	return l.Seek(ctx, l.rec.eventBefore(l.now))
}

// Seek goes to an instant of the replay. To go back, it starts again from the beginning.
func (l *replayed) Seek(ctx context.Context, at olaf.Time) error {
	if at = max(at, l.begin); at < l.now {
		if err := l.rewindReplay(); err != nil {
			return err
		}
	}
	return l.Advance(ctx, at.Sub(l.now))
}

// Snapshot returns a copy of the displayed state.
func (l *replayed) Snapshot() (*Snapshot, error) {
	c := &l.capture
	s := &Snapshot{Plan: l.plan, Device: fpga.Identity{Address: c.Name, Build: "capture"}, Watched: l.watched,
		Now: l.now, End: max(l.end, l.now), Sent: int64(l.next), Total: int64(len(c.Arrivals))}
	if l.done {
		s.State = Done
	}
	rate := c.Output.Rate.Rate()
	q := QueueSnapshot{Name: c.Queue, OutRate: rate, Slots: c.Engine.Slots, Counters: l.countsSoFar()}
	l.rec.copyTo(&q, func(size olaf.Size) olaf.Duration {
		return rate.TimeToSend(size + olaf.Size(c.Output.OverheadBytes))
	})
	q.Teeth = l.rec.copyTeeth(l.watched)
	if c.NoAges != "" {
		q.clearAges(c.NoAges)
	}
	q.Invalid = c.Coarse
	if l.done {
		if err := q.Counters.Check(); err != nil {
			q.Invalid = err.Error()
		}
	}
	s.Queues = []QueueSnapshot{q}
	return s, nil
}

// countsSoFar returns the queue's counts up to the current time.
func (l *replayed) countsSoFar() olaf.Counts {
	d := l.port.Discipline()
	counts := olaf.NewCounts(system.QueueDeclaration().Ledger)
	stats := d.Stats()
	frames, updates := d.QueuedCount()
	stats.AddTo(counts, frames, updates)
	counts.Add("sent", int64(l.next))
	counts.Add("received", int64(stats.Released))
	return counts
}

// Life returns the history of an update in the queue. It returns false if the update is unknown.
func (l *replayed) Life(queue int, update int64) (Life, bool) {
	if queue != 0 {
		return Life{}, false
	}
	life, ok := l.rec.lifeOf(update)
	life.Queue = l.capture.Queue
	return life, ok
}

// Inspect returns an error, because a capture has no tables or registers.
func (l *replayed) Inspect(context.Context) (*Inspection, error) {
	return &Inspection{Role: "none", Target: l.capture.Name,
		TablesError: fmt.Errorf("%w: a capture has no tables and no registers", bench.ErrSpec)}, nil
}

// openRerun returns an error, because a capture cannot be run with other settings.
func (l *replayed) openRerun(context.Context, Rerun) (watchable, error) {
	return nil, fmt.Errorf("%w: a capture is replayed through one queue; leave, and replay it with other flags",
		bench.ErrSpec)
}

// clearAges removes all ages from the snapshot for a reason.
func (q *QueueSnapshot) clearAges(reason string) {
	q.NoAges = reason
	none := [olaf.Readings]results.Float{results.Missing(), results.Missing()}
	q.MeanAoM, q.AoMNow, q.Teeth = none, none, nil
	for i := range q.Clusters {
		k := &q.Clusters[i]
		k.AoM, k.Mean, k.Peak = none, none, results.Missing()
	}
	for i := range q.Series {
		q.Series[i].AoM, q.Series[i].Ages = [olaf.Readings]float64{}, [olaf.Readings][]float32{}
	}
}
