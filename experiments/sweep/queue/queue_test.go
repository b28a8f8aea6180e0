package queue

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/olafctl/olaf/experiments/sweep"
	"github.com/olafctl/olaf/experiments/sweep/grid"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/store"
	found "github.com/olafctl/olaf/results/sweep"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// serve starts a server, in a folder and at a port that a later one can reuse.
func serve(t testing.TB, folder string, port int) *server.Server {
	t.Helper()
	n, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: folder, NoSigs: true,
		NoLog: true})
	must(t, err)
	go n.Start()
	if !n.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not listen")
	}
	t.Cleanup(func() { n.Shutdown(); n.WaitForShutdown() })
	return n
}

func dial(t testing.TB, n *server.Server) *Queue {
	t.Helper()
	q, err := Dial(t.Context(), Options{URL: n.ClientURL(), Name: t.Name()})
	must(t, err)
	t.Cleanup(q.Close)
	return q
}

// numbers returns a command whose result is its parameter.
func numbers() sweep.Commands {
	return sweep.Commands{{Name: "numbers", Headline: []string{"m"}, Runs: 1, Fields: []sweep.Field{{Name: "n", Type: grid.Integer}},
		Options: []string{"n"},
		Metrics: []*metric.Metric{{Name: "m"}},
		Resolve: func(string, []sweep.Option) (sweep.Resolver, error) { return cells{}, nil },
		Run: func(_ context.Context, spec json.RawMessage, from, runs int) (*found.Lot, error) {
			var n float64
			if err := json.Unmarshal(spec, &n); err != nil {
				return nil, err
			}
			if n == 666 {
				return nil, errors.New("cursed")
			}
			if n == 777 {
				return &found.Lot{Metrics: []string{"m"}, Runs: []found.Run{{Invalid: strings.Repeat("x", 1<<17)}}}, nil
			}
			return &found.Lot{Metrics: []string{"m"}, Runs: []found.Run{{Values: []results.Float{results.Float(n)}}}}, nil
		}}}
}

type cells struct{}

func (cells) Axes([]string) []grid.Axis { return nil }
func (cells) Cell(v []sweep.Option) (json.RawMessage, error) {
	return json.RawMessage(v[0].Value), nil
}

func plan(t testing.TB, values string) *sweep.Plan {
	t.Helper()
	p, err := planOf(values)
	must(t, err)
	return p
}

func planOf(values string) (*sweep.Plan, error) {
	p, err := (&sweep.File{Command: "numbers", Sweep: []string{"n=" + values}}).Resolve(numbers(), false)
	if err == nil {
		p.Order = sweep.Random
	}
	return p, err
}

// worker does jobs in this process; before may end it, or fail the job.
type worker struct{ before func(sweep.Job) error }

func (worker) Name() string { return "w" }
func (worker) Close() error { return nil }
func (w worker) Do(ctx context.Context, j sweep.Job) (json.RawMessage, error) {
	if w.before != nil {
		if err := w.before(j); err != nil {
			return nil, err
		}
	}
	return numbers().Do(ctx, j)
}

// waiter is a worker that reports when it has a job, and works on it until it is stopped.
type waiter chan struct{}

func (w waiter) Do(ctx context.Context, _ sweep.Job) (json.RawMessage, error) {
	w <- struct{}{}
	<-ctx.Done()
	return nil, ctx.Err()
}

func (w waiter) Close() error { return nil }

func (w waiter) Name() string { return "waiter" }

// labour starts to work, until the test ends or stop is called.
func labour(t testing.TB, q *Queue, host string, build sweep.Build, workers int, before func(sweep.Job) error) (l *Labour,
	stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l = &Labour{Queue: q, Build: build, Workers: workers, Host: host, Now: time.Now,
		Start: func(context.Context) (sweep.Worker, error) { return worker{before}, nil }}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = l.Work(ctx) // ends with its context
	}()
	stop = func() { cancel(); <-ended }
	t.Cleanup(stop)
	return l, stop
}

