package rl

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/rl/lander"
	"github.com/olafctl/olaf/experiments/rl/ppo"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/pktgen/trace"
)

// Observer hears of every update as it is handed to the network, in order of time. gradient is only valid during the
// call. An error ends the training.
type Observer interface {
	Generated(u *trace.Update, gradient *ppo.Weights) error
}

// Point is one update on a worker's learning curve.
type Point struct {
	AtNS   int64
	Reward float64
}

// Outcome is what a training came to. After an interrupt it holds what was done until then.
type Outcome struct {
	Curves  [][]Point // by worker, one point an iteration
	Servers []ServerStats
	Places  []uint64 // updates inside of what reached the servers, by the place of their packets
	Network engine.Stats
	Weights []ppo.Weights // by cluster, at the end
	EndNS   int64
}

// worker is one learner in virtual time.
type worker struct {
	id       int
	cluster  olaf.ClusterID
	learner  *ppo.Learner
	speed    float64
	received ppo.Weights // newest answer of the server; taken up when the next iteration starts
	version  uint64      // of received
	start    ppo.Weights
	base     uint64 // version of start
	gradient ppo.Weights
	result   ppo.Iteration
	done     chan struct{} // closed when result and gradient are ready
	running  bool          // an iteration is under way
	known    bool          // … and how long it takes is known
	startNS  int64
	finishNS int64 // when known
	cost     int64
	usualNS  float64 // running mean of the cost, for normalised periods
	seq      uint32
}

// training is a run in virtual time.
type training struct {
	config   *Config
	workers  []*worker
	servers  []*Keeper
	network  network
	observer Observer
	out      Outcome
	periodNS float64 // mean period of a worker of speed 1 where periods are normalised, else 0
	now      int64
	failed   error
}

// Bounds of a normalised period around its mean. The lower one is also how far ahead iterations may run in parallel.
const (
	shortestPeriod = 0.25
	longestPeriod  = 4
	usualRate      = 0.1 // how fast the running mean of a worker's cost follows
)

// Train runs c in virtual time. observer may be nil. When the context ends it returns what was done so far with the
// context's error. The error of a refused configuration matches ErrConfig.
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
		if w == nil || c.Until > 0 && virtual(w.finishNS) > olaf.Time(c.Until) {
			break
		}
		t.finish(w)
	}
	t.settle()
	t.network.drain()
	t.close()
	if t.failed != nil {
		return &t.out, t.failed
	}
	return &t.out, ctx.Err()
}

func newTraining(c *Config, observer Observer) (*training, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	t := &training{config: c, observer: observer}
	var err error
	if t.network, err = newNetwork(c, t.arrived); err != nil {
		return nil, err
	}
	if c.Network.Kind != Ideal {
		t.periodNS = c.meanPeriodNS(c.Network.update())
	}
	part := ppo.Params
	if c.Network.Lanes > 0 {
		part = c.Network.Lanes
	}
	for cluster := range c.Clusters {
		t.servers = append(t.servers, c.Keeper(cluster, part))
	}
	t.out.Curves = make([][]Point, c.Workers)
	for k := range c.Workers {
		w, err := c.newWorker(k)
		if err != nil {
			return nil, err
		}
		w.received = t.servers[w.cluster].weights
		t.workers = append(t.workers, w)
	}
	return t, nil
}

// Initial is the weights that a cluster's server starts with. Different clusters are different jobs.
func (c *Config) Initial(cluster int) *ppo.Weights {
	return ppo.Initial(rand.New(rand.NewPCG(c.Seed, 1<<32+uint64(cluster))))
}

func (c *Config) newWorker(k int) (*worker, error) {
	p := c.PPO
	p.Steps = c.steps(k)
	learner, err := ppo.NewLearner(p, c.Seed, k)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return &worker{id: k, cluster: c.Cluster(k), learner: learner, speed: c.Speed(k)}, nil
}

// meanPeriodNS is the period of a worker of speed 1 at which all together offer Network.Rate, with updates that take so much.
func (c *Config) meanPeriodNS(update olaf.Size) float64 {
	perPeriod := 0.0
	for k := range c.Workers {
		perPeriod += 1 / c.Speed(k)
	}
	return perPeriod * float64(update.Bits()) / float64(c.Network.Rate) * 1e9
}

// begin lets w fly its next iteration from now on, on a goroutine of its own.
func (t *training) begin(w *worker, now int64) {
	w.start, w.base = w.received, w.version
	w.running, w.known, w.startNS = true, false, now
	done := make(chan struct{})
	w.done = done
	go func() {
		defer close(done)
		w.fly(t.config)
	}()
}

// fly is one iteration; it touches nothing that others see before done.
func (w *worker) fly(c *Config) {
	if c.Gradient == Literal {
		w.result = w.learner.Gradient(&w.start, &w.gradient)
		return
	}
	w.result = w.learner.Improve(&w.start)
	local := w.learner.Local()
	for i := range w.gradient {
		w.gradient[i] = (local[i] - w.start[i]) / c.StepSize
	}
}

