// Package regfile is the register map as a device answers it that holds its registers in software: what can be read and
// written, what is refused and which error bits that sets, the generator's memories behind their proxy, and the replication
// block. What a register does beside holding its value, its device says.
package regfile

import (
	"fmt"

	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
)

// Limits of the memories, as every device of ours has them.
const (
	Flows     = 1 << 16
	Templates = 16
	Groups    = 1 << 16
	Members   = 1 << 16
	// MaxDescriptors is how many descriptors have a 32-bit word address.
	MaxDescriptors = 1 << 28
)

// Behaviour is what the registers of a kind of devices do, C being a device: by address, where they do more than hold a value.
type Behaviour[C any] struct {
	Name string // begins the errors
	// Live are the registers that show the state of the device.
	Live map[uint32]func(C) uint32
	// Limits are the ranges of registers whose value is a number.
	Limits map[uint32]func(C) (low, high uint32)
	// Effects are what writing a register does beside storing the value; a reason means that nothing was done.
	Effects map[uint32]func(C, uint32) *Reason
	// Commands are what command registers do.
	Commands map[uint32]func(C, uint32) *Reason
	// QueueBusy and GeneratorBusy say whether the registers that configure them must hold still.
	QueueBusy, GeneratorBusy func(C) bool
}

// Reason is why a write is refused: the bit in common.errors, the error it matches, and words for the user.
type Reason struct {
	Bit  uint32
	Kind error
	Why  string
	Full bool // Why says all that a user needs: what he asked for is refused, whichever register told it
}

// BadState is the reason of a write for which it is not the time.
func BadState(why string) *Reason {
	return &Reason{Bit: regmap.CommonErrorsState, Kind: fpga.ErrRefused, Why: why}
}

// BadValue is the reason of a write that can never be.
func BadValue(why string) *Reason {
	return &Reason{Bit: regmap.CommonErrorsValue, Kind: fpga.ErrRefused, Why: why}
}

// Unfit is the reason of a command that can't be obeyed for what the user asked for.
func Unfit(why string) *Reason {
	return &Reason{Bit: regmap.CommonErrorsValue, Kind: fpga.ErrRefused, Why: why, Full: true}
}

// Constant is a live register that never changes.
func Constant[C any](v uint32) func(C) uint32 { return func(C) uint32 { return v } }

// File is the registers of one device. It is not safe for concurrent use.
type File[C any] struct {
	// Memories are the generator's, Replication the multicast groups written by registers.
	Memories    Memories
	Replication Replication

	behaviour    *Behaviour[C]
	device       C
	layout       *Layout
	regs         []uint32 // values of plain registers, by word of the layout
	errorAddress uint32
	closed       bool
}

// New makes the registers of a device, all 0 until Reset. descriptors is how many its memory holds.
func New[C any](b *Behaviour[C], device C, l *Layout, descriptors int) File[C] {
	return File[C]{behaviour: b, device: device, layout: l, regs: make([]uint32, layoutWords),
		Memories: newMemories(descriptors)}
}

// Reset returns registers, memories and groups to their reset values.
func (f *File[C]) Reset() {
	clear(f.regs)
	for i := range f.layout {
		if e := &f.layout[i]; e.register != nil && !e.register.Built && !e.register.Counter {
			f.regs[i] = e.reset()
		}
	}
	f.errorAddress = 0
	for i := range f.Memories {
		f.Memories[i].Clear()
	}
	f.Replication.Clear()
}

// Close makes every later access fail with fpga.ErrGone.
func (f *File[C]) Close() { f.closed = true }

// Closed is the error of an access to a closed device, nil before.
func (f *File[C]) Closed() error {
	if f.closed {
		return fmt.Errorf("%s: closed: %w", f.behaviour.Name, fpga.ErrGone)
	}
	return nil
}

// Reg is the stored value of a register that exists.
func (f *File[C]) Reg(addr uint32) uint32 { return f.regs[word(addr)] }

// Set stores a value.
func (f *File[C]) Set(addr, value uint32) { f.regs[word(addr)] = value }

// Raise sets bits.
func (f *File[C]) Raise(addr, bits uint32) { f.regs[word(addr)] |= bits }

