package bench

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/experiments/paper/atp"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga/program"
)

// loopFlags say what hosts do that wait for answers.
type loopFlags struct {
	bench.Loop
	jobs, fan, aggregators int
	bound                  int
	loss                   cli.LossList
	fraction               float64
	ranges                 string
}

// modeFlag is how workers wait.
const modeFlag = "mode"

// slotRanges is the flag of slots that are each job's alone.
const slotRanges = "slot-ranges"

// loopOnly are the flags that mean nothing to workers that do not wait, openOnly those that mean nothing to workers that do.
var (
	loopOnly = append([]string{"jobs", "fan", "aggregators", "model", "fraction", "compute", "spread", "delay", "loss", "racks", "limit", slotRanges}, waitingOptions()...)
	openOnly = []string{
		"rate", "line-rate", "burst", "size", "cluster-sigma", "active-clusters", "trace", "trace-averaging", "trace-spread", "trace-limit", system.OptionH, "topology", "accelerator",
		"profile", "ports", "dequeue-cycles", "merge-cycles", "reward-filter", "reward-threshold", "time-scale",
	}
)

func (f *loopFlags) add(cmd *cobra.Command, systems system.Set) {
	modes := systems.Looped().ModeNames()
	f.Loop = *bench.DefaultLoop()
	flags := cmd.Flags()
	flags.IntVar(&f.jobs, "jobs", 1, "jobs that run at the same time, which share the switch")
	flags.IntVar(&f.fan, "fan", bench.LoopWorkers, "workers of a job; --workers are those of all jobs together")
	flags.IntVar(&f.aggregators, "aggregators", 0, "the same as --slots, as ATP calls them")
	flags.IntVar(&f.Values, "values", f.Values, "values of a gradient, 32 bits each; of workers that do not wait as many as a frame of --size holds if not given, and more take several frames")
	flags.StringVar(&f.Model, "model", "", "take the gradient of this network: "+strings.Join(atp.ModelNames(), "|"))
	flags.Float64Var(&f.fraction, "fraction", 0.01, "part of --model's gradient that is summed")
	flags.Var(&f.Compute, "compute", "time that a gradient takes a worker; 0s communicates all the time")
	flags.Float64Var(&f.Spread, "spread", 0, "computing times vary by this share of themselves")
	flags.Var(&f.Delay, "delay", "of a link")
	flags.Var(&f.loss, "loss", "share of frames that every link loses, such as 0.001 or 0.1%")
	flags.IntVar(&f.Racks, "racks", 1, "switches that the workers of each job hang on, below the device: atp in --program-profile paper, switchml, ps, ring, and iswitch with a --mode")
	flags.Var(&f.Limit, "limit", "time of the device that a run is given, after which it hung")
	flags.Var(&f.Packet, system.OptionPacket, "switchml: payload of a packet: 256B|1024B")
	flags.IntVar(&f.Window, system.OptionWindow, 0, "packets of a worker on their way: atp, 0 is 100; p4inc, 0 is its segment; xagg, fragments, 64 if not given")
	flags.Var(&f.Timeout, system.OptionTimeout, "silence after which workers ask or send again; 0s is the system's own")
	flags.StringVar(&f.Recovery, system.OptionRecovery, "", "what workers do about loss: atp resend|none, resend if not given; iswitch --mode sync, help|fbcast|none, help if not given")
	flags.StringVar(&f.Profile, system.OptionProfile, "", "of the program: atp p4ml, the released code, or paper; iswitch --mode sync, isw-1 or isw-x")
	flags.StringVar(&f.Sharing, system.OptionSharing, "", "atp: how jobs share aggregators: dynamic, or static in parts of their own")
	flags.StringVar(&f.Mode, modeFlag, "", "how workers wait: "+netsim.Open+", for nobody, as those of systems do whose switches add up such updates; or for each other: "+strings.Join(modes, "|"))
	flags.IntVar(&f.bound, system.OptionBound, system.DefaultBound, "iswitch async: staleness S beyond which a gradient is discarded")
	flags.StringVar(&f.ranges, slotRanges, "", "slots of each job that no other has, first to last, such as 0-63,64-127; even parts if not given")
	flags.BoolVar(&f.Congestion, system.OptionCongestion, false, "atp: windows follow marks of congestion")
	flags.BoolVar(&f.Wrap, system.OptionWrap, false, "iswitch --mode sync: vectors longer than the table use it again from its start")
	cli.Complete(cmd, "model", atp.ModelNames)
	cli.Complete(cmd, modeFlag, func() []string { return append([]string{netsim.Open}, modes...) })
	cli.Complete(cmd, system.OptionPacket, func() []string { return []string{"256B", "1024B"} })
	cli.Complete(cmd, system.OptionSharing, func() []string { return []string{system.Dynamic, system.Static} })
	cli.Complete(cmd, system.OptionRecovery, func() []string { return []string{system.RecoverResend, system.RecoverNone} })
	cli.Complete(cmd, system.OptionProfile, func() []string { return []string{"p4ml", "paper", "isw-1", "isw-x"} })
}

