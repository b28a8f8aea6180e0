package figuretest

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

const (
	black, white = "#000000", "#FFFFFF"
	// thin is the line width of axes, ticks and grid. Lines that show data are thicker.
	thin = 0.5
	// mostSeries is the number of series that can be distinguished in one panel.
	mostSeries = 6
	// overhang is the maximum distance by which a marker may extend beyond the axes.
	overhang = 4.0
	// leastHeight and leastWidth are the minimum lengths of the axes.
	leastHeight, leastWidth = 60.0, 80.0
)

// FindFaults returns descriptions of the layout faults in a figure.
func FindFaults(svg io.Reader) ([]string, error) {
	p, err := parsePage(svg)
	if err != nil {
		return nil, err
	}
	f := &finder{page: p, panels: p.findPanels()}
	f.findScales()
	f.checkClipped()
	f.checkOverlaps()
	f.assignMarks()
	f.checkCovered()
	f.checkRooms()
	f.checkUnits()
	slices.Sort(f.faults)
	return slices.Compact(f.faults), nil
}

// finder collects the layout faults of a figure.
type finder struct {
	*page
	panels []*panel
	shades map[string]bool // colours of a scale, which need not be distinguishable
	faults []string
}

func (f *finder) addFault(format string, args ...any) {
	f.faults = append(f.faults, fmt.Sprintf(format, args...))
}

// panel is the area between two axes, with the marks in it.
type panel struct {
	box
	upside bool            // the axis is reversed, because there was no room for it
	lines  map[string]bool // looks of lines and areas
	areas  map[string]bool
	marks  int
}

// findPanels returns the panels of a figure. It looks for the axes, which are a thin black vertical line and a
// horizontal line that starts at its foot.
func (p *page) findPanels() (found []*panel) {
	axis := func(s *stroke) bool {
		return s.straight && !s.filled && s.colour == black && s.width == thin && !s.faint &&
			s.width < max(s.box.width(), s.box.height())
	}
	for i := range p.strokes {
		y := &p.strokes[i]
		if !axis(y) || y.box.width() > 0.1 || y.box.height() <= tickLength {
			continue
		}
		for k := range p.strokes {
			x := &p.strokes[k]
			if axis(x) && x.box.height() < 0.1 && x.box.width() > tickLength && math.Abs(x.x0-y.x0) < 14 &&
				math.Abs(x.y0-y.from[1]) < 14 {
				found = append(found, &panel{box: box{y.x0, y.y0, x.x1, x.y0}, upside: y.to[1] > y.from[1],
					lines: map[string]bool{}, areas: map[string]bool{}})
				break
			}
		}
	}
	return found
}

// tickLength is the maximum length of the ticks on an axis.
const tickLength = 10.0

// findScales finds the colour scales of maps, which are rows of adjacent areas followed by a name.
func (f *finder) findScales() {
	f.shades = map[string]bool{}
	var strip []*stroke
	for i := range f.strokes {
		s := &f.strokes[i]
		if !s.filled {
			continue
		}
		if n := len(strip); n > 0 && (math.Abs(strip[n-1].x1-s.x0) > 0.1 || math.Abs(strip[n-1].y0-s.y0) > 0.1) {
			strip = nil
		}
		if strip = append(strip, s); len(strip) <= mostSeries || !f.hasName(s.box) {
			continue
		}
		for _, one := range strip {
			f.shades[one.colour] = true
		}
	}
}

// checkClipped reports labels that are cut by the edge of the page.
func (f *finder) checkClipped() {
	for _, l := range f.labels {
		if !f.box.expand(1).holds(l.box) {
			f.addFault("label cut by the edge: %q", l.text)
		}
	}
}

// checkOverlaps reports labels that overlap.
func (f *finder) checkOverlaps() {
	for i, l := range f.labels {
		for _, o := range f.labels[:i] {
			if l.expand(-0.5).meets(o.expand(-0.5)) {
				f.addFault("labels over each other: %q and %q", o.text, l.text)
			}
		}
	}
}

// assignMarks assigns the marks that show data to their panels, and reports marks outside the axes.
func (f *finder) assignMarks() {
	for i := range f.strokes {
		s := &f.strokes[i]
		if !s.mark() {
			continue
		}
		middle := box{(s.x0 + s.x1) / 2, (s.y0 + s.y1) / 2, (s.x0 + s.x1) / 2, (s.y0 + s.y1) / 2}
		at := slices.IndexFunc(f.panels, func(p *panel) bool { return p.expand(overhang).holds(middle) })
		switch {
		case at >= 0 && f.panels[at].expand(2*overhang).holds(s.box):
			p := f.panels[at]
			p.marks++
			switch {
			case s.faint || s.colour == black || f.shades[s.colour]:
			case s.filled:
				p.areas[s.colour] = true
			case s.width > 1: // thinner lines are intervals
				p.lines[s.colour+s.dash] = true
			}
		case at < 0 && (f.hasName(s.box) || f.shades[s.colour]):
		default:
			f.addFault("a mark outside of its axes, at %.0f,%.0f", middle.x0, middle.y0)
		}
	}
	for i, p := range f.panels {
		if n := max(len(p.lines), len(p.areas)); n > mostSeries {
			f.addFault("panel %d shows %d series, at most %d can be told apart", i+1, n, mostSeries)
		}
	}
}

// mark reports whether a stroke shows data. Such strokes have a colour or are thicker than the axes.
func (s *stroke) mark() bool {
	grey := len(s.colour) == 7 && s.colour[1:3] == s.colour[3:5] && s.colour[3:5] == s.colour[5:7]
	return !grey || s.colour == black && !s.filled && s.width != thin
}

// hasName reports whether there is a name to the right of a box, as in a legend.
func (f *finder) hasName(b box) bool {
	return slices.ContainsFunc(f.labels, func(l label) bool {
		return l.x0 >= b.x1-overhang && l.x0-b.x1 < 24 && l.y0 < (b.y0+b.y1)/2 && l.y1 > (b.y0+b.y1)/2
	})
}

// checkCovered reports labels that cover data in a panel.
func (f *finder) checkCovered() {
	for _, l := range f.labels {
		for _, p := range f.panels {
			if p.expand(-2).meets(l.box) {
				f.addFault("label over the data: %q", l.text)
			}
		}
	}
}

// checkRooms reports panels that are empty or too small.
func (f *finder) checkRooms() {
	if len(f.panels) == 0 {
		f.addFault("no axes")
	}
	for i, p := range f.panels {
		switch {
		case p.upside:
			f.addFault("panel %d has no room", i+1)
		case p.height() < leastHeight || p.width() < leastWidth || len(f.panels) == 1 && p.height() < f.box.height()/2:
			f.addFault("panel %d is pressed together: %.0f × %.0f of %.0f × %.0f", i+1, p.width(), p.height(),
				f.box.width(), f.box.height())
		}
		if p.marks == 0 {
			f.addFault("panel %d is empty", i+1)
		}
	}
}

// checkUnits reports legends whose names end in different units, because values in different units cannot share an
// axis.
func (f *finder) checkUnits() {
	seen := map[string]bool{}
	for _, l := range f.labels {
		words := strings.Fields(l.text)
		if len(words) < 2 || slices.ContainsFunc(f.panels, func(p *panel) bool { return l.y0 > p.y0 && len(f.panels) == 1 }) {
			continue // labels below the top of the axes are titles of axes
		}
		switch unit := words[len(words)-1]; unit {
		case "%", "ns", "µs", "ms", "s":
			seen[unit] = true
		}
	}
	if len(seen) > 1 {
		f.addFault("%d units on one axis", len(seen))
	}
}
