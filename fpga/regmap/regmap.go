// Package regmap describes the register map of the OLAF blocks. The Go constants in registers.go, the SystemVerilog
// header olaf_regs.svh and docs/reference/registers.md are generated from this description. The twin, the RTL and a
// card implement the same map. Addresses are byte offsets within BAR2 of an OpenNIC shell, whose 250 MHz user box
// starts at 0x100000. Registers have 32 bits and are little-endian. A 64-bit register consists of two words, with the
// low word first. Data whose size depends on the job is accessed through an index and a data window, or through the
// generator's memory proxy, so that no address range limits it.
package regmap

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/olafctl/olaf/internal/suggest"
)

//go:generate go run ./gen

// Access is the access mode of a register. It defines the effects of reading and writing.
type Access uint8

const (
	// ReadOnly is the mode of registers that refuse writes.
	ReadOnly Access = iota
	// ReadWrite is the mode of registers that read as the last written value.
	ReadWrite
	// ClearOnOne is the mode of registers with sticky bits. Writing 1 to a bit clears it.
	ClearOnOne
	// Command is the mode of registers that act on each bit written as 1. They read as 0.
	Command
)

var accessNames = [...]string{"RO", "RW", "W1C", "CMD"}

// String returns the abbreviation used in docs/reference/registers.md.
func (a Access) String() string { return accessNames[a] }

// Block is a window of registers at a fixed offset in BAR2. Its size is a power of two.
type Block struct {
	Name string
	Base uint32 // byte offset in BAR2
	Size uint32 // in bytes; a power of two
	Doc  string
	// Needs is the bit of common.capabilities that a build with the block sets; 0 if every build has the block.
	Needs     uint32
	Registers []Register
}

// Register describes one register, which has one word, or two words for a 64-bit value.
type Register struct {
	Name   string
	Offset uint32 // in bytes, from the block's base
	Wide   bool   // 64 bit: the low word is at Offset, the high word at Offset+4
	Access Access
	Reset  uint64
	// Built marks a value fixed by the bitstream or by the state of the card. Reset is then meaningless.
	Built bool
	// Idle marks a register that is writable only while its block is disabled and empty (queue) or not running
	// (generator). At other times a write is refused and an error bit is set.
	Idle bool
	// Counter marks a register of the snapshot bank. Gauge marks one whose value may fall between snapshots.
	Counter, Gauge bool
	Unit           string // unit of the value; empty for bit fields and plain numbers
	Doc            string
	Fields         []Field
}

// Field is a range of bits in a register.
type Field struct {
	Name   string
	Hi, Lo uint8
	Doc    string
	Values []string // names of the values 0, 1, 2 … of an enumeration
}

// Record describes the layout of a fixed-size entry in a memory of the generator, in 32-bit words.
type Record struct {
	Name   string
	Words  int
	Doc    string
	Fields []RecordField
}

// RecordField is a range of bits in a word of a record.
type RecordField struct {
	Name   string
	Word   uint8
	Hi, Lo uint8
	Unit   string
	Doc    string
}

// Mask returns a mask of the field's bits in its register.
func (f Field) Mask() uint32 { return bitMask(f.Hi, f.Lo) }

// Mask returns a mask of the field's bits in its word.
func (f RecordField) Mask() uint32 { return bitMask(f.Hi, f.Lo) }

func bitMask(hi, lo uint8) uint32 { return uint32(1<<(hi+1)-1) &^ uint32(1<<lo-1) }

// Bytes returns the number of bytes that r occupies in the address space.
func (r *Register) Bytes() uint32 {
	if r.Wide {
		return 8
	}
	return 4
}

// Writable returns a mask of the bits in the low word that a write may set. For a register without fields, these are
// all bits.
func (r *Register) Writable() uint32 {
	if r.Access == ReadOnly {
		return 0
	}
	if len(r.Fields) == 0 {
		return ^uint32(0)
	}
	var m uint32
	for _, f := range r.Fields {
		m |= f.Mask()
	}
	return m
}

// Ref refers to a register in a block.
type Ref struct {
	Block    *Block
	Register *Register
}

// Name returns the register's full name, such as queue.control.
func (r Ref) Name() string { return r.Block.Name + "." + r.Register.Name }

// Address returns the register's byte offset in BAR2. For a 64-bit register, it is the offset of the low word.
func (r Ref) Address() uint32 { return r.Block.Base + r.Register.Offset }

// AllBlocks returns all blocks in the map, in order of address. The list is a copy, but the registers are shared and
// must not be changed.
func AllBlocks() []Block { return append([]Block(nil), blocks...) }

