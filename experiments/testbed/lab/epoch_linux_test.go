package lab

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/olafctl/olaf/pktgen/endpoint"
)

// held holds a testbed until the test ends.
func held(t *testing.T, p *Plan) *Holder {
	t.Helper()
	able(t)
	h, err := NewHolder(p, Options{})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- h.Hold(t.Context()) }()
	t.Cleanup(func() {
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return h
}

// TestJoin tells workers that ask from jobs: of each question who asks under which ticket for how many vectors, and what is said.
func TestJoin(t *testing.T) {
	newest := ^uint16(0)
	e := epochs{newest: func() (uint16, error) { return newest, nil }, seated: map[seat]answer{}}
	low, high := seat{node: 4, child: 0}, seat{node: 5, child: 0}
	second := uint16(3 + renewals)
	for i, q := range []struct {
		who     seat
		ticket  uint32
		vectors uint64
		first   uint16
		ok      bool
	}{
		{low, 1, 0, 0, false},
		{low, 1, MaxJobVectors + 1, 0, false},
		{low, 1, 3, 0, true},
		{low, 1, 3, 0, true}, // asked again, as the answer was lost
		{high, 2, 3, 0, true},
		{high, 3, 3, second, true}, // its next job, or it was started anew
		{high, 2, 3, 2 * second, true},
		{low, 4, 3, 2 * second, true},
		{low, 4, 3, 2 * second, true},
		{seat{4, 1}, 5, 9, 3 * second, true}, // of another job, of longer vectors
	} {
		if first, ok := e.join(q.who, q.vectors, q.ticket); first != q.first || ok != q.ok {
			t.Errorf("question %d: %d, %v; want %d, %v", i, first, ok, q.first, q.ok)
		}
	}
	newest = 3*second + 1 // somebody's job has begun
	if first, err := e.give(5); err != nil || first != 3*second+9+renewals {
		t.Errorf("by hand %d, %v", first, err)
	}
	newest += half // as seen from there all that was given is old
	if first, ok := e.join(low, 3, 6); !ok || first != newest+1 {
		t.Errorf("after another by hand %d, %v", first, ok)
	}
}

// TestJobs lets workers in a tree play three jobs one after the other, which ask for their epochs themselves, and one by hand between them.
func TestJobs(t *testing.T) {
	l := up(t, "tree: {workers: 3, children: 2}\njob: {lanes: 8, fragments: 4}")
	ground := new(ground)
	for job := range 3 {
		ground.job(t, l, endpoint.XAgg{Ticket: uint32(1 + job)})
		if job == 1 {
			ground.job(t, l, endpoint.XAgg{Epoch: 20_000})
		}
	}
	if newest, err := l.newest(); err != nil || newest != 20_002+3 { // three vectors each
		t.Errorf("the last vector was of epoch %d, %v", newest, err)
	}
}

// TestEpochsOfNobody asks for more than can be told apart before any job has begun.
func TestEpochsOfNobody(t *testing.T) {
	name := nameFor("nobody")
	held(t, plan(t, "name: "+name+"\ntree: {workers: 2}\njob: {lanes: 8, fragments: 4}"))
	if first, err := Epoch(name, MaxJobVectors); err != nil || first != 0 {
		t.Errorf("the first job begins with %d, %v", first, err)
	}
	if first, err := Epoch(name, MaxJobVectors); !errors.Is(err, ErrHolder) || !strings.Contains(err.Error(), "epochs were given to jobs that did not begin") {
		t.Errorf("the second, half of all epochs later: %d, %v", first, err)
	}
}

// TestEpochsOfAQueue asks where nothing is added up.
func TestEpochsOfAQueue(t *testing.T) {
	name := nameFor("queued")
	held(t, plan(t, "name: "+name+"\nqueue: {workers: 2, system: olaf}"))
	if first, err := Epoch(name, 1); !errors.Is(err, ErrHolder) || !strings.Contains(err.Error(), "no program adds anything up there") {
		t.Errorf("a job begins with %d, %v", first, err)
	}
}

// TestEpochs asks for the epochs of jobs: ahead of what programs have met and of who asked before, modulo 2^16, and each another one where
// many ask at once. Jobs that use them add up one after the other.
func TestEpochs(t *testing.T) {
	p := plan(t, "name: "+nameFor("epochs")+"\ntree: {workers: 2}\njob: {lanes: 8, fragments: 4}")
	h := held(t, p)
	given := func(vectors int) uint16 {
		t.Helper()
		first, err := Epoch(p.Name, vectors)
		if err != nil {
			t.Fatal(err)
		}
		return first
	}
	ground := new(ground)
	if first := given(3); first != 0 {
		t.Errorf("the first job begins with %d", first)
	}
	ground.job(t, h.lab, endpoint.XAgg{})
	for range 2 { // a job that never begins keeps its epochs
		given(3)
	}
	second := given(3)
	if second != 3*(3+renewals) {
		t.Errorf("the fourth job begins with %d", second)
	}
	ground.job(t, h.lab, endpoint.XAgg{Epoch: second})
	ground.job(t, h.lab, endpoint.XAgg{Epoch: 40_000 - 1<<14}) // said by hand
	if after := given(1); after != 40_000-1<<14+3 {
		t.Errorf("after one by hand %d", after)
	}
	var mu sync.Mutex
	var all []uint16
	var asking sync.WaitGroup
	for range 7 {
		asking.Go(func() {
			first, err := Epoch(p.Name, MaxJobVectors/4)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			all = append(all, first)
			mu.Unlock()
		})
	}
	asking.Wait()
	slices.Sort(all)
	for i := 1; i < len(all); i++ {
		if all[i]-all[i-1] < MaxJobVectors/4 {
			t.Errorf("%d and %d meet", all[i-1], all[i])
		}
	}
	if _, err := Epoch(p.Name, MaxJobVectors/4); !errors.Is(err, ErrHolder) || !strings.Contains(err.Error(), "epochs were given to jobs that did not begin") {
		t.Errorf("more than can be told apart: %v", err)
	}
	for _, none := range []int{0, MaxJobVectors + 1} {
		if _, err := Epoch(p.Name, none); err == nil {
			t.Errorf("an epoch for %d vectors", none)
		}
	}
}
