package pcie_test

import (
	"errors"
	"testing"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/pcie"
	"github.com/olafctl/olaf/fpga/pcie/pcietest"
	"github.com/olafctl/olaf/fpga/regmap"
)

// replacements lists the ways in which an idle session can end up with a different card, or with the same card without
// the values that were written.
var replacements = map[string]struct {
	happens func(*testing.T, *host)
	kind    error
}{
	"another image":                  {func(_ *testing.T, h *host) { h.card.Reprogram() }, pcie.ErrChanged},
	"another build of the same time": {func(_ *testing.T, h *host) { h.card.Answer(regmap.CommonBuildHash, 0xBAD) }, pcie.ErrChanged},
	"a power cycle":                  {func(t *testing.T, h *host) { must(t, h.card.PowerCycle()) }, pcie.ErrRestarted},
	"a power cycle long ago": {func(t *testing.T, h *host) {
		must(t, h.card.PowerCycle())
		must(t, h.card.Wait(t.Context(), 10*olaf.Second)) // its clock is past the last value read
	}, pcie.ErrRestarted},
	"a dead link": {func(_ *testing.T, h *host) { h.card.AllOnesFrom(1) }, fpga.ErrGone},
}

// TestIdleSessionNoticesAnotherCard checks that a session that was idle for 100 ms neither returns a value of another
// card nor writes to it, whichever access comes first.
func TestIdleSessionNoticesAnotherCard(t *testing.T) {
	uses := map[string]func(*pcie.Device) error{
		"a read":                 func(d *pcie.Device) error { _, err := d.Read32(regmap.QueueDepth); return err },
		"a read of the clock":    func(d *pcie.Device) error { _, err := d.Read32(regmap.CommonCycles); return err },
		"a write":                func(d *pcie.Device) error { return d.Write32(regmap.QueueDepth, 8) },
		"a command":              func(d *pcie.Device) error { return d.Write32(regmap.CommonCommand, regmap.CommonCommandSnapshot) },
		"a burst":                func(d *pcie.Device) error { return d.WriteBurst(regmap.GeneratorMemData, []uint32{1, 2}) },
		"a read of the tables":   func(d *pcie.Device) error { _, err := d.Tables().Read32(pcie.TablesBase); return err },
		"a write of the tables":  func(d *pcie.Device) error { return d.Tables().Write32(pcie.TablesBase, 1) },
		"a tick":                 func(d *pcie.Device) error { _, _, err := d.Tick(0); return err },
		"a read of the adapter":  func(d *pcie.Device) error { _, err := d.Adapter(0); return err },
		"a read of a port":       func(d *pcie.Device) error { _, err := d.Link(0); return err },
		"a reset of our blocks":  func(d *pcie.Device) error { return d.Reset(pcie.ResetOlaf) },
		"a reset of a MAC":       func(d *pcie.Device) error { return d.Reset("cmac0") },
		"a check without access": func(d *pcie.Device) error { return d.Check() },
	}
	for replaced, r := range replacements {
		for used, use := range uses {
			t.Run(replaced+", then "+used, func(t *testing.T) {
				h := newHost(t, pcietest.OpenNIC())
				must(t, h.card.Wait(t.Context(), olaf.Second))
				var lost []error
				d, err := h.open(pcie.Options{Lost: func(err error) { lost = append(lost, err) }})
				must(t, err)
				defer d.Close()
				must(t, d.Write32(regmap.QueueDepth, 8)) // write the reset value, so that a power cycle loses nothing
				r.happens(t, h)
				must(t, h.card.Wait(t.Context(), 100*olaf.Millisecond))
				stores := h.card.Stores
				if err := use(d); !errors.Is(err, r.kind) || !errors.Is(err, fpga.ErrGone) {
					t.Errorf("%v; want kind %q", err, r.kind)
				}
				if h.card.Stores != stores {
					t.Errorf("%d writes reached a card that is not the one that was opened", h.card.Stores-stores)
				}
				if err := use(d); !errors.Is(err, fpga.ErrGone) || len(lost) != 1 || !errors.Is(lost[0], r.kind) {
					t.Errorf("the second use gives %v, and the loss was reported as %q; want it once", err, lost)
				}
			})
		}
	}
}

// wall is a host's clock that advances without the card's clock.
type wall struct {
	*pcietest.Card
	passed time.Duration
}

func (w *wall) Now() time.Time {
	w.passed += 100 * time.Microsecond
	return w.Card.Now().Add(w.passed)
}

// TestSlowCardIsTheSameCard checks that a card whose clock is slower than real time, such as simulated logic, is not
// mistaken for a card that was switched off and on.
func TestSlowCardIsTheSameCard(t *testing.T) {
	h := newHost(t, pcietest.OpenNIC())
	w := &wall{Card: h.card}
	d, err := pcie.Open(h.bus, pcietest.BDF, pcie.Options{})
	must(t, err)
	defer d.Close()
	w.passed += time.Hour
	if _, err := d.Read32(regmap.QueueDepth); err != nil {
		t.Error(err)
	}
}

// TestSlowReadsAreNotFaults checks that a running counter is read correctly if every access takes 20 ms.
func TestSlowReadsAreNotFaults(t *testing.T) {
	h := newHost(t, pcietest.OpenNIC())
	d := h.mustOpen(t)
	h.card.OnLoad = func(_ int, _, v uint32) uint32 {
		must(t, h.card.Wait(t.Context(), 20*olaf.Millisecond))
		return v
	}
	if _, err := fpga.Snapshot(d); err != nil {
		t.Errorf("snapshot: %v", err)
	}
	if _, _, err := d.Tick(0); err != nil {
		t.Errorf("counters of a MAC: %v", err)
	}
}
