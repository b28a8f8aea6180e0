package attach

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// wholeConfig is the configuration of hosts whose updates and models travel as whole vectors of float32.
func wholeConfig() Config {
	return Config{System: "ps", Workers: 1, Largest: 100, Lanes: 100 + Overhead, Floats: true}
}

// wholePair starts a worker that sends updates as float32, and the server that answers them, without a network. It
// returns clients of both, and the error that ended the worker.
func wholePair(t *testing.T) (w *Pushes, u *Updates, worker, server *Client, ended func() error) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	w, err := NewPushes(wholeConfig(), nil, cancel)
	if err != nil {
		t.Fatal(err)
	}
	if u, err = NewUpdates(wholeConfig(), cancel, t.Logf); err != nil {
		t.Fatal(err)
	}
	port, address := open(t)
	go port.Serve(w)
	worker = dial(t, address)
	port, address = open(t)
	go port.Serve(u)
	return w, u, worker, dial(t, address), func() error { return context.Cause(ctx) }
}

// TestUpdatesTravelAsFloats checks that an update reaches the server's program as it was sent, with its reward, its time
// and its staleness, and that the worker's program gets the answer as its model, which may have another length.
func TestUpdatesTravelAsFloats(t *testing.T) {
	w, u, worker, server, ended := wholePair(t)
	go func() {
		for i := range uint32(2) {
			c := w.Compute(t.Context(), i)
			a := &endpoint.Aggregate{Worker: 3, Waiting: 1, Values: c.Values}
			done := make(chan struct{})
			u.ApplyLater(a, func() { close(done) })
			<-done
			w.Apply(a)
		}
	}()
	sent := []float32{float32(math.Inf(1)), 1e-30, 3e38}
	answered := make(chan error, 1)
	for i := range uint32(2) {
		go func() {
			_, err := worker.Push(sent, -0.1)
			answered <- err
		}()
		got, values, err := server.Take()
		if err != nil {
			t.Fatal(err)
		}
		if len(values) != 3 || values[0] != sent[0] || values[1] != sent[1] || values[2] != sent[2] || got.GenNS == 0 {
			t.Errorf("update %d arrives as %v from the time %d, want %v and its time", i, values, got.GenNS, sent)
		}
		got.GenNS = 0
		want := Update{Number: i, Count: 1, Worker: 3, Vector: i, VersionSum: uint64(i), Version: i, Waiting: 1, Reward: -0.1}
		if got != want {
			t.Errorf("update %d is %+v, want %+v", i, got, want)
		}
		if err := server.Reply(got.Number, []float32{float32(i), 7}); err != nil {
			t.Fatal(err)
		}
		if err := <-answered; err != nil {
			t.Fatal(err)
		}
		m, model, err := worker.Pull(0, false)
		if err != nil || m.Version != i+1 || len(model) != 2 || model[0] != float32(i) {
			t.Errorf("the model is %+v %v, %v; want version %d, as answered", m, model, err, i+1)
		}
	}
	if _, _, err := worker.Pull(2, true); err == nil || !strings.Contains(err.Error(), "ps has none for it before its next update") {
		t.Errorf("a pull that would wait ends with %v, want the reason", err)
	}
	if err := ended(); err != nil {
		t.Errorf("the worker or server ended with %v", err)
	}
}

// TestWorkersEndIfTheirServerDiffers checks that a vector for a sum is not passed to the server's program, and that a
// worker ends if its server answers in another mode or has longer vectors.
func TestWorkersEndIfTheirServerDiffers(t *testing.T) {
	w, u, _, _, ended := wholePair(t)
	a := &endpoint.Aggregate{Values: []uint32{math.Float32bits(1), 2, 3, 4, 5, 6, 7}}
	refused := false
	if u.ApplyLater(a, func() { refused = true }); !refused {
		t.Errorf("a vector that begins with 1.0 waits for the server's program, want it refused")
	}
	w.Apply(&endpoint.Aggregate{Values: []uint32{math.Float32bits(2), 0, 0}})
	if err := ended(); err == nil || !strings.Contains(err.Error(), "start it with the same --mode") {
		t.Errorf("the worker ends with %v, want that the server has another mode", err)
	}

	w, _, _, _, ended = wholePair(t)
	long := make([]uint32, modelHead+w.config.Largest+1)
	long[0] = vectorMark
	w.Apply(&endpoint.Aggregate{Values: long})
	if err := ended(); err == nil || !strings.Contains(err.Error(), "start both with the same --values") {
		t.Errorf("a worker that gets a model longer than its longest vector ends with %v, want that the server has other --values", err)
	}

	config := wholeConfig()
	config.Waits, config.Conversion = true, &endpoint.Conversion{}
	var why error
	waits, err := NewRounds(config, func(err error) { why = err })
	if err != nil {
		t.Fatal(err)
	}
	if waits.Apply(a); why == nil || !strings.Contains(why.Error(), "start the server with the same --mode") {
		t.Errorf("a worker that waits ends with %v, want that the server has another mode", why)
	}
}

// TestLeftHostsEndWorkersThatNeedThem checks when a worker ends because another host ended after two sums: not for the
// sums that this host had as well, but while its client waits for the next sum, or when the client sends its vector.
func TestLeftHostsEndWorkersThatNeedThem(t *testing.T) {
	c := wholeConfig()
	c.Workers, c.Waits, c.Conversion = 3, true, &endpoint.Conversion{}
	for host, name := range map[olaf.WorkerID]string{1: "worker 1", 3: "the server", 4: "the switch"} {
		var why error
		r, err := NewRounds(c, func(err error) { why = err })
		if err != nil {
			t.Fatal(err)
		}
		hand := func(round uint32) {
			r.vectors <- handed{round: round, answer: make(chan []byte, 1)}
			r.Compute(t.Context(), round)
		}
		want := name + " ended, and without it there are no more sums"
		hand(1)
		if err := r.HandleLeave(host, 2); err != nil || why != nil {
			t.Errorf("%s: a worker that waits for sum 1 ends with %v, %v; want that it goes on", name, err, why)
		}
		hand(2)
		if !errors.Is(why, ErrEarlyEnd) || !strings.Contains(why.Error(), want) {
			t.Errorf("a worker that sends vector 2 ends with %v, want %q", why, want)
		}
		if err := r.HandleLeave(host, 2); !errors.Is(err, ErrEarlyEnd) || !strings.Contains(err.Error(), want) {
			t.Errorf("a worker that waits for sum 2 ends with %v, want %q", err, want)
		}
	}
	w, _, _, _, _ := wholePair(t)
	if err := w.HandleLeave(0, 0); err != nil {
		t.Errorf("a worker that waits for no sums ends with %v, want that it goes on without the other workers", err)
	}
	if err := w.config.HandleLeave(2, 0); !errors.Is(err, ErrEarlyEnd) || w.config.HandleLeave(0, 0) != nil {
		t.Errorf("a server ends with %v, want that it ends without the switch, and goes on without a worker", err)
	}
	if err := w.HandleLeave(1, 0); !errors.Is(err, ErrEarlyEnd) {
		t.Errorf("a worker that waits for no sums ends with %v, want that it ends without its server", err)
	}
}
