package wired

import (
	"slices"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// mark returns the mark of a worker's vector in job 1, whose hosts are numbered from 10 on.
func mark(worker int, vector uint32) (marked, Gradient) {
	return marked{1, program.ContributionMark(olaf.WorkerID(worker), vector)}, Gradient{10 + worker, vector}
}

// TestSumsAreIdentifiedByGradients checks that a sum is identified by the gradients that arrived at its place since the
// last one, on every port that it leaves by, and that a wrong one is detected.
func TestSumsAreIdentifiedByGradients(t *testing.T) {
	s, at, other := newInsides(), place{1, 4}, place{1, 5}
	come := func(at place, worker int, vector uint32) uint64 {
		m, g := mark(worker, vector)
		s.recordGradient(m, g)
		s.recordArrival(at, m.inside)
		return m.inside
	}
	ab := come(at, 0, 7) + come(at, 1, 3)
	elsewhere := come(other, 2, 1)
	for port := range 3 {
		if got := s.recordSum(at, ab); (got == nil) != (port > 0) {
			t.Errorf("port %d: %v", port, got)
		}
	}
	if got := s.gradientsOf(marked{1, ab}); s.unproved != 0 || !slices.Equal(got, []Gradient{{10, 7}, {11, 3}}) {
		t.Errorf("%v, %d unproved", got, s.unproved)
	}
	if got := s.gradientsOf(marked{0, ab}); got != nil {
		t.Errorf("another job's sum holds %v", got)
	}
	alone := come(at, 2, 8)
	s.recordSum(at, alone) // a single gradient: already known
	if s.recordSum(at, alone+1); s.unproved != 1 {
		t.Errorf("%d unproved, want 1", s.unproved)
	}
	s.recordSum(at, ab+elsewhere)
	if s.recordSum(other, elsewhere); s.unproved != 2 || len(s.came[other]) != 0 || len(s.came[at]) != 0 {
		t.Errorf("%d unproved, want 2; left are %v and %v", s.unproved, s.came[at], s.came[other])
	}
}

// TestTracesComeInOrder checks that traces are found in the order of sending, and that an extra frame is detected.
func TestTracesComeInOrder(t *testing.T) {
	s, up, down := newInsides(), way{0, 9}, way{9, 0}
	for i := range uint64(3) {
		s.recordFrame(up, &program.Trace{Inside: i, NewestNS: 100 + i})
	}
	s.recordFrame(down, &program.Trace{Inside: 50})
	for i := range uint64(3) {
		if got := s.takeTrace(up); got.Inside != i || got.NewestNS != 100+i {
			t.Errorf("frame %d has %+v", i, got)
		}
	}
	if got := s.takeTrace(down); got.Inside != 50 || s.unnoted != 0 {
		t.Errorf("%+v, %d not noted", got, s.unnoted)
	}
	if got := s.takeTrace(up); got != (program.Trace{}) || s.unnoted != 1 {
		t.Errorf("%+v, %d not noted, want 1", got, s.unnoted)
	}
}

// TestPacketValuesShowGradients checks that the values of a packet show whether it contains the expected gradients.
func TestPacketValuesShowGradients(t *testing.T) {
	const most, first, count = 40, 100, 16 // more gradients than workers
	for _, a := range []program.Arithmetic{program.Float32, program.Wrapping} {
		v := newValues(5, 3, most, 200, a)
		var all []Gradient
		for i := range most {
			all = append(all, Gradient{i % 3, uint32(i / 3)})
		}
		lanes := make([]uint32, count)
		for i := range lanes {
			var n int32
			for _, g := range all {
				n += v.valueAt(g.Host, g.Vector, first+i)
			}
			if n >= 1<<24 || n <= -1<<24 {
				t.Fatalf("a sum of %d is %d, which no float32 holds", most, n)
			}
			lanes[i] = v.encode(n)
		}
		if !v.checkPacket(lanes, first, all) {
			t.Errorf("%v: a sum does not hold what was added", a)
		}
		if v.checkPacket(lanes, first+1, all) || v.checkPacket(lanes, first, all[1:]) || v.checkPacket(lanes, first, nil) {
			t.Errorf("%v: a sum holds what was not added", a)
		}
		if lanes[count-1]++; v.checkPacket(lanes, first, all) {
			t.Errorf("%v: a wrong value is taken", a)
		}
	}
}
