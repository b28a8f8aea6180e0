package system

import (
	"github.com/olafctl/olaf/fpga/frame"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/xagg"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// LineOverhead is the overhead per Ethernet frame on the line, in bytes.
const LineOverhead = 24

// xaggSystem returns XAgg. Servers below the parameter server add whole models.
func xaggSystem() System {
	d := xagg.Describe()
	return System{
		Name: d.Name, Title: "XAgg", Paper: "xagg", Discipline: "fifo", Program: &d, OnServers: true,
		About: "adds whole models up in the kernels of idle servers, a tree of them below the parameter server",
		Modes: []Mode{{
			Name: "sync", About: "a worker waits for the sum of all before its next gradient", Sync: true,
			Takes: []string{OptionProfile, OptionTimeout},
			Parts: func(o *Options) (Parts, error) {
				fixed := endpoint.Fixed{}
				if o.Floats {
					fixed.Scale = endpoint.XAggScale
				}
				return Parts{
					Worker: func(cfg endpoint.Config, host endpoint.Host) (endpoint.Endpoint, error) {
						return endpoint.NewXAgg(cfg,
							endpoint.XAgg{Timeout: o.Timeout, Overhead: frame.XAgg.Size(0) + LineOverhead, Fixed: fixed},
							host)
					},
					Program: &d, Build: program.Config{Profile: o.Profile, Lanes: xagg.Lanes}, FitsVector: true,
					Renewal: &program.Packet{Kind: program.Control, Action: xagg.Renew},
					Frame:   frame.XAgg, PerPacket: xagg.Lanes,
					Conversion: endpoint.Conversion{Fixed: fixed, Wrapping: o.Profile == xagg.Wrapping},
				}, nil
			},
		}},
	}
}
