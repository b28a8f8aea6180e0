package bench

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/frame"
	"github.com/olafctl/olaf/fpga/program"
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
	// Framed passes a frame to Recorders. It arrived at a host or at the switch of a closed loop, or it was captured at
	// either end of a device. Its bytes are reused after the call.
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

// Wants returns false, because Rows needs only the runs' numbers, not their updates.
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

// FrameRecorder provides every frame that leaves the card while it records. Cards of a device that Records implement
// it.
type FrameRecorder interface {
	// Record turns recording on or off, from the next configuration of the queue.
	Record(on bool)
	// DrainPackets appends the packets that left since the last call to buf; gradients are valid until the next.
	DrainPackets(buf []twin.Packet) []twin.Packet
}

// Recording is a sink that writes a capture file of the first run: the queue under test at its first output rate, in
// its system's frame format. The file contains the frames that reached the parameter server or the workers or, in a
// loop, all arrivals. It appears on Commit.
type Recording struct {
	file   *capture.File
	format *frame.Format // nil for OLAF's
	buffer []byte
	lanes  []uint32
	ends   []string // captured ends; nil if the device provides the frames
	lost   int64    // at the ends
}

// Record begins a capture file of the first run in its system's frames. An existing file gives capture.ErrExists unless
// force is set.
func (s *Spec) Record(path string, force bool) (*Recording, error) {
	format := s.Frame()
	if s.Loop != nil {
		if format == nil {
			return nil, fmt.Errorf("%w: %s has no frame format that could be captured", ErrSpec, s.Queue)
		}
		found, err := s.findSystem(s.Queue)
		if err == nil {
			err = s.checkNumbers(found)
		}
		if err != nil {
			return nil, err
		}
	}
	r := &Recording{format: format, buffer: make([]byte, olaf.MaxFrame)}
	var err error
	if format == nil {
		r.file, err = capture.Create(path, force, 0)
		return r, err
	}
	from := capture.Interface{
		Name: format.Name, SnapBytes: int(olaf.MaxFrame),
		Comment: format.Title + "'s own frames; the run's wire took OLAF's, whose headers are longer",
	}
	if s.Loop != nil {
		from.SnapBytes, from.Comment = closedloop.KeptBytes(false),
			format.Title+"'s frames as they arrive at the switch and at hosts, cut behind their headers"
	}
	r.file, err = capture.CreateFrom(path, force, from)
	return r, err
}

// endBytes is the length stored per frame at the ends: the whole frame, because gradients are added on the way.
var endBytes = int(olaf.MaxFrame)

// RecordEnds begins a capture file of the first run at both ends of a device: what workers sent and what reached the
// server, unchanged. Each end is an interface of the file, which needs a format with several.
func RecordEnds(path string, force bool, names ...string) (*Recording, error) {
	if capture.FormatOf(path) != capture.PCAPNG {
		return nil, fmt.Errorf("%w: %s holds one interface, and both ends are captured; write a .pcapng", ErrSpec, path)
	}
	from, oneKernel := make([]capture.Interface, len(names)), int64(0)
	for i, name := range names {
		from[i] = capture.Interface{Name: name, SnapBytes: endBytes, Comment: "stamped by the kernel",
			ClockErrorNS: &oneKernel}
	}
	file, err := capture.CreateFrom(path, force, from...)
	return &Recording{file: file, ends: names}, err
}

// Records reports whether a run is the first one.
func (r *Recording) Records(id RunID) bool { return id == RunID{} }

// Wants returns false, because a Recording does not use observations.
func (r *Recording) Wants(RunID) bool { return false }

// Event writes frames during the run, so that memory stays constant.
func (r *Recording) Event(e Event) error {
	switch e := e.(type) {
	case Framed:
		return r.file.WritePacket(&e.Packet)
	case Captured:
		r.lost = e.Lost
		r.file.SetDropped(e.Lost)
	case Recorded:
		for i := range e.Packets {
			if err := r.writePacket(&e.Packets[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// writePacket stores a merged update or bypassed frame that reached the parameter server, or a copy that reached a
// worker. Its contributors become the packet's comment.
func (r *Recording) writePacket(p *twin.Packet) error {
	if p.Kind == twin.Ack {
		return nil
	}
	n, err := r.encodeFrame(p)
	if err != nil {
		return err
	}
	return r.file.WritePacket(&capture.Packet{UnixNS: p.At.NS(), Data: r.buffer[:n], Wire: n,
		Comment: formatInside(p.Contributors)})
}

// encodeFrame writes the frame of an update. A frame that bypassed the queue keeps its own format.
func (r *Recording) encodeFrame(p *twin.Packet) (n int, err error) {
	if r.format == nil || p.Kind == twin.Bypassed && p.Format == 0 {
		return olaf.EncodeUpdate(r.buffer, copyAddresses(&p.Addresses), &p.Update, p.Lanes)
	}
	r.lanes = r.lanes[:0]
	for _, v := range p.Lanes {
		r.lanes = append(r.lanes, uint32(v))
	}
	packet := program.Packet{Kind: program.Data, Job: p.Update.Cluster, Seg: p.Seg, Worker: p.Update.Worker,
		Count: p.Update.Count, Lanes: p.Update.Lanes}
	if p.Kind == twin.Answered {
		packet.Kind = program.Result
	}
	return r.format.Encode(r.buffer, &frame.Outer{Addresses: *copyAddresses(&p.Addresses)}, &packet, r.lanes)
}

// formatInside formats the contributors of a merged frame.
func formatInside(inside []olaf.Contributor) string {
	if len(inside) < 2 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "merged %d:", len(inside))
	for i := range inside {
		fmt.Fprintf(&b, " w%d", inside[i].Worker)
	}
	return b.String()
}

// Frames returns the number of frames written.
func (r *Recording) Frames() uint64 { return r.file.Packets() }

// About returns the number of frames, per end.
func (r *Recording) About() string {
	text := olaf.Plural(r.Frames(), "frame")
	for i, name := range r.ends {
		text += fmt.Sprintf(", %d at %s", r.file.PacketsOf(i), name)
	}
	if r.lost > 0 {
		text += fmt.Sprintf(", and %d that found no room are not there", r.lost)
	}
	return text
}

// Commit makes the file appear.
func (r *Recording) Commit() error { return r.file.Commit() }

// Abandon removes the file, unless it was committed.
func (r *Recording) Abandon() error { return r.file.Abandon() }

func copyAddresses(a *twin.Addresses) *olaf.Addresses {
	return &olaf.Addresses{SrcMAC: a.SourceMAC, DstMAC: a.DestMAC, SrcIP: a.SourceIP, DstIP: a.DestIP,
		SrcPort: a.SourcePort}
}
