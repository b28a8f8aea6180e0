package bench

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/twin"
	"github.com/olafctl/olaf/results"
)

// Event is one step of an experiment. The types below are all there are.
type Event interface{ event() }

// RunID names one run: a configuration (a queue at an output rate, or a network) under one seed.
type RunID struct {
	Config int // index into Outline.Configurations
	Index  int // index into Outline.Seeds
}

// Work is what an experiment sets out to do: a *Plan for a testbed, or a *Simulation of networks.
type Work interface {
	// Runs is how many single runs there will be.
	Runs() int
	// Outline tells what can be known before the first one.
	Outline() (*Outline, error)
}

// Outline is what those who follow an experiment need to know of it, whatever it runs on.
type Outline struct {
	Experiment     string
	Config         json.RawMessage // everything that decides the numbers: equal work, equal bytes
	Configurations []Configuration
	Seeds          []uint64
	// Repeats says that the work alone gives the same frames again; of work on a device the device says so.
	Repeats bool
}

// Configuration is one point that is measured under every seed.
type Configuration struct {
	Name    string
	Measure results.Config
}

// ordinal numbers runs seed by seed, so that the first seed's frames stand first.
func (o *Outline) ordinal(id RunID) uint32 { return uint32(id.Index*len(o.Configurations) + id.Config) }

// hash is the SHA-256 of the configuration.
func (o *Outline) hash() string {
	sum := sha256.Sum256(o.Config)
	return hex.EncodeToString(sum[:])
}

type (
	// Started opens the stream: the testbed, if there is one, is programmed.
	Started struct {
		Work       Work
		Device     fpga.Identity // none of a simulation
		TablesHash string
		Repeats    bool // the same work gives the same frames again on this device
	}
	// RunStarted says that a run begins: on a testbed, that its generator was armed.
	RunStarted struct{ Run RunID }
	// Observed carries what reached the parameter server since the last event of this run. The slice is reused after
	// the call.
	Observed struct {
		Run          RunID
		Observations []olaf.Observation
	}
	// Recorded carries the frames that left the card since the last event of this run, for sinks that are Recorders. The
	// slice is reused after the call.
	Recorded struct {
		Run     RunID
		Packets []twin.Packet
	}
	// Framed carries a frame that arrived at a host or at the switch of a loop, or that was captured at an end of a device, for sinks that
	// are Recorders. Its bytes are used
	// again after the call.
	Framed struct {
		Run    RunID
		Packet capture.Packet
	}
	// Captured closes the Framed events of a run that was captured at both ends.
	Captured struct {
		Run  RunID
		Lost int64 // frames that found no room
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
func (Recorded) event()   {}
func (Framed) event()     {}
func (Captured) event()   {}
func (RunDone) event()    {}
func (Finished) event()   {}

// Sink takes every event, in the order of each run; runs that go side by side interleave. It may push back by taking
// its time, and an error ends the experiment. Observed, Recorded and Framed events of different runs come concurrently, so that keeping frames
// does not make cores wait for each other; all other events come one at a time.
type Sink interface {
	Event(Event) error
}

// Progress is the newest state of an experiment, for those who look when they please: a progress bar, a dashboard.
type Progress struct {
	Work     Work // nil before the start
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

// add gives the stream another sink; nothing must have been published yet.
func (s *Stream) add(sink Sink) { s.sinks = append(s.sinks, sink) }

// Progress is the newest state; it never waits.
func (s *Stream) Progress() Progress { return *s.board.Load() }

// Selective is a Sink that takes the frames of some runs only; whoever measures need not gather the others for it.
type Selective interface {
	Sink
	Wants(RunID) bool
}

// Recorder is a Sink that takes the bytes of the frames of some runs; only a device that Records hands them out.
type Recorder interface {
	Sink
	Records(RunID) bool
}

// recorders says whether anybody takes frames of any run, and records of one.
func (s *Stream) recorders() bool {
	return slices.ContainsFunc(s.sinks, func(sink Sink) bool { _, ok := sink.(Recorder); return ok })
}

func (s *Stream) records(id RunID) bool {
	return slices.ContainsFunc(s.sinks, func(sink Sink) bool {
		r, ok := sink.(Recorder)
		return ok && r.Records(id)
	})
}

// lossless says whether anybody takes every event.
func (s *Stream) lossless() bool { return len(s.sinks) > 0 }

// wants says whether anybody takes the frames of a run.
func (s *Stream) wants(id RunID) bool {
	return slices.ContainsFunc(s.sinks, func(sink Sink) bool {
		one, selective := sink.(Selective)
		return !selective || one.Wants(id)
	})
}

// publish hands e to every sink and updates the board. It is safe for concurrent use.
func (s *Stream) publish(e Event) error {
	switch e.(type) {
	case Observed, Recorded, Framed:
	default:
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
		s.state.Work, s.state.Device, s.state.Total = e.Work, e.Device, e.Work.Runs()
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

// Rows is a sink that knows at any time what the runs so far came to. The zero Rows is ready.
type Rows struct {
	plan   *Plan
	runs   [][]results.Run
	newest atomic.Pointer[[]results.Row]
}

// Newest is a row for each configuration of which a run is done; it never waits, and nobody changes it any more.
func (r *Rows) Newest() []results.Row {
	if rows := r.newest.Load(); rows != nil {
		return *rows
	}
	return nil
}

// Wants says that numbers are enough.
func (r *Rows) Wants(RunID) bool { return false }

// Event implements Sink.
func (r *Rows) Event(e Event) error {
	switch e := e.(type) {
	case Started:
		if plan, ok := e.Work.(*Plan); ok {
			r.plan, r.runs = plan, make([][]results.Run, len(plan.Configs))
		}
	case RunDone:
		if r.plan == nil {
			return nil
		}
		r.runs[e.Run.Config] = append(r.runs[e.Run.Config], *e.Result)
		var rows []results.Row
		for i, runs := range r.runs {
			if len(runs) > 0 {
				rows = append(rows, results.Summarise(r.plan.Declaration(&r.plan.Configs[i]), runs))
			}
		}
		r.newest.Store(&rows)
	}
	return nil
}
