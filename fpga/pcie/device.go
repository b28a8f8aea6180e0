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

// How often the card's identity is verified again.
const (
	verifyAccesses = 1 << 16
	verifyInterval = 100 * time.Millisecond
	resetWait      = olaf.Millisecond // a thousand times what a reset takes; the shell's status bits end too early to wait for
)

// refusalBits are those of common.errors that say that a write was declined. The device takes them over into its own copy
// after every write, so that it notices the next one; users see both together.
const refusalBits = regmap.CommonErrorsAddress | regmap.CommonErrorsReadOnly | regmap.CommonErrorsState |
	regmap.CommonErrorsValue

// Our blocks lie side by side, so that one array finds the register of an address.
const (
	firstAddress = regmap.CommonBase
	layoutWords  = (regmap.AggregatorBase + regmap.AggregatorBytes - firstAddress) / 4
)

// Device is an open card. It is not safe for concurrent use.
type Device struct {
	card    Card
	bus     Bus
	options Options
	window  Window
	bar     os.FileInfo // of the file that is mapped; nil where there is none
	lock    *lock
	clock   Clock

	ours       bool   // the image is ours; else only the shell is readable
	foreign    string // why it is not
	mapVersion string
	hash       uint32
	clockHz    uint64
	built      uint32 // the shell's build time, which changes when the card is reprogrammed

	words    []word
	steady   []uint32 // addresses whose content only writes through this device change
	sticky   uint32   // refusal bits taken over from common.errors
	failed   error    // the card is lost; every access gives this
	accesses int      // since the last verification
	verified time.Time
	onTime   bool // its clock keeps the rate that it states, so that a standstill shows
	stale    int
	lies     int // answers that were lost or wrong, and came right when they were asked for again
	bank     bank
	ports    []port
}

var _ fpga.Device = (*Device)(nil)

// word is one address of our blocks.
type word struct {
	register *regmap.Register // nil where nothing answers
	block    *regmap.Block
	kind     kind
	written  bool
	value    uint32 // that was written, or latched by the last snapshot
}

// kind is what the device knows of a register's behaviour.
type kind uint8

const (
	volatile kind = iota // changes by itself, or commands something
	readback             // holds what was written, until something else is written
	steady               // the same, and no other register changes it
	window               // every access moves an index on
	latched              // holds still until the next snapshot
	running              // counts on, and is read where nanoseconds matter: one look has to do
)

func (w *word) name() string { return w.block.Name + "." + w.register.Name }

// windows are registers that read and write through an index, and where that is; moved are registers that those accesses or others change.
var (
	windows = map[uint32]uint32{regmap.GeneratorMemData: regmap.GeneratorMemAddress,
		regmap.ReplicationMemberData: regmap.ReplicationMemberIndex}
	moved = map[uint32]bool{regmap.GeneratorMemAddress: true, regmap.ReplicationMemberIndex: true,
		regmap.ReplicationGroupSize: true}
)

// layout builds the table of our registers.
func (d *Device) layout() {
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

// find is the word of an address; nil outside of our blocks or where no register is.
func (d *Device) find(addr uint32) *word {
	i := (addr - firstAddress) / 4
	if addr%4 != 0 || i >= layoutWords || d.words[i].register == nil {
		return nil
	}
	return &d.words[i]
}

// nameOf is an address in words, for people.
func (d *Device) nameOf(addr uint32) string {
	if w := d.find(addr); w != nil {
		return w.name()
	}
	return fmt.Sprintf("%#x", addr)
}

// Identity tells what the checks of Open found.
func (d *Device) Identity() fpga.Identity {
	id := fpga.Identity{Address: "pci:" + d.card.BDF, Kind: "pcie", MapVersion: d.mapVersion, ClockHz: d.clockHz,
		Build: fmt.Sprintf("%08x", d.hash)}
	if !d.ours {
		id.MapVersion, id.Build = "unknown", "not an OLAF image"
	}
	return id
}

// Card is what sysfs told when the card was opened.
func (d *Device) Card() Card { return d.card }

// Foreign says why the image is not ours; it is empty for one of ours. Only a read-only session has another one open.
func (d *Device) Foreign() string { return d.foreign }

// StaleReads is how often a register had to be read again after a write, because the first answer was an older one.
func (d *Device) StaleReads() int { return d.stale }

// LostReads is how often a register was read again because its answer was none or wrong, and then answered right.
func (d *Device) LostReads() int { return d.lies }

// Read32 reads a register of the map, or of those ranges of the shell that are safe to read. An answer of all ones is asked
// for again; from a card that is gone it is an error that matches fpga.ErrGone.
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
	v, err := d.look(addr, w)
	if err != nil {
		return v, err
	}
	if addr == regmap.CommonErrors {
		v |= d.sticky
	}
	return v, d.count()
}

