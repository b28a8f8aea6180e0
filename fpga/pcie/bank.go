package pcie

import (
	"errors"
	"fmt"
	"time"

	"github.com/olafctl/olaf/fpga/regmap"
)

// bank tracks the counters that a snapshot latched. The card reports at which cycle they were latched and how long they
// had counted, so that a lost snapshot command is noticed before a counter is returned.
type bank struct {
	words   []uint32 // addresses, in order
	known   bool     // the values are those of the last snapshot
	going   bool     // the counters were not cleared since that snapshot
	seen    uint64   // last value of common.cycles
	seenAt  time.Time
	clear   span // range of common.cycles in which the counters were last cleared
	cleared bool // clear is valid
}

// span is a range of values of common.cycles, including both ends.
type span struct{ from, to uint64 }

func (s span) contains(c uint64) bool { return s.from <= c && c <= s.to }

// forget discards the values that become invalid when the card is reset.
func (b *bank) forget() {
	b.known, b.going, b.cleared, b.seen, b.seenAt = false, false, false, 0, time.Time{}
}

// runCommand writes a command that concerns all blocks. It checks that the command took effect between the clock
// readings before and after it.
func (d *Device) runCommand(w *word, value uint32) error {
	if value&regmap.CommonCommandReset != 0 {
		return d.resetBlocks(regmap.CommonCommand, value)
	}
	if d.options.DryRun != nil {
		d.window.Store32(regmap.CommonCommand, value)
		return d.confirmWrite(w, regmap.CommonCommand, value)
	}
	var given span
	var err error
	if given.from, err = d.readCycles(); err != nil {
		return err
	}
	d.window.Store32(regmap.CommonCommand, value)
	if err = d.confirmWrite(w, regmap.CommonCommand, value); err != nil {
		return err
	}
	if given.to, err = d.readCycles(); err != nil {
		return err
	}
	if value&regmap.CommonCommandSnapshot != 0 {
		if err := d.latchBank(given); err != nil {
			d.bank.known = false
			if gone := d.verify(); gone != nil { // if a card disappears in the middle, its answers also contradict each other
				err = gone
			}
			return fmt.Errorf("snapshot: %w", err)
		}
	}
	if value&regmap.CommonCommandClear != 0 {
		d.bank.clear, d.bank.cleared, d.bank.going = given, true, false
	}
	return nil
}

// resetBlocks writes a reset command and checks that the scratch register has its reset value again.
func (d *Device) resetBlocks(register, bits uint32) error {
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
		return fmt.Errorf("reset: %w: common.scratch still reads %#08x; try again, and reprogram the card if this "+
			"persists", ErrLost, got)
	}
	return nil
}

// latchBank reads the counters that a snapshot latched. It checks them against the card's clock and the previous
// snapshot.
func (d *Device) latchBank(given span) error {
	before := make([]uint64, len(d.bank.words)/2)
	now := make([]uint64, len(before))
	for i := range now {
		low, high := d.find(d.bank.words[2*i]), d.find(d.bank.words[2*i+1])
		before[i] = uint64(high.value)<<32 | uint64(low.value)
		low.value, high.value = d.loadLatched(2 * i)
		now[i] = uint64(high.value)<<32 | uint64(low.value)
		if now[i] == allOnes64 {
			return d.explainDead()
		}
	}
	compare := d.bank.known && d.bank.going
	d.bank.known, d.bank.going = true, true
	at, covered := d.latchedAt(regmap.QueueSnapshotCycle), d.latchedAt(regmap.QueueCoveredCycles)
	if !given.contains(at) {
		return fmt.Errorf("%w: the counters were latched at cycle %d, but the command was sent between %d and %d; "+
			"try again, and reset the card if this persists", ErrLost, at, given.from, given.to)
	}
	clear := at - covered
	switch b := &d.bank; {
	case covered > at:
		return fmt.Errorf("%w: the counters cover %d cycles at cycle %d; reset the card", ErrUnsteady, covered, at)
	case b.cleared && !b.clear.contains(clear):
		return fmt.Errorf("%w: the counters were cleared at cycle %d, not between %d and %d: our clear was lost or "+
			"another program cleared them; clear them again", ErrLost, clear, b.clear.from, b.clear.to)
	default:
		b.clear, b.cleared = span{clear, clear}, true
	}
	for i := range now {
		if addr := d.bank.words[2*i]; compare && now[i] < before[i] && !d.find(addr).register.Gauge {
			return fmt.Errorf("%w: %s went from %d to %d; clear the counters and start again", ErrBackwards,
				d.nameOf(addr),
				before[i], now[i])
		}
	}
	return nil
}

