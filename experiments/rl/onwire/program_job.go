package onwire

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/bench/job"
	"github.com/olafctl/olaf/experiments/bench/wired"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/pktgen/attach"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// Jobs contains the closed-loop systems through which programs train. Jobs are simulated. If Wired is set, they send
// real frames through a switch in this process; their workers must then wait for the complete sum, or have a server.
type Jobs struct {
	Specs map[string]*job.Spec // by the systems' names
	Wired bool
	// Compute is the virtual time for a vector; 0 means the time that the program takes, one worker at a time.
	Compute olaf.Duration
}

// hasDaemons reports whether the workers and the server of a system are processes, not threads.
func (j *Jobs) hasDaemons(name string) bool { return j.Wired && !j.Specs[name].Mode.Sync }

// mostRounds is the maximum number of updates from each worker in a network in this process.
const mostRounds = 1 << 20

// rounds returns the maximum number of updates from each worker.
func (p *Program) rounds() uint32 { return cmp.Or(p.most, mostRounds) }

// errLong returns the error for a worker whose program sends more updates than its network accepts.
func (p *Program) errLong(worker int) error {
	return fmt.Errorf("%w: worker %d goes on after %d updates or %v of virtual time, where a run ends; train in fewer steps",
		ErrProgram, worker, p.rounds(), mostTime)
}

// RunJobs trains through each of the jobs' systems with every seed.
func (p *Program) RunJobs(ctx context.Context, jobs *Jobs) (*ProgramReport, error) {
	return p.runAll(func(name string, seed uint64) (*ProgramRun, error) {
		where := "in virtual time"
		if jobs.Wired {
			where = "around a switch on " + p.Device
		}
		if jobs.hasDaemons(name) {
			where = "and a server as processes " + where
		}
		p.Progress("%s, seed %d: %d workers %s", name, seed, p.Workers, where)
		return p.runJob(ctx, jobs, name, seed)
	})
}

// runJob trains through one of the jobs' systems with one seed.
func (p *Program) runJob(ctx context.Context, jobs *Jobs, name string, seed uint64) (*ProgramRun, error) {
	start := func(ctx context.Context, a *attempt) (localNet, error) { return a.startJob(ctx, jobs) }
	spec := jobs.Specs[name]
	switch {
	case jobs.hasDaemons(name):
		return p.runAnswered(ctx, spec, seed)
	case !spec.Mode.Sync:
		start = func(ctx context.Context, a *attempt) (localNet, error) { return a.startAsync(ctx, jobs) }
	}
	return p.run(ctx, &stand{computes: !spec.Mode.Sync, local: start}, name, seed)
}

// jobNet is a job of synchronous workers whose vectors are computed by programs.
type jobNet struct {
	*Program
	*Jobs
	sockets
	spec    *job.Spec
	parts   system.Parts
	job     closedloop.Job
	network closedloop.Network
	seed    uint64
	members []*member
	played  chan struct{} // closed when play has ended
	began   time.Time     // start of the run's clock
	mu      sync.Mutex    // guards the members, whose workers may run on several threads
	result  *closedloop.Result
	err     error
}

// member is the state of one worker in a jobNet.
type member struct {
	rounds   *attach.Rounds
	ctx      context.Context // ends when its client ends
	bye      context.CancelFunc
	answered time.Time   // when its client could start to compute
	vectors  [2][]uint32 // of even and odd rounds, float32
	rewards  [2]float32  // of the same rounds
	vector   uint32      // number of the newest vector
	length   int         // of the newest vector; -1 before the first one
	sum      *attach.Sum // sum that the client has not received yet
	values   []uint32
	readyNS  []int64 // on the run's clock, by vector
	begun    bool    // the client computes
	ended    bool
}

// startJob opens the sockets of a job and starts the job.
func (a *attempt) startJob(ctx context.Context, jobs *Jobs) (*jobNet, error) {
	n := &jobNet{Program: a.Program, Jobs: jobs, spec: jobs.Specs[a.system], seed: a.seed, sockets: newSockets(ctx),
		played: make(chan struct{}), began: time.Now()}
	var err error
	if n.parts, n.job, err = n.spec.Build(a.Values, a.rounds()); err != nil {
		return n, err
	}
	n.job.Varies, n.network = true, n.spec.Network
	n.network.Workers = a.Workers
	c := attach.Config{System: a.system, Waits: true, Workers: a.Workers, Largest: a.Values,
		Lanes: n.parts.PerPacket + attach.Overhead, Floats: n.parts.Conversion.IsExact() || n.parts.Conversion.Block,
		Scale: n.parts.Conversion.Scale, Awaited: n.awaited}
	c.RefusesNaN = n.parts.Conversion.Block
	if n.Wired {
		c.Numbers = n.parts.Numbers
	}
	for k := range a.Workers {
		c.Worker = k
		if err := n.addMember(c, a.socket(k)); err != nil {
			return n, err
		}
	}
	n.tasks.Go(n.play)
	return n, nil
}

