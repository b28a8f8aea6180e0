package simulate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/result"
	"github.com/olafctl/olaf/results/table"
	"github.com/olafctl/olaf/results/text"
)

// Sheets lays out a kept sweep of phases. Runs that are kept individually need no sheets.
func Sheets(document []byte) ([]table.Sheet, error) {
	var kept struct {
		Sweep *sweepDocument `json:"sweep"`
	}
	if err := json.Unmarshal(document, &kept); err != nil {
		return nil, fmt.Errorf("lay out a sweep: %w", err)
	}
	if kept.Sweep == nil {
		return nil, nil
	}
	return kept.Sweep.sheets(), nil
}

// ReadBrief reads the document of a kept sweep of phases, with only its summary.
func ReadBrief(document []byte) (*result.Result, error) {
	return &result.Result{Found: []string{briefOf(document)}}, nil
}

// briefOf summarises a kept sweep of phases in a few words; empty for other simulations.
func briefOf(document []byte) string {
	var kept struct {
		Sweep *sweepDocument `json:"sweep"`
	}
	if json.Unmarshal(document, &kept) != nil || kept.Sweep == nil || len(kept.Sweep.Points) == 0 {
		return ""
	}
	var ages []*results.Statistic
	for i := range kept.Sweep.Points {
		if age := kept.Sweep.Points[i].Stats.Of("aom_cluster_ns"); age.Known() {
			ages = append(ages, age)
		}
	}
	brief := olaf.Plural(len(kept.Sweep.Points), kept.Sweep.Parameter)
	if len(ages) > 0 {
		byMean := func(a, b *results.Statistic) int { return cmp.Compare(a.Mean, b.Mean) }
		brief += ", AoM " + text.Age(slices.MinFunc(ages, byMean)) + " to " + text.Age(slices.MaxFunc(ages, byMean))
	}
	return brief
}

// sheets returns the curves over the parameter and the map of phases.
func (s *sweepDocument) sheets() []table.Sheet { return append(s.figure().Sheets(), s.phaseMap()) }

// phaseMap returns the share of updates that arrive: a row for each value and a column for each part of a worker's
// period.
func (s *sweepDocument) phaseMap() table.Sheet {
	sheet := table.Sheet{Name: "Sweep phases", Title: "Share of updates that arrive, by the worker's phase in its period",
		Columns: []table.Column{{Header: s.Parameter, Unit: "ms", Format: table.General}}}
	chart := table.Chart{Kind: table.Map, Title: "Updates that arrive, by the worker's phase", XTitle: "phase of the worker [% of its period]",
		YTitle: s.Parameter + " [ms]", ZTitle: "arrived [% of sent]", YMax: 100}
	for bin := range netsim.PhaseBins {
		from := strconv.Itoa(bin * 100 / netsim.PhaseBins)
		chart.Series = append(chart.Series, table.Series{Name: from, Column: len(sheet.Columns)})
		sheet.Columns = append(sheet.Columns, table.Column{Header: from + " %", Format: table.Fixed1})
	}
	for i := range s.Points {
		row := []table.Cell{table.N(s.Points[i].ValueNS / 1e6)}
		for _, share := range s.Points[i].Delivered {
			row = append(row, phaseCell(share))
		}
		sheet.Rows = append(sheet.Rows, row)
	}
	sheet.Charts = []table.Chart{chart}
	return sheet
}

func phaseCell(share results.Float) table.Cell {
	if !share.Known() {
		return table.Missing("no worker has the phase")
	}
	return table.N(100 * float64(share))
}

// sweepPanels lists the panels of a sweep's figure with the names of their metrics.
var sweepPanels = []struct {
	name, unit string
	per        results.Float // scale from the document's unit
	series     []sweepSeries
}{
	{"Dropped packets", "dropped [% of updates sent]", 1, []sweepSeries{{"dropped", "loss_packets_pct"}}},
	{"Age of model", "mean AoM [ms]", 1e6, []sweepSeries{{"per cluster", "aom_cluster_ns"}, {"per worker", "aom_worker_ns"}, {"oldest worker", "aom_worker_max_ns"}}},
	{"Fairness over workers", "Jain's index", 1, []sweepSeries{{"Jain", "jain_workers"}}},
	{"Workers without an age", "workers with fewer than two deliveries", 1, []sweepSeries{{"never", "never_delivered"}}},
}

type sweepSeries struct{ name, statistic string }

// figure returns the sweep as curves over its parameter.
func (s *sweepDocument) figure() *result.Result {
	f := &result.Result{Experiment: cli.SimulateName, Artefact: "Sweep"}
	for _, panel := range sweepPanels {
		p := result.Panel{Name: panel.name, Group: s.Parameter, XLabel: s.Parameter + " [ms]", YLabel: panel.unit}
		for _, one := range panel.series {
			curve := result.Series{Name: one.name}
			for i := range s.Points {
				st := *s.Points[i].Stats.Of(one.statistic)
				for _, part := range []*results.Float{&st.Mean, &st.SD, &st.CI95, &st.Min, &st.Max} {
					*part /= panel.per
				}
				curve.X, curve.Y = append(curve.X, s.Points[i].ValueNS/1e6), append(curve.Y, st)
			}
			p.Series = append(p.Series, curve)
		}
		f.Panels = append(f.Panels, p)
	}
	return f
}
