package atp

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/bench/job"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/system"
	program "github.com/olafctl/olaf/fpga/program/atp"
)

// Model is a neural network whose gradients are summed. Only its number of parameters matters.
type Model struct {
	Name   string
	Values int // float32 in a gradient: its parameters
}

// models returns the models that the slides use. Their numbers of parameters are from the published definitions.
func models() []Model {
	return []Model{
		{"alexnet", 61_100_840}, {"vgg11", 132_863_336}, {"vgg16", 138_357_544}, {"vgg19", 143_667_240},
		{"resnet50", 25_557_032}, {"resnet101", 44_549_160}, {"resnet152", 60_192_808},
	}
}

// ModelNames returns the names of the models for the command line.
func ModelNames() []string {
	return olaf.Map(models(), func(m Model) string { return m.Name })
}

// FindModel returns the model with the given name. The error matches system.ErrOptions and lists all models.
func FindModel(name string) (Model, error) {
	for _, m := range models() {
		if m.Name == name {
			return m, nil
		}
	}
	return Model{}, fmt.Errorf("%w: no model is called %q; there are %s", system.ErrOptions, name, strings.Join(ModelNames(), ", "))
}

// The cluster in the slides: hosts with one 100G card each, connected to one switch. The cards' packet rate and the
// packets' delay come from a run on ATP's stack that was published for another system (A2TP), with 450 aggregators and
// 49.4 Gbps.
const (
	LabWorkers = 2 // per job; nine hosts are three jobs with two workers and a server
	LabJobs    = 3
	labRate    = 100 * olaf.Gbps
	labHop     = 5 * olaf.Microsecond // for a link and its hosts: a quarter of the round trip
	labFrame   = 50 * olaf.Nanosecond // 20 million packets per second in each direction
	labMark    = 1000 * 80            // in bytes: the released program's threshold of 1000 cells
)

// labLink returns the link between a host and the switch in the modelled cluster.
func labLink() closedloop.Link {
	return closedloop.Link{Rate: labRate, Delay: labHop, Overhead: 24, Frame: labFrame, Mark: labMark}
}

// roundTrip returns the time from handing a packet to the wire until its acknowledgement arrives, if the network is
// idle.
func roundTrip() olaf.Duration { return 4 * (labFrame + labHop) }

// pta returns the number of packets in flight that a job needs to reach its peak throughput. Each of them needs an
// aggregator. The number follows from throughput = window × payload ÷ round trip.
func pta() int { return int(math.Ceil(float64(roundTrip()) / float64(labFrame))) }

// Setting describes jobs that share the modelled cluster.
type Setting struct {
	System      string
	Sharing     string // how jobs share the aggregators
	Model       Model
	Jobs        int
	Workers     int     // per job
	Aggregators int     // in the switch; for SwitchML, slots in the pool
	Window      int     // default: as many as the peak needs, within the job's aggregators
	Fraction    float64 // share of the gradient that is simulated
	Updates     uint32
	Loss        float64
	Compute     olaf.Duration // per gradient; 0 communicates all the time
	Limit       olaf.Duration // for a run; defaults to labLimit
	Options     system.Options
	Tap         func(*closedloop.Frame) `json:"-"` // receives every arriving frame; may be nil
}

// labLimit is the maximum duration of a job in virtual time. A whole gradient of VGG19 at a hundredth of the peak
// throughput takes half of this time.
const labLimit = 20 * olaf.Second

// Spec returns the job specification for the setting.
func (c *Setting) Spec(set system.Set) (*job.Spec, error) {
	s, mode, err := set.FindMode(c.System, "sync")
	if err != nil {
		return nil, err
	}
	if c.Jobs < 1 || c.Workers < 1 {
		return nil, fmt.Errorf("%w: %d jobs of %d workers", system.ErrOptions, c.Jobs, c.Workers)
	}
	spec := &job.Spec{System: s, Mode: mode, Options: c.Options}
	spec.Options.Slots = c.Aggregators
	if s.Name == program.Describe().Name {
		spec.Options.Sharing, spec.Options.Window = c.Sharing, c.window()
	}
	spec.Network = closedloop.Network{Workers: c.Workers, Jobs: c.Jobs, Link: labLink()}
	spec.Network.Link.Loss = c.Loss
	spec.Job = closedloop.Job{Updates: c.Updates, Compute: c.Compute, Limit: c.Limit, Apart: roundTrip(), Tap: c.Tap}
	if c.Compute > 0 {
		spec.Job.Jitter = 0.1
	}
	spec.Job.Limit = cmp.Or(spec.Job.Limit, labLimit)
	spec.Job.Layout.Values = max(int(float64(c.Model.Values)*c.Fraction), program.Lanes)
	return spec, nil
}

// window returns the window of a job, in packets. By default it is the window that the peak throughput needs, limited
// by the job's number of aggregators.
func (c *Setting) window() int {
	if c.Window > 0 {
		return c.Window
	}
	mine := c.Aggregators
	if c.Sharing == system.Static {
		mine /= c.Jobs
	}
	return max(min(pta(), mine), 1)
}

// Run runs the setting with every seed. It calls done, if not nil, after each run.
func (c *Setting) Run(ctx context.Context, set system.Set, seeds []uint64, done func()) (*job.Outcome, error) {
	spec, err := c.Spec(set)
	if err != nil {
		return nil, err
	}
	return job.Run(ctx, spec, seeds, done)
}

// aggregators parses a number of aggregators, which may be a multiple of PTA such as 0.5pta. The error matches
// system.ErrOptions.
func aggregators(text string) (int, error) {
	if of, is := strings.CutSuffix(strings.ToLower(text), "pta"); is {
		f, err := olaf.ParseNumber(of)
		if err == nil && f > 0 && f < 1e6 {
			return max(int(float64(f*float64(pta()))+0.5), 1), nil
		}
	} else if n, err := strconv.Atoi(text); err == nil && n > 0 {
		return n, nil
	}
	return 0, fmt.Errorf("%w: %q is not a number of aggregators, such as 450 or 0.5pta", system.ErrOptions, text)
}
