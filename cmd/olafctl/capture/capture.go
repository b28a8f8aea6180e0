// Package capture implements 'olafctl capture' and 'olafctl replay': updates from an interface or a file, and what a
// queue would have done with them.
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
	flags.StringVarP(&f.to, "write", "w", "", "write the packets to this file: .pcap or .pcapng")
	flags.BoolVar(&f.force, "force", false, "overwrite an existing output file")
	flags.Var(&f.duration, "duration", "stop after this time")
	flags.IntVar(&f.count, "count", 0, "stop after this many packets")
	flags.BoolVar(&f.all, "all", false, "capture all packets, not only OLAF's UDP port")
	flags.BoolVar(&f.promiscuous, "promiscuous", true, "promiscuous mode")
	flags.Var(&f.stamps, "stamps", "clock that times packets: "+strings.Join(live.Choices(), "|"))
	flags.Var(&f.buffer, "buffer", "socket buffer size")
	flags.Lookup("buffer").DefValue = "64MiB"
	flags.Var(&f.snap, "snap", "bytes to keep of each packet")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no progress or remarks on stderr")
	cli.AddFormatFlag(cmd, &f.format)
	cli.Complete(cmd, "interface", cli.InterfaceNames)
	cli.Complete(cmd, "stamps", live.Choices)
	return cmd
}

func (f *captureFlags) check() error {
	switch {
	case f.from == "":
		return cli.UsageError("name an interface with -i: %s", strings.Join(cli.InterfaceNames(), ", "))
	case f.count < 0:
		return cli.UsageError("--count %d is negative; 0 is for no end", f.count)
	case f.duration < 0:
		return cli.UsageError("--duration %v is negative", f.duration)
	}
	return errors.Join(cli.EndsIn("-w", f.to, ".pcap", ".pcapng"), cli.RefuseExisting(f.to, f.force))
}

func (f *captureFlags) run(ctx context.Context, env *cli.Env) (err error) {
	if err := f.check(); err != nil {
		return err
	}
	socket, err := live.Open(live.Options{
		Interface: f.from, BufferBytes: int(f.buffer), SnapBytes: int(f.snap), Stamps: f.stamps, Promiscuous: f.promiscuous, All: f.all,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, socket.Close()) }()
	s := &session{env: env, socket: socket, flags: f}
	s.Source, s.Order.WindowNS, s.Ages = socket, reorderNS, ages.New(system.Queued())
	if f.to != "" {
		file, err := capture.CreateFrom(f.to, f.force, s.origin())
		if err != nil {
			return err
		}
		defer file.Abandon() // does nothing after the commit
		s.File = file
	}
	if !f.quiet {
		s.announce()
	}
	return s.finish(s.capture(ctx))
}

// reorderNS is how much later than a younger packet one may come and still find its place: more than a network card or a
// processor sits on packets.
const reorderNS = int64(10 * time.Millisecond)

// session is one live capture before the eyes of its user.
type session struct {
	capture.Recording
	env     *cli.Env
	socket  *live.Socket
	flags   *captureFlags
	drops   live.Drops
	started time.Time
	read    time.Time // of the socket
	drawn   time.Time // the progress line
	line    bool      // it stands on the terminal
	blind   error     // why the drop counters could not be read
}

// origin describes the interface in the file.
func (s *session) origin() capture.Interface {
	info := s.socket.Info()
	from := capture.Interface{Name: info.Interface, SnapBytes: info.SnapBytes, Comment: "stamped by the " + stampedBy(info.Stamps)}
	if !s.flags.all {
		from.Filter = fmt.Sprintf("ip and udp dst port %d", olaf.UDPPort)
	}
	return from
}

func stampedBy(clock live.Stamps) string {
	if clock == live.Hardware {
		return "network card's clock"
	}
	return "kernel's clock"
}

