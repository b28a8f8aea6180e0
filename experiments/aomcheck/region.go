package aomcheck

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/sweep/grid"
)

// Axis is one parameter that Explore varies, with its values.
type Axis struct {
	Name   string // delta-t, interval, interval.N, jitter, service, bound, separation, ack-delay, slots
	Values []AxisValue
	which  int // cluster of interval.N and jitter.N, from 0; -1 for all
	set    func(*Problem, AxisValue)
}

// AxisValue is a value on an axis: a time, or a plain number for the axis slots.
type AxisValue int64

// defaultSteps is the default number of values on an axis that is specified as a range.
const defaultSteps = 7

// maxPoints is the maximum number of points in a region.
const maxPoints = 2500

// ParseAxis parses name=values in the grammar of all sweeps (package axis), or the older name=low:high or
// name=low:high:steps.
func ParseAxis(s string) (Axis, error) {
	name, span, ok := strings.Cut(s, "=")
	if ok && (strings.Contains(span, "..") || strings.Contains(span, ",")) {
		return listedAxis(name, span)
	}
	parts := strings.Split(span, ":")
	if !ok || len(parts) < 2 || len(parts) > 3 {
		return Axis{}, bad("vary", fmt.Sprintf("%q is not of the form name=low..high or name=low..high/steps", s))
	}
	a := Axis{Name: name}
	if err := a.choose(); err != nil {
		return a, err
	}
	low, errLow := a.parse(parts[0])
	high, errHigh := a.parse(parts[1])
	if err := errors.Join(errLow, errHigh); err != nil {
		return a, bad("vary "+name, err.Error())
	}
	steps := defaultSteps
	if len(parts) == 3 {
		var err error
		if steps, err = strconv.Atoi(parts[2]); err != nil || steps < 2 || steps > maxPoints {
			return a, bad("vary "+name, fmt.Sprintf("%q is no number of steps from 2 to %d", parts[2], maxPoints))
		}
	}
	if high <= low {
		return a, bad("vary "+name, fmt.Sprintf("the range %q is empty", span))
	}
	if wide := high - low; wide < 0 || wide > math.MaxInt64/AxisValue(steps) {
		return a, bad("vary "+name, fmt.Sprintf("the range %q is too wide", span))
	}
	for i := range steps {
		a.add(a.round(low + (high-low)*AxisValue(i)/AxisValue(steps-1)))
	}
	return a, nil
}

// listedAxis parses values in the grammar that all sweeps share. The values must ascend, because regions are plotted.
func listedAxis(name, values string) (Axis, error) {
	a := Axis{Name: name}
	if err := a.choose(); err != nil {
		return a, err
	}
	of := grid.Duration
	if a.Name == "slots" {
		of = grid.Integer
	}
	listed, err := grid.ParseAxis(name, of, values)
	if err != nil {
		return a, bad("vary "+name, err.Error())
	}
	for _, text := range listed.Values {
		v, err := a.parse(text)
		if err != nil {
			return a, bad("vary "+name, err.Error())
		}
		if n := len(a.Values); n > 0 && v <= a.Values[n-1] {
			return a, bad("vary "+name, fmt.Sprintf("%s comes after %s; give the values in ascending order", text, a.Text(a.Values[n-1])))
		}
		a.Values = append(a.Values, v)
	}
	if len(a.Values) > maxPoints {
		return a, bad("vary "+name, fmt.Sprintf("%d values; at most %d are verified in one region", len(a.Values), maxPoints))
	}
	return a, nil
}

// With returns a copy of the problem with one parameter set to value. The error matches ErrProblem.
func (p Problem) With(name, value string) (Problem, error) {
	a := Axis{Name: name}
	if err := a.choose(); err != nil {
		return p, err
	}
	v, err := a.parse(value)
	if err != nil {
		return p, bad("vary "+name, err.Error())
	}
	if a.which >= len(p.Clusters) {
		return p, bad("vary "+name, "there are "+olaf.Plural(len(p.Clusters), "cluster"))
	}
	p.Clusters = append([]Cluster(nil), p.Clusters...)
	a.set(&p, v)
	return p, nil
}

