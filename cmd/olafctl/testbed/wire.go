package testbed

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/bench/job"
	"github.com/olafctl/olaf/experiments/bench/wired"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/rl/onwire"
	"github.com/olafctl/olaf/experiments/sweep/cells"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/pktgen/attach"
	"github.com/olafctl/olaf/pktgen/endpoint"
	endpoints "github.com/olafctl/olaf/pktgen/process"
)

// wireFlags are the flags for systems whose hosts exchange whole frames with a switch in user space. All processes of a
// job must have the same values.
type wireFlags struct {
	interfaces string
	options    system.Options
}

// wireConn is a socket for the frames of a host that can be closed.
type wireConn interface {
	endpoints.FrameConn
	io.Closer
}

func (f *wireFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.interfaces, "interface", "", "interface to the switch ('olafctl testbed switch'), for systems other "+
		"than xagg, olaf and fifo")
	f.addOptions(cmd)
}

// addOptions adds the flags that the switch needs as well.
func (f *wireFlags) addOptions(cmd *cobra.Command) {
	cmd.Flags().IntVar(&f.options.Slots, system.OptionSlots, 0, "slots of the switch's table; 0 for the system's default")
	cmd.Flags().StringVar(&f.options.Profile, system.OptionProfile, "", "profile of the switch's program; default one whose "+
		"sums are exact")
}

// wireEndpoints contains the functions that run the workers and servers of systems around a switch in user space.
var wireEndpoints = endpointSystem{(*workerFlags).runWire, (*serverFlags).runWire,
	[]string{"interface", system.OptionSlots, system.OptionProfile, "workers"}}

// wireForeign lists flags that do not apply to systems around a switch in user space, because the system determines
// frames and addresses.
var wireForeign = []string{"listen", "line", "lanes", "scale", "training", "id", "every", "start"}

// wireSystems returns the systems whose workers can wait for sums around a switch in user space.
func wireSystems(env *cli.Env) (names []string) {
	for i := range env.Systems {
		s := &env.Systems[i]
		if _, other := EndpointRows[s.Name]; !other && s.CanLoop() {
			names = append(names, s.Name)
		}
	}
	return names
}

// wireLongest is the maximum time after which a host resends packets while the program of another host is computing.
const wireLongest = olaf.Second

// wiredJob is a job whose hosts are connected to a switch in user space.
type wiredJob struct {
	spec  *job.Spec
	parts system.Parts
	job   closedloop.Job
	net   closedloop.Network
}

// build builds a job in which programs exchange vectors of up to the given number of values. Without a profile, it
// chooses the first profile whose sums are exact.
func (f *wireFlags) build(env *cli.Env, name string, workers, values int, timeout time.Duration) (*wiredJob, error) {
	if workers < 1 || values < 1 || values > attach.MaxValues {
		return nil, cli.UsageError("--workers %d, --values %d; use 1 or more, and up to %d values", workers, values,
			attach.MaxValues)
	}
	o := f.options
	o.Longest = wireLongest
	if timeout == 0 {
		timeout = realTimeout
	}
	s, err := env.Systems.Find(name)
	if err != nil {
		return nil, err
	}
	mode := &s.Modes[0]
	if slices.Contains(mode.Takes, system.OptionTimeout) {
		o.Timeout = olaf.Duration(timeout) * olaf.Nanosecond
	}
	profiles := []string{o.Profile}
	if o.Profile == "" && s.Program != nil {
		profiles = append(profiles, s.Program.Profiles...)
	}
	for _, profile := range profiles {
		o.Profile = profile
		w := new(wiredJob)
		if w.spec, err = (&cells.Job{System: name, Options: o}).Spec(env.Systems); err != nil {
			return nil, err
		}
		if err = w.layOut(workers, values); err != nil || !w.parts.Inexact || profile == f.options.Profile && profile != "" {
			return w, err
		}
	}
	return nil, fmt.Errorf("%w: no profile of %s has exact sums; choose one with --%s", system.ErrOptions, name,
		system.OptionProfile)
}

// layOut builds the parts of the system. The parts have room for a program's values and for the numbers that precede
// the values.
func (w *wiredJob) layOut(workers, values int) (err error) {
	if w.parts, w.job, err = w.spec.Build(values, 1); err != nil {
		return err
	}
	c := w.config(attach.Config{Largest: values})
	w.net = w.spec.Network
	w.net.Jobs, w.net.Workers = 1, workers
	w.parts, w.job, err = w.spec.Build(c.FloatsJob(), 1)
	w.job.Varies = true
	return err
}

// config adds the settings of the system to the configuration of a worker.
func (w *wiredJob) config(c attach.Config) attach.Config {
	c.Conversion = &w.parts.Conversion
	c.System, c.Waits, c.Lanes = w.spec.System.Name, true, w.parts.PerPacket+attach.Overhead
	c.Floats, c.RefusesNaN = w.parts.Conversion.IsExact() || w.parts.Conversion.Block, w.parts.Conversion.Block
	c.Scale, c.Inexact = w.parts.Conversion.Scale, w.parts.Inexact
	return c
}

// frames returns the codec for the host with the given number, and a function that returns the destination of the
// host's packets.
func (w *wiredJob) frames(number int) (*wired.HostFrames, func(endpoint.Peer, *program.Packet) netip.AddrPort) {
	codec := wired.NewHostFrames(&w.parts, w.net.Workers, number)
	return codec, func(to endpoint.Peer, _ *program.Packet) netip.AddrPort {
		switch to {
		case endpoint.Network:
			return codec.Switch()
		case endpoint.Server:
			return codec.Host(w.net.Workers)
		}
		return codec.Host(int(to))
	}
}

