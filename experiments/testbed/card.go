package testbed

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/pair"
	"github.com/olafctl/olaf/fpga/pcie"
	"github.com/olafctl/olaf/fpga/remote"
	"github.com/olafctl/olaf/p4ctl/agent"
	"github.com/olafctl/olaf/p4ctl/p4"
)

// CardAccess contains everything that a testbed on a card needs in addition to the card.
type CardAccess struct {
	// Tables starts the driver of the card's tables; nil lends a card without them. The returned function is called at
	// the end.
	Tables func(*CardTables) (agent.Backend, func() error, error)
	// Capture starts a capture at the parameter server's interface; nil lends a card without a tap.
	Capture func() (Frames, error)
	// Mirror describes copies of the generator's frames at the host of Capture; nil if ages begin by the generator's clock.
	Mirror *Mirror
	// Now reads the clock of captured frames' stamps, which may be set during a run; nil reads Access.Clock.
	Now func() time.Time
	// ServerPort is the card's port towards the interface of Capture.
	ServerPort int
}

// ErrIncomplete reports that a card alone is not a testbed. The message lists the missing parts. The error matches
// ErrBackend.
var ErrIncomplete error = incomplete{}

type incomplete struct{}

func (incomplete) Error() string { return "a card alone is no testbed" }
func (incomplete) Unwrap() error { return ErrBackend }

// missingParts returns a text with the parts that a card lacks to be a testbed.
func (a *CardAccess) missingParts() string {
	var add []string
	if a.Tables == nil {
		add = append(add, "the tables' driver (--vnp4-1 and --vnp4-2, of an olafctl that was built with -tags vnp4)")
	}
	if a.Capture == nil {
		add = append(add, "the parameter server's network interface (--capture INTERFACE)")
	}
	return strings.Join(add, ", and ")
}

// CardDevice returns the row of the device table for cards in this host.
func CardDevice() Device {
	return Device{
		Prefix: "pci:", Name: "0000:3b:00.0", Abilities: HasTables | TakesGenerator, Guarded: true, OwnDryRun: true,
		Registers: openCard, Testbed: openCardTestbed, Lend: lendCard, Examine: examineCard,
		Uses: func(bdf string) []string { return []string{"pci:" + pcie.Slot(bdf)} },
	}
}

func openCard(_ context.Context, bdf string, o DeviceOptions) (fpga.Device, error) {
	return pcie.Open(o.bus(), bdf, o.cardOptions())
}

func (o *DeviceOptions) cardOptions() pcie.Options {
	return pcie.Options{ReadOnly: o.ReadOnly, DryRun: o.DryRun, Force: o.Force, Clock: o.Clock}
}

// openCardTestbed opens a card with its tables and a capture. This process lends them to itself in the same way as
// ServeDevice lends them to others, so that there is only one way to use a card.
func openCardTestbed(ctx context.Context, bdf string, o OpenOptions) (*Testbed, error) {
	if _, err := o.bus().Find(bdf); err != nil { // before asking for its accessories
		return nil, err
	}
	if lacks := o.Card.missingParts(); lacks != "" {
		return nil, fmt.Errorf("%w: add %s; 'olafctl bench', 'tui' and 'serve' take them, and -d grpc:… uses what serve lends", ErrIncomplete, lacks)
	}
	return openLent(ctx, o, func(s *Service, lent ServeOptions) error { return lendCard(ctx, s, bdf, lent) })
}

// openLent opens a testbed on a device. lend must register the device with a service of this process.
func openLent(ctx context.Context, o OpenOptions, lend func(*Service, ServeOptions) error) (*Testbed, error) {
	listen, bed := o.Listen, new(Testbed)
	if listen == "" {
		address, remove, err := privateAddress()
		if err != nil {
			return nil, err
		}
		listen = address
		bed.close = append(bed.close, remove)
	}
	lent := ServeOptions{Listen: listen, Device: DeviceOptions{Access: o.Access}}
	if err := lent.checkGuarded(); err != nil {
		return nil, err
	}
	s, err := serveLent(ctx, lent, func(s *Service) error { return lend(s, lent) })
	if err != nil {
		return nil, errors.Join(err, bed.Close())
	}
	bed.close = append(bed.close, s.Close)
	o.Card.Capture, o.Card.Mirror, o.Generator = nil, nil, "" // the agent has them
	if err := bed.attachAgent(ctx, s.Target, o.Access, remote.Options{TLS: o.TLS, Local: true}); err != nil {
		return nil, errors.Join(err, bed.Close())
	}
	return bed, nil
}

