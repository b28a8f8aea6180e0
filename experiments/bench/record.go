package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga/twin"
)

// ErrNoRecorder says that a device does not hand out the bytes of its frames.
var ErrNoRecorder = errors.New("this device records no frames")

// frameRecorder hands out every frame that left the card; the twin is one when it was opened for it.
type frameRecorder interface {
	DrainPackets(buf []twin.Packet) []twin.Packet
}

// Record repeats the first run of spec's queue under test at its first output rate, and writes what reached the parameter
// server to a capture file that appears only when it is complete. It says how many frames there are. An existing file
// matches capture.ErrExists unless force is set.
func Record(ctx context.Context, spec Spec, device, path string, force bool) (frames uint64, err error) {
	spec.Runs, spec.Versus, spec.OutRates = 1, "", spec.OutRates[:1]
	plan, err := NewPlan(spec)
	if err != nil {
		return 0, err
	}
	bed, err := testbed.Open(ctx, device, testbed.OpenOptions{Wire: true})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, bed.Close()) }()
	from, ok := bed.Cards[0].Device.(frameRecorder)
	if !ok {
		return 0, fmt.Errorf("%w: %s; capture on the parameter server's interface instead", ErrNoRecorder, device)
	}
	file, err := capture.Create(path, force, 0)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Abandon()) }()
	if _, err := Run(ctx, plan, bed, NewStream(&recording{from: from, to: file.Writer})); err != nil {
		return 0, err
	}
	return file.Packets(), file.Commit()
}

// recording writes packets as a run goes on, so that memory stays flat.
type recording struct {
	from    frameRecorder
	to      *capture.Writer
	packets []twin.Packet
}

// Event writes what was recorded since the last one.
func (r *recording) Event(Event) error {
	r.packets = r.from.DrainPackets(r.packets[:0])
	for i := range r.packets {
		if err := r.write(&r.packets[i]); err != nil {
			return err
		}
	}
	return nil
}

// write keeps what reached the parameter server: merged updates and bypassed frames.
func (r *recording) write(p *twin.Packet) error {
	if p.Kind == twin.Ack {
		return nil
	}
	return r.to.WriteUpdate(p.At, addresses(&p.Addresses), &p.Update, p.Lanes)
}

func addresses(a *twin.Addresses) *olaf.Addresses {
	return &olaf.Addresses{SrcMAC: a.SourceMAC, DstMAC: a.DestMAC, SrcIP: a.SourceIP, DstIP: a.DestIP, SrcPort: a.SourcePort}
}
