// Package compare compares two stored results of one experiment, metric by metric. Runs with equal seeds are paired
// where possible. For each metric it computes intervals, a test that uses the pairs, the effect size, and a verdict in
// words.
package compare

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/inference"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/paper"
)

// ErrDifferent is the error for two results that have nothing in common to compare.
var ErrDifferent = olaf.NewError(olaf.Usage, "nothing to compare")

// schema is the schema name of a comparison document.
const schema = "olafctl.compare/v2"

// Verdicts on one metric.
const (
	higher  = "higher" // B is higher
	lower   = "lower"
	notSeen = "no difference shown"
	tooFew  = "too few" // no sample of this size could have shown a difference
)

// Tests that verdicts are based on.
const (
	pairedT = "paired t"
	rankSum = "rank sum"
)

const (
	alpha     = 0.05
	resamples = 2000
)

// Side is one of the two results to compare.
type Side struct {
	Name       string // id of the run
	Experiment string
	Config     json.RawMessage
	Runs       []results.Run
	Partial    bool // the run was interrupted and lacks runs of its plan
}

// Document is a comparison of result B with result A, which is the base.
type Document struct {
	Schema     string `json:"schema"`
	Experiment string `json:"experiment"`
	A          string `json:"a"`
	B          string `json:"b"`
	// Config lists the differences between the specifications.
	Config   []Setting `json:"config"`
	Lines    []Line    `json:"lines"`
	TwinAges []TwinAge `json:"beside,omitempty"`
	Clusters []Cluster `json:"clusters,omitempty"`
	Warnings []string  `json:"warnings"`
}

// TwinAge is an age in one configuration that was compared with the twin's age, on one side or both.
type TwinAge struct {
	Queue      string                  `json:"queue"`
	OutRateBPS int64                   `json:"out_rate_bps"`
	Metric     string                  `json:"metric"`
	Title      string                  `json:"title"`
	A          *results.TwinComparison `json:"a,omitempty"`
	B          *results.TwinComparison `json:"b,omitempty"`
}

// Setting is an item of the specification that differs between the sides. Its value is empty for a side that does not
// have it.
type Setting struct {
	Name string `json:"name"`
	A    string `json:"a"`
	B    string `json:"b"`
}

// Line compares one metric in one configuration.
type Line struct {
	Queue      string            `json:"queue"` // name, or "A's → B's" if two different queues are compared
	OutRateBPS int64             `json:"out_rate_bps"`
	Metric     string            `json:"metric"`
	Title      string            `json:"title"`
	Unit       string            `json:"unit"`
	A          results.Statistic `json:"a"`
	B          results.Statistic `json:"b"`
	// Difference is B − A over pairs with equal seeds; missing without such pairs. Low and High are the bounds of its
	// bootstrap interval.
	Difference Paired `json:"difference"`
	// ChangePct is the mean difference relative to A's mean, both over common seeds if there are any.
	ChangePct results.Float `json:"change_pct"`
	// Test is the test that decides: the paired t test if there are common seeds, else the exact permutation test of
	// rank sums. P is its p value. PHolm is P adjusted for all metrics of the document. PSignedRank is Wilcoxon's p
	// value for pairs.
	Test        string        `json:"test"`
	P           results.Float `json:"p"`
	PHolm       results.Float `json:"p_holm"`
	PSignedRank results.Float `json:"p_signed_rank"`
	// Effect is the rank-biserial correlation: 1 if all values of B are above all values of A.
	Effect  results.Float `json:"effect"`
	Verdict string        `json:"verdict"` // higher, lower, no difference shown, too few

	toofew bool
}

// Paired describes the differences between paired runs, with a bootstrap interval for their mean.
type Paired struct {
	results.Statistic
	Low  results.Float `json:"bootstrap_low"`
	High results.Float `json:"bootstrap_high"`
}

