package p4ctl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	v1 "github.com/p4lang/p4runtime/go/p4/v1"
	statusv1 "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/programs"
	"github.com/olafctl/olaf/internal/test/golden"
	"github.com/olafctl/olaf/p4ctl/p4"
)

// scripted is an in-memory server that answers from a script and records its requests.
type scripted struct {
	mu     sync.Mutex
	said   []string
	begun  []time.Time // start of each stream
	fails  map[string]error
	refuse error // for opening a stream
	deaf   bool  // ignores clients that leave
	now    *scriptedStream

	cookie uint64
	info   *configv1.P4Info
	read   []*v1.ReadResponse
	ends   error // of a Read; nil ends it normally
}

// locked runs do under the server's lock.
func (s *scripted) locked(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

func (s *scripted) failure(of string) (err error) {
	s.locked(func() { err = s.fails[of] })
	return err
}

func (s *scripted) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = append(s.said, fmt.Sprintf(format, args...))
}

func (s *scripted) taken() (said []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	said, s.said = s.said, nil
	return said
}

func (s *scripted) Close() error { s.say("closed"); return s.failure("close") }

func (s *scripted) Write(_ context.Context, r *v1.WriteRequest, _ ...grpc.CallOption) (*v1.WriteResponse, error) {
	s.say("write %d updates %s, device %d role %q as %s", len(r.Updates), r.Atomicity, r.DeviceId, r.Role,
		fromProto(r.ElectionId))
	return nil, s.failure(fmt.Sprintf("write %s", r.Atomicity))
}

func (s *scripted) Read(_ context.Context, r *v1.ReadRequest, _ ...grpc.CallOption) (v1.P4Runtime_ReadClient, error) {
	s.say("read %d kinds, device %d role %q", len(r.Entities), r.DeviceId, r.Role)
	if err := s.failure(fmt.Sprintf("read %d", len(r.Entities))); err != nil {
		return nil, err
	}
	return &scriptedRead{left: s.read, end: s.ends}, nil
}

type scriptedRead struct {
	grpc.ClientStream
	left []*v1.ReadResponse
	end  error
}

func (s *scriptedRead) Recv() (*v1.ReadResponse, error) {
	if len(s.left) > 0 {
		m := s.left[0]
		s.left = s.left[1:]
		return m, nil
	}
	if s.end != nil {
		return nil, s.end
	}
	return nil, io.EOF
}

func (s *scripted) SetForwardingPipelineConfig(_ context.Context, r *v1.SetForwardingPipelineConfigRequest,
	_ ...grpc.CallOption) (*v1.SetForwardingPipelineConfigResponse, error) {
	s.say("set pipeline %s of %d tables, device %d role %q as %s", r.Action, len(r.Config.GetP4Info().GetTables()),
		r.DeviceId, r.Role, fromProto(r.ElectionId))
	return nil, s.failure("set")
}

func (s *scripted) GetForwardingPipelineConfig(_ context.Context, r *v1.GetForwardingPipelineConfigRequest,
	_ ...grpc.CallOption) (*v1.GetForwardingPipelineConfigResponse, error) {
	s.say("get pipeline %s, device %d", r.ResponseType, r.DeviceId)
	if err := s.failure("get"); err != nil {
		return nil, err
	}
	return &v1.GetForwardingPipelineConfigResponse{Config: &v1.ForwardingPipelineConfig{P4Info: s.info,
		Cookie: &v1.ForwardingPipelineConfig_Cookie{Cookie: s.cookie}}}, nil
}

func (s *scripted) Capabilities(context.Context, *v1.CapabilitiesRequest,
	...grpc.CallOption) (*v1.CapabilitiesResponse, error) {
	return nil, nil
}

