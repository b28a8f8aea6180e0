package wired

import (
	"sync"

	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/fpga/program"
)

// The contents of asynchronous workers' sums are neither known in advance nor in the frames. They are recorded in this
// process instead. The sender of a frame stores its trace, and the receiver finds it, because frames arrive in order on
// a lossless path. The switch records which gradients it passes to the program. The values verify this: a sum must
// equal the sum of the gradients in its trace.

// way is the path that frames take from one node to another.
type way struct{ from, to int }

// Gradient identifies one gradient by the number of the host and of the vector.
type Gradient struct {
	Host   int
	Vector uint32
}

// Listener is an Observer that is also notified when the switch makes a sum. OnSum receives the job, the sum's
// program.Trace.Inside and the gradients in the sum.
type Listener interface {
	closedloop.Observer
	OnSum(job int, inside uint64, all []Gradient)
}

// marked identifies a sum or a gradient by its job and its program.Trace.Inside.
type marked struct {
	job    int
	inside uint64
}

// place is a position in the switch's memory at which the packets of a job are added.
type place struct {
	job int
	seg uint64
}

// insides records which gradients the sums and the frames in flight contain.
type insides struct {
	mu        sync.Mutex
	ways      map[way][]program.Trace
	gradients map[marked][]Gradient // a single gradient, or those of a sum
	came      map[place][]marked    // since the place's last sum
	unnoted   int                   // frames that arrived without a recorded sender
	unproved  int                   // sums that do not match the arrivals at their place
}

func newInsides() *insides {
	return &insides{ways: map[way][]program.Trace{}, gradients: map[marked][]Gradient{}, came: map[place][]marked{}}
}

// recordGradient records the mark of a gradient before the gradient is sent.
func (s *insides) recordGradient(m marked, g Gradient) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gradients[m] = []Gradient{g}
}

// recordFrame records the trace of a frame before the frame is sent.
func (s *insides) recordFrame(w way, t *program.Trace) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ways[w] = append(s.ways[w], *t)
}

// takeTrace removes and returns the recorded trace of the next frame that arrives on a path.
func (s *insides) takeTrace(w way) (t program.Trace) {
	s.mu.Lock()
	defer s.mu.Unlock()
	under := s.ways[w]
	if len(under) == 0 {
		s.unnoted++
		return t
	}
	t = under[0]
	s.ways[w] = append(under[:0], under[1:]...)
	return t
}

// recordArrival records that the switch program received a frame for a place.
func (s *insides) recordArrival(at place, inside uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.came[at] = append(s.came[at], marked{at.job, inside})
}

// recordSum records a sum that the switch sends from a place. It returns the gradients in the sum when the sum is sent
// for the first time. It returns nil for repetitions, and for sums that do not match the arrivals.
func (s *insides) recordSum(at place, inside uint64) []Gradient {
	s.mu.Lock()
	defer s.mu.Unlock()
	var marks uint64
	var all []Gradient
	for _, m := range s.came[at] {
		marks += m.inside
		all = append(all, s.gradients[m]...)
	}
	key := marked{at.job, inside}
	switch {
	case len(all) > 0 && marks == inside:
		s.gradients[key], s.came[at] = all, s.came[at][:0]
		return all
	case s.gradients[key] == nil:
		s.unproved++
	}
	return nil
}

// gradientsOf returns the gradients that a mark stands for, or nil if the mark is unknown.
func (s *insides) gradientsOf(m marked) []Gradient {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gradients[m]
}

// checkPacket reports whether the values in a packet are the sum of the given gradients.
func (s *values) checkPacket(lanes []uint32, first int, all []Gradient) bool {
	if len(all) == 0 {
		return false
	}
	for i, have := range lanes {
		var n int32
		for _, g := range all {
			n += s.valueAt(g.Host, g.Vector, first+i)
		}
		if have != s.encode(n) {
			return false
		}
	}
	return true
}
