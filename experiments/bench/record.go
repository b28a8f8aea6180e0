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

// FrameRecorder hands out every frame that left the card, while it records. Cards of a device that Records are FrameRecorders.
type FrameRecorder interface {
	// Record turns recording off and on, from the next configuration of the queue.
	Record(on bool)
	// DrainPackets appends what left since the last call to buf; gradients are valid until the next.
	DrainPackets(buf []twin.Packet) []twin.Packet
}

// Recording is a sink that writes what reached the parameter server, or the workers, in the first run, of the queue under test at
// its first output rate, to a capture file, in the frames of its system; of a loop what arrived anywhere. The file appears when
// Commit says so.
type Recording struct {
	file   *capture.File
	format *frame.Format // nil is OLAF's
	buffer []byte
	lanes  []uint32
	ends   []string // that are captured; nil of what the device itself hands out
	lost   int64    // there
}

// Record begins a capture file of the first run in the frames of its system. One that exists matches capture.ErrExists unless
// force is set.
func (s *Spec) Record(path string, force bool) (*Recording, error) {
	format := s.Frame()
	if s.Loop != nil {
		if format == nil {
			return nil, fmt.Errorf("%w: %s has no frames of its own that could be captured", ErrSpec, s.Queue)
		}
		found, err := s.find(s.Queue)
		if err == nil {
			err = s.numbered(found)
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
		Name: format.Name, SnapBytes: int(olaf.MaxFrame), Comment: format.Title + "'s own frames; the run's wire took OLAF's, whose headers are longer",
	}
	if s.Loop != nil {
		from.SnapBytes, from.Comment = closedloop.Kept(false), format.Title+"'s frames as they arrive at the switch and at hosts, cut behind their headers"
	}
	r.file, err = capture.CreateFrom(path, force, from)
	return r, err
}

// endBytes is how much of a frame is kept at the ends: all of it, as gradients are added up on the way.
var endBytes = int(olaf.MaxFrame)

// RecordEnds begins a capture file of the first run at both ends of a device that can be captured there: what workers sent and what reached
// the server, as they were, each end an interface of the file, which is of the format that has several.
func RecordEnds(path string, force bool, names ...string) (*Recording, error) {
	if capture.FormatOf(path) != capture.PCAPNG {
		return nil, fmt.Errorf("%w: %s holds one interface, and both ends are captured; write a .pcapng", ErrSpec, path)
	}
	from := make([]capture.Interface, len(names))
	for i, name := range names {
		from[i] = capture.Interface{Name: name, SnapBytes: endBytes, Comment: "stamped by the kernel"}
	}
	file, err := capture.CreateFrom(path, force, from...)
	return &Recording{file: file, ends: names}, err
}

// Records says that the first run is written.
func (r *Recording) Records(id RunID) bool { return id == RunID{} }

// Wants says that observations are of no use.
func (r *Recording) Wants(RunID) bool { return false }

// Event writes frames as the run goes on, so that memory stays flat.
func (r *Recording) Event(e Event) error {
	switch e := e.(type) {
	case Framed:
		return r.file.WritePacket(&e.Packet)
	case Captured:
		r.lost = e.Lost
		r.file.SetDropped(e.Lost)
	case Recorded:
		for i := range e.Packets {
			if err := r.write(&e.Packets[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// write keeps what reached the parameter server, merged updates and bypassed frames, or the copies that reached workers. Who is
// inside is a comment.
func (r *Recording) write(p *twin.Packet) error {
	if p.Kind == twin.Ack {
		return nil
	}
	n, err := r.encode(p)
	if err != nil {
		return err
	}
	return r.file.WritePacket(&capture.Packet{UnixNS: p.At.NS(), Data: r.buffer[:n], Wire: n, Comment: merged(p.Contributors)})
}

// encode writes the frame of an update. What the queue was bypassed by has the frame that it came in.
func (r *Recording) encode(p *twin.Packet) (n int, err error) {
	if r.format == nil || p.Kind == twin.Bypassed && p.Format == 0 {
		return olaf.EncodeUpdate(r.buffer, addresses(&p.Addresses), &p.Update, p.Lanes)
	}
	r.lanes = r.lanes[:0]
	for _, v := range p.Lanes {
		r.lanes = append(r.lanes, uint32(v))
	}
	packet := program.Packet{Kind: program.Data, Job: p.Update.Cluster, Seg: p.Seg, Worker: p.Update.Worker, Count: p.Update.Count, Lanes: p.Update.Lanes}
	if p.Kind == twin.Answered {
		packet.Kind = program.Result
	}
	return r.format.Encode(r.buffer, &frame.Outer{Addresses: *addresses(&p.Addresses)}, &packet, r.lanes)
}

// merged says who is inside a frame of several.
func merged(inside []olaf.Contributor) string {
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

// Frames is how many were written.
func (r *Recording) Frames() uint64 { return r.file.Packets() }

// About says how many frames there are, and of which ends.
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

// Abandon leaves no file behind, unless it was committed.
func (r *Recording) Abandon() error { return r.file.Abandon() }

func addresses(a *twin.Addresses) *olaf.Addresses {
	return &olaf.Addresses{SrcMAC: a.SourceMAC, DstMAC: a.DestMAC, SrcIP: a.SourceIP, DstIP: a.DestIP, SrcPort: a.SourcePort}
}