func (s *scripted) StreamChannel(ctx context.Context, _ ...grpc.CallOption) (v1.P4Runtime_StreamChannelClient, error) {
	s.say("stream")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun = append(s.begun, time.Now())
	if s.refuse != nil {
		return nil, s.refuse
	}
	s.now = &scriptedStream{of: s, ctx: ctx, in: make(chan any, 9)}
	return s.now, nil
}

// scriptedStream delivers prepared messages and then the final error.
type scriptedStream struct {
	grpc.ClientStream
	of  *scripted
	ctx context.Context
	in  chan any
}

func (s *scriptedStream) Send(m *v1.StreamMessageRequest) error {
	a := m.GetArbitration()
	role := ""
	if a.Role != nil {
		role = fmt.Sprintf(" role %q", a.Role.Name)
	}
	s.of.say("announce %s, device %d%s", fromProto(a.ElectionId), a.DeviceId, role)
	return s.of.failure("announce")
}

func (s *scriptedStream) CloseSend() error {
	s.of.say("leaves")
	if !s.of.deaf {
		s.in <- io.EOF
	}
	return s.of.failure("leave")
}

func (s *scriptedStream) Recv() (*v1.StreamMessageResponse, error) {
	select {
	case what := <-s.in:
		if err, ok := what.(error); ok {
			return nil, err
		}
		return what.(*v1.StreamMessageResponse), nil
	case <-s.ctx.Done():
		return nil, status.FromContextError(s.ctx.Err()).Err()
	}
}

// arbitrated returns a server's arbitration message.
func arbitrated(code codes.Code, highest ElectionID) *v1.StreamMessageResponse {
	return &v1.StreamMessageResponse{Update: &v1.StreamMessageResponse_Arbitration{Arbitration: &v1.MasterArbitrationUpdate{
		ElectionId: highest.toProto(), Status: &statusv1.Status{Code: int32(code)}}}}
}

// scene is a session and its server in a synctest bubble.
type scene struct {
	text   *bytes.Buffer
	server *scripted
	s      *Session
	begun  chan error
}

// play runs one step and records the server's requests, the calls that return, the events, and the session's state.
func (c *scene) play(name string, do func(*scene)) {
	fmt.Fprintln(c.text, name)
	do(c)
	synctest.Wait()
	for _, line := range c.server.taken() {
		fmt.Fprintf(c.text, "  server: %s\n", line)
	}
	var returned []string // results of concurrent calls
	for len(c.begun) > 0 {
		returned = append(returned, fmt.Sprintf("  returns: %v\n", <-c.begun))
	}
	slices.Sort(returned)
	c.text.WriteString(strings.Join(returned, ""))
	for len(c.s.events) > 0 {
		e := <-c.s.events
		fmt.Fprintf(c.text, "  event: %s, highest %s, %v%s\n", e.State, e.Highest, e.Err, restored(e))
	}
	ended := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
	fmt.Fprintf(c.text, "  %s as %s: %v; pre-empted %t, done %t, vacant %t\n", c.s.State(), c.s.ElectionID(),
		c.s.Err(), ended(c.s.Preempted()), ended(c.s.Done()), c.s.isVacant())
}

func restored(e Event) string {
	if e.Restored == nil {
		return ""
	}
	return fmt.Sprintf("; restored %d", e.Restored.Len())
}

