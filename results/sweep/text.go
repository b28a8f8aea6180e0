package sweep

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/text"
)

// Document returns the value whose JSON encoding is the document.
func (d *Document) Document() any { return d }

// Paper returns nil, because no paper published this sweep.
func (d *Document) Paper() []results.PaperRow { return nil }

// Table returns a row for each cell, with the mean and the interval of every metric that is shown.
func (d *Document) Table() (header []string, rows [][]string) {
	for i := range d.Axes {
		header = append(header, d.Axes[i].Name)
	}
	header = append(header, "state", "runs", "invalid_runs")
	for i := range d.Metrics {
		header = append(header, d.Metrics[i].Name, d.Metrics[i].Name+"_ci95")
	}
	for i := range d.Cells {
		c := &d.Cells[i]
		var row []string
		for k := range d.Axes {
			row = append(row, string(c.Parameters[d.Axes[k].Name]))
		}
		row = append(row, string(c.State), strconv.Itoa(c.Runs), strconv.Itoa(c.InvalidRuns))
		for k := range d.Metrics {
			s := c.Statistics.Of(d.Metrics[k].Name)
			row = append(row, text.Exact(s.Mean), text.Exact(s.CI95))
		}
		rows = append(rows, row)
	}
	return header, rows
}

// WriteText prints the findings and then every metric as a function of the axes.
func (d *Document) WriteText(w io.Writer, v text.View) error {
	p := text.NewPage(w, v)
	for _, line := range d.headlines() {
		p.Say("", "%s", line)
	}
	p.Printf("\n")
	for i := range d.Metrics {
		for _, of := range d.Maps(&d.Metrics[i]) {
			of.print(p)
		}
	}
	d.lines(p)
	for _, s := range d.Statements {
		p.Say("- ", "%s", s)
	}
	for _, s := range d.Differences {
		p.Say("DIFFERS: ", "%s", s)
	}
	for _, s := range d.checks() {
		p.Say("checked: ", "%s", s)
	}
	p.Say("", "%s", d.validity())
	p.Printf("digest %s\n", d.Digest)
	return p.Err()
}

// headlines returns lines about the effect on the first metric and about the sweep.
func (d *Document) headlines() (lines []string) {
	m := &d.Metrics[0]
	if of, first, count := d.axis(d.Subject), "", map[string]int(nil); of >= 0 {
		if first, count = d.tally(m); first != "" {
			lines = append(lines, compareSentence(strings.ToUpper(d.Axes[of].Values[0]), m.Title, first, count))
		} else if d.hasUnlikeAges(m) {
			lines = append(lines, text.AgesNotCompared)
		}
	}
	least, most := d.extremes(m.Name)
	if least != nil {
		by, unit := text.ScaleOf(m.Unit, least.Statistics.Of(m.Name), most.Statistics.Of(m.Name))
		lines = append(lines, fmt.Sprintf("%s: from %s (%s) to %s %s (%s).", m.Title,
			text.FormatRounded(least.Statistics.Of(m.Name), by), d.cellName(least),
			text.FormatRounded(most.Statistics.Of(m.Name), by), unit, d.cellName(most)))
	}
	return append(lines, fmt.Sprintf("%s of %s: %s; %s.", olaf.Plural(len(d.Cells), "cell"), d.Command, d.axes(), d.Rule))
}

// hasUnlikeAges reports whether a metric of ages was measured for several systems but not compared between any of them,
// because their updates are not alike.
func (d *Document) hasUnlikeAges(m *Shown) bool {
	of := d.axis(d.Subject)
	if of < 0 || slices.ContainsFunc(d.Comparisons, func(c Comparison) bool { return c.Metric == m.Name }) {
		return false
	}
	for i := range d.Cells {
		s := d.Cells[i].Statistics
		at := slices.IndexFunc(s, func(s results.Stat) bool { return s.Name == m.Name && s.Known() })
		if at >= 0 && s[at].Age && d.Cells[i].at[of] > 0 {
			return true
		}
	}
	return false
}

