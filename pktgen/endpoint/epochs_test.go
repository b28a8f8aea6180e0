package endpoint

import (
	"errors"
	"testing"

	"github.com/olafctl/olaf/fpga/program/xagg"
)

// TestJoin checks which workers share a job: for each request its seat, ticket and number of vectors, and the answer.
func TestJoin(t *testing.T) {
	newest := ^uint16(0)
	summed := func(uint16) (bool, error) { return true, nil }
	e := Epochs{Newest: func() (uint16, error) { return newest, nil }, Summed: summed, Lacks: nothing, seated: map[Seat]answer{}}
	low, high := Seat{Node: 4, Child: 0}, Seat{Node: 5, Child: 0}
	second := uint16(3 + Renewals)
	for i, q := range []struct {
		who     Seat
		ticket  uint32
		vectors uint64
		first   uint16
		answer  xagg.Answer
	}{
		{low, 1, 0, 0, xagg.TooLong},
		{low, 1, MaxEpochs + 1, 0, xagg.TooLong},
		{low, 1, 3, 0, xagg.Answered},
		{low, 1, 3, 0, xagg.Answered}, // asked again because the answer was lost
		{high, 2, 3, 0, xagg.Answered},
		{high, 3, 3, second, xagg.Answered}, // its next job, or it was restarted
		{high, 2, 3, 2 * second, xagg.Answered},
		{low, 4, 3, 2 * second, xagg.Answered},
		{low, 4, 3, 2 * second, xagg.Answered},
		{Seat{4, 1}, 5, 9, 3 * second, xagg.Answered}, // for another job with longer vectors
	} {
		if first, answer := e.HandleRequest(q.who, xagg.Begin, q.vectors, q.ticket); first != q.first || answer != q.answer {
			t.Errorf("question %d: %d, answer %d; want %d, answer %d", i, first, answer, q.first, q.answer)
		}
	}
	newest = 3*second + 1 // as if another job had begun
	if first, err := e.Give(5); err != nil || first != 3*second+9+Renewals {
		t.Errorf("by hand %d, %v", first, err)
	}
	newest += half // relative to this, all earlier epochs are old
	if first, answer := e.HandleRequest(low, xagg.Begin, 3, 6); answer != xagg.Answered || first != newest+1 {
		t.Errorf("after another by hand %d, answer %d", first, answer)
	}
}

// TestRestartsMoveWaitingWorkers checks which workers move to the next job if workers are restarted one after the
// other. Workers that wait with a restarted one in a job without sums, or in a job that needs it, move; workers of a
// job that ends normally or has another length do not.
func TestRestartsMoveWaitingWorkers(t *testing.T) {
	a, b, c := Seat{4, 0}, Seat{4, 1}, Seat{5, 0}
	for name, x := range map[string]struct {
		summed  bool
		err     error
		vectors uint64 // of the restarted worker
		lacks   bool   // the job still needs some of the worker's packets
		moved   bool
	}{
		"no sum yet": {false, nil, 3, true, true}, "in its middle": {true, nil, 3, true, true}, "after its last packet": {true, nil, 3, false, false},
		"of another length": {false, nil, 4, true, false}, "nobody knows": {false, errors.New("the kernel does not say"), 3, true, false},
	} {
		e := Epochs{Newest: func() (uint16, error) { return ^uint16(0), nil }, seated: map[Seat]answer{},
			Summed: func(first uint16) (bool, error) {
				if first != 0 {
					t.Errorf("%s: asked whether %d began", name, first)
				}
				return x.summed, x.err
			},
			Lacks: func(of Seat, first, last uint16) (bool, error) {
				if of != b || first != 0 || last != 2 {
					t.Errorf("%s: asked what the job from %d to %d has of %v", name, first, last, of)
				}
				return x.lacks, nil
			}}
		e.next, e.begun = 3, begun{vectors: 3}
		e.seated[a], e.seated[b], e.seated[c] = answer{ticket: 1}, answer{ticket: 2}, answer{ticket: 3}
		if first, answer := e.HandleRequest(b, xagg.Begin, x.vectors, 9); answer != xagg.Answered || first != e.begun.first {
			t.Errorf("%s: the worker that was started anew gets %d, answer %d", name, first, answer)
		}
		want := uint16(0)
		if x.moved {
			want = e.begun.first
		}
		for at, ticket := range map[Seat]uint32{a: 1, c: 3} {
			if first, answer := e.HandleRequest(at, xagg.Still, 3, ticket); answer != xagg.Answered || first != want {
				t.Errorf("%s: the worker at %v that asks again gets %d, answer %d; want %d", name, at, first, answer, want)
			}
		}
		if first, answer := e.HandleRequest(b, xagg.Still, 3, 2); answer != xagg.Unanswered {
			t.Errorf("%s: who is no more is told %d", name, first)
		}
	}
}

