// Package pcietest emulates a card for tests of the code that drives a real one: a folder that looks like sysfs, and a
// BAR2 whose OLAF blocks are a twin or the RTL and whose shell is a small model, with faults on demand.
//
// The card behaves as silicon does where the twin is kinder: registers decline a write silently, an access that no register
// answers reads 0xDEADBEEF, and a read can meet a write. Its clock is theirs, so that tests do not wait.
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

// BDF is where the card sits.
const BDF = "0000:3b:00.0"

// The shell's answers of a healthy card.
const (
	buildTime   = 0x11211330
	cmacVersion = 0x301
	portStride  = 0x4000
	allOnes     = ^uint32(0)
)

// Blocks are the OLAF blocks of a card: a twin, or the RTL.
type Blocks interface {
	regmap.Reader
	Write32(addr, value uint32) error
	Sleep(ctx context.Context, d olaf.Duration) error
	DrainPackets(buf []twin.Packet) []twin.Packet
}

// Card is one fake card. It is not safe for concurrent use.
type Card struct {
	Blocks Blocks
	// Shell holds the shell's registers by offset; tests change them at will.
	Shell map[uint32]uint32
	// OnLoad and OnStore see every access, numbered from 1, after it was answered; nil does nothing. OnLoad returns what
	// is read instead; OnStore says whether the write is lost.
	OnLoad  func(n int, offset, value uint32) uint32
	OnStore func(n int, offset, value uint32) (lost bool)

	Loads, Stores int
	Ports         [2]Port

	build       func() (Blocks, error)
	booted, now time.Time
	packets     []twin.Packet
}

// Port is one MAC's model: what was counted since the last tick, and what the last tick latched.
type Port struct {
	Running, Latched map[uint32]uint64 // by the offset of the counter
	Ticked           time.Time
	history          bool // the next read of the receiver's status shows the past
}

// New returns a healthy card with two ports and a twin as its blocks.
func New(cfg twin.Config) (*Card, error) {
	return NewWithBlocks(func() (Blocks, error) { return twin.New(cfg) })
}

// Twin returns the twin of a card made by New; it panics for a card with other blocks.
func (c *Card) Twin() *twin.Twin { return c.Blocks.(*twin.Twin) }

// NewWithBlocks returns a healthy card with two ports. It calls build again after each power cycle.
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

// Now returns the time on the card's clock.
func (c *Card) Now() time.Time { return c.now }

// Wait lets the card's time pass.
func (c *Card) Wait(ctx context.Context, d olaf.Duration) error {
	c.now = c.now.Add(time.Duration(int64(d) / int64(olaf.Nanosecond)))
	return c.Blocks.Sleep(ctx, d)
}

// Close does nothing: a card outlives its mappings.
func (c *Card) Close() error { return nil }

// Load32 answers a read.
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
	if port, off, ok := mac(offset); ok {
		if v, ok := c.Ports[port].load(off, c.now); ok {
			return v
		}
	}
	if v, ok := c.Shell[offset]; ok {
		return v
	}
	return regmap.Placeholder
}

// mac splits an address of a CMAC into port and offset.
func mac(offset uint32) (port int, off uint32, ok bool) {
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

// Tick latches and clears a port's counters, as anybody's write to TICK does.
func (c *Card) Tick(port int) {
	p := &c.Ports[port]
	p.Latched, p.Running, p.Ticked = p.Running, map[uint32]uint64{}, c.now
}

// Store32 takes a write.
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
		_ = c.Blocks.Write32(offset, value) // a card declines silently
		return
	}
	if port, off, ok := mac(offset); ok && off == 0x2B0 {
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

// Function describes a card to sysfs.
type Function struct {
	BDF            string
	Vendor, Device uint16
	BAR2           int64
	Driver         string
	MemoryOff      bool
	Power          string // its state; empty for D0
	DeadLink       bool   // the configuration space reads all ones
	NoWindow       bool   // the card has a BAR2, and the kernel found no address for it
}

// OpenNIC returns the function of a healthy card.
func OpenNIC() Function {
	return Function{BDF: BDF, Vendor: 0x10ee, Device: 0x903f, BAR2: 4 << 20}
}

// WriteSysfs puts a function into a folder that looks like /sys/bus/pci/devices. BAR2 is a sparse file.
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

// Bus is a host with the card in it: sysfs and locks lie in dir.
func (c *Card) Bus(dir string, f Function) (pcie.Bus, error) {
	bus := pcie.Bus{Sysfs: filepath.Join(dir, "devices"), Locks: dir,
		Map: func(string, int64, bool) (pcie.Window, error) { return c, nil }}
	return bus, WriteSysfs(bus.Sysfs, f)
}