func (s *session) announce() {
	info := s.socket.Info()
	for _, note := range info.Notes {
		fmt.Fprintf(s.env.Stderr, "note: %s\n", note)
	}
	end := "Ctrl-C ends it"
	if s.flags.duration > 0 {
		end = fmt.Sprintf("for %v; %s earlier", s.flags.duration, end)
	}
	fmt.Fprintf(s.env.Stderr, "capturing from %s, %s, buffer %s; %s\n", info.Interface, stampedBy(info.Stamps), mebibytes(info.BufferBytes), end)
}

// capture reads until the end that was asked for. The error is the context's when that came first, and that of the capture
// when it broke.
func (s *session) capture(ctx context.Context) error {
	s.started = s.env.Now()
	s.drawn = s.started
	until := ctx
	if s.flags.duration > 0 {
		var cancel context.CancelFunc
		until, cancel = context.WithTimeout(ctx, time.Duration(s.flags.duration/olaf.Nanosecond))
		defer cancel()
	}
	for until.Err() == nil && !s.enough() {
		if err := s.wait(until); err != nil {
			return err
		}
		if err := s.drain(until); err != nil {
			return err
		}
		if err := s.look(); err != nil {
			return err
		}
	}
	if err := s.socket.Stop(); err != nil {
		return err
	}
	return errors.Join(s.drain(context.WithoutCancel(ctx)), ctx.Err())
}

func (s *session) enough() bool { return s.flags.count > 0 && s.Taken >= s.flags.count }

// wait returns when packets wait, or when it is time for another look at the counters.
func (s *session) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.interval())
	defer cancel()
	if err := s.socket.Wait(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

func (s *session) interval() time.Duration {
	if s.env.Interactive {
		return cli.BarInterval
	}
	return cli.LogInterval
}

// takenAtOnce is how many packets are taken before another look at the counters: under load the buffer is never empty.
const takenAtOnce = 1024

// drain empties the socket's buffer.
func (s *session) drain(ctx context.Context) error {
	for !s.enough() {
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
		if err := s.look(); err != nil || ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// look reads the drop counters and prints the progress of the capture, when it is time to. Packets that wait for older ones
// are counted as soon as nothing has arrived for a while.
func (s *session) look() error {
	now := s.env.Now()
	if s.flags.quiet || now.Sub(s.drawn) < s.interval() {
		return nil
	}
	if now.Sub(s.read) > time.Duration(reorderNS) {
		if err := s.Flush(); err != nil {
			return err
		}
	}
	s.drawn = now
	s.count()
	l := s.Account.Losses()
	line := fmt.Sprintf("%v  %s, %s, dropped %d (socket %d, interface %d)", now.Sub(s.started).Round(time.Second),
		olaf.Plural(s.Taken, "packet"), olaf.Plural(l.Updates, "update"), s.drops.Total(), s.drops.Socket, s.drops.Interface())
	if s.env.Interactive {
		s.env.Redraw(line)
		s.line = true
	} else {
		fmt.Fprintln(s.env.Stderr, line)
	}
	return nil
}

// count reads the drop counters. Where that fails the interface is gone, which Next tells after the last packet.
func (s *session) count() { s.drops, s.blind = s.socket.Drops() }

// keep completes the file.
func (s *session) keep() error {
	switch {
	case s.Unwritten != nil:
		return fmt.Errorf("%w; nothing of the file was kept", s.Unwritten)
	case s.File == nil:
		return nil
	}
	s.File.SetDropped(s.drops.Total())
	return s.File.Commit()
}

// finish keeps and prints what was captured, whatever ended the capture.
func (s *session) finish(ended error) error {
	if s.line {
		s.env.Redraw("")
	}
	s.count()
	_ = s.Flush() // keep tells its error
	limited := s.flags.duration > 0 || s.flags.count > 0
	if errors.Is(ended, context.Canceled) && !limited {
		ended = nil // that is how such a capture ends
	}
	if err := s.keep(); err != nil { // the disk is full, for one
		ended, s.File = err, nil
	}
	r := s.report(ended)
	if err := r.print(s.env, s.flags.format); err != nil {
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
		fmt.Fprintf(s.env.Stderr, "note: not one OLAF frame came; docs/guide/capture.md tells what to look at\n")
	}
	return nil
}
