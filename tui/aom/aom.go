// Package aom draws the Age of Model: the mean over the clusters, and the sawtooth curve of one cluster.
package aom

import (
	"cmp"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/bench/slowmotion"
	"github.com/olafctl/olaf/tui/chart"
	"github.com/olafctl/olaf/tui/num"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// MaxMeanAge returns the largest mean age behind any queue in a time span, rounded up, for a common axis.
func MaxMeanAge(s *slowmotion.Snapshot, span chart.Span, reading olaf.Reading) float64 {
	top := 0.0
	for i := range s.Queues {
		for _, p := range s.Queues[i].Series {
			if span.Contains(p.At) {
				top = max(top, p.AoM[reading])
			}
		}
		if now := s.Queues[i].AoMNow[reading]; now.Known() {
			top = max(top, float64(now))
		}
	}
	return chart.RoundUp(top)
}

// MaxSawtooth is like MaxMeanAge for the sawtooth curves.
func MaxSawtooth(s *slowmotion.Snapshot, span chart.Span) float64 {
	top := 0.0
	for i := range s.Queues {
		teeth := s.Queues[i].Teeth
		for _, t := range teeth {
			if t.At >= span.From {
				top = max(top, t.Before.NS())
			}
		}
		if n := len(teeth); n > 0 && stillAges(s, i) {
			top = max(top, (teeth[n-1].Age + s.Now.Sub(teeth[n-1].At)).NS())
		}
	}
	return chart.RoundUp(top)
}

// stillAges reports whether the model of the watched cluster is still ageing behind a queue. A model ages until its
// cluster is done.
func stillAges(s *slowmotion.Snapshot, queue int) bool {
	clusters := s.Queues[queue].Clusters
	return int(s.Watched) >= len(clusters) || !clusters[s.Watched].Done
}

// AgeSeries returns the age of a cluster's model over time, without the instants at which it has no age.
func AgeSeries(s *slowmotion.Snapshot, queue int, cluster olaf.ClusterID, reading olaf.Reading) []chart.Point {
	q := &s.Queues[queue]
	points := make([]chart.Point, 0, len(q.Series)+1)
	for i := range q.Series {
		if ages := q.Series[i].Ages[reading]; int(cluster) < len(ages) {
			points = append(points, chart.PointAt(q.Series[i].At, float64(ages[cluster])))
		}
	}
	if int(cluster) < len(q.Clusters) {
		points = append(points, chart.PointAt(s.Now, float64(q.Clusters[cluster].AoM[reading])))
	}
	return points
}

// MaxAge returns the largest age of any cluster behind any queue in a time span.
func MaxAge(s *slowmotion.Snapshot, span chart.Span, reading olaf.Reading) float64 {
	top := 0.0
	take := func(age float64) {
		if age > top {
			top = age
		}
	}
	for i := range s.Queues {
		q := &s.Queues[i]
		for j := range q.Series {
			if span.Contains(q.Series[j].At) {
				for _, age := range q.Series[j].Ages[reading] {
					take(float64(age))
				}
			}
		}
		for c := range q.Clusters {
			take(float64(q.Clusters[c].AoM[reading]))
		}
	}
	return chart.RoundUp(top)
}

// DrawMean draws the mean age behind a queue over time. The mean is over all clusters that have an age.
func DrawMean(r screen.Region, s *slowmotion.Snapshot, queue int, span chart.Span, top float64, reading olaf.Reading,
	style screen.Style) {
	q := &s.Queues[queue]
	var points []chart.Point
	for _, p := range q.Series {
		if age := p.AoM[reading]; span.Contains(p.At) && age > 0 {
			points = append(points, chart.PointAt(p.At, age))
		}
	}
	if now := q.AoMNow[reading]; now.Known() {
		points = append(points, chart.PointAt(s.Now, float64(now)))
	}
	if len(points) == 0 {
		drawReason(r, cmp.Or(q.NoAges, "no age to show"))
		return
	}
	chart.DrawLines(r, span.Axes(top), chart.Line{Points: points, Style: style})
}

// DrawSawtooth draws the age of the watched cluster behind a queue. The age rises by one second per second and drops at
// each delivery. When the cluster is done, the curve ends at its last delivery.
func DrawSawtooth(r screen.Region, s *slowmotion.Snapshot, queue int, span chart.Span, top float64, style screen.Style) {
	q := &s.Queues[queue]
	var points []chart.Point
	for i, t := range q.Teeth {
		if t.At < span.From && i+1 < len(q.Teeth) && q.Teeth[i+1].At < span.From {
			continue
		}
		if t.Before >= 0 {
			points = append(points, chart.PointAt(t.At, t.Before.NS()))
		}
		points = append(points, chart.PointAt(t.At, t.Age.NS()))
	}
	if n := len(q.Teeth); n > 0 && stillAges(s, queue) {
		last := q.Teeth[n-1]
		points = append(points, chart.PointAt(s.Now, (last.Age+s.Now.Sub(last.At)).NS()))
	}
	if len(points) == 0 {
		drawReason(r, cmp.Or(q.NoAges, "no delivery of this cluster yet"))
		return
	}
	chart.DrawLines(r, span.Axes(top), chart.Line{Points: clipLine(points, chart.PointAt(span.From, 0).X), Style: style})
}

// drawReason writes in place of a chart why there is none.
func drawReason(r screen.Region, reason string) {
	for i, line := range chart.WrapText(reason, r.W) {
		r.Text(0, i, theme.Dim, line)
	}
}

// clipLine removes the part of a line before x.
func clipLine(p []chart.Point, x float64) []chart.Point {
	for len(p) > 1 && p[1].X < x {
		p = p[1:]
	}
	if len(p) > 1 && p[0].X < x && p[1].X > p[0].X {
		share := (x - p[0].X) / (p[1].X - p[0].X)
		p[0] = chart.Point{X: x, Y: p[0].Y + share*(p[1].Y-p[0].Y)}
	}
	return p
}

// FormatTitle returns the current age, if there is one, and the average over time, abbreviated to fit width.
func FormatTitle(q *slowmotion.QueueSnapshot, reading olaf.Reading, width int) string {
	now, mean := " now "+num.FormatNS(float64(q.AoMNow[reading])), ", mean "+num.FormatNS(float64(q.MeanAoM[reading]))
	if !q.AoMNow[reading].Known() {
		now = ""
	}
	if full := "AoM " + reading.String() + now + mean; screen.TextWidth(full) <= width {
		return full
	}
	_, of, _ := strings.Cut(reading.String(), " ")
	brief := "AoM/" + of + strings.TrimPrefix(now, " now")
	if screen.TextWidth(brief+mean) <= width {
		return brief + mean
	}
	return "AoM" + mean
}
