package aomcheck

import (
	"cmp"
	"fmt"
	"image/color"
	"io"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	_ "gonum.org/v1/plot/vg/vgsvg" // the SVG canvas that plot looks up by name

	"github.com/olafctl/olaf"
)

// corner is a point at which a sawtooth changes direction. Each delivery has two corners: the peak, and the age after
// the delivery.
type corner struct{ at, age int64 }

// corners returns the corners of cluster u's AoM sawtooth from its first delivery to its last, in steps.
func (r *Run) corners(u int) []corner {
	var out []corner
	for i, d := range r.Deliveries[u] {
		if i > 0 {
			out = append(out, corner{d.At, d.Peak})
		}
		out = append(out, corner{d.At, d.At - d.Generated})
	}
	return out
}

// Size of the text sawtooth.
const (
	plotColumns = 68
	plotRows    = 7
	// plotClusters is the maximum number of clusters in a plot. Those with the highest peaks are drawn; starved ones
	// come last.
	plotClusters = 6
)

// window is the time range of a run that Plot draws.
type window struct{ from, to int64 }

// plotTeeth is the maximum number of one cluster's deliveries in the text plot.
const plotTeeth = 14

// widest returns a window around the run's highest peak that is wide enough for plotTeeth deliveries of the busiest
// cluster.
func (r *Run) widest() window {
	var all window
	var worst Delivery
	for u := range r.Deliveries {
		for _, d := range r.Deliveries[u] {
			all.to = max(all.to, d.At)
			if d.Peak > worst.Peak {
				worst = d
			}
		}
	}
	width := all.to
	for u := range r.Deliveries {
		if n := int64(len(r.Deliveries[u])); n > plotTeeth {
			width = min(width, all.to/n*plotTeeth)
		}
	}
	from := min(max(worst.At-width/2, 0), all.to-width)
	return window{from, max(from+width, from+1)}
}

// Plot draws the sawtooth of every cluster as text, on common axes. A slope is drawn as /, a delivery as |, and the
// objective's bound on the cluster's peak, if any, as a dashed line. For a long run it shows the part around the
// highest peak.
func (p *Problem) Plot(r *Run) string {
	shown := r.widest()
	top := int64(1)
	for u := range p.Clusters {
		for _, c := range r.corners(u) {
			if c.at >= shown.from && c.at <= shown.to {
				top = max(top, c.age)
			}
		}
	}
	var b strings.Builder
	drawn := r.worstClusters()
	for _, u := range drawn {
		fmt.Fprintf(&b, "AoM of %s\n", p.Clusters[u].Name)
		cells := newCells()
		if bound, _ := p.boundsOf(u); bound > 0 {
			cells.dash(float64(p.inSteps(r, bound)) / float64(top))
		}
		cells.sawtooth(r.corners(u), shown, float64(top))
		for i, row := range cells {
			label := ""
			switch i {
			case 0:
				label = Tidy(p.span(r, top))
			case plotRows - 1:
				label = "0"
			}
			fmt.Fprintf(&b, "%10s |%s\n", label, strings.TrimRight(string(row), " "))
		}
	}
	from, to := Tidy(p.span(r, shown.from)), Tidy(p.span(r, shown.to))
	fmt.Fprintf(&b, "%10s +%s\n%10s  %s%*s\n", "", strings.Repeat("-", plotColumns), "", from, plotColumns-len(from), to)
	if left := len(p.Clusters) - len(drawn); left > 0 {
		fmt.Fprintf(&b, "(%d clusters with lower peaks are not drawn)\n", left)
	}
	return b.String()
}

// worstClusters returns the numbers of the plotClusters clusters with the highest peaks, in ascending order.
func (r *Run) worstClusters() []int {
	all := make([]int, len(r.Deliveries))
	for u := range all {
		all[u] = u
	}
	peak := func(u int) int64 {
		if len(r.Deliveries[u]) == 0 {
			return 0
		}
		return r.worst(u).Peak
	}
	slices.SortStableFunc(all, func(a, b int) int { return cmp.Compare(peak(b), peak(a)) })
	all = all[:min(len(all), plotClusters)]
	slices.Sort(all)
	return all
}

type cells [][]rune

func newCells() cells {
	c := make(cells, plotRows)
	for i := range c {
		c[i] = []rune(strings.Repeat(" ", plotColumns))
	}
	return c
}

// row returns the text row, counted from the top, for a height between 0 and 1.
func row(height float64) int {
	return min(max(plotRows-1-int(height*plotRows), 0), plotRows-1)
}

func (c cells) dash(height float64) {
	if height > 1 {
		return
	}
	for x := 0; x < plotColumns; x += 2 {
		c[row(height)][x] = '-'
	}
}

// sawtooth draws each column at the age in its middle, and each delivery as a line from the age before it to the age
// after it.
func (c cells) sawtooth(corners []corner, shown window, top float64) {
	width := float64(shown.to - shown.from)
	column := func(at int64) int { return int(float64(at-shown.from) / width * plotColumns) }
	for i := 1; i < len(corners); i++ {
		from, to := corners[i-1], corners[i]
		x := min(column(to.at), plotColumns-1)
		if to.at < shown.from || from.at > shown.to {
			continue
		}
		if from.at == to.at {
			for y := row(float64(from.age) / top); y <= row(float64(to.age)/top); y++ {
				c[y][x] = '|'
			}
			continue
		}
		for x := max(column(from.at), 0); x < min(column(to.at), plotColumns); x++ {
			middle := float64((float64(x)+0.5)/plotColumns*width) + float64(shown.from-from.at)
			c[row((float64(from.age)+max(middle, 0))/top)][x] = '/'
		}
	}
}

// Tidy formats a time with at most five digits. The text is for readers and too coarse for sums.
func Tidy(d olaf.Duration) string {
	step := olaf.Duration(1)
	for d/step >= 100000 {
		step *= 10
	}
	return (d / step * step).String()
}

// SVG draws the sawtooths of all clusters in one diagram. It returns errors from w.
func (p *Problem) SVG(w io.Writer, r *Run) error {
	chart := plot.New()
	chart.Title.Text = "Age of Model: " + p.Objective.String()
	chart.X.Label.Text, chart.Y.Label.Text = "time (ms)", "AoM (ms)"
	chart.Legend.Top = true
	for u, cluster := range p.Clusters {
		var points plotter.XYs
		for _, c := range r.corners(u) {
			points = append(points, plotter.XY{X: p.span(r, c.at).Seconds() * 1e3, Y: p.span(r, c.age).Seconds() * 1e3})
		}
		if len(points) == 0 {
			continue
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return err
		}
		line.Color = lineColors[u%len(lineColors)]
		chart.Add(line)
		chart.Legend.Add(cluster.Name, line)
	}
	canvas, err := chart.WriterTo(20*vg.Centimeter, 9*vg.Centimeter, "svg")
	if err != nil {
		return err
	}
	_, err = canvas.WriteTo(w)
	return err
}

// lineColors are the colours of the clusters. They can be distinguished in print and by colour-blind readers.
var lineColors = []color.Color{
	color.RGBA{R: 0x00, G: 0x72, B: 0xb2, A: 0xff}, color.RGBA{R: 0xd5, G: 0x5e, B: 0x00, A: 0xff},
	color.RGBA{R: 0x00, G: 0x9e, B: 0x73, A: 0xff}, color.RGBA{R: 0xcc, G: 0x79, B: 0xa7, A: 0xff},
	color.RGBA{A: 0xff},
}