// look reads, and asks again where the answer may be none.
func (d *Device) look(addr uint32, w *word) (uint32, error) {
	if w != nil && w.kind == window && d.options.DryRun == nil {
		return d.lookThrough(addr, w)
	}
	v := d.window.Load32(addr)
	if v == allOnes || v == placeholder {
		var err error
		if v, err = d.suspect(addr, w, v); err != nil {
			return v, err
		}
	}
	switch {
	case w == nil || w.kind == running:
		return v, nil
	case w.kind == latched:
		return d.unchanged(addr, w, v)
	}
	return d.agreed(addr, w, v)
}

// agreed reads until two looks agree, so that a bit which flipped on its way is nobody's data. A register that changes by
// itself may do so all the time; then its last answer stands.
func (d *Device) agreed(addr uint32, w *word, v uint32) (uint32, error) {
	v, ok := d.agree(addr, v)
	if ok || w.kind == volatile {
		return v, nil
	}
	return v, fmt.Errorf("read %s: %w: no two looks agree; 'olafctl device doctor' looks at the card", w.name(),
		ErrUnsteady)
}

// agree is the answer that comes twice in a few looks, of which v was the first; the last one where none does.
func (d *Device) agree(addr, v uint32) (uint32, bool) {
	seen := [...]uint32{v, 0, 0, 0}
	for i := 1; i < len(seen); i++ {
		seen[i] = d.load(addr)
		if slices.Contains(seen[:i], seen[i]) {
			return seen[i], true
		}
	}
	return seen[len(seen)-1], false
}

// mayRead refuses what must not be read.
func (d *Device) mayRead(addr uint32, w *word) error {
	a := areaOf(addr)
	switch {
	case addr%4 != 0:
		return fmt.Errorf("%w at %#x: addresses are multiples of 4", fpga.ErrAddress, addr)
	case a == nil:
		return fmt.Errorf("%w at %#x", fpga.ErrAddress, addr)
	case !a.read:
		return fmt.Errorf("read %#x: %w: %s", addr, ErrDenied, a.why)
	case addr < boxBase:
		return d.checkPort(addr)
	case !d.ours:
		return fmt.Errorf("read %#x: %w: %s", addr, ErrNotOurs, d.foreign)
	case w == nil:
		return fmt.Errorf("%w at %#x", fpga.ErrAddress, addr)
	case w.kind == window && d.options.ReadOnly:
		return fmt.Errorf("read %s: %w: reading it moves an index on, and the session is read-only", w.name(),
			ErrDenied)
	}
	return nil
}

// suspect decides whether all ones or 0xDEADBEEF are a register's content: those of a lost answer are gone when the card is
// asked again.
func (d *Device) suspect(addr uint32, w *word, v uint32) (uint32, error) {
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
	case w != nil && (w.kind != volatile || w.register.Wide || defined(w.register) == allOnes), w == nil &&
		again == allOnes:
		return again, nil // of the shell's registers we do not know what they hold
	case again == placeholder:
		text, _ := Placeholder(again)
		return again, fmt.Errorf("%w at %s: %s", fpga.ErrAddress, d.nameOf(addr), text)
	}
	return again, fmt.Errorf("read %s: %w: it reads all ones, an impossible value; check the card with 'olafctl device doctor'", d.nameOf(addr), ErrUnsteady)
}

