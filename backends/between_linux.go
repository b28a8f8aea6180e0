package backends

import (
	"errors"
	"fmt"
	"io"

	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/dataplane"
	"github.com/olafctl/olaf/fpga/realtime"
	"github.com/olafctl/olaf/fpga/xdp"
	"github.com/olafctl/olaf/p4ctl/p4"
)

// betweenCard is a kernel queue between two interfaces. Its clock differs from the clock of the generator that sends
// the updates.
type betweenCard struct {
	*realtime.Card
	probes io.Closer // forwards probe frames; nil if the kernel is too old
}

var _ fpga.Capturer = betweenCard{}

// openBetween opens the queue that the text after "xdp:" in an address specifies.
func openBetween(name string) (*testbed.Shared, error) {
	b, err := parseBetween(name)
	if err != nil {
		return nil, err
	}
	card, err := realtime.Open(xdp.NewBackend(dataplane.Mode(b.mode)), realtime.Between(b.in, b.out))
	if err != nil {
		return nil, fmt.Errorf("xdp:%s: %w", name, err)
	}
	in, out := card.Cables()
	probes, err := xdp.ForwardProbes(in[0].B, out.A)
	if err != nil && !errors.Is(err, xdp.ErrFeature) {
		return nil, errors.Join(fmt.Errorf("xdp:%s: %w", name, err), card.Close())
	}
	tables := &testbed.SharedTables{Backend: &realtimeTables{card: card}, Profile: p4.Lab()}
	return &testbed.Shared{Device: betweenCard{card, probes}, Ports: 2,
		Tables: func(func(func())) (*testbed.SharedTables, error) { return tables, nil }}, nil
}

// Close stops forwarding probe frames and closes the card.
func (c betweenCard) Close() (err error) {
	if c.probes != nil {
		err = c.probes.Close()
	}
	return errors.Join(err, c.Card.Close())
}

// LogsArrivals returns false, because the times of arrivals are not on the generator's clock.
func (betweenCard) LogsArrivals() bool { return false }

// Capture reports the queue's part of a run whose frames are captured elsewhere: its decisions, and the reasons why the
// run may be invalid or its ages must be withheld. The error matches fpga.ErrGone if an interface has disappeared.
func (c betweenCard) Capture() (*fpga.Capture, error) {
	decisions, err := c.Decisions()
	if err != nil {
		return nil, err
	}
	others, later, err := c.OtherFrames()
	if err != nil {
		return nil, err
	}
	return &fpga.Capture{Decisions: decisions, Others: &others, OthersNow: later, Withheld: c.Pacing().Withheld, Faults: c.Faults()}, nil
}

// openNIC opens the generator that sends through an interface.
func openNIC(name string) (*testbed.Shared, error) {
	card, err := realtime.Open(xdp.NewBackend(dataplane.Native), realtime.Hosts{Generator: name})
	if err != nil {
		return nil, fmt.Errorf("nic:%s: %w", name, err)
	}
	return &testbed.Shared{Device: card}, nil
}
