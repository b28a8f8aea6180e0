package sweep

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/table"
	"github.com/olafctl/olaf/results/text"
)

// Map shows a metric as a function of two axes. It contains means or the changes in a comparison.
type Map struct {
	Metric       *Shown
	Title        string   // the metric, and the values on the other axes
	Across, Down string   // names of the axes; empty if there is none
	Columns      []string // values across
	Rows         []string // values down; one empty value if there is no axis down
	By           float64  // factor that converts means to the unit in the title
	Compared     bool
	Subject      string    // for comparisons
	Points       [][]Point // by row and column
}

// Point is a value in a Map.
type Point struct {
	Present bool
	Stat    results.Statistic // the mean, or the change in per cent
	Sign    string            // for comparisons
}

// located is a point with its index on each axis.
type located struct {
	at     []int
	versus string
	Point
}

// Maps returns the maps of a metric, one for each combination of values on the axes that are not drawn. If the sweep
// has a subject, the maps show its comparisons.
func (d *Document) Maps(m *Shown) []*Map {
	of := d.axis(d.Subject)
	points, compared := d.comparisonsOf(m), true
	if len(points) == 0 {
		points, compared, of = d.meansOf(m), false, -1
	}
	across, down := d.plane(of)
	var all []*Map
	byTitle := map[string]*Map{}
	for i := range points {
		p := &points[i]
		title := d.describePlace(p, across, down, of)
		one := byTitle[title]
		if one == nil {
			one = d.emptyMap(m, across, down, compared)
			one.Title += title
			byTitle[title], all = one, append(all, one)
		}
		one.Points[d.index(p.at, down)][d.index(p.at, across)] = p.Point
	}
	return all
}

func (d *Document) comparisonsOf(m *Shown) (points []located) {
	for i := range d.Comparisons {
		c := &d.Comparisons[i]
		if c.Metric == m.Name {
			change := results.Statistic{Mean: c.ChangePct, SD: results.Missing(), CI95: results.Missing(), N: c.Difference.N}
			points = append(points, located{c.at, c.Versus, Point{c.ChangePct.Known(), change, c.Sign}})
		}
	}
	return points
}

func (d *Document) meansOf(m *Shown) (points []located) {
	for i := range d.Cells {
		s := d.Cells[i].Statistics.Of(m.Name)
		points = append(points, located{d.Cells[i].at, "", Point{s.Known(), *s, ""}})
	}
	return points
}

// plane chooses the two axes of the maps from all axes except number without. across is the axis with the most values
// and down the axis with the second most. Numeric axes are preferred to axes with words. An axis is -1 if there is
// none.
func (d *Document) plane(without int) (across, down int) {
	free := d.others(without)
	slices.SortStableFunc(free, func(a, b int) int { return d.worth(b) - d.worth(a) })
	free = append(free, -1, -1)
	return free[0], free[1]
}

// worth returns the priority with which an axis is chosen for the maps.
func (d *Document) worth(axis int) int {
	if n := len(d.Axes[axis].Numbers); n > 0 {
		return n + 1<<20
	}
	return len(d.Axes[axis].Values)
}

func (d *Document) index(at []int, axis int) int {
	if axis < 0 {
		return 0
	}
	return at[axis]
}

// describePlace returns the values on the axes that a map does not draw, as text.
func (d *Document) describePlace(p *located, drawn ...int) string {
	title := ""
	for i, v := range p.at {
		if !slices.Contains(drawn, i) && d.varies(i) {
			title += fmt.Sprintf(", %s %s", d.Axes[i].Name, d.Axes[i].Values[v])
		}
	}
	if p.versus != "" {
		title += ", against " + p.versus
	}
	return title
}

func (d *Document) emptyMap(m *Shown, across, down int, compared bool) *Map {
	one := &Map{Metric: m, Columns: []string{""}, Rows: []string{""}, By: 1, Compared: compared}
	unit := "%"
	if compared {
		one.Subject = d.Axes[d.axis(d.Subject)].Values[0]
		one.Title = m.Title + ": change of " + one.Subject
	} else {
		var all []*results.Statistic
		for i := range d.Cells {
			all = append(all, d.Cells[i].Statistics.Of(m.Name))
		}
		one.By, unit = text.ScaleOf(m.Unit, all...)
		one.Title = m.Title
	}
	if unit != "" {
		one.Title += ", " + unit
	}
	if across >= 0 {
		one.Across, one.Columns = d.Axes[across].Name, d.Axes[across].Values
	}
	if down >= 0 {
		one.Down, one.Rows = d.Axes[down].Name, d.Axes[down].Values
	}
	one.Points = make([][]Point, len(one.Rows))
	for i := range one.Points {
		one.Points[i] = make([]Point, len(one.Columns))
	}
	return one
}

// print prints the map as a table if the table fits the page's width, and otherwise with one character per value. A map
// with a single row is printed as a list.
func (m *Map) print(p *text.Page) {
	p.Say("", "%s", m.Title)
	switch {
	case m.Down == "":
		m.list(p)
	case m.width() <= p.Columns():
		m.sayOutlines(p)
		p.Grid(m.grid())
	default:
		m.shades(p)
	}
	p.Printf("\n")
}

