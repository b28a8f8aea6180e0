package netsim

import (
	"context"
	"math"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/system"
)

// Jobs runs the clusters of a topology as closed-loop jobs on the same switches, links, slots and workers. A gradient
// takes as long as the gap between open-loop updates. The server is above the switches, answers every sum, and measures
// the ages, so the statistics are those of open-loop runs.
type Jobs struct {
	System  *system.System
	Mode    *system.Mode
	Options system.Options
	Network closedloop.Network
	Job     closedloop.Job

	topology *Topology
	way      *way
	parts    system.Parts
	patience olaf.Duration // default retry timeout of a worker
}

// NewJobs prepares the jobs of a topology with Waiting set. Errors match ErrTopology if the network has features that
// closed-loop workers do not support, and system.ErrOptions or closedloop.ErrConfig if options do not fit it.
func NewJobs(t *Topology) (*Jobs, error) {
	way, err := t.buildWay()
	if err != nil {
		return nil, err
	}
	j := &Jobs{topology: t, way: way}
	if j.System, j.Mode, err = t.Waiting.resolveMode(t.systems); err != nil {
		return nil, err
	}
	j.Options, _ = t.Waiting.systemOptions()
	j.setNetwork()
	j.Options.Jobs = j.Network.Jobs
	j.setTimeout()
	if j.parts, err = j.Mode.Parts(&j.Options); err != nil {
		return nil, err
	}
	j.setJob()
	return j, nil
}

// tryBuild checks that hosts and switches can be built, without running them.
func (j *Jobs) tryBuild() error {
	_, err := closedloop.PlanJobs(j.Network, j.Job, j.parts, j.Mode.Sync)
	return err
}

// unlimited replaces the missing rate of a worker's link.
const unlimited = 1_000_000 * olaf.Gbps

// setNetwork sets the network: the topology's switches below a root in place of its server.
func (j *Jobs) setNetwork() {
	t := j.topology
	access := &t.Clusters[0].Access
	j.Network = closedloop.Network{
		Workers: t.Clusters[0].Workers, Jobs: len(j.way.homes),
		Link: closedloop.Link{Rate: access.Rate, Delay: access.Delay, Overhead: access.Overhead, Loss: access.Loss},
		Hops: &closedloop.Hops{Switches: make([]closedloop.Hop, 1, 1+len(j.way.switches))},
	}
	if access.Rate == 0 {
		j.Network.Link.Rate = unlimited
	}
	for _, sw := range j.way.switches {
		slots := sw.Slots
		if sw.HoldTx {
			slots-- // the frame on the wire occupies one
		}
		j.Network.Hops.Switches = append(j.Network.Hops.Switches, closedloop.Hop{
			Parent: sw.parent + 1, Slots: slots,
			Up: closedloop.Link{Rate: sw.up.Rate, Delay: sw.up.Delay, Overhead: sw.up.Overhead, Loss: sw.up.Loss},
		})
	}
	for _, home := range j.way.homes {
		j.Network.Hops.Homes = append(j.Network.Hops.Homes, home+1)
	}
	if t.Waiting.Loss > 0 {
		j.Network.SetLoss(t.Waiting.Loss)
	}
}

// triesAfter is the default retry timeout in units of the expected response time. The systems' own timeouts are meant
// for round trips of microseconds.
const triesAfter = 4

// setTimeout sets the workers' retry timeout.
func (j *Jobs) setTimeout() {
	_, longest := j.topology.periodRange()
	j.patience = triesAfter * (j.roundTrip() + longest)
	if j.Options.Timeout > 0 {
		j.patience = j.Options.Timeout
	} else if slices.Contains(j.Mode.Takes, system.OptionTimeout) {
		j.Options.Timeout = j.patience
	}
}

// periodRange returns the shortest and the longest period of all clusters.
func (t *Topology) periodRange() (shortest, longest olaf.Duration) {
	shortest, longest = t.Clusters[0].Period, t.Clusters[0].Period
	for i := range t.Clusters {
		shortest, longest = min(shortest, t.Clusters[i].Period), max(longest, t.Clusters[i].Period)
	}
	return shortest, longest
}

// roundTrip returns the longest round trip from a worker to the server, without transmission times.
func (j *Jobs) roundTrip() (most olaf.Duration) {
	for _, home := range j.way.homes {
		delay := j.Network.Link.Delay
		for at := home; at >= 0; at = j.way.switches[at].parent {
			delay += j.way.switches[at].up.Delay
		}
		most = max(most, 2*delay)
	}
	return most
}

// setJob sets the workers' job, which lasts for the topology's duration.
func (j *Jobs) setJob() {
	t := j.topology
	j.Job = closedloop.Job{Limit: t.Warmup + t.Duration, ServerApply: t.Servers[0].Processing}
	j.Job.Layout.Values, j.Job.PerPacket = int((t.Update-olaf.HeaderBytes)/olaf.LaneBytes), j.parts.PerPacket
	shortest, _ := t.periodRange()
	// Random gaps allow more updates than periods, but not many times as many.
	updates := 2*float64(j.Job.Limit/shortest) + 100
	if !j.Mode.Sync {
		updates *= float64(j.Network.Workers) // an update may contain as little as one gradient
	}
	j.Job.Updates = uint32(min(updates, math.MaxUint32)) // more than any run reaches
}

// Waited contains the counts and measurements of closed-loop hosts over the whole run.
type Waited struct {
	*closedloop.Result
	Stalled int // clusters without recent deliveries at the end
}

// runOnce runs the jobs once, with the topology's seed.
func (j *Jobs) runOnce(ctx context.Context, opt Options) (*Result, error) {
	e, err := newLoopMeter(j, opt)
	if err != nil {
		return nil, err
	}
	job := j.Job
	job.Begin, job.Observer = e.computeTime, e
	if opt.Watcher != nil || opt.Progress != nil {
		job.Follow = e.followRun
	}
	if opt.Record != nil {
		job.Tap = e.newTap()
	}
	run, err := closedloop.Run(ctx, j.Network, job, j.parts, j.Mode.Sync, j.topology.Seed)
	if err != nil {
		return nil, err
	}
	if e.err != nil {
		return nil, e.err
	}
	run.Hung = false // it was never meant to end
	return e.makeResult(run)
}
