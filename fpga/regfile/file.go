// Package regfile implements the register map for devices that keep their registers in software. It covers access
// rules, refused writes and their error bits, the generator's memories that are accessed through a proxy, and the
// replication block. Each device adds the effects of its own registers.
package regfile

import (
	"fmt"

	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
)

// Limits on memories that apply to all software devices.
const (
	Flows     = 1 << 16
	Templates = 16
	Groups    = 1 << 16
	Members   = 1 << 16
	// MaxDescriptors is the number of descriptors that can be addressed by a 32-bit word address.
	MaxDescriptors = 1 << 28
)

// Behaviour lists the effects of registers in one kind of device, by register address. C is the type of the device. A
// register that is not listed only stores its value.
type Behaviour[C any] struct {
	Name string // prefix of error messages
	// Live lists registers whose value is read from the device's state.
	Live map[uint32]func(C) uint32
	// Limits lists the ranges of numeric registers.
	Limits map[uint32]func(C) (low, high uint32)
	// Effects are called before a written value is stored. If one returns a reason, the write is refused, and nothing
	// changes.
	Effects map[uint32]func(C, uint32) *Reason
	// Commands are called for writes to command registers.
	Commands map[uint32]func(C, uint32) *Reason
	// QueueBusy and GeneratorBusy report whether the block's configuration registers are locked.
	QueueBusy, GeneratorBusy func(C) bool
}

// Reason explains why a write was refused. It contains the bit for common.errors, the error to match, and a message for
// the user.
type Reason struct {
	Bit     uint32
	Kind    error
	Message string
	Full    bool // the error consists of Message alone, without register and value
}

// BadState returns the reason for refusing a write that the device's current state does not permit.
func BadState(why string) *Reason {
	return &Reason{Bit: regmap.CommonErrorsState, Kind: fpga.ErrRefused, Message: why}
}

// BadValue returns the reason for refusing a value that is never valid.
func BadValue(why string) *Reason {
	return &Reason{Bit: regmap.CommonErrorsValue, Kind: fpga.ErrRefused, Message: why}
}

// ConstantRegister returns a function for a register that always reads as v.
func ConstantRegister[C any](v uint32) func(C) uint32 { return func(C) uint32 { return v } }

// File is the register file of one device. It is not safe for concurrent use.
type File[C any] struct {
	// Memories are the generator's memories. Replication contains the multicast groups written through registers.
	Memories    Memories
	Replication Replication

	behaviour    *Behaviour[C]
	device       C
	layout       *Layout
	regs         []uint32 // values of plain registers, indexed by word of the layout
	errorAddress uint32
	closed       bool
}

// New returns a register file for a device. All registers are 0 until Reset. descriptors is the capacity of the
// descriptor memory.
func New[C any](b *Behaviour[C], device C, l *Layout, descriptors int) File[C] {
	return File[C]{behaviour: b, device: device, layout: l, regs: make([]uint32, layoutWords),
		Memories: Memories{newMemory(descriptors * regmap.DescriptorWords), newMemory(Flows * regmap.FlowWords),
			newMemory(Templates * regmap.TemplateWords)}}
}

// Reset sets all registers to their reset values and clears the memories and groups.
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

// Close closes the register file. All later accesses fail with fpga.ErrGone.
func (f *File[C]) Close() { f.closed = true }

// CheckOpen returns an error that matches fpga.ErrGone if the file is closed.
func (f *File[C]) CheckOpen() error {
	if f.closed {
		return fmt.Errorf("%s: closed: %w", f.behaviour.Name, fpga.ErrGone)
	}
	return nil
}

// Reg returns the stored value of an existing register.
func (f *File[C]) Reg(addr uint32) uint32 { return f.regs[wordIndex(addr)] }

// Set stores a value in a register without any checks.
func (f *File[C]) Set(addr, value uint32) { f.regs[wordIndex(addr)] = value }

// Raise sets the given bits in a register.
func (f *File[C]) Raise(addr, bits uint32) { f.regs[wordIndex(addr)] |= bits }

// Reg64 returns the stored value of a 64-bit register.
func (f *File[C]) Reg64(addr uint32) uint64 { return uint64(f.Reg(addr+4))<<32 | uint64(f.Reg(addr)) }

