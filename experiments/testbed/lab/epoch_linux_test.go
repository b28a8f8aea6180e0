package lab

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
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
	ground.job(t, h.lab, 0)
	for range 2 { // a job that never begins keeps its epochs
		given(3)
	}
	second := given(3)
	if second != 3*(3+renewals) {
		t.Errorf("the fourth job begins with %d", second)
	}
	ground.job(t, h.lab, second)
	ground.job(t, h.lab, 40_000-1<<14) // said by hand
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