// BuiltBlocks returns the blocks of a card whose register common.capabilities has the given value.
func BuiltBlocks(capabilities uint32) []Block {
	return slices.DeleteFunc(AllBlocks(), func(b Block) bool { return b.Needs&^capabilities != 0 })
}

// AllRecords returns the layouts of the entries in the generator's memories.
func AllRecords() []Record { return append([]Record(nil), records...) }

// FindRegister returns the register with the given full name, such as queue.control. If there is none, the error
// suggests similar names.
func FindRegister(name string) (Ref, error) {
	block, register, _ := strings.Cut(name, ".")
	for i := range blocks {
		b := &blocks[i]
		if b.Name != block {
			continue
		}
		for j := range b.Registers {
			if r := &b.Registers[j]; r.Name == register {
				return Ref{b, r}, nil
			}
		}
	}
	var all, near []string
	for i := range blocks {
		for j := range blocks[i].Registers {
			full := blocks[i].Name + "." + blocks[i].Registers[j].Name
			if all = append(all, full); name != "" && strings.Contains(full, strings.ToLower(name)) {
				near = append(near, full)
			}
		}
	}
	if len(near) == 0 {
		near = suggest.NearestNames(strings.ToLower(name), all, 3)
	}
	if len(near) > 0 {
		return Ref{}, fmt.Errorf("there is no register %q; did you mean %s?", name,
			strings.Join(near[:min(4, len(near))], ", "))
	}
	return Ref{}, fmt.Errorf("there is no register %q; 'olafctl device reg list' lists them", name)
}

// RegisterAt returns the register at a byte offset in BAR2. high is true for the high word of a 64-bit register.
func RegisterAt(addr uint32) (ref Ref, high, ok bool) {
	for i := range blocks {
		b := &blocks[i]
		if addr < b.Base || addr-b.Base >= b.Size {
			continue
		}
		for j := range b.Registers {
			r := &b.Registers[j]
			if d := addr - b.Base - r.Offset; addr-b.Base >= r.Offset && d < r.Bytes() {
				return Ref{b, r}, d == 4, d%4 == 0
			}
		}
	}
	return Ref{}, false, false
}

// FieldValue is the value of one field in a register.
type FieldValue struct {
	Field *Field
	Value uint32
	Text  string // name of the value in an enumeration, else the number
}

// Decode splits a value of r into the values of its fields, in declared order.
func (r *Register) Decode(value uint32) []FieldValue {
	out := make([]FieldValue, 0, len(r.Fields))
	for i := range r.Fields {
		f := &r.Fields[i]
		v := value & f.Mask() >> f.Lo
		text := fmt.Sprint(v)
		if int(v) < len(f.Values) {
			text = f.Values[v]
		}
		out = append(out, FieldValue{f, v, text})
	}
	return out
}

// fixed describes the units of fixed-point values, with the number of fraction bits and the unit to display.
var fixed = map[string]struct {
	bits int
	unit string
}{"B/cycle in 8.24": {24, "B/cycle"}, "Q24.8": {8, ""}}

// Text returns a value of r as text with its unit. The type of a block is shown as its four letters, and fixed point as
// a decimal number.
func (r *Register) Text(value uint64) string {
	if f, ok := fixed[r.Unit]; ok {
		return strings.TrimSpace(strconv.FormatFloat(float64(value)/float64(uint64(1)<<f.bits), 'f', -1, 64) + " " +
			f.unit)
	}
	letters := string([]byte{byte(value >> 24), byte(value >> 16), byte(value >> 8), byte(value)})
	if r.Name == "type" && strings.IndexFunc(letters, func(c rune) bool { return c < 'A' || c > 'Z' }) < 0 {
		return letters
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", value, r.Unit))
}

// Reader reads single registers. Every fpga.Device is a Reader.
type Reader interface {
	Read32(addr uint32) (uint32, error)
}

// Writer writes single registers. Every fpga.Device is a Writer.
type Writer interface {
	Write32(addr uint32, value uint32) error
}

// Read64 reads a 64-bit register, low word first. Two reads are enough, because counters are constant between
// snapshots.
func Read64(r Reader, addr uint32) (uint64, error) {
	low, err := r.Read32(addr)
	if err != nil {
		return 0, err
	}
	high, err := r.Read32(addr + 4)
	return uint64(high)<<32 | uint64(low), err
}

// Write64 writes a 64-bit register, low word first.
func Write64(w Writer, addr uint32, value uint64) error {
	if err := w.Write32(addr, uint32(value)); err != nil {
		return err
	}
	return w.Write32(addr+4, uint32(value>>32))
}