// lendCard lends a card. A tap is included if there is a capture, and the tables if there is a driver for them.
func lendCard(ctx context.Context, s *Service, bdf string, o ServeOptions) error {
	options := o.Device.cardOptions()
	options.Lost = s.reportLost
	card, err := pcie.Open(o.Device.bus(), bdf, options)
	if err != nil {
		return err
	}
	s.close = append(s.close, card.Close)
	server, err := s.registerCard(ctx, card, card.Ports(), o)
	if err != nil {
		return err
	}
	if o.Device.Card.Tables == nil {
		return nil
	}
	tables := &CardTables{server, card}
	backend, stop, err := o.Device.Card.Tables(tables)
	if err != nil {
		return fmt.Errorf("the tables' driver: %w", err)
	}
	s.close = append([]func() error{stop}, s.close...) // stopped before the card is closed
	return s.controlTables(backend, p4.Lab(), nil, tables.Check, o)
}

// registerCard registers a card that has the given number of ports with the service. If there is a generator on another
// device, it is combined with the card. A tap is included if there is a capture.
func (s *Service) registerCard(ctx context.Context, card fpga.Device, ports int, o ServeOptions) (*remote.Server, error) {
	whole, clock := card, fpga.Registers(card)
	if o.Device.Generator != "" {
		joined, generator, err := o.Device.joinGenerator(ctx, card)
		if err != nil {
			return nil, err
		}
		s.close = append([]func() error{joined.Part}, s.close...)
		whole, clock = joined, generator
	}
	var tap remote.Tap
	if o.Device.Card.Capture != nil {
		t, err := s.captureBehind(ports, clock, o.Device.Access)
		if err != nil {
			return nil, err
		}
		t.queue, _ = card.(fpga.Capturer)
		tap = t
	}
	return s.registerDevice(whole, tap), nil
}

// examineCard checks a card before it is used.
func examineCard(bdf string, a Access) (*pcie.Device, []pcie.Check, error) {
	return pcie.Examine(a.bus(), bdf, pcie.Options{Clock: a.Clock})
}

// joinGenerator opens the device whose generator sends to the card's queue, and combines it with the card into a single
// device.
func (o *DeviceOptions) joinGenerator(ctx context.Context, card fpga.Device) (*pair.Device, fpga.Device, error) {
	row, name, err := o.deviceTable().Lookup(o.Generator)
	if err != nil {
		return nil, nil, fmt.Errorf("the generator: %w", err)
	}
	if row.Can(VirtualTime) {
		return nil, nil, fmt.Errorf("%w: no cable leads from the generator of %s to a card", ErrUnsupported,
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
		return fmt.Errorf("%w: no cable leads to or from %s, whose time is virtual", ErrUnsupported, d.Identity().Address)
	}
	return nil
}

// captureBehind starts to capture the frames that a card sends to the parameter server. Their timestamps are converted
// to the clock of the card that contains the generator.
func (s *Service) captureBehind(ports int, clock fpga.Registers, o Access) (*cardTap, error) {
	if p := o.Card.ServerPort; p < 0 || p >= ports {
		return nil, fmt.Errorf("%w: the card's image has no port %d towards the parameter server, but %s from 0 (--server-port)", fpga.ErrRefused, p, olaf.Plural(ports, "port"))
	}
	now := time.Now
	switch {
	case o.Card.Now != nil:
		now = o.Card.Now
	case o.Clock != nil:
		now = o.Clock.Now
	}
	tap, err := newCardTap(clock, o.Card.Capture, o.Card.Mirror, now, o.Card.ServerPort)
	if err != nil {
		return nil, err
	}
	s.close = append([]func() error{tap.Close}, s.close...)
	return tap, nil
}
