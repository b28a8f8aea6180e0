package process

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/xagg"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// Work is what a host does beside talking: a worker computes, whoever has weights applies.
type Work interface {
	// Compute makes a worker's vector. It runs on a goroutine of its own, one at a time.
	Compute(ctx context.Context, vector uint32) Computed
	// Apply takes a sum in, or a part of one. A server leaves in it what it answers with, nil for nothing.
	Apply(a *endpoint.Aggregate)
}

// LaterWork is Work whose updates take time that the host must not wait for, so that it hears packets meanwhile.
type LaterWork interface {
	Work
	// ApplyLater takes a sum in as Apply does, and calls done once, from any goroutine, when it has. a is valid until then.
	ApplyLater(a *endpoint.Aggregate, done func())
}

// Computed is a vector.
type Computed struct {
	Values []uint32      // nil where none are carried
	Reward int32         // in 1/256
	Due    time.Duration // after the start, when it is handed over; one that is ready later is late
}

// Player drives an endpoint over a socket: packets leave and arrive in batches of one system call, vectors are handed over by an
// absolute schedule.
type Player struct {
	Codec Codec
	Work  Work
	// To is where a packet goes, From which of the socket's addresses it leaves from; the zero address leaves that to the kernel.
	To   func(to endpoint.Peer, p *program.Packet) netip.AddrPort
	From func(p *program.Packet) netip.Addr
	// Start is when the run clock is 0; the zero time is now.
	Start time.Time
	// Child is what the host is to its parent, where packets say that instead of its number in the job.
	Child *olaf.WorkerID
	// Above is the server that may take the host over: when it says that the tree was changed, all packets go there from then on, from the child
	// that it names. Nobody's may, where it is left out.
	Above   netip.AddrPort
	Mishaps Mishaps
	// Patience is how long an endpoint that waits may hear nothing; 0 is DefaultPatience.
	Patience time.Duration
	// Check sees every packet that arrives before the endpoint does. An error ends the player; nil checks nothing.
	Check func(p *program.Packet, lanes []uint32) error
	// Sent hears of every packet before it leaves; nil for nobody.
	Sent func(p *program.Packet)
	// Handed hears of every vector that is handed over, at what time of the run clock; nil for nobody.
	Handed func(vector uint32, c *Computed, at time.Duration)
}

// Mishaps are what happens to every so-many-th packet of vectors, as if on its way; 0 is to none.
type Mishaps struct {
	Skip  int // it is left out
	Twice int // it is sent twice
	Swap  int // it changes places with the next
}

func (m *Mishaps) check() error {
	if m.Skip < 0 || m.Skip == 1 || m.Twice < 0 || m.Swap < 0 || m.Swap == 1 {
		return fmt.Errorf("%w: leaving out every %d-th packet, %d-th twice, %d-th later; use 2 or more, or 0 for none", ErrConfig, m.Skip, m.Twice, m.Swap)
	}
	return nil
}

// Report is what a player did.
type Report struct {
	Counts map[string]uint64 `json:"counts"` // the endpoint's
	Traffic
	Skipped int            `json:"packets_skipped"`           // left out, as if they were lost
	Doubled int            `json:"packets_doubled,omitempty"` // sent twice
	LateNS  olaf.Quantiles `json:"late_ns"`                   // of vectors
}

// playing is a player at work; it is the endpoint's host.
type playing struct {
	*Player
	*socket
	ctx      context.Context
	end      endpoint.Endpoint
	report   Report
	zeroNS   uint64
	vector   uint32 // that is computed, or was last
	computed chan Computed
	finished chan struct{} // updates of LaterWork
	ready    *Computed     // waits until it is due
	reward   int32
	data     int   // packets of vectors, those among them that were left out
	later    later // changes places with the next packet
	applied  int   // sums whose end the endpoint has not heard of
	late     []time.Duration
	heard    time.Time
	failed   error
	child    *olaf.WorkerID // as which it sends; nil as itself
	moved    bool           // to Above
}

