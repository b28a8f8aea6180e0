package attach

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/xagg"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// open listens on a new socket for a test.
func open(t *testing.T) (*Port, string) {
	t.Helper()
	address := "unix:" + filepath.Join(t.TempDir(), "w.sock")
	p, err := Listen(address, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close(nil) })
	return p, address
}

// dial attaches to an address for a test.
func dial(t *testing.T, address string) *Client {
	t.Helper()
	c, err := Dial(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// summing is a job of workers that wait, with a network that adds in this process.
type summing struct {
	addresses []string
	ports     []*Port
	workers   []*Rounds
	ends      []error
	ended     <-chan struct{} // closed when a client or the test ends normally
}

// newSumming starts a worker for each configuration.
func newSumming(t *testing.T, configs ...Config) *summing {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	j := &summing{ends: make([]error, len(configs)), ended: ctx.Done()}
	var done sync.WaitGroup
	t.Cleanup(func() { cancel(); done.Wait() })
	for i, c := range configs {
		port, address := open(t)
		c.Worker, c.Workers, c.Waits = i, len(configs), true
		w, err := NewRounds(c, func(err error) { j.ends[i] = err; cancel() })
		if err != nil {
			t.Fatal(err)
		}
		go port.Serve(w)
		j.addresses, j.ports, j.workers = append(j.addresses, address), append(j.ports, port), append(j.workers, w)
	}
	done.Go(func() { j.play(ctx) })
	return j
}

// play adds the lanes of all workers, round by round, up to the length of the shortest vector.
func (j *summing) play(ctx context.Context) {
	for round := uint32(0); ctx.Err() == nil; round++ {
		var sum []uint32
		for i, w := range j.workers {
			c := w.Compute(ctx, round)
			if ctx.Err() != nil {
				return
			}
			if i == 0 {
				sum = append(sum, c.Values...)
				continue
			}
			sum = sum[:min(len(sum), len(c.Values))]
			for k := range sum {
				sum[k] = uint32(int32(max(-math.MaxInt32, min(math.MaxInt32, int64(int32(sum[k]))+int64(int32(c.Values[k]))))))
			}
		}
		for i, w := range j.workers {
			if err := w.CheckFrame(&program.Packet{Kind: program.Result}, sum); err != nil {
				_ = j.ports[i].Close(err)
				continue
			}
			w.Apply(&endpoint.Aggregate{Number: round, Vectors: uint32(len(j.workers)), Values: append([]uint32(nil), sum...)})
		}
	}
}

var usual = Config{System: "xagg", Largest: 1000, Lanes: 256, Scale: DefaultScale}

// sums lets every client send its vector in one round and returns each client's answer.
func sums(t *testing.T, clients []*Client, vectors [][]float32) (heads []Sum, all [][]float32, errs []error) {
	t.Helper()
	heads, all, errs = make([]Sum, len(clients)), make([][]float32, len(clients)), make([]error, len(clients))
	var wait sync.WaitGroup
	for i, c := range clients {
		wait.Go(func() { heads[i], all[i], errs[i] = c.Sum(vectors[i], float32(i+1)/4) })
	}
	wait.Wait()
	return heads, all, errs
}

// TestSumsOfEveryLength sends vectors of a different length each round and checks that every client gets the exact sum,
// with that length.
func TestSumsOfEveryLength(t *testing.T) {
	j := newSumming(t, usual, usual)
	clients := []*Client{dial(t, j.addresses[0]), dial(t, j.addresses[1])}
	if g := clients[1].Greeting; g.Worker != 1 || g.Workers != 2 || g.Largest != 1000 || g.Flags != FlagWaits ||
		g.Scale != DefaultScale || clients[1].Name() != "xagg" {
		t.Errorf("the greeting is %+v", g)
	}
	for round, n := range []int{1000, 1, 0, 253, 254, 7} {
		a, b, want := make([]float32, n), make([]float32, n), make([]float32, n)
		for i := range a {
			a[i], b[i] = float32(i)/64, -float32(round)/32
			want[i] = a[i] + b[i]
		}
		heads, got, errs := sums(t, clients, [][]float32{a, b})
		for i := range clients {
			if errs[i] != nil || heads[i].Round != uint32(round) || heads[i].Workers != 2 || heads[i].Reward != 0.75 || len(got[i]) != n || n > 0 &&
				!reflect.DeepEqual(got[i], want) {
				t.Errorf("round %d of %d values: client %d gets %+v %v, %v", round, n, i, heads[i], got[i], errs[i])
			}
		}
	}
}

// TestChangedNumbersAreCounted checks that the answer counts values that were clipped, vanished or saturated because
// they do not fit a lane.
func TestChangedNumbersAreCounted(t *testing.T) {
	j := newSumming(t, usual, usual)
	clients := []*Client{dial(t, j.addresses[0]), dial(t, j.addresses[1])}
	heads, got, _ := sums(t, clients, [][]float32{{30, 15, 1e-9, 0, 1}, {0, 15, 0, 0, 1}})
	want := []float32{21.474836, 21.474836, 0, 0, 2}
	if !reflect.DeepEqual(got[0], want) || heads[0].Numbers != (Numbers{1, 1, 2}) ||
		heads[1].Numbers != (Numbers{0, 0, 2}) {
		t.Errorf("got %v, %+v and %+v; want %v with 1 clipped and 1 vanished at worker 0, 2 saturated at both", got[0],
			heads[0].Numbers, heads[1].Numbers, want)
	}
}

// TestBadVectorsAreRefused checks that for a vector that cannot be sent, the error names the index or the limit, and
// the client may send another.
func TestBadVectorsAreRefused(t *testing.T) {
	j := newSumming(t, usual)
	c := dial(t, j.addresses[0])
	for text, v := range map[string][]float32{
		"value 2 is NaN": {1, 2, float32(math.NaN())}, "value 0 is -Inf": {float32(math.Inf(-1))}, "the vector has 1001 " +
			"values, and the largest is 1000": make([]float32, 1001),
	} {
		if _, _, err := c.Sum(v, 0); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want an error with %q", err, text)
		}
	}
	if _, got, err := c.Sum([]float32{1.5}, 0); err != nil || got[0] != 1.5 {
		t.Errorf("after refused vectors a good one gets %v, %v", got, err)
	}
}

// TestDisagreementEndsTheJob checks that if workers differ in scale or length, all of them get an error and none gets a
// wrong sum.
func TestDisagreementEndsTheJob(t *testing.T) {
	other := usual
	other.Scale = 1e6
	for text, c := range map[string]struct {
		second Config
		length int
	}{"a worker has another scale": {other, 3}, "all must be of one length": {usual, 300}} {
		j := newSumming(t, usual, c.second)
		_, _, errs := sums(t, []*Client{dial(t, j.addresses[0]), dial(t, j.addresses[1])}, [][]float32{make([]float32, 3),
			make([]float32, c.length)})
		for i, err := range errs {
			if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), text) {
				t.Errorf("client %d gets %v, want an error with %q", i, err, text)
			}
		}
	}
}