// close makes a specification of workers that wait a loop, and refuses what does not go together.
func (f *loopFlags) close(cmd *cobra.Command, env *cli.Env, device string, spec *bench.Spec) error {
	given := cmd.Flags().Changed
	row, _, err := env.Devices.Of(device)
	if err != nil {
		return err
	}
	found, err := env.Systems.Find(spec.Queue)
	if err == nil {
		if err := f.choose(given, env, device, found, spec); err != nil {
			return err
		}
	}
	loops := spec.Loops() || err == nil && cli.WaitsThere(row, found) || f.waits(given)
	for _, name := range map[bool][]string{true: openOnly, false: loopOnly}[loops] {
		switch {
		case !given(name), name == system.OptionH && f.waits(given): // which says itself where it means nothing
		case loops:
			return cli.UsageError("--%s means nothing to %s, whose workers wait for answers", name, spec.Queue)
		default:
			return cli.UsageError("--%s is for systems whose workers wait for answers, such as %s%s", name, strings.Join(waitingOnly(env.Systems), ", "), waitsWhere(found))
		}
	}
	if !loops {
		if given("values") {
			if f.Values < 1 {
				return cli.UsageError("--values %d: use 1 and more", f.Values)
			}
			spec.Workload.Values = f.Values
		}
		if err == nil && found.Adds() && !spec.Accelerator { // which says more of what is missing
			return env.Devices.NotBuilt(device, found.Program)
		}
		return nil
	}
	said := func(field string) bool { return slices.ContainsFunc(specFields[field], given) }
	if spec.Loop == nil {
		if f.waits(given) {
			spec.Loop = bench.DefaultLoop()
			spec.Loop.Mode = f.Mode
		}
		spec.Close(said, !row.Can(testbed.VirtualTime))
	} else if f.waits(given) {
		spec.Wait(f.Mode, said)
	}
	if err := refuseOptions(given, spec); err != nil {
		return err
	}
	if err := f.place(given, spec); err != nil {
		return err
	}
	if err := f.give(given, spec.Loop); err != nil {
		return err
	}
	return loopsOn(env, device, spec)
}

// waits says that workers were asked for that wait for each other.
func (f *loopFlags) waits(given func(string) bool) bool {
	return given(modeFlag) && f.Mode != netsim.Open
}

// choose refuses a mode in which workers of a system can't wait, or not on a device.
func (f *loopFlags) choose(given func(string) bool, env *cli.Env, device string, s *system.System, spec *bench.Spec) error {
	switch {
	case !given(modeFlag) || s.OnServers: // which says itself what it takes
		return nil
	case f.waits(given):
		_, err := env.Systems.Looped().Mode(s, f.Mode)
		return err
	case !s.Open():
		return cli.UsageError("--%s %s: workers of %s wait for each other, in mode %s; those of %s need not", modeFlag, netsim.Open, s.Name,
			strings.Join(s.ModeNames(), " or "), strings.Join(env.Systems.Open().Names(), ", "))
	case spec.Loop != nil:
		return cli.UsageError("--%s %s: the file has a loop, whose workers wait; leave it out", modeFlag, netsim.Open)
	case s.Adds() && !spec.Accelerator:
		return env.Devices.Check(device, testbed.AddsUpdates)
	}
	return nil
}

// waitsWhere says how workers wait that need not; empty of a system whose can't.
func waitsWhere(s *system.System) string {
	if s == nil || !s.Looped() {
		return ""
	}
	return "; those of " + s.Name + " do in mode " + strings.Join(s.ModeNames(), " or ") + " (--mode)"
}

// loopsOn refuses a device on which a specification's workers can't wait, and names those on which they can.
func loopsOn(env *cli.Env, device string, spec *bench.Spec) error {
	needs := testbed.ClosesLoop
	if spec.Loop.Racks > 1 {
		needs |= testbed.HangsRacks
	}
	var programs []*program.Description
	for _, name := range spec.Queues() {
		found, err := env.Systems.Find(name)
		if err != nil || !found.Looped() {
			continue // the specification says so better
		}
		if !found.Framed() {
			needs |= testbed.TakesLengths
		}
		if found.Program != nil {
			programs = append(programs, found.Program)
		}
	}
	if err := env.Devices.Check(device, needs); err != nil {
		return err
	}
	for _, p := range programs {
		if err := env.Devices.NotBuilt(device, p); err != nil {
			return err
		}
	}
	return nil
}

