package testbed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/pair"
	"github.com/olafctl/olaf/p4ctl/agent"
)

// CardAccess contains everything that a testbed on a card needs in addition to the card.
type CardAccess struct {
	// Tables starts the driver of the card's tables; nil lends a card without them. The returned function is called at
	// the end.
	Tables func(CardTables) (agent.Backend, func() error, error)
	// Capture starts a capture at the parameter server's interface; nil lends a card without a tap.
	Capture func() (Frames, error)
	// Mirror describes copies of the generator's frames at the host of Capture; nil if ages begin by the generator's clock.
	Mirror *Mirror
	// Probes describes how probe frames compare the generator's clock with the stamps of Capture; nil if the clocks are
	// compared otherwise.
	Probes *Probes
	// Now reads the clock of captured frames' stamps, which may be set during a run; nil reads Access.Now.
	Now func() time.Time
	// ServerPort is the card's port towards the interface of Capture.
	ServerPort int
}

// CardTables gives the driver of a card's tables access to the windows of the VitisNetP4 blocks, and to the replication
// block with the multicast groups. Other users of the card share it.
type CardTables interface {
	// Read32 and Write32 access a register of the table windows.
	Read32(addr uint32) (uint32, error)
	Write32(addr, value uint32) error
	// SetGroup sets the members of a multicast group. If the group could be written only in part, it is removed.
	SetGroup(id uint32, members []agent.Member) error
	// DeleteGroup removes a multicast group.
	DeleteGroup(id uint32) error
}

// joinGenerator opens the device whose generator sends to the card's queue, and combines it with the card into a single
// device.
func (o *DeviceOptions) joinGenerator(ctx context.Context, card fpga.Device) (*pair.Device, fpga.Device, error) {
	row, name, err := o.deviceTable().Lookup(o.Generator)
	if err != nil {
		return nil, nil, fmt.Errorf("the generator: %w", err)
	}
	if row.Can(VirtualTime) {
		return nil, nil, fmt.Errorf("%w: the generator of %s has no cable to a card", ErrUnsupported,
			o.Generator)
	}
	if err := o.checkGenerator(); err != nil {
		return nil, nil, err
	}
	other := *o
	other.Generator, other.SSH.Serve = "", nil // its agent drives no tables
	generator, err := row.Registers(ctx, name, other)
	if err != nil {
		return nil, nil, fmt.Errorf("the generator: %w", err)
	}
	for _, d := range []fpga.Device{generator, card} {
		if err = o.checkReal(d); err != nil {
			return nil, nil, errors.Join(err, generator.Close())
		}
	}
	joined, err := pair.New(generator, card, true)
	if err != nil {
		return nil, nil, errors.Join(err, generator.Close())
	}
	return joined, generator, nil
}

// checkReal returns an error if an agent's device has virtual time and therefore no cables.
func (o *DeviceOptions) checkReal(d fpga.Device) error {
	far, ok := d.(interface{ Served() fpga.Identity })
	if !ok {
		return nil
	}
	if row, _, err := o.deviceTable().Lookup(far.Served().Kind + ":"); err == nil && row.Can(VirtualTime) {
		return fmt.Errorf("%w: %s has virtual time and no cables", ErrUnsupported, d.Identity().Address)
	}
	return nil
}
