package testbed

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/proto"

	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/remote"
	"github.com/olafctl/olaf/p4ctl"
	"github.com/olafctl/olaf/p4ctl/p4"
)

// AgentDevice returns the row of the device table for devices that other processes lend. built lists the programs that
// such devices may have.
func AgentDevice(built ...program.Description) Device {
	return Device{
		Prefix: "grpc://", Name: "HOST:PORT", Also: "unix", Abilities: HasTables | LogsArrivals | AddsUpdates | Dialled | TakesGenerator,
		Programs:  built, // only the agent knows the details
		NotCard:   "it is for the card's host; use it with 'olafctl device serve' there",
		Registers: openAgentDevice, Testbed: openAgent,
	}
}

// AgentTarget returns the gRPC target for the address of an agent. The address has the form grpc://HOST:PORT or
// grpc:unix:PATH, with or without the scheme.
func AgentTarget(address string) (string, error) {
	target := strings.TrimPrefix(strings.TrimPrefix(address, "grpc:"), "//")
	if path, ok := strings.CutPrefix(target, "unix:"); ok && path != "" {
		return target, nil
	}
	if _, port, err := net.SplitHostPort(target); err == nil && port != "" {
		return target, nil
	}
	return "", fmt.Errorf("%w for agent %q: want HOST:PORT or unix:PATH, such as 127.0.0.1:9559", ErrBackend, target)
}

// ReachAgent returns the gRPC target of a device's agent, which is valid until done is called. If the device has no
// agent, ReachAgent starts one on the device's host, for this user only.
func ReachAgent(ctx context.Context, address string, a Access) (target string, done func() error, err error) {
	if target, err := AgentTarget(address); err == nil {
		return target, func() error { return nil }, nil
	}
	if row, name, err := a.deviceTable().Lookup(address); err == nil && row.Reach != nil {
		return row.Reach(ctx, name, a)
	}
	s, err := ServePrivately(ctx, address, ServeOptions{Device: DeviceOptions{Access: a}})
	if err != nil {
		return "", nil, err
	}
	return s.Target, s.Close, nil
}

// openAgentDevice opens the registers of the device behind an agent.
func openAgentDevice(ctx context.Context, rest string, o DeviceOptions) (fpga.Device, error) {
	target, err := AgentTarget(rest)
	if err != nil {
		return nil, err
	}
	d, err := remote.Dial(ctx, target, remote.Options{ReadOnly: o.ReadOnly || o.DryRun != nil, TLS: o.TLS})
	if err != nil {
		return nil, err // not a Device that contains a nil pointer
	}
	return d, nil
}

// openAgent opens the testbed behind an agent. It has one card, and the tables and the tap that the agent lends.
func openAgent(ctx context.Context, rest string, o OpenOptions) (*Testbed, error) {
	target, err := AgentTarget(rest)
	switch {
	case err != nil:
		return nil, err
	case o.Listen != "":
		return nil, fmt.Errorf("%w: the agent at %s serves P4Runtime itself, at the same address", ErrBackend, target)
	}
	bed := new(Testbed)
	if err := bed.attachAgent(ctx, target, o.Access, remote.Options{TLS: o.TLS}); err != nil {
		return nil, errors.Join(err, bed.Close())
	}
	return bed, nil
}

// OpenLent opens the testbed behind an agent of this process. Its device keeps its own address.
func OpenLent(ctx context.Context, target string, o OpenOptions) (*Testbed, error) {
	bed := new(Testbed)
	if err := bed.attachAgent(ctx, target, o.Access, remote.Options{TLS: o.TLS, Local: true}); err != nil {
		return nil, errors.Join(err, bed.Close())
	}
	return bed, nil
}

// attachAgent makes the device behind an agent the only card of the testbed.
func (b *Testbed) attachAgent(ctx context.Context, target string, o Access, dial remote.Options) error {
	o.TLS = dial.TLS
	d, err := remote.Dial(ctx, target, dial)
	if err != nil {
		return err
	}
	b.close = append(b.close, d.Close)
	card, err := b.tapAgent(ctx, d, &o)
	if err != nil {
		return err
	}
	b.Cards = []Card{card}
	return b.connectTables(ctx, target, o)
}

// tapAgent returns the device behind an agent with its tap. If the capture runs on another host, the tap is in this
// process, and the generator may belong to another device.
func (b *Testbed) tapAgent(ctx context.Context, d *remote.Device, o *Access) (Card, error) {
	whole, clock := fpga.Device(d), fpga.Registers(d)
	row, _, err := o.deviceTable().Lookup(d.Served().Address)
	if err != nil {
		row, _, err = o.deviceTable().Lookup(d.Served().Kind + ":")
	}
	if o.Card.Capture != nil && err == nil && row.NotCard != "" {
		return Card{}, fmt.Errorf("%w: --server is for a card, not for %s: %s", ErrUnsupported, d.Identity().Address, row.NotCard)
	}
	if o.Generator != "" {
		if o.Card.Capture == nil {
			return Card{}, fmt.Errorf("%w: the generator of %s is not on the host of %s; add --server ssh://HOST/INTERFACE, whose clock is compared with the generator's",
				ErrBackend, o.Generator, d.Identity().Address)
		}
		joined, generator, err := (&DeviceOptions{Access: *o}).joinGenerator(ctx, d)
		if err != nil {
			return Card{}, err
		}
		b.close = append(b.close, joined.Part)
		whole, clock = joined, generator
	}
	if o.Card.Capture != nil {
		tap, err := NewTap(clock, o.Card.Capture, o.Card.Mirror, o.hostClock(), o.Card.ServerPort)
		if err != nil {
			return Card{}, err
		}
		tap.queue = d
		b.close = append(b.close, tap.Close)
		return Card{whole, tap}, tap.openProbes(o.Card.Probes)
	}
	if !d.HasTap() {
		return Card{}, fmt.Errorf("%w: the agent of %s has no capture at the parameter server, so nothing can be "+
			"measured; for a card, start the agent with --capture INTERFACE, or add --server ssh://HOST/INTERFACE",
			ErrBackend, d.Identity().Address)
	}
	return Card{d, d}, nil
}

// connectTables makes this process the primary controller of the tables at target.
func (b *Testbed) connectTables(ctx context.Context, target string, o Access) error {
	session, err := p4ctl.Dial(ctx, target, p4ctl.Options{Succeed: true, TLS: o.TLS, Programs: o.Programs})
	if err != nil {
		return err
	}
	b.close = append(b.close, session.Close)
	if session.State() != p4ctl.Primary {
		return session.Err()
	}
	has, err := session.Pipeline(ctx)
	b.Tables, b.profile = session, p4ctl.ProfileOf(has.GetP4Info())
	if err == nil && b.isOurPipeline(has) {
		b.P4InfoHash = p4.Hash(has.P4Info)
		return nil // it may contain tables of a switch program for its owner to read
	}
	return b.pushPipeline(ctx) // a device that cannot return its pipeline reports the reason here
}

// isOurPipeline reports whether the given pipeline is one that this program pushes, with or without the tables of
// switch programs.
func (b *Testbed) isOurPipeline(has *v1.ForwardingPipelineConfig) bool {
	for _, t := range b.profile.Info().Tables {
		if !slices.ContainsFunc(has.GetP4Info().GetTables(),
			func(given *configv1.Table) bool { return proto.Equal(given, t) }) {
			return false
		}
	}
	return true
}
