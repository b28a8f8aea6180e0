package pcie

import (
	"errors"
	"fmt"
	"time"

	"github.com/olafctl/olaf/fpga/regmap"
)

// bank is what is known of the counters that a snapshot latches. A card says by itself at which cycle they were latched and
// how long before that they were cleared, so that a command that did not arrive shows before a counter is handed out.
type bank struct {
	words   []uint32 // addresses, in order
	known   bool     // the registers' values are what the last snapshot latched
	going   bool     // nothing was cleared since
	seen    uint64   // common.cycles when it was read last
	seenAt  time.Time
	clear   span // of common.cycles, in which the counters were cleared last
	cleared bool // that is known
}

// span is a stretch of common.cycles, both ends included.
type span struct{ from, to uint64 }

func (s span) holds(c uint64) bool { return s.from <= c && c <= s.to }

// forget drops everything that a reset of the card changes.
func (b *bank) forget() {
	b.known, b.going, b.cleared, b.seen, b.seenAt = false, false, false, 0, time.Time{}
}

// command acts on all blocks, and is held against the card's clock: what it did must have happened between two looks at it.
func (d *Device) command(w *word, value uint32) error {
	if value&regmap.CommonCommandReset != 0 {
		return d.restart(regmap.CommonCommand, value)
	}
	if d.options.DryRun != nil {
		d.window.Store32(regmap.CommonCommand, value)
		return d.confirm(w, regmap.CommonCommand, value)
	}
	var given span
	var err error
	if given.from, err = d.cycles(); err != nil {
		return err
	}
	d.window.Store32(regmap.CommonCommand, value)
	if err = d.confirm(w, regmap.CommonCommand, value); err != nil {
		return err
	}
	if given.to, err = d.cycles(); err != nil {
		return err
	}
	if value&regmap.CommonCommandSnapshot != 0 {
		if err := d.latch(given); err != nil {
			d.bank.known = false
			return fmt.Errorf("snapshot: %w", err)
		}
	}
	if value&regmap.CommonCommandClear != 0 {
		d.bank.clear, d.bank.cleared, d.bank.going = given, true, false
	}
	return nil
}

// restart gives a command to reset our blocks, which must bring the scratch register back to what it holds at first.
func (d *Device) restart(register, bits uint32) error {
	if err := d.Write32(regmap.CommonScratch, patterns[0]); err != nil {
		return err
	}
	d.window.Store32(register, bits)
	if err := d.afterReset(resetWait); err != nil {
		return fmt.Errorf("reset: %w", err)
	}
	got := d.load(regmap.CommonScratch)
	if got != regmap.CommonScratchResetValue {
		got = d.load(regmap.CommonScratch)
	}
	if got != regmap.CommonScratchResetValue && d.options.DryRun == nil {
		return fmt.Errorf("reset: %w: common.scratch still reads %#08x; try again, and program the card again if it stays", ErrLost, got)
	}
	return nil
}

// latch reads what a snapshot left, and holds it against the clock and against what the one before left.
func (d *Device) latch(given span) error {
	before := make([]uint64, len(d.bank.words)/2)
	now := make([]uint64, len(before))
	for i := range now {
		low, high := d.find(d.bank.words[2*i]), d.find(d.bank.words[2*i+1])
		before[i] = uint64(high.value)<<32 | uint64(low.value)
		low.value, high.value = d.load(d.bank.words[2*i]), d.load(d.bank.words[2*i+1])
		now[i] = uint64(high.value)<<32 | uint64(low.value)
	}
	compare := d.bank.known && d.bank.going
	d.bank.known, d.bank.going = true, true
	at, covered := d.latchedAt(regmap.QueueSnapshotCycle), d.latchedAt(regmap.QueueCoveredCycles)
	if !given.holds(at) {
		return fmt.Errorf("%w: the counters are of cycle %d, and it was given between %d and %d; try again, and reset the card if it stays", ErrLost, at, given.from, given.to)
	}
	clear := at - covered
	switch b := &d.bank; {
	case covered > at:
		return fmt.Errorf("%w: %d cycles are counted at cycle %d; reset the card", ErrUnsteady, covered, at)
	case b.cleared && !b.clear.holds(clear):
		return fmt.Errorf("%w: the counters were cleared at cycle %d, and not between %d and %d: a clear was lost or came from another program; clear them again", ErrLost, clear, b.clear.from, b.clear.to)
	default:
		b.clear, b.cleared = span{clear, clear}, true
	}
	for i := range now {
		if addr := d.bank.words[2*i]; compare && now[i] < before[i] && !d.find(addr).register.Gauge {
			return fmt.Errorf("%w: %s from %d to %d; clear the counters and begin again", ErrBackwards, d.nameOf(addr),
				before[i], now[i])
		}
	}
	return nil
}

