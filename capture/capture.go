// Package capture turns packets into observations: it reads and writes pcap and pcapng files with nanosecond stamps,
// finds the OLAF frames among the packets, and accounts for lost, broken, foreign and misordered ones. A Recording
// does so while packets arrive from package capture/live.
//
// Package capture/replay sends a capture through a queue.
package capture

import (
	"errors"
	"fmt"

	"github.com/olafctl/olaf"
)

// Kinds of capture errors, for errors.Is.
var (
	// ErrFormat reports that the file is not pcap or pcapng, or is damaged.
	ErrFormat = olaf.NewError(olaf.Usage, "not a readable capture")
	// ErrCut reports that the file ends inside a packet.
	ErrCut = olaf.NewError(olaf.Usage, "the capture is cut")
	// ErrLink reports that packets were not captured from an Ethernet interface.
	ErrLink = olaf.NewError(olaf.Usage, "not an Ethernet capture")
	// ErrTime reports that a packet's time is missing or outside the run clock's range.
	ErrTime = olaf.NewError(olaf.Usage, "unusable packet time")
	// ErrTimeBackwards reports that a packet is older than its predecessor.
	ErrTimeBackwards = olaf.NewError(olaf.Usage, "the capture goes backwards in time")
	// ErrNoOLAF reports that no packet was an OLAF frame.
	ErrNoOLAF = olaf.NewError(olaf.Usage, "no OLAF frames")
	// ErrIdle reports that a live capture has no packet at the moment; the caller may wait and retry.
	ErrIdle = errors.New("no packet waits")
	// ErrExists reports that an output file exists already.
	ErrExists = olaf.NewError(olaf.Usage, "exists")
)

// Error is a read error with its place. It wraps one of the kinds.
type Error struct {
	File   string
	Packet int // from 1; 0 for the file header
	Kind   error
	Advice string // details, or a remedy
}

// Error returns one line: file, packet, kind, advice.
func (e *Error) Error() string {
	where := e.File
	if e.Packet > 0 {
		where = fmt.Sprintf("%s: packet %d", e.File, e.Packet)
	}
	if e.Advice == "" {
		return fmt.Sprintf("%s: %v", where, e.Kind)
	}
	return fmt.Sprintf("%s: %v: %s", where, e.Kind, e.Advice)
}

// Unwrap returns the kind.
func (e *Error) Unwrap() error { return e.Kind }

// Packet is one captured frame.
type Packet struct {
	Number int    // in its file, from 1
	UnixNS int64  // when its last bit was seen, ns since 1970; in a twin's capture, ns since the twin was armed
	Data   []byte // without FCS, possibly cut; valid until the next packet is read
	Wire   int    // length on the wire in bytes
	// Interface is the index of the pcapng interface that the packet is written for, from 0. Readers leave it 0.
	Interface int
	// Comment is written with the packet to a pcapng file. Readers ignore comments.
	Comment string
}

// Tap returns the updates delivered since the last call, in order of time. The twin implements it.
type Tap interface {
	Drain(buf []olaf.Observation) []olaf.Observation
}