// cost is how long an iteration takes at speed 1.
func (c *Config) costNS(it ppo.Iteration) int64 {
	epochs := int64(c.PPO.Epochs)
	if c.Gradient == Literal {
		epochs = 1
	}
	return int64(it.Steps) * (c.Cost.StepNS + epochs*c.Cost.SampleNS)
}

// soonestNS is a lower bound of when w finishes, known before the iteration is.
func (t *training) soonestNS(w *worker) int64 {
	if t.periodNS > 0 {
		return w.startNS + int64(t.periodNS*w.speed*shortestPeriod)
	}
	shortest := t.config.costNS(ppo.Iteration{Steps: t.config.steps(w.id)})
	return w.startNS + int64(float64(shortest)*w.speed)
}

// learn waits for w's iteration and fixes when it finishes.
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

// period is how long w's iteration takes where periods are normalised to a mean.
func (w *worker) period(meanNS float64) int64 {
	if w.usualNS == 0 {
		w.usualNS = float64(w.cost)
	}
	ratio := min(max(float64(w.cost)/w.usualNS, shortestPeriod), longestPeriod)
	w.usualNS += usualRate * (float64(w.cost) - w.usualNS)
	return int64(float64(meanNS*w.speed) * ratio)
}

// next is the worker that finishes first, nil if none is under way. It waits only for iterations that could finish
// before the first that is known, so that the others go on in parallel; who comes next does not depend on who is ready.
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

// finish hands w's update over and lets it go on.
func (t *training) finish(w *worker) {
	t.hand(w)
	if t.failed == nil && t.config.Mode != Sync && int(w.seq) < t.config.Iterations {
		t.begin(w, t.now)
	}
}

// hand gives w's update to the observer and the network at the instant it is finished.
func (t *training) hand(w *worker) {
	t.now = w.finishNS
	t.network.advance(virtual(t.now))
	w.running = false
	row := w.row(t.now)
	if t.failed = w.checkFinite(&row); t.failed != nil {
		return
	}
	w.seq++
	t.out.Curves[w.id] = append(t.out.Curves[w.id], Point{AtNS: t.now, Reward: w.result.Reward})
	if t.observer != nil {
		if err := t.observer.Generated(&row, &w.gradient); err != nil {
			t.failed = err
			return
		}
	}
	update := olaf.Update{GenNS: uint64(t.now) % olaf.GenModulus, Seq: row.Seq, Reward: row.RewardQ248(), Cluster: w.cluster,
		Worker: olaf.WorkerID(w.id), Count: 1}
	t.network.send(virtual(t.now), &update, row.Reward, &w.gradient)
}

func virtual(ns int64) olaf.Time { return olaf.Time(ns * int64(olaf.Nanosecond)) }

// row is w's finished iteration as a trace tells it.
func (w *worker) row(atNS int64) trace.Update {
	return trace.Update{GenNS: atNS, Worker: olaf.WorkerID(w.id), Cluster: w.cluster, Seq: w.seq, BaseVersion: w.base,
		Reward: w.result.Reward, Episodes: uint32(w.result.Episodes), EnvSteps: uint32(w.result.Steps), CostNS: w.cost,
		GradNorm: length(&w.gradient), Digest: trace.Digest(w.gradient[:])}
}

// checkFinite returns an error if the worker's weights or gradient are no numbers. The lander of such a policy flies on,
// and its lanes would carry zeros, so that nothing else shows it.
func (w *worker) checkFinite(row *trace.Update) error {
	finite := func(v float32) bool { return v-v == 0 }
	what := ""
	switch {
	case slices.ContainsFunc(w.start[:], func(v float32) bool { return !finite(v) }):
		what = "weights are"
	case !finite(row.GradNorm):
		what = "gradients are"
	default:
		return nil
	}
	return fmt.Errorf("%w: worker %d: %s no numbers from iteration %d on; use a smaller learn rate or step size",
		ErrDiverged, w.id, what, row.Seq+1)
}

// length returns the Euclidean norm of a gradient.
func length(g *ppo.Weights) float32 {
	sum := 0.0
	for _, v := range g {
		sum += float64(float64(v) * float64(v))
	}
	return float32(math.Sqrt(sum))
}

// arrived is what a parameter server does with what it gets: step, then answer the contributors or everybody, with as much as it stepped.
func (t *training) arrived(a *arrival) {
	s := t.servers[a.cluster]
	broadcast := s.parts[a.place].receive(a.gradient, a.reward, a.count)
	if !broadcast {
		if t.config.Mode == Async {
			for _, c := range a.inside {
				t.workers[c.Worker].answer(s, a.place)
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
	w.version = s.Stats().Versions
}

// settle waits for what is still flying, so that nothing outlives the training.
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

// Evaluate flies weights without exploring, one episode a seed, and returns the mean reward.
func Evaluate(weights *ppo.Weights, seeds int) float64 {
	var policy ppo.Policy
	policy.Load(weights)
	sum := 0.0
	for seed := range seeds {
		reward, _ := lander.Fly(uint64(seed), policy.Greedy, nil)
		sum += reward
	}
	return sum / float64(seeds)
}
