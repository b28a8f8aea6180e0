package closedloop

import (
	"cmp"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// Delivery tracks which packets of a sum a job's server has received, and which gradients the sum may contain.
type Delivery struct {
	At  olaf.Time          // time of the last complete sum
	Out []olaf.Contributor // gradients in flight, in the order of sending

	inside uint64 // contributors, as in its packets; always 0 with asynchronous workers
	seen   []uint32
	left   int
	newest int64 // ns, of the last complete sum
}

// NewDelivery returns a Delivery for sums that consist of the given number of packets.
func NewDelivery(packets int) Delivery {
	return Delivery{seen: make([]uint32, packets), left: packets, newest: -1}
}

// AddPacket adds a packet at the server, and reports whether the server now has all packets of its sum.
func (d *Delivery) AddPacket(now olaf.Time, p *program.Packet, sync bool) bool {
	if sync && !d.startsSum(p) {
		return false
	}
	at := &d.seen[p.Seg%uint64(len(d.seen))]
	if *at++; *at > 1 && sync {
		return false
	}
	if *at == 1 {
		d.left--
	}
	if d.left > 0 {
		return false
	}
	for i := range d.seen {
		if d.seen[i]--; d.seen[i] == 0 {
			d.left++
		}
	}
	d.newest, d.At = int64(p.NewestNS), now
	return true
}

// startsSum reports whether a packet belongs to the current sum or starts a later sum. It returns false if the server
// repeats a packet of an earlier sum.
func (d *Delivery) startsSum(p *program.Packet) bool {
	if int64(p.NewestNS) <= d.newest {
		return false
	}
	if p.Inside != d.inside {
		d.inside, d.left = p.Inside, len(d.seen)
		clear(d.seen)
	}
	return true
}

// TakeGradients removes the gradients in a packet from the gradients in flight. It returns the newest of the removed
// gradients and their number. It appends them to inside, in the order of generation, only if their identities are
// certain, for example because the packet contains all gradients in flight. Otherwise it removes the gradients sent
// just before the newest, because a switch adds gradients in the order of their arrival.
func (d *Delivery) TakeGradients(inside []olaf.Contributor, p *program.Packet) (_ []olaf.Contributor,
	newest olaf.Contributor, n int) {
	if n = min(int(p.Vectors), len(d.Out)); n == 0 {
		return inside, newest, 0
	}
	at := max(slices.IndexFunc(d.Out, func(k olaf.Contributor) bool { return k.GenNS == p.NewestNS }), 0)
	newest = d.Out[at]
	from := max(at+1-n, 0)
	if n == 1 || n == len(d.Out) {
		inside = append(inside, d.Out[from:from+n]...)
		slices.SortStableFunc(inside, func(a, b olaf.Contributor) int { return cmp.Compare(a.GenNS, b.GenNS) })
	}
	d.Out = slices.Delete(d.Out, from, from+n)
	return inside, newest, n
}
