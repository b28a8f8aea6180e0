package remote

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/internal/caller"
)

// ErrUnreachable is returned if no agent answers at the address.
var ErrUnreachable = olaf.NewError(olaf.Device, "no device agent answers")

// ErrDenied is returned if the agent's socket belongs to another user.
var ErrDenied = olaf.NewError(olaf.Device, "permission denied")

// ErrInUse is returned if another client is already writing to the device.
var ErrInUse = olaf.NewError(olaf.Device, "the device is in use by another client")

// Options configure a session with an agent.
type Options struct {
	ReadOnly   bool
	Local      bool          // the agent is part of this process: the device keeps its own address and kind
	TLS        *tls.Config   // nil for unix sockets and loopback addresses
	Patience   time.Duration // timeout for one answer; 0 means 30 s
	Address    string        // the device's address for messages; empty for grpc://TARGET
	BreakCause func() error  // explains why a connection broke; may be nil and may return nil
}

// Device is a device that is accessed through an agent. It is not safe for concurrent use.
type Device struct {
	conn       *grpc.ClientConn
	stream     grpc.ClientStream
	cancel     context.CancelFunc
	watchdog   *time.Timer
	patience   time.Duration
	breakCause func() error
	readOnly   bool
	local      bool
	identity   fpga.Identity
	offers     greeting // greeting of the server

	request, reply []byte
	counters       map[uint32]uint32 // values of the last snapshot; empty if unknown
	fixed          map[uint32]uint32 // registers fixed by the image, which never changes under an agent
	ahead          ahead
	streams        bool   // more answers to the last request will follow
	slices         uint32 // that have passed since WatchGenerator began
	inside         [2][]olaf.Contributor
	side           int
	failed         error
	closed         bool
}

var (
	_ fpga.Device      = (*Device)(nil)
	_ fpga.PortCounter = (*Device)(nil)
	_ fpga.Capturer    = (*Device)(nil)
	_ fpga.ArrivalLog  = (*Device)(nil)
)

// Dial opens a session with the agent at target, which is HOST:PORT or unix:PATH. The error matches ErrUnreachable,
// ErrDenied, ErrInUse or ErrProtocol.
func Dial(ctx context.Context, target string, o Options) (*Device, error) {
	if o.Patience == 0 {
		o.Patience = 30 * time.Second
	}
	creds := insecure.NewCredentials()
	if o.TLS != nil {
		creds = credentials.NewTLS(o.TLS)
	}
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(creds),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 20 * time.Second, Timeout: 10 * time.Second}),
		grpc.WithInitialWindowSize(windowBytes), grpc.WithInitialConnWindowSize(windowBytes),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(codec{}), grpc.MaxCallRecvMsgSize(maxMessageBytes),
			grpc.MaxCallSendMsgSize(maxMessageBytes)))
	if err != nil {
		return nil, fmt.Errorf("device agent %q: %w", target, err)
	}
	d := &Device{conn: conn, patience: o.Patience, breakCause: o.BreakCause, readOnly: o.ReadOnly, local: o.Local,
		counters: make(map[uint32]uint32),
		fixed:    make(map[uint32]uint32)}
	if err := d.openSession(ctx, target, o); err != nil {
		d.cancel()
		return nil, errors.Join(err, conn.Close())
	}
	return d, nil
}

func (d *Device) openSession(ctx context.Context, target string, o Options) (err error) {
	session, cancel := context.WithCancel(context.Background())
	d.cancel = cancel
	defer context.AfterFunc(ctx, cancel)()
	d.watchdog = time.AfterFunc(d.patience, cancel)
	if d.stream, err = d.conn.NewStream(session, &streamDesc, "/"+serviceName+"/"+methodName); err != nil {
		return dialError(ctx, target, cmp.Or(o.Address, target), err)
	}
	if d.request, err = json.Marshal(greeting{Version: version, ReadOnly: o.ReadOnly,
		User: caller.Name(), Run: caller.Command()}); err != nil {
		return err
	}
	if err := d.roundTrip(); err != nil {
		return dialError(ctx, target, cmp.Or(o.Address, target), err)
	}
	g, err := parseGreeting(d.reply, "agent", "client")
	if err != nil {
		return fmt.Errorf("%s: %w", cmp.Or(o.Address, target), err)
	}
	if g.Identity == nil {
		return fmt.Errorf("%s: %w: it does not identify itself", cmp.Or(o.Address, target), ErrProtocol)
	}
	d.identity, d.offers = *g.Identity, g
	if !o.Local {
		d.identity.Address, d.identity.Kind = cmp.Or(o.Address, "grpc://"+target), "remote"
	}
	return nil
}

