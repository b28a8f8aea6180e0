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

// Options configure how a card is opened.
type Options struct {
	// ReadOnly also opens cards with another image and shares the card with other readers. It writes nothing, not even
	// the scratch register.
	ReadOnly bool
	// DryRun, if set, prints every access and writes nothing to the card. Reads are carried out.
	DryRun io.Writer
	// Force allows a reset of the QDMA, which destroys the host's DMA contexts. It is still refused while a driver is
	// bound.
	Force bool
	// Lost, if set, is called once when the card has disappeared, was reset, or was replaced.
	Lost func(error)

	locked *lock // lock inherited from the card's owner, which has died; nil to take the lock
}

// Clock provides the time for a card. It must be monotonic, because the device reports a power cycle if more time
// passes than the card's own clock counted.
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

// Open checks the card at a PCI address, such as 0000:3b:00.0, and opens it. Until all checks have passed nothing is
// written, except for the scratch register in the last check. Errors match ErrNoCard, ErrNotOurs, ErrBusy, ErrStale or
// fpga.ErrGone and include advice. With Options.ReadOnly, a card with another image can also be opened, to read its
// shell.
func Open(bus Bus, bdf string, o Options) (*Device, error) {
	d, _, err := Examine(bus, bdf, o)
	return d, err
}

// Examine opens a card as Open does, and also returns the checks that were made, in order, up to the first failure.
func Examine(bus Bus, bdf string, o Options) (*Device, []fpga.Check, error) {
	x := &examination{bus: bus, options: o}
	err := x.runChecks(bdf)
	if err != nil && x.device != nil {
		err = errors.Join(err, x.device.Close())
		x.device = nil
	}
	return x.device, x.checks, err
}

// examination contains the state of checking one card.
type examination struct {
	bus     Bus
	options Options
	card    Card
	device  *Device
	checks  []fpga.Check
}

func (x *examination) addCheck(name string, outcome fpga.Outcome, seen, next string) {
	x.checks = append(x.checks, fpga.Check{Name: name, Outcome: outcome, Seen: seen, Next: next})
}

// addFailure records a failed check and returns its error, which consists of the kind, the finding and the advice.
func (x *examination) addFailure(name string, kind error, seen, next string) error {
	x.addCheck(name, fpga.Failed, seen, next)
	err := fmt.Errorf("%w: %s", kind, seen)
	if next != "" {
		err = fmt.Errorf("%w; %s", err, next)
	}
	return err
}

func (x *examination) mayWrite() bool { return !x.options.ReadOnly && x.options.DryRun == nil }

