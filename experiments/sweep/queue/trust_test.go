package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/olafctl/olaf/experiments/sweep"
	"github.com/olafctl/olaf/results/store"
	found "github.com/olafctl/olaf/results/sweep"
)

// liar returns invented results.
type liar struct{ worker }

func (liar) Do(_ context.Context, j sweep.Job) (json.RawMessage, error) {
	return json.Marshal(&found.Lot{Metrics: []string{"m"}, Runs: []found.Run{{Values: nil, Invalid: "made up"}}})
}

// fullStore is a store without room for results, as long as full is set.
type fullStore struct {
	sweep.Results
	full bool
}

func (f *fullStore) Put(one store.Single) error {
	if f.full {
		return errors.New("no space left")
	}
	return f.Results.Put(one)
}

// runQueued runs a plan through a queue and returns the engine for its checks.
func runQueued(t *testing.T, q *Queue, p *sweep.Plan) (*sweep.Engine, error) {
	t.Helper()
	s, err := store.Open(t.TempDir())
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	h, err := NewHandout(t.Context(), q, p.Build)
	must(t, err)
	e := &sweep.Engine{Plan: p, Results: s.Singles(), Workers: 32, Start: h.Start, Host: "coordinator", Now: time.Now}
	_, _, err = e.Run(t.Context())
	return e, err
}

// TestInventedResultsFailTheCheck checks that at least one result of every worker is repeated, and that an invented one
// is named with both makers, while honest and unknown ones are not accused.
func TestInventedResultsFailTheCheck(t *testing.T) {
	p := plan(t, "1..12")
	for _, c := range []struct {
		name             string
		invents          bool
		build            sweep.Build
		share            float64
		repeated, differ int
		notChecked       string
	}{
		{"honest", false, p.Build, 0.01, 1, 0, ""},
		{"honest, all of them", false, p.Build, 1, 12, 0, ""},
		{"invents", true, p.Build, 0.01, 1, 1, ""},
		{"turned off", true, p.Build, 0, 0, 0, "turned off"},
	} {
		q := dial(t, serve(t, t.TempDir(), server.RANDOM_PORT))
		l := &Labour{Queue: q, Build: c.build, Workers: 1, Host: "lab", ID: "w1", Now: time.Now,
			Start: func(context.Context) (sweep.Worker, error) {
				if c.invents {
					return liar{}, nil
				}
				return worker{}, nil
			}}
		ctx, stop := context.WithCancel(t.Context())
		go func() { _ = l.Work(ctx) }() // ends with its context
		e, err := runQueued(t, q, p)
		must(t, err)
		machines, said, err := e.Check(t.Context(), sweep.SpotCheck{Share: c.share, Do: numbers().Do})
		stop()
		must(t, err)
		if len(machines) != 1 || machines[0].Host != "lab" || machines[0].Worker != "w1" || machines[0].Results != 12 {
			t.Fatalf("%s: %+v, want 12 results of worker w1 on lab", c.name, machines)
		}
		if m := machines[0]; m.Repeated != c.repeated || m.Differ != c.differ || m.NotChecked != c.notChecked || len(said) != c.differ {
			t.Errorf("%s: %+v and %q, want %d repeated, %d different and %q", c.name, m, said, c.repeated, c.differ, c.notChecked)
		}
		for _, line := range said {
			if !strings.Contains(line, "lab (worker w1)") || !strings.Contains(line, "coordinator") {
				t.Errorf("%s: %q does not name both makers", c.name, line)
			}
		}
	}
}

// TestInventedResultsInAFullStore checks that an invented result is reported although no result could be stored, whether
// or not there is room when it is repeated.
func TestInventedResultsInAFullStore(t *testing.T) {
	for _, room := range []bool{true, false} {
		q, p := dial(t, serve(t, t.TempDir(), server.RANDOM_PORT)), plan(t, "1..3")
		l := &Labour{Queue: q, Build: p.Build, Workers: 1, Host: "lab", ID: "w1", Now: time.Now,
			Start: func(context.Context) (sweep.Worker, error) { return liar{}, nil }}
		ctx, stop := context.WithCancel(t.Context())
		go func() { _ = l.Work(ctx) }() // ends with its context
		s, err := store.Open(t.TempDir())
		must(t, err)
		t.Cleanup(func() { _ = s.Close() })
		h, err := NewHandout(t.Context(), q, p.Build)
		must(t, err)
		results := &fullStore{s.Singles(), true}
		e := &sweep.Engine{Plan: p, Results: results, Workers: 3, Start: h.Start, Host: "coordinator", Now: time.Now}
		_, _, err = e.Run(t.Context())
		must(t, err)
		results.full = !room
		_, said, err := e.Check(t.Context(), sweep.SpotCheck{Share: 1, Do: numbers().Do})
		stop()
		must(t, err)
		if len(said) != 3 || !strings.Contains(said[0], "lab (worker w1)") || !strings.Contains(said[0], "coordinator") {
			t.Errorf("room for repeated results: %t; the check reports %q, want three invented results with both makers", room, said)
		}
	}
}

