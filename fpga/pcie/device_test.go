package pcie_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/fpgatest"
	"github.com/olafctl/olaf/fpga/pcie"
	"github.com/olafctl/olaf/fpga/pcie/pcietest"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/fpga/twin"
)

type host struct {
	card *pcietest.Card
	bus  pcie.Bus
}

func newHost(t *testing.T, f pcietest.Function) *host {
	t.Helper()
	card, err := pcietest.New(twin.Config{})
	if err != nil {
		t.Fatal(err)
	}
	bus, err := card.Bus(t.TempDir(), f)
	if err != nil {
		t.Fatal(err)
	}
	return &host{card, bus}
}

func (h *host) open(o pcie.Options) (*pcie.Device, error) {
	return pcie.Open(h.bus, pcietest.BDF, o)
}

func (h *host) mustOpen(t *testing.T) *pcie.Device {
	t.Helper()
	d, err := h.open(pcie.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func TestConformance(t *testing.T) {
	fpgatest.Run(t, func(t *testing.T) fpga.Device { return newHost(t, pcietest.OpenNIC()).mustOpen(t) })
}

func TestConformanceWithStaleReads(t *testing.T) {
	fpgatest.Run(t, func(t *testing.T) fpga.Device {
		h := newHost(t, pcietest.OpenNIC())
		h.card.StaleReads()
		return h.mustOpen(t)
	})
}

// TestFaultsAtOpen is the fault matrix for opening a card. For each fault that can occur in a laboratory, it checks the
// error and that nothing was written.
func TestFaultsAtOpen(t *testing.T) {
	with := func(change func(*pcietest.Function)) pcietest.Function {
		f := pcietest.OpenNIC()
		change(&f)
		return f
	}
	cases := []struct {
		name     string
		function pcietest.Function
		fault    func(*testing.T, *host)
		kind     error
		says     string
	}{
		{"image family changed without a warm reboot", pcietest.OpenNIC(), func(_ *testing.T, h *host) { h.card.AllOnesFrom(1) },
			fpga.ErrGone, "warm-reboot"},
		{"power-up reset still running", pcietest.OpenNIC(), func(_ *testing.T, h *host) { h.card.Shell[pcie.ShellCanary] = 0 },
			fpga.ErrGone, "wait a second"},
		{"no OpenNIC shell", pcietest.OpenNIC(), func(_ *testing.T, h *host) { h.card.Shell[pcie.ShellCanary] = 0x20 }, pcie.ErrNotOurs,
			"wired to 0"},
		{"ESnet image, 4 MiB", pcietest.OpenNIC(), func(_ *testing.T, h *host) { h.card.Answer(0x8024, regmap.Placeholder) },
			pcie.ErrNotOurs, "other maps"},
		{"ESnet image, 8 MiB", with(func(f *pcietest.Function) { f.BAR2 = 8 << 20 }), nil, pcie.ErrNotOurs, "ESnet"},
		{"BAR2 smaller than assumed", with(func(f *pcietest.Function) { f.BAR2 = 1 << 20 }), nil, pcie.ErrNotOurs, "1048576 bytes"},
		{"no BAR2, or a 32-bit one without address", with(func(f *pcietest.Function) { f.BAR2 = 0 }), nil, pcie.ErrNotReady, "no room for it; warm-reboot the host with the card in it, or boot it with pci=realloc"},
		{"factory image", with(func(f *pcietest.Function) { f.Device = 0x505c }), nil, pcie.ErrNotOurs, "factory"},
		{"no OpenNIC device", with(func(f *pcietest.Function) { f.Device = 0x7038 }), nil, pcie.ErrNoCard, "not an OpenNIC function"},
		{"another vendor", with(func(f *pcietest.Function) { f.Vendor = 0x8086 }), nil, pcie.ErrNoCard, "not Xilinx"},
		{"memory decoding off after a rescan", with(func(f *pcietest.Function) { f.MemoryOff = true }), nil, pcie.ErrNotReady,
			"as root: echo 1 > /sys/bus/pci/devices/0000:3b:00.0/enable"},
		{"memory decoding off with a driver", with(func(f *pcietest.Function) { f.MemoryOff, f.Driver = true, "vfio-pci" }), nil,
			pcie.ErrNotReady, "COMMAND=2:2"},
		{"asleep", with(func(f *pcietest.Function) { f.Power, f.Driver, f.MemoryOff = "D3hot", "vfio-pci", true }), nil,
			pcie.ErrNotReady, "D3hot, with the driver vfio-pci); as root: echo on > /sys/bus/pci/devices/0000:3b:00.0/power/control"},
		{"dead link", with(func(f *pcietest.Function) { f.DeadLink = true }), nil, fpga.ErrGone,
			"its configuration space reads all ones: the link is down"},
		{"no room behind the bridge", with(func(f *pcietest.Function) { f.NoWindow, f.MemoryOff = true, true }), nil, pcie.ErrNotReady,
			"pci=realloc"},
		{"OpenNIC of another board", with(func(f *pcietest.Function) { f.Device = 0x6aa0 }), nil, pcie.ErrNotOurs,
			"an unsupported board"},
		{"stock p2p plugin", pcietest.OpenNIC(), func(_ *testing.T, h *host) { h.card.Box(0xB0000000) }, pcie.ErrNotOurs,
			"stock p2p plugin"},
		{"p2p plugin of the other box", pcietest.OpenNIC(), func(_ *testing.T, h *host) { h.card.Box(0xB0010000) }, pcie.ErrNotOurs,
			"322 MHz"},
		{"dummy range", pcietest.OpenNIC(), func(_ *testing.T, h *host) { h.card.Box(0xD0000000) }, pcie.ErrNotOurs, "dummy"},
		{"undefined offset answered", pcietest.OpenNIC(),
			func(_ *testing.T, h *host) { h.card.Answer(regmap.CommonMagic, regmap.Placeholder) }, pcie.ErrNotOurs, "0xDEADBEEF"},
		{"wrong magic", pcietest.OpenNIC(), func(_ *testing.T, h *host) { h.card.Answer(regmap.CommonMagic, 0x12345678) },
			pcie.ErrNotOurs, "not OLAF's magic number"},
		{"nothing in the box", pcietest.OpenNIC(), func(_ *testing.T, h *host) { h.card.Answer(regmap.CommonMagic, 0) },
			pcie.ErrNotOurs, "nothing answers"},
		{"newer map", pcietest.OpenNIC(), func(_ *testing.T, h *host) { h.card.Answer(regmap.CommonMapVersion, 2<<24) },
			pcie.ErrNotOurs, "register map 2.0.0"},
		{"another process has it", pcietest.OpenNIC(), func(t *testing.T, h *host) { h.mustOpen(t) }, pcie.ErrBusy, "process"},
		{"another program maps it", pcietest.OpenNIC(), mapElsewhere, pcie.ErrBusy, "process 4242 (which maps "},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := newHost(t, c.function)
			if c.fault != nil {
				c.fault(t, h)
			}
			before := h.card.Stores
			_, err := h.open(pcie.Options{})
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v; want %q of kind %q", err, c.says, c.kind)
			}
			if h.card.Stores != before {
				t.Errorf("%d writes to a card that was not ours", h.card.Stores-before)
			}
		})
	}
}

