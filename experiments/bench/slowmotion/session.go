// Package slowmotion lets users watch one run of a plan in slow motion. A Session is a run that can be advanced,
// stepped and rewound. A Player paces a Session by a wall clock, and Snapshots contain the state to be displayed.
package slowmotion

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/aggregator"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/fpga/twin"
	"github.com/olafctl/olaf/pktgen"
	"github.com/olafctl/olaf/results"
)

// Options selects the device, and which run of a plan is watched on it.
type Options struct {
	Device string // address for testbed.OpenTestbed
	Access testbed.Access
	Rate   int // index of the specification's output rate, from 0
	Index  int // index of the seed, from 0
}

// Session is one run of a plan that is watched while it happens. It has the queue under test and, if Spec.Versus is
// set, a second queue with the same input and time axis. The device is programmed exactly as for an ordinary run, but
// device time passes only in Advance and Step. A Session is not safe for concurrent use.
type Session struct {
	plan    *bench.Plan
	options Options
	bed     *testbed.Testbed
	cards   []*card
	now     olaf.Time
	end     olaf.Time
	done    bool
	sampled bool
	watched olaf.ClusterID
	total   int64     // frames in the whole run
	left    olaf.Time // when the last update was first seen to have left
}

// card is one card of the testbed, with the record of its queue.
type card struct {
	*bench.Rig
	index        int // in the plan's configurations
	config       *bench.Config
	rec          *record
	updates      []int64 // per worker; nil if the queue cannot be observed
	observations []olaf.Observation
	collector    *results.Collector // for a device that logs its arrivals; else nil
	pair         *results.Row       // set at the end: the run compared with the twin's
}