func carryOut(t testing.TB, q *Queue, p *sweep.Plan) (string, []found.Outcome) {
	t.Helper()
	s, err := store.Open(t.TempDir())
	must(t, err)
	defer s.Close()
	h, err := NewHandout(t.Context(), q, p.Build)
	must(t, err)
	e := &sweep.Engine{Plan: p, Results: s.Singles(), Workers: 32, Start: h.Start, Host: "coordinator", Now: time.Now}
	outcomes, _, err := e.Run(t.Context())
	must(t, err)
	d, err := p.Document(outcomes)
	must(t, err)
	return d.Digest, outcomes
}

// soloDigest returns the digest of a sweep in one process.
func soloDigest(t testing.TB, p *sweep.Plan) string {
	t.Helper()
	s, err := store.Open(t.TempDir())
	must(t, err)
	defer s.Close()
	e := &sweep.Engine{Plan: p, Results: s.Singles(), Workers: 1, Host: "one", Now: time.Now,
		Start: func(context.Context) (sweep.Worker, error) { return worker{}, nil }}
	outcomes, _, err := e.Run(t.Context())
	must(t, err)
	d, err := p.Document(outcomes)
	must(t, err)
	return d.Digest
}

// nth returns a counter and a channel that is closed at its n-th count.
func nth(n int64) (count func(), reached <-chan struct{}) {
	var seen atomic.Int64
	c := make(chan struct{})
	return func() {
		if seen.Add(1) == n {
			close(c)
		}
	}, c
}

// awaitCount waits until a machine has counted the given number of jobs, which happens shortly after the results are
// visible.
func awaitCount(t *testing.T, l *Labour, jobs int64) {
	t.Helper()
	for began := time.Now(); l.Done.Load() < jobs; time.Sleep(time.Millisecond) { // the count has no notification
		if time.Since(began) > time.Minute {
			t.Fatalf("%d of %d jobs were counted", l.Done.Load(), jobs)
		}
	}
}

// TestSameDigestOverMachines checks that machines that join and leave do not change the digest, nor does a worker that
// is lost with its jobs.
func TestSameDigestOverMachines(t *testing.T) {
	n := serve(t, t.TempDir(), server.RANDOM_PORT)
	p := plan(t, "1..60")
	want := soloDigest(t, p)
	var lost atomic.Int64
	count, enough := nth(12)
	begin, begun := nth(1)
	first, stop := labour(t, dial(t, n), "first", p.Build, 2, func(sweep.Job) error {
		count()
		switch n := lost.Add(1); {
		case n > 12: // leave some jobs for the second worker
			<-begun
		case n%7 == 0:
			return sweep.ErrGone
		}
		return nil
	})
	second, stopSecond := labour(t, dial(t, n), "second", p.Build, 2, func(sweep.Job) error {
		begin()
		<-enough
		return nil
	})
	over := make(chan struct{})
	defer close(over)
	go func() { // the first leaves midway
		select {
		case <-enough:
			stop()
		case <-over:
		}
	}()
	got, _ := carryOut(t, dial(t, n), p)
	awaitCount(t, second, 1)
	stop()
	stopSecond()
	if got != want || first.Done.Load() == 0 || second.Done.Load() == 0 {
		t.Errorf("%s, want %s; %d and %d jobs", got, want, first.Done.Load(), second.Done.Load())
	}
	// Once more, from another store: no job is done again.
	third, _ := labour(t, dial(t, n), "third", p.Build, 2, nil)
	if got, _ := carryOut(t, dial(t, n), p); got != want || third.Done.Load() > 0 {
		t.Errorf("%s, want %s; jobs were done twice", got, want)
	}
}

