package roles

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/olafctl/olaf/capture/live"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/experiments/testbed/lab"
	"github.com/olafctl/olaf/experiments/testbed/sshlink"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/results"
)

// NewDevice returns the row of the device table for testbeds with roles. Their addresses contain the path of a file
// or the name of a testbed that is up.
func NewDevice(built ...program.Description) testbed.Device {
	return testbed.Device{
		Prefix: "testbed:", Name: "FILE", Abilities: testbed.HasTables | testbed.LogsArrivals | testbed.AddsUpdates | testbed.PassesDriver,
		Programs:  built, // only the agent of the queue knows the details
		NotCard:   "its file names generator and server",
		Named:     func(name string) error { _, err := FindPlan(name); return err },
		Registers: openQueueRegisters, Testbed: openRoles,
	}
}

// FindPlan returns the plan of a testbed with roles. name is the path of a file or the name of a testbed that is up.
// The error matches ErrFile or ErrAbsent.
func FindPlan(name string) (*Plan, error) {
	if !strings.ContainsAny(name, "./") {
		return loadUp(name)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("%w: testbed:%s: %w", lab.ErrFile, name, err)
	}
	f, err := lab.Parse(name, text)
	if err != nil {
		return nil, err
	}
	if f.Roles == nil {
		return nil, fmt.Errorf("%w: %s describes nodes, not roles; use it as -d xdp:%[2]s", lab.ErrFile, name)
	}
	return ResolveRoles(f)
}

// findQueue returns the plan of a testbed like FindPlan. It returns an error if the testbed has no queue.
func findQueue(name string) (*Plan, error) {
	p, err := FindPlan(name)
	if err == nil && p.Queue == nil {
		err = fmt.Errorf("%w: testbed %s has nodes, not roles; start its workers in their namespaces, which 'olafctl testbed show' lists",
			testbed.ErrUnsupported, p.Name)
	}
	return p, err
}

// openQueueRegisters opens the registers of the device that contains the queue.
func openQueueRegisters(ctx context.Context, name string, o testbed.DeviceOptions) (fpga.Device, error) {
	p, err := findQueue(name)
	if err != nil {
		return nil, err
	}
	if o.Access, err = p.Access(o.Access); err != nil {
		return nil, err
	}
	return testbed.OpenDevice(ctx, p.addressOf(lab.QueueName, p.Queue), o)
}

// openRoles opens a testbed with roles. It consists of the queue's device, and of the generator and the capture on
// their hosts.
func openRoles(ctx context.Context, name string, o testbed.OpenOptions) (bed *testbed.Testbed, err error) {
	p, err := findQueue(name)
	if err != nil {
		return nil, err
	}
	s, err := ConnectHosts(ctx, p, o.Access)
	if err != nil {
		noteError(name, time.Now(), err)
		return nil, err
	}
	defer func() {
		if err != nil {
			noteError(name, time.Now(), err)
			err = errors.Join(err, s.Close())
		}
	}()
	examined, err := s.Examine(ctx, o.Frame)
	if err != nil {
		return nil, err
	}
	if err := Fault(examined, true); err != nil {
		return nil, err
	}
	if err := s.checkUp(ctx, o.SSH.Serve); err != nil {
		return nil, err
	}
	if bed, err = s.open(ctx, o); err != nil {
		return nil, p.adviseSudo(p.Queue.Host, p.explainHeld(err, examined))
	}
	// Probe frames follow only now, because the devices may be in use by another run, which would count them.
	if err = p.checkCable(ctx, bed); err == nil {
		_, err = s.requireLinks(ctx, nil)
	}
	if err != nil {
		return nil, errors.Join(err, bed.Close())
	}
	s.logRoles()
	bed.JoinHosts(func(ctx context.Context) []results.Host { return s.describe(ctx, examined) }, s.Close)
	bed.KeepErrors(func(err error) {
		noteError(name, time.Now(), err)
		s.logs.add(p.Queue.Host, "error: %v", err)
		s.stopUnheldGenerators(context.WithoutCancel(ctx))
	})
	return bed, nil
}

