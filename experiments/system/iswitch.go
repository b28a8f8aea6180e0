package system

import (
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/iswitch"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// segmentHeader is Ethernet, IPv4, UDP and a Seg of 8 bytes (paper, Fig. 7).
const segmentHeader = 14 + 20 + 8 + 8

// iswitchSystem sums segments in the switch and sends the sums back to the workers.
func iswitchSystem() System {
	d := iswitch.Describe()
	return System{
		Name: d.Name, Title: "iSwitch", Paper: "iswitch", Discipline: "fifo", Program: &d, Declares: adding(&d),
		About: "adds segments of H vectors in the switch and multicasts the sums, without a server",
		Modes: []Mode{{
			Name: "sync", About: "a worker waits for the sum of all before its next gradient", Sync: true,
			Takes: []string{OptionH, OptionSlots, OptionWrap, OptionProfile, OptionRecovery, OptionTimeout},
			Parts: func(o *Options) (Parts, error) {
				return iswitchParts(&d, o, func(cfg endpoint.Config, host endpoint.Host) (endpoint.Endpoint, error) {
					worker := endpoint.ISwitch{Profile: o.Profile, Recovery: endpoint.Recovery(o.Recovery), Timeout: o.Timeout, Ahead: o.slots(), Wrap: o.Wrap}
					return endpoint.NewISwitchSync(cfg, worker, host)
				}), nil
			},
		}, {
			Name: "async", About: "workers send when they are ready and apply sums as they come, up to a bound of staleness",
			Takes: []string{OptionH, OptionBound, OptionSlots},
			Parts: func(o *Options) (Parts, error) {
				return iswitchParts(&d, o, func(cfg endpoint.Config, host endpoint.Host) (endpoint.Endpoint, error) {
					return endpoint.NewISwitchAsync(cfg, endpoint.Async{Bound: o.Bound, Slots: o.slots()}, host)
				}), nil
			},
		}},
	}
}

func (o *Options) slots() int {
	if o.Slots == 0 {
		return iswitch.DefaultSlots
	}
	return o.Slots
}

func iswitchParts(d *program.Description, o *Options, worker func(endpoint.Config, endpoint.Host) (endpoint.Endpoint, error)) Parts {
	return Parts{
		Worker: worker, Program: d, Fan: o.H,
		Build:  program.Config{Slots: o.slots(), Wrap: o.Wrap, Profile: o.Profile},
		Header: segmentHeader, PerPacket: iswitch.Lanes,
	}
}