// dialError returns the error of a session that cannot be opened. name is the device's address for messages.
func dialError(ctx context.Context, target, name string, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case status.Code(err) == codes.ResourceExhausted:
		return fmt.Errorf("%s: %w: %s", name, ErrInUse, status.Convert(err).Message())
	case status.Code(err) == codes.PermissionDenied: // the device is reserved
		return fmt.Errorf("%s: %w", name, olaf.NewError(olaf.Device, status.Convert(err).Message()))
	case status.Code(err) == codes.FailedPrecondition: // another version; older agents name the error themselves
		words := strings.TrimPrefix(status.Convert(err).Message(), ErrProtocol.Error()+": ")
		return fmt.Errorf("%s: %w: it answers: %s", name, ErrProtocol, words)
	case status.Code(err) == codes.Unimplemented:
		return fmt.Errorf("%s: %w: %s", name, ErrProtocol, status.Convert(err).Message())
	}
	if isDenied(target) {
		return fmt.Errorf("%s: %w: this socket belongs to another user; run as that user, or with sudo", target, ErrDenied)
	}
	return fmt.Errorf("%s: %w: %s; 'olafctl device serve' starts one", target, ErrUnreachable, status.Convert(err).Message())
}

// isDenied reports whether the target is a socket that this user may not access, or is in a folder that this user may
// not access. This cannot be seen from the connection's error.
func isDenied(target string) bool {
	path, ok := strings.CutPrefix(target, "unix:")
	if !ok {
		return false
	}
	c, err := net.Dial("unix", path)
	if err == nil {
		c.Close()
	}
	return errors.Is(err, fs.ErrPermission)
}

// roundTrip sends the request in d.request and waits for the answer in d.reply. It fails if the agent does not answer
// in time.
func (d *Device) roundTrip() error {
	d.watchdog.Reset(d.patience)
	defer d.watchdog.Stop()
	if err := d.stream.SendMsg(&d.request); err != nil && !errors.Is(err, io.EOF) { // the answer contains the reason
		return err
	}
	return d.stream.RecvMsg(&d.reply)
}

// awaitReply waits for the next answer to the last request.
func (d *Device) awaitReply() error {
	d.watchdog.Reset(d.patience)
	defer d.watchdog.Stop()
	return d.stream.RecvMsg(&d.reply)
}

// sendRequest sends a request and returns a reader for the answer. If the connection breaks, the device is treated as
// gone. The request is not repeated, because it may already have been executed.
func (d *Device) sendRequest() (reader, error) {
	if err := d.endStream(); err != nil {
		return reader{}, err
	}
	d.ahead.expire()
	return d.takeReply(d.roundTrip)
}

// takeReply calls exchange, which waits for an answer, and returns a reader for this answer. If exchange fails, the
// device is treated as gone.
func (d *Device) takeReply(exchange func() error) (reader, error) {
	if d.failed != nil {
		return reader{}, d.failed
	}
	if err := exchange(); err != nil {
		if d.failed = fmt.Errorf("%s: %w: %s", d.identity.Address, fpga.ErrGone, status.Convert(err).Message()); d.breakCause != nil {
			if why := d.breakCause(); why != nil {
				d.failed = fmt.Errorf("%s: %w: %w", d.identity.Address, fpga.ErrGone, why)
			}
		}
		return reader{}, d.failed
	}
	r := reader{b: d.reply}
	err := r.readStatus()
	if errors.Is(err, fpga.ErrGone) && !d.local { // the device does not know its host
		err = fmt.Errorf("%s: %w", d.identity.Address, err)
	}
	return r, err
}

func (d *Device) startRequest(op byte) { d.request = append(d.request[:0], op) }

func (d *Device) putWords(values ...uint32) {
	for _, v := range values {
		d.request = binary.LittleEndian.AppendUint32(d.request, v)
	}
}

// Identity returns the identity of the agent's device, with the address by which it is reached from here.
func (d *Device) Identity() fpga.Identity { return d.identity }

// Served returns the identity of the agent's device, as the agent reports it.
func (d *Device) Served() fpga.Identity { return *d.offers.Identity }

// CaptureInterface implements InterfaceTap for the tap on the agent's host.
func (d *Device) CaptureInterface() (name string, mtu int) { return d.offers.Interface, d.offers.MTU }

// Writer returns the client that wrote to the device when this read-only session began: its user, command and start. It
// returns "" if there was none.
func (d *Device) Writer() string { return d.offers.Writer }

// HasTap reports whether the agent can return the updates that reached the parameter server.
func (d *Device) HasTap() bool { return d.offers.Tap }

// Read32 reads a register. Values that the last snapshot latched are already here and need no request.
func (d *Device) Read32(addr uint32) (uint32, error) {
	if v, ok := d.counters[addr]; ok && d.failed == nil {
		return v, nil
	}
	if v, ok := d.ahead.register(addr); ok {
		return v, nil
	}
	if v, ok := d.fixed[addr]; ok && d.failed == nil {
		return v, nil
	}
	d.startRequest(opRead)
	d.putWords(addr)
	r, err := d.sendRequest()
	if err != nil {
		return 0, err
	}
	v := r.u32()
	if err = r.checkComplete(); err == nil && isFixed[addr] {
		d.fixed[addr] = v
	}
	return v, err
}

// isFixed contains the registers that describe the image of a device. Their values do not change.
var isFixed = map[uint32]bool{regmap.CommonMapVersion: true, regmap.CommonRole: true, regmap.CommonCapabilities: true,
	regmap.CommonMaxPacketBytes: true, regmap.QueueBuiltSlots: true, regmap.GeneratorBuiltFlows: true, regmap.AggregatorVersion: true,
	regmap.AggregatorBuiltSlots: true, regmap.AggregatorBuiltPrograms: true}

