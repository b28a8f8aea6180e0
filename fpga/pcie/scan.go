package pcie

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Identifiers of cards that may run our image (OpenNIC shell on an Alveo U55C: vendor 10ee; physical function 0 to 3 of
// Gen3 x16, Gen3 x8 and Gen4 x8 builds).
const (
	vendorXilinx  = 0x10ee
	factoryDevice = 0x505c // a U55C before an OpenNIC image is loaded
	// barBytes is the size of BAR2 of a stock shell; other images behind the same device id have other sizes and maps.
	barBytes = 4 << 20
	// esnetBarBytes is what newer ESnet SmartNIC images show.
	esnetBarBytes = 8 << 20
)

// openNICDevices are the device ids of a shell's physical functions: the second hex digit is the function.
var openNICDevices = []uint16{
	0x903f, 0x913f, 0x923f, 0x933f, // Gen3 x16
	0x9038, 0x9138, 0x9238, 0x9338, // Gen3 x8
	0x9048, 0x9148, 0x9248, 0x9348, // Gen4 x8
}

// State is how far a card may be used.
type State string

const (
	// Loaded cards have an image of the right shape; opening one proves the rest.
	Loaded State = "loaded"
	// Skipped devices are none of ours.
	Skipped State = "skipped"
	// Refused cards look like ours and must not be touched; Why says what to do.
	Refused State = "refused"
)

// Card is what sysfs tells of one PCI function, without any access to the card itself.
type Card struct {
	BDF           string `json:"bdf"` // 0000:3b:00.0
	Vendor        uint16 `json:"vendor"`
	Device        uint16 `json:"device"`
	Class         uint32 `json:"class"`
	Driver        string `json:"driver,omitempty"` // kernel driver bound to it
	BAR2Bytes     int64  `json:"bar2_bytes"`
	LinkSpeed     string `json:"link_speed,omitempty"`
	LinkWidth     string `json:"link_width,omitempty"`
	MemoryEnabled bool   `json:"memory_enabled"` // COMMAND bit 1: the BARs answer
	State         State  `json:"state"`
	Why           string `json:"why,omitempty"`
}

// Bus is where cards are found.
type Bus struct {
	// Sysfs is the folder of PCI devices, /sys/bus/pci/devices.
	Sysfs string
	// Locks is the folder of per-card lock files, shared by all processes of the host.
	Locks string
	// Proc is the folder in which other processes' mappings are looked up; empty looks nowhere.
	Proc string
	// Map opens a card's BAR2; nil maps the file. Tests put a scripted card here.
	Map func(path string, bytes int64, writable bool) (Window, error)
}

// System is this host's bus.
func System() Bus { return Bus{Sysfs: "/sys/bus/pci/devices", Locks: "/run/lock", Proc: "/proc"} }

var bdfForm = regexp.MustCompile(`^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

// Scan lists Xilinx functions in order of their addresses. A host without PCI has none.
func (b Bus) Scan() ([]Card, error) {
	entries, err := os.ReadDir(b.Sysfs)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list PCI devices: %w", err)
	}
	var cards []Card
	for _, e := range entries {
		if !bdfForm.MatchString(e.Name()) {
			continue
		}
		card, err := b.probe(e.Name())
		if err != nil {
			return nil, err
		}
		if card.Vendor == vendorXilinx {
			cards = append(cards, card)
		}
	}
	return cards, nil
}

// Find probes one address. The error matches ErrNoCard and says what is there instead.
func (b Bus) Find(bdf string) (Card, error) {
	bdf = strings.ToLower(bdf)
	if !bdfForm.MatchString(bdf) {
		return Card{}, fmt.Errorf("%w at %q: an address looks like 0000:3b:00.0; 'olafctl device list' shows them", ErrNoCard, bdf)
	}
	card, err := b.probe(bdf)
	if errors.Is(err, fs.ErrNotExist) {
		return Card{}, fmt.Errorf("%w at %s: there is no such PCI device; 'olafctl device list' shows what is there", ErrNoCard, bdf)
	}
	if err != nil {
		return Card{}, err
	}
	if card.State == Skipped {
		return card, fmt.Errorf("%w at %s: %s", ErrNoCard, bdf, card.Why)
	}
	return card, nil
}

func (b Bus) probe(bdf string) (Card, error) {
	dir := filepath.Join(b.Sysfs, bdf)
	c := Card{BDF: bdf}
	vendor, err := readHex(dir, "vendor")
	if err != nil {
		return c, err
	}
	device, err := readHex(dir, "device")
	if err != nil {
		return c, err
	}
	class, err := readHex(dir, "class")
	if err != nil {
		return c, err
	}
	c.Vendor, c.Device, c.Class = uint16(vendor), uint16(device), uint32(class)
	c.LinkSpeed, c.LinkWidth = readWord(dir, "current_link_speed"), readWord(dir, "current_link_width")
	if driver, err := os.Readlink(filepath.Join(dir, "driver")); err == nil {
		c.Driver = filepath.Base(driver)
	}
	if info, err := os.Stat(filepath.Join(dir, "resource2")); err == nil {
		c.BAR2Bytes = info.Size()
	}
	c.MemoryEnabled = memoryEnabled(dir)
	c.State, c.Why = judge(&c)
	return c, nil
}

// judge decides from sysfs alone whether a function may be opened.
func judge(c *Card) (State, string) {
	switch {
	case c.Vendor != vendorXilinx:
		return Skipped, fmt.Sprintf("vendor %04x is not Xilinx", c.Vendor)
	case c.Device == factoryDevice:
		return Refused, "a U55C with its factory image; program an OpenNIC image with the OLAF box, then warm-reboot the host"
	case !slices.Contains(openNICDevices, c.Device):
		return Skipped, fmt.Sprintf("device %04x is no OpenNIC function", c.Device)
	case c.BAR2Bytes == 0:
		return Refused, "no BAR2; the image changed without a warm reboot, or this user may not see it"
	case c.BAR2Bytes == esnetBarBytes:
		return Refused, "BAR2 of 8 MiB: an ESnet SmartNIC image, whose registers lie elsewhere"
	case c.BAR2Bytes != barBytes:
		return Refused, fmt.Sprintf("BAR2 of %d bytes; the OpenNIC shell has %d", c.BAR2Bytes, barBytes)
	case !c.MemoryEnabled:
		return Refused, "memory decoding is off; run 'setpci -s " + c.BDF + " COMMAND=2:2', which sets this bit alone"
	}
	return Loaded, ""
}

// memoryEnabled reads bit 1 of COMMAND in the configuration space; a link that is down reads all ones and is not enabled.
func memoryEnabled(dir string) bool {
	file, err := os.Open(filepath.Join(dir, "config"))
	if err != nil {
		return false
	}
	defer file.Close()
	head := make([]byte, 6)
	if _, err := file.ReadAt(head, 0); err != nil {
		return false
	}
	command := uint16(head[4]) | uint16(head[5])<<8
	return command != 0xffff && command&2 != 0
}

func readHex(dir, name string) (uint64, error) {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseUint(strings.TrimPrefix(strings.TrimSpace(string(text)), "0x"), 16, 32)
	if err != nil {
		return 0, fmt.Errorf("%s/%s: %w", dir, name, err)
	}
	return v, nil
}

// readWord is an attribute as text, empty where there is none.
func readWord(dir, name string) string {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
