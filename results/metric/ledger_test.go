package metric

import (
	"testing"

	"github.com/olafctl/olaf"
)

// TestAccountOfAnyQueue joins the declarations of a queue that this package does not contain.
func TestAccountOfAnyQueue(t *testing.T) {
	flow := &olaf.Ledger{
		Counters:   []olaf.Counter{{Name: "in"}, {Name: "delivered"}},
		Identities: []olaf.Identity{{Left: []string{"in"}, Right: []string{"delivered"}}},
		Output:     []string{"delivered"},
	}
	l := OfQueue(flow, &olaf.Ledger{Counters: []olaf.Counter{{Name: "count_delivered"}}}).Ledger
	if err := l.Validate(); err != nil {
		t.Fatal(err)
	}
	c := olaf.NewCounts(l)
	for _, name := range []string{"sent", "in", "delivered", "received"} {
		c.Add(name, 5)
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"sent", "in", "received"} {
		bad := c.Clone()
		bad.Add(name, 1)
		if bad.Check() == nil {
			t.Errorf("one %s more was not noticed", name)
		}
	}
}

// TestSlotsInFront checks that the mean number of slots is over the time that the card counted, or over the time of the
// deliveries if the card does not report its time.
func TestSlotsInFront(t *testing.T) {
	for name, c := range map[string]struct {
		slots, cycles int64
		duration      Float
		want          Float
	}{
		"counted":                  {600, 400, 1000, 1.5},
		"before anything came out": {600, 400, 0, 1.5},
		"nothing held":             {0, 400, 1000, 0},
		"of map 1.3":               {600, 0, 1000, 2.4},
		"of map 1.3, one delivery": {600, 0, 0, Missing()},
		"of map 1.2":               {0, 0, 1000, Missing()},
	} {
		counts := olaf.NewCounts(tableHeld)
		counts.Add("slots_peak", 3)
		counts.Add("held_slot_cycles", c.slots)
		counts.Add("held_cycles", c.cycles)
		if got := slotsInFront(&Measured{Counts: counts, Duration: c.duration}); got != c.want &&
			(got.Known() || c.want.Known()) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