// logRoles adds to each host's log which devices and interfaces are in use for its roles.
func (s *Hosts) logRoles() {
	p := s.plan
	for _, role := range []struct {
		*Role
		name string
	}{{p.Generator, lab.Generator}, {p.Queue, lab.QueueName}, {p.Server, "server"}, {p.Mirror, lab.ByMirror}} {
		if role.Role != nil {
			s.logs.add(role.Host, "opened %s for the role %s", cmp.Or(role.Device, role.Interface), role.name)
		}
	}
}

// open opens the queue's device with the generator and the captures on their hosts.
func (s *Hosts) open(ctx context.Context, o testbed.OpenOptions) (*testbed.Testbed, error) {
	p := s.plan
	o.Access = s.access
	if g := p.Generator; g != nil && !(p.isUp && p.joinsAtQueue()) { // else the holder has joined both
		o.Generator = p.addressOf(lab.Generator, g)
	}
	if err := p.placeCapture(ctx, &o, &s.access); err != nil {
		return nil, err
	}
	if m := p.Mirror; m != nil {
		o.Card.Mirror = new(testbed.Mirror)
		if p.hasSeparateMirror() {
			o.Card.Mirror.Open = func() (testbed.Frames, error) {
				return s.linkOf(m.Host).capture(ctx, live.Options{Interface: m.Interface, Stamps: m.Stamps, Promiscuous: true})
			}
		}
	}
	if p.ClockBy == lab.ByProbe {
		o.Card.Probes = &testbed.Probes{AtMostNS: p.ClockNS, Open: func() (testbed.Frames, error) {
			return s.linkOf(p.Server.Host).capture(ctx, live.Options{Interface: p.Server.Interface, Stamps: p.Server.Stamps, Promiscuous: true,
				Port: regmap.NotOlafPort})
		}}
	}
	if p.isUp || p.HostOf(p.Queue.Host).SSH != "" {
		return testbed.OpenTestbed(ctx, p.addressOf(lab.QueueName, p.Queue), o)
	}
	return openHere(ctx, p.Queue.Device, o)
}

// checkCable sends frames from the generator's card to the queue's, if both are cards. Links between interfaces were
// checked before.
func (p *Plan) checkCable(ctx context.Context, bed *testbed.Testbed) error {
	g := p.Generator
	if g == nil || g.Device == "" {
		return nil
	}
	if err := bed.CheckCable(ctx); err != nil {
		return fmt.Errorf("link from %s of host %s to %s of host %s: %w", g.Device, g.Host, p.Queue.Device, p.Queue.Host, err)
	}
	return nil
}

// placeCapture arranges that the capture at the server starts with the testbed. If the queue is on the server's host,
// the queue's agent captures, so that the clocks of two hosts need not be compared. Otherwise this process captures.
func (p *Plan) placeCapture(ctx context.Context, o *testbed.OpenOptions, a *testbed.Access) error {
	if p.Server == nil {
		return nil
	}
	row, _, err := o.Devices.Lookup(p.Queue.Device)
	switch {
	case err != nil:
		return fmt.Errorf("host %s: %w", p.Queue.Host, err)
	case row.NotCard != "":
		return fmt.Errorf("host %s: %w: the server captures behind %s, but %s; leave the server out", p.Queue.Host,
			testbed.ErrUnsupported, p.Queue.Device, row.NotCard)
	case p.capturesAtQueue() && p.isUp: // by the holder
		return nil
	case p.capturesAtQueue() && p.HostOf(p.Queue.Host).SSH != "":
		o.SSH.Serve = append(o.SSH.Serve, "--capture", p.Server.Interface, "--server-port", strconv.Itoa(p.Queue.Port))
		if p.Server.Stamps != live.Auto {
			o.SSH.Serve = append(o.SSH.Serve, "--stamps", string(p.Server.Stamps))
		}
		return nil
	}
	o.Card.ServerPort = p.Queue.Port
	o.Card.Capture = func() (testbed.Frames, error) { return p.capture(ctx, a) }
	return nil
}

// openHere opens a device of this host through a separate agent, in the same way as devices of other hosts.
func openHere(ctx context.Context, device string, o testbed.OpenOptions) (*testbed.Testbed, error) {
	lends := o.Access
	if o.Card.Probes != nil { // this process measures the path with the generator, so it captures as well
		lends.Generator, lends.Card.Capture = "", nil
	} else {
		o.Generator, o.Card.Capture, o.Card.Mirror = "", nil, nil // the service has them
	}
	lent, err := testbed.ServePrivately(ctx, device, testbed.ServeOptions{Device: testbed.DeviceOptions{Access: lends}})
	if err != nil {
		return nil, err
	}
	bed, err := testbed.OpenLent(ctx, lent.Target, o)
	if err != nil {
		return nil, errors.Join(err, lent.Close())
	}
	bed.JoinHosts(nil, lent.Close)
	return bed, nil
}