// defined are the bits of a register that mean something.
func defined(r *regmap.Register) (bits uint32) {
	if len(r.Fields) == 0 {
		return allOnes
	}
	for _, f := range r.Fields {
		bits |= f.Mask()
	}
	return bits
}

// lookThrough reads a window onto a memory. A word whose answer was lost is read again, after the index was set back.
func (d *Device) lookThrough(addr uint32, w *word) (uint32, error) {
	v, index, err := d.lookOnce(addr, w)
	if err != nil || v != allOnes && v != placeholder {
		return v, err
	}
	if err := d.verify(); err != nil {
		return v, fmt.Errorf("read %s: %w", w.name(), err)
	}
	if err := d.Write32(windows[addr], index); err != nil {
		return v, err
	}
	again, _, err := d.lookOnce(addr, w)
	if again != v {
		d.lies++
	}
	return again, err
}

// lookOnce reads one word at an index, which must then have moved on by one, or not at all behind the end.
func (d *Device) lookOnce(addr uint32, w *word) (v, index uint32, err error) {
	index = d.load(windows[addr])
	v = d.window.Load32(addr)
	if after := d.load(windows[addr]); after-index > 1 {
		err = fmt.Errorf("read %s: %w: its index went from %d to %d; set it and read again", w.name(), ErrUnsteady,
			index, after)
	}
	return v, index, err
}

// sure reads what holds still.
func (d *Device) sure(addr uint32) uint32 {
	v, _ := d.agree(addr, d.load(addr))
	return v
}

// load reads what needs no more than a second look where the answer may have been lost: none of the windows.
func (d *Device) load(addr uint32) uint32 {
	v := d.window.Load32(addr)
	if v == allOnes || v == placeholder {
		v = d.window.Load32(addr)
	}
	return v
}

// count verifies the card's identity every so many accesses.
func (d *Device) count() error {
	if d.accesses++; d.accesses < verifyAccesses {
		return nil
	}
	return d.verify()
}

// checkFresh verifies the card's identity if the last time was verifyInterval ago, so that neither a value nor a write
// meets another card than the one that was opened. A dry run prints its accesses, so it adds none.
func (d *Device) checkFresh() error {
	if d.failed != nil {
		return d.failed
	}
	if d.options.DryRun != nil || d.clock.Now().Sub(d.verified) < verifyInterval {
		return nil
	}
	return d.verify()
}

// Check verifies now that the card is the one that was opened, and that it still holds what was written. The error
// matches fpga.ErrGone.
func (d *Device) Check() error { return d.verify() }

// verify checks the card's identity, its clock, and the registers that were written. A failure is final: no later access
// reaches the card.
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

// checkPresent returns an error if the mapped BAR is no longer that of the function at this address. The mapping of a card that
// was removed lives on, over an address that the kernel may give to another device.
func (d *Device) checkPresent() error {
	if d.bar == nil {
		return nil
	}
	now, err := os.Stat(filepath.Join(d.bus.Sysfs, d.card.BDF, d.bar.Name()))
	switch {
	case err != nil:
		return fmt.Errorf("%w: it was removed from the PCI bus", fpga.ErrGone)
	case !os.SameFile(d.bar, now):
		return fmt.Errorf("%w: it was removed from the PCI bus, and another card or the same one anew is at its address; start again", ErrChanged)
	}
	return nil
}