// mapElsewhere imitates a process that uses pcimem.
func mapElsewhere(t *testing.T, h *host) {
	h.bus.Proc = t.TempDir()
	dir := filepath.Join(h.bus.Proc, "4242")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	line := "7f0000000000-7f0000400000 rw-s 00000000 00:16 12 " + filepath.Join(h.bus.Sysfs, pcietest.BDF, "resource2") + "\n"
	if err := os.WriteFile(filepath.Join(dir, "maps"), []byte(line), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestBrokenScratchIsRefused(t *testing.T) {
	h := newHost(t, pcietest.OpenNIC())
	h.card.StuckBits(regmap.CommonScratch, 1<<7, 0)
	_, err := h.open(pcie.Options{})
	if !errors.Is(err, pcie.ErrStale) {
		t.Errorf("%v", err)
	}
	if other, err := h.open(pcie.Options{ReadOnly: true}); err != nil {
		t.Errorf("the lock was not given back: %v", err)
	} else {
		other.Close()
	}
}

// TestBadAddresses checks the error for a malformed BDF and for a BDF without a card.
func TestBadAddresses(t *testing.T) {
	h := newHost(t, pcietest.OpenNIC())
	for _, bdf := range []string{"", "3b:00.0", "0000:3c:00.0", "../../etc", "0000:3b:00.9"} {
		if _, err := pcie.Open(h.bus, bdf, pcie.Options{}); !errors.Is(err, pcie.ErrNoCard) {
			t.Errorf("%q: %v", bdf, err)
		}
	}
}

// TestFaultsInUse is the fault matrix for a card in use. It checks that each fault is noticed, that the error has its
// kind, and that nothing reaches the card afterwards.
func TestFaultsInUse(t *testing.T) {
	use := func(d *pcie.Device) error {
		if err := d.Write32(regmap.QueueDepth, 4); err != nil {
			return err
		}
		_, err := d.Read32(regmap.QueueDepth)
		return err
	}
	cases := []struct {
		name  string
		fault func(*pcietest.Card)
		use   func(*pcie.Device) error
		kind  error
		says  string
	}{
		{"removed during a read", func(c *pcietest.Card) { c.AllOnesFrom(1) },
			func(d *pcie.Device) error { _, err := d.Read32(regmap.QueueStatus); return err }, fpga.ErrGone, "all ones"},
		{"removed during a write", func(c *pcietest.Card) { c.AllOnesFrom(2) }, use, fpga.ErrGone, "all ones"},
		{"removed during a burst", func(c *pcietest.Card) { c.AllOnesFrom(5) }, func(d *pcie.Device) error {
			return d.WriteBurst(regmap.GeneratorMemData, make([]uint32, 16))
		}, fpga.ErrGone, "all ones"},
		{"removed while asleep", func(c *pcietest.Card) { c.AllOnesFrom(1) },
			func(d *pcie.Device) error { return d.Sleep(context.Background(), olaf.Second) }, fpga.ErrGone, "all ones"},
		{"reprogrammed while asleep", func(c *pcietest.Card) { c.Reprogram() },
			func(d *pcie.Device) error { return d.Sleep(context.Background(), olaf.Second) }, pcie.ErrChanged, "build time changed"},
		{"stock image loaded", func(c *pcietest.Card) { c.Box(0xB0000000) },
			func(d *pcie.Device) error { return d.Sleep(context.Background(), olaf.Second) }, pcie.ErrChanged, "p2p"},
		{"reset by somebody else", func(c *pcietest.Card) { c.Reset() },
			func(d *pcie.Device) error { return d.Sleep(context.Background(), olaf.Second) }, pcie.ErrForgot, "configured again"},
		{"system reset", func(c *pcietest.Card) { c.Shell[pcie.ShellCanary] = 0 },
			func(d *pcie.Device) error { return d.Sleep(context.Background(), olaf.Second) }, fpga.ErrGone, "being reset"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := newHost(t, pcietest.OpenNIC())
			d := h.mustOpen(t)
			if err := d.Write32(regmap.QueueDepth, 6); err != nil {
				t.Fatal(err)
			}
			c.fault(h.card)
			err := c.use(d)
			if !errors.Is(err, c.kind) || !errors.Is(err, fpga.ErrGone) || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("%v; want %q of kind %q", err, c.says, c.kind)
			}
			loads, stores := h.card.Loads, h.card.Stores
			h.card.OnLoad, h.card.OnStore = nil, nil
			if err := use(d); !errors.Is(err, fpga.ErrGone) {
				t.Errorf("the card came back by itself: %v", err)
			}
			if h.card.Loads != loads || h.card.Stores != stores {
				t.Error("a lost card was used again")
			}
		})
	}
}

