package lab

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/olafctl/olaf/fpga/program/xagg"
	"github.com/olafctl/olaf/pktgen/process"
)

// epoch is the first part of the request for a job's first epoch. It is followed by the number of vectors.
const epoch = "epoch "

// Epoch requests the epoch with which a job with the given number of vectors may begin. The epoch is later than all
// epochs that any program has seen, and later than those of all jobs that asked before, even if they have not begun.
// Requests are answered one at a time, so that jobs never share epochs. The error matches ErrAbsent, ErrFile for an
// invalid number of vectors, or ErrHolder.
func Epoch(name string, vectors int) (first uint16, err error) {
	if vectors < 1 || vectors > process.MaxVectors {
		return 0, fmt.Errorf("%w: a job of %d vectors; epochs are counted for 1 to %d", ErrFile, vectors, process.MaxVectors)
	}
	c, err := ask(name, epoch+strconv.Itoa(vectors))
	if err != nil {
		return 0, err
	}
	defer c.Close()
	said, err := io.ReadAll(io.LimitReader(c, 1<<10))
	if err != nil {
		return 0, fmt.Errorf("%w: %s: %w", ErrHolder, name, err)
	}
	said = bytes.TrimSpace(said)
	n, err := strconv.ParseUint(string(said), 10, 16)
	if err != nil { // the reason of the refusal
		return 0, fmt.Errorf("%w: %s: %s", ErrHolder, name, said)
	}
	return uint16(n), nil
}

// renewals is the number of epochs that a job may need in addition to one per vector. Each change of its tree needs
// two.
const renewals = 64

// epoch answers a request for a job's first epoch.
func (h *Holder) epoch(question string) (first uint16, err error) {
	vectors, err := strconv.Atoi(strings.TrimPrefix(question, epoch))
	if err != nil || vectors < 1 || vectors > process.MaxVectors {
		return 0, fmt.Errorf("no such question: %q", question)
	}
	if len(h.lab.Adders) == 0 {
		return 0, errors.New("no program adds anything up there, so that no job needs epochs; those of testbeds with a tree do")
	}
	return h.lab.epochs.give(vectors)
}

// epochs assigns epochs to the jobs of a testbed. It is shared by the holder and the agents.
type epochs struct {
	newest func() (uint16, error)           // that any program has seen
	summed func(first uint16) (bool, error) // whether a sum of a job, given its first epoch, may have left for the server
	// lacks reports whether a job, given its first epoch and its last, still needs packets from a worker and does not
	// end without them.
	lacks func(of seat, first, last uint16) (bool, error)

	mu     sync.Mutex
	next   uint16 // after the epochs of all jobs so far
	begun  begun  // the job whose workers asked last
	seated map[seat]answer
}

// begun is a job whose workers request its first epoch one by one. It has no vectors if there is no such job.
type begun struct {
	vectors uint64
	first   uint16
	before  uint16 // newest epoch that any program had seen when it began
	left    bool   // a worker left before its end
}

// seat is the place of a worker in the tree.
type seat struct{ node, child int }

// answer contains the ticket of the worker at a seat and the first epoch that it received. If the worker left its job,
// the next worker at the seat begins a new job.
type answer struct {
	ticket uint32
	first  uint16
	left   bool
}

// give returns the first epoch for a new job.
func (e *epochs) give(vectors int) (first uint16, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.another(vectors)
}

func (e *epochs) another(vectors int) (first uint16, err error) {
	newest, err := e.newest()
	if err != nil {
		return 0, err
	}
	first = e.next
	switch b := &e.begun; {
	case b.vectors == process.MaxVectors && b.first+process.MaxVectors+renewals == e.next && newest != b.before:
		first = newest + renewals // an endless job may be anywhere by now, and continues for at most one vector
	case ahead(newest, first-1):
		first = newest + 1
	}
	next := first + uint16(vectors) + renewals
	if next-newest > half {
		return 0, fmt.Errorf("%d epochs were given to jobs that did not begin, and no more can be told from old "+
			"ones; take the testbed down and up", first-newest-1)
	}
	e.next = next
	return first, nil
}

// handleRequest answers a worker's request, which contains the worker's ticket. The worker requests the first epoch of
// its job, asks whether this epoch is still valid, or leaves.
func (e *epochs) handleRequest(at seat, action uint8, vectors uint64, ticket uint32) (uint16, xagg.Answer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	said, sits := e.seated[at]
	sits = sits && said.ticket == ticket && !said.left
	switch {
	case action == xagg.Leave && sits && vectors == 0: // its job was replaced, and it did not switch
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
func (e *epochs) join(at seat, vectors uint64, ticket uint32) (uint16, xagg.Answer) {
	if vectors < 1 || vectors > process.MaxVectors {
		return 0, xagg.TooLong
	}
	said, sits := e.seated[at]
	if e.begun.vectors != vectors || e.begun.left || sits && said.first == e.begun.first {
		first, err := e.another(int(vectors))
		if err != nil {
			return 0, xagg.EpochsSpent
		}
		before, err := e.newest()
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
func (e *epochs) begin(next begun, anew seat) {
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
func (e *epochs) waits(anew seat) bool {
	if summed, err := e.summed(e.begun.first); !summed || err != nil {
		return err == nil
	}
	if said, sits := e.seated[anew]; !sits || said.first != e.begun.first {
		return false
	}
	lacks, err := e.lacks(anew, e.begun.first, e.begun.first+uint16(e.begun.vectors)-1)
	return lacks && err == nil
}

// half is the largest distance between two epochs that can be compared. Epochs are compared modulo 2^16, as in the
// program.
const half = 1 << 15

func ahead(a, b uint16) bool { return int16(a-b) > 0 }

// expected returns the epoch before that of the next job. It replaces newest for a tree on several hosts. Each host
// counts the jobs of its workers, which are the same on all hosts. Packets that arrive from another host must not
// change that count.
func (e *epochs) expected() (uint16, error) { return e.next - 1, nil }

// summed reports whether the topmost program has completed a fragment of the job that began with the epoch first, or
// has seen a later epoch.
func (l *Lab) summed(first uint16) (bool, error) {
	top := l.Adders[len(l.Adders)-1]
	for i := range l.Fragments {
		f, err := top.Fragment(i, nil)
		if err != nil {
			return false, err
		}
		if f.Lanes > 0 && (ahead(f.Epoch, first) || f.Epoch == first && f.Inside == len(l.Plan.Nodes[top.Planned.Node].Down)) {
			return true, nil
		}
	}
	return false, nil
}

// lacks reports whether the program above a worker has a fragment of the job from epoch first to last that has not
// reached the last vector, or to which the worker's packet is missing.
func (l *Lab) lacks(of seat, first, last uint16) (bool, error) {
	for _, a := range l.Adders {
		if a.Planned.Node != of.node {
			continue
		}
		for i := range l.Fragments {
			f, err := a.Fragment(i, nil)
			ours := f.Lanes > 0 && f.Epoch-first <= last-first
			if err != nil || ours && (f.Epoch != last || f.Bitmap>>of.child&1 == 0) {
				return err == nil, err
			}
		}
	}
	return false, nil
}

// newest returns the newest epoch that any program has seen. If no program has seen one, it returns the epoch before
// the first.
func (l *Lab) newest() (newest uint16, err error) {
	newest, met := ^uint16(0), false
	for _, a := range l.Adders {
		for i := range l.Fragments {
			f, err := a.Fragment(i, nil)
			if err != nil {
				return 0, err
			}
			if f.Lanes > 0 && (!met || ahead(f.Epoch, newest)) {
				newest, met = f.Epoch, true
			}
		}
	}
	return newest, nil
}
