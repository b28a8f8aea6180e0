package twin

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/regmap"
)

// The blocks lie side by side, so one array finds the register of an address.
const (
	firstAddress = regmap.CommonBase
	layoutWords  = (regmap.AggregatorBase + regmap.AggregatorBytes - firstAddress) / 4
)

// layout is the register at every word; it never changes and is shared by replicas.
type layout [layoutWords]entry

// entry is one word of the map.
type entry struct {
	register *regmap.Register // nil where nothing answers
	block    *regmap.Block
	high     bool // the upper word of a 64-bit register
	writable uint32
}

func (e *entry) name() string { return e.block.Name + "." + e.register.Name }

func (e *entry) reset() uint32 {
	if e.high {
		return uint32(e.register.Reset >> 32)
	}
	return uint32(e.register.Reset)
}

func newLayout(capabilities uint32) *layout {
	l := new(layout)
	for _, b := range regmap.BuiltBlocks(capabilities) {
		for i := range b.Registers {
			r := &b.Registers[i]
			for off := uint32(0); off < r.Bytes(); off += 4 {
				l[(b.Base+r.Offset+off-firstAddress)/4] = entry{r, &b, off == 4, r.Writable()}
			}
		}
	}
	return l
}

func word(addr uint32) uint32 { return (addr - firstAddress) / 4 }

// reg, reg64, set, set64 and raise access the stored value of a register that exists.

func (t *Twin) reg(addr uint32) uint32      { return t.regs[word(addr)] }
func (t *Twin) set(addr, value uint32)      { t.regs[word(addr)] = value }
func (t *Twin) raise(addr uint32, m uint32) { t.regs[word(addr)] |= m }

func (t *Twin) reg64(addr uint32) uint64 { return uint64(t.reg(addr+4))<<32 | uint64(t.reg(addr)) }

func (t *Twin) set64(addr uint32, v uint64) {
	t.set(addr, uint32(v))
	t.set(addr+4, uint32(v>>32))
}

// find looks an address up; a miss is counted as an error of the card.
func (t *Twin) find(addr uint32) (*entry, error) {
	if t.closed {
		return nil, errClosed
	}
	if addr%4 == 0 && addr >= firstAddress && word(addr) < layoutWords {
		if e := &t.layout[word(addr)]; e.register != nil {
			return e, nil
		}
	}
	t.raise(regmap.CommonErrors, regmap.CommonErrorsAddress)
	t.errorAddress = addr
	return nil, fmt.Errorf("twin: %w at %#x", fpga.ErrAddress, addr)
}

// Read32 reads a register. An address without one gives fpga.ErrAddress and the placeholder that a card would answer.
func (t *Twin) Read32(addr uint32) (uint32, error) {
	e, err := t.find(addr)
	if err != nil {
		return regmap.Placeholder, err
	}
	if e.register.Access == regmap.Command {
		return 0, nil
	}
	if read, ok := live[addr]; ok {
		return read(t), nil
	}
	return t.reg(addr), nil
}