// Run plays until the endpoint is done or the context ends, which is no error. make is given the host for which the endpoint is
// made. The error matches ErrStalled where an endpoint that waits for an answer hears nothing for too long, and ErrOffline where the
// kernel knows no way for what it sends.
func (p *Player) Run(ctx context.Context, conn *net.UDPConn, make func(endpoint.Host) (endpoint.Endpoint, error)) (*Report, error) {
	if err := p.Mishaps.check(); err != nil {
		return nil, err
	}
	k := newPlaying(ctx, p, conn)
	var err error
	if k.end, err = make(k); err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, k.wake)()
	err = k.run()
	k.report.Counts = map[string]uint64{}
	for i, n := range k.end.Counts() {
		k.report.Counts[endpoint.Describe().Counters[i].Name] = n
	}
	k.report.LateNS, k.report.Traffic = olaf.QuantilesOf(k.late), k.traffic
	return &k.report, err
}

func newPlaying(ctx context.Context, p *Player, conn *net.UDPConn) *playing {
	return &playing{Player: p, socket: newSocket(conn, p.Codec), ctx: ctx, computed: make(chan Computed, 1), finished: make(chan struct{}, 1), child: p.Child}
}

func (k *playing) run() error {
	if k.Start.IsZero() {
		k.Start = time.Now()
	}
	select {
	case <-time.After(time.Until(k.Start)):
	case <-k.ctx.Done():
		return nil
	}
	k.zeroNS = uint64(k.Start.UnixNano())
	k.heard = time.Now()
	k.end.Start(k.now())
	for !k.end.Done() && k.failed == nil && k.ctx.Err() == nil {
		if err := k.turn(); err != nil {
			k.giveUp()
			return err
		}
	}
	if err := k.rest(); err != nil {
		return err
	}
	k.giveUp()
	return k.failed
}

// giveUp sends what is left to be said, by an endpoint that is not done that it goes.
func (k *playing) giveUp() {
	if l, ok := k.end.(endpoint.Leaver); ok && !k.end.Done() {
		l.Leave()
	}
	k.leave()
}

// rest takes what has arrived already when the context ends.
func (k *playing) rest() error {
	for k.ctx.Err() != nil && k.failed == nil {
		n, err := k.read(time.Now().Add(leastWait))
		if n == 0 || err != nil {
			return err
		}
		k.leave()
	}
	return nil
}

// leastWait is long enough for a read to look once.
const leastWait = 5 * time.Millisecond

// turn is one round of listening and doing what is due.
func (k *playing) turn() error {
	k.leave()
	if err := k.listen(); err != nil {
		return err
	}
	k.hand()
	if l, ok := k.end.(endpoint.Leaver); ok {
		switch {
		case l.Superseded():
			return fmt.Errorf("%w: another worker of it was started anew", ErrStalled)
		case l.Refused() != "":
			return fmt.Errorf("%w: %s", ErrRefused, l.Refused())
		}
	}
	now := k.now()
	if k.end.Next() <= now {
		k.end.Timer(now)
	}
	if patience := cmp.Or(k.Patience, DefaultPatience); k.end.Next() != endpoint.Never && time.Since(k.heard) > patience {
		return fmt.Errorf("%w: no answer for %v", ErrStalled, patience)
	}
	return nil
}

func (k *playing) now() olaf.Time { return olaf.Time(time.Since(k.Start)) * olaf.Time(olaf.Nanosecond) }

// idle is how long nobody needs to look, at most.
const idle = time.Second

