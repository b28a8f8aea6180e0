package conformance

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/olafctl/olaf/p4ctl"
	"github.com/olafctl/olaf/p4ctl/agent"
	"github.com/olafctl/olaf/p4ctl/p4"
)

func connect(t *testing.T, target string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// ours starts this project's agent on a socket.
func ours(t *testing.T, profile p4.Profile) *grpc.ClientConn {
	t.Helper()
	a, err := agent.New(agent.Options{Backend: new(agent.Embedded), Profile: profile})
	if err != nil {
		t.Fatal(err)
	}
	l, err := agent.Listen("unix:"+filepath.Join(t.TempDir(), "s"), false)
	if err != nil {
		t.Fatal(err)
	}
	running := a.Serve(l, nil)
	t.Cleanup(func() { running.Close() })
	return connect(t, running.Target())
}

// TestAgentConforms checks this project's agent against every clause, twice, because the agent remembers the election
// ids from the first run.
func TestAgentConforms(t *testing.T) {
	conn := ours(t, p4.Lab())
	for range 2 {
		tried := 0
		err := Run(t.Context(), Target{Conn: conn, DeviceID: p4.DeviceID, Config: p4ctl.PipelineConfig(p4.Lab())},
			true, func(r Result) {
				tried++
				if r.Outcome != Passed {
					t.Errorf("%s (%s): %s: %s", r.ID, r.Sentence, r.Outcome, r.Seen)
				}
			})
		if err != nil || tried != len(clauses()) {
			t.Errorf("%d clauses of %d, %v", tried, len(clauses()), err)
		}
	}
}

// TestWithoutWritingNothingChanges checks that a check without writes changes neither the entries nor the primary of a
// device.
func TestWithoutWritingNothingChanges(t *testing.T) {
	conn := ours(t, p4.Twin())
	s := &session{Target: Target{Conn: conn, DeviceID: p4.DeviceID, Patience: time.Minute},
		client: v1.NewP4RuntimeClient(conn)}
	if err := s.inspect(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	owner := &probe{session: s, ctx: t.Context()}
	before := owner.fill()
	if len(before) != 3 || owner.isOver() {
		t.Fatalf("%v", owner.seen)
	}
	count := map[Outcome]int{}
	err := Run(t.Context(), Target{Conn: conn, DeviceID: p4.DeviceID}, false, func(r Result) {
		count[r.Outcome]++
		if r.Outcome == Failed || (r.Outcome == Skipped) != r.Writes {
			t.Errorf("%s: %s: %s", r.ID, r.Outcome, r.Seen)
		}
	})
	if err != nil || count[Passed] < 15 {
		t.Errorf("%v, %v", count, err)
	}
	if after := owner.table(); !sameEntries(after, before) {
		t.Errorf("entries before %v, afterwards %v", before, after)
	}
	if err := owner.write(); err != nil {
		t.Errorf("the primary is primary no more: %v", err)
	}
	err = Run(t.Context(), Target{Conn: conn, DeviceID: p4.DeviceID}, true,
		func(Result) { t.Error("a clause was tried beside a live primary") })
	if !errors.Is(err, ErrInUse) {
		t.Errorf("with a live primary: %v", err)
	}
}

// yes is a server that accepts everything and does nothing.
type yes struct {
	v1.UnimplementedP4RuntimeServer
	asked *atomic.Bool
}

func (yes) Write(context.Context, *v1.WriteRequest) (*v1.WriteResponse, error) {
	return &v1.WriteResponse{}, nil
}

func (yes) Read(*v1.ReadRequest, v1.P4Runtime_ReadServer) error { return nil }

func (yes) SetForwardingPipelineConfig(context.Context,
	*v1.SetForwardingPipelineConfigRequest) (*v1.SetForwardingPipelineConfigResponse, error) {
	return &v1.SetForwardingPipelineConfigResponse{}, nil
}

func (yes) GetForwardingPipelineConfig(context.Context,
	*v1.GetForwardingPipelineConfigRequest) (*v1.GetForwardingPipelineConfigResponse, error) {
	return &v1.GetForwardingPipelineConfigResponse{}, nil
}

func (yes) Capabilities(context.Context, *v1.CapabilitiesRequest) (*v1.CapabilitiesResponse, error) {
	return &v1.CapabilitiesResponse{P4RuntimeApiVersion: "one"}, nil
}

func (y yes) StreamChannel(stream v1.P4Runtime_StreamChannelServer) error {
	for {
		if _, err := stream.Recv(); err != nil {
			return err
		}
		code := codes.OK
		if !y.asked.Swap(true) { // the first request must find no primary, or the test checks nothing
			code = codes.NotFound
		}
		answer := &v1.MasterArbitrationUpdate{DeviceId: 1, Status: status.New(code, "").Proto()}
		if err := stream.Send(&v1.StreamMessageResponse{Update: &v1.StreamMessageResponse_Arbitration{Arbitration: answer}}); err != nil {
			return err
		}
	}
}

// no is a server that makes every controller primary and rejects everything else.
type no struct{ yes }

var errNo = status.Error(codes.Internal, "no")

func (no) Write(context.Context, *v1.WriteRequest) (*v1.WriteResponse, error) { return nil, errNo }
func (no) Read(*v1.ReadRequest, v1.P4Runtime_ReadServer) error                { return errNo }
func (no) Capabilities(context.Context, *v1.CapabilitiesRequest) (*v1.CapabilitiesResponse, error) {
	return nil, errNo
}

func (no) SetForwardingPipelineConfig(context.Context,
	*v1.SetForwardingPipelineConfigRequest) (*v1.SetForwardingPipelineConfigResponse, error) {
	return nil, errNo
}

func (no) GetForwardingPipelineConfig(context.Context,
	*v1.GetForwardingPipelineConfigRequest) (*v1.GetForwardingPipelineConfigResponse, error) {
	return nil, errNo
}

func (no) StreamChannel(stream v1.P4Runtime_StreamChannelServer) error {
	for first := true; ; first = false {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		if !first {
			return errNo
		}
		code := codes.OK
		if m.GetArbitration().GetElectionId() == nil {
			code = codes.NotFound
		}
		answer := &v1.MasterArbitrationUpdate{DeviceId: 1, Status: status.New(code, "").Proto()}
		if err := stream.Send(&v1.StreamMessageResponse{Update: &v1.StreamMessageResponse_Arbitration{Arbitration: answer}}); err != nil {
			return err
		}
	}
}

func serve(t *testing.T, server v1.P4RuntimeServer) *grpc.ClientConn {
	t.Helper()
	l, err := agent.Listen("unix:"+filepath.Join(t.TempDir(), "s"), false)
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	v1.RegisterP4RuntimeServer(g, server)
	go func() { _ = g.Serve(l) }()
	t.Cleanup(g.Stop)
	return connect(t, "unix:"+l.Addr().String())
}

// patient retries if a server on a busy machine was silent for longer than a clause waits.
func patient(t *testing.T, ask func() error) {
	t.Helper()
	began := time.Now()
	err := ask()
	for errors.Is(err, ErrSilent) && time.Since(began) < time.Minute {
		err = ask()
	}
	if err != nil {
		t.Error(err)
	}
}

// TestEveryClauseCanFail checks that no clause passes both on a server that accepts everything and on one that rejects
// everything.
func TestEveryClauseCanFail(t *testing.T) {
	passed := map[string]int{}
	ask := func(server v1.P4RuntimeServer) error {
		target := Target{Conn: serve(t, server), DeviceID: p4.DeviceID, Config: p4ctl.PipelineConfig(p4.Lab()),
			Patience: 200 * time.Millisecond}
		return Run(t.Context(), target, true, func(r Result) {
			if r.Outcome == Passed {
				passed[r.ID]++
			}
		})
	}
	patient(t, func() error {
		clear(passed)
		return ask(yes{asked: new(atomic.Bool)})
	})
	if err := ask(no{}); err == nil {
		t.Error("a server that refuses the pipeline was left without a word")
	}
	for id, n := range passed {
		if n > 1 {
			t.Errorf("%s is passed by a server that agrees with everything and by one that refuses everything", id)
		}
	}
}

// TestClausesHaveIDsAndTexts checks that every clause has a unique id and all texts.
func TestClausesHaveIDsAndTexts(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range clauses() {
		if c.ID == "" || c.Section == "" || c.Sentence == "" || c.try == nil || seen[c.ID] {
			t.Errorf("%q: %q, %q", c.ID, c.Section, c.Sentence)
		}
		seen[c.ID] = true
	}
}

func TestShape(t *testing.T) {
	got, err := shapeOf(p4.Lab().Info())
	if err != nil || got.table.Preamble.Id != p4.TableWorkers || got.action.Preamble.Id != p4.ActionSetWorker {
		t.Errorf("%v, %v", got, err)
	}
	info := p4.Lab().Info()
	info.Tables = info.Tables[:1]
	if _, err := shapeOf(info); !errors.Is(err, ErrUnlike) {
		t.Errorf("a P4Info without parameters: %v", err)
	}
}

// picky is a server that admits no controller without an election id and makes all others primary.
type picky struct{ yes }

func (picky) StreamChannel(stream v1.P4Runtime_StreamChannelServer) error {
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		if m.GetArbitration().GetElectionId() == nil {
			return status.Error(codes.InvalidArgument, "an election id is needed")
		}
		if err := stream.Send(&v1.StreamMessageResponse{Update: &v1.StreamMessageResponse_Arbitration{Arbitration: &v1.MasterArbitrationUpdate{DeviceId: 1, Status: status.New(codes.OK, "").Proto()}}}); err != nil {
			return err
		}
	}
}

// TestStrictServersAreTested checks that a server that rejects controllers without an election id, or calls them
// primary, is tested and does not count as in use.
func TestStrictServersAreTested(t *testing.T) {
	for name, server := range map[string]v1.P4RuntimeServer{"no place": picky{},
		"primary at once": yes{asked: func() *atomic.Bool { b := new(atomic.Bool); b.Store(true); return b }()}} {
		l, err := agent.Listen("unix:"+filepath.Join(t.TempDir(), "s"), false)
		if err != nil {
			t.Fatal(err)
		}
		s := grpc.NewServer()
		v1.RegisterP4RuntimeServer(s, server)
		go s.Serve(l)
		t.Cleanup(s.Stop)
		unset := Result{}
		patient(t, func() error {
			return Run(t.Context(), Target{Conn: connect(t, "unix:"+l.Addr().String()), DeviceID: p4.DeviceID,
				Config: p4ctl.PipelineConfig(p4.Twin()), Patience: 500 * time.Millisecond}, false, func(r Result) {
				if r.ID == "B13" {
					unset = r
				}
			})
		})
		if unset.Outcome != Failed {
			t.Errorf("%s: %+v", name, unset)
		}
	}
}
