package onwire

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/bench/job"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/pktgen/attach"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// asyncNet is a simulated job whose workers do not wait for the complete sum. A program computes at each worker. A
// separate program applies the results: at a parameter server each gradient, and for iSwitch each sum, on behalf of all
// workers, because they all apply the same sum.
type asyncNet struct {
	*Program
	sockets
	spec    *job.Spec
	parts   system.Parts
	job     closedloop.Job
	compute olaf.Duration
	seed    uint64
	members []*asyncMember
	updates *attach.Updates
	flying  map[uint64]asyncUpdate // by program.ContributionMark
	arrived []uint64               // marks of contributions at the switch, in order, for sums that no worker has applied yet
	models  map[uint32]*asyncModel // by number: models of sums that some worker has not applied yet
	version uint32                 // updates that the server's program answered
	played  chan struct{}
	result  *closedloop.Result
	err     error
}

// asyncMember is the state of one worker in an asyncNet.
type asyncMember struct {
	pushes  *attach.Pushes
	ctx     context.Context // ends when its client ends
	bye     context.CancelFunc
	began   time.Time   // when its client could start to compute
	owes    bool        // the client's update is unanswered
	sent    bool        // the update was fresh enough to be sent
	model   *asyncModel // the worker's weights; nil before the first answer
	coming  *asyncModel // model in the server's answer that is on its way
	values  []uint32    // float32 values of the newest update, padded with zeros
	readyNS []int64
}

// asyncUpdate is an update from a worker that has not been applied yet.
type asyncUpdate struct {
	worker  int
	vector  uint32
	reward  float32
	version uint32 // version of the model that the client pulled before this update
}

// asyncModel is the model that the server's program sends in reply to an update.
type asyncModel struct {
	version uint32 // number of updates in the answers so far
	sum     uint32 // number of the sum, if all workers apply it
	values  []byte // little-endian float32; none for an ACK alone
}

