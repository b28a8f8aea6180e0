package system

import (
	"github.com/olafctl/olaf/fpga/frame"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/iswitch"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// fullFrame is the number of lanes that fill an Ethernet frame. Baselines use frames like iSwitch's, so that only their
// switches differ.
const fullFrame = iswitch.Lanes

// parameterServerSystem returns the baseline that iSwitch and others compare with. Switches only forward, and a server
// adds.
func parameterServerSystem() System {
	mode := func(name, about string, sync bool) Mode {
		return Mode{Name: name, About: about, Sync: sync, Parts: func(*Options) (Parts, error) {
			return Parts{
				Worker: endpoint.NewPSWorker,
				Server: func(cfg endpoint.Config, host endpoint.Host) (endpoint.Endpoint, error) {
					return endpoint.NewPSServer(cfg, sync, host)
				},
				Frame: frame.Baseline, PerPacket: fullFrame, Arithmetic: program.Float32,
			}, nil
		}}
	}
	return System{
		Name: "ps", Title: "Parameter server", Discipline: "fifo",
		About: "a server adds gradients up and sends the weights back; switches forward",
		Modes: []Mode{
			mode("sync", "the server waits for all workers and answers all of them", true),
			mode("async", "the server applies each gradient and answers its sender", false),
		},
	}
}

// ringAllReduce returns ring AllReduce, a baseline without a server.
func ringAllReduce() System {
	return System{
		Name: "ring", Title: "Ring AllReduce", Discipline: "fifo",
		About: "workers pass chunks round a ring and add them up; switches forward",
		Modes: []Mode{{
			Name: "sync", About: "all workers have the sum after 2 (N − 1) steps", Sync: true,
			Parts: func(*Options) (Parts, error) {
				return Parts{Worker: endpoint.NewRing, Frame: frame.Baseline, PerPacket: fullFrame,
					Arithmetic: program.Float32}, nil
			},
		}},
	}
}