// explainDead words why the card reads all ones, as far as sysfs shows it.
func (d *Device) explainDead() error {
	why := "the link is down or the card was taken away"
	switch now, err := d.bus.probe(d.card.BDF); {
	case err != nil:
	case now.Driver != "" && now.Driver != d.card.Driver:
		why = fmt.Sprintf("the driver %s was bound to it meanwhile, and the kernel took the registers away; unbind it and start again", now.Driver)
	case now.State == Refused:
		why = now.Why
	}
	return fmt.Errorf("%w: it reads all ones: %s", fpga.ErrGone, why)
}

func (d *Device) checkIdentity() error {
	if err := d.checkPresent(); err != nil {
		return err
	}
	d.window.Load32(ShellCanary) // earlier writes have arrived when these are back
	d.window.Load32(regmap.CommonMagic)
	canary, _ := d.compare(ShellCanary, canaryLive)
	built, sameBuild := d.compare(ShellBuildTime, d.built)
	switch {
	case canary == allOnes || built == allOnes:
		return d.explainDead()
	case canary != canaryLive:
		return fmt.Errorf("%w: 0x008 reads %#x; it is being reset", fpga.ErrGone, canary)
	case !sameBuild:
		return fmt.Errorf("%w: the shell's build time changed from %08x to %08x; start again", ErrChanged, d.built,
			built)
	case !d.ours:
		return nil
	}
	if magic, same := d.compare(regmap.CommonMagic, regmap.CommonMagicResetValue); !same {
		text, _ := Placeholder(magic)
		return fmt.Errorf("%w: the box answers %#08x %s", ErrChanged, magic, text)
	}
	if hash, same := d.compare(regmap.CommonBuildHash, d.hash); !same {
		return fmt.Errorf("%w: the build changed from %08x to %08x; start again", ErrChanged, d.hash, hash)
	}
	if err := d.checkWritten(); err != nil {
		return err
	}
	return d.goesOn()
}

// compare reads a register, and once more if it does not hold the value, because one answer may be damaged on its way.
func (d *Device) compare(addr, want uint32) (got uint32, same bool) {
	if got = d.load(addr); got != want {
		got = d.load(addr)
	}
	return got, got == want
}

// checkWritten reads back the registers that only this session writes.
func (d *Device) checkWritten() error {
	for _, addr := range d.steady {
		w := d.find(addr)
		if !w.written {
			continue
		}
		got, same := d.compare(addr, w.value)
		switch {
		case same:
		case d.load(ShellCanary) == allOnes:
			return d.explainDead()
		default:
			return fmt.Errorf("%w: %s reads %#x, %#x was written; another program or a power cycle reset the card, so it must be configured again", ErrForgot, w.name(), got, w.value)
		}
	}
	return nil
}

// Write32 writes a register, waits until it has arrived, and reads back what can be read back. A write that the card
// declines matches fpga.ErrRefused, or fpga.ErrAddress when the register is read-only; the card's own error bits stay
// readable. Nothing is ever written twice.
func (d *Device) Write32(addr, value uint32) error {
	if err := d.checkFresh(); err != nil {
		return err
	}
	w := d.find(addr)
	if err := d.mayWrite(addr, w); err != nil {
		return err
	}
	if addr == regmap.CommonCommand && value&^w.register.Writable() == 0 {
		return d.command(w, value)
	}
	if w == nil {
		d.window.Store32(addr, value)
		return d.arrived(addr, value)
	}
	w.written = false // until it was read back
	if addr == regmap.CommonErrors && value&^w.register.Writable() == 0 {
		d.sticky &^= value
	}
	if w.kind == window && d.options.DryRun == nil {
		return d.writeThrough(addr, w, value)
	}
	d.window.Store32(addr, value)
	return d.confirm(w, addr, value)
}

// writeThrough writes one word through a window, whose index must then have moved on by one.
func (d *Device) writeThrough(addr uint32, w *word, value uint32) error {
	index := d.load(windows[addr])
	d.window.Store32(addr, value)
	if err := d.confirm(w, addr, value); err != nil {
		return err
	}
	if after := d.load(windows[addr]); after != index+1 {
		return fmt.Errorf("write %#x to %s: %w: its index went from %d to %d; set it and write again", value, w.name(),
			ErrLost, index, after)
	}
	return nil
}

