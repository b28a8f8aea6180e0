// Package capture implements 'olafctl capture' and 'olafctl replay', which read updates from an interface or a file and
// show a queue's decisions on them.
package capture

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/capture/ages"
	"github.com/olafctl/olaf/capture/live"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results"
)

// captureFlags are the flags of capture.
type captureFlags struct {
	from        string
	to          string
	force       bool
	duration    olaf.Duration
	count       int
	all         bool
	promiscuous bool
	stamps      live.Stamps
	buffer      olaf.Size
	snap        olaf.Size
	quiet       bool
	clockError  func() (*int64, error)
	keep        cli.KeepFlags
	format      cli.Format
}

func New(env *cli.Env) *cobra.Command {
	f := &captureFlags{stamps: live.Auto, buffer: live.DefaultBufferBytes, snap: olaf.Size(live.DefaultSnapBytes)}
	cmd := &cobra.Command{
		Use:   "capture",
		Short: "Capture OLAF frames from a network interface and count every loss",
		Long: `Capture packets at a network interface until Ctrl-C, --duration or --count, and count updates, ACKs, damaged and foreign
frames, sequence gaps, and packets dropped by the socket or the network card. A capture that lost packets exits with code 1.
It needs Linux and CAP_NET_RAW: use sudo. See docs/guide/capture.md.`,
		Example: `  sudo olafctl capture -i eth0 -w run.pcapng
  sudo olafctl capture -i eth0 --duration 10s --stamps hardware -o json
  sudo olafctl capture -i eth0 --all --count 100 -w everything.pcapng
  olafctl replay run.pcapng --system olaf --out-rate 20G`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), env) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.from, "interface", "i", "", "interface to capture from")
	cli.AddWrite(flags, &f.to, "write the packets to this file: .pcap or .pcapng")
	cli.AddForce(flags, &f.force, "an existing output file")
	flags.Var(&f.duration, "duration", "stop after this time")
	flags.IntVar(&f.count, "count", 0, "stop after this many packets")
	flags.BoolVar(&f.all, "all", false, "capture all packets, not only OLAF's UDP port")
	flags.BoolVar(&f.promiscuous, "promiscuous", true, "promiscuous mode")
	flags.Var(&f.stamps, "stamps", "clock that times packets: "+strings.Join(live.Choices(), "|"))
	f.clockError = clockErrorFlag(cmd)
	flags.Var(&f.buffer, "buffer", "socket buffer size")
	flags.Lookup("buffer").DefValue = "64MiB"
	flags.Var(&f.snap, "snap", "bytes to keep of each packet")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no progress or remarks on stderr")
	f.keep.AddOptional(cmd)
	cli.AddFormatFlag(cmd, &f.format)
	cli.Complete(cmd, "interface", cli.InterfaceNames)
	cli.Complete(cmd, "stamps", live.Choices)
	return cmd
}

func (f *captureFlags) checkFlags() error {
	switch {
	case f.from == "":
		return cli.UsageError("name an interface with -i: %s", strings.Join(cli.InterfaceNames(), ", "))
	case f.count < 0:
		return cli.UsageError("--count %d is negative; use 0 for no limit", f.count)
	case f.duration < 0:
		return cli.UsageError("--duration %v is negative", f.duration)
	}
	return errors.Join(cli.CheckExtension("-w", f.to, ".pcap", ".pcapng"), cli.RefuseExisting(f.to, f.force))
}

func (f *captureFlags) run(ctx context.Context, env *cli.Env) (err error) {
	if err := f.checkFlags(); err != nil {
		return err
	}
	clockError, err := f.clockError()
	if err != nil {
		return err
	}
	socket, err := live.Open(live.Options{
		Interface: f.from, BufferBytes: int(f.buffer), SnapBytes: int(f.snap), Stamps: f.stamps,
		Promiscuous: f.promiscuous, All: f.all,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, socket.Close()) }()
	s := &session{env: env, socket: socket, flags: f, clockError: clockError}
	if info := socket.Info(); clockError == nil && info.Loopback && info.Stamps == live.Kernel {
		s.clockError = new(int64) // this kernel stamped both ends
	}
	s.Source, s.Order.WindowNS, s.Ages = socket, reorderNS, ages.New(system.QueueDeclaration())
	if s.clockError != nil {
		s.Ages.ClockErrorNS = results.Float(*s.clockError)
	}
	if f.to != "" {
		file, err := capture.CreateFrom(f.to, f.force, s.describeInterface())
		if err != nil {
			return err
		}
		defer file.Abandon() // does nothing after the commit
		s.File = file
	}
	if !f.quiet {
		s.printStart()
	}
	return s.finishCapture(s.readPackets(ctx))
}

