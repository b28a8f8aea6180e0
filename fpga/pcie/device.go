package pcie

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
)

// Intervals for verifying the card's identity.
const (
	verifyAccesses = 1 << 16
	verifyInterval = 100 * time.Millisecond
	resetWait      = olaf.Millisecond // 1,000 times the reset time, because the shell's status bits end too early
)

// refusalBits are the bits in common.errors for rejected writes. After every write, the driver moves them from the card
// to its own copy, so that it notices the next rejected write. A read of the register returns both.
const refusalBits = regmap.CommonErrorsAddress | regmap.CommonErrorsReadOnly | regmap.CommonErrorsState |
	regmap.CommonErrorsValue

// Our blocks are contiguous, so one array maps addresses to registers.
const (
	firstAddress = regmap.CommonBase
	layoutWords  = (regmap.AggregatorBase + regmap.AggregatorBytes - firstAddress) / 4
)

// Device is an open card on PCIe. It is not safe for concurrent use.
type Device struct {
	card    Card
	bus     Bus
	options Options
	window  Window
	bar     os.FileInfo // information about the mapped file; nil if there is none
	lock    *lock
	guard   *guard // nil before the generator was started
	clock   Clock

	ours       bool   // the image is ours; otherwise only the shell is readable
	foreign    string // reason why it is not ours
	mapVersion string
	hash       uint32
	clockHz    uint64
	built      uint32 // the shell's build time, which changes on reprogramming

	words    []word
	steady   []uint32 // addresses of registers that only this device changes
	sticky   uint32   // refusal bits moved from common.errors
	failed   error    // reason why the card is lost; every access returns it
	accesses int      // accesses since the last verification
	verified time.Time
	onTime   bool // the clock runs at its stated rate, so that a stopped clock is noticed
	stale    int
	lies     int // answers that were lost or wrong but were right when read again
	bank     bank
	ports    []port
}

var _ fpga.Device = (*Device)(nil)

// word describes one 32-bit word in our register blocks.
type word struct {
	register *regmap.Register // nil if the address has no register
	block    *regmap.Block
	kind     kind
	written  bool
	value    uint32 // last value written, or latched by the last snapshot
}

// kind classifies a register by how its value can change.
type kind uint8

const (
	volatile kind = iota // changes without a write, or is a command
	readback             // keeps its value until another write
	steady               // like readback, and no other register changes the value
	window               // every access advances an index
	latched              // constant until the next snapshot
	running              // counts; read only once, because nanoseconds matter
)

func (w *word) name() string { return w.block.Name + "." + w.register.Name }

// windows maps each register that accesses memory through an index to its index register. moved lists registers that
// are changed by such accesses or by other registers.
var (
	windows = map[uint32]uint32{regmap.GeneratorMemData: regmap.GeneratorMemAddress,
		regmap.ReplicationMemberData: regmap.ReplicationMemberIndex}
	moved = map[uint32]bool{regmap.GeneratorMemAddress: true, regmap.ReplicationMemberIndex: true,
		regmap.ReplicationGroupSize: true}
)

// buildLayout builds the table of all words in our register blocks.
func (d *Device) buildLayout() {
	d.words = make([]word, layoutWords)
	blocks := regmap.BuiltBlocks(d.load(regmap.CommonCapabilities))
	for i := range blocks {
		b := &blocks[i]
		for j := range b.Registers {
			r := &b.Registers[j]
			for off := uint32(0); off < r.Bytes(); off += 4 {
				addr := b.Base + r.Offset + off
				w := word{register: r, block: b}
				switch {
				case windows[addr] != 0:
					w.kind = window
				case r.Counter:
					w.kind = latched
					d.bank.words = append(d.bank.words, addr)
				case b.Base+r.Offset == regmap.CommonCycles:
					w.kind = running
				case r.Access != regmap.ReadWrite:
				case moved[addr]:
					w.kind = readback
				default:
					w.kind = steady
					d.steady = append(d.steady, addr)
				}
				d.words[(addr-firstAddress)/4] = w
			}
		}
	}
}

