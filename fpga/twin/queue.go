package twin

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/regmap"
)

// queueConfig is what the idle registers of the queue say.
type queueConfig struct {
	discipline uint32 // as in the register
	engine     engine.Config
	output     engine.Output
	front      frontConfig
	down       downConfig
}

// queue is OlafQueue: a port behind control, freeze and inspector.
//
// Freezing stops the queue's own clock, so queue time lags device time by all that it was frozen.
type queue struct {
	*engine.Port
	config   queueConfig
	enabled  bool
	frozen   bool
	frozenAt int64    // device cycle
	lag      int64    // cycles the queue's clock is behind the device's
	freezes  []freeze // those that an update inside may have seen
	// slotFlow is the flow of the newest contributor of each slot, for addresses that an update does not carry.
	slotFlow []*flow
	arriving olaf.Update // the update being offered, kept here so that nothing escapes
	left     bool        // for the observer: a frame left since the last look
	sending  bool        // for the observer: a frame was on the wire at the last look
}

// freeze is one past stop of the queue's clock.
type freeze struct {
	at     int64 // queue cycle
	length int64
}

// time is the queue's clock at a device cycle that has come.
func (q *queue) time(now int64) olaf.Time {
	if q.frozen {
		now = q.frozenAt
	}
	return cycleTime(now - q.lag)
}

// device is the device time of an instant of the queue's clock.
func (q *queue) device(at olaf.Time) olaf.Time {
	lag := q.lag
	for i := len(q.freezes) - 1; i >= 0 && at <= cycleTime(q.freezes[i].at); i-- {
		lag -= q.freezes[i].length
	}
	return at + cycleTime(lag)
}

// next is the device cycle of the queue's next event, never when there is none.
func (q *queue) next() int64 {
	if at, ok := q.Next(); ok && !q.frozen {
		return cycleOf(at) + q.lag
	}
	return never
}

// advance delivers what leaves up to the device cycle now.
func (q *queue) advance(now int64) {
	if !q.frozen {
		q.Advance(q.time(now))
	}
}

func (q *queue) empty() bool {
	frames, _ := q.Discipline().QueuedCount()
	return frames == 0
}

// configured reads the idle registers.
func (t *Twin) configured() queueConfig {
	mode := t.reg(regmap.QueueMode)
	c := queueConfig{
		discipline: mode & regmap.QueueModeDisciplineMask,
		engine: engine.Config{
			Slots:           int(t.reg(regmap.QueueDepth)),
			Clusters:        t.cfg.Clusters,
			FreeSlotOnStart: mode&regmap.QueueModeFreeOnStart != 0,
			RewardFilter:    mode&regmap.QueueModeRewardFilter != 0,
			RewardThreshold: int32(t.reg(regmap.QueueRewardThreshold)),
			Provenance:      mode&regmap.QueueModeProvenance != 0,
		},
		output: engine.Output{
			OverheadBytes: int(t.reg(regmap.QueueLimiterOverhead)),
			DequeueCycles: int(t.reg(regmap.QueueDequeueCycles)),
			MergeCycles:   int(t.reg(regmap.QueueMergeCycles)),
			ReadPorts:     t.cfg.ReadPorts,
		},
	}
	if t.reg(regmap.QueueLimiterControl)&regmap.QueueLimiterControlEnable != 0 {
		c.output.Rate = engine.Increment(t.reg(regmap.QueueLimiterIncrement))
	}
	if t.recording {
		c.engine.LaneMemory = olaf.MaxLanes
	}
	if t.cfg.buildsPrograms() {
		c.front = frontConfig{program: t.reg(regmap.AggregatorProgram), h: int(t.reg(regmap.AggregatorH)),
			lanes: c.engine.LaneMemory, segments: int(t.reg(regmap.AggregatorSegments))}
		c.down = t.downlinked()
	}
	return c
}

