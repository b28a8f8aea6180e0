package train

import (
	"encoding/json"
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/bench/job"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/result"
	"github.com/olafctl/olaf/results/text"
)

// EarlierSchema and EarlierJobSchema are the schemas, without version, of single training runs in earlier versions.
const (
	EarlierSchema    = "olafctl.train"
	EarlierJobSchema = "olafctl.train-job"
)

// Metrics for training.
var (
	greedyReward = result.NewMetric("greedy_reward", "Reward without exploring", "")
	endTime      = result.NewMetric("end_ns", "Virtual time", "ns")
)

// numbers contains metrics and their values.
type numbers struct {
	metrics result.Metrics
	values  []metric.Float
}

func (n *numbers) add(m *metric.Metric, v float64) {
	n.metrics, n.values = append(n.metrics, m), append(n.values, metric.Float(v))
}

// stats returns the metrics as the statistics of one run.
func (n *numbers) stats() results.Stats {
	return n.metrics.Stats([][]metric.Float{n.values}, "the training was stopped")
}

// newResult returns a document for training through the named network. The document contains the learning curve, with
// one point per tenth of the training.
func newResult(name, x string, config any, rewards []float64, block, last int) *result.Result {
	r := result.New("train", "", config)
	r.Statements = []string{}
	curve := result.Series{Name: name}
	for i, v := range rewards {
		curve.X = append(curve.X, float64(min((i+1)*block, last)))
		curve.Y = append(curve.Y, result.Describe([]float64{v}))
	}
	r.Panels = []result.Panel{{Name: "Learning curve", XLabel: x, YLabel: "mean reward of all workers",
		Series: []result.Series{curve}}}
	if len(rewards) > 0 {
		r.Found = []string{fmt.Sprintf("%s: reward %s in the last tenth", name,
			text.Decimal(rewards[len(rewards)-1], 1))}
	}
	return r
}

// newReport returns the result document for training through a queue.
func (f *trainFlags) newReport(out *rl.Outcome, stopped bool) *result.Result {
	c, n := &f.config, out.Network
	r := newResult(c.Network.Kind, "iterations", c, rl.Blocks(out.Curves, c.Tenth()), c.Tenth(), c.Iterations)
	r.Seeds, r.Partial = []uint64{c.Seed}, stopped
	r.Title = fmt.Sprintf("%s in %s through %s", olaf.Plural(c.Workers, "worker"), olaf.Plural(c.Clusters, "cluster"),
		c.Network.Kind)
	if c.Network.Kind != rl.Ideal {
		r.Title += fmt.Sprintf(" at %v, %v offered, %s", c.Network.OutRate, c.Network.Rate,
			olaf.Plural(c.Network.Slots, "slot"))
	}
	r.Title += fmt.Sprintf(", seed %d", c.Seed)
	var all numbers
	if !stopped {
		greedy := rl.Evaluate(&out.Weights[0], rl.Flights)
		r.Found = append(r.Found, fmt.Sprintf("cluster 0 without exploring: reward %.1f over %d flights", greedy,
			rl.Flights))
		all.add(greedyReward, greedy)
	}
	all.add(endTime, float64(out.EndNS))
	for _, one := range []struct {
		name, title string
		n           uint64
	}{
		{"sent", "Updates sent", n.In()}, {"delivered_frames", "Frames delivered", n.Released},
		{"aggregated", "Aggregated", n.Class[engine.Aggregated]},
		{"replaced", "Replaced", n.Class[engine.Replaced] + n.Class[engine.ReplacedReward]},
		{"dropped", "Dropped", n.Class[engine.DroppedFull] + n.Class[engine.DroppedReward] +
			n.Class[engine.DroppedMismatch]},
		{"lane_saturations", "Lanes saturated", n.LaneSaturations},
		{"diverged", "Clusters that diverged", uint64(out.Diverged)},
	} {
		all.add(result.NewCounter(one.name, one.title, ""), float64(one.n))
	}
	if c.Control != nil {
		all.add(result.NewCounter("withheld", "Withheld by workers", ""), float64(out.Withheld))
	}
	row := result.Row{Name: c.Network.Kind, Runs: 1, Stats: all.stats()}
	r.Metrics = all.metrics
	for i, s := range out.Servers {
		var counts numbers
		counts.add(result.NewCounter("received", "Frames received", ""), float64(s.Received))
		counts.add(result.NewCounter("inside", "Updates inside them", ""), float64(s.Inside))
		counts.add(result.NewCounter("accepted", "Frames that passed the gate", ""), float64(s.Accepted))
		counts.add(result.NewCounter("versions", "Steps of the weights", ""), float64(s.Versions))
		row.Groups = append(row.Groups, result.Group{Name: fmt.Sprintf("server %d", i), Stats: counts.stats()})
		if i == 0 {
			r.Metrics = append(r.Metrics, counts.metrics...)
		}
	}
	r.Rows = []result.Row{row}
	return r
}

