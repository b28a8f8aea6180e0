package capture

import (
	"errors"

	"github.com/olafctl/olaf"
)

// Losses counts the packets in a capture by kind. Packets is the sum of Updates, Acks, Bypassed and Malformed.
type Losses struct {
	Packets   int64 `json:"packets"`
	Updates   int64 `json:"updates"`
	Acks      int64 `json:"acks"`
	Bypassed  int64 `json:"bypassed"`  // not OLAF packets
	Malformed int64 `json:"malformed"` // OLAF, but malformed
	// Truncated counts packets that were captured only in part. Each is also counted in one of the classes above.
	Truncated int64 `json:"truncated"`
	// CaptureDropped is the number of packets that the capture lost, from a pcapng file's statistics or a live
	// capture's counters.
	CaptureDropped int64 `json:"capture_dropped"`
	// LinkErrors counts packets that a pcapng file marks as damaged on the wire. A network card would have dropped
	// them.
	LinkErrors int64 `json:"link_errors,omitempty"`
	// The next three fields follow each worker's sequence numbers, beginning with the oldest one seen. Missing counts
	// numbers that were skipped and never arrived, Misordered those that arrived after a newer one, and Duplicates
	// those that arrived twice. Behind a queue that merges or replaces, missing numbers are not losses, because a
	// merged update shows only its newest contributor.
	Missing    int64 `json:"missing"`
	Misordered int64 `json:"misordered"`
	Duplicates int64 `json:"duplicates"`
}

// Account counts the packets in a capture. The zero value is ready to use.
type Account struct {
	losses   Losses
	faults   [olaf.FrameFaults]int64
	workers  map[uint32]*sequence
	untagged []byte // the newest packet that had a VLAN tag, without the tag
}

// sequence tracks the sequence numbers from one worker. The bits in seen show which of the last 64 numbers up to newest
// arrived; bit 0 stands for newest.
type sequence struct {
	oldest, newest uint32
	seen           uint64
}

// Packet parses and counts a captured packet, from which it first removes one VLAN tag. The returned frame is valid
// until the next call or until the packet's data changes. The error is an olaf.FrameFault.
func (a *Account) Packet(p *Packet) (olaf.Frame, error) {
	if len(p.Data) < p.Wire {
		a.losses.Truncated++
	}
	var frame []byte
	var wire int
	frame, wire, a.untagged = removeTag(p, a.untagged)
	f, err := olaf.ParseTruncated(frame, wire)
	if err != nil {
		a.Fault(err)
		return f, err
	}
	if f.Kind() == olaf.KindAck {
		a.Ack()
	} else {
		u := f.Update()
		a.Update(&u)
	}
	return f, nil
}

// Update counts an update.
func (a *Account) Update(u *olaf.Update) {
	a.losses.Packets++
	a.losses.Updates++
	key := uint32(u.Cluster)<<16 | uint32(u.Worker)
	s := a.workers[key]
	if s == nil {
		if a.workers == nil {
			a.workers = make(map[uint32]*sequence)
		}
		a.workers[key] = &sequence{u.Seq, u.Seq, 1}
		return
	}
	a.followSequence(s, u.Seq)
}

func (a *Account) followSequence(s *sequence, seq uint32) {
	ahead := int64(int32(seq - s.newest))
	switch {
	case ahead > 0:
		a.losses.Missing += ahead - 1
		s.newest = seq
		s.seen = s.seen<<uint(ahead) | 1
	case ahead > -64 && s.seen>>uint(-ahead)&1 != 0:
		a.losses.Duplicates++
	default:
		a.losses.Misordered++
		if ahead > -64 { // an older number could be a duplicate
			s.seen |= 1 << uint(-ahead)
			a.fillGap(s, seq)
		}
	}
}

// fillGap counts a sequence number below the newest one that had not arrived before.
func (a *Account) fillGap(s *sequence, seq uint32) {
	if below := int64(int32(s.oldest - seq)); below > 0 {
		a.losses.Missing += below - 1
		s.oldest = seq
	} else {
		a.losses.Missing--
	}
}

// Ack counts an ACK.
func (a *Account) Ack() {
	a.losses.Packets++
	a.losses.Acks++
}

// Fault counts a frame that olaf.ParseFrame rejected with err.
func (a *Account) Fault(err error) {
	a.losses.Packets++
	if errors.Is(err, olaf.ErrMalformed) {
		a.losses.Malformed++
	} else {
		a.losses.Bypassed++
	}
	var fault olaf.FrameFault
	if errors.As(err, &fault) && fault < olaf.FrameFaults {
		a.faults[fault]++
	}
}

// Losses returns the counts so far.
func (a *Account) Losses() Losses { return a.losses }

// FaultCount contains a reason why frames were bypassed or malformed, and the number of such frames.
type FaultCount struct {
	Fault olaf.FrameFault
	Count int64
}

// Faults returns the reasons why frames were bypassed or malformed.
func (a *Account) Faults() []FaultCount {
	var list []FaultCount
	for f, n := range a.faults {
		if n > 0 {
			list = append(list, FaultCount{olaf.FrameFault(f), n})
		}
	}
	return list
}
