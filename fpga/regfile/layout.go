package regfile

import "github.com/olafctl/olaf/fpga/regmap"

// The blocks are contiguous, so one array maps addresses to registers.
const (
	FirstAddress = regmap.CommonBase
	layoutWords  = (regmap.AggregatorBase + regmap.AggregatorBytes - FirstAddress) / 4
	// EndAddress is the first address after all register blocks.
	EndAddress = FirstAddress + 4*layoutWords
)

// Layout maps every word address to its register. It is immutable and may be shared by devices with the same build.
type Layout [layoutWords]entry

// entry describes one word in the register map.
type entry struct {
	register *regmap.Register // nil if the address has no register
	block    *regmap.Block
	high     bool // upper word of a 64-bit register
	writable uint32
}

func (e *entry) name() string { return e.block.Name + "." + e.register.Name }

func (e *entry) reset() uint32 {
	if e.high {
		return uint32(e.register.Reset >> 32)
	}
	return uint32(e.register.Reset)
}

// NewLayout returns the layout for a build with the given capabilities.
func NewLayout(capabilities uint32) *Layout {
	l := new(Layout)
	for _, b := range regmap.BuiltBlocks(capabilities) {
		for i := range b.Registers {
			r := &b.Registers[i]
			for off := uint32(0); off < r.Bytes(); off += 4 {
				l[wordIndex(b.Base+r.Offset+off)] = entry{r, &b, off == 4, r.Writable()}
			}
		}
	}
	return l
}

func wordIndex(addr uint32) uint32 { return (addr - FirstAddress) / 4 }
