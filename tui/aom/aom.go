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

// Top is the largest mean age that any queue shows in a span, so that queues share one axis.
func Top(s *live.Snapshot, span chart.Span) float64 {
	top := 0.0
	for i := range s.Queues {
		for _, p := range s.Queues[i].Series {
			if span.Contains(p.At) {
				top = max(top, p.AoM)
			}
		}
		if q := &s.Queues[i]; q.AoMNow.Known() {
			top = max(top, float64(q.AoMNow))
		}
	}
	return chart.Ceiling(top)
}

// SawTop is Top for sawtooths.
func SawTop(s *live.Snapshot, span chart.Span) float64 {
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
	return chart.Ceiling(top)
}

// Mean draws the age averaged over clusters against time.
func Mean(r screen.Region, q *live.QueueSnapshot, now olaf.Time, span chart.Span, top float64, style screen.Style) {
	var points []chart.Point
	for _, p := range q.Series {
		if span.Contains(p.At) && p.AoM > 0 {
			points = append(points, chart.At(p.At, p.AoM))
		}
	}
	if q.AoMNow.Known() {
		points = append(points, chart.At(now, float64(q.AoMNow)))
	}
	if len(points) == 0 {
		r.Text(0, 0, theme.Dim, "no delivery yet")
		return
	}
	chart.Lines(r, span.Axes(top), chart.Line{Points: points, Style: style})
}

// Sawtooth draws one cluster's age: up by a second a second, down with every delivery.
func Sawtooth(r screen.Region, q *live.QueueSnapshot, now olaf.Time, span chart.Span, top float64, style screen.Style) {
	var points []chart.Point
	for i, t := range q.Teeth {
		if t.At < span.From && i+1 < len(q.Teeth) && q.Teeth[i+1].At < span.From {
			continue
		}
		if t.Before >= 0 {
			points = append(points, chart.At(t.At, t.Before.NS()))
		}
		points = append(points, chart.At(t.At, t.Age.NS()))
	}
	if n := len(q.Teeth); n > 0 {
		last := q.Teeth[n-1]
		points = append(points, chart.At(now, (last.Age+now.Sub(last.At)).NS()))
	}
	if len(points) == 0 {
		r.Text(0, 0, theme.Dim, "no delivery of this cluster yet")
		return
	}
	chart.Lines(r, span.Axes(top), chart.Line{Points: clipped(points, chart.At(span.From, 0).X), Style: style})
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
	return fmt.Sprintf("AoM now %s, mean %s", num.NS(float64(q.AoMNow)), num.NS(float64(q.MeanAoM)))
}
