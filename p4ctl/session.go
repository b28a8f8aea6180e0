// Package p4ctl implements a P4Runtime client. It becomes the primary controller of a device by means of an election
// ID, pushes the pipeline, and reconciles the tables with the desired ones. A Session owns one connection and one
// supervisor for its stream. The supervisor reconnects with the same election ID. Preempted signals that another
// controller has taken over.
package p4ctl

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/internal/caller"
	"github.com/olafctl/olaf/internal/silence"
	"github.com/olafctl/olaf/p4ctl/p4"
)

// State is the state of a session.
type State uint8

const (
	Disconnected State = iota
	Connecting
	Backup  // connected, but not primary
	Primary // may write
	Closed  // ended permanently
)

// String returns the name of the state.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown"
}

var stateNames = [...]string{"disconnected", "connecting", "backup", "primary", "closed"}

// Event reports a change of state, or that the tables were restored.
type Event struct {
	State    State
	Highest  ElectionID // highest id that the server has seen; zero if it did not report one
	Err      error      // why the state got worse or the restore failed
	Restored *Plan      // objects that were missing after a reconnect; nil for a change of state
}

// Options configures a session. Zero values select the defaults that are named here.
type Options struct {
	DeviceID   uint64     // default p4.DeviceID
	ElectionID ElectionID // default DefaultElectionID
	Role       string     // default "": the default role, which covers the whole pipeline
	// Succeed allows the session to replace a primary that has disappeared: if there is no primary, Dial announces the
	// id above the highest one that the server remembers. It never replaces a live primary.
	Succeed  bool
	ReadOnly bool        // no election, so that the session can only read
	TLS      *tls.Config // default: no TLS, which is possible only for unix sockets and loopback
	// Restore writes the last pushed pipeline and the last synced tables again when the session becomes primary
	// after a reconnect, because the device may have restarted.
	Restore bool
	// BackoffMin and BackoffMax limit the pause before a reconnect. The pause doubles each time and varies at random by
	// a fifth.
	BackoffMin, BackoffMax time.Duration // default 500 ms and 30 s
	// Programs are the switch programs whose tables the session reads and writes. It does not change the tables of
	// other programs.
	Programs []program.Description
	// BatchSize is the number of updates per Write, at most 100, because some servers and clients lose the error
	// details of larger batches.
	BatchSize int
}

// maxBatch is the maximum number of updates in a batch for which all known servers return complete error details.
const maxBatch = 100

func (o Options) withDefaults() Options {
	o.DeviceID = cmp.Or(o.DeviceID, p4.DeviceID)
	if o.ElectionID == (ElectionID{}) {
		o.ElectionID = DefaultElectionID()
	}
	if o.BackoffMin <= 0 {
		o.BackoffMin = 500 * time.Millisecond
	}
	if o.BackoffMax < o.BackoffMin {
		o.BackoffMax = max(30*time.Second, o.BackoffMin)
	}
	if o.BatchSize <= 0 || o.BatchSize > maxBatch {
		o.BatchSize = maxBatch
	}
	return o
}

// Session is the session of a controller with one device. It is safe for concurrent use.
type Session struct {
	target  string
	options Options
	known   []p4.Table // tables of Options.Programs
	conn    io.Closer
	client  v1.P4RuntimeClient

	ctx    context.Context
	cancel context.CancelCauseFunc
	wait   sync.WaitGroup

	announce  chan ElectionID // asks the supervisor to announce this id
	leaving   chan struct{}   // closed to end the session
	left      chan struct{}   // closed when the supervisor has ended
	events    chan Event
	preempted chan struct{}

	mu       sync.Mutex
	state    State
	id       ElectionID
	highest  ElectionID
	err      error         // reason for the state
	changed  chan struct{} // closed and replaced at every change
	closing  bool
	wasFirst bool                         // the session was primary before
	vacant   bool                         // the server's last answer did not name a primary
	config   *v1.ForwardingPipelineConfig // pipeline config that was pushed last
	desired  *Tables                      // tables that were synced last
}

// Dial connects to unix:PATH or HOST:PORT and waits for the first answer to its arbitration message. State and Err then
// report whether the session is primary. Dial returns an error if the server does not answer, the device is unknown, or
// another live controller uses the election ID. Afterwards, the session reconnects automatically until Close is called.
func Dial(ctx context.Context, target string, o Options) (*Session, error) {
	o = o.withDefaults()
	s, err := dial(ctx, target, o)
	// The other controller may not be primary any more.
	if o.Succeed && o.ElectionID.High > 0 && errors.Is(err, ErrElectionInUse) {
		return DialBeside(ctx, target, o)
	}
	return s, err
}

