package realtime

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/dataplane"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/regfile"
	"github.com/olafctl/olaf/fpga/regmap"
)

// totals contains the counters since the last clear. They are collected from the planes by latching.
type totals struct {
	queue     regmap.QueueCounters // if counted
	clearedNS int64
	unlogged  uint64
	beyond    uint64 // updates of clusters beyond the build's limit
	foreign   uint64 // bypassed frames that are not OLAF's
	others    uint64 // those of foreign that are in the latched registers
	occupancy uint64 // in ns × frames, from replaced planes
	peak      int
	latched   dataplane.Exchange
}

// planeCounters maps the names of the planes' counters to the registers with the same name.
var planeCounters = func() map[string]uint32 {
	at := map[string]uint32{}
	var none regmap.QueueCounters
	for _, b := range regmap.AllBlocks() {
		for i := range b.Registers {
			address := b.Base + b.Registers[i].Offset
			if b.Name == "queue" && none.At(address) != nil {
				at[b.Registers[i].Name] = address
			}
		}
	}
	return at
}()

// latchPlane adds the plane's counts since the previous latch to the totals.
func (c *Card) latchPlane(clear bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.plane == nil {
		return nil
	}
	x, sums, err := c.plane.Latch(clear)
	if err != nil {
		return err
	}
	t := &c.total
	for name, n := range sums {
		switch at, ok := planeCounters[name]; {
		case ok:
			*t.queue.At(at) += n
		case name == "unlogged":
			t.unlogged += n
		case name == "beyond_clusters":
			t.beyond += n
		case name == "foreign":
			t.foreign += n
		}
	}
	t.latched, t.peak = x, max(t.peak, x.Peak)
	return nil
}

// saveCounts saves the counts of a plane that is about to be replaced. The plane must be empty.
func (c *Card) saveCounts() error {
	if err := c.latchPlane(false); err != nil {
		return err
	}
	c.total.occupancy += c.total.latched.OccupancyNS
	c.total.latched = dataplane.Exchange{Leaving: -1}
	return c.readDecisions()
}

// queuedCount returns the number of queued frames and the number of updates in them.
func queuedCount(x *dataplane.Exchange) (frames, updates uint64) {
	frames = uint64(x.Waiting)
	if x.Leaving >= 0 {
		frames++
	}
	return frames, x.Updates
}

// arriveNS is the maximum time in nanoseconds between sending a frame and receiving it. The receiver may be delayed for
// most of a second by real-time threads.
const arriveNS = 2_000_000_000

// waitSettled waits until all frames sent by the workers have reached the plane. It returns immediately while the
// generator runs.
func (c *Card) waitSettled() error {
	if c.generator.state.Load() == running {
		return nil
	}
	for until := c.clock.now() + arriveNS; ; napFor(napNS) {
		n, err := c.countMissing()
		if err != nil || n == 0 {
			return err
		}
		if c.clock.now() > until { // reported by Faults
			c.lost = n
			return nil
		}
	}
}

// countMissing returns the number of sent frames that have not reached the plane. Frames that were already given up as
// lost do not count.
func (c *Card) countMissing() (int64, error) {
	if c.generator.at != nil { // the generator's frames do not come to this card's plane
		return 0, nil
	}
	n, err := c.countInFlight()
	if err == nil && n == 0 {
		n, err = c.countUnreceived()
	}
	if n == c.lost {
		n = 0
	}
	return n, err
}

// countUnreceived returns the number of frames from the card's workers that have arrived but that the plane has not
// read from its sockets.
func (c *Card) countUnreceived() (int64, error) {
	if err := c.latchPlane(false); err != nil {
		return 0, err
	}
	q := &c.total.queue
	g, _ := c.generator.readCounters(false)
	return max(0, int64(g.SentPackets+c.total.foreign-countClassified(q)-q.Bypassed-q.Malformed-q.LostBeforeEngine)), nil
}

// OtherFrames returns the number of frames at the queue's input that were not OLAF frames, from the last clear to the
// last latch. The counter queue.bypassed includes them.
func (c *Card) OtherFrames() (latched, now uint64, err error) {
	err = c.latchPlane(false)
	return c.total.others, c.total.foreign, err
}

// countClassified returns the number of updates to which the engine has assigned a class.
func countClassified(q *regmap.QueueCounters) uint64 {
	return q.Appended + q.Aggregated + q.Replaced + q.ReplacedReward + q.DroppedFull + q.DroppedReward +
		q.DroppedMismatch
}

// generatorState returns the generator's state. After the last frame was sent, the state is stopping until all frames
// have reached the plane or are given up as lost. Afterwards an empty queue stays empty.
func (c *Card) generatorState() uint32 {
	g := c.generator
	state := g.state.Load()
	if state != done || g.arrived {
		return state
	}
	n, err := c.countMissing()
	switch {
	case err != nil || n == 0:
	case c.clock.now()-g.lastNS.Load() > arriveNS:
		c.lost = n
	default:
		return stopping
	}
	g.arrived = true
	return state
}

// countInFlight returns the number of frames that are in flight on all workers' cables.
func (c *Card) countInFlight() (lost int64, err error) {
	for _, cable := range c.in {
		n, err := c.inFlightOn(cable)
		if err != nil {
			return 0, err
		}
		lost += n
	}
	return lost, nil
}

// inFlightOn returns the number of frames that were sent at one end of a cable and not received at the other. It is 0
// if an end is not on this machine. The error matches fpga.ErrGone.
func (c *Card) inFlightOn(cable *netlab.Cable) (int64, error) {
	if cable.A == nil || cable.B == nil {
		return 0, nil
	}
	a, err := cable.A.Counts()
	if err != nil {
		return 0, c.goneError(cable)
	}
	b, err := cable.B.Counts()
	if err != nil {
		return 0, c.goneError(cable)
	}
	return int64(a.Sent - b.Received), nil
}

