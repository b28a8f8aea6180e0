// Package loss draws charts of the fate of updates: merged, delivered, or lost for various reasons.
package loss

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/bench/slowmotion"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/tui/chart"
	"github.com/olafctl/olaf/tui/num"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// Fate is an outcome and the number of updates with this outcome.
type Fate struct {
	Mark, Name string
	Count      int64
	Style      screen.Style
	Part       bool // this loss is part of the previous fate
}

// Widths of the text next to a bar.
const (
	nameWidth   = 12
	leastBar    = 3 // minimum for a part; the part's name is cut first
	numberWidth = 15
	shareWidth  = 8
)

// DrawBars draws a bar for each fate. The bars show shares of sent. Fates that do not fit are omitted.
func DrawBars(r screen.Region, sent int64, fates []Fate) {
	parts := nameWidth // width of the parts' names
	for _, l := range fates {
		if l.Part {
			parts = max(parts, min(screen.TextWidth(l.Name)+3, r.W-numberWidth-leastBar))
		}
	}
	for y, l := range fates[:min(len(fates), r.H)] {
		row := r.Sub(0, y, r.W, 1)
		name := nameWidth
		if l.Part {
			name = parts
		}
		x := row.Text(0, 0, l.Style, l.Mark+" ")
		row.Sub(x, 0, name-x, 1).Text(0, 0, theme.Text, l.Name)
		share := 0.0
		if sent > 0 {
			share = float64(l.Count) / float64(sent)
		}
		if bar := row.Sub(name, 0, row.W-name-numberWidth, 1); bar.W > 2 {
			chart.DrawBar(bar, share, l.Style)
		}
		row.TextRight(row.W-shareWidth, 0, theme.Text, " "+num.FormatCount(l.Count))
		row.TextRight(row.W, 0, l.Style, " "+num.FormatPercent(100*share))
	}
}

// Draw draws the fates of the updates sent to a queue. Their numbers add up to the number sent. The reasons for losses
// are shown below.
func Draw(r screen.Region, q *slowmotion.QueueSnapshot) {
	c := q.Counters
	fates := []Fate{
		{Mark: "✗", Name: "lost", Count: c.SumLost() - c.SumInside(), Style: theme.Bad},
		{Mark: "⊕", Name: "merged", Count: c.SumMerged(), Style: theme.Good},
		{Mark: "◀", Name: "delivered", Count: c.SumOutput(), Style: theme.Strong},
		{Mark: "▮", Name: "in queue", Count: c.SumInside(), Style: theme.Dim},
	}
	for part, n := range c.Parts {
		if n > 0 {
			fates = append(fates, Fate{Mark: " ", Name: counterTitle(part), Count: n, Style: theme.Bad, Part: true})
		}
	}
	DrawBars(r, c.SumOffered(), fates)
}

// counterTitle returns the title of a counter for use within a line, or the counter's name if it has no title.
func counterTitle(c *olaf.Counter) string {
	if c.Title == "" {
		return c.Name
	}
	return strings.ToLower(c.Title[:1]) + c.Title[1:]
}

// DropsOverTime divides a time span into n equal parts and returns the number of updates dropped in each part.
func DropsOverTime(q *slowmotion.QueueSnapshot, from, to olaf.Time, n int) []float64 {
	out := make([]float64, max(n, 0))
	for _, p := range q.Series {
		if p.At > from && p.At <= to && n > 0 {
			part := int(float64(p.At-from) / float64(to-from) * float64(n))
			out[min(part, n-1)] += float64(p.Dropped)
		}
	}
	return out
}

// DrawCounters draws the counters of a queue in columns, with their register names.
func DrawCounters(r screen.Region, q *slowmotion.QueueSnapshot) {
	const width = 28
	for i, c := range byRegister(q.Counters) {
		x, y := i/max(r.H, 1)*(width+2), i%max(r.H, 1)
		if x+width > r.W {
			return
		}
		cell := r.Sub(x, y, width, 1)
		style := theme.Text
		if c.value == 0 {
			style = theme.Dim
		}
		cell.Text(0, 0, style, c.name)
		cell.TextRight(cell.W, 0, style, num.FormatCount(c.value))
	}
}

type counter struct {
	name    string
	address uint32
	value   int64
}

// byRegister returns the counters in display order: first the counts of offered updates, then the counters in the
// queue's register block by address, and finally counters without a register.
func byRegister(counts olaf.Counts) (list []counter) {
	for i, name := range counts.Names() {
		row := &counts.Ledger().Counters[i]
		c := counter{name: name, address: math.MaxUint32, value: counts.At(i)}
		ref, err := regmap.FindRegister(row.Register)
		switch {
		case slices.Contains(counts.Ledger().Offered, name):
			c.address = 0
		case err == nil:
			c.name, c.address = ref.Register.Name, ref.Address()
		case row.Sparse && c.value == 0:
			continue
		}
		list = append(list, c)
	}
	slices.SortStableFunc(list, func(a, b counter) int { return cmp.Compare(a.address, b.address) })
	return list
}
