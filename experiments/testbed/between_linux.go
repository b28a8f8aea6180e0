package testbed

import (
	"fmt"

	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/realtime"
	"github.com/olafctl/olaf/fpga/xdp"
	"github.com/olafctl/olaf/p4ctl/agent"
	"github.com/olafctl/olaf/p4ctl/p4"
)

// betweenCard is a kernel queue between two interfaces. Its clock differs from the clock of the generator that sends
// the updates.
type betweenCard struct{ *realtime.Card }

var _ fpga.Capturer = betweenCard{}

// openBetween opens the queue that the text after "xdp:" in an address specifies.
func openBetween(name string) (fpga.Device, error) {
	b, err := parseBetween(name)
	if err != nil {
		return nil, err
	}
	card, err := realtime.Open(realtime.KernelBackend(xdp.Mode(b.mode)), realtime.Between(b.in, b.out))
	if err != nil {
		return nil, fmt.Errorf("xdp:%s: %w", name, err)
	}
	return betweenCard{card}, nil
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

// tablesBetween returns the tables of a kernel queue between two interfaces.
func tablesBetween(card fpga.Device) (agent.Backend, p4.Profile) {
	return &realtimeTables{card: card.(betweenCard).Card}, p4.Lab()
}

// openNIC opens the generator that sends through an interface.
func openNIC(name string) (fpga.Device, error) {
	card, err := realtime.Open(realtime.KernelBackend(xdp.Native), realtime.Hosts{Generator: name})
	if err != nil {
		return nil, fmt.Errorf("nic:%s: %w", name, err)
	}
	return card, nil
}
