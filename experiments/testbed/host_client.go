package testbed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/capture/live"
	"github.com/olafctl/olaf/experiments/testbed/sshlink"
	"github.com/olafctl/olaf/p4ctl"
)

// ErrHost reports that another host rejected a request.
var ErrHost = olaf.NewError(olaf.Device, "another host refused")

// Host is another host, which is reached through its HostService. It is safe for concurrent use.
type Host struct {
	Name string // for messages
	conn *grpc.ClientConn
	link *sshlink.Link    // nil for a service that does not end with this connection
	now  func() time.Time // this host's clock
}

// DialHost connects to the HostService at a gRPC target. now reads this host's clock; nil means time.Now.
func DialHost(name, target string, now func() time.Time) (*Host, error) {
	conn, err := p4ctl.Connect(target, nil)
	if err != nil {
		return nil, err
	}
	if now == nil {
		now = time.Now
	}
	return &Host{Name: name, conn: conn, now: now}, nil
}

// ConnectHost starts an agent without a device on another host and connects to it.
func ConnectHost(ctx context.Context, at sshlink.Address, a *Access) (*Host, error) {
	link, err := a.startLink(ctx, at, "--no-device")
	if err != nil {
		return nil, err
	}
	h, err := DialHost(at.Name(), link.Target, nil)
	if err != nil {
		return nil, errors.Join(err, link.Close())
	}
	h.link = link
	return h, nil
}

// Messages returns what ssh and the agent have printed for people, in lines; nil if another program started the agent.
func (h *Host) Messages() []string {
	if h.link == nil {
		return nil
	}
	return h.link.Messages()
}

// hostClock returns the function that reads this host's clock.
func (a *Access) hostClock() func() time.Time {
	if a.Now != nil {
		return a.Now
	}
	return time.Now
}

// Close closes the connection. If ConnectHost started the agent, Close also ends the agent.
func (h *Host) Close() error {
	err := h.conn.Close()
	if h.link != nil {
		err = errors.Join(err, h.link.Close())
	}
	return err
}

// open opens a stream to a method of the service. The returned function ends the stream.
func (h *Host) open(ctx context.Context, method string) (*hostStream, context.CancelFunc, error) {
	within, end := context.WithCancel(ctx)
	stream, err := h.conn.NewStream(within, &grpc.StreamDesc{StreamName: method, ServerStreams: true, ClientStreams: true},
		"/"+hostServiceName+"/"+method)
	if err != nil {
		end()
		return nil, nil, h.explain(ctx, err)
	}
	return &hostStream{stream}, end, nil
}

// explain adds the host's name to the error of a request. The error matches ErrHost if the host rejected the request.
func (h *Host) explain(ctx context.Context, err error) error {
	switch {
	case err == nil || errors.Is(err, io.EOF):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case status.Code(err) == codes.FailedPrecondition:
		return fmt.Errorf("%s: %w: %s", h.Name, ErrHost, status.Convert(err).Message())
	}
	if h.link != nil {
		if why := explainLink(h.link); why != nil {
			return fmt.Errorf("%s: %w: %w", h.Name, ErrHost, why)
		}
	}
	return fmt.Errorf("%s: %w: %s", h.Name, ErrHost, status.Convert(err).Message())
}

// echoes is the number of echo exchanges in one measurement of a clock. The quickest of them is used.
const echoes = 8

// Offset measures how far the host's clock is ahead of this host's clock.
func (h *Host) Offset(ctx context.Context) (Offset, error) {
	stream, end, err := h.open(ctx, "Echo")
	if err != nil {
		return Offset{}, err
	}
	defer end()
	var all []Exchange
	for range echoes {
		var there reading
		t0 := h.now().UnixNano()
		if err := stream.send(nil); err != nil && !errors.Is(err, io.EOF) { // the reason comes with the answer
			return Offset{}, h.explain(ctx, err)
		}
		if err := stream.receiveJSON(&there); err != nil {
			return Offset{}, h.explain(ctx, err)
		}
		all = append(all, Exchange{T0: t0, T1: there.T1, T2: there.T2, T3: h.now().UnixNano()})
	}
	return Measure(all)
}

// Call sends a request to the handler with the given name and decodes the answer into answer.
func (h *Host) Call(ctx context.Context, name string, request, answer any) error {
	stream, end, err := h.open(ctx, "Call")
	if err != nil {
		return err
	}
	defer end()
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	if err := stream.sendJSON(hostCall{name, body}); err != nil && !errors.Is(err, io.EOF) {
		return h.explain(ctx, err)
	}
	return h.explain(ctx, stream.receiveJSON(answer))
}

