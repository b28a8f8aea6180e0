package rl

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/tc"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/internal/splitmix"
	"github.com/olafctl/olaf/pktgen/trace"
)

// Observer receives every update at the time when it is sent to the network, in order of time. gradient is valid during
// the call only. An error ends the training.
type Observer interface {
	OnUpdate(u *trace.Update, gradient *Weights) error
}

// Point is one update on the learning curve of a worker.
type Point struct {
	AtNS   int64
	Reward float64
}

// Outcome is the result of a training run. After an interrupt it contains the finished part.
type Outcome struct {
	Curves  [][]Point // by worker, one point per iteration
	Servers []ServerStats
	Places  []uint64 // updates in frames at the servers, by the place of their packets
	Network engine.Stats
	// Withheld counts updates that transmission control did not send.
	Withheld uint64
	// Models counts the models that iterations began with, and Torn those whose parts contain different numbers of
	// updates.
	Models, Torn uint64
	Weights      []Weights // by cluster, at the end
	Diverged     int       // clusters whose weights fail CheckWeights
	EndNS        int64
}

// worker is one learner with its state in virtual time.
type worker struct {
	id       int
	cluster  olaf.ClusterID
	learner  *Learner
	speed    float64
	received Weights  // newest answer of the server, used from the next iteration on
	version  uint64   // version of received
	inside   []uint64 // updates in received, by place
	start    Weights
	base     uint64 // version of start
	gradient Weights
	result   Iteration
	done     chan struct{} // closed when result and gradient are ready
	running  bool          // an iteration is in progress
	known    bool          // the iteration's duration is known
	startNS  int64
	finishNS int64 // valid if known
	cost     int64
	usualNS  float64 // running mean cost, for normalised periods
	seq      uint32
	control  tc.Controller
}

// training is the state of a training run in virtual time.
type training struct {
	config   *Config
	workers  []*worker
	servers  []*Keeper
	network  network
	law      tc.Law // nil without transmission control
	observer Observer
	out      Outcome
	periodNS float64 // mean period of a worker with speed 1 if periods are normalised, else 0
	now      int64
	failed   error
}

// Bounds of a normalised period relative to its mean. The lower one also bounds how far ahead iterations may run in
// parallel.
const (
	shortestPeriod = 0.25
	longestPeriod  = 4
	usualRate      = 0.1 // weight of the newest cost in a worker's running mean
)

// Train carries out the training run c in virtual time. observer may be nil. If the context ends, Train returns the
// finished part together with the context's error. Errors in the configuration match ErrConfig. If training diverges,
// Train returns an outcome and an error that matches ErrDiverged.
func Train(ctx context.Context, c Config, observer Observer) (*Outcome, error) {
	t, err := newTraining(&c, observer)
	if err != nil {
		return nil, err
	}
	for _, w := range t.workers {
		t.begin(w, 0)
	}
	for ctx.Err() == nil && t.failed == nil {
		w := t.next()
		if w == nil || c.Until > 0 && virtualTime(w.finishNS) > olaf.Time(c.Until) {
			break
		}
		t.finish(w)
	}
	t.settle()
	t.network.drain()
	t.close()
	var grown error
	t.out.Diverged, grown = t.out.checkWeights(&c)
	return &t.out, cmp.Or(t.failed, ctx.Err(), grown)
}

func newTraining(c *Config, observer Observer) (*training, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	t := &training{config: c, observer: observer}
	var err error
	if t.network, err = newNetwork(c, t.onArrival); err != nil {
		return nil, err
	}
	if c.Control != nil {
		if t.law, err = c.Control.Build(); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrConfig, err)
		}
	}
	if c.Network.Kind != Ideal {
		t.periodNS = c.meanPeriodNS(c.Network.update())
	}
	for cluster := range c.Clusters {
		t.servers = append(t.servers, c.Keeper(cluster, cmp.Or(c.Network.Lanes, Params)))
	}
	t.out.Curves = make([][]Point, c.Workers)
	for k := range c.Workers {
		w, err := c.newWorker(k)
		if err != nil {
			return nil, err
		}
		w.received = t.servers[w.cluster].weights
		w.inside = make([]uint64, len(t.servers[w.cluster].parts))
		t.workers = append(t.workers, w)
	}
	return t, nil
}

// Initial returns the initial weights of a cluster. They differ between clusters, because each cluster is a separate
// job.
func (c *Config) Initial(cluster int) *Weights {
	if c.Start == FirstStart {
		fastest, _ := c.Members(cluster) // see Speed
		return Initial(rand.New(rand.NewPCG(c.Seed, 2<<32+uint64(fastest))))
	}
	return Initial(rand.New(rand.NewPCG(c.Seed, 1<<32+uint64(cluster))))
}

