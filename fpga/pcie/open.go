package pcie

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
)

// Options say how a card is opened.
type Options struct {
	// ReadOnly opens cards that run another image too, shares the card with other readers, and writes nothing, not even
	// the scratch register.
	ReadOnly bool
	// DryRun prints every access and writes nothing; reads are done. nil does what it says.
	DryRun io.Writer
	// Force allows resetting the QDMA, which the host's DMA contexts do not survive; a bound driver still forbids it.
	Force bool
	// Clock is how time passes; nil is the host's.
	Clock Clock
	// Lost is called once, when the card turns out to be gone, reset or another one; nil calls nothing.
	Lost func(error)
}

// Clock is how time passes for a card. Two of its times differ by the time that passed between them, even if the host's
// clock was set in between: a device that sees more time pass than its card counted reports a power cycle.
type Clock interface {
	Now() time.Time
	Wait(ctx context.Context, d olaf.Duration) error
}

type hostClock struct{}

func (hostClock) Now() time.Time { return time.Now() }

func (hostClock) Wait(ctx context.Context, d olaf.Duration) error {
	timer := time.NewTimer(time.Duration(int64(d) / int64(olaf.Nanosecond)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Outcome is how a check went.
type Outcome string

const (
	Passed Outcome = "passed"
	Noted  Outcome = "noted" // works, but somebody should know
	NotRun Outcome = "skipped"
	Failed Outcome = "failed"
)

// Check is one thing that was looked at before a card is used.
type Check struct {
	Name    string  `json:"name"`
	Outcome Outcome `json:"outcome"`
	Seen    string  `json:"seen"`
	Next    string  `json:"next,omitempty"` // what to do about it
}

// Open opens the card at a PCI address such as 0000:3b:00.0 after all checks; nothing was written before they passed, but
// the scratch register, which they end with. Errors match ErrNoCard, ErrNotOurs, ErrBusy, ErrStale or fpga.ErrGone and say
// what to do. With Options.ReadOnly a card that runs another image is opened too, for reading the shell.
func Open(bus Bus, bdf string, o Options) (*Device, error) {
	d, _, err := Examine(bus, bdf, o)
	return d, err
}

// Examine is Open that also tells what was checked, in order, up to what failed.
func Examine(bus Bus, bdf string, o Options) (*Device, []Check, error) {
	x := &examination{bus: bus, options: o}
	err := x.run(bdf)
	if err != nil && x.device != nil {
		err = errors.Join(err, x.device.Close())
		x.device = nil
	}
	return x.device, x.checks, err
}

// examination goes through the checks of one card.
type examination struct {
	bus     Bus
	options Options
	card    Card
	device  *Device
	checks  []Check
}

func (x *examination) say(name string, outcome Outcome, seen, next string) {
	x.checks = append(x.checks, Check{name, outcome, seen, next})
}

// fail books a failed check and returns its error: the kind, what was seen, and what to do.
func (x *examination) fail(name string, kind error, seen, next string) error {
	x.say(name, Failed, seen, next)
	err := fmt.Errorf("%w: %s", kind, seen)
	if next != "" {
		err = fmt.Errorf("%w; %s", err, next)
	}
	return err
}

func (x *examination) writes() bool { return !x.options.ReadOnly && x.options.DryRun == nil }

func (x *examination) run(bdf string) error {
	steps := []func() error{
		func() error { return x.find(bdf) },
		x.lock, x.others, x.mapBAR, x.link, x.shell, x.image, x.scratch,
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// find looks at sysfs alone.
func (x *examination) find(bdf string) error {
	card, err := x.bus.Find(bdf)
	if err != nil {
		x.say("card", Failed, err.Error(), "")
		return err
	}
	if card.State == Refused {
		return x.fail("card", card.kind, card.BDF+": "+card.Why, "")
	}
	x.card = card
	x.say("card", Passed, fmt.Sprintf("%04x:%04x, BAR2 of %d MiB, memory decoding on", card.Vendor, card.Device,
		card.BAR2Bytes>>20), "")
	if card.Driver == "" {
		x.say("driver", Passed, "none bound", "")
	} else {
		x.say("driver", Noted, card.Driver+" is bound",
			"do not run 'ethtool -S' during measurements: it ticks the MAC's counters and takes what they held")
	}
	return nil
}

func (x *examination) lock() error {
	l, err := takeLock(x.bus.Locks, slotOf(x.card.BDF), x.writes())
	if err != nil {
		x.say("lock", Failed, err.Error(), "")
		return fmt.Errorf("%s: %w", x.card.BDF, err)
	}
	x.say("lock", Passed, map[bool]string{true: "held alone", false: "shared with other readers"}[x.writes()], "")
	x.device = &Device{card: x.card, bus: x.bus, lock: l, options: x.options, clock: x.options.Clock}
	if x.device.clock == nil {
		x.device.clock = hostClock{}
	}
	return nil
}

// others finds processes that use the card's registers without our lock.
func (x *examination) others() error {
	users := findUsers(x.bus, slotOf(x.card.BDF))
	switch list := strings.Join(users, ", "); {
	case x.bus.Proc == "":
		x.say("other programs", NotRun, "no /proc to look into", "")
	case len(users) == 0:
		x.say("other programs", Passed, "no process that this user can see maps BAR2", "")
	case !x.writes():
		x.say("other programs", Noted, list+" can access the registers",
			"values may be stale if they write at the same time")
	default:
		return x.fail("other programs", ErrBusy, list+" can access the registers without holding the lock",
			"end it, or open the card read-only")
	}
	return nil
}

func (x *examination) barPath() string { return filepath.Join(x.bus.Sysfs, x.card.BDF, "resource2") }

func (x *examination) mapBAR() error {
	open := x.bus.Map
	if open == nil {
		open = mapFile
	}
	info, err := os.Stat(x.barPath())
	if err != nil {
		return x.fail("mapping", fpga.ErrGone, fmt.Sprintf("%s was removed from the PCI bus", x.card.BDF),
			"'olafctl device list' shows what is there")
	}
	w, err := open(x.barPath(), x.card.BAR2Bytes, x.writes())
	if err != nil {
		next, kind := x.whyUnmapped(err)
		return x.fail("mapping", kind, err.Error(), next)
	}
	if x.options.DryRun != nil {
		w = newDryWindow(w, x.options.DryRun)
	}
	x.device.window, x.device.bar = w, info
	x.say("mapping", Passed, fmt.Sprintf("%d bytes", x.card.BAR2Bytes), "")
	return nil
}

// whyUnmapped explains why the kernel lends no BAR2, and what to do about it.
func (x *examination) whyUnmapped(err error) (next string, kind error) {
	const relaxed = "boot the kernel with iomem=relaxed"
	switch driver := x.card.Driver; {
	case errors.Is(err, syscall.EINVAL) && driver != "":
		return fmt.Sprintf("the driver %s owns BAR2, and this kernel (CONFIG_IO_STRICT_DEVMEM) shares it with no program: unbind it with "+
				"'echo %s > /sys/bus/pci/devices/%[2]s/driver/unbind' as root, or %[3]s", driver, x.card.BDF, relaxed),
			ErrBusy
	case errors.Is(err, syscall.EINVAL):
		return "a part of the kernel owns BAR2: see /proc/iomem, or " + relaxed, ErrBusy
	case errors.Is(err, syscall.EPERM):
		return "the kernel is locked down and lends BARs to no program, as with Secure Boot: boot it with lockdown=none", ErrNotReady
	case errors.Is(err, fs.ErrPermission):
		return "this needs root, or a udev rule that gives your group the file", ErrNotReady
	case errors.Is(err, errNoMap):
		return "", ErrNotReady
	}
	return "'olafctl device list' shows the state of the card", ErrNotReady
}

// link reads what cannot be all ones on a card that answers.
func (x *examination) link() error {
	canary, built := x.device.sure(ShellCanary), x.device.sure(ShellBuildTime)
	seen := fmt.Sprintf("0x008 reads %#x, 0x000 reads %#08x", canary, built)
	switch {
	case canary == allOnes || built == allOnes:
		text, _ := Placeholder(allOnes)
		return x.fail("answers", fpga.ErrGone, seen+": "+text,
			"warm-reboot the host after the image changed; look at 'lspci -vv' for the link")
	case canary == 0:
		return x.fail("answers", fpga.ErrGone, seen+": the power-up reset has not ended",
			"wait a second and try again; if it stays, program the card again")
	case canary != canaryLive:
		return x.fail("answers", ErrNotOurs, seen+": bits 31:1 of 0x008 are wired to 0 in an OpenNIC shell",
			"program an OpenNIC image with the OLAF box")
	}
	x.device.built = built
	x.say("answers", Passed, seen, "")
	return nil
}

// shell looks at the MACs, which the register map of an OpenNIC shell has at fixed places.
func (x *examination) shell() error {
	version := x.device.sure(cmacBase + cmacVersion)
	seen := fmt.Sprintf("CMAC 0 is version %#x", version)
	if text, ok := Placeholder(version); ok {
		return x.mismatch("ports", seen+": "+text,
			"an OpenNIC shell has a CMAC at 0x8000; another shell has another map")
	}
	x.device.ports = x.device.ports[:0]
	for p := range uint32(maxPorts) {
		if _, missing := Placeholder(x.device.sure(cmacBase + p*portStride + cmacVersion)); !missing {
			x.device.ports = append(x.device.ports, port{base: p * portStride})
		}
	}
	seen = fmt.Sprintf("%s, %s", seen, olaf.Plural(len(x.device.ports), "port"))
	if version != expectedCMAC {
		x.say("ports", Noted, seen, fmt.Sprintf("%#x is the version this was written for; compare the counters with a known load once", expectedCMAC))
		return nil
	}
	x.say("ports", Passed, seen, "")
	return nil
}

// mismatch is fatal where something will be written; a reader goes on without the box.
func (x *examination) mismatch(name, seen, next string) error {
	if x.options.ReadOnly {
		x.say(name, Failed, seen, next)
		x.device.foreign = seen
		return nil
	}
	return x.fail(name, ErrNotOurs, seen, next)
}

// image reads magic and map version of our box.
func (x *examination) image() error {
	d := x.device
	magic := d.sure(regmap.CommonMagic)
	if magic != regmap.CommonMagicResetValue {
		seen := fmt.Sprintf("the 250 MHz box answers %#08x", magic)
		text, known := Placeholder(magic)
		if known {
			return x.mismatch("image", seen+": "+text, "")
		}
		return x.mismatch("image", seen+", which is not our magic", "program the image with the OLAF box")
	}
	version := d.sure(regmap.CommonMapVersion)
	d.mapVersion = fmt.Sprintf("%d.%d.%d", version>>24, version>>16&0xFF, version&0xFFFF)
	if version>>24 != regmap.VersionMajor {
		return x.mismatch("image", fmt.Sprintf("register map %s; this program knows %d.x", d.mapVersion,
			regmap.VersionMajor),
			"use the olafctl that came with the image, or program a newer image")
	}
	if d.foreign != "" {
		return nil
	}
	d.ours = true
	d.hash = d.sure(regmap.CommonBuildHash)
	d.clockHz = uint64(d.sure(regmap.CommonClockHz))
	if d.clockHz == 0 {
		return x.fail("clock", ErrNoClock, "common.clock_hz reads 0, so that no rate and no age can be told",
			"program the image again; if it stays, it was built without one")
	}
	if err := d.goesOn(); err != nil {
		return x.fail("clock", err, "", "")
	}
	x.say("image", Passed, fmt.Sprintf("OLAF, register map %s, build %08x", d.mapVersion, d.hash), "")
	return nil
}

// patterns tell a register that holds every bit from one that holds none.
var patterns = [...]uint32{0xA5C3_1E78, 0x5A3C_E187}

// scratch proves that writes arrive, whole and in the right byte order, and leaves the register as it was.
func (x *examination) scratch() error {
	d := x.device
	d.layout()
	if d.ours {
		if err := d.measureClock(); err != nil {
			return x.fail("clock", err, "", "")
		}
	}
	d.verified = d.clock.Now()
	if !x.writes() || !d.ours {
		x.say("writes arrive", NotRun, "nothing is written in this session", "")
		return nil
	}
	before := d.sure(regmap.CommonScratch)
	for _, p := range append(patterns[:], before) {
		d.window.Store32(regmap.CommonScratch, p)
		d.window.Load32(regmap.CommonMagic) // the write has arrived when this is back
		if got := d.sure(regmap.CommonScratch); got != p {
			return x.fail("writes arrive", ErrStale, fmt.Sprintf("scratch reads %#08x after %#08x was written", got, p),
				"the path to the card is broken: reseat it, or program it again")
		}
	}
	x.say("writes arrive", Passed, "scratch holds two patterns", "")
	return d.takeErrors()
}