// TestServerIsKilled checks a sweep whose server ends midway and is replaced by another one.
func TestServerIsKilled(t *testing.T) {
	folder := t.TempDir()
	n := serve(t, folder, server.RANDOM_PORT)
	p := plan(t, "1..40")
	want := soloDigest(t, p)
	q, port := dial(t, n), n.Addr().(*net.TCPAddr).Port
	count, tenth := nth(10)
	restarted := make(chan struct{})
	labour(t, dial(t, n), "w", p.Build, 2, func(sweep.Job) error {
		count()
		select {
		case <-tenth: // a job in progress ends only after the server has restarted
			<-restarted
		default:
		}
		return nil
	})
	go func() {
		defer close(restarted)
		<-tenth
		n.Shutdown()
		n.WaitForShutdown()
		serve(t, folder, port)
	}()
	got, _ := carryOut(t, q, p)
	<-restarted
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestPoisonedJobs checks that a job that fails, or that ends every worker, fails alone, and that the next sweep tries
// it again.
func TestPoisonedJobs(t *testing.T) {
	n := serve(t, t.TempDir(), server.RANDOM_PORT)
	p := plan(t, "664..667")
	var deadly atomic.Bool
	deadly.Store(true)
	_, _ = labour(t, dial(t, n), "w", p.Build, 2, func(j sweep.Job) error {
		if string(j.Spec) == "667" && deadly.Load() {
			return sweep.ErrGone
		}
		return nil
	})
	_, outcomes := carryOut(t, dial(t, n), p)
	for i, want := range []string{"", "", "cursed", "3 workers ended while running it"} {
		if outcomes[i].Error != want {
			t.Errorf("%v: %q, want %q", outcomes[i].Parameters, outcomes[i].Error, want)
		}
	}
	deadly.Store(false)
	if _, outcomes = carryOut(t, dial(t, n), p); outcomes[3].State != found.Done || outcomes[2].Error != "cursed" {
		t.Errorf("%+v", outcomes)
	}
}

// TestStoppedWorkersAreNotCounted checks that a job does not fail although more workers than may end over it are
// stopped while they work on it.
func TestStoppedWorkersAreNotCounted(t *testing.T) {
	n := serve(t, t.TempDir(), server.RANDOM_PORT)
	p := plan(t, "3")
	begun := make(chan struct{})
	outcomes := make(chan []found.Outcome)
	go func() {
		_, o := carryOut(t, dial(t, n), p)
		outcomes <- o
	}()
	for range mostFaulty + 1 {
		ctx, cancel := context.WithCancel(t.Context())
		l := &Labour{Queue: dial(t, n), Build: p.Build, Workers: 1, Host: "stopped", Now: time.Now,
			Start: func(context.Context) (sweep.Worker, error) { return waiter(begun), nil }}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = l.Work(ctx) // ends with its context
		}()
		<-begun
		cancel()
		<-ended
	}
	labour(t, dial(t, n), "last", p.Build, 1, nil)
	if o := <-outcomes; o[0].Error != "" {
		t.Errorf("a job that %d stopped workers handed back failed: %s", mostFaulty+1, o[0].Error)
	}
}

// TestLongResults checks that a result longer than the server's limit fails its cell at once, with its length.
func TestLongResults(t *testing.T) {
	n, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(),
		NoSigs: true, NoLog: true, MaxPayload: 1 << 16})
	must(t, err)
	go n.Start()
	t.Cleanup(func() { n.Shutdown(); n.WaitForShutdown() })
	if !n.ReadyForConnections(time.Minute) {
		t.Fatal("it does not listen")
	}
	p := plan(t, "776..778")
	l, _ := labour(t, dial(t, n), "w", p.Build, 1, nil)
	_, outcomes := carryOut(t, dial(t, n), p)
	if got := outcomes[1]; got.State != found.Failed || !strings.Contains(got.Error, "bytes is more than the queue takes") {
		t.Errorf("%v: %s", got.State, got.Error)
	}
	awaitCount(t, l, 3)
	if outcomes[0].State != found.Done || outcomes[2].State != found.Done || l.Done.Load() != 3 {
		t.Errorf("%+v after %d jobs", outcomes, l.Done.Load())
	}
}