func (d *Device) latchedAt(addr uint32) uint64 {
	return uint64(d.find(addr+4).value)<<32 | uint64(d.find(addr).value)
}

// unchanged holds a counter against what it read when it was latched, or against a second look where that is not known. A
// third look decides between the two.
func (d *Device) unchanged(addr uint32, w *word, v uint32) (uint32, error) {
	want := w.value
	if !d.bank.known {
		want = d.load(addr)
	}
	if v == want {
		return v, nil
	}
	again := d.load(addr)
	if again == want || again == v && !d.bank.known {
		d.lies++
		return again, nil
	}
	if err := d.verify(); err != nil {
		return v, fmt.Errorf("read %s: %w", w.name(), err)
	}
	return v, fmt.Errorf("read %s: %w: %#x and then %#x without a snapshot between them; take another", w.name(),
		ErrUnsteady, want, again)
}

// nearby is by how much a running counter may differ between two looks in a row: milliseconds of a clock, and more frames
// than any port moves in them.
const nearby = 1 << 20

// fastest is a rate that no counter of a card exceeds, in counts per second.
const fastest = 400e6

// counting reads a running counter: two reads in a row must differ by no more than what the time between them explains,
// since one alone could be anything.
func (d *Device) counting(name string, look func() uint64) (uint64, error) {
	began := d.clock.Now()
	first := look()
	for range 4 {
		second := look()
		now := d.clock.Now()
		if second-first < nearby+uint64(fastest*now.Sub(began).Seconds()) {
			return second, nil
		}
		first, began = second, now
	}
	return 0, fmt.Errorf("read %s: %w: no two looks agree; 'olafctl device doctor' looks at the card", name,
		ErrUnsteady)
}

// cycles reads the card's clock, which never goes back.
func (d *Device) cycles() (uint64, error) {
	if d.failed != nil {
		return 0, d.failed
	}
	c, err := d.clockNow()
	if err == nil && c >= d.bank.seen {
		d.bank.seen, d.bank.seenAt = c, d.clock.Now()
		return c, nil
	}
	return c, errors.Join(d.verify(), err) // which looks for the reason
}

// clockNow reads the low word first, which latches the high one.
func (d *Device) clockNow() (uint64, error) {
	return d.counting("common.cycles", func() uint64 {
		low := d.load(regmap.CommonCycles)
		return uint64(d.load(regmap.CommonCycles+4))<<32 | uint64(low)
	})
}

// goesOn compares the clock with its last value and with the time that passed since. Where nothing was written that a card
// could forget, only this shows a power cycle with the same image. A clock that counted less than the time that passed
// started anew, even if it is past its last value by now.
func (d *Device) goesOn() error {
	b, now := &d.bank, d.clock.Now()
	c, err := d.clockNow()
	if err != nil {
		return err
	}
	if c < b.seen || d.onTime && !b.seenAt.IsZero() && d.isSlow(c-b.seen, now.Sub(b.seenAt)) {
		return fmt.Errorf("%w: its clock was at cycle %d and is at %d; it was switched off and on, so that it must be configured again", ErrRestarted, b.seen, c)
	}
	b.seen, b.seenAt = c, d.clock.Now()
	return nil
}

// slowestCard is the share of its stated rate at which a card's clock counts at least: it may come from the slot's reference
// clock, which spread spectrum slows by 0.5 %.
const slowestCard = 0.98

// isSlow reports whether the card's clock counted less than belongs to the time that passed.
func (d *Device) isSlow(cycles uint64, passed time.Duration) bool {
	return float64(cycles+1) < slowestCard*passed.Seconds()*float64(d.clockHz)
}

// measureClock finds out whether the card's clock keeps the rate that it states. One that a simulator drives does not.
func (d *Device) measureClock() error {
	b := &d.bank
	began, at, now := b.seen, b.seenAt, d.clock.Now()
	if err := d.goesOn(); err != nil {
		return err
	}
	d.onTime = !d.isSlow(b.seen-began, now.Sub(at))
	return nil
}