// find returns the word at an address, or nil if the address is outside our blocks or has no register.
func (d *Device) find(addr uint32) *word {
	i := (addr - firstAddress) / 4
	if addr%4 != 0 || i >= layoutWords || d.words[i].register == nil {
		return nil
	}
	return &d.words[i]
}

// nameOf returns the name of the register at an address, for messages.
func (d *Device) nameOf(addr uint32) string {
	if w := d.find(addr); w != nil {
		return w.name()
	}
	return fmt.Sprintf("%#x", addr)
}

// Identity returns the card's identity, as found by Open.
func (d *Device) Identity() fpga.Identity {
	id := fpga.Identity{Address: "pci:" + d.card.BDF, Kind: "pcie", MapVersion: d.mapVersion, ClockHz: d.clockHz,
		Build: fmt.Sprintf("%08x", d.hash)}
	if !d.ours {
		id.MapVersion, id.Build = "unknown", "not an OLAF image"
	}
	return id
}

// Card returns the card's data from sysfs, as read when it was opened.
func (d *Device) Card() Card { return d.card }

// Foreign returns the reason why the image is not ours, or an empty string if it is ours. A foreign image can only be
// opened in a read-only session.
func (d *Device) Foreign() string { return d.foreign }

// StaleReads returns how many times a register was read again after a write because the first answer was outdated.
func (d *Device) StaleReads() int { return d.stale }

// LostReads returns how many times a missing or wrong answer was corrected by a second read.
func (d *Device) LostReads() int { return d.lies }

// Read32 reads a register in our blocks, or in the ranges of the shell that are safe to read. It repeats a read that
// returned all ones. If the card is gone, the error matches fpga.ErrGone.
func (d *Device) Read32(addr uint32) (uint32, error) {
	if err := d.checkFresh(); err != nil {
		return 0, err
	}
	w := d.find(addr)
	if w == nil || !d.ours || d.options.ReadOnly {
		if err := d.mayRead(addr, w); err != nil {
			return 0, err
		}
	}
	v, err := d.readChecked(addr, w)
	if err != nil {
		return v, err
	}
	if addr == regmap.CommonErrors {
		v |= d.sticky
	}
	return v, d.countAccess()
}

// readChecked reads a register and repeats the read if the answer may have been lost.
func (d *Device) readChecked(addr uint32, w *word) (uint32, error) {
	if w != nil && w.kind == window && d.options.DryRun == nil {
		return d.readWindow(addr, w)
	}
	v := d.window.Load32(addr)
	if v == allOnes || v == placeholder {
		var err error
		if v, err = d.checkSuspect(addr, w, v); err != nil {
			return v, err
		}
	}
	switch {
	case w == nil || w.kind == running:
		return v, nil
	case w.kind == latched:
		return d.checkLatched(addr, w, v)
	}
	return d.readAgreed(addr, w, v)
}

// readAgreed repeats a read until two answers agree, so that a flipped bit is not returned as data. For a volatile
// register, whose value may differ at every read, it returns the last answer.
func (d *Device) readAgreed(addr uint32, w *word, v uint32) (uint32, error) {
	v, ok := d.readTwice(addr, v)
	if ok || w.kind == volatile {
		return v, nil
	}
	return v, fmt.Errorf("read %s: %w: no two reads agree; check the card with 'olafctl device doctor'", w.name(),
		ErrUnsteady)
}

// readTwice returns the first value that was returned by two of a few reads. v is the result of the first read. If no
// value was returned twice, it returns the last value and false.
func (d *Device) readTwice(addr, v uint32) (uint32, bool) {
	seen := [...]uint32{v, 0, 0, 0}
	for i := 1; i < len(seen); i++ {
		seen[i] = d.load(addr)
		if slices.Contains(seen[:i], seen[i]) {
			return seen[i], true
		}
	}
	return seen[len(seen)-1], false
}