// rebuild makes an empty queue for what the registers say, and keeps the memory of one that fits.
func (q *queue) rebuild(t *Twin) error {
	c := t.configured()
	if q.Port != nil && q.config == c {
		q.Reset()
	} else {
		kind, _ := engine.Coded(c.discipline) // the register takes no other
		port, err := engine.NewPort(kind.Name, c.engine, c.output, (*uplink)(t))
		if err != nil {
			return err
		}
		q.Port = port
	}
	if err := t.rebuildFront(c.front); err != nil {
		return err
	}
	slots := c.engine.Slots + 1 // a frame whose slot was freed at its start still lies somewhere
	if cap(q.slotFlow) < slots {
		q.slotFlow = make([]*flow, slots)
	}
	*q = queue{Port: q.Port, config: c, slotFlow: q.slotFlow[:slots], freezes: q.freezes[:0]}
	return nil
}

// control obeys queue.control. Configuration that changed while the queue was off takes effect when it is enabled.
func (q *queue) control(t *Twin, value uint32) error {
	enable := value&regmap.QueueControlEnable != 0
	if enable && !q.enabled && q.config != t.configured() {
		t.counters.fold(t)
		if err := q.rebuild(t); err != nil {
			return err
		}
	}
	q.enabled = enable
	q.freeze(t, value&regmap.QueueControlFreeze != 0)
	return nil
}

func (q *queue) freeze(t *Twin, on bool) {
	now := t.now
	switch {
	case on && !q.frozen:
		if q.empty() && t.front.occupied() == 0 {
			q.freezes = q.freezes[:0]
		}
		q.frozen, q.frozenAt = true, now
	case !on && q.frozen:
		q.frozen = false
		// One cycle less than it took, so that what was before and what comes after are told apart by queue time; in the logic
		// nothing comes any more in the cycle in which it is told.
		length := now - q.frozenAt
		if t.cfg.ReadPorts == 0 {
			length--
		}
		if length > 0 {
			q.freezes = append(q.freezes, freeze{at: q.frozenAt - q.lag, length: length})
			q.lag += length
		}
	}
}

// admit brings one update of f, in q.arriving, to the program, or to the queue where there is none.
func (t *Twin) admit(f *flow) fate {
	q := &t.queue
	u := &q.arriving
	var lanes []int32
	if t.recording {
		lanes = t.lanesOf(f)[:u.Lanes]
	}
	if t.front.Aggregator != nil {
		if f.refused {
			t.front.refuse()
			return gone
		}
		if t.unit.inlet != nil {
			return t.hold(f, lanes)
		}
		t.present(f, lanes)
		return stored
	}
	if o := t.enqueue(f, u, lanes, nil); o.Slot == engine.NoSlot {
		return gone
	}
	return stored
}

// enqueue offers u to the queue; f is the flow of its newest contributor, inside who a program merged.
func (t *Twin) enqueue(f *flow, u *olaf.Update, lanes []int32, inside []olaf.Contributor) engine.Outcome {
	q := &t.queue
	o := q.OfferMerged(q.time(t.now), u, lanes, inside)
	t.counters.own.InBytes += uint64(u.Size())
	t.counters.clusters[u.Cluster].class[o.Class]++
	if o.Slot != engine.NoSlot {
		q.slotFlow[o.Slot] = f
		t.counters.peak = max(t.counters.peak, q.Discipline().Occupancy())
	}
	if t.cfg.Observer != nil {
		t.cfg.Observer.Arrival(cycleTime(t.now), o.Class, o.Slot, u, inside)
		t.watchStart()
	}
	return o
}

// uplink is the twin as the sink of its queue.
type uplink Twin