// reorderNS is the maximum delay for which a late packet is still sorted into its place. Delays in network cards and
// processors are shorter.
const reorderNS = int64(10 * time.Millisecond)

// session is a live capture with its progress line.
type session struct {
	capture.Recording
	env     *cli.Env
	socket  *live.Socket
	flags   *captureFlags
	drops   live.Drops
	started time.Time
	read    time.Time // from the socket
	drawn   time.Time // when the progress line was last drawn
	line    bool      // the progress line is on the terminal
	blind   error     // why the drop counters could not be read

	clockError *int64 // bound for the clocks of packets and workers in ns; nil if unknown
}

// describeInterface returns the interface description for the capture file.
func (s *session) describeInterface() capture.Interface {
	info := s.socket.Info()
	from := capture.Interface{Name: info.Interface, SnapBytes: info.SnapBytes,
		Comment: "stamped by the " + clockName(info.Stamps), ClockErrorNS: s.clockError}
	if !s.flags.all {
		from.Filter = fmt.Sprintf("ip and udp dst port %d", olaf.UDPPort)
	}
	return from
}

func clockName(clock live.Stamps) string {
	if clock == live.Hardware {
		return "network card's clock"
	}
	return "kernel's clock"
}

func (s *session) printStart() {
	info := s.socket.Info()
	for _, note := range info.Notes {
		fmt.Fprintf(s.env.Stderr, "note: %s\n", note)
	}
	end := "Ctrl-C ends it"
	if s.flags.duration > 0 {
		end = fmt.Sprintf("for %v; %s earlier", s.flags.duration, end)
	}
	fmt.Fprintf(s.env.Stderr, "capturing from %s, %s, buffer %s; %s\n", info.Interface, clockName(info.Stamps),
		formatMebibytes(info.BufferBytes), end)
}

// readPackets reads packets until --duration, --count or an interrupt. It returns the context's error, or the capture's
// error if the capture fails.
func (s *session) readPackets(ctx context.Context) error {
	s.started = s.env.Now()
	s.drawn = s.started
	until := ctx
	if s.flags.duration > 0 {
		var cancel context.CancelFunc
		until, cancel = context.WithTimeout(ctx, time.Duration(s.flags.duration/olaf.Nanosecond))
		defer cancel()
	}
	for until.Err() == nil && !s.isComplete() {
		if err := s.waitForPackets(until); err != nil {
			return err
		}
		if err := s.drainSocket(until); err != nil {
			return err
		}
		if err := s.showProgress(); err != nil {
			return err
		}
	}
	if err := s.socket.Stop(); err != nil {
		return err
	}
	return errors.Join(s.drainSocket(context.WithoutCancel(ctx)), ctx.Err())
}

// keepRun stores the counts and ages if --keep is set.
func (s *session) keepRun(r *Report) error {
	run := &cli.CountedRun{Experiment: "capture", Config: map[string]any{"interface": r.Interface, "all": r.All, "clock": r.Clock},
		Counters: map[string]int64{}, Invalid: r.Reason, Partial: r.Partial, Remarks: r.Notes,
		Found: fmt.Sprintf("%s, %d dropped", olaf.Plural(r.Capture.Updates, "update"), r.Dropped)}
	for _, c := range captureCounters {
		run.Counters[c.name] = c.of(r)
	}
	addAgesTo(run, "", r.Ages)
	return s.flags.keep.KeepRun(s.env, s.started, s.flags.quiet, run)
}

func (s *session) isComplete() bool { return s.flags.count > 0 && s.Taken >= s.flags.count }