// until is when something is to be done.
func (k *playing) until() time.Time {
	at := time.Now().Add(idle)
	if k.ready != nil {
		at = earlier(at, k.Start.Add(k.ready.Due))
	}
	if next := k.end.Next(); next != endpoint.Never {
		at = earlier(at, k.Start.Add(time.Duration(next.NS())))
	}
	return at
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// listen waits for packets until something else is to be done, and gives the endpoint all that are there.
func (k *playing) listen() error {
	if err := k.conn.SetReadDeadline(k.until()); err != nil {
		return err
	}
	if k.takeComputed() || k.ctx.Err() != nil { // that woke us before we slept
		return nil
	}
	_, err := k.read(time.Time{})
	k.takeComputed()
	return err
}

// read takes a batch of packets that are there before a deadline; the zero time keeps the one that is set.
func (k *playing) read(deadline time.Time) (int, error) {
	if !deadline.IsZero() {
		if err := k.conn.SetReadDeadline(deadline); err != nil {
			return 0, err
		}
	}
	n, err := k.socket.read(k.receive)
	if n > 0 {
		k.heard = time.Now()
	}
	return n, err
}

func (k *playing) receive(p *program.Packet, lanes []uint32, from netip.AddrPort) {
	k.follow(p, from)
	if k.Check != nil {
		k.fail(k.Check(p, lanes))
	}
	k.end.Receive(k.now(), p, lanes)
	k.settle()
}

// follow goes over to the server above, where that says so.
func (k *playing) follow(p *program.Packet, from netip.AddrPort) {
	if p.Kind == program.Control && p.Action == xagg.Renew && from == k.Above {
		child := p.Worker
		k.child, k.moved = &child, true
	}
}

// settle tells the endpoint of sums that were applied.
func (k *playing) settle() {
	for k.applied > 0 {
		k.applied--
		k.end.Applied(k.now())
	}
}

// takeComputed reports whether a vector has become ready or an update was applied.
func (k *playing) takeComputed() bool {
	select {
	case <-k.finished:
		k.applied++
		k.settle()
		return true
	default:
	}
	select {
	case c := <-k.computed:
		k.ready = &c
		return true
	default:
		return false
	}
}

// hand gives the endpoint the vector that is due.
func (k *playing) hand() {
	c := k.ready
	at := time.Since(k.Start)
	if c == nil || c.Due > at || k.ctx.Err() != nil { // a computation that was broken off has no vector
		return
	}
	k.ready, k.reward = nil, c.Reward
	if k.end.Next() == endpoint.Never { // while it computed there was nothing to hear
		k.heard = time.Now()
	}
	if c.Due > 0 { // of a schedule
		k.late = append(k.late, at-c.Due)
	}
	if k.Handed != nil {
		k.Handed(k.vector, c, at)
	}
	k.end.Computed(k.now(), c.Values)
	k.settle()
}

// Compute begins a vector.
func (k *playing) Compute(vector uint32) {
	k.vector = vector
	go func() {
		k.computed <- k.Work.Compute(k.ctx, vector)
		k.wake()
	}()
}

// Message has no cost of its own here.
func (k *playing) Message() {}

// Apply applies a sum, at once or later, and then calls the endpoint's Applied.
func (k *playing) Apply(a *endpoint.Aggregate) {
	if later, ok := k.Work.(LaterWork); ok {
		later.ApplyLater(a, func() {
			k.finished <- struct{}{} // there is room: the endpoint applies one sum at a time
			k.wake()
		})
		return
	}
	k.Work.Apply(a)
	k.applied++
}

// Send puts a packet into the batch that leaves next.
func (k *playing) Send(to endpoint.Peer, p *program.Packet, lanes []uint32) olaf.Time {
	if k.Sent != nil {
		k.Sent(p)
	}
	switch m := &k.Mishaps; {
	case p.Kind != program.Data || *m == (Mishaps{}):
		k.post(to, p, lanes)
	default:
		k.mishap(to, p, lanes)
	}
	return 0
}

// post puts a packet into the batch.
func (k *playing) post(to endpoint.Peer, p *program.Packet, lanes []uint32) {
	var from netip.Addr
	if k.From != nil {
		from = k.From(p)
	}
	at := k.To(to, p)
	if k.moved {
		at = k.Above
	}
	if k.child != nil {
		p.Worker = *k.child
	}
	k.fail(k.write(p, lanes, k.reward, k.zeroNS, from, at))
}

// later is a packet that waits for the next one to go first.
type later struct {
	waits bool
	to    endpoint.Peer
	p     program.Packet
	lanes []uint32
}

// mishap sends a packet of a vector as something happens to it.
func (k *playing) mishap(to endpoint.Peer, p *program.Packet, lanes []uint32) {
	k.data++
	every := func(n int) bool { return n > 0 && k.data%n == 0 }
	switch {
	case every(k.Mishaps.Skip):
		k.report.Skipped++
		return
	case every(k.Mishaps.Swap) && !k.later.waits:
		k.later = later{true, to, *p, append(k.later.lanes[:0], lanes...)}
		return
	}
	k.post(to, p, lanes)
	if every(k.Mishaps.Twice) {
		k.report.Doubled++
		k.post(to, p, lanes)
	}
	k.release()
}

// release sends what waits for another packet.
func (k *playing) release() {
	if k.later.waits {
		k.later.waits = false
		k.post(k.later.to, &k.later.p, k.later.lanes)
	}
}

// leave sends the batch. A host whose packets the kernel refuses is at its end.
func (k *playing) leave() {
	k.release()
	k.flush()
	k.fail(k.unsent)
}

// fail keeps the first error.
func (k *playing) fail(err error) {
	k.failed = cmp.Or(k.failed, err)
}
