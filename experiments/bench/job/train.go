package job

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// Trained is the result of training a model with a simulated job.
type Trained struct {
	Curves  [][]rl.Point // by worker, one point per gradient
	Weights rl.Weights   // worker 0's weights at the end
	Equal   bool         // every worker has the same weights, bit for bit
	Network *closedloop.Result
}

// Train trains c's workers, which form one job, in a simulation of s. Gradients travel in s's packets, as float32 or as
// s's integers, and every host steps by the mean of the gradients it receives. Layout, compute times and the number of
// updates come from c. If onUpdate is not nil, it is called for every gradient, in order of virtual time.
//
// The same arguments give the same result on any number of processors (for one GOARCH and GOAMD64). If training
// diverges, Train returns a result and an error that matches rl.ErrDiverged.
func Train(ctx context.Context, c rl.Config, s *Spec, onUpdate func(worker int, p rl.Point)) (*Trained, error) {
	s.Options.Floats = true
	parts, err := s.parts()
	if err != nil {
		return nil, err
	}
	t := &training{config: &c, onUpdate: onUpdate, weights: make([]rl.Weights, c.Workers), flights: make([]flight, c.Workers),
		curves: make([][]rl.Point, c.Workers)}
	for k := range t.flights {
		if t.flights[k].pilot, err = c.Pilot(k); err != nil {
			return nil, err
		}
		t.weights[k] = *c.Initial(0)
	}
	job := s.Job
	job.Layout = endpoint.Layout{Values: rl.Params, PerPacket: parts.PerPacket}
	job.Begin, job.Values, job.Applied = t.begin, t.values, t.applySum
	updates := c.Iterations
	if !s.Mode.Sync && parts.Server == nil {
		// Stop after as many gradients as with other systems, because an update contains several gradients, from any
		// workers.
		fan := cmp.Or(s.Options.H, c.Workers)
		updates = (c.Iterations*c.Workers + fan - 1) / fan
	}
	if job.Updates, err = closedloop.CheckRounds(updates); err != nil {
		return nil, err
	}
	if parts.Program != nil {
		parts.Build.LaneMemory = job.PerPacket
	}
	if parts.Server != nil && parts.Window == 0 {
		t.server = c.Workers
		t.weights = append(t.weights, *c.Initial(0))
	}
	network := s.Network
	network.Workers = c.Workers
	result, err := closedloop.Run(ctx, network, job, parts, s.Mode.Sync, c.Seed)
	t.land()
	if err != nil {
		return nil, err
	}
	out := &Trained{Curves: t.curves, Weights: t.weights[0], Equal: true, Network: result}
	for k := range c.Workers {
		out.Equal = out.Equal && t.weights[k] == t.weights[0]
	}
	return out, c.CheckWeights(0, &out.Weights)
}

// CheckTraining checks, without running anything, that Train can build the hosts and switches.
func CheckTraining(c *rl.Config, s *Spec) (err error) {
	played := *s
	played.Options.Floats, played.Network.Workers, played.Job.Layout.Values = true, c.Workers, rl.Params
	if played.Job.Updates, err = closedloop.CheckRounds(c.Iterations); err != nil {
		return err
	}
	return played.Check()
}

// training is the learning state of a simulated job.
type training struct {
	config   *rl.Config
	onUpdate func(int, rl.Point)
	server   int // the server's number among the hosts; 0 if there is none
	weights  []rl.Weights
	flights  []flight
	curves   [][]rl.Point
}

// flight is a worker's current iteration, which is computed in a separate goroutine.
type flight struct {
	pilot  *rl.Pilot
	from   rl.Weights
	values []uint32
	reward float64
	done   chan struct{} // nil if no iteration is being computed
}

// begin starts computing worker k's next gradient from its current weights.
func (t *training) begin(k int, _ uint32) olaf.Duration {
	f := &t.flights[k]
	f.from = t.weights[k]
	done := make(chan struct{})
	f.done = done
	go func() {
		defer close(done)
		gradient, reward := f.pilot.Fly(&f.from)
		f.reward = reward
		f.values = f.values[:0]
		for _, g := range gradient {
			f.values = append(f.values, math.Float32bits(g))
		}
	}()
	return f.pilot.IterationTime()
}

// values waits for worker k's computation and returns the gradient.
func (t *training) values(now olaf.Time, k int, _ uint32) []uint32 {
	f := &t.flights[k]
	<-f.done
	f.done = nil
	p := rl.Point{AtNS: now.NS(), Reward: f.reward}
	t.curves[k] = append(t.curves[k], p)
	if t.onUpdate != nil {
		t.onUpdate(k, p)
	}
	return f.values
}

// applySum steps a host's weights by the mean of the gradients in a sum. If the host is a server, it replies with its
// weights, which its workers copy.
func (t *training) applySum(_ olaf.Time, host int, a *endpoint.Aggregate) {
	w := &t.weights[host]
	switch {
	case t.server > 0 && host != t.server:
		for i, v := range a.Values {
			w[i] = math.Float32frombits(v)
		}
	case a.Vectors > 0:
		size := t.config.StepSize / float32(a.Vectors)
		for i, v := range a.Values {
			w[i] += float32(size * math.Float32frombits(v))
			if t.server > 0 {
				a.Values[i] = math.Float32bits(w[i])
			}
		}
	}
}

// land waits for all running computations, so that no goroutine outlives the training.
func (t *training) land() {
	for k := range t.flights {
		if done := t.flights[k].done; done != nil {
			<-done
		}
	}
}

// Build returns the hosts and switches for a job whose vectors have the given number of float32 values, and the job
// with its layout. It is for callers that compute the vectors themselves.
func (s *Spec) Build(values int, updates uint32) (system.Parts, closedloop.Job, error) {
	built := *s
	built.Options.Floats = true
	j := s.Job
	parts, err := built.parts()
	if err != nil {
		return parts, j, err
	}
	if err := parts.CheckLoss(s.System.Name, s.Network.Link.Loss); err != nil {
		return parts, j, err
	}
	arithmetic := parts.Arithmetic
	if parts.Program != nil {
		arithmetic, parts.Build.LaneMemory = parts.Program.Arithmetic, parts.PerPacket
	}
	if arithmetic != program.Float32 && parts.Conversion.IsExact() {
		return parts, j, fmt.Errorf("%w: %s adds integers, and has no rule for float32", system.ErrMode, s.System.Name)
	}
	j.Layout, j.Updates = endpoint.Layout{Values: values, PerPacket: parts.PerPacket}, updates
	return parts, j, nil
}
