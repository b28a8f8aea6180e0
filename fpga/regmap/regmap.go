// Package regmap describes the register map of the OLAF blocks. The Go constants (registers.go), the SystemVerilog
// header (olaf_regs.svh) and docs/reference/registers.md are generated from it. The twin, the RTL and a card
// implement the same map.
//
// Addresses are byte offsets within BAR2 of an OpenNIC shell, whose 250 MHz user box starts at 0x100000. Registers
// are 32 bit, little-endian; a 64-bit register is two words, low word first. Data that grows with a job is accessed
// through an index and a data window, or through the generator's memory proxy, so no address range limits it.
package regmap

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/olafctl/olaf/internal/suggest"
)

//go:generate go run ./gen

// Access defines the effects of reading and writing a register.
type Access uint8

const (
	// ReadOnly registers refuse writes.
	ReadOnly Access = iota
	// ReadWrite registers read back the written value.
	ReadWrite
	// ClearOnOne registers contain sticky bits; writing 1 clears a bit.
	ClearOnOne
	// Command registers act on the bits written as 1 and read as 0.
	Command
)

var accessNames = [...]string{"RO", "RW", "W1C", "CMD"}

// String returns the abbreviation used in docs/reference/registers.md.
func (a Access) String() string { return accessNames[a] }

// Block is a power-of-two window of registers at a fixed BAR2 offset.
type Block struct {
	Name string
	Base uint32 // BAR2 byte offset
	Size uint32 // bytes, a power of two
	Doc  string
	// Needs is the bit of common.capabilities for the block; 0 if every build has it.
	Needs     uint32
	Registers []Register
}

// Register is one word, or two for a 64-bit value.
type Register struct {
	Name   string
	Offset uint32 // bytes from the block's base
	Wide   bool   // 64 bit: the low word is at Offset, the high word at Offset+4
	Access Access
	Reset  uint64
	// Built marks a value fixed by the bitstream or the state of the card; Reset is then meaningless.
	Built bool
	// Idle marks a register that is writable only while its block is disabled and empty (queue) or not running
	// (generator). Otherwise the write is refused and an error bit set.
	Idle bool
	// Counter marks a register of the snapshot bank, Gauge one whose value may fall between snapshots.
	Counter, Gauge bool
	Unit           string // of the value; empty for bit fields and plain numbers
	Doc            string
	Fields         []Field
}

// Field is a range of bits of a register.
type Field struct {
	Name   string
	Hi, Lo uint8
	Doc    string
	Values []string // names of the values 0, 1, 2 … of an enumeration
}

// Record is one fixed-size entry of a memory behind the proxy, in 32-bit words.
type Record struct {
	Name   string
	Words  int
	Doc    string
	Fields []RecordField
}

// RecordField is a range of bits of one word of a record.
type RecordField struct {
	Name   string
	Word   uint8
	Hi, Lo uint8
	Unit   string
	Doc    string
}

// Mask returns the field's bits in place.
func (f Field) Mask() uint32 { return bitMask(f.Hi, f.Lo) }

// Mask returns the field's bits in place within its word.
func (f RecordField) Mask() uint32 { return bitMask(f.Hi, f.Lo) }

func bitMask(hi, lo uint8) uint32 { return uint32(1<<(hi+1)-1) &^ uint32(1<<lo-1) }

// Bytes returns the size of r in the address space.
func (r *Register) Bytes() uint32 {
	if r.Wide {
		return 8
	}
	return 4
}

// Writable returns the mask of bits in the low word that a write may set: all for a register without fields.
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

// Ref points to one register of the map.
type Ref struct {
	Block    *Block
	Register *Register
}

// Name returns the register's full name, such as queue.control.
func (r Ref) Name() string { return r.Block.Name + "." + r.Register.Name }

// Address returns the BAR2 byte offset of the (low) word.
func (r Ref) Address() uint32 { return r.Block.Base + r.Register.Offset }

// AllBlocks returns the complete map, by address. The list is a copy; the registers are shared and must not be
// changed.
func AllBlocks() []Block { return append([]Block(nil), blocks...) }

// BuiltBlocks returns the blocks of a card with the given common.capabilities.
func BuiltBlocks(capabilities uint32) []Block {
	return slices.DeleteFunc(AllBlocks(), func(b Block) bool { return b.Needs&^capabilities != 0 })
}

// AllRecords returns the layout of the memories behind the generator's proxy.
func AllRecords() []Record { return append([]Record(nil), records...) }

// FindRegister finds a register by its full name (queue.control). The error suggests similar names.
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
		return Ref{}, fmt.Errorf("no register is named %q; did you mean %s?", name,
			strings.Join(near[:min(4, len(near))], ", "))
	}
	return Ref{}, fmt.Errorf("no register is named %q; 'olafctl device reg list' names them", name)
}

// RegisterAt finds the register at a BAR2 byte offset. high is set for the high word of a 64-bit register.
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

// FieldValue is one decoded field.
type FieldValue struct {
	Field *Field
	Value uint32
	Text  string // the value's name in an enumeration, else the number
}

// Decode splits a value of r into its fields, in declared order.
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

// fixed maps units of fixed-point values to the number of fraction bits and the unit for display.
var fixed = map[string]struct {
	bits int
	unit string
}{"B/cycle in 8.24": {24, "B/cycle"}, "Q24.8": {8, ""}}

// Text formats a value of r with its unit: a block's type as its four letters, fixed point as a number.
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

// Reader reads one register; fpga.Device is one.
type Reader interface {
	Read32(addr uint32) (uint32, error)
}

// Writer writes one register; fpga.Device is one.
type Writer interface {
	Write32(addr uint32, value uint32) error
}

// Read64 reads a 64-bit register, low word first. Counters are constant between snapshots, so two reads suffice.
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

// validateMap checks the description for overlaps, misaligned registers and missing docs. A test calls it.
func validateMap() error {
	for i := range blocks {
		b := &blocks[i]
		if bits.OnesCount32(b.Size) != 1 || b.Base%b.Size != 0 {
			return fmt.Errorf("block %s: window %#x+%#x is not a natural power of two", b.Name, b.Base, b.Size)
		}
		end := uint32(0)
		for j := range b.Registers {
			r := &b.Registers[j]
			if r.Offset%r.Bytes() != 0 || r.Offset < end {
				return fmt.Errorf("%s.%s at %#x overlaps or is misaligned", b.Name, r.Name, r.Offset)
			}
			if end = r.Offset + r.Bytes(); end > b.Size {
				return fmt.Errorf("%s.%s lies outside its block", b.Name, r.Name)
			}
			if r.Doc == "" {
				return fmt.Errorf("%s.%s has no sentence", b.Name, r.Name)
			}
			var seen uint32
			for _, f := range r.Fields {
				if f.Hi < f.Lo || f.Hi > 31 || seen&f.Mask() != 0 {
					return fmt.Errorf("%s.%s.%s overlaps or is reversed", b.Name, r.Name, f.Name)
				}
				seen |= f.Mask()
			}
		}
	}
	return nil
}