// TestSessionTranscripts plays messages that a server may send and compares the session's requests and events with a
// golden file.
func TestSessionTranscripts(t *testing.T) {
	one := ElectionID{1, 1}
	unavailable := status.Error(codes.Unavailable, "gone")
	type step struct {
		name string
		do   func(*scene)
	}
	says := func(code codes.Code, highest ElectionID) step {
		return step{fmt.Sprintf("the server says %s, highest %s", code, highest),
			func(c *scene) { c.server.now.in <- arbitrated(code, highest) }}
	}
	ends := func(err error) step {
		return step{fmt.Sprintf("the stream ends: %v", err), func(c *scene) { c.server.now.in <- err }}
	}
	refuses := func(err error) step {
		return step{fmt.Sprintf("streams are refused: %v", err),
			func(c *scene) { c.server.locked(func() { c.server.refuse = err }) }}
	}
	later := step{"a minute later", func(*scene) { time.Sleep(time.Minute) }} // in the bubble
	closes := step{"the session is closed", func(c *scene) { c.begun <- c.s.Close() }}
	takes := step{"take over", func(c *scene) {
		go func() { c.begun <- c.s.Takeover(context.Background()) }()
	}}
	takesAMinute := step{"take over within a minute", func(c *scene) {
		ctx, cancel := context.WithTimeoutCause(context.Background(), time.Minute, errors.New("a minute is over"))
		go func() { defer cancel(); c.begun <- c.s.Takeover(ctx) }()
	}}
	awaits := step{"await primary", func(c *scene) {
		go func() { c.begun <- c.s.AwaitPrimary(context.Background()) }()
	}}
	awaitsAMinute := step{"await primary for a minute", func(c *scene) {
		ctx, cancel := context.WithTimeoutCause(context.Background(), time.Minute, errors.New("a minute is over"))
		go func() { defer cancel(); c.begun <- c.s.AwaitPrimary(ctx) }()
	}}
	other := step{"the server says something else", func(c *scene) { c.server.now.in <- &v1.StreamMessageResponse{} }}
	writes := step{"push and sync", func(c *scene) {
		_, err := c.s.PushPipeline(context.Background(), PipelineConfig(p4.Lab()))
		_, more := c.s.Sync(context.Background(), Tables{Servers: []netip.Addr{netip.MustParseAddr("10.0.0.9")}})
		fmt.Fprintf(c.text, "  %v, %v\n", err, more)
	}}
	fails := func(what string, err error) step {
		return step{fmt.Sprintf("%s fails: %v", what, err),
			func(c *scene) { c.server.locked(func() { c.server.fails[what] = err }) }}
	}
	var text bytes.Buffer
	for _, story := range []struct {
		name  string
		o     Options
		steps []step
	}{
		{"primary at once", Options{}, []step{says(codes.OK, one), other, awaits, takes, closes, closes, takes, awaits}},
		{"a connection that can't be closed", Options{}, []step{says(codes.OK, one),
			fails("close", errors.New("it is stuck")), closes, closes}},
		{"of a role", Options{Role: "monitor", DeviceID: 3, ElectionID: ElectionID{0, 7}},
			[]step{says(codes.OK, ElectionID{0, 7}), writes, closes}},
		{"read only", Options{ReadOnly: true}, []step{takes, closes}},
		{"a backup that becomes primary", Options{}, []step{says(codes.AlreadyExists, ElectionID{5, 0}), awaits,
			says(codes.OK, one), closes}},
		{"a backup that takes over", Options{}, []step{says(codes.AlreadyExists, ElectionID{5, 9}), takes,
			says(codes.OK, ElectionID{5, 10}), closes}},
		{"a backup whose own id is the highest", Options{}, []step{says(codes.AlreadyExists, one), takes,
			says(codes.OK, ElectionID{1, 2}), closes}},
		{"one overtaken while it takes over", Options{}, []step{says(codes.AlreadyExists, ElectionID{5, 9}), takes,
			says(codes.AlreadyExists, ElectionID{6, 0}), says(codes.OK, ElectionID{6, 1}), closes}},
		{"one that gives up taking over", Options{}, []step{says(codes.AlreadyExists, ElectionID{5, 9}), takesAMinute,
			later, awaitsAMinute, later, closes}},
		{"pre-empted, twice", Options{}, []step{says(codes.OK, one), says(codes.AlreadyExists, ElectionID{2, 0}),
			says(codes.OK, one), says(codes.AlreadyExists, ElectionID{1, 2}), closes}},
		{"backup again by its own id", Options{}, []step{says(codes.OK, one), says(codes.AlreadyExists, one), closes}},
		{"vacant", Options{}, []step{says(codes.NotFound, ElectionID{7, 7}), closes}},
		{"vacant, and succeeded", Options{Succeed: true}, []step{says(codes.NotFound, ElectionID{7, 7}),
			says(codes.OK, ElectionID{7, 8}), closes}},
		{"taken, and not succeeded", Options{Succeed: true}, []step{says(codes.AlreadyExists, ElectionID{7, 7}), closes}},
		{"refused from the start", Options{}, []step{ends(unavailable), later, closes}},
		{"an id in use from the start", Options{}, []step{ends(status.Error(codes.InvalidArgument, "in use")), closes}},
		{"closed before an answer", Options{}, []step{closes}},
		{"lost, and back", Options{}, []step{says(codes.OK, one), ends(io.EOF), later, says(codes.OK, one),
			ends(unavailable), awaits, later, says(codes.OK, one), closes}},
		{"lost, and an id in use for a while", Options{}, []step{says(codes.OK, one),
			ends(status.Error(codes.InvalidArgument, "in use")), later, says(codes.OK, one), closes}},
		{"lost, and closed meanwhile", Options{}, []step{says(codes.OK, one), refuses(unavailable), ends(unavailable),
			closes}},
		{"lost for good", Options{}, []step{says(codes.OK, one), ends(status.Error(codes.NotFound, "no such device")),
			later, awaits, takes, closes}},
		{"lost to one without rights", Options{}, []step{says(codes.OK, one), refuses(status.Error(codes.PermissionDenied,
			"no")), ends(unavailable), later, closes}},
		{"an announcement that fails", Options{}, []step{says(codes.OK, one),
			fails("announce", status.Error(codes.Unauthenticated, "who?")), ends(unavailable), later, closes}},
		{"an announcement at the end of a stream", Options{}, []step{says(codes.AlreadyExists, ElectionID{2, 0}),
			fails("announce", io.EOF), takes, ends(unavailable), later, says(codes.OK, ElectionID{2, 1}), closes}},
		{"a takeover that can't be announced", Options{}, []step{says(codes.AlreadyExists, ElectionID{2, 0}),
			fails("announce", status.Error(codes.Unauthenticated, "who?")), takes, later, closes}},
		{"a farewell that fails", Options{}, []step{says(codes.OK, one),
			fails("leave", status.Error(codes.Internal, "broken")), closes}},
		{"another error", Options{}, []step{says(codes.OK, one), ends(errors.New("of nobody")), later,
			says(codes.OK, one), ends(status.Error(codes.Internal, "broken")), closes}},
		{"restored", Options{Restore: true}, []step{says(codes.OK, one), writes, ends(unavailable), later,
			says(codes.OK, one), says(codes.OK, one), closes}},
		{"restored as a backup", Options{Restore: true}, []step{says(codes.OK, one), writes, ends(unavailable), later,
			says(codes.AlreadyExists, ElectionID{3, 0}), says(codes.OK, one), closes}},
		{"not restored", Options{}, []step{says(codes.OK, one), writes, ends(unavailable), later, says(codes.OK, one),
			closes}},
		{"a pipeline that can't be restored", Options{Restore: true}, []step{says(codes.OK, one), writes,
			fails("set", status.Error(codes.Internal, "no room")), ends(unavailable), later, says(codes.OK, one), closes}},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := &scene{text: &text, server: &scripted{fails: map[string]error{}}, begun: make(chan error, 9)}
			c.s = newSession("somewhere", c.server, c.server, story.o.withDefaults())
			ctx, cancel := context.WithTimeoutCause(context.Background(), time.Hour, errors.New("an hour is over"))
			defer cancel()
			c.play("\n"+story.name, func(c *scene) {
				go func() { c.begun <- c.s.begin(ctx) }()
			})
			for _, step := range story.steps {
				c.play(step.name, step.do)
			}
		})
	}
	golden.Equal(t, "scenes.txt", text.Bytes())
}

