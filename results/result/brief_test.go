package result_test

import (
	"encoding/json"
	"testing"

	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/result"
)

// TestBriefs checks that the findings of a stored document fit into a line of a list, and that an unreadable or empty
// document gives an empty line.
func TestBriefs(t *testing.T) {
	at := func(v float64) results.Statistic { return result.Describe([]float64{v}) }
	five := []string{"a", "b", "c", "d", "e"}
	for want, found := range map[string]any{
		"completion of a job, 202: static 33.67, dynamic 11.22 ms": &result.Result{Blocks: []result.Block{
			{Name: "completion of a job", Unit: "ms", Columns: []string{"static", "dynamic"}, Rows: []result.Line{{Name: "202", Cells: []results.Statistic{at(33.67), at(11.22)}}, {Name: "404"}}},
			{Name: "another"}}},
		"many, x: a 1, b 1, c 1, d 1, …": &result.Result{Blocks: []result.Block{
			{Name: "many", Columns: five, Rows: []result.Line{{Name: "x", Cells: []results.Statistic{at(1), at(1), at(1), at(1), at(1)}}}}}},
		"reward at iterations 20: olaf 3; fifo −2": &result.Result{Panels: []result.Panel{{YLabel: "reward", XLabel: "iterations", Series: []result.Series{
			{Name: "olaf", X: []float64{10, 20}, Y: []results.Statistic{at(1), at(3)}}, {Name: result.PaperSeries, X: []float64{5}, Y: []results.Statistic{at(9)}},
			{Name: "fifo", X: []float64{10, 20}, Y: []results.Statistic{at(1), at(-2)}}, {Name: "none"}}}}},
	} {
		raw, err := json.Marshal(found)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := result.Read(raw); err != nil || r.Brief() != want {
			t.Errorf("%v, %q, want %q", err, r.Brief(), want)
		}
	}
	for _, other := range []string{`{"panels":[{"series":[]}],"blocks":[{"rows":[]}]}`, `{"experiment":"train"}`, `{"panels":[{"series":[{"name":"a","y":[{"mean":1}]}]}]}`, "{}"} {
		if r, err := result.Read([]byte(other)); err != nil || r.Brief() != "" {
			t.Errorf("%s: %v, %q", other, err, r.Brief())
		}
	}
}
