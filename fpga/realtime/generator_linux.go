package realtime

import (
	"encoding/binary"
	"math"
	"runtime/debug"
	"sync/atomic"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/regfile"
	"github.com/olafctl/olaf/fpga/regmap"
)

// States of the generator, as its register numbers them.
const (
	idle    = regmap.GeneratorStateStateIdle
	armed   = regmap.GeneratorStateStateArmed
	running = regmap.GeneratorStateStateRunning
	done    = regmap.GeneratorStateStateDone
	failed  = regmap.GeneratorStateStateError

	stopping = regmap.GeneratorStateStateStopping // frames are under way; see generatorState
)

// generator sends what the descriptors say, at the workers' end of the cable, on a thread of its own while it runs.
type generator struct {
	card   *Card
	out    *netlab.Socket
	hop    []byte // hardware addresses that frames get, the switch's and the workers'; nil where those of the flows will do
	state  atomic.Uint32
	events atomic.Uint32 // to be raised at the next look
	stop   atomic.Bool
	ended  chan struct{} // of the thread; nil before the first

	flows     []sender
	templates [regfile.Templates][]int32
	limit     uint64
	resume    func()       // the collector; nil while it is not held
	zero      atomic.Int64 // ns; when the run clock was 0
	lastNS    atomic.Int64 // when a frame left last
	arrived   bool         // what was sent last, as far as it can be expected

	mu       Lock
	counters regmap.GeneratorCounters
	unsent   error // the first frame that the interface refused
}

// sender is a flow and how its frames begin.
type sender struct {
	regmap.Flow
	addresses olaf.Addresses
}

func (g *generator) busy() bool {
	s := g.state.Load()
	return s == armed || s == running
}

// command obeys one bit of generator.command; a reason means that it was not done.
func (g *generator) command(bit uint32) *regfile.Reason {
	state := g.state.Load()
	refused := regfile.BadState("the generator's state does not allow it")
	switch bit {
	case regmap.GeneratorCommandArm:
		if g.busy() {
			return refused
		}
		return g.arm()
	case regmap.GeneratorCommandStart:
		if state != armed {
			return refused
		}
		g.start()
	case regmap.GeneratorCommandStop:
		switch state {
		case armed:
			g.state.Store(idle)
		case running:
			g.halt()
			if g.state.CompareAndSwap(running, done) {
				g.raise(regmap.GeneratorEventsDone)
			}
		}
	case regmap.GeneratorCommandAbort:
		g.halt()
		g.state.Store(idle)
	}
	return nil
}

// halt ends the thread and waits for it.
func (g *generator) halt() {
	g.stop.Store(true)
	if g.ended != nil {
		<-g.ended
	}
	g.collect()
}

// collect lets garbage be collected again: see start.
func (g *generator) collect() {
	if g.resume != nil {
		g.resume()
		g.resume = nil
	}
}

// roomBytes is how much garbage may gather while the generator runs.
const roomBytes = 1 << 30

// holdCollector keeps the collector from stopping all threads, until what it returns is called or memory gets short: it would wait
// for those that other programs keep from running, and frames would wait with it.
func holdCollector() (resume func()) {
	percent, limit := debug.SetGCPercent(-1), debug.SetMemoryLimit(roomBytes)
	return func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}

func (g *generator) raise(events uint32) {
	for old := g.events.Load(); !g.events.CompareAndSwap(old, old|events); old = g.events.Load() {
	}
}