// live are the registers that show the state of the card; all others read what is stored.
var live = map[uint32]func(*Twin) uint32{
	regmap.CommonCycles: func(t *Twin) uint32 {
		t.set(regmap.CommonCycles+4, uint32(t.now>>32))
		return uint32(t.now)
	},
	regmap.CommonErrorAddress:   func(t *Twin) uint32 { return t.errorAddress },
	regmap.QueueStatus:          (*Twin).queueStatus,
	regmap.QueueOccupancy:       func(t *Twin) uint32 { return uint32(t.queue.Discipline().Occupancy()) },
	regmap.QueueActiveClusters:  func(t *Twin) uint32 { return uint32(t.queue.Discipline().ActiveClusters()) },
	regmap.QueuePeakOccupancy:   func(t *Twin) uint32 { return uint32(t.counters.peak) },
	regmap.GeneratorState:       func(t *Twin) uint32 { return uint32(t.generator.state) },
	regmap.GeneratorMemData:     (*Twin).readMemory,
	regmap.ReplicationGroupSize: func(t *Twin) uint32 { return uint32(len(t.group())) },
	regmap.ReplicationMemberData: func(t *Twin) uint32 {
		var v uint32
		at := t.reg(regmap.ReplicationMemberIndex)
		if g := t.group(); at < uint32(len(g)) {
			v = g[at]
			t.set(regmap.ReplicationMemberIndex, at+1)
		}
		return v
	},
	regmap.CommonRole:                constant(regmap.CommonRoleAccelerator | regmap.CommonRoleGenerator),
	regmap.CommonCapabilities:        func(t *Twin) uint32 { return t.cfg.capabilities() },
	regmap.CommonBuildHash:           func(*Twin) uint32 { return buildHash() },
	regmap.CommonClockHz:             constant(uint32(ClockHz)),
	regmap.CommonMaxPacketBytes:      constant(uint32(olaf.MaxFrame)),
	regmap.QueueBuiltSlots:           func(t *Twin) uint32 { return uint32(t.cfg.Slots) },
	regmap.QueueBuiltClusters:        func(t *Twin) uint32 { return uint32(t.cfg.Clusters) },
	regmap.QueueBuiltLanes:           constant(uint32(olaf.MaxLanes)),
	regmap.ReplicationBuiltGroups:    constant(builtGroups),
	regmap.ReplicationBuiltMembers:   constant(builtMembers),
	regmap.GeneratorBuiltFlows:       constant(builtFlows),
	regmap.GeneratorBuiltDescriptors: func(t *Twin) uint32 { return uint32(t.cfg.Descriptors) },
	regmap.GeneratorBuiltTemplates:   constant(builtTemplates),
	regmap.ModelNext: func(t *Twin) uint32 {
		if t.cfg.buildsPrograms() {
			return regmap.AggregatorBase
		}
		return 0
	},
	regmap.AggregatorBuiltSlots:    func(t *Twin) uint32 { return uint32(min(builtSegments, t.cfg.Clusters)) },
	regmap.AggregatorBuiltPrograms: func(t *Twin) uint32 { return t.cfg.builtPrograms() },
	regmap.AggregatorBuiltLanes:    constant(uint32(olaf.MaxLanes)),
	regmap.AggregatorOccupied:      func(t *Twin) uint32 { return t.front.occupied() },
	regmap.AggregatorPeakOccupied:  func(t *Twin) uint32 { return uint32(t.front.peak) },
}

// capabilities are the options of the build.
func (c *Config) capabilities() uint32 {
	bits := regmap.CommonCapabilitiesModelCycles | regmap.CommonCapabilitiesProvenance | regmap.CommonCapabilitiesFreeOnStart |
		regmap.CommonCapabilitiesFaultInjection | regmap.CommonCapabilitiesServerModel
	if c.Wire {
		bits |= regmap.CommonCapabilitiesLanes
	}
	if c.buildsPrograms() {
		bits |= regmap.CommonCapabilitiesAggregator
	}
	return bits
}

func constant(v uint32) func(*Twin) uint32 { return func(*Twin) uint32 { return v } }

// reason is why a write is refused: the bit in common.errors, the error it matches, and words for the user.
type reason struct {
	bit  uint32
	kind error
	why  string
}

