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

// Work is the computation of a host. Workers compute vectors, and hosts with weights apply them.
type Work interface {
	// Compute returns a worker's vector. It runs on a separate goroutine, one call at a time.
	Compute(ctx context.Context, vector uint32) Computed
	// Apply applies a sum or a part of one. A server replaces the sum's values with the answer, or with nil for no
	// answer.
	Apply(a *endpoint.Aggregate)
}

// FirstChecker is Work that checks the first packet of a sum before the sum is complete, and may end the context.
type FirstChecker interface {
	Work
	CheckFirst(values []uint32)
}

// LaterWork is Work in which applying an update takes time. During this time, the host can receive packets.
type LaterWork interface {
	Work
	// ApplyLater applies a sum as Apply does and calls done once, from any goroutine. a is valid until then.
	ApplyLater(a *endpoint.Aggregate, done func())
}

// Computed is a vector that was computed.
type Computed struct {
	Values []uint32      // nil if none are carried
	Reward int32         // in units of 1/256
	Due    time.Duration // due time since the start; a vector that is ready later counts as late
}

// Player runs an endpoint over a socket. Packets are sent and received in batches, and vectors are passed to the
// endpoint on an absolute schedule.
type Player struct {
	Codec Codec
	Work  Work
	// To returns the destination of a packet. From returns the socket's address to send from; a zero address lets the
	// kernel choose.
	To   func(to endpoint.Peer, p *program.Packet) netip.AddrPort
	From func(p *program.Packet) netip.Addr
	// Start is the origin of the run clock; default now.
	Start time.Time
	// Child is the host's number at its parent, for packets that carry it instead of its number in the job.
	Child *olaf.WorkerID
	// Above is the server that may take over the host. When it announces a changed tree, all packets go to it, with the
	// child number from the announcement. If Above is unset, no server may take over.
	Above   netip.AddrPort
	Mishaps Mishaps
	// Patience is the maximum time without packets while an endpoint waits; default DefaultPatience.
	Patience time.Duration
	// Waits means that the endpoint needs an answer whenever no vector is computed, also if it has no timer.
	Waits bool
	// Check, if not nil, is called with every arriving packet before the endpoint gets it. An error ends the player.
	Check func(p *program.Packet, lanes []uint32) error
	// Number is this host's number in notifications.
	Number olaf.WorkerID
	// Others lists the hosts that are notified when this host ends. OnLeave, if not nil, is called when such a
	// notification arrives. It gets the host's number and the number of sums that the host had. An error ends the player.
	Others  []endpoint.Peer
	OnLeave func(host olaf.WorkerID, sums uint32) error
	// Sent, if not nil, is called with every packet before it is sent.
	Sent func(p *program.Packet)
	// Handed, if not nil, is called with every vector that is handed over and the current time on the run clock.
	Handed func(vector uint32, c *Computed, at time.Duration)
}

// Mishaps simulates faults in every n-th packet of a vector. A value of 0 means no faults.
type Mishaps struct {
	Skip  int // n for packets that are not sent
	Twice int // n for packets that are sent twice
	Swap  int // n for packets that are swapped with the next one
}

func (m *Mishaps) check() error {
	if m.Skip < 0 || m.Skip == 1 || m.Twice < 0 || m.Swap < 0 || m.Swap == 1 {
		return fmt.Errorf("%w: leaving out every %d-th packet, %d-th twice, %d-th later; use 2 or more, or 0 for none",
			ErrConfig, m.Skip, m.Twice, m.Swap)
	}
	return nil
}

// Report is the result of running a player.
type Report struct {
	Counts map[string]uint64 `json:"counts"` // counters of the endpoint
	Traffic
	Skipped int            `json:"packets_skipped"`           // dropped on purpose
	Doubled int            `json:"packets_doubled,omitempty"` // sent twice on purpose
	LateNS  olaf.Quantiles `json:"late_ns"`                   // lateness of vectors
}

// carrier exchanges packets with the network in batches. It is either a UDP socket or a wire.
type carrier interface {
	wake()
	setDeadline(until time.Time) error
	// read receives packets until the deadline and returns their number.
	read(take func(p *program.Packet, lanes []uint32, from netip.AddrPort)) (int, error)
	write(p *program.Packet, lanes []uint32, reward int32, zeroNS uint64, from netip.Addr, to ...netip.AddrPort) error
	flush()
	counts() Traffic
	sendError() error // returns why the kernel refused the first unsent packet
}

