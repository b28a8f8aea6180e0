package endpoint

import (
	"fmt"
	"sync"

	"github.com/olafctl/olaf/fpga/program/xagg"
)

// Renewals is the number of epochs that a job may need in addition to one per vector. Each change of its tree needs
// two.
const Renewals = 64

// Epochs assigns epochs to the jobs of a testbed. It is shared by the holder and the agents.
type Epochs struct {
	Newest func() (uint16, error)           // newest epoch that any program has seen
	Summed func(first uint16) (bool, error) // whether a sum of a job, given its first epoch, may have left for the server
	// Lacks reports whether a job, given its first and last epochs, still needs packets from a worker and does not end
	// without them.
	Lacks func(of Seat, first, last uint16) (bool, error)

	mu     sync.Mutex
	next   uint16 // first epoch after those of all jobs so far
	begun  begun  // the job whose workers asked last
	seated map[Seat]answer
}

// begun is a job whose workers request its first epoch one by one. It has no vectors if there is no such job.
type begun struct {
	vectors uint64
	first   uint16
	before  uint16 // newest epoch that any program had seen when the job began
	left    bool   // a worker left before its end
}

// Seat is the place of a worker in the tree.
type Seat struct{ Node, Child int }

// answer contains the ticket of the worker at a seat and the first epoch that it received. If the worker left its job,
// the next worker at the seat begins a new job.
type answer struct {
	ticket uint32
	first  uint16
	left   bool
}

// Lock makes all requests wait until Unlock.
func (e *Epochs) Lock() { e.mu.Lock() }

// Unlock answers requests again.
func (e *Epochs) Unlock() { e.mu.Unlock() }

// Give returns the first epoch for a new job.
func (e *Epochs) Give(vectors int) (first uint16, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.another(vectors)
}

func (e *Epochs) another(vectors int) (first uint16, err error) {
	newest, err := e.Newest()
	if err != nil {
		return 0, err
	}
	first = e.next
	switch b := &e.begun; {
	case b.vectors == MaxEpochs && b.first+MaxEpochs+Renewals == e.next && newest != b.before:
		first = newest + Renewals // an endless job may be anywhere by now, and continues for at most one vector
	case Ahead(newest, first-1):
		first = newest + 1
	}
	next := first + uint16(vectors) + Renewals
	if next-newest > half {
		return 0, fmt.Errorf("%d epochs were given to jobs that did not begin, and no more can be told from old "+
			"ones; take the testbed down and up", first-newest-1)
	}
	e.next = next
	return first, nil
}

// HandleRequest answers a worker's request, which contains the worker's ticket. The worker requests the first epoch of
// its job, asks whether this epoch is still valid, or leaves.
func (e *Epochs) HandleRequest(at Seat, action uint8, vectors uint64, ticket uint32) (uint16, xagg.Answer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.seated == nil {
		e.seated = map[Seat]answer{}
	}
	said, sits := e.seated[at]
	sits = sits && said.ticket == ticket && !said.left
	switch {
	case action == xagg.Leave && sits && vectors == 0: // the worker's job was replaced, and the worker did not switch
		delete(e.seated, at)
		return 0, xagg.Unanswered
	case action == xagg.Leave && sits:
		e.begun.left = e.begun.left || said.first == e.begun.first
		said.left = true
		e.seated[at] = said
		return 0, xagg.Unanswered
	case sits && action == xagg.Still && e.begun.left && said.first == e.begun.first:
		return 0, xagg.WorkerLeft
	case sits:
		return said.first, xagg.Answered
	case action != xagg.Begin: // another worker now has the seat
		return 0, xagg.Unanswered
	}
	return e.join(at, vectors, ticket)
}

// join returns the first epoch of the job for a worker that begins. Workers that begin one after the other belong to
// the same job. A worker begins a new job if it already has an epoch of the current one, has another number of vectors,
// or comes after a worker has left.
func (e *Epochs) join(at Seat, vectors uint64, ticket uint32) (uint16, xagg.Answer) {
	if vectors < 1 || vectors > MaxEpochs {
		return 0, xagg.TooLong
	}
	said, sits := e.seated[at]
	if e.begun.vectors != vectors || e.begun.left || sits && said.first == e.begun.first {
		first, err := e.another(int(vectors))
		if err != nil {
			return 0, xagg.EpochsSpent
		}
		before, err := e.Newest()
		if err != nil {
			return 0, xagg.EpochsSpent
		}
		e.begin(begun{vectors: vectors, first: first, before: before}, at)
	}
	e.seated[at] = answer{ticket: ticket, first: e.begun.first}
	return e.begun.first, xagg.Answered
}

// begin begins a new job because a worker was restarted. Workers of an equally long job that wait for it learn about
// the new job when they ask again. A worker that has no sum yet switches to it; the others give up. A job that has all
// packets from the restarted worker ends normally.
func (e *Epochs) begin(next begun, anew Seat) {
	if e.begun.vectors == next.vectors && e.waits(anew) {
		for at, said := range e.seated {
			if said.first == e.begun.first && !said.left {
				e.seated[at] = answer{ticket: said.ticket, first: next.first}
			}
		}
	}
	e.begun = next
}

// waits reports whether the last job waits for a packet from a worker that was restarted. It returns false if this is
// unknown.
func (e *Epochs) waits(anew Seat) bool {
	if summed, err := e.Summed(e.begun.first); !summed || err != nil {
		return err == nil
	}
	if said, sits := e.seated[anew]; !sits || said.first != e.begun.first {
		return false
	}
	lacks, err := e.Lacks(anew, e.begun.first, e.begun.first+uint16(e.begun.vectors)-1)
	return lacks && err == nil
}

// half is the largest distance between two epochs that can be compared. Epochs are compared modulo 2^16, as in the
// program.
const half = 1 << 15

// Ahead reports whether epoch a is later than b.
func Ahead(a, b uint16) bool { return int16(a-b) > 0 }

// NewestExpected returns the epoch before that of the next job. It replaces Newest for a tree on several hosts. Each host
// counts the jobs of its workers, which are the same on all hosts. Packets that arrive from another host must not
// change that count.
func (e *Epochs) NewestExpected() (uint16, error) { return e.next - 1, nil }
