package pcie_test

import (
	"errors"
	"testing"

	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/pcie"
	"github.com/olafctl/olaf/fpga/pcie/pcietest"
	"github.com/olafctl/olaf/fpga/regmap"
)

func TestTableWindows(t *testing.T) {
	h := newHost(t, pcietest.OpenNIC())
	d := h.mustOpen(t)
	w := d.Tables()
	if err := w.Write32(pcie.TablesBase+8, 7); err != nil {
		t.Fatal(err)
	}
	if v, err := w.Read32(pcie.TablesBase + 8); v != 7 || err != nil {
		t.Errorf("%d, %v", v, err)
	}
	stores := h.card.Stores
	for _, addr := range []uint32{pcie.TablesBase - 4, pcie.TablesBase + pcie.TablesBytes, pcie.TablesBase + 2, 0, 0x340000,
		regmap.QueueDepth} {
		if err := w.Write32(addr, 1); !errors.Is(err, fpga.ErrAddress) {
			t.Errorf("write %#x: %v", addr, err)
		}
		if _, err := w.Read32(addr); !errors.Is(err, fpga.ErrAddress) {
			t.Errorf("read %#x: %v", addr, err)
		}
	}
	if h.card.Stores != stores {
		t.Error("a refused access reached the card")
	}
	h.card.AllOnesFrom(1)
	if _, err := w.Read32(pcie.TablesBase); !errors.Is(err, fpga.ErrGone) {
		t.Errorf("%v", err)
	}
	if err := w.Write32(pcie.TablesBase, 1); !errors.Is(err, fpga.ErrGone) {
		t.Errorf("%v", err)
	}
}

func TestReadOnlyTableWindows(t *testing.T) {
	h := newHost(t, pcietest.OpenNIC())
	d, err := h.open(pcie.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Tables().Write32(pcie.TablesBase, 1); !errors.Is(err, pcie.ErrDenied) {
		t.Errorf("%v", err)
	}
}
