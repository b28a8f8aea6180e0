package endpoint

import (
	"cmp"
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/iswitch"
)

// Recovery is the way in which an iSwitch worker reacts to a missing packet. docs/papers/iswitch.md lists the sources.
type Recovery string

const (
	RecoverHelp  Recovery = "help"   // asks the others, then all workers resend
	RecoverForce Recovery = "fbcast" // uses the values that have arrived, or zeros
	RecoverNone  Recovery = "none"   // waits forever
)

// defaultTimeout is the default time for which a worker waits for the next packet of a sum before it reacts.
const defaultTimeout = olaf.Millisecond

// ISwitch configures an iSwitch worker.
type ISwitch struct {
	Profile  string // profile in package iswitch; default the published one
	Recovery Recovery
	Timeout  olaf.Duration // default defaultTimeout
	// Ahead is the maximum distance between a sent packet and the first missing one. It is the length of the switch's
	// table, which Wrap makes reusable for longer vectors. 0 means unlimited.
	Ahead int
	Wrap  bool
}

func (o *ISwitch) check(c *Config) error {
	o.Recovery = cmp.Or(o.Recovery, RecoverHelp)
	o.Profile = cmp.Or(o.Profile, iswitch.Published)
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	o.Ahead = cmp.Or(o.Ahead, c.Packets())
	switch {
	case o.Recovery != RecoverHelp && o.Recovery != RecoverForce && o.Recovery != RecoverNone:
		return fmt.Errorf("%w: no recovery is called %q; there are %s, %s, %s", ErrConfig, o.Recovery, RecoverHelp, RecoverForce, RecoverNone)
	case o.Profile != iswitch.Published && o.Profile != iswitch.Exactly:
		return fmt.Errorf("%w: iSwitch has no profile %q; there are %s, %s", ErrConfig, o.Profile, iswitch.Published, iswitch.Exactly)
	case o.Timeout < 0:
		return badTimeout(o.Timeout)
	case o.Ahead < 1:
		return fmt.Errorf("%w: %d packets ahead", ErrConfig, o.Ahead)
	case o.Ahead < c.Packets() && !o.Wrap:
		return fmt.Errorf("%w: a vector of %d packets in a table of %d segments; use more (--slots), or let it be "+
			"used again from its start (--wrap)", ErrConfig, c.Packets(), o.Ahead)
	case o.Ahead < c.Packets() && o.Profile == iswitch.Exactly:
		return fmt.Errorf("%w: a vector of %d packets in a table of %d segments: rounds of %s can't tell the uses "+
			"of a segment apart; build more, or take %s",
			ErrConfig, c.Packets(), o.Ahead, iswitch.Exactly, iswitch.Published)
	}
	return nil
}

// syncWorker sends a gradient, waits for the sum and applies it (paper, §3.2). It keeps the previous round for workers
// that still need parts of it.
type syncWorker struct {
	rounds
	isw   ISwitch
	exact bool

	sent int // number of packets sent in this round
	sum  gather
	// last is the previous round, kept for workers that still need parts of it.
	last gather

	left     olaf.Time // when the last packet will have left
	deadline olaf.Time
	stage    int            // stage of the recovery since the last packet
	out      program.Packet // a field to avoid allocations
}

// NewISwitchSync returns a worker for synchronous iSwitch. The error matches ErrConfig.
func NewISwitchSync(cfg Config, isw ISwitch, host Host) (Endpoint, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if err := isw.check(&cfg); err != nil {
		return nil, err
	}
	return &syncWorker{
		rounds: rounds{cfg: cfg, host: host}, isw: isw, exact: isw.Profile == iswitch.Exactly,
		sum: newGather(cfg.Layout), last: newGather(cfg.Layout), deadline: Never,
	}, nil
}

func (w *syncWorker) OnComputed(now olaf.Time, values []uint32) {
	w.begin(now, values)
	w.sum.fit(w.cfg.Layout)
	w.send()
	w.progress(now)
}

// send sends packets. It stops when the number of packets since the first missing one reaches the length of the
// switch's table.
func (w *syncWorker) send() {
	for n := w.cfg.Packets(); w.sent < n && w.sent < w.sum.low+w.isw.Ahead; w.sent++ {
		if w.cfg.opens(w.sent) {
			w.host.Message()
		}
		w.data(w.sent)
		w.tally[sentPackets]++
	}
}

// data sends packet i of the gradient in this round.
func (w *syncWorker) data(i int) {
	w.out = program.Packet{
		Kind: program.Data, Job: w.cfg.Job, Worker: w.cfg.Worker, Seg: uint64(i), Count: 1, Lanes: uint16(w.cfg.Lanes(i)),
		Trace: w.contribution(),
	}
	if w.exact {
		w.out.Round = uint16(w.round)
	}
	w.left = w.host.Send(Network, &w.out, w.cfg.cut(w.values, i))
}

func (w *syncWorker) Receive(now olaf.Time, p *program.Packet, lanes []uint32) {
	switch {
	case w.over && p.Kind != program.Control:
		w.tally[repeated]++
	case p.Kind == program.Result:
		w.result(now, p, lanes)
	case p.Kind == program.Control && p.Action == iswitch.Help:
		w.help(p)
	case p.Kind == program.Control && p.Action == iswitch.Reset:
		w.resendPacket(p)
	}
}

