package testbed

import (
	"context"
	"errors"
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/remote"
	"github.com/olafctl/olaf/p4ctl/agent"
	"github.com/olafctl/olaf/p4ctl/p4"
)

// Shared is an open device that this process lends to itself and to others.
type Shared struct {
	Device fpga.Device
	Ports  int // number of ports that a capture can be behind; 0 for a device that receives no frames
	// Tables starts the driver of the device's tables; nil lends the device without them. Inside do, the driver is the only
	// user of the device.
	Tables func(do func(func())) (*SharedTables, error)
}

// SharedTables contains the tables of a shared device.
type SharedTables struct {
	Backend agent.Backend
	Profile p4.Profile
	Check   func() error // returns an error if the device has changed; may be nil
	Stop    func() error // called before the device is closed; may be nil
}

// ShareOptions contains the options for opening a shared device.
type ShareOptions struct {
	DeviceOptions
	// Lost, if set, is called when the device has disappeared, was reset, or was replaced.
	Lost func(error)
}

// SharedDevice completes the row of a device that this process lends. Its open function is used to open the registers,
// to open the device as a testbed and to lend it. check returns an error if a testbed lacks parts other than the device;
// it may be nil for a device without tables.
func SharedDevice(row Device, open func(ctx context.Context, name string, o ShareOptions) (*Shared, error),
	check func(name string, o *OpenOptions) error) Device {
	row.Registers = func(ctx context.Context, name string, o DeviceOptions) (fpga.Device, error) {
		shared, err := open(ctx, name, ShareOptions{DeviceOptions: o})
		if err != nil {
			return nil, err
		}
		return shared.Device, nil
	}
	row.Lend = func(ctx context.Context, s *Service, name string, o ServeOptions) error {
		shared, err := open(ctx, name, ShareOptions{o.Device, s.reportLost})
		if err != nil {
			return err
		}
		return s.share(ctx, shared, o)
	}
	if row.Can(HasTables) {
		row.Testbed = func(ctx context.Context, name string, o OpenOptions) (*Testbed, error) {
			if err := check(name, &o); err != nil {
				return nil, err
			}
			return openLent(ctx, o, func(s *Service, lent ServeOptions) error { return row.Lend(ctx, s, name, lent) })
		}
	}
	return row
}

// openLent opens a testbed on a device. This process lends the device to itself in the same way as ServeDevice lends it
// to others, so that there is only one way to use it. lend must register the device with a service of this process.
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

// share lends a device. A tap is included if there is a capture, and the tables if there is a driver for them.
func (s *Service) share(ctx context.Context, shared *Shared, o ServeOptions) error {
	s.close = append(s.close, shared.Device.Close)
	server, err := s.registerShared(ctx, shared, o)
	if err != nil || shared.Tables == nil {
		return err
	}
	tables, err := shared.Tables(server.Do)
	if err != nil {
		return err
	}
	if tables.Stop != nil {
		s.close = append([]func() error{tables.Stop}, s.close...)
	}
	return s.controlTables(tables.Backend, tables.Profile, nil, tables.Check, o)
}

// registerShared registers a device with the service. If there is a generator on another device, it is combined with
// the device. A tap is included if there is a capture.
func (s *Service) registerShared(ctx context.Context, shared *Shared, o ServeOptions) (*remote.Server, error) {
	whole, clock := shared.Device, fpga.Registers(shared.Device)
	if o.Device.Generator != "" {
		joined, generator, err := o.Device.joinGenerator(ctx, shared.Device)
		if err != nil {
			return nil, err
		}
		s.close = append([]func() error{joined.Part}, s.close...)
		whole, clock = joined, generator
	}
	var tap remote.Tap
	if o.Device.Card.Capture != nil && shared.Ports > 0 {
		t, err := s.captureBehind(shared.Ports, clock, o.Device.Access)
		if err != nil {
			return nil, err
		}
		t.queue, _ = shared.Device.(fpga.Capturer)
		tap = t
	}
	return s.registerDevice(whole, tap), nil
}

// captureBehind starts to capture the frames that a card sends to the parameter server. Their timestamps are converted
// to the clock of the card that contains the generator.
func (s *Service) captureBehind(ports int, clock fpga.Registers, o Access) (*Tap, error) {
	if p := o.Card.ServerPort; p < 0 || p >= ports {
		return nil, fmt.Errorf("%w: the card's image has no port %d towards the parameter server, but %s from 0 "+
			"(--server-port)", fpga.ErrRefused, p, olaf.Plural(ports, "port"))
	}
	now := o.Card.Now
	if now == nil {
		now = o.hostClock()
	}
	tap, err := NewTap(clock, o.Card.Capture, o.Card.Mirror, now, o.Card.ServerPort)
	if err != nil {
		return nil, err
	}
	s.close = append([]func() error{tap.Close}, s.close...)
	return tap, nil
}
