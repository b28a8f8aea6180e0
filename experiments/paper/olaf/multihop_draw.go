package olaf

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/sheets"
	"github.com/olafctl/olaf/results/table"
)

// MultiHopSheets lays out a kept Table 2 or 3.
func MultiHopSheets(document []byte) ([]table.Sheet, error) {
	r := new(MultiHopReport)
	if err := json.Unmarshal(document, r); err != nil {
		return nil, fmt.Errorf("lay out a table: %w", err)
	}
	for i := range r.Rows {
		if n := len(r.Rows[i].Groups); n != 2 {
			return nil, fmt.Errorf("lay out a table: %s has %d groups of clusters, not 2", r.Rows[i].Name, n)
		}
	}
	return r.Sheets(), nil
}

// UnmarshalJSON reads a row and its statistics, here and below.
func (r *MultiHopRow) UnmarshalJSON(raw []byte) error {
	type plain MultiHopRow
	return errors.Join(json.Unmarshal(raw, (*plain)(r)), json.Unmarshal(raw, &r.Stats))
}

// UnmarshalJSON reads a group and its statistics.
func (r *GroupRow) UnmarshalJSON(raw []byte) error {
	type plain GroupRow
	return errors.Join(json.Unmarshal(raw, (*plain)(r)), json.Unmarshal(raw, &r.Stats))
}

// multiHopPanels are what a figure of a multi-hop table shows, a panel each, with the columns of the paper's table that its
// series were printed in. What can be read in several ways has all of them.
var multiHopPanels = []struct {
	title, unit string
	series      []multiHopSeries
}{
	{"Dropped packets", "dropped [% of updates sent]", []multiHopSeries{{"dropped", "loss_pct", func(r *MultiHopRow) results.Statistic { return *r.Stats.Of("loss_packets_pct") }, reading{}}}},
	{"Age, both per cluster", "mean AoM [ms]", groupSeries(perCluster)},
	{"Age, both per worker", "mean AoM [ms]", groupSeries(perWorker)},
	{"Fairness, both per cluster", "Jain's index", []multiHopSeries{{"Jain", "jain", func(r *MultiHopRow) results.Statistic { return *r.Stats.Of("jain") }, reading{}}}},
	{"Fairness, both per worker", "Jain's index", []multiHopSeries{{"Jain", "jain", func(r *MultiHopRow) results.Statistic { return *r.Stats.Of("jain_worker_means") }, reading{}}}},
}

// multiHopSeries is a number of every variant; the paper printed it in a column, or did not. What it printed stands beside
// those variants alone whose printed ages fit the reading.
type multiHopSeries struct {
	name, printed string
	of            func(*MultiHopRow) results.Statistic
	fits          reading // of no name where there is but one reading
}

// groupSeries are the ages of both groups under a reading.
func groupSeries(by reading) (list []multiHopSeries) {
	for g := range 2 {
		name := fmt.Sprintf("s%d", g+1)
		list = append(list, multiHopSeries{strings.ToUpper(name), "aom " + name,
			func(r *MultiHopRow) results.Statistic { return *r.Groups[g].Stats.Of(by.age.name) }, by})
	}
	return list
}

// beside says whether what the paper printed for a variant stands beside the series.
func (s *multiHopSeries) beside(r *MultiHopRow) bool {
	published, _ := r.readings()
	return s.fits.name == "" || s.fits.name == published.name
}

// Sheets is the table with its figure.
func (r *MultiHopReport) Sheets() []table.Sheet {
	s := table.Sheet{Name: r.Artefact + " readings", Title: "Ours with the 95 % interval over seeds, beside what the paper printed", Columns: []table.Column{{Header: "queue"}}}
	for i := range r.Rows {
		s.Rows = append(s.Rows, []table.Cell{table.S(r.Rows[i].Name)})
	}
	for _, p := range multiHopPanels {
		chart := table.Chart{Kind: table.Bars, Title: p.title, YTitle: p.unit}
		for _, one := range p.series {
			drawn := table.Series{Name: one.name, Column: len(s.Columns), ErrorColumn: len(s.Columns) + 1}
			header := p.title + ", " + one.name
			s.Columns = append(s.Columns, table.Column{Header: header, Format: table.General}, table.Column{Header: header + " ±", Format: table.General})
			for i := range r.Rows {
				st := one.of(&r.Rows[i])
				s.Rows[i] = append(s.Rows[i], sheets.Mean(&st), sheets.Half(&st))
			}
			if one.printed != "" {
				drawn.PaperColumn = len(s.Columns)
				s.Columns = append(s.Columns, table.Column{Header: header + ", paper", Format: table.General})
				for i := range r.Rows {
					printed := table.Missing("the printed age fits another reading")
					if one.beside(&r.Rows[i]) {
						printed = r.printed(i, one.printed)
					}
					s.Rows[i] = append(s.Rows[i], printed)
				}
			}
			chart.Series = append(chart.Series, drawn)
		}
		s.Charts = append(s.Charts, chart)
	}
	return []table.Sheet{s}
}

// printed is what the paper's table has in a column for our i-th row; it may stand beside several of ours.
func (r *MultiHopReport) printed(i int, column string) table.Cell {
	name := r.Rows[i].Name
	for k := range r.PaperRows {
		p := &r.PaperRows[k]
		if p.Column == column && p.Published.Known() && (name == p.Row || strings.HasPrefix(name, p.Row+" (")) {
			return table.N(float64(p.Published))
		}
	}
	return table.Missing("not printed")
}