// Reg64 is the stored value of a wide register.
func (f *File[C]) Reg64(addr uint32) uint64 { return uint64(f.Reg(addr+4))<<32 | uint64(f.Reg(addr)) }

// Set64 stores a wide value.
func (f *File[C]) Set64(addr uint32, v uint64) {
	f.Set(addr, uint32(v))
	f.Set(addr+4, uint32(v>>32))
}

// find looks an address up; a miss is counted as an error of the device.
func (f *File[C]) find(addr uint32) (*entry, error) {
	if err := f.Closed(); err != nil {
		return nil, err
	}
	if addr%4 == 0 && addr >= FirstAddress && word(addr) < layoutWords {
		if e := &f.layout[word(addr)]; e.register != nil {
			return e, nil
		}
	}
	f.Raise(regmap.CommonErrors, regmap.CommonErrorsAddress)
	f.errorAddress = addr
	return nil, fmt.Errorf("%s: %w at %#x", f.behaviour.Name, fpga.ErrAddress, addr)
}

// Read32 reads a register. An address without one gives fpga.ErrAddress and the placeholder that a card would answer.
func (f *File[C]) Read32(addr uint32) (uint32, error) {
	e, err := f.find(addr)
	if err != nil {
		return regmap.Placeholder, err
	}
	if e.register.Access == regmap.Command {
		return 0, nil
	}
	if read, ok := f.behaviour.Live[addr]; ok {
		return read(f.device), nil
	}
	return f.stored(addr), nil
}

// stored is what the file itself knows of a register.
func (f *File[C]) stored(addr uint32) uint32 {
	switch addr {
	case regmap.CommonErrorAddress:
		return f.errorAddress
	case regmap.GeneratorMemData:
		return f.readMemory()
	case regmap.ReplicationGroupSize:
		return uint32(len(f.group()))
	case regmap.ReplicationMemberData:
		return f.readMember()
	case regmap.ReplicationBuiltGroups:
		return Groups
	case regmap.ReplicationBuiltMembers:
		return Members
	case regmap.GeneratorBuiltFlows:
		return Flows
	case regmap.GeneratorBuiltDescriptors:
		return f.Memories.descriptors()
	case regmap.GeneratorBuiltTemplates:
		return Templates
	}
	return f.Reg(addr)
}

// refuse books a refused write of an existing register and words the error.
func (f *File[C]) refuse(e *entry, addr, value uint32, r *Reason) error {
	f.Raise(regmap.CommonErrors, r.Bit)
	f.errorAddress = addr
	isState := r.Bit == regmap.CommonErrorsState
	switch e.block.Name {
	case "queue":
		f.Raise(regmap.CommonErrors, regmap.CommonErrorsQueue)
		f.Raise(regmap.QueueErrors, pick(isState, regmap.QueueErrorsState, regmap.QueueErrorsValue))
	case "generator":
		f.Raise(regmap.CommonErrors, regmap.CommonErrorsGenerator)
		f.Raise(regmap.GeneratorEvents, pick(isState, regmap.GeneratorEventsRefused, regmap.GeneratorEventsValue))
	case "replication":
		f.Raise(regmap.CommonErrors, regmap.CommonErrorsReplication)
	case "aggregator":
		f.Raise(regmap.CommonErrors, regmap.CommonErrorsAggregator)
	}
	if r.Full {
		return fmt.Errorf("%w: %s", r.Kind, r.Why)
	}
	return fmt.Errorf("%s: write %#x to %s: %w: %s", f.behaviour.Name, value, e.name(), r.Kind, r.Why)
}

func pick(first bool, a, b uint32) uint32 {
	if first {
		return a
	}
	return b
}

// Write32 writes a register. A write that the state or the limits forbid changes nothing, sets the error bits and gives
// fpga.ErrRefused; one to a read-only register or to none gives fpga.ErrAddress.
func (f *File[C]) Write32(addr, value uint32) error {
	e, err := f.find(addr)
	if err != nil {
		return err
	}
	r := f.forbids(e, addr, value)
	if r == nil {
		r = f.write(e, addr, value)
	}
	if r != nil {
		return f.refuse(e, addr, value, r)
	}
	return nil
}