// addMember adds a worker and opens its socket.
func (n *jobNet) addMember(c attach.Config, socket string) error {
	m := &member{length: -1}
	m.ctx, m.bye = context.WithCancel(n.ctx)
	n.members = append(n.members, m)
	var err error
	if m.rounds, err = attach.NewRounds(c, n.ends(m.bye)); err != nil {
		return err
	}
	return n.listen(socket, m.rounds)
}

// leave implements localNet.
func (n *jobNet) leave(worker int) { n.members[worker].bye() }

// awaited returns the workers whose vector for a round has not arrived yet.
func (n *jobNet) awaited(round uint32) (lacking []int) {
	for k, m := range n.members {
		if m.rounds.Accepted() <= round {
			lacking = append(lacking, k)
		}
	}
	return lacking
}

// mostTime limits the virtual time of a training run, which otherwise ends with its programs. A program that continues
// for longer fails.
const mostTime = 30 * 24 * 3600 * olaf.Second

// play runs the job until its programs have ended.
func (n *jobNet) play() {
	defer close(n.played)
	n.job.Limit, n.job.Applied = mostTime, n.applied
	if n.Wired {
		parts := n.parts
		if parts.Program == nil {
			parts.Program, parts.Passes = n.spec.System.SwitchProgram(), true
		}
		parts.Root = parts.Program.New
		played, err := wired.RunWork(n.ctx, n.network, n.job, parts, (*wires)(n), n.seed)
		if played != nil {
			n.result = played.Result
		}
		n.finish(err)
		return
	}
	n.job.Begin, n.job.Values = n.begin, n.handOver
	n.job.Follow = func(_, next olaf.Time, _ *closedloop.Look) (olaf.Time, bool) { return next, !n.isOver() }
	result, err := closedloop.Run(n.ctx, n.network, n.job, n.parts, true, n.seed)
	n.result = result
	n.finish(err)
}

// finish records why the job ended and informs the programs that are still running.
func (n *jobNet) finish(err error) {
	if cause := context.Cause(n.ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	if n.err = err; err != nil {
		n.fail(err)
	}
	for k, m := range n.members { // a program that still runs receives the reason
		if err != nil {
			break
		}
		n.answer(m)
		if _, goesOn := m.rounds.Take(m.ctx); goesOn {
			err = n.endReason(k)
		}
	}
	if err != nil {
		n.close(err)
	}
}

// endReason returns the reason why a worker whose program is still running receives no more sums.
func (n *jobNet) endReason(worker int) error {
	if slices.ContainsFunc(n.members, func(m *member) bool { return m.ctx.Err() != nil }) {
		return fmt.Errorf("%w: another worker ended, and without it there are no more sums", attach.ErrBye)
	}
	n.err = n.errLong(worker)
	n.fail(n.err)
	return n.err
}

// isOver reports whether the job failed, or whether a client has ended and all clients have received their sums.
func (n *jobNet) isOver() bool {
	ended := false
	for _, m := range n.members {
		if m.sum != nil || len(m.readyNS) != len(n.members[0].readyNS) || !m.begun {
			return n.ctx.Err() != nil
		}
		ended = ended || m.ended
	}
	return ended || n.ctx.Err() != nil
}

// takeVector stores a vector from a client.
func (n *jobNet) takeVector(k int, vector uint32, h *attach.Handed) {
	n.mu.Lock()
	defer n.mu.Unlock()
	m := n.members[k]
	into := &m.vectors[vector%2]
	length := max(len(h.Values)/4, attach.PaddedLength(vector, n.parts.PerPacket, n.Values))
	*into = append((*into)[:0], make([]uint32, length)...)
	for i := range len(h.Values) / 4 {
		(*into)[i] = binary.LittleEndian.Uint32(h.Values[4*i:])
	}
	m.vector, m.length, m.rewards[vector%2] = vector, len(h.Values)/4, h.Reward
	for other, o := range n.members {
		switch {
		case n.ctx.Err() != nil:
		case o.ctx.Err() != nil:
			n.failWithout(other)
		case o.length >= 0 && o.vector == vector && o.length != m.length:
			n.fail(fmt.Errorf("%w: in round %d the vector of worker %d has %d values, and that of worker %d has %d",
				attach.ErrDisagree, vector, k, m.length, other, o.length))
		}
	}
	if err := m.rounds.CountPackets(length); err != nil {
		n.fail(err)
	}
}

// hintAfter is the computing time after which a hint about long computations is printed. While the time of one program
// is measured, the others receive no answers.
const hintAfter = 10 * time.Second

// never is returned as the computing time of a worker whose client has ended.
const never = olaf.Duration(math.MaxInt64 / 4)

// begin lets a worker's client compute a vector, and returns the computing time.
func (n *jobNet) begin(k int, vector uint32) olaf.Duration {
	m := n.members[k]
	n.answer(m)
	m.begun = true
	if n.Compute > 0 {
		return n.Compute
	}
	hint := time.AfterFunc(hintAfter, func() {
		n.Progress("worker %d computes for more than %v; if it waits for other programs beside the network, as DDP does, "+
			"give the time with --compute", k, hintAfter)
	})
	defer hint.Stop()
	h, ok := m.rounds.Take(m.ctx)
	if !ok {
		m.ended = true
		n.endWithout(k, vector)
		return never
	}
	n.takeVector(k, vector, &h)
	since := m.answered
	if h.Since.After(since) {
		since = h.Since
	}
	return olaf.Duration(h.At.Sub(since)) * olaf.Nanosecond
}

// answer passes the stored sum, if any, to a worker's client.
func (n *jobNet) answer(m *member) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if m.sum != nil {
		sum := *m.sum
		m.sum, m.answered = nil, time.Now()
		m.rounds.Give(sum, m.values)
	}
}

