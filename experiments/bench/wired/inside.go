package wired

import (
	"sync"

	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/fpga/program"
)

// Where workers go on without waiting for all, nobody knows beforehand what a sum will hold, and no frame says it. It is noted in this
// process instead: who sends a frame leaves its trace, who takes it finds it, as frames of a way without loss come in the order in which they
// left; and the switch notes which gradients it presented to the program. Values prove it: a sum has to hold those of the gradients that its
// trace names.

// way is the path of frames from one node to another.
type way struct{ from, to int }

// Gradient is a worker's vector, by the number of the host.
type Gradient struct {
	Host   int
	Vector uint32
}

// Listener is a job's Observer that is told what a sum holds, when the switch has made it: of which job it is, and its program.Trace.Inside.
type Listener interface {
	closedloop.Observer
	Summed(job int, inside uint64, all []Gradient)
}

// marked names what has a mark: program.Trace.Inside, within a job.
type marked struct {
	job    int
	inside uint64
}

// place is where the switch adds up.
type place struct {
	job int
	seg uint64
}

// insides is what is known of frames under way, and of sums.
type insides struct {
	mu       sync.Mutex
	ways     map[way][]program.Trace
	made     map[marked][]Gradient // a worker's alone, and those of sums
	came     map[place][]marked    // since the last sum of there
	unnoted  int                   // frames that came and that nobody sent
	unproved int                   // sums that are not of what came to their place
}

func newInsides() *insides {
	return &insides{ways: map[way][]program.Trace{}, made: map[marked][]Gradient{}, came: map[place][]marked{}}
}

// compute notes a gradient before it is sent.
func (s *insides) compute(m marked, g Gradient) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made[m] = []Gradient{g}
}

// leave notes what a frame does not say, before it leaves.
func (s *insides) leave(w way, t *program.Trace) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ways[w] = append(s.ways[w], *t)
}

// take finds what was noted of the next frame of a way.
func (s *insides) take(w way) (t program.Trace) {
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

// come notes what the program is given at a place.
func (s *insides) come(at place, inside uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.came[at] = append(s.came[at], marked{at.job, inside})
}

// sum notes that a sum leaves a place, as often as it does, and says the first time what it holds.
func (s *insides) sum(at place, inside uint64) []Gradient {
	s.mu.Lock()
	defer s.mu.Unlock()
	var marks uint64
	var all []Gradient
	for _, m := range s.came[at] {
		marks += m.inside
		all = append(all, s.made[m]...)
	}
	key := marked{at.job, inside}
	switch {
	case len(all) > 0 && marks == inside:
		s.made[key], s.came[at] = all, s.came[at][:0]
		return all
	case s.made[key] == nil:
		s.unproved++
	}
	return nil
}

// of are the gradients that have a mark; nil of one that nobody knows.
func (s *insides) of(m marked) []Gradient {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.made[m]
}

// holds says whether a packet's values are those of gradients, added up.
func (s *values) holds(lanes []uint32, first int, all []Gradient) bool {
	if len(all) == 0 {
		return false
	}
	for i, have := range lanes {
		var n int32
		for _, g := range all {
			n += s.at(g.Host, g.Vector, first+i)
		}
		if have != s.encode(n) {
			return false
		}
	}
	return true
}
