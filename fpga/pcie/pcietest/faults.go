package pcietest

import (
	"github.com/olafctl/olaf/fpga/pcie"
	"github.com/olafctl/olaf/fpga/regmap"
)

// AllOnesFrom makes the card disappear at its nth read from now.
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

// StaleReads answers the first read after a write to the same 4 KiB slave with the last value read there, as the
// shell's AXI-Lite slaves do when a read coincides with a write.
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

// StuckBits fixes bits of one register to value.
func (c *Card) StuckBits(addr, bits, value uint32) {
	c.OnLoad = func(_ int, offset, v uint32) uint32 {
		if offset == addr {
			v = v&^bits | value&bits
		}
		return v
	}
}

// Answer makes one register read as value.
func (c *Card) Answer(addr, value uint32) { c.StuckBits(addr, allOnes, value) }

// Box answers every read of the user boxes with a prefix and the low address bits, like a stock plugin.
func (c *Card) Box(prefix uint32) {
	c.OnLoad = func(_ int, offset, v uint32) uint32 {
		if offset >= regmap.CommonBase {
			return prefix | offset&0xFFFF
		}
		return v
	}
}

// LoseWrites drops all writes to addr.
func (c *Card) LoseWrites(addr uint32) {
	c.OnStore = func(_ int, offset, _ uint32) bool { return offset == addr }
}

// Reset resets the box, as another program would.
func (c *Card) Reset() {
	_ = c.Blocks.Write32(regmap.CommonCommand, regmap.CommonCommandReset)
}

// PowerCycle restarts the card with the same image and its clock at 0.
func (c *Card) PowerCycle() error {
	blocks, err := c.build()
	if err == nil {
		c.Blocks, c.booted = blocks, c.now
	}
	return err
}

// Reprogram simulates loading another bitstream.
func (c *Card) Reprogram() { c.Shell[pcie.ShellBuildTime] = buildTime + 1 }
