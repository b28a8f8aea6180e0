package lockstep

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/netip"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/regmap"
)

// step is a register write, a burst of writes, or a sleep.
type step struct {
	addr, value uint32
	words       []uint32
	sleep       int64 // cycles
}

func (s *step) String() string {
	switch {
	case s.sleep > 0:
		return fmt.Sprintf("%d cycles", s.sleep)
	case s.words != nil:
		return fmt.Sprintf("a write of %d words to %s", len(s.words), nameOf(s.addr))
	}
	return fmt.Sprintf("a write of %#x to %s", s.value, nameOf(s.addr))
}

// Workers that every table must contain (four clusters of three), and other senders.
const (
	clusters   = 4
	workers    = 12
	stranger   = workers
	impostor   = workers + 1 // claims to be another worker
	passenger  = workers + 2 // its port is not OLAF's port
	flows      = workers + 3
	bigLanes   = 1 // template with saturating sums
	shortFrame = 64
	longFrame  = 9036
)

// Worker is an entry in the cards' table of workers.
type Worker struct {
	Address netip.Addr
	Cluster olaf.ClusterID
	ID      olaf.WorkerID
}

// TableWorkers returns the workers that the tables of both cards must contain.
func TableWorkers() []Worker {
	all := make([]Worker, workers)
	for w := range all {
		all[w] = Worker{netip.AddrFrom4(addressOf(w)), clusterOf(w), olaf.WorkerID(w)}
	}
	return all
}

// ServerAddress returns the address of the parameter server.
func ServerAddress() netip.Addr { return netip.AddrFrom4([4]byte{10, 1, 0, 1}) }

func addressOf(w int) [4]byte            { return [4]byte{10, 0, 0, byte(w + 1)} }
func clusterOf(w int) olaf.ClusterID     { return olaf.ClusterID(w % clusters) }
func pickOne[T any](s *story, of ...T) T { return of[s.IntN(len(of))] }
func (s *story) chance(percent int) bool { return s.IntN(100) < percent }

// story is a stream of steps with its parameters. Parameters that its kind does not set are random.
type story struct {
	*rand.Rand
	seed  uint64
	round int64 // index among the streams of this kind
	kind  string
	steps []step

	discipline string
	depth      int
	rate       float64 // bytes per cycle, 0 for no limiter
	sizes      func() int
	gap        func(size int) uint64 // cycles to the next frame
	worker     func() int
	reward     func() int32
	flags      func() uint16
	template   uint16
	frames     int
	piece      func(i int) int64 // length of a part, in cycles; during runs after it
	during     func(*story)
}

// kinds lists the kinds of streams. Consecutive seeds use consecutive kinds.
var kinds = []struct {
	name string
	set  func(*story)
}{
	{"random", func(*story) {}},
	{"train onto a locked head", func(s *story) {
		s.rate, s.discipline = pickOne(s, 2.5, 5.0), "olaf"
		first := s.IntN(workers)
		s.worker = func() int { return (first + clusters*s.IntN(3)) % workers }
	}},
	{"full queue", func(s *story) { s.rate, s.depth = pickOne(s, 2.5, 1.25), 1+s.IntN(2) }},
	{"every length", func(s *story) {
		at := shortFrame + int(s.seed)*52%(longFrame-shortFrame)/4*4
		s.sizes = func() int {
			if at += olaf.LaneBytes; at > longFrame {
				at = shortFrame
			}
			return at
		}
		s.rate = pickOne(s, 0.0, 40)
	}},
	{"saturation", func(s *story) {
		s.template, s.discipline, s.rate = bigLanes, "olaf", 5
		s.reward = func() int32 { return pickOne[int32](s, 1<<31-1, -1<<31, 1<<30) }
	}},
	{"reconfiguration", func(s *story) {
		s.during = func(s *story) {
			if s.chance(40) {
				s.addWrite(regmap.QueueControl, 0)
				s.addSleep(int64(s.IntN(400)) + 1)
				s.configureQueue()
			}
		}
	}},
	{"reset", func(s *story) {
		s.during = func(s *story) {
			if s.chance(25) {
				s.addWrite(regmap.CommonCommand, regmap.CommonCommandReset)
				s.addSleep(int64(s.IntN(20)) + 1)
				s.setUp()
			}
		}
	}},
	{"reset at every phase", func(s *story) {
		s.everyPhase()
		s.during = func(s *story) {
			s.addWrite(regmap.CommonCommand, regmap.CommonCommandReset)
			s.addSleep(1)
			s.setUp()
		}
	}},
	{"reconfiguration at every phase", func(s *story) {
		s.everyPhase()
		s.during = func(s *story) {
			s.addWrite(regmap.QueueControl, 0)
			s.addSleep(1)
			s.configureQueue()
			s.addSleep(200) // queued frames leave meanwhile
			s.setUp()
		}
	}},
	{"malformed and strange", func(s *story) {
		s.worker = func() int { return s.IntN(flows) }
		s.flags = func() uint16 {
			return pickOne[uint16](s, 0, 0, regmap.FlagBadChecksum, regmap.FlagBadLength, regmap.FlagNotOlaf,
				regmap.FlagRetransmission)
		}
	}},
	{"frozen, inspected and flushed", func(s *story) { s.during = (*story).disturb }},
	{"short frames at the line", func(s *story) {
		s.sizes = func() int { return shortFrame + olaf.LaneBytes*s.IntN(20) }
		s.gap = func(int) uint64 { return 0 }
		s.frames = 250
	}},
	{"long frames at the line", func(s *story) {
		s.sizes = func() int { return pickOne(s, longFrame, longFrame-4, 1500, 4096) }
		s.rate = pickOne(s, 0, 63.5, 40)
		s.gap = func(int) uint64 { return uint64(s.IntN(20)) }
		s.frames = 40
	}},
}

