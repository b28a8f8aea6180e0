package onwire

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/p4ctl"
)

// RunQueues trains through every queue with every seed. The testbed must have been opened with as many hosts as
// p.Workers, and with as many addresses per host as p.Frames returns. If the only network is an ideal one, bed may be
// nil.
func (p *Program) RunQueues(ctx context.Context, bed *testbed.Testbed) (*ProgramReport, error) {
	return p.runAll(func(system string, seed uint64) (*ProgramRun, error) {
		p.Progress("%s, seed %d: %d workers and a server as processes", system, seed, p.Workers)
		s, err := &stand{computes: true, local: startIdealQueue}, error(nil)
		if system != rl.Ideal {
			s, err = p.queueStand(ctx, bed, system)
		}
		if err != nil {
			return nil, err
		}
		return p.run(ctx, s, system, seed)
	})
}

// startIdealQueue starts an ideal network for workers that do not wait for sums.
func startIdealQueue(ctx context.Context, a *attempt) (localNet, error) {
	return a.startIdeal(ctx, false, nil)
}

// cluster returns the cluster to which worker k belongs. Workers are spread evenly over the clusters.
func (p *Program) cluster(k int) olaf.ClusterID {
	return olaf.ClusterID(k * p.Clusters / p.Workers)
}

// configureQueue configures the testbed's queue for one training run.
func (p *Program) configureQueue(ctx context.Context, bed *testbed.Testbed, system string) error {
	hosts, device, frames := bed.Hosts, bed.Cards[0].Device, p.Frames()
	tables := p4ctl.Tables{Servers: []netip.Addr{hosts.Server.Address}}
	for k := range hosts.Workers {
		for i := range frames {
			tables.Workers = append(tables.Workers, p4ctl.Worker{Address: placeAddress(hosts.Workers[k].Address, i),
				ID: olaf.WorkerID(k), Cluster: p.cluster(k)*olaf.ClusterID(frames) + olaf.ClusterID(i)})
		}
	}
	if _, err := bed.Program(ctx, tables.WithGroups(0)); err != nil {
		return err
	}
	rate, err := engine.FromRate(p.OutRate)
	if err != nil {
		return fmt.Errorf("--out-rate: %w", err)
	}
	return fpga.ConfigureQueue(ctx, device, fpga.QueueConfig{Discipline: system, Depth: p.Slots * frames,
		Output: engine.Output{Rate: rate}})
}

// queueStand configures the testbed's queue and returns the stand for one training run.
func (p *Program) queueStand(ctx context.Context, bed *testbed.Testbed, system string) (*stand, error) {
	if err := p.configureQueue(ctx, bed, system); err != nil {
		return nil, err
	}
	hosts, device := bed.Hosts, bed.Cards[0].Device
	at := func(a netip.Addr) string { return netip.AddrPortFrom(a, olaf.UDPPort).String() }
	s := &stand{server: place{address: hosts.Server.Address, start: hosts.Server.Start}, computes: true, ps: []string{"--id", "0",
		"--clusters", strconv.Itoa(p.Clusters)}}
	for k := range hosts.Workers {
		s.workers = append(s.workers, place{address: hosts.Workers[k].Address, start: hosts.Workers[k].Start})
		s.ps = append(s.ps, "--worker", at(hosts.Workers[k].Address))
	}
	s.worker = func(k int) []string {
		return []string{"--id", strconv.Itoa(int(p.cluster(k))), "--server", at(hosts.Server.Address)}
	}
	s.end = func(ctx context.Context) (map[string]uint64, error) {
		if err := fpga.DrainQueue(ctx, device); err != nil {
			return nil, err
		}
		if err := device.Sleep(ctx, onTheWay); err != nil {
			return nil, err
		}
		return queueCounts(device)
	}
	return s, nil
}
