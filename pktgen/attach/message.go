package attach

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
)

// Version is the protocol version. Clients with another version are rejected.
const Version = 2

var magic = [4]byte{'O', 'L', 'A', 'F'}

// Kind is the kind of a message. Requests from clients have numbers below 16, and answers have numbers from 16.
type Kind uint8

// Requests and answers. The structure with the same name precedes the values.
const (
	KindHello  Kind = 1 + iota // answered by Greeting
	KindVector                 // from a worker: answered by Sum, or by Pushed if the worker does not wait
	KindPull                   // from a worker that does not wait: answered by Model
	KindTake                   // from a server: answered by Update, once there is one
	KindReply                  // from a server, about the last Update: has no answer
	KindBye                    // the client closes the connection; has no answer
	KindRecord                 // from a recorder: the next bytes of its file; has no answer
)

// Answers.
const (
	KindGreeting Kind = 16 + iota
	KindSum
	KindPushed
	KindModel
	KindUpdate
	KindWaits // text; may be sent any number of times before the answer to a request
	KindError // code and text; the request failed, and the connection ends unless the code is CodeVector
)

// Roles and flags of a Greeting.
const (
	RoleWorker   = 0
	RoleServer   = 1
	RoleRecorder = 2

	FlagWaits    = 1 // a worker waits for the sum of every round
	FlagModelDue = 2 // a worker should pull the model before it computes
)

// Codes of errors.
const (
	CodeProtocol = 1 + iota // bytes that are not a message, or a message that is not expected now
	CodeVersion             // another version of the protocol
	CodeBusy                // another client is attached
	CodeVector              // a vector that is too long or has a value that cannot be sent; the client may send another
	CodeEnded               // the worker or server ended, for the reason in the text
)

// Hello is the first message on a connection.
type Hello struct {
	Magic   [4]byte // OLAF
	Version uint16  // 2
	_       uint16
}

// Greeting describes the worker or server to the client.
type Greeting struct {
	Magic   [4]byte // OLAF
	Version uint16  // 2
	Role    uint8   // 0 a worker, 1 a server, 2 a recording
	Flags   uint8   // 1: a vector is answered with the sum of all workers; 2: pull the model before computing
	Worker  uint32  // number, from 0
	Workers uint32  // number of workers in the job
	Largest uint32  // number of values in the longest vector
	Frame   uint32  // number of values in a frame
	Round   uint32  // round of the next vector
	_       uint32
	Scale   float64  // int32 lanes per unit; 0 if there is no fixed scale
	System  [16]byte // padded with zeros
}

// Vector is the head of a worker's vector. The values follow it.
type Vector struct {
	Reward float32 // reward of the update; 0 if there is none
	_      uint32
}

// Numbers counts the values that changed in the conversion between float32 and lanes.
type Numbers struct {
	Clipped   uint32 // values of the vector that were clipped to the lane's range
	Vanished  uint32 // nonzero values of the vector that were sent as 0
	Saturated uint32 // values of the sum at the end of the lane's range
}

// Queue is the status of the queue according to the last ACK.
type Queue struct {
	Occupancy uint32 // number of frames in the queue
	Clusters  uint16 // number of active clusters
	Slots     uint16 // capacity of the queue in frames
}

// Sum is the answer to a vector from a worker that waits. The values of the sum follow it.
type Sum struct {
	Round   uint32 // round of the vectors
	Workers uint32 // number of vectors in the sum
	Torn    uint32 // 1 if frames of the sum contain different vectors
	Numbers
	Reward float32 // sum of the vectors' rewards
}

// Pushed is the answer to an update from a worker that does not wait.
type Pushed struct {
	Round    uint32 // round of the vector
	Withheld uint32 // 1 if transmission control withheld the vector
	Numbers
	Queue
}

// Pull is a request for the model.
type Pull struct {
	After uint32
	Wait  uint32 // 1 waits for a version above After
}

// Model is the head of the newest model at a worker. The values of the model follow it, but there are none before the
// server's first answer.
type Model struct {
	Version uint32 // version of the newest frame: number of updates in the server's answers for its place until then
	Oldest  uint32 // version of the oldest frame; if it is below Version, the model is torn
	Queue
	Saturated uint32 // values at the end of the range
	_         uint32
}

// Update is the head of a frame that arrived at a server. The values of the frame follow it.
type Update struct {
	Number     uint32  // from 0
	Count      uint32  // number of updates in the frame
	First      uint32  // place of the first value in the vector
	Job        uint32  // the job's cluster
	Worker     uint32  // worker of the newest update in the frame
	Vector     uint32  // number of that update
	VersionSum uint64  // sum of the versions of the frames on which the updates were computed
	GenNS      uint64  // when the newest update was ready, ns modulo 2^48
	Reward     float32 // sum of the updates' rewards
	Dropped    uint32  // frames dropped so far because the server's line was full
	Waiting    uint32  // frames in the line
	Saturated  uint32  // values at the end of the range
	Version    uint32  // version of the model's frame at this place; the reply's version is higher by Count
	_          uint32
}

