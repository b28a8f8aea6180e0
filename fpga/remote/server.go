package remote

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/internal/caller"
	"github.com/olafctl/olaf/internal/silence"
)

// Tap returns the updates delivered since its previous call. capture.Tap is an implementation.
type Tap interface {
	Drain(buf []olaf.Observation) []olaf.Observation
}

// InterfaceTap is implemented by taps that capture at a network interface.
type InterfaceTap interface {
	// CaptureInterface returns the interface's name and MTU, which is 0 if it is unknown.
	CaptureInterface() (name string, mtu int)
}

// Server gives clients access to one device. It performs one access at a time.
type Server struct {
	// Admit, if set, returns the reason, such as a reservation, why a user may not write. The user is stated by the
	// client as user@host.
	Admit func(user string) error

	mu           sync.Mutex
	device       fpga.Device
	tap          Tap // nil if there is no capture
	writer       string
	silence      func() time.Duration // time since the writer's last message
	fired        bool                 // the writer armed or started the generator and did not stop it
	counters     []uint32             // addresses of the registers latched by a snapshot; nil before the first
	observations []olaf.Observation
	lists        []byte // of updates
}

// NewServer returns a server for d and, if tap is not nil, for the updates of tap. Other code must use d only through
// Do.
func NewServer(d fpga.Device, tap Tap) *Server {
	return &Server{device: d, tap: tap}
}

// findCounters determines which addresses a snapshot latches on this device.
func (s *Server) findCounters() error {
	if s.counters != nil {
		return nil
	}
	capabilities, err := s.device.Read32(regmap.CommonCapabilities)
	if err != nil {
		return err
	}
	for _, b := range regmap.BuiltBlocks(capabilities) {
		for _, r := range b.Registers {
			if r.Counter {
				s.counters = append(s.counters, b.Base+r.Offset, b.Base+r.Offset+4)
			}
		}
	}
	return nil
}

// Do calls f while no client uses the device.
func (s *Server) Do(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// Register registers the server's service with a gRPC server.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	stream := streamDesc
	stream.Handler = func(_ any, stream grpc.ServerStream) error { return s.serveSession(stream) }
	r.RegisterService(&grpc.ServiceDesc{ServiceName: serviceName, HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{stream}}, s)
}