// newJobReport returns the result document for training through a closed-loop system.
func (f *trainFlags) newJobReport(config rl.Config, spec *job.Spec, out *job.Trained) *result.Result {
	name := spec.Name()
	r := newResult(spec.System.Name, "gradients of a worker", struct {
		rl.Config
		System string  `json:"system"`
		Mode   string  `json:"mode"`
		Loss   float64 `json:"loss"`
	}{config, spec.System.Name, spec.Mode.Name, f.job.loss}, rl.Blocks(out.Curves, config.Tenth()), config.Tenth(),
		config.Iterations)
	n, equal := out.Network, "all workers end with the same weights"
	if !out.Equal {
		equal = "workers end with different weights"
	}
	greedy := rl.Evaluate(&out.Weights, rl.Flights)
	r.Seeds = []uint64{config.Seed}
	r.Title = fmt.Sprintf("%s through %s, seed %d: %s in %.2f s of virtual time", olaf.Plural(config.Workers, "worker"),
		name, config.Seed, olaf.Plural(n.Updates, "update"), float64(n.Duration)/1e9)
	r.Found = append(r.Found, equal, fmt.Sprintf("worker 0 without exploring: reward %.1f over %d flights", greedy,
		rl.Flights))
	var all numbers
	all.add(greedyReward, greedy)
	for _, row := range closedloop.ListRows() {
		if v := row.Of(n); v.Known() {
			all.add(result.NewMetric(row.Name, row.Title, row.Unit), float64(v))
		}
	}
	for _, c := range n.Endpoints.Ledger().Counters {
		all.add(metric.CountOf(&c), float64(n.Endpoints.Of(c.Name)))
	}
	r.Metrics = all.metrics
	r.Rows = []result.Row{{Name: name, Runs: 1, Stats: all.stats()}}
	if n.Hung {
		r.Rows[0].Runs, r.Rows[0].Invalid, r.Rows[0].Reasons = 0, 1, []string{job.ErrHung.Error()}
		r.Found[0] += ", hung"
		r.Fail(fmt.Errorf("%w: %s", job.ErrHung, name))
	}
	return r
}

// markDiverged marks the result as invalid if the training diverged.
func markDiverged(r *result.Result, err error) {
	row := &r.Rows[0]
	row.Runs, row.Invalid, row.Reasons = 0, 1, []string{err.Error()}
	r.Found = append(r.Found, "diverged")
	r.Fail(err)
}

// ReadEarlier reads a training document that an earlier version wrote.
func ReadEarlier(raw []byte) (*result.Result, error) {
	var d struct {
		Config  rl.Config `json:"config"`
		Partial bool      `json:"partial"`
		Rewards []float64 `json:"rewards"`
		Hung    bool      `json:"hung"`
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, fmt.Errorf("read a training: %w", err)
	}
	r := newResult(d.Config.Network.Kind, "iterations", nil, d.Rewards, d.Config.Tenth(), d.Config.Iterations)
	if r.Partial = d.Partial; d.Hung && len(r.Found) > 0 {
		r.Found[0] += ", hung"
	}
	return r, nil
}