// refuse books a refused write of an existing register and words the error.
func (t *Twin) refuse(e *entry, addr, value uint32, r *reason) error {
	t.raise(regmap.CommonErrors, r.bit)
	t.errorAddress = addr
	isState := r.bit == regmap.CommonErrorsState
	switch e.block.Name {
	case "queue":
		t.raise(regmap.CommonErrors, regmap.CommonErrorsQueue)
		t.raise(regmap.QueueErrors, pick(isState, regmap.QueueErrorsState, regmap.QueueErrorsValue))
	case "generator":
		t.raise(regmap.CommonErrors, regmap.CommonErrorsGenerator)
		t.raise(regmap.GeneratorEvents, pick(isState, regmap.GeneratorEventsRefused, regmap.GeneratorEventsValue))
	case "replication":
		t.raise(regmap.CommonErrors, regmap.CommonErrorsReplication)
	case "aggregator":
		t.raise(regmap.CommonErrors, regmap.CommonErrorsAggregator)
	}
	return fmt.Errorf("twin: write %#x to %s: %w: %s", value, e.name(), r.kind, r.why)
}

func pick(first bool, a, b uint32) uint32 {
	if first {
		return a
	}
	return b
}

func badState(why string) *reason { return &reason{regmap.CommonErrorsState, fpga.ErrRefused, why} }
func badValue(why string) *reason { return &reason{regmap.CommonErrorsValue, fpga.ErrRefused, why} }

// Write32 writes a register. A write that the state or the limits forbid changes nothing, sets the error bits and gives
// fpga.ErrRefused; one to a read-only register or to none gives fpga.ErrAddress.
func (t *Twin) Write32(addr, value uint32) error {
	e, err := t.find(addr)
	if err != nil {
		return err
	}
	r := t.forbids(e, addr, value)
	if r == nil {
		r = t.write(e, addr, value)
	}
	if r != nil {
		return t.refuse(e, addr, value, r)
	}
	return nil
}

// WriteBurst writes all words to one address, in order. The memory proxy takes them at once; it takes all or none.
func (t *Twin) WriteBurst(addr uint32, words []uint32) error {
	if addr != regmap.GeneratorMemData {
		for _, w := range words {
			if err := t.Write32(addr, w); err != nil {
				return err
			}
		}
		return nil
	}
	e, err := t.find(addr)
	if err != nil || len(words) == 0 {
		return err
	}
	if r := t.writeMemory(words); r != nil {
		return t.refuse(e, addr, words[0], r)
	}
	return nil
}

// limits are the ranges of registers whose value is a number.
var limits = map[uint32]func(*Twin) (low, high uint32){
	regmap.QueueDepth:             func(t *Twin) (uint32, uint32) { return 1, uint32(t.cfg.Slots) },
	regmap.QueueRewardThreshold:   func(*Twin) (uint32, uint32) { return 0, 1<<31 - 1 },
	regmap.QueueLimiterIncrement:  func(*Twin) (uint32, uint32) { return 1, uint32(engine.Line) },
	regmap.QueueLimiterOverhead:   func(*Twin) (uint32, uint32) { return 0, engine.MaxOverheadBytes },
	regmap.QueueDequeueCycles:     func(*Twin) (uint32, uint32) { return 0, engine.MaxCostCycles },
	regmap.QueueMergeCycles:       func(*Twin) (uint32, uint32) { return 0, engine.MaxCostCycles },
	regmap.QueueClusterIndex:      func(t *Twin) (uint32, uint32) { return 0, uint32(t.cfg.Clusters - 1) },
	regmap.ReplicationGroupIndex:  func(*Twin) (uint32, uint32) { return 0, builtGroups - 1 },
	regmap.ReplicationGroupSize:   func(*Twin) (uint32, uint32) { return 0, builtMembers },
	regmap.ReplicationMemberIndex: func(t *Twin) (uint32, uint32) { return 0, uint32(len(t.group())) },
	regmap.GeneratorFlows:         func(*Twin) (uint32, uint32) { return 0, builtFlows },
	regmap.GeneratorDescriptors:   func(t *Twin) (uint32, uint32) { return 0, uint32(t.cfg.Descriptors) },
	regmap.GeneratorMemSelect:     func(*Twin) (uint32, uint32) { return 0, templateMemory },
	regmap.GeneratorMemAddress:    func(t *Twin) (uint32, uint32) { return 0, t.memory().limit },
	regmap.GeneratorMemLength:     func(t *Twin) (uint32, uint32) { return 0, t.memory().limit },
	regmap.GeneratorStopAfter + 4: func(*Twin) (uint32, uint32) { return 0, 1<<31 - 1 },
	regmap.QueueInspectIndex:      func(t *Twin) (uint32, uint32) { return 0, uint32(t.cfg.Slots) },
	regmap.AggregatorH:            func(*Twin) (uint32, uint32) { return 1, 1<<16 - 1 },
	regmap.AggregatorInspectIndex: func(*Twin) (uint32, uint32) { return 0, builtSegments },
}

