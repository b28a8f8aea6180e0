package chart

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/tui/num"
	"github.com/olafctl/olaf/tui/screen"
)

// FuzzLines draws arbitrary numbers at arbitrary sizes; ntcharts alone panics or hangs on some of them.
func FuzzLines(f *testing.F) {
	add := func(w, h int16, values ...float64) {
		b := make([]byte, 8*len(values))
		for i, v := range values {
			binary.LittleEndian.PutUint64(b[8*i:], math.Float64bits(v))
		}
		f.Add(w, h, b)
	}
	add(40, 10, 0, 1, 2, 3, 1, 2, 0, 5)
	add(0, 0, 0, 1, 0, 1)
	add(1, 5, math.NaN(), math.NaN(), math.Inf(1), math.Inf(-1), 1, 1)
	add(-3, 2000, 0, 1e308, -1e308, 1e308, 0, math.NaN(), math.Inf(1), 0)
	f.Fuzz(func(t *testing.T, w, h int16, data []byte) {
		var v []float64
		for ; len(data) >= 8 && len(v) < 64; data = data[8:] {
			v = append(v, math.Float64frombits(binary.LittleEndian.Uint64(data)))
		}
		if len(v) < 4 {
			return
		}
		var points []Point
		for i := 4; i+1 < len(v); i += 2 {
			points = append(points, Point{v[i], v[i+1]})
		}
		var s screen.Screen
		s.Resize(int(w)%300, int(h)%100)
		DrawLines(s.All(), Axes{X0: v[0], X1: v[1], Y0: v[2], Y1: v[3], X: num.FormatNS, Y: num.FormatNS},
			Line{Points: points})
		DrawGauge(s.All(), v[0], v[1], 0)
		DrawBar(s.All(), v[2], 0)
		DrawColumns(s.All(), v, v[3], 0)
		span := Span{olaf.Time(math.Float64bits(v[0])), olaf.Time(math.Float64bits(v[1]))}
		span.Sparkline(s.All(), points, RoundUp(v[2]), 0)
		counts := make([]int64, len(v))
		for i := range v {
			counts[i] = int64(math.Float64bits(v[i]) >> 12)
		}
		CDF(s.All(), counts, 0)
		DrawHistogram(s.All(), counts, 0)
	})
}

func drawn(w, h int, draw func(screen.Region)) []string {
	var s screen.Screen
	s.Resize(w, h)
	draw(s.All())
	return strings.Split(strings.TrimSuffix(s.Text(), "\n"), "\n")
}

func TestCDF(t *testing.T) {
	for _, c := range []struct {
		name   string
		counts []int64
		height int
		want   []string // beginnings and ends of the lines
	}{
		{"all", []int64{1, 1, 2}, 4, []string{"≤0 25.0 %", "≤1 50.0 %", "≤2 100.0 %", ""}},
		{"folded into the last row", []int64{1, 0, 0, 0, 3}, 2, []string{"≤0 25.0 %", "≤4 100.0 %"}},
		{"nothing", []int64{0, 0}, 1, []string{"nothing yet"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			lines := drawn(30, c.height, func(r screen.Region) { CDF(r, c.counts, 0) })
			for i, want := range c.want {
				fields := strings.Fields(lines[i])
				got := ""
				if n := len(fields); n >= 3 {
					got = fields[0] + " " + fields[n-2] + " " + fields[n-1]
				}
				if c.name == "nothing" {
					got, want = lines[0], "nothing delivered yet"
				}
				if got != want {
					t.Errorf("line %d is %q, want %q", i, lines[i], want)
				}
			}
		})
	}
}

// TestLineGoesFromCornerToCorner checks a line's direction and extent: Y grows upwards.
func TestLineGoesFromCornerToCorner(t *testing.T) {
	lines := drawn(20, 5, func(r screen.Region) {
		DrawLines(r, Axes{X0: 0, X1: 1, Y0: 0, Y1: 1}, Line{Points: []Point{{0, 0}, {1, 1}}})
	})
	if !strings.HasPrefix(lines[4], "⡠") && !strings.HasPrefix(lines[4], "⡀") && lines[4][0] == ' ' ||
		len([]rune(lines[0])) != 20 {
		t.Errorf("the line does not go from the lower left to the upper right:\n%s", strings.Join(lines, "\n"))
	}
}

func TestWrap(t *testing.T) {
	for _, line := range WrapText("one two three four-and-a-long-one five", 9) {
		if len(line) > 9 && strings.Contains(line, " ") {
			t.Errorf("%q is too long", line)
		}
	}
	if got := strings.Join(WrapText(" a  b ", 80), "|"); got != "a b" {
		t.Errorf("%q", got)
	}
}

func TestHistogramEndsWithTheLargest(t *testing.T) {
	lines := drawn(30, 5, func(r screen.Region) { DrawHistogram(r, []int64{3, 0, 1, 0, 0}, 0) })
	if !strings.Contains(lines[0], "75.0 %") || !strings.Contains(lines[2], "25.0 %") || lines[3] != "" {
		t.Errorf("%q", lines)
	}
}

func TestColumns(t *testing.T) {
	for _, c := range []struct {
		height int
		want   string
	}{{1, "▁▄█"}, {2, "  █|▁██"}} {
		got := strings.Join(drawn(5, c.height, func(r screen.Region) {
			DrawColumns(r, []float64{0, 1, 2, math.NaN(),
				-1}, 2, 0)
		}), "|")
		if got != c.want {
			t.Errorf("in %d lines %q, want %q", c.height, got, c.want)
		}
	}
}

// TestCells checks that points are resampled to cells: the mean of several points, the last value between points, NaN
// before and after.
func TestCells(t *testing.T) {
	span := Span{0, olaf.Time(6 * olaf.Microsecond)}
	us := func(n float64) float64 { return n * 1000 }
	got := fmt.Sprint(span.Cells([]Point{{us(1.1), 4}, {us(1.9), 6}, {us(3.5), 8}}, 6))
	if want := "[NaN 5 6 8 NaN NaN]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := fmt.Sprint(span.Cells([]Point{{us(-1), 4}, {us(6), 6}}, 2)); got != "[4 6]" {
		t.Errorf("a line that began before: %s", got)
	}
}

// TestWindowHoldsNow checks that along a run, the newest part includes the present and at first grows with the elapsed
// time.
func TestWindowHoldsNow(t *testing.T) {
	end := olaf.Time(400 * olaf.Microsecond)
	for now := olaf.Time(0); now <= end; now += end / 100 {
		for _, whole := range []bool{false, true} {
			s := WindowSpan(now, end, whole)
			if !s.Contains(now) || s.From < 0 || s.To <= s.From || whole && s != (Span{0, end}) || !whole &&
				s.To-s.From > end/8 {
				t.Errorf("at %v, whole %v: %v", now, whole, s)
			}
		}
	}
	if s := WindowSpan(0, 0, true); s.To <= s.From {
		t.Errorf("a run without a length: %v", s)
	}
}
