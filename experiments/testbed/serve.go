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

// ServeOptions contains the options for lending a device.
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

// Service lends a device to other processes. At one address it offers the device's registers, time and tap. It also
// offers the device's tables over P4Runtime if this program drives them.
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
	pipeline *v1.ForwardingPipelineConfig // initial pipeline
	server   *grpc.Server
	done     chan error
	lost     chan error // has room for one error
	close    []func() error
}

// DefaultListen is the default address for devices that need no protection. Controllers try this address first.
const DefaultListen = "127.0.0.1:9559"

// completeListen sets the address on which a device is served if the options do not contain one.
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

// checkGuarded returns an error if hardware would be lent to all users of this host.
func (o *ServeOptions) checkGuarded() error {
	if o.TLS != nil || o.Insecure || strings.HasPrefix(o.Listen, "unix:") {
		return nil
	}
	if !agent.Loopback(o.Listen) { // not even --insecure allows this
		return fmt.Errorf("%w: anyone who can reach this host could write to the card at %s; use unix:PATH, or "+
			"'olafctl device serve' with --tls-cert", agent.ErrInsecure, o.Listen)
	}
	return fmt.Errorf("%w: every user of this host could write to the card at %s; use unix:PATH, or 'olafctl device "+
		"serve' with --tls-cert or --insecure", agent.ErrInsecure, o.Listen)
}

// ServeDevice lends the device at an address until Close is called. Only one process can open a device; all others use
// it through that process's agent.
func ServeDevice(ctx context.Context, address string, o ServeOptions) (*Service, error) {
	row, name, err := o.Device.deviceTable().Lookup(address)
	switch {
	case err != nil:
		return nil, err
	case row.Lend == nil:
		return nil, fmt.Errorf("%w to share for %q; this build shares %s", ErrBackend, address,
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

// ServeHost offers the services of this host, without a device, until Close is called.
func ServeHost(ctx context.Context, o ServeOptions) (*Service, error) {
	return serveLent(ctx, o, func(*Service) error { return nil })
}

// ServePrivately lends a device at a socket that only this user can access. Close removes the socket.
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

// serveLent listens on the address and serves the services that lend registers.
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

// controlTables starts a P4Runtime agent for the tables. check returns an error if the device has changed. It may be
// nil.
func (s *Service) controlTables(backend agent.Backend, profile p4.Profile, programs []program.Description,
	check func() error,
	o ServeOptions) error {
	a, err := agent.New(agent.Options{Backend: backend, Profile: profile, Programs: programs, Check: check,
		Journal: o.Journal, Warn: o.Warn})
	if err != nil {
		return err
	}
	s.close = append([]func() error{a.Close}, s.close...)
	v1.RegisterP4RuntimeServer(s.server, a)
	s.Tables, s.agent, s.pipeline = true, a, p4ctl.PipelineConfig(profile, o.Programs...)
	return nil
}

// registerDevice registers a device and, if there is one, its tap with the gRPC server.
func (s *Service) registerDevice(d fpga.Device, tap remote.Tap) *remote.Server {
	s.Identity, s.Captures = d.Identity(), tap != nil
	server := remote.NewServer(d, tap)
	server.Admit = s.admit
	server.Register(s.server)
	return server
}

// installPipeline sets the initial pipeline, unless the journal has restored one.
func (s *Service) installPipeline() error {
	if s.agent == nil {
		return nil
	}
	return s.agent.Install(s.pipeline)
}

// LostDevice returns a channel that receives an error when the device can no longer be lent, because it has disappeared
// or was reset or replaced.
func (s *Service) LostDevice() <-chan error { return s.lost }

func (s *Service) reportLost(err error) {
	select {
	case s.lost <- err:
	default: // only the first reason counts
	}
}

// lastAnswers is the time in which clients of a lost device can still receive the last answer.
const lastAnswers = time.Second

// End closes the service when all pending answers were sent, but at the latest after lastAnswers.
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
