package pcie_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/pcie"
	"github.com/olafctl/olaf/fpga/pcie/pcietest"
	"github.com/olafctl/olaf/fpga/regmap"
)

const secondFunction = "0000:3b:00.1"

func (h *host) function(t *testing.T, f pcietest.Function) string {
	t.Helper()
	must(t, pcietest.WriteSysfs(h.bus.Sysfs, f))
	return filepath.Join(h.bus.Sysfs, f.BDF)
}

// TestOneWriterPerCard checks that there is one lock per card, not one per function, since all functions show the same
// registers, and that the list shows which functions belong together.
func TestOneWriterPerCard(t *testing.T) {
	h := newHost(t, pcietest.OpenNIC())
	second := pcietest.OpenNIC()
	second.BDF, second.Device = secondFunction, 0x913f
	h.function(t, second)
	cards, err := h.bus.Scan()
	must(t, err)
	if len(cards) != 2 || cards[0].FunctionOf != "" || cards[1].FunctionOf != pcietest.BDF ||
		!strings.Contains(cards[1].Reason, "the same registers") {
		t.Errorf("%+v; want the second function marked as one of the first one's card", cards)
	}
	h.mustOpen(t)
	for _, o := range []pcie.Options{{}, {ReadOnly: true}} {
		if _, err := pcie.Open(h.bus, secondFunction, o); !errors.Is(err, pcie.ErrBusy) {
			t.Errorf("read-only %t: %v; want the card in use", o.ReadOnly, err)
		}
	}
}

// TestOtherUsersOfACard checks that processes are found that access the registers of any function by other means.
func TestOtherUsersOfACard(t *testing.T) {
	for name, c := range map[string]struct {
		sysfs map[string]string // links by their path in the function's folder
		maps  string
		open  string
		says  string
	}{
		"UIO": {map[string]string{"uio/uio3/device": "x"}, "7f00-7f40 rw-s 0 00:05 12  /dev/uio3\n", "",
			"process 4242 (which maps /dev/uio3)"},
		"VFIO": {map[string]string{"driver": "../../drivers/vfio-pci", "iommu_group": "../../iommu_groups/17"}, "",
			"/dev/vfio/17", "process 4242 (which has /dev/vfio/17 open)"},
		"VFIO of one device": {map[string]string{"driver": "../../drivers/vfio-pci", "vfio-dev/vfio2/x": "x"}, "",
			"/dev/vfio/devices/vfio2", "which has /dev/vfio/devices/vfio2 open"},
		"a longer name": {map[string]string{"uio/uio3/device": "x"}, "7f00-7f40 rw-s 0 00:05 12  /dev/uio33\n", "", ""},
		"another group": {map[string]string{"driver": "../../drivers/vfio-pci", "iommu_group": "../../iommu_groups/17"}, "",
			"/dev/vfio/1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, pcietest.OpenNIC())
			second := pcietest.OpenNIC()
			second.BDF, second.Device = secondFunction, 0x913f
			dir := h.function(t, second)
			for at, to := range c.sysfs {
				must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, at)), 0o755))
				must(t, os.Symlink(to, filepath.Join(dir, at)))
			}
			h.bus.Proc = t.TempDir()
			process := filepath.Join(h.bus.Proc, "4242")
			must(t, os.MkdirAll(filepath.Join(process, "fd"), 0o755))
			must(t, os.WriteFile(filepath.Join(process, "maps"), []byte(c.maps), 0o644))
			if c.open != "" {
				must(t, os.Symlink(c.open, filepath.Join(process, "fd", "5")))
			}
			d, err := h.open(pcie.Options{})
			if err == nil {
				must(t, d.Close())
			}
			if c.says == "" && err != nil || c.says != "" && (!errors.Is(err, pcie.ErrBusy) || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%v; want %q", err, c.says)
			}
		})
	}
}

// TestRefusedMapping checks that a card whose BAR the kernel refuses to map is reported as refused, with the reason and
// advice.
func TestRefusedMapping(t *testing.T) {
	for name, c := range map[string]struct {
		driver string
		err    error
		kind   error
		says   []string
	}{
		"a driver owns it": {"onic", syscall.EINVAL, pcie.ErrBusy,
			[]string{"the driver onic", "'echo 0000:3b:00.0 > /sys/bus/pci/devices/0000:3b:00.0/driver/unbind'", "iomem=relaxed"}},
		"the kernel owns it": {"", syscall.EINVAL, pcie.ErrBusy, []string{"/proc/iomem", "iomem=relaxed"}},
		"lockdown":           {"", syscall.EPERM, pcie.ErrNotReady, []string{"locked down"}},
		"no rights":          {"", syscall.EACCES, pcie.ErrNotReady, []string{"root", "udev"}},
		"out of memory":      {"", syscall.ENOMEM, pcie.ErrNotReady, []string{"cannot allocate memory"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := pcietest.OpenNIC()
			f.Driver = c.driver
			h := newHost(t, f)
			h.bus.Map = func(string, int64, bool) (pcie.Window, error) { return nil, fmt.Errorf("map: %w", c.err) }
			_, err := h.open(pcie.Options{})
			if kind, _ := olaf.KindOf(err); kind != olaf.Device || !errors.Is(err, c.kind) {
				t.Errorf("%v; want a refusal of kind %q", err, c.kind)
			}
			for _, part := range c.says {
				if !strings.Contains(fmt.Sprint(err), part) {
					t.Errorf("%v; want it to name %q", err, part)
				}
			}
		})
	}
}

