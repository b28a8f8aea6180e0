package system

import (
	"github.com/olafctl/olaf/fpga/frame"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/p4inc"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// p4incSegment is the default number of aggregators in a job's segment.
const p4incSegment = 1024

// p4incSystem returns P4INC-AOI. Its switch adds packets in a segment of aggregators for each job, without a server.
func p4incSystem() System {
	d := p4inc.Describe()
	return System{
		Name: d.Name, Title: "P4INC-AOI", Paper: "p4inc", Discipline: "fifo", Program: &d,
		About: "adds up packets in a segment of aggregators of each job, marks congestion where fragments meet, and needs no server",
		Modes: []Mode{{
			Name: "sync", About: "a worker waits for the sum of all before its next gradient", Sync: true,
			Takes: []string{OptionSlots, OptionWindow, OptionTimeout},
			Parts: func(o *Options) (Parts, error) { return p4incParts(&d, o) },
		}},
	}
}

func p4incParts(d *program.Description, o *Options) (Parts, error) {
	slots, share, err := o.divideTable(min(p4incSegment, p4inc.MaxSlots/max(o.Jobs, 1)), "aggregators")
	if err != nil {
		return Parts{}, err
	}
	return Parts{
		Program: d, Build: program.Config{Slots: slots}, Share: share, Frame: frame.P4INC, PerPacket: p4inc.Lanes,
		Worker: func(cfg endpoint.Config, host endpoint.Host) (endpoint.Endpoint, error) {
			base, size := share(int(cfg.Job) - 1)
			return endpoint.NewP4INC(cfg, endpoint.P4INC{Base: base, Size: size, Window: o.Window, Timeout: o.Timeout},
				host)
		},
	}, nil
}
