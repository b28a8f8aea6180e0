package onwire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/pktgen/attach"
	"github.com/olafctl/olaf/pktgen/endpoint"
	"github.com/olafctl/olaf/pktgen/trace"
)

// ideal is a network in this process that loses nothing and takes no time. Programs attach to it in the same way as to
// daemons.
type ideal struct {
	*Program
	sockets
	rounds  []*attach.Rounds
	pushes  []*attach.Pushes
	updates *attach.Updates
	server  sync.Mutex // frames are received one by one
}

// startIdeal opens the sockets of an ideal network. If waits is set, the workers wait for sums; otherwise the network
// also has a server. seen, if not nil, receives every vector.
func (a *attempt) startIdeal(ctx context.Context, waits bool, seen func(worker int, v *attach.Seen)) (*ideal, error) {
	n := &ideal{Program: a.Program, sockets: newSockets(ctx)}
	c := attach.Config{System: a.system, Waits: waits, Workers: a.Workers, Largest: a.Values, Lanes: a.Lanes,
		Scale: a.Scale}
	if !waits {
		server := c
		server.Server = true
		var err error
		if n.updates, err = attach.NewUpdates(server, n.ended(-1), a.Progress); err != nil {
			return n, err
		}
		if err := n.listen(a.socket(-1), n.updates); err != nil {
			return n, err
		}
	}
	c.Awaited = n.awaited
	for k := range a.Workers {
		c.Worker = k
		if seen != nil {
			c.Seen = func(v *attach.Seen) { seen(k, v) }
		}
		if err := n.startWorker(c, a.socket(k)); err != nil {
			return n, err
		}
	}
	if waits {
		n.tasks.Go(n.sum)
	}
	return n, nil
}

// awaited returns the workers whose vector for a round has not arrived yet.
func (n *ideal) awaited(round uint32) (lacking []int) {
	for k, w := range n.rounds {
		if w.Accepted() <= round {
			lacking = append(lacking, k)
		}
	}
	return lacking
}

// startWorker opens the socket of one worker and serves its client.
func (n *ideal) startWorker(c attach.Config, socket string) error {
	if c.Waits {
		w, err := attach.NewRounds(c, n.ended(c.Worker))
		if err != nil {
			return err
		}
		n.rounds = append(n.rounds, w)
		return n.listen(socket, w)
	}
	w, err := attach.NewPushes(c, nil, n.ended(c.Worker))
	if err != nil {
		return err
	}
	n.pushes = append(n.pushes, w)
	n.tasks.Go(func() { n.push(w) })
	return n.listen(socket, w)
}

// ended returns a function to be called when the program of a worker or of the server ends. Other programs continue,
// unless they wait for sums that need its vectors.
func (n *ideal) ended(worker int) context.CancelCauseFunc {
	return func(why error) {
		switch {
		case !errors.Is(why, attach.ErrBye):
			n.fail(why)
		case len(n.rounds) > 0:
			n.fail(fmt.Errorf("%w: worker %d ended, and without it there are no more sums", attach.ErrBye, worker))
		}
	}
}

// push carries the updates of a worker to the server, and the answers back.
func (n *ideal) push(w *attach.Pushes) {
	for vector := uint32(0); n.ctx.Err() == nil; vector++ {
		c := w.Compute(n.ctx, vector)
		if n.ctx.Err() != nil {
			return
		}
		lanes := append([]uint32(nil), c.Values...)
		reward := c.Reward
		w.Sends(0)
		n.tasks.Go(func() { n.deliver(w, lanes, reward) })
	}
}

// deliver passes an update to the server, frame by frame, so that the server answers it.
func (n *ideal) deliver(w *attach.Pushes, lanes []uint32, reward int32) {
	n.server.Lock()
	defer n.server.Unlock()
	for at := 0; at < len(lanes) && n.ctx.Err() == nil; at += n.Lanes {
		a := &endpoint.Aggregate{Vectors: 1, First: at, Reward: reward, Values: lanes[at:min(len(lanes), at+n.Lanes)]}
		done := make(chan struct{})
		n.updates.ApplyLater(a, func() { close(done) })
		select {
		case <-done:
			w.Apply(a)
		case <-n.ctx.Done():
			return
		}
	}
}

// sum adds the vectors of all workers, round by round. Lanes saturate in the same way as in the kernel.
func (n *ideal) sum() {
	for round := uint32(0); ; round++ {
		var sum []uint32
		for i, w := range n.rounds {
			c := w.Compute(n.ctx, round)
			switch {
			case n.ctx.Err() != nil:
				n.close(context.Cause(n.ctx))
				return
			case i == 0:
				sum = append(sum, c.Values...)
			case len(c.Values) != len(sum):
				n.fail(fmt.Errorf("%w: workers 0 and %d have vectors of another length in round %d", attach.ErrDisagree, i, round))
			default:
				for k, v := range c.Values {
					sum[k] = uint32(int32(max(-math.MaxInt32, min(math.MaxInt32, int64(int32(sum[k]))+int64(int32(v))))))
				}
			}
		}
		for _, w := range n.rounds {
			if n.ctx.Err() == nil {
				w.Apply(&endpoint.Aggregate{Number: round, Vectors: uint32(n.Workers), Values: sum})
			}
		}
	}
}

// leave implements localNet.
func (n *ideal) leave(worker int) { n.ended(worker)(attach.ErrBye) }

// complete implements localNet. It does nothing, because an ideal network has no counts.
func (n *ideal) complete(*ProgramRun) error { return nil }

// Record runs the programs over an ideal network and writes every vector to a trace, with the wall-clock time at which
// it was ready. If waits is set, the workers wait for sums. The error matches ErrProgram if a program fails.
func (p *Program) Record(ctx context.Context, file *trace.File, waits bool) error {
	var mu sync.Mutex
	next := make([]uint32, p.Workers)
	began, answered := time.Now(), make([]time.Duration, p.Workers)
	var failed error
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	seen := func(worker int, v *attach.Seen) {
		mu.Lock()
		defer mu.Unlock()
		values, err := attach.Floats(v.Values)
		at := time.Since(began)
		if err == nil && len(values) != p.Values {
			err = fmt.Errorf("%w: worker %d has a vector of %d values, and all of a trace have --values, %d", attach.ErrConfig,
				worker, len(values), p.Values)
		}
		if err == nil {
			u := trace.Update{GenNS: at.Nanoseconds(), CostNS: max(0, (at - answered[worker]).Nanoseconds()),
				BaseVersion: uint64(v.Version),
				Digest:      trace.GradientDigest(values), Reward: float64(v.Reward), Seq: next[worker], GradNorm: trace.Norm(values),
				Worker: olaf.WorkerID(worker), Cluster: p.cluster(worker)}
			next[worker]++
			answered[worker] = at
			err = file.Append(&u, values)
		}
		if err != nil && failed == nil {
			failed = err
			stop(err)
		}
	}
	s := &stand{computes: !waits, local: func(ctx context.Context, a *attempt) (localNet, error) {
		return a.startIdeal(ctx, waits, seen)
	}}
	_, err := p.run(ctx, s, "ideal", p.Seeds[0])
	mu.Lock()
	defer mu.Unlock()
	return cmp.Or(failed, err)
}
