package sheets

import (
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/table"
)

// twinSheet returns a sheet that compares measured ages with those of the twin, for planned and for logged arrivals.
func twinSheet(b *results.Bench) table.Sheet {
	s := table.Sheet{Name: "Beside the twin", Title: "Ages as planned, of the twin on the arrivals that were logged, and as measured",
		Columns: []table.Column{{Header: "configuration"}, {Header: "age"}, {Header: "unit"}, {Header: "plan", Format: table.Fixed1},
			{Header: "twin", Format: table.Fixed1}, {Header: "measured", Format: table.Fixed1},
			{Header: "measured over twin", Unit: "%", Format: table.Fixed1}},
		Notes: []string{"plan and twin differ by the senders, twin and measured by the output"}}
	for i := range b.Rows {
		r := &b.Rows[i]
		why := "not measured"
		if r.Withheld != nil {
			why = r.Withheld.Reason
		}
		for k := range r.Stats {
			if st := &r.Stats[k]; st.TwinComparison != nil {
				c := st.TwinComparison
				s.Rows = append(s.Rows, []table.Cell{table.S(configuration(r.Queue, r.OutRateBPS)), table.S(st.Name), table.S(st.Unit),
					number(c.Plan, "not planned"), number(c.Twin, "no arrivals were logged"), number(c.Measured, why), number(c.OutputPct(), why)})
			}
		}
	}
	return s
}
