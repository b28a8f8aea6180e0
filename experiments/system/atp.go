package system

import (
	"cmp"
	"fmt"

	"github.com/olafctl/olaf/fpga/frame"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/atp"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// Ways in which jobs share a switch's aggregators.
const (
	Dynamic = "dynamic" // each job may use all of them
	Static  = "static"  // each job has a part of them
)

// atpSystem returns ATP. Its switch adds packets in aggregators that all jobs share, and a server completes the sums
// that the switch did not complete.
func atpSystem() System {
	d := atp.Describe()
	return System{
		Name: d.Name, Title: "ATP", Paper: "atp", Discipline: "fifo", Program: &d,
		About: "adds up packets in hashed aggregators that jobs share, with a server that completes what the switch did not",
		Modes: []Mode{{
			Name: "sync", About: "a worker waits for the sum of all before its next gradient", Sync: true,
			Takes: []string{OptionSlots, OptionProfile, OptionRecovery, OptionTimeout, OptionWindow, OptionSharing,
				OptionCongestion},
			Parts: func(o *Options) (Parts, error) { return atpParts(&d, o) },
		}},
	}
}

// Ways in which ATP's workers handle loss.
const (
	RecoverResend = "resend"
	RecoverNone   = "none"
)

func atpParts(d *program.Description, o *Options) (Parts, error) {
	p := Parts{Program: d, PerPacket: atp.Lanes, Numbers: 1<<16 - 1, Frame: frame.ATPReleased,
		Build: program.Config{Slots: cmp.Or(o.Slots, atp.DefaultSlots), Profile: cmp.Or(o.Profile, atp.Released)}}
	sharing := o.Sharing
	if sharing == "" && len(o.Ranges) > 0 {
		sharing = Static
	}
	if p.Build.Profile == atp.Paper {
		p.Frame = frame.ATPPaper
	}
	own := endpoint.ATP{
		Profile: p.Build.Profile, Window: o.Window, Timeout: o.Timeout,
		FirstTimeout: max(o.Timeout, endpoint.ATPFirstTimeout), Silent: o.Recovery == RecoverNone,
		Congestion: o.Congestion,
		PerRack:    o.PerRack, Aggregators: p.Build.Slots,
	}
	if err := checkATP(o, sharing); err != nil {
		return p, err
	}
	if sharing == Static {
		divided := *o
		divided.Slots = p.Build.Slots
		var err error
		if _, p.Share, err = divided.divideTable(0, "aggregators"); err != nil {
			return p, err
		}
		for job := range max(o.Jobs, 1) {
			_, size := p.Share(job)
			own.Aggregators = min(own.Aggregators, size)
		}
	}
	own.Window = cmp.Or(own.Window, min(endpoint.ATPWindow, own.Aggregators))
	if o.Floats {
		own.Fixed = endpoint.Fixed{Scale: endpoint.ATPScale, Truncates: p.Build.Profile == atp.Released}
	}
	p.Window, p.Conversion = own.Window, endpoint.Conversion{Fixed: own.Fixed, Escapes: true}
	p.addATP(own)
	return p, nil
}

// checkATP rejects options that ATP does not support.
func checkATP(o *Options, sharing string) error {
	switch {
	case o.Recovery != "" && o.Recovery != RecoverResend && o.Recovery != RecoverNone:
		return fmt.Errorf("%w: ATP has no recovery %q; there are %s, %s", ErrOptions, o.Recovery, RecoverResend,
			RecoverNone)
	case sharing != "" && sharing != Dynamic && sharing != Static:
		return fmt.Errorf("%w: no sharing is called %q; there are %s, %s", ErrOptions, sharing, Dynamic, Static)
	case sharing == Dynamic && len(o.Ranges) > 0:
		return fmt.Errorf("%w: jobs that share all aggregators have no separate ranges; use %s sharing",
			ErrOptions, Static)
	}
	return nil
}

// addATP sets the constructors of workers and servers. Each gets the aggregators that its job may use.
func (p *Parts) addATP(all endpoint.ATP) {
	share := p.Share
	of := func(cfg *endpoint.Config) endpoint.ATP {
		a := all
		if share != nil {
			a.Base, a.Aggregators = share(int(cfg.Job) - 1)
		}
		return a
	}
	p.Worker = func(cfg endpoint.Config, host endpoint.Host) (endpoint.Endpoint, error) {
		return endpoint.NewATPWorker(cfg, of(&cfg), host)
	}
	p.Server = func(cfg endpoint.Config, host endpoint.Host) (endpoint.Endpoint, error) {
		return endpoint.NewATPServer(cfg, of(&cfg), host)
	}
}
