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

// Event is one step of an experiment. Only the types below implement it.
type Event interface{ event() }

// RunID identifies one run: a configuration (a queue at an output rate, or a network) under one seed.
type RunID struct {
	Config int // index into Outline.Configurations
	Index  int // index into Outline.Seeds
}

// Work is the work that an experiment does: a *Plan for a testbed, or a *Simulation of networks.
type Work interface {
	// RunCount returns the number of single runs.
	RunCount() int
	// Outline returns the information that is known before the first run.
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

// Configuration is one measured setting of an experiment. It has one run per seed.
type Configuration struct {
	Name    string
	Measure results.Config
}

// ordinalOf returns the position of a run. Runs are numbered seed by seed, so that the first seed's frames come first.
func (o *Outline) ordinalOf(id RunID) uint32 {
	return uint32(id.Index*len(o.Configurations) + id.Config)
}

// hashConfig returns the SHA-256 of the configuration.
func (o *Outline) hashConfig() string {
	sum := sha256.Sum256(o.Config)
	return hex.EncodeToString(sum[:])
}

type (
	// Started is the first event of an experiment. If there is a testbed, it has already been programmed.
	Started struct {
		Work       Work
		Device     fpga.Identity // empty for a simulation
		TablesHash string
		Repeats    bool // the same work gives the same frames on this device
	}
	// RunStarted reports that a run begins. If it runs on a testbed, the generator is armed.
	RunStarted struct{ Run RunID }
	// Observed contains the updates that reached the parameter server since the last Observed event of this run. The
	// slice is reused after the call.
	Observed struct {
		Run          RunID
		Observations []olaf.Observation
	}
	// Recorded contains the frames that left the card since the last Recorded event of this run. Only Recorders need
	// it. The slice is reused after the call.
	Recorded struct {
		Run     RunID
		Packets []twin.Packet
	}
	// Framed passes a frame to Recorders. The frame arrived at a host or at the switch of a closed loop, or was
	// captured at either end of a device. Its bytes are reused after the call.
	Framed struct {
		Run    RunID
		Packet capture.Packet
	}
	// Captured follows the last Framed event of a run that was captured at both ends.
	Captured struct {
		Run  RunID
		Lost int64 // frames that found no room in the buffer
	}
	// RunDone contains the result of a finished run, valid or not.
	RunDone struct {
		Run    RunID
		Result *results.Run
	}
	// Finished is the last event of an experiment. Err is nil after a complete experiment. Partial is set if runs are
	// missing.
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
// so that cores do not wait for each other while frames are stored. All other events are delivered one at a time.
type Sink interface {
	Event(Event) error
}

// Progress is the newest state of an experiment. Progress bars and dashboards poll it.
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

// Stream distributes the events of one experiment. Sinks receive every event. The newest Progress is also published for
// readers that poll it; they can never slow a run.
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

// Progress returns the newest state without waiting.
func (s *Stream) Progress() Progress { return *s.board.Load() }

// Selective is a Sink that needs the frames of some runs only. Frames of other runs need not be collected for it.
type Selective interface {
	Sink
	Wants(RunID) bool
}

// NumbersOnly is the part of a sink that needs the runs' numbers, but none of their frames.
type NumbersOnly struct{}

// Wants returns false.
func (NumbersOnly) Wants(RunID) bool { return false }

// Recorder is a Sink that needs the bytes of the frames in some runs. They come from cards that implement
// frameRecorder, from both ends of a device, or from a closed loop.
type Recorder interface {
	Sink
	Records(RunID) bool
}

// hasRecorders reports whether any sink is a Recorder.
func (s *Stream) hasRecorders() bool {
	return slices.ContainsFunc(s.sinks, func(sink Sink) bool { _, ok := sink.(Recorder); return ok })
}

func (s *Stream) recordsRun(id RunID) bool {
	return slices.ContainsFunc(s.sinks, func(sink Sink) bool {
		r, ok := sink.(Recorder)
		return ok && r.Records(id)
	})
}

// hasSinks reports whether any sink receives the events.
func (s *Stream) hasSinks() bool { return len(s.sinks) > 0 }

// wantsRun reports whether any sink needs the frames of a run.
func (s *Stream) wantsRun(id RunID) bool {
	return slices.ContainsFunc(s.sinks, func(sink Sink) bool {
		one, selective := sink.(Selective)
		return !selective || one.Wants(id)
	})
}

// publishEvent passes e to every sink and updates the Progress. It is safe for concurrent use.
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

// updateBoard publishes the Progress after e. Observations do not change it, so that the hot path copies nothing.
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

// Rows is a sink that collects the results of all finished runs. The zero value is ready for use.
type Rows struct {
	NumbersOnly
	plan   *Plan
	runs   [][]results.Run
	newest atomic.Pointer[[]results.Row]
}

// NewestRows returns a row for each configuration with a finished run. It never waits, and the returned rows do not
// change.
func (r *Rows) NewestRows() []results.Row {
	if rows := r.newest.Load(); rows != nil {
		return *rows
	}
	return nil
}

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

// frameRecorder records every frame that leaves a card. The cards of some devices implement it.
type frameRecorder interface {
	// Record turns recording on or off, from the next configuration of the queue.
	Record(on bool)
	// DrainPackets appends the packets that left since the last call to buf. Their gradients are valid until the next
	// call.
	DrainPackets(buf []twin.Packet) []twin.Packet
}

// Recording is a sink that writes a capture file of the first run, which measures the queue under test at its first
// output rate. Frames are in the system's own format. The file contains the frames that reached the parameter server or
// the workers, or all arrivals if the run is a closed loop. It appears on Commit.
type Recording struct {
	NumbersOnly // its frames come from Framed and Recorded
	file        *capture.File
	format      *frame.Format // nil for OLAF's format
	buffer      []byte
	lanes       []uint32
	ends        []string // captured ends; nil if the device provides the frames
	lost        int64    // packets lost at the ends
}

// Record begins a capture file of the first run, with frames in the system's own format. If the file exists, Record
// returns capture.ErrExists unless force is set.
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
		from.SnapBytes, from.Comment = closedloop.StoredBytes(false),
			format.Title+"'s frames as they arrive at the switch and at hosts, cut behind their headers"
	}
	r.file, err = capture.CreateFrom(path, force, from)
	return r, err
}

