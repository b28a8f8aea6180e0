package onwire

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/pktgen"
	"github.com/olafctl/olaf/pktgen/attach"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// RunVirtual trains in virtual time through every queue with every seed. rl.Ideal is a network without a queue. compute
// is the time to compute an update; if it is 0, the time is measured, one worker at a time. The server takes no time.
func (p *Program) RunVirtual(ctx context.Context, compute olaf.Duration) (*ProgramReport, error) {
	start := func(ctx context.Context, a *attempt) (localNet, error) { return a.startVirtual(ctx, compute) }
	return p.runAll(func(name string, seed uint64) (*ProgramRun, error) {
		p.Progress("%s, seed %d: %d workers and a server in virtual time", name, seed, p.Workers)
		return p.run(ctx, &stand{computes: true, local: start}, name, seed)
	})
}

// virtual is a queue in virtual time. Programs do the work of its workers and its server. Time does not pass until
// every worker's program that can compute has handed over its next update. The result therefore does not depend on
// which program is faster.
type virtual struct {
	*Program
	sockets
	compute olaf.Duration
	members []*pusher
	updates *attach.Updates
	server  endpoint.Endpoint
	applied bool         // the server's program has answered, but its endpoint has not been notified yet
	port    *engine.Port // nil for an ideal network
	frames  int          // frames per update
	now     olaf.Time
	left    []leaving     // frames that the server has not received yet
	played  chan struct{} // closed when play has ended
	err     error
}

// leaving is a frame that left the queue and has not reached the server.
type leaving struct {
	at     olaf.Time
	update olaf.Update
	lanes  []uint32
}

// pusher is a worker of a virtual queue. It implements endpoint.Host.
type pusher struct {
	net     *virtual
	number  int
	pushes  *attach.Pushes
	end     endpoint.Endpoint
	ctx     context.Context // ends when its client ends
	bye     context.CancelFunc
	thinks  bool         // the client computes
	asks    *attach.Pull // the client waits for a newer model
	since   olaf.Time    // when the client could start to compute
	began   time.Time    // the same instant in real time
	due     olaf.Time    // when its update is due; Never if there is none
	values  []uint32     // of that update
	reward  int32
	applied int // models not yet reported to the endpoint
	readyNS []int64
}

// startVirtual opens the sockets of a virtual queue and starts the network.
func (a *attempt) startVirtual(ctx context.Context, compute olaf.Duration) (*virtual, error) {
	n := &virtual{Program: a.Program, sockets: newSockets(ctx), compute: compute, frames: a.Frames(),
		played: make(chan struct{})}
	c := attach.Config{System: a.system, Workers: a.Workers, Largest: a.Values, Lanes: a.Lanes, Scale: a.Scale,
		Turns: true}
	layout := attach.PushLayout(a.Values, a.Lanes)
	if err := n.openQueue(a.system); err != nil {
		return n, err
	}
	var err error
	if n.updates, err = attach.NewUpdates(c, n.fail, a.Progress); err != nil {
		return n, err
	}
	if err := n.listen(a.socket(-1), n.updates); err != nil {
		return n, err
	}
	places := pktgen.Placement{Workers: a.Workers, Clusters: a.Clusters}
	cfg := endpoint.Config{Workers: a.Workers, Layout: layout, Updates: 1}
	o := endpoint.Olaf{Members: func(job olaf.ClusterID) (int, int) { return places.Members(int(job)) }}
	if n.server, err = endpoint.NewOpenServer(cfg, o, (*virtualServer)(n)); err != nil {
		return n, err
	}
	cfg.Updates = a.rounds()
	for k := range a.Workers {
		c.Worker, cfg.Worker, cfg.Job = k, olaf.WorkerID(k), places.Cluster(k)
		if err := n.addPusher(c, cfg, a.socket(k)); err != nil {
			return n, err
		}
	}
	n.tasks.Go(n.play)
	return n, nil
}

// openQueue creates the queue of the named system, with its output.
func (n *virtual) openQueue(system string) error {
	if system == rl.Ideal {
		return nil
	}
	out, err := engine.Calibrated.Output(system, n.OutRate)
	if err != nil {
		return fmt.Errorf("--out-rate: %w", err)
	}
	n.port, err = engine.NewPort(system, engine.Config{Slots: n.Slots * n.frames, Clusters: n.Clusters * n.frames,
		LaneMemory: n.Lanes}, out, n)
	return err
}