// mayWrite refuses what must not be written.
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
		return fmt.Errorf("%w at %#x: addresses are multiples of 4", fpga.ErrAddress, addr)
	case a == nil || addr >= boxBase && a.write:
		return fmt.Errorf("%w at %#x", fpga.ErrAddress, addr)
	case !a.write:
		return fmt.Errorf("write %#x: %w: %s", addr, ErrDenied, a.why)
	case addr < boxBase && addr&(portStride-1) == tickRegister:
		return fmt.Errorf("write %#x: %w: a tick clears the MAC's counters, which this program adds up; use 'olafctl device watch'", addr, ErrDenied)
	}
	return d.checkPort(addr)
}

// arrived waits for a write to a register that is none of ours.
func (d *Device) arrived(addr, value uint32) error {
	d.window.Load32(addr)
	if got := d.load(addr); got != value {
		if err := d.verify(); err != nil {
			return fmt.Errorf("write %#x: %w", addr, err)
		}
		return fmt.Errorf("write %#x to %#x: %w: it reads %#x; it may be read-only or clear itself", value, addr,
			ErrStale, got)
	}
	return d.count()
}

// confirm waits for a write to one of our registers, asks whether it was declined, and reads it back. The first read goes
// to the block that was written, because only its answer says that the write has arrived; what it returns may be old.
func (d *Device) confirm(w *word, addr, value uint32) error {
	flush := addr
	if w.kind != readback && w.kind != steady {
		flush = w.block.Base
	}
	first := d.window.Load32(flush)
	if err := d.declined(w, value); err != nil {
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
	return d.count()
}

// declined asks the card whether it took the last write.
func (d *Device) declined(w *word, value uint32) error {
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
	return refusal(w, value, bits)
}

// takeErrors moves the refusal bits of the card into our copy.
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

// refusal words why the card declined a write.
func refusal(w *word, value, bits uint32) error {
	why, kind := "its value is outside of what this build takes", fpga.ErrRefused
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

// afterReset waits and starts over: every register has its reset value again.
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

// memoryEntries are the entries of the memories behind the generator's proxy, and how many words one has.
var memoryEntries = [...]struct{ built, words uint32 }{
	{regmap.GeneratorBuiltDescriptors, regmap.DescriptorWords},
	{regmap.GeneratorBuiltFlows, regmap.FlowWords},
	{regmap.GeneratorBuiltTemplates, regmap.TemplateWords},
}

// WriteBurst writes all words to one address, in order. A burst to the memory proxy that would not fit is refused whole.
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
	if err := d.fits(len(words)); err != nil {
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
		if err := d.burst(words[:n]); err != nil {
			return err
		}
		words = words[n:]
	}
	return nil
}

// fits says whether the selected memory has room for n words from its address on.
func (d *Device) fits(n int) error {
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

// burst stores words back to back and asks once whether they were taken.
func (d *Device) burst(words []uint32) error {
	for _, v := range words {
		d.window.Store32(regmap.GeneratorMemData, v)
	}
	w := d.find(regmap.GeneratorMemData)
	d.window.Load32(w.block.Base)
	if err := d.declined(w, words[0]); err != nil {
		return err
	}
	d.accesses += len(words)
	return d.idleMemory()
}

// idleMemory waits until the proxy has taken a burst.
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

// Sleep waits, and verifies the card's identity from time to time.
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

var errClosed = fmt.Errorf("%w: it was closed", fpga.ErrGone)

// Close lets go of the card, which keeps what it was told. Closing twice does nothing.
func (d *Device) Close() error {
	if errors.Is(d.failed, errClosed) {
		return nil
	}
	d.failed = errClosed
	var err error
	if d.window != nil {
		err = d.window.Close()
	}
	return errors.Join(err, d.lock.release())
}
