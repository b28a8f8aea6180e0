package realtime

import (
	"cmp"
	"encoding/binary"
	"math"
	"runtime/debug"
	"sync/atomic"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/regfile"
	"github.com/olafctl/olaf/fpga/regmap"
)

// Generator states of the register map.
const (
	idle    = regmap.GeneratorStateStateIdle
	armed   = regmap.GeneratorStateStateArmed
	running = regmap.GeneratorStateStateRunning
	done    = regmap.GeneratorStateStateDone
	failed  = regmap.GeneratorStateStateError

	stopping = regmap.GeneratorStateStateStopping // frames are still in flight; see generatorState
)

// generator sends frames according to descriptors, from the workers' end of a cable. It uses a separate thread while it
// runs.
type generator struct {
	card   *Card
	out    *netlab.Socket
	at     *netlab.Interface // interface at which it sends; nil for the workers' end of the cable
	most   int               // longest frame that the interface accepts, in bytes; 0 for the build's limit
	hop    []byte            // MAC addresses for frames: the switch's and the workers'; nil to use those of the flows
	state  atomic.Uint32
	events atomic.Uint32 // event bits to raise at the next poll
	stop   atomic.Bool
	ended  chan struct{} // closed when the thread ends; nil before the first run

	gate      func(olaf.WorkerID, olaf.Time) bool // gate for the next run; if nil, every update is sent
	withheld  atomic.Int64                        // number of updates that gate rejected
	flows     []sender
	templates [regfile.Templates][]int32
	limit     uint64
	resume    func()       // resumes the garbage collector; nil if it is not paused
	zero      atomic.Int64 // in ns; time at which the run clock was 0
	lastNS    atomic.Int64 // in ns; time at which the last frame left
	arrived   bool         // all sent frames have arrived or were given up

	mu       Lock
	counters regmap.GeneratorCounters
	unsent   error // error of the first frame rejected by the interface
}

// sender contains a flow and the addresses for its frames.
type sender struct {
	regmap.Flow
	addresses olaf.Addresses
}

func (g *generator) busy() bool {
	s := g.state.Load()
	return s == armed || s == running
}

// runCommand executes one bit of register generator.command. It returns a reason if the command is rejected, and
// otherwise nil.
func (g *generator) runCommand(bit uint32) *regfile.Reason {
	state := g.state.Load()
	refused := regfile.BadState("the generator's state does not allow it")
	switch bit {
	case regmap.GeneratorCommandArm:
		if g.busy() {
			return refused
		}
		return g.armRun()
	case regmap.GeneratorCommandStart:
		if state != armed {
			return refused
		}
		g.startRun()
	case regmap.GeneratorCommandStop:
		switch state {
		case armed:
			g.state.Store(idle)
		case running:
			g.stopThread()
			if g.state.CompareAndSwap(running, done) {
				g.raiseEvents(regmap.GeneratorEventsDone)
			}
		}
	case regmap.GeneratorCommandAbort:
		g.stopThread()
		g.state.Store(idle)
	}
	return nil
}

// stopThread stops the generator's thread and waits until it has ended.
func (g *generator) stopThread() {
	g.stop.Store(true)
	if g.ended != nil {
		<-g.ended
	}
	g.resumeCollector()
}

// resumeCollector resumes the garbage collector, which is paused during a run.
func (g *generator) resumeCollector() {
	if g.resume != nil {
		g.resume()
		g.resume = nil
	}
}

// roomBytes limits the garbage that may accumulate while the garbage collector is paused.
const roomBytes = 1 << 30

// holdCollector pauses the garbage collector until resume is called or memory runs low. A collection would wait for
// threads that other programs prevent from running, and frames would be late.
func holdCollector() (resume func()) {
	percent, limit := debug.SetGCPercent(-1), debug.SetMemoryLimit(roomBytes)
	return func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}

func (g *generator) raiseEvents(events uint32) {
	for old := g.events.Load(); !g.events.CompareAndSwap(old, old|events); old = g.events.Load() {
	}
}

// armRun reads flows and templates, and rejects loads that exceed this machine's capacity.
func (g *generator) armRun() *regfile.Reason {
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
		if r := g.card.checkLoad(limit, g.sumLoad(perSecond(limit, 1))); r != nil {
			return r
		}
	}
	g.state.Store(armed)
	return nil
}

// load contains the number of frames that a run sends, their mean size, and the time in which they are sent. A burst is
// a sequence of frames at about the minimum spacing, which is faster than the machine can process them.
type load struct {
	frames, ns int64 // number of frames, and time from the first to the last
	size       int   // mean size in bytes
	bursts     int64
	before     int64 // frames before the last burst
	beforeNS   int64 // time from the first frame to the start of the last burst
}

// measureSpan returns a number of frames and the time in which they are sent, from which rates are calculated. If there
// are several bursts, it usually covers all but the last one, including the gaps, so that the rate does not depend on
// the number of bursts.
func (l *load) measureSpan() (frames, ns int64) {
	if l.bursts > 1 && float64(l.before)*float64(l.ns) < float64(l.frames-1)*float64(l.beforeNS) {
		return l.before, l.beforeNS
	}
	return l.frames - 1, max(l.ns, 1)
}

// framesPerSecond returns the load's frame rate.
func (l *load) framesPerSecond() int64 {
	frames, ns := l.measureSpan()
	return perSecond(ns, frames)
}

// offeredRate returns the offered load in bits per second.
func (l *load) offeredRate() olaf.Rate {
	frames, ns := l.measureSpan()
	return olaf.Rate(float64(frames) * float64(8*l.size) * float64(olaf.Second/olaf.Nanosecond) / float64(ns))
}