// waitForPackets waits until packets are available or the counters must be read.
func (s *session) waitForPackets(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.lookInterval())
	defer cancel()
	if err := s.socket.Wait(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

func (s *session) lookInterval() time.Duration {
	if s.env.Interactive {
		return cli.BarInterval
	}
	return cli.LogInterval
}

// takenAtOnce is the number of packets to take before the counters are read. Without this limit, the counters would not
// be read under load, because the buffer would never be empty.
const takenAtOnce = 1024

// drainSocket empties the socket's buffer.
func (s *session) drainSocket(ctx context.Context) error {
	for !s.isComplete() {
		n := takenAtOnce
		if s.flags.count > 0 {
			n = min(n, s.flags.count-s.Taken)
		}
		before := s.Taken
		idle, err := s.Take(n)
		if err != nil {
			return err
		}
		if s.Taken > before {
			s.read = s.env.Now()
		}
		if idle {
			return nil
		}
		if err := s.showProgress(); err != nil || ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// showProgress reads the drop counters and prints the progress, if an update is due. If nothing arrived for a while, it
// also counts the packets that are held back for reordering.
func (s *session) showProgress() error {
	now := s.env.Now()
	if s.flags.quiet || now.Sub(s.drawn) < s.lookInterval() {
		return nil
	}
	if now.Sub(s.read) > time.Duration(reorderNS) {
		if err := s.Flush(); err != nil {
			return err
		}
	}
	s.drawn = now
	s.readDrops()
	l := s.Account.Losses()
	line := fmt.Sprintf("%v  %s, %s, dropped %d (socket %d, interface %d)", now.Sub(s.started).Round(time.Second),
		olaf.Plural(s.Taken, "packet"), olaf.Plural(l.Updates, "update"), s.drops.Total(), s.drops.Socket,
		s.drops.Interface())
	if s.env.Interactive {
		s.env.Redraw(line)
		s.line = true
	} else {
		fmt.Fprintln(s.env.Stderr, line)
	}
	return nil
}

// readDrops reads the drop counters. If reading fails, the interface is gone, which Next reports after the last packet.
func (s *session) readDrops() { s.drops, s.blind = s.socket.Drops() }

// commitFile completes the capture file.
func (s *session) commitFile() error {
	switch {
	case s.Unwritten != nil:
		return fmt.Errorf("%w; the file was not kept", s.Unwritten)
	case s.File == nil:
		return nil
	}
	s.File.SetDropped(s.drops.Total())
	return s.File.Commit()
}

// finishCapture stores and prints the capture, whether or not it ended with an error.
func (s *session) finishCapture(ended error) error {
	if s.line {
		s.env.Redraw("")
	}
	s.readDrops()
	_ = s.Flush() // keep returns its error
	limited := s.flags.duration > 0 || s.flags.count > 0
	if errors.Is(ended, context.Canceled) && !limited {
		ended = nil // an interrupt is the normal way to end
	}
	if err := s.commitFile(); err != nil { // such as a full disk
		ended, s.File = err, nil
	}
	r := s.newReport(ended)
	if err := r.print(s.env, s.flags.format); err != nil {
		return errors.Join(ended, err)
	}
	if err := s.keepRun(r); err != nil {
		return errors.Join(ended, err)
	}
	if s.File != nil && !s.flags.quiet {
		fmt.Fprintf(s.env.Stderr, "capture: %s (%s)\n", s.flags.to, olaf.Plural(s.Taken, "packet"))
	}
	switch {
	case errors.Is(ended, context.Canceled):
		return &cli.Exit{Kind: olaf.Interrupted, Err: errors.New("interrupted; what is shown is partial")}
	case ended != nil:
		return ended
	case !r.Valid:
		return &cli.Exit{Kind: olaf.Failed, Err: errors.New(r.Reason)}
	}
	if r.Capture.Updates+r.Capture.Acks == 0 && !s.flags.quiet {
		fmt.Fprintf(s.env.Stderr, "note: no OLAF frame arrived; docs/guide/capture.md lists what to check\n")
	}
	return nil
}