// PortCounts returns the number of frames at a card's interfaces, if the card is only a queue or only a generator. A
// queue has an interface where frames arrive and one where they leave. A generator sends at port 1, like on a real
// card. Other cards have no ports.
func (c *Card) PortCounts() ([]fpga.Port, error) {
	var all []fpga.Port
	at := []*netlab.Interface{nil, c.generator.at}
	if c.hosts.isBetween() {
		at = []*netlab.Interface{c.in[0].B, c.out.A}
	}
	if at[1] == nil {
		return nil, nil
	}
	for _, i := range at {
		var p fpga.Port
		if i != nil {
			n, err := i.Counts()
			if err != nil {
				return nil, fmt.Errorf("%w: %w", fpga.ErrGone, err)
			}
			p.Sent, p.Received = n.Sent, n.Received
		}
		all = append(all, p)
	}
	return all, nil
}

// latchRegisters latches all counter banks into the registers.
func (c *Card) latchRegisters() error {
	if err := c.waitSettled(); err != nil {
		return err
	}
	if err := c.latchPlane(false); err != nil {
		return err
	}
	t, now := &c.total, c.clock.now()
	q := t.queue
	q.SnapshotCycle, q.CoveredCycles = uint64(c.cycle(now)), uint64((now-t.clearedNS)/cycleNS)
	q.QueuedFrames, q.QueuedUpdates = queuedCount(&t.latched)
	q.In = countClassified(&q)
	q.OccupancyIntegral = (t.occupancy + t.latched.OccupancyNS) / uint64(cycleNS)
	t.others = t.foreign
	q.BusyCycles = uint64(c.pacing().BusyNS / cycleNS)
	for at := regmap.QueueSnapshotCycle; q.At(at) != nil; at += 8 {
		c.file.Set64(at, *q.At(at))
	}
	g, _ := c.generator.readCounters(false)
	for at := regmap.GeneratorSentPackets; g.At(at) != nil; at += 8 {
		c.file.Set64(at, *g.At(at))
	}
	a := c.front.totalCounters()
	for at := regmap.AggregatorCount0; a.At(at) != nil; at += 8 {
		c.file.Set64(at, *a.At(at))
	}
	return nil
}

// clearCounters clears all counters. Frames that are still queued are counted as carried over.
func (c *Card) clearCounters() error {
	if err := c.latchPlane(true); err != nil {
		return err
	}
	cables, err := c.countInFlight()
	if err != nil {
		return err
	}
	if cables == 0 { // frames given up belong to the previous run: the cables' counts continue
		c.lost = 0
	}
	x := c.total.latched
	x.OccupancyNS = 0
	c.total = totals{clearedNS: c.clock.now(), latched: x}
	c.total.queue.CarriedFrames, c.total.queue.CarriedUpdates = queuedCount(&x)
	c.generator.readCounters(true)
	c.front.clearCounters()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pacer.stats = pacing{}
	return nil
}

// viewState returns the current state of the queue.
func (c *Card) viewState() dataplane.Exchange {
	x, _ := c.viewSlot(maxIndex)
	return x
}

// maxIndex is an index that is greater than the index of any queued frame.
const maxIndex = 1 << 30

func (c *Card) viewSlot(index int) (dataplane.Exchange, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.plane == nil {
		return dataplane.Exchange{Leaving: -1}, c.failure
	}
	x, err := c.plane.Inspect(index, nil)
	if err != nil {
		c.recordFailure(err)
		x.Leaving = -1
	}
	return x, err
}

// countOccupied returns the number of slots in use. The frame on the wire is not counted if its slot was freed when it
// started.
func (c *Card) countOccupied(x *dataplane.Exchange) int {
	n := x.Waiting
	if x.Leaving >= 0 && !c.config.settings.FreeSlotOnStart {
		n++
	}
	return n
}

// selectCluster copies the counters of one cluster into the registers.
func (c *Card) selectCluster(index uint32) error {
	c.mu.Lock()
	n, err := c.plane.Cluster(olaf.ClusterID(index))
	c.mu.Unlock()
	if err != nil {
		return err
	}
	c.file.ShowCluster(&regfile.Cluster{
		Class: n.Class, DeliveredFrames: n.DeliveredFrames, DeliveredUpdates: n.DeliveredUpdates,
		LastDeparture: c.cycleOf(n.LastDepartureNS),
	})
	return nil
}

// cycleOf returns the device cycle at an instant of the kernel's clock, or 0 if the instant is 0.
func (c *Card) cycleOf(ns uint64) uint64 {
	if int64(ns) <= c.openNS {
		return 0
	}
	return uint64(c.cycle(int64(ns)))
}

// inspectSlot writes the frame at the given index in departure order into the inspector's registers.
func (c *Card) inspectSlot(index uint32) error {
	x, err := c.viewSlot(int(index))
	if err != nil {
		return err
	}
	var state uint32
	if x.Slot >= 0 {
		state = regmap.QueueInspectStateValid
		if x.Slot == x.Leaving {
			state |= regmap.QueueInspectStateLeaving
		}
	} else {
		x.Update, x.AppendedNS = olaf.Update{}, 0
	}
	c.file.ShowSlot(state, &x.Update, c.cycleOf(x.AppendedNS))
	return nil
}

// flushQueue discards all queued frames.
func (c *Card) flushQueue() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.plane.Flush(); err != nil {
		return err
	}
	c.pacer.flushed = c.pacer.sending
	return nil
}