// arm reads flows and templates, and refuses what this machine can't carry.
func (g *generator) arm() *regfile.Reason {
	file := &g.card.file
	memories := &file.Memories
	g.flows = make([]sender, file.Reg(regmap.GeneratorFlows))
	used := map[uint16]bool{}
	for i := range g.flows {
		f := &g.flows[i]
		memories.Flow(i, &f.Flow)
		f.addresses = olaf.Addresses{SrcMAC: f.SourceMAC, DstMAC: f.DestMAC, SrcIP: f.SourceIP, DstIP: f.DestIP,
			SrcPort: f.SourcePort}
		used[f.Template] = regfile.FlowUsable(&f.Flow)
	}
	for template, use := range used {
		if use {
			g.templates[template] = make([]int32, maxLanes)
			memories.Lanes(int(template), g.templates[template])
		}
	}
	g.limit = uint64(file.Reg(regmap.GeneratorDescriptors))
	if stop := file.Reg64(regmap.GeneratorStopAfter); stop > 0 {
		g.limit = min(g.limit, stop)
	}
	if limit := g.card.carry / 2; limit > 0 {
		if r := g.card.carries(limit, g.load(perSecond(limit, 1))); r != nil {
			return r
		}
	}
	g.state.Store(armed)
	return nil
}

// load is what a run asks of the machine. Bursts are frames that come about as close together as any, and closer than the machine takes them.
type load struct {
	frames, ns int64 // all, and from the first to the last
	size       int   // mean, in bytes
	bursts     int64
	before     int64 // frames that come before the last burst does
	beforeNS   int64 // from the first frame to the last burst
}

// span is how many frames come in what time: bursts and the gaps behind them where there are such, so that few bursts are no higher a rate than many.
func (l *load) span() (frames, ns int64) {
	if l.bursts > 1 && float64(l.before)*float64(l.ns) < float64(l.frames-1)*float64(l.beforeNS) {
		return l.before, l.beforeNS
	}
	return l.frames - 1, max(l.ns, 1)
}

// offered is frames a second.
func (l *load) offered() int64 {
	frames, ns := l.span()
	return perSecond(ns, frames)
}

// offers is that as a rate, to the bit.
func (l *load) offers() olaf.Rate {
	frames, ns := l.span()
	return olaf.Rate(float64(frames) * float64(8*l.size) * float64(olaf.Second/olaf.Nanosecond) / float64(ns))
}

// rate is that of packets a second of the load's frames.
func (l *load) rate(packets int64) olaf.Rate { return olaf.Rate(packets * 8 * int64(l.size)) }

// load adds up the descriptors, as far as they are loaded; frames that are apartNS apart are of two bursts in any case.
func (g *generator) load(apartNS int64) *load {
	closest := int64(math.MaxInt64)
	g.planned(func(n int, atNS, sinceNS int64, _ int) {
		if n > 0 {
			closest = min(closest, sinceNS)
		}
	})
	apartNS = min(apartNS, max(burstSpread*min(closest, apartNS), 2*cycleNS))
	l, bytes := new(load), 0
	g.planned(func(n int, atNS, sinceNS int64, size int) {
		if n == 0 || sinceNS >= apartNS {
			l.bursts, l.before, l.beforeNS = l.bursts+1, l.frames, atNS
		}
		bytes += size
		l.frames, l.ns = l.frames+1, atNS
	})
	l.size = bytes / int(max(l.frames, 1))
	return l
}

// burstSpread is how many times as far apart as the closest ones frames of one burst are at most.
const burstSpread = 4

// planned hands out each descriptor that is loaded: its number, when it is due after the first one and after the one before, and its length.
func (g *generator) planned(each func(n int, atNS, sinceNS int64, size int)) {
	var d regmap.Descriptor
	var first, last uint64
	for n := range g.limit {
		if !g.card.file.Memories.Descriptor(n, &d) || int(d.Flow) >= len(g.flows) {
			return
		}
		if n == 0 {
			first, last = d.Time, d.Time
		}
		size, _ := regfile.FrameLength(&d, &g.flows[d.Flow].Flow)
		each(int(n), int64(d.Time-first)*cycleNS, int64(d.Time-last)*cycleNS, size)
		last = d.Time
	}
}

func (g *generator) start() {
	g.halt()
	g.stop.Store(false)
	g.resume = holdCollector()
	g.arrived = false
	g.state.Store(running)
	g.ended = make(chan struct{})
	began := make(chan int64)
	go g.run(began)
	zero := <-began
	g.zero.Store(zero)
	g.card.file.Set64(regmap.GeneratorStartCycle, uint64(g.card.cycle(zero)))
}