// CompareResults compares b with a. It excludes invalid runs and adds a warning with their number.
func CompareResults(a, b *Side) (*Document, error) {
	experiment := paper.Canonical(a.Experiment)
	if paper.Canonical(b.Experiment) != experiment {
		return nil, fmt.Errorf("%w: %s is a run of %s, %s of %s; choose two runs of one experiment with olafctl "+
			"runs",
			ErrDifferent, a.Name, a.Experiment, b.Name, b.Experiment)
	}
	doc := &Document{Schema: schema, Experiment: experiment, A: a.Name, B: b.Name, Config: diffSettings(a.Config,
		b.Config)}
	for _, side := range []*Side{a, b} {
		if side.Partial {
			doc.warn("%s was interrupted: runs of its plan are missing", side.Name)
		}
	}
	groupsA, groupsB := groupRuns(a.Runs), groupRuns(b.Runs)
	for _, pair := range doc.pairConfigurations(keysOf(a.Runs), keysOf(b.Runs)) {
		runsA, runsB := groupsA[pair.a], groupsB[pair.b]
		doc.warnRuns(pair.a, a.Name, runsA)
		doc.warnRuns(pair.b, b.Name, runsB)
		if len(validRuns(runsA)) > 0 && len(validRuns(runsB)) > 0 && onWires(runsA) != onWires(runsB) {
			measured, other := a.Name, b.Name
			if onWires(runsB) {
				measured, other = other, measured
			}
			doc.warn("%s%s: %s was measured on real cables with a machine's clock, %s was not, so their times "+
				"differ by what hosts and machine take", pair.name(), atRate(pair.a.rate), measured, other)
		}
		if len(validRuns(runsA)) > 0 && len(validRuns(runsB)) > 0 && !shareSeed(validRuns(runsA), validRuns(runsB)) {
			doc.warn("%s%s: both sides have no seed in common, so nothing is paired", pair.name(), atRate(pair.a.rate))
		}
		doc.compareMetrics(pair, runsA, runsB)
	}
	doc.judge()
	if len(doc.Lines) == 0 {
		return nil, fmt.Errorf("%w: no queue at one output rate has valid runs on both sides; %s, %s", ErrDifferent,
			a.describe(), b.describe())
	}
	return doc, nil
}

// compareMetrics adds a line for each metric that both sides have in a configuration, and warns about those that cannot
// be compared.
func (d *Document) compareMetrics(of pair, runsA, runsB []results.Run) {
	same, lone := sameWork(of, runsA, runsB), loneMetrics(of, runsA, runsB)
	d.warnLone(of, lone)
	for _, m := range results.MetricsOf(slices.Concat(runsA, runsB)) {
		if lone[m.Name] != "" {
			continue
		}
		if m.PerUpdate && !same {
			d.warn("%s: %s is not compared, because an update of the weights is not the same work on both "+
				"sides; see gradient_ns", of.name(), m.Name)
			continue
		}
		if m.Age && !same {
			d.warn("%s: %s is not compared, because an update of the weights is not the same work on both "+
				"sides, and ages belong to updates", of.name(), m.Name)
			continue
		}
		if line, any := lineOf(of, m, validRuns(runsA), validRuns(runsB)); any {
			d.Lines = append(d.Lines, line)
		}
		if m.Age && m.Unit == "ns" {
			d.addBeside(of, m, validRuns(runsA), validRuns(runsB))
			d.addClusters(of, m, validRuns(runsA), validRuns(runsB), onWires(runsA) || onWires(runsB))
		}
	}
}

// loneMetrics returns the metrics that only one side has in a configuration, with the letter of that side. This happens
// if the sides were stored by different builds.
func loneMetrics(of pair, a, b []results.Run) map[string]string {
	lone := map[string]string{}
	if of.a != of.b {
		return lone // different systems have different metrics
	}
	namesA, namesB := results.MetricsOf(a), results.MetricsOf(b)
	only := func(side string, have, other []*metric.Metric) {
		for _, m := range have {
			if !m.Sparse && !slices.ContainsFunc(other, func(o *metric.Metric) bool { return o.Name == m.Name }) {
				lone[m.Name] = side
			}
		}
	}
	only("A", namesA, namesB)
	only("B", namesB, namesA)
	return lone
}

// warnLone adds warnings about metrics that are not compared because the other side's build did not define them.
func (d *Document) warnLone(of pair, lone map[string]string) {
	for _, side := range []struct{ letter, name string }{{"A", d.A}, {"B", d.B}} {
		var names []string
		for name, has := range lone {
			if has == side.letter {
				names = append(names, name)
			}
		}
		if slices.Sort(names); len(names) > 0 {
			d.warn("%s%s: only %s (%s) has %s: the other side was kept by a build with other definitions", of.name(),
				atRate(of.a.rate), side.letter,
				side.name, strings.Join(names, ", "))
		}
	}
}

