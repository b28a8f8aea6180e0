package bench

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/fpga/twin"
)

// FrameRecorder hands out every frame that left the card, while it records. Cards of a device that Records are FrameRecorders.
type FrameRecorder interface {
	// Record turns recording off and on, from the next configuration of the queue.
	Record(on bool)
	// DrainPackets appends what left since the last call to buf; gradients are valid until the next.
	DrainPackets(buf []twin.Packet) []twin.Packet
}

// Recording is a sink that writes what reached the parameter server in the first run, of the queue under test at its first
// output rate, to a capture file. The file appears when Commit says so.
type Recording struct{ file *capture.File }

// NewRecording begins a capture file. One that exists matches capture.ErrExists unless force is set.
func NewRecording(path string, force bool) (*Recording, error) {
	file, err := capture.Create(path, force, 0)
	if err != nil {
		return nil, err
	}
	return &Recording{file}, nil
}

// Records says that the first run is written.
func (r *Recording) Records(id RunID) bool { return id == RunID{} }

// Wants says that observations are of no use.
func (r *Recording) Wants(RunID) bool { return false }

// Event writes frames as the run goes on, so that memory stays flat.
func (r *Recording) Event(e Event) error {
	recorded, ok := e.(Recorded)
	if !ok {
		return nil
	}
	for i := range recorded.Packets {
		if err := r.write(&recorded.Packets[i]); err != nil {
			return err
		}
	}
	return nil
}

// write keeps what reached the parameter server: merged updates and bypassed frames.
func (r *Recording) write(p *twin.Packet) error {
	if p.Kind == twin.Ack {
		return nil
	}
	return r.file.WriteUpdate(p.At, addresses(&p.Addresses), &p.Update, p.Lanes)
}

// Frames is how many were written.
func (r *Recording) Frames() uint64 { return r.file.Packets() }

// Commit makes the file appear.
func (r *Recording) Commit() error { return r.file.Commit() }

// Abandon leaves no file behind, unless it was committed.
func (r *Recording) Abandon() error { return r.file.Abandon() }

func addresses(a *twin.Addresses) *olaf.Addresses {
	return &olaf.Addresses{SrcMAC: a.SourceMAC, DstMAC: a.DestMAC, SrcIP: a.SourceIP, DstIP: a.DestIP, SrcPort: a.SourcePort}
}