// WriteBurst writes all words to one address, in order. The memory proxy takes them at once; it takes all or none.
func (f *File[C]) WriteBurst(addr uint32, words []uint32) error {
	if addr != regmap.GeneratorMemData {
		for _, w := range words {
			if err := f.Write32(addr, w); err != nil {
				return err
			}
		}
		return nil
	}
	e, err := f.find(addr)
	if err != nil || len(words) == 0 {
		return err
	}
	if r := f.writeMemory(words); r != nil {
		return f.refuse(e, addr, words[0], r)
	}
	return nil
}

// limit is the range of a register whose value is a number.
func (f *File[C]) limit(addr uint32) (low, high uint32, ok bool) {
	if limit, ok := f.behaviour.Limits[addr]; ok {
		low, high = limit(f.device)
		return low, high, true
	}
	switch addr {
	case regmap.QueueRewardThreshold, regmap.GeneratorStopAfter + 4:
		return 0, 1<<31 - 1, true
	case regmap.ReplicationGroupIndex:
		return 0, Groups - 1, true
	case regmap.ReplicationGroupSize:
		return 0, Members, true
	case regmap.ReplicationMemberIndex:
		return 0, uint32(len(f.group())), true
	case regmap.GeneratorFlows:
		return 0, Flows, true
	case regmap.GeneratorDescriptors:
		return 0, f.Memories.descriptors(), true
	case regmap.GeneratorMemSelect:
		return 0, TemplateMemory, true
	case regmap.GeneratorMemAddress, regmap.GeneratorMemLength:
		return 0, f.memory().limit, true
	}
	return 0, 0, false
}

// forbids holds a write against what the map says of the register.
func (f *File[C]) forbids(e *entry, addr, value uint32) *Reason {
	r := e.register
	if r.Access == regmap.ReadOnly {
		return &Reason{Bit: regmap.CommonErrorsReadOnly, Kind: fpga.ErrAddress, Why: "the register is read-only"}
	}
	if value&^e.writable != 0 {
		return BadValue(fmt.Sprintf("bits %#x mean nothing there", value&^e.writable))
	}
	if r.Idle && e.block.Name != "generator" && f.behaviour.QueueBusy(f.device) {
		return BadState("the queue must be disabled and empty first")
	}
	if r.Idle && e.block.Name == "generator" && f.behaviour.GeneratorBusy(f.device) {
		return BadState("the generator is armed or running")
	}
	if low, high, ok := f.limit(addr); ok && (value < low || value > high) {
		return BadValue(fmt.Sprintf("it must be %d to %d in this build", low, high))
	}
	return nil
}

// write does what an allowed write does.
func (f *File[C]) write(e *entry, addr, value uint32) *Reason {
	switch e.register.Access {
	case regmap.ClearOnOne:
		f.regs[word(addr)] &^= value
		return nil
	case regmap.Command:
		return f.command(addr, value)
	}
	if effect, ok := f.behaviour.Effects[addr]; ok {
		if r := effect(f.device, value); r != nil {
			return r
		}
	}
	return f.store(addr, value)
}

// store puts a value where it belongs.
func (f *File[C]) store(addr, value uint32) *Reason {
	switch addr {
	case regmap.GeneratorMemData:
		return f.writeMemory([]uint32{value})
	case regmap.ReplicationMemberData:
		return f.writeMember(value)
	case regmap.ReplicationGroupIndex:
		f.Set(regmap.ReplicationMemberIndex, 0)
	case regmap.ReplicationGroupSize:
		f.Replication.resize(f.Reg(regmap.ReplicationGroupIndex), value)
		f.Set(regmap.ReplicationMemberIndex, 0)
	case regmap.GeneratorMemSelect:
		f.Set(regmap.GeneratorMemAddress, 0)
	}
	f.Set(addr, value)
	return nil
}

// command obeys a command register.
func (f *File[C]) command(addr, value uint32) *Reason {
	switch addr {
	case regmap.ReplicationCommand:
		if value&regmap.ReplicationCommandClear != 0 {
			f.Replication.Clear()
		}
		return nil
	case regmap.GeneratorMemCommand:
		return f.memoryCommand(value)
	case regmap.GeneratorCommand:
		if value&(value-1) != 0 {
			return BadValue("one command at a time")
		}
	}
	if do, ok := f.behaviour.Commands[addr]; ok {
		return do(f.device, value)
	}
	return nil
}
