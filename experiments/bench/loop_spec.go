package bench

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// Loop describes closed-loop hosts connected to the device. Each worker, and the server of each job if the system has
// one, has a separate link. The workload's clusters are the jobs, with equal numbers of workers. updates_per_worker is
// the number of rounds, the output rate is the rate of all links in both directions, and slots is the size of the
// switch's table. Options that are zero select the system's defaults.
type Loop struct {
	Values  int           `json:"values"`          // per vector, 32 bits each
	Model   string        `json:"model,omitempty"` // name of the model, for information
	Compute olaf.Duration `json:"compute"`         // per gradient; with 0, workers communicate all the time
	Spread  float64       `json:"spread"`          // variation of the compute time, as a fraction of it
	Delay   olaf.Duration `json:"delay"`           // per link
	Loss    float64       `json:"loss"`            // share of frames lost on every link
	Apart   olaf.Duration `json:"apart"`           // all hosts start within this time
	Limit   olaf.Duration `json:"limit"`           // for a run; a run that takes longer has hung

	Mode  string `json:"mode,omitempty"`  // how workers wait for each other; default: that of each system
	Bound *int   `json:"bound,omitempty"` // staleness of asynchronous workers; 0 is a valid bound

	Racks int `json:"racks,omitempty"` // racks of a job's workers, below the device; 0 and 1 connect all to the device

	Packet   olaf.Size     `json:"packet,omitempty"`
	Window   int           `json:"window,omitempty"`
	Timeout  olaf.Duration `json:"timeout,omitempty"`
	Recovery string        `json:"recovery,omitempty"`
	Profile  string        `json:"program_profile,omitempty"`
	Sharing  string        `json:"sharing,omitempty"`
	// Ranges contains the reserved slots of each job; empty for an even division.
	Ranges     []system.Range `json:"slot_ranges,omitempty"`
	Congestion bool           `json:"congestion,omitempty"`
	Wrap       bool           `json:"wrap,omitempty"`
}

// DefaultLoop returns a loop whose jobs communicate all the time, over short links.
func DefaultLoop() *Loop {
	return &Loop{Values: 100_000, Delay: 500 * olaf.Nanosecond, Apart: 10 * olaf.Microsecond, Limit: 60 * olaf.Second}
}

// Defaults of a loop: the overhead per Ethernet frame, and the amount of work.
const (
	LoopOverhead = olaf.Size(24)
	LoopRate     = 10 * olaf.Gbps
	LoopWorkers  = 8
	LoopUpdates  = 10
	LoopRuns     = 5
)

// aheadCompute is the default compute time of asynchronous workers: three times the transmission time of a vector at
// the default link rate. It is longer on slower links.
const aheadCompute = olaf.Millisecond

// Defaults for wires on this machine. A thread times their links, and their hosts sometimes wake up late, so shorter
// silences mean nothing.
const (
	measuredRate    = 20 * olaf.Mbps
	measuredWorkers = 4
	measuredRuns    = 3
	measuredTimeout = 200 * olaf.Millisecond
)

// IsLoop reports whether the workers run in a closed loop, either because a loop was requested or because the system
// under test has no open-loop mode.
func (s *Spec) IsLoop() bool {
	if s.Loop != nil {
		return true
	}
	found, err := s.Systems.Find(s.Queue)
	return err == nil && !found.Open() && found.CanLoop()
}

// MakeLoop turns a specification into one for a closed loop. It sets defaults for every field that given does not
// report as set by the user. measured means that the device has no virtual time.
func (s *Spec) MakeLoop(given func(field string) bool, measured bool) {
	if s.Loop == nil {
		s.Loop = DefaultLoop()
	}
	w := &s.Workload
	rate, workers, runs := LoopRate, LoopWorkers, LoopRuns
	if measured {
		rate, workers, runs = measuredRate, measuredWorkers, measuredRuns
		s.Loop.Delay = 0
		if s.CheckOptions(system.OptionTimeout) == nil {
			s.Loop.Timeout = measuredTimeout
		}
	}
	for field, usual := range map[string]func(){
		"workload.workers": func() { w.Workers = workers }, "workload.clusters": func() { w.Clusters = 1 },
		"workload.updates_per_worker": func() { w.UpdatesPerWorker = LoopUpdates },
		"out_rates":                   func() { s.OutRates = []olaf.Rate{rate} },
		"workload.values":             func() { w.Values = 0 },
		"versus":                      func() { s.Versus = "" }, "slots": func() { s.Slots = 0 },
		"overhead": func() { s.Overhead = LoopOverhead }, "runs": func() { s.Runs = runs },
	} {
		if !given(field) {
			usual()
		}
	}
	s.setLoopDefaults(given)
}

