package pcie_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/pcie"
	"github.com/olafctl/olaf/fpga/pcie/pcietest"
	"github.com/olafctl/olaf/fpga/regmap"
)

const second = olaf.Second

// once changes the first answer of one register.
func once(c *pcietest.Card, addr uint32, change func(uint32) uint32) {
	done := false
	c.OnLoad = func(_ int, offset, v uint32) uint32 {
		if offset != addr || done {
			return v
		}
		done = true
		return change(v)
	}
}

// flipped inverts a bit that is not set in any register of these tests.
func flipped(v uint32) uint32 { return v ^ 1<<29 }

// loseOnce drops one write to a register.
func loseOnce(c *pcietest.Card, addr uint32) {
	done := false
	c.OnStore = func(_ int, offset, _ uint32) bool {
		gone := offset == addr && !done
		done = done || gone
		return gone
	}
}

// TestLostAnswersAreAskedForAgain checks that all ones, or a placeholder, is not returned as data if it is read only
// once.
func TestLostAnswersAreAskedForAgain(t *testing.T) {
	for name, addr := range map[string]uint32{
		"a counter": regmap.QueueDeliveredFrames, "a status": regmap.QueueStatus, "a number": regmap.QueueDepth,
		"a memory": regmap.GeneratorMemData, "a MAC's status": 0x8204, "the clock": regmap.CommonCycles,
	} {
		for kind, answer := range map[string]uint32{"all ones": ^uint32(0), "placeholder": regmap.Placeholder} {
			t.Run(name+", "+kind, func(t *testing.T) {
				h := newHost(t, pcietest.OpenNIC())
				d := h.mustOpen(t)
				if err := d.WriteBurst(regmap.GeneratorMemData, []uint32{7, 8}); err != nil {
					t.Fatal(err)
				}
				if err := d.Write32(regmap.GeneratorMemAddress, 0); err != nil {
					t.Fatal(err)
				}
				h.card.Load32(0x8204) // the first read returns latched history
				want := h.card.Load32(addr)
				if addr == regmap.GeneratorMemData {
					h.card.Store32(regmap.GeneratorMemAddress, 0)
				}
				once(h.card, addr, func(uint32) uint32 { return answer })
				if got, err := d.Read32(addr); got != want || err != nil {
					t.Errorf("%#x, %v; it holds %#x", got, err, want)
				}
				if d.LostReads() != 1 {
					t.Errorf("%d answers were lost", d.LostReads())
				}
				if v, err := d.Read32(regmap.GeneratorMemData); addr == regmap.GeneratorMemData && (v != 8 || err != nil) {
					t.Errorf("the next word is %d, %v", v, err)
				}
			})
		}
	}
}

// TestAllOnesContentIsReadable checks that a register whose content is all ones can be read.
func TestAllOnesContentIsReadable(t *testing.T) {
	d := newHost(t, pcietest.OpenNIC()).mustOpen(t)
	if err := d.Write32(regmap.CommonScratch, ^uint32(0)); err != nil {
		t.Fatal(err)
	}
	if v, err := d.Read32(regmap.CommonScratch); v != ^uint32(0) || err != nil {
		t.Errorf("%#x, %v", v, err)
	}
	if err := d.WriteBurst(regmap.GeneratorMemData, []uint32{^uint32(0), 5}); err != nil {
		t.Fatal(err)
	}
	if err := d.Write32(regmap.GeneratorMemAddress, 0); err != nil {
		t.Fatal(err)
	}
	for _, want := range []uint32{^uint32(0), 5} {
		if v, err := d.Read32(regmap.GeneratorMemData); v != want || err != nil {
			t.Errorf("%#x, %v; want %#x", v, err, want)
		}
	}
}

