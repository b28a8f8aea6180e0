package capture

// maxHeld is the maximum number of packets in an Order.
const maxHeld = 1 << 16

// Order sorts packets by their timestamps. An interface with several receive queues, or a host with several processors,
// delivers packets slightly out of order. An Order keeps each packet until another packet arrives that is WindowNS
// younger. All fields except WindowNS start at zero.
type Order struct {
	WindowNS int64

	waiting []Packet // oldest first, from head on
	head    int
	newest  int64
	free    [][]byte
	out     []byte // data of the packet that was returned last
}

// Push adds a copy of p to the order.
func (o *Order) Push(p *Packet) {
	kept := *p
	kept.Data = append(o.takeBuffer(), p.Data...)
	o.newest = max(o.newest, p.UnixNS)
	if o.head > len(o.waiting)/2 && len(o.waiting) == cap(o.waiting) { // move the packets down instead of growing the buffer
		o.waiting, o.head = o.waiting[:copy(o.waiting, o.waiting[o.head:])], 0
	}
	o.waiting = append(o.waiting, kept)
	for i := len(o.waiting) - 1; i > o.head && o.waiting[i-1].UnixNS > kept.UnixNS; i-- {
		o.waiting[i-1], o.waiting[i] = o.waiting[i], o.waiting[i-1]
	}
}

func (o *Order) takeBuffer() []byte {
	if n := len(o.free); n > 0 {
		b := o.free[n-1]
		o.free = o.free[:n-1]
		return b[:0]
	}
	return nil
}

// Pop returns the oldest packet if no older packet can arrive, or unconditionally if all is set. The packet is valid
// until the next Pop.
func (o *Order) Pop(p *Packet, all bool) bool {
	if o.out != nil {
		o.free = append(o.free, o.out)
		o.out = nil
	}
	n := len(o.waiting) - o.head
	if n == 0 || !all && n < maxHeld && o.newest-o.waiting[o.head].UnixNS < o.WindowNS {
		return false
	}
	*p = o.waiting[o.head]
	o.out = p.Data
	if o.head++; o.head == len(o.waiting) {
		o.waiting, o.head = o.waiting[:0], 0
	}
	return true
}
