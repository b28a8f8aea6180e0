// Package expect judges what was measured by thresholds that a user gave beforehand, such as
// olaf.40G.aom_cluster_ns < 1300: of one configuration or of all, a metric, and how it must compare with a number.
package expect

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/yamlfile"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
)

// ErrRule is the kind of every refused expectation.
var ErrRule = olaf.NewError(olaf.Usage, "bad expectation")

// Rule is one expectation: the mean of a metric, in every configuration that the rule is about, compares so with the limit.
type Rule struct {
	text   string
	system string    // empty for every one
	rate   olaf.Rate // 0 for every one
	metric *metric.Metric
	holds  func(mean, limit float64) bool
	limit  float64 // in the metric's unit
}

// String is the rule as it was given.
func (r *Rule) String() string { return r.text }

// Configuration is one point that is going to be measured.
type Configuration struct {
	System string
	Rate   olaf.Rate // 0 where it has none of its own
	At     string    // what else tells it apart, which no rule asks for
}

func (c Configuration) String() string {
	switch {
	case c.Rate != 0:
		return fmt.Sprintf("%s.%v", c.System, c.Rate)
	case c.At != "":
		return c.System + " at " + c.At
	}
	return c.System
}

// comparisons in an order in which none is found inside of one that follows.
var comparisons = []struct {
	sign  string
	holds func(a, b float64) bool
}{
	{"<=", func(a, b float64) bool { return a <= b }},
	{">=", func(a, b float64) bool { return a >= b }},
	{"==", func(a, b float64) bool { return a == b }},
	{"<", func(a, b float64) bool { return a < b }},
	{">", func(a, b float64) bool { return a > b }},
	{"=", func(a, b float64) bool { return a == b }},
}

// Parse reads a rule about one of the configurations, or some, by a metric of the declaration.
func Parse(text string, d *metric.Declaration, configurations []Configuration) (*Rule, error) {
	refuse := func(format string, args ...any) (*Rule, error) {
		return nil, fmt.Errorf("%w %q: %s", ErrRule, text, fmt.Sprintf(format, args...))
	}
	for _, c := range comparisons {
		left, right, found := strings.Cut(text, c.sign)
		if !found {
			continue
		}
		r := &Rule{text: strings.TrimSpace(text), holds: c.holds}
		of, name := "", strings.TrimSpace(left)
		if at := strings.LastIndexByte(name, '.'); at >= 0 {
			of, name = name[:at], name[at+1:]
		}
		if r.metric = find(d, name); r.metric == nil {
			return refuse("no metric is named %q%s", name, yamlfile.Suggest(name, names(d)))
		}
		if err := r.about(of, configurations); err != nil {
			return refuse("%v", err)
		}
		limit, err := inUnit(strings.TrimSpace(right), r.metric.Unit)
		if err != nil {
			return refuse("%v", err)
		}
		r.limit = limit
		return r, nil
	}
	return refuse("there is no <, <=, >, >= or = in it; write for example olaf.40G.aom_cluster_ns < 1300")
}

// find is the metric of a name, if rows have a statistic of it.
func find(d *metric.Declaration, name string) *metric.Metric {
	if m := d.Metric(name); m != nil && !m.Aside {
		return m
	}
	return nil
}

func names(d *metric.Declaration) []string {
	var names []string
	for _, m := range d.Metrics {
		if !m.Aside {
			names = append(names, m.Name)
		}
	}
	return names
}

// about reads what stands before the metric: a system, a rate, both or neither. Something must be measured there.
func (r *Rule) about(of string, configurations []Configuration) error {
	var systems []string
	for _, c := range configurations {
		if !slices.Contains(systems, c.System) {
			systems = append(systems, c.System)
		}
	}
	if rate, err := olaf.ParseRate(of); err == nil {
		r.rate = rate
	} else {
		system, rest, more := strings.Cut(of, ".")
		if system != "" && !slices.Contains(systems, system) {
			return fmt.Errorf("%q is not measured here%s", system, yamlfile.Suggest(system, systems))
		}
		r.system = system
		if more {
			if r.rate, err = olaf.ParseRate(rest); err != nil {
				return err
			}
		}
	}
	if slices.ContainsFunc(configurations, r.concerns) {
		return nil
	}
	all := make([]string, len(configurations))
	for i, c := range configurations {
		all[i] = c.String()
	}
	return fmt.Errorf("%s is not measured here; there are %s", of, strings.Join(all, ", "))
}

func (r *Rule) concerns(c Configuration) bool {
	return (r.system == "" || r.system == c.System) && (r.rate == 0 || r.rate == c.Rate)
}

// inUnit reads a number, with its unit or without, in a metric's unit.
func inUnit(text, unit string) (float64, error) {
	v, err := olaf.ParseNumber(strings.TrimSpace(strings.TrimSuffix(text, unit)))
	if err == nil {
		return v, nil
	}
	if unit == "ns" {
		d, err := olaf.ParseDuration(text)
		return d.NS(), err
	}
	return 0, fmt.Errorf("%q is not a number%s", text, inWords(unit))
}

func inWords(unit string) string {
	if unit == "" {
		return ""
	}
	return " of " + cmp.Or(map[string]string{"%": "per cent"}[unit], unit)
}

// Missed says in a sentence where the rows, one a configuration in their order, are not as the rule expects.
func (r *Rule) Missed(configurations []Configuration, rows []results.Row) []string {
	var missed []string
	for i, c := range configurations {
		if !r.concerns(c) || i >= len(rows) {
			continue
		}
		stat := rows[i].Stats.Of(r.metric.Name)
		if !stat.Known() {
			missed = append(missed, fmt.Sprintf("missed: %s: %s has none, because %s", r, c, cmp.Or(stat.Reason, "nothing was measured")))
		} else if mean := float64(stat.Mean); !r.holds(mean, r.limit) {
			missed = append(missed, fmt.Sprintf("missed: %s: %s has %s", r, c, inText(mean, r.limit, r.metric.Unit)))
		}
	}
	return missed
}

// inText writes a mean with as many digits as it takes to see that it is not the limit, and at least four.
func inText(mean, limit float64, unit string) string {
	for digits := 4; digits <= 17; digits++ {
		rounded, err := strconv.ParseFloat(strconv.FormatFloat(mean, 'g', digits, 64), 64)
		if err == nil && (rounded != limit || mean == limit) {
			return strings.TrimSpace(strconv.FormatFloat(rounded, 'f', -1, 64) + " " + unit)
		}
	}
	return strings.TrimSpace(strconv.FormatFloat(mean, 'f', -1, 64) + " " + unit)
}