// addPusher adds a worker and opens its socket.
func (n *virtual) addPusher(c attach.Config, cfg endpoint.Config, socket string) (err error) {
	m := &pusher{net: n, number: c.Worker, due: endpoint.Never}
	m.ctx, m.bye = context.WithCancel(n.ctx)
	n.members = append(n.members, m)
	if m.pushes, err = attach.NewPushes(c, nil, n.ends(m.bye)); err != nil {
		return err
	}
	if m.end, err = endpoint.NewOpenWorker(cfg, endpoint.Olaf{Gate: m.pushes}, m); err != nil {
		return err
	}
	return n.listen(socket, m.pushes)
}

// play runs the network until its programs have ended and nothing is in flight.
func (n *virtual) play() {
	defer close(n.played)
	for _, m := range n.members {
		m.end.Start(0)
	}
	for n.ctx.Err() == nil {
		next, handle := n.findNext()
		if n.hear(next) {
			continue
		}
		if handle == nil {
			break
		}
		n.now = next
		handle()
	}
	n.err = n.endReason()
	if n.err != nil {
		n.fail(n.err)
		n.close(n.err)
	}
}

// endReason returns the reason why the network stopped before its programs ended, or nil if they ended.
func (n *virtual) endReason() error {
	if why := context.Cause(n.ctx); why != nil {
		if errors.Is(why, context.Canceled) {
			return nil
		}
		return why
	}
	for k, m := range n.members {
		if m.asks != nil {
			return fmt.Errorf("%w: worker %d waits for a model newer than version %d, and no more come: updates that a "+
				"queue drops have no answer; pull without waiting", ErrProgram, k, m.asks.After)
		}
		if m.ctx.Err() == nil {
			return n.errLong(k)
		}
	}
	return nil
}

// findNext returns the time of the next event and a function that handles it. Events are frames that reach the server,
// frames that leave the queue, and updates that are due.
func (n *virtual) findNext() (at olaf.Time, handle func()) {
	if len(n.left) > 0 {
		return max(n.now, n.left[0].at), n.deliver
	}
	at = endpoint.Never
	if n.port != nil {
		if leaves, busy := n.port.Next(); busy {
			at, handle = leaves, func() { n.port.Advance(leaves) }
		}
	}
	for _, m := range n.members {
		if m.due < at {
			at, handle = m.due, m.handOver
		}
	}
	return at, handle
}

// hear waits for requests from clients that compute, before time passes to the next event. If computing times are
// measured, it does so before every event. It reports whether there was such a client.
func (n *virtual) hear(next olaf.Time) (heard bool) {
	if n.compute > 0 && next == n.now {
		return false
	}
	for _, m := range n.members {
		if m.thinks {
			m.hear()
			heard = true
		}
	}
	return heard
}

// hear processes the requests of a client that computes, until the client has its next update, waits for a newer model,
// or ends.
func (m *pusher) hear() {
	for m.thinks {
		a, ok := m.pushes.Ask(m.ctx)
		switch {
		case !ok:
			m.thinks = false
		case a.Pull != nil:
			m.asks, m.thinks = a.Pull, false
			m.answerPull()
		default:
			took := m.net.compute
			if took == 0 {
				if a.Since.After(m.began) {
					m.began = a.Since
				}
				took = olaf.Duration(a.At.Sub(m.began)) * olaf.Nanosecond
			}
			c := m.pushes.Lanes()
			m.thinks, m.due, m.values, m.reward = false, m.since.Add(took), c.Values, c.Reward
		}
	}
}

// answerPull sends the client the model for which it waits, if the model is new enough.
func (m *pusher) answerPull() {
	if m.asks == nil || !m.pushes.CanPull(m.asks) {
		return
	}
	m.asks, m.thinks = nil, true
	if m.net.now > m.since { // the client waited
		m.since, m.began = m.net.now, time.Now()
	}
	m.pushes.AnswerPull()
}

// handOver sends the worker's update that is due.
func (m *pusher) handOver() {
	m.due = endpoint.Never
	m.readyNS = append(m.readyNS, m.net.now.NS())
	m.end.OnComputed(m.net.now, m.values)
}

// Compute implements endpoint.Host. The client, whose update was answered, may compute its next update.
func (m *pusher) Compute(uint32) { m.thinks, m.since, m.began = true, m.net.now, time.Now() }

// Message implements endpoint.Host.
func (*pusher) Message() {}

