package metric

import (
	"testing"

	"github.com/olafctl/olaf"
)

// TestAccountOfAnyQueue joins the declarations of a queue that this package knows nothing of.
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