// tally counts, by sign, the comparisons of a metric with the first other value of the subject. first is this value, or
// empty if there are no comparisons.
func (d *Document) tally(m *Shown) (first string, count map[string]int) {
	count = map[string]int{}
	for i := range d.Comparisons {
		if c := &d.Comparisons[i]; c.Metric == m.Name && (first == "" || c.Versus == first) {
			first = c.Versus
			count[c.Sign]++
		}
	}
	return first, count
}

// compareSentence returns a sentence about the comparisons of one metric. count contains the number of comparisons with
// each sign.
func compareSentence(subject, title, other string, count map[string]int) string {
	places := count[lower] + count[higher] + count[undecided]
	if places == 1 {
		for _, sign := range []string{lower, higher} {
			if count[sign] == 1 {
				return fmt.Sprintf("%s's %s is %s than %s's.", subject, title, sign, other)
			}
		}
		return fmt.Sprintf("%s's %s can't be told from %s's.", subject, title, other)
	}
	return fmt.Sprintf("%s's %s is %s than %s's in %d of %d places and %s in %d; %d can't be told apart.",
		subject, title, lower, other, count[lower], places, higher, count[higher], count[undecided])
}

// Summary returns the result of the sweep in a few words, for lists.
func (d *Document) Summary() string {
	m := &d.Metrics[0]
	if of := d.axis(d.Subject); of >= 0 {
		if first, count := d.tally(m); first != "" {
			return fmt.Sprintf("%s: %s below %s in %d of %d", m.Name, d.Axes[of].Values[0], first, count[lower],
				count[lower]+count[higher]+count[undecided])
		}
	}
	least, most := d.extremes(m.Name)
	if least == nil {
		return ""
	}
	low, high := least.Statistics.Of(m.Name), most.Statistics.Of(m.Name)
	by, unit := text.ScaleOf(m.Unit, low, high)
	return strings.TrimSpace(fmt.Sprintf("%s: %s to %s %s", m.Name, text.Single(float64(low.Mean)*by),
		text.Single(float64(high.Mean)*by), unit))
}

// varies reports whether an axis has more than one value.
func (d *Document) varies(axis int) bool { return len(d.Axes[axis].Values) > 1 }

// axes returns a text with the names of the axes and their numbers of values.
func (d *Document) axes() string {
	var parts []string
	for i := range d.Axes {
		if d.varies(i) {
			parts = append(parts, fmt.Sprintf("%d × %s", len(d.Axes[i].Values), d.Axes[i].Name))
		} else {
			parts = append(parts, d.Axes[i].Name+" "+d.Axes[i].Values[0])
		}
	}
	return strings.Join(parts, ", ")
}

// cellName returns the name of a cell, which consists of its values on the axes.
func (d *Document) cellName(c *Cell) string {
	var parts []string
	for i := range d.Axes {
		if d.varies(i) {
			parts = append(parts, d.Axes[i].Name+" "+string(c.Parameters[d.Axes[i].Name]))
		}
	}
	return strings.Join(parts, ", ")
}

// extremes returns the cells with the smallest and the largest mean of a metric, or nil if there are none.
func (d *Document) extremes(name string) (least, most *Cell) {
	for i := range d.Cells {
		c := &d.Cells[i]
		s := c.Statistics.Of(name)
		if !s.Known() {
			continue
		}
		if least == nil || s.Mean < least.Statistics.Of(name).Mean {
			least = c
		}
		if most == nil || s.Mean > most.Statistics.Of(name).Mean {
			most = c
		}
	}
	return least, most
}

// validity returns a line about which cells are valid.
func (d *Document) validity() string {
	count := map[State]int{}
	invalid, runs := 0, 0
	for i := range d.Cells {
		count[d.Cells[i].State]++
		invalid, runs = invalid+d.Cells[i].InvalidRuns, runs+d.Cells[i].Runs
	}
	switch {
	case count[Failed] > 0 || invalid > 0:
		return fmt.Sprintf("INVALID: %d of %d cells failed, %s left out: %v", count[Failed], len(d.Cells), olaf.Plural(invalid, "run"), d.Err())
	case d.Partial:
		return fmt.Sprintf("PARTIAL: %d of %d cells are done", count[Done], len(d.Cells))
	}
	return fmt.Sprintf("valid: %d of %d cells, %s", count[Done], len(d.Cells), olaf.Plural(runs, "run"))
}

