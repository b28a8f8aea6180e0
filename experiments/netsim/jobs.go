package netsim

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/engine"
)

// Jobs runs the clusters of a topology as closed-loop jobs on the same switches, links, slots and workers. Computing a
// gradient takes as long as the gap between updates in the open-loop run. The server is above the switches, answers
// every sum and measures the ages, so that the statistics can be compared with those of open-loop runs.
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

// NewJobs prepares the jobs of a topology whose field Waiting is set. Errors match ErrTopology if the network has
// features that closed-loop workers do not support, and system.ErrOptions or closedloop.ErrConfig if the options are
// not valid for the system.
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

// unlimited is the rate that is used for a worker's link if the topology sets none.
const unlimited = 1_000_000 * olaf.Gbps

// setNetwork builds the closed-loop network from the topology. The topology's switches are below a root, which replaces
// its server.
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

// triesAfter is the default retry timeout as a multiple of the expected response time. The default timeouts of the
// systems are meant for round trips of microseconds.
const triesAfter = 4

// setTimeout sets the timeout after which the workers retry.
func (j *Jobs) setTimeout() {
	_, longest := j.topology.periodRange()
	j.patience = triesAfter * (j.roundTrip() + longest)
	if j.Options.Timeout > 0 {
		j.patience = j.Options.Timeout
	} else if slices.Contains(j.Mode.Takes, system.OptionTimeout) {
		j.Options.Timeout = j.patience
	}
}

// periodRange returns the shortest and the longest period of any cluster.
func (t *Topology) periodRange() (shortest, longest olaf.Duration) {
	shortest, longest = t.Clusters[0].Period, t.Clusters[0].Period
	for i := range t.Clusters {
		shortest, longest = min(shortest, t.Clusters[i].Period), max(longest, t.Clusters[i].Period)
	}
	return shortest, longest
}

// roundTrip returns the longest round-trip time between a worker and the server, without transmission times.
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

// setJob sets the job of the workers. It lasts as long as the topology's run.
func (j *Jobs) setJob() {
	t := j.topology
	j.Job = closedloop.Job{Limit: t.Warmup + t.Duration, ServerApply: t.Servers[0].Processing}
	j.Job.Layout.Values, j.Job.PerPacket = int((t.Update-olaf.HeaderBytes)/olaf.LaneBytes), j.parts.PerPacket
	shortest, _ := t.periodRange()
	// With random gaps there can be more updates than with fixed periods, but not many times more.
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

// runOnce runs the jobs once with the topology's seed.
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
	run.Hung = false // the run was never meant to end
	return e.makeResult(run)
}

// way is a network whose switches form a tree below a single server.
type way struct {
	switches []waySwitch
	homes    []int // by cluster, the switch of its workers
}

// waySwitch is one switch in the tree of a way.
type waySwitch struct {
	*Switch
	parent int // index of the parent, less than its own; -1 for the server
	up     *Link
}

// buildWay arranges the network's switches as a tree. The error matches ErrTopology if that is impossible, for example
// because there are several servers, because a cluster's workers are on several switches, or because a feature needs
// open-loop workers.
func (t *Topology) buildWay() (*way, error) {
	n, err := buildNetwork(t)
	if err != nil {
		return nil, err
	}
	if err := t.checkPlain(); err != nil {
		return nil, err
	}
	w := &way{}
	place := map[int32]int{}
	var add func(at int32) int
	add = func(at int32) int {
		if int(at) >= n.switches {
			return -1
		}
		if i, ok := place[at]; ok {
			return i
		}
		port := &n.ports[n.next[at]]
		parent := add(port.to)
		place[at] = len(w.switches)
		w.switches = append(w.switches, waySwitch{&t.Switches[at], parent, port.spec})
		return place[at]
	}
	for i := range n.clusters {
		w.homes = append(w.homes, add(n.trees[n.clusters[i].tree].attached[0]))
	}
	return w, nil
}

