package pcietest

import (
	"github.com/olafctl/olaf/fpga/pcie"
	"github.com/olafctl/olaf/fpga/regmap"
)

// AllOnesFrom makes the card disappear from its bus, starting with its nth read from now.
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

// StaleReads makes the first read after a write to the same 4 KiB slave return the last value that was read there. The
// shell's AXI-Lite slaves do this when a read coincides with a write.
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

// StuckBits makes the selected bits of the register at addr read as the bits of value.
func (c *Card) StuckBits(addr, bits, value uint32) {
	c.OnLoad = func(_ int, offset, v uint32) uint32 {
		if offset == addr {
			v = v&^bits | value&bits
		}
		return v
	}
}

// Answer makes the register at addr read as value.
func (c *Card) Answer(addr, value uint32) { c.StuckBits(addr, allOnes, value) }

// Box makes every read from the user boxes return the prefix and the low address bits, like a stock plugin.
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

// Reset resets the OLAF blocks, as another program might do.
func (c *Card) Reset() {
	_ = c.Blocks.Write32(regmap.CommonCommand, regmap.CommonCommandReset)
}

// PowerCycle restarts the card with the same image. Its clock starts at 0.
func (c *Card) PowerCycle() error {
	blocks, err := c.build()
	if err == nil {
		c.Blocks, c.booted = blocks, c.now
	}
	return err
}

// Reprogram simulates that another bitstream is loaded.
func (c *Card) Reprogram() { c.Shell[pcie.ShellBuildTime] = buildTime + 1 }
