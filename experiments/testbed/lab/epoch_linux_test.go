package lab

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/olafctl/olaf/fpga/program/xagg"
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

// TestJoin checks which workers share a job: for each request its seat, ticket and number of vectors, and the answer.
func TestJoin(t *testing.T) {
	newest := ^uint16(0)
	summed := func(uint16) (bool, error) { return true, nil }
	e := epochs{newest: func() (uint16, error) { return newest, nil }, summed: summed, lacks: nothing, seated: map[seat]answer{}}
	low, high := seat{node: 4, child: 0}, seat{node: 5, child: 0}
	second := uint16(3 + renewals)
	for i, q := range []struct {
		who     seat
		ticket  uint32
		vectors uint64
		first   uint16
		answer  xagg.Answer
	}{
		{low, 1, 0, 0, xagg.TooLong},
		{low, 1, process.MaxVectors + 1, 0, xagg.TooLong},
		{low, 1, 3, 0, xagg.Answered},
		{low, 1, 3, 0, xagg.Answered}, // asked again because the answer was lost
		{high, 2, 3, 0, xagg.Answered},
		{high, 3, 3, second, xagg.Answered}, // its next job, or it was restarted
		{high, 2, 3, 2 * second, xagg.Answered},
		{low, 4, 3, 2 * second, xagg.Answered},
		{low, 4, 3, 2 * second, xagg.Answered},
		{seat{4, 1}, 5, 9, 3 * second, xagg.Answered}, // for another job with longer vectors
	} {
		if first, answer := e.handleRequest(q.who, xagg.Begin, q.vectors, q.ticket); first != q.first || answer != q.answer {
			t.Errorf("question %d: %d, answer %d; want %d, answer %d", i, first, answer, q.first, q.answer)
		}
	}
	newest = 3*second + 1 // another job has begun
	if first, err := e.give(5); err != nil || first != 3*second+9+renewals {
		t.Errorf("by hand %d, %v", first, err)
	}
	newest += half // seen from there, all earlier epochs are old
	if first, answer := e.handleRequest(low, xagg.Begin, 3, 6); answer != xagg.Answered || first != newest+1 {
		t.Errorf("after another by hand %d, answer %d", first, answer)
	}
}

// TestMoved restarts workers one after the other: workers that wait with them in a job without sums, or in one that
// needs the restarted worker, move to the next job; workers of a job that ends normally or has another length do not.
func TestMoved(t *testing.T) {
	a, b, c := seat{4, 0}, seat{4, 1}, seat{5, 0}
	for name, x := range map[string]struct {
		summed  bool
		err     error
		vectors uint64 // of the restarted worker
		lacks   bool   // the job needs more of its packets
		moved   bool
	}{
		"no sum yet": {false, nil, 3, true, true}, "in its middle": {true, nil, 3, true, true}, "after its last packet": {true, nil, 3, false, false},
		"of another length": {false, nil, 4, true, false}, "nobody knows": {false, errors.New("the kernel does not say"), 3, true, false},
	} {
		e := epochs{newest: func() (uint16, error) { return ^uint16(0), nil }, seated: map[seat]answer{},
			summed: func(first uint16) (bool, error) {
				if first != 0 {
					t.Errorf("%s: asked whether %d began", name, first)
				}
				return x.summed, x.err
			},
			lacks: func(of seat, first, last uint16) (bool, error) {
				if of != b || first != 0 || last != 2 {
					t.Errorf("%s: asked what the job from %d to %d has of %v", name, first, last, of)
				}
				return x.lacks, nil
			}}
		e.next, e.begun = 3, begun{vectors: 3}
		e.seated[a], e.seated[b], e.seated[c] = answer{ticket: 1}, answer{ticket: 2}, answer{ticket: 3}
		if first, answer := e.handleRequest(b, xagg.Begin, x.vectors, 9); answer != xagg.Answered || first != e.begun.first {
			t.Errorf("%s: the worker that was started anew gets %d, answer %d", name, first, answer)
		}
		want := uint16(0)
		if x.moved {
			want = e.begun.first
		}
		for at, ticket := range map[seat]uint32{a: 1, c: 3} {
			if first, answer := e.handleRequest(at, xagg.Still, 3, ticket); answer != xagg.Answered || first != want {
				t.Errorf("%s: the worker at %v that asks again gets %d, answer %d; want %d", name, at, first, answer, want)
			}
		}
		if first, answer := e.handleRequest(b, xagg.Still, 3, 2); answer != xagg.Unanswered {
			t.Errorf("%s: who is no more is told %d", name, first)
		}
	}
}

// nothing reports that a job lacks nothing.
func nothing(seat, uint16, uint16) (bool, error) { return false, nil }

// TestLeft lets a worker leave its job: the next worker begins the next job, and a leave with another ticket is
// ignored.
func TestLeft(t *testing.T) {
	e := epochs{newest: func() (uint16, error) { return ^uint16(0), nil }, summed: func(uint16) (bool, error) { return true, nil }, lacks: nothing, seated: map[seat]answer{}}
	a, b := seat{4, 0}, seat{4, 1}
	begins := func(at seat, ticket uint32) uint16 {
		first, answer := e.handleRequest(at, xagg.Begin, 3, ticket)
		if answer != xagg.Answered {
			t.Errorf("nothing is said to %v", at)
		}
		return first
	}
	begins(b, 1)
	alone := begins(b, 2) // restarted while a is in the job before
	for _, ticket := range []uint32{1, 2} {
		if _, answer := e.handleRequest(b, xagg.Leave, 3, ticket); answer != xagg.Unanswered {
			t.Error("who leaves is answered")
		}
		if e.begun.left != (ticket == 2) {
			t.Errorf("after ticket %d left: %+v", ticket, e.begun)
		}
	}
	next := begins(a, 3)
	if next == alone || begins(b, 4) != next {
		t.Errorf("after %d was left %d begins, and %+v", alone, next, e.begun)
	}
	if _, answer := e.handleRequest(a, xagg.Leave, 0, 3); answer != xagg.Unanswered || e.begun.left || begins(a, 5) != next {
		t.Errorf("who did not go over to the job in the place of its own is not of it: %+v", e.begun)
	}
}

