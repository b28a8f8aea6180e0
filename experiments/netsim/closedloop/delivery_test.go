package closedloop

import (
	"slices"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// TestSumRemovesGradientsInFlight checks that the gradients in a packet are removed from those in flight: by name if
// all or one are in it, and otherwise those sent just before the newest.
func TestSumRemovesGradientsInFlight(t *testing.T) {
	sent := func(gens ...uint64) (out []olaf.Contributor) {
		for i, g := range gens {
			out = append(out, olaf.Contributor{GenNS: g, Worker: olaf.WorkerID(i)})
		}
		return out
	}
	gens := func(of []olaf.Contributor) (g []uint64) {
		for _, c := range of {
			g = append(g, c.GenNS)
		}
		return g
	}
	for name, c := range map[string]struct {
		out          []uint64
		vectors      uint32
		newest       uint64
		inside, left []uint64
		of           uint64 // the newest stamp in the packet
		n            int
	}{
		"nobody":                  {nil, 3, 5, nil, nil, 0, 0},
		"nothing":                 {[]uint64{1, 2}, 0, 2, nil, []uint64{1, 2}, 0, 0},
		"one":                     {[]uint64{1, 2, 3}, 1, 2, []uint64{2}, []uint64{1, 3}, 2, 1},
		"one that is unknown":     {[]uint64{1, 2, 3}, 1, 9, []uint64{1}, []uint64{2, 3}, 1, 1},
		"all, in their own order": {[]uint64{3, 1, 2}, 3, 3, []uint64{1, 2, 3}, nil, 3, 3},
		"more than there are":     {[]uint64{2, 1}, 9, 2, []uint64{1, 2}, nil, 2, 2},
		"two of the middle":       {[]uint64{1, 2, 3, 4}, 2, 3, nil, []uint64{1, 4}, 3, 2},
		"two, the first newest":   {[]uint64{4, 1, 2}, 2, 4, nil, []uint64{2}, 4, 2},
		"three up to the last":    {[]uint64{1, 2, 3, 4}, 3, 4, nil, []uint64{1}, 4, 3},
	} {
		d := Delivery{Out: sent(c.out...)}
		inside, newest, n := d.TakeGradients(nil, &program.Packet{Trace: program.Trace{Vectors: c.vectors, NewestNS: c.newest}})
		if !slices.Equal(gens(inside), c.inside) || !slices.Equal(gens(d.Out), c.left) || newest.GenNS != c.of || n != c.n {
			t.Errorf("%s: %v inside, %v left, newest %d of %d; want %+v", name, gens(inside), gens(d.Out), newest.GenNS, n, c)
		}
	}
}

// TestPacketStartsOrRepeatsSum checks that a packet belongs to the current sum, starts the next one, or repeats a
// finished one.
func TestPacketStartsOrRepeatsSum(t *testing.T) {
	d := Delivery{inside: 4, seen: []uint32{1, 0, 1}, left: 1, newest: 10}
	for _, c := range []struct {
		newest uint64
		inside uint64
		want   bool
		left   int
	}{{9, 4, false, 1}, {10, 5, false, 1}, {11, 4, true, 1}, {11, 6, true, 3}, {12, 6, true, 3}} {
		got := d.startsSum(&program.Packet{Trace: program.Trace{NewestNS: c.newest, Inside: c.inside}})
		if got != c.want || d.left != c.left {
			t.Errorf("%+v: %t, %d left of %v", c, got, d.left, d.seen)
		}
	}
	if !slices.Equal(d.seen, []uint32{0, 0, 0}) || d.inside != 6 {
		t.Errorf("%+v", d)
	}
}