// TestDifferences checks that both of two machines that disagree are named.
func TestDifferences(t *testing.T) {
	n := serve(t, t.TempDir(), server.RANDOM_PORT)
	q := dial(t, n)
	key := strings.Repeat("ab", 32)
	for i, host := range []string{"one", "two", "three"} {
		l := &Labour{Queue: q, Host: host}
		must(t, l.storeOutcome(t.Context(), key, answer{Result: json.RawMessage(fmt.Sprint(i / 2)), By: store.Maker{Host: host}}))
	}
	said, err := q.Differences(t.Context(), func(k string) bool { return k == key })
	must(t, err)
	if len(said) != 1 || !strings.Contains(said[0], "of one (") || !strings.Contains(said[0], "of three (") {
		t.Error(said)
	}
	if said, err := q.Differences(t.Context(), func(string) bool { return false }); len(said) > 0 || err != nil {
		t.Error(said, err)
	}
}

// TestPresence checks that both sides see each other, and that workers leave jobs of another build alone.
func TestPresence(t *testing.T) {
	n := serve(t, t.TempDir(), server.RANDOM_PORT)
	q, other := dial(t, n), sweep.Build{Go: "another"}
	seen := make(chan Presence, 10)
	must(t, q.FollowPresence(t.Context(), func(p Presence) { seen <- p }))
	ctx, stop := context.WithCancel(t.Context())
	go dial(t, n).Announce(ctx, Presence{Role: Works, Host: "far", Build: other.Hash(), Named: other.String()}, time.Now)()
	if p := <-seen; p.Host != "far" || p.Role != Works || p.Build != other.Hash() {
		t.Errorf("%+v", p)
	}
	stop()
	l, _ := labour(t, dial(t, n), "far", other, 1, nil)
	p := plan(t, "1..3")
	_, _ = labour(t, dial(t, n), "near", p.Build, 1, nil)
	carryOut(t, q, p)
	if l.Done.Load() > 0 {
		t.Error("a worker of another build did a job")
	}
}

// TestPresenceAfterTheServer checks that both sides see each other again after a restart of the server.
func TestPresenceAfterTheServer(t *testing.T) {
	folder := t.TempDir()
	n := serve(t, folder, server.RANDOM_PORT)
	q, far, port := dial(t, n), dial(t, n), n.Addr().(*net.TCPAddr).Port
	seen := make(chan Presence, 10)
	must(t, q.FollowPresence(t.Context(), func(p Presence) { seen <- p }))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go far.Announce(ctx, Presence{Role: Works, Host: "far"}, time.Now)()
	<-seen
	n.Shutdown()
	n.WaitForShutdown()
	for len(seen) > 0 {
		<-seen
	}
	serve(t, folder, port)
	if p := <-seen; p.Host != "far" {
		t.Errorf("%+v", p)
	}
}

func TestUnreachableServer(t *testing.T) {
	_, err := Dial(t.Context(), Options{URL: "nats://127.0.0.1:1"})
	if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "sweep serve") {
		t.Error(err)
	}
	n, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true,
		StoreDir: filepath.Join(t.TempDir(), "s"), NoSigs: true, NoLog: true, Authorization: "open"})
	must(t, err)
	go n.Start()
	defer n.Shutdown()
	if !n.ReadyForConnections(time.Minute) {
		t.Fatal("it does not listen")
	}
	if _, err := Dial(t.Context(), Options{URL: n.ClientURL()}); !errors.Is(err, ErrUnreachable) ||
		!strings.Contains(err.Error(), "--token-file") {
		t.Error(err)
	}
	if _, err := Dial(t.Context(), Options{URL: n.ClientURL(), Token: "sesame"}); !errors.Is(err, ErrUnreachable) ||
		!strings.Contains(err.Error(), "it rejects the token") {
		t.Error(err)
	}
	q, err := Dial(t.Context(), Options{URL: n.ClientURL(), Token: "open"})
	must(t, err)
	q.Close()
}

// certificate returns a self-signed certificate for this host that is valid until an instant.
func certificate(t *testing.T, until time.Time) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "lab"},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: until,
		IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	parsed, err := x509.ParseCertificate(der)
	must(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: parsed}, roots
}

