package pcietest

import (
	"github.com/olafctl/olaf/fpga/pcie"
	"github.com/olafctl/olaf/fpga/regmap"
)

// AllOnesFrom lets the card vanish at its nth read from now on.
func (c *Card) AllOnesFrom(n int) {
	gone := false
	last := c.Loads + n
	c.OnLoad = func(at int, _, value uint32) uint32 {
		if gone = gone || at >= last; gone {
			return allOnes
		}
		return value
	}
	c.OnStore = func(int, uint32, uint32) bool { return gone }
}

// StaleReads answers the first read after a write to the same 4 KiB slave with what was last read there, as the shell's
// AXI-Lite slaves do when a read meets a write.
func (c *Card) StaleReads() {
	dirty, last := map[uint32]bool{}, map[uint32]uint32{}
	c.OnStore = func(_ int, offset, _ uint32) bool {
		dirty[offset>>12] = true
		return false
	}
	c.OnLoad = func(_ int, offset, value uint32) uint32 {
		slave := offset >> 12
		if dirty[slave] {
			value = last[slave]
		}
		dirty[slave], last[slave] = false, value
		return value
	}
}

// StuckBits reads bits of one register as value, whatever is written.
func (c *Card) StuckBits(addr, bits, value uint32) {
	c.OnLoad = func(_ int, offset, v uint32) uint32 {
		if offset == addr {
			v = v&^bits | value&bits
		}
		return v
	}
}

// Answer reads one register as value.
func (c *Card) Answer(addr, value uint32) { c.StuckBits(addr, allOnes, value) }

// Box answers every read of the user boxes with a prefix and the low address bits, as a stock plugin does.
func (c *Card) Box(prefix uint32) {
	c.OnLoad = func(_ int, offset, v uint32) uint32 {
		if offset >= regmap.CommonBase {
			return prefix | offset&0xFFFF
		}
		return v
	}
}

// LoseWrites lets no write to a register arrive.
func (c *Card) LoseWrites(addr uint32) {
	c.OnStore = func(_ int, offset, _ uint32) bool { return offset == addr }
}

// Reset resets the box, as another program would.
func (c *Card) Reset() {
	_ = c.Blocks.Write32(regmap.CommonCommand, regmap.CommonCommandReset)
}

// PowerCycle switches the card off and on: the same image starts anew, with its clock at 0.
func (c *Card) PowerCycle() error {
	blocks, err := c.build()
	if err == nil {
		c.Blocks, c.booted = blocks, c.now
	}
	return err
}

// Reprogram is somebody else's new bitstream.
func (c *Card) Reprogram() { c.Shell[pcie.ShellBuildTime] = buildTime + 1 }
