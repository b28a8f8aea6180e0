package experiments

import (
	"sync"
	"sync/atomic"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/results"
)

// Event is one step of an experiment. The types below are all there are.
type Event interface{ event() }

// RunID names one run of a plan: a configuration (a queue at an output rate) under one seed.
type RunID struct {
	Config int // index into Plan.Configs
	Index  int // index into Plan.Seeds
}

type (
	// Started opens the stream: the testbed is programmed.
	Started struct {
		Plan       *Plan
		Device     fpga.Identity
		TablesHash string
	}
	// RunStarted says that a run's generator was armed.
	RunStarted struct{ Run RunID }
	// Observed carries what reached the parameter server since the last event of this run. The slice is reused after
	// the call.
	Observed struct {
		Run          RunID
		Observations []olaf.Observation
	}
	// RunDone closes a run, valid or not.
	RunDone struct {
		Run    RunID
		Result *results.Run
	}
	// Finished closes the stream. Err is nil after a whole run; Partial says that runs are missing.
	Finished struct {
		Err     error
		Partial bool
	}
)

func (Started) event()    {}
func (RunStarted) event() {}
func (Observed) event()   {}
func (RunDone) event()    {}
func (Finished) event()   {}

// Sink takes every event, in the order of each run; runs that go side by side interleave. It may push back by taking
// its time, and an error ends the experiment. Observed events of different runs come concurrently, so that keeping frames
// does not make cores wait for each other; all other events come one at a time.
type Sink interface {
	Event(Event) error
}

// Progress is the newest state of an experiment, for those who look when they please: a progress bar, a dashboard.
type Progress struct {
	Plan     *Plan // nil before the start
	Device   fpga.Identity
	Done     int // runs finished, valid or not
	Total    int
	Invalid  int
	Last     RunID
	Finished bool
	Err      error
}

// Stream fans the events of one experiment out: to sinks, which lose nothing, and to a board with the newest Progress,
// which can never slow a run.
type Stream struct {
	mu    sync.Mutex
	sinks []Sink
	state Progress
	board atomic.Pointer[Progress]
}

// NewStream makes a stream for the given sinks.
func NewStream(sinks ...Sink) *Stream {
	s := &Stream{sinks: sinks}
	s.board.Store(&Progress{})
	return s
}

// Progress is the newest state; it never waits.
func (s *Stream) Progress() Progress { return *s.board.Load() }

// lossless says whether anybody takes every event.
func (s *Stream) lossless() bool { return len(s.sinks) > 0 }

// publish hands e to every sink and updates the board. It is safe for concurrent use.
func (s *Stream) publish(e Event) error {
	if _, frames := e.(Observed); !frames {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.note(e)
	}
	for _, sink := range s.sinks {
		if err := sink.Event(e); err != nil {
			return err
		}
	}
	return nil
}

// note brings the board up to date. Observations do not change it, so that the hot path publishes no copies.
func (s *Stream) note(e Event) {
	switch e := e.(type) {
	case Started:
		s.state.Plan, s.state.Device, s.state.Total = e.Plan, e.Device, e.Plan.Runs()
	case RunStarted:
		s.state.Last = e.Run
	case RunDone:
		s.state.Done++
		if !e.Result.Valid() {
			s.state.Invalid++
		}
	case Finished:
		s.state.Finished, s.state.Err = true, e.Err
	default:
		return
	}
	snapshot := s.state
	s.board.Store(&snapshot)
}
