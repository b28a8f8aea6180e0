// Package pcietest emulates a card for tests of the driver. It creates a folder that looks like sysfs, and a BAR2 with
// fault injection. The OLAF blocks in BAR2 are a twin or the RTL; the shell is a small model. Where the twin is more
// lenient than silicon, the card behaves like silicon: registers decline writes silently, reads without a register
// return 0xDEADBEEF, and a read can coincide with a write. The card's clock is virtual, so tests do not have to wait.
package pcietest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/pcie"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/fpga/twin"
)

// BDF is the PCI address of the emulated card.
const BDF = "0000:3b:00.0"

// Shell registers of a healthy card.
const (
	buildTime   = 0x11211330
	cmacVersion = 0x301
	portStride  = 0x4000
	allOnes     = ^uint32(0)
)

// Blocks are the OLAF register blocks of a card, implemented by a twin or the RTL.
type Blocks interface {
	regmap.Reader
	Write32(addr, value uint32) error
	Sleep(ctx context.Context, d olaf.Duration) error
	DrainPackets(buf []twin.Packet) []twin.Packet
}

// Card is an emulated card. It is not safe for concurrent use.
type Card struct {
	Blocks Blocks
	// Shell contains the shell's registers by offset; tests may change them.
	Shell map[uint32]uint32
	// OnLoad and OnStore, if set, are called for every access, numbered from 1. OnLoad returns the value that is read.
	// OnStore reports whether the write is lost.
	OnLoad  func(n int, offset, value uint32) uint32
	OnStore func(n int, offset, value uint32) (lost bool)

	Loads, Stores int
	Ports         [2]Port

	build       func() (Blocks, error)
	booted, now time.Time
	packets     []twin.Packet
	// sent and received count the frames on the cables to and from another card, as far as the MACs have counted them.
	sent, received uint64
}

// Port is the model of one MAC. It has the counts since the last tick, and the counts that this tick latched.
type Port struct {
	Running, Latched map[uint32]uint64 // by offset of the counter
	Ticked           time.Time
	history          bool // the next read of the receiver's status returns latched history
}

// New returns a healthy card with two ports, whose OLAF blocks are a twin.
func New(cfg twin.Config) (*Card, error) {
	return NewWithBlocks(func() (Blocks, error) { return twin.New(cfg) })
}

// Twin returns the twin in a card made by New. It panics if the card has other blocks.
func (c *Card) Twin() *twin.Twin { return c.Blocks.(*twin.Twin) }

// NewWithBlocks returns a healthy card with two ports, whose OLAF blocks are created by build. It calls build again
// after each power cycle.
func NewWithBlocks(build func() (Blocks, error)) (*Card, error) {
	blocks, err := build()
	if err != nil {
		return nil, err
	}
	const boot = 1_700_000_000
	c := &Card{Blocks: blocks, build: build, booted: time.Unix(boot, 0), now: time.Unix(boot, 0),
		Shell: map[uint32]uint32{
			pcie.ShellBuildTime: buildTime, pcie.ShellCanary: 1, pcie.ShellStatus: allOnes, pcie.UserStatus: allOnes,
		}}
	for i := range c.Ports {
		base := uint32(i) * portStride
		c.Ports[i] = Port{Running: map[uint32]uint64{}, Latched: map[uint32]uint64{}, Ticked: c.now, history: true}
		c.Shell[0x8024+base], c.Shell[0x907C+base] = cmacVersion, 3
		for off := uint32(0); off < 0x50; off += 4 {
			c.Shell[0xB000+base+off] = 0
		}
	}
	return c, nil
}

// Now returns the current time of the card's virtual clock.
func (c *Card) Now() time.Time { return c.now }

// Wait advances the card's virtual clock by d.
func (c *Card) Wait(ctx context.Context, d olaf.Duration) error {
	c.now = c.now.Add(time.Duration(int64(d) / int64(olaf.Nanosecond)))
	return c.Blocks.Sleep(ctx, d)
}

// Close does nothing, because a card outlives its mappings.
func (c *Card) Close() error { return nil }

// Load32 handles a read from the card.
func (c *Card) Load32(offset uint32) uint32 {
	c.Loads++
	v := c.load(offset)
	if c.OnLoad != nil {
		v = c.OnLoad(c.Loads, offset, v)
	}
	return v
}

func (c *Card) load(offset uint32) uint32 {
	if offset >= pcie.TablesBase && offset < pcie.TablesBase+pcie.TablesBytes {
		return c.Shell[offset] // plain memory
	}
	if offset >= regmap.CommonBase {
		v, err := c.Blocks.Read32(offset)
		if err != nil {
			return regmap.Placeholder
		}
		return v
	}
	if port, off, ok := splitMACAddress(offset); ok {
		if v, ok := c.Ports[port].load(off, c.now); ok {
			return v
		}
	}
	if v, ok := c.Shell[offset]; ok {
		return v
	}
	return regmap.Placeholder
}

