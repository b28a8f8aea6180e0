package bench

import (
	"strings"
	"testing"
)

// TestComparisonTerms checks that systems of different papers are never compared without their costs, and that
// baselines and the default bench have no terms.
func TestComparisonTerms(t *testing.T) {
	for name, c := range map[string]struct {
		system, versus string
		change         func(*Spec)
		want           []string // empty for no terms
	}{
		"the default":     {"olaf", "fifo", nil, nil},
		"with a baseline": {"iswitch", "fifo", nil, nil},
		"alone":           {"iswitch", "", nil, nil},
		"two papers": {"iswitch", "olaf,fifo", nil,
			[]string{"OLAF pays 2 per departure and 1 per merge; none are charged to iSwitch, FIFO", "iSwitch is left out; --accelerator",
				"iSwitch 4352B with its 9 segments", "OLAF 2048B", "iSwitch float32, OLAF int32 that saturates, FIFO adds nothing",
				"P, the link from the switch to the server."}},
		"charged": {"olaf", "iswitch", func(s *Spec) { s.Accelerator, s.Profile = true, "ideal" },
			[]string{"profile ideal): none are charged."}},
		"both topologies": {"iswitch", "olaf", func(s *Spec) { s.Topology = ToBoth },
			[]string{"S, the links from the switch to the workers"}},
	} {
		s := smallSpecOf(t)
		s.Queue, s.Versus, s.Slots = c.system, c.versus, 8
		if c.change != nil {
			c.change(&s)
		}
		plan, err := NewPlan(s)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		said := strings.Join(plan.fairTerms(), "\n")
		if (said == "") != (c.want == nil) {
			t.Errorf("%s: %q", name, said)
		}
		for _, want := range c.want {
			if !strings.Contains(said, want) {
				t.Errorf("%s: no %q in %q", name, want, said)
			}
		}
		if s.Accelerator && strings.Contains(said, "--accelerator") {
			t.Errorf("%s: %q", name, said)
		}
	}
}
