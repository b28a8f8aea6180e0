package testbed

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"

	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/pcie"
	"github.com/olafctl/olaf/fpga/remote"
	"github.com/olafctl/olaf/fpga/twin"
	"github.com/olafctl/olaf/p4ctl"
	"github.com/olafctl/olaf/p4ctl/agent"
	"github.com/olafctl/olaf/p4ctl/p4"
)

// ServeOptions say how a device is lent.
type ServeOptions struct {
	Listen  string      // unix:PATH or HOST:PORT; without TLS a loopback one
	TLS     *tls.Config // what clients must speak; nil for plain connections
	Journal string      // file that keeps the tables over a restart of the agent; empty for none
	Device  DeviceOptions
}

// Service is a device that other processes use: its registers, time and tap, and, where this program drives them, its
// tables over P4Runtime, all at one address.
type Service struct {
	// Target is the address in the form that clients dial.
	Target string
	// Identity is the device's.
	Identity fpga.Identity
	// Tables says whether P4Runtime is served too, and Captures whether what reaches the parameter server is handed out.
	Tables, Captures bool

	agent   *agent.Agent // nil without tables
	profile p4.Profile
	server  *grpc.Server
	done    chan error
	close   []func() error
}

// Serve lends the device at an address until Close. One process owns a device; everybody else goes through its agent.
func Serve(ctx context.Context, address string, o ServeOptions) (*Service, error) {
	listener, err := agent.Listen(o.Listen, o.TLS != nil) // first: to open a card's tables is to empty them
	if err != nil {
		return nil, err
	}
	s := &Service{done: make(chan error, 1), server: grpc.NewServer(agent.ServerOptions(o.TLS)...)}
	if err = s.open(ctx, address, o); err == nil {
		err = s.pushPipeline(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, listener.Close(), s.release())
	}
	s.Target = listener.Addr().String()
	if listener.Addr().Network() == "unix" {
		s.Target = "unix:" + s.Target
	}
	go func() { s.done <- s.server.Serve(listener) }()
	return s, nil
}

// open registers what the device has on the gRPC server.
func (s *Service) open(ctx context.Context, address string, o ServeOptions) error {
	if scheme, _, _ := strings.Cut(address, ":"); scheme != "twin" && address != "" {
		return s.openDevice(ctx, address, o)
	}
	backend := new(agent.Embedded)
	d, err := twin.New(twin.Config{Tables: TablesOf(backend)})
	if err != nil {
		return err
	}
	s.close = append(s.close, d.Close)
	s.lend(d, d)
	return s.control(backend, p4.Twin(), o.Journal)
}

// openDevice lends what has registers; a card also its tables, where there is a driver for them.
func (s *Service) openDevice(ctx context.Context, address string, o ServeOptions) error {
	d, err := OpenDevice(ctx, address, o.Device)
	if err != nil {
		return err
	}
	card, ok := d.(*pcie.Device)
	if !ok {
		s.close = append(s.close, d.Close)
		s.lend(d, nil)
		return nil
	}
	return s.openCard(card, o)
}

// openCard lends a card, with a tap where something captures behind it, and with its tables where there is a driver.
func (s *Service) openCard(card *pcie.Device, o ServeOptions) error {
	s.close = append(s.close, card.Close)
	var tap remote.Tap
	if o.Device.Card.Capture != nil {
		t, err := s.captureBehind(card, o.Device.Access)
		if err != nil {
			return err
		}
		tap = t
	}
	server := s.lend(card, tap)
	if o.Device.Card.Tables == nil {
		return nil
	}
	backend, stop, err := o.Device.Card.Tables(&CardTables{server, card})
	if err != nil {
		return fmt.Errorf("the tables' driver: %w", err)
	}
	s.close = append([]func() error{stop}, s.close...) // before the card
	return s.control(backend, p4.Lab(), o.Journal)
}

// control puts a P4Runtime agent in front of the tables.
func (s *Service) control(backend agent.Backend, profile p4.Profile, journal string) error {
	a, err := agent.New(agent.Options{Backend: backend, Profile: profile, Journal: journal})
	if err != nil {
		return err
	}
	s.close = append([]func() error{a.Close}, s.close...)
	v1.RegisterP4RuntimeServer(s.server, a)
	s.Tables, s.agent, s.profile = true, a, profile
	return nil
}