func TestLostWritesAreDetected(t *testing.T) {
	h := newHost(t, pcietest.OpenNIC())
	d := h.mustOpen(t)
	h.card.LoseWrites(regmap.QueueDepth)
	stores := h.card.Stores
	if err := d.Write32(regmap.QueueDepth, 5); !errors.Is(err, pcie.ErrStale) {
		t.Errorf("a lost write: %v", err)
	}
	if h.card.Stores != stores+1 {
		t.Error("the write was repeated")
	}
	h.card.OnStore = nil
	h.card.StuckBits(regmap.QueueMode, 1, 0)
	if err := d.Write32(regmap.QueueMode, regmap.QueueModeDisciplineOlaf); !errors.Is(err, pcie.ErrStale) ||
		!strings.Contains(err.Error(), "queue.mode") {
		t.Errorf("a stuck bit: %v", err)
	}
}

func TestDeniedAddresses(t *testing.T) {
	h := newHost(t, pcietest.OpenNIC())
	d := h.mustOpen(t)
	stores, loads := h.card.Stores, h.card.Loads
	for _, addr := range []uint32{0x004, 0x00C, 0x014, 0x000, 0x008, 0x1000, 0x82B0, 0xC2B0, 0xB000, 0x10000, 0x140000, 0x1FFFFC,
		0x200000, 0x300000, 0x33FFFC, 0x340000, 0x340FFC, 0x341000, 0x3FFFFC, 0x400000, 0x100002, 0xFFFFFFFC} {
		if err := d.Write32(addr, 1); !errors.Is(err, fpga.ErrAddress) {
			t.Errorf("write %#x: %v", addr, err)
		}
	}
	for _, addr := range []uint32{0x004, 0x1000, 0x140000, 0x200000, 0x300000, 0x340000, 0x400000, 0x8001} {
		if _, err := d.Read32(addr); !errors.Is(err, fpga.ErrAddress) {
			t.Errorf("read %#x: %v", addr, err)
		}
	}
	if h.card.Stores != stores || h.card.Loads != loads {
		t.Error("a refused access reached the card")
	}
	for _, addr := range []uint32{pcie.ShellStatus, pcie.UserStatus} {
		if v, err := d.Read32(addr); v != ^uint32(0) || err != nil {
			t.Errorf("%#x = %#x, %v: all ones is healthy there", addr, v, err)
		}
	}
	if _, err := d.Read32(0x020); !errors.Is(err, fpga.ErrAddress) {
		t.Errorf("0xDEADBEEF was shown as data: %v", err)
	}
}

