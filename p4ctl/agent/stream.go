package agent

import (
	"context"
	"errors"
	"io"
	"time"

	v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/olafctl/olaf/internal/silence"
)

// outbox queues the messages for a stream. If a controller does not read them, its stream ends, so that it cannot block
// other controllers.
type outbox struct {
	messages chan *v1.StreamMessageResponse
	overflow chan struct{} // closed once, when the outbox overflows
	full     bool
	replaced chan struct{} // closed when the stream must make room for another
	silence  func() time.Duration
}

// outboxSize is the maximum number of messages that can wait for a slow controller.
const outboxSize = 128

func newOutbox(ctx context.Context) *outbox {
	return &outbox{messages: make(chan *v1.StreamMessageResponse, outboxSize), overflow: make(chan struct{}),
		replaced: make(chan struct{}), silence: silence.Of(ctx)}
}

// put queues a message and never blocks. The caller must hold the agent's lock guard.
func (o *outbox) put(m *v1.StreamMessageResponse) {
	select {
	case o.messages <- m:
	default:
		if !o.full {
			o.full = true
			close(o.overflow)
		}
	}
}

// StreamChannel serves the arbitration of one controller. When the stream ends, the controller leaves. A separate
// goroutine sends messages, because sending blocks while the controller does not read. The goroutine ends with the
// stream.
func (a *Agent) StreamChannel(stream v1.P4Runtime_StreamChannelServer) error {
	c, box := a.joinStream(stream.Context())
	defer a.leaveStream(c)
	received, sent, stop := make(chan error, 1), make(chan error, 1), make(chan struct{})
	go func() { received <- a.receive(c, box, stream) }()
	go func() { sent <- box.sendAll(stream, stop) }()
	select {
	case err := <-sent:
		return err
	case <-box.overflow:
		return status.Error(codes.ResourceExhausted, "the controller does not read its stream")
	case <-box.replaced:
		return status.Error(codes.ResourceExhausted,
			"this stream announced no election id and was closed in favour of one that did, because the role has too "+
				"many streams; announce an election id")
	case err := <-received:
		close(stop)
		select {
		case <-sent:
			return err
		case <-box.overflow:
			return err
		case <-stream.Context().Done():
			return err
		}
	}
}

// sendAll sends queued messages until stop is closed, and then the messages that are left in the queue.
func (o *outbox) sendAll(stream v1.P4Runtime_StreamChannelServer, stop <-chan struct{}) error {
	for {
		select {
		case m := <-o.messages:
			if err := stream.Send(m); err != nil {
				return err
			}
		case <-stop:
			drain(o, stream)
			return nil
		}
	}
}

// drain sends the messages that were queued before the stream ended. It ignores errors, which mean that the controller
// is gone.
func drain(box *outbox, stream v1.P4Runtime_StreamChannelServer) {
	for {
		select {
		case m := <-box.messages:
			if stream.Send(m) != nil {
				return
			}
		default:
			return
		}
	}
}

func (a *Agent) joinStream(ctx context.Context) (connection, *outbox) {
	a.guard.Lock()
	defer a.guard.Unlock()
	a.last++
	box := newOutbox(ctx)
	a.boxes[a.last] = box
	return a.last, box
}

func (a *Agent) leaveStream(c connection) {
	a.turns.Lock()
	defer a.turns.Unlock()
	a.guard.Lock()
	delete(a.boxes, c)
	v := a.arbiter.leave(c)
	a.guard.Unlock()
	a.notify(v)
}

// notify sends notices in the order that the specification requires: first to the other controllers and then, when no
// write is in flight, to the primary.
func (a *Agent) notify(v verdict) {
	a.sendNotices(v.others)
	if len(v.primary) == 0 {
		return
	}
	a.writes.Lock()
	//lint:ignore SA2001 nothing to do inside: passing through means that the old primary's last batch is done
	a.writes.Unlock()
	a.sendNotices(v.primary)
}

func (a *Agent) sendNotices(notices []notice) {
	a.guard.Lock()
	defer a.guard.Unlock()
	for _, n := range notices {
		if box, ok := a.boxes[n.to]; ok {
			box.put(&v1.StreamMessageResponse{Update: &v1.StreamMessageResponse_Arbitration{Arbitration: n.message}})
		}
	}
}

// receive handles the messages on a stream until the stream ends. It returns nil if the controller closed the stream.
func (a *Agent) receive(c connection, box *outbox, stream v1.P4Runtime_StreamChannelServer) error {
	for {
		m, err := stream.Recv()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		switch update := m.GetUpdate().(type) {
		case *v1.StreamMessageRequest_Arbitration:
			if err := a.announce(c, update.Arbitration); err != nil {
				return err
			}
		default:
			a.refuse(c, box, m)
		}
	}
}

func (a *Agent) announce(c connection, m *v1.MasterArbitrationUpdate) error {
	a.turns.Lock()
	defer a.turns.Unlock()
	a.guard.Lock()
	_, alive := a.boxes[c]
	var v verdict
	err := status.Error(codes.Canceled, "the stream has ended")
	if alive { // a message that arrives after its stream has left must not register the stream again
		v, err = a.arbiter.announce(c, m)
	}
	for _, c := range v.ended {
		close(a.boxes[c].replaced)
		delete(a.boxes, c)
	}
	a.guard.Unlock()
	if err != nil {
		return err
	}
	a.notify(v)
	return nil
}

// refuse answers a stream message that the pipeline does not support. The stream stays open. If the controller is not
// primary, it receives the error for that instead.
func (a *Agent) refuse(c connection, box *outbox, m *v1.StreamMessageRequest) {
	a.guard.Lock()
	defer a.guard.Unlock()
	e := &v1.StreamError{CanonicalCode: int32(codes.InvalidArgument), Space: errorSpace}
	switch update := m.GetUpdate().(type) {
	case *v1.StreamMessageRequest_Packet:
		e.Message = "this pipeline takes no packets from controllers"
		e.Details = &v1.StreamError_PacketOut{PacketOut: &v1.PacketOutError{PacketOut: &v1.PacketOut{Metadata: update.Packet.GetMetadata()}}}
	case *v1.StreamMessageRequest_DigestAck:
		e.Message = "this pipeline has no digests"
		e.Details = &v1.StreamError_DigestListAck{DigestListAck: &v1.DigestListAckError{DigestListAck: update.DigestAck}}
	default:
		e.Message = "unknown kind of stream message"
		e.Details = &v1.StreamError_Other{Other: &v1.StreamOtherError{}}
	}
	if !a.arbiter.isPrimary(c) {
		e.CanonicalCode, e.Message = int32(codes.PermissionDenied), "only the primary controller may send this message"
	}
	box.put(&v1.StreamMessageResponse{Update: &v1.StreamMessageResponse_Error{Error: e}})
}