// capture starts a capture at the server's interface.
func (p *Plan) capture(ctx context.Context, a *testbed.Access) (testbed.Frames, error) {
	h := p.HostOf(p.Server.Host)
	o := live.Options{Interface: p.Server.Interface, Stamps: p.Server.Stamps, Promiscuous: true}
	if h.SSH == "" {
		if a.OpenCapture == nil {
			return nil, fmt.Errorf("%w: this program captures nothing", testbed.ErrUnsupported)
		}
		return a.OpenCapture(o)
	}
	at, _, err := sshlink.Parse(h.Address(""))
	if err != nil {
		return nil, err
	}
	host, err := testbed.ConnectHost(ctx, at, a)
	if err != nil {
		return nil, fmt.Errorf("host %s: %w", h.Name, err)
	}
	frames, err := host.OpenFrames(ctx, o)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("host %s: %w", h.Name, err), host.Close())
	}
	return &boundedFrames{HostFrames: frames, bound: clockBound{p.ClockBy == lab.ByPTP, p.ClockNS}}, nil
}

// boundedFrames is a capture on another host whose clock is within a bound that the file states.
type boundedFrames struct {
	*testbed.HostFrames
	bound  clockBound
	beyond string
}

// clockBound is the bound that a file states for the clocks.
type clockBound struct {
	stated bool  // the bound is stated for PTP; otherwise the exchanges must achieve it
	ns     int64 // 0 for any
}

// Offset returns the offset of the clock that provides the timestamps. It returns an error if the measured offset
// contradicts the bound in the file.
func (f *boundedFrames) Offset() (testbed.Offset, error) {
	o, err := f.HostFrames.Offset()
	if err != nil {
		return o, err
	}
	o, f.beyond, err = f.bound.apply(o)
	return o, err
}

// apply returns the offset to be used if o was measured. beyond is the reason why ages must be withheld, if any.
func (b clockBound) apply(o testbed.Offset) (use testbed.Offset, beyond string, err error) {
	switch away := max(o.OffsetNS, -o.OffsetNS); {
	case b.ns == 0:
		return o, "", nil
	case b.stated && away > o.BoundNS+b.ns:
		return o, "", fmt.Errorf("%w: they are %v apart, within %v, where the testbed's file states at most %v", errClocks,
			time.Duration(away), time.Duration(o.BoundNS), time.Duration(b.ns))
	case b.stated:
		return testbed.Offset{AtNS: o.AtNS, BoundNS: b.ns}, "", nil
	case o.BoundNS > b.ns:
		beyond = fmt.Sprintf("the server's clock was compared within %v, and the testbed's file allows %v (clock.at_most)",
			time.Duration(o.BoundNS), time.Duration(b.ns))
	}
	return o, beyond, nil
}

// WithholdAges returns the reason why ages since the last call must be withheld, or "" if they are valid.
func (f *boundedFrames) WithholdAges() string {
	why := f.beyond
	f.beyond = ""
	return why
}

// errorFile returns the path of the file with a testbed's last error. It is next to the testbed's plan.
func errorFile(name string) (string, error) {
	path, err := upFile(name)
	return strings.TrimSuffix(path, ".json") + ".error", err
}

// noteError stores the failure of a command that used a testbed which is up. A testbed from a file has no stored
// failure, because it is removed when the command ends.
func noteError(name string, at time.Time, failure error) {
	if strings.ContainsAny(name, "./") || errors.Is(failure, lab.ErrAbsent) {
		return
	}
	if path, err := errorFile(name); err == nil {
		testbed.LastError{At: at, Error: failure.Error()}.Store(path)
	}
}

// FindLastError returns the last failure of a command that used a testbed. It returns nil if the testbed is not up or
// no command failed.
func FindLastError(name string) *testbed.LastError {
	path, err := errorFile(name)
	if err != nil {
		return nil
	}
	return testbed.LoadLastError(path)
}