// sameWork reports whether an update of the weights contains the same number of gradients on both sides.
func sameWork(of pair, a, b []results.Run) bool {
	row := func(k key, runs []results.Run) results.Row {
		row := results.Row{Queue: k.queue}
		for _, m := range results.MetricsOf(runs) {
			values := make([]results.Float, 0, len(runs))
			for _, r := range validRuns(runs) {
				values = append(values, r.Value(m))
			}
			row.Stats = append(row.Stats, results.Stat{Metric: m, Statistic: results.Describe(values, "")})
		}
		return row
	}
	return results.SameWork([]results.Row{row(of.a, a), row(of.b, b)})
}

// onWires reports whether the valid runs were sent by a process in real time. This is true for either all or none of a
// configuration's runs.
func onWires(runs []results.Run) bool {
	return slices.ContainsFunc(validRuns(runs), func(r *results.Run) bool { return r.LatenessNS != nil })
}

// describe returns a text that lists the configurations with valid runs.
func (s *Side) describe() string {
	var names []string
	for _, r := range validRuns(s.Runs) {
		if name := r.Queue + atRate(r.OutRateBPS); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return s.Name + " has no valid run"
	}
	return s.Name + " has " + strings.Join(names, " and ")
}

func (d *Document) warn(format string, args ...any) {
	d.Warnings = append(d.Warnings, fmt.Sprintf(format, args...))
}

func (d *Document) warnRuns(key key, name string, runs []results.Run) {
	n := len(validRuns(runs))
	if left := len(runs) - n; left > 0 {
		d.warn("%s, %s%s: excluded as invalid: %d of %d runs", name, key.queue, atRate(key.rate), left, len(runs))
	}
	withheld, why := 0, ""
	for _, r := range validRuns(runs) {
		if r.Withheld != "" {
			withheld++
			why = r.Withheld
		}
	}
	if withheld > 0 {
		d.warn("%s, %s%s: %d of %d runs have no ages: %s", name, key.queue, atRate(key.rate), withheld, n, why)
	}
}

// addBeside adds the twin's values for an age, if at least one side has them.
func (d *Document) addBeside(of pair, m *metric.Metric, a, b []*results.Run) {
	line := TwinAge{Queue: of.name(), OutRateBPS: of.a.rate, Metric: m.Name, Title: m.Title,
		A: results.AverageBeside(a, m.Name), B: results.AverageBeside(b, m.Name)}
	if line.A != nil || line.B != nil {
		d.TwinAges = append(d.TwinAges, line)
	}
}

// key identifies a configuration by its queue and output rate.
type key struct {
	queue string
	rate  int64
}

// pair contains the configurations to compare, one from each side.
type pair struct{ a, b key }

// name returns the name of the compared configuration, or both names with an arrow between them.
func (p pair) name() string {
	if p.a == p.b {
		return p.a.queue
	}
	return p.a.queue + " → " + p.b.queue
}

// pairConfigurations pairs equal configurations and adds warnings about configurations that only one side has. If each
// side has only one configuration and their output rates are equal, these are paired even if their names differ.
func (d *Document) pairConfigurations(a, b []key) (pairs []pair) {
	if len(a) == 1 && len(b) == 1 && a[0].rate == b[0].rate {
		return []pair{{a[0], b[0]}}
	}
	for _, k := range a {
		if slices.Contains(b, k) {
			pairs = append(pairs, pair{k, k})
		} else {
			d.warn("%s only has %s%s", d.A, k.queue, atRate(k.rate))
		}
	}
	for _, k := range b {
		if !slices.Contains(a, k) {
			d.warn("%s only has %s%s", d.B, k.queue, atRate(k.rate))
		}
	}
	return pairs
}

// atRate returns " at RATE" for messages, or "" for a configuration without an output rate.
func atRate(rate int64) string {
	if rate == 0 {
		return ""
	}
	return " at " + olaf.Rate(rate).String()
}

func keyOf(r *results.Run) key { return key{r.Queue, r.OutRateBPS} }

func groupRuns(runs []results.Run) map[key][]results.Run {
	groups := map[key][]results.Run{}
	for i := range runs {
		groups[keyOf(&runs[i])] = append(groups[keyOf(&runs[i])], runs[i])
	}
	return groups
}

