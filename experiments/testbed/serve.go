package testbed

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"

	v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/remote"
	"github.com/olafctl/olaf/p4ctl"
	"github.com/olafctl/olaf/p4ctl/agent"
	"github.com/olafctl/olaf/p4ctl/p4"
)

// ServeOptions configures lending a device.
type ServeOptions struct {
	// Listen is unix:PATH or HOST:PORT, which must be a loopback address without TLS. Empty means DefaultListen, or a
	// private socket of this user for a guarded device.
	Listen   string
	TLS      *tls.Config // required of clients; nil for plain connections
	Insecure bool        // even a guarded device is lent to every user of this host, if Listen allows it
	Journal  string      // file that preserves the tables over a restart of the agent; may be empty
	// Warn, if set, receives warnings about a journal that was used despite a fault.
	Warn  func(string)
	Calls stats.Handler // receives every call; may be nil
	// Programs lists the switch programs whose tables the initial pipeline contains besides those of the blocks.
	Programs []program.Description
	Device   DeviceOptions
	Host     *HostService // also offers this host to the agent's head; may be nil
}

// Service is a device lent to other processes: its registers, time and tap, and, if this program drives them, its
// tables over P4Runtime, all at one address.
type Service struct {
	// Target is the address for clients to dial.
	Target string
	// Identity is the device's identity.
	Identity fpga.Identity
	// Tables is set if P4Runtime is served, Captures if frames that reach the parameter server are provided.
	Tables, Captures bool

	admit    func(user string) error      // see remote.Server; it also applies to writers of the tables
	owner    string                       // user for whom the device is lent
	agent    *agent.Agent                 // nil without tables
	pipeline *v1.ForwardingPipelineConfig // initial one
	server   *grpc.Server
	done     chan error
	lost     chan error // has room for one error
	close    []func() error
}

// DefaultListen is the default address for harmless devices, where controllers look first.
const DefaultListen = "127.0.0.1:9559"

// completeListen completes the address for a device.
func (o *ServeOptions) completeListen(row *Device, name string) (err error) {
	switch {
	case o.Listen == "" && row.Guarded && o.TLS == nil && !o.Insecure:
		o.Listen, err = ownSocket(row.Scheme(), name)
	case o.Listen == "":
		o.Listen = DefaultListen
	case row.Guarded:
		err = o.checkGuarded()
	}
	return err
}

// checkGuarded rejects lending hardware to all users of this host.
func (o *ServeOptions) checkGuarded() error {
	if o.TLS != nil || o.Insecure || strings.HasPrefix(o.Listen, "unix:") {
		return nil
	}
	if !agent.Loopback(o.Listen) { // not even --insecure allows this
		return fmt.Errorf("%w: anyone who can reach this host could write the card at %s; use unix:PATH, or 'olafctl device serve' with --tls-cert", agent.ErrInsecure, o.Listen)
	}
	return fmt.Errorf("%w: every user of this host could write the card at %s; use unix:PATH, or 'olafctl device serve' with --tls-cert or --insecure", agent.ErrInsecure, o.Listen)
}

// ServeDevice lends the device at an address until Close. One process owns a device; all others go through its agent.
func ServeDevice(ctx context.Context, address string, o ServeOptions) (*Service, error) {
	row, name, err := o.Device.deviceTable().Lookup(address)
	switch {
	case err != nil:
		return nil, err
	case row.Lend == nil:
		return nil, fmt.Errorf("%w to lend for %q; this build lends %s", ErrBackend, address,
			o.Device.deviceTable().LendableOnes().Forms())
	}
	if row.Named != nil {
		if err := row.Named(name); err != nil {
			return nil, err
		}
	}
	if len(o.Programs) > 0 {
		if err := o.Device.deviceTable().Check(address, TakesPrograms); err != nil {
			return nil, err
		}
	}
	if o.Device.Generator != "" {
		if err := o.Device.deviceTable().Check(address, TakesGenerator); err != nil {
			return nil, err
		}
	}
	if err := o.completeListen(row, name); err != nil {
		return nil, err
	}
	if err := o.Device.checkReserved(row, name); err != nil {
		return nil, err
	}
	return serveLent(ctx, o, func(s *Service) error {
		if row.Uses != nil { // reservations may come and go while it is lent
			s.admit = func(user string) error { return o.Device.LocalReservations().Check(user, row.Uses(name)...) }
		}
		return row.Lend(ctx, s, name, o)
	})
}

