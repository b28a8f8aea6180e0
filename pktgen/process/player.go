package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"golang.org/x/net/ipv4"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// Work is what a host does beside talking: a worker computes, whoever has weights applies.
type Work interface {
	// Compute makes a worker's vector. It runs on a goroutine of its own, one at a time.
	Compute(ctx context.Context, vector uint32) Computed
	// Apply takes a sum in, or a part of one. A server leaves in it what it answers with, nil for nothing.
	Apply(a *endpoint.Aggregate)
}

// Computed is a vector.
type Computed struct {
	Values []uint32      // nil where none are carried
	Reward int32         // in 1/256
	Due    time.Duration // after the start, when it is handed over; one that is ready later is late
}

// Codec is how packets are in datagrams.
type Codec interface {
	// Encode writes a datagram into dst, which is long enough, and says which part of dst it is. generated is when the run clock of
	// the packet's times was 0, on the clock of everybody.
	Encode(dst []byte, p *program.Packet, lanes []uint32, reward int32, generated uint64) ([]byte, error)
	// Decode reads one that b holds from Offset on. lanes is overwritten by the next one; ok is false for what is no packet of its.
	Decode(b []byte, p *program.Packet) (lanes []uint32, ok bool)
	// Offset is how much room a datagram needs in front of it.
	Offset() int
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
	// Handed hears of every vector that is handed over, at what time of the run clock; nil for nobody.
	Handed func(vector uint32, c *Computed, at time.Duration)
}

// Report is what a player did.
type Report struct {
	Counts       map[string]uint64 `json:"counts"` // the endpoint's
	Packets      int               `json:"packets_out"`
	Calls        int               `json:"send_calls"`
	Received     int               `json:"packets_in"`
	ReceiveCalls int               `json:"receive_calls"`
	Strange      int               `json:"packets_strange"` // that no codec knows
	LateNS       olaf.Lateness     `json:"late_ns"`         // of vectors
}

// batch is how many packets a system call takes.
const batch = 64

// datagram is the longest datagram with what stands in front of it.
const datagram = 9216

// playing is a player at work; it is the endpoint's host.
type playing struct {
	*Player
	ctx       context.Context
	conn      *net.UDPConn
	packets   *ipv4.PacketConn
	end       endpoint.Endpoint
	report    Report
	zeroNS    uint64
	vector    uint32 // that is computed, or was last
	computed  chan Computed
	ready     *Computed // waits until it is due
	reward    int32
	applied   int // sums whose end the endpoint has not heard of
	out, in   []ipv4.Message
	buffers   [][]byte // of what leaves
	rooms     [][]byte // of what comes, with what stands in front
	addresses map[netip.AddrPort]*net.UDPAddr
	sources   map[netip.Addr][]byte
	late      []time.Duration
	heard     time.Time
	failed    error
}

// Run plays until the endpoint is done or the context ends, which is no error. make is given the host for which the endpoint is
// made. The error matches ErrStalled where an endpoint that waits for an answer hears nothing for too long.
func (p *Player) Run(ctx context.Context, conn *net.UDPConn, make func(endpoint.Host) (endpoint.Endpoint, error)) (*Report, error) {
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
	k.report.LateNS = lateness(k.late)
	return &k.report, err
}

func newPlaying(ctx context.Context, p *Player, conn *net.UDPConn) *playing {
	k := &playing{Player: p, ctx: ctx, conn: conn, packets: ipv4.NewPacketConn(conn), computed: make(chan Computed, 1),
		addresses: map[netip.AddrPort]*net.UDPAddr{}, sources: map[netip.Addr][]byte{}, in: make([]ipv4.Message, batch)}
	for i := range k.in {
		k.rooms = append(k.rooms, make([]byte, datagram))
		k.in[i].Buffers = [][]byte{k.rooms[i][p.Codec.Offset():]}
	}
	return k
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
			return err
		}
	}
	if err := k.rest(); err != nil {
		return err
	}
	k.flush()
	return k.failed
}

// rest takes what has arrived already when the context ends.
func (k *playing) rest() error {
	for k.ctx.Err() != nil && k.failed == nil {
		n, err := k.read(time.Now().Add(leastWait))
		if n == 0 || err != nil {
			return err
		}
		k.flush()
	}
	return nil
}

