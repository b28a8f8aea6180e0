package lab

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/olafctl/olaf/pktgen/endpoint"
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
	answer, err := io.ReadAll(io.LimitReader(c, 1<<10))
	if err != nil {
		return 0, fmt.Errorf("%w: %s: %w", ErrHolder, name, err)
	}
	answer = bytes.TrimSpace(answer)
	n, err := strconv.ParseUint(string(answer), 10, 16)
	if err != nil { // the reason for the refusal
		return 0, fmt.Errorf("%w: %s: %s", ErrHolder, name, answer)
	}
	return uint16(n), nil
}

// epoch answers a request for a job's first epoch.
func (h *Holder) epoch(question string) (first uint16, err error) {
	vectors, err := strconv.Atoi(strings.TrimPrefix(question, epoch))
	if err != nil || vectors < 1 || vectors > process.MaxVectors {
		return 0, fmt.Errorf("no such question: %q", question)
	}
	if len(h.lab.Adders) == 0 {
		return 0, errors.New("no program adds anything up there, so that no job needs epochs; those of testbeds with a tree do")
	}
	return h.lab.epochs.Give(vectors)
}

// summed reports whether the topmost program has completed a fragment of the job that began with the epoch first, or
// has seen a later epoch.
func (l *Lab) summed(first uint16) (bool, error) {
	top := l.Adders[len(l.Adders)-1]
	for i := range l.Fragments {
		f, err := top.Fragment(i, nil)
		if err != nil {
			return false, err
		}
		if f.Lanes > 0 && (endpoint.Ahead(f.Epoch, first) || f.Epoch == first && f.Inside == len(l.Plan.Nodes[top.Planned.Node].Down)) {
			return true, nil
		}
	}
	return false, nil
}

// lacks reports whether the program above a worker has a fragment of the job from epoch first to last that has not
// reached the last vector, or to which the worker's packet is missing.
func (l *Lab) lacks(of endpoint.Seat, first, last uint16) (bool, error) {
	for _, a := range l.Adders {
		if a.Planned.Node != of.Node {
			continue
		}
		for i := range l.Fragments {
			f, err := a.Fragment(i, nil)
			ours := f.Lanes > 0 && f.Epoch-first <= last-first
			if err != nil || ours && (f.Epoch != last || f.Bitmap>>of.Child&1 == 0) {
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
			if f.Lanes > 0 && (!met || endpoint.Ahead(f.Epoch, newest)) {
				newest, met = f.Epoch, true
			}
		}
	}
	return newest, nil
}
