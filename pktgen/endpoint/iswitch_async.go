package endpoint

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// Async configures a worker that runs iSwitch's Algorithm 1.
type Async struct {
	// Bound is S: a gradient is sent if its weights are at most S updates old when it is ready. With 0, only gradients
	// of the current weights are sent.
	Bound int
	// Slots is the length of the switch's table, in which a vector must fit; 0 means long enough.
	Slots int
}

// asyncWorker computes and applies gradients in parallel (paper, §4, Algorithm 1). Every worker applies every sum, so
// that all workers have equal weights without a server. Frames do not identify sums. The k-th result for a segment
// belongs to the k-th sum.
type asyncWorker struct {
	tally
	cfg      Config
	isw      Async
	host     Host
	ready    uint32 // number of updates applied, t_s
	read     uint32 // number of updates in the weights for the next gradient, t_w
	computed uint32 // number of gradients computed
	// Sums can overlap. next is the number of the sum that each packet's next result belongs to, by packet. sums
	// contains the sums from number ready on.
	next     []uint32
	sums     []*gather
	free     []*gather
	applying bool
	out      program.Packet
	apply    Aggregate
}

// NewISwitchAsync returns a worker for asynchronous iSwitch. The error matches ErrConfig.
func NewISwitchAsync(cfg Config, isw Async, host Host) (Endpoint, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if isw.Bound < 0 {
		return nil, fmt.Errorf("%w: a staleness bound of %d; it must be 0 or more", ErrConfig, isw.Bound)
	}
	if isw.Slots != 0 && isw.Slots < cfg.Packets() {
		return nil, fmt.Errorf("%w: a vector of %d packets in a table of %d segments: asynchronous workers send "+
			"whole vectors; use as many (--slots)",
			ErrConfig, cfg.Packets(), isw.Slots)
	}
	return &asyncWorker{cfg: cfg, isw: isw, host: host, next: make([]uint32, cfg.Packets())}, nil
}

func (w *asyncWorker) Start(olaf.Time) { w.compute() }

func (w *asyncWorker) compute() {
	w.read = w.ready
	w.host.Compute(w.computed)
}

func (w *asyncWorker) OnComputed(now olaf.Time, values []uint32) {
	if w.Done() {
		return
	}
	w.tally[computed]++
	if w.ready-w.read > uint32(w.isw.Bound) {
		w.tally[discarded]++
	} else {
		w.send(now, values)
	}
	w.computed++
	w.compute()
}

func (w *asyncWorker) send(now olaf.Time, values []uint32) {
	w.tally[sentVectors]++
	w.out = program.Packet{
		Kind: program.Data, Job: w.cfg.Job, Worker: w.cfg.Worker, Count: 1,
		Trace: program.NewTrace(w.cfg.Worker, w.computed, nanoseconds(now)),
	}
	w.out.ReadSum = uint64(w.read)
	for i := range w.cfg.Packets() {
		if w.cfg.opens(i) {
			w.host.Message()
		}
		w.out.Seg, w.out.Lanes = uint64(i), uint16(w.cfg.Lanes(i))
		w.host.Send(Network, &w.out, w.cfg.cut(values, i))
	}
	w.tally[sentPackets] += uint64(w.cfg.Packets())
}

func (w *asyncWorker) Receive(now olaf.Time, p *program.Packet, lanes []uint32) {
	i := packet(p)
	if p.Kind != program.Result || w.Done() || i >= len(w.next) {
		w.tally[repeated]++
		return
	}
	w.tally[received]++
	at := int(w.next[i] - w.ready)
	w.next[i]++
	for at >= len(w.sums) {
		w.sums = append(w.sums, w.fresh())
	}
	w.sums[at].take(i, &p.Trace, lanes)
	w.advance()
}

func (w *asyncWorker) fresh() *gather {
	if n := len(w.free); n > 0 {
		g := w.free[n-1]
		w.free = w.free[:n-1]
		g.restart()
		return g
	}
	g := newGather(w.cfg.Layout)
	return &g
}

// advance applies the next sum if it is complete.
func (w *asyncWorker) advance() {
	if w.applying || len(w.sums) == 0 || !w.sums[0].isWhole() {
		return
	}
	sum := w.sums[0]
	if sum.mixed {
		w.tally[torn]++
	}
	w.applying = true
	w.apply = Aggregate{Number: w.ready, Vectors: sum.traces[0].Vectors, Torn: sum.mixed, Trace: sum.traces[0], Values: sum.values}
	w.host.Apply(&w.apply)
}

func (w *asyncWorker) OnApplied(olaf.Time) {
	w.tally[updates]++
	w.ready++
	w.applying = false
	w.free = append(w.free, w.sums[0])
	w.sums = append(w.sums[:0], w.sums[1:]...)
	if !w.Done() {
		w.advance()
	}
}

func (w *asyncWorker) Done() bool { return w.ready >= w.cfg.Updates }

func (w *asyncWorker) Next() olaf.Time { return Never }
func (w *asyncWorker) Timer(olaf.Time) {}
