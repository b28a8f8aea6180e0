package endpoint

import (
	"slices"

	"github.com/olafctl/olaf/fpga/program"
)

// gather collects the packets of a sum.
type gather struct {
	layout Layout
	have   []bool
	left   int // number of missing packets
	low    int // first missing packet
	traces []program.Trace
	mixed  bool     // packets contain different contributions
	first  uint64   // contributions of one packet
	values []uint32 // values in the packets so far; nil until a packet carries values
}

func newGather(l Layout) gather {
	g := gather{layout: l, have: make([]bool, l.Packets()), traces: make([]program.Trace, l.Packets())}
	g.restart()
	return g
}

// restart begins the next sum. Arriving packets overwrite the values of the previous sum.
func (g *gather) restart() {
	clear(g.have)
	g.left, g.low, g.mixed = len(g.have), 0, false
}

// fit adapts g to the layout of a sum. It must be called before the sum's first packet.
func (g *gather) fit(l Layout) {
	if g.layout == l {
		return
	}
	n := l.Packets()
	if g.layout = l; cap(g.have) < n {
		g.have, g.traces = make([]bool, n), make([]program.Trace, n)
	}
	if g.have, g.traces = g.have[:n], g.traces[:n]; g.values != nil {
		g.values = slices.Grow(g.values[:0], l.Values)[:l.Values]
	}
	g.restart()
}

// take adds packet i and reports whether the packet was missing before.
func (g *gather) take(i int, t *program.Trace, lanes []uint32) bool {
	if i < 0 || i >= len(g.have) || g.have[i] {
		return false
	}
	if lanes != nil {
		g.keep(i, lanes)
	}
	g.put(i, t)
	return true
}

func (g *gather) put(i int, t *program.Trace) {
	g.mixed = g.mixed || g.left < len(g.have) && t.Inside != g.first
	g.first = t.Inside
	g.traces[i] = *t
	g.have[i] = true
	g.left--
	for g.low < len(g.have) && g.have[g.low] {
		g.low++
	}
}

func (g *gather) keep(i int, lanes []uint32) {
	if g.values == nil {
		g.values = make([]uint32, g.layout.Values)
	}
	copy(g.layout.cut(g.values, i), lanes)
}

// zero gives up on packet i and sets its values to 0.
func (g *gather) zero(i int) {
	if g.values != nil {
		clear(g.layout.cut(g.values, i))
	}
	g.put(i, &program.Trace{})
}

func (g *gather) isWhole() bool { return g.left == 0 }

// hasAll reports whether g has all packets of a vector of the given length, which is 0 if unknown.
func (g *gather) hasAll(length int) bool {
	l := Layout{Values: length, PerPacket: g.layout.PerPacket}
	return length > 0 && g.low >= l.Packets()
}
