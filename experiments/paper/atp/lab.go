package atp

import (
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

// Model is a network whose gradients are summed, of which only the size matters here.
type Model struct {
	Name   string
	Values int // float32 of a gradient: its parameters
}

// Models are those that the slides name, with the numbers of parameters of their published definitions.
func Models() []Model {
	return []Model{
		{"alexnet", 61_100_840}, {"vgg11", 132_863_336}, {"vgg16", 138_357_544}, {"vgg19", 143_667_240},
		{"resnet50", 25_557_032}, {"resnet101", 44_549_160}, {"resnet152", 60_192_808},
	}
}

// ModelNames are what people type.
func ModelNames() []string {
	var names []string
	for _, m := range Models() {
		names = append(names, m.Name)
	}
	return names
}

// FindModel returns the named model. The error matches system.ErrOptions and lists what there is.
func FindModel(name string) (Model, error) {
	for _, m := range Models() {
		if m.Name == name {
			return m, nil
		}
	}
	return Model{}, fmt.Errorf("%w: no model is called %q; there are %s", system.ErrOptions, name, strings.Join(ModelNames(), ", "))
}

// The cluster of the slides: hosts with one 100G card each around one switch. What a card manages and how long a packet
// travels are taken from a run on ATP's stack that was published for another system (A2TP): 450 aggregators and 49.4 Gbps.
const (
	LabWorkers = 2 // of a job; nine hosts are three jobs of two workers and a server
	LabJobs    = 3
	labRate    = 100 * olaf.Gbps
	labHop     = 5 * olaf.Microsecond // of a link, with what hosts take: a quarter of the round trip
	labFrame   = 50 * olaf.Nanosecond // 20 million packets a second and direction
	labMark    = 1000 * 80            // bytes: 1000 cells of the released program's threshold
)

// LabLink is a link of that cluster.
func LabLink() closedloop.Link {
	return closedloop.Link{Rate: labRate, Delay: labHop, Overhead: 24, Frame: labFrame, Mark: labMark}
}

// RoundTrip is from handing a packet to the wire to the acknowledgement, over an idle network.
func RoundTrip() olaf.Duration { return 4 * (labFrame + labHop) }

// PTA is window × payload ÷ round trip solved for the window: how many packets on their way, and so aggregators, a job needs
// for its peak.
func PTA() int { return int(math.Ceil(float64(RoundTrip()) / float64(labFrame))) }

// Setting is one job mix on the cluster.
type Setting struct {
	System      string
	Sharing     string // of the aggregators
	Model       Model
	Jobs        int
	Workers     int     // of a job
	Aggregators int     // of the switch; of SwitchML slots of the pool
	Window      int     // 0 is what the peak needs, or what the job's aggregators allow
	Fraction    float64 // of the gradient that is simulated
	Updates     uint32
	Loss        float64
	Compute     olaf.Duration // of a gradient; 0 communicates all the time
	Limit       olaf.Duration // of a run; 0 is LabLimit
	Options     system.Options
	Tap         func(*closedloop.Frame) `json:"-"` // hears every frame that arrives; nil for nobody
}

// LabLimit is the virtual time that a job is given: a whole gradient of VGG19 at a hundredth of the peak takes half of it.
const LabLimit = 20 * olaf.Second

// Spec is the jobs of a setting.
func (c *Setting) Spec(set system.Set) (*job.Spec, error) {
	s, err := set.Find(c.System)
	if err != nil {
		return nil, err
	}
	mode, err := s.Mode("sync")
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
	spec.Network = closedloop.Network{Workers: c.Workers, Jobs: c.Jobs, Link: LabLink()}
	spec.Network.Link.Loss = c.Loss
	spec.Job = closedloop.Job{Updates: c.Updates, Compute: c.Compute, Limit: c.Limit, Apart: RoundTrip(), Tap: c.Tap}
	if c.Compute > 0 {
		spec.Job.Jitter = 0.1
	}
	if spec.Job.Limit == 0 {
		spec.Job.Limit = LabLimit
	}
	spec.Job.Layout.Values = max(int(float64(c.Model.Values)*c.Fraction), program.Lanes)
	return spec, nil
}

// window is what the peak needs, as far as the job's aggregators reach.
func (c *Setting) window() int {
	if c.Window > 0 {
		return c.Window
	}
	mine := c.Aggregators
	if c.Sharing == system.Static {
		mine /= c.Jobs
	}
	return max(min(PTA(), mine), 1)
}

// Run plays a setting for every seed. done is called after each run; nil for nobody.
func (c *Setting) Run(ctx context.Context, set system.Set, seeds []uint64, done func()) (*job.Outcome, error) {
	spec, err := c.Spec(set)
	if err != nil {
		return nil, err
	}
	return job.Run(ctx, spec, seeds, done)
}

// Aggregators reads a number of them, or one of PTA, such as 0.5pta. The error matches system.ErrOptions.
func Aggregators(text string) (int, error) {
	if of, is := strings.CutSuffix(strings.ToLower(text), "pta"); is {
		f, err := olaf.ParseNumber(of)
		if err == nil && f > 0 && f < 1e6 {
			return max(int(float64(f*float64(PTA()))+0.5), 1), nil
		}
	} else if n, err := strconv.Atoi(text); err == nil && n > 0 {
		return n, nil
	}
	return 0, fmt.Errorf("%w: %q is no number of aggregators, such as 450 or 0.5pta", system.ErrOptions, text)
}
