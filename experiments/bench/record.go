package bench

import (
	"fmt"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/fpga/frame"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/twin"
)

// FrameRecorder provides every frame that leaves the card while it records. Cards of a device that Records implement
// it.
type FrameRecorder interface {
	// Record turns recording on or off, from the next configuration of the queue.
	Record(on bool)
	// DrainPackets appends the packets that left since the last call to buf; gradients are valid until the next.
	DrainPackets(buf []twin.Packet) []twin.Packet
}

// Recording is a sink that writes a capture file of the first run, for the queue under test at its first output rate,
// in its system's frames: what reached the parameter server or the workers or, in a loop, what arrived anywhere. The
// file appears on Commit.
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
			return nil, fmt.Errorf("%w: %s has no frames of its own that could be captured", ErrSpec, s.Queue)
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

// Wants returns false: observations are not used.
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

// writePacket stores what reached the parameter server, merged updates and bypassed frames, or the copies that reached
// workers. Contributors become a comment.
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