// TestDialEndsWithContext checks that Dial gives up when its context ends.
func TestDialEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &scripted{}
		s := newSession("somewhere", server, server, Options{}.withDefaults())
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("a minute is over"))
		defer cancel()
		began := time.Now()
		if err := s.begin(ctx); err == nil || err.Error() != "connect to somewhere: a minute is over" ||
			time.Since(began) != time.Minute {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		if err := s.Close(); err != nil || time.Since(began) != time.Minute {
			t.Errorf("closed after %s: %v", time.Since(began), err)
		}
	})
}

// TestTakeoverWaitsForAStream checks that a takeover without a stream waits until the session is primary or the
// takeover's context ends.
func TestTakeoverWaitsForAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &scripted{}
		s := newSession("somewhere", server, server, Options{}.withDefaults())
		s.setState(Backup, ElectionID{3, 0}, ErrNotPrimary)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("a minute is over"))
		defer cancel()
		if err := s.Takeover(ctx); err == nil || err.Error() != "a minute is over" {
			t.Error(err)
		}
		done := make(chan error, 1)
		go func() { done <- s.Takeover(t.Context()) }()
		for _, state := range []State{Backup, Disconnected, Connecting, Backup, Primary} {
			synctest.Wait()
			if len(done) > 0 {
				t.Fatalf("returns before it is primary: %v", <-done)
			}
			s.setState(state, ElectionID{4, 0}, nil)
		}
		if err := <-done; err != nil || s.Target() != "somewhere" {
			t.Errorf("%v of %s", err, s.Target())
		}
	})
}

