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

// ServeOptions say how a device is lent.
type ServeOptions struct {
	// Listen is unix:PATH or HOST:PORT, without TLS a loopback one; empty for DefaultListen, or a socket of this user's alone
	// where the device is guarded.
	Listen   string
	TLS      *tls.Config // what clients must speak; nil for plain connections
	Insecure bool        // also a guarded device is lent to every user of this host, where Listen says so
	Journal  string      // file that keeps the tables over a restart of the agent; empty for none
	// Warn is told what a person should know of a journal that was taken all the same; nil tells nobody.
	Warn  func(string)
	Calls stats.Handler // hears of every call; nil for nobody
	// Programs are the switch programs whose tables the pipeline has to begin with, beside those of the blocks.
	Programs []program.Description
	Device   DeviceOptions
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

	agent    *agent.Agent                 // nil without tables
	pipeline *v1.ForwardingPipelineConfig // to begin with
	server   *grpc.Server
	done     chan error
	lost     chan error // has room for one error
	close    []func() error
}

// DefaultListen is where a device is lent that does no harm, and where controllers look first.
const DefaultListen = "127.0.0.1:9559"

// listen completes the address for a device.
func (o *ServeOptions) listen(row *Device, name string) (err error) {
	switch {
	case o.Listen == "" && row.Guarded && o.TLS == nil && !o.Insecure:
		o.Listen, err = ownSocket(row.Scheme(), name)
	case o.Listen == "":
		o.Listen = DefaultListen
	case row.Guarded:
		err = o.guarded()
	}
	return err
}

// guarded refuses to lend hardware to whoever is on this host.
func (o *ServeOptions) guarded() error {
	if o.TLS != nil || o.Insecure || strings.HasPrefix(o.Listen, "unix:") {
		return nil
	}
	if !agent.Loopback(o.Listen) { // which no --insecure opens
		return fmt.Errorf("%w: anyone who can reach this host could write the card at %s; use unix:PATH, or 'olafctl device serve' with --tls-cert", agent.ErrInsecure, o.Listen)
	}
	return fmt.Errorf("%w: every user of this host could write the card at %s; use unix:PATH, or 'olafctl device serve' with --tls-cert or --insecure", agent.ErrInsecure, o.Listen)
}

// Serve lends the device at an address until Close. One process owns a device; everybody else goes through its agent.
func Serve(ctx context.Context, address string, o ServeOptions) (*Service, error) {
	row, name, err := o.Device.devices().Of(address)
	switch {
	case err != nil:
		return nil, err
	case row.Lend == nil:
		return nil, fmt.Errorf("%w to lend for %q; this build lends %s", ErrBackend, address, o.Device.devices().Lent().Forms())
	}
	if row.Named != nil {
		if err := row.Named(name); err != nil {
			return nil, err
		}
	}
	if len(o.Programs) > 0 {
		if err := o.Device.devices().Check(address, TakesPrograms); err != nil {
			return nil, err
		}
	}
	if o.Device.Generator != "" {
		if err := o.Device.devices().Check(address, TakesGenerator); err != nil {
			return nil, err
		}
	}
	if err := o.listen(row, name); err != nil {
		return nil, err
	}
	return serve(ctx, o, func(s *Service) error { return row.Lend(ctx, s, name, o) })
}

// ServePrivately lends the device at a socket of its own, which only this user reaches and which is gone after Close.
func ServePrivately(ctx context.Context, address string, o ServeOptions) (*Service, error) {
	listen, remove, err := privateAddress()
	if err != nil {
		return nil, err
	}
	o.Listen = listen
	s, err := Serve(ctx, address, o)
	if err != nil {
		return nil, errors.Join(err, remove())
	}
	s.close = append(s.close, remove)
	return s, nil
}

// serve listens and offers what lend registers.
func serve(ctx context.Context, o ServeOptions, lend func(*Service) error) (*Service, error) {
	listener, err := agent.Listen(o.Listen, o.TLS != nil) // first: to open a card's tables is to empty them
	if err != nil {
		return nil, err
	}
	options := agent.ServerOptions(o.TLS)
	if o.Calls != nil {
		options = append(options, grpc.StatsHandler(o.Calls))
	}
	s := &Service{done: make(chan error, 1), lost: make(chan error, 1), server: grpc.NewServer(options...)}
	if err = lend(s); err == nil {
		err = s.install()
	}
	if err != nil {
		return nil, errors.Join(err, listener.Close(), s.release())
	}
	s.Target = listener.Addr().String()
	if listener.Addr().Network() == "unix" {
		s.Target = "unix:" + s.Target
	}
	go func() { s.done <- agent.ServeUntilStopped(s.server, listener) }()
	return s, nil
}

// control puts a P4Runtime agent in front of the tables. check returns an error once the device is another one; it may be nil.
func (s *Service) control(backend agent.Backend, profile p4.Profile, told []program.Description, check func() error, o ServeOptions) error {
	a, err := agent.New(agent.Options{Backend: backend, Profile: profile, Programs: told, Check: check, Journal: o.Journal, Warn: o.Warn})
	if err != nil {
		return err
	}
	s.close = append([]func() error{a.Close}, s.close...)
	v1.RegisterP4RuntimeServer(s.server, a)
	s.Tables, s.agent, s.pipeline = true, a, p4ctl.PipelineConfig(profile, o.Programs...)
	return nil
}

// lend registers a device and its tap, if it has one, on the gRPC server.
func (s *Service) lend(d fpga.Device, tap remote.Tap) *remote.Server {
	s.Identity, s.Captures = d.Identity(), tap != nil
	server := remote.NewServer(d, tap)
	server.Register(s.server)
	return server
}

// install makes the tables usable from the first moment, and leaves a pipeline alone that the journal brought back.
func (s *Service) install() error {
	if s.agent == nil {
		return nil
	}
	return s.agent.Install(s.pipeline)
}

// Lost receives the reason when the device turns out to be gone, reset or another one. Nothing can be lent any more then.
func (s *Service) Lost() <-chan error { return s.lost }

func (s *Service) lose(err error) {
	select {
	case s.lost <- err:
	default: // the first reason counts
	}
}

// lastAnswers is how long clients of a lost device have to receive the answer that says so.
const lastAnswers = time.Second

// End closes the service after answers that are on their way have arrived, or lastAnswers later.
func (s *Service) End() error {
	timer := time.AfterFunc(lastAnswers, s.server.Stop)
	defer timer.Stop()
	s.server.GracefulStop()
	return s.Close()
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
