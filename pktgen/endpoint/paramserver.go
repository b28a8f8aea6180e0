package endpoint

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/adder"
	"github.com/olafctl/olaf/fpga/program"
)

// psWorker sends its gradient to a synchronous or asynchronous server and waits for the answer.
type psWorker struct {
	tally
	cfg       Config
	host      Host
	ready     uint32 // number of updates received
	seen      uint32 // the server's number for the last update
	busy      bool
	sum       gather
	answerLen int // length of the answer; 0 before its last packet if lengths vary
	out       program.Packet
	apply     Aggregate
}

// NewPSWorker returns a worker for a parameter server. It assumes a reliable transport. The error matches ErrConfig.
func NewPSWorker(cfg Config, host Host) (Endpoint, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	w := &psWorker{cfg: cfg, host: host, sum: newGather(cfg.Layout)}
	w.restart()
	return w, nil
}

// restart prepares for the next answer.
func (w *psWorker) restart() {
	w.sum.restart()
	w.answerLen = w.cfg.startLength()
}

func (w *psWorker) Start(olaf.Time) { w.compute() }

func (w *psWorker) compute() {
	w.busy = true
	w.host.Compute(w.ready)
}

func (w *psWorker) OnComputed(now olaf.Time, values []uint32) {
	w.tally[computed]++
	w.tally[sentVectors]++
	w.busy = false
	w.out = program.Packet{
		Kind: program.Data, Job: w.cfg.Job, Worker: w.cfg.Worker, Count: 1,
		Trace: program.NewTrace(w.cfg.Worker, w.ready, nanoseconds(now)),
	}
	w.out.ReadSum = uint64(w.seen)
	w.tally[sentPackets] += sendVector(w.host, w.cfg.Layout, Server, &w.out, values)
}

// sendVector sends all packets of a vector to a peer and returns their number. The packets' other fields are taken from
// p.
func sendVector(host Host, l Layout, to Peer, p *program.Packet, values []uint32) uint64 {
	l.fit(values)
	for i := range l.Packets() {
		if l.opens(i) {
			host.Message()
		}
		l.packetOf(p, i)
		host.Send(to, p, l.cut(values, i))
	}
	return uint64(l.Packets())
}

func (w *psWorker) Receive(_ olaf.Time, p *program.Packet, lanes []uint32) {
	if p.Kind != program.Result || w.busy || w.Done() || !w.sum.take(packet(p), &p.Trace, lanes) {
		w.tally[repeated]++
		return
	}
	w.tally[received]++
	w.seen = uint32(p.Value)
	if p.Flags&program.Last != 0 && w.cfg.Varies {
		w.answerLen = w.cfg.lengthAt(p)
	}
	if !w.sum.hasAll(w.answerLen) {
		return
	}
	w.busy = true
	w.apply = Aggregate{Number: w.ready, Vectors: w.sum.traces[0].Vectors, Torn: w.sum.mixed, Trace: w.sum.traces[0]}
	if w.sum.values != nil {
		w.apply.Values = w.sum.values[:w.answerLen]
	}
	w.host.Apply(&w.apply)
}

func (w *psWorker) OnApplied(olaf.Time) {
	w.tally[updates]++
	w.ready++
	w.restart()
	if !w.Done() {
		w.compute()
	}
}

func (w *psWorker) Done() bool      { return w.ready >= w.cfg.Updates }
func (w *psWorker) Next() olaf.Time { return Never }
func (w *psWorker) Timer(olaf.Time) {}

// server is a parameter server. A synchronous server applies the sum of the gradients of all workers and answers all of
// them. An asynchronous server applies every gradient and answers its sender.
type server struct {
	tally
	cfg     Config
	host    Host
	sync    bool
	version uint32 // number of updates
	from    []gather
	lengths []int // of the workers' vectors; 0 before the last packet if lengths vary
	line    []int // workers whose vectors are complete, in order; a synchronous server waits for all
	busy    bool
	sum     []uint32
	out     program.Packet
	apply   Aggregate
}

// NewPSServer returns the server of a job. It does not use cfg.Worker, and cfg.Updates is the number of updates per
// worker. The error matches ErrConfig.
func NewPSServer(cfg Config, sync bool, host Host) (Endpoint, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	s := &server{cfg: cfg, host: host, sync: sync, from: make([]gather, cfg.Workers),
		lengths: make([]int, cfg.Workers)}
	for i := range s.from {
		s.from[i] = newGather(cfg.Layout)
		s.restart(i)
	}
	return s, nil
}