// endpointConfig returns the configuration of a host in a job with the given number of vectors.
func (w *wiredJob) endpointConfig(worker int, vectors uint32) endpoint.Config {
	return endpoint.Config{Job: closedloop.FirstJob, Worker: olaf.WorkerID(worker), Workers: w.net.Workers,
		Layout: w.job.Layout, Updates: vectors, Line: w.net.Link.Rate}
}

// openWire opens a socket on the interface that leads to the switch.
func (f *wireFlags) openWire(cmd *cobra.Command, system string) (wireConn, error) {
	if err := cli.RefuseFlags(cmd, wireForeign, "--system "+system); err != nil {
		return nil, err
	}
	if f.interfaces == "" {
		return nil, cli.UsageError("--system %s: which interface leads to the switch? Start 'olafctl testbed switch --system "+
			"%s', and give --interface", system, system)
	}
	return openFrames(f.interfaces)
}

// runWire runs a worker connected to a switch in user space. An attached program provides the vectors and receives the
// sums.
func (f *workerFlags) runWire(cmd *cobra.Command, env *cli.Env) error {
	if !f.attach.isSet() {
		return cli.UsageError("--system %s: its workers exchange a program's vectors; add --attach unix:PATH, or use "+
			"'olafctl bench -d host: --system %s' for vectors that are made here", f.system, f.system)
	}
	w, err := f.wire.build(env, f.system, f.job.Workers, f.job.Values, f.open.timeout)
	if err != nil {
		return err
	}
	if f.number < 0 || f.number >= f.job.Workers {
		return cli.UsageError("--worker %d: the job has %s, from 0", f.number, olaf.Plural(f.job.Workers, "worker"))
	}
	conn, err := f.wire.openWire(cmd, f.system)
	if err != nil {
		return err
	}
	defer conn.Close()
	a, err := f.attach.openPort(cmd.Context(), env, w.config(attach.Config{Worker: f.number, Workers: f.job.Workers,
		Largest: f.job.Values}))
	if err != nil {
		return err
	}
	rounds, err := attach.NewRounds(a.config, a.end)
	if err != nil {
		return a.closePort(err)
	}
	go a.port.Serve(rounds)
	if err := f.attach.announceProgram(env, f.format, netip.AddrPort{}); err != nil {
		return a.closePort(err)
	}
	vectors, most := f.countVectors(cmd), uint32(math.MaxUint32)
	if w.parts.Numbers > 0 { // packet numbers in frames span all rounds
		most = uint32(w.parts.Numbers / w.job.Packets())
	}
	codec, to := w.frames(f.number)
	p := &endpoints.Player{Work: rounds, Check: rounds.Heard, Patience: f.attach.maxSilence(), To: to, Waits: true}
	report, err := p.RunFrames(a.ctx, conn, codec, func(h endpoint.Host) (endpoint.Endpoint, error) {
		return w.parts.Worker(w.endpointConfig(f.number, min(vectors, most)), h)
	})
	if err == nil && a.ctx.Err() == nil && vectors > most {
		err = fmt.Errorf("%w: frames of %s number the packets of %d vectors of %d values; use fewer of them",
			attach.ErrConfig, f.system, most, f.job.Values)
	}
	err = a.closePort(err)
	if report == nil {
		return err
	}
	return errors.Join(err, f.reportSums(env, report, &endpoints.Sums{Worker: olaf.WorkerID(f.number)}, nil))
}

// forwardWork is the work of a server that only adds vectors.
type forwardWork struct{ endpoints.Work }

// Apply implements process.Work. It does nothing, because the sum itself is the answer.
func (forwardWork) Apply(*endpoint.Aggregate) {}

// runWire runs the server of a system in which the server adds vectors.
func (f *serverFlags) runWire(cmd *cobra.Command, env *cli.Env) error {
	w, err := f.wire.build(env, f.system, f.job.Workers, f.job.Values, 0)
	switch {
	case err != nil:
		return err
	case w.parts.Server == nil:
		return cli.UsageError("--system %s: it has no server; start its workers, and 'olafctl testbed switch'", f.system)
	case f.attach.isSet():
		return cli.UsageError("--attach: the server of %s only adds vectors; attach programs to the workers, or use 'olafctl "+
			"train --program' with --mode async in virtual time for a program at the server", f.system)
	case len(f.workers) > 0:
		return cli.UsageError("--worker: --system %s needs the number of its workers only (--workers)", f.system)
	}
	conn, err := f.wire.openWire(cmd, f.system)
	if err != nil {
		return err
	}
	defer conn.Close()
	if f.format == cli.JSONL {
		err = cli.WriteLine(env.Stdout, onwire.Listening{})
	} else {
		_, err = fmt.Fprintf(env.Stderr, "adding vectors at %s (Ctrl-C ends it)\n", f.wire.interfaces)
	}
	if err != nil {
		return err
	}
	codec, to := w.frames(w.net.Workers)
	p := &endpoints.Player{Work: forwardWork{}, Patience: forEver, To: to}
	report, err := p.RunFrames(cmd.Context(), conn, codec, func(h endpoint.Host) (endpoint.Endpoint, error) {
		return w.parts.Server(w.endpointConfig(w.net.Workers, math.MaxUint32), h)
	})
	if report == nil || err != nil {
		return explainEnd(cmd.Context(), err)
	}
	return f.printReport(cmd.Context(), env, struct {
		cli.Head
		endpoints.StationReport
	}{cli.Info("ps"), endpoints.StationReport{Counts: report.Counts, Traffic: report.Traffic}}, report.Counts)
}