func (c *Config) newWorker(k int) (*worker, error) {
	p := c.PPO
	p.Steps = c.steps(k)
	learner, err := newLearner(p, c.Seed, k)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return &worker{id: k, cluster: c.Cluster(k), learner: learner, speed: c.Speed(k)}, nil
}

// meanPeriodNS returns the mean period of a worker with speed 1, in ns. With this period, all workers together offer
// Network.Rate with updates of the given size.
func (c *Config) meanPeriodNS(update olaf.Size) float64 {
	perPeriod := 0.0
	for k := range c.Workers {
		perPeriod += 1 / c.Speed(k)
	}
	return perPeriod * float64(update.Bits()) / float64(c.Network.Rate) * 1e9
}

// begin starts w's next iteration at the time now, in a separate goroutine.
func (t *training) begin(w *worker, now int64) {
	w.start, w.base = w.received, w.version
	t.out.Models++
	if slices.Min(w.inside) < slices.Max(w.inside) {
		t.out.Torn++
	}
	w.running, w.known, w.startNS = true, false, now
	done := make(chan struct{})
	w.done = done
	go func() {
		defer close(done)
		w.fly(t.config)
	}()
}

// fly runs one iteration. Other goroutines must not read its results until done is closed.
func (w *worker) fly(c *Config) {
	if c.Gradient == Literal {
		w.result = w.learner.Gradient(&w.start, &w.gradient)
		return
	}
	w.result = w.learner.Improve(&w.start)
	for i, v := range w.learner.local {
		w.gradient[i] = (v - w.start[i]) / c.StepSize
	}
}

// costNS returns the duration of an iteration for a worker with speed 1, in ns.
func (c *Config) costNS(it Iteration) int64 {
	epochs := int64(c.PPO.Epochs)
	if c.Gradient == Literal {
		epochs = 1
	}
	return int64(it.Steps) * (c.Cost.StepNS + epochs*c.Cost.SampleNS)
}

// soonestNS returns a lower bound on the time at which w finishes its iteration. It can be computed before the
// iteration ends.
func (t *training) soonestNS(w *worker) int64 {
	if t.periodNS > 0 {
		return w.startNS + int64(t.periodNS*w.speed*shortestPeriod)
	}
	shortest := t.config.costNS(Iteration{Steps: t.config.steps(w.id)})
	return w.startNS + int64(float64(shortest)*w.speed)
}

// learn waits for the end of w's iteration and computes the virtual time at which w finishes it.
func (t *training) learn(w *worker) {
	<-w.done
	w.known = true
	w.cost = t.config.costNS(w.result)
	if t.periodNS == 0 {
		w.finishNS = w.startNS + int64(float64(w.cost)*w.speed)
		return
	}
	w.finishNS = w.startNS + w.period(t.periodNS)
}

// period returns the duration of w's iteration in ns, normalised so that its mean is meanNS for a worker with speed 1.
func (w *worker) period(meanNS float64) int64 {
	w.usualNS = cmp.Or(w.usualNS, float64(w.cost))
	ratio := min(max(float64(w.cost)/w.usualNS, shortestPeriod), longestPeriod)
	w.usualNS += usualRate * (float64(w.cost) - w.usualNS)
	return int64(float64(meanNS*w.speed) * ratio)
}

// next returns the worker that finishes first, or nil if none is running. It waits only for iterations that could
// finish before the first finish that is already known, so that other iterations continue in parallel. The order does
// not depend on the timing of goroutines.
func (t *training) next() *worker {
	for {
		var first, unknown *worker
		for _, w := range t.workers {
			switch {
			case !w.running:
			case w.known && (first == nil || w.finishNS < first.finishNS):
				first = w
			case !w.known && (unknown == nil || t.soonestNS(w) < t.soonestNS(unknown)):
				unknown = w
			}
		}
		if unknown == nil || first != nil && first.finishNS < t.soonestNS(unknown) {
			return first
		}
		t.learn(unknown)
	}
}

// finish sends w's update and starts its next iteration.
func (t *training) finish(w *worker) {
	t.hand(w)
	if t.failed == nil && t.config.Mode != Sync && int(w.seq) < t.config.Iterations {
		t.begin(w, t.now)
	}
}