// mayRead returns an error if the register at an address must not be read.
func (d *Device) mayRead(addr uint32, w *word) error {
	a := areaOf(addr)
	switch {
	case addr%4 != 0:
		return fmt.Errorf("%w at %#x: an address must be a multiple of 4", fpga.ErrAddress, addr)
	case a == nil:
		return fmt.Errorf("%w at %#x", fpga.ErrAddress, addr)
	case !a.read:
		return fmt.Errorf("read %#x: %w: %s", addr, ErrDenied, a.reason)
	case addr < boxBase:
		return d.checkPort(addr)
	case !d.ours:
		return fmt.Errorf("read %#x: %w: %s", addr, ErrNotOurs, d.foreign)
	case w == nil:
		return fmt.Errorf("%w at %#x", fpga.ErrAddress, addr)
	case w.kind == window && d.options.ReadOnly:
		return fmt.Errorf("read %s: %w: reading it advances an index, and the session is read-only", w.name(),
			ErrDenied)
	}
	return nil
}

// checkSuspect reads a register again to decide whether all ones or 0xDEADBEEF is its value or a lost answer.
func (d *Device) checkSuspect(addr uint32, w *word, v uint32) (uint32, error) {
	if err := d.verify(); err != nil {
		return v, fmt.Errorf("read %s: %w", d.nameOf(addr), err)
	}
	if addr == ShellStatus || addr == UserStatus {
		return v, nil
	}
	again := d.window.Load32(addr)
	switch {
	case again != v && again != allOnes && again != placeholder:
		d.lies++
		return again, nil
	case w != nil && (w.kind != volatile || w.register.Wide || definedBits(w.register) == allOnes), w == nil &&
		again == allOnes:
		return again, nil // the contents of the shell's registers are unknown
	case again == placeholder:
		text, _ := explainPlaceholder(again)
		return again, fmt.Errorf("%w at %s: %s", fpga.ErrAddress, d.nameOf(addr), text)
	}
	return again, fmt.Errorf("read %s: %w: it reads all ones, which is impossible; check the card with 'olafctl "+
		"device doctor'", d.nameOf(addr), ErrUnsteady)
}

// definedBits returns a mask of the bits that belong to a register's fields.
func definedBits(r *regmap.Register) (bits uint32) {
	if len(r.Fields) == 0 {
		return allOnes
	}
	for _, f := range r.Fields {
		bits |= f.Mask()
	}
	return bits
}

// readWindow reads a word of memory through a window register. If the answer was lost, it restores the index and reads
// again.
func (d *Device) readWindow(addr uint32, w *word) (uint32, error) {
	v, index, err := d.readWindowOnce(addr, w)
	if err != nil || v != allOnes && v != placeholder {
		return v, err
	}
	if err := d.verify(); err != nil {
		return v, fmt.Errorf("read %s: %w", w.name(), err)
	}
	if err := d.Write32(windows[addr], index); err != nil {
		return v, err
	}
	again, _, err := d.readWindowOnce(addr, w)
	if again != v {
		d.lies++
	}
	return again, err
}

// readWindowOnce reads one word through a window register. It checks that the index advanced by one, or not at all at
// the end of the memory.
func (d *Device) readWindowOnce(addr uint32, w *word) (v, index uint32, err error) {
	index = d.load(windows[addr])
	v = d.window.Load32(addr)
	if after := d.load(windows[addr]); after-index > 1 {
		err = fmt.Errorf("read %s: %w: its index went from %d to %d; set it and read again", w.name(), ErrUnsteady,
			index, after)
	}
	return v, index, err
}

// readStable reads a register whose value does not change.
func (d *Device) readStable(addr uint32) uint32 {
	v, _ := d.readTwice(addr, d.load(addr))
	return v
}

// load reads a register, and reads it again if the answer may have been lost. It must not be used for window registers.
func (d *Device) load(addr uint32) uint32 {
	v := d.window.Load32(addr)
	if v == allOnes || v == placeholder {
		v = d.window.Load32(addr)
	}
	return v
}

// countAccess counts an access. After every verifyAccesses accesses it verifies the card's identity.
func (d *Device) countAccess() error {
	if d.accesses++; d.accesses < verifyAccesses {
		return nil
	}
	return d.verify()
}

