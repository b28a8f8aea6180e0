package p4ctl_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"path/filepath"
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/internal/silence"
	"github.com/olafctl/olaf/p4ctl"
	"github.com/olafctl/olaf/p4ctl/agent"
	"github.com/olafctl/olaf/p4ctl/p4"
)

// serve starts an agent with an in-memory backend and returns its address.
func serve(t testing.TB, profile p4.Profile, address string) (*agent.Embedded, string) {
	t.Helper()
	backend := new(agent.Embedded)
	a, err := agent.New(agent.Options{Backend: backend, Profile: profile})
	if err != nil {
		t.Fatal(err)
	}
	l, err := agent.Listen(address, false)
	if err != nil {
		t.Fatal(err)
	}
	running := a.Serve(l, nil)
	t.Cleanup(func() { running.Close() })
	return backend, running.Target()
}

func unixAddress(t testing.TB) string { return "unix:" + filepath.Join(t.TempDir(), "p4") }

func dial(t testing.TB, target string, id p4ctl.ElectionID) *p4ctl.Session {
	t.Helper()
	s, err := p4ctl.Dial(t.Context(), target, p4ctl.Options{ElectionID: id})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func push(t testing.TB, s *p4ctl.Session, p p4.Profile) {
	t.Helper()
	if _, err := s.PushPipeline(t.Context(), p4ctl.PipelineConfig(p)); err != nil {
		t.Fatal(err)
	}
}

// await returns the session's next event that matches as.
func await(t testing.TB, s *p4ctl.Session, as func(p4ctl.Event) bool) p4ctl.Event {
	t.Helper()
	for end := time.After(time.Minute); ; {
		select {
		case <-end:
			t.Fatal("nothing of the kind happened")
		case e := <-s.Events():
			if as(e) {
				return e
			}
		}
	}
}

// preempted waits until another controller is primary.
func preempted(t testing.TB, s *p4ctl.Session) {
	t.Helper()
	select {
	case <-time.After(time.Minute):
		t.Fatal("still primary")
	case <-s.Preempted():
	}
}

// testbed returns the paper's tables: workers in 10.0.0.0/8, spread over the clusters in turn, and one server.
func testbed(workers, clusters int) p4ctl.Tables {
	t := p4ctl.Tables{Servers: []netip.Addr{netip.MustParseAddr("192.168.0.1")}}
	for i := range workers {
		t.Workers = append(t.Workers, p4ctl.Worker{
			Address: netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}),
			Cluster: olaf.ClusterID(i % clusters), ID: olaf.WorkerID(i)})
	}
	return t.WithGroups(1)
}

// TestTablesReachTheDataPath checks the whole path of a bench: connecting, pushing, writing, and looking up entries as
// the twin does.
func TestTablesReachTheDataPath(t *testing.T) {
	for _, address := range []string{unixAddress(t), "127.0.0.1:0"} {
		backend, target := serve(t, p4.Lab(), address)
		s := dial(t, target, p4ctl.ElectionID{})
		if s.State() != p4ctl.Primary {
			t.Fatalf("state %v (%v), want primary", s.State(), s.Err())
		}
		if backend.Tables() != nil {
			t.Fatal("tables before a pipeline was committed")
		}
		push(t, s, p4.Lab())
		plan, err := s.Sync(t.Context(), testbed(27, 9))
		if err != nil {
			t.Fatal(err)
		}
		if added, changed, deleted := plan.Count(); added != 27+1+9+9 || changed+deleted != 0 {
			t.Errorf("plan adds %d, changes %d, deletes %d", added, changed, deleted)
		}
		tables := backend.Tables()
		if c, w, ok := tables.Worker(netip.MustParseAddr("10.0.0.13")); !ok || c != 4 || w != 13 {
			t.Errorf("10.0.0.13 is cluster %d, worker %d, %v", c, w, ok)
		}
		if _, _, ok := tables.Worker(netip.MustParseAddr("10.0.0.27")); ok {
			t.Error("an unknown address is a worker")
		}
		if !tables.Server(netip.MustParseAddr("192.168.0.1")) || tables.Server(netip.MustParseAddr("10.0.0.1")) {
			t.Error("servers are wrong")
		}
		members, ok := tables.Group(4)
		if want := []agent.Member{{Port: 1, Instance: 4}, {Port: 1, Instance: 13}, {Port: 1, Instance: 22}}; !ok ||
			!cmp.Equal(members, want) {
			t.Errorf("group of cluster 4: %v, %v; want %v", members, ok, want)
		}
		again, err := s.Sync(t.Context(), testbed(27, 9))
		if err != nil || !again.Empty() {
			t.Errorf("a second sync writes %v (%v)", again, err)
		}
	}
}

