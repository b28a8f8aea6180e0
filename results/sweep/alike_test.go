package sweep

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/text"
)

// TestAgesOfDifferentUpdatesAreNotCompared checks a sweep over a switch that adds four gradients per update and a
// server that applies each gradient: losses are compared, but ages are not. Sweeps of earlier versions are shown as
// they were.
func TestAgesOfDifferentUpdatesAreNotCompared(t *testing.T) {
	for schema, want := range map[string]string{
		Schema:   "lost_pct",
		SchemaV2: "aom_cluster_ns lost_pct",
		SchemaV1: "aom_cluster_ns iteration_ns lost_pct",
	} {
		d := &Document{Schema: schema, Subject: "system",
			Axes: []Axis{{Name: "system", Values: []string{"iswitch", "ps"}}, {Name: "seed", Values: []string{"1"}}}}
		for _, name := range []string{"aom_cluster_ns", "iteration_ns", "lost_pct"} {
			d.Metrics = append(d.Metrics, Shown{Name: name, Title: name})
		}
		known := func(name string) *metric.Metric {
			return &metric.Metric{Name: name, Title: name, Age: name == "aom_cluster_ns", PerUpdate: name == "iteration_ns"}
		}
		if err := d.Fill([]Outcome{asyncCell(t, 0, 4), asyncCell(t, 1, 1)}, known); err != nil {
			t.Fatal(err)
		}
		var compared []string
		for i := range d.Comparisons {
			compared = append(compared, d.Comparisons[i].Metric)
		}
		if got := strings.Join(compared, " "); got != want {
			t.Errorf("%s compares %s, want %s", schema, got, want)
		}
		if said := strings.Contains(strings.Join(d.headlines(), " "), text.AgesNotCompared); said != (schema == Schema) {
			t.Errorf("%s gives the reason why ages are not compared: %t", schema, said)
		}
	}
}

// TestFrontHasOnlyLikeAges checks that no front ranks ages of different updates, also if some systems are compared.
func TestFrontHasOnlyLikeAges(t *testing.T) {
	for schema, want := range map[string]int{Schema: 0, SchemaV2: 1} {
		d := &Document{Schema: schema, Subject: "system", Metrics: []Shown{{Name: "aom_cluster_ns"}, {Name: "lost_pct"}},
			Axes: []Axis{{Name: "system", Values: []string{"iswitch", "ps", "atp"}}, {Name: "seed", Values: []string{"1"}}}}
		known := func(name string) *metric.Metric { return &metric.Metric{Name: name, Age: name == "aom_cluster_ns"} }
		if err := d.Fill([]Outcome{asyncCell(t, 0, 4), asyncCell(t, 1, 1), asyncCell(t, 2, 4)}, known); err != nil {
			t.Fatal(err)
		}
		if len(d.Comparisons) == 0 || len(d.Fronts) != want {
			t.Errorf("%s has %d comparisons and %d fronts of ages and losses, want some and %d", schema, len(d.Comparisons),
				len(d.Fronts), want)
		}
	}
}

// asyncCell returns the results of one system whose updates contain the given number of gradients.
func asyncCell(t *testing.T, system int, gradients results.Float) Outcome {
	lot := Lot{Metrics: []string{"aom_cluster_ns", "iteration_ns", "gradient_ns", "lost_pct"}}
	for seed, wobble := range []results.Float{1, 1.1, 0.9} {
		lot.Runs = append(lot.Runs, Run{Seed: uint64(seed), Values: []results.Float{wobble * 1000, 400 * gradients, 400, wobble}})
	}
	raw, err := json.Marshal(lot)
	if err != nil {
		t.Fatal(err)
	}
	return Outcome{State: Done, Parameters: []string{[]string{"iswitch", "ps", "atp"}[system], "1"}, At: []int{system, 0}, Lots: []json.RawMessage{raw}}
}
