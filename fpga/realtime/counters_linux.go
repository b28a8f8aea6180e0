package realtime

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/regfile"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/fpga/xdp"
)

// totals are the counters since the last clear. A plane hands its own over when it is latched.
type totals struct {
	queue     regmap.QueueCounters // as far as planes count
	clearedNS int64
	unlogged  uint64
	beyond    uint64 // updates of clusters that are not built
	occupancy uint64 // ns of frames, of planes that were given up
	peak      int
	latched   xdp.Exchange
}

// planeCounters are the counters of planes that have a register of the same name.
var planeCounters = func() map[string]uint32 {
	at := map[string]uint32{}
	var none regmap.QueueCounters
	for _, b := range regmap.Blocks() {
		for i := range b.Registers {
			address := b.Base + b.Registers[i].Offset
			if b.Name == "queue" && none.At(address) != nil {
				at[b.Registers[i].Name] = address
			}
		}
	}
	return at
}()

// latch takes what the plane counted since the last time.
func (c *Card) latch(clear bool) error {
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
		}
	}
	t.latched, t.peak = x, max(t.peak, x.Peak)
	return nil
}

// fold keeps what the plane counted before it begins anew. It is empty.
func (c *Card) fold() error {
	if err := c.latch(false); err != nil {
		return err
	}
	c.total.occupancy += c.total.latched.OccupancyNS
	c.total.latched = xdp.Exchange{Leaving: -1}
	return c.listen()
}

// inside is how many frames are in the queue, and how many updates in these.
func inside(x *xdp.Exchange) (frames, updates uint64) {
	frames = uint64(x.Waiting)
	if x.Leaving >= 0 {
		frames++
	}
	return frames, x.Updates
}

// arriveNS is how long frames may be under way after they were sent: whoever takes them may have to wait for most of a second, which
// the kernel gives to threads that go before all others.
const arriveNS = 2_000_000_000

// settled waits until what the workers sent has come to the plane. While they send, that is never.
func (c *Card) settled() error {
	if c.generator.state.Load() == running {
		return nil
	}
	for until := c.clock.now() + arriveNS; ; nap(napNS) {
		n, err := c.missing()
		if err != nil || n == 0 {
			return err
		}
		if c.clock.now() > until { // said by Faults
			c.lost = n
			return nil
		}
	}
}

// missing is how many frames that the workers sent have not come to the plane; 0 where these are as many as were given up before.
func (c *Card) missing() (int64, error) {
	n, err := c.underwayIn()
	if err == nil && n == 0 {
		n, err = c.unheard()
	}
	if n == c.lost {
		n = 0
	}
	return n, err
}

// unheard is how many frames that the card's own workers sent the plane has not taken out of the sockets that it may hear by.
func (c *Card) unheard() (int64, error) {
	if err := c.latch(false); err != nil {
		return 0, err
	}
	q := &c.total.queue
	g, _ := c.generator.counted(false)
	return max(0, int64(g.SentPackets-classified(q)-q.Bypassed-q.Malformed-q.LostBeforeEngine)), nil
}

// classified is how many updates the engine decided about.
func classified(q *regmap.QueueCounters) uint64 {
	return q.Appended + q.Aggregated + q.Replaced + q.ReplacedReward + q.DroppedFull + q.DroppedReward +
		q.DroppedMismatch
}

