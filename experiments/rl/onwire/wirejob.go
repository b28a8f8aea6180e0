package onwire

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/bench/job"
	"github.com/olafctl/olaf/experiments/bench/wired"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/pktgen/attach"
	"github.com/olafctl/olaf/pktgen/endpoint"
	"github.com/olafctl/olaf/pktgen/process"
)

// WireJob is a job whose workers and server exchange whole frames with a switch in user space. Programs compute at the
// workers and, if the workers do not wait for each other, at the server.
type WireJob struct {
	spec    *job.Spec
	parts   system.Parts
	job     closedloop.Job
	network closedloop.Network
	largest int // values in a program's longest vector
}

// wireLongest is the maximum time after which a host resends packets while the program of another host is computing.
const wireLongest = olaf.Second

// BuildWireJob builds a job for programs with vectors of up to the given number of values. spec returns the system's
// specification with the given options. If o.Profile is empty, the job has the first profile whose sums are exact.
// timeout is the time after which a worker resends packets, if the system has one.
func BuildWireJob(spec func(system.Options) (*job.Spec, error), o system.Options, workers, values int,
	timeout time.Duration) (*WireJob, error) {
	if workers < 1 || values < 1 || values > attach.MaxValues {
		return nil, fmt.Errorf("%w: %d workers and vectors of %d values; use 1 or more, and up to %d values",
			attach.ErrConfig, workers, values, attach.MaxValues)
	}
	o.Longest = wireLongest
	s, err := spec(o)
	if err != nil {
		return nil, err
	}
	if slices.Contains(s.Mode.Takes, system.OptionTimeout) {
		o.Timeout = olaf.Duration(timeout) * olaf.Nanosecond
	}
	profiles := []string{o.Profile}
	if o.Profile == "" && s.System.Program != nil {
		profiles = append(profiles, s.System.Program.Profiles...)
	}
	for i, profile := range profiles {
		o.Profile = profile
		w := &WireJob{largest: values}
		if w.spec, err = spec(o); err != nil {
			return nil, err
		}
		if err = w.layOut(workers); err != nil || !w.parts.Inexact || i == 0 && profile != "" {
			return w, err
		}
	}
	return nil, fmt.Errorf("%w: no profile of %s has exact sums; choose a profile with --%s", system.ErrOptions,
		s.System.Name, system.OptionProfile)
}

// layOut builds the parts of the system. The parts have room for a program's values and for the numbers that precede
// the values.
func (w *WireJob) layOut(workers int) (err error) {
	if w.parts, w.job, err = w.spec.Build(w.largest, 1); err != nil {
		return err
	}
	w.network = w.spec.Network
	w.network.Jobs, w.network.Workers = 1, workers
	if !w.spec.Mode.Sync && w.parts.Server == nil {
		return fmt.Errorf("%w: in mode %s the workers of %s apply sums themselves, so that there is no server for a program; "+
			"use 'olafctl train --program' with --mode %s in virtual time, where one program applies them for all workers",
			system.ErrOptions, w.spec.Mode.Name, w.spec.System.Name, w.spec.Mode.Name)
	}
	c := w.config()
	w.parts, w.job, err = w.spec.Build(c.FloatsJob(), 1)
	w.job.Varies = true
	return err
}

// config returns the configuration that all hosts have in common.
func (w *WireJob) config() attach.Config {
	c := attach.Config{System: w.spec.System.Name, Waits: w.spec.Mode.Sync, Workers: w.network.Workers, Largest: w.largest}
	if !c.Waits {
		c.Floats, c.Lanes = true, w.largest+attach.Overhead
		return c
	}
	k := &w.parts.Conversion
	c.Conversion, c.Lanes, c.Scale = k, w.parts.PerPacket+attach.Overhead, k.Scale
	c.Numbers = w.parts.Numbers
	c.Floats, c.RefusesNaN, c.Inexact = k.IsExact() || k.Block, k.Block, w.parts.Inexact
	return c
}

// WorkerConfig returns the configuration of a worker, whose numbers begin at 0.
func (w *WireJob) WorkerConfig(number int) attach.Config {
	c := w.config()
	c.Worker = number
	return c
}