// Deliver takes a frame whose last bit has left towards the parameter server.
func (s *uplink) Deliver(d *engine.Departure) {
	t := (*Twin)(s)
	u := &d.Frame.Update
	at := t.queue.device(d.At)
	queued := at.Sub(t.queue.device(d.Frame.AppendedAt))
	c := &t.counters.clusters[u.Cluster]
	c.delivered++
	c.updates += uint64(u.Count)
	c.lastDeparture = cycleOf(at)
	t.counters.own.DeliveredBytes += uint64(u.Size())
	t.counters.own.OccupancyIntegral += uint64(cycleOf(olaf.Time(queued)))

	leaves, stay := at+t.outLatency(), queued+olaf.Duration(t.outLatency())
	if t.answering(u.Cluster) {
		t.answerWorkers(d, leaves, stay)
	} else {
		t.toServer(d, cycleOf(at), leaves, stay)
	}
	if t.cfg.Observer != nil {
		t.queue.left = true
		t.cfg.Observer.Departure(at, d.Slot, u)
	}
}

// toServer takes a frame to the parameter server; left is the cycle of its last bit at the queue.
func (t *Twin) toServer(d *engine.Departure, left int64, leaves olaf.Time, stay olaf.Duration) {
	u, out := &d.Frame.Update, t.runTime(leaves)
	inside := t.tap.keepContributors(d.Frame.Contributors)
	t.tap.observations = append(t.tap.observations,
		olaf.Observation{At: out, Queued: stay, Update: *u, Contributors: inside})
	f := t.queue.slotFlow[d.Slot]
	if t.recording {
		t.tap.packets = append(t.tap.packets, Packet{
			At: out, Queued: stay, Kind: Delivered, Addresses: uplinkAddresses(f), Update: *u,
			Lanes:        t.tap.keepLanes(d.Frame.Lanes),
			Contributors: inside, Seg: f.Seg, ToS: f.ToS,
		})
	}
	if t.acking() {
		t.server.answer(left+int64(t.reg(regmap.ModelAckDelay)), f, u)
	}
}

// watchStart tells the observer when a frame has started to leave since the last look.
func (t *Twin) watchStart() {
	if t.cfg.Observer == nil {
		return
	}
	slot, sending := t.queue.Sending()
	if sending && (t.queue.left || !t.queue.sending) {
		t.cfg.Observer.Start(cycleTime(t.now), slot)
	}
	t.queue.left, t.queue.sending = false, sending
}

// flush discards everything inside.
func (t *Twin) flush() {
	t.counters.own.OccupancyIntegral += t.insideCycles()
	t.queue.Flush(t.queue.time(t.now))
	t.queue.left, t.queue.sending = false, false
	t.discardHeld()
	t.endSums()
}

// insideCycles is how long the updates inside have been there, summed.
func (t *Twin) insideCycles() uint64 {
	var (
		sum   uint64
		frame engine.Frame
		d     = t.queue.Discipline()
	)
	d.Queued(func(s engine.Slot, _ bool) bool {
		d.View(s, &frame)
		sum += uint64(t.now - cycleOf(t.queue.device(frame.AppendedAt)))
		return true
	})
	return sum
}

// inspect fills the inspector's registers with the slot at index in departure order.
func (t *Twin) inspect(index uint32) {
	var (
		d     = t.queue.Discipline()
		frame engine.Frame
		state uint32
		k     uint32
	)
	d.Queued(func(s engine.Slot, locked bool) bool {
		if k++; k <= index {
			return true
		}
		d.View(s, &frame)
		state = regmap.QueueInspectStateValid
		if locked {
			state |= regmap.QueueInspectStateLeaving
		}
		return false
	})
	appended := int64(0)
	if state != 0 {
		appended = cycleOf(t.queue.device(frame.AppendedAt))
	}
	t.file.ShowSlot(state, &frame.Update, uint64(appended))
}

func (t *Twin) queueStatus() uint32 {
	var s uint32
	q, empty := &t.queue, t.queue.empty() && t.unit.empty()
	for _, b := range []struct {
		on  bool
		bit uint32
	}{
		{q.enabled && !q.frozen, regmap.QueueStatusRunning},
		{empty, regmap.QueueStatusEmpty},
		{q.frozen, regmap.QueueStatusFrozen},
		{!q.enabled && !empty, regmap.QueueStatusDraining},
	} {
		if b.on {
			s |= b.bit
		}
	}
	return s
}