// checkFresh verifies the card's identity if the last verification is older than verifyInterval, so that no access
// reaches a different card. In a dry run it does nothing.
func (d *Device) checkFresh() error {
	if d.failed != nil {
		return d.failed
	}
	if d.options.DryRun != nil || d.clock.Now().Sub(d.verified) < verifyInterval {
		return nil
	}
	return d.verify()
}

// Check verifies that the card is still the one that was opened and that its registers have the written values. The
// error matches fpga.ErrGone.
func (d *Device) Check() error { return d.verify() }

// verify checks the card's identity, its clock and the written registers. If it fails, all later accesses return the
// same error without reaching the card.
func (d *Device) verify() error {
	if d.failed != nil {
		return d.failed
	}
	if err := d.checkIdentity(); err != nil {
		d.failed = fmt.Errorf("%s: %w", d.card.BDF, err)
		if d.options.Lost != nil {
			d.options.Lost(d.failed)
		}
	}
	d.accesses, d.verified = 0, d.clock.Now()
	return d.failed
}

// checkPresent returns an error if the mapped BAR no longer belongs to the function at the card's address. This must be
// checked, because the mapping of a removed card stays valid, and the kernel may assign its address range to another
// device.
func (d *Device) checkPresent() error {
	if d.bar == nil {
		return nil
	}
	now, err := os.Stat(filepath.Join(d.bus.Sysfs, d.card.BDF, d.bar.Name()))
	switch {
	case err != nil:
		return fmt.Errorf("%w: it was removed from the PCI bus", fpga.ErrGone)
	case !os.SameFile(d.bar, now):
		return fmt.Errorf("%w: it was removed from the PCI bus, and another card, or the same one after a "+
			"reinsertion, is at its address; restart olafctl", ErrChanged)
	}
	return nil
}

// explainDead returns an error that explains why the card reads all ones, as far as sysfs shows the reason.
func (d *Device) explainDead() error {
	why := "the link is down or the card was removed"
	switch now, err := d.bus.probe(d.card.BDF); {
	case err != nil:
	case now.Driver != "" && now.Driver != d.card.Driver:
		why = fmt.Sprintf("the driver %s was bound to it in the meantime, and the kernel revoked access to the "+
			"registers; unbind it and restart olafctl", now.Driver)
	case now.State == Refused:
		why = now.Reason
	}
	return fmt.Errorf("%w: it reads all ones: %s", fpga.ErrGone, why)
}

// checkIdentity checks that the card is present and is the one that was opened. If the card is lost between two reads,
// it is reported as dead and not as a different card.
func (d *Device) checkIdentity() error {
	if err := d.checkPresent(); err != nil {
		return err
	}
	err := d.compareIdentity()
	if err != nil && d.load(ShellCanary) == allOnes {
		return d.explainDead()
	}
	return err
}

func (d *Device) compareIdentity() error {
	d.window.Load32(ShellCanary) // reading ensures that earlier writes have arrived
	d.window.Load32(regmap.CommonMagic)
	canary, _ := d.compareTwice(ShellCanary, canaryLive)
	built, sameBuild := d.compareTwice(ShellBuildTime, d.built)
	switch {
	case canary == allOnes || built == allOnes:
		return d.explainDead()
	case canary != canaryLive:
		return fmt.Errorf("%w: 0x008 reads %#x: the card is being reset", fpga.ErrGone, canary)
	case !sameBuild:
		return fmt.Errorf("%w: the shell's build time changed from %08x to %08x; restart olafctl", ErrChanged, d.built,
			built)
	case !d.ours:
		return nil
	}
	if magic, same := d.compareTwice(regmap.CommonMagic, regmap.CommonMagicResetValue); !same {
		text, known := explainPlaceholder(magic)
		if known {
			text = ": " + text
		}
		return fmt.Errorf("%w: the box answers %#08x%s", ErrChanged, magic, text)
	}
	if hash, same := d.compareTwice(regmap.CommonBuildHash, d.hash); !same {
		return fmt.Errorf("%w: the build changed from %08x to %08x; restart olafctl", ErrChanged, d.hash, hash)
	}
	if err := d.checkWritten(); err != nil {
		return err
	}
	return d.checkClock()
}