// OpenSession opens a testbed for a plan, programs the tables and generators, and arms everything at time 0.
func OpenSession(ctx context.Context, plan *bench.Plan, o Options) (*Session, error) {
	if o.Rate < 0 || o.Rate >= len(plan.Spec.OutRates) || o.Index < 0 || o.Index >= len(plan.Seeds) {
		return nil, fmt.Errorf("%w: no run %d at output rate number %d", bench.ErrSpec, o.Index, o.Rate)
	}
	l := &Session{plan: plan, options: o}
	for index := range plan.Configs {
		if c := &plan.Configs[index]; c.OutRate == plan.Spec.OutRates[o.Rate] {
			l.cards = append(l.cards, &card{index: index, config: c, rec: &record{answered: plan.Answers(c)}})
		}
	}
	opening := plan.Spec.Opening(o.Access)
	opening.Cards = len(l.cards)
	opening.Observe = func(i int) twin.Observer { return l.cards[i].rec }
	bed, err := testbed.OpenTestbed(ctx, o.Device, opening)
	if err != nil {
		return nil, err
	}
	l.bed = bed
	l.cards = l.cards[:min(len(l.cards), len(bed.Cards))]
	l.sampled = !bed.Can(testbed.VirtualTime | testbed.Observable)
	if err := l.programDevices(ctx); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// programDevices writes the tables and the traffic, and then rewinds the run.
func (l *Session) programDevices(ctx context.Context) (err error) {
	if _, err := l.plan.Program(ctx, l.bed); err != nil {
		return err
	}
	for i, c := range l.cards {
		if c.Rig, err = l.plan.Rig(l.bed.Cards[i]); err != nil {
			return err
		}
		updates, err := c.Load(ctx, l.options.Index)
		if err != nil {
			return err
		}
		l.total = 0
		for _, n := range updates {
			l.total += n * int64(l.plan.Spec.Workload.Segments())
		}
		if !l.sampled {
			c.updates = updates
		}
		if l.sampled && c.HasLog() {
			c.collector = c.NewCollector(c.index)
		}
	}
	return l.Rewind(ctx)
}

// Rewind restarts the run with empty queues and cleared counters at time 0.
func (l *Session) Rewind(ctx context.Context) error {
	w := &l.plan.Spec.Workload
	length := olaf.Duration(w.Seconds() * float64(olaf.Second))
	l.now, l.end, l.done, l.left = 0, olaf.Time(length), false, 0
	// The series starts fine, for slow motion, and doubles its width as the run grows.
	width := max(length/(16*seriesPoints)/olaf.Cycle, 1) * olaf.Cycle
	burst := olaf.Duration(float64(w.Size.Bits()) * float64(w.BurstPackets) / float64(w.MeanRate) * float64(olaf.Second))
	for _, c := range l.cards {
		if err := c.Generator.Abort(); err != nil {
			return err
		}
		if err := c.Prepare(ctx, c.index); err != nil {
			return err
		}
		c.rec.reset(w.Placement, c.updates, w.Segments(), l.plan.Spec.Slots, width, max(2*burst, olaf.Microsecond))
		if err := c.startGenerator(); err != nil {
			return err
		}
	}
	return nil
}

// startGenerator starts the generator. The run's clock starts with it.
func (c *card) startGenerator() error {
	if err := c.Generator.ArmAndStart(); err != nil {
		return err
	}
	cycle, err := regmap.Read64(c.Device, regmap.GeneratorStartCycle)
	c.rec.zero = olaf.Time(cycle) * olaf.Time(olaf.Cycle)
	return err
}

// IsDone reports whether all updates were sent and have left the queues.
func (l *Session) IsDone() bool { return l.done }

// ErrOwnTime reports that the device's time cannot be paused, scaled or stepped.
var ErrOwnTime = errors.New("a card runs in real time; only a twin can be paused, stepped and slowed down")

// IsSampled reports whether the device runs in real time, so that Sample can only poll it.
func (l *Session) IsSampled() bool { return l.sampled }

// sampleStep is the minimum device time between polls. Without it, the time of a twin behind an agent would not
// advance.
const sampleStep = 10 * olaf.Microsecond

// Sample polls the device for captured deliveries and for its clock.
func (l *Session) Sample(ctx context.Context) error {
	if l.done {
		return nil
	}
	for _, c := range l.cards {
		if err := c.Device.Sleep(ctx, sampleStep); err != nil {
			return err
		}
		cycle, err := regmap.Read64(c.Device, regmap.CommonCycles)
		if err != nil {
			return err
		}
		l.now = max(l.now, olaf.Time(cycle)*olaf.Time(olaf.Cycle)-c.rec.zero)
		c.drainCapture(true)
	}
	if err := l.checkOver(); err != nil || !l.done {
		return err
	}
	return l.compareWithTwin(ctx)
}

// compareWithTwin compares a finished run with the twin's run, if the device logs its arrivals.
func (l *Session) compareWithTwin(ctx context.Context) (err error) {
	for _, c := range l.cards {
		if c.collector == nil || c.pair != nil {
			continue
		}
		if c.pair, err = c.PairLast(ctx, bench.RunID{Config: c.index, Index: l.options.Index}, c.collector,
			l.bed.AgeError()); err != nil {
			return err
		}
	}
	return nil
}

// Advance advances every card by d of device time, in whole cycles. The error matches ErrOwnTime if the device's time
// cannot be controlled.
func (l *Session) Advance(ctx context.Context, d olaf.Duration) error {
	if l.sampled {
		return ErrOwnTime
	}
	if l.done || d <= 0 {
		return nil
	}
	d = (d + olaf.Cycle - 1) / olaf.Cycle * olaf.Cycle
	for _, c := range l.cards {
		if err := c.Device.Sleep(ctx, d); err != nil {
			return err
		}
		c.drainCapture(false)
	}
	l.now = l.now.Add(d)
	return l.checkOver()
}

// drainCapture empties the capture. If the queue cannot be observed directly, it records the captured deliveries.
func (c *card) drainCapture(record bool) {
	c.observations = c.Tap.Drain(c.observations[:0])
	if !record {
		return
	}
	for i := range c.observations {
		c.rec.Observe(&c.observations[i])
		if c.collector != nil {
			c.collector.Observe(&c.observations[i])
		}
	}
}

// Stop ends the traffic. The queues still drain.
func (l *Session) Stop() error {
	return errors.Join(olaf.Map(l.cards, func(c *card) error { return c.Generator.Stop() })...)
}

// checkOver determines whether the run is over and sets done if it is.
func (l *Session) checkOver() error {
	for _, c := range l.cards {
		c.rec.advanceTime(l.now)
	}
	for _, c := range l.cards {
		state, err := c.Generator.State()
		if err != nil {
			return err
		}
		switch state {
		case pktgen.Running, pktgen.Stopping:
			return nil
		case pktgen.Done:
		default:
			return fmt.Errorf("%w: the generator is in state %v during a run", bench.ErrRun, state)
		}
		status, err := c.Device.Read32(regmap.QueueStatus)
		if err != nil || status&regmap.QueueStatusEmpty == 0 {
			return err
		}
		if waiting, err := l.countWaiting(c); err != nil || waiting > 0 {
			return err
		}
	}
	if l.sampled {
		if late, err := l.hasLateFrames(); err != nil || late {
			return err
		}
	}
	l.done, l.end = true, l.now
	for _, c := range l.cards {
		c.rec.over = true
	}
	return nil
}

// countWaiting returns the number of sums that are on their way to the workers.
func (l *Session) countWaiting(c *card) (int, error) {
	if !c.rec.answered {
		return 0, nil
	}
	n, err := c.Device.Read32(regmap.AggregatorDownlinkWaiting)
	return int(n), err
}

// hasLateFrames reports whether frames that have left a queue may still arrive at its capture.
func (l *Session) hasLateFrames() (bool, error) {
	l.left = cmp.Or(l.left, l.now)
	if l.now.Sub(l.left) > bench.SettleTime {
		return false, nil
	}
	for _, c := range l.cards {
		counters, err := c.Rig.Snapshot()
		if err != nil || c.rec.observed < int64(counters.Queue.DeliveredFrames) {
			return true, err
		}
	}
	return false, nil
}

// stepLimit is the longest device time that Step searches for the next event.
const stepLimit = 1 << 22

// Step advances cycle by cycle to the next event in either queue.
func (l *Session) Step(ctx context.Context) error {
	before := l.countEvents()
	for range stepLimit {
		if err := l.Advance(ctx, olaf.Cycle); err != nil || l.done || l.countEvents() != before {
			return err
		}
	}
	return nil
}

func (l *Session) countEvents() int64 {
	n := int64(0)
	for _, c := range l.cards {
		n += c.rec.events.next
	}
	return n
}

// Seek goes to an instant of the run. To go back, it repeats the run from its start; on the twin this produces the same
// events.
func (l *Session) Seek(ctx context.Context, at olaf.Time) error {
	at = max(at, 0)
	if l.sampled {
		return ErrOwnTime
	}
	if at < l.now {
		if err := l.Rewind(ctx); err != nil {
			return err
		}
	}
	for l.now < at && !l.done {
		if err := l.Advance(ctx, min(at.Sub(l.now), bench.WatchStep)); err != nil {
			return err
		}
	}
	return nil
}

// StepBack goes back to the time of the previous event.
func (l *Session) StepBack(ctx context.Context) error {
	last := olaf.Time(0)
	for _, c := range l.cards {
		last = max(last, c.rec.eventBefore(l.now))
	}
	return l.Seek(ctx, last)
}

// Snapshot returns a copy of the displayed state. Speed and State are not set; the player sets them.
func (l *Session) Snapshot() (*Snapshot, error) {
	s := &Snapshot{
		Plan: l.plan, Device: l.bed.Cards[0].Device.Identity(), Rate: l.options.Rate,
		Seed:    l.plan.Seeds[l.options.Index],
		Sampled: l.sampled, Logs: l.cards[0].collector != nil, Hosts: l.bed.HasHosts(), Watched: l.watched, Now: l.now, End: max(l.end, l.now),
		Total: l.total,
	}
	if l.done {
		s.State = Done
	}
	for _, c := range l.cards {
		counters, err := c.Rig.Snapshot()
		if err != nil {
			return nil, err
		}
		q := QueueSnapshot{Name: c.config.Queue, OutRate: c.config.OutRate, Slots: l.plan.Spec.Slots,
			Answers: c.rec.answered}
		if q.OnTheWay, err = l.countWaiting(c); err != nil {
			return nil, err
		}
		rate := c.config.OutRate
		if c.rec.answered { // OutRate is the rate of the links behind the queue
			rate = engine.Line.Rate()
		}
		c.rec.copyTo(&q, func(size olaf.Size) olaf.Duration { return rate.TimeToSend(size + l.plan.Spec.Overhead) })
		q.Teeth = c.rec.copyTeeth(l.watched)
		q.Counters = c.Account(&counters, c.rec.observed)
		if l.done {
			if err := q.Counters.Check(); err != nil {
				q.Invalid = err.Error()
			}
		}
		if l.sampled {
			q.Occupancy = int(counters.Queue.QueuedFrames)
			seen, err := c.Capture()
			if err != nil {
				return nil, err
			}
			q.hideUncertain(seen, l.done)
		}
		q.Pair = c.pair
		s.Sent = max(s.Sent, q.Counters.SumOffered())
		s.Queues = append(s.Queues, q)
	}
	return s, nil
}

// Watch selects the cluster whose deliveries snapshots contain.
func (l *Session) Watch(cluster olaf.ClusterID) { l.watched = cluster }

// Life returns the history of an update in the queue with the given index. It returns false if the update is unknown.
func (l *Session) Life(queue int, update int64) (Life, bool) {
	if queue < 0 || queue >= len(l.cards) {
		return Life{}, false
	}
	life, ok := l.cards[queue].rec.lifeOf(update)
	life.Queue = l.cards[queue].config.Queue
	return life, ok
}

// hostPatience is the longest time that an inspection waits for the clocks of hosts. The session is locked meanwhile.
const hostPatience = time.Second

// Inspect reads the session's tables and registers and the state of its devices.
func (l *Session) Inspect(ctx context.Context) (*Inspection, error) {
	session := l.bed.Tables
	in := &Inspection{
		Role: session.State().String(), ElectionID: session.ElectionID().String(), Target: session.Target(),
		RoleErr: session.Err(),
	}
	in.Tables, in.TablesError = session.Read(ctx)
	var err error
	if in.Registers, err = readRegisters(l.cards[0].Device); err != nil {
		return nil, err
	}
	for _, c := range l.cards {
		state, err := c.readState()
		if err != nil {
			return nil, err
		}
		state.Virtual = l.bed.Can(testbed.VirtualTime)
		in.Cards = append(in.Cards, state)
	}
	ctx, stop := context.WithTimeout(ctx, hostPatience)
	defer stop()
	in.Hosts = l.bed.DescribeHosts(ctx)
	return in, nil
}

func (c *card) readState() (CardState, error) {
	limits, err := c.Generator.Limits()
	if err != nil {
		return CardState{}, err
	}
	state, err := c.Generator.State()
	if err != nil {
		return CardState{}, err
	}
	slots, err := c.Device.Read32(regmap.QueueBuiltSlots)
	if err != nil {
		return CardState{}, err
	}
	clusters, err := c.Device.Read32(regmap.QueueBuiltClusters)
	if err != nil {
		return CardState{}, err
	}
	var table *aggregator.Table
	if d, ok := c.Device.(interface{ Table() *aggregator.Table }); ok {
		table = d.Table()
	}
	counters, err := c.Rig.Snapshot()
	return CardState{
		Queue: c.config.Queue, Device: c.Device.Identity(), Table: table, Generator: state.String(),
		Observed:    c.rec.observed,
		CaptureLost: int64(counters.Queue.DeliveredFrames) - c.rec.observed, Late: counters.Generator.LatePackets,
		Slots: slots, Clusters: clusters, Flows: limits.Flows, Descriptors: limits.Descriptors,
	}, err
}

// readRegisters reads every register that has no side effects when it is read.
func readRegisters(d fpga.Registers) ([]RegisterValue, error) {
	capabilities, err := d.Read32(regmap.CommonCapabilities)
	if err != nil {
		return nil, err
	}
	var out []RegisterValue
	blocks := regmap.BuiltBlocks(capabilities)
	for i := range blocks {
		for j := range blocks[i].Registers {
			ref := regmap.Ref{Block: &blocks[i], Register: &blocks[i].Registers[j]}
			if ref.Register.Access == regmap.Command || movesOn(ref.Name()) {
				continue
			}
			v, err := readRegister(d, ref)
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", ref.Name(), err)
			}
			out = append(out, v)
		}
	}
	return out, nil
}