// nothing reports that a job needs nothing.
func nothing(Seat, uint16, uint16) (bool, error) { return false, nil }

// TestNextWorkerBeginsNextJob checks that after a worker leaves its job, the next worker begins the next job, and that
// a leave with another ticket is ignored.
func TestNextWorkerBeginsNextJob(t *testing.T) {
	e := Epochs{Newest: func() (uint16, error) { return ^uint16(0), nil }, Summed: func(uint16) (bool, error) { return true, nil }, Lacks: nothing, seated: map[Seat]answer{}}
	a, b := Seat{4, 0}, Seat{4, 1}
	begins := func(at Seat, ticket uint32) uint16 {
		first, answer := e.HandleRequest(at, xagg.Begin, 3, ticket)
		if answer != xagg.Answered {
			t.Errorf("nothing is said to %v", at)
		}
		return first
	}
	begins(b, 1)
	alone := begins(b, 2) // restarted while a is in the previous job
	for _, ticket := range []uint32{1, 2} {
		if _, answer := e.HandleRequest(b, xagg.Leave, 3, ticket); answer != xagg.Unanswered {
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
	if _, answer := e.HandleRequest(a, xagg.Leave, 0, 3); answer != xagg.Unanswered || e.begun.left || begins(a, 5) != next {
		t.Errorf("who did not go over to the job in the place of its own is not of it: %+v", e.begun)
	}
}

// TestRestartIsOneJob checks that if all workers of a job are stopped, as by Ctrl-C, and restarted, they begin one job,
// which uses one job's epochs.
func TestRestartIsOneJob(t *testing.T) {
	e := Epochs{Newest: func() (uint16, error) { return ^uint16(0), nil }, Summed: func(uint16) (bool, error) { return true, nil }, seated: map[Seat]answer{},
		Lacks: func(Seat, uint16, uint16) (bool, error) { return true, nil }}
	seats := []Seat{{4, 0}, {4, 1}, {5, 0}, {5, 1}}
	ticket := uint32(0)
	for start := range 4 {
		want := uint16(start) * (3 + Renewals)
		for _, at := range seats {
			ticket++
			if first, answer := e.HandleRequest(at, xagg.Begin, 3, ticket); answer != xagg.Answered || first != want {
				t.Errorf("start %d: the worker at %v begins with epoch %d, answer %d; want %d for all four", start, at, first, answer, want)
			}
		}
		for i, at := range seats {
			e.HandleRequest(at, xagg.Leave, 3, ticket-uint32(len(seats)-1-i))
		}
	}
}

// TestOneWorkerRestarts checks that if one worker of a job is stopped, as by Ctrl-C, and restarted, the others, which
// wait for it, move to its new job.
func TestOneWorkerRestarts(t *testing.T) {
	e := Epochs{Newest: func() (uint16, error) { return ^uint16(0), nil }, Summed: func(uint16) (bool, error) { return true, nil }, seated: map[Seat]answer{},
		Lacks: func(Seat, uint16, uint16) (bool, error) { return true, nil }}
	a, b := Seat{4, 0}, Seat{4, 1}
	e.HandleRequest(a, xagg.Begin, 3, 1)
	e.HandleRequest(b, xagg.Begin, 3, 2)
	e.HandleRequest(a, xagg.Leave, 3, 1)
	if _, answer := e.HandleRequest(b, xagg.Still, 3, 2); answer != xagg.WorkerLeft {
		t.Errorf("the worker that waits gets answer %d, want that the other left", answer)
	}
	first, _ := e.HandleRequest(a, xagg.Begin, 3, 3)
	if moved, answer := e.HandleRequest(b, xagg.Still, 3, 2); answer != xagg.Answered || moved != first || first == 0 {
		t.Errorf("the worker that waited gets epoch %d, answer %d; the restarted one has %d, and the job before had 0", moved, answer, first)
	}
}

// TestJobWithoutEnd checks that the next job still begins after an endless job whose epochs wrap around.
func TestJobWithoutEnd(t *testing.T) {
	newest := ^uint16(0)
	e := Epochs{Newest: func() (uint16, error) { return newest, nil }, Summed: func(uint16) (bool, error) { return true, nil }, Lacks: nothing,
		seated: map[Seat]answer{}}
	at := Seat{4, 0}
	for start, vectors := range []uint16{60_000, 3, 40_000, 30_000, 65_535} {
		first, answer := e.HandleRequest(at, xagg.Begin, MaxEpochs, uint32(start+1))
		if ahead := first - newest; answer != xagg.Answered || ahead == 0 || ahead > half {
			t.Errorf("start %d: the job begins with epoch %d, answer %d, after %d", start, first, answer, newest)
		}
		newest = first + vectors
		e.HandleRequest(at, xagg.Leave, MaxEpochs, uint32(start+1))
	}
}
