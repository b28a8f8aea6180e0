package capture

import (
	"errors"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture/ages"
)

// Recording receives packets from a live source, sorts them by timestamp, counts them and, if there is a file, writes
// them to it. It has no clock. The caller decides when to take packets and when no older packet can arrive.
type Recording struct {
	Source Source
	Order  Order
	File   *File // may be nil

	Account Account
	// Ages, if not nil, receives the updates. Its clock begins with the first of them.
	Ages  *ages.Meter
	Taken int // number of packets taken from the source, including those still waiting in Order
	// FirstNS and LastNS are the stamps of the oldest and newest packet written so far, ns since 1970; 0 if there is
	// none.
	FirstNS, LastNS int64
	// Unwritten is the reason why the file cannot be written, set by a failed Take or Flush. The recording then
	// stops.
	Unwritten error

	measuring bool
	origin    int64 // start of the ages' clock
}

// Take takes at most n packets from the source and reports whether the source is idle. If the error does not come from
// the source, it is the one in r.Unwritten.
func (r *Recording) Take(n int) (idle bool, err error) {
	var p Packet
	for range n {
		err := r.Source.Next(&p)
		if errors.Is(err, ErrIdle) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		r.Taken++
		r.Order.Push(&p)
		if err := r.passOn(false); err != nil {
			return false, err
		}
	}
	return false, nil
}

// Flush counts and writes all waiting packets. Older packets that arrive later are out of order.
func (r *Recording) Flush() error { return r.passOn(true) }

// passOn counts and writes the packets whose place in the order is final or, if all is set, all packets.
func (r *Recording) passOn(all bool) error {
	var p Packet
	for r.Unwritten == nil && r.Order.Pop(&p, all) {
		if r.LastNS == 0 {
			r.FirstNS = p.UnixNS
		}
		r.LastNS = p.UnixNS
		f, err := r.Account.Packet(&p) // faults are counted in the account
		if err == nil && r.Ages != nil && f.Kind() == olaf.KindUpdate {
			r.measure(p.UnixNS, f.Update())
		}
		if r.File != nil {
			r.Unwritten = r.File.WritePacket(&p)
		}
	}
	return r.Unwritten
}

// measure records the age of a received update.
func (r *Recording) measure(unixNS int64, u olaf.Update) {
	if !r.measuring {
		r.measuring, r.origin = true, unixNS
		r.Ages.Start(unixNS, false)
	}
	at := olaf.Time(unixNS-r.origin) * olaf.Time(olaf.Nanosecond)
	r.Ages.Arrive(at, &u)
	r.Ages.Deliver(&olaf.Observation{At: at, Queued: -1, Update: u})
}
