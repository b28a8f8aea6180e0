package endpoint

import (
	"math"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/adder"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/atp"
)

// atpSum is the state of a server for one sequence number.
type atpSum struct {
	seq      uint64
	from     contributors
	missing  int
	index    uint32 // index of the aggregator that the workers chose
	done     bool
	marked   bool // a packet had a congestion mark
	collided bool
	proposes bool
	floats   bool   // floats were requested
	proposal uint32 // proposed aggregator
	lanes    uint16
	values   []uint32
	trace    program.Trace
}

// atpServer completes the sums that the switches did not complete. It adds packets with any set of contributors, but
// each contributor only once. It sends the sum to all workers as an acknowledgement.
type atpServer struct {
	tally
	cfg      Config
	atp      ATP
	host     Host
	propose  proposals
	sums     []atpSum // sums, by sequence number modulo the length
	complete uint64
	line     []uint64 // complete packets that will be acknowledged in a batch
	due      olaf.Time
	inside   []int
	out      program.Packet
}

// NewATPServer returns the server of a job. It does not use cfg.Worker. The error matches ErrConfig.
func NewATPServer(cfg Config, o ATP, host Host) (Endpoint, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if err := o.check(&cfg); err != nil {
		return nil, err
	}
	s := &atpServer{cfg: cfg, atp: o, host: host, due: Never}
	s.propose = newProposals(&s.atp, cfg.Job)
	// Even if the slowest worker lacks one acknowledgement, the others may have received a whole window of
	// acknowledgements, beginning with that one, and sent another window.
	s.sums = make([]atpSum, 2*o.Window)
	words := (cfg.Workers + 63) / 64
	all := make(contributors, words*len(s.sums))
	for i := range s.sums {
		s.sums[i].from = all[i*words:][:words]
	}
	return s, nil
}

func (s *atpServer) Start(olaf.Time)                {}
func (s *atpServer) OnComputed(olaf.Time, []uint32) {}
func (s *atpServer) OnApplied(olaf.Time)            {}

// sum returns the state for a sequence number, or nil if that sum ended long ago.
func (s *atpServer) sum(seq uint64) *atpSum {
	t := &s.sums[seq%uint64(len(s.sums))]
	switch {
	case t.seq > seq:
		return nil
	case t.seq < seq:
		*t = atpSum{seq: seq, from: t.from, values: t.values[:0]}
		s.restart(t)
	}
	return t
}

// restart clears a sum, so that it can be computed again.
func (s *atpServer) restart(t *atpSum) {
	clear(t.from)
	t.missing, t.trace, t.values = s.cfg.Workers, program.Trace{}, t.values[:0]
}

func (s *atpServer) Receive(now olaf.Time, p *program.Packet, lanes []uint32) {
	t := s.sum(p.Seg)
	if p.Kind != program.Data || t == nil || p.Seg == 0 {
		s.tally[repeated]++
		return
	}
	t.index, t.lanes = p.Index, p.Lanes
	t.marked = t.marked || p.Flags&program.ECN != 0
	t.collided = t.collided || p.Flags&program.Collision != 0
	floats := p.Flags&program.Overflow != 0
	switch {
	case t.done:
		s.tally[repeated]++
		s.tally[answered]++
		s.acknowledge(t)
	case floats && !t.floats:
		s.ask(t)
		s.add(now, t, p, lanes)
	case t.floats && !floats:
		s.tally[repeated]++
		s.ask(t)
	default:
		s.add(now, t, p, lanes)
	}
}

// add adds a packet to a sum, unless the sum already contains one of the packet's contributors.
func (s *atpServer) add(now olaf.Time, t *atpSum, p *program.Packet, lanes []uint32) {
	s.inside = s.atp.inside(s.inside, p, s.cfg.Workers)
	if len(s.inside) == s.cfg.Workers && t.missing < s.cfg.Workers {
		s.restart(t) // a complete packet replaces the parts
	}
	if slices.ContainsFunc(s.inside, t.from.has) {
		s.tally[repeated]++
		return
	}
	s.tally[received]++
	for _, w := range s.inside {
		t.from.add(w)
	}
	t.missing -= len(s.inside)
	t.trace.Add(&p.Trace)
	s.sumUp(t, lanes)
	if t.missing == 0 {
		s.completeSum(now, t)
	}
}

func (s *atpServer) sumUp(t *atpSum, lanes []uint32) {
	switch {
	case lanes == nil:
	case len(t.values) == 0:
		t.values = append(t.values, lanes...)
	case t.floats:
		adder.AddFloats(t.values, lanes)
	default:
		adder.AddSticky(t.values, lanes)
	}
}

// completeSum handles a complete sum. If an integer sum is saturated, the server requests its values again as floats.
func (s *atpServer) completeSum(now olaf.Time, t *atpSum) {
	if s.atp.Fixed.on() && !t.floats && onRail(t.values) {
		s.ask(t)
		return
	}
	t.done = true
	s.complete++
	if t.collided && s.atp.Profile == atp.Released {
		t.proposes, t.proposal = true, s.propose.take()
	}
	s.line = append(s.line, t.seq)
	s.due = now.Add(linger)
	if len(s.line) >= s.atp.Batch {
		s.flush()
	}
}

// onRail reports whether any value of an integer sum is saturated.
func onRail(values []uint32) bool {
	return slices.ContainsFunc(values, func(v uint32) bool { return int32(v) == math.MaxInt32 || int32(v) <= -math.MaxInt32 })
}

// ask requests the values as floats from all workers.
func (s *atpServer) ask(t *atpSum) {
	if !t.floats {
		t.floats = true
		s.restart(t)
	}
	s.tally[asked]++
	s.out = program.Packet{Kind: program.Ack, Job: s.cfg.Job, Seg: t.seq, Index: t.index, Flags: program.Overflow}
	s.host.Send(Network, &s.out, nil)
}

// flush sends the acknowledgements that are waiting in the batch.
func (s *atpServer) flush() {
	for _, seq := range s.line {
		s.tally[sentPackets]++
		s.acknowledge(&s.sums[seq%uint64(len(s.sums))])
	}
	s.line, s.due = s.line[:0], Never
}

// acknowledge sends a sum to all workers. The packet frees the aggregator on its way.
func (s *atpServer) acknowledge(t *atpSum) {
	s.out = program.Packet{
		Kind: program.Ack, Job: s.cfg.Job, Seg: t.seq, Index: t.index, Bitmap: 1, Count: uint16(s.cfg.Workers), Lanes: t.lanes, Trace: t.trace,
	}
	if t.marked {
		s.out.Flags |= program.ECN
	}
	if t.proposes {
		s.out.Flags, s.out.Value = s.out.Flags|program.Collision, uint64(t.proposal)
	}
	if t.floats {
		s.out.Flags |= program.Overflow | program.Resend
	}
	values := t.values
	if len(values) == 0 {
		values = nil
	}
	s.host.Send(Network, &s.out, values)
}

// Done reports whether every sum of the job is complete. Even then, the server still answers repeated packets.
func (s *atpServer) Done() bool {
	return s.complete >= uint64(s.cfg.Updates)*uint64(s.cfg.Packets()) && len(s.line) == 0
}

func (s *atpServer) Next() olaf.Time     { return s.due }
func (s *atpServer) Timer(now olaf.Time) { s.flush() }
