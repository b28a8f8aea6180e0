package cells

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/olafctl/olaf/experiments/bench/job"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/paper/iswitch"
	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/sweep"
)

// Training is the specification of a cell that carries out a LunarLander training run.
type Training struct {
	Config rl.Config `json:"config"`
	Job    *Job      `json:"job,omitempty"` // for a closed-loop system
}

// Job configures the network for closed-loop training.
type Job struct {
	System  string         `json:"system"`
	Mode    string         `json:"mode"`
	Loss    float64        `json:"loss"` // share of frames lost on every link
	Options system.Options `json:"options"`
}

// Spec returns the job for the named system, which must be in systems. It has links of 10 Gbps to one switch, as in
// iSwitch's cluster, and no host costs in addition to the cost model.
func (j *Job) Spec(systems system.Set) (*job.Spec, error) {
	s, mode, err := systems.FindMode(j.System, j.Mode)
	if err != nil {
		return nil, err
	}
	spec := &job.Spec{System: s, Mode: mode, Options: j.Options}
	spec.Network.Link = iswitch.LabLink()
	spec.Network.Link.Loss = j.Loss
	return spec, nil
}

// Metrics for all training, for training through a queue, and for closed-loop training.
var (
	trained = makeMetrics(row{"reward", "Reward, last tenth", ""}, row{"greedy_reward", "Reward without exploring", ""},
		row{"end_ns", "Virtual time", "ns"})
	queued = makeMetrics(row{"sent", "Sent", "updates"}, row{"delivered_frames", "Delivered", "frames"},
		row{"aggregated", "Aggregated", "updates"}, row{"dropped", "Dropped", "updates"})
	waited = job.Metrics()
)

// TrainingMetrics returns the metrics of training runs with any system.
func TrainingMetrics() []*metric.Metric { return slices.Concat(trained, queued, waited) }

// Train carries out the runs from to from+n of a Training. It fails if a run hangs.
func (c Carrier) Train(ctx context.Context, spec json.RawMessage, from, n int) (*sweep.Lot, error) {
	t, err := readSpec[Training](spec)
	if err != nil {
		return nil, err
	}
	lot, once := newLot(slices.Concat(trained, queued)), trainOnce
	if t.Job != nil {
		lot, once = newLot(slices.Concat(trained, waited)),
			func(ctx context.Context, config rl.Config) ([]results.Float, error) {
				return t.Job.train(ctx, c.Systems, config)
			}
	}
	first := t.Config.Seed
	for i := range n {
		t.Config.Seed = first + uint64(from+i)
		values, err := once(ctx, t.Config)
		if err != nil {
			return nil, err
		}
		lot.Runs = append(lot.Runs, sweep.Run{Seed: t.Config.Seed, Values: values})
	}
	return lot, nil
}

// trainOnce carries out one training run through a queue and returns the values of its metrics.
func trainOnce(ctx context.Context, c rl.Config) ([]results.Float, error) {
	out, err := rl.Train(ctx, c, nil)
	if err != nil {
		return nil, err
	}
	w := out.Network
	return floats(lastTenth(out.Curves, &c), rl.Evaluate(&out.Weights[0], rl.Flights), float64(out.EndNS),
		float64(w.In()), float64(w.Released), float64(w.Class[engine.Aggregated]),
		float64(w.Class[engine.DroppedFull]+w.Class[engine.DroppedReward]+w.Class[engine.DroppedMismatch])), nil
}

// train carries out one closed-loop training run and returns the values of its metrics.
func (j *Job) train(ctx context.Context, systems system.Set, c rl.Config) ([]results.Float, error) {
	spec, err := j.Spec(systems)
	if err != nil {
		return nil, err
	}
	out, err := job.Train(ctx, c, spec, nil)
	if err != nil {
		return nil, err
	}
	if out.Network.Hung {
		return nil, fmt.Errorf("%w: %s", job.ErrHung, spec.Name())
	}
	values := append(floats(lastTenth(out.Curves, &c), rl.Evaluate(&out.Weights, rl.Flights)), out.Network.Duration)
	for _, row := range closedloop.ListRows() {
		values = append(values, row.Of(out.Network))
	}
	return values, nil
}

// lastTenth returns the mean reward over the last tenth of a training run.
func lastTenth(curves [][]rl.Point, c *rl.Config) float64 {
	blocks := rl.Blocks(curves, c.Tenth())
	return blocks[len(blocks)-1]
}
