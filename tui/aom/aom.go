// Package aom draws the Age of Model: the mean over clusters, and one cluster's sawtooth.
package aom

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/live"
	"github.com/olafctl/olaf/tui/chart"
	"github.com/olafctl/olaf/tui/num"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// Span is the part of the time axis that is shown.
type Span struct{ From, To olaf.Time }

// Shares of the run that are shown when not the whole: a hundredth at its start, later an eighth.
const (
	recent  = 8
	atStart = 128
)

// Window is the span to be shown of a run: the newest part, or all.
func Window(s *live.Snapshot, whole bool) Span {
	length := s.End
	if !whole {
		for length = s.End / recent; length > s.End/atStart && length > 2*s.Now; {
			length /= 2
		}
		length = max(length, olaf.Time(olaf.Microsecond))
	}
	if whole || s.Now <= length {
		return Span{0, max(length, 1)}
	}
	return Span{s.Now - length, s.Now}
}

// Top is the largest mean age that any queue shows in a span, so that queues share one axis.
func Top(s *live.Snapshot, span Span) float64 {
	top := 0.0
	for i := range s.Queues {
		for _, p := range s.Queues[i].Series {
			if p.At >= span.From && p.At <= span.To {
				top = max(top, p.AoM)
			}
		}
		if q := &s.Queues[i]; q.AoMNow.Known() {
			top = max(top, float64(q.AoMNow))
		}
	}
	return niceCeiling(top)
}

// SawTop is Top for sawtooths.
func SawTop(s *live.Snapshot, span Span) float64 {
	top := 0.0
	for i := range s.Queues {
		teeth := s.Queues[i].Teeth
		for _, t := range teeth {
			if t.At >= span.From {
				top = max(top, t.Before.NS())
			}
		}
		if n := len(teeth); n > 0 {
			top = max(top, (teeth[n-1].Age + s.Now.Sub(teeth[n-1].At)).NS())
		}
	}
	return niceCeiling(top)
}

// niceCeiling rounds up to one of a few figures times a power of ten, so that an axis changes rarely.
func niceCeiling(v float64) float64 {
	if !(v > 0) || v > 1e18 {
		return 1000
	}
	for step := 1.0; ; step *= 10 {
		for _, m := range []float64{1, 1.5, 2, 3, 4, 6, 8} {
			if v <= m*step {
				return m * step
			}
		}
	}
}

func axes(span Span, top float64) chart.Axes {
	return chart.Axes{
		X0: ns(span.From), X1: ns(span.To), Y0: 0, Y1: top,
		X: func(v float64) string { return num.NS(v) }, Y: num.NS,
	}
}

func ns(t olaf.Time) float64 { return float64(t) / float64(olaf.Nanosecond) }

// Mean draws the age averaged over clusters against time.
func Mean(r screen.Region, q *live.QueueSnapshot, now olaf.Time, span Span, top float64, style screen.Style) {
	var points []chart.Point
	for _, p := range q.Series {
		if p.At >= span.From && p.At <= span.To && p.AoM > 0 {
			points = append(points, chart.Point{X: ns(p.At), Y: p.AoM})
		}
	}
	if q.AoMNow.Known() {
		points = append(points, chart.Point{X: ns(now), Y: float64(q.AoMNow)})
	}
	if len(points) == 0 {
		r.Text(0, 0, theme.Dim, "no delivery yet")
		return
	}
	chart.Lines(r, axes(span, top), chart.Line{Points: points, Style: style})
}

// Sawtooth draws one cluster's age: up by a second a second, down with every delivery.
func Sawtooth(r screen.Region, q *live.QueueSnapshot, now olaf.Time, span Span, top float64, style screen.Style) {
	var points []chart.Point
	for i, t := range q.Teeth {
		if t.At < span.From && i+1 < len(q.Teeth) && q.Teeth[i+1].At < span.From {
			continue
		}
		if t.Before >= 0 {
			points = append(points, chart.Point{X: ns(t.At), Y: t.Before.NS()})
		}
		points = append(points, chart.Point{X: ns(t.At), Y: t.Age.NS()})
	}
	if n := len(q.Teeth); n > 0 {
		last := q.Teeth[n-1]
		points = append(points, chart.Point{X: ns(now), Y: (last.Age + now.Sub(last.At)).NS()})
	}
	if len(points) == 0 {
		r.Text(0, 0, theme.Dim, "no delivery of this cluster yet")
		return
	}
	chart.Lines(r, axes(span, top), chart.Line{Points: clipped(points, ns(span.From)), Style: style})
}

// clipped lets a line begin at x.
func clipped(p []chart.Point, x float64) []chart.Point {
	for len(p) > 1 && p[1].X < x {
		p = p[1:]
	}
	if len(p) > 1 && p[0].X < x && p[1].X > p[0].X {
		share := (x - p[0].X) / (p[1].X - p[0].X)
		p[0] = chart.Point{X: x, Y: p[0].Y + share*(p[1].Y-p[0].Y)}
	}
	return p
}

// Title says the age now and its time average.
func Title(q *live.QueueSnapshot) string {
	return fmt.Sprintf("AoM now %s, mean %s", known(float64(q.AoMNow)), known(float64(q.MeanAoM)))
}

func known(v float64) string { return num.NS(v) }