// newStory generates the stream for a seed.
func newStory(seed uint64) *story {
	s := &story{Rand: rand.New(rand.NewPCG(seed, 0x6f6c6166)), seed: seed, round: int64(seed / uint64(len(kinds)))}
	kind := &kinds[seed%uint64(len(kinds))]
	s.kind = kind.name
	s.discipline = pickOne(s, "olaf", "olaf", "olaf", "fifo")
	s.depth = 1 + s.IntN(8)
	s.rate = pickOne(s, 0.0, 64, 40, 20, 10, 7.3, 2.5)
	usual := pickOne(s, 256, 256, 1500, 0)
	s.sizes = func() int {
		if usual != 0 {
			return usual
		}
		return shortFrame + olaf.LaneBytes*s.IntN(100)
	}
	load := pickOne(s, 0.5, 1, 1.5, 3)
	s.gap = func(size int) uint64 {
		rate := s.rate
		rate = cmp.Or(rate, 64)
		return uint64(s.Float64() * 2 * float64(size) / rate / load)
	}
	s.worker = func() int { return s.IntN(workers) }
	s.reward = func() int32 { return int32(s.IntN(4096)) - 2048 }
	s.flags = func() uint16 { return pickOne[uint16](s, 0, 0, 0, regmap.FlagRetransmission) }
	s.frames = 20 + s.IntN(150)
	s.piece = func(int) int64 { return int64(1 + s.IntN(pickOne(s, 10, 200, 1500))) }
	s.during = func(s *story) {}
	kind.set(s)
	s.setUp()
	for i := range pieces {
		s.addSleep(s.piece(i))
		s.during(s)
	}
	return s
}

// pieces is the number of parts in a stream. Each part is followed by an action.
const pieces = 14

// everyPhase makes each part one cycle longer than the previous part, continuing over all seeds of this kind, under
// dense traffic. The actions therefore occur at every phase of the logic.
func (s *story) everyPhase() {
	from := s.round * pieces
	s.piece = func(i int) int64 { return from + int64(i) + 1 }
	s.gap = func(int) uint64 { return uint64(s.IntN(6)) }
	s.frames = 40 + int(from/2)
}

func (s *story) addWrite(addr, value uint32) {
	s.steps = append(s.steps, step{addr: addr, value: value})
}

func (s *story) addBurst(memory, address uint32, words []uint32) {
	s.addWrite(regmap.GeneratorMemSelect, memory)
	s.addWrite(regmap.GeneratorMemAddress, address)
	s.steps = append(s.steps, step{addr: regmap.GeneratorMemData, words: words})
}

func (s *story) addSleep(cycles int64) { s.steps = append(s.steps, step{sleep: cycles}) }

// setUp adds steps that configure the queue, load the generator and start it.
func (s *story) setUp() {
	s.configureQueue()
	s.loadGenerator()
	s.addWrite(regmap.GeneratorCommand, regmap.GeneratorCommandArm)
	s.addSleep(30) // time for prefetching the first descriptors
	s.addWrite(regmap.GeneratorCommand, regmap.GeneratorCommandStart)
}