// lines prints the analysis of the sweep.
func (d *Document) lines(p *text.Page) {
	lines := describeCrossings(d.Crossings)
	for i := range d.Sensitivity {
		if len(d.Sensitivity[i].Shares) > 1 { // a single axis explains everything
			lines = append(lines, d.Sensitivity[i].String())
		}
	}
	for i := range d.Fronts {
		lines = append(lines, d.bestOf(&d.Fronts[i]))
	}
	if seen := d.power(); seen != "" {
		lines = append(lines, seen)
	}
	for _, line := range lines {
		p.Say("", "%s", line)
	}
	if len(lines) > 0 {
		p.Printf("\n")
	}
}

// describeCrossings returns sentences about crossings. Each sentence covers all places at which the comparison of a
// metric changes its sign in the same direction along the same axis.
func describeCrossings(all []Crossing) (lines []string) {
	type turn struct{ metric, subject, versus, axis, from, to string }
	type step struct{ after, before Value }
	steps, places := map[turn][]step{}, map[turn]map[step][]string{}
	var order []turn
	for i := range all {
		c := &all[i]
		t, s := turn{c.Metric, c.Subject, c.Versus, c.Axis, c.From, c.To}, step{c.After, c.Before}
		if places[t] == nil {
			order, places[t] = append(order, t), map[step][]string{}
		}
		if places[t][s] == nil {
			steps[t] = append(steps[t], s)
		}
		places[t][s] = append(places[t][s], c.place())
	}
	for _, t := range order {
		var parts []string
		for i, s := range steps[t] {
			part := fmt.Sprintf("up to %s and from %s on", s.after, s.before)
			if i == 0 {
				part = fmt.Sprintf("up to %s %s, and %s from %s on", t.axis, s.after, t.to, s.before)
			}
			if in := strings.Join(places[t][s], "; "); in != "" {
				part += " (" + in + ")"
			}
			parts = append(parts, part)
		}
		lines = append(lines, fmt.Sprintf("%s: %s's is %s than %s's %s", t.metric, t.subject, t.from, t.versus, strings.Join(parts, ", ")))
	}
	return lines
}

// place returns the values on the other axes as text, or "" if there are no other axes.
func (c *Crossing) place() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(c.Parameters)) {
		parts = append(parts, fmt.Sprintf("%s %s", name, c.Parameters[name]))
	}
	return strings.Join(parts, ", ")
}

// String returns a sentence about which axes influence the metric.
func (s *Sensitivity) String() string {
	var parts []string
	for _, share := range s.Shares {
		parts = append(parts, fmt.Sprintf("%s %.0f %%", share.Axis, 100*float64(share.Share)))
	}
	line := fmt.Sprintf("%s: of the variance over the cells, %s explain alone", s.Metric, strings.Join(parts, ", "))
	if rest := 100 * float64(s.Rest); rest >= 0.5 {
		line += fmt.Sprintf(", %.0f %% only together", rest)
	}
	return line
}

// mostNamed is the maximum number of cells on a front that are printed.
const mostNamed = 6

// bestOf returns a sentence that names the cells on a front.
func (d *Document) bestOf(f *Front) string {
	var cells []string
	for _, i := range f.Cells[:min(len(f.Cells), mostNamed)] {
		cells = append(cells, d.cellName(&d.Cells[i]))
	}
	more := ""
	if n := len(f.Cells) - len(cells); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("no other cell beats in both %s (%s is better) and %s (%s): %s%s", f.Metrics[0], f.Best[0],
		f.Metrics[1], f.Best[1], strings.Join(cells, "; "), more)
}

// power returns a sentence about how large a difference must be to be detected with this number of runs.
func (d *Document) power() string {
	widest, pairs := 0.0, 0
	for i := range d.Comparisons {
		if c := &d.Comparisons[i]; c.Metric == d.Metrics[0].Name && c.DetectablePct.Known() {
			widest, pairs = max(widest, float64(c.DetectablePct)), c.Difference.N
		}
	}
	if pairs == 0 {
		return ""
	}
	return fmt.Sprintf("power: in every place a difference of %s in %s would have been seen with 80 %% power at "+
		"the 5 %% level, before the correction for many places", text.Decimal(widest, 1)+" %", d.Metrics[0].Name)
}
