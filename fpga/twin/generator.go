package twin

import (
	"github.com/olafctl/olaf"
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
	memories  [3]memory // descriptors, flows, templates
	flows     []flow
	templates [][]int32 // lanes of each template, with Config.Wire

	state    state
	zero     int64 // device cycle at which the run clock was 0
	limit    uint64
	played   uint64
	last     uint64 // time of the descriptor before
	busFree  int64  // device cycle at which the bus has moved the packet before
	next     int64  // device cycle of the next thing to do, never when there is none
	due      int64  // when the descriptor wanted to be sent
	size     int
	flow     *flow
	incoming regmap.Descriptor
}

const (
	descriptorMemory = iota
	flowMemory
	templateMemory
)

func (g *generator) reset(descriptors int) {
	sizes := [3]int{descriptors * regmap.DescriptorWords, builtFlows * regmap.FlowWords, builtTemplates * regmap.TemplateWords}
	for i := range g.memories {
		if g.memories[i].limit == 0 {
			g.memories[i] = newMemory(sizes[i])
		}
		g.memories[i].clear()
	}
	*g = generator{memories: g.memories, flows: g.flows[:0], next: never}
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
		g.state, g.zero, g.busFree = running, t.now, t.now
		t.set64(regmap.GeneratorStartCycle, uint64(t.now))
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
	if cap(g.flows) < n || !t.queue.empty() || t.server.pendingAcks() > 0 {
		g.flows = make([]flow, n)
	}
	g.flows = g.flows[:n]
	m := &g.memories[flowMemory]
	for i := range g.flows {
		g.flows[i] = flow{}
		if w := m.view(uint32(i*regmap.FlowWords), regmap.FlowWords); w != nil {
			g.flows[i].Get(w)
		}
	}
	if t.recording {
		g.readTemplates()
	}
	g.limit = uint64(t.reg(regmap.GeneratorDescriptors))
	if stop := t.reg64(regmap.GeneratorStopAfter); stop > 0 {
		g.limit = min(g.limit, stop)
	}
	g.state, g.played, g.last = armed, 0, 0
}

func (g *generator) readTemplates() {
	if g.templates == nil {
		lanes := make([]int32, builtTemplates*olaf.MaxLanes)
		g.templates = make([][]int32, builtTemplates)
		for i := range g.templates {
			g.templates[i] = lanes[i*olaf.MaxLanes : (i+1)*olaf.MaxLanes]
		}
	}
	for i := range g.templates {
		for j := range g.templates[i] {
			if i == 0 {
				g.templates[i][j] = regmap.UnitLane
			} else {
				g.templates[i][j] = int32(g.memories[templateMemory].word(uint32(i*regmap.TemplateWords + j)))
			}
		}
	}
}

// end lets the packet on the bus finish.
func (g *generator) end(now int64) {
	g.state, g.next = stopping, max(now, g.busFree)
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
	at := g.played * regmap.DescriptorWords
	m := &g.memories[descriptorMemory]
	if at+regmap.DescriptorWords > uint64(m.loaded) {
		t.failGenerator(regmap.GeneratorEventsUnderrun)
		return
	}
	d := &g.incoming
	if w := m.view(uint32(at), regmap.DescriptorWords); w != nil {
		d.Get(w)
	} else {
		*d = regmap.Descriptor{} // a hole between loaded pages
	}
	if d.Time < g.last {
		t.failGenerator(regmap.GeneratorEventsUnsorted)
		return
	}
	if int(d.Flow) >= len(g.flows) || !g.flows[d.Flow].Enable || g.flows[d.Flow].Template >= builtTemplates {
		t.failGenerator(regmap.GeneratorEventsBadFlow)
		return
	}
	g.flow = &g.flows[d.Flow]
	if g.size = int(d.Length); g.size == 0 {
		g.size = int(g.flow.Length)
	}
	if g.size < olaf.HeaderBytes || g.size > int(olaf.MaxFrame) || g.size%olaf.LaneBytes != 0 {
		t.failGenerator(regmap.GeneratorEventsBadLength)
		return
	}
	g.last = d.Time
	g.due = g.zero + int64(d.Time)
	g.next = max(g.due, g.busFree)
}

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
	g.busFree = t.now + int64(g.size+beatBytes-1)/beatBytes
	t.ingress(g.flow, &g.incoming, g.size)
	t.fetch()
}

// genNS is the generation stamp of a packet sent at a device cycle.
func (g *generator) genNS(now int64) uint64 {
	return uint64(now-g.zero) * uint64(olaf.Cycle/olaf.Nanosecond) % olaf.GenModulus
}

// ingress is VNP4-1: parse, look up, and send to the queue, around it, or nowhere.
func (t *Twin) ingress(f *flow, d *regmap.Descriptor, size int) {
	if d.Flags&regmap.FlagNotOlaf != 0 || f.DestPort != olaf.UDPPort {
		t.bypass(f, d, size)
		return
	}
	if d.Flags&(regmap.FlagBadChecksum|regmap.FlagBadLength) != 0 {
		t.counters.own.Malformed++
		return
	}
	t.tables.refresh()
	if f.epoch != t.tables.epoch {
		t.identify(f)
	}
	if f.route != toQueue || !t.front.takes(f.cluster) {
		if f.route != toBypass {
			t.raise(regmap.QueueErrors, regmap.QueueErrorsClusterRange)
			t.raise(regmap.CommonErrors, regmap.CommonErrorsQueue)
		}
		t.bypass(f, d, size)
		return
	}
	if !t.queue.enabled || t.queue.frozen {
		t.counters.own.LostBeforeEngine++
		return
	}
	if f.misidentified {
		t.counters.own.Misidentified++
	}
	t.queue.arriving = t.header(d, size)
	t.queue.arriving.Cluster, t.queue.arriving.Worker = f.cluster, f.worker
	t.admit(f)
}

// header is the update that a descriptor describes, without identity.
func (t *Twin) header(d *regmap.Descriptor, size int) olaf.Update {
	u := olaf.Update{
		GenNS:  t.generator.genNS(t.now),
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
func (t *Twin) bypass(f *flow, d *regmap.Descriptor, size int) {
	t.counters.own.Bypassed++
	if !t.recording {
		return
	}
	t.queue.advance(t.now) // what left before is recorded before
	p := Packet{At: t.runTime(cycleTime(t.now)), Kind: Bypassed, Addresses: uplinkAddresses(f), Update: t.header(d, size)}
	p.Update.Cluster, p.Update.Worker = f.Cluster, f.Worker
	p.Lanes = t.tap.keepLanes(t.generator.templates[f.Template][:p.Update.Lanes])
	if d.Flags&regmap.FlagNotOlaf != 0 {
		p.Addresses.DestPort = notOlafPort
	}
	t.tap.packets = append(t.tap.packets, p)
}
