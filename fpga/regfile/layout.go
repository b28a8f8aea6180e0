package regfile

import "github.com/olafctl/olaf/fpga/regmap"

// The blocks lie side by side, so one array finds the register of an address.
const (
	FirstAddress = regmap.CommonBase
	layoutWords  = (regmap.AggregatorBase + regmap.AggregatorBytes - FirstAddress) / 4
	// EndAddress is the first one behind all blocks.
	EndAddress = FirstAddress + 4*layoutWords
)

// Layout is the register at every word; it never changes and may be shared by devices of one build.
type Layout [layoutWords]entry

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

// NewLayout is that of a build with some capabilities.
func NewLayout(capabilities uint32) *Layout {
	l := new(Layout)
	for _, b := range regmap.BuiltBlocks(capabilities) {
		for i := range b.Registers {
			r := &b.Registers[i]
			for off := uint32(0); off < r.Bytes(); off += 4 {
				l[word(b.Base+r.Offset+off)] = entry{r, &b, off == 4, r.Writable()}
			}
		}
	}
	return l
}

func word(addr uint32) uint32 { return (addr - FirstAddress) / 4 }
