package pcie

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/olafctl/olaf/fpga"
)

// Identifiers of cards that may run our image, which is an OpenNIC shell with the OLAF box.
const (
	vendorXilinx  = 0x10ee
	factoryDevice = 0x505c // a U55C before an OpenNIC image is loaded
	otherOpenNIC  = 0x6aa0 // listed in OpenNIC's kernel driver, for an unnamed board
	// barBytes is the size of BAR2 in the stock shell. Other images with the same device id have other sizes and
	// register maps.
	barBytes = 4 << 20
	// esnetBarBytes is the size of BAR2 in newer ESnet SmartNIC images.
	esnetBarBytes = 8 << 20
)

// isOpenNIC reports whether a PCI device id belongs to a physical function of an OpenNIC shell. The id's hexadecimal
// digits are 9, the function, the PCIe generation, and the link width, where f means 16 lanes.
func isOpenNIC(id uint16) bool {
	function, generation, width := id>>8&0xf, id>>4&0xf, id&0xf
	return id>>12 == 9 && function < 4 && (generation == 3 && width == 0xf || (generation == 3 || generation == 4) &&
		slices.Contains([]uint16{1, 2, 4, 8}, width))
}

// State is the degree to which a card may be used.
type State string

const (
	// Loaded is the state of a card whose image has the expected id and BAR size. Open performs the remaining checks.
	Loaded State = "loaded"
	// Skipped is the state of a device that is not one of our cards.
	Skipped State = "skipped"
	// Refused is the state of a card that looks like one of ours but must not be used. Card.Reason has the reason and
	// advice.
	Refused State = "refused"
)

// Card contains the data about one PCI function from sysfs. It is read without accessing the card.
type Card struct {
	BDF           string `json:"bdf"` // 0000:3b:00.0
	Vendor        uint16 `json:"vendor"`
	Device        uint16 `json:"device"`
	Class         uint32 `json:"class"`
	Driver        string `json:"driver,omitempty"` // kernel driver bound to it
	BAR2Bytes     int64  `json:"bar2_bytes"`
	LinkSpeed     string `json:"link_speed,omitempty"`
	LinkWidth     string `json:"link_width,omitempty"`
	MemoryEnabled bool   `json:"memory_enabled"`        // COMMAND bit 1: the BARs answer
	FunctionOf    string `json:"function_of,omitempty"` // for functions other than 0: address of the card's function 0
	State         State  `json:"state"`
	Reason        string `json:"why,omitempty"`

	kind error // kind of error for a refusal
}

// Bus configures the directories in which cards are found.
type Bus struct {
	// Sysfs is the folder of PCI devices, /sys/bus/pci/devices.
	Sysfs string
	// Locks is the folder of per-card lock files, shared by all processes of the host.
	Locks string
	// Proc is the folder in which mappings by other processes are looked up; if empty, they are not.
	Proc string
	// Map opens a card's BAR2; if nil, the file is mapped. Tests use it to insert a scripted card.
	Map func(path string, bytes int64, writable bool) (Window, error)
	// Clock provides the time for the cards; nil means the host's clock.
	Clock Clock
	// Guard returns a command that calls Guard for a card; nil for none. It is started before the card's generator. If
	// this process is killed, the command stops the generator.
	Guard func(bdf string) *exec.Cmd
}

// HostBus returns the PCI bus of this host.
func HostBus() Bus { return Bus{Sysfs: "/sys/bus/pci/devices", Locks: "/run/lock", Proc: "/proc"} }