// Set64 stores the value of a 64-bit register.
func (f *File[C]) Set64(addr uint32, v uint64) {
	f.Set(addr, uint32(v))
	f.Set(addr+4, uint32(v>>32))
}

// find returns the layout entry at addr. If there is no register, it sets the device's error bit and returns an error.
func (f *File[C]) find(addr uint32) (*entry, error) {
	if err := f.CheckOpen(); err != nil {
		return nil, err
	}
	if addr%4 == 0 && addr >= FirstAddress && wordIndex(addr) < layoutWords {
		if e := &f.layout[wordIndex(addr)]; e.register != nil {
			return e, nil
		}
	}
	f.Raise(regmap.CommonErrors, regmap.CommonErrorsAddress)
	f.errorAddress = addr
	return nil, fmt.Errorf("%s: %w at %#x", f.behaviour.Name, fpga.ErrAddress, addr)
}

// Read32 reads a register. For an unknown address it returns the same placeholder as a card, with fpga.ErrAddress.
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
	return f.readStored(addr), nil
}

// readStored returns the value of a register that is stored in the file or its memories, without calling the device.
func (f *File[C]) readStored(addr uint32) uint32 {
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

// refuse sets the error bits for a refused write and returns the error.
func (f *File[C]) refuse(e *entry, addr, value uint32, r *Reason) error {
	f.Raise(regmap.CommonErrors, r.Bit)
	f.errorAddress = addr
	isState := r.Bit == regmap.CommonErrorsState
	switch e.block.Name {
	case "queue":
		f.Raise(regmap.CommonErrors, regmap.CommonErrorsQueue)
		f.Raise(regmap.QueueErrors, chooseBit(isState, regmap.QueueErrorsState, regmap.QueueErrorsValue))
	case "generator":
		f.Raise(regmap.CommonErrors, regmap.CommonErrorsGenerator)
		f.Raise(regmap.GeneratorEvents, chooseBit(isState, regmap.GeneratorEventsRefused, regmap.GeneratorEventsValue))
	case "replication":
		f.Raise(regmap.CommonErrors, regmap.CommonErrorsReplication)
	case "aggregator":
		f.Raise(regmap.CommonErrors, regmap.CommonErrorsAggregator)
	}
	if r.Full {
		return fmt.Errorf("%w: %s", r.Kind, r.Message)
	}
	return fmt.Errorf("%s: write %#x to %s: %w: %s", f.behaviour.Name, value, e.name(), r.Kind, r.Message)
}

func chooseBit(first bool, a, b uint32) uint32 {
	if first {
		return a
	}
	return b
}

// Write32 writes a register. If the device's state or the register's limits forbid the write, it changes nothing, sets
// the error bits and returns fpga.ErrRefused. For a read-only register or an unknown address it returns
// fpga.ErrAddress.
func (f *File[C]) Write32(addr, value uint32) error {
	e, err := f.find(addr)
	if err != nil {
		return err
	}
	r := f.checkWrite(e, addr, value)
	if r == nil {
		r = f.write(e, addr, value)
	}
	if r != nil {
		return f.refuse(e, addr, value, r)
	}
	return nil
}

// WriteBurst writes all words to one address, in order. The memory proxy accepts either all words or none.
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

// limit returns the permitted range of a numeric register. ok is false if the register has none.
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
		return 0, templateMemory, true
	case regmap.GeneratorMemAddress, regmap.GeneratorMemLength:
		return 0, f.memory().limit, true
	}
	return 0, 0, false
}

// checkWrite checks a write against the access rules of the register map and the limits. It returns nil if the write is
// permitted.
func (f *File[C]) checkWrite(e *entry, addr, value uint32) *Reason {
	r := e.register
	if r.Access == regmap.ReadOnly {
		return &Reason{Bit: regmap.CommonErrorsReadOnly, Kind: fpga.ErrAddress, Message: "the register is read-only"}
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

// write performs a permitted write.
func (f *File[C]) write(e *entry, addr, value uint32) *Reason {
	switch e.register.Access {
	case regmap.ClearOnOne:
		f.regs[wordIndex(addr)] &^= value
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

// store stores a value and updates registers that depend on it.
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

// command performs a write to a command register.
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
