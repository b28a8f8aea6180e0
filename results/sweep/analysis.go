package sweep

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/olafctl/olaf/internal/exactmath"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/inference"
	"github.com/olafctl/olaf/results/metric"
)

// Signs of the result of a comparison.
const (
	lower     = "lower"
	higher    = "higher"
	undecided = "undecided"
)

// alpha is the level of every test, power the probability of detecting a difference of the stated size.
const (
	alpha = 0.05
	power = 0.8
)

// Analysis contains the comparisons, crossings, fronts and sensitivities of a sweep.
type Analysis struct {
	Comparisons []Comparison  `json:"comparisons"`
	Crossings   []Crossing    `json:"crossings"`
	Fronts      []Front       `json:"pareto"`
	Sensitivity []Sensitivity `json:"sensitivity"`
}

// Comparison compares two subjects at one place of a sweep, over pairs of runs with equal seeds.
type Comparison struct {
	Parameters map[string]Value `json:"parameters"` // without the subject's axis
	Metric     string           `json:"metric"`
	Subject    string           `json:"subject"`
	Versus     string           `json:"versus"`
	// Difference is subject − versus. ChangePct is the mean over pairs of the difference relative to versus, so that it
	// is minus the reduction that a bench prints. In SchemaV1 it is the mean difference relative to the mean of versus.
	Difference results.Statistic `json:"difference"`
	ChangePct  results.Float     `json:"change_pct"`
	// PHolm is the paired t test's p value, adjusted for all places of the metric.
	PHolm results.Float `json:"p_holm"`
	// DetectablePct is the smallest difference, relative to the mean of versus, that this number of pairs with this
	// spread can detect with 80 % power at the 5 % level.
	DetectablePct results.Float `json:"detectable_pct"`
	Sign          string        `json:"sign"`

	at []int
}

// Crossing is a place at which a comparison changes its sign along one axis.
type Crossing struct {
	Metric     string           `json:"metric"`
	Subject    string           `json:"subject"`
	Versus     string           `json:"versus"`
	Axis       string           `json:"axis"`
	Parameters map[string]Value `json:"parameters"` // values on the other axes
	// After is the last place with one sign, and Before the first with the other sign. Places in between are undecided.
	After  Value  `json:"after"`
	Before Value  `json:"before"`
	From   string `json:"from"`
	To     string `json:"to"`
}

// Front lists the cells for which no other cell is better in both metrics. Cells are compared by their means.
type Front struct {
	Metrics [2]string `json:"metrics"`
	Best    [2]string `json:"best"`  // lower or higher
	Cells   []int     `json:"cells"` // places in the list of cells, by the first metric
}

// Sensitivity describes how much of a metric's variance over the cells is explained by each axis.
type Sensitivity struct {
	Metric string `json:"metric"`
	// Shares contains the share of each axis: the variance of the means over each of its values, relative to the
	// variance of the cells' means (η²). Rest is the share that only several axes together explain.
	Shares []Share       `json:"shares"`
	Rest   results.Float `json:"rest"`
}

// Share is the part of the variance that one axis explains.
type Share struct {
	Axis  string        `json:"axis"`
	Share results.Float `json:"share"`
}

// analyse computes the analysis of all cells in the document.
func (d *Document) analyse() {
	d.Analysis = Analysis{Comparisons: []Comparison{}, Crossings: []Crossing{}, Fronts: []Front{}, Sensitivity: []Sensitivity{}}
	for i := range d.Metrics {
		name := d.Metrics[i].Name
		d.Comparisons = append(d.Comparisons, d.compare(name)...)
		if s := d.sensitivity(name); s != nil {
			d.Sensitivity = append(d.Sensitivity, *s)
		}
	}
	d.cross()
	if len(d.Metrics) > 1 && d.isComparableInAll(d.Metrics[0].Name) && d.isComparableInAll(d.Metrics[1].Name) {
		if f := d.front(&d.Metrics[0], &d.Metrics[1]); len(f.Cells) > 0 {
			d.Fronts = append(d.Fronts, f)
		}
	}
}

// axis returns the index of the axis with the given name, or -1 if there is none.
func (d *Document) axis(name string) int {
	return slices.IndexFunc(d.Axes, func(a Axis) bool { return a.Name == name })
}

// place returns a text that identifies a cell's place on all axes except axis number without.
func place(at []int, without int) string {
	var b strings.Builder
	for i, v := range at {
		if i != without {
			b.WriteRune(rune(v + 1))
		}
		b.WriteByte(0)
	}
	return b.String()
}

// parameters returns the parameters of a place on all axes except the given ones.
func (d *Document) parameters(at []int, without ...int) map[string]Value {
	p := map[string]Value{}
	for i, v := range at {
		if !slices.Contains(without, i) {
			p[d.Axes[i].Name] = Value(d.Axes[i].Values[v])
		}
	}
	return p
}