// startAsync opens the sockets of an asynchronous job and starts the job.
func (a *attempt) startAsync(ctx context.Context, jobs *Jobs) (*asyncNet, error) {
	n := &asyncNet{Program: a.Program, sockets: newSockets(ctx), spec: jobs.Specs[a.system], compute: jobs.Compute,
		seed: a.seed, flying: map[uint64]asyncUpdate{}, models: map[uint32]*asyncModel{}, played: make(chan struct{})}
	var err error
	if n.parts, n.job, err = n.spec.Build(a.Values, a.rounds()); err != nil {
		return n, err
	}
	n.job.Varies = n.parts.Server != nil
	c := attach.Config{System: a.system, Workers: a.Workers, Largest: a.Values, Lanes: a.Values + attach.Overhead,
		Floats: true, Turns: true}
	if n.updates, err = attach.NewUpdates(c, n.fail, a.Progress); err != nil {
		return n, err
	}
	if err := n.listen(a.socket(-1), n.updates); err != nil {
		return n, err
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
func (n *asyncNet) addMember(c attach.Config, socket string) (err error) {
	m := new(asyncMember)
	m.ctx, m.bye = context.WithCancel(n.ctx)
	n.members = append(n.members, m)
	if m.pushes, err = attach.NewPushes(c, nil, n.ends(m.bye)); err != nil {
		return err
	}
	return n.listen(socket, m.pushes)
}

// play runs the job until its programs have ended.
func (n *asyncNet) play() {
	defer close(n.played)
	network := n.spec.Network
	network.Workers = n.Workers
	n.job.Limit, n.job.Applied, n.job.Begin, n.job.Values = mostTime, n.applied, n.begin, n.handOver
	n.job.Observer = asyncSends{asyncNet: n}
	if n.parts.Server == nil {
		n.job.Tap = n.noteArrival
	}
	n.job.Follow = func(_, next olaf.Time, _ *closedloop.Look) (olaf.Time, bool) { // until all clients ended
		return next, n.ctx.Err() == nil && next < olaf.Time(never)
	}
	n.result, n.err = closedloop.Run(n.ctx, network, n.job, n.parts, false, n.seed)
	if cause := context.Cause(n.ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		n.err = cause
	}
	for k, m := range n.members {
		if n.err == nil && m.ctx.Err() == nil {
			n.err = n.errLong(k)
		}
	}
	if n.err != nil {
		n.fail(n.err)
		n.close(n.err)
	}
}

// begin lets a worker's client compute an update with the current model, and returns the computing time.
func (n *asyncNet) begin(k int, vector uint32) olaf.Duration {
	m := n.members[k]
	if m.model != nil && len(m.model.values) > 0 {
		m.pushes.SetModel(m.model.version, m.model.values)
	}
	if m.owes {
		m.owes, m.began = false, time.Now()
		m.pushes.Answer(m.sent)
		if !m.sent {
			delete(n.flying, program.ContributionMark(olaf.WorkerID(k), vector-1))
		}
	}
	for {
		a, ok := m.pushes.Ask(m.ctx)
		switch {
		case !ok:
			return never
		case a.Pull == nil:
			return n.takeUpdate(k, vector, &a)
		case m.pushes.CanPull(a.Pull):
			m.pushes.AnswerPull()
		default:
			m.pushes.RefusePull(a.Pull)
		}
	}
}

// takeUpdate stores an update from a worker's client and returns its computing time.
func (n *asyncNet) takeUpdate(k int, vector uint32, a *attach.Request) olaf.Duration {
	m := n.members[k]
	least := 1
	if n.parts.Server == nil { // results of iSwitch are counted by segment, so that every vector needs all segments
		least = n.Values
	}
	m.values = appendLanes(m.values[:0], a.Values, least)
	n.flying[program.ContributionMark(olaf.WorkerID(k), vector)] = asyncUpdate{k, vector, a.Reward, a.Version}
	if n.compute > 0 {
		return n.compute
	}
	if a.Since.After(m.began) {
		m.began = a.Since
	}
	return olaf.Duration(a.At.Sub(m.began)) * olaf.Nanosecond
}

// appendLanes appends little-endian float32 values to lanes, and zeros until there are the given number.
func appendLanes(lanes []uint32, values []byte, least int) []uint32 {
	for i := 0; i < len(values); i += 4 {
		lanes = append(lanes, binary.LittleEndian.Uint32(values[i:]))
	}
	for len(lanes) < least {
		lanes = append(lanes, 0)
	}
	return lanes
}

// handOver returns a worker's update at the time when it is due.
func (n *asyncNet) handOver(now olaf.Time, k int, _ uint32) []uint32 {
	m := n.members[k]
	m.owes, m.sent = true, false
	m.readyNS = append(m.readyNS, now.NS())
	return m.values
}

// noteArrival records the order in which updates reach the switch. The sums have the same order.
func (n *asyncNet) noteArrival(f *closedloop.Frame) {
	if f.To == n.Workers && f.Packet.Kind == program.Data && f.Packet.Seg == 0 {
		n.arrived = append(n.arrived, f.Packet.Inside)
	}
}

// applied asks the server's program to answer a gradient at the server, or a sum when the first worker applies it. It
// stores the answer for the workers.
func (n *asyncNet) applied(_ olaf.Time, host int, a *endpoint.Aggregate) {
	switch {
	case host == n.Workers: // the server
		m := n.members[n.flying[a.Trace.Inside].worker]
		m.coming = n.askServer(a, []uint64{a.Trace.Inside})
		a.Values = appendLanes(nil, m.coming.values, 1)
	case n.parts.Server != nil:
		n.members[host].model = n.members[host].coming
	default:
		model := n.models[a.Number]
		if model == nil {
			model = n.askServer(a, n.takeInside(a.Trace.Inside))
			model.sum = a.Number
			n.models[model.sum] = model
		}
		n.members[host].model = model
		n.forgetModels()
	}
}

// takeInside returns the marks of the contributions to the next sum.
func (n *asyncNet) takeInside(inside uint64) (marks []uint64) {
	sum := uint64(0)
	for i, mark := range n.arrived {
		if sum += mark; sum == inside {
			marks, n.arrived = n.arrived[:i+1], n.arrived[i+1:]
			break
		}
	}
	return marks
}

// forgetModels deletes the models that all workers have applied.
func (n *asyncNet) forgetModels() {
	oldest := uint32(math.MaxUint32)
	for _, m := range n.members {
		if m.model == nil {
			return
		}
		oldest = min(oldest, m.model.sum)
	}
	for sum := range n.models {
		if sum <= oldest {
			delete(n.models, sum)
		}
	}
}

// askServer asks the server's program for its answer to a sum. marks identifies the updates in the sum.
func (n *asyncNet) askServer(a *endpoint.Aggregate, marks []uint64) *asyncModel {
	u := attach.Update{Count: a.Vectors, GenNS: a.Trace.NewestNS, Version: n.version}
	n.version += a.Vectors
	for _, mark := range marks {
		f := n.flying[mark]
		delete(n.flying, mark)
		u.Worker, u.Vector = uint32(f.worker), f.vector
		u.Reward, u.VersionSum = u.Reward+f.reward, u.VersionSum+uint64(f.version)
	}
	values := make([]byte, 0, 4*len(a.Values))
	for _, v := range a.Values {
		values = binary.LittleEndian.AppendUint32(values, v)
	}
	reply, _ := n.updates.ApplyVector(n.ctx, u, values) // a job that failed ends before time passes
	return &asyncModel{version: n.version, values: reply}
}

// asyncSends makes an asyncNet an observer of its job. It records which updates were sent.
type asyncSends struct {
	closedloop.Unobserved
	*asyncNet
}

// OnSend implements closedloop.Observer. It records that the worker's update was sent.
func (n asyncSends) OnSend(_ olaf.Time, worker int) { n.members[worker].sent = true }

// leave implements localNet. It ends the worker's connection.
func (n *asyncNet) leave(worker int) { n.members[worker].bye() }

// complete implements localNet. It waits for the job to end and adds the job's data to r.
func (n *asyncNet) complete(r *ProgramRun) error {
	<-n.played
	n.end()
	if n.err != nil {
		return n.err
	}
	r.stampPoints(func(k int) []int64 { return n.members[k].readyNS })
	r.countJob(n.result)
	return nil
}