// rateOf converts a frame rate to bits per second, with the load's mean frame size.
func (l *load) rateOf(packets int64) olaf.Rate { return olaf.Rate(packets * 8 * int64(l.size)) }

// sumLoad calculates the load of all loaded descriptors. Frames that are at least apartNS apart always belong to
// different bursts.
func (g *generator) sumLoad(apartNS int64) *load {
	closest := int64(math.MaxInt64)
	g.visitDescriptors(func(n int, atNS, sinceNS int64, _ int) {
		if n > 0 {
			closest = min(closest, sinceNS)
		}
	})
	apartNS = min(apartNS, max(burstSpread*min(closest, apartNS), 2*cycleNS))
	l, bytes := new(load), 0
	g.visitDescriptors(func(n int, atNS, sinceNS int64, size int) {
		if n == 0 || sinceNS >= apartNS {
			l.bursts, l.before, l.beforeNS = l.bursts+1, l.frames, atNS
		}
		bytes += size
		l.frames, l.ns = l.frames+1, atNS
	})
	l.size = bytes / int(max(l.frames, 1))
	return l
}

// burstSpread is the maximum ratio of the spacing within a burst to the minimum spacing.
const burstSpread = 4

// visitDescriptors calls each for every loaded descriptor, with its number, its due time after the first and after the
// previous descriptor, and the length of its frame.
func (g *generator) visitDescriptors(each func(n int, atNS, sinceNS int64, size int)) {
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

func (g *generator) startRun() {
	g.stopThread()
	g.stop.Store(false)
	g.resume = holdCollector()
	g.arrived = false
	g.state.Store(running)
	g.ended = make(chan struct{})
	began := make(chan int64)
	go g.playDescriptors(began, g.gate)
	zero := <-began
	g.zero.Store(zero)
	g.card.file.Set64(regmap.GeneratorStartCycle, uint64(g.card.cycle(zero)))
}

// playDescriptors sends the frames of all descriptors. The run clock begins when the thread is ready, which may take
// some time.
func (g *generator) playDescriptors(began chan<- int64, gate func(olaf.WorkerID, olaf.Time) bool) {
	defer close(g.ended)
	OwnThread(Senders)
	zero := g.card.clock.now()
	began <- zero
	var last uint64
	buf := make([]byte, olaf.FrameSize(maxLanes))
	var d regmap.Descriptor
	for n := range g.limit {
		f, size, fault := g.readDescriptor(n, last, &d)
		if fault != 0 {
			g.raiseEvents(regmap.GeneratorEventsError | fault)
			g.state.CompareAndSwap(running, failed)
			return
		}
		last = d.Time
		due := zero + int64(d.Time)*cycleNS
		if !g.card.clock.waitUntil(due, senderSpinNS, &g.stop) {
			return // the function that stopped the generator sets the state
		}
		now := g.card.clock.now()
		if gate != nil && !gate(f.Worker, olaf.Time(now)*olaf.Time(olaf.Nanosecond)) {
			g.withheld.Add(1)
			continue
		}
		frame := g.encodeFrame(buf, f, &d, size, uint64(now-zero))
		err := g.out.Send(frame)
		g.lastNS.Store(now)
		g.countSent(len(frame), now-due, err)
	}
	if g.state.CompareAndSwap(running, done) {
		g.raiseEvents(regmap.GeneratorEventsDone)
	}
}

// maxBytes returns the length of the largest frame that can be sent.
func (g *generator) maxBytes() int { return cmp.Or(g.most, int(olaf.FrameSize(maxLanes))) }

// readDescriptor reads descriptor n and returns its sender and the length of its frame. If the descriptor is invalid,
// fault is a bit in generator.events.
func (g *generator) readDescriptor(n, last uint64, d *regmap.Descriptor) (f *sender, size int, fault uint32) {
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
	if !ok || size > g.maxBytes() {
		return nil, 0, regmap.GeneratorEventsBadLength
	}
	return f, size, 0
}

// destPortAt is the offset of the UDP destination port in a frame. It is needed because a flow or a descriptor may use
// another port than OLAF's.
const destPortAt = 36

func (g *generator) encodeFrame(buf []byte, f *sender, d *regmap.Descriptor, size int, genNS uint64) []byte {
	u := olaf.Update{
		GenNS: genNS % olaf.GenModulus, Seq: d.Sequence, Reward: d.Reward, Cluster: f.Cluster, Worker: f.Worker,
		Count: 1, Lanes: uint16((size - olaf.HeaderBytes) / olaf.LaneBytes),
	}
	if d.Flags&regmap.FlagRetransmission != 0 {
		u.Flags = olaf.Retransmission
	}
	n, err := olaf.EncodeUpdate(buf, &f.addresses, &u, g.templates[f.Template][:u.Lanes])
	if err != nil {
		panic("realtime: a frame of a checked length can't be encoded: " + err.Error()) // readDescriptor checked the length
	}
	port := f.DestPort
	if d.Flags&regmap.FlagNotOlaf != 0 {
		port = regmap.NotOlafPort
	}
	binary.BigEndian.PutUint16(buf[destPortAt:], port)
	copy(buf, g.hop)
	return buf[:n]
}

func (g *generator) countSent(bytes int, late int64, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil {
		g.unsent = cmp.Or(g.unsent, err)
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

// readCounters returns the generator's counters and clears them if clear is set. unsent is the error of the first frame
// that could not be sent.
func (g *generator) readCounters(clear bool) (c regmap.GeneratorCounters, unsent error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c, unsent = g.counters, g.unsent
	if clear {
		g.counters, g.unsent = regmap.GeneratorCounters{}, nil
	}
	return c, unsent
}