// run plays the descriptors. The run clock begins when the thread is there, which may take a while.
func (g *generator) run(began chan<- int64) {
	defer close(g.ended)
	OwnThread(Senders)
	zero := g.card.clock.now()
	began <- zero
	var last uint64
	buf := make([]byte, olaf.FrameSize(maxLanes))
	var d regmap.Descriptor
	for n := range g.limit {
		f, size, fault := g.next(n, last, &d)
		if fault != 0 {
			g.raise(regmap.GeneratorEventsError | fault)
			g.state.CompareAndSwap(running, failed)
			return
		}
		last = d.Time
		due := zero + int64(d.Time)*cycleNS
		if !g.card.clock.until(due, senderSpinNS, &g.stop) {
			return // whoever stops it says what its state is
		}
		now := g.card.clock.now()
		frame := g.encode(buf, f, &d, size, uint64(now-zero))
		err := g.out.Send(frame)
		g.lastNS.Store(now)
		g.count(len(frame), now-due, err)
	}
	if g.state.CompareAndSwap(running, done) {
		g.raise(regmap.GeneratorEventsDone)
	}
}

// next reads descriptor n and says what is wrong with it, as a bit of generator.events.
func (g *generator) next(n, last uint64, d *regmap.Descriptor) (f *sender, size int, fault uint32) {
	switch {
	case !g.card.file.Memories.Descriptor(n, d):
		return nil, 0, regmap.GeneratorEventsUnderrun
	case d.Time < last:
		return nil, 0, regmap.GeneratorEventsUnsorted
	case int(d.Flow) >= len(g.flows) || !regfile.FlowUsable(&g.flows[d.Flow].Flow):
		return nil, 0, regmap.GeneratorEventsBadFlow
	}
	f = &g.flows[d.Flow]
	size, ok := regfile.FrameLength(d, &f.Flow)
	if !ok || size > int(olaf.FrameSize(maxLanes)) {
		return nil, 0, regmap.GeneratorEventsBadLength
	}
	return f, size, 0
}

// destPortAt is where a frame's UDP destination port stands; a flow may name another than OLAF's.
const destPortAt = 36

func (g *generator) encode(buf []byte, f *sender, d *regmap.Descriptor, size int, genNS uint64) []byte {
	u := olaf.Update{
		GenNS: genNS % olaf.GenModulus, Seq: d.Sequence, Reward: d.Reward, Cluster: f.Cluster, Worker: f.Worker,
		Count: 1, Lanes: uint16((size - olaf.HeaderBytes) / olaf.LaneBytes),
	}
	if d.Flags&regmap.FlagRetransmission != 0 {
		u.Flags = olaf.Retransmission
	}
	n, err := olaf.EncodeUpdate(buf, &f.addresses, &u, g.templates[f.Template][:u.Lanes])
	if err != nil {
		panic("realtime: a frame of a checked length can't be encoded: " + err.Error()) // next saw to its length
	}
	binary.BigEndian.PutUint16(buf[destPortAt:], f.DestPort)
	copy(buf, g.hop)
	return buf[:n]
}

func (g *generator) count(bytes int, late int64, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil {
		if g.unsent == nil {
			g.unsent = err
		}
		return
	}
	c := &g.counters
	c.SentPackets++
	c.SentBytes += uint64(bytes)
	if cycles := late / cycleNS; cycles > 0 {
		c.LatePackets++
		c.LateCyclesSum += uint64(cycles)
		c.LateCyclesMax = max(c.LateCyclesMax, uint64(cycles))
	}
}

// counted are the counters now; with clear they begin anew.
func (g *generator) counted(clear bool) (c regmap.GeneratorCounters, unsent error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c, unsent = g.counters, g.unsent
	if clear {
		g.counters, g.unsent = regmap.GeneratorCounters{}, nil
	}
	return c, unsent
}