// TestRegroupIsOneAtomicBatch checks that a worker moves to another cluster in one atomic batch, and that a data path
// with the old tables is not affected.
func TestRegroupIsOneAtomicBatch(t *testing.T) {
	backend, target := serve(t, p4.Lab(), unixAddress(t))
	s := dial(t, target, p4ctl.ElectionID{})
	push(t, s, p4.Lab())
	before := testbed(6, 2)
	if _, err := s.Sync(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	old := backend.Tables()
	after := p4ctl.Tables{Servers: before.Servers, Workers: append([]p4ctl.Worker(nil), before.Workers...)}
	after.Workers[0].Cluster = 1
	after = after.WithGroups(1)
	plan := p4ctl.Diff(before, after)
	want := "~ group 1  members 1/0 1/2 1/4 -> members 1/2 1/4\n" +
		"~ group 2  members 1/1 1/3 1/5 -> members 1/0 1/1 1/3 1/5\n" +
		"~ worker 10.0.0.0  cluster 0 worker 0 -> cluster 1 worker 0\n" +
		"0 to add, 3 to change, 0 to delete\n"
	if diff := cmp.Diff(want, plan.String()); diff != "" {
		t.Error(diff)
	}
	done, err := s.Apply(t.Context(), plan)
	if err != nil || !done.Atomic || done.Updates != 3 || done.Batches != 1 {
		t.Errorf("apply: %+v, %v", done, err)
	}
	now := backend.Tables()
	if now.Version() != old.Version()+1 {
		t.Errorf("version went from %d to %d in one batch", old.Version(), now.Version())
	}
	addr := netip.MustParseAddr("10.0.0.0")
	if c, _, _ := old.Worker(addr); c != 0 {
		t.Error("the old snapshot changed")
	}
	if c, _, _ := now.Worker(addr); c != 1 {
		t.Error("the worker did not move")
	}
}

// TestSecondController checks an election as in a bench.
func TestSecondController(t *testing.T) {
	_, target := serve(t, p4.Lab(), unixAddress(t))
	bench := dial(t, target, p4ctl.ElectionID{High: 1, Low: 5})
	push(t, bench, p4.Lab())

	_, err := p4ctl.Dial(t.Context(), target, p4ctl.Options{ElectionID: p4ctl.ElectionID{High: 1, Low: 5}})
	if !errors.Is(err, p4ctl.ErrElectionInUse) {
		t.Errorf("an equal id: %v", err)
	}
	lower := dial(t, target, p4ctl.ElectionID{High: 1, Low: 4})
	if lower.State() != p4ctl.Backup || !errors.Is(lower.Err(), p4ctl.ErrNotPrimary) {
		t.Errorf("a lower id: %v, %v", lower.State(), lower.Err())
	}
	if _, err := lower.Sync(t.Context(), testbed(3, 1)); !errors.Is(err, p4ctl.ErrNotPrimary) {
		t.Errorf("a backup writes: %v", err)
	}
	select {
	case <-bench.Preempted():
		t.Fatal("pre-empted by a lower id")
	default:
	}
	higher := dial(t, target, p4ctl.ElectionID{High: 2})
	preempted(t, bench)
	if !errors.Is(bench.Err(), p4ctl.ErrPreempted) || bench.State() != p4ctl.Backup {
		t.Errorf("after a higher id: %v, %v", bench.State(), bench.Err())
	}
	if _, err := bench.Sync(t.Context(), testbed(3, 1)); !errors.Is(err, p4ctl.ErrPreempted) {
		t.Errorf("the pre-empted one writes: %v", err)
	}
	if _, err := higher.Sync(t.Context(), testbed(3, 1)); err != nil {
		t.Errorf("the new primary can't write: %v", err)
	}
	if err := bench.Takeover(t.Context()); err != nil {
		t.Fatal(err)
	}
	preempted(t, higher)
	if got, want := bench.ElectionID(), (p4ctl.ElectionID{High: 2, Low: 1}); got != want {
		t.Errorf("took over with %v, want %v", got, want)
	}
}

// TestMixedBatch checks that there is one error for each rejected update and that the others are applied.
func TestMixedBatch(t *testing.T) {
	backend, target := serve(t, p4.Lab(), unixAddress(t))
	s := dial(t, target, p4ctl.ElectionID{})
	push(t, s, p4.Lab())
	update := func(op v1.Update_Type, address string) *v1.Update {
		return p4ctl.WorkerUpdate(op, p4ctl.Worker{Address: netip.MustParseAddr(address), Cluster: 1, ID: 2})
	}
	batch := []*v1.Update{
		update(v1.Update_INSERT, "10.0.0.1"), update(v1.Update_INSERT, "10.0.0.1"),
		update(v1.Update_INSERT, "10.0.0.2"), update(v1.Update_DELETE, "10.0.0.9")}
	err := s.Write(t.Context(), batch, v1.WriteRequest_CONTINUE_ON_ERROR)
	var refused *p4ctl.BatchError
	if !errors.As(err, &refused) || !errors.Is(err, p4ctl.ErrExists) || !errors.Is(err, p4ctl.ErrNotFound) {
		t.Fatalf("error is %v", err)
	}
	var got []string
	for _, f := range refused.Failed {
		got = append(got, f.Error())
	}
	want := []string{
		`update 1 (insert worker 10.0.0.1): AlreadyExists: "vnp4_1.workers" has an entry for 10.0.0.1`,
		`update 3 (delete worker 10.0.0.9): NotFound: "vnp4_1.workers" has no entry for 10.0.0.9`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if workers, _, _, _ := backend.Tables().Count(); workers != 2 {
		t.Errorf("%d workers, want the 2 good ones", workers)
	}

	version := backend.Tables().Version()
	err = s.Write(t.Context(), append([]*v1.Update{update(v1.Update_INSERT, "10.0.0.3")}, batch...),
		v1.WriteRequest_ROLLBACK_ON_ERROR)
	if !errors.As(err, &refused) || !refused.Rolled || len(refused.Failed) != 1 || refused.Failed[0].Index != 1 {
		t.Errorf("rollback: %v", err)
	}
	if got := backend.Tables().Version(); got != version {
		t.Errorf("a batch that was rolled back made version %d of %d", got, version)
	}
}

// TestSyncReachesEveryTables syncs random tables to other random tables and checks that the desired tables are read
// back.
func TestSyncReachesEveryTables(t *testing.T) {
	_, target := serve(t, p4.Lab(), unixAddress(t))
	s := dial(t, target, p4ctl.ElectionID{})
	push(t, s, p4.Lab())
	rapid.Check(t, func(r *rapid.T) {
		var desired p4ctl.Tables
		for _, i := range rapid.SliceOfNDistinct(rapid.Uint16Range(0, 300), 0, 250, rapid.ID).Draw(r, "workers") {
			desired.Workers = append(desired.Workers, p4ctl.Worker{Address: netip.AddrFrom4([4]byte{10, 0, byte(i >> 8),
				byte(i)}),
				Cluster: olaf.ClusterID(rapid.Uint16Range(0, 9).Draw(r, "cluster")), ID: olaf.WorkerID(i)})
		}
		desired = desired.WithGroups(rapid.Uint32().Draw(r, "port"))
		for _, i := range rapid.SliceOfNDistinct(rapid.Byte(), 0, 5, rapid.ID).Draw(r, "servers") {
			desired.Servers = append(desired.Servers, netip.AddrFrom4([4]byte{192, 168, 0, i}))
		}
		desired = desired.Canonical()
		if _, err := s.Sync(t.Context(), desired); err != nil {
			r.Fatal(err)
		}
		got, err := s.Read(t.Context())
		if err != nil {
			r.Fatal(err)
		}
		if got.Hash() != desired.Hash() || fmt.Sprint(got) != fmt.Sprint(desired) {
			r.Fatalf("got %v, want %v", got, desired)
		}
	})
}

// TestCloseFreesTheElectionID checks that a session can be opened directly after another with the same election id, as
// commands in a script do.
func TestCloseFreesTheElectionID(t *testing.T) {
	_, target := serve(t, p4.Twin(), "127.0.0.1:0")
	for i := range 100 {
		s, err := p4ctl.Dial(t.Context(), target, p4ctl.Options{})
		if err != nil {
			t.Fatalf("session %d: %v", i, err)
		}
		if s.State() != p4ctl.Primary {
			t.Fatalf("session %d is %v: %v", i, s.State(), s.Err())
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestReconnectKeepsElectionID(t *testing.T) {
	address := unixAddress(t)
	a, err := agent.New(agent.Options{Backend: new(agent.Embedded), Profile: p4.Lab()})
	if err != nil {
		t.Fatal(err)
	}
	start := func() *agent.Running {
		l, err := agent.Listen(address, false)
		if err != nil {
			t.Fatal(err)
		}
		return a.Serve(l, nil)
	}
	running := start()
	s, err := p4ctl.Dial(t.Context(), address, p4ctl.Options{BackoffMin: time.Millisecond,
		BackoffMax: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	push(t, s, p4.Lab())
	if err := running.Close(); err != nil {
		t.Fatal(err)
	}
	await(t, s, func(e p4ctl.Event) bool { return e.State == p4ctl.Disconnected })
	if e := await(t, s, func(p4ctl.Event) bool { return true }); e.State != p4ctl.Connecting {
		t.Errorf("after the connection was lost it is %v", e.State)
	}
	running = start()
	defer running.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.AwaitPrimary(ctx); err != nil {
		t.Fatal(err)
	}
	if pushed, err := s.PushPipeline(ctx, p4ctl.PipelineConfig(p4.Lab())); err != nil || pushed {
		t.Errorf("the pipeline was pushed again: %v, %v", pushed, err)
	}
}

// partial is a typical third-party server: a fixed pipeline, batches that continue on error, no multicast groups.
type partial struct {
	*agent.Agent
	wholeRead bool // a Read with groups fails completely
}

func (p partial) Write(ctx context.Context, r *v1.WriteRequest) (*v1.WriteResponse, error) {
	if r.Atomicity != v1.WriteRequest_CONTINUE_ON_ERROR {
		return nil, status.Error(codes.Unimplemented, "no rollback")
	}
	return p.Agent.Write(ctx, r)
}

func (p partial) GetForwardingPipelineConfig(context.Context,
	*v1.GetForwardingPipelineConfigRequest) (*v1.GetForwardingPipelineConfigResponse, error) {
	return nil, status.Error(codes.Unimplemented, "fixed function")
}

func (p partial) SetForwardingPipelineConfig(context.Context,
	*v1.SetForwardingPipelineConfigRequest) (*v1.SetForwardingPipelineConfigResponse, error) {
	return nil, status.Error(codes.Unimplemented, "fixed function")
}

func (p partial) Read(r *v1.ReadRequest, stream v1.P4Runtime_ReadServer) error {
	for i, e := range r.Entities {
		if e.GetPacketReplicationEngineEntry() == nil {
			continue
		}
		if p.wholeRead {
			return status.Error(codes.Unimplemented, "no replication")
		}
		// A clone session, which the agent lacks too, fails alone.
		r.Entities[i] = &v1.Entity{Entity: &v1.Entity_PacketReplicationEngineEntry{PacketReplicationEngineEntry: &v1.PacketReplicationEngineEntry{
			Type: &v1.PacketReplicationEngineEntry_CloneSessionEntry{CloneSessionEntry: new(v1.CloneSessionEntry)}}}}
	}
	return p.Agent.Read(r, stream)
}

// TestPartialServers checks that the client works with limited servers.
func TestPartialServers(t *testing.T) {
	for _, wholeRead := range []bool{false, true} {
		a, err := agent.New(agent.Options{Backend: new(agent.Embedded), Profile: p4.Lab()})
		if err != nil {
			t.Fatal(err)
		}
		l, err := agent.Listen(unixAddress(t), false)
		if err != nil {
			t.Fatal(err)
		}
		server := grpc.NewServer()
		v1.RegisterP4RuntimeServer(server, partial{a, wholeRead})
		go server.Serve(l)
		t.Cleanup(server.Stop)
		s := dial(t, "unix:"+l.Addr().String(), p4ctl.ElectionID{})
		if _, err := a.SetForwardingPipelineConfig(t.Context(), &v1.SetForwardingPipelineConfigRequest{DeviceId: 1,
			ElectionId: &v1.Uint128{High: 1, Low: 1},
			Action:     v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT,
			Config:     p4ctl.PipelineConfig(p4.Lab())}); err != nil {
			t.Fatal(err) // the server's fixed pipeline
		}
		if pushed, err := s.PushPipeline(t.Context(), p4ctl.PipelineConfig(p4.Lab())); pushed || err != nil {
			t.Errorf("push: %v, %v", pushed, err)
		}
		desired := p4ctl.Tables{Workers: testbed(27, 9).Workers}
		plan, err := s.Sync(t.Context(), desired)
		if err != nil || plan.Len() != 27 {
			t.Errorf("sync: %d updates, %v", plan.Len(), err)
		}
		if got, err := s.Read(t.Context()); err != nil || got.Hash() != desired.Hash() {
			t.Errorf("read back %v, %v", got, err)
		}
	}
}

// TestTLS checks connections over TCP with certificates, and that a client without the right certificate is rejected.
func TestTLS(t *testing.T) {
	server, client := certificates(t)
	target := serveTLS(t, server)
	s, err := p4ctl.Dial(t.Context(), target, p4ctl.Options{TLS: client})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	push(t, s, p4.Lab())
	for _, wrong := range []*tls.Config{nil, {RootCAs: x509.NewCertPool()}} {
		if other, err := p4ctl.Dial(t.Context(), target, p4ctl.Options{TLS: wrong,
			ElectionID: p4ctl.ElectionID{High: 9}}); !errors.Is(err, p4ctl.ErrUnreachable) {
			t.Errorf("connected with %v: %v, %v", wrong, other, err)
		}
	}
}

func serveTLS(t testing.TB, config *tls.Config) (target string) {
	t.Helper()
	a, err := agent.New(agent.Options{Backend: new(agent.Embedded), Profile: p4.Twin()})
	if err != nil {
		t.Fatal(err)
	}
	l, err := agent.Listen("127.0.0.1:0", true)
	if err != nil {
		t.Fatal(err)
	}
	running := a.Serve(l, config)
	t.Cleanup(func() { running.Close() })
	return running.Target()
}

// certificates returns a self-signed certificate for 127.0.0.1.
func certificates(t testing.TB) (server, client *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour),
		NotAfter:    time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(certificate)
	server = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		MinVersion: tls.VersionTLS13}
	return server, &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}
}

// TestDialErrorNamesTarget checks that the error is one line with the target.
func TestDialErrorNamesTarget(t *testing.T) {
	nobody := unixAddress(t)
	if _, err := p4ctl.Dial(t.Context(), nobody, p4ctl.Options{}); !errors.Is(err, p4ctl.ErrUnreachable) {
		t.Errorf("nobody there: %v", err)
	}
	_, target := serve(t, p4.Lab(), unixAddress(t))
	_, err := p4ctl.Dial(t.Context(), target, p4ctl.Options{DeviceID: 7})
	if err == nil || !cmp.Equal(codes.NotFound, p4ctl.Code(err)) {
		t.Errorf("unknown device: %v", err)
	}
	s := dial(t, target, p4ctl.ElectionID{})
	if _, err := s.Sync(t.Context(), testbed(1, 1)); !errors.Is(err, p4ctl.ErrNoPipeline) {
		t.Errorf("no pipeline: %v", err)
	}
}

// TestPipelineParts checks reading the requested parts of a pipeline.
func TestPipelineParts(t *testing.T) {
	_, target := serve(t, p4.Lab(), unixAddress(t))
	s := dial(t, target, p4ctl.ElectionID{})
	config := p4ctl.PipelineConfig(p4.Lab())
	for i, want := range []bool{true, false} {
		if pushed, err := s.PushPipeline(t.Context(), config); err != nil || pushed != want {
			t.Errorf("push %d: %v, %v", i, pushed, err)
		}
	}
	got, err := s.Pipeline(t.Context())
	if err != nil || got.P4Info == nil || got.P4DeviceConfig != nil ||
		got.Cookie.GetCookie() != config.Cookie.GetCookie() {
		t.Errorf("%v, %v", got, err)
	}
}

// TestBatchesAreCounted checks the counts for a plan in small batches, applied completely and up to a rejected batch.
func TestBatchesAreCounted(t *testing.T) {
	_, target := serve(t, p4.Lab(), unixAddress(t))
	s, err := p4ctl.Dial(t.Context(), target, p4ctl.Options{BatchSize: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	push(t, s, p4.Lab())
	plan := p4ctl.Diff(p4ctl.Tables{}, testbed(10, 3))
	added, _, _ := plan.Count()
	got, err := s.Apply(t.Context(), plan)
	if want := (p4ctl.Applied{Updates: added, Batches: (added + 3) / 4}); err != nil || got != want || added%4 == 0 {
		t.Errorf("%+v, want %+v: %v", got, want, err)
	}
	// Apply the same plan again: all updates of the first batch exist already.
	got, err = s.Apply(t.Context(), plan)
	if want := (p4ctl.Applied{Batches: 1}); !errors.Is(err, p4ctl.ErrExists) || got != want {
		t.Errorf("%+v, want %+v: %v", got, want, err)
	}
	// Only the existing updates of the first batch are rejected.
	if _, err := s.Sync(t.Context(), p4ctl.Tables{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sync(t.Context(), p4ctl.Tables{Groups: testbed(10, 3).Groups[:1]}); err != nil {
		t.Fatal(err)
	}
	got, err = s.Apply(t.Context(), plan)
	if want := (p4ctl.Applied{Updates: 3, Batches: 1}); !errors.Is(err, p4ctl.ErrExists) || got != want {
		t.Errorf("%+v, want %+v: %v", got, want, err)
	}
	if _, err := s.Sync(t.Context(), testbed(1, 1)); err != nil {
		t.Fatal(err)
	}
	one := p4ctl.Diff(p4ctl.Tables{}, testbed(1, 1))
	if got, err := s.Apply(t.Context(), one); !errors.Is(err, p4ctl.ErrExists) || got.Updates != 0 ||
		got.Batches != 1 || !got.Atomic {
		t.Errorf("one batch that is rolled back: %+v, %v", got, err)
	}
}

// TestRefusalsMentionSilence checks that the error for a controller that may not write includes how long the agent has
// not heard from the other controller, which may be behind a dead link.
func TestRefusalsMentionSilence(t *testing.T) {
	a, err := agent.New(agent.Options{Backend: new(agent.Embedded), Profile: p4.Lab()})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var passed atomic.Int64
	running := a.Serve(silence.Listen(plain, func() time.Time { return time.Unix(passed.Load(), 0) }), nil)
	t.Cleanup(func() { running.Close() })
	dial(t, running.Target(), p4ctl.ElectionID{Low: 5})
	for name, id := range map[string]p4ctl.ElectionID{"a lower id": {Low: 4}, "the same id": {Low: 5}} {
		heard := regexp.MustCompile(`the agent last heard of that client \d+s ago, and drops it after 40s of silence`)
		for try := 0; ; try++ { // messages from the first controller may still be arriving
			passed.Add(10)
			s, err := p4ctl.Dial(t.Context(), running.Target(), p4ctl.Options{ElectionID: id})
			if err == nil {
				err = errors.Join(s.Err(), s.Close())
			}
			if err != nil && heard.MatchString(err.Error()) {
				break
			}
			if try == 9 {
				t.Fatalf("%s beside a silent controller: %v", name, err)
			}
		}
	}
}