// compareTwice reads a register and compares it with want. If they differ, it reads once more, because one answer may
// be damaged.
func (d *Device) compareTwice(addr, want uint32) (got uint32, same bool) {
	if got = d.load(addr); got != want {
		got = d.load(addr)
	}
	return got, got == want
}

// checkWritten reads back the registers that only this session changes and compares them with the written values.
func (d *Device) checkWritten() error {
	for _, addr := range d.steady {
		w := d.find(addr)
		if !w.written {
			continue
		}
		got, same := d.compareTwice(addr, w.value)
		if !same {
			return fmt.Errorf("%w: %s reads %#x after %#x was written; another program or a power cycle reset the "+
				"card, so it must be configured again", ErrForgot, w.name(), got, w.value)
		}
	}
	return nil
}

// Write32 writes a register, waits until the write has arrived, and reads the value back where possible. It never
// repeats a write. If the card rejects the write, the error matches fpga.ErrRefused, or fpga.ErrAddress for a read-only
// register, and the card's error bits can still be read.
func (d *Device) Write32(addr, value uint32) error {
	if err := d.checkFresh(); err != nil {
		return err
	}
	w := d.find(addr)
	if err := d.mayWrite(addr, w); err != nil {
		return err
	}
	if addr == regmap.CommonCommand && value&^w.register.Writable() == 0 {
		return d.runCommand(w, value)
	}
	if w == nil {
		d.window.Store32(addr, value)
		return d.confirmArrival(addr, value)
	}
	if addr == regmap.GeneratorCommand && value&startsGenerator != 0 && d.options.DryRun == nil {
		if err := d.startGuard(); err != nil {
			return fmt.Errorf("write %s: %w", w.name(), err)
		}
	}
	w.written = false // until it is read back
	if addr == regmap.CommonErrors && value&^w.register.Writable() == 0 {
		d.sticky &^= value
	}
	if w.kind == window && d.options.DryRun == nil {
		return d.writeThrough(addr, w, value)
	}
	d.window.Store32(addr, value)
	return d.confirmWrite(w, addr, value)
}

// startsGenerator are the commands after which the generator can run without this process.
const startsGenerator = regmap.GeneratorCommandArm | regmap.GeneratorCommandStart

// writeThrough writes one word through a window register and checks that the index advanced by one.
func (d *Device) writeThrough(addr uint32, w *word, value uint32) error {
	index := d.load(windows[addr])
	d.window.Store32(addr, value)
	if err := d.confirmWrite(w, addr, value); err != nil {
		return err
	}
	if after := d.load(windows[addr]); after != index+1 {
		return fmt.Errorf("write %#x to %s: %w: its index went from %d to %d; set it and write again", value, w.name(),
			ErrLost, index, after)
	}
	return nil
}

// mayWrite returns an error if the register at an address must not be written.
func (d *Device) mayWrite(addr uint32, w *word) error {
	if d.options.ReadOnly {
		return fmt.Errorf("write %s: %w: the session is read-only", d.nameOf(addr), ErrDenied)
	}
	if w != nil {
		return nil
	}
	a := areaOf(addr)
	switch {
	case addr%4 != 0:
		return fmt.Errorf("%w at %#x: an address must be a multiple of 4", fpga.ErrAddress, addr)
	case a == nil || addr >= boxBase && a.write:
		return fmt.Errorf("%w at %#x", fpga.ErrAddress, addr)
	case !a.write:
		return fmt.Errorf("write %#x: %w: %s", addr, ErrDenied, a.reason)
	case addr < boxBase && addr&(portStride-1) == tickRegister:
		return fmt.Errorf("write %#x: %w: a tick clears the MAC's counters, which olafctl accumulates; use 'olafctl "+
			"device watch'", addr, ErrDenied)
	}
	return d.checkPort(addr)
}

