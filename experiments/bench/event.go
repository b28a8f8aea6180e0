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

// Event is one step of an experiment. The types below are the only ones.
type Event interface{ event() }

// RunID identifies one run: a configuration (a queue at an output rate, or a network) under one seed.
type RunID struct {
	Config int // index into Outline.Configurations
	Index  int // index into Outline.Seeds
}

// Work is the work of an experiment: a *Plan for a testbed, or a *Simulation of networks.
type Work interface {
	// RunCount returns the number of single runs.
	RunCount() int
	// Outline returns what is known before the first run.
	Outline() (*Outline, error)
}

// Outline describes an experiment to the consumers of its events.
type Outline struct {
	Experiment     string
	Config         json.RawMessage // everything that can affect the numbers: equal work has equal bytes
	Configurations []Configuration
	Seeds          []uint64
	// Repeats is set if the work alone determines its frames; for work on a device, the device decides.
	Repeats bool
}

// Configuration is one point that is measured under every seed.
type Configuration struct {
	Name    string
	Measure results.Config
}

// ordinalOf numbers runs seed by seed, so that the first seed's frames come first.
func (o *Outline) ordinalOf(id RunID) uint32 {
	return uint32(id.Index*len(o.Configurations) + id.Config)
}

// hashConfig returns the SHA-256 of the configuration.
func (o *Outline) hashConfig() string {
	sum := sha256.Sum256(o.Config)
	return hex.EncodeToString(sum[:])
}

type (
	// Started opens the stream. The testbed, if any, is programmed.
	Started struct {
		Work       Work
		Device     fpga.Identity // empty for a simulation
		TablesHash string
		Repeats    bool // the same work gives the same frames on this device
	}
	// RunStarted reports that a run begins; on a testbed, its generator is armed.
	RunStarted struct{ Run RunID }
	// Observed contains what reached the parameter server since the last event of this run. The slice is reused after
	// the call.
	Observed struct {
		Run          RunID
		Observations []olaf.Observation
	}
	// Recorded contains the frames that left the card since the last event of this run, for Recorders. The slice is
	// reused after the call.
	Recorded struct {
		Run     RunID
		Packets []twin.Packet
	}
	// Framed contains a frame that arrived at a host or the switch of a closed loop, or that was captured at an end of
	// a device, for Recorders. Its bytes are reused after the call.
	Framed struct {
		Run    RunID
		Packet capture.Packet
	}
	// Captured closes the Framed events of a run that was captured at both ends.
	Captured struct {
		Run  RunID
		Lost int64 // frames that found no room in the buffer
	}
	// RunDone closes a run, valid or not.
	RunDone struct {
		Run    RunID
		Result *results.Run
	}
	// Finished closes the stream. Err is nil after a complete run; Partial is set if runs are missing.
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

// Sink receives every event, in order within each run; events of parallel runs interleave. A slow sink delays the
// experiment, and an error ends it. Observed, Recorded and Framed events of different runs are delivered concurrently,
// so that storing frames does not make cores wait for each other; all other events come one at a time.
type Sink interface {
	Event(Event) error
}

// Progress is the newest state of an experiment, for readers that poll it: a progress bar, a dashboard.
type Progress struct {
	Work     Work // nil before the start
	Device   fpga.Identity
	Done     int // finished runs, valid or not
	Total    int
	Invalid  int
	Last     RunID
	Finished bool
	Err      error
}

// Stream distributes the events of one experiment: to sinks, which lose nothing, and to a board with the newest
// Progress, which can never slow a run.
type Stream struct {
	mu    sync.Mutex
	sinks []Sink
	state Progress
	board atomic.Pointer[Progress]
}

// NewStream returns a stream for the given sinks.
func NewStream(sinks ...Sink) *Stream {
	s := &Stream{sinks: sinks}
	s.board.Store(&Progress{})
	return s
}

// addSink adds a sink; nothing must have been published yet.
func (s *Stream) addSink(sink Sink) { s.sinks = append(s.sinks, sink) }

// Progress returns the newest state without waiting.
func (s *Stream) Progress() Progress { return *s.board.Load() }

// Selective is a Sink that needs the frames of some runs only, so that the others need not be collected for it.
type Selective interface {
	Sink
	Wants(RunID) bool
}

// Recorder is a Sink that needs the bytes of the frames of some runs; only a device that Records provides them.
type Recorder interface {
	Sink
	Records(RunID) bool
}

// hasRecorders reports whether any sink is a Recorder, records whether one needs the frames of a run.
func (s *Stream) hasRecorders() bool {
	return slices.ContainsFunc(s.sinks, func(sink Sink) bool { _, ok := sink.(Recorder); return ok })
}

func (s *Stream) recordsRun(id RunID) bool {
	return slices.ContainsFunc(s.sinks, func(sink Sink) bool {
		r, ok := sink.(Recorder)
		return ok && r.Records(id)
	})
}

// hasSinks reports whether there are sinks.
func (s *Stream) hasSinks() bool { return len(s.sinks) > 0 }

// wantsRun reports whether any sink needs the frames of a run.
func (s *Stream) wantsRun(id RunID) bool {
	return slices.ContainsFunc(s.sinks, func(sink Sink) bool {
		one, selective := sink.(Selective)
		return !selective || one.Wants(id)
	})
}

// publishEvent passes e to every sink and updates the board. It is safe for concurrent use.
func (s *Stream) publishEvent(e Event) error {
	switch e.(type) {
	case Observed, Recorded, Framed:
	default:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.updateBoard(e)
	}
	for _, sink := range s.sinks {
		if err := sink.Event(e); err != nil {
			return err
		}
	}
	return nil
}

// updateBoard updates the board. Observations do not change it, so the hot path copies nothing.
func (s *Stream) updateBoard(e Event) {
	switch e := e.(type) {
	case Started:
		s.state.Work, s.state.Device, s.state.Total = e.Work, e.Device, e.Work.RunCount()
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

// Rows is a sink that provides the rows of all runs so far. The zero Rows is ready for use.
type Rows struct {
	plan   *Plan
	runs   [][]results.Run
	newest atomic.Pointer[[]results.Row]
}

// NewestRows returns a row for each configuration with a finished run, without waiting. The rows do not change.
func (r *Rows) NewestRows() []results.Row {
	if rows := r.newest.Load(); rows != nil {
		return *rows
	}
	return nil
}

// Wants returns false, because numbers are enough.
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