// ReadFile copies a file from the host's run folder to w.
func (h *Host) ReadFile(ctx context.Context, name string, w io.Writer) error {
	stream, end, err := h.open(ctx, "Read")
	if err != nil {
		return err
	}
	defer end()
	if err := stream.send([]byte(name)); err != nil && !errors.Is(err, io.EOF) {
		return h.explain(ctx, err)
	}
	for {
		b, err := stream.receive()
		if err != nil {
			return unlessEnd(h.explain(ctx, err))
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
}

// HostProcess is a program that runs on another host.
type HostProcess struct {
	host   *Host
	ctx    context.Context
	stream *hostStream
	end    context.CancelFunc
}

// Start starts one of the programs worker, ps and capture on the host. The program ends when ctx ends or when the
// host's agent ends.
func (h *Host) Start(ctx context.Context, c HostCommand) (*HostProcess, error) {
	stream, end, err := h.open(ctx, "Start")
	if err != nil {
		return nil, err
	}
	if err := stream.sendJSON(c); err != nil && !errors.Is(err, io.EOF) {
		end()
		return nil, h.explain(ctx, err)
	}
	return &HostProcess{h, ctx, stream, end}, nil
}

// Interrupt asks the program to end, like Ctrl-C.
func (p *HostProcess) Interrupt() error {
	return p.host.explain(p.ctx, p.stream.send([]byte("interrupt")))
}

// Wait calls lines for each line of output until the program ends. It returns the program's exit code, or -1 if a
// signal ended the program.
func (p *HostProcess) Wait(lines func(text string, stderr bool)) (code int, err error) {
	defer p.end()
	for {
		var l hostLine
		switch err := p.stream.receiveJSON(&l); {
		case err != nil:
			return -1, p.host.explain(p.ctx, err)
		case l.Ended:
			return l.Code, nil
		}
		lines(l.Text, l.Stderr)
	}
}

// HostFrames is a capture on another host. That host's clock provides the timestamps.
type HostFrames struct {
	host   *Host
	ctx    context.Context
	stream *hostStream
	end    context.CancelFunc
	last   pulled
	number int
	fresh  bool // last was not yet reported as idle
	broken error
}

var _ Frames = (*HostFrames)(nil)

// OpenFrames starts a capture at an interface of the host. The capture continues until Close is called.
func (h *Host) OpenFrames(ctx context.Context, o live.Options) (*HostFrames, error) {
	whole := context.WithoutCancel(ctx)
	stream, end, err := h.open(whole, "Frames")
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, end)()
	f := &HostFrames{host: h, ctx: whole, stream: stream, end: end}
	if err := stream.sendJSON(o); err != nil && !errors.Is(err, io.EOF) {
		end()
		return nil, h.explain(whole, err)
	}
	if err := f.receive(); err != nil {
		end()
		return nil, errors.Join(ctx.Err(), err)
	}
	f.last.Packets = nil // packets from before the start are dropped
	return f, nil
}

// receive receives one answer with packets and the state of the capture.
func (f *HostFrames) receive() error {
	var next pulled
	if err := f.stream.receiveJSON(&next); err != nil {
		f.broken = f.host.explain(f.ctx, err)
		return f.broken
	}
	f.last, f.fresh = next, true
	return nil
}

// Next returns the next packet. It returns capture.ErrIdle after the last packet that had arrived at the time of the
// last request.
func (f *HostFrames) Next(p *capture.Packet) error {
	for len(f.last.Packets) == 0 {
		switch {
		case f.broken != nil:
			return f.broken
		case f.last.Broken != "":
			return fmt.Errorf("%s: %w: %s", f.host.Name, ErrHost, f.last.Broken)
		case f.fresh && !f.last.Full:
			f.fresh = false
			return capture.ErrIdle
		}
		if err := f.stream.send(nil); err != nil && !errors.Is(err, io.EOF) {
			return f.host.explain(f.ctx, err)
		}
		if err := f.receive(); err != nil {
			return err
		}
	}
	got := f.last.Packets[0]
	f.last.Packets = f.last.Packets[1:]
	f.number++
	*p = capture.Packet{Number: f.number, UnixNS: got.UnixNS, Data: got.Data, Wire: got.Wire}
	return nil
}

// Info returns the state of the capture at the time of the last request. StampCounts and Drops refer to the same time.
func (f *HostFrames) Info() live.Info {
	info := f.last.Info
	info.Interface = f.host.Name + "/" + info.Interface
	return info
}

// StampCounts returns the number of packets by the source of their timestamps.
func (f *HostFrames) StampCounts() live.Stamped { return f.last.Stamps }

// Drops returns the numbers of packets that were lost on the host.
func (f *HostFrames) Drops() (live.Drops, error) { return f.last.Drops, f.broken }

// Now returns the host's time at the last request. All packets with timestamps well before that time had arrived.
func (f *HostFrames) Now() time.Time { return time.Unix(0, f.last.NowNS) }

// Offset measures how far the clock of the timestamps is ahead of this host's clock.
func (f *HostFrames) Offset() (Offset, error) { return f.host.Offset(f.ctx) }

// LocalNow returns the time on this host's clock.
func (f *HostFrames) LocalNow() time.Time { return f.host.now() }

// Stop ends the capture. The connection to the host stays open.
func (f *HostFrames) Stop() { f.end() }

// Close ends the capture and closes the connection to the host.
func (f *HostFrames) Close() error {
	f.Stop()
	return f.host.Close()
}
