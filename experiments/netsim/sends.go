package netsim

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/internal/csvtext"
)

// Send is one generation of an update, read from a file.
type Send struct {
	At     olaf.Time
	Worker int // dense index over all clusters
}

// SendsHeader is the optional first line of a file of sends.
const SendsHeader = "time_ns,worker"

// SetSends replaces all arrivals of t by those in a CSV with the columns time_ns,worker: one update per line, workers
// counted from 0 over all clusters in the order of the topology. Lines may be in any order; sends at the same instant
// stay in the file's order. Errors name file and line and match ErrTopology.
func (t *Topology) SetSends(name string, r io.Reader) error {
	_, workers := t.countWorkers()
	sends, err := readSends(name, r, workers)
	if err != nil {
		return err
	}
	t.Sends, t.sends = name, sends
	return nil
}

// SendsDigest returns a digest of the arrivals set by SetSends, which Document only names; empty if none were set.
func (t *Topology) SendsDigest() string {
	if t.sends == nil {
		return ""
	}
	h := sha256.New()
	for _, s := range t.sends {
		fmt.Fprintf(h, "%d,%d\n", s.At.NS(), s.Worker)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// LateSends returns the number of sends in the file and how many are ignored because they come at or after the end of
// the run.
func (t *Topology) LateSends() (late, all int) {
	end := olaf.Time(t.Warmup + t.Duration)
	at, _ := slices.BinarySearchFunc(t.sends, end, func(s Send, end olaf.Time) int { return cmp.Compare(s.At, end) })
	return len(t.sends) - at, len(t.sends)
}

func readSends(name string, r io.Reader, workers int) ([]Send, error) {
	sc, err := scanCSV(name, r)
	if err != nil {
		return nil, err
	}
	sends := []Send{}
	for line := 1; sc.Scan(); line++ {
		text := strings.TrimSpace(sc.Text())
		if err := csvtext.CheckSeparator(text); err != nil && line == 1 {
			return nil, &Error{name, line, err.Error()}
		}
		if text == "" || line == 1 && strings.EqualFold(strings.ReplaceAll(text, " ", ""), SendsHeader) {
			continue
		}
		s, err := parseSend(text, workers)
		if err != nil {
			return nil, &Error{name, line, err.Error()}
		}
		sends = append(sends, s)
	}
	if err := sc.Err(); err != nil {
		return nil, &Error{File: name, What: fmt.Sprintf("cannot be read as lines of %s: %v", SendsHeader, err)}
	}
	if len(sends) == 0 {
		return nil, &Error{name, 1, "there are no sends; write lines of " + SendsHeader}
	}
	if len(sends) > 1<<31 {
		return nil, &Error{File: name, What: fmt.Sprintf("there are %d sends; at most %d", len(sends), 1<<31)}
	}
	slices.SortStableFunc(sends, func(a, b Send) int { return cmp.Compare(a.At, b.At) })
	return sends, nil
}

// scanCSV opens a file of comma-separated lines that may come from another program.
func scanCSV(name string, r io.Reader) (*bufio.Scanner, error) {
	in, err := csvtext.Open(r)
	if err != nil {
		return nil, &Error{File: name, What: err.Error()}
	}
	sc := bufio.NewScanner(in)
	sc.Buffer(make([]byte, 0, 1<<16), 1<<16)
	return sc, nil
}

func parseSend(text string, workers int) (Send, error) {
	at, worker, ok := strings.Cut(text, ",")
	ns, errAt := olaf.ParseInt(strings.TrimSpace(at))
	w, errWorker := strconv.Atoi(strings.TrimSpace(worker))
	switch {
	case !ok || errAt != nil || errWorker != nil:
		return Send{}, fmt.Errorf("%q is not a line of %s with whole numbers", text, SendsHeader)
	case ns < 0 || ns > int64(maxSimulated/olaf.Nanosecond):
		return Send{}, fmt.Errorf("time %d ns is outside of 0 to %v", ns, maxSimulated)
	case w < 0 || w >= workers:
		return Send{}, fmt.Errorf("worker %d does not exist; the topology has workers 0 to %d", w, workers-1)
	}
	return Send{olaf.Time(ns) * olaf.Time(olaf.Nanosecond), w}, nil
}

// script contains the sends of a file, per worker, in the order of the file.
type script struct {
	first []int32 // per worker, the index of its first entry; one more at the end
	at    []int64
	line  []uint32 // line number from 1, the order of simultaneous sends
}

func newScript(sends []Send, workers int) *script {
	s := &script{first: make([]int32, workers+1), at: make([]int64, len(sends)), line: make([]uint32, len(sends))}
	for _, x := range sends {
		s.first[x.Worker+1]++
	}
	for w := range workers {
		s.first[w+1] += s.first[w]
	}
	fill := append([]int32(nil), s.first...)
	for i, x := range sends {
		at := fill[x.Worker]
		fill[x.Worker]++
		s.at[at], s.line[at] = int64(x.At), uint32(i+1)
	}
	return s
}

// sendOf returns when worker w generates update seq, and its line in the file, from 1.
func (s *script) sendOf(w int, seq uint32) (at int64, place uint64) {
	i := int64(s.first[w]) + int64(seq)
	if i >= int64(s.first[w+1]) {
		return never, 0
	}
	return s.at[i], uint64(s.line[i])
}
