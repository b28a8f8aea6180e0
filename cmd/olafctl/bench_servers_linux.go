package main

import (
	"context"
	"errors"
	"slices"

	"github.com/olafctl/olaf/experiments/testbed/feed"
	"github.com/olafctl/olaf/experiments/testbed/lab"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/xdp"
)

// feedAll brings the testbed up, feeds it as often as it was asked for, and takes it down.
func feedAll(ctx context.Context, r *feed.Report, runs int, said func()) (err error) {
	if err := netlab.Missing(slices.Concat(netlab.NamespaceRights, netlab.PacketRights, xdp.LoadRights)...); err != nil {
		return err
	}
	l, err := lab.Up(r.Plan, lab.Options{LogBytes: feed.LogBytes})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	f, err := feed.New(l)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for i := range runs {
		c := r.Config
		c.Seed += uint64(i)
		run, err := f.Run(ctx, c, said)
		if err != nil {
			return err
		}
		r.Runs = append(r.Runs, run)
	}
	return nil
}