// TestPausesGrow checks that the pause before a reconnect doubles up to the maximum, varies by a fifth, and starts over
// after an answer.
func TestPausesGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &scripted{}
		s := newSession("somewhere", server, server, Options{BackoffMin: time.Second,
			BackoffMax: 10 * time.Second}.withDefaults())
		go func() { _ = s.begin(t.Context()) }()
		gone := status.Error(codes.Unavailable, "gone")
		for round := range 2 {
			synctest.Wait()
			server.now.in <- arbitrated(codes.OK, s.ElectionID())
			synctest.Wait()
			server.locked(func() { server.refuse, server.begun = gone, []time.Time{time.Now()} })
			server.now.in <- gone
			time.Sleep(time.Minute) // in the bubble
			var begun []time.Time
			server.locked(func() { begun, server.refuse = server.begun, nil })
			for i, pause := range []time.Duration{1, 2, 4, 8, 10, 10} {
				want := pause * time.Second
				if took := begun[i+1].Sub(begun[i]); took < want*4/5 || took > want*6/5+time.Nanosecond {
					t.Errorf("round %d: pause %d is %s, want %s", round, i, took, want)
				}
			}
			time.Sleep(20 * time.Second)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestCloseEndsWithoutServer checks that a session closes even if its server never ends the stream.
func TestCloseEndsWithoutServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &scripted{deaf: true}
		s := newSession("somewhere", server, server, Options{}.withDefaults())
		go func() { _ = s.begin(t.Context()) }()
		synctest.Wait()
		server.now.in <- arbitrated(codes.OK, s.ElectionID())
		synctest.Wait()
		began := time.Now()
		if err := s.Close(); err != nil || time.Since(began) != time.Second {
			t.Errorf("closed after %s: %v", time.Since(began), err)
		}
	})
}

// answer is one possible response to a request.
type answer struct {
	name string
	err  error
}

