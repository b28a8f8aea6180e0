package system

import (
	"fmt"

	"github.com/olafctl/olaf/fpga/frame"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/atp"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// How jobs share the aggregators of a switch.
const (
	Dynamic = "dynamic" // every job may use all
	Static  = "static"  // each has a part to itself
)

// atpSystem adds packets up in aggregators that all jobs share, and leaves to a server what it cannot add.
func atpSystem() System {
	d := atp.Describe()
	return System{
		Name: d.Name, Title: "ATP", Paper: "atp", Discipline: "fifo", Program: &d,
		About: "adds up packets in hashed aggregators that jobs share, with a server that completes what the switch did not",
		Modes: []Mode{{
			Name: "sync", About: "a worker waits for the sum of all before its next gradient", Sync: true,
			Takes: []string{OptionSlots, OptionProfile, OptionRecovery, OptionTimeout, OptionWindow, OptionSharing, OptionCongestion},
			Parts: func(o *Options) (Parts, error) { return atpParts(&d, o) },
		}},
	}
}

// What ATP's workers do about loss.
const (
	RecoverResend = "resend"
	RecoverNone   = "none"
)

func atpParts(d *program.Description, o *Options) (Parts, error) {
	p := Parts{Program: d, Build: program.Config{Slots: o.Slots, Profile: o.Profile}, PerPacket: atp.Lanes}
	if p.Build.Slots == 0 {
		p.Build.Slots = atp.DefaultSlots
	}
	if p.Build.Profile == "" {
		p.Build.Profile = atp.Released
	}
	p.Frame = frame.ATPReleased
	if p.Build.Profile == atp.Paper {
		p.Frame = frame.ATPPaper
	}
	own := endpoint.ATP{
		Profile: p.Build.Profile, Window: o.Window, Timeout: o.Timeout, FirstTimeout: max(o.Timeout, endpoint.ATPFirstTimeout), Silent: o.Recovery == RecoverNone, Congestion: o.Congestion,
		PerRack: o.PerRack, Aggregators: p.Build.Slots,
	}
	switch {
	case o.Recovery != "" && o.Recovery != RecoverResend && o.Recovery != RecoverNone:
		return p, fmt.Errorf("%w: ATP has no recovery %q; there are %s, %s", ErrOptions, o.Recovery, RecoverResend, RecoverNone)
	case o.Sharing != "" && o.Sharing != Dynamic && o.Sharing != Static:
		return p, fmt.Errorf("%w: no sharing is called %q; there are %s, %s", ErrOptions, o.Sharing, Dynamic, Static)
	}
	if o.Sharing == Static {
		own.Aggregators /= max(o.Jobs, 1)
		p.Share = func(job int) (base, slots int) { return job * own.Aggregators, own.Aggregators }
	}
	if own.Aggregators < 1 {
		return p, fmt.Errorf("%w: %d aggregators for %d jobs", ErrOptions, p.Build.Slots, o.Jobs)
	}
	if own.Window == 0 {
		own.Window = min(endpoint.ATPWindow, own.Aggregators)
	}
	if o.Floats {
		own.Fixed = endpoint.Fixed{Scale: endpoint.ATPScale, Truncates: p.Build.Profile == atp.Released}
	}
	p.Window = own.Window
	// of is what a job's hosts are built with.
	of := func(cfg *endpoint.Config) endpoint.ATP {
		a := own
		if p.Share != nil {
			a.Base, _ = p.Share(int(cfg.Job) - 1)
		}
		return a
	}
	p.Worker = func(cfg endpoint.Config, host endpoint.Host) (endpoint.Endpoint, error) {
		return endpoint.NewATPWorker(cfg, of(&cfg), host)
	}
	p.Server = func(cfg endpoint.Config, host endpoint.Host) (endpoint.Endpoint, error) {
		return endpoint.NewATPServer(cfg, of(&cfg), host)
	}
	return p, nil
}