// hand passes w's finished update to the observer and to the network.
func (t *training) hand(w *worker) {
	t.now = w.finishNS
	t.network.advance(virtualTime(t.now))
	w.running = false
	row := w.row(t.now)
	if t.failed = w.checkFinite(row.GradNorm, row.Seq); t.failed != nil {
		return
	}
	w.seq++
	t.out.Curves[w.id] = append(t.out.Curves[w.id], Point{AtNS: t.now, Reward: w.result.Reward})
	if t.observer != nil {
		if err := t.observer.OnUpdate(&row, &w.gradient); err != nil {
			t.failed = err
			return
		}
	}
	if !t.decideSend(w, row.Seq) {
		t.out.Withheld++
		return
	}
	update := olaf.Update{GenNS: uint64(t.now) % olaf.GenModulus, Seq: row.Seq, Reward: row.RewardQ248(), Cluster: w.cluster,
		Worker: olaf.WorkerID(w.id), Count: 1}
	t.network.send(virtualTime(t.now), &update, row.Reward, &w.gradient)
}

// decideSend reports whether the worker's transmission control sends update seq. The random numbers do not depend on
// the order of events.
func (t *training) decideSend(w *worker, seq uint32) bool {
	if t.law == nil {
		return true
	}
	draw := splitmix.MixBits(splitmix.MixBits(t.config.Seed) ^ uint64(w.id)<<32 ^ uint64(seq))
	return w.control.Decide(t.law, virtualTime(t.now), float64(draw>>11)/(1<<53))
}

func virtualTime(ns int64) olaf.Time { return olaf.Time(ns * int64(olaf.Nanosecond)) }

// row returns w's finished iteration as a row of a trace.
func (w *worker) row(atNS int64) trace.Update {
	return trace.Update{GenNS: atNS, Worker: olaf.WorkerID(w.id), Cluster: w.cluster, Seq: w.seq, BaseVersion: w.base,
		Reward: w.result.Reward, Episodes: uint32(w.result.Episodes), EnvSteps: uint32(w.result.Steps), CostNS: w.cost,
		GradNorm: gradientNorm(&w.gradient), Digest: trace.GradientDigest(w.gradient[:])}
}

// checkFinite returns an error if the worker's weights or gradient are not finite. Without the check such values would
// go unnoticed, because the lander flies on with any policy and the lanes would contain zeros.
func (w *worker) checkFinite(norm float32, iteration uint32) error {
	finite := func(v float32) bool { return v-v == 0 }
	what := ""
	switch {
	case slices.ContainsFunc(w.start[:], func(v float32) bool { return !finite(v) }):
		what = "weights are"
	case !finite(norm):
		what = "gradients are"
	default:
		return nil
	}
	return fmt.Errorf("%w: worker %d: %s no numbers from iteration %d on; use a smaller learn rate or step size",
		ErrDiverged, w.id, what, iteration+1)
}

// gradientNorm returns the Euclidean norm of a gradient.
func gradientNorm(g *Weights) float32 {
	sum := 0.0
	for _, v := range g {
		sum += float64(float64(v) * float64(v))
	}
	return float32(math.Sqrt(sum))
}

// onArrival handles a frame that arrives at a parameter server. The server steps its weights and sends the changed part
// to the contributors or to all workers.
func (t *training) onArrival(a *arrival) {
	s := t.servers[a.cluster]
	broadcast := s.parts[a.place].receive(a.gradient, a.reward, a.count)
	if !broadcast {
		if t.config.Mode == Async {
			for _, c := range a.inside {
				w := t.workers[c.Worker]
				w.answer(s, a.place)
				w.control.OnAck(a.at, a.status)
			}
		}
		return
	}
	first, end := t.config.Members(int(a.cluster))
	for _, w := range t.workers[first:end] {
		w.answer(s, a.place)
		if t.config.Mode == Sync && int(w.seq) < t.config.Iterations {
			t.begin(w, t.now)
		}
	}
}

func (w *worker) answer(s *Keeper, place int) {
	copy(w.received[place*s.part:], s.parts[place].weights)
	w.version, w.inside[place] = s.Stats().Versions, s.parts[place].stats.Inside
}

// settle waits for all iterations in progress, so that no goroutine outlives the training.
func (t *training) settle() {
	for _, w := range t.workers {
		if w.running {
			<-w.done
		}
	}
}

func (t *training) close() {
	for _, s := range t.servers {
		t.out.Servers = append(t.out.Servers, s.Stats())
		t.out.Places = AddPlaces(t.out.Places, s.Inside())
		t.out.Weights = append(t.out.Weights, s.weights)
	}
	t.out.Network = t.network.stats()
	t.out.EndNS = t.now
}

// Evaluate runs one episode without exploration for each of the given number of seeds, and returns the mean reward.
func Evaluate(weights *Weights, seeds int) float64 {
	var policy Policy
	policy.Load(weights)
	sum := 0.0
	for seed := range seeds {
		reward, _ := Fly(uint64(seed), policy.Greedy, nil)
		sum += reward
	}
	return sum / float64(seeds)
}