// forbids holds a write against what the map says of the register.
func (t *Twin) forbids(e *entry, addr, value uint32) *reason {
	r := e.register
	if r.Access == regmap.ReadOnly {
		return &reason{regmap.CommonErrorsReadOnly, fpga.ErrAddress, "the register is read-only"}
	}
	if value&^e.writable != 0 {
		return badValue(fmt.Sprintf("bits %#x mean nothing there", value&^e.writable))
	}
	if r.Idle && e.block.Name != "generator" && (t.queue.enabled || !t.queue.empty()) {
		return badState("the queue must be disabled and empty first")
	}
	if r.Idle && e.block.Name == "generator" && t.generator.busy() {
		return badState("the generator is armed or running")
	}
	if limit, ok := limits[addr]; ok {
		if low, high := limit(t); value < low || value > high {
			return badValue(fmt.Sprintf("it must be %d to %d in this build", low, high))
		}
	}
	return nil
}

// write does what an allowed write does.
func (t *Twin) write(e *entry, addr, value uint32) *reason {
	switch e.register.Access {
	case regmap.ClearOnOne:
		t.regs[word(addr)] &^= value
		return nil
	case regmap.Command:
		return t.command(addr, value)
	}
	if effect, ok := effects[addr]; ok {
		if r := effect(t, value); r != nil {
			return r
		}
	}
	if addr != regmap.GeneratorMemData && addr != regmap.ReplicationMemberData {
		t.set(addr, value)
	}
	return nil
}

// effects are what writing a register does beside storing the value; a reason means that nothing was done.
var effects = map[uint32]func(*Twin, uint32) *reason{
	regmap.QueueMode: func(_ *Twin, v uint32) *reason {
		if _, known := engine.Coded(v & regmap.QueueModeDisciplineMask); !known {
			return badValue("there is no such discipline")
		}
		return nil
	},
	regmap.QueueControl: func(t *Twin, v uint32) *reason {
		if err := t.queue.control(t, v); err != nil {
			return badValue(err.Error())
		}
		return nil
	},
	regmap.QueueInspectIndex: func(t *Twin, v uint32) *reason {
		if !t.queue.frozen {
			t.raise(regmap.QueueErrors, regmap.QueueErrorsNotFrozen)
			return badState("freeze the queue first")
		}
		t.inspect(v)
		return nil
	},
	regmap.AggregatorProgram: func(t *Twin, v uint32) *reason {
		if t.cfg.builtPrograms()>>v&1 == 0 {
			return badValue("no program of that code is built")
		}
		return nil
	},
	regmap.AggregatorInspectIndex: func(t *Twin, v uint32) *reason {
		if !t.queue.frozen {
			return badState("freeze the queue first")
		}
		t.inspectFront(v)
		return nil
	},
	regmap.QueueClusterIndex: func(t *Twin, v uint32) *reason {
		t.selectCluster(v)
		return nil
	},
	regmap.ReplicationGroupIndex: func(t *Twin, _ uint32) *reason {
		t.set(regmap.ReplicationMemberIndex, 0)
		return nil
	},
	regmap.ReplicationGroupSize: func(t *Twin, v uint32) *reason {
		t.replication.resize(t.reg(regmap.ReplicationGroupIndex), v)
		t.set(regmap.ReplicationMemberIndex, 0)
		return nil
	},
	regmap.ReplicationMemberData: func(t *Twin, v uint32) *reason {
		at, g := t.reg(regmap.ReplicationMemberIndex), t.group()
		if at >= uint32(len(g)) {
			return badValue("the group has no such member; set group_size first")
		}
		g[at] = v
		t.set(regmap.ReplicationMemberIndex, at+1)
		return nil
	},
	regmap.GeneratorMemSelect: func(t *Twin, _ uint32) *reason {
		t.set(regmap.GeneratorMemAddress, 0)
		return nil
	},
	regmap.GeneratorMemData: func(t *Twin, v uint32) *reason { return t.writeMemory([]uint32{v}) },
}