// confirmArrival waits until a write to a register outside our blocks has reached the device.
func (d *Device) confirmArrival(addr, value uint32) error {
	d.window.Load32(addr)
	if got := d.load(addr); got != value {
		if err := d.verify(); err != nil {
			return fmt.Errorf("write %#x: %w", addr, err)
		}
		return fmt.Errorf("write %#x to %#x: %w: it reads %#x; it may be read-only or clear itself", value, addr,
			ErrStale, got)
	}
	return d.countAccess()
}

// confirmWrite waits until a write to one of our registers has arrived, checks whether the card rejected it, and reads
// the value back. The first read goes to the written block, because only an answer from there shows that the write has
// arrived. The value of this read may be outdated.
func (d *Device) confirmWrite(w *word, addr, value uint32) error {
	flush := addr
	if w.kind != readback && w.kind != steady {
		flush = w.block.Base
	}
	first := d.window.Load32(flush)
	if err := d.checkDeclined(w, value); err != nil {
		return err
	}
	if flush == addr {
		if first != value {
			d.stale++
			first = d.load(addr)
		}
		if first != value {
			if err := d.verify(); err != nil {
				return fmt.Errorf("write %s: %w", w.name(), err)
			}
			return fmt.Errorf("write %#x to %s: %w: it reads %#x", value, w.name(), ErrStale, first)
		}
		w.written, w.value = w.kind == steady, value
	}
	return d.countAccess()
}

// checkDeclined returns an error if the card rejected the last write.
func (d *Device) checkDeclined(w *word, value uint32) error {
	bits := d.load(regmap.CommonErrors)
	if bits == allOnes || bits == placeholder {
		if err := d.verify(); err != nil {
			return fmt.Errorf("write %s: %w", w.name(), err)
		}
	}
	if bits&refusalBits == 0 || d.options.DryRun != nil {
		return nil
	}
	if err := d.takeErrors(); err != nil {
		return err
	}
	return refusalError(w, value, bits)
}

// takeErrors moves the card's refusal bits into our copy.
func (d *Device) takeErrors() error {
	bits := d.load(regmap.CommonErrors) & refusalBits
	if bits == 0 {
		return nil
	}
	d.sticky |= bits
	d.window.Store32(regmap.CommonErrors, bits)
	d.window.Load32(regmap.CommonMagic)
	if left := d.load(regmap.CommonErrors); left&bits != 0 && d.options.DryRun == nil {
		if err := d.verify(); err != nil {
			return err
		}
		return fmt.Errorf("%w: common.errors reads %#x after %#x was cleared", ErrStale, left, bits)
	}
	return nil
}

// refusalError returns an error that explains why the card rejected a write.
func refusalError(w *word, value, bits uint32) error {
	why, kind := "the value is outside the range of this build", fpga.ErrRefused
	switch {
	case bits&regmap.CommonErrorsAddress != 0:
		why, kind = "the card has no register there, although its map version has one", fpga.ErrAddress
	case bits&regmap.CommonErrorsReadOnly != 0:
		why, kind = "the register is read-only", fpga.ErrAddress
	case bits&regmap.CommonErrorsState != 0 && w.block.Name == "queue" && w.register.Idle:
		why = "the queue must be disabled and empty first"
	case bits&regmap.CommonErrorsState != 0 && w.block.Name == "generator":
		why = "the generator's state does not allow it"
	case bits&regmap.CommonErrorsState != 0:
		why = "the block's state does not allow it"
	}
	return fmt.Errorf("write %#x to %s: %w: %s", value, w.name(), kind, why)
}

// afterReset waits for a reset to finish and then verifies the card, whose registers must have their reset values
// again.
func (d *Device) afterReset(wait olaf.Duration) error {
	d.forget()
	if err := d.clock.Wait(context.Background(), wait); err != nil {
		return err
	}
	return d.verify()
}

func (d *Device) forget() {
	d.sticky = 0
	d.bank.forget()
	for i := range d.words {
		d.words[i].written = false
	}
}

