package testbed

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/pktgen"
)

// ErrCable reports that no frame from one card's generator reached the queue of another card.
var ErrCable = olaf.NewError(olaf.Device, "the generator's cable does not lead to the queue")

// probes is the source of a few frames that are not OLAF's, so that a queue passes them on without a decision.
type probes struct {
	total, sent int
	first       uint32        // sequence number of the first frame
	apart       olaf.Duration // time between frames
}

// probeFrames is the number of frames that probe a cable. probeStep and probeWait are the time between looks for them,
// and the longest time that they take.
const (
	probeFrames = 8
	probeStep   = olaf.Millisecond
	probeWait   = olaf.Second
)

// Total returns the number of frames.
func (p *probes) Total() int { return p.total }

// Fill writes their descriptors.
func (p *probes) Fill(dst []regmap.Descriptor) (n int) {
	for ; n < len(dst) && p.sent < p.total; n++ {
		dst[n] = regmap.Descriptor{Time: uint64(p.sent) * uint64(p.apart/olaf.Cycle), Sequence: p.first + uint32(p.sent),
			Flags: regmap.FlagNotOlaf}
		p.sent++
	}
	return n
}

// probeJob returns the job of sending probe frames.
func probeJob(source *probes) pktgen.Job {
	return pktgen.Job{Placement: pktgen.Placement{Workers: 1, Clusters: 1}, Addressing: pktgen.DefaultAddressing(),
		Size: olaf.FrameSize(0), Source: source}
}

// CheckCable sends a few frames of the generator's card to the queue's card and compares the counts of their ports. The error
// matches ErrCable if none arrived. Without two cards it does nothing. The generator must be idle; its descriptors are
// overwritten.
func (b *Testbed) CheckCable(ctx context.Context) error {
	card := b.Cards[0].Device
	before, err := fpga.PortCounts(card)
	feeds := slices.IndexFunc(before, func(p fpga.Port) bool { return p.Feeds })
	if err != nil || feeds < 0 {
		return err
	}
	g := pktgen.NewGenerator(card)
	if err := g.Program(ctx, probeJob(&probes{total: probeFrames})); err != nil {
		return fmt.Errorf("%s: probe the cable: %w", card.Identity().Address, err)
	}
	if err := g.ArmAndStart(); err != nil {
		return errors.Join(fmt.Errorf("%s: probe the cable: %w", card.Identity().Address, err), g.Abort())
	}
	var sent uint64
	for waited := olaf.Duration(0); waited < probeWait; waited += probeStep {
		if err := card.Sleep(ctx, probeStep); err != nil {
			return errors.Join(err, g.Abort())
		}
		now, err := fpga.PortCounts(card)
		if err != nil {
			return errors.Join(err, g.Abort())
		}
		sent = now[feeds].Sent - before[feeds].Sent
		if now[0].Received > before[0].Received {
			return g.Abort()
		}
	}
	return errors.Join(fmt.Errorf("%w: %s left the generator's port in %v, and none reached port 0 of %s; check the cable, and the ports "+
		"and VLANs of a switch", ErrCable, olaf.Plural(int64(sent), "frame"), probeWait, card.Identity().Address), g.Abort())
}