// TestOneClientAtATime checks that a second client is refused and may attach once the first has left. It is then given
// the current round.
func TestOneClientAtATime(t *testing.T) {
	j := newSumming(t, usual)
	first := dial(t, j.addresses[0])
	if _, _, err := first.Sum([]float32{1}, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := Dial(j.addresses[0]); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(),
		"another client is attached") {
		t.Errorf("a second client gets %v", err)
	}
	_ = first.conn.Close() // it crashes
	var second *Client
	for second == nil { // until the port has noticed
		second, _ = Dial(j.addresses[0])
	}
	defer second.Close()
	if second.Round != 1 {
		t.Errorf("the next client's first vector is of round %d, want 1", second.Round)
	}
	if _, got, err := second.Sum([]float32{2}, 0); err != nil || got[0] != 2 {
		t.Errorf("the next client gets %v, %v", got, err)
	}
}

// TestClientsGetTheReasonForAnEnd checks that a client that ends in order ends its worker, and that a port that closes
// gives clients the reason.
func TestClientsGetTheReasonForAnEnd(t *testing.T) {
	j := newSumming(t, usual, usual)
	a, b := dial(t, j.addresses[0]), dial(t, j.addresses[1])
	waits := make(chan error, 1)
	go func() { _, _, err := a.Sum([]float32{1}, 0); waits <- err }()
	_ = j.ports[0].Close(errors.New("the cable is gone"))
	if err := <-waits; err == nil || !strings.Contains(err.Error(), "the cable is gone") {
		t.Errorf("a client that waits gets %v, want the reason", err)
	}
	_ = b.Close()
	<-j.ended
	_ = j.ports[1].Close(nil)
	if !errors.Is(j.ends[1], ErrBye) {
		t.Errorf("the worker of a client that ended in order ends with %v", j.ends[1])
	}
}

