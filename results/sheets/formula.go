package sheets

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/table"
)

// mostRuns is the maximum number of runs for which the statistics in a workbook are formulas.
const mostRuns = 10_000

// addFormulas adds formulas to a workbook that compute the statistics from the sheet of runs, and the summary from the
// statistics. Cells keep their numbers. A cell gets no formula if the formula would have a different result.
func addFormulas(b *table.Book, r *Result) {
	statistics, runs := sheetNamed(b, "Statistics"), sheetNamed(b, "Runs")
	if statistics == nil || runs == nil || len(r.Runs) > mostRuns {
		return
	}
	metrics := results.MetricsOf(r.Runs)
	first := len(runs.Columns) - len(metrics)
	at := 0
	for i := range r.Bench.Rows {
		row := &r.Bench.Rows[i]
		for k := range row.Stats {
			cells := statistics.Rows[at]
			at++
			m := slices.IndexFunc(metrics, func(m *metric.Metric) bool { return m.Name == row.Stats[k].Name })
			if m < 0 {
				continue
			}
			ref, values := cellsOf(r.Runs, row, runs, first+m)
			if ref != "" && computes(values, &row.Stats[k].Statistic) {
				formulate(cells[len(cells)-statisticWidth:], ref)
			}
		}
	}
	if summary := sheetNamed(b, "Summary"); summary != nil {
		referTo(summary, statistics, sheetNamed(b, "Comparisons"))
	}
}

func sheetNamed(b *table.Book, name string) *table.Sheet {
	at := slices.IndexFunc(b.Sheets, func(s table.Sheet) bool { return s.Name == name })
	if at < 0 {
		return nil
	}
	return &b.Sheets[at]
}

// cellsOf returns a reference to the cells in a column of the runs' sheet from which a row's statistics are computed,
// and the numbers in these cells.
func cellsOf(runs []results.Run, row *results.Row, sheet *table.Sheet, column int) (ref string, values []float64) {
	letter := letters(column)
	var ranges []string
	from := -1
	for i := range len(runs) + 1 {
		of := i < len(runs) && runs[i].Queue == row.Queue && runs[i].OutRateBPS == row.OutRateBPS && runs[i].Valid()
		switch {
		case of && from < 0:
			from = i
		case !of && from >= 0:
			ranges = append(ranges, fmt.Sprintf("Runs!%s%d:%s%d", letter, from+2, letter, i+1))
			from = -1
		}
		if of && sheet.Rows[i][column].Kind == table.Number {
			values = append(values, sheet.Rows[i][column].Number)
		}
	}
	const most = 30 // maximum number of arguments of a spreadsheet function
	if len(ranges) > most {
		return "", nil
	}
	return strings.Join(ranges, ","), values
}

// computes reports whether a statistic follows from the given values.
func computes(values []float64, st *results.Statistic) bool {
	if len(values) != st.N || st.N == 0 {
		return false
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	mean := sum / float64(len(values))
	return math.Abs(mean-float64(st.Mean)) <= 1e-9*math.Abs(mean) && slices.Min(values) == float64(st.Min) &&
		slices.Max(values) == float64(st.Max)
}

// statisticWidth is the number of cells that a statistic occupies; see statisticColumns.
const statisticWidth = 6

// formulate adds formulas to the cells of a statistic. They refer to the cells in ref.
func formulate(cells []table.Cell, ref string) {
	for i, formula := range [statisticWidth]string{"AVERAGE(%s)", "STDEV(%s)",
		"TINV(0.05,COUNT(%[1]s)-1)*STDEV(%[1]s)/SQRT(COUNT(%[1]s))", "MIN(%s)", "MAX(%s)", "COUNT(%s)"} {
		if cells[i].Kind == table.Number {
			cells[i].Formula = fmt.Sprintf(formula, ref)
		}
	}
}

// referTo replaces the numbers in a summary by references to the sheets that contain the same numbers, and its
// differences by formulas.
func referTo(summary *table.Sheet, sources ...*table.Sheet) {
	column := func(header string) int {
		return slices.IndexFunc(summary.Columns, func(c table.Column) bool { return c.Header == header })
	}
	ours, half, runs, printed, difference := column("ours"), column("95 % ±"), column("runs"), column("paper"), column("difference")
	for i, row := range summary.Rows {
		for _, source := range sources {
			if source == nil || row[half].Kind != table.Number {
				continue
			}
			mean := len(source.Columns) - statisticWidth
			at := slices.IndexFunc(source.Rows, func(of []table.Cell) bool {
				return of[mean].Number == row[ours].Number && of[mean+2].Number == row[half].Number && of[mean+5].Number == row[runs].Number
			})
			if at < 0 {
				continue
			}
			for cell, of := range map[int]int{ours: mean, half: mean + 2, runs: mean + 5} {
				row[cell].Formula = fmt.Sprintf("%s!%s%d", source.Name, letters(of), at+2)
			}
			break
		}
		relative := float64(100 * (row[ours].Number/row[printed].Number - 1))
		if d := row[difference]; d.Kind == table.Number && math.Abs(relative-d.Number) <= 1e-9*math.Abs(d.Number) {
			row[difference].Formula = fmt.Sprintf("100*(%s%d/%s%d-1)", letters(ours), i+2, letters(printed), i+2)
		}
	}
}

// letters returns the name of a column in a spreadsheet: A, B, … Z, AA, ….
func letters(column int) string {
	name := ""
	for column++; column > 0; column = (column - 1) / 26 {
		name = string(rune('A'+(column-1)%26)) + name
	}
	return name
}
