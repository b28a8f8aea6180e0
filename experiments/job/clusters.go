package job

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/experiments/netsim/closed"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/text"
)

// Clusters plays the clusters of a topology as jobs of a system whose workers wait for answers: the same switches, links, slots and
// workers, and gradients that take what lies between the updates of workers who do not wait. The server stands above the
// switches, answers every sum, and is where ages are taken, so that what comes out has the statistics of the topology's own
// runs.
type Clusters struct {
	Topology *netsim.Topology
	Spec     // Network and Job are the topology's
	way      *netsim.Way
	patience olaf.Duration // after which a worker tries again, unless somebody says otherwise
}

// NewClusters prepares them; of the specification it takes system, mode, options and the loss of links. Errors match
// netsim.ErrTopology where the topology has what such workers cannot, and system.ErrOptions where the system's sums reach no
// server.
func NewClusters(t *netsim.Topology, spec Spec) (*Clusters, error) {
	if !spec.System.Rises() {
		return nil, fmt.Errorf("%w: the sums of %s do not go on to a server above the switches", system.ErrOptions, spec.System.Name)
	}
	way, err := t.Way()
	if err != nil {
		return nil, err
	}
	c := &Clusters{Topology: t, Spec: spec, way: way}
	c.network()
	parts, err := c.parts()
	if err != nil {
		return nil, err
	}
	c.job(&parts)
	return c, nil
}

// unlimited is the rate of a worker's link where the topology has none.
const unlimited = 1_000_000 * olaf.Gbps

// network is the topology's switches below a root in the place of its server.
func (c *Clusters) network() {
	t, loss := c.Topology, c.Network.Link.Loss
	access := &t.Clusters[0].Access
	c.Network = closed.Network{
		Workers: t.Clusters[0].Workers, Jobs: len(c.way.Homes),
		Link: closed.Link{Rate: access.Rate, Delay: access.Delay, Overhead: access.Overhead},
		Hops: &closed.Hops{Switches: make([]closed.Hop, 1, 1+len(c.way.Switches))},
	}
	if access.Rate == 0 {
		c.Network.Link.Rate = unlimited
	}
	for _, sw := range c.way.Switches {
		slots := sw.Slots
		if sw.HoldTx {
			slots-- // the frame on the wire has one
		}
		c.Network.Hops.Switches = append(c.Network.Hops.Switches, closed.Hop{
			Parent: sw.Parent + 1, Slots: slots, Up: closed.Link{Rate: sw.Up.Rate, Delay: sw.Up.Delay, Overhead: sw.Up.Overhead},
		})
	}
	for _, home := range c.way.Homes {
		c.Network.Hops.Homes = append(c.Network.Hops.Homes, home+1)
	}
	c.Network.Lose(loss)
}

// patience is how many times as long as an answer can be expected to take a worker waits for it: what systems have of their
// own is meant for round trips of microseconds.
const patience = 4

// job is what the workers do until the topology's time is over.
func (c *Clusters) job(parts *system.Parts) {
	t := c.Topology
	c.Job = closed.Job{Limit: t.Warmup + t.Duration, ServerApply: t.Servers[0].Processing}
	c.Job.Layout.Values, c.Job.PerPacket = int((t.Update-olaf.HeaderBytes)/olaf.LaneBytes), parts.PerPacket
	shortest, longest := t.Clusters[0].Period, t.Clusters[0].Period
	for i := range t.Clusters {
		shortest, longest = min(shortest, t.Clusters[i].Period), max(longest, t.Clusters[i].Period)
	}
	// With random gaps there can be more than the time holds periods, but not many times as many.
	c.Job.Updates = 2*uint32(c.Job.Limit/shortest) + 100
	if !c.Mode.Sync {
		c.Job.Updates *= uint32(c.Network.Workers) // an update may hold as little as one gradient
	}
	c.patience = patience * (c.roundTrip() + longest)
	if c.Options.Timeout > 0 {
		c.patience = c.Options.Timeout
	} else if slices.Contains(c.Mode.Takes, system.OptionTimeout) {
		c.Options.Timeout = c.patience
	}
}

// roundTrip is the longest from a worker to the server and back, of delays alone.
func (c *Clusters) roundTrip() (most olaf.Duration) {
	for _, home := range c.way.Homes {
		delay := c.Network.Link.Delay
		for at := home; at >= 0; at = c.way.Switches[at].Parent {
			delay += c.way.Switches[at].Up.Delay
		}
		most = max(most, 2*delay)
	}
	return most
}

// Clustered is what the clusters did.
type Clustered struct {
	Results []*netsim.Result // by seed, as of runs of the topology
	Outcome                  // what systems count and measure beside that, over the whole runs
	Stalled []int            // by seed, clusters that the server had not heard of for long when time was over
}