// memoryEntries lists the memories that are written through the generator's memory proxy, with the register of their
// size and the number of words per entry.
var memoryEntries = [...]struct{ built, words uint32 }{
	{regmap.GeneratorBuiltDescriptors, regmap.DescriptorWords},
	{regmap.GeneratorBuiltFlows, regmap.FlowWords},
	{regmap.GeneratorBuiltTemplates, regmap.TemplateWords},
}

// WriteBurst writes all words to one address, in order. A burst to the memory proxy is rejected as a whole if it does
// not fit into the memory.
func (d *Device) WriteBurst(addr uint32, words []uint32) error {
	if addr != regmap.GeneratorMemData || d.options.ReadOnly {
		for _, v := range words {
			if err := d.Write32(addr, v); err != nil {
				return err
			}
		}
		return nil
	}
	if len(words) == 0 {
		return d.failed
	}
	if err := d.checkRoom(len(words)); err != nil {
		return err
	}
	chunk, err := d.Read32(regmap.GeneratorMemBurst)
	if err != nil {
		return err
	}
	if chunk == 0 {
		chunk = uint32(len(words))
	}
	for len(words) > 0 {
		if err := d.checkFresh(); err != nil {
			return err
		}
		n := min(int(chunk), len(words))
		if err := d.writeChunk(words[:n]); err != nil {
			return err
		}
		words = words[n:]
	}
	return nil
}

// checkRoom returns an error if n words do not fit into the selected memory after its current address.
func (d *Device) checkRoom(n int) error {
	var values [2]uint32
	for i, addr := range [...]uint32{regmap.GeneratorMemSelect, regmap.GeneratorMemAddress} {
		var err error
		if values[i], err = d.Read32(addr); err != nil {
			return err
		}
	}
	if int(values[0]) >= len(memoryEntries) {
		return fmt.Errorf("%w: generator.mem_select is %d", fpga.ErrRefused, values[0])
	}
	m := memoryEntries[values[0]]
	entries, err := d.Read32(m.built)
	if err != nil {
		return err
	}
	if limit := uint64(entries) * uint64(m.words); uint64(values[1])+uint64(n) > limit {
		return fmt.Errorf("write %d words to generator.mem_data at word %d: %w: the memory ends at word %d", n,
			values[1], fpga.ErrRefused, limit)
	}
	return nil
}

// writeChunk writes words without waiting between them, and then checks once whether the card accepted all of them.
func (d *Device) writeChunk(words []uint32) error {
	for _, v := range words {
		d.window.Store32(regmap.GeneratorMemData, v)
	}
	w := d.find(regmap.GeneratorMemData)
	d.window.Load32(w.block.Base)
	if err := d.checkDeclined(w, words[0]); err != nil {
		return err
	}
	d.accesses += len(words)
	return d.idleMemory()
}

// idleMemory waits until the memory proxy has processed a burst.
func (d *Device) idleMemory() error {
	for waited := olaf.Duration(0); waited < olaf.Second; waited += resetWait {
		status, err := d.Read32(regmap.GeneratorMemStatus)
		if err != nil || status&regmap.GeneratorMemStatusBusy == 0 {
			return err
		}
		if err := d.clock.Wait(context.Background(), resetWait); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: generator.mem_status was busy for a second", fpga.ErrRefused)
}

// Sleep waits for the given time and then verifies the card's identity if this is due.
func (d *Device) Sleep(ctx context.Context, t olaf.Duration) error {
	if d.failed != nil {
		return d.failed
	}
	if d.options.DryRun != nil {
		fmt.Fprintf(d.options.DryRun, "wait  %v\n", t)
		return ctx.Err()
	}
	if err := d.clock.Wait(ctx, t); err != nil {
		return err
	}
	return d.checkFresh()
}

var errClosed = fmt.Errorf("%w: the card was closed", fpga.ErrGone)

// Close releases the card. Its registers keep their values. A second Close does nothing.
func (d *Device) Close() error {
	if errors.Is(d.failed, errClosed) {
		return nil
	}
	d.failed = errClosed
	d.guard.end()
	var err error
	if d.window != nil {
		err = d.window.Close()
	}
	return errors.Join(err, d.lock.release())
}
