package endpoint

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// rounds is the common state of workers that wait for the sum of all gradients before they compute again. A round
// consists of a gradient, its sum and an update of the weights.
type rounds struct {
	tally
	cfg  Config
	host Host

	round  uint32
	busy   bool // computing or applying: no packet of this round is in flight
	over   bool
	values []uint32 // values of this round's gradient
	begun  uint64   // when the gradient was ready, in ns
	marks  uint64   // marks of a sum with one contribution from every worker
	apply  Aggregate
}

func (r *rounds) Start(olaf.Time) { r.compute() }

func (r *rounds) compute() {
	r.busy = true
	r.marks = program.MarkWorkers(r.cfg.Workers, r.round)
	r.host.Compute(r.round)
}

// begin starts the round for a gradient.
func (r *rounds) begin(now olaf.Time, values []uint32) {
	r.tally[computed]++
	r.tally[sentVectors]++
	r.busy, r.values, r.begun = false, values, nanoseconds(now)
	r.cfg.fit(values)
}

// checkFirst lets the host check the values in the first packet of a sum.
func (r *rounds) checkFirst(values []uint32) {
	if c, is := r.host.(Checker); is && values != nil {
		c.CheckFirst(values)
	}
}

// finishUnequal ends a round without a sum, because the workers' vectors differ in length.
func (r *rounds) finishUnequal() {
	r.busy = true
	r.apply = Aggregate{Number: r.round, Unequal: true}
	r.host.Apply(&r.apply)
}

// contribution returns the trace for the gradient in this round.
func (r *rounds) contribution() program.Trace {
	t := program.NewTrace(r.cfg.Worker, r.round, r.begun)
	t.ReadSum = uint64(r.round)
	return t
}

// took counts a packet of the sum in this round, and counts the packet as inexact if the sum is incomplete. Frames that
// do not name contributors have a mark of 0.
func (r *rounds) took(p *program.Packet) {
	r.tally[received]++
	if p.Vectors != uint32(r.cfg.Workers) || p.Inside != r.marks && p.Inside != 0 {
		r.tally[inexact]++
	}
}

// finish applies a complete sum. first is the trace of its first packet. mixed means that other packets have different
// traces.
func (r *rounds) finish(first *program.Trace, mixed bool, values []uint32) {
	if mixed {
		r.tally[torn]++
	}
	r.busy = true
	r.apply = Aggregate{Number: r.round, Vectors: first.Vectors, Torn: mixed, Trace: *first, Values: values,
		Vanished: r.apply.Vanished}
	r.host.Apply(&r.apply)
}

// endRound ends a round and begins the next round unless it was the last.
func (r *rounds) endRound() {
	r.tally[updates]++
	if r.round++; r.round == r.cfg.Updates {
		r.over = true
		return
	}
	r.compute()
}

func (r *rounds) Done() bool { return r.over }
