package netsim

import (
	"context"
	"math"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/system"
)

// Jobs are the clusters of a topology as jobs whose workers wait for answers: the same switches, links, slots and workers, and
// gradients that take what lies between the updates of workers who do not wait. The server stands above the switches, answers
// every sum, and is where ages are taken, so that what comes out has the statistics of the topology's other runs.
type Jobs struct {
	System  *system.System
	Mode    *system.Mode
	Options system.Options
	Network closedloop.Network
	Job     closedloop.Job

	topology *Topology
	way      *way
	parts    system.Parts
	patience olaf.Duration // after which a worker tries again, unless somebody says otherwise
}

// NewJobs prepares them of a topology that is Waiting. Errors match ErrTopology where the network has what such workers cannot,
// and system.ErrOptions or closedloop.ErrConfig where options do not fit it.
func NewJobs(t *Topology) (*Jobs, error) {
	way, err := t.way()
	if err != nil {
		return nil, err
	}
	j := &Jobs{topology: t, way: way}
	if j.System, j.Mode, err = t.Waiting.resolve(t.systems); err != nil {
		return nil, err
	}
	j.Options, _ = t.Waiting.options()
	j.network()
	j.Options.Jobs = j.Network.Jobs
	j.wait()
	if j.parts, err = j.Mode.Parts(&j.Options); err != nil {
		return nil, err
	}
	j.job()
	return j, nil
}

// try says why hosts and switches can't be built. Nothing plays.
func (j *Jobs) try() error {
	_, err := closedloop.Jobs(j.Network, j.Job, j.parts, j.Mode.Sync)
	return err
}

// unlimited is the rate of a worker's link where the topology has none.
const unlimited = 1_000_000 * olaf.Gbps

// network is the topology's switches below a root in the place of its server.
func (j *Jobs) network() {
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
			slots-- // the frame on the wire has one
		}
		j.Network.Hops.Switches = append(j.Network.Hops.Switches, closedloop.Hop{
			Parent: sw.parent + 1, Slots: slots, Up: closedloop.Link{Rate: sw.up.Rate, Delay: sw.up.Delay, Overhead: sw.up.Overhead, Loss: sw.up.Loss},
		})
	}
	for _, home := range j.way.homes {
		j.Network.Hops.Homes = append(j.Network.Hops.Homes, home+1)
	}
	if t.Waiting.Loss > 0 {
		j.Network.Lose(t.Waiting.Loss)
	}
}

// triesAfter is how many times as long as an answer can be expected to take a worker waits for it: what systems have of their
// own is meant for round trips of microseconds.
const triesAfter = 4

// wait says after which silence workers try again.
func (j *Jobs) wait() {
	_, longest := j.topology.periods()
	j.patience = triesAfter * (j.roundTrip() + longest)
	if j.Options.Timeout > 0 {
		j.patience = j.Options.Timeout
	} else if slices.Contains(j.Mode.Takes, system.OptionTimeout) {
		j.Options.Timeout = j.patience
	}
}

// periods are the shortest and the longest of all clusters.
func (t *Topology) periods() (shortest, longest olaf.Duration) {
	shortest, longest = t.Clusters[0].Period, t.Clusters[0].Period
	for i := range t.Clusters {
		shortest, longest = min(shortest, t.Clusters[i].Period), max(longest, t.Clusters[i].Period)
	}
	return shortest, longest
}

// roundTrip is the longest from a worker to the server and back, of delays alone.
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

// job is what the workers do until the topology's time is over.
func (j *Jobs) job() {
	t := j.topology
	j.Job = closedloop.Job{Limit: t.Warmup + t.Duration, ServerApply: t.Servers[0].Processing}
	j.Job.Layout.Values, j.Job.PerPacket = int((t.Update-olaf.HeaderBytes)/olaf.LaneBytes), j.parts.PerPacket
	shortest, _ := t.periods()
	// With random gaps there can be more than the time holds periods, but not many times as many.
	updates := 2*float64(j.Job.Limit/shortest) + 100
	if !j.Mode.Sync {
		updates *= float64(j.Network.Workers) // an update may hold as little as one gradient
	}
	j.Job.Updates = uint32(min(updates, math.MaxUint32)) // which nobody lives to see
}

// Waited is what hosts that wait for answers counted and measured beside a Result, over the whole run.
type Waited struct {
	*closedloop.Result
	Stalled int // clusters that the server had not heard of for long when time was over
}

// run plays them once, under the topology's seed.
func (j *Jobs) run(ctx context.Context, opt Options) (*Result, error) {
	e, err := newEar(j, opt)
	if err != nil {
		return nil, err
	}
	job := j.Job
	job.Begin, job.Observer = e.begin, e
	if opt.Watcher != nil || opt.Progress != nil {
		job.Follow = e.follow
	}
	if opt.Record != nil {
		job.Tap = e.record()
	}
	run, err := closedloop.Run(ctx, j.Network, job, j.parts, j.Mode.Sync, j.topology.Seed)
	if err != nil {
		return nil, err
	}
	if e.err != nil {
		return nil, e.err
	}
	run.Hung = false // nobody meant it to end
	return e.result(run)
}