// endBytes is the capture length per frame at both ends of a device. Whole frames are stored, because the device adds
// up the gradients in them.
var endBytes = int(olaf.MaxFrame)

// RecordEnds begins a capture file of the first run at both ends of a device. It contains the frames sent by the
// workers and the frames received by the server, unchanged. Each end is an interface in the file, so the file format
// must support several interfaces.
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

// Records reports whether id is the first run.
func (r *Recording) Records(id RunID) bool { return id == RunID{} }

// Event writes frames to the file while the run is in progress, so that memory use stays constant.
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

// writePacket writes one packet: a merged update or a bypassed frame that reached the parameter server, or a copy that
// reached a worker. The packet's comment lists its contributors.
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

// encodeFrame encodes an update as a frame and returns its length. A frame that bypassed the queue keeps its own
// format.
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

// formatInside formats the list of contributors in a merged frame.
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

// About returns a text with the number of frames at each end.
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

// Commit completes the file and makes it visible under its name.
func (r *Recording) Commit() error { return r.file.Commit() }

// Abandon removes the file unless it was committed.
func (r *Recording) Abandon() error { return r.file.Abandon() }

func copyAddresses(a *twin.Addresses) *olaf.Addresses {
	return &olaf.Addresses{SrcMAC: a.SourceMAC, DstMAC: a.DestMAC, SrcIP: a.SourceIP, DstIP: a.DestIP,
		SrcPort: a.SourcePort}
}
