package testbed

import (
	"context"
	"crypto/tls"
	"io"
	"slices"

	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/pcie"
	"github.com/olafctl/olaf/fpga/program"
)

// Access is what reaching a device takes of the world around. The zero value is this host, and agents without TLS.
type Access struct {
	Devices Devices // that can be opened; nil is the twin alone, built with Programs
	// Programs are the switch programs whose tables agents and controllers here know; nil is none.
	Programs []program.Description
	TLS      *tls.Config // towards an agent; nil for a unix socket, loopback, or a network that somebody else secures
	Bus      *pcie.Bus   // where cards are found; nil is this host
	Clock    pcie.Clock  // of cards; nil is this host's
	Card     CardAccess
	// Generator is the address of another device, whose generator sends to the queue of the one that is opened; empty for its
	// own generator.
	Generator string
	// Wires are cables of this machine's own that a device lays in the place of its virtual ones; others than AddsModels have none.
	Wires Wires
	// Building is told when a device's logic has to be compiled first, which takes a minute or two; nil tells nobody.
	Building func()
}

func (a *Access) devices() Devices {
	if a.Devices == nil {
		return Devices{Twin(a.built()...)}
	}
	return a.Devices
}

// built are the programs without the one that only passes packets on, which every device can.
func (a *Access) built() []program.Description {
	return slices.DeleteFunc(slices.Clone(a.Programs), func(d program.Description) bool { return d.Code == 0 })
}

func (a *Access) bus() pcie.Bus {
	if a.Bus != nil {
		return *a.Bus
	}
	return pcie.HostBus()
}

// DeviceOptions say how a device is opened for its registers alone.
type DeviceOptions struct {
	Access
	ReadOnly bool      // nothing will be written; a card can then be shared and may run another image
	DryRun   io.Writer // print every access and write nothing; nil does what it says
	Force    bool      // see pcie.Options
}

// OpenDevice opens a device for its registers alone, without tables and capture.
func OpenDevice(ctx context.Context, address string, o DeviceOptions) (fpga.Device, error) {
	row, name, err := o.devices().Of(address)
	if err != nil {
		return nil, err
	}
	d, err := row.Registers(ctx, name, o)
	if err != nil {
		return nil, err
	}
	if o.DryRun != nil && !row.OwnDryRun {
		d = fpga.DryRun(d, o.DryRun)
	}
	return d, nil
}
