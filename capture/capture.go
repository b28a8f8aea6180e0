// Package capture goes from packets to observations: it reads and writes pcap and pcapng files with nanosecond stamps,
// finds the OLAF frames among the packets, and accounts for what is lost, broken, foreign or out of order on the way.
// A Recording does so while packets arrive; package capture/live is where they arrive from.
//
// Package capture/replay pushes a capture through a queue.
package capture

import (
	"errors"
	"fmt"

	"github.com/olafctl/olaf"
)

// Kinds of capture errors; match them with errors.Is.
var (
	// ErrFormat says that a file is no pcap or pcapng file, or is damaged.
	ErrFormat = olaf.NewError(olaf.Usage, "not a readable capture")
	// ErrCut says that a file ends inside a packet.
	ErrCut = olaf.NewError(olaf.Usage, "the capture is cut")
	// ErrLink says that packets were not captured from an Ethernet interface.
	ErrLink = olaf.NewError(olaf.Usage, "not an Ethernet capture")
	// ErrTime says that a packet has no time, or one that the run clock cannot hold.
	ErrTime = olaf.NewError(olaf.Usage, "unusable packet time")
	// ErrTimeBackwards says that a packet is older than its predecessor.
	ErrTimeBackwards = olaf.NewError(olaf.Usage, "the capture goes backwards in time")
	// ErrNoOLAF says that no packet was an OLAF frame.
	ErrNoOLAF = olaf.NewError(olaf.Usage, "no OLAF frames")
	// ErrIdle says that a live capture has no packet at the moment: wait, and ask again.
	ErrIdle = errors.New("no packet waits")
	// ErrExists says that an output file is already there.
	ErrExists = olaf.NewError(olaf.Usage, "exists")
)

// Error says where reading went wrong. It wraps one of the kinds.
type Error struct {
	File   string
	Packet int // from 1; 0 is the file's header
	Kind   error
	Advice string // what is wrong in detail, or what to do
}

// Error is one line: file, packet, kind, advice.
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

// Unwrap is the kind.
func (e *Error) Unwrap() error { return e.Kind }

// Packet is one captured frame.
type Packet struct {
	Number int    // in its file, from 1
	UnixNS int64  // when its last bit was seen, ns since 1970; captures of a twin count from when it was armed
	Data   []byte // without FCS, as far as it was kept; valid until the next packet is read
	Wire   int    // its length on the wire
	// Interface is which of a pcapng file's the packet is written for, from 0; no reader here looks for one.
	Interface int
	// Comment goes with the packet into a pcapng file; no reader here looks for one.
	Comment string
}

// Tap hands out the updates that were delivered since the last call, in order of time. The twin is one.
type Tap interface {
	Drain(buf []olaf.Observation) []olaf.Observation
}