func TestReadOnlySession(t *testing.T) {
	h := newHost(t, pcietest.OpenNIC())
	h.card.Box(0xB0000000)
	d, err := h.open(pcie.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if v, err := d.Read32(pcie.ShellBuildTime); v == 0 || err != nil {
		t.Errorf("the shell of another image: %#x, %v", v, err)
	}
	if _, err := d.Read32(regmap.QueueDepth); !errors.Is(err, pcie.ErrNotOurs) {
		t.Errorf("the box of another image: %v", err)
	}
	h.card.OnLoad = nil
	second, err := h.open(pcie.Options{ReadOnly: true}) // several readers can share the card
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if _, err := second.Read32(regmap.QueueDepth); err != nil {
		t.Error(err)
	}
	if _, err := second.Read32(regmap.GeneratorMemData); !errors.Is(err, pcie.ErrDenied) {
		t.Errorf("a read with an effect: %v", err)
	}
	if err := second.Write32(regmap.QueueDepth, 1); !errors.Is(err, pcie.ErrDenied) {
		t.Errorf("write: %v", err)
	}
	if err := second.Reset(pcie.ResetBox); !errors.Is(err, pcie.ErrDenied) {
		t.Errorf("reset: %v", err)
	}
	if h.card.Stores != 0 {
		t.Errorf("%d writes", h.card.Stores)
	}
	if _, err := h.open(pcie.Options{}); !errors.Is(err, pcie.ErrBusy) {
		t.Errorf("a writer beside readers: %v", err)
	}
}

func TestDryRun(t *testing.T) {
	h := newHost(t, pcietest.OpenNIC())
	var out bytes.Buffer
	d, err := h.open(pcie.Options{DryRun: &out})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Write32(regmap.QueueDepth, 16); err != nil {
		t.Fatal(err)
	}
	if v, err := d.Read32(regmap.QueueDepth); v != 16 || err != nil {
		t.Errorf("read back %d, %v", v, err)
	}
	if h.card.Stores != 0 {
		t.Errorf("a dry run wrote %d times", h.card.Stores)
	}
	for _, line := range []string{"write 0x101034 queue.depth = 0x10 (not done)\n", "read  0x000008 shell.system_status = 0x1\n"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("no %q in\n%s", line, out.String())
		}
	}
}

func TestResets(t *testing.T) {
	h := newHost(t, func() pcietest.Function { f := pcietest.OpenNIC(); f.Driver = "onic"; return f }())
	d := h.mustOpen(t)
	for _, target := range []pcie.Target{pcie.ResetBox, pcie.ResetOlaf} {
		if err := d.Write32(regmap.QueueDepth, 3); err != nil {
			t.Fatal(err)
		}
		before := h.card.Now()
		if err := d.Reset(target); err != nil {
			t.Fatal(err)
		}
		if h.card.Now().Sub(before).Milliseconds() < 1 {
			t.Errorf("%s: no fixed wait", target)
		}
		if v, err := d.Read32(regmap.QueueDepth); v != 8 || err != nil {
			t.Errorf("%s: depth %d, %v", target, v, err)
		}
	}
	for _, target := range []pcie.Target{pcie.ResetQDMA, "system", ""} {
		if err := d.Reset(target); !errors.Is(err, pcie.ErrDenied) {
			t.Errorf("%q with a driver bound: %v", target, err)
		}
	}
}