var bdfForm = regexp.MustCompile(`^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

// Scan returns the Xilinx PCI functions in order of address. The list is empty on a host without PCI.
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
		if errors.Is(err, fs.ErrNotExist) {
			continue // the device was removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		if card.Vendor == vendorXilinx {
			cards = append(cards, card)
		}
	}
	markFunctions(cards)
	return cards, nil
}

// markFunctions sets FunctionOf for functions other than function 0, because they show the same registers.
func markFunctions(cards []Card) {
	for i := range cards {
		c := &cards[i]
		first := Slot(c.BDF) + ".0"
		if c.BDF == first || c.State == Skipped ||
			!slices.ContainsFunc(cards, func(o Card) bool { return o.BDF == first && o.State != Skipped }) {
			continue
		}
		c.FunctionOf = first
		if c.Reason == "" {
			c.Reason = "another function of " + first + ", with the same registers"
		}
	}
}

// Slot returns a card's PCI address without the function. The address does not have to be valid.
func Slot(bdf string) string {
	slot, _, _ := strings.Cut(strings.ToLower(bdf), ".")
	return slot
}

// Find returns the card at a PCI address. The error matches ErrNoCard and describes the device at the address, if there
// is one.
func (b Bus) Find(bdf string) (Card, error) {
	bdf = strings.ToLower(bdf)
	if !bdfForm.MatchString(bdf) {
		return Card{}, fmt.Errorf("%w at %q: use an address such as 0000:3b:00.0; 'olafctl device list' shows the "+
			"addresses",
			ErrNoCard, bdf)
	}
	card, err := b.probe(bdf)
	if errors.Is(err, fs.ErrNotExist) {
		return Card{}, fmt.Errorf("%w at %s: there is no such PCI device; 'olafctl device list' shows the devices",
			ErrNoCard, bdf)
	}
	if err != nil {
		return Card{}, err
	}
	if card.State == Skipped {
		return card, fmt.Errorf("%w at %s: %s", ErrNoCard, bdf, card.Reason)
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
	if driver, err := os.Readlink(filepath.Join(dir, "driver")); err == nil {
		c.Driver = filepath.Base(driver)
	}
	if info, err := os.Stat(filepath.Join(dir, "resource2")); err == nil {
		c.BAR2Bytes = info.Size()
	}
	power := readWord(dir, "power_state") // first, because reading the configuration space may wake a card
	config := readConfig(dir)
	c.MemoryEnabled = !config.isDead() && config[command]&2 != 0
	if !config.isDead() {
		c.LinkSpeed, c.LinkWidth = readWord(dir, "current_link_speed"), readWord(dir, "current_link_width")
	}
	c.judge(power, config)
	return c, nil
}

// judge decides from sysfs alone whether a function may be opened. It checks first for a dead link and a sleeping card,
// because these explain all other symptoms.
func (c *Card) judge(power string, config configuration) {
	sys := "/sys/bus/pci/devices/" + c.BDF
	skip := func(why string) { c.State, c.Reason = Skipped, why }
	refuse := func(kind error, why string) { c.State, c.Reason, c.kind = Refused, why, kind }
	switch {
	case c.Vendor != vendorXilinx:
		skip(fmt.Sprintf("vendor %04x is not Xilinx", c.Vendor))
	case c.Device == otherOpenNIC:
		refuse(ErrNotOurs, "device 6aa0 is an OpenNIC function of an unsupported board")
	case c.Device != factoryDevice && !isOpenNIC(c.Device):
		skip(fmt.Sprintf("device %04x is not an OpenNIC function", c.Device))
	case strings.HasPrefix(power, "D") && power != "D0":
		refuse(ErrNotReady, fmt.Sprintf("it is asleep (%s%s); as root: echo on > %s/power/control", power, withDriver(c.Driver),
			sys))
	case config.isDead():
		refuse(fpga.ErrGone, "its configuration space reads all ones: the link is down; check the port above it with "+
			"'lspci -vv', and warm-reboot the host")
	case c.Device == factoryDevice:
		refuse(ErrNotOurs, "a U55C with its factory image; program an OpenNIC image with the OLAF box, then warm-reboot the host")
	case c.BAR2Bytes == 0 && config[bar2]&barType != 0:
		refuse(ErrNotReady, "BAR2 has no address: the bridge above the card has no room for it; "+
			"warm-reboot the host with the card in it, or boot it with pci=realloc")
	case c.BAR2Bytes == 0:
		refuse(ErrNotReady, "BAR2 is missing or has no address: the image changed, or the bridge above the card has no room for it; "+
			"warm-reboot the host with the card in it, or boot it with pci=realloc")
	case c.BAR2Bytes == esnetBarBytes:
		refuse(ErrNotOurs, "BAR2 of 8 MiB: an ESnet SmartNIC image, whose registers are at other addresses")
	case c.BAR2Bytes != barBytes:
		refuse(ErrNotOurs, fmt.Sprintf("BAR2 of %d bytes; the OpenNIC shell has %d", c.BAR2Bytes, barBytes))
	case !c.MemoryEnabled && c.Driver != "": // the kernel does not enable a card that has a driver
		refuse(ErrNotReady, fmt.Sprintf("memory decoding is off%s; run 'setpci -s %s COMMAND=2:2' as root, which "+
			"sets only this bit", withDriver(c.Driver), c.BDF))
	case !c.MemoryEnabled: // normal after a rescan without a driver
		refuse(ErrNotReady, fmt.Sprintf("memory decoding is off; as root: echo 1 > %s/enable", sys))
	default:
		c.State = Loaded
	}
}

// withDriver returns the part of a message that names the driver bound to a device.
func withDriver(driver string) string {
	if driver == "" {
		return ""
	}
	return ", with the driver " + driver
}

// configuration contains the first bytes of a function's configuration space.
type configuration [64]byte

// Offsets in the configuration space.
const (
	command = 0x04
	bar2    = 0x18
	barType = 0xf // type bits of a BAR; 0 for a 32-bit BAR or if there is none
)

// readConfig reads the part of the configuration space that every user may read. Bytes that cannot be read are 0.
func readConfig(dir string) (c configuration) {
	file, err := os.Open(filepath.Join(dir, "config"))
	if err != nil {
		return c
	}
	defer file.Close()
	_, _ = file.ReadAt(c[:], 0)
	return c
}

// isDead reports whether the function's ids are all ones, which means that it does not answer.
func (c configuration) isDead() bool { return c[0]&c[1]&c[2]&c[3] == 0xff }

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

// readWord returns the text of a sysfs attribute, or "" if it does not exist.
func readWord(dir, name string) string {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