// result handles a packet of a sum, from the switch or from a worker.
func (w *syncWorker) result(now olaf.Time, p *program.Packet, lanes []uint32) {
	i := packet(p)
	if w.busy || i >= w.sent || w.exact && p.Round != uint16(w.round) || !w.sum.take(i, &p.Trace, lanes) {
		w.tally[repeated]++
		return
	}
	w.took(p)
	if i == 0 {
		w.checkFirst(w.cfg.cut(w.sum.values, 0))
	}
	w.advance()
	if !w.busy {
		w.progress(now)
	}
}

// advance applies the sum if it is complete, or else sends more packets.
func (w *syncWorker) advance() {
	if !w.sum.isWhole() {
		w.send()
		return
	}
	w.deadline = Never
	w.finish(&w.sum.traces[0], w.sum.mixed, w.sum.values)
}

func (w *syncWorker) OnApplied(olaf.Time) {
	w.sum, w.last = w.last, w.sum
	w.sum.restart()
	w.sent = 0
	w.endRound()
}

// patience is the number of timeouts for which a worker waits for the first packet of a sum. During this time, another
// worker is probably still computing, and recovery would not help.
const patience = 16

// progress restarts the timer, because packets are still arriving or leaving.
func (w *syncWorker) progress(now olaf.Time) {
	w.stage = 0
	w.alarm(now)
}

// alarm sets the timer. The timeout begins now or when the last packet leaves.
func (w *syncWorker) alarm(now olaf.Time) {
	if w.isw.Recovery == RecoverNone {
		return
	}
	timeouts := olaf.Duration(1)
	if w.sum.left == len(w.sum.have) && w.stage == 0 {
		timeouts = patience
	}
	w.deadline = max(now, w.left).Add(timeouts * w.isw.Timeout)
}

func (w *syncWorker) Next() olaf.Time { return w.deadline }

// Timer reacts to missing packets.
func (w *syncWorker) Timer(now olaf.Time) {
	w.stage++
	until := w.sent
	if w.sum.left == len(w.sum.have) {
		until = min(until, w.sum.low+1) // nothing has arrived: one packet is enough to detect a loss
	}
	for i := w.sum.low; i < until; i++ {
		if !w.sum.have[i] {
			w.miss(i)
		}
	}
	w.alarm(now)
	if w.sum.isWhole() || w.isw.Recovery == RecoverForce {
		w.advance()
	}
}

// miss performs the current stage of the recovery for the missing packet i.
func (w *syncWorker) miss(i int) {
	first := w.stage%2 == 1
	switch {
	case w.exact:
		w.data(i)
		w.tally[resent]++
		w.ask(Network, iswitch.Help, i)
	case w.isw.Recovery == RecoverForce && first:
		w.ask(Network, iswitch.ForceBroadcast, i)
	case w.isw.Recovery == RecoverForce:
		w.sum.zero(i)
		w.tally[zeroed]++
	case first:
		w.ask(Network, iswitch.Help, i)
	case w.cfg.Worker == 0:
		w.restart(i)
	}
}

// restart clears a segment in the switch and makes all workers send it again. Only the worker with the smallest address
// does this.
func (w *syncWorker) restart(i int) {
	w.ask(Network, iswitch.Reset, i)
	for other := 1; other < w.cfg.Workers; other++ {
		w.ask(Peer(other), iswitch.Reset, i)
	}
	w.data(i)
	w.tally[resent]++
}

func (w *syncWorker) ask(peer Peer, action uint8, i int) {
	w.tally[asked]++
	w.out = program.Packet{Kind: program.Control, Action: action, Job: w.cfg.Job, Worker: w.cfg.Worker, Seg: uint64(i)}
	if w.exact {
		w.out.Round = uint16(w.round)
	}
	w.host.Send(peer, &w.out, nil)
}

// help answers a worker that lacks a packet. It sends the sum if it has the sum. Otherwise, in the profile isw-x, it
// sends its own contribution again.
func (w *syncWorker) help(p *program.Packet) {
	i := packet(p)
	if int(p.Worker) >= w.cfg.Workers {
		return
	}
	before := w.exact && p.Round == uint16(w.round-1) || w.over // the sender's round is the previous one here
	switch {
	case before && w.round > 0 && i < len(w.last.have):
		w.answer(p, &w.last, i, w.round-1)
	case before || w.exact && p.Round != uint16(w.round) || w.busy && !w.sum.isWhole() || i >= w.sent:
	case w.sum.have[i]:
		w.answer(p, &w.sum, i, w.round)
	case w.exact:
		w.data(i)
		w.tally[resent]++
	}
}

// answer sends packet i of a sum directly to the worker that asked for it, bypassing the aggregators. In the profile
// isw-x, the contributors to the sum are known.
func (w *syncWorker) answer(p *program.Packet, from *gather, i int, round uint32) {
	w.tally[answered]++
	w.out = program.Packet{
		Kind: program.Result, Job: w.cfg.Job, Worker: w.cfg.Worker, Seg: uint64(i), Lanes: uint16(from.layout.Lanes(i)),
		Count: uint16(from.traces[i].Vectors), Trace: from.traces[i],
	}
	if w.exact {
		w.out.Round = uint16(round)
	}
	w.host.Send(Peer(p.Worker), &w.out, from.layout.cut(from.values, i))
}

// resendPacket resends a packet after a reset, unless its sum is known.
func (w *syncWorker) resendPacket(p *program.Packet) {
	i := packet(p)
	if w.busy || i >= w.sent || w.sum.have[i] {
		return
	}
	w.data(i)
	w.tally[resent]++
}