// add appends v to the axis, unless rounding has made it equal to the previous value.
func (a *Axis) add(v AxisValue) {
	if n := len(a.Values); n == 0 || a.Values[n-1] != v {
		a.Values = append(a.Values, v)
	}
}

// round rounds times of at least 100 µs down to whole microseconds. Other values stay as they are.
func (a *Axis) round(v AxisValue) AxisValue {
	if a.Name != "slots" && v >= AxisValue(100*olaf.Microsecond) {
		return v / AxisValue(olaf.Microsecond) * AxisValue(olaf.Microsecond)
	}
	return v
}

func (a *Axis) parse(s string) (AxisValue, error) {
	if a.Name == "slots" {
		v, err := strconv.Atoi(s)
		if err != nil || v < 1 {
			return 0, fmt.Errorf("%q is not a positive whole number", s)
		}
		return AxisValue(v), nil
	}
	d, err := olaf.ParseDuration(s)
	return AxisValue(d), err
}

// Text formats a value on the axis for readers.
func (a *Axis) Text(v AxisValue) string {
	if a.Name == "slots" {
		return strconv.FormatInt(int64(v), 10)
	}
	return olaf.Duration(v).String()
}

func (a *Axis) choose() error {
	base, index, indexed := strings.Cut(a.Name, ".")
	a.which = -1
	if indexed {
		n, err := strconv.Atoi(index)
		if err != nil || n < 1 {
			return bad("vary", fmt.Sprintf("%q: clusters are counted from 1", a.Name))
		}
		a.which = n - 1
	}
	perCluster := map[string]func(*Cluster) *olaf.Duration{
		"interval": func(c *Cluster) *olaf.Duration { return &c.Interval },
		"jitter":   func(c *Cluster) *olaf.Duration { return &c.Jitter },
	}
	if field, ok := perCluster[base]; ok {
		which := a.which
		a.set = func(p *Problem, v AxisValue) {
			for i := range p.Clusters {
				if which < 0 || which == i {
					*field(&p.Clusters[i]) = olaf.Duration(v)
				}
			}
		}
		return nil
	}
	global := map[string]func(*Problem) *olaf.Duration{
		"delta-t":    func(p *Problem) *olaf.Duration { return &p.Control.DeltaT },
		"ack-delay":  func(p *Problem) *olaf.Duration { return &p.Control.AckDelay },
		"service":    func(p *Problem) *olaf.Duration { return &p.Service },
		"separation": func(p *Problem) *olaf.Duration { return &p.Separation },
		"bound":      func(p *Problem) *olaf.Duration { return &p.Objective.Bound },
		"epsilon":    func(p *Problem) *olaf.Duration { return &p.Objective.Bound },
	}
	field, ok := global[a.Name]
	switch {
	case a.Name == "slots":
		a.set = func(p *Problem, v AxisValue) { p.Slots = int(v) }
	case ok:
		a.set = func(p *Problem, v AxisValue) { *field(p) = olaf.Duration(v) }
	default:
		return bad("vary", fmt.Sprintf("cannot vary %q; there are interval, interval.N, jitter, jitter.N, "+
			"delta-t, ack-delay, service, separation, bound, slots", a.Name))
	}
	return nil
}

// Point is one point in a region, with its verdict.
type Point struct {
	Values []AxisValue // one for each axis
	Answer Answer      // empty if the assumptions contradict each other there
	Solver string
	Broken string // first violation, if any
}

// Region is the set of verdicts on a problem over the values of one or two axes. It shows for which values the
// objective is satisfied.
type Region struct {
	Axes   []Axis
	Points []Point // the first axis varies slowest
	Notes  []string
	// Partial means that the last points are missing because the search was interrupted.
	Partial bool
}