// answers returns the possible responses to any request, success first.
func answers(t *testing.T) []answer {
	all := []answer{{"", nil}}
	for _, coded := range []struct {
		code codes.Code
		text string
	}{{codes.Unavailable, "gone"}, {codes.PermissionDenied, "another writes"}, {codes.FailedPrecondition, "none yet"},
		{codes.Unimplemented, "what?"}, {codes.Internal, "broken"}, {codes.Unknown, "something"}} {
		all = append(all, answer{coded.code.String(), status.Error(coded.code, coded.text)})
	}
	return append(all, answer{"refused", refusal(t, codes.OK, codes.AlreadyExists, codes.NotFound)},
		answer{"aborted", refusal(t, codes.Aborted, codes.ResourceExhausted)},
		answer{"unknown kinds", refusal(t, codes.OK, codes.Unimplemented)}, answer{"of nobody", errors.New("of nobody")})
}

// TestAnswers combines every request with every response and checks requests and results against a golden file.
func TestAnswers(t *testing.T) {
	var text bytes.Buffer
	all := programs.AllPrograms()
	three := Plan{}
	for i := range uint32(3) {
		three.changes = append(three.changes, change{op: v1.Update_INSERT, after: object{kind: kindServer, key: 7 + i}})
	}
	entity := func(o object) *v1.Entity { return o.toUpdate(v1.Update_INSERT).Entity }
	holds := []*v1.ReadResponse{{Entities: []*v1.Entity{entity(object{kind: kindServer, key: 9}),
		entity(object{kind: kindServer, key: 9})}},
		{Entities: []*v1.Entity{entity(object{kind: kindServer, key: 8}), {}}}}
	requests := []struct {
		name string
		on   []string // failing requests
		do   func(*Session) (any, error)
	}{
		{"pipeline", []string{"get"}, func(s *Session) (any, error) {
			c, err := s.Pipeline(t.Context())
			return c.GetCookie().GetCookie(), err
		}},
		{"push", []string{"get", "set"}, func(s *Session) (any, error) {
			return s.PushPipeline(t.Context(),
				PipelineConfig(p4.Lab()))
		}},
		{"push what is there", []string{"get", "set"}, func(s *Session) (any, error) {
			c := proto.Clone(PipelineConfig(p4.Lab())).(*v1.ForwardingPipelineConfig)
			c.Cookie.Cookie = 5
			return s.PushPipeline(t.Context(), c)
		}},
		{"push without a cookie", []string{"get"}, func(s *Session) (any, error) {
			c := proto.Clone(PipelineConfig(p4.Lab())).(*v1.ForwardingPipelineConfig)
			c.Cookie = nil
			return s.PushPipeline(t.Context(), c)
		}},
		{"add", []string{"get", "set"}, func(s *Session) (any, error) { return s.AddPrograms(t.Context(), all...) }},
		{"read", []string{"read 1", "read 2", "end"}, func(s *Session) (any, error) {
			r,
				err := s.Read(t.Context())
			return r.Servers, err
		}},
		{"read what can't be", []string{"read 1"}, func(s *Session) (any, error) {
			wide := group(3, &v1.Replica{Instance: 65536})
			s.client.(*scripted).read = []*v1.ReadResponse{holds[0], {Entities: []*v1.Entity{wide}}}
			r, err := s.Read(t.Context())
			return r.Servers, err
		}},
		{"apply", []string{"write ROLLBACK_ON_ERROR", "write CONTINUE_ON_ERROR"}, func(s *Session) (any,
			error) {
			return s.Apply(t.Context(), three)
		}},
		{"apply in pieces", []string{"write CONTINUE_ON_ERROR"}, func(s *Session) (any, error) {
			long := Plan{}
			for i := range uint32(9) {
				long.changes = append(long.changes, change{op: v1.Update_DELETE, before: object{kind: kindServer, key: 7 + i}})
			}
			return s.Apply(t.Context(), long)
		}},
		{"apply nothing", []string{"write ROLLBACK_ON_ERROR"}, func(s *Session) (any,
			error) {
			return s.Apply(t.Context(), Plan{})
		}},
		{"apply whole", []string{"write ROLLBACK_ON_ERROR"}, func(s *Session) (any,
			error) {
			return s.ApplyWhole(t.Context(), three)
		}},
		{"apply nothing whole", []string{"write ROLLBACK_ON_ERROR"}, func(s *Session) (any,
			error) {
			return s.ApplyWhole(t.Context(), Plan{})
		}},
		{"apply too much whole", []string{"write ROLLBACK_ON_ERROR"}, func(s *Session) (any, error) {
			return s.ApplyWhole(t.Context(), Plan{slices.Concat(three.changes, three.changes[:2])})
		}},
		{"sync", []string{"read 2", "write ROLLBACK_ON_ERROR"}, func(s *Session) (any, error) {
			p, err := s.Sync(t.Context(), Tables{Servers: []netip.Addr{netip.MustParseAddr("0.0.0.9"),
				netip.MustParseAddr("10.0.0.1")}})
			return p.String(), err
		}},
		{"sync what can't be", []string{"read 2"}, func(s *Session) (any, error) {
			p, err := s.Sync(t.Context(), Tables{Clusters: []Cluster{{1, 1}}})
			return p.String(), err
		}},
	}
	ask := func(name, on string, do func(*Session) (any, error), says answer, why error) {
		server := &scripted{fails: map[string]error{on: says.err}, cookie: 5, info: p4.Lab().Info(), read: holds}
		if on == "end" {
			server.ends = says.err
		}
		s := newSession("somewhere", server, server, Options{Role: "r", DeviceID: 4, BatchSize: 4}.withDefaults())
		s.setState(Primary, ElectionID{}, why)
		got, err := do(s)
		fmt.Fprintf(&text, "%s; %s %s, the session says %v\n  %v, %v (%s)\n", name, on, says.name, why, got, err, Code(err))
		for _, kind := range []error{ErrUnreachable, ErrNotPrimary, ErrPreempted, ErrNoPipeline, ErrExists, ErrNotFound,
			ErrFull, ErrTooMany, ErrTables} {
			if errors.Is(err, kind) {
				fmt.Fprintf(&text, "  which is: %v\n", kind)
			}
		}
		for _, line := range server.taken() {
			fmt.Fprintf(&text, "  %s\n", line)
		}
	}
	for _, r := range requests {
		for _, on := range r.on {
			for _, says := range answers(t) {
				ask(r.name, on, r.do, says, nil)
			}
			ask(r.name, on, r.do, answer{"PermissionDenied", status.Error(codes.PermissionDenied, "another writes")},
				ErrPreempted)
		}
	}
	golden.Equal(t, "answers.txt", text.Bytes())
}