// Send implements endpoint.Host. It offers a frame to the queue.
func (m *pusher) Send(_ endpoint.Peer, p *program.Packet, lanes []uint32) olaf.Time {
	n := m.net
	u := olaf.Update{GenNS: p.NewestNS % olaf.GenModulus, Seq: p.Index, Worker: p.Worker, Count: p.Count, Lanes: p.Lanes,
		Cluster: p.Job*olaf.ClusterID(n.frames) + olaf.ClusterID(p.Seg), Reward: m.reward}
	if n.port == nil {
		n.left = append(n.left, leaving{n.now, u, append([]uint32(nil), lanes...)})
		return n.now
	}
	signed := olaf.Map(lanes, func(v uint32) int32 { return int32(v) })
	n.port.Offer(n.now, &u, signed)
	return n.now
}

// Apply implements endpoint.Host. It stores one frame of the model.
func (m *pusher) Apply(a *endpoint.Aggregate) {
	m.pushes.Apply(a)
	m.applied++
}

// receive passes an answer from the server to the worker.
func (m *pusher) receive(p *program.Packet, lanes []uint32) {
	m.end.Receive(m.net.now, p, lanes)
	for ; m.applied > 0; m.applied-- {
		m.end.OnApplied(m.net.now)
	}
	m.answerPull()
}

// Deliver implements engine.Sink. The server receives the frame after the port and the workers have finished the
// current event.
func (n *virtual) Deliver(d *engine.Departure) {
	f := leaving{at: d.At, update: d.Frame.Update, lanes: make([]uint32, d.Frame.Update.Lanes)}
	for i := range f.lanes {
		f.lanes[i] = uint32(d.Frame.Lanes[i])
	}
	n.left = append(n.left, f)
}

// deliver passes the next frame to the server. The server's program answers it in zero virtual time.
func (n *virtual) deliver() {
	u, frames := n.left[0].update, olaf.ClusterID(n.frames)
	lanes := n.left[0].lanes
	n.left = n.left[1:]
	p := program.Packet{Kind: program.Data, Job: u.Cluster / frames, Seg: uint64(u.Cluster % frames), Worker: u.Worker,
		Index: u.Seq, Count: u.Count, Lanes: u.Lanes, Value: uint64(uint32(u.Reward))}
	p.NewestNS = u.GenNS
	n.server.Receive(n.now, &p, lanes)
	if n.applied {
		n.applied = false
		n.server.OnApplied(n.now)
	}
}

// virtualServer implements endpoint.Host for the server.
type virtualServer virtual

// Compute implements endpoint.Host. It does nothing, because a server computes no vectors.
func (*virtualServer) Compute(uint32) {}

// Message implements endpoint.Host.
func (*virtualServer) Message() {}

// Apply implements endpoint.Host. It waits for the answer from the server's program.
func (s *virtualServer) Apply(a *endpoint.Aggregate) {
	done := make(chan struct{})
	s.updates.ApplyLater(a, func() { close(done) })
	select {
	case <-done:
		s.applied = true
	case <-s.ctx.Done():
	}
}

// Send implements endpoint.Host. An answer reaches its worker immediately, with the status of the queue.
func (s *virtualServer) Send(to endpoint.Peer, p *program.Packet, lanes []uint32) olaf.Time {
	if s.port != nil {
		d := s.port.Discipline()
		endpoint.SetStatus(p, olaf.QueueStatus{Occupancy: uint32(d.Occupancy()), ActiveClusters: uint16(d.ActiveClusters()),
			Slots: uint16(min(s.Slots*s.frames, 1<<16-1)), Full: d.Occupancy() >= s.Slots*s.frames})
	}
	s.members[to].receive(p, lanes)
	return s.now
}

// leave implements localNet.
func (n *virtual) leave(worker int) { n.members[worker].bye() }

// complete implements localNet.
func (n *virtual) complete(r *ProgramRun) error {
	<-n.played
	n.end()
	if n.err != nil {
		return n.err
	}
	r.stampPoints(func(k int) []int64 { return n.members[k].readyNS })
	r.Counts = map[string]uint64{}
	for _, m := range n.members {
		AddPulls(r.Counts, m.pushes.Pulls())
	}
	if n.port == nil {
		return nil
	}
	s := n.port.Discipline().Stats()
	for class, count := range s.Class {
		r.Counts[engine.Class(class).String()] = count
	}
	r.Counts["in"], r.Counts["dropped"] = s.In(), s.Class[engine.DroppedFull]+s.Class[engine.DroppedMismatch]
	r.Counts["delivered_frames"], r.Counts["delivered_updates"] = s.Released, s.SumReleased
	r.Counts["lane_saturations"] = s.LaneSaturations
	return nil
}
