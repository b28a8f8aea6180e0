package twin

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/regfile"
	"github.com/olafctl/olaf/fpga/regmap"
)

// state is the generator's; the values are those of the register.
type state uint8

const (
	idle state = iota
	armed
	running
	stopping // the last packet is still on the bus
	done
	failed
)

// generator fires descriptors at absolute cycles of its run clock, which starts when it is started.
type generator struct {
	flows     []flow
	templates [][]int32 // lanes of each template, with Config.Wire

	state    state
	zero     int64 // device cycle at which the run clock was 0
	limit    uint64
	played   uint64
	last     uint64 // time of the descriptor before
	busFree  int64  // device cycle at which the bus has moved the packet before
	next     int64  // device cycle of the next thing to do, never when there is none
	wish     int64  // what next would be if the bus were free
	due      int64  // when the descriptor wanted to be sent
	size     int
	flow     *flow
	incoming regmap.Descriptor
}

func (g *generator) reset() {
	*g = generator{flows: g.flows[:0], templates: g.templates, next: never, busFree: g.busFree}
}

// busy says whether configuration and memories must hold still.
func (g *generator) busy() bool { return g.state == armed || g.state == running || g.state == stopping }

// generatorCommand obeys one bit of generator.command; false means that the state forbids it.
func (t *Twin) generatorCommand(bit uint32) bool {
	g := &t.generator
	switch bit {
	case regmap.GeneratorCommandArm:
		if g.busy() {
			return false
		}
		t.arm()
	case regmap.GeneratorCommandStart:
		if g.state != armed {
			return false
		}
		g.state = running
		if t.cfg.ReadPorts == 0 {
			g.zero, g.busFree = t.now, t.now
		} else { // of this cycle the logic can change nothing any more
			g.zero = t.now + 1
		}
		t.set64(regmap.GeneratorStartCycle, uint64(g.zero))
		t.fetch()
	case regmap.GeneratorCommandStop:
		switch g.state {
		case armed:
			g.state = idle
		case running:
			g.end(t.now)
		}
	case regmap.GeneratorCommandAbort:
		g.state, g.next = idle, never
	}
	return true
}

// arm reads the flow table. Flows that frames inside the queue still point to are left alone.
func (t *Twin) arm() {
	g := &t.generator
	n := int(t.reg(regmap.GeneratorFlows))
	if cap(g.flows) < n || !t.queue.empty() || !t.unit.empty() || t.server.pendingAcks() > 0 ||
		len(t.down.onTheWay) > 0 || !t.bus.empty() {
		g.flows = make([]flow, n)
	}
	g.flows = g.flows[:n]
	for i := range g.flows {
		g.flows[i] = flow{}
		t.file.Memories.Flow(i, &g.flows[i].Flow)
	}
	if t.recording {
		g.readTemplates(&t.file.Memories)
	}
	g.limit = uint64(t.reg(regmap.GeneratorDescriptors))
	if stop := t.reg64(regmap.GeneratorStopAfter); stop > 0 {
		g.limit = min(g.limit, stop)
	}
	g.state, g.played, g.last = armed, 0, 0
}

func (g *generator) readTemplates(m *regfile.Memories) {
	if g.templates == nil {
		lanes := make([]int32, regfile.Templates*olaf.MaxLanes)
		g.templates = make([][]int32, regfile.Templates)
		for i := range g.templates {
			g.templates[i] = lanes[i*olaf.MaxLanes : (i+1)*olaf.MaxLanes]
		}
	}
	for i := range g.templates {
		m.Lanes(i, g.templates[i])
	}
}

// end lets the packet on the bus finish.
func (g *generator) end(now int64) {
	g.state = stopping
	g.until(now)
}

// fail stops in state error for the given reason.
func (t *Twin) failGenerator(reason uint32) {
	t.generator.state, t.generator.next = failed, never
	t.raise(regmap.GeneratorEvents, regmap.GeneratorEventsError|reason)
	t.raise(regmap.CommonErrors, regmap.CommonErrorsGenerator)
}

// fetch reads the next descriptor and finds out when it will be sent.
func (t *Twin) fetch() {
	g := &t.generator
	if g.played >= g.limit {
		g.end(t.now)
		return
	}
	d := &g.incoming
	if !t.file.Memories.Descriptor(g.played, d) {
		t.failGenerator(regmap.GeneratorEventsUnderrun)
		return
	}
	if d.Time < g.last {
		t.failGenerator(regmap.GeneratorEventsUnsorted)
		return
	}
	if int(d.Flow) >= len(g.flows) || !regfile.FlowUsable(&g.flows[d.Flow].Flow) {
		t.failGenerator(regmap.GeneratorEventsBadFlow)
		return
	}
	g.flow = &g.flows[d.Flow]
	size, ok := regfile.FrameLength(d, &g.flow.Flow)
	if g.size = size; !ok {
		t.failGenerator(regmap.GeneratorEventsBadLength)
		return
	}
	g.last = d.Time
	g.due = g.zero + int64(d.Time)
	g.until(g.due)
}

