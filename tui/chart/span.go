package chart

import (
	"math"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/tui/num"
	"github.com/olafctl/olaf/tui/screen"
)

// Span is the visible part of a run's time axis.
type Span struct{ From, To olaf.Time }

// Divisors of the run's length for a partial view: 1/128 at the start, 1/8 later.
const (
	recent  = 8
	atStart = 128
)

// WindowSpan returns the visible span of a run that ends at end. It is the newest part of the run or, if whole is set,
// the whole run.
func WindowSpan(now, end olaf.Time, whole bool) Span {
	length := end
	if !whole {
		for length = end / recent; length > end/atStart && length > 2*now; {
			length /= 2
		}
		length = max(length, olaf.Time(olaf.Microsecond))
	}
	if whole || now <= length {
		return Span{0, max(length, 1)}
	}
	return Span{now - length, now}
}

// Contains reports whether an instant is visible.
func (s Span) Contains(t olaf.Time) bool { return t >= s.From && t <= s.To }

// Axes returns axes with the span as the time axis and values in ns from 0 to top.
func (s Span) Axes(top float64) Axes {
	return Axes{X0: toNS(s.From), X1: toNS(s.To), Y0: 0, Y1: top, X: num.FormatNS, Y: num.FormatNS}
}

// Label returns the caption for a sparkline that covers the span.
func (s Span) Label() string { return num.FormatNS(toNS(s.From)) + " … " + num.FormatNS(toNS(s.To)) }

// PointAt returns the point for a value in ns at an instant.
func PointAt(t olaf.Time, value float64) Point { return Point{toNS(t), value} }

func toNS(t olaf.Time) float64 { return float64(t) / float64(olaf.Nanosecond) }

// RoundUp rounds up to one of a few figures times a power of ten. Axes that use it change only rarely.
func RoundUp(v float64) float64 {
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

// Cells resamples a line to n cells that cover the span. Each value is the mean of the points in its cell or, if there
// are none, the previous value. Before the line begins and after it ends, values are NaN.
func (s Span) Cells(points []Point, n int) []float64 {
	out := make([]float64, max(n, 0))
	width := (toNS(s.To) - toNS(s.From)) / float64(max(n, 1))
	last, i := math.NaN(), 0
	for ; i < len(points) && points[i].X < toNS(s.From); i++ {
		last = points[i].Y
	}
	for x := range out {
		end := toNS(s.From) + width*float64(x+1)
		sum, count := 0.0, 0
		for ; i < len(points) && (points[i].X < end || x == n-1); i++ {
			last = points[i].Y
			sum += last
			count++
		}
		switch {
		case count > 0:
			out[x] = sum / float64(count)
		case i < len(points):
			out[x] = last
		default:
			out[x] = math.NaN()
		}
	}
	return out
}

// Sparkline draws points into a region without axes. top is the value at the region's upper edge.
func (s Span) Sparkline(r screen.Region, points []Point, top float64, style screen.Style) {
	DrawColumns(r, s.Cells(points, r.W), top, style)
}

// DrawColumns draws values as columns on a baseline. top is the value at the region's upper edge.
func DrawColumns(r screen.Region, values []float64, top float64, style screen.Style) {
	for x := 0; x < min(r.W, len(values)); x++ {
		v := values[x]
		if !isFinite(v) || v < 0 || !(top > 0) {
			continue
		}
		parts := max(int(math.Round(min(v/top, 1)*float64(8*r.H))), 1)
		for y := range r.H {
			r.Set(x, r.H-1-y, levels[min(max(parts-8*y, 0), 8)], style)
		}
	}
}
