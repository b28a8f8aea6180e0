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

// Model is a network whose gradients are summed; only its size matters.
type Model struct {
	Name   string
	Values int // float32 in a gradient: its parameters
}

// Models returns the slides' models, with the numbers of parameters of their published definitions.
func Models() []Model {
	return []Model{
		{"alexnet", 61_100_840}, {"vgg11", 132_863_336}, {"vgg16", 138_357_544}, {"vgg19", 143_667_240},
		{"resnet50", 25_557_032}, {"resnet101", 44_549_160}, {"resnet152", 60_192_808},
	}
}

// ModelNames returns the names for the command line.
func ModelNames() []string {
	var names []string
	for _, m := range Models() {
		names = append(names, m.Name)
	}
	return names
}

// FindModel returns the named model. The error matches system.ErrOptions and lists all models.
func FindModel(name string) (Model, error) {
	for _, m := range Models() {
		if m.Name == name {
			return m, nil
		}
	}
	return Model{}, fmt.Errorf("%w: no model is called %q; there are %s", system.ErrOptions, name, strings.Join(ModelNames(), ", "))
}

// The cluster of the slides: hosts with one 100G card each around one switch. A card's packet rate and a packet's delay
// are from a run on ATP's stack that was published for another system (A2TP): 450 aggregators and 49.4 Gbps.
const (
	LabWorkers = 2 // per job; nine hosts are three jobs with two workers and a server
	LabJobs    = 3
	labRate    = 100 * olaf.Gbps
	labHop     = 5 * olaf.Microsecond // for a link with its hosts: a quarter of the round trip
	labFrame   = 50 * olaf.Nanosecond // 20 million packets per second and direction
	labMark    = 1000 * 80            // bytes: 1000 cells of the released program's threshold
)

// LabLink is a link in that cluster.
func LabLink() closedloop.Link {
	return closedloop.Link{Rate: labRate, Delay: labHop, Overhead: 24, Frame: labFrame, Mark: labMark}
}

// RoundTrip is the time from handing a packet to the wire to the acknowledgement, over an idle network.
func RoundTrip() olaf.Duration { return 4 * (labFrame + labHop) }

// PTA returns the number of packets in flight, and so of aggregators, that a job needs for its peak, from window ×
// payload ÷ round trip.
func PTA() int { return int(math.Ceil(float64(RoundTrip()) / float64(labFrame))) }

// Setting is one job mix on the cluster.
type Setting struct {
	System      string
	Sharing     string // of the aggregators
	Model       Model
	Jobs        int
	Workers     int     // of a job
	Aggregators int     // in the switch; for SwitchML slots of the pool
	Window      int     // default: as many as the peak needs, within the job's aggregators
	Fraction    float64 // share of the gradient that is simulated
	Updates     uint32
	Loss        float64
	Compute     olaf.Duration // per gradient; 0 communicates all the time
	Limit       olaf.Duration // of a run; default LabLimit
	Options     system.Options
	Tap         func(*closedloop.Frame) `json:"-"` // receives every arriving frame; may be nil
}

// LabLimit is the maximum virtual time of a job: a whole gradient of VGG19 at a hundredth of the peak takes half of it.
const LabLimit = 20 * olaf.Second

// Spec returns the jobs of a setting.
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

// window returns the window that the peak needs, within the job's aggregators.
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

// Run runs a setting with every seed. It calls done, if not nil, after each run.
func (c *Setting) Run(ctx context.Context, set system.Set, seeds []uint64, done func()) (*job.Outcome, error) {
	spec, err := c.Spec(set)
	if err != nil {
		return nil, err
	}
	return job.Run(ctx, spec, seeds, done)
}

// Aggregators parses a number of aggregators, or a multiple of PTA such as 0.5pta. The error matches system.ErrOptions.
func Aggregators(text string) (int, error) {
	if of, is := strings.CutSuffix(strings.ToLower(text), "pta"); is {
		f, err := olaf.ParseNumber(of)
		if err == nil && f > 0 && f < 1e6 {
			return max(int(float64(f*float64(PTA()))+0.5), 1), nil
		}
	} else if n, err := strconv.Atoi(text); err == nil && n > 0 {
		return n, nil
	}
	return 0, fmt.Errorf("%w: %q is not a number of aggregators, such as 450 or 0.5pta", system.ErrOptions, text)
}