// TestChangesUnderAnOpenCard checks that an open session notices what the kernel does with its card, and names it.
func TestChangesUnderAnOpenCard(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(t *testing.T, h *host, dir string)
		kind    error
		says    string
	}{
		"removed": {func(t *testing.T, _ *host, dir string) { must(t, os.RemoveAll(dir)) }, fpga.ErrGone, "removed from the PCI bus"},
		"removed and found again": {func(t *testing.T, h *host, dir string) {
			must(t, os.Rename(dir, dir+"-before")) // keep the old files, so that the new ones get other inode numbers
			h.function(t, pcietest.OpenNIC())
		}, pcie.ErrChanged, "the same one after a reinsertion"},
		"a driver bound": {func(t *testing.T, h *host, dir string) {
			must(t, os.Symlink("../../drivers/onic", filepath.Join(dir, "driver")))
			h.card.AllOnesFrom(1)
		}, fpga.ErrGone, "the driver onic was bound to it in the meantime"},
		"asleep": {func(t *testing.T, h *host, dir string) {
			must(t, os.WriteFile(filepath.Join(dir, "power_state"), []byte("D3hot\n"), 0o644))
			h.card.AllOnesFrom(1)
		}, fpga.ErrGone, "it is asleep (D3hot)"},
		"a dead link": {func(t *testing.T, h *host, dir string) {
			must(t, os.WriteFile(filepath.Join(dir, "config"), []byte(strings.Repeat("\xff", 64)), 0o644))
			h.card.AllOnesFrom(1)
		}, fpga.ErrGone, "its configuration space reads all ones"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, pcietest.OpenNIC())
			d := h.mustOpen(t)
			c.happens(t, h, filepath.Join(h.bus.Sysfs, pcietest.BDF))
			must(t, h.card.Wait(t.Context(), 100*olaf.Millisecond))
			stores := h.card.Stores
			if err := d.Write32(regmap.QueueDepth, 5); !errors.Is(err, c.kind) || !errors.Is(err, fpga.ErrGone) ||
				!strings.Contains(err.Error(), c.says) {
				t.Errorf("%v; want %q of kind %q", err, c.says, c.kind)
			}
			if h.card.Stores != stores {
				t.Error("the write reached the bus")
			}
		})
	}
}

// TestDeadLinkHasNoSpeed checks that the list shows no link for a card whose link is down.
func TestDeadLinkHasNoSpeed(t *testing.T) {
	f := pcietest.OpenNIC()
	f.DeadLink = true
	cards, err := newHost(t, f).bus.Scan()
	must(t, err)
	if len(cards) != 1 || cards[0].LinkSpeed != "" || cards[0].State != pcie.Refused {
		t.Errorf("%+v", cards)
	}
}

// TestOpenNICDevices checks that every function that OpenNIC's kernel driver lists is accepted with its generation and
// width, and no other.
func TestOpenNICDevices(t *testing.T) {
	for id, want := range map[uint16]pcie.State{
		0x903f: pcie.Loaded, 0x933f: pcie.Loaded, 0x9038: pcie.Loaded, 0x9348: pcie.Loaded, 0x9031: pcie.Loaded, 0x9044: pcie.Loaded,
		0x943f: pcie.Skipped, 0x904f: pcie.Skipped, 0x9028: pcie.Skipped, 0x9033: pcie.Skipped, 0x7038: pcie.Skipped,
		0x6aa0: pcie.Refused,
	} {
		f := pcietest.OpenNIC()
		f.Device = id
		cards, err := newHost(t, f).bus.Scan()
		must(t, err)
		if len(cards) != 1 || cards[0].State != want {
			t.Errorf("%04x: %+v; want %s", id, cards, want)
		}
	}
}

// TestOnePort checks that an image with one MAC, as for an Alveo U50, works and that the missing port is refused.
func TestOnePort(t *testing.T) {
	h := newHost(t, pcietest.OpenNIC())
	h.card.OnLoad = func(_ int, offset, v uint32) uint32 {
		if offset >= 0xC000 && offset < 0xF000 {
			return 0xC1000000 | offset&0xFFFF
		}
		return v
	}
	d := h.mustOpen(t)
	if d.Ports() != 1 {
		t.Errorf("%d ports", d.Ports())
	}
	counts, err := d.PortCounts()
	if must(t, err); len(counts) != 1 {
		t.Errorf("%d ports are counted", len(counts))
	}
	if _, err := d.Link(1); !errors.Is(err, fpga.ErrAddress) || !strings.Contains(err.Error(), "has 1 port from 0") {
		t.Errorf("the link of port 1: %v", err)
	}
	stores := h.card.Stores
	if err := d.Reset("cmac1"); !errors.Is(err, pcie.ErrDenied) || !strings.Contains(err.Error(), "has 1 port from 0") {
		t.Errorf("a reset of the MAC of port 1: %v", err)
	}
	for _, access := range []func() error{
		func() error { _, err := d.Read32(0xC204); return err },
		func() error { return d.Write32(0xC00C, 1) },
	} {
		if err := access(); !errors.Is(err, fpga.ErrAddress) || !strings.Contains(err.Error(), "has 1 port from 0") {
			t.Errorf("a raw access to the MAC of port 1: %v", err)
		}
	}
	if h.card.Stores != stores {
		t.Error("a write reached a MAC that is not built")
	}
}
