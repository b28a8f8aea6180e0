package endpoint

import (
	"fmt"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// Gate is the transmission control of a worker. It receives the status of the queue from ACKs and decides whether an
// update is sent.
type Gate interface {
	RecordStatus(now olaf.Time, s olaf.QueueStatus)
	Sends(now olaf.Time) bool
}

// Olaf configures the workers and servers of OLAF, and those of a plain queue.
type Olaf struct {
	// Gate decides whether each of a worker's updates is sent; nil sends all.
	Gate Gate
	// Timeout is the time that a worker waits for an answer before it resends an update, unless a newer update is
	// ready. 0 disables resending.
	Timeout olaf.Duration
	// Members returns the range first ≤ w < end of a job's workers that a server answers together; if nil, it answers
	// all workers.
	Members func(job olaf.ClusterID) (first, end int)
	// Line is the maximum number of packets waiting at a server; further packets are dropped and counted. 0 means
	// unlimited.
	Line int
}

func (o *Olaf) check() error {
	if o.Timeout < 0 {
		return badTimeout(o.Timeout)
	}
	if o.Line < 0 {
		return fmt.Errorf("%w: a line of %d packets at the server; use 1 or more, or 0 for no limit", ErrConfig, o.Line)
	}
	return nil
}

// SetStatus stores the status of a queue in an ACK. Status reads it.
func SetStatus(p *program.Packet, s olaf.QueueStatus) {
	p.Value = uint64(s.Occupancy)<<32 | uint64(s.ActiveClusters)<<16 | uint64(s.Slots)
	if s.Full {
		p.Value |= statusFull
	}
}

// statusFull is the bit that marks a full queue. It is above the 24 bits for the occupancy.
const statusFull = 1 << 63

// Status returns the status of the queue that is stored in an ACK.
func Status(p *program.Packet) olaf.QueueStatus {
	return olaf.QueueStatus{Occupancy: uint32(p.Value &^ statusFull >> 32), ActiveClusters: uint16(p.Value >> 16),
		Slots: uint16(p.Value), Full: p.Value&statusFull != 0}
}

// openWorker sends an update when it is ready and continues without waiting from the newest weights that it has
// received (paper, §2.1). The packets of an update are merged, replaced and lost individually. Only packets that have
// the same place are merged or replace each other.
type openWorker struct {
	tally
	cfg      Config
	olaf     Olaf
	host     Host
	vector   uint32 // vector in computation
	sent     uint32 // newest vector sent
	values   []uint32
	trace    program.Trace
	waits    []bool // packets of the newest update that are not answered yet
	left     int
	lastSent olaf.Time // when the newest update was last sent
	waiting  bool      // the worker waits for an answer, with a timeout
	out      program.Packet
	apply    Aggregate
}

// NewOpenWorker returns a worker that sends updates to a queue and receives ACKs with its status. The error matches
// ErrConfig.
func NewOpenWorker(cfg Config, o Olaf, host Host) (Endpoint, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	return &openWorker{cfg: cfg, olaf: o, host: host, waits: make([]bool, cfg.Packets())}, nil
}

// Place returns the place of the i-th packet in an update. Each update begins with a different place. When a queue
// becomes full, it accepts the first packets of an update and drops the others. With a fixed order, it would always
// drop the same weights.
func Place(i int, update uint32, packets int) int {
	return int((uint64(i) + uint64(update)) % uint64(packets))
}

func (w *openWorker) Start(olaf.Time) { w.host.Compute(0) }

func (w *openWorker) OnComputed(now olaf.Time, values []uint32) {
	w.tally[computed]++
	if w.olaf.Gate == nil || w.olaf.Gate.Sends(now) {
		w.tally[sentVectors]++
		w.cfg.fit(values)
		w.trace = program.NewTrace(w.cfg.Worker, w.vector, nanoseconds(now))
		w.waits = slices.Grow(w.waits[:0], w.cfg.Packets())[:w.cfg.Packets()]
		w.sent, w.lastSent, w.left, w.waiting = w.vector, now, len(w.waits), w.olaf.Timeout > 0
		w.values = append(w.values[:0], values...)
		if values == nil {
			w.values = nil
		}
		for i := range w.waits {
			w.waits[i] = true
			w.send(Place(i, w.vector, len(w.waits)), 0)
		}
		w.tally[sentPackets] += uint64(len(w.waits))
	} else {
		w.tally[withheld]++
	}
	if w.vector++; w.vector < w.cfg.Updates {
		w.host.Compute(w.vector)
	}
}

// send sends packet i of the newest update.
func (w *openWorker) send(i int, flags program.Flags) {
	if w.cfg.opens(i) {
		w.host.Message()
	}
	w.out = program.Packet{
		Kind: program.Data, Job: w.cfg.Job, Worker: w.cfg.Worker, Seg: uint64(i), Index: w.sent, Count: 1,
		Lanes: uint16(w.cfg.Lanes(i)), Flags: flags,
		Trace: w.trace,
	}
	w.host.Send(Network, &w.out, w.cfg.cut(w.values, i))
}

func (w *openWorker) Receive(now olaf.Time, p *program.Packet, lanes []uint32) {
	if p.Kind != program.Ack || p.Seg >= uint64(len(w.waits)) {
		w.tally[repeated]++
		return
	}
	w.tally[received]++
	if w.olaf.Gate != nil {
		w.olaf.Gate.RecordStatus(now, Status(p))
	}
	// A merged packet does not identify its workers, so its answer counts for every waiting worker.
	if w.waits[p.Seg] && (p.Count > 1 || p.Worker == w.cfg.Worker && p.Index == w.sent) {
		w.waits[p.Seg] = false
		w.left--
		w.waiting = w.waiting && w.left > 0
	}
	if len(lanes) > 0 {
		w.apply = Aggregate{Number: p.Index, Vectors: uint32(p.Count), First: int(p.Seg) * w.cfg.PerPacket, Trace: p.Trace, Values: lanes}
		w.host.Apply(&w.apply)
	}
}

func (w *openWorker) OnApplied(olaf.Time) { w.tally[updates]++ }

// Done reports whether every update was sent and, if the worker waits for answers, was answered.
func (w *openWorker) Done() bool { return w.vector >= w.cfg.Updates && !w.waiting }

func (w *openWorker) Next() olaf.Time {
	if !w.waiting {
		return Never
	}
	return w.lastSent.Add(w.olaf.Timeout)
}

// Timer sends unanswered packets again.
func (w *openWorker) Timer(now olaf.Time) {
	if now < w.Next() {
		return
	}
	w.lastSent = now
	for i, waits := range w.waits {
		if waits {
			w.send(i, program.Resend)
			w.tally[resent]++
		}
	}
}

// openServer applies updates when they arrive, merged or not, and answers each update with the result from its host. It
// sends the answer to the sender or, if the packet contains several updates, to all workers of the job.
type openServer struct {
	tally
	cfg   Config
	olaf  Olaf
	host  Host
	line  []arrival // the first one is being applied
	free  []arrival
	seen  uint32
	out   program.Packet
	apply Aggregate
}

// arrival is a packet that is waiting to be applied.
type arrival struct {
	program.Packet
	lanes []uint32
}

// NewOpenServer returns the server for workers that do not wait. It never ends and does not use cfg.Worker and
// cfg.Updates. The error matches ErrConfig.
func NewOpenServer(cfg Config, o Olaf, host Host) (Endpoint, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.Members == nil {
		o.Members = func(olaf.ClusterID) (int, int) { return 0, cfg.Workers }
	}
	return &openServer{cfg: cfg, olaf: o, host: host}, nil
}

func (s *openServer) Start(olaf.Time)                {}
func (s *openServer) OnComputed(olaf.Time, []uint32) {}

func (s *openServer) Receive(_ olaf.Time, p *program.Packet, lanes []uint32) {
	if p.Kind != program.Data || p.Seg >= uint64(s.cfg.Packets()) || int(p.Worker) >= s.cfg.Workers {
		s.tally[repeated]++
		return
	}
	s.tally[received]++
	if s.olaf.Line > 0 && len(s.line) > s.olaf.Line {
		s.tally[crowded]++
		return
	}
	var a arrival
	if n := len(s.free); n > 0 {
		a, s.free = s.free[n-1], s.free[:n-1]
	}
	a.Packet, a.lanes = *p, append(a.lanes[:0], lanes...)
	if s.line = append(s.line, a); len(s.line) == 1 {
		s.begin()
	}
}

func (s *openServer) begin() {
	a := &s.line[0]
	s.apply = Aggregate{
		Number: s.seen, Vectors: uint32(a.Count), First: int(a.Seg) * s.cfg.PerPacket, Job: a.Job, Worker: a.Worker,
		Vector: a.Index, Reward: int32(a.Value),
		Trace: a.Trace, Values: a.lanes, Waiting: len(s.line) - 1, Dropped: int(s.tally[crowded]),
	}
	s.host.Apply(&s.apply)
}

// OnApplied answers the applied packet with the result that the host stored in the aggregate.
func (s *openServer) OnApplied(olaf.Time) {
	s.tally[updates]++
	s.seen++
	a := s.line[0]
	s.out = program.Packet{
		Kind: program.Ack, Job: a.Job, Worker: a.Worker, Seg: a.Seg, Index: a.Index, Count: a.Count,
		Lanes: uint16(len(s.apply.Values)), Trace: a.Trace,
	}
	first, end := int(a.Worker), int(a.Worker)+1
	if a.Count > 1 {
		first, end = s.olaf.Members(a.Job)
	}
	for w := first; w < end; w++ {
		s.host.Message()
		s.host.Send(Peer(w), &s.out, s.apply.Values)
		s.tally[answered]++
	}
	s.free = append(s.free, a)
	if s.line = append(s.line[:0], s.line[1:]...); len(s.line) > 0 {
		s.begin()
	}
}

func (s *openServer) Next() olaf.Time { return Never }
func (s *openServer) Timer(olaf.Time) {}
func (s *openServer) Done() bool      { return false }