// loopOption is a system option that a specification for a closed loop can set.
type loopOption struct {
	name  string // name of the flag
	field string // field of the specification
	isSet func(*Spec) bool
}

// loopOptions lists all system options that a closed loop can set. The option for slots has two fields, because slots
// can also be reserved per job.
var loopOptions = []loopOption{
	{system.OptionSlots, "slots", func(s *Spec) bool { return s.Slots != 0 }},
	{system.OptionSlots, "loop.slot_ranges", func(s *Spec) bool { return len(s.Loop.Ranges) > 0 }},
	{system.OptionPacket, "loop.packet", func(s *Spec) bool { return s.Loop.Packet != 0 }},
	{system.OptionWindow, "loop.window", func(s *Spec) bool { return s.Loop.Window != 0 }},
	{system.OptionTimeout, "loop.timeout", func(s *Spec) bool { return s.Loop.Timeout != 0 }},
	{system.OptionRecovery, "loop.recovery", func(s *Spec) bool { return s.Loop.Recovery != "" }},
	{system.OptionProfile, "loop.program_profile", func(s *Spec) bool { return s.Loop.Profile != "" }},
	{system.OptionSharing, "loop.sharing", func(s *Spec) bool { return s.Loop.Sharing != "" }},
	{system.OptionCongestion, "loop.congestion", func(s *Spec) bool { return s.Loop.Congestion }},
	{system.OptionWrap, "loop.wrap", func(s *Spec) bool { return s.Loop.Wrap }},
	{system.OptionBound, "loop.bound", func(s *Spec) bool { return s.Loop.Bound != nil }},
	{system.OptionH, "h", func(s *Spec) bool { return s.H != nil }},
}

// LoopOptions returns the flag names of the system options that a closed loop can set.
func LoopOptions() (names []string) {
	for i := range loopOptions {
		if o := &loopOptions[i]; !slices.Contains(names, o.name) {
			names = append(names, o.name)
		}
	}
	return names
}

// CheckOptions rejects given options, named by flag, that apply to none of the systems. The error is that of the system
// under test and matches system.ErrOptions. An existing specification is not checked, because stored runs may contain
// options that their system ignored.
func (s *Spec) CheckOptions(given ...string) error {
	var refused error
	for _, name := range s.Queues() {
		found, err := s.Systems.Find(name)
		if err != nil || !found.CanLoop() {
			continue // the specification's own check gives a better error
		}
		how, err := s.modeOf(found)
		if err != nil {
			return err
		}
		mode := *how
		if mode.Takes = slices.Clone(mode.Takes); mode.Sync { // a sum always contains all workers
			mode.Takes = slices.DeleteFunc(mode.Takes, func(o string) bool { return o == system.OptionH })
		}
		if err = mode.CheckOptions(found, given); err == nil {
			return nil
		}
		refused = cmp.Or(refused, err)
	}
	return refused
}

// checkLoopOptions rejects options in a file's loop that apply to no system, and names the field.
func (s *Spec) checkLoopOptions() error {
	for i := range loopOptions {
		o := &loopOptions[i]
		if !o.isSet(s) {
			continue
		}
		if err := s.CheckOptions(o.name); err != nil {
			return olaf.InField(o.field, err)
		}
	}
	return nil
}

// maxLoopValues is the maximum number of values per vector. With more, a packet's number would not fit into frames of
// the smallest size.
const maxLoopValues = 1 << 30