// Explore verifies p at every point on the axes. It calls done, if not nil, after each point. The errors are those of
// Verify, except that a point with a vacuous problem is stored without an answer. If ctx is cancelled, Explore returns
// the finished points together with the error.
func Explore(ctx context.Context, p Problem, axes []Axis, opt Options, done func(n, of int)) (*Region, error) {
	if len(axes) < 1 || len(axes) > 2 {
		return nil, bad("vary", "one or two parameters can be varied at once")
	}
	total := 1
	for _, a := range axes {
		if a.which >= len(p.Clusters) {
			return nil, bad("vary "+a.Name, "there are "+olaf.Plural(len(p.Clusters), "cluster"))
		}
		total *= len(a.Values)
	}
	if total > maxPoints {
		return nil, bad("vary", fmt.Sprintf("%d points; at most %d are verified in one region", total, maxPoints))
	}
	region := &Region{Axes: axes}
	notes := make(map[string]bool)
	for n := range total {
		point, q := pointOf(p, axes, n)
		v, err := Verify(ctx, q, opt)
		switch {
		case errors.Is(err, ErrVacuous):
		case errors.Is(err, context.Canceled):
			region.Partial = true
			return region, err
		case err != nil:
			return nil, fmt.Errorf("at %s: %w", region.pointName(point), err)
		default:
			point.Answer, point.Solver = v.Answer, v.Solver
			if len(v.Judgement.Broken) > 0 {
				point.Broken = v.Judgement.Broken[0]
			}
			for _, note := range v.Notes {
				if !notes[note] {
					notes[note] = true
					region.Notes = append(region.Notes, note)
				}
			}
		}
		region.Points = append(region.Points, point)
		if done != nil {
			done(n+1, total)
		}
	}
	return region, nil
}

// pointOf returns point n of a region and the problem to be verified there.
func pointOf(p Problem, axes []Axis, n int) (point Point, there Problem) {
	there = p
	there.Clusters = append([]Cluster(nil), p.Clusters...)
	for i := len(axes) - 1; i >= 0; i-- {
		v := axes[i].Values[n%len(axes[i].Values)]
		n /= len(axes[i].Values)
		axes[i].set(&there, v)
		point.Values = append([]AxisValue{v}, point.Values...)
	}
	return point, there
}

func (r *Region) pointName(point Point) string {
	var parts []string
	for i, v := range point.Values {
		parts = append(parts, r.Axes[i].Name+"="+r.Axes[i].Text(v))
	}
	return strings.Join(parts, " ")
}

// marks maps each answer to its character in a plot.
var marks = map[Answer]string{Holds: "#", Violated: ".", Unknown: "?", "": "~"}

// Plot draws the region as text, with the first axis pointing upwards and the second to the right.
func (r *Region) Plot() string {
	across := Axis{Values: []AxisValue{0}}
	if len(r.Axes) == 2 {
		across = r.Axes[1]
	}
	up := r.Axes[0]
	width := len(up.Name)
	for _, v := range up.Values {
		width = max(width, len(up.Text(v)))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%*s\n", width, up.Name)
	for i := len(up.Values) - 1; i >= 0; i-- {
		fmt.Fprintf(&b, "%*s |", width, up.Text(up.Values[i]))
		for j := range across.Values {
			mark := " " // not verified
			if n := i*len(across.Values) + j; n < len(r.Points) {
				mark = marks[r.Points[n].Answer]
			}
			b.WriteString("  " + mark)
		}
		b.WriteString("\n")
	}
	if len(r.Axes) == 2 {
		fmt.Fprintf(&b, "%*s +%s\n", width, "", strings.Repeat("---", len(across.Values)))
		fmt.Fprintf(&b, "%*s  %s from %s to %s\n", width, "", across.Name, across.Text(across.Values[0]),
			across.Text(across.Values[len(across.Values)-1]))
	}
	b.WriteString("# holds   . violated   ? unknown   ~ assumptions contradict each other\n")
	if r.Partial {
		b.WriteString("blank: not verified, because it was interrupted\n")
	}
	return b.String()
}
