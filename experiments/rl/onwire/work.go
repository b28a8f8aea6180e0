package onwire

import (
	"cmp"
	"context"
	"math"
	"sync"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/pktgen/endpoint"
	"github.com/olafctl/olaf/pktgen/process"
)

// parts is the number of packets per gradient. It is the smallest number with which the kernel can merge them.
const parts = (rl.Params + process.MaxOpenLanes - 1) / process.MaxOpenLanes

// GradientLayout returns the layout that divides a gradient into packets that can be merged.
func GradientLayout() endpoint.Layout {
	return endpoint.Layout{Values: rl.Params, PerPacket: (rl.Params + parts - 1) / parts}
}

// UpdateSize returns the size on the wire of all packets of a gradient together.
func UpdateSize() olaf.Size {
	l, sum := GradientLayout(), olaf.Size(0)
	for i := range l.Packets() {
		sum += olaf.FrameSize(l.Lanes(i))
	}
	return sum
}

// Pilot does the work of a worker. It flies with the newest weights that it received, and delivers its gradient at the
// end of its period.
type Pilot struct {
	pilot   *rl.Pilot
	due     time.Duration
	fixed   []uint32
	flown   rl.Weights
	mu      sync.Mutex
	weights rl.Weights // newest weights
}

// NewPilot returns the Pilot for worker k in a training run. The error matches rl.ErrConfig.
func NewPilot(c *rl.Config, k int) (*Pilot, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	if err := c.Offers(UpdateSize()); err != nil {
		return nil, err
	}
	p, err := c.Pilot(k)
	if err != nil {
		return nil, err
	}
	return &Pilot{pilot: p, weights: *c.Initial(int(c.Cluster(k))), fixed: make([]uint32, rl.Params)}, nil
}

// Compute implements process.Work.
func (p *Pilot) Compute(context.Context, uint32) process.Computed {
	p.mu.Lock()
	p.flown = p.weights
	p.mu.Unlock()
	gradient, reward := p.pilot.Fly(&p.flown)
	for i, v := range gradient {
		p.fixed[i] = uint32(rl.FixedPoint(v))
	}
	p.due += time.Duration(p.pilot.Period(UpdateSize()) / olaf.Nanosecond)
	return process.Computed{Values: p.fixed,
		Reward: int32(math.Round(min(max(reward*256, math.MinInt32), math.MaxInt32))), Due: p.due}
}

// Divergence returns the reason why the worker's iterations diverged, or "" if they did not.
func (p *Pilot) Divergence() string { return describe(p.pilot.CheckFinite()) }

// describe returns the text of err, or "" if err is nil.
func describe(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Apply implements process.Work. It stores the received weights.
func (p *Pilot) Apply(a *endpoint.Aggregate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, v := range a.Values {
		if at := a.First + i; at < len(p.weights) {
			p.weights[at] = math.Float32frombits(v)
		}
	}
}

// Servers does the work of a parameter server. It contains the weights of every cluster.
type Servers struct {
	config   *rl.Config
	keepers  []*rl.Keeper
	gradient []float32
}

// NewServers returns the parameter servers for a training run. The error matches rl.ErrConfig.
func NewServers(c *rl.Config) (*Servers, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	s := &Servers{config: c}
	for cluster := range c.Clusters {
		s.keepers = append(s.keepers, c.Keeper(cluster, GradientLayout().PerPacket))
	}
	return s, nil
}

// Compute implements process.Work. It does nothing, because a server computes no gradients.
func (*Servers) Compute(context.Context, uint32) process.Computed { return process.Computed{} }

// Apply implements process.Work. It steps one part of a cluster's weights by the mean of the sum, and answers with the
// new weights of that part.
func (s *Servers) Apply(a *endpoint.Aggregate) {
	l := GradientLayout()
	part := a.First / l.PerPacket
	if int(a.Job) >= len(s.keepers) || part >= l.Packets() || len(a.Values) != l.Lanes(part) || a.Vectors == 0 {
		a.Values = nil // the update is not from our clusters
		return
	}
	s.gradient = s.gradient[:0]
	for _, v := range a.Values {
		s.gradient = append(s.gradient, rl.OfFixedPoint(int32(v), int(a.Vectors)))
	}
	weights := s.keepers[a.Job].Take(part, s.gradient, float64(a.Reward)/256/float64(a.Vectors), int(a.Vectors))
	for i, w := range weights {
		a.Values[i] = math.Float32bits(w)
	}
}

// Stats returns the statistics of every cluster, counted in packets.
func (s *Servers) Stats() []rl.ServerStats {
	return olaf.Map(s.keepers, (*rl.Keeper).Stats)
}

// Places returns, for each place of a packet in an update, the number of updates in all packets received.
func (s *Servers) Places() (all []uint64) {
	for _, k := range s.keepers {
		all = rl.AddPlaces(all, k.Inside())
	}
	return all
}

// Divergence returns the reason why the weights of a cluster diverged, or "" if they did not.
func (s *Servers) Divergence() string {
	var first error
	for cluster, k := range s.keepers {
		first = cmp.Or(first, s.config.CheckWeights(cluster, k.Weights()))
	}
	return describe(first)
}

// Weights returns the weights of a cluster.
func (s *Servers) Weights(cluster int) *rl.Weights { return s.keepers[cluster].Weights() }