// TestRestartIsOneJob stops all workers of a job like Ctrl-C and restarts them: they begin one job, which uses one
// job's epochs.
func TestRestartIsOneJob(t *testing.T) {
	e := epochs{newest: func() (uint16, error) { return ^uint16(0), nil }, summed: func(uint16) (bool, error) { return true, nil }, seated: map[seat]answer{},
		lacks: func(seat, uint16, uint16) (bool, error) { return true, nil }}
	seats := []seat{{4, 0}, {4, 1}, {5, 0}, {5, 1}}
	ticket := uint32(0)
	for start := range 4 {
		want := uint16(start) * (3 + renewals)
		for _, at := range seats {
			ticket++
			if first, answer := e.handleRequest(at, xagg.Begin, 3, ticket); answer != xagg.Answered || first != want {
				t.Errorf("start %d: the worker at %v begins with epoch %d, answer %d; want %d for all four", start, at, first, answer, want)
			}
		}
		for i, at := range seats {
			e.handleRequest(at, xagg.Leave, 3, ticket-uint32(len(seats)-1-i))
		}
	}
}

// TestOneWorkerRestarts stops one worker of a job like Ctrl-C and restarts it: the others, which wait for it, move to
// its new job.
func TestOneWorkerRestarts(t *testing.T) {
	e := epochs{newest: func() (uint16, error) { return ^uint16(0), nil }, summed: func(uint16) (bool, error) { return true, nil }, seated: map[seat]answer{},
		lacks: func(seat, uint16, uint16) (bool, error) { return true, nil }}
	a, b := seat{4, 0}, seat{4, 1}
	e.handleRequest(a, xagg.Begin, 3, 1)
	e.handleRequest(b, xagg.Begin, 3, 2)
	e.handleRequest(a, xagg.Leave, 3, 1)
	if _, answer := e.handleRequest(b, xagg.Still, 3, 2); answer != xagg.WorkerLeft {
		t.Errorf("the worker that waits gets answer %d, want that the other left", answer)
	}
	first, _ := e.handleRequest(a, xagg.Begin, 3, 3)
	if moved, answer := e.handleRequest(b, xagg.Still, 3, 2); answer != xagg.Answered || moved != first || first == 0 {
		t.Errorf("the worker that waited gets epoch %d, answer %d; the restarted one has %d, and the job before had 0", moved, answer, first)
	}
}

// TestJobWithoutEnd runs an endless job until its epochs wrap around: the next job still begins after it.
func TestJobWithoutEnd(t *testing.T) {
	newest := ^uint16(0)
	e := epochs{newest: func() (uint16, error) { return newest, nil }, summed: func(uint16) (bool, error) { return true, nil }, lacks: nothing,
		seated: map[seat]answer{}}
	at := seat{4, 0}
	for start, vectors := range []uint16{60_000, 3, 40_000, 30_000, 65_535} {
		first, answer := e.handleRequest(at, xagg.Begin, process.MaxVectors, uint32(start+1))
		if ahead := first - newest; answer != xagg.Answered || ahead == 0 || ahead > half {
			t.Errorf("start %d: the job begins with epoch %d, answer %d, after %d", start, first, answer, newest)
		}
		newest = first + vectors
		e.handleRequest(at, xagg.Leave, process.MaxVectors, uint32(start+1))
	}
}

// TestJobs runs three jobs in a tree one after the other, whose workers request their epochs, with a job with fixed
// epochs in between.
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

// TestEpochsOfNobody requests more epochs than can be distinguished, before any job has begun.
func TestEpochsOfNobody(t *testing.T) {
	name := nameFor("nobody")
	held(t, plan(t, "name: "+name+"\ntree: {workers: 2}\njob: {lanes: 8, fragments: 4}"))
	if first, err := Epoch(name, process.MaxVectors); err != nil || first != 0 {
		t.Errorf("the first job begins with %d, %v", first, err)
	}
	if first, err := Epoch(name, process.MaxVectors); !errors.Is(err, ErrHolder) || !strings.Contains(err.Error(), "epochs were given to jobs that did not begin") {
		t.Errorf("the second, half of all epochs later: %d, %v", first, err)
	}
}

// TestEpochsOfAQueue requests epochs of a testbed without aggregation.
func TestEpochsOfAQueue(t *testing.T) {
	name := nameFor("queued")
	held(t, plan(t, "name: "+name+"\nqueue: {workers: 2, system: olaf}"))
	if first, err := Epoch(name, 1); !errors.Is(err, ErrHolder) || !strings.Contains(err.Error(), "no program adds anything up there") {
		t.Errorf("a job begins with %d, %v", first, err)
	}
}

// TestEpochs requests epochs of jobs: they are ahead of what programs have seen and of earlier requests, modulo 2^16,
// and distinct for concurrent requests. Jobs that use them sum one after the other.
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