// restart prepares for the next vector from a worker.
func (s *server) restart(w int) {
	s.from[w].restart()
	s.lengths[w] = s.cfg.startLength()
}

// isWhole reports whether all packets of a worker's vector have arrived.
func (s *server) isWhole(w int) bool { return s.from[w].hasAll(s.lengths[w]) }

func (s *server) Start(olaf.Time)                {}
func (s *server) OnComputed(olaf.Time, []uint32) {}

func (s *server) Receive(_ olaf.Time, p *program.Packet, lanes []uint32) {
	w := int(p.Worker)
	if p.Kind != program.Data || w >= len(s.from) || s.isWhole(w) || !s.from[w].take(packet(p), &p.Trace, lanes) {
		s.tally[repeated]++
		return
	}
	s.tally[received]++
	if p.Flags&program.Last != 0 && s.cfg.Varies {
		s.lengths[w] = s.cfg.lengthAt(p)
	}
	if s.isWhole(w) {
		s.line = append(s.line, w)
		s.advance()
	}
}

// Waiting implements Waiter.
func (s *server) Waiting() (waiting, missing []int) {
	if s.busy || !s.sync {
		return nil, nil
	}
	for w := range s.from {
		if !s.isWhole(w) {
			missing = append(missing, w)
		}
	}
	return s.line, missing
}

// advance applies vectors that are complete.
func (s *server) advance() {
	if s.busy || len(s.line) == 0 || s.sync && len(s.line) < s.cfg.Workers {
		return
	}
	s.busy = true
	s.apply = Aggregate{Number: s.version}
	take := s.line
	if !s.sync {
		take = s.line[:1]
		s.apply.Worker, s.apply.Waiting = olaf.WorkerID(take[0]), len(s.line)-1
	}
	for _, w := range take {
		s.add(&s.from[w], s.lengths[w])
	}
	s.apply.Vectors = s.apply.Trace.Vectors
	s.host.Apply(&s.apply)
}

// add adds the vector of a worker to the current sum, which is as long as the longest vector.
func (s *server) add(g *gather, length int) {
	s.apply.Trace.Add(&g.traces[0])
	s.apply.Torn = s.apply.Torn || g.mixed
	if g.values == nil {
		return
	}
	if s.apply.Values == nil {
		s.sum = append(s.sum[:0], g.values[:length]...)
		s.apply.Values = s.sum
		return
	}
	for len(s.sum) < length {
		s.sum = append(s.sum, 0)
	}
	adder.AddFloats(s.sum[:length], g.values[:length])
	s.apply.Values = s.sum
}

func (s *server) OnApplied(olaf.Time) {
	s.tally[updates]++
	s.version++
	s.busy = false
	s.out = program.Packet{
		Kind: program.Result, Job: s.cfg.Job, Count: uint16(s.apply.Vectors), Value: uint64(s.version), Trace: s.apply.Trace,
	}
	if s.sync {
		s.line = s.line[:0]
		s.answerAll()
	} else {
		w := s.line[0]
		s.line = append(s.line[:0], s.line[1:]...)
		s.restart(w)
		s.tally[sentPackets] += sendVector(s.host, s.cfg.Layout, Peer(w), &s.out, s.apply.Values)
	}
	s.advance()
}

// answerAll sends the sum to all workers. It sends each packet to every worker in turn, so that no worker begins its
// next gradient much earlier than the others.
func (s *server) answerAll() {
	for w := range s.from {
		s.restart(w)
	}
	l := s.cfg.Layout
	l.fit(s.apply.Values)
	for i := range l.Packets() {
		l.packetOf(&s.out, i)
		for w := range s.from {
			if l.opens(i) {
				s.host.Message()
			}
			s.host.Send(Peer(w), &s.out, l.cut(s.apply.Values, i))
		}
	}
	s.tally[sentPackets] += uint64(l.Packets() * len(s.from))
}

// Done reports whether every worker has received all its updates.
func (s *server) Done() bool {
	total := s.cfg.Updates
	if !s.sync {
		total *= uint32(s.cfg.Workers)
	}
	return s.version >= total
}

func (s *server) Next() olaf.Time { return Never }
func (s *server) Timer(olaf.Time) {}