// playing is a player that is running. It implements endpoint.Host.
type playing struct {
	*Player
	carrier
	ctx        context.Context
	end        endpoint.Endpoint
	report     Report
	zeroNS     uint64
	vector     uint32 // in computation, or the last one
	computing  bool
	computed   chan Computed
	finished   chan struct{} // updates of LaterWork
	ready      *Computed     // not yet due
	reward     int32
	data       int    // packets of vectors, and how many of them were skipped
	later      later  // to be swapped with the next packet
	applied    int    // applied sums not yet reported to the endpoint
	sums       uint32 // sums to apply so far
	incomplete bool   // another host has ended, so that only packets on the way can still arrive
	late       []time.Duration
	lastPacket time.Time
	reported   time.Time // when workers were last sent the numbers of missing workers
	lost       int       // number of times that the network lacked frames since then
	failed     error
	child      *olaf.WorkerID // number to send with; nil for its own
	moved      bool           // to Above
}

// Run runs the endpoint that make creates until the endpoint is done or the context ends, which is not an error. The
// error matches ErrStalled if the endpoint waits for an answer and receives nothing for too long. It matches ErrOffline
// if the kernel has no route.
func (p *Player) Run(ctx context.Context, conn *net.UDPConn, make func(endpoint.Host) (endpoint.Endpoint, error)) (*Report, error) {
	if err := p.Mishaps.check(); err != nil {
		return nil, err
	}
	return newPlaying(ctx, p, newSocket(conn, p.Codec)).play(make)
}

// RunFrames is like Run for hosts that exchange whole frames. It does not use Codec and From.
func (p *Player) RunFrames(ctx context.Context, conn FrameConn, codec FrameCodec,
	make func(endpoint.Host) (endpoint.Endpoint, error)) (*Report, error) {
	if err := p.Mishaps.check(); err != nil {
		return nil, err
	}
	k := newPlaying(ctx, p, nil)
	k.carrier = &wire{conn: conn, codec: codec, vector: &k.vector}
	return k.play(make)
}

// play runs the endpoint that make creates, as described for Run.
func (k *playing) play(make func(endpoint.Host) (endpoint.Endpoint, error)) (_ *Report, err error) {
	if k.end, err = make(k); err != nil {
		return nil, err
	}
	defer context.AfterFunc(k.ctx, k.wake)()
	err = k.run()
	k.report.Counts = map[string]uint64{}
	for i, n := range k.end.Counts() {
		k.report.Counts[endpoint.Describe().Counters[i].Name] = n
	}
	k.report.LateNS, k.report.Traffic = olaf.QuantilesOf(k.late), k.counts()
	return &k.report, err
}

func newPlaying(ctx context.Context, p *Player, c carrier) *playing {
	return &playing{Player: p, carrier: c, ctx: ctx, computed: make(chan Computed, 1),
		finished: make(chan struct{}, 1), child: p.Child}
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
	k.lastPacket = time.Now()
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

// giveUp sends the last messages. If the endpoint is not done, it notifies its peers that it leaves. It also notifies
// the hosts in Others.
func (k *playing) giveUp() {
	if l, ok := k.end.(endpoint.Leaver); ok && !k.end.Done() {
		l.Leave()
	}
	k.leave()
	p := program.Packet{Kind: program.Control, Action: xagg.Leave, Worker: k.Number, Value: uint64(k.sums)}
	for _, to := range k.Others {
		_ = k.write(&p, nil, 0, 0, netip.Addr{}, k.To(to, &p)) // the network may have gone
	}
}

// rest receives the packets that have already arrived when the context ends.
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

// leastWait is the shortest wait for packets. It is long enough for one read.
const leastWait = 5 * time.Millisecond

// turn receives packets once and performs the actions that are due.
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
	k.reportMissing(time.Now())
	now := k.now()
	if k.end.Next() <= now {
		k.end.Timer(now)
	}
	if k.end.Next() != endpoint.Never || k.Waits && !k.computing {
		return k.checkPatience(time.Now())
	}
	return nil
}

// reportMissing lets the workers that wait for a sum know whose vectors a server lacks, if nothing arrives for a while.
func (k *playing) reportMissing(now time.Time) {
	w, is := k.end.(endpoint.Waiter)
	if !is || now.Sub(k.lastPacket) < idle || now.Sub(k.reported) < idle {
		return
	}
	k.reported = now
	waiting, missing := w.Waiting()
	p := program.Packet{Kind: program.Control, Action: xagg.Awaits}
	for _, m := range missing {
		p.Bitmap |= 1 << m // 0 beyond 63
	}
	for _, to := range waiting {
		k.post(endpoint.Peer(to), &p, nil)
	}
}

// checkPatience returns an error if no progress was made for too long.
func (k *playing) checkPatience(now time.Time) error {
	patience := cmp.Or(k.Patience, DefaultPatience)
	if k.incomplete {
		patience = min(patience, DefaultPatience)
	}
	switch {
	case now.Sub(k.lastPacket) <= patience:
		return nil
	case k.lost > 0:
		return fmt.Errorf("%w: frames are not answered: the network asked for them again %d times, and made no progress for %v; "+
			"its program rejects them, or they are lost", ErrStalled, k.lost, patience)
	}
	return fmt.Errorf("%w: no answer for %v", ErrStalled, patience)
}