// serveSession serves one client until the client disconnects.
func (s *Server) serveSession(stream grpc.ServerStream) (err error) {
	var request []byte
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	hello, err := parseGreeting(request, "client", "agent")
	if err != nil {
		return status.Error(codes.FailedPrecondition, strings.TrimPrefix(err.Error(), ErrProtocol.Error()+": "))
	}
	if !hello.ReadOnly {
		if s.Admit != nil {
			if err := s.Admit(hello.User); err != nil {
				return status.Error(codes.PermissionDenied, err.Error())
			}
		}
		client := hello.describeClient(clientName(stream.Context()), time.Now())
		if other, quiet := s.claimWriter(client, silence.Of(stream.Context())); other != "" {
			return status.Errorf(codes.ResourceExhausted, "%s writes to it; wait until that has ended%s", other, silence.Clause(quiet))
		}
		defer func() { s.releaseWriter(err != nil) }()
	}
	writer := ""
	if hello.ReadOnly {
		s.Do(func() { writer = s.writer })
	}
	id := s.device.Identity()
	_, captures := s.capturer()
	_, ports := s.device.(fpga.PortCounter)
	_, arrivals := fpga.FindArrivalLog(s.device)
	offers := greeting{
		Version: version, Identity: &id, Tap: s.tap != nil, Captures: captures, Ports: ports, Arrivals: arrivals,
		Waits: !fpga.AddsUpdates(s.device), Writer: writer,
	}
	if tap, ok := s.tap.(InterfaceTap); ok {
		s.Do(func() { offers.Interface, offers.MTU = tap.CaptureInterface() })
	}
	answer, err := json.Marshal(offers)
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	for err = stream.SendMsg(&answer); err == nil; {
		if err = stream.RecvMsg(&request); err != nil {
			break
		}
		if len(request) > 0 && request[0] == opSleep {
			err = s.streamSlices(stream, request[1:], hello.ReadOnly)
			continue
		}
		s.Do(func() { answer = s.answerRequest(answer[:0], request, hello.ReadOnly) })
		err = stream.SendMsg(&answer)
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func clientName(ctx context.Context) string {
	p, ok := peer.FromContext(ctx)
	switch {
	case !ok:
		return "somebody"
	case p.Addr.Network() == "unix": // clients on unix sockets have no address
		return "another program on its host"
	}
	return p.Addr.String()
}

// describeClient returns a description of a writing client for other clients. It contains the client's command and
// start time if they are known.
func (g *greeting) describeClient(address string, since time.Time) string {
	if g.User == "" {
		return address
	}
	return fmt.Sprintf("%s (%s, since %s)", caller.Plain(g.User), caller.Plain(g.Run), since.Format(time.TimeOnly))
}

// claimWriter acquires the right to write. If another client has this right, it returns that client's description and
// how long that client has been silent.
func (s *Server) claimWriter(client string, silence func() time.Duration) (other string, quiet time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writer == "" {
		s.writer, s.silence = client, silence
		return "", 0
	}
	return s.writer, s.silence()
}

// releaseWriter releases the right to write. If the writer was lost, for example because it was killed, it also stops
// the generator, because the writer can no longer do so. A writer that closes its session may leave the generator
// running.
func (s *Server) releaseWriter(lost bool) {
	s.Do(func() {
		if lost && s.fired {
			// If the card is gone, the next client gets the error.
			_ = s.device.Write32(regmap.GeneratorCommand, regmap.GeneratorCommandAbort)
		}
		s.writer, s.fired = "", false
	})
}

// errReadOnly is the error for writes in a read-only session.
var errReadOnly = fmt.Errorf("%w: the session is read-only", fpga.ErrRefused)

// answerRequest performs any request except opSleep and appends the answer to b.
func (s *Server) answerRequest(b, request []byte, readOnly bool) []byte {
	r := reader{b: request}
	op := r.u8()
	if readOnly && op != opRead && op != opList || readOnly && movesIndex(r.b) {
		return appendStatus(b, errReadOnly)
	}
	switch op {
	case opRead:
		addr := r.u32()
		if r.atEnd() {
			v, err := s.device.Read32(addr)
			return binary.LittleEndian.AppendUint32(appendStatus(b, err), v)
		}
	case opWrite:
		addr, value := r.u32(), r.u32()
		if r.atEnd() {
			return s.writeRegister(b, addr, value)
		}
	case opBurst:
		addr := r.u32()
		if words := make([]uint32, len(r.b)/4); !r.short && len(r.b)%4 == 0 && len(words) <= maxBurstWords {
			for i := range words {
				words[i] = r.u32()
			}
			return appendStatus(b, s.device.WriteBurst(addr, words))
		}
	case opList:
		return s.appendList(b, &r, readOnly)
	case opDrain, opCapture, opPorts, opArrivals:
		return s.answerLog(op, b, &r)
	}
	return appendStatus(b, errBroken)
}

// errBroken is the error for a request that is too short or too long, or that the device does not support.
var errBroken = fmt.Errorf("%w: a broken request", ErrProtocol)

// answerLog answers a request for data that the device collected, such as arrivals, and appends the answer to b.
func (s *Server) answerLog(op byte, b []byte, r *reader) []byte {
	switch op {
	case opDrain:
		if r.atEnd() {
			return s.appendDrained(appendStatus(b, nil))
		}
	case opCapture:
		if c, ok := s.capturer(); ok && r.atEnd() {
			v, err := c.Capture()
			return appendJSON(b, v, err)
		}
	case opPorts:
		if p, ok := s.device.(fpga.PortCounter); ok && r.atEnd() {
			v, err := p.PortCounts()
			return appendJSON(b, v, err)
		}
	case opArrivals:
		first := r.u32()
		if log, ok := fpga.FindArrivalLog(s.device); ok && r.atEnd() {
			return appendArrivals(b, log, int(first))
		}
	}
	return appendStatus(b, errBroken)
}

// capturer returns the object that reports how well a run was captured. This is the tap or, if there is no tap, a
// device whose runs are captured elsewhere.
func (s *Server) capturer() (c fpga.Capturer, ok bool) {
	if c, ok = s.tap.(fpga.Capturer); !ok && s.tap == nil {
		c, ok = s.device.(fpga.Capturer)
	}
	return c, ok
}

// atEnd reports whether the whole message was read and was not too short.
func (r *reader) atEnd() bool { return !r.short && len(r.b) == 0 }

// movesIndex reports whether a read advances an index. The operands begin with the address.
func movesIndex(operands []byte) bool {
	r := reader{b: operands}
	addr := r.u32()
	return addr == regmap.GeneratorMemData || addr == regmap.ReplicationMemberData
}

// writeRegister writes a register and appends the answer to b. The answer to a snapshot command contains all latched
// values, so that the client does not have to request them.
func (s *Server) writeRegister(b []byte, addr, value uint32) []byte {
	if addr == regmap.GeneratorCommand {
		// fired is also set if the command is refused, which does no harm.
		s.fired = value&(regmap.GeneratorCommandArm|regmap.GeneratorCommandStart) != 0
	}
	from := len(b)
	b = appendStatus(b, s.device.Write32(addr, value))
	if b[from] != statusDone || addr != regmap.CommonCommand || value&regmap.CommonCommandSnapshot == 0 {
		return b
	}
	if s.findCounters() != nil {
		return b[:from+1] // the client will request the rest and get the error
	}
	for _, c := range s.counters {
		v, err := s.device.Read32(c)
		if err != nil {
			return b[:from+1] // the client will request the rest and get the error
		}
		b = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(b, c), v)
	}
	return b
}

// maxSteps is the maximum number of steps in a list.
const maxSteps = 1 << 16

// appendList performs a list of accesses and appends the answer to b. The answer contains the number of steps that
// succeeded, the values that were read in order, including an unexpected one, the number of counters in the last
// snapshot, these counters, and the updates delivered since the last answer. Read-only clients do not get updates.
func (s *Server) appendList(b []byte, r *reader, readOnly bool) []byte {
	var l listed
	var err error
	done := uint32(0)
	for ; len(r.b) > 0 && done < maxSteps; done++ {
		if op := r.u8(); readOnly && (op != opRead && op != opExpect || movesIndex(r.b)) {
			err = errReadOnly
		} else {
			err = s.carryOut(op, r, &l)
		}
		if r.short {
			return appendStatus(b, errBroken)
		}
		if err != nil {
			break
		}
	}
	b = binary.LittleEndian.AppendUint32(appendStatus(b, err), done)
	b = binary.LittleEndian.AppendUint32(append(b, l.values...), uint32(len(l.counters)/8))
	b = append(b, l.counters...)
	if readOnly {
		return b
	}
	return s.appendDrained(b)
}

// listed is the result of performing a list of accesses.
type listed struct{ values, counters, answer []byte }

// carryOut performs one step of a list. If the step is incomplete, it sets r.short.
func (s *Server) carryOut(op byte, r *reader, l *listed) error {
	addr := r.u32()
	switch op {
	case opRead, opExpect:
		step := regmap.ReadStep(addr)
		if op == opExpect {
			step.Mask, step.Want = r.u32(), r.u32()
		}
		if r.short {
			return errBroken
		}
		v, err := s.device.Read32(addr)
		if err != nil {
			return err
		}
		l.values = binary.LittleEndian.AppendUint32(l.values, v)
		step.Value = v
		return step.CheckValue()
	case opWrite:
		value := r.u32()
		if r.short {
			return errBroken
		}
		l.answer = s.writeRegister(l.answer[:0], addr, value)
		answer := reader{b: l.answer}
		err := answer.readStatus()
		if addr == regmap.CommonCommand {
			l.counters = append(l.counters[:0], answer.b...)
		}
		return err
	case opBurst:
		words := r.readDifferences(r.u32())
		if r.short {
			return errBroken
		}
		return s.device.WriteBurst(addr, words)
	}
	r.short = true
	return errBroken
}

// appendJSON appends an answer with a JSON document to b, or with an error if err is not nil.
func appendJSON(b []byte, document any, err error) []byte {
	var text []byte
	if err == nil {
		text, err = json.Marshal(document)
	}
	return append(appendStatus(b, err), text...)
}

// appendArrivals appends an answer with the arrivals from index first on to b.
func appendArrivals(b []byte, log fpga.ArrivalLog, first int) []byte {
	all, err := log.Arrivals()
	b = appendStatus(b, err)
	if err != nil {
		return b
	}
	some := all[min(first, len(all)):]
	some = some[:min(len(some), maxArrivals)]
	updates := make([]olaf.Observation, len(some))
	for i := range some {
		updates[i] = olaf.Observation{At: some[i].At, Update: some[i].Update}
	}
	return appendUpdates(binary.LittleEndian.AppendUint32(b, uint32(len(all))), updates)
}

// appendDrained appends the updates delivered since the last answer to b.
func (s *Server) appendDrained(b []byte) []byte {
	s.observations = s.observations[:0]
	if s.tap != nil {
		s.observations = s.tap.Drain(s.observations)
	}
	return appendUpdates(b, s.observations)
}