// Run plays every seed. done is called after each run; nil for nobody.
func (c *Clusters) Run(ctx context.Context, seeds []uint64, done func()) (*Clustered, error) {
	parts, err := c.parts()
	if err != nil {
		return nil, err
	}
	out := &Clustered{Results: make([]*netsim.Result, len(seeds)), Stalled: make([]int, len(seeds))}
	out.Outcome = Outcome{Spec: &c.Spec, Runs: make([]*closed.Result, len(seeds))}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, seed := range seeds {
		group.Go(func() error {
			e, err := c.ear(seed)
			if err != nil {
				return err
			}
			job := c.Job
			job.Begin, job.Observer = e.begin, e
			run, err := closed.Run(ctx, c.Network, job, parts, c.Mode.Sync, seed)
			if err != nil {
				return fmt.Errorf("%s: %w", c.Name(), err)
			}
			run.Hung = false // nobody meant it to end
			out.Results[i], out.Runs[i], out.Stalled[i] = e.result(run), run, e.stalled(c.patience)
			if done != nil {
				done()
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	out.describe()
	return out, nil
}

// Name is how tables tell it apart.
func (r *Clustered) Name() string { return r.Spec.Name() }

// Err is nil when no cluster stood still. The error matches ErrHung.
func (r *Clustered) Err() error {
	clusters, runs := 0, 0
	for _, n := range r.Stalled {
		if clusters += n; n > 0 {
			runs++
		}
	}
	if clusters == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s in %d of %s stood still at the end", ErrHung, olaf.Plural(clusters, "cluster"), runs, olaf.Plural(len(r.Stalled), "run"))
}

// told are the numbers of a job that mean something of one that does not come to its end.
var told = []string{"iteration_ns", "staleness_updates", "staleness_vectors", "aom_newest_ns", "slots_held", "slots_held_peak", "memory_bytes", "frames", "wire_bytes"}

// MarshalJSON is what a simulation's document says of workers that waited for answers.
func (r *Clustered) MarshalJSON() ([]byte, error) {
	numbers := map[string]results.Statistic{}
	for _, name := range told {
		numbers[name] = r.Number(name)
	}
	return json.Marshal(struct {
		System    string                       `json:"system"`
		Mode      string                       `json:"mode"`
		Profile   string                       `json:"program_profile,omitempty"`
		H         int                          `json:"h,omitempty"`
		Timeout   olaf.Duration                `json:"timeout,omitempty"`
		Loss      float64                      `json:"loss"`
		PerPacket int                          `json:"values_per_packet"`
		Stalled   []int                        `json:"stalled_clusters"`
		Numbers   map[string]results.Statistic `json:"numbers"`
		Endpoints olaf.Counts                  `json:"endpoints"`
		Program   olaf.Counts                  `json:"program"`
	}{r.Spec.System.Name, r.Spec.Mode.Name, r.Spec.Options.Profile, r.Spec.Options.H, r.Spec.Options.Timeout, r.Spec.Network.Link.Loss,
		r.Spec.Job.PerPacket, r.Stalled, numbers, r.Endpoints, r.Program})
}

// Lines say what the statistics of a network do not.
func (r *Clustered) Lines() (lines []string) {
	iteration, here, held := r.Number("iteration_ns"), r.Number("aom_newest_ns"), r.Number("slots_held")
	lines = append(lines, r.Spec.Mode.About+fmt.Sprintf(": %s between updates; a gradient takes what lies between two updates of workers that do not wait", text.Age(&iteration)))
	lines = append(lines, fmt.Sprintf("at the workers, half a round trip later, models were %s old; switches held %s slots, mean over time", text.Age(&here), text.Rounded(&held, 1)))
	packets := fmt.Sprintf("a gradient takes %s; ", olaf.Plural(r.Spec.Job.Packets(), "packet"))
	if r.Spec.Options.Timeout > 0 {
		packets += fmt.Sprintf("after %s of silence workers try again: ", r.Spec.Options.Timeout)
	}
	return append(lines, packets+fmt.Sprintf("%d sent again, %d packets of sums inexact, %d updates torn, %d gradients too stale",
		r.Endpoints.Of("packets_resent"), r.Endpoints.Of("packets_inexact"), r.Endpoints.Of("updates_torn"), r.Endpoints.Of("vectors_discarded")))
}

// ear measures one run. It implements closed.Observer.
type ear struct {
	topology *netsim.Topology
	way      *netsim.Way
	outside  *netsim.Outside
	sync     bool
	perJob   int // workers
	packets  int // of a vector
	limit    olaf.Duration

	latest  []olaf.Time // by worker, its latest generation
	gens    []olaf.Time // by worker, when the gradient at hand was ready
	pending []bool      // by worker, that has not been sent
	jobs    []delivery
}

// delivery is the sum of a job that is coming together at the server.
type delivery struct {
	inside uint64 // of its packets; of workers that do not wait nothing
	seen   []uint32
	left   int
	newest int64 // ns, of the last one that was whole
	at     olaf.Time
}

func (c *Clusters) ear(seed uint64) (*ear, error) {
	t := *c.Topology
	t.Seed = seed
	outside, err := netsim.NewOutside(&t)
	if err != nil {
		return nil, err
	}
	if !c.Mode.Sync {
		outside.Nameless()
	}
	workers := c.Network.Jobs * c.Network.Workers
	e := &ear{
		topology: &t, way: c.way, outside: outside, sync: c.Mode.Sync, perJob: c.Network.Workers, packets: c.Job.Packets(), limit: c.Job.Limit,
		latest: make([]olaf.Time, workers), gens: make([]olaf.Time, workers), pending: make([]bool, workers), jobs: make([]delivery, c.Network.Jobs),
	}
	for i := range e.jobs {
		e.jobs[i] = delivery{seen: make([]uint32, e.packets), left: e.packets, newest: -1}
	}
	return e, nil
}

// begin says how long a gradient takes: what lies between the worker's update before and this one in runs of the topology.
func (e *ear) begin(worker int, _ uint32) olaf.Duration {
	next, more := e.outside.Generation(worker)
	if !more {
		return e.limit
	}
	takes := next.Sub(e.latest[worker])
	e.latest[worker] = next
	return takes
}

// Computed implements closed.Observer. One that was not sent until the next is ready was kept back.
func (e *ear) Computed(now olaf.Time, worker int) {
	if e.pending[worker] {
		e.outside.Withheld(worker, e.gens[worker])
	}
	e.gens[worker], e.pending[worker] = now, true
}

// Sent implements closed.Observer.
func (e *ear) Sent(_ olaf.Time, worker int) {
	if e.pending[worker] {
		e.pending[worker] = false
		e.outside.Sent(worker, e.gens[worker])
	}
}

// Whole implements closed.Observer: the server has a sum when it has all packets of it.
func (e *ear) Whole(now olaf.Time, p *program.Packet) {
	job := int(p.Job) - 1
	d := &e.jobs[job]
	if e.sync && !d.renews(p) {
		return
	}
	at := &d.seen[p.Seg%uint64(e.packets)]
	if *at++; *at > 1 && e.sync {
		return
	}
	if *at == 1 {
		d.left--
	}
	if d.left > 0 {
		return
	}
	for i := range d.seen {
		if d.seen[i]--; d.seen[i] == 0 {
			d.left++
		}
	}
	d.newest, d.at = int64(p.NewestNS), now
	e.outside.Merged(job, int(p.Vectors)-1, now)
	e.outside.Frame(job, now, nanoseconds(p.NewestNS), int(p.Vectors))
	for w := job * e.perJob; e.sync && w < (job+1)*e.perJob; w++ {
		e.outside.Worker(w, now, e.gens[w])
	}
}

// renews says that a packet is of the sum at hand or of a later one, with which it begins anew. The server may have sent what
// was whole before once more.
func (d *delivery) renews(p *program.Packet) bool {
	if int64(p.NewestNS) <= d.newest {
		return false
	}
	if p.Inside != d.inside {
		d.inside, d.left = p.Inside, len(d.seen)
		clear(d.seen)
	}
	return true
}

// Dropped implements closed.Observer. Workers that wait send again what was inside.
func (e *ear) Dropped(now olaf.Time, p *program.Packet) {
	lost := 0
	if !e.sync {
		lost = int(p.Vectors)
	}
	e.outside.Dropped(int(p.Job)-1, lost, now)
}

func nanoseconds(ns uint64) olaf.Time { return olaf.Time(ns) * olaf.Time(olaf.Nanosecond) }

// stalled counts the clusters of which the server had not heard for so long that workers must have tried again many times.
func (e *ear) stalled(patience olaf.Duration) (n int) {
	const tries = 10
	for i := range e.jobs {
		if e.limit-olaf.Duration(e.jobs[i].at) > tries*patience {
			n++
		}
	}
	return n
}

// result is what was measured, with the ports towards the server.
func (e *ear) result(run *closed.Result) *netsim.Result {
	for worker, kept := range e.pending {
		if kept {
			e.outside.Withheld(worker, e.gens[worker])
		}
	}
	r := e.outside.Result()
	r.Time = e.limit
	for i, sw := range e.way.Switches {
		p := &run.Ports[i+1]
		values := map[string]results.Float{
			"in": results.Float(p.In), "appended": results.Float(p.In - p.Dropped), "dropped": results.Float(p.Dropped), "left": results.Float(p.Left),
			"peak_occupancy": results.Float(p.Most), "utilisation": p.Busy,
		}
		to := e.topology.Servers[0].Name
		if sw.Parent >= 0 {
			to = e.way.Switches[sw.Parent].Name
		}
		rows := netsim.PortStatistics()
		r.Ports = append(r.Ports, netsim.PortResult{Port: sw.Name + "→" + to, Queue: e.topology.Queue, Slots: sw.Slots, Values: metric.Listed(rows, func(i int) results.Float {
			return values[rows[i].Name] // nothing is merged, nothing is lost by links that fail
		})})
	}
	return r
}