func (k *playing) now() olaf.Time { return olaf.Time(time.Since(k.Start)) * olaf.Time(olaf.Nanosecond) }

// idle is the maximum time between two checks.
const idle = time.Second

// nextDue returns the time at which the next action is due.
func (k *playing) nextDue() time.Time {
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

// listen waits for packets until the next action is due. It passes all packets to the endpoint.
func (k *playing) listen() error {
	if err := k.setDeadline(k.nextDue()); err != nil {
		return err
	}
	if k.takeComputed() || k.ctx.Err() != nil { // the wakeup came before the wait began
		return nil
	}
	_, err := k.read(time.Time{})
	k.takeComputed()
	return err
}

// read receives a batch of packets before a deadline. If deadline is the zero time, the previous deadline applies.
func (k *playing) read(deadline time.Time) (int, error) {
	if !deadline.IsZero() {
		if err := k.setDeadline(deadline); err != nil {
			return 0, err
		}
	}
	return k.carrier.read(k.receive)
}

func (k *playing) receive(p *program.Packet, lanes []uint32, from netip.AddrPort) {
	switch { // an aggregator that waits or lacks frames makes no progress
	case p.Kind != program.Control || p.Action != xagg.Awaits && p.Action != xagg.Lost:
		k.lastPacket, k.lost = time.Now(), 0
	case p.Action == xagg.Lost:
		k.lost++
	}
	if p.Kind == program.Control && p.Action == xagg.Leave {
		if k.OnLeave != nil {
			k.incomplete = true
			k.fail(k.OnLeave(p.Worker, uint32(p.Value)))
		}
		return
	}
	k.follow(p, from)
	if k.Check != nil {
		k.fail(k.Check(p, lanes))
	}
	k.end.Receive(k.now(), p, lanes)
	k.settle()
}

// follow switches to the server above if that server announces the change.
func (k *playing) follow(p *program.Packet, from netip.AddrPort) {
	if p.Kind == program.Control && p.Action == xagg.Renew && from == k.Above {
		child := p.Worker
		k.child, k.moved = &child, true
	}
}

// settle reports to the endpoint the sums that have been applied.
func (k *playing) settle() {
	for k.applied > 0 {
		k.applied--
		k.end.OnApplied(k.now())
	}
}

// takeComputed reports whether a vector has been computed or an update has been applied.
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

// hand passes to the endpoint the vector that is due.
func (k *playing) hand() {
	c := k.ready
	at := time.Since(k.Start)
	if c == nil || c.Due > at || k.ctx.Err() != nil { // a cancelled computation returns no vector
		return
	}
	k.ready, k.reward, k.computing = nil, c.Reward, false
	if k.end.Next() == endpoint.Never { // during the computation there was nothing to receive
		k.lastPacket = time.Now()
	}
	if c.Due > 0 { // the vector comes from a schedule
		k.late = append(k.late, at-c.Due)
	}
	if k.Handed != nil {
		k.Handed(k.vector, c, at)
	}
	k.end.OnComputed(k.now(), c.Values)
	k.settle()
}

// Compute starts computing a vector.
func (k *playing) Compute(vector uint32) {
	k.vector, k.computing = vector, true
	go func() {
		k.computed <- k.Work.Compute(k.ctx, vector)
		k.wake()
	}()
}

// Message does nothing, because messages have no simulated cost in a real process.
func (k *playing) Message() {}

// Apply applies a sum immediately or later. The endpoint is then notified by OnApplied.
func (k *playing) Apply(a *endpoint.Aggregate) {
	k.sums++
	if later, ok := k.Work.(LaterWork); ok {
		later.ApplyLater(a, func() {
			k.finished <- struct{}{} // does not block: the endpoint applies one sum at a time
			k.wake()
		})
		return
	}
	k.Work.Apply(a)
	k.applied++
}

// CheckFirst implements endpoint.Checker.
func (k *playing) CheckFirst(values []uint32) {
	if c, is := k.Work.(FirstChecker); is {
		c.CheckFirst(values)
	}
}

// Send adds a packet to the next batch.
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

// post adds a packet to the batch without simulating a fault.
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

// later is a packet that is sent after the next packet, to simulate reordering.
type later struct {
	waits bool
	to    endpoint.Peer
	p     program.Packet
	lanes []uint32
}

// mishap sends a packet of a vector with a simulated fault if one is due.
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

// release sends the packet that was waiting for the next packet.
func (k *playing) release() {
	if k.later.waits {
		k.later.waits = false
		k.post(k.later.to, &k.later.p, k.later.lanes)
	}
}

// leave sends the batch. If the kernel rejects packets, the host fails.
func (k *playing) leave() {
	k.release()
	k.flush()
	k.fail(k.sendError())
}

// fail stores the first error.
func (k *playing) fail(err error) {
	k.failed = cmp.Or(k.failed, err)
}
