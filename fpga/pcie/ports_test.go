package pcie_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/pcie"
	"github.com/olafctl/olaf/fpga/pcie/pcietest"
)

func tick(t *testing.T, d *pcie.Device) (pcie.PortCounters, int) {
	t.Helper()
	c, foreign, err := d.Tick(0)
	if err != nil {
		t.Fatal(err)
	}
	return c, foreign
}

func TestTicksAddUpTo64Bits(t *testing.T) {
	h := newHost(t, pcietest.OpenNIC())
	d := h.mustOpen(t)
	h.card.Ports[0].Running[0x608] = 99 // counted before we opened the card
	tick(t, d)
	const most = 1<<48 - 1
	for range 3 {
		h.card.Ports[0].Running[0x608] = most
		_ = h.card.Wait(context.Background(), olaf.Second)
		tick(t, d)
	}
	h.card.Ports[0].Running[0x6C0] = 7
	c, foreign := tick(t, d)
	if c.RXPackets != 3*most || c.RXBadFCS != 7 || foreign != 0 {
		t.Errorf("%+v, %d foreign ticks", c, foreign)
	}
}

func TestForeignTicksAreNoticed(t *testing.T) {
	h := newHost(t, pcietest.OpenNIC())
	d := h.mustOpen(t)
	tick(t, d)
	_ = h.card.Wait(context.Background(), olaf.Second)
	h.card.Tick(0) // like ethtool -S
	_ = h.card.Wait(context.Background(), 100*olaf.Millisecond)
	if _, foreign := tick(t, d); foreign != 1 {
		t.Errorf("%d foreign ticks", foreign)
	}
	_ = h.card.Wait(context.Background(), olaf.Second)
	if _, foreign := tick(t, d); foreign != 1 {
		t.Errorf("%d foreign ticks after one of ours", foreign)
	}
	_ = h.card.Wait(context.Background(), 2*olaf.Millisecond)
	h.card.Tick(0) // a foreign tick soon after one of ours
	_ = h.card.Wait(context.Background(), olaf.Second)
	if _, foreign := tick(t, d); foreign != 2 {
		t.Errorf("%d foreign ticks, of which the second was soon after one of ours", foreign)
	}
}

func TestTickNeedsTheCardAlone(t *testing.T) {
	h := newHost(t, pcietest.OpenNIC())
	d, err := h.open(pcie.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, _, err := d.Tick(0); !errors.Is(err, pcie.ErrDenied) {
		t.Error(err)
	}
}

// TestAdapterCarry checks the value of a counter whose low word overflows between two reads.
func TestAdapterCarry(t *testing.T) {
	h := newHost(t, pcietest.OpenNIC())
	d := h.mustOpen(t)
	low, high := uint32(0xFFFFFFFF), uint32(4)
	h.card.OnLoad = func(_ int, offset, v uint32) uint32 {
		switch offset {
		case 0xB030:
			v = low
			low, high = low+1, 5 // a carry between the reads of low and high
			return v
		case 0xB034:
			return high
		}
		return v
	}
	c, err := d.Adapter(0)
	if err != nil || c.RXDropped>>32 != 5 || uint32(c.RXDropped) > 10 {
		t.Errorf("%#x, %v", c.RXDropped, err)
	}
}

func TestLink(t *testing.T) {
	h := newHost(t, pcietest.OpenNIC())
	d := h.mustOpen(t)
	l, err := d.Link(0) // the first read of the status returns latched history
	if err != nil || !l.Up || !l.FEC {
		t.Errorf("%+v, %v", l, err)
	}
	h.card.Answer(0x8204, 0xC0)
	if l, err = d.Link(0); err != nil || l.Up || l.Reason == "" {
		t.Errorf("%+v, %v", l, err)
	}
	if _, err := d.Link(2); err == nil {
		t.Error("a port that is not there")
	}
}

func TestSecondPortMissing(t *testing.T) {
	h := newHost(t, pcietest.OpenNIC())
	h.card.Shell[0xC024] = 0xC1000024
	d := h.mustOpen(t)
	if d.Ports() != 1 {
		t.Errorf("%d ports", d.Ports())
	}
	if err := d.Reset("cmac1"); !errors.Is(err, pcie.ErrDenied) {
		t.Error(err)
	}
	if err := d.Reset("cmac0"); err != nil {
		t.Error(err)
	}
}

func TestPortCounts(t *testing.T) {
	h := newHost(t, pcietest.OpenNIC())
	d := h.mustOpen(t)
	if _, err := d.PortCounts(); err != nil { // the first tick counts as neither ours nor foreign
		t.Fatal(err)
	}
	h.card.Ports[1].Running[0x500], h.card.Ports[1].Running[0x5B8] = 9, 1
	h.card.Ports[0].Running[0x608], h.card.Ports[0].Running[0x6C0], h.card.Ports[0].Running[0x710] = 8, 2, 3
	h.card.Shell[0xB030], h.card.Shell[0xF010] = 4, 5
	_ = h.card.Wait(context.Background(), olaf.Second)
	h.card.Tick(0) // like ethtool -S
	got, err := d.PortCounts()
	want := []fpga.Port{{Dropped: 4, ForeignTicks: 1}, {Sent: 9, SentDamaged: 1, Stray: 5}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	h.card.Ports[0].Running[0x6C0], h.card.Ports[0].Running[0x6A8], h.card.Ports[0].Running[0x710] = 2, 3, 4
	_ = h.card.Wait(context.Background(), olaf.Second)
	got, err = d.PortCounts()
	want[0].ReceivedDamaged, want[0].ReceivedBadFCS, want[0].ReceivedOversize = 9, 2, 3
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
}
