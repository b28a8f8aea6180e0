package onwire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"strconv"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/experiments/testbed/lab"
	"github.com/olafctl/olaf/fpga/dataplane"
	"github.com/olafctl/olaf/pktgen/attach"
)

// RunSums trains with every seed through a system whose aggregator is a program in the kernel. It runs in network
// namespaces that are removed after the training. mode is the hook for the kernel's program; empty means native.
func (p *Program) RunSums(ctx context.Context, mode string) (_ *ProgramReport, err error) {
	bed, err := p.sumBed(mode)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, bed.Close()) }()
	var runs []*ProgramRun
	for _, seed := range p.Seeds {
		p.Progress("%s, seed %d: %d workers and a server as processes on %s", p.Systems[0], seed, p.Workers, p.Device)
		var r *ProgramRun
		err := bed.Guard(ctx, func(ctx context.Context) (err error) {
			r, err = p.run(ctx, p.sumStand(bed), p.Systems[0], seed)
			return err
		})
		if err := errors.Join(err, bed.Broken()); err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	return p.report(runs), nil
}

// sumBed sets up namespaces for the workers around one aggregator. Its cables accept frames with the program's number
// of lanes.
func (p *Program) sumBed(mode string) (*lab.Lab, error) {
	mode = cmp.Or(mode, string(dataplane.Native))
	mtu := max(lab.DefaultMTU, int(olaf.FrameSize(p.Lanes)))
	fragments := (attach.RoundsJob(p.Values, p.Lanes) + p.Lanes - 1) / p.Lanes
	text := fmt.Sprintf("name: train\ntree: {workers: %d, mode: %s, rate: 0bps, mtu: %d}\njob: {lanes: %d, "+
		"fragments: %d}\n", p.Workers, mode, mtu, p.Lanes, fragments)
	file, err := lab.Parse("train", []byte(text))
	if err != nil {
		return nil, err
	}
	plan, err := file.Resolve()
	if err != nil {
		return nil, err
	}
	return lab.Up(plan, lab.Options{})
}

// sumStand returns the stand for a job whose workers use an aggregator.
func (p *Program) sumStand(bed *lab.Lab) *stand {
	cable := func(node int) *lab.PlannedCable { return &bed.Plan.Cables[bed.Plan.Nodes[node].Up] }
	at := func(a netip.Addr) string { return netip.AddrPortFrom(a, olaf.UDPPort).String() }
	on := func(node int, a netip.Addr) place {
		return place{address: a, start: func(cmd *exec.Cmd) (testbed.Process, error) { return bed.Nodes[node].Start(cmd) }}
	}
	adder := bed.Adders[0]
	job := []string{"--id", strconv.Itoa(int(bed.Job)), "--workers", strconv.Itoa(p.Workers), "--line", "0bps"}
	s := &stand{server: on(bed.Server(), cable(adder.Planned.Node).Upper),
		ps: append([]string{"--agent", at(cable(adder.Planned.Node).Lower)}, job...)}
	nodes := bed.Workers()
	for _, node := range nodes {
		s.workers = append(s.workers, on(node, cable(node).Lower))
		s.ps = append(s.ps, "--worker", at(cable(node).Lower))
	}
	if group := bed.Fanout(); group.IsValid() {
		s.ps = append(s.ps, "--fan-out", at(group))
	}
	s.worker = func(k int) []string { return append([]string{"--aggregator", at(cable(nodes[k]).Upper)}, job...) }
	s.end = func(context.Context) (map[string]uint64, error) { return adder.Latch() }
	return s
}