// leastWait is long enough for a read to look once.
const leastWait = 5 * time.Millisecond

// turn is one round of listening and doing what is due.
func (k *playing) turn() error {
	k.flush()
	if err := k.listen(); err != nil {
		return err
	}
	k.hand()
	now := k.now()
	if k.end.Next() <= now {
		k.end.Timer(now)
		if time.Since(k.heard) > patience {
			return fmt.Errorf("%w: no answer for %v", ErrStalled, patience)
		}
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

// wake ends a wait for packets.
func (k *playing) wake() { _ = k.conn.SetReadDeadline(time.Unix(1, 0)) }

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
	n, err := k.packets.ReadBatch(k.in, 0)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return 0, err
	}
	n = max(n, 0)
	if n > 0 {
		k.report.ReceiveCalls++
		k.heard = time.Now()
	}
	for i := range n {
		k.receive(k.rooms[i][:k.Codec.Offset()+k.in[i].N])
	}
	return n, nil
}

func (k *playing) receive(b []byte) {
	var p program.Packet
	lanes, ok := k.Codec.Decode(b, &p)
	if !ok {
		k.report.Strange++
		return
	}
	k.report.Received++
	k.end.Receive(k.now(), &p, lanes)
	k.settle()
}

// settle tells the endpoint of sums that were applied.
func (k *playing) settle() {
	for k.applied > 0 {
		k.applied--
		k.end.Applied(k.now())
	}
}

// takeComputed says whether a vector has become ready.
func (k *playing) takeComputed() bool {
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
	if c == nil || c.Due > at {
		return
	}
	k.ready, k.reward = nil, c.Reward
	k.late = append(k.late, at-c.Due)
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

// Apply applies a sum at once, and tells the endpoint when it has returned.
func (k *playing) Apply(a *endpoint.Aggregate) {
	k.Work.Apply(a)
	k.applied++
}

// Send puts a packet into the batch that leaves next.
func (k *playing) Send(to endpoint.Peer, p *program.Packet, lanes []uint32) olaf.Time {
	if len(k.out) == batch {
		k.flush()
	}
	n := len(k.out)
	if n == len(k.buffers) {
		k.buffers = append(k.buffers, make([]byte, datagram))
	}
	b, err := k.Codec.Encode(k.buffers[n], p, lanes, k.reward, k.zeroNS)
	if err != nil {
		k.fail(err)
		return 0
	}
	m := ipv4.Message{Buffers: [][]byte{b}, Addr: k.address(k.To(to, p))}
	if k.From != nil {
		m.OOB = k.source(k.From(p))
	}
	k.out = append(k.out, m)
	return 0
}

func (k *playing) fail(err error) {
	if k.failed == nil {
		k.failed = err
	}
}

func (k *playing) address(to netip.AddrPort) *net.UDPAddr {
	a := k.addresses[to]
	if a == nil {
		a = net.UDPAddrFromAddrPort(to)
		k.addresses[to] = a
	}
	return a
}

// source is what tells the kernel which address a datagram leaves from.
func (k *playing) source(from netip.Addr) []byte {
	if !from.IsValid() {
		return nil
	}
	b := k.sources[from]
	if b == nil {
		b = (&ipv4.ControlMessage{Src: from.AsSlice()}).Marshal()
		k.sources[from] = b
	}
	return b
}

// flush sends the batch.
func (k *playing) flush() {
	for left := k.out; len(left) > 0; {
		n, err := k.packets.WriteBatch(left, 0)
		if err != nil {
			k.fail(err)
			break
		}
		k.report.Calls++
		k.report.Packets += n
		left = left[n:]
	}
	k.out = k.out[:0]
}

// lateness sorts.
func lateness(late []time.Duration) (l olaf.Lateness) {
	if len(late) == 0 {
		return l
	}
	slices.Sort(late)
	at := func(share float64) int64 { return int64(late[min(int(share*float64(len(late))), len(late)-1)]) }
	return olaf.Lateness{P50: at(0.5), P99: at(0.99), Max: at(1)}
}
