// Package capture converts packets into observations. It reads and writes pcap and pcapng files with nanosecond
// timestamps, finds the OLAF frames among the packets, and counts lost, broken, foreign and misordered frames. A
// Recording does this while packets arrive from package capture/live. Package capture/replay sends a capture through a
// queue.
package capture

import (
	"errors"
	"fmt"

	"github.com/olafctl/olaf"
)

// Kinds of capture errors, for errors.Is.
var (
	// ErrFormat is the error for a file that is not in pcap or pcapng format or that is damaged.
	ErrFormat = olaf.NewError(olaf.Usage, "not a readable capture")
	// ErrCut is the error for a file that ends inside a packet.
	ErrCut = olaf.NewError(olaf.Usage, "the capture is cut")
	// ErrLink is the error for packets that were not captured from an Ethernet interface.
	ErrLink = olaf.NewError(olaf.Usage, "not an Ethernet capture")
	// ErrTime is the error for a packet whose time is missing or outside the run clock's range.
	ErrTime = olaf.NewError(olaf.Usage, "unusable packet time")
	// ErrTimeBackwards is the error for a packet that is older than its predecessor.
	ErrTimeBackwards = olaf.NewError(olaf.Usage, "the capture goes backwards in time")
	// ErrNoOLAF is the error for a capture without OLAF frames.
	ErrNoOLAF = olaf.NewError(olaf.Usage, "no OLAF frames")
	// ErrIdle is returned by a live capture that has no packet at the moment. The caller may wait and try again.
	ErrIdle = errors.New("no packet waits")
	// ErrExists is the error for an output file that already exists.
	ErrExists = olaf.NewError(olaf.Usage, "exists")
)

// Error is a read error with the place in the capture where it occurred. It wraps the error that gives its kind, such
// as ErrFormat.
type Error struct {
	File   string
	Packet int // from 1; 0 for the file header
	Kind   error
	Advice string // details, or a remedy
}

// Error returns a line with the file, the packet, the kind of error and advice.
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

// Unwrap returns the error that gives the kind, such as ErrFormat.
func (e *Error) Unwrap() error { return e.Kind }

// Packet is one captured frame.
type Packet struct {
	Number int    // number in its file, from 1
	UnixNS int64  // time when its last bit was seen, in ns since 1970; in a twin's capture, ns since the twin was armed
	Data   []byte // without FCS, possibly cut; valid until the next packet is read
	Wire   int    // length on the wire in bytes
	// Interface is the index of the pcapng interface that the packet is written for, from 0. Readers leave it 0.
	Interface int
	// Comment is written with the packet to a pcapng file. Readers ignore comments.
	Comment string
}

// Tap returns the updates that were delivered since the last call, in order of time. The twin implements it.
type Tap interface {
	Drain(buf []olaf.Observation) []olaf.Observation
}
