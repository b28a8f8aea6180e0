package remote

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/internal/silence"
)

// Tap hands out the updates delivered since the last call; capture.Tap is one.
type Tap interface {
	Drain(buf []olaf.Observation) []olaf.Observation
}

// Server lends one device to clients. Accesses are done one at a time.
type Server struct {
	mu       sync.Mutex
	device   fpga.Device
	tap      Tap // nil where nothing captures
	writer   string
	silence  func() time.Duration // for how long nothing came from the writer
	fired    bool                 // the writer armed or started the generator, and did not stop it
	counters []uint32             // addresses that a snapshot latches; nil before the first
	seen     []olaf.Observation
}

// NewServer lends d, and what tap sees if it is not nil. Whoever uses d beside the server does so under Do.
func NewServer(d fpga.Device, tap Tap) *Server {
	return &Server{device: d, tap: tap}
}

// latched finds the addresses that a snapshot latches on this device.
func (s *Server) latched() error {
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

// Do runs f while no client uses the device.
func (s *Server) Do(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// Register offers the service on a gRPC server.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	stream := streamDesc
	stream.Handler = func(_ any, stream grpc.ServerStream) error { return s.session(stream) }
	r.RegisterService(&grpc.ServiceDesc{ServiceName: serviceName, HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{stream}}, s)
}

// session serves one client until it leaves.
func (s *Server) session(stream grpc.ServerStream) (err error) {
	var request []byte
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	hello, err := parseGreeting(request)
	if err != nil {
		return status.Error(codes.FailedPrecondition, err.Error())
	}
	who := clientName(stream.Context())
	if !hello.ReadOnly {
		if other, quiet := s.claim(who, silence.Of(stream.Context())); other != "" {
			return status.Errorf(codes.ResourceExhausted, "%s writes to it; wait until that has ended%s", other, silence.Clause(quiet))
		}
		defer func() { s.release(err != nil) }()
	}
	id := s.device.Identity()
	_, captures := s.tap.(fpga.Capturer)
	_, ports := s.device.(fpga.PortCounter)
	_, arrivals := fpga.LogOf(s.device)
	answer, err := json.Marshal(greeting{
		Version: Version, Identity: &id, Tap: s.tap != nil, Captures: captures, Ports: ports, Arrivals: arrivals,
		Waits: !fpga.AddsUpdates(s.device),
	})
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	for {
		if err := stream.SendMsg(&answer); err != nil {
			return err
		}
		if err := stream.RecvMsg(&request); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		s.Do(func() { answer = s.answer(stream.Context(), answer[:0], request, hello.ReadOnly) })
	}
}

func clientName(ctx context.Context) string {
	p, ok := peer.FromContext(ctx)
	switch {
	case !ok:
		return "somebody"
	case p.Addr.Network() == "unix": // whose clients have no address
		return "another program on its host"
	}
	return p.Addr.String()
}

// claim takes the right to write, or returns who has it, and for how long nothing came from there.
func (s *Server) claim(who string, silence func() time.Duration) (other string, quiet time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writer == "" {
		s.writer, s.silence = who, silence
		return "", 0
	}
	return s.writer, s.silence()
}

// release gives the right to write back. A writer who is lost, as one that was killed, can't end what it started any more, so
// that the generator is stopped here and the next one finds a card at rest. One that takes its leave may let it run.
func (s *Server) release(lost bool) {
	s.Do(func() {
		if lost && s.fired {
			_ = s.device.Write32(regmap.GeneratorCommand, regmap.GeneratorCommandAbort) // a card that is gone shows to the next one
		}
		s.writer, s.fired = "", false
	})
}

// errReadOnly is what a session gets that asked for reading alone.
var errReadOnly = fmt.Errorf("%w: the session is read-only", fpga.ErrRefused)

// answer does one request and appends its answer to b.
func (s *Server) answer(ctx context.Context, b, request []byte, readOnly bool) []byte {
	r := reader{b: request}
	op := r.u8()
	if readOnly && op != opRead || readOnly && moving(request) {
		return appendStatus(b, errReadOnly)
	}
	switch op {
	case opRead:
		addr := r.u32()
		if r.done() {
			v, err := s.device.Read32(addr)
			return binary.LittleEndian.AppendUint32(appendStatus(b, err), v)
		}
	case opWrite:
		addr, value := r.u32(), r.u32()
		if r.done() {
			return s.write(b, addr, value)
		}
	case opBurst:
		addr := r.u32()
		if words := make([]uint32, len(r.b)/4); !r.short && len(r.b)%4 == 0 && len(words) <= maxBurstWords {
			for i := range words {
				words[i] = r.u32()
			}
			return appendStatus(b, s.device.WriteBurst(addr, words))
		}
	case opSleep:
		t := olaf.Duration(r.u64())
		if r.done() && t >= 0 {
			return appendStatus(b, s.device.Sleep(ctx, t))
		}
	case opDrain, opCapture, opPorts, opArrivals:
		return s.tell(op, b, &r)
	}
	return appendStatus(b, errBroken)
}

// errBroken is what a request gets that holds too little, too much, or what the device has not.
var errBroken = fmt.Errorf("%w: a broken request", ErrProtocol)

// tell answers a request for what the device noted meanwhile.
func (s *Server) tell(op byte, b []byte, r *reader) []byte {
	switch op {
	case opDrain:
		if r.done() {
			return s.drain(b)
		}
	case opCapture:
		if c, ok := s.tap.(fpga.Capturer); ok && r.done() {
			v, err := c.Capture()
			return appendJSON(b, v, err)
		}
	case opPorts:
		if p, ok := s.device.(fpga.PortCounter); ok && r.done() {
			v, err := p.PortCounts()
			return appendJSON(b, v, err)
		}
	case opArrivals:
		first := r.u32()
		if log, ok := fpga.LogOf(s.device); ok && r.done() {
			return appendArrivals(b, log, int(first))
		}
	}
	return appendStatus(b, errBroken)
}

// done says that a request held what it should, and nothing more.
func (r *reader) done() bool { return !r.short && len(r.b) == 0 }

// moving says whether a read changes what the next one sees.
func moving(request []byte) bool {
	r := reader{b: request}
	r.u8()
	addr := r.u32()
	return addr == regmap.GeneratorMemData || addr == regmap.ReplicationMemberData
}

// write answers a snapshot with all that it latched, so that the client need not ask.
func (s *Server) write(b []byte, addr, value uint32) []byte {
	if addr == regmap.GeneratorCommand {
		s.fired = value&(regmap.GeneratorCommandArm|regmap.GeneratorCommandStart) != 0 // also where it is declined, which changes nothing
	}
	from := len(b)
	b = appendStatus(b, s.device.Write32(addr, value))
	if b[from] != statusDone || addr != regmap.CommonCommand || value&regmap.CommonCommandSnapshot == 0 {
		return b
	}
	if s.latched() != nil {
		return b[:from+1] // the client will ask, and be told
	}
	for _, c := range s.counters {
		v, err := s.device.Read32(c)
		if err != nil {
			return b[:from+1] // the client will ask, and be told
		}
		b = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(b, c), v)
	}
	return b
}

// appendJSON answers with a document, or with the error of who should have made it.
func appendJSON(b []byte, document any, err error) []byte {
	var text []byte
	if err == nil {
		text, err = json.Marshal(document)
	}
	return append(appendStatus(b, err), text...)
}

// appendArrivals answers with arrivals from the first one on.
func appendArrivals(b []byte, log fpga.ArrivalLog, first int) []byte {
	all, err := log.Arrivals()
	b = appendStatus(b, err)
	if err != nil {
		return b
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(all)))
	some := all[min(first, len(all)):]
	some = some[:min(len(some), maxArrivals)]
	for i := range some {
		b = appendObservation(b, &olaf.Observation{At: some[i].At, Update: some[i].Update})
	}
	return b
}

func (s *Server) drain(b []byte) []byte {
	b = appendStatus(b, nil)
	if s.tap == nil {
		return binary.LittleEndian.AppendUint32(b, 0)
	}
	s.seen = s.tap.Drain(s.seen[:0])
	b = binary.LittleEndian.AppendUint32(b, uint32(len(s.seen)))
	for i := range s.seen {
		b = appendObservation(b, &s.seen[i])
	}
	return b
}
