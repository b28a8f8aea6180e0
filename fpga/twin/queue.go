package twin

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/regmap"
)

// queueConfig is the queue's configuration, as read from the registers that take effect when the queue is enabled.
type queueConfig struct {
	discipline uint32 // register value
	engine     engine.Config
	output     engine.Output
	front      frontConfig
	down       downConfig
}

// queue models OlafQueue, which is a port with control registers, freeze and inspector. A freeze stops the queue's
// clock, so that queue time is behind device time by the total duration of all freezes.
type queue struct {
	*engine.Port
	config   queueConfig
	enabled  bool
	frozen   bool
	frozenAt int64    // device cycle
	lag      int64    // cycles by which the queue's clock lags the device's
	freezes  []freeze // freezes that a queued update may have experienced
	// slotFlow contains the flow of each slot's newest contributor, to obtain addresses, which updates do not contain.
	slotFlow []*flow
	arriving olaf.Update // update being offered, kept here to avoid an allocation
	left     bool        // for the observer: a frame has left since the last check
	sending  bool        // for the observer: a frame was on the wire at the last check
}

// freeze is a period in the past during which the queue's clock was stopped.
type freeze struct {
	at     int64 // queue cycle
	length int64
}

// clockAt returns the time on the queue's clock at device cycle now, which must not be in the future.
func (q *queue) clockAt(now int64) olaf.Time {
	if q.frozen {
		now = q.frozenAt
	}
	return cycleTime(now - q.lag)
}

// deviceTime converts a time on the queue's clock to device time.
func (q *queue) deviceTime(at olaf.Time) olaf.Time {
	lag := q.lag
	for i := len(q.freezes) - 1; i >= 0 && at <= cycleTime(q.freezes[i].at); i-- {
		lag -= q.freezes[i].length
	}
	return at + cycleTime(lag)
}

// nextEvent returns the device cycle of the queue's next event, or never if there is none.
func (q *queue) nextEvent() int64 {
	if at, ok := q.Next(); ok && !q.frozen {
		return cycleOf(at) + q.lag
	}
	return never
}

// advance delivers the frames that leave up to and including device cycle now.
func (q *queue) advance(now int64) {
	if !q.frozen {
		q.Advance(q.clockAt(now))
	}
}

func (q *queue) empty() bool {
	frames, _ := q.Discipline().QueuedCount()
	return frames == 0
}

// readQueueConfig reads the queue's configuration from the registers.
func (t *Twin) readQueueConfig() queueConfig {
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
		c.down = t.readDownConfig()
	}
	return c
}

// rebuild creates an empty queue with the configuration in the registers. If the configuration is unchanged, it reuses
// the old queue's memory.
func (q *queue) rebuild(t *Twin) error {
	c := t.readQueueConfig()
	if q.Port != nil && q.config == c {
		q.Reset()
	} else {
		kind, _ := engine.FindByCode(c.discipline) // always known: the register accepts no other value
		port, err := engine.NewPort(kind.Name, c.engine, c.output, (*uplink)(t))
		if err != nil {
			return err
		}
		q.Port = port
	}
	if err := t.rebuildFront(c.front); err != nil {
		return err
	}
	slots := c.engine.Slots + 1 // a frame whose slot was freed when it started still needs a place
	if cap(q.slotFlow) < slots {
		q.slotFlow = make([]*flow, slots)
	}
	*q = queue{Port: q.Port, config: c, slotFlow: q.slotFlow[:slots], freezes: q.freezes[:0]}
	return nil
}

// setControl applies a write to register queue.control. Configuration registers that were changed while the queue was
// disabled take effect when it is enabled.
func (q *queue) setControl(t *Twin, value uint32) error {
	enable := value&regmap.QueueControlEnable != 0
	if enable && !q.enabled && q.config != t.readQueueConfig() {
		t.counters.own.Add(t.engineCounters()) // of the engine that is replaced, which is empty
		if err := q.rebuild(t); err != nil {
			return err
		}
	}
	q.enabled = enable
	q.setFreeze(t, value&regmap.QueueControlFreeze != 0)
	return nil
}