// compare compares the first subject with each of the others, at all places where both have a cell.
func (d *Document) compare(name string) []Comparison {
	of := d.axis(d.Subject)
	if of < 0 {
		return nil
	}
	first := map[string]*Cell{}
	for i := range d.Cells {
		if c := &d.Cells[i]; c.at[of] == 0 {
			first[place(c.at, of)] = c
		}
	}
	var all []Comparison
	var p []float64
	for i := range d.Cells {
		b := &d.Cells[i]
		a := first[place(b.at, of)]
		if b.at[of] == 0 || a == nil || !d.isComparable(a, b, name) {
			continue
		}
		c := comparePairs(a.values(name), b.values(name), d.Schema == SchemaV1)
		c.Parameters, c.Metric, c.at = d.parameters(b.at, of), name, b.at
		c.Subject, c.Versus = d.Axes[of].Values[0], d.Axes[of].Values[b.at[of]]
		all, p = append(all, c), append(p, float64(c.PHolm))
	}
	for i, held := range inference.Holm(p) {
		c := &all[i]
		c.PHolm = results.Float(held)
		if held < alpha {
			c.Sign = map[bool]string{true: lower, false: higher}[c.Difference.Mean < 0]
		}
	}
	return all
}

// isComparable reports whether a metric is comparable between two cells. A metric that counts or times updates of the
// weights is comparable only if both cells have the same number of gradients per update.
func (d *Document) isComparable(a, b *Cell, name string) bool {
	at := slices.IndexFunc(a.Statistics, func(s results.Stat) bool { return s.Name == name })
	if at < 0 || d.Schema == SchemaV1 {
		return true
	}
	if m := a.Statistics[at].Metric; !m.PerUpdate && (!m.Age || d.Schema == SchemaV2) {
		return true
	}
	row := func(c *Cell, queue string) results.Row {
		row := results.Row{Queue: queue}
		for _, name := range []string{"iteration_ns", "gradient_ns"} {
			s := results.Describe(valid(c.values(name)), "")
			row.Stats = append(row.Stats, results.Stat{Metric: &metric.Metric{Name: name}, Statistic: s})
		}
		return row
	}
	return results.SameWork([]results.Row{row(a, "a"), row(b, "b")})
}

// isComparableInAll reports whether a metric is comparable between all cells that have it.
func (d *Document) isComparableInAll(name string) bool {
	var first *Cell
	for i := range d.Cells {
		c := &d.Cells[i]
		if d.Schema != Schema || !c.Statistics.Of(name).Known() {
			continue
		}
		first = cmp.Or(first, c)
		if !d.isComparable(first, c, name) {
			return false
		}
	}
	return true
}

// comparePairs compares the values a and b of paired runs. P is not adjusted for other comparisons. If ofMeans is set,
// the change is the mean difference relative to the mean of b, and otherwise the mean of the relative changes.
func comparePairs(a, b []results.Float, ofMeans bool) Comparison {
	c := Comparison{Sign: undecided, ChangePct: results.Missing(), PHolm: results.Missing(), DetectablePct: results.Missing()}
	var differences []results.Float
	var plain, base []float64
	for i := range min(len(a), len(b)) {
		if a[i].Known() && b[i].Known() {
			differences = append(differences, a[i]-b[i])
			plain, base = append(plain, float64(a[i]-b[i])), append(base, float64(b[i]))
		}
	}
	c.Difference = results.Describe(differences, "no pair of valid runs has it")
	if len(plain) == 0 {
		return c
	}
	mean := exactmath.Mean(base)
	switch {
	case !ofMeans:
		c.ChangePct = meanChange(a, b)
	case mean != 0:
		c.ChangePct = results.Float(100 * float64(c.Difference.Mean) / math.Abs(mean))
	}
	if len(plain) < 2 {
		return c
	}
	c.PHolm = results.Float(inference.PairedT(plain).P)
	if mean != 0 {
		c.DetectablePct = results.Float(100 * detectable(float64(c.Difference.SD), len(plain)) / math.Abs(mean))
	}
	return c
}

// meanChange returns the mean over pairs of the change from b to a, in percent of b. A reduction in a bench has the
// opposite sign. The result is missing if every b is 0.
func meanChange(a, b []results.Float) results.Float {
	var changes []float64
	for i := range min(len(a), len(b)) {
		if was, is := float64(b[i]), float64(a[i]); a[i].Known() && b[i].Known() && was != 0 {
			change := -100 * (1 - is/was)
			if was < 0 {
				change = -change
			}
			changes = append(changes, change)
		}
	}
	if len(changes) == 0 {
		return results.Missing()
	}
	return results.Float(exactmath.Mean(changes))
}

// detectable returns the smallest mean difference that n pairs with standard deviation sd detect with 80 % power at the
// 5 % level.
func detectable(sd float64, n int) float64 {
	freedom := float64(n - 1)
	t := exactmath.StudentQuantile(freedom, 1-alpha/2) + exactmath.StudentQuantile(freedom, power)
	return t * sd / math.Sqrt(float64(n))
}

