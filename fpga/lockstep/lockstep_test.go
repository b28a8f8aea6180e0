package lockstep

import (
	"net/netip"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/fpga/twin"
)

// table contains the entries that every card in these tests matches.
type table map[netip.Addr]Worker

func (t table) Worker(source netip.Addr) (olaf.ClusterID, olaf.WorkerID, bool) {
	w, known := t[source]
	return w.Cluster, w.ID, known
}
func (t table) Server(netip.Addr) bool                       { return false }
func (t table) Group(olaf.ClusterID) ([]olaf.WorkerID, bool) { return nil, false }
func (t table) Version() uint64                              { return 1 }

func card(t *testing.T, ports int) *twin.Twin {
	t.Helper()
	tables := table{}
	for _, w := range TableWorkers() {
		tables[w.Address] = w
	}
	c, err := twin.New(twin.Config{ReadPorts: ports, Tables: tables, Wire: true, Slots: 64, Clusters: 1024, Descriptors: 32768})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestEqualCardsDoNotDiverge checks that no divergence is found between two equal cards in any kind of stream, and that
// each kind compares something.
func TestEqualCardsDoNotDiverge(t *testing.T) {
	a, b := card(t, 1), card(t, 1)
	for seed := range uint64(len(kinds)) {
		d, seen, err := CompareCards(t.Context(), Side{a, a}, Side{b, b}, seed)
		if err != nil || d != nil {
			t.Fatalf("%s: %v, %v", kinds[seed].name, d, err)
		}
		if seen.Frames < 5 || seen.Registers < 1000 || seen.Cycles < endStep {
			t.Errorf("%s: %+v", kinds[seed].name, seen)
		}
	}
}

// TestWaitingMergeIsFoundInItsFirstCycle checks that a merge that waits for some cycles is found in the cycle in which
// the wait begins.
func TestWaitingMergeIsFoundInItsFirstCycle(t *testing.T) {
	a, b := card(t, 1), card(t, 2)
	for seed := range uint64(len(kinds)) {
		d, _, err := CompareCards(t.Context(), Side{a, a}, Side{b, b}, seed)
		if err != nil {
			t.Fatal(err)
		}
		if d != nil && d.What == nameOf(regmap.QueueStallCycles) && d.A == "0x1" && d.B == "0x0" {
			return
		}
	}
	t.Error("no stream shows the first stalled cycle")
}

// bent is a card that returns a wrong value for one register.
type bent struct{ *twin.Twin }

func (b bent) Read32(addr uint32) (uint32, error) {
	v, err := b.Twin.Read32(addr)
	if addr == regmap.QueuePeakOccupancy && v > 0 {
		v++
	}
	return v, err
}

// TestWrongRegisterIsFound checks that one wrong answer is found and named, in the first cycle that shows it.
func TestWrongRegisterIsFound(t *testing.T) {
	a, b := card(t, 2), card(t, 2)
	d, _, err := CompareCards(t.Context(), Side{a, a}, Side{bent{b}, b}, 2) // seed 2 fills the queue
	if err != nil || d == nil || d.What != "queue.peak_occupancy" || d.A != "0x1" || d.B != "0x2" {
		t.Errorf("%v, %v", d, err)
	}
}