// TestAddedTables checks adding the tables of programs to pipelines that have some of them, for both profiles.
func TestAddedTables(t *testing.T) {
	all := programs.AllPrograms()
	byName := map[string]program.Description{}
	for _, d := range all {
		byName[d.Name] = d
	}
	isw, inc := byName["iswitch"], byName["p4inc"]
	var text bytes.Buffer
	for _, profile := range []p4.Profile{p4.Lab(), p4.Twin()} {
		for _, has := range [][]program.Description{nil, {isw}, {inc}, {isw, inc}} {
			for _, asked := range [][]program.Description{nil, {isw}, {inc, isw}} {
				for _, known := range [][]program.Description{nil, all} {
					server := &scripted{info: profile.Info(has...)}
					s := newSession("somewhere", server, server, Options{Programs: known}.withDefaults())
					added, err := s.AddPrograms(t.Context(), asked...)
					var tables []string
					for _, table := range s.config.GetP4Info().GetTables() {
						tables = append(tables, fmt.Sprintf("%s %d", table.GetPreamble().GetName(), table.GetSize()))
					}
					fmt.Fprintf(&text, "%d workers, has %d, asked for %d, knows %d: %t, %v\n  %s\n", profile.Workers, len(has),
						len(asked), len(known), added, err, strings.Join(tables, ", "))
				}
			}
		}
	}
	golden.Equal(t, "added.txt", text.Bytes())
}
