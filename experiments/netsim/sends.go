package netsim

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/olafctl/olaf"
)

// SendsHeader is the first line of a file of sends; it may be missing.
const SendsHeader = "time_ns,worker"

// SetSends replaces all arrivals of t by those of a CSV with the columns time_ns,worker: one update each, workers counted
// from 0 over all clusters in the order of the topology. Lines may come in any order; equal instants keep that of the
// file. Errors name file and line and match ErrTopology.
func (t *Topology) SetSends(name string, r io.Reader) error {
	_, workers := t.size()
	sends, err := readSends(name, r, workers)
	if err != nil {
		return err
	}
	t.Sends, t.sends = name, sends
	return nil
}

func readSends(name string, r io.Reader, workers int) ([]Send, error) {
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 0, 1<<16), 1<<16)
	sends := []Send{}
	for line := 1; sc.Scan(); line++ {
		text := strings.TrimSpace(sc.Text())
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

func parseSend(text string, workers int) (Send, error) {
	at, worker, ok := strings.Cut(text, ",")
	ns, errAt := strconv.ParseInt(strings.TrimSpace(at), 10, 64)
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