// configureQueue adds writes of a random queue configuration. If the queue is not empty, both cards must refuse the
// same writes.
func (s *story) configureQueue() {
	kind, _ := engine.FindDiscipline(s.discipline)
	mode := kind.Code
	for _, bit := range []uint32{regmap.QueueModeRewardFilter, regmap.QueueModeFreeOnStart,
		regmap.QueueModeProvenance} {
		if s.chance(40) {
			mode |= bit
		}
	}
	s.addWrite(regmap.QueueMode, mode)
	s.addWrite(regmap.QueueDepth, uint32(s.depth))
	s.addWrite(regmap.QueueRewardThreshold, uint32(s.IntN(600)))
	s.addWrite(regmap.QueueLimiterControl, 0)
	if s.rate != 0 {
		s.addWrite(regmap.QueueLimiterControl, regmap.QueueLimiterControlEnable)
		s.addWrite(regmap.QueueLimiterIncrement, uint32(s.rate*(1<<24)))
	}
	s.addWrite(regmap.QueueLimiterOverhead, pickOne[uint32](s, 0, 0, 24))
	if s.chance(30) {
		s.addWrite(regmap.QueueDequeueCycles, uint32(s.IntN(3)))
		s.addWrite(regmap.QueueMergeCycles, uint32(s.IntN(3)))
	}
	s.addWrite(regmap.QueueControl, regmap.QueueControlEnable)
}

// loadGenerator adds writes of the flows, the descriptors and, for kinds that use one, a template.
func (s *story) loadGenerator() {
	words := make([]uint32, flows*regmap.FlowWords)
	for w := range flows {
		f := regmap.Flow{
			SourceIP: addressOf(w), DestIP: ServerAddress().As4(), SourceMAC: [6]byte{2, 0, 0, 0, 0, byte(w)},
			DestMAC:    [6]byte{2, 0, 0, 0, 1, 0},
			SourcePort: uint16(40000 + w), DestPort: olaf.UDPPort, Cluster: clusterOf(w), Worker: olaf.WorkerID(w),
			Length:   256,
			Template: s.template, Enable: true,
		}
		switch w {
		case impostor:
			f.SourceIP = addressOf(3)
		case passenger:
			f.SourceIP, f.DestPort = addressOf(4), 53
		}
		f.Put(words[w*regmap.FlowWords:])
	}
	s.addBurst(1, 0, words)
	if s.template != 0 {
		lanes := make([]uint32, regmap.TemplateWords)
		for i := range lanes {
			lanes[i] = s.Uint32()
		}
		s.addBurst(2, regmap.TemplateWords*uint32(s.template), lanes)
	}
	words = make([]uint32, s.frames*regmap.DescriptorWords)
	at := uint64(0)
	for i := range s.frames {
		d := regmap.Descriptor{
			Time: at, Flow: uint16(s.worker()), Length: uint16(s.sizes()), Flags: s.flags(), Sequence: uint32(i),
			Reward: s.reward(),
		}
		d.Put(words[i*regmap.DescriptorWords:])
		at += s.gap(int(d.Length))
	}
	s.addBurst(0, 0, words)
	s.addWrite(regmap.GeneratorFlows, flows)
	s.addWrite(regmap.GeneratorDescriptors, uint32(s.frames))
}

// disturb adds a random register access, such as an operator might make during traffic. Some of these accesses must be
// refused.
func (s *story) disturb() {
	switch s.IntN(7) {
	case 0:
		s.addWrite(regmap.QueueControl, regmap.QueueControlEnable|regmap.QueueControlFreeze)
		for i := range uint32(s.IntN(4)) {
			s.addWrite(regmap.QueueInspectIndex, i)
			s.addSleep(int64(1 + s.IntN(20)))
		}
		s.addWrite(regmap.QueueControl, regmap.QueueControlEnable)
	case 1:
		s.addWrite(regmap.QueueCommand, regmap.QueueCommandFlush)
	case 2:
		s.addWrite(regmap.CommonCommand, regmap.CommonCommandClear)
	case 3:
		s.addWrite(regmap.QueueClusterIndex, uint32(s.IntN(clusters+1)))
	case 4:
		s.addWrite(pickOne[uint32](s, regmap.QueueDepth, regmap.QueueMode, regmap.CommonMagic, regmap.QueueInspectIndex,
			0x101FFC, regmap.GeneratorFlows), s.Uint32N(9))
	case 5:
		s.addWrite(regmap.GeneratorCommand, pickOne[uint32](s, regmap.GeneratorCommandStop, regmap.GeneratorCommandStart))
	case 6:
		s.addWrite(regmap.CommonErrors, 0xf0f)
	}
}