func (q *queue) setFreeze(t *Twin, on bool) {
	now := t.now
	switch {
	case on && !q.frozen:
		if q.empty() && t.front.occupied() == 0 {
			q.freezes = q.freezes[:0]
		}
		q.frozen, q.frozenAt = true, now
	case !on && q.frozen:
		q.frozen = false
		// The recorded length is one cycle less than the freeze took, so that queue time separates events before and
		// after the freeze. In the logic nothing more arrives in the cycle of the command.
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

// admitUpdate passes the arriving update, q.arriving, to the switch program, or to the queue if there is no program. f
// is its flow.
func (t *Twin) admitUpdate(f *flow) fate {
	q := &t.queue
	u := &q.arriving
	var lanes []int32
	if t.recording {
		lanes = t.lanesOf(f)[:u.Lanes]
	}
	if t.front.Aggregator != nil {
		if f.refused {
			*t.front.own.At(countRegister(int(t.front.program.Stranger)))++
			return gone
		}
		if t.unit.inlet != nil {
			return t.holdUpdate(f, lanes)
		}
		t.presentUpdate(f, lanes)
		return stored
	}
	if o := t.offerUpdate(f, u, lanes, nil); o.Slot == engine.NoSlot {
		return gone
	}
	return stored
}

// offerUpdate offers u to the queue. f is the flow of its newest contributor. inside lists the contributors if u is a
// sum of a switch program.
func (t *Twin) offerUpdate(f *flow, u *olaf.Update, lanes []int32, inside []olaf.Contributor) engine.Outcome {
	q := &t.queue
	o := q.OfferMerged(q.clockAt(t.now), u, lanes, inside)
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

// uplink is the sink that receives the frames of the twin's queue.
type uplink Twin

// Deliver sends a frame whose last bit has left the queue to the parameter server or to the workers.
func (s *uplink) Deliver(d *engine.Departure) {
	t := (*Twin)(s)
	u := &d.Frame.Update
	at := t.queue.deviceTime(d.At)
	queued := at.Sub(t.queue.deviceTime(d.Frame.AppendedAt))
	c := &t.counters.clusters[u.Cluster]
	c.delivered++
	c.updates += uint64(u.Count)
	c.lastDeparture = cycleOf(at)
	t.counters.own.DeliveredBytes += uint64(u.Size())
	t.counters.own.OccupancyIntegral += uint64(cycleOf(olaf.Time(queued)))

	leaves, stay := at+t.outLatency(), queued+olaf.Duration(t.outLatency())
	if t.answersWorkers(u.Cluster) {
		t.answerWorkers(d, leaves, stay)
	} else {
		t.toServer(d, cycleOf(at), leaves, stay)
	}
	if t.cfg.Observer != nil {
		t.queue.left = true
		t.cfg.Observer.Departure(at, d.Slot, u)
	}
}

// toServer sends a frame to the parameter server. left is the cycle in which its last bit left the queue.
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
	if t.acksEnabled() {
		t.server.queueAck(left+int64(t.reg(regmap.ModelAckDelay)), f, u)
	}
}

// watchStart notifies the observer if a frame has started to leave the queue since the previous call.
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

// flushQueue discards all queued frames and all partial sums.
func (t *Twin) flushQueue() {
	t.counters.own.OccupancyIntegral += t.insideCycles()
	t.queue.Flush(t.queue.clockAt(t.now))
	t.queue.left, t.queue.sending = false, false
	t.discardHeld()
	t.endSums()
}

// insideCycles returns the sum, over all queued frames, of the time that each has been in the queue, in cycles.
func (t *Twin) insideCycles() uint64 {
	var (
		sum   uint64
		frame engine.Frame
		d     = t.queue.Discipline()
	)
	d.Queued(func(s engine.Slot, _ bool) bool {
		d.View(s, &frame)
		sum += uint64(t.now - cycleOf(t.queue.deviceTime(frame.AppendedAt)))
		return true
	})
	return sum
}

// inspectSlot writes the frame at the given index in departure order into the inspector's registers.
func (t *Twin) inspectSlot(index uint32) {
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
		appended = cycleOf(t.queue.deviceTime(frame.AppendedAt))
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