// loadLatched reads both words of the latched counter whose low word has index at in the bank. If the answer is all
// ones, it was lost, because no counter is all ones, and is read again. This happens, for example, while a driver is
// being bound to the card.
func (d *Device) loadLatched(at int) (low, high uint32) {
	for range 2 {
		low, high = d.load(d.bank.words[at]), d.load(d.bank.words[at+1])
		if low&high != allOnes {
			break
		}
		d.lies++
	}
	return low, high
}

func (d *Device) latchedAt(addr uint32) uint64 {
	return uint64(d.find(addr+4).value)<<32 | uint64(d.find(addr).value)
}

// checkLatched returns the counter word at addr after comparing v with its latched value, or with a second read if that
// value is unknown. If they differ, a third read decides.
func (d *Device) checkLatched(addr uint32, w *word, v uint32) (uint32, error) {
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
	return v, fmt.Errorf("read %s: %w: it read %#x and then %#x without a snapshot in between; take another snapshot",
		w.name(),
		ErrUnsteady, want, again)
}

// maxCounterStep is the largest plausible difference between two successive reads of a running counter. It corresponds
// to a few milliseconds of the clock, and to more frames than any port sends in that time.
const maxCounterStep = 1 << 20

// fastest is an upper limit for the rate of any counter on a card, in counts per second.
const fastest = 400e6

// readRunning reads a running counter with look until two successive values differ by no more than the time between
// them allows.
func (d *Device) readRunning(name string, look func() uint64) (uint64, error) {
	began := d.clock.Now()
	first := look()
	for range 4 {
		second := look()
		now := d.clock.Now()
		if second-first < maxCounterStep+uint64(fastest*now.Sub(began).Seconds()) {
			return second, nil
		}
		first, began = second, now
	}
	return 0, fmt.Errorf("read %s: %w: no two reads agree; check the card with 'olafctl device doctor'", name,
		ErrUnsteady)
}

// readCycles reads the card's clock and returns an error if it went back.
func (d *Device) readCycles() (uint64, error) {
	if d.failed != nil {
		return 0, d.failed
	}
	c, err := d.readClock()
	if err == nil && c >= d.bank.seen {
		d.bank.seen, d.bank.seenAt = c, d.clock.Now()
		return c, nil
	}
	return c, errors.Join(d.verify(), err) // verify looks for the cause
}

// readClock reads the clock's low word first, because this read latches the high word.
func (d *Device) readClock() (uint64, error) {
	c, err := d.readRunning("common.cycles", func() uint64 {
		low := d.load(regmap.CommonCycles)
		return uint64(d.load(regmap.CommonCycles+4))<<32 | uint64(low)
	})
	if err == nil && c == allOnes64 {
		err = d.explainDead()
	}
	return c, err
}

// checkClock compares the card's clock with its last value and with the elapsed time. It detects a power cycle with the
// same image even if no register was written that would show it. After a power cycle, the clock has counted less than
// the elapsed time, even if it is past its last value.
func (d *Device) checkClock() error {
	b, now := &d.bank, d.clock.Now()
	c, err := d.readClock()
	if err != nil {
		return err
	}
	if c < b.seen || d.onTime && !b.seenAt.IsZero() && d.isSlow(c-b.seen, now.Sub(b.seenAt)) {
		return fmt.Errorf("%w: its clock was at cycle %d and is now at %d; it was power-cycled and must be "+
			"configured again", ErrRestarted, b.seen, c)
	}
	b.seen, b.seenAt = c, d.clock.Now()
	return nil
}

// slowestCard is the minimum ratio of the card's clock to its stated rate. The clock may be derived from the slot's
// reference clock, which spread spectrum slows down by 0.5 %.
const slowestCard = 0.98

// isSlow reports whether the card's clock counted fewer cycles than the elapsed time requires.
func (d *Device) isSlow(cycles uint64, passed time.Duration) bool {
	return float64(cycles+1) < slowestCard*passed.Seconds()*float64(d.clockHz)
}

// measureClock checks whether the card's clock runs at its stated rate, which is not the case in a simulator.
func (d *Device) measureClock() error {
	b := &d.bank
	began, at, now := b.seen, b.seenAt, d.clock.Now()
	if err := d.checkClock(); err != nil {
		return err
	}
	d.onTime = !d.isSlow(b.seen-began, now.Sub(at))
	return nil
}
