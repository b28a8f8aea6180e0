package testbed

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/olafctl/olaf/experiments/testbed/sshlink"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/remote"
	"github.com/olafctl/olaf/p4ctl"
)

// SSHDevice returns the row of the device table for devices on other hosts. They are lent by an agent that ssh starts
// there.
func SSHDevice(built ...program.Description) Device {
	return Device{
		Prefix: "ssh://", Name: "[USER@]HOST/DEVICE", Abilities: HasTables | LogsArrivals | AddsUpdates | TakesGenerator,
		Programs: built, // only the agent knows the details
		Named: func(name string) error {
			_, err := parseSSH(name)
			return err
		},
		Registers: openSSHDevice, Testbed: openSSH, Reach: reachSSH,
	}
}

func reachSSH(ctx context.Context, rest string, a Access) (target string, done func() error, err error) {
	p, err := parseSSH(rest)
	if err != nil {
		return "", nil, err
	}
	link, err := p.startAgent(ctx, &a)
	if err != nil {
		return "", nil, err
	}
	return link.Target, link.Close, nil
}

// sshPlace is a device on another host, with the address of the host.
type sshPlace struct {
	sshlink.Address
	device string
}

func parseSSH(rest string) (p sshPlace, err error) {
	if p.Address, p.device, err = sshlink.Parse(rest); err == nil && p.device == "" {
		err = fmt.Errorf("%w: ssh:%s does not name a device of that host, such as %s", sshlink.ErrAddress, rest,
			p.URL("twin:"))
	}
	return p, err
}

// startLink starts an agent on another host. serve contains the arguments of the serve command.
func (a *Access) startLink(ctx context.Context, at sshlink.Address, serve ...string) (*sshlink.Link, error) {
	o := a.SSH
	if h, known := a.Hosts[at]; known {
		o.Binary, o.Sudo = h.Binary, h.Sudo
	}
	o.Serve = append(serve, "--owner", a.OwnerName())
	return sshlink.Start(ctx, at, o)
}

// startAgent starts an agent for a device on the device's host.
func (p sshPlace) startAgent(ctx context.Context, a *Access) (*sshlink.Link, error) {
	serve := append([]string{"-d", p.device}, a.SSH.Serve...)
	// A capture in this process needs the generator's clock, which the agent's joined device would not show.
	if g, err := parseSSH(strings.TrimPrefix(a.Generator, "ssh:")); err == nil && g.Address == p.Address && a.Card.Capture == nil {
		serve, a.Generator = append(serve, "--generator", g.device), "" // the agent joins both devices
	}
	with := *a
	if row, _, err := a.deviceTable().Lookup(p.device); err == nil && row.Examine != nil && !strings.Contains(p.device, " ") {
		// A card continues without its agent. It must not keep sending after the agent was killed.
		with.SSH.AfterKill = []string{"device", "reg", "write", "generator.command.abort=1", "-d", p.device}
	}
	return with.startLink(ctx, p.Address, serve...)
}

// sshDevice is a device behind an agent on another host. The agent ends when the device is closed.
type sshDevice struct {
	*remote.Device
	link *sshlink.Link
}

// Close closes the session with the device and then ends the agent.
func (d *sshDevice) Close() error { return errors.Join(d.Device.Close(), d.link.Close()) }

// endPatience is the longest time that a broken session waits for its link to end. The link's end explains the error.
const endPatience = 2 * time.Second

// explainLink returns the reason why a link broke, or nil if it did not break.
func explainLink(l *sshlink.Link) error {
	select {
	case <-l.Done():
	case <-time.After(endPatience):
	}
	return l.Err()
}

// explainDial returns the reason why a link broke if nothing answers behind the link, and err otherwise.
func explainDial(err error, l *sshlink.Link) error {
	if errors.Is(err, remote.ErrUnreachable) || errors.Is(err, p4ctl.ErrUnreachable) || errors.Is(err, fpga.ErrGone) {
		if why := explainLink(l); why != nil {
			return why
		}
	}
	return err
}

func openSSHDevice(ctx context.Context, rest string, o DeviceOptions) (fpga.Device, error) {
	p, err := parseSSH(rest)
	if err != nil {
		return nil, err
	}
	link, err := p.startAgent(ctx, &o.Access)
	if err != nil {
		return nil, err
	}
	d, err := remote.Dial(ctx, link.Target, remote.Options{ReadOnly: o.ReadOnly || o.DryRun != nil, Address: p.URL(p.device),
		BreakCause: func() error { return explainLink(link) }})
	if err != nil {
		return nil, errors.Join(explainDial(err, link), link.Close())
	}
	return &sshDevice{d, link}, nil
}

// openSSH opens the testbed behind an agent on another host. It has one card, and the tables and the tap that the agent
// lends.
func openSSH(ctx context.Context, rest string, o OpenOptions) (*Testbed, error) {
	p, err := parseSSH(rest)
	switch {
	case err != nil:
		return nil, err
	case o.Listen != "":
		return nil, fmt.Errorf("%w: the agent on %s serves P4Runtime itself", ErrBackend, p.Name())
	}
	link, err := p.startAgent(ctx, &o.Access)
	if err != nil {
		return nil, err
	}
	bed := &Testbed{close: []func() error{link.Close}, explain: func(err error) error { return explainDial(err, link) }}
	dial := remote.Options{Address: p.URL(p.device), BreakCause: func() error { return explainLink(link) }}
	if err := bed.attachAgent(ctx, link.Target, o.Access, dial); err != nil {
		return nil, errors.Join(explainDial(err, link), bed.Close())
	}
	return bed, nil
}
