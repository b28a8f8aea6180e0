package system

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/frame"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/switchml"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// switchmlPool is the default number of slots per worker. It is the number in the paper's 10G experiments.
const switchmlPool = 128

// switchmlSystem returns SwitchML. Its workers stream vectors through a pool of slots in the switch.
func switchmlSystem() System {
	d := switchml.Describe()
	return System{
		Name: d.Name, Title: "SwitchML", Discipline: "fifo", Program: &d,
		About: "adds up packets of all workers in a pool of slots, each with a shadow copy for repeats",
		Modes: []Mode{{
			Name: "sync", About: "a worker waits for the sum of all before its next gradient", Sync: true,
			Takes: []string{OptionSlots, OptionPacket, OptionTimeout},
			Parts: func(o *Options) (Parts, error) {
				lanes, err := switchmlLanes(o.Packet)
				if err != nil {
					return Parts{}, err
				}
				pool, share, err := o.divideTable(switchmlPool, "slots") // jobs share no slots
				if err != nil {
					return Parts{}, err
				}
				return Parts{
					Worker: func(cfg endpoint.Config, host endpoint.Host) (endpoint.Endpoint, error) {
						base, slots := share(int(cfg.Job) - 1)
						return endpoint.NewSwitchML(cfg,
							endpoint.SwitchML{Slots: slots, Base: base, Timeout: o.Timeout, Longest: o.Longest,
								Floats: o.Floats}, host)
					},
					Program: &d, Build: program.Config{Slots: pool, Lanes: lanes}, Frame: frame.SwitchML,
					PerPacket: lanes, Share: share, Conversion: endpoint.Conversion{Block: o.Floats},
				}, nil
			},
		}},
	}
}

// switchmlLanes returns the number of lanes for a packet size. It rejects sizes for which the released program is not
// built. The default is the smaller size.
func switchmlLanes(packet olaf.Size) (int, error) {
	for _, lanes := range []int{switchml.Lanes256, switchml.Lanes1024} {
		if packet == olaf.Size(lanes*olaf.LaneBytes) || packet == 0 {
			return lanes, nil
		}
	}
	return 0, fmt.Errorf("%w: packets of %s; the program is built for 256B and 1024B", ErrOptions, packet)
}