// checkLoop checks the settings of a closed loop. It does not build hosts and switch; NewPlan tries that.
func (s *Spec) checkLoop() error {
	l, w := s.Loop, &s.Workload
	refusals := []struct {
		bad bool
		say string
	}{
		{w.Workers%w.Clusters != 0, fmt.Sprintf("%d workers in %d jobs; every job needs the same number of "+
			"workers", w.Workers, w.Clusters)},
		{s.Slots < 0, fmt.Sprintf("%d slots; use 1 or more, or 0 for the system's default", s.Slots)},
		{l.Values < 1 || l.Values > maxLoopValues,
			fmt.Sprintf("vectors of %d values; use 1 to %d", l.Values, maxLoopValues)},
		{w.Values != 0, "the values of closed-loop workers are loop.values"},
		{s.H != nil && !s.HasAsyncWorkers(), "h is only for workers that do not wait for the sum of all workers"},
		{s.H != nil && (*s.H < 1 || *s.H > MaxH), fmt.Sprintf("h is %d; use 1 to %d", s.sumSize(), MaxH)},
		{l.Bound != nil && *l.Bound < 0, fmt.Sprintf("a bound of %d updates; use 0 or more", s.staleBound())},
		{s.Accelerator, "the accelerator is only for open-loop workers"},
		{s.Topology != "", "a topology is only for open-loop workers"},
		{s.Trace != nil, "a trace gives the send times of open-loop workers"},
		{s.RewardFilter, "the reward filter belongs to a queue, and packets of a closed loop pass no queue"},
		{l.Racks < 0, fmt.Sprintf("%d racks; use 1 or more", l.Racks)},
		{!s.fillsRacks(), fmt.Sprintf("%s of a job do not fill %d racks; use fewer",
			olaf.Plural(s.workersPerJob(), "worker"), l.Racks)},
		{l.Limit <= 0, fmt.Sprintf("a run of %v at most; it must be above 0", l.Limit)},
		{s.Overhead < 0, fmt.Sprintf("%v beside a frame", s.Overhead)},
	}
	for _, r := range refusals {
		if r.bad {
			return fmt.Errorf("%w: %s", ErrSpec, r.say)
		}
	}
	return nil
}

// workersPerJob returns the number of workers per job.
func (s *Spec) workersPerJob() int { return max(1, s.Workload.Workers/s.Workload.Clusters) }

// perRack returns the number of a job's workers in each rack, or 0 if all are connected to one switch.
func (s *Spec) perRack() int {
	if s.Loop.Racks < 2 {
		return 0
	}
	return (s.workersPerJob() + s.Loop.Racks - 1) / s.Loop.Racks
}

// fillsRacks reports whether every rack has workers.
func (s *Spec) fillsRacks() bool {
	per := s.perRack()
	return per == 0 || (s.workersPerJob()+per-1)/per == s.Loop.Racks
}

// buildParts returns the building blocks for a system's hosts and switch.
func (s *Spec) buildParts(of *system.System) (system.Parts, error) {
	l := s.Loop
	mode, err := s.modeOf(of)
	if err != nil {
		return system.Parts{}, err
	}
	o := system.Options{
		Slots: s.Slots, Wrap: l.Wrap, Profile: l.Profile, Recovery: l.Recovery, Timeout: l.Timeout, Packet: l.Packet,
		Window:  l.Window,
		Sharing: l.Sharing, Ranges: l.Ranges, Congestion: l.Congestion, Jobs: s.Workload.Clusters, PerRack: s.perRack(),
		Bound: s.staleBound(),
	}
	if s.H != nil {
		o.H = *s.H
	}
	return mode.Parts(&o)
}

// modeOf returns the mode in which a system's workers run in this specification. The error matches system.ErrMode and
// lists the valid modes.
func (s *Spec) modeOf(of *system.System) (*system.Mode, error) {
	mode, err := s.Systems.LoopedOnes().Mode(of, s.Loop.Mode)
	return mode, olaf.InField("mode", err)
}

// HasAsyncWorkers reports whether the workers of at least one system continue without waiting for the complete sum.
func (s *Spec) HasAsyncWorkers() bool {
	return s.Loop != nil && slices.ContainsFunc(s.Queues(), func(name string) bool {
		found, err := s.Systems.Find(name)
		if err != nil || !found.CanLoop() {
			return false
		}
		mode, err := s.modeOf(found)
		return err == nil && !mode.Sync
	})
}

// staleBound returns the largest staleness with which a gradient is still sent.
func (s *Spec) staleBound() int {
	if s.Loop.Bound == nil {
		return system.DefaultBound
	}
	return *s.Loop.Bound
}

// SetMode selects another mode for the loop's workers and sets the defaults that depend on it.
func (s *Spec) SetMode(mode string, given func(field string) bool) {
	s.Loop.Mode = mode
	s.setLoopDefaults(given)
}

// setLoopDefaults clears the mode if it is the default of all systems, so that the specification equals those written
// before other modes existed. It also sets the default compute time of asynchronous workers.
func (s *Spec) setLoopDefaults(given func(field string) bool) {
	l, usual := s.Loop, true
	for _, name := range s.Queues() {
		found, err := s.Systems.Find(name)
		usual = usual && err == nil && found.CanLoop() && found.Modes[0].Name == l.Mode
	}
	if usual {
		l.Mode = ""
	}
	if s.HasAsyncWorkers() && l.Compute == 0 && !given("loop.compute") {
		l.Compute = aheadCompute * max(1, olaf.Duration(LoopRate/slices.Min(s.OutRates)))
	}
}

