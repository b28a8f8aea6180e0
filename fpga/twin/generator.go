package twin

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/regfile"
	"github.com/olafctl/olaf/fpga/regmap"
)

// state is the generator's state, with the same values as in the state register.
type state uint8

const (
	idle state = iota
	armed
	running
	stopping // the last packet is still on the bus
	done
	failed
)

// generator sends a packet for each descriptor, at the descriptor's cycle on the run clock. This clock begins at the
// start command.
type generator struct {
	flows     []flow
	templates [][]int32 // lanes of each template, if Config.Wire is set

	state    state
	zero     int64 // device cycle at which the run clock was 0
	limit    uint64
	played   uint64
	last     uint64 // time of the previous descriptor
	busFree  int64  // device cycle at which the previous packet has left the bus
	next     int64  // device cycle of the next event, never if there is none
	wish     int64  // value that next would have if the bus were free
	due      int64  // cycle for which the descriptor is scheduled
	size     int
	flow     *flow
	incoming regmap.Descriptor
}

func (g *generator) reset() {
	*g = generator{flows: g.flows[:0], templates: g.templates, next: never, busFree: g.busFree}
}

// busy reports whether the generator's configuration and memories are locked because it is armed or running.
func (g *generator) busy() bool { return g.state == armed || g.state == running || g.state == stopping }

// generatorCommand executes one bit of register generator.command. It returns false if the generator's state does not
// permit the command.
func (t *Twin) generatorCommand(bit uint32) bool {
	g := &t.generator
	switch bit {
	case regmap.GeneratorCommandArm:
		if g.busy() {
			return false
		}
		t.armGenerator()
	case regmap.GeneratorCommandStart:
		if g.state != armed {
			return false
		}
		g.state = running
		if t.cfg.ReadPorts == 0 {
			g.zero, g.busFree = t.now, t.now
		} else { // the logic starts in the next cycle
			g.zero = t.now + 1
		}
		t.set64(regmap.GeneratorStartCycle, uint64(g.zero))
		t.fetchDescriptor()
	case regmap.GeneratorCommandStop:
		switch g.state {
		case armed:
			g.state = idle
		case running:
			g.finish(t.now)
		}
	case regmap.GeneratorCommandAbort:
		g.state, g.next = idle, never
	}
	return true
}

// armGenerator reads the flow table. It does not overwrite flows that are still used by frames in the queue.
func (t *Twin) armGenerator() {
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

// finish stops the generator after the packet that is on the bus.
func (g *generator) finish(now int64) {
	g.state = stopping
	g.waitUntil(now)
}

// failGenerator puts the generator into the error state and sets the event bits for the reason.
func (t *Twin) failGenerator(reason uint32) {
	t.generator.state, t.generator.next = failed, never
	t.raise(regmap.GeneratorEvents, regmap.GeneratorEventsError|reason)
	t.raise(regmap.CommonErrors, regmap.CommonErrorsGenerator)
}

// fetchDescriptor reads the next descriptor and schedules its packet.
func (t *Twin) fetchDescriptor() {
	g := &t.generator
	if g.played >= g.limit {
		g.finish(t.now)
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
	g.waitUntil(g.due)
}

// waitUntil schedules the next event for the given cycle, or for the first later cycle in which the bus is free.
func (g *generator) waitUntil(cycle int64) { g.wish, g.next = cycle, max(cycle, g.busFree) }

// beatBytes is the width of the data path in bytes per cycle.
const beatBytes = 64

// fire handles the event that is due, by sending a packet or ending the run.
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
		t.classify(g.flow, &g.incoming, g.size, g.genNS(t.now))
	default:
		t.sendFrame(g.flow, &g.incoming, g.size)
	}
	t.fetchDescriptor()
}

// genNS returns the generation timestamp of a packet that is sent in device cycle now.
func (g *generator) genNS(now int64) uint64 {
	return uint64(now-g.zero) * uint64(olaf.Cycle/olaf.Nanosecond) % olaf.GenModulus
}

// classify models VNP4-1. It parses a frame and looks up its source. It then passes the frame with its generation
// timestamp to the queue, sends it around the queue, or drops it.
func (t *Twin) classify(f *flow, d *regmap.Descriptor, size int, genNS uint64) fate {
	if d.Flags&regmap.FlagNotOlaf != 0 || f.DestPort != olaf.UDPPort {
		t.bypassQueue(f, d, size, genNS)
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
		t.identifyFlow(f)
	}
	if f.route != toQueue || !t.front.hasSegment(f) {
		if f.route != toBypass {
			t.raise(regmap.QueueErrors, regmap.QueueErrorsClusterRange)
			t.raise(regmap.CommonErrors, regmap.CommonErrorsQueue)
		}
		t.bypassQueue(f, d, size, genNS)
		return bypassed
	}
	if !t.queue.enabled || t.queue.frozen {
		t.counters.own.LostBeforeEngine++
		return gone
	}
	if f.misidentified {
		t.counters.own.Misidentified++
	}
	t.queue.arriving = t.updateHeader(d, size, genNS)
	t.queue.arriving.Cluster, t.queue.arriving.Worker = f.cluster, f.worker
	return t.admitUpdate(f)
}

// updateHeader returns the update for a descriptor, without the identity of its sender.
func (t *Twin) updateHeader(d *regmap.Descriptor, size int, genNS uint64) olaf.Update {
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

// bypassQueue sends a frame to the parameter server without passing it through the queue.
func (t *Twin) bypassQueue(f *flow, d *regmap.Descriptor, size int, genNS uint64) {
	t.counters.own.Bypassed++
	if !t.recording {
		return
	}
	t.queue.advance(t.now) // record earlier departures first
	t.deliverSums()
	p := Packet{At: t.runTime(cycleTime(t.now) + t.bypassLatency(size)), Kind: Bypassed, Addresses: uplinkAddresses(f),
		Update: t.updateHeader(d, size, genNS),
		Seg:    f.Seg, ToS: f.ToS, Format: f.Format}
	p.Update.Cluster, p.Update.Worker = f.Cluster, f.Worker
	p.Lanes = t.tap.keepLanes(t.lanesOf(f)[:p.Update.Lanes])
	if d.Flags&regmap.FlagNotOlaf != 0 {
		p.Addresses.DestPort = regmap.NotOlafPort
	}
	t.tap.packets = append(t.tap.packets, p)
}