// TestImpossibleValuesAreNoticed is the fault matrix for a card that is present but returns impossible values. It
// checks that each fault is noticed, and that the error has its kind and gives advice. The twin's counters are those
// after one clear and one snapshot.
func TestImpossibleValuesAreNoticed(t *testing.T) {
	snapshot := func(d *pcie.Device) error { _, err := fpga.Snapshot(d); return err }
	tick := func(d *pcie.Device) error { _, _, err := d.Tick(0); return err }
	for name, c := range map[string]struct {
		fault func(*pcietest.Card)
		use   func(*pcie.Device) error
		kind  error
		says  string
	}{
		"a snapshot is lost": {func(c *pcietest.Card) { c.LoseWrites(regmap.CommonCommand) }, snapshot, pcie.ErrLost, "try again"},
		"a clear is lost": {func(c *pcietest.Card) { loseOnce(c, regmap.CommonCommand) }, func(d *pcie.Device) error {
			return fpga.ClearCounters(d)
		}, pcie.ErrLost, "clear them again"},
		"somebody else clears": {func(c *pcietest.Card) { c.Store32(regmap.CommonCommand, regmap.CommonCommandClear) }, snapshot,
			pcie.ErrLost, "another program"},
		"a reset is lost": {func(c *pcietest.Card) { c.LoseWrites(regmap.CommonCommand) }, func(d *pcie.Device) error {
			return d.Reset(pcie.ResetOlaf)
		}, pcie.ErrLost, "try again"},
		"a reset of the box is lost": {func(c *pcietest.Card) { c.LoseWrites(pcie.UserReset) }, func(d *pcie.Device) error {
			return d.Reset(pcie.ResetBox)
		}, pcie.ErrLost, "common.scratch still reads"},
		"a tick is lost": {func(c *pcietest.Card) { c.LoseWrites(0x82B0) }, tick, pcie.ErrLost, "port 0"},
		"a counter flips": {func(c *pcietest.Card) { c.StuckBits(regmap.QueueIn, 1<<29, 1<<29) },
			func(d *pcie.Device) error { _, err := d.Read32(regmap.QueueIn); return err }, pcie.ErrUnsteady, "take another"},
		"a counter goes back": {func(c *pcietest.Card) { c.Answer(regmap.QueueCoveredCycles, 1) }, snapshot, fpga.ErrDoubtful,
			"cleared"},
		"an adapter is reset": {func(c *pcietest.Card) { c.Shell[0xB030] = 3 },
			func(d *pcie.Device) error { _, err := d.Adapter(0); return err }, pcie.ErrBackwards, "from 100 to 3"},
		"a word of a window is lost": {func(c *pcietest.Card) { c.LoseWrites(regmap.ReplicationMemberData) },
			func(d *pcie.Device) error {
				return d.Write32(regmap.ReplicationMemberData, 1)
			}, pcie.ErrLost, "its index went from 0 to 0"},
		"a status can't be": {func(c *pcietest.Card) { c.Answer(regmap.QueueStatus, ^uint32(0)) },
			func(d *pcie.Device) error { _, err := d.Read32(regmap.QueueStatus); return err }, pcie.ErrUnsteady, "device doctor"},
		"the clock leaps": {func(c *pcietest.Card) {
			n := uint32(0)
			c.OnLoad = func(_ int, offset, v uint32) uint32 {
				if offset == regmap.CommonCycles+4 {
					n++
					return n
				}
				return v
			}
		}, snapshot, pcie.ErrUnsteady, "no two reads agree"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, pcietest.OpenNIC())
			h.card.Shell[0xB030] = 100
			d := h.mustOpen(t)
			_, err := d.PortCounts()
			must(t, err)
			must(t, d.Write32(regmap.ReplicationGroupSize, 2))
			must(t, fpga.ClearCounters(d))
			must(t, h.card.Wait(t.Context(), second))
			_, err = fpga.Snapshot(d)
			must(t, err)
			must(t, h.card.Wait(t.Context(), second))
			c.fault(h.card)
			if err := c.use(d); !errors.Is(err, c.kind) || !errors.Is(err, fpga.ErrDoubtful) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v; want %q of kind %q", err, c.says, c.kind)
			}
		})
	}
}