// TestCertificates checks that a server is trusted while its certificate is valid, and the errors for an expired one,
// an unknown authority, and a server that does not trust the client.
func TestCertificates(t *testing.T) {
	ours, oursRoots := certificate(t, time.Now().Add(time.Hour))
	strange, _ := certificate(t, time.Now().Add(time.Hour))
	for _, c := range []struct {
		name  string
		until time.Duration
		plain bool             // the client knows no authority
		asks  bool             // the server requires a client certificate
		shows *tls.Certificate // nil for none
		says  string
	}{
		{"in force", time.Hour, false, false, nil, ""},
		{"expired", -time.Hour, false, false, nil, "its certificate has expired: renew it, or set the clock"},
		{"unknown", time.Hour, true, false, nil, "not trusted here: add --tls-ca"},
		{"both sides", time.Hour, false, true, &ours, ""},
		{"without ours", time.Hour, false, true, nil, "it wants a certificate of ours: add --tls-cert and --tls-key"},
		{"a stranger's", time.Hour, false, true, &strange, "it does not trust our certificate"},
	} {
		pair, roots := certificate(t, time.Now().Add(c.until))
		options := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true,
			NoLog:     true,
			TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13}, TLSTimeout: 10}
		if c.asks {
			options.TLSConfig.ClientCAs, options.TLSConfig.ClientAuth, options.TLSVerify = oursRoots, tls.RequireAndVerifyClientCert,
				true
		}
		n, err := server.NewServer(options)
		must(t, err)
		go n.Start()
		if !n.ReadyForConnections(time.Minute) {
			t.Fatal("it does not listen")
		}
		o := Options{URL: n.ClientURL(), TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}}
		if c.shows != nil {
			o.TLS.Certificates = []tls.Certificate{*c.shows}
		}
		if c.plain {
			o.TLS = nil
		}
		q, err := Dial(t.Context(), o)
		if c.says == "" {
			must(t, err)
			q.Close()
		} else if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
		n.Shutdown()
		n.WaitForShutdown()
	}
}

// BenchmarkEmptyJobs measures the cost of a job that does nothing: publish, claim, store, acknowledge, notify.
func BenchmarkEmptyJobs(b *testing.B) {
	n := serve(b, b.TempDir(), server.RANDOM_PORT)
	p := plan(b, fmt.Sprintf("1..%d", b.N))
	labour(b, dial(b, n), "w", p.Build, 4, nil)
	q := dial(b, n)
	b.ResetTimer()
	carryOut(b, q, p)
}

// TestTornOutcomeIsRepeated checks that a job is done again if its outcome is replaced by foreign text.
func TestTornOutcomeIsRepeated(t *testing.T) {
	q := dial(t, serve(t, t.TempDir(), -1))
	key := strings.Repeat("0a", keyLength/2)
	for _, torn := range []string{`{"result":1,"by"`, `{}`, `{"result":1,"error":"x"}`} {
		_, err := q.results.Put(t.Context(), key, []byte(torn))
		must(t, err)
		a, there, err := q.findAnswer(t.Context(), key)
		must(t, err)
		if _, failed := a.outcome(); !there || failed == nil || !strings.Contains(failed.Error(), ErrKept.Error()) {
			t.Errorf("%q is %v, there: %t", torn, failed, there)
		}
	}
	h, err := NewHandout(t.Context(), q, sweep.Build{})
	must(t, err)
	w, err := h.Start(t.Context())
	must(t, err)
	l := &Labour{Queue: q, Now: time.Now}
	go func() {
		msgs, err := q.jobs.CreateOrUpdateConsumer(t.Context(), jetstream.ConsumerConfig{AckPolicy: jetstream.AckExplicitPolicy})
		if err != nil {
			return
		}
		if _, err := msgs.Next(jetstream.FetchMaxWait(time.Minute)); err == nil {
			_ = l.storeOutcome(t.Context(), key, answer{Result: json.RawMessage("7")})
		}
	}()
	if result, err := w.Do(t.Context(), sweep.Job{Key: key}); err != nil || string(result) != "7" {
		t.Errorf("%s, %v", result, err)
	}
}
