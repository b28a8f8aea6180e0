package endpoint

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/adder"
	"github.com/olafctl/olaf/fpga/program"
)

// ringWorker is a worker of an AllReduce over a ring. The vector is divided into one chunk per worker. In the first N −
// 1 steps, workers pass chunks on and add their own values. In the next N − 1 steps, they pass on the finished chunks.
type ringWorker struct {
	tally
	cfg   Config
	host  Host
	round uint32
	busy  bool // not started, computing or applying
	step  int  // step whose packets are awaited
	// here counts the packets received from the predecessor in each step. The predecessor may be a step ahead and may
	// send before this worker's gradient is ready.
	here   []int
	traces []program.Trace // traces of received packets, per step
	inbox  [][]uint32      // received values, per step
	chunks []program.Trace // contributions in this worker's chunks
	values []uint32
	carry  bool // packets carry values
	out    program.Packet
	apply  Aggregate
}

// NewRing returns a worker for a ring AllReduce. It assumes a reliable transport. The error matches ErrConfig.
func NewRing(cfg Config, host Host) (Endpoint, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	switch {
	case cfg.Workers < 2:
		return nil, fmt.Errorf("%w: a ring of %d worker; it takes two", ErrConfig, cfg.Workers)
	case cfg.Values < cfg.Workers:
		return nil, fmt.Errorf("%w: %d values cannot be cut into %d chunks", ErrConfig, cfg.Values, cfg.Workers)
	}
	steps := 2 * (cfg.Workers - 1)
	return &ringWorker{
		cfg: cfg, host: host, busy: true, here: make([]int, steps), traces: make([]program.Trace, steps), inbox: make([][]uint32, steps),
		chunks: make([]program.Trace, cfg.Workers), values: make([]uint32, cfg.Values),
	}, nil
}

// chunk returns the layout of chunk c and the index of the first value in it.
func (w *ringWorker) chunk(c int) (Layout, int) {
	n, v := w.cfg.Workers, w.cfg.Values
	first := c * v / n
	return Layout{Values: (c+1)*v/n - first, PerPacket: w.cfg.PerPacket, Messages: w.cfg.Messages}, first
}

// sentChunk returns the chunk that is sent in a step. receivedChunk returns the chunk that is received.
func (w *ringWorker) sentChunk(step int) int {
	n := w.cfg.Workers
	return ((int(w.cfg.Worker)-step)%n + n) % n
}

func (w *ringWorker) receivedChunk(step int) int {
	n := w.cfg.Workers
	return ((int(w.cfg.Worker)-step-1)%n + n) % n
}

func (w *ringWorker) Start(olaf.Time) { w.compute() }

func (w *ringWorker) compute() {
	w.busy = true
	w.host.Compute(w.round)
}

func (w *ringWorker) OnComputed(now olaf.Time, values []uint32) {
	w.tally[computed]++
	w.tally[sentVectors]++
	w.busy, w.step = false, 0
	own := program.NewTrace(w.cfg.Worker, w.round, nanoseconds(now))
	own.ReadSum = uint64(w.round)
	for c := range w.chunks {
		w.chunks[c] = own
	}
	w.carry = values != nil
	copy(w.values, values)
	w.pass()
	w.advance()
}

// pass sends the chunk of the current step to the successor.
func (w *ringWorker) pass() {
	c := w.sentChunk(w.step)
	l, first := w.chunk(c)
	var values []uint32
	if w.carry {
		values = w.values[first:][:l.Values]
	}
	next := Peer((int(w.cfg.Worker) + 1) % w.cfg.Workers)
	w.out = program.Packet{
		Kind: program.Data, Job: w.cfg.Job, Worker: w.cfg.Worker, Index: uint32(w.step), Count: uint16(w.chunks[c].Vectors), Trace: w.chunks[c],
	}
	cfg := Config{Layout: l}
	if l.Messages > l.Packets() {
		cfg.Messages = l.Packets()
	}
	w.tally[sentPackets] += sendVector(w.host, &cfg, next, &w.out, values)
}

func (w *ringWorker) Receive(_ olaf.Time, p *program.Packet, lanes []uint32) {
	step := int(p.Index)
	if p.Kind != program.Data || w.Done() || step >= len(w.here) {
		w.tally[repeated]++
		return
	}
	l, _ := w.chunk(w.receivedChunk(step))
	if w.here[step] >= l.Packets() || packet(p) >= l.Packets() {
		w.tally[repeated]++
		return
	}
	w.tally[received]++
	if lanes != nil {
		if len(w.inbox[step]) != l.Values {
			w.inbox[step] = make([]uint32, l.Values)
		}
		copy(l.cut(w.inbox[step], int(p.Seg)), lanes)
	}
	w.traces[step] = p.Trace
	if w.here[step]++; !w.busy {
		w.advance()
	}
}

// advance handles the chunk that was received in the current step and passes the result on.
func (w *ringWorker) advance() {
	for w.step < len(w.here) {
		c := w.receivedChunk(w.step)
		l, first := w.chunk(c)
		if w.here[w.step] < l.Packets() {
			return
		}
		w.take(c, w.values[first:][:l.Values])
		w.here[w.step] = 0
		if w.step++; w.step < len(w.here) {
			w.pass()
		}
	}
	w.busy = true
	w.apply = Aggregate{Number: w.round, Vectors: w.chunks[0].Vectors, Trace: w.chunks[0]}
	for c := range w.chunks {
		w.apply.Torn = w.apply.Torn || w.chunks[c].Inside != w.chunks[0].Inside
	}
	if w.carry {
		w.apply.Values = w.values
	}
	w.host.Apply(&w.apply)
}

// take combines the received values with chunk c: in the first half of the steps it adds our values to them, and in the
// second half it replaces our chunk with the finished chunk.
func (w *ringWorker) take(c int, values []uint32) {
	if w.step >= w.cfg.Workers-1 {
		w.chunks[c] = w.traces[w.step]
		copy(values, w.inbox[w.step])
		return
	}
	w.chunks[c].Add(&w.traces[w.step])
	if w.carry {
		adder.AddFloats(values, w.inbox[w.step])
	}
}

func (w *ringWorker) OnApplied(olaf.Time) {
	w.tally[updates]++
	if w.round++; !w.Done() {
		w.compute()
	}
}

func (w *ringWorker) Done() bool      { return w.round >= w.cfg.Updates }
func (w *ringWorker) Next() olaf.Time { return Never }
func (w *ringWorker) Timer(olaf.Time) {}
