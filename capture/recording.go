package capture

import (
	"errors"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture/ages"
)

// Recording takes packets from a live source, puts them into the order of their stamps, accounts for them, and writes them
// to a file if it has one. It knows no clock: whoever drives it says when to take and when nothing older can come.
type Recording struct {
	Source Source
	Order  Order
	File   *File // nil writes nothing

	Account Account
	// Ages takes the updates, if it is not nil: on a clock that begins with the first of them.
	Ages  *ages.Meter
	Taken int // packets taken from the source, those included whose place is not known yet
	// FirstNS and LastNS are the stamps of the oldest and newest packet that was passed on, ns since 1970; 0 without one.
	FirstNS, LastNS int64
	// Unwritten is why the file cannot be written, after the error of a Take or Flush; nothing more is passed on then.
	Unwritten error

	measuring bool
	origin    int64 // of the ages' clock
}

// Take takes at most n packets and says whether the source has no more for now. Every error but the source's own is
// Unwritten.
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

// Flush passes on what waits for older packets. Those that come later all the same are out of order.
func (r *Recording) Flush() error { return r.passOn(true) }

// passOn accounts for the packets whose place is known, or for all, and writes them.
func (r *Recording) passOn(all bool) error {
	var p Packet
	for r.Unwritten == nil && r.Order.Pop(&p, all) {
		if r.LastNS == 0 {
			r.FirstNS = p.UnixNS
		}
		r.LastNS = p.UnixNS
		f, err := r.Account.Packet(&p) // its fault is in the account
		if err == nil && r.Ages != nil && f.Kind() == olaf.KindUpdate {
			r.measure(p.UnixNS, f.Update())
		}
		if r.File != nil {
			r.Unwritten = r.File.WritePacket(&p)
		}
	}
	return r.Unwritten
}

// measure takes an update that was received.
func (r *Recording) measure(unixNS int64, u olaf.Update) {
	if !r.measuring {
		r.measuring, r.origin = true, unixNS
		r.Ages.Start(unixNS, false)
	}
	at := olaf.Time(unixNS-r.origin) * olaf.Time(olaf.Nanosecond)
	r.Ages.Arrive(at, &u)
	r.Ages.Deliver(&olaf.Observation{At: at, Queued: -1, Update: u})
}