// command obeys a command register, lowest bit first.
func (t *Twin) command(addr, value uint32) *reason {
	switch addr {
	case regmap.CommonCommand:
		return t.commonCommand(value)
	case regmap.QueueCommand:
		if value&regmap.QueueCommandFlush != 0 {
			t.flush()
		}
	case regmap.AggregatorCommand:
		if value&regmap.AggregatorCommandClear != 0 {
			t.front.clear()
		}
	case regmap.ReplicationCommand:
		if value&regmap.ReplicationCommandClear != 0 {
			t.replication.clear()
		}
	case regmap.GeneratorCommand:
		if value&(value-1) != 0 {
			return badValue("one command at a time")
		}
		if !t.generatorCommand(value) {
			return badState("the generator's state does not allow it")
		}
	case regmap.GeneratorMemCommand:
		return t.memoryCommand(value)
	}
	return nil
}

func (t *Twin) commonCommand(value uint32) *reason {
	if value&regmap.CommonCommandSnapshot != 0 {
		t.snapshot()
	}
	if value&regmap.CommonCommandClear != 0 {
		t.clearCounters()
	}
	if value&regmap.CommonCommandReset != 0 {
		if err := t.powerOn(); err != nil {
			return badState(err.Error())
		}
	}
	return nil
}

// group is the members that the replication block's index points to.
func (t *Twin) group() []uint32 { return t.replication.groups[t.reg(regmap.ReplicationGroupIndex)] }

// memory is the one behind the generator's proxy.
func (t *Twin) memory() *memory { return &t.generator.memories[t.reg(regmap.GeneratorMemSelect)] }

func (t *Twin) readMemory() uint32 {
	at, m := t.reg(regmap.GeneratorMemAddress), t.memory()
	v := m.word(at)
	if t.reg(regmap.GeneratorMemSelect) == templateMemory && at < regmap.TemplateWords {
		v = uint32(regmap.UnitLane)
	}
	t.set(regmap.GeneratorMemAddress, min(at+1, m.limit))
	return v
}

func (t *Twin) writeMemory(words []uint32) *reason {
	if t.generator.busy() {
		return badState("the generator is armed or running")
	}
	at, m := t.reg(regmap.GeneratorMemAddress), t.memory()
	if t.reg(regmap.GeneratorMemSelect) == templateMemory && at < regmap.TemplateWords {
		return badValue("template 0 is built in")
	}
	if !m.write(at, words) {
		return badValue(fmt.Sprintf("the memory ends at word %d", m.limit))
	}
	t.set(regmap.GeneratorMemAddress, at+uint32(len(words)))
	return nil
}

func (t *Twin) memoryCommand(value uint32) *reason {
	m := t.memory()
	if value&regmap.GeneratorMemCommandCRC != 0 {
		n := t.reg(regmap.GeneratorMemLength)
		if n > m.loaded {
			return badValue(fmt.Sprintf("mem_length is %d, but only %d words are loaded", n, m.loaded))
		}
		t.set(regmap.GeneratorMemCRC, m.crc(n))
	}
	if value&regmap.GeneratorMemCommandClear != 0 {
		if t.generator.busy() {
			return badState("the generator is armed or running")
		}
		m.clear()
	}
	return nil
}