// cell returns a value as text. An undecided comparison is in brackets.
func (m *Map) cell(pt *Point) string {
	switch {
	case !pt.Present:
		return text.Missing
	case !m.Compared:
		return text.Single(float64(pt.Stat.Mean) * m.By)
	}
	sign := ""
	if pt.Stat.Mean > 0 {
		sign = "+"
	}
	value := sign + text.Decimal(float64(pt.Stat.Mean), 1)
	if pt.Sign == undecided {
		return "[" + value + "]"
	}
	return value
}

func (m *Map) grid() *table.Grid {
	corner := m.Down + " \\ " + m.Across
	g := &table.Grid{Columns: []table.GridColumn{{Header: corner, Right: true}}}
	for _, c := range m.Columns {
		g.Columns = append(g.Columns, table.GridColumn{Header: c, Right: true})
	}
	upright, level := m.marks()
	widest := make([]int, len(m.Columns))
	rows := make([][]string, len(m.Rows))
	for i := range m.Rows {
		for k := range m.Columns {
			value := upright[[2]int{i, k}] + m.cell(&m.Points[i][k])
			rows[i], widest[k] = append(rows[i], value), max(widest[k], utf8.RuneCountInString(value))
		}
	}
	for i, r := range m.Rows {
		if above, ok := m.above(i, level, widest); ok {
			g.Add(above...)
		}
		g.Add(append([]string{r}, rows[i]...)...)
	}
	return g
}

// above returns the line that contains the outlines above a row. ok is false if there are none.
func (m *Map) above(row int, level map[[2]int]string, widest []int) (line []string, ok bool) {
	line = []string{""}
	for k := range m.Columns {
		mark, there := level[[2]int{row, k}]
		line, ok = append(line, strings.Repeat(mark, widest[k])), ok || there
	}
	return line, ok
}

// width returns the width of the map as a table, in characters.
func (m *Map) width() (n int) {
	g := m.grid()
	for i, c := range g.Columns {
		widest := utf8.RuneCountInString(c.Header)
		for _, row := range g.Rows {
			widest = max(widest, utf8.RuneCountInString(row[i]))
		}
		n += widest + 2
	}
	return n - 2
}

// list prints the map with one line for each value and its interval.
func (m *Map) list(p *text.Page) {
	g := &table.Grid{Columns: []table.GridColumn{{Header: m.Across, Right: true}, {Header: "", Right: true}, {Header: ""}}}
	largest := 0.0
	for k := range m.Columns {
		if pt := &m.Points[0][k]; pt.Present {
			largest = max(largest, math.Abs(float64(pt.Stat.Mean)))
		}
	}
	const bars = 30
	heads := map[int]string{}
	for _, o := range m.outlines() {
		for _, e := range o.Edges {
			heads[e.Series] = strings.Repeat(strokesOf(&o).level, 4) + " " + o.Name
		}
	}
	for k, c := range m.Columns {
		if heads[k] != "" {
			g.Head(heads[k])
		}
		pt := &m.Points[0][k]
		value, bar := m.cell(pt), ""
		if pt.Present && !m.Compared {
			value = text.FormatRounded(&pt.Stat, m.By)
		}
		if pt.Present && largest > 0 {
			bar = strings.Repeat("o", int(math.Round(bars*math.Abs(float64(pt.Stat.Mean))/largest)))
		}
		g.Add(c, value, bar)
	}
	p.Grid(g)
}

// shades contains the characters that represent means, from the smallest to the largest. Comparisons are represented by
// their sign.
const shades = ".:-=+*#%@"

func (m *Map) shades(p *text.Page) {
	low, high := math.Inf(1), math.Inf(-1)
	for _, row := range m.Points {
		for i := range row {
			if row[i].Present {
				low, high = min(low, float64(row[i].Stat.Mean)), max(high, float64(row[i].Stat.Mean))
			}
		}
	}
	widest := utf8.RuneCountInString(m.Down)
	for _, r := range m.Rows {
		widest = max(widest, utf8.RuneCountInString(r))
	}
	if m.Compared {
		p.Say("", "- lower, + higher, . can't be told; left %s %s, right %s", m.Across, m.Columns[0], m.Columns[len(m.Columns)-1])
	} else {
		p.Say("", "%s [%s] %s; left %s %s, right %s", text.Single(low*m.By), shades, text.Single(high*m.By), m.Across,
			m.Columns[0], m.Columns[len(m.Columns)-1])
	}
	room := max(1, p.Columns()-widest-3)
	outlined := len(m.outlines()) > 0 && 2*len(m.Columns) <= room
	if outlined {
		m.sayOutlines(p)
	}
	upright, _ := m.marks()
	for i, r := range m.Rows {
		var line strings.Builder
		for k := range min(len(m.Columns), room) {
			if outlined { // makes room for a line next to every value
				line.WriteString(cmp.Or(upright[[2]int{i, k}], " "))
			}
			line.WriteByte(m.shade(&m.Points[i][k], low, high))
		}
		p.Printf("%*s |%s|\n", widest, r, line.String())
	}
	if len(m.Columns) > room {
		p.Say("", "the first %d of %d values across", room, len(m.Columns))
	}
}

func (m *Map) shade(pt *Point, low, high float64) byte {
	switch {
	case !pt.Present:
		return ' '
	case m.Compared:
		return map[string]byte{lower: '-', higher: '+', undecided: '.'}[pt.Sign]
	case high <= low:
		return shades[0]
	}
	return shades[min(int((float64(pt.Stat.Mean)-low)/(high-low)*float64(len(shades))), len(shades)-1)]
}
