package system

import (
	"cmp"
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/aggregator"
	"github.com/olafctl/olaf/fpga/frame"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/iswitch"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// iswitchSystem returns iSwitch. Its switch sums segments and multicasts the sums to the workers.
func iswitchSystem() System {
	d := iswitch.Describe()
	return System{
		Name: d.Name, Title: "iSwitch", Paper: "iswitch", Discipline: "fifo", Program: &d, Frame: frame.ISwitch,
		Declares: declareAdding(&d),
		Unit:     &aggregator.Unit{BusBytes: 32, Beat: 5 * olaf.Nanosecond, Pipeline: 16},
		About:    "adds segments of H vectors in the switch and multicasts the sums, without a server",
		Modes: []Mode{{
			Name: "sync", About: "a worker waits for the sum of all before its next gradient", Sync: true,
			Takes: []string{OptionH, OptionSlots, OptionWrap, OptionProfile, OptionRecovery, OptionTimeout},
			Parts: func(o *Options) (Parts, error) {
				if len(o.Ranges) > 0 {
					return Parts{}, fmt.Errorf("%w: jobs of iSwitch have equal parts of the segments, not separate ranges", ErrOptions)
				}
				return iswitchParts(&d, o, func(cfg endpoint.Config, host endpoint.Host) (endpoint.Endpoint, error) {
					worker := endpoint.ISwitch{Profile: o.Profile, Recovery: endpoint.Recovery(o.Recovery),
						Timeout: o.Timeout, Ahead: o.segmentsPerJob(), Wrap: o.Wrap}
					return endpoint.NewISwitchSync(cfg, worker, host)
				}), nil
			},
		}, {
			Name: "async", About: "workers send when they are ready and apply sums as they come, up to a bound of staleness",
			Takes: []string{OptionH, OptionBound, OptionSlots},
			Parts: func(o *Options) (Parts, error) {
				return iswitchParts(&d, o, func(cfg endpoint.Config, host endpoint.Host) (endpoint.Endpoint, error) {
					return endpoint.NewISwitchAsync(cfg, endpoint.Async{Bound: o.Bound, Slots: o.segmentsPerJob()},
						host)
				}), nil
			},
		}},
	}
}

func (o *Options) iswitchSlots() int { return cmp.Or(o.Slots, iswitch.DefaultSlots) }

// segmentsPerJob returns the number of segments in the switch's table for each job.
func (o *Options) segmentsPerJob() int { return o.iswitchSlots() / max(o.Jobs, 1) }

func iswitchParts(d *program.Description, o *Options,
	worker func(endpoint.Config, endpoint.Host) (endpoint.Endpoint, error)) Parts {
	format := frame.ISwitch
	if o.Profile == iswitch.Exactly {
		format = frame.ISwitchExact
	}
	p := Parts{
		Worker: worker, Program: d, Fan: o.H, Frame: format, PerPacket: iswitch.Lanes,
		Inexact: o.Profile != iswitch.Exactly,
		Build:   program.Config{Slots: o.iswitchSlots(), Wrap: o.Wrap, Profile: o.Profile},
	}
	if o.Jobs > 1 {
		p.Share = func(job int) (base, slots int) { return job * o.segmentsPerJob(), o.segmentsPerJob() }
	}
	return p
}
