package lab

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/olafctl/olaf/pktgen/endpoint"
	"github.com/olafctl/olaf/pktgen/process"
)

// held runs a testbed until the test ends.
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

// TestJobs checks three jobs in a tree, run one after the other, whose workers request their epochs, with a job with
// fixed epochs in between.
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

// TestTooManyEpochsAreRejected checks the error for requesting more epochs than can be distinguished before any job has
// begun.
func TestTooManyEpochsAreRejected(t *testing.T) {
	name := nameFor("nobody")
	held(t, plan(t, "name: "+name+"\ntree: {workers: 2}\njob: {lanes: 8, fragments: 4}"))
	if first, err := Epoch(name, process.MaxVectors); err != nil || first != 0 {
		t.Errorf("the first job begins with %d, %v", first, err)
	}
	if first, err := Epoch(name, process.MaxVectors); !errors.Is(err, ErrHolder) || !strings.Contains(err.Error(), "epochs were given to jobs that did not begin") {
		t.Errorf("the second, half of all epochs later: %d, %v", first, err)
	}
}

// TestEpochsOfAQueue checks the error for requesting epochs in a testbed without aggregation.
func TestEpochsOfAQueue(t *testing.T) {
	name := nameFor("queued")
	held(t, plan(t, "name: "+name+"\nqueue: {workers: 2, system: olaf}"))
	if first, err := Epoch(name, 1); !errors.Is(err, ErrHolder) || !strings.Contains(err.Error(), "no program adds anything up there") {
		t.Errorf("a job begins with %d, %v", first, err)
	}
}

// TestEpochs checks that requested epochs are ahead of those that programs have seen and of earlier requests, modulo
// 2^16, and distinct for concurrent requests, and that jobs that use them sum one after the other.
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
	for range 2 { // epochs given to a job that never begins stay reserved
		given(3)
	}
	second := given(3)
	if second != 3*(3+endpoint.Renewals) {
		t.Errorf("the fourth job begins with %d", second)
	}
	ground.job(t, h.lab, endpoint.XAgg{Epoch: second})
	ground.job(t, h.lab, endpoint.XAgg{Epoch: 40_000 - 1<<14}) // fixed epoch
	if after := given(1); after != 40_000-1<<14+3 {
		t.Errorf("after one by hand %d", after)
	}
	var mu sync.Mutex
	var all []uint16
	var asking sync.WaitGroup
	for range 7 {
		asking.Go(func() {
			first, err := Epoch(p.Name, process.MaxVectors/4)
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
		if all[i]-all[i-1] < process.MaxVectors/4 {
			t.Errorf("%d and %d meet", all[i-1], all[i])
		}
	}
	if _, err := Epoch(p.Name, process.MaxVectors/4); !errors.Is(err, ErrHolder) || !strings.Contains(err.Error(), "epochs were given to jobs that did not begin") {
		t.Errorf("more than can be told apart: %v", err)
	}
	for _, none := range []int{0, process.MaxVectors + 1} {
		if _, err := Epoch(p.Name, none); err == nil {
			t.Errorf("an epoch for %d vectors", none)
		}
	}
}
