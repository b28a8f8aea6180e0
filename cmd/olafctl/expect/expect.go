// Package expect checks measurements against thresholds such as olaf.40G.aom_cluster_ns < 1300. A threshold consists of
// a configuration (or all), a metric, a comparison and a limit.
package expect

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/internal/yamlfile"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
)

// ErrRule is matched by the error for any rejected expectation.
var ErrRule = olaf.NewError(olaf.Usage, "bad expectation")

// Rule is one expectation. It is met if the metric's mean satisfies the comparison with the limit in every
// configuration that the rule selects.
type Rule struct {
	text   string
	system string    // empty for all
	rate   olaf.Rate // 0 for all
	metric *metric.Metric
	holds  func(mean, limit float64) bool
	limit  float64 // in the metric's unit
}

// String returns the rule as the user wrote it.
func (r *Rule) String() string { return r.text }

// Configuration is one point of a measurement: a system and, if it has one, a rate.
type Configuration struct {
	System string
	Rate   olaf.Rate // 0 if it has none
	At     string    // other properties, which rules cannot select
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

// comparisons lists the comparison signs, ordered so that no sign is a prefix of a later one.
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

// ParseRule parses a rule whose metric must be in the declaration and whose selector must match one of the
// configurations. Errors match ErrRule.
func ParseRule(text string, d *metric.Declaration, configurations []Configuration) (*Rule, error) {
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
		if r.metric = findMetric(d, name); r.metric == nil {
			return refuse("no metric is named %q%s", name, yamlfile.Suggest(name, metricNames(d)))
		}
		if err := r.parseSelector(of, configurations); err != nil {
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

// findMetric returns the named metric, or nil if rows have no statistic for it.
func findMetric(d *metric.Declaration, name string) *metric.Metric {
	if m := d.Metric(name); m != nil && !m.Aside {
		return m
	}
	return nil
}

func metricNames(d *metric.Declaration) []string {
	var names []string
	for _, m := range d.Metrics {
		if !m.Aside {
			names = append(names, m.Name)
		}
	}
	return names
}

// parseSelector parses the part of a rule before the metric, which selects a system, a rate, both or neither. It
// returns an error if no configuration matches.
func (r *Rule) parseSelector(of string, configurations []Configuration) error {
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
	if slices.ContainsFunc(configurations, r.selects) {
		return nil
	}
	return fmt.Errorf("%s is not measured here; there are %s", of,
		strings.Join(olaf.Map(configurations, Configuration.String), ", "))
}

func (r *Rule) selects(c Configuration) bool {
	return (r.system == "" || r.system == c.System) && (r.rate == 0 || r.rate == c.Rate)
}

// inUnit parses a number, which may have a unit, and returns it in the metric's unit. Only durations are converted.
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

// FindMisses returns a sentence for each configuration whose row does not meet the rule. rows[i] belongs to
// configurations[i].
func (r *Rule) FindMisses(configurations []Configuration, rows []results.Row) []string {
	var missed []string
	for i, c := range configurations {
		if !r.selects(c) || i >= len(rows) {
			continue
		}
		stat := rows[i].Stats.Of(r.metric.Name)
		if !stat.Known() {
			missed = append(missed, fmt.Sprintf("missed: %s: %s has none, because %s", r, c,
				cmp.Or(stat.Reason, "nothing was measured")))
		} else if mean := float64(stat.Mean); !r.holds(mean, r.limit) {
			missed = append(missed, fmt.Sprintf("missed: %s: %s has %s", r, c, inText(mean, r.limit, r.metric.Unit)))
		}
	}
	return missed
}

// inText formats a mean with at least four digits, and with as many as it needs to differ from the limit.
func inText(mean, limit float64, unit string) string {
	for digits := 4; digits <= 17; digits++ {
		rounded, err := strconv.ParseFloat(strconv.FormatFloat(mean, 'g', digits, 64), 64)
		if err == nil && (rounded != limit || mean == limit) {
			return strings.TrimSpace(strconv.FormatFloat(rounded, 'f', -1, 64) + " " + unit)
		}
	}
	return strings.TrimSpace(strconv.FormatFloat(mean, 'f', -1, 64) + " " + unit)
}
