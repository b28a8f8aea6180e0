package testbed

import (
	"context"
	"crypto/tls"
	"io"
	"slices"
	"time"

	"github.com/olafctl/olaf/capture/live"
	"github.com/olafctl/olaf/experiments/testbed/sshlink"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/program"
)

// Access contains everything that is needed to reach a device. The zero value is for devices of this host, and for
// agents without TLS.
type Access struct {
	Devices Devices // devices that can be opened; nil means only the twin, built with Programs
	// Programs lists the switch programs whose tables agents and controllers here support; nil for none.
	Programs []program.Description
	TLS      *tls.Config // towards an agent; nil for a unix socket, loopback, or an otherwise secured network
	Card     CardAccess
	// Now reads this host's clock; nil means time.Now.
	Now func() time.Time
	// Generator is the address of another device, whose generator sends to the queue of the one that is opened; empty for its
	// own generator.
	Generator string
	// Wires replaces a device's virtual cables with cables of this machine; only for devices with AddsModels.
	Wires Wires
	// Owner is the user for whom devices are opened, user@host; empty for this process's user.
	Owner string
	// Locks is the folder with the locks of this host's devices; empty for /run/lock.
	Locks string
	// Reservations are this host's reservations; nil for those in Locks.
	Reservations *Reservations
	SSH          sshlink.Options // how agents on other hosts are started
	// Hosts replaces Binary and Sudo of SSH for some hosts.
	Hosts map[sshlink.Address]sshlink.Options
	// OpenCapture starts a capture from an interface of this host; nil in programs without captures.
	OpenCapture func(live.Options) (Frames, error)
	// Building, if set, is called when a device's logic must be compiled first, which takes a minute or two.
	Building func()
}

func (a *Access) deviceTable() Devices {
	if a.Devices == nil {
		return Devices{TwinDevice(a.builtPrograms()...)}
	}
	return a.Devices
}

// builtPrograms returns all programs except the one that only forwards, which every device supports.
func (a *Access) builtPrograms() []program.Description {
	return slices.DeleteFunc(slices.Clone(a.Programs), func(d program.Description) bool { return d.Code == 0 })
}

// DeviceOptions contains the options for opening only the registers of a device.
type DeviceOptions struct {
	Access
	ReadOnly bool      // a card can then be shared and may run another image
	DryRun   io.Writer // print every access and write nothing; nil for normal access
	Force    bool      // also allow a reset of a card that destroys its host's DMA contexts
}

// OpenDevice opens only the registers of a device, without tables and without a capture.
func OpenDevice(ctx context.Context, address string, o DeviceOptions) (fpga.Device, error) {
	row, name, err := o.deviceTable().Lookup(address)
	if err != nil {
		return nil, err
	}
	if !o.ReadOnly && o.DryRun == nil {
		if err := o.checkReserved(row, name); err != nil {
			return nil, err
		}
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
