package paper

import (
	"math"
	"testing"
)

// TestISwitchArithmetic checks the arithmetic on iSwitch's printed numbers against values computed by hand.
func TestISwitchArithmetic(t *testing.T) {
	by := map[string]Claim{}
	for _, c := range ListClaims() {
		by[c.ID] = c
	}
	for id, want := range map[string]struct {
		follows, within float64
		verdict         Verdict
	}{
		"bus_load.four_ports":             {78, 0.5, Holds},
		"bus_load.and_results":            {98, 0.5, Holds},
		"vector_in_memory.dqn":            {100 * 6.73 / 6.77, 0.2, Contradiction},
		"vector_in_memory.a2c":            {100 * 3.47 / 6.77, 0.2, Contradiction},
		"vector_in_memory.ppo":            {100 * 0.041 / 6.77, 0.01, BoundMet},
		"vector_in_memory.ddpg":           {100 * 0.163 / 6.77, 0.01, BoundMet},
		"counters_of_a_vector.dqn":        {4592, 0, Opposite},
		"staleness_bound.after_4_losses":  {4, 0, BoundMissed},
		"sync_speedup_by_hours.ppo":       {1.77, 0.005, Near},
		"allreduce_speedup_by_hours.a2c":  {1.61, 0.005, Match},
		"async_speedup_by_hours.ddpg":     {1.56, 0.005, Match},
		"aggregation_of_an_iteration.dqn": {84.7, 0.05, Contradiction},
		"gradients_saved.dqn":             {100 * (1 - 14.0/6.3), 0.01, Opposite},
		"gradients_saved.ppo":             {100 * (1 - 0.48/0.54), 0.01, Holds},
		"async_over_sync.dqn":             {11.74 / 8.66, 1e-9, Opposite},
		"staleness_of_the_server.most":    {3, 0, Match},
		"allreduce_speedup_by_hours.dqn":  {1.97, 0.005, Match},
		"sync_speedup_by_hours.ddpg":      {1.83, 0.005, Match},
		"gradients_saved.ddpg":            {-100, 1e-9, Opposite},
		"async_over_sync.ddpg":            {1.41, 0.005, Opposite},
		"async_speedup_by_hours.a2c":      {3.15, 0.005, Match},
		"allreduce_speedup_by_hours.ddpg": {0.896, 0.0005, Match},
		"gradients_saved.a2c":             {100 * (1 - 1.6/1.2), 0.01, Opposite},
	} {
		c, ok := by["iswitch/text."+id]
		if !ok {
			t.Errorf("%s is not there", id)
			continue
		}
		if off := math.Abs(c.Follows - want.follows); off > want.within+1e-12 {
			t.Errorf("%s: %v follows, %v by hand", id, c.Follows, want.follows)
		}
		if c.Expect != want.verdict {
			t.Errorf("%s expects %s, want %s", id, c.Expect, want.verdict)
		}
	}
	for _, row := range Compare(nil, "iswitch/text") {
		if row.Verdict != row.Expected {
			t.Errorf("%s is %s, expected %s", row.ID, row.Verdict, row.Expected)
		}
	}
}

// TestRowsDescribeContradictions checks that a row describes where its paper contradicts itself, whether or not that is
// its verdict.
func TestRowsDescribeContradictions(t *testing.T) {
	rows, told := Compare(nil), 0
	for i, c := range ListClaims() {
		if rows[i].Contradiction != c.Contradiction+c.Disagreement || c.Contradiction != "" && c.Disagreement != "" {
			t.Errorf("%s tells %q", c.ID, rows[i].Contradiction)
		}
		if rows[i].Contradiction != "" {
			told++
		}
		if rows[i].Verdict == string(Contradiction) && rows[i].Contradiction == "" {
			t.Errorf("%s is a contradiction without a text", c.ID)
		}
	}
	if told < 40 {
		t.Errorf("%d rows tell a contradiction", told)
	}
}