// checkPace rejects workers that produce gradients faster than their links can carry, if no reply limits their rate.
func (s *Spec) checkPace(c *Config, net *closedloop.Network, parts *system.Parts) error {
	if c.mode.Sync || parts.Server != nil {
		return nil
	}
	l := endpoint.Layout{Values: s.Loop.Values, PerPacket: parts.PerPacket}
	takes := olaf.Duration(float64(olaf.Second) * 8 * float64(olaf.LaneBytes) * float64(s.Loop.Values) / float64(
		closedloop.GoodputCeiling(net, parts)))
	if s.Loop.Compute >= takes {
		return nil
	}
	least := (takes/olaf.Microsecond + 1) * olaf.Microsecond
	return olaf.InField("compute", fmt.Errorf(
		"%w: a gradient is computed in %v, but its %s take a link of %v about %v, so ever more of them would "+
			"wait, because workers in mode %s continue without an answer; use at least that time for --compute",
		ErrSpec, s.Loop.Compute, olaf.Plural(l.Packets(), "packet"), c.OutRate, least, c.mode.Name))
}

// checkNumbers rejects a loop with more packets than the packet number in the system's frames can represent.
func (s *Spec) checkNumbers(of *system.System) error {
	parts, err := s.buildParts(of)
	if err == nil {
		l := endpoint.Layout{Values: s.Loop.Values, PerPacket: parts.PerPacket}
		err = parts.CheckNumbers(l.Packets(), s.Workload.UpdatesPerWorker)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", of.Name, err)
	}
	return nil
}

// makeHosts returns the hosts for one of the plan's configurations, with their links and their job.
func (p *Plan) makeHosts(c *Config) (net closedloop.Network, job closedloop.Job, parts system.Parts, err error) {
	s := &p.Spec
	l := s.Loop
	if parts, err = s.buildParts(c.system); err != nil {
		return net, job, parts, err
	}
	if err = parts.CheckLoss(c.Queue, l.Loss); err != nil {
		return net, job, parts, fmt.Errorf("%w: %w", ErrSpec, err)
	}
	if parts.Program == nil {
		parts.Program, parts.Passes = c.system.SwitchProgram(), true
	}
	net = closedloop.Network{
		Workers: s.workersPerJob(), Jobs: s.Workload.Clusters, PerRack: s.perRack(), Cycle: olaf.Cycle,
		Link: closedloop.Link{Rate: c.OutRate, Delay: l.Delay, Overhead: s.Overhead, Loss: l.Loss},
	}
	updates, err := closedloop.CheckRounds(s.Workload.UpdatesPerWorker)
	if err != nil {
		return net, job, parts, err
	}
	job = closedloop.Job{Updates: updates, Compute: l.Compute, Jitter: l.Spread, Apart: l.Apart, Limit: l.Limit}
	job.Layout.Values, job.PerPacket = l.Values, parts.PerPacket
	return net, job, parts, s.checkPace(c, &net, &parts)
}

// CheckPatience rejects closed loops in virtual time that would take too long or too much memory. It accepts all
// open-loop work. The error matches closedloop.ErrLong and contains the cost. CheckPatience builds nothing.
func (s *Spec) CheckPatience() error {
	if s.Loop == nil {
		return nil
	}
	p, err := NewPlan(*s)
	if err != nil {
		return err
	}
	var all closedloop.Efforts
	for i := range p.Configs {
		net, job, parts, err := p.makeHosts(&p.Configs[i])
		if err != nil {
			return err
		}
		one, err := closedloop.EffortOf(net, job, parts)
		if err != nil {
			return err
		}
		all.Add(one, s.Runs)
	}
	return all.CheckPatience()
}

// checkLoops checks that the hosts and switches of all configurations can be built.
func (p *Plan) checkLoops() error {
	if p.Spec.Loop == nil {
		return nil
	}
	for i := range p.Configs {
		c := &p.Configs[i]
		if _, err := p.loopJobs(c); err != nil {
			return olaf.InField("loop", fmt.Errorf("%s: %w", c.Queue, err))
		}
	}
	return nil
}

// loopJobs returns the jobs with which a configuration's switch is programmed.
func (p *Plan) loopJobs(c *Config) ([]program.Job, error) {
	net, job, parts, err := p.makeHosts(c)
	if err != nil {
		return nil, err
	}
	return closedloop.PlanJobs(net, job, parts, c.mode.Sync)
}