// DialBeside dials with the lowest election ID that no live controller uses. Such a session becomes primary only if the
// server has seen no other ID.
func DialBeside(ctx context.Context, target string, o Options) (s *Session, err error) {
	for low := range uint64(maxBeside) {
		o.ElectionID = ElectionID{Low: low + 1}
		if s, err = dial(ctx, target, o.withDefaults()); !errors.Is(err, ErrElectionInUse) {
			break
		}
	}
	return s, err
}

// maxBeside is the maximum number of IDs that DialBeside tries. It is the number of controllers that an agent accepts.
const maxBeside = 64

func dial(ctx context.Context, target string, o Options) (*Session, error) {
	conn, err := Connect(target, o.TLS)
	if err != nil {
		return nil, err
	}
	s := newSession(target, conn, v1.NewP4RuntimeClient(conn), o)
	if err := s.begin(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// newSession returns a session that has not started. All defaults in o must be filled in.
func newSession(target string, conn io.Closer, client v1.P4RuntimeClient, o Options) *Session {
	s := &Session{
		target: target, options: o, known: p4.TablesOf(o.Programs), conn: conn, client: client,
		announce: make(chan ElectionID), leaving: make(chan struct{}), left: make(chan struct{}), events: make(chan Event,
			64), preempted: make(chan struct{}),
		id: o.ElectionID, changed: make(chan struct{}),
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	return s
}

// begin starts the supervisor and waits for the first answer to its arbitration message.
func (s *Session) begin(ctx context.Context) error {
	if s.options.ReadOnly {
		close(s.left)
		s.setState(Backup, ElectionID{}, nil)
		return nil
	}
	first := make(chan error, 1)
	s.wait.Go(func() {
		defer close(s.left)
		s.supervise(first)
	})
	select {
	case err := <-first:
		if err == nil && s.options.Succeed && s.isVacant() {
			return s.Takeover(ctx)
		}
		return err
	case <-ctx.Done():
		return fmt.Errorf("connect to %s: %w", s.target, context.Cause(ctx))
	}
}

func (s *Session) isVacant() bool { return readField(s, &s.vacant) }

// Connect opens a connection without a session. If secure is nil, the connection is not encrypted, which is allowed
// only for unix sockets and loopback addresses.
func Connect(target string, secure *tls.Config) (*grpc.ClientConn, error) {
	creds := insecure.NewCredentials()
	if secure != nil {
		creds = credentials.NewTLS(secure)
	}
	conn, err := grpc.NewClient(target,
		grpc.WithTransportCredentials(creds),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
		grpc.WithNoProxy(),
		grpc.WithPerRPCCredentials(userName(caller.Name())),
	)
	if err != nil {
		return nil, fmt.Errorf("P4Runtime target %q: %w", target, err)
	}
	return conn, nil
}

// userName is a credential that is sent with each call. Agents need it if the device is reserved.
type userName string

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (u userName) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{caller.MetadataKey: string(u)}, nil
}

// RequireTransportSecurity returns false, because the name is not secret.
func (userName) RequireTransportSecurity() bool { return false }

// leavePatience is the maximum time for which Close waits for the server to end the stream.
const leavePatience = time.Second

// Close ends the session. The server then has no primary, and the election ID is free. Calling Close again has no
// effect.
func (s *Session) Close() error {
	s.mu.Lock()
	again := s.closing
	s.closing = true
	s.mu.Unlock()
	if again {
		return nil
	}
	close(s.leaving)
	patience := time.NewTimer(leavePatience)
	defer patience.Stop()
	select {
	case <-s.left:
	case <-patience.C:
	}
	s.cancel(ErrClosed)
	s.wait.Wait()
	s.setState(Closed, s.highestSeen(), ErrClosed)
	return s.conn.Close()
}

// State returns the session's state.
func (s *Session) State() State { return readField(s, &s.state) }

// Err returns the reason why the session is not primary, or nil if it is primary.
func (s *Session) Err() error { return readField(s, &s.err) }

// ElectionID returns the ID that the session announces.
func (s *Session) ElectionID() ElectionID { return readField(s, &s.id) }

// Target returns the address that was dialled.
func (s *Session) Target() string { return s.target }

// Events returns the channel for state changes. When the channel is full, new events are dropped. State is always
// current.
func (s *Session) Events() <-chan Event { return s.events }

// Preempted returns a channel that is closed when a controller with a higher election ID takes over from this session.
func (s *Session) Preempted() <-chan struct{} { return s.preempted }

// Done returns a channel that is closed when the session has ended permanently.
func (s *Session) Done() <-chan struct{} { return s.ctx.Done() }

// Takeover announces an election ID above all others and waits until the session is primary.
func (s *Session) Takeover(ctx context.Context) error {
	if s.options.ReadOnly {
		return fmt.Errorf("become primary: %w: the session is read-only", ErrNotPrimary)
	}
	for {
		s.mu.Lock()
		state, next, changed, why := s.state, s.id, s.changed, s.err
		if s.highest.Compare(next) >= 0 {
			next = s.highest.Next()
		}
		s.mu.Unlock()
		switch state {
		case Primary:
			return nil
		case Closed:
			return fmt.Errorf("become primary: %w", why)
		case Backup:
			select {
			case s.announce <- next:
			case <-changed:
				continue
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// readField returns the value of one of the fields that mu guards.
func readField[T any](s *Session, field *T) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *field
}

func (s *Session) highestSeen() ElectionID { return readField(s, &s.highest) }

// setState sets the state and wakes all waiting calls.
func (s *Session) setState(state State, highest ElectionID, err error) {
	s.mu.Lock()
	s.state, s.highest, s.err = state, highest, err
	if state == Primary {
		s.wasFirst = true
	}
	close(s.changed)
	s.changed = make(chan struct{})
	s.mu.Unlock()
	s.emit(Event{State: state, Highest: highest, Err: err})
}

// supervise keeps a stream open until the session is closed or the server returns a permanent error.
func (s *Session) supervise(first chan<- error) {
	pause := s.options.BackoffMin
	answered := false
	tell := func(err error) {
		if !answered {
			answered = true
			first <- err
		}
	}
	for {
		s.setState(Connecting, s.highestSeen(), ErrNotPrimary)
		err := s.runStream(answered, func() { pause = s.options.BackoffMin; tell(nil) })
		if s.isLeaving() {
			tell(ErrClosed)
			return
		}
		if !answered || isPermanent(err) {
			s.setState(Closed, s.highestSeen(), err)
			s.cancel(err)
			tell(err)
			return
		}
		s.setState(Disconnected, s.highestSeen(), err)
		timer := time.NewTimer(jitter(pause))
		select {
		case <-timer.C:
		case <-s.leaving:
			timer.Stop()
			return
		}
		pause = min(2*pause, s.options.BackoffMax)
	}
}

// jitter returns a random pause that differs from the given pause by at most a fifth, so that many controllers do not
// reconnect at the same time.
func jitter(pause time.Duration) time.Duration { return pause*4/5 + rand.N(pause*2/5+1) }

func (s *Session) isLeaving() bool {
	select {
	case <-s.leaving:
		return true
	default:
		return false
	}
}

// isPermanent reports whether the server would answer a new stream with the same error. An election ID that is in use
// is not a permanent error, because it may belong to this session's old stream, whose end the server may not have
// noticed yet.
func isPermanent(err error) bool {
	switch status.Code(err) {
	case codes.NotFound, codes.Unimplemented, codes.Unauthenticated, codes.PermissionDenied:
		return true
	}
	return false
}

// runStream runs a stream until it ends and calls arbitrated for every answer. again is true for all streams but the
// first.
func (s *Session) runStream(again bool, arbitrated func()) error {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	stream, err := s.client.StreamChannel(ctx)
	if err != nil {
		return s.streamError(err)
	}
	if err := stream.Send(s.arbitrationRequest(s.ElectionID())); err != nil && !errors.Is(err, io.EOF) {
		return s.streamError(err)
	}
	received := make(chan error, 1)
	s.wait.Go(func() {
		for {
			m, err := stream.Recv()
			if err != nil {
				received <- err
				return
			}
			if a := m.GetArbitration(); a != nil {
				if s.handleAnswer(a) && again && s.options.Restore {
					again = false
					s.wait.Go(s.restore)
				}
				arbitrated()
			}
		}
	})
	for {
		select {
		case <-s.leaving:
			// The server ends the stream after it has removed this controller.
			if err := stream.CloseSend(); err != nil {
				return s.streamError(err)
			}
			return s.streamError(<-received)
		case id := <-s.announce:
			s.mu.Lock()
			s.id = id
			s.mu.Unlock()
			if err := stream.Send(s.arbitrationRequest(id)); err != nil && !errors.Is(err, io.EOF) {
				return s.streamError(err)
			}
		case err := <-received:
			return s.streamError(err)
		}
	}
}

func (s *Session) arbitrationRequest(id ElectionID) *v1.StreamMessageRequest {
	m := &v1.MasterArbitrationUpdate{DeviceId: s.options.DeviceID, ElectionId: id.toProto()}
	if s.options.Role != "" {
		m.Role = &v1.Role{Name: s.options.Role}
	}
	return &v1.StreamMessageRequest{Update: &v1.StreamMessageRequest_Arbitration{Arbitration: m}}
}

// handleAnswer processes an arbitration message and reports whether this session is primary.
func (s *Session) handleAnswer(a *v1.MasterArbitrationUpdate) bool {
	highest := fromProto(a.GetElectionId())
	s.mu.Lock()
	s.vacant = codes.Code(a.GetStatus().GetCode()) == codes.NotFound
	s.mu.Unlock()
	if codes.Code(a.GetStatus().GetCode()) == codes.OK {
		s.setState(Primary, highest, nil)
		return true
	}
	mine := s.ElectionID()
	s.mu.Lock()
	lost := s.wasFirst && highest.Compare(mine) > 0
	s.mu.Unlock()
	if !lost {
		s.setState(Backup, highest, s.contestError(highest, fmt.Errorf("%w: election id %s, the highest so far is %s%s",
			ErrNotPrimary, mine, highest, silenceClause(a.GetStatus().GetDetails()))))
		return false
	}
	s.setState(Backup, highest, s.contestError(highest, fmt.Errorf("%w: %s took over from %s", ErrPreempted,
		highest, mine)))
	select {
	case <-s.preempted:
	default:
		close(s.preempted)
	}
	return false
}

// silenceClause returns a clause that states how long the primary has sent nothing. It is empty if the agent is not
// ours or the time is short.
func silenceClause(details []*anypb.Any) string {
	for _, d := range details {
		var quiet durationpb.Duration
		if d.UnmarshalTo(&quiet) == nil {
			return silence.Clause(quiet.AsDuration())
		}
	}
	return ""
}

// contestError returns the error for a session that may not write.
func (s *Session) contestError(highest ElectionID, why error) error {
	return &ContestError{Target: s.target, Chosen: !s.options.Succeed, Highest: highest, Vacant: s.isVacant(), cause: why}
}

// restore writes the last pipeline and tables again and sends an event with the outcome.
func (s *Session) restore() {
	s.mu.Lock()
	config, desired := s.config, s.desired
	s.mu.Unlock()
	var plan Plan
	var err error
	if config != nil {
		_, err = s.PushPipeline(s.ctx, config)
	}
	if err == nil && desired != nil {
		plan, err = s.Sync(s.ctx, *desired)
	}
	s.emit(Event{State: s.State(), Highest: s.highestSeen(), Err: err, Restored: &plan})
}

// emit sends an event, or drops it if the channel is full.
func (s *Session) emit(e Event) {
	select {
	case s.events <- e:
	default:
	}
}

func (s *Session) streamError(err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%s ended the stream", s.target)
	}
	st, ok := status.FromError(err)
	if !ok {
		return err
	}
	switch st.Code() {
	case codes.InvalidArgument:
		return s.contestError(s.highestSeen(), &kinded{ErrElectionInUse, fmt.Sprintf("%s rejected election id %s: %s",
			s.target, s.ElectionID(), st.Message()), err})
	case codes.Unavailable:
		return &kinded{ErrUnreachable, fmt.Sprintf("%v at %s: %s", ErrUnreachable, s.target, st.Message()), err}
	case codes.ResourceExhausted:
		return &kinded{ErrBusy, fmt.Sprintf("%s: %v: %s", s.target, ErrBusy, st.Message()), err}
	}
	return fmt.Errorf("P4Runtime stream with %s: %v: %s%w", s.target, st.Code(), st.Message(), silent{err})
}