// TestSocketIsPrivate checks the socket's permissions, that a socket in use is refused, and that a dead one is
// replaced.
func TestSocketIsPrivate(t *testing.T) {
	p, address := open(t)
	info, err := os.Stat(strings.TrimPrefix(address, "unix:"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket's mode is %v, %v; want 0600", info.Mode(), err)
	}
	if _, err := Listen(address, t.Logf); !errors.Is(err, ErrSocket) || !strings.Contains(err.Error(),
		"another worker or server uses it") {
		t.Errorf("a socket in use: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"unix:" + file, "unix:", "tcp:1", "unix:/nowhere/at/all.sock"} {
		if _, err := Listen(bad, t.Logf); !errors.Is(err, ErrSocket) {
			t.Errorf("listening at %s: %v", bad, err)
		}
	}
	_ = p.listener.Close() // as if the program were killed
	next, err := Listen(address, t.Logf)
	if err != nil {
		t.Fatalf("a dead program's socket is not replaced: %v", err)
	}
	_ = next.Close(nil)
}

// TestStrangersAreRefused checks that bytes other than a hello, and a hello of another version, are refused.
func TestStrangersAreRefused(t *testing.T) {
	j := newSumming(t, usual)
	for text, bytes := range map[string][]byte{
		"no message begins with": []byte("GET / HTTP/1.1\r\n"), "does not begin with a hello": Append(nil, KindTake, nil,
			nil),
		"speaks version 9 of the protocol": Append(nil, KindHello, Hello{Magic: magic, Version: 9}, nil),
	} {
		var c net.Conn
		m := Message{}
		for { // the port may still be busy with the previous client
			var err error
			if c, err = net.Dial("unix", strings.TrimPrefix(j.addresses[0], "unix:")); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Write(bytes); err != nil {
				t.Fatal(err)
			}
			var buffer []byte
			if m, err = Read(c, &buffer); err != nil {
				t.Fatal(err)
			}
			_ = c.Close()
			if !strings.Contains(string(m.Body), "another client") {
				break
			}
		}
		if m.Kind != KindError || !strings.Contains(string(m.Body), text) {
			t.Errorf("the answer is kind %d, %q; want an error with %q", m.Kind, m.Body, text)
		}
	}
}

// TestPushAndPull checks a worker that does not wait and the server behind it: updates carry the version of the model
// on which they were computed, and models come back frame by frame.
func TestPushAndPull(t *testing.T) {
	config := Config{System: "olaf", Workers: 1, Largest: 6, Lanes: 5, Scale: 1 << 16}
	ctx, cancel := context.WithCancelCause(t.Context())
	port, address := open(t)
	sends := true
	w, err := NewPushes(config, gate(func() bool { return sends }), cancel)
	if err != nil {
		t.Fatal(err)
	}
	go port.Serve(w)
	serverPort, serverAddress := open(t)
	u, err := NewUpdates(config, cancel, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	go serverPort.Serve(u)
	c, s := dial(t, address), dial(t, serverAddress)
	if c.Flags != FlagModelDue || c.Frame != 3 || s.Role != RoleServer {
		t.Errorf("the greetings are %+v and %+v", c.Greeting, s.Greeting)
	}
	if m, values, err := c.Pull(0, false); err != nil || m.Version != 0 || len(values) != 0 {
		t.Errorf("before any answer the model is %+v %v, %v", m, values, err)
	}
	push := func(values []float32, want uint32) []uint32 {
		t.Helper()
		pushed := make(chan error, 1)
		go func() {
			p, err := c.Push(values, 2.5)
			if err == nil && p.Withheld != want {
				err = fmt.Errorf("withheld is %d, want %d", p.Withheld, want)
			}
			pushed <- err
		}()
		lanes := w.Compute(ctx, 0)
		w.Sends(0)
		if err := <-pushed; err != nil || lanes.Reward != 640 {
			t.Errorf("push: %v, reward %d/256", err, lanes.Reward)
		}
		return lanes.Values
	}
	lanes := push([]float32{1, 2, 3, 4, 5, 6}, 0)
	if len(lanes) != 10 {
		t.Fatalf("six values in two frames take lanes %v", lanes)
	}
	for frame := range 2 {
		a := &endpoint.Aggregate{Vectors: 1, First: frame * 5, Reward: 640, Values: append([]uint32(nil),
			lanes[5*frame:][:5]...)}
		done := make(chan struct{})
		u.ApplyLater(a, func() { close(done) })
		got, values, err := s.Take()
		if err != nil || got.First != uint32(3*frame) || got.Reward != 2.5 || got.Count != 1 || got.VersionSum != 0 ||
			values[0] != float32(1+3*frame) {
			t.Errorf("frame %d arrives as %+v %v, %v", frame, got, values, err)
		}
		if err := s.Reply(got.Number, []float32{-1, -2, -float32(frame)}); err != nil {
			t.Fatal(err)
		}
		<-done
		w.Apply(a)
	}
	m, values, err := c.Pull(0, false)
	if err != nil || m.Version != 1 || m.Oldest != 1 || !reflect.DeepEqual(values, []float32{-1, -2, 0, -1, -2, -1}) {
		t.Errorf("the model is %+v %v, %v", m, values, err)
	}
	w.Apply(&endpoint.Aggregate{First: 5, Values: []uint32{uint32(config.code()), 3, 1 << 16}})
	if m, values, err := c.Pull(2, true); err != nil || m.Version != 3 || len(values) != 4 {
		t.Errorf("after a shorter last frame the model is %+v %v, %v; want 4 values", m, values, err)
	}
	sends = false
	if lanes := push([]float32{1, 2, 3, 4}, 1); len(lanes) != 8 || lanes[1] != 1 || lanes[6] != 3 {
		t.Errorf("the next update has lanes %v, want the versions 1 and 3 of the model's frames before their values", lanes)
	}
	strange := &endpoint.Aggregate{Vectors: 1, Values: []uint32{1, 0, 1}}
	u.ApplyLater(strange, func() {})
	if w.Apply(strange); int32(strange.Values[0]) != config.code() || ctx.Err() != nil {
		t.Errorf("a frame of another scale is answered with %v", strange.Values)
	}
	w.Apply(&endpoint.Aggregate{Vectors: 1, Values: []uint32{1, 0, 1}})
	if err := context.Cause(ctx); !errors.Is(err, ErrDisagree) {
		t.Errorf("an answer of another scale ends the worker with %v", err)
	}
}

// gate is a function that decides whether an update is sent.
type gate func() bool

func (gate) RecordStatus(olaf.Time, olaf.QueueStatus) {}
func (g gate) Sends(olaf.Time) bool                   { return g() }

// FuzzRead reads messages from any bytes and checks that failures are returned as errors and that a message that was
// read is written in the same form.
func FuzzRead(f *testing.F) {
	f.Add(Append(nil, KindHello, Hello{Magic: magic, Version: Version}, nil))
	f.Add(Append(nil, KindVector, Vector{Reward: 1}, AppendFloats(nil, []float32{1, 2})))
	f.Add(Append(nil, KindError, Failure{CodeBusy}, []byte("busy")))
	f.Fuzz(func(t *testing.T, b []byte) {
		var buffer []byte
		m, err := Read(bytes.NewReader(b), &buffer)
		if err != nil {
			return
		}
		if got := Append(nil, m.Kind, nil, m.Body); !bytes.Equal(got, b[:len(got)]) {
			t.Errorf("% x is read as kind %d and written as % x", b, m.Kind, got)
		}
		_ = usual.checkValues(m.Body, MaxValues)
	})
}

// TestWaitNamesWhoIsMissing checks the text for a waiting client, depending on what is known about the other workers.
func TestWaitNamesWhoIsMissing(t *testing.T) {
	tree := usual
	tree.Children = true
	for name, c := range map[string]struct {
		config Config
		awaits []program.Packet
		want   string
	}{
		"nothing is known": {usual, nil, "a vector of another worker is missing, or the network is slow"},
		"the aggregator answered": {usual, []program.Packet{{Kind: program.Control, Action: xagg.Awaits, Bitmap: 4}},
			"the vector of worker 2 is missing"},
		"in a tree": {tree, []program.Packet{{Kind: program.Control, Action: xagg.Awaits, Bitmap: 3}},
			"the vector of children 0 1 is missing at the aggregator"},
		"the answer is old": {usual, []program.Packet{{Kind: program.Control, Action: xagg.Awaits, Bitmap: 4},
			{Kind: program.Result, Seg: 1}}, "a vector of another worker is missing, or the network is slow"},
	} {
		c.config.Workers = 3
		r, err := NewRounds(c.config, func(error) {})
		if err != nil {
			t.Fatal(err)
		}
		for i := range c.awaits {
			if err := r.CheckFrame(&c.awaits[i], nil); err != nil {
				t.Error(err)
			}
		}
		if got := r.describeWait(0); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestPortClosesWithUpdatesUnderway checks that a server's socket closes although its client has not answered an update
// and the endpoint, which has ended, has handed over another one.
func TestPortClosesWithUpdatesUnderway(t *testing.T) {
	port, address := open(t)
	u, err := NewUpdates(usual, func(error) {}, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	go port.Serve(u)
	frame := func() *endpoint.Aggregate {
		return &endpoint.Aggregate{Vectors: 1, Values: []uint32{uint32(u.config.code()), 0, 1}}
	}
	c := dial(t, address)
	u.ApplyLater(frame(), func() {})
	if _, _, err := c.Take(); err != nil {
		t.Fatal(err)
	}
	u.ApplyLater(frame(), func() {})
	if err := port.Close(nil); err != nil {
		t.Error(err)
	}
}