// lend registers a device and its tap, if it has one, on the gRPC server.
func (s *Service) lend(d fpga.Device, tap remote.Tap) *remote.Server {
	s.Identity, s.Captures = d.Identity(), tap != nil
	server := remote.NewServer(d, tap)
	server.Register(s.server)
	return server
}

// pushPipeline makes the tables usable from the first moment, over a socket of this process alone: whoever is let in by
// TLS, the agent itself need not be. It leaves a pipeline alone that the journal brought back.
func (s *Service) pushPipeline(ctx context.Context) (err error) {
	if s.agent == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	address, remove, err := privateAddress()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	listener, err := agent.Listen(address, false)
	if err != nil {
		return err
	}
	server := s.agent.Serve(listener, nil)
	defer func() { err = errors.Join(err, server.Close()) }()
	session, err := p4ctl.Dial(ctx, server.Target(), p4ctl.Options{})
	if err != nil {
		return err
	}
	_, err = session.PushPipeline(ctx, p4ctl.PipelineConfig(s.profile))
	return errors.Join(err, session.Close())
}

// Close ends all sessions and gives the device back.
func (s *Service) Close() error {
	s.server.Stop()
	return errors.Join(<-s.done, s.release())
}

func (s *Service) release() error {
	var errs []error
	for _, f := range s.close {
		errs = append(errs, f())
	}
	s.close = nil
	return errors.Join(errs...)
}

// AgentTarget is what is dialled for an agent's address: grpc://HOST:PORT, grpc:unix:PATH, or either without the scheme.
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

// openAgentDevice opens the registers behind an agent.
func openAgentDevice(ctx context.Context, rest string, o DeviceOptions) (fpga.Device, error) {
	target, err := AgentTarget(rest)
	if err != nil {
		return nil, err
	}
	d, err := remote.Dial(ctx, target, remote.Options{ReadOnly: o.ReadOnly || o.DryRun != nil, TLS: o.TLS})
	if err != nil {
		return nil, err // not a Device that holds nothing
	}
	return d, nil
}

// openAgent opens the testbed behind an agent: one card, with the agent's tables and tap.
func openAgent(ctx context.Context, rest string, o OpenOptions) (*Testbed, error) {
	target, err := AgentTarget(rest)
	switch {
	case err != nil:
		return nil, err
	case o.Listen != "":
		return nil, fmt.Errorf("%w: the agent at %s serves its own P4Runtime, at the same address", ErrBackend, target)
	case o.Wire:
		return nil, fmt.Errorf("%w: frames do not travel over grpc; use the twin itself, or capture at the parameter server's interface", ErrBackend)
	}
	bed := new(Testbed)
	if err := bed.attach(ctx, target, o.Access, false); err != nil {
		return nil, errors.Join(err, bed.Close())
	}
	return bed, nil
}

// attach makes the device of an agent, which may be part of this process, the testbed's only card.
func (b *Testbed) attach(ctx context.Context, target string, o Access, local bool) error {
	d, err := remote.Dial(ctx, target, remote.Options{TLS: o.TLS, Local: local})
	if err != nil {
		return err
	}
	b.Cards = []Card{{d, d}}
	b.close = append(b.close, d.Close)
	if !d.HasTap() {
		return fmt.Errorf("%w: the agent at %s captures nothing at the parameter server, so that nothing can be measured; on a card start it with --capture INTERFACE", ErrBackend, target)
	}
	return b.connect(ctx, target, o.TLS)
}

// connect makes this process the primary controller of the tables at target.
func (b *Testbed) connect(ctx context.Context, target string, secure *tls.Config) error {
	session, err := p4ctl.Dial(ctx, target, p4ctl.Options{TLS: secure})
	if err != nil {
		return err
	}
	b.close = append(b.close, session.Close)
	pipeline := pipelineOf(ctx, session)
	if _, err := session.PushPipeline(ctx, pipeline); err != nil {
		return err
	}
	b.Tables, b.P4InfoHash = session, p4.Hash(pipeline.P4Info)
	return nil
}

// pipelineOf is our pipeline in the size that a device has already; a card has smaller tables than the twin.
func pipelineOf(ctx context.Context, session *p4ctl.Session) *v1.ForwardingPipelineConfig {
	lab := p4ctl.PipelineConfig(p4.Lab())
	has, err := session.Pipeline(ctx)
	if err == nil && has.GetCookie().GetCookie() == lab.Cookie.Cookie {
		return lab
	}
	return p4ctl.PipelineConfig(p4.Twin()) // whatever kept a device from telling, it keeps it from taking this too
}