// errBrokenAnswer is the error for an answer with an unexpected length.
var errBrokenAnswer = fmt.Errorf("%w: a broken answer", ErrProtocol)

// checkComplete returns an error if the answer was too short or was not read completely.
func (r *reader) checkComplete() error {
	if !r.atEnd() {
		return errBrokenAnswer
	}
	return nil
}

// Write32 writes a register.
func (d *Device) Write32(addr, value uint32) error {
	if addr == regmap.CommonCommand {
		clear(d.counters)
	}
	d.startRequest(opWrite)
	d.putWords(addr, value)
	r, err := d.sendRequest()
	if err != nil {
		return err
	}
	for len(r.b) >= 8 {
		addr, v := r.u32(), r.u32()
		d.counters[addr] = v
	}
	return r.checkComplete()
}

// WriteBurst writes words to one address. It sends at most a million words per request.
func (d *Device) WriteBurst(addr uint32, words []uint32) error {
	for len(words) > 0 {
		n := min(len(words), maxBurstWords)
		d.startRequest(opBurst)
		d.putWords(addr)
		d.putWords(words[:n]...)
		r, err := d.sendRequest()
		if err == nil {
			err = r.checkComplete()
		}
		if err != nil {
			return err
		}
		words = words[n:]
	}
	return d.failed
}

// Drain appends the updates delivered since its previous call to buf. Contributors are valid until the next call. If
// the connection is broken, the next register access returns the error.
func (d *Device) Drain(buf []olaf.Observation) []olaf.Observation {
	if !d.ahead.answerDrain() {
		d.startRequest(opDrain)
		if r, err := d.sendRequest(); err == nil {
			_ = d.ahead.addUpdates(&r, 0) // a list that is too short is detected below
		}
	}
	d.side ^= 1
	arena, r := d.inside[d.side][:0], reader{b: d.ahead.takeUpdates()}
	for len(r.b) > 0 {
		buf, arena = r.readUpdates(buf, arena)
	}
	if d.inside[d.side] = arena; r.short {
		d.failed = errBrokenAnswer
	}
	return buf
}

// Capture returns the capture report of the agent's tap for the last run, or nil if the tap does not report.
func (d *Device) Capture() (*fpga.Capture, error) {
	if !d.offers.Captures {
		return nil, d.failed
	}
	var c *fpga.Capture
	return c, d.requestJSON(opCapture, &c)
}

// PortCounts returns the port counts of the agent's device, or nil if it has no ports.
func (d *Device) PortCounts() (counts []fpga.Port, err error) {
	if !d.offers.Ports {
		return nil, d.failed
	}
	err = d.requestJSON(opPorts, &counts)
	return counts, err
}

// AddsUpdates reports whether the switch programs of the agent's device sum the generator's updates.
func (d *Device) AddsUpdates() bool { return !d.offers.Waits }

// LogsArrivals reports whether the agent's device logs arrivals at its queue.
func (d *Device) LogsArrivals() bool { return d.offers.Arrivals }

// Arrivals returns the arrivals logged by the agent's device. It fetches at most a million per request.
func (d *Device) Arrivals() (all []fpga.Arrival, err error) {
	if !d.offers.Arrivals {
		return nil, fmt.Errorf("%w: %s does not log the arrivals at its queue", fpga.ErrRefused, d.identity.Address)
	}
	for total := 1; len(all) < total; {
		d.startRequest(opArrivals)
		d.putWords(uint32(len(all)))
		r, err := d.sendRequest()
		if err != nil {
			return nil, err
		}
		total = int(r.u32())
		some, _ := r.readUpdates(nil, nil)
		for i := range some {
			all = append(all, fpga.Arrival{At: some[i].At, Update: some[i].Update})
		}
		if r.checkComplete() != nil || len(some) == 0 && total > len(all) {
			return nil, errBrokenAnswer
		}
	}
	return all, nil
}

// requestJSON makes a request and decodes the JSON document in the answer into the given variable.
func (d *Device) requestJSON(op byte, into any) error {
	d.startRequest(op)
	r, err := d.sendRequest()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(r.b, into); err != nil {
		return fmt.Errorf("%w: a broken answer: %w", ErrProtocol, err)
	}
	return nil
}

// closePatience is how long Close waits until the agent has ended the session. Without waiting, the next session of the
// same client might find the device in use, for example on a busy machine.
const closePatience = 10 * time.Second

// Close ends the session. The device keeps its state at the agent. A second Close does nothing.
func (d *Device) Close() error {
	if d.closed {
		return nil
	}
	d.closed = true
	if d.failed == nil {
		d.failed = fmt.Errorf("%w: it was closed", fpga.ErrGone)
		d.watchdog.Reset(min(d.patience, closePatience))
		if d.stream.CloseSend() == nil {
			for d.stream.RecvMsg(&d.reply) == nil { // until the end of the stream, when another client may write
			}
		}
	}
	d.watchdog.Stop()
	d.cancel()
	return d.conn.Close()
}