// checkPlain rejects topologies with features that closed-loop workers do not support.
func (t *Topology) checkPlain() error {
	refuse := func(p Pos, field, what string) error {
		return &Error{t.File, p.LineOf(field), what + ", which closed-loop workers do not support"}
	}
	switch {
	case len(t.Servers) > 1:
		return refuse(t.Servers[1].Pos, "name", "clusters have several servers")
	case t.Sends != "":
		return refuse(t.Pos, "sends", "updates are sent at instants of a file")
	case t.Timing == NS3:
		return refuse(t.Pos, "timing", "instants are those of ns-3")
	case t.Control.Enabled:
		return refuse(t.Control.Pos, "enabled", "transmission control withholds updates")
	case len(t.Background) > 0:
		return refuse(t.Background[0].Pos, "at", "there is traffic beside the training's")
	case len(t.Schedule) > 0:
		return refuse(t.Schedule[0].Pos, "at", "links change")
	}
	for i := range t.Clusters {
		k, first := &t.Clusters[i], &t.Clusters[0]
		switch {
		case len(k.At) > 1:
			return refuse(k.Pos, "at", fmt.Sprintf("workers of a cluster are on %d switches", len(k.At)))
		case k.Stop > 0:
			return refuse(k.Pos, "stop", "a cluster stops")
		case k.Workers != first.Workers || k.Access.Rate != first.Access.Rate || k.Access.Delay != first.Access.Delay ||
			k.Access.Overhead != first.Access.Overhead || k.Access.Loss != first.Access.Loss:
			return refuse(k.Pos, "workers", "clusters differ in their workers or the links of these")
		}
	}
	if i := slices.IndexFunc(t.Switches, func(sw Switch) bool { return sw.HoldTx && sw.Slots == 1 }); i >= 0 {
		return refuse(t.Switches[i].Pos, "slots", "ports store only the frame on the wire")
	}
	if i := slices.IndexFunc(t.Switches, func(sw Switch) bool { return t.queueOf(&sw) != t.Queue }); i >= 0 {
		return refuse(t.Switches[i].Pos, "queue", "a switch has a queue of its own")
	}
	ideal := func(sw Switch) bool { return sw.Profile == "" || engine.Profile(sw.Profile) == engine.Ideal }
	if i := slices.IndexFunc(t.Switches, func(sw Switch) bool { return !ideal(sw) }); i >= 0 {
		return refuse(t.Switches[i].Pos, "profile", "engines take cycles")
	}
	return nil
}

// Waiting makes the workers closed loop, as in a published system. Each cluster becomes a job of that system. Fields
// are named like the flags. Absent fields have the system's defaults.
type Waiting struct {
	Pos        `yaml:"-"`
	System     string        `yaml:"system"`
	Mode       string        `yaml:"mode,omitempty"` // if absent, the system's default
	Loss       float64       `yaml:"loss,omitempty"` // share of frames lost on every link, 0 to 1
	H          int           `yaml:"h,omitempty"`
	Bound      *int          `yaml:"bound,omitempty"` // a pointer, because 0 is a valid bound
	Slots      int           `yaml:"slots,omitempty"`
	Wrap       bool          `yaml:"wrap,omitempty"`
	Profile    string        `yaml:"program_profile,omitempty"`
	Recovery   string        `yaml:"recovery,omitempty"`
	Timeout    olaf.Duration `yaml:"timeout,omitempty"`
	Packet     olaf.Size     `yaml:"packet,omitempty"`
	Window     int           `yaml:"window,omitempty"`
	Congestion bool          `yaml:"congestion,omitempty"`
}