func TestRefusalsStayReadable(t *testing.T) {
	d := newHost(t, pcietest.OpenNIC()).mustOpen(t)
	for range 3 { // later refusals are noticed although the bit is already set
		if err := d.Write32(regmap.QueueDepth, 0); !errors.Is(err, fpga.ErrRefused) {
			t.Fatal(err)
		}
	}
	if v, _ := d.Read32(regmap.CommonErrors); v != regmap.CommonErrorsValue|regmap.CommonErrorsQueue {
		t.Errorf("common.errors = %#x", v)
	}
	if err := d.Write32(regmap.CommonErrors, regmap.CommonErrorsValue); err != nil {
		t.Fatal(err)
	}
	if v, _ := d.Read32(regmap.CommonErrors); v != regmap.CommonErrorsQueue {
		t.Errorf("common.errors = %#x after clearing one bit", v)
	}
}

func TestClose(t *testing.T) {
	h := newHost(t, pcietest.OpenNIC())
	d, err := h.open(pcie.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := d.Read32(regmap.QueueDepth); !errors.Is(err, fpga.ErrGone) {
		t.Errorf("read after close: %v", err)
	}
	h.mustOpen(t)
}

// TestIdentityIsAskedAgain checks that a different image is noticed within 65,536 accesses, whichever register is read.
func TestIdentityIsAskedAgain(t *testing.T) {
	h := newHost(t, pcietest.OpenNIC())
	d := h.mustOpen(t)
	h.card.Reprogram()
	for range 1 << 16 {
		if _, err := d.Read32(regmap.QueueDepth); err != nil {
			if !errors.Is(err, pcie.ErrChanged) {
				t.Error(err)
			}
			return
		}
	}
	t.Error("65,536 reads of another image")
}

func TestResetOfTheQDMANeedsForce(t *testing.T) {
	h := newHost(t, pcietest.OpenNIC())
	var resets []uint32
	h.card.OnStore = func(_ int, offset, value uint32) bool {
		if offset == pcie.ShellReset {
			resets = append(resets, value)
		}
		return false
	}
	d := h.mustOpen(t)
	if err := d.Reset(pcie.ResetQDMA); !errors.Is(err, pcie.ErrDenied) || len(resets) != 0 {
		t.Errorf("unforced: %v, %v", err, resets)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	forced, err := h.open(pcie.Options{Force: true})
	if err != nil {
		t.Fatal(err)
	}
	defer forced.Close()
	if err := forced.Reset(pcie.ResetQDMA); err != nil || len(resets) != 1 || resets[0] != 1 {
		t.Errorf("forced: %v, %v", err, resets)
	}
}

// TestDryRunMovesNoIndex checks that a dry run answers reads of the data windows without accessing the card.
func TestDryRunMovesNoIndex(t *testing.T) {
	h := newHost(t, pcietest.OpenNIC())
	h.card.OnLoad = func(_ int, offset, v uint32) uint32 {
		if offset == regmap.GeneratorMemData || offset == regmap.ReplicationMemberData {
			t.Errorf("a dry run read %#x", offset)
		}
		return v
	}
	d, err := h.open(pcie.Options{DryRun: new(bytes.Buffer)})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, addr := range []uint32{regmap.GeneratorMemData, regmap.ReplicationMemberData} {
		if _, err := d.Read32(addr); err != nil {
			t.Error(err)
		}
	}
	if err := d.WriteBurst(regmap.GeneratorMemData, make([]uint32, 8)); err != nil {
		t.Error(err)
	}
}

// TestBurstsCountAsAccesses checks that a different image is noticed within 65,536 words, however long the bursts are.
func TestBurstsCountAsAccesses(t *testing.T) {
	h := newHost(t, pcietest.OpenNIC())
	d := h.mustOpen(t)
	h.card.Reprogram()
	for range 17 {
		if err := d.WriteBurst(regmap.GeneratorMemData, make([]uint32, 4096)); err != nil {
			if !errors.Is(err, pcie.ErrChanged) {
				t.Error(err)
			}
			return
		}
	}
	t.Error("69,632 words to another image")
}