// cross finds the places at which comparisons change their sign, along every numeric axis.
func (d *Document) cross() {
	of := d.axis(d.Subject)
	for along := range d.Axes {
		if len(d.Axes[along].Numbers) < 2 || along == of {
			continue
		}
		lines := map[string][]*Comparison{}
		var order []string
		for i := range d.Comparisons {
			c := &d.Comparisons[i]
			key := c.Metric + "\x00" + place(c.at, along)
			if lines[key] == nil {
				order = append(order, key)
			}
			lines[key] = append(lines[key], c)
		}
		for _, key := range order {
			d.Crossings = append(d.Crossings, d.turns(lines[key], along, of)...)
		}
	}
}

// turns returns the changes of sign in a line of comparisons along one axis.
func (d *Document) turns(line []*Comparison, along, of int) (out []Crossing) {
	a := &d.Axes[along]
	slices.SortStableFunc(line, func(x, y *Comparison) int { return cmp.Compare(a.Numbers[x.at[along]], a.Numbers[y.at[along]]) })
	var last *Comparison
	for _, c := range line {
		if c.Sign == undecided {
			continue
		}
		if last != nil && last.Sign != c.Sign {
			out = append(out, Crossing{Metric: c.Metric, Subject: c.Subject, Versus: c.Versus, Axis: a.Name,
				Parameters: d.parameters(c.at, along, of),
				After:      Value(a.Values[last.at[along]]), Before: Value(a.Values[c.at[along]]), From: last.Sign, To: c.Sign})
		}
		last = c
	}
	return out
}

// unwanted lists parts of the names of metrics for which low values are better.
var unwanted = []string{"lost", "loss", "dropped", "never", "stale", "reconfigurations", "memory", "held"}

// best returns Lower for metrics of ages, times, losses and costs, for which low values are better, and Higher for all
// other metrics.
func best(m *Shown) string {
	if m.Unit == "ns" || m.Unit == "s" || slices.ContainsFunc(unwanted, func(part string) bool { return strings.Contains(m.Name, part) }) {
		return lower
	}
	return higher
}

// front returns the front of two metrics, which consists of the cells for which no other cell is better in both.
func (d *Document) front(a, b *Shown) Front {
	f := Front{Metrics: [2]string{a.Name, b.Name}, Best: [2]string{best(a), best(b)}, Cells: []int{}}
	type point struct {
		cell int
		x, y float64
	}
	var points []point
	for i := range d.Cells {
		x, y := d.Cells[i].Statistics.Of(a.Name), d.Cells[i].Statistics.Of(b.Name)
		if !x.Known() || !y.Known() {
			continue
		}
		p := point{i, float64(x.Mean), float64(y.Mean)}
		if f.Best[0] == higher {
			p.x = -p.x
		}
		if f.Best[1] == higher {
			p.y = -p.y
		}
		points = append(points, p)
	}
	slices.SortStableFunc(points, func(p, q point) int {
		return cmp.Or(cmp.Compare(p.x, q.x), cmp.Compare(p.y, q.y))
	})
	least := math.Inf(1)
	for i, p := range points {
		if tied := i > 0 && points[i-1].x == p.x && points[i-1].y == p.y && len(f.Cells) > 0 &&
			f.Cells[len(f.Cells)-1] == points[i-1].cell; p.y < least || tied {
			f.Cells, least = append(f.Cells, p.cell), p.y
		}
	}
	return f
}

// sensitivity decomposes the variance of a metric over a complete grid. It returns nil if cells are missing or all
// values are equal.
func (d *Document) sensitivity(name string) *Sensitivity {
	size := 1
	for i := range d.Axes {
		size *= len(d.Axes[i].Values)
	}
	if len(d.Cells) != size || size < 2 {
		return nil
	}
	means := make([]float64, size)
	for i := range d.Cells {
		s := d.Cells[i].Statistics.Of(name)
		if !s.Known() {
			return nil
		}
		means[i] = float64(s.Mean)
	}
	grand, total := exactmath.PopMeanVariance(means)
	if total <= 1e-18*grand*grand {
		return nil
	}
	s := &Sensitivity{Metric: name, Rest: 1}
	for k := range d.Axes {
		if !d.varies(k) {
			continue
		}
		levels := make([]float64, len(d.Axes[k].Values))
		for i := range d.Cells {
			levels[d.Cells[i].at[k]] += means[i] * float64(len(levels)) / float64(size)
		}
		_, of := exactmath.PopMeanVariance(levels)
		share := results.Float(of / total)
		s.Shares, s.Rest = append(s.Shares, Share{d.Axes[k].Name, share}), s.Rest-share
	}
	s.Rest = max(s.Rest, 0)
	return s
}