// keysOf returns the configurations in runs, in the order of their first run.
func keysOf(runs []results.Run) (keys []key) {
	for i := range runs {
		if k := keyOf(&runs[i]); !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	return keys
}

func validRuns(runs []results.Run) (out []*results.Run) {
	for i := range runs {
		if runs[i].Valid() {
			out = append(out, &runs[i])
		}
	}
	return out
}

// lineOf compares one metric. any is false if neither side has it, or if all values are zero.
func lineOf(of pair, m *metric.Metric, a, b []*results.Run) (line Line, any bool) {
	valuesA, valuesB := valuesOf(m, a), valuesOf(m, b)
	line = Line{Queue: of.name(), OutRateBPS: of.a.rate, Metric: m.Name, Title: m.Title, Unit: m.Unit,
		A: results.Describe(valuesA, missingReason(m, a)), B: results.Describe(valuesB, missingReason(m, b)),
		Difference: pairedDifference(m, a, b), ChangePct: results.Missing(), P: results.Missing(), Effect: results.Missing()}
	knownA, knownB := results.KnownValues(valuesA), results.KnownValues(valuesB)
	if allZero(knownA) && allZero(knownB) {
		return line, false
	}
	line.test(pairsOf(m, a, b), knownA, knownB)
	return line, true
}

// test tests whether the sides differ. It uses pairs if there are any.
func (l *Line) test(pairs [][2]float64, a, b []float64) {
	l.Test, l.PHolm, l.PSignedRank = rankSum, results.Missing(), results.Missing()
	asked := inference.RankSum(a, b)
	if len(pairs) > 0 {
		differences := results.KnownValues(differencesOf(pairs))
		l.Test, asked = pairedT, inference.PairedT(differences)
		l.PSignedRank = results.Float(inference.SignedRank(differences).P)
	}
	l.toofew = asked.TooFew(alpha)
	l.P = results.Float(asked.P)
	l.Effect = results.Float(effectSize(a, b))
	l.ChangePct = changeOf(pairs, &l.A, &l.B)
}

// changeOf returns the mean difference as a percentage of A's mean. If there are pairs, both means are over the pairs.
// The result is missing if A's mean is 0.
func changeOf(pairs [][2]float64, a, b *results.Statistic) results.Float {
	base, difference := a.Mean, b.Mean-a.Mean
	if len(pairs) > 0 {
		base = 0
		for _, p := range pairs {
			base += results.Float(p[0]) / results.Float(len(pairs))
		}
		paired := results.Describe(differencesOf(pairs), "")
		difference = paired.Mean
	}
	if base == 0 {
		return results.Missing()
	}
	return 100 * difference / base // missing if either value is
}

// differencesOf returns the difference B − A of every pair.
func differencesOf(pairs [][2]float64) (all []results.Float) {
	for _, p := range pairs {
		all = append(all, results.Float(p[1]-p[0]))
	}
	return all
}

// judge sets the verdict of each line. The significance level is adjusted because all metrics are tested at the same
// time.
func (d *Document) judge() {
	p := make([]float64, len(d.Lines))
	for i := range d.Lines {
		p[i] = math.NaN()
		if !d.Lines[i].toofew {
			p[i] = float64(d.Lines[i].P)
		}
	}
	few := 0
	for i, adjusted := range inference.Holm(p) {
		l := &d.Lines[i]
		if !l.toofew {
			l.PHolm = results.Float(adjusted)
		}
		direction := float64(l.Effect)
		if l.Test == pairedT {
			direction = float64(l.Difference.Mean)
		}
		switch {
		case l.toofew:
			l.Verdict = tooFew
			few++
		case adjusted >= alpha:
			l.Verdict = notSeen
		case direction > 0:
			l.Verdict = higher
		default:
			l.Verdict = lower
		}
	}
	if few > 0 {
		d.warn("too few runs for %d of %d lines: no data of that size could show a difference at %v; six runs "+
			"with equal seeds on both sides are enough", few, len(d.Lines), alpha)
	}
}

// effectSize returns the rank-biserial correlation. Of all combinations of a value in a and a value in b, it is the
// share in which b is greater minus the share in which b is less. It is missing (0/0) if a side has no values.
func effectSize(a, b []float64) float64 {
	balance := 0
	for _, x := range a {
		for _, y := range b {
			balance += cmp.Compare(y, x)
		}
	}
	return float64(balance) / float64(len(a)*len(b))
}

// pairsOf returns the values of a metric in runs with equal seeds; see pairsBy.
func pairsOf(m *metric.Metric, a, b []*results.Run) [][2]float64 {
	return pairsBy(func(r *results.Run) results.Float { return r.Value(m) }, a, b)
}

// pairsBy returns pairs of values from runs with equal seeds, if both values are known. It does not matter with which
// seed each side starts.
func pairsBy(of func(*results.Run) results.Float, a, b []*results.Run) (pairs [][2]float64) {
	first := map[uint64]*results.Run{}
	for _, r := range a {
		first[r.Seed] = r
	}
	for _, r := range b {
		other := first[r.Seed]
		if other != nil && of(r).Known() && of(other).Known() {
			pairs = append(pairs, [2]float64{float64(of(other)), float64(of(r))})
		}
	}
	return pairs
}

func pairedDifference(m *metric.Metric, a, b []*results.Run) Paired {
	differences := differencesOf(pairsOf(m, a, b))
	p := Paired{Statistic: results.Describe(differences, "no runs with equal seeds on both sides"),
		Low: results.Missing(), High: results.Missing()}
	if low, high, ok := results.Bootstrap(results.KnownValues(differences), resamples, 1); ok {
		p.Low, p.High = results.Float(low), results.Float(high)
	}
	return p
}

func shareSeed(a, b []*results.Run) bool {
	return slices.ContainsFunc(a, func(r *results.Run) bool {
		return slices.ContainsFunc(b, func(other *results.Run) bool { return other.Seed == r.Seed })
	})
}

func valuesOf(m *metric.Metric, runs []*results.Run) []results.Float {
	out := make([]results.Float, len(runs))
	for i, r := range runs {
		out[i] = r.Value(m)
	}
	return out
}

func missingReason(m *metric.Metric, runs []*results.Run) string {
	for _, r := range runs {
		if why := r.Missing[m.Name]; why != "" {
			return why
		}
	}
	return "no valid run"
}

// allZero reports whether all values are 0.
func allZero(values []float64) bool {
	return !slices.ContainsFunc(values, func(v float64) bool { return v != 0 })
}

// diffSettings returns the leaves that differ between two specifications.
func diffSettings(a, b json.RawMessage) []Setting {
	values := map[string]*Setting{}
	var order []string
	for side, raw := range []json.RawMessage{a, b} {
		for _, leaf := range results.ListLeaves(raw) {
			if values[leaf[0]] == nil {
				values[leaf[0]] = &Setting{Name: leaf[0]}
				order = append(order, leaf[0])
			}
			*[]*string{&values[leaf[0]].A, &values[leaf[0]].B}[side] = leaf[1]
		}
	}
	out := []Setting{}
	for _, name := range order {
		if s := values[name]; s.A != s.B {
			out = append(out, *s)
		}
	}
	return out
}

// maxSettings is the maximum number of differing settings that are printed.
const maxSettings = 12

// foldSettings combines differing items of a list into one setting, which shows the first and the last item.
func foldSettings(settings []Setting) (out []Setting) {
	lists := map[string]int{} // by name, index in out
	for _, c := range settings {
		end := strings.LastIndexByte(c.Name, '[')
		if end < 0 || !strings.HasSuffix(c.Name, "]") {
			out = append(out, c)
			continue
		}
		list := c.Name[:end]
		at, seen := lists[list]
		switch {
		case !seen:
			lists[list] = len(out)
			out = append(out, Setting{Name: list, A: c.A, B: c.B})
		default:
			out[at].A, out[at].B = extendSpan(out[at].A, c.A), extendSpan(out[at].B, c.B)
		}
	}
	return out
}

// extendSpan extends a span such as "1 … 4" to the next value, such as "1 … 5".
func extendSpan(have, next string) string {
	first, _, _ := strings.Cut(have, " … ")
	switch {
	case next == "":
		return have
	case first == "":
		return next
	}
	return first + " … " + next
}

// notes returns the notes that are printed below the lines.
func (d *Document) notes() (notes []string) {
	settings := foldSettings(d.Config)
	for _, c := range settings[:min(len(settings), maxSettings)] {
		notes = append(notes, fmt.Sprintf("config %s: %s → %s", c.Name, cmp.Or(c.A, "(none)"), cmp.Or(c.B, "(none)")))
	}
	if more := len(settings) - maxSettings; more > 0 {
		notes = append(notes, fmt.Sprintf("%d more settings differ; -o json lists all", more))
	}
	for _, w := range d.Warnings {
		notes = append(notes, "warning: "+w)
	}
	return append(notes, fmt.Sprintf(
		"A is %s, B is %s; paired t test over runs of equal seed, else permutation of rank sums, at %v by Holm over "+
			"all lines; ± is a 95 %% half-width", d.A, d.B, alpha))
}