// handOver returns a worker's vector at the time when it is due.
func (n *jobNet) handOver(now olaf.Time, k int, vector uint32) []uint32 {
	m := n.members[k]
	if n.Compute > 0 {
		h, ok := m.rounds.Take(m.ctx)
		if m.ended = !ok; m.ended {
			n.endWithout(k, vector)
			return make([]uint32, n.Values)
		}
		n.takeVector(k, vector, &h)
	}
	m.begun = false
	m.readyNS = append(m.readyNS, now.NS())
	return m.vectors[vector%2]
}

// endWithout ends the job if a worker whose program has ended did not compute a vector that another worker's sum needs.
func (n *jobNet) endWithout(ended int, vector uint32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, m := range n.members {
		if m.length >= 0 && m.vector >= vector {
			n.failWithout(ended)
			return
		}
	}
}

// failWithout ends the job because a worker's program has ended.
func (n *jobNet) failWithout(ended int) {
	n.fail(fmt.Errorf("%w: worker %d ended, and without it there are no more sums", attach.ErrBye, ended))
}

// applied stores a sum that a worker received until its client is answered.
func (n *jobNet) applied(_ olaf.Time, host int, a *endpoint.Aggregate) {
	if host >= len(n.members) || a.Unequal { // takeVector ends a job whose vectors differ in length
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	m := n.members[host]
	m.values = append(m.values[:0], a.Values...)
	m.sum = &attach.Sum{Workers: uint32(n.Workers)}
	if a.Torn && !n.Wired { // real frames do not name their contributors
		m.sum.Torn = 1
	}
	for _, other := range n.members {
		m.sum.Reward += other.rewards[m.vector%2]
	}
	packets := make([][]uint32, len(n.members))
	for first := 0; first < len(a.Values) && !n.parts.Conversion.IsExact(); first += n.parts.PerPacket {
		for k, other := range n.members {
			packets[k] = other.vectors[m.vector%2][first:min(first+n.parts.PerPacket, len(a.Values))]
		}
		clipped, vanished := n.parts.Conversion.CountChanged(host, packets)
		m.sum.Clipped, m.sum.Vanished = m.sum.Clipped+uint32(clipped), m.sum.Vanished+uint32(vanished)
	}
	m.sum.Saturated = uint32(n.parts.Conversion.CountSaturated(m.values))
}

// complete adds the job's data to the result of a run whose programs have ended.
func (n *jobNet) complete(r *ProgramRun) error {
	for _, m := range n.members {
		m.bye() // also for clients that ended without a message
	}
	<-n.played
	n.end()
	if n.err != nil {
		return n.err
	}
	r.stampPoints(func(k int) []int64 { return n.members[k].readyNS })
	if n.Wired {
		r.rebase() // real time includes the programs' start-up
	}
	r.countJob(n.result)
	r.Counts["rounds"] = uint64(len(n.members[0].readyNS))
	return nil
}

// countJob replaces the counts of a run by those of a job.
func (r *ProgramRun) countJob(job *closedloop.Result) {
	r.Counts = map[string]uint64{"frames": job.Frames, "lost": job.Lost}
	for _, counts := range []olaf.Counts{job.Endpoints, job.Program} {
		if counts.Ledger() == nil {
			continue
		}
		for i, c := range counts.Ledger().Counters {
			r.Counts[c.Name] += uint64(max(counts.At(i), 0))
		}
	}
}

// wires is a jobNet that sends real frames and whose workers run on threads of this process. It implements wired.Work
// for the job's hosts.
type wires jobNet

// Begin implements wired.Work.
func (w *wires) Begin(k int, vector uint32) {
	n := (*jobNet)(w)
	n.answer(n.members[k])
}

// Take implements wired.Work.
func (w *wires) Take(k int) (values []uint32, ready bool) {
	n := (*jobNet)(w)
	m := n.members[k]
	vector := uint32(len(m.readyNS))
	h, ok := m.rounds.TryTake()
	if !ok {
		if m.ctx.Err() != nil {
			n.endWithout(k, vector)
		}
		return nil, false
	}
	n.takeVector(k, vector, &h)
	m.readyNS = append(m.readyNS, time.Since(n.began).Nanoseconds())
	return m.vectors[vector%2], true
}

// Over implements wired.Work.
func (w *wires) Over() bool {
	for _, m := range w.members {
		if m.ctx.Err() == nil {
			return false
		}
	}
	return true
}