// splitMACAddress splits the address of a MAC register into the port and the offset in its registers.
func splitMACAddress(offset uint32) (port int, off uint32, ok bool) {
	off = offset - 0x8000
	port = int(off / portStride)
	off %= portStride
	return port, off, offset >= 0x8000 && port < 2 && off < 0x2000
}

func (p *Port) load(off uint32, now time.Time) (uint32, bool) {
	switch {
	case off == 0x200:
		return 0, true
	case off == 0x204:
		v := uint32(3)
		if p.history {
			v = 0xE0
		}
		p.history = false
		return v, true
	case off == 0x2B8:
		return uint32(now.Sub(p.Ticked).Seconds() * 322_265_625), true
	case off >= 0x500 && off < 0x720:
		v := p.Latched[off&^7]
		if off&4 != 0 {
			return uint32(v>>32) & 0xFFFF, true
		}
		return uint32(v), true
	}
	return 0, false
}

// Tick latches and clears the counters of a port, like a write to its TICK register.
func (c *Card) Tick(port int) {
	p := &c.Ports[port]
	if joined, ok := c.Blocks.(interface {
		CableCounts() (sent, received uint64)
	}); ok {
		sent, received := joined.CableCounts()
		switch port {
		case 0:
			p.Running[rxPackets], c.received = p.Running[rxPackets]+received-c.received, received
		case 1:
			p.Running[txPackets], c.sent = p.Running[txPackets]+sent-c.sent, sent
		}
	}
	p.Latched, p.Running, p.Ticked = p.Running, map[uint32]uint64{}, c.now
}

// Store32 handles a write to the card.
func (c *Card) Store32(offset, value uint32) {
	c.Stores++
	if c.OnStore != nil && c.OnStore(c.Stores, offset, value) {
		return
	}
	if offset >= pcie.TablesBase && offset < pcie.TablesBase+pcie.TablesBytes {
		c.Shell[offset] = value
		return
	}
	if offset >= regmap.CommonBase {
		_ = c.Blocks.Write32(offset, value) // a card ignores refused writes silently
		return
	}
	if port, off, ok := splitMACAddress(offset); ok && off == 0x2B0 {
		c.Tick(port)
		return
	}
	switch offset {
	case pcie.UserReset:
		if value>>31 != 0 {
			_ = c.Blocks.Write32(regmap.CommonCommand, regmap.CommonCommandReset)
		}
	case pcie.ShellReset:
	default:
		if _, ok := c.Shell[offset]; ok && offset >= 0x8000 && offset < 0xB000 {
			c.Shell[offset] = value
		}
	}
}

// Function describes a PCI function for the emulated sysfs.
type Function struct {
	BDF            string
	Vendor, Device uint16
	BAR2           int64
	Driver         string
	MemoryOff      bool
	Power          string // power state; empty means D0
	DeadLink       bool   // every read of the configuration space returns all ones
	NoWindow       bool   // the kernel found no address for the card's BAR2
}

// OpenNIC returns the PCI function of a healthy card.
func OpenNIC() Function {
	return Function{BDF: BDF, Vendor: 0x10ee, Device: 0x903f, BAR2: 4 << 20}
}

// WriteSysfs adds a PCI function to a folder that looks like /sys/bus/pci/devices. BAR2 is a sparse file.
func WriteSysfs(root string, f Function) error {
	dir := filepath.Join(root, f.BDF)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	config := make([]byte, 64)
	config[0], config[1] = byte(f.Vendor), byte(f.Vendor>>8)
	config[2], config[3] = byte(f.Device), byte(f.Device>>8)
	if !f.MemoryOff {
		config[4] = 2
	}
	if f.BAR2 > 0 || f.NoWindow {
		config[0x18] = 4 // a 64-bit BAR
	}
	if f.DeadLink {
		config = bytes.Repeat([]byte{0xff}, len(config))
	}
	if f.Power == "" {
		f.Power = "D0"
	}
	files := map[string]string{
		"vendor": fmt.Sprintf("%#04x\n", f.Vendor), "device": fmt.Sprintf("%#04x\n", f.Device), "class": "0x028000\n",
		"current_link_speed": "8.0 GT/s PCIe\n", "current_link_width": "16\n", "config": string(config),
		"resource2":   "",
		"power_state": f.Power + "\n",
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	if f.Driver != "" {
		if err := os.Symlink("../../drivers/"+f.Driver, filepath.Join(dir, "driver")); err != nil {
			return err
		}
	}
	if f.BAR2 == 0 || f.NoWindow {
		return os.Remove(filepath.Join(dir, "resource2"))
	}
	return os.Truncate(filepath.Join(dir, "resource2"), f.BAR2)
}

// Bus returns a host that contains the card. Its sysfs and its lock files are in dir.
func (c *Card) Bus(dir string, f Function) (pcie.Bus, error) {
	bus := pcie.Bus{Sysfs: filepath.Join(dir, "devices"), Locks: dir, Clock: c,
		Map: func(string, int64, bool) (pcie.Window, error) { return c, nil }}
	return bus, WriteSysfs(bus.Sysfs, f)
}
