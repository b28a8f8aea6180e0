package bench

import (
	"context"
	"errors"
	"slices"

	"github.com/olafctl/olaf/experiments/testbed/lab"
	"github.com/olafctl/olaf/experiments/testbed/saturate"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/xdp"
)

// feedAll brings the testbed up, runs all feeds, and takes it down. record receives the frames captured in the first
// run; if it is nil, nothing is captured.
func feedAll(ctx context.Context, r *saturate.Report, record saturate.Recorder, onVector func()) (err error) {
	if err := netlab.CheckRights(slices.Concat(netlab.NamespaceRights, netlab.PacketRights,
		xdp.LoadRights)...); err != nil {
		return err
	}
	l, err := lab.Up(r.Plan, lab.Options{LogBytes: saturate.LogBytes})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	f, err := saturate.NewFeeder(l)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for i := range r.Requested {
		c := r.Config
		c.Seed += uint64(i)
		run, err := feedOnce(ctx, f, c, record, onVector)
		if err != nil {
			return err
		}
		r.Runs, record = append(r.Runs, run), nil
	}
	return nil
}

// feedOnce runs one feed and captures its frames if record is not nil.
func feedOnce(ctx context.Context, f *saturate.Feeder, c saturate.Config, record saturate.Recorder,
	onVector func()) (*saturate.Run, error) {
	if record == nil {
		return f.Run(ctx, c, onVector)
	}
	return f.Record(ctx, c, record, onVector)
}