// waitingOptions are the options of a system that mean nothing to workers that do not wait: all but slots, which queues have as well, and H.
func waitingOptions() []string {
	return slices.DeleteFunc(bench.LoopOptions(), func(o string) bool { return o == system.OptionSlots || o == system.OptionH })
}

// refuseOptions refuses those that mean nothing to the systems that run.
func refuseOptions(given func(string) bool, spec *bench.Spec) error {
	for _, o := range bench.LoopOptions() {
		if !given(o) && !(o == system.OptionSlots && (given(slotRanges) || given("aggregators"))) {
			continue
		}
		if err := spec.RefuseOptions(o); err != nil {
			return err
		}
	}
	return nil
}

// specFields are the flags that give a field of a specification.
var specFields = map[string][]string{
	"workload.workers": {"workers"}, "workload.clusters": {"clusters"}, "workload.updates_per_worker": {"updates"}, "out_rates": {"out-rate"},
	"loop.compute": {"compute"}, "versus": {"versus"}, "slots": {"slots"}, "overhead": {"overhead"}, "runs": {"runs"},
}

// waitingOnly are the systems of loops alone.
func waitingOnly(set system.Set) (names []string) {
	for _, s := range set.Looped() {
		if !s.Open() {
			names = append(names, s.Name)
		}
	}
	return names
}

// place says who is of which job, and how long the switch's table is.
func (f *loopFlags) place(given func(string) bool, spec *bench.Spec) error {
	w := &spec.Workload
	if given("jobs") {
		if given("clusters") {
			return cli.UsageError("--jobs and --clusters mean the same; give one of them")
		}
		w.Clusters = f.jobs
	}
	switch {
	case given("fan") && given("workers") && w.Workers != f.fan*w.Clusters:
		return cli.UsageError("--workers %d in %d jobs are not --fan %d each; leave one of them out", w.Workers, w.Clusters, f.fan)
	case given("fan"), given("jobs") && !given("workers"):
		w.Workers = f.fan * w.Clusters
	}
	if given("aggregators") {
		if given("slots") {
			return cli.UsageError("--aggregators and --slots mean the same; give one of them")
		}
		if f.aggregators < 1 {
			return cli.UsageError("--aggregators %d: use 1 and more", f.aggregators)
		}
		spec.Slots = f.aggregators
	}
	return nil
}

// give puts what was given into a loop.
func (f *loopFlags) give(given func(string) bool, l *bench.Loop) error {
	if given("loss") && len(f.loss) != 1 {
		return cli.UsageError("--loss %s: give one share; --sweep loss=… varies it", &f.loss)
	}
	if given(slotRanges) {
		ranges, err := system.ParseRanges(f.ranges)
		if err != nil {
			return cli.UsageError("--%s: %v", slotRanges, err)
		}
		l.Ranges = ranges
	}
	if given("fraction") && f.Model == "" || given("values") && given("model") {
		return cli.UsageError("--values is a number of its own; --fraction is of --model")
	}
	for flag, take := range map[string]func(){
		"values": func() { l.Values, l.Model = f.Values, "" }, "compute": func() { l.Compute = f.Compute }, "spread": func() { l.Spread = f.Spread },
		"delay": func() { l.Delay = f.Delay }, "loss": func() { l.Loss = f.loss.First() }, "limit": func() { l.Limit = f.Limit },
		system.OptionPacket: func() { l.Packet = f.Packet }, system.OptionWindow: func() { l.Window = f.Window },
		system.OptionTimeout: func() { l.Timeout = f.Timeout }, system.OptionRecovery: func() { l.Recovery = f.Recovery },
		"racks": func() { l.Racks = f.Racks }, system.OptionProfile: func() { l.Profile = f.Profile }, system.OptionSharing: func() { l.Sharing = f.Sharing },
		system.OptionCongestion: func() { l.Congestion = f.Congestion }, system.OptionWrap: func() { l.Wrap = f.Wrap },
		system.OptionBound: func() { bound := f.bound; l.Bound = &bound },
	} {
		if given(flag) {
			take()
		}
	}
	if !given("model") {
		return nil
	}
	model, err := atp.FindModel(f.Model)
	if err != nil {
		return err
	}
	if !(f.fraction > 0 && f.fraction <= 1) {
		return cli.UsageError("--fraction is %g; it must be above 0, and 1 at most", f.fraction)
	}
	l.Model, l.Values = model.Name, max(1, int(float64(model.Values)*f.fraction))
	return nil
}