// clusterID returns the number under which the tables list a cluster. In a closed loop it is the job number in packets.
func (p *Plan) clusterID(c olaf.ClusterID) olaf.ClusterID {
	if p.Spec.Loop != nil {
		return c + closedloop.FirstJob
	}
	return c
}

// checkLooper checks that a device supports closed-loop hosts and contains the switch program that a configuration
// needs.
func checkLooper(dev fpga.Device, c *Config) error {
	if _, ok := dev.(fpga.Looper); !ok {
		return fmt.Errorf("%w: closed-loop workers cannot run on %s", fpga.ErrRefused, dev.Identity().Address)
	}
	return fpga.CheckProgramBuilt(dev, c.system.SwitchProgram())
}

// LoopTitle describes the workers and mode in a few words.
func (s *Spec) LoopTitle() string {
	workers := olaf.Plural(s.workersPerJob(), "worker")
	if s.perRack() > 0 {
		workers += fmt.Sprintf(" in %d racks", s.Loop.Racks)
	}
	title := fmt.Sprintf("%s of %s", olaf.Plural(s.Workload.Clusters, "job"), workers)
	if s.Loop.Mode != "" {
		title += ", " + s.Loop.Mode
	}
	return title
}

// loopAbout returns a description of the workers, the mode and the links.
func (s *Spec) loopAbout() string {
	l, w := s.Loop, &s.Workload
	what := fmt.Sprintf("%d values", l.Values)
	if l.Model != "" {
		what += " of " + l.Model
	}
	if s.H != nil {
		what += fmt.Sprintf(" in sums of %d", *s.H)
	}
	computing := "computed in no time"
	if l.Compute > 0 {
		computing = fmt.Sprintf("computed in %v ± %g %%", l.Compute, 100*l.Spread)
	}
	links := "without a delay"
	if l.Delay > 0 {
		links = "of " + l.Delay.String()
	}
	return fmt.Sprintf("%s, %s of %s, %s, links %s with %v beside a frame, %g %% lost, %s, seed %d",
		s.LoopTitle(), olaf.Plural(w.UpdatesPerWorker, "round"), what, computing, links, s.Overhead, 100*l.Loss,
		olaf.Plural(s.Runs, "run"), s.Seed)
}

// loopStatements returns statements that help readers to interpret the numbers from a closed loop.
func (s *Spec) loopStatements(measured bool) []string {
	said := slices.Clone(ofLoops)
	if measured {
		said = slices.Clone(ofWires)
	}
	if s.HasAsyncWorkers() {
		said[1] = whoseAheadAge
		if measured {
			said[2] = insideAhead
		}
		if s.CheckOptions(system.OptionBound) == nil {
			said = append(said, fmt.Sprintf(
				"a gradient is discarded if its weights have missed more than %s when it is ready",
				olaf.Plural(s.staleBound(), "update")))
		}
	}
	if measured || s.perRack() == 0 {
		return said
	}
	return append(said, "the device is the switch above the racks; the rack switches run the same program with "+
		"tables of the same length, and program counts cover all of them")
}

// whoseAge is the statement that defines ages for closed-loop hosts.
const whoseAge = "an age is that of a job's model at the last worker that gets it, counted from when the newest " +
	"gradient in it was computed; a round contains one gradient of every worker, so ages per worker differ only " +
	"by the time at which each worker computed its own"

// whoseAheadAge is the statement that defines ages for asynchronous workers.
const whoseAheadAge = "an age is that of a job's model at the last worker that gets it, or at the server if a " +
	"server has the weights; it counts from when the newest gradient in the model was computed"

var ofWires = []string{
	"closed loop, measured: workers and servers run in their own namespaces and wait in real time; their frames " +
		"go through this machine's cables, behind links that a thread times, and pass no queue. These numbers " +
		"are not comparable with numbers in virtual time",
	whoseAge,
	"whether a sum is exact is judged by its values: every worker compares every value of every sum with the " +
		"expected one. Frames do not carry whose contributions they contain",
}

// insideAhead is a statement for runs on wires. It explains how the gradients in a sum are known although there are no
// rounds.
const insideAhead = "whether a sum is exact is judged by its values: hosts compare every value of every packet with " +
	"the sum of the added gradients. Frames do not carry whose contributions they contain, so this process records " +
	"the contributions, and the age of their weights, where frames leave and where the switch adds them, in order " +
	"of arrival"

var ofLoops = []string{
	"closed loop: workers and servers are hosts next to the device, which run on its clock and themselves take no " +
		"time; every link is a FIFO without a limit, and packets reach the program at whole cycles of the data " +
		"path and pass no queue",
	whoseAge,
}
