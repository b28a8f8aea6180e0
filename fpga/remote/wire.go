// Package remote accesses a device in another process. It transmits registers, device time and the tap of a card or
// twin over gRPC. A session is one stream, in which requests and answers are short byte strings in order. An access
// takes one round trip, and so does a burst, a list of accesses, a snapshot of all counters, or all updates from a tap.
// A request to let time pass has several answers, so that both sides work at the same time. One session may write,
// while read-only sessions can run in parallel. The messages need no generated code, the greeting contains a version,
// and all lengths are checked.
package remote

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/internal/caller"
)

// version is the version of the protocol. Client and server must have the same version. For example, a client that
// ignores an agent's capture report would overrate its numbers.
const version = 3

// Limits on one message.
const (
	maxMessageBytes = 64 << 20
	maxBurstWords   = 1 << 20
	maxArrivals     = 1 << 20
)

// ErrProtocol is returned if the other side does not use this version of the protocol.
var ErrProtocol = olaf.NewError(olaf.Device, "not an olafctl device agent")

const (
	serviceName = "olafctl.device.v1.Device"
	methodName  = "Session"
)

var streamDesc = grpc.StreamDesc{StreamName: methodName, ServerStreams: true, ClientStreams: true}

// codec passes messages to gRPC as byte strings, without encoding them.
type codec struct{}

const codecName = "olafctl-bytes"

func init() { encoding.RegisterCodec(codec{}) }

func (codec) Name() string { return codecName }

func (codec) Marshal(v any) ([]byte, error) {
	b, ok := v.(*[]byte)
	if !ok {
		return nil, fmt.Errorf("%w: %T", ErrProtocol, v)
	}
	return *b, nil
}

func (codec) Unmarshal(data []byte, v any) error {
	b, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("%w: %T", ErrProtocol, v)
	}
	*b = append((*b)[:0], data...)
	return nil
}

// greeting is the first message in each direction. It is JSON, so that the messages of other versions can be
// recognized.
type greeting struct {
	Version  int            `json:"version"`
	ReadOnly bool           `json:"read_only,omitempty"` // requested by the client
	User     string         `json:"user,omitempty"`      // user of the client: user@host
	Run      string         `json:"run,omitempty"`       // run of the client: its command
	Identity *fpga.Identity `json:"identity,omitempty"`  // identity of the server's device
	Tap      bool           `json:"tap,omitempty"`       // the server provides observations
	Captures bool           `json:"captures,omitempty"`  // the tap reports the quality of its capture
	Ports    bool           `json:"ports,omitempty"`     // the device has network ports
	Arrivals bool           `json:"arrivals,omitempty"`  // the device logs arrivals at its queue
	Waits    bool           `json:"waits,omitempty"`     // its programs serve only closed-loop hosts
	// Interface and MTU are those of the network interface at which the tap captures; empty and 0 if they are unknown.
	Interface string `json:"interface,omitempty"`
	MTU       int    `json:"mtu,omitempty"`
	Writer    string `json:"writer,omitempty"` // for read-only sessions: the client that writes; empty if none does
}

func parseGreeting(b []byte, sender, receiver string) (g greeting, err error) {
	if err := json.Unmarshal(b, &g); err != nil {
		return g, fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	if g.Version != version {
		return g, fmt.Errorf("%w: the %s speaks version %d, the %s %d; use the same olafctl on both", ErrProtocol,
			sender, g.Version, receiver, version)
	}
	if id := g.Identity; id != nil && strings.ContainsFunc(id.Address+id.Kind+id.MapVersion+id.Build,
		unicode.IsControl) {
		return g, fmt.Errorf("%w: its device does not identify itself in plain text", ErrProtocol) // the texts are shown to users
	}
	g.Writer, g.Interface = caller.Plain(g.Writer), caller.Plain(g.Interface)
	return g, nil
}

// First bytes of requests.
const (
	opRead  = 'r' // address; answer: value
	opWrite = 'w' // address, value; answer: counters as pairs of address and value, after a snapshot only
	opBurst = 'b' // address, words…
	opSleep = 's' // ps as 64 bits, number of slices; answers: see appendSlices
	opDrain = 'd' // answer: updates
	// opList requests a list of steps. A step is opRead with an address, opExpect with an address, a mask and the
	// expected value, opWrite with an address and a value, or opBurst with an address, a number of words and their
	// differences. appendList describes the answer.
	opList   = 'm'
	opExpect = 'x'
	// opCapture and the requests declared after it are used only if the server's greeting offers them.
	opCapture  = 'c' // answer: fpga.Capture as JSON
	opPorts    = 'p' // answer: list of fpga.Port as JSON
	opArrivals = 'l' // index of the first arrival; answer: total number, and as many updates as fit
)

// windowBytes is the number of bytes that may be in flight in each direction. With HTTP/2's smallest window, 64 KiB,
// the answers of one run would wait for several round trips.
const windowBytes = 4 << 20

// errElse is matched by device errors that match no other error of package fpga.
var errElse = olaf.NewError(olaf.Device, "the device failed")

// statuses lists the status codes with which answers start, and the errors that they represent. All except the first
// are followed by an error text.
var statuses = []struct {
	code byte
	kind error
}{{'+', nil}, {'g', fpga.ErrGone}, {'a', fpga.ErrAddress}, {'r', fpga.ErrRefused}, {'d', fpga.ErrDoubtful},
	{'x', regmap.ErrUnexpected}, {'e', errElse}}

const statusDone, statusError = '+', 'e'

// appendStatus appends the status at the start of an answer to b. For an error, the length and the text of its message
// follow.
func appendStatus(b []byte, err error) []byte {
	if err == nil {
		return append(b, statusDone)
	}
	code := byte(statusError)
	for _, s := range statuses {
		if s.kind != nil && errors.Is(err, s.kind) {
			code = s.code
			break
		}
	}
	text := err.Error()
	b = binary.LittleEndian.AppendUint32(append(b, code), uint32(len(text)))
	return append(b, text...)
}

// remoteError is an error that the other side returned.
type remoteError struct {
	text string
	kind error
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.kind }

// reader reads numbers from a message. At the end of the message it sets short and returns 0.
type reader struct {
	b     []byte
	short bool
}

func (r *reader) bytes(n int) []byte {
	if n > len(r.b) || n < 0 {
		r.short, r.b = true, nil
		return make([]byte, 8)[:min(max(n, 0), 8)]
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) u8() byte { return r.bytes(1)[0] }

func (r *reader) u32() uint32 { return binary.LittleEndian.Uint32(r.bytes(4)) }

func (r *reader) u64() uint64 { return binary.LittleEndian.Uint64(r.bytes(8)) }

// readStatus reads the status at the start of an answer and returns its error.
func (r *reader) readStatus() error {
	code := r.u8()
	if code == statusDone && !r.short {
		return nil
	}
	for _, s := range statuses {
		if s.code == code && !r.short {
			n := r.u32()
			if uint64(n) > uint64(len(r.b)) {
				break
			}
			return &remoteError{string(r.bytes(int(n))), s.kind}
		}
	}
	return fmt.Errorf("%w: a broken answer", ErrProtocol)
}