// ServeHost offers this host without a device until Close.
func ServeHost(ctx context.Context, o ServeOptions) (*Service, error) {
	return serveLent(ctx, o, func(*Service) error { return nil })
}

// ServePrivately lends the device at a private socket of this user, which Close removes.
func ServePrivately(ctx context.Context, address string, o ServeOptions) (*Service, error) {
	listen, remove, err := privateAddress()
	if err != nil {
		return nil, err
	}
	o.Listen = listen
	s, err := ServeDevice(ctx, address, o)
	if err != nil {
		return nil, errors.Join(err, remove())
	}
	s.close = append(s.close, remove)
	return s, nil
}

// serveLent listens and serves what lend registers.
func serveLent(ctx context.Context, o ServeOptions, lend func(*Service) error) (*Service, error) {
	listener, err := agent.Listen(o.Listen, o.TLS != nil) // first, because opening a card's tables empties them
	if err != nil {
		return nil, err
	}
	options := agent.ServerOptions(o.TLS)
	if o.Calls != nil {
		options = append(options, grpc.StatsHandler(o.Calls))
	}
	s := &Service{done: make(chan error, 1), lost: make(chan error, 1), owner: o.Device.OwnerName()}
	s.server = grpc.NewServer(append(options, grpc.ChainUnaryInterceptor(s.admitCall), grpc.ChainStreamInterceptor(s.admitStream))...)
	if o.Host != nil {
		o.Host.Register(s.server)
		s.close = append(s.close, o.Host.Close)
	}
	if err = lend(s); err == nil {
		err = s.installPipeline()
	}
	if err != nil {
		return nil, errors.Join(err, listener.Close(), s.closeAll())
	}
	s.Target = listener.Addr().String()
	if listener.Addr().Network() == "unix" {
		s.Target = "unix:" + s.Target
	}
	go func() { s.done <- agent.ServeUntilStopped(s.server, listener) }()
	return s, nil
}

// controlTables puts a P4Runtime agent in front of the tables. check returns an error if the device has changed; it may be
// nil.
func (s *Service) controlTables(backend agent.Backend, profile p4.Profile, told []program.Description,
	check func() error,
	o ServeOptions) error {
	a, err := agent.New(agent.Options{Backend: backend, Profile: profile, Programs: told, Check: check,
		Journal: o.Journal, Warn: o.Warn})
	if err != nil {
		return err
	}
	s.close = append([]func() error{a.Close}, s.close...)
	v1.RegisterP4RuntimeServer(s.server, a)
	s.Tables, s.agent, s.pipeline = true, a, p4ctl.PipelineConfig(profile, o.Programs...)
	return nil
}

// registerDevice registers a device and its tap, if any, on the gRPC server.
func (s *Service) registerDevice(d fpga.Device, tap remote.Tap) *remote.Server {
	s.Identity, s.Captures = d.Identity(), tap != nil
	server := remote.NewServer(d, tap)
	server.Admit = s.admit
	server.Register(s.server)
	return server
}

// installPipeline sets the initial pipeline, unless the journal restored one.
func (s *Service) installPipeline() error {
	if s.agent == nil {
		return nil
	}
	return s.agent.Install(s.pipeline)
}

// LostDevice returns a channel that receives the reason when the device is gone, reset or replaced and can no longer be
// lent.
func (s *Service) LostDevice() <-chan error { return s.lost }

func (s *Service) reportLost(err error) {
	select {
	case s.lost <- err:
	default: // only the first reason counts
	}
}

// lastAnswers limits how long clients of a lost device have to receive the last answer.
const lastAnswers = time.Second

// End closes the service after pending answers were sent, or after lastAnswers.
func (s *Service) End() error {
	timer := time.AfterFunc(lastAnswers, s.server.Stop)
	defer timer.Stop()
	s.server.GracefulStop()
	return s.Close()
}

// Close ends all sessions and releases the device.
func (s *Service) Close() error {
	s.server.Stop() // waits for sessions' work
	return errors.Join(<-s.done, s.closeAll())
}

func (s *Service) closeAll() error {
	var errs []error
	for _, f := range s.close {
		errs = append(errs, f())
	}
	s.close = nil
	return errors.Join(errs...)
}
