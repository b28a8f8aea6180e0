package lab

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// epoch begins the question for a job's first epoch; how many vectors it has stands behind.
const epoch = "epoch "

// Epoch asks the holder of a testbed with which epoch a job of so many vectors may begin: ahead of everything that any of its programs has
// met, and of all jobs that asked before, whether they have begun or not. Questions are answered one by one, so that no two jobs get
// epochs in common. The error matches ErrAbsent, ErrFile of a number of vectors that no job has, or ErrHolder.
func Epoch(name string, vectors int) (first uint16, err error) {
	if vectors < 1 || vectors > MaxJobVectors {
		return 0, fmt.Errorf("%w: a job of %d vectors; epochs are counted for 1 to %d", ErrFile, vectors, MaxJobVectors)
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
	if err != nil { // it says why there is none
		return 0, fmt.Errorf("%w: %s: %s", ErrHolder, name, said)
	}
	return uint16(n), nil
}

// renewals is how many epochs a job may need beyond its vectors: two for each change of its tree.
const renewals = 64

// epoch answers with the first epoch of a job.
func (h *Holder) epoch(question string) (first uint16, err error) {
	vectors, err := strconv.Atoi(strings.TrimPrefix(question, epoch))
	if err != nil || vectors < 1 || vectors > MaxJobVectors {
		return 0, fmt.Errorf("no such question: %q", question)
	}
	if len(h.lab.Adders) == 0 {
		return 0, errors.New("no program adds anything up there, so that no job needs epochs; those of testbeds with a tree do")
	}
	newest, err := h.newest()
	if err != nil {
		return 0, err
	}
	first = h.next
	if ahead(newest, first-1) {
		first = newest + 1
	}
	next := first + uint16(vectors) + renewals
	if next-newest > half {
		return 0, fmt.Errorf("%d epochs were given to jobs that did not begin, and no more can be told from old ones; take the testbed down and up", first-newest-1)
	}
	h.next = next
	return first, nil
}

// half is how many epochs can be ahead of another: they are counted modulo 2^16, as the program compares them.
const half = 1 << 15

func ahead(a, b uint16) bool { return int16(a-b) > 0 }

// newest is the newest epoch that any program has met; where none has met one that before the first.
func (h *Holder) newest() (newest uint16, err error) {
	newest, met := ^uint16(0), false
	for _, a := range h.lab.Adders {
		for i := range h.lab.Fragments {
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