func (x *examination) runChecks(bdf string) error {
	steps := []func() error{
		func() error { return x.findCard(bdf) },
		x.lockCard, x.findOthers, x.mapBAR, x.checkLink, x.checkShell, x.checkImage, x.checkScratch,
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// findCard checks the card by its sysfs files, without accessing its registers.
func (x *examination) findCard(bdf string) error {
	card, err := x.bus.Find(bdf)
	if err != nil {
		x.addCheck("card", fpga.Failed, err.Error(), "")
		return err
	}
	if card.State == Refused {
		return x.addFailure("card", card.kind, card.BDF+": "+card.Reason, "")
	}
	x.card = card
	x.addCheck("card", fpga.Passed, fmt.Sprintf("%04x:%04x, BAR2 of %d MiB, memory decoding on", card.Vendor, card.Device,
		card.BAR2Bytes>>20), "")
	if card.Driver == "" {
		x.addCheck("driver", fpga.Passed, "none bound", "")
	} else {
		x.addCheck("driver", fpga.Noted, card.Driver+" is bound",
			"do not run 'ethtool -S' during measurements: it latches and clears the MAC's counters")
	}
	return nil
}

func (x *examination) lockCard() error {
	l := x.options.locked
	if l == nil {
		var err error
		if l, err = takeLock(x.bus.Locks, Slot(x.card.BDF), x.mayWrite()); err != nil {
			x.addCheck("lock", fpga.Failed, err.Error(), "")
			return fmt.Errorf("%s: %w", x.card.BDF, err)
		}
	}
	x.addCheck("lock", fpga.Passed, map[bool]string{true: "exclusive", false: "shared with other readers"}[x.mayWrite()], "")
	x.device = &Device{card: x.card, bus: x.bus, lock: l, options: x.options, clock: x.bus.Clock}
	if x.device.clock == nil {
		x.device.clock = hostClock{}
	}
	return nil
}

// findOthers checks that no other process can access the card's registers without our lock.
func (x *examination) findOthers() error {
	users := findUsers(x.bus, Slot(x.card.BDF))
	switch list := strings.Join(users, ", "); {
	case x.bus.Proc == "":
		x.addCheck("other programs", fpga.NotRun, "/proc is not available", "")
	case len(users) == 0:
		x.addCheck("other programs", fpga.Passed, "no process that this user can see maps BAR2", "")
	case !x.mayWrite():
		x.addCheck("other programs", fpga.Noted, list+" can access the registers",
			"values may be stale if they write at the same time")
	default:
		return x.addFailure("other programs", ErrBusy, list+" can access the registers without holding the lock",
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
		return x.addFailure("mapping", fpga.ErrGone, fmt.Sprintf("the card %s was removed from the PCI bus",
			x.card.BDF),
			"'olafctl device list' shows the devices")
	}
	w, err := open(x.barPath(), x.card.BAR2Bytes, x.mayWrite())
	if err != nil {
		next, kind := x.explainUnmapped(err)
		return x.addFailure("mapping", kind, err.Error(), next)
	}
	if x.options.DryRun != nil {
		w = newDryWindow(w, x.options.DryRun)
	}
	x.device.window, x.device.bar = w, info
	x.addCheck("mapping", fpga.Passed, fmt.Sprintf("%d bytes", x.card.BAR2Bytes), "")
	return nil
}

// explainUnmapped returns advice and an error kind for a BAR2 that the kernel refuses to map.
func (x *examination) explainUnmapped(err error) (next string, kind error) {
	const relaxed = "boot the kernel with iomem=relaxed"
	switch driver := x.card.Driver; {
	case errors.Is(err, syscall.EINVAL) && driver != "":
		return fmt.Sprintf("the driver %s owns BAR2, and this kernel (CONFIG_IO_STRICT_DEVMEM) does not share it: "+
				"unbind the driver with "+
				"'echo %s > /sys/bus/pci/devices/%[2]s/driver/unbind' as root, or %[3]s", driver, x.card.BDF, relaxed),
			ErrBusy
	case errors.Is(err, syscall.EINVAL):
		return "a part of the kernel owns BAR2: see /proc/iomem, or " + relaxed, ErrBusy
	case errors.Is(err, syscall.EPERM):
		return "the kernel is locked down, as with Secure Boot, and does not let programs map BARs: boot it with " +
			"lockdown=none", ErrNotReady
	case errors.Is(err, fs.ErrPermission):
		return "this needs root, or a udev rule that gives your group access to the file", ErrNotReady
	case errors.Is(err, errNoMap):
		return "", ErrNotReady
	}
	return "'olafctl device list' shows the state of the card", ErrNotReady
}

// checkLink reads registers that are never all ones on a card that responds.
func (x *examination) checkLink() error {
	canary, built := x.device.readStable(ShellCanary), x.device.readStable(ShellBuildTime)
	seen := fmt.Sprintf("0x008 reads %#x, 0x000 reads %#08x", canary, built)
	switch {
	case canary == allOnes || built == allOnes:
		text, _ := explainPlaceholder(allOnes)
		return x.addFailure("answers", fpga.ErrGone, seen+": "+text,
			"warm-reboot the host if the image changed; check the link with 'lspci -vv'")
	case canary == 0:
		return x.addFailure("answers", fpga.ErrGone, seen+": the power-up reset has not ended",
			"wait a second and try again; if this persists, reprogram the card")
	case canary != canaryLive:
		return x.addFailure("answers", ErrNotOurs, seen+": bits 31:1 of 0x008 are wired to 0 in an OpenNIC shell",
			"program an OpenNIC image with the OLAF box")
	}
	x.device.built = built
	x.addCheck("answers", fpga.Passed, seen, "")
	return nil
}

// checkShell checks for the MAC registers that an OpenNIC shell has at fixed addresses.
func (x *examination) checkShell() error {
	version := x.device.readStable(cmacBase + cmacVersion)
	seen := fmt.Sprintf("CMAC 0 is version %#x", version)
	if text, ok := explainPlaceholder(version); ok {
		return x.handleMismatch("ports", seen+": "+text,
			"an OpenNIC shell has a CMAC at 0x8000; other shells have other maps")
	}
	x.device.ports = x.device.ports[:0]
	for p := range uint32(maxPorts) {
		if _, missing := explainPlaceholder(x.device.readStable(cmacBase + p*portStride + cmacVersion)); !missing {
			x.device.ports = append(x.device.ports, port{base: p * portStride})
		}
	}
	seen = fmt.Sprintf("%s, %s", seen, olaf.Plural(len(x.device.ports), "port"))
	if version != expectedCMAC {
		x.addCheck("ports", fpga.Noted, seen, fmt.Sprintf("olafctl was written for version %#x; compare the counters once "+
			"with a known load", expectedCMAC))
		return nil
	}
	x.addCheck("ports", fpga.Passed, seen, "")
	return nil
}

// handleMismatch returns an error if the session may write. A read-only session continues without access to our
// register blocks.
func (x *examination) handleMismatch(name, seen, next string) error {
	if x.options.ReadOnly {
		x.addCheck(name, fpga.Failed, seen, next)
		x.device.foreign = seen
		return nil
	}
	return x.addFailure(name, ErrNotOurs, seen, next)
}

// checkImage checks the magic number and the register map version of the card's image.
func (x *examination) checkImage() error {
	d := x.device
	magic := d.readStable(regmap.CommonMagic)
	if magic != regmap.CommonMagicResetValue {
		seen := fmt.Sprintf("the 250 MHz box answers %#08x", magic)
		text, known := explainPlaceholder(magic)
		if known {
			return x.handleMismatch("image", seen+": "+text, "")
		}
		return x.handleMismatch("image", seen+", which is not OLAF's magic number", "program the image with the OLAF "+
			"box")
	}
	version := d.readStable(regmap.CommonMapVersion)
	d.mapVersion = fmt.Sprintf("%d.%d.%d", version>>24, version>>16&0xFF, version&0xFFFF)
	if version>>24 != regmap.VersionMajor {
		return x.handleMismatch("image", fmt.Sprintf("register map %s; this program supports %d.x", d.mapVersion,
			regmap.VersionMajor),
			"use the olafctl that came with the image, or program a newer image")
	}
	if d.foreign != "" {
		return nil
	}
	d.ours = true
	d.hash = d.readStable(regmap.CommonBuildHash)
	d.clockHz = uint64(d.readStable(regmap.CommonClockHz))
	if d.clockHz == 0 {
		return x.addFailure("clock", ErrNoClock, "common.clock_hz reads 0, so rates and ages can't be computed",
			"reprogram the image; if this persists, it was built without a clock rate")
	}
	if err := d.checkClock(); err != nil {
		return x.addFailure("clock", err, "", "")
	}
	x.addCheck("image", fpga.Passed, fmt.Sprintf("OLAF, register map %s, build %08x", d.mapVersion, d.hash), "")
	return nil
}

// patterns are test values for the scratch register. They show whether all its bits can be written.
var patterns = [...]uint32{0xA5C3_1E78, 0x5A3C_E187}

// checkScratch writes test values to the scratch register to check that writes arrive complete and in the right byte
// order. It then restores the register's value.
func (x *examination) checkScratch() error {
	d := x.device
	d.buildLayout()
	if d.ours {
		if err := d.measureClock(); err != nil {
			return x.addFailure("clock", err, "", "")
		}
	}
	d.verified = d.clock.Now()
	if !x.mayWrite() || !d.ours {
		x.addCheck("writes arrive", fpga.NotRun, "this session does not write", "")
		return nil
	}
	before := d.readStable(regmap.CommonScratch)
	for _, p := range append(patterns[:], before) {
		d.window.Store32(regmap.CommonScratch, p)
		d.window.Load32(regmap.CommonMagic) // reading ensures that the write has arrived
		if got := d.readStable(regmap.CommonScratch); got != p {
			return x.addFailure("writes arrive", ErrStale, fmt.Sprintf("scratch reads %#08x after %#08x was written", got, p),
				"the path to the card is broken: reseat the card, or reprogram it")
		}
	}
	x.addCheck("writes arrive", fpga.Passed, "scratch holds two patterns", "")
	return d.takeErrors()
}
