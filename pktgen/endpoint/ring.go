package endpoint

import (
	"fmt"
	"slices"

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
	last   []bool          // whether the last packet has arrived, per step; only if lengths vary
	most   int             // number of packets in the longest vector
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
		cfg: cfg, host: host, busy: true, here: make([]int, steps), last: make([]bool, steps), most: cfg.Packets(),
		traces: make([]program.Trace, steps), inbox: make([][]uint32, steps),
		chunks: make([]program.Trace, cfg.Workers), values: make([]uint32, cfg.Values),
	}, nil
}

// chunk returns the layout of chunk c and the index of the first value in it.
func (w *ringWorker) chunk(c int) (Layout, int) {
	n, v := w.cfg.Workers, w.cfg.Values
	first := c * v / n
	return Layout{Values: (c+1)*v/n - first, PerPacket: w.cfg.PerPacket, Messages: w.cfg.Messages,
		Varies: w.cfg.Varies}, first
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
	w.cfg.fit(values)
	w.values = slices.Grow(w.values[:0], w.cfg.Values)[:w.cfg.Values]
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
	l.Messages = min(l.Messages, l.Packets())
	w.tally[sentPackets] += sendVector(w.host, l, next, &w.out, values)
}

func (w *ringWorker) Receive(_ olaf.Time, p *program.Packet, lanes []uint32) {
	step := int(p.Index)
	if p.Kind != program.Data || w.Done() || step >= len(w.here) {
		w.tally[repeated]++
		return
	}
	if !w.store(step, packet(p), p, lanes) {
		w.tally[repeated]++
		return
	}
	w.tally[received]++
	w.traces[step] = p.Trace
	if w.here[step]++; !w.busy {
		w.advance()
	}
}

// store stores the values of packet i of a chunk, and reports whether the packet was missing. If lengths vary, the
// predecessor's vector may be one that is not computed here yet, and the mark of the last packet ends the chunk.
func (w *ringWorker) store(step, i int, p *program.Packet, lanes []uint32) bool {
	if w.cfg.Varies {
		if w.last[step] || i != w.here[step] || i >= w.most {
			return false
		}
		w.inbox[step] = append(w.inbox[step][:i*w.cfg.PerPacket], lanes...)
		w.last[step] = p.Flags&program.Last != 0
		return w.last[step] || len(lanes) == w.cfg.PerPacket
	}
	l, _ := w.chunk(w.receivedChunk(step))
	if w.here[step] >= l.Packets() || i >= l.Packets() {
		return false
	}
	if lanes != nil {
		if len(w.inbox[step]) != l.Values {
			w.inbox[step] = make([]uint32, l.Values)
		}
		copy(l.cut(w.inbox[step], i), lanes)
	}
	return true
}

// isHere reports whether the chunk of a step has arrived.
func (w *ringWorker) isHere(step int, l Layout) bool {
	if w.cfg.Varies {
		return w.last[step]
	}
	return w.here[step] >= l.Packets()
}

// endUnequal ends a round in which the predecessor's chunk has another length. An empty chunk lets the successor end as
// well.
func (w *ringWorker) endUnequal() {
	w.busy = true
	if w.step+1 < len(w.here) {
		w.out = program.Packet{Kind: program.Data, Job: w.cfg.Job, Worker: w.cfg.Worker, Index: uint32(w.step + 1),
			Flags: program.Last}
		w.host.Send(Peer((int(w.cfg.Worker)+1)%w.cfg.Workers), &w.out, nil)
	}
	w.apply = Aggregate{Number: w.round, Unequal: true}
	w.host.Apply(&w.apply)
}

// advance handles the chunk that was received in the current step and passes the result on.
func (w *ringWorker) advance() {
	for w.step < len(w.here) {
		c := w.receivedChunk(w.step)
		l, first := w.chunk(c)
		if !w.isHere(w.step, l) {
			return
		}
		if w.cfg.Varies && len(w.inbox[w.step]) != l.Values {
			w.endUnequal()
			return
		}
		w.take(c, w.values[first:][:l.Values])
		w.here[w.step], w.last[w.step] = 0, false
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

// take handles the received values of chunk c. In the first half of the steps, it adds them to our chunk. In the second
// half, they are the finished chunk and replace ours.
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