// generatorState is that of the generator, which is stopping until what it sent has come to the plane, as far as that can be expected:
// a queue that is empty then stays so.
func (c *Card) generatorState() uint32 {
	g := c.generator
	state := g.state.Load()
	if state != done || g.arrived {
		return state
	}
	n, err := c.missing()
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

// underwayIn is underway of all workers' cables.
func (c *Card) underwayIn() (lost int64, err error) {
	for _, cable := range c.in {
		n, err := c.underway(cable)
		if err != nil {
			return 0, err
		}
		lost += n
	}
	return lost, nil
}

// underway is how many frames left one end of a cable and did not come to the other. Where one is not here nobody knows: 0. The error matches
// fpga.ErrGone.
func (c *Card) underway(cable *netlab.Cable) (int64, error) {
	if cable.A == nil || cable.B == nil {
		return 0, nil
	}
	a, err := cable.A.Counts()
	if err != nil {
		return 0, c.gone(cable)
	}
	b, err := cable.B.Counts()
	if err != nil {
		return 0, c.gone(cable)
	}
	return int64(a.Sent - b.Received), nil
}

// snapshot latches all banks into the registers.
func (c *Card) snapshot() error {
	if err := c.settled(); err != nil {
		return err
	}
	if err := c.latch(false); err != nil {
		return err
	}
	t, now := &c.total, c.clock.now()
	q := t.queue
	q.SnapshotCycle, q.CoveredCycles = uint64(c.cycle(now)), uint64((now-t.clearedNS)/cycleNS)
	q.QueuedFrames, q.QueuedUpdates = inside(&t.latched)
	q.In = classified(&q)
	q.OccupancyIntegral = (t.occupancy + t.latched.OccupancyNS) / uint64(cycleNS)
	q.BusyCycles = uint64(c.pacing().BusyNS / cycleNS)
	for at := regmap.QueueSnapshotCycle; q.At(at) != nil; at += 8 {
		c.file.Set64(at, *q.At(at))
	}
	g, _ := c.generator.counted(false)
	for at := regmap.GeneratorSentPackets; g.At(at) != nil; at += 8 {
		c.file.Set64(at, *g.At(at))
	}
	a := c.front.total()
	for at := regmap.AggregatorCount0; a.At(at) != nil; at += 8 {
		c.file.Set64(at, *a.At(at))
	}
	return nil
}

// clearCounters starts all counters anew; what is inside is carried over.
func (c *Card) clearCounters() error {
	if err := c.latch(true); err != nil {
		return err
	}
	cables, err := c.underwayIn()
	if err != nil {
		return err
	}
	if cables == 0 { // then those given up were of the run that is over: the cables count on
		c.lost = 0
	}
	x := c.total.latched
	x.OccupancyNS = 0
	c.total = totals{clearedNS: c.clock.now(), latched: x}
	c.total.queue.CarriedFrames, c.total.queue.CarriedUpdates = inside(&x)
	c.generator.counted(true)
	c.front.anew()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pacer.stats = pacing{}
	return nil
}

// state views the queue as it is now.
func (c *Card) state() xdp.Exchange {
	x, _ := c.view(maxIndex)
	return x
}

// maxIndex is where no frame is.
const maxIndex = 1 << 30

func (c *Card) view(index int) (xdp.Exchange, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.plane == nil {
		return xdp.Exchange{Leaving: -1}, c.failure
	}
	x, err := c.plane.Inspect(index, nil)
	if err != nil {
		c.fail(err)
		x.Leaving = -1
	}
	return x, err
}

// occupied is how many slots are in use: a frame on the wire may hold none.
func (c *Card) occupied(x *xdp.Exchange) int {
	n := x.Waiting
	if x.Leaving >= 0 && !c.config.settings.FreeSlotOnStart {
		n++
	}
	return n
}

// selectCluster latches one cluster's counters into the registers.
func (c *Card) selectCluster(index uint32) error {
	c.mu.Lock()
	n, err := c.plane.Cluster(olaf.ClusterID(index))
	c.mu.Unlock()
	if err != nil {
		return err
	}
	c.file.ShowCluster(&regfile.Cluster{
		Class: n.Class, DeliveredFrames: n.DeliveredFrames, DeliveredUpdates: n.DeliveredUpdates,
		LastDeparture: c.cycles(n.LastDepartureNS),
	})
	return nil
}

// cycles is device time at an instant of the kernel's clock, 0 for none.
func (c *Card) cycles(ns uint64) uint64 {
	if int64(ns) <= c.openNS {
		return 0
	}
	return uint64(c.cycle(int64(ns)))
}

// inspect fills the inspector's registers with the slot at index in departure order.
func (c *Card) inspect(index uint32) error {
	x, err := c.view(int(index))
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
	c.file.ShowSlot(state, &x.Update, c.cycles(x.AppendedNS))
	return nil
}

// flush discards everything inside.
func (c *Card) flush() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.plane.Flush(); err != nil {
		return err
	}
	c.pacer.flushed = c.pacer.sending
	return nil
}