// until waits for a cycle, and for the bus.
func (g *generator) until(cycle int64) { g.wish, g.next = cycle, max(cycle, g.busFree) }

// beatBytes move over the data path in one cycle.
const beatBytes = 64

// fire does what is due now: send a packet, or be done.
func (g *generator) fire(t *Twin) {
	if g.state == stopping {
		g.state, g.next = done, never
		t.raise(regmap.GeneratorEvents, regmap.GeneratorEventsDone)
		return
	}
	g.played++
	c := &t.counters.generator
	c.SentPackets++
	c.SentBytes += uint64(g.size)
	if late := t.now - g.due; late > 0 {
		c.LatePackets++
		c.LateCyclesSum += uint64(late)
		c.LateCyclesMax = max(c.LateCyclesMax, uint64(late))
	}
	switch {
	case t.reg(regmap.GeneratorControl)&regmap.GeneratorControlWire != 0:
		g.busFree = t.now + beatsOf(g.size)
		t.sendOut(g.flow, &g.incoming, g.size)
	case t.cfg.ReadPorts == 0:
		g.busFree = t.now + beatsOf(g.size)
		t.ingress(g.flow, &g.incoming, g.size, g.genNS(t.now))
	default:
		t.send(g.flow, &g.incoming, g.size)
	}
	t.fetch()
}

// genNS is the generation stamp of a packet sent at a device cycle.
func (g *generator) genNS(now int64) uint64 {
	return uint64(now-g.zero) * uint64(olaf.Cycle/olaf.Nanosecond) % olaf.GenModulus
}

// ingress is VNP4-1: parse, look up, and send a frame with its generation stamp to the queue, around it, or nowhere.
func (t *Twin) ingress(f *flow, d *regmap.Descriptor, size int, genNS uint64) fate {
	if d.Flags&regmap.FlagNotOlaf != 0 || f.DestPort != olaf.UDPPort {
		t.bypass(f, d, size, genNS)
		return bypassed
	}
	if d.Flags&(regmap.FlagBadChecksum|regmap.FlagBadLength) != 0 {
		t.counters.own.Malformed++
		return gone
	}
	if t.tables.refresh() {
		t.followTables()
	}
	if f.epoch != t.tables.epoch {
		t.identify(f)
	}
	if f.route != toQueue || !t.front.takes(f) {
		if f.route != toBypass {
			t.raise(regmap.QueueErrors, regmap.QueueErrorsClusterRange)
			t.raise(regmap.CommonErrors, regmap.CommonErrorsQueue)
		}
		t.bypass(f, d, size, genNS)
		return bypassed
	}
	if !t.queue.enabled || t.queue.frozen {
		t.counters.own.LostBeforeEngine++
		return gone
	}
	if f.misidentified {
		t.counters.own.Misidentified++
	}
	t.queue.arriving = t.header(d, size, genNS)
	t.queue.arriving.Cluster, t.queue.arriving.Worker = f.cluster, f.worker
	return t.admit(f)
}

// header is the update that a descriptor describes, without identity.
func (t *Twin) header(d *regmap.Descriptor, size int, genNS uint64) olaf.Update {
	u := olaf.Update{
		GenNS:  genNS,
		Seq:    d.Sequence,
		Reward: d.Reward,
		Count:  1,
		Lanes:  uint16((size - olaf.HeaderBytes) / olaf.LaneBytes),
	}
	if d.Flags&regmap.FlagRetransmission != 0 {
		u.Flags = olaf.Retransmission
	}
	return u
}

// notOlafPort is the destination port of a frame with FlagNotOlaf: discard.
const notOlafPort = 9

// bypass sends a frame around the queue.
func (t *Twin) bypass(f *flow, d *regmap.Descriptor, size int, genNS uint64) {
	t.counters.own.Bypassed++
	if !t.recording {
		return
	}
	t.queue.advance(t.now) // what left before is recorded before
	t.arrive()
	p := Packet{At: t.runTime(cycleTime(t.now) + t.detour(size)), Kind: Bypassed, Addresses: uplinkAddresses(f),
		Update: t.header(d, size, genNS),
		Seg:    f.Seg, ToS: f.ToS, Format: f.Format}
	p.Update.Cluster, p.Update.Worker = f.Cluster, f.Worker
	p.Lanes = t.tap.keepLanes(t.lanesOf(f)[:p.Update.Lanes])
	if d.Flags&regmap.FlagNotOlaf != 0 {
		p.Addresses.DestPort = notOlafPort
	}
	t.tap.packets = append(t.tap.packets, p)
}