// movesOn reports whether reading the named register changes another register.
func movesOn(name string) bool {
	return strings.HasSuffix(name, ".mem_data") || strings.HasSuffix(name, ".member_data")
}

func readRegister(d fpga.Registers, ref regmap.Ref) (RegisterValue, error) {
	r := ref.Register
	v := RegisterValue{Name: ref.Name(), Address: ref.Address(), Wide: r.Wide, Doc: r.Doc}
	var err error
	if r.Wide {
		v.Value, err = regmap.Read64(d, v.Address)
	} else {
		var word uint32
		word, err = d.Read32(v.Address)
		v.Value = uint64(word)
	}
	if len(r.Fields) == 0 || r.Wide {
		v.Decoded = strings.TrimSpace(new(big.Int).SetUint64(v.Value).String() + " " + r.Unit)
		return v, err
	}
	v.Decoded = strings.Join(olaf.Map(r.Decode(uint32(v.Value)), func(f regmap.FieldValue) string {
		return f.Field.Name + "=" + f.Text
	}), " ")
	return v, err
}

// Close stops the generators, empties the queues and releases the testbed.
func (l *Session) Close() error {
	var errs []error
	for _, c := range l.cards {
		if c.Rig != nil {
			errs = append(errs, c.Generator.Abort(), fpga.StopQueue(context.Background(), c.Device), c.Rig.Close())
		}
	}
	return errors.Join(append(errs, l.bed.Close())...)
}