// TestOverwrittenResults checks that a result that replaced another is named with both makers.
func TestOverwrittenResults(t *testing.T) {
	q := dial(t, serve(t, t.TempDir(), server.RANDOM_PORT))
	key := strings.Repeat("cd", 32)
	first := &Labour{Queue: q, Host: "honest", ID: "w1"}
	must(t, first.storeOutcome(t.Context(), key, answer{Result: json.RawMessage("1"), By: store.Maker{Host: "honest", Worker: "w1"}}))
	forged, err := json.Marshal(answer{Result: json.RawMessage("2"), By: store.Maker{Host: "stranger", Worker: "w2"}})
	must(t, err)
	_, err = q.results.Put(t.Context(), key, forged)
	must(t, err)
	said, err := q.Differences(t.Context(), func(k string) bool { return k == key })
	must(t, err)
	if len(said) != 1 || !strings.Contains(said[0], "honest (worker w1") || !strings.Contains(said[0], "stranger (worker w2") {
		t.Errorf("an overwritten result: %q, want one line that names both makers", said)
	}
}

// TestNoRoomEndsTheSweep checks that a queue without room ends the sweep with the server's error, and that no cell
// counts as failed.
func TestNoRoomEndsTheSweep(t *testing.T) {
	n, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(),
		NoSigs: true, NoLog: true,
		JetStreamMaxStore: 8192, JetStreamMaxMemory: 8192})
	must(t, err)
	go n.Start()
	t.Cleanup(func() { n.Shutdown(); n.WaitForShutdown() })
	if !n.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not listen")
	}
	e, err := runQueued(t, dial(t, n), plan(t, "1..400"))
	if !errors.Is(err, sweep.ErrTransport) {
		t.Fatalf("%v, want an error of the work queue", err)
	}
	if !strings.Contains(err.Error(), "resource") || !strings.Contains(err.Error(), moreRoom) {
		t.Errorf("%q has neither the server's words nor a remedy", err)
	}
	if p := e.Progress(); p.Failed > 0 {
		t.Errorf("%d cells count as failed, none was computed", p.Failed)
	}
}

// TestDeletedStreamEndsTheSweep checks that a sweep ends when the stream of its jobs is deleted.
func TestDeletedStreamEndsTheSweep(t *testing.T) {
	q := dial(t, serve(t, t.TempDir(), server.RANDOM_PORT))
	p := plan(t, "1..3")
	go func() {
		for { // wait until the jobs are in the stream
			info, err := q.jobs.Info(t.Context())
			if err != nil || info.State.Msgs == 3 {
				break
			}
		}
		_ = q.js.DeleteStream(t.Context(), jobsStream) // otherwise the sweep would never end
	}()
	e, err := runQueued(t, q, p)
	if !errors.Is(err, sweep.ErrTransport) || !strings.Contains(fmt.Sprint(err), "stream") {
		t.Errorf("%v, want that the stream is gone", err)
	}
	if p := e.Progress(); p.Failed > 0 {
		t.Errorf("%d cells count as failed, none was computed", p.Failed)
	}
}

// TestServerWithoutJetStream checks the error for a plain NATS server.
func TestServerWithoutJetStream(t *testing.T) {
	n, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true})
	must(t, err)
	go n.Start()
	t.Cleanup(func() { n.Shutdown(); n.WaitForShutdown() })
	if !n.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not listen")
	}
	if _, err := Dial(t.Context(), Options{URL: n.ClientURL()}); !errors.Is(err, ErrUnreachable) ||
		!strings.Contains(err.Error(), "no JetStream") {
		t.Errorf("%v, want that the server has no JetStream", err)
	}
}