// ServerConfig returns the configuration of the server. The error matches system.ErrOptions if the job has no server, or
// if no program can compute there although one is to attach.
func (w *WireJob) ServerConfig(attaches bool) (attach.Config, error) {
	c, name := w.config(), w.spec.System.Name
	c.Server = true
	var err error
	switch modes := w.spec.System.Modes; {
	case w.parts.Server == nil:
		err = fmt.Errorf("%w: %s has no server; start its workers, and 'olafctl testbed switch'", system.ErrOptions, name)
	case attaches && w.spec.Mode.Sync && len(modes) > 1:
		err = fmt.Errorf("%w: in mode %s the server of %s only adds vectors; attach programs to the workers, or use --mode %s "+
			"for a program at the server", system.ErrOptions, w.spec.Mode.Name, name, modes[1].Name)
	case attaches && w.spec.Mode.Sync:
		err = fmt.Errorf("%w: the server of %s completes the sum of each packet by itself and never has a whole vector; attach "+
			"programs to the workers, or use --system ps --mode async for a program at the server", system.ErrOptions, name)
	case !attaches && !w.spec.Mode.Sync:
		err = fmt.Errorf("%w: in mode %s a program answers every update; add --attach unix:PATH", system.ErrOptions,
			w.spec.Mode.Name)
	}
	return c, err
}

// Computation is the work of a host whose program attaches to a socket.
type Computation interface {
	process.Work
	attach.Handler
}

// NewComputation returns the work of a host. end is called when the program or the job ends; see attach.NewRounds. logf
// reports workers that send other vectors than the server expects.
func NewComputation(c attach.Config, end context.CancelCauseFunc, logf func(format string, a ...any)) (Computation, error) {
	switch {
	case c.Server:
		return attach.NewUpdates(c, end, logf)
	case c.Waits:
		return attach.NewRounds(c, end)
	}
	return attach.NewPushes(c, nil, end)
}

// player returns the player and the codec of a host.
func (w *WireJob) player(number int, work process.Work, patience time.Duration) (*process.Player, *wired.HostFrames) {
	codec := wired.NewHostFrames(&w.parts, w.network.Workers, number)
	p := &process.Player{Work: work, Patience: patience, Number: olaf.WorkerID(number), Others: w.others(number),
		To: func(to endpoint.Peer, _ *program.Packet) netip.AddrPort {
			switch to {
			case endpoint.Network:
				return codec.Switch()
			case endpoint.Server:
				return codec.Host(w.network.Workers)
			}
			return codec.Host(int(to))
		}}
	return p, codec
}

// others returns all hosts but one.
func (w *WireJob) others(number int) (hosts []endpoint.Peer) {
	for k := range w.network.Workers {
		if k != number {
			hosts = append(hosts, endpoint.Peer(k))
		}
	}
	if w.parts.Server != nil && number != w.network.Workers {
		hosts = append(hosts, endpoint.Server)
	}
	return hosts
}

// endpointConfig returns the configuration of a host's endpoint in a job with the given number of vectors.
func (w *WireJob) endpointConfig(number int, vectors uint32) endpoint.Config {
	return endpoint.Config{Job: closedloop.FirstJob, Worker: olaf.WorkerID(number), Workers: w.network.Workers,
		Layout: w.job.Layout, Updates: vectors, Line: w.network.Link.Rate}
}

// PlayWorker runs a worker until it has sent the given number of vectors or the context ends. It gives up after patience
// without an answer.
func (w *WireJob) PlayWorker(ctx context.Context, conn process.FrameConn, number int, vectors uint32, work Computation,
	patience time.Duration) (*process.Report, error) {
	p, codec := w.player(number, work, patience)
	p.Waits = true
	switch work := work.(type) {
	case *attach.Rounds:
		p.Check, p.OnLeave = work.CheckFrame, work.HandleLeave
	case *attach.Pushes:
		p.OnLeave = work.HandleLeave
	}
	return p.RunFrames(ctx, conn, codec, func(h endpoint.Host) (endpoint.Endpoint, error) {
		return w.parts.Worker(w.endpointConfig(number, vectors), h)
	})
}

// addingWork is the work of a server that only adds vectors.
type addingWork struct{ process.Work }

// Apply implements process.Work. It does nothing, because the sum itself is the answer.
func (addingWork) Apply(*endpoint.Aggregate) {}

// PlayServer runs the server until the context ends. It adds vectors if work is nil.
func (w *WireJob) PlayServer(ctx context.Context, conn process.FrameConn, work process.Work,
	patience time.Duration) (*process.Report, error) {
	p, codec := w.player(w.network.Workers, cmp.Or(work, process.Work(addingWork{})), patience)
	c := w.config()
	p.OnLeave = c.HandleLeave
	return p.RunFrames(ctx, conn, codec, func(h endpoint.Host) (endpoint.Endpoint, error) {
		return w.parts.Server(w.endpointConfig(w.network.Workers, math.MaxUint32), h)
	})
}