// TestOneWrongReadIsOutvoted checks that a latched counter is read correctly although one answer is wrong.
func TestOneWrongReadIsOutvoted(t *testing.T) {
	h := newHost(t, pcietest.OpenNIC())
	d := h.mustOpen(t)
	must(t, h.card.Wait(t.Context(), second))
	_, err := fpga.Snapshot(d)
	must(t, err)
	want := h.card.Load32(regmap.QueueCoveredCycles)
	once(h.card, regmap.QueueCoveredCycles, flipped)
	if got, err := d.Read32(regmap.QueueCoveredCycles); got != want || err != nil {
		t.Errorf("%d, %v; it holds %d", got, err, want)
	}
	h.card.Ports[0].Running[0x608] = 5
	must(t, h.card.Wait(t.Context(), second))
	_, _, err = d.Tick(0)
	must(t, err)
	h.card.Ports[0].Running[0x608] = 6
	must(t, h.card.Wait(t.Context(), second))
	once(h.card, 0x8608, flipped)
	if c, _, err := d.Tick(0); c.RXPackets != 6 || err != nil {
		t.Errorf("%d frames, %v", c.RXPackets, err)
	}
	h.card.Shell[0xB030] = 9
	once(h.card, 0xB030, flipped)
	if c, err := d.Adapter(0); c.RXDropped != 9 || err != nil {
		t.Errorf("%d dropped, %v", c.RXDropped, err)
	}
}

// TestPowerCycle checks that a power cycle of the card is noticed even by a session that wrote nothing that the card
// could forget.
func TestPowerCycle(t *testing.T) {
	for _, readOnly := range []bool{false, true} {
		h := newHost(t, pcietest.OpenNIC())
		must(t, h.card.Wait(t.Context(), second))
		d, err := h.open(pcie.Options{ReadOnly: readOnly})
		must(t, err)
		must(t, h.card.PowerCycle())
		err = d.Sleep(context.Background(), 200*olaf.Millisecond)
		if !errors.Is(err, pcie.ErrRestarted) || !errors.Is(err, fpga.ErrGone) || !strings.Contains(err.Error(), "configured again") {
			t.Errorf("read-only %t: %v", readOnly, err)
		}
		must(t, d.Close())
	}
}

// TestClockWithoutRate checks that a card with which ages would be meaningless is refused.
func TestClockWithoutRate(t *testing.T) {
	h := newHost(t, pcietest.OpenNIC())
	h.card.Answer(regmap.CommonClockHz, 0)
	if _, err := h.open(pcie.Options{}); !errors.Is(err, pcie.ErrNoClock) || !strings.Contains(err.Error(), "reprogram the image") {
		t.Error(err)
	}
	if h.card.Stores != 0 {
		t.Error("it was written to")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestAnswersLostInASnapshotAreAskedForAgain checks answers for one counter of a snapshot that are lost once, as while
// a driver is bound, and answers that are always lost.
func TestAnswersLostInASnapshotAreAskedForAgain(t *testing.T) {
	for _, times := range []int{4, 1 << 20} { // both reads of both words, or always
		h := newHost(t, pcietest.OpenNIC())
		d := h.mustOpen(t)
		must(t, h.card.Wait(t.Context(), second))
		left := times
		h.card.OnLoad = func(_ int, offset, v uint32) uint32 {
			if offset&^4 == regmap.QueueCoveredCycles && left > 0 {
				left--
				return 1<<32 - 1
			}
			return v
		}
		err := d.Write32(regmap.CommonCommand, regmap.CommonCommandSnapshot)
		if times == 4 && err != nil {
			t.Errorf("lost once: %v", err)
		}
		if times > 4 && !errors.Is(err, fpga.ErrGone) {
			t.Errorf("lost for good: %v, want that the card is gone", err)
		}
	}
}

// TestCardLostInASnapshot removes the card at every read of a snapshot and of a counter after it. It checks that the
// error reports the loss instead of contradictions among values of which some were all ones.
func TestCardLostInASnapshot(t *testing.T) {
	for n := 1; ; n++ {
		h := newHost(t, pcietest.OpenNIC())
		d := h.mustOpen(t)
		must(t, h.card.Wait(t.Context(), second))
		h.card.AllOnesFrom(n)
		before := h.card.Loads
		err := d.Write32(regmap.CommonCommand, regmap.CommonCommandSnapshot)
		if err == nil {
			_, err = d.Read32(regmap.QueueDeliveredFrames)
		}
		if err == nil && h.card.Loads-before < n {
			if n < 100 {
				t.Errorf("a snapshot and a counter took %d reads, less than the counters there are", n)
			}
			return
		}
		if !errors.Is(err, fpga.ErrGone) || !strings.Contains(err.Error(), "all ones") {
			t.Fatalf("lost at read %d: %v; want that it reads all ones, of kind %q", n, err, fpga.ErrGone)
		}
	}
}