var _ twin.Observer = (*record)(nil)

// hideUncertain removes the ages from the snapshot of a captured run, because clock errors are unknown before the run
// ends. When the run is over, it adds the losses to the snapshot.
func (q *QueueSnapshot) hideUncertain(c *fpga.Capture, over bool) {
	switch {
	case c == nil:
		return
	case over && len(c.Faults) > 0:
		q.Invalid = c.Faults[0]
	case over && q.Counters.Of("capture_lost") > 0:
		q.Invalid = bench.PlaceLoss(q.Counters, nil, c)
	}
	q.clearAges("no ages here: the clocks are compared after a run; 'olafctl bench' prints them")
}

// openRerun opens a session for another plan on the same device. A polled device has only one card, so the old session
// is closed first. Otherwise the old session stays open until the new one is open.
func (l *Session) openRerun(ctx context.Context, c Rerun) (watchable, error) {
	plan, err := bench.NewPlan(c.Spec)
	if err != nil {
		return nil, err
	}
	o := l.options
	o.Rate, o.Index = c.Rate, c.Index
	if l.sampled { // a card supports only one session
		if err := l.Close(); err != nil {
			return nil, err
		}
	}
	session, err := OpenSession(ctx, plan, o)
	if err != nil {
		return nil, err
	}
	if l.sampled {
		return session, nil
	}
	return session, l.Close()
}