// systemOptions returns the options that were set, and their names.
func (w *Waiting) systemOptions() (o system.Options, given []string) {
	o = system.Options{
		H: w.H, Bound: system.DefaultBound, Slots: w.Slots, Wrap: w.Wrap, Profile: w.Profile, Recovery: w.Recovery,
		Timeout: w.Timeout, Packet: w.Packet, Window: w.Window, Congestion: w.Congestion,
	}
	if w.Bound != nil {
		o.Bound = *w.Bound
	}
	for _, one := range []struct {
		name  string
		given bool
	}{
		{system.OptionH, w.H != 0}, {system.OptionBound, w.Bound != nil}, {system.OptionSlots, w.Slots != 0},
		{system.OptionWrap, w.Wrap},
		{system.OptionProfile, w.Profile != ""}, {system.OptionRecovery, w.Recovery != ""},
		{system.OptionTimeout, w.Timeout != 0},
		{system.OptionPacket, w.Packet != 0}, {system.OptionWindow, w.Window != 0},
		{system.OptionCongestion, w.Congestion},
	} {
		if one.given {
			given = append(given, one.name)
		}
	}
	return o, given
}

// resolveMode looks up the system and its mode in all. The error matches system.ErrUnknown or system.ErrOptions.
func (w *Waiting) resolveMode(all system.Set) (*system.System, *system.Mode, error) {
	s, err := all.ClosedLoop().Find(w.System)
	if err != nil {
		return nil, nil, err
	}
	if !s.Rises() {
		return nil, nil, fmt.Errorf("%w: the sums of %s do not go on to a server above the switches; those of %s do",
			system.ErrOptions, s.Name, strings.Join(all.Rising().Names(), ", "))
	}
	mode, err := s.Mode(w.Mode)
	if err != nil {
		return nil, nil, err
	}
	_, given := w.systemOptions()
	return s, mode, mode.CheckOptions(s, given)
}

// checkWaiting checks the closed-loop settings, without building the network.
func (c *checker) checkWaiting() {
	w := c.t.Waiting
	if w == nil {
		return
	}
	s, _, err := w.resolveMode(c.t.systems)
	switch {
	case err != nil:
		c.errs = append(c.errs, c.t.locateError(w.Pos, "system", err))
	case c.t.Queue != s.Discipline:
		c.addError(c.t.Pos, "queue", "ports of %s are %s, not %s", s.Name, s.Discipline, c.t.Queue)
	}
	c.checkLoss(w.Pos, w.Loss)
}

// SetLoss sets the loss of every link to share, from 0 to 1.
func (t *Topology) SetLoss(share float64) {
	if t.Waiting != nil {
		t.Waiting.Loss, share = share, 0 // Waiting.Loss applies to all links
	}
	for i := range t.Links {
		t.Links[i].Loss = share
	}
	for i := range t.Clusters {
		t.Clusters[i].Access.Loss = share
	}
}

// locateError adds the position in the topology file to an error from another package.
func (t *Topology) locateError(p Pos, key string, err error) error {
	if t.File == "" {
		return err
	}
	return &Error{t.File, p.LineOf(key), err.Error()}
}

// System returns the name of the system that the network uses. It is the system of the closed-loop workers, of the
// switches' program, or of the queues.
func (t *Topology) System() string {
	if t.Waiting != nil {
		return t.Waiting.System
	}
	return cmp.Or(t.Program, t.Queue)
}

// Title returns a title for comparisons: the system and its mode, or the queue and whether transmission control is
// enabled.
func (t *Topology) Title() string {
	switch {
	case t.Waiting != nil:
		if _, mode, err := t.Waiting.resolveMode(t.systems); err == nil {
			return t.Waiting.System + " " + mode.Name
		}
	case t.Control.Enabled:
		return t.System() + " tc"
	case t.Program != "":
		return t.Program + " " + Open
	}
	return t.System()
}

// CaptureInterface returns the interface description for captures at the server. It returns nil for OLAF's frames,
// which Observers receive. Errors are those of Resolve.
func (t *Topology) CaptureInterface() (*capture.Interface, error) {
	if t.Waiting == nil {
		return nil, nil
	}
	j, err := NewJobs(t)
	if err != nil {
		return nil, err
	}
	from := closedloop.CaptureInterface(t.Servers[0].Name, j.parts.Frame, false)
	return &from, nil
}