// Reply is the head of a server's answer to an update. The values for the update's workers follow it. If there are
// none, the workers receive only an ACK.
type Reply struct {
	Number uint32 // number of the update
	_      uint32
}

// Failure is the head of a KindError message. The error text follows it.
type Failure struct {
	Code uint32 // one of the codes of errors
}

// headSize is the size in bytes of the header of every message. The header contains the length of the rest of the
// message, the kind, and zeros.
const headSize = 8

// most is the maximum length of a message, which is that of the largest vector with its structure.
const most = 4*MaxValues + 256

// sizes maps the kinds of messages to the lengths of their structures. Messages that contain values or text may be
// longer.
var sizes = map[Kind]struct {
	size int
	more bool
}{
	KindHello: {binary.Size(Hello{}), false}, KindVector: {binary.Size(Vector{}), true}, KindPull: {binary.Size(Pull{}),
		false}, KindTake: {0, false},
	KindReply: {binary.Size(Reply{}), true}, KindBye: {0, false}, KindGreeting: {binary.Size(Greeting{}),
		false}, KindSum: {binary.Size(Sum{}), true},
	KindPushed: {binary.Size(Pushed{}), false}, KindModel: {binary.Size(Model{}),
		true}, KindUpdate: {binary.Size(Update{}), true},
	KindRecord: {0, true},
	KindWaits:  {0, true}, KindError: {binary.Size(Failure{}), true},
}

// Message is a message with its kind and its body. The body consists of a structure and the bytes that follow it.
type Message struct {
	Kind Kind
	Body []byte
}

// Append appends a message to b. It consists of the header, a structure, which may be nil, and the bytes of tail.
func Append(b []byte, kind Kind, structure any, tail []byte) []byte {
	at := len(b)
	return seal(append(begin(b, kind, structure), tail...), at)
}

// begin appends the header and the structure of a message to b. The caller then appends the tail and calls seal with
// the index at which the message begins.
func begin(b []byte, kind Kind, structure any) []byte {
	b = append(b, 0, 0, 0, 0, byte(kind), 0, 0, 0)
	if structure != nil {
		b, _ = binary.Append(b, binary.LittleEndian, structure) // cannot fail: every structure here has a fixed size
	}
	return b
}

func seal(b []byte, at int) []byte {
	binary.LittleEndian.PutUint32(b[at:], uint32(len(b)-at-headSize))
	return b
}

// Read reads the next message into buffer, which grows as needed. The message's body is valid until the buffer is used
// again. The error matches ErrProtocol or comes from the reader.
func Read(r io.Reader, buffer *[]byte) (Message, error) {
	var head [headSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return Message{}, err
	}
	length, kind := binary.LittleEndian.Uint32(head[:]), Kind(head[4])
	s, known := sizes[kind]
	switch {
	case !known || head[5]|head[6]|head[7] != 0:
		return Message{}, fmt.Errorf("%w: no message begins with % x", ErrProtocol, head)
	case length > most || int(length) < s.size || !s.more && int(length) > s.size:
		return Message{}, fmt.Errorf("%w: a message of kind %d is %d bytes long", ErrProtocol, kind, length)
	}
	if cap(*buffer) < int(length) {
		*buffer = make([]byte, length)
	}
	body := (*buffer)[:length]
	if _, err := io.ReadFull(r, body); err != nil {
		return Message{}, fmt.Errorf("%w: a message of kind %d ends early: %w", ErrProtocol, kind, err)
	}
	return Message{kind, body}, nil
}

// Decode decodes the structure of a message and returns the bytes that follow it. into must point to the structure for
// the message's kind.
func (m *Message) Decode(into any) (tail []byte, err error) {
	n, err := binary.Decode(m.Body, binary.LittleEndian, into)
	if err != nil {
		return nil, fmt.Errorf("%w: a message of kind %d is %d bytes long", ErrProtocol, m.Kind, len(m.Body))
	}
	return m.Body[n:], nil
}

// Floats returns the float32 values in b. The error matches ErrProtocol if the length of b is not a multiple of four
// bytes.
func Floats(b []byte) ([]float32, error) {
	if len(b)%4 != 0 {
		return nil, fmt.Errorf("%w: %d bytes of float32 values", ErrProtocol, len(b))
	}
	values := make([]float32, len(b)/4)
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return values, nil
}

// AppendFloats appends float32 values to b.
func AppendFloats(b []byte, values []float32) []byte {
	at := len(b)
	b = slices.Grow(b, 4*len(values))[:at+4*len(values)]
	for i, v := range values {
		binary.LittleEndian.PutUint32(b[at+4*i:], math.Float32bits(v))
	}
	return b
}
