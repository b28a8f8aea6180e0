package bench

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/experiments/paper/atp"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga/program"
)

// loopFlags are the flags for closed-loop workers.
type loopFlags struct {
	bench.Loop
	jobs, fan, aggregators int
	bound                  int
	loss                   olaf.Shares
	fraction               float64
	ranges                 string
}

// modeFlag is the name of the flag that selects how workers wait for answers.
const modeFlag = "mode"

// slotRanges is the name of the flag that sets the slots reserved for each job.
const slotRanges = "slot-ranges"

// loopOnly lists flags that apply only to closed-loop workers, openOnly those that apply only to other workers.
var (
	loopOnly = append([]string{"jobs", "fan", "aggregators", "model", "fraction", "compute", "spread", "delay", "loss",
		"racks", "limit", slotRanges}, waitingOptions()...)
	openOnly = []string{
		"rate", "line-rate", "burst", "size", "cluster-sigma", "active-clusters", "trace", "trace-averaging",
		"trace-spread", "trace-limit", "trace-frames", "first-frame-only", system.OptionH, "topology", "accelerator",
		"profile", "ports", "dequeue-cycles", "merge-cycles", "reward-filter", "reward-threshold", "time-scale",
		"tc", "tc-law", "tc-ack", "tc-count", "slope",
	}
)

func (f *loopFlags) add(cmd *cobra.Command, systems system.Set) {
	modes := systems.LoopedOnes().ModeNames()
	f.Loop = *bench.DefaultLoop()
	flags := cmd.Flags()
	flags.IntVar(&f.jobs, "jobs", 1, "concurrent jobs")
	flags.IntVar(&f.fan, "fan", bench.LoopWorkers, "workers per job")
	flags.IntVar(&f.aggregators, "aggregators", 0, "ATP's name for --slots")
	flags.IntVar(&f.Values, "values", f.Values, "32-bit values per gradient")
	flags.StringVar(&f.Model, "model", "", "use this model's gradient: "+strings.Join(atp.ModelNames(), "|"))
	flags.Float64Var(&f.fraction, "fraction", 0.01, "fraction of --model's gradient to sum")
	flags.Var(&f.Compute, "compute", "computing time per gradient")
	flags.Float64Var(&f.Spread, "spread", 0, "relative variation of computing times")
	flags.Var(&f.Delay, "delay", "delay of a link")
	flags.Var(&f.loss, "loss", "frame loss per link, such as 0.1%")
	flags.IntVar(&f.Racks, "racks", 1, "rack switches per job")
	flags.Var(&f.Limit, "limit", "device time after which a run counts as hung")
	flags.Var(&f.Packet, system.OptionPacket, "payload of a switchml packet: 256B|1024B")
	flags.IntVar(&f.Window, system.OptionWindow, 0, "packets in flight per worker")
	flags.Var(&f.Timeout, system.OptionTimeout, "retransmission timeout")
	flags.StringVar(&f.Recovery, system.OptionRecovery, "",
		"loss recovery: resend|none for atp, help|fbcast|none for iswitch sync")
	flags.StringVar(&f.Profile, system.OptionProfile, "",
		"program variant: p4ml|paper for atp, isw-1|isw-x for iswitch sync")
	flags.StringVar(&f.Sharing, system.OptionSharing, "", "how atp jobs share aggregators: dynamic|static")
	flags.StringVar(&f.Mode, modeFlag, "",
		"closed loop ("+strings.Join(modes, "|")+") or "+netsim.Open+" (workers send without waiting)")
	flags.IntVar(&f.bound, system.OptionBound, system.DefaultBound,
		"iswitch async: staleness S above which gradients are discarded")
	flags.StringVar(&f.ranges, slotRanges, "", "slots reserved for each job, such as 0-63,64-127")
	flags.BoolVar(&f.Congestion, system.OptionCongestion, false, "atp: adapt windows to congestion marks")
	flags.BoolVar(&f.Wrap, system.OptionWrap, false, "iswitch sync: let vectors longer than the table wrap around")
	cli.Complete(cmd, "model", atp.ModelNames)
	cli.Complete(cmd, modeFlag, func() []string { return append([]string{netsim.Open}, modes...) })
	cli.Complete(cmd, system.OptionPacket, func() []string { return []string{"256B", "1024B"} })
	cli.Complete(cmd, system.OptionSharing, func() []string { return []string{system.Dynamic, system.Static} })
	cli.Complete(cmd, system.OptionRecovery,
		func() []string { return []string{system.RecoverResend, system.RecoverNone} })
	cli.Complete(cmd, system.OptionProfile, func() []string { return []string{"p4ml", "paper", "isw-1", "isw-x"} })
}

// closeLoop turns a specification with closed-loop workers into a loop, and rejects incompatible flags.
func (f *loopFlags) closeLoop(cmd *cobra.Command, env *cli.Env, device string, spec *bench.Spec) error {
	given := cmd.Flags().Changed
	row, _, err := env.Devices.Lookup(device)
	if err != nil {
		return err
	}
	found, err := env.Systems.Find(spec.Queue)
	if err == nil {
		if err := f.checkMode(given, env, device, found, spec); err != nil {
			return err
		}
	}
	loops := spec.IsLoop() || err == nil && cli.WaitsThere(row, found) || f.asksToWait(given)
	for _, name := range map[bool][]string{true: openOnly, false: loopOnly}[loops] {
		switch {
		case !given(name), name == system.OptionH && f.asksToWait(given): // it has its own error if it does not apply
		case loops:
			return cli.UsageError("--%s does not apply to %s, whose workers wait for answers", name, spec.Queue)
		default:
			return cli.UsageError("--%s is for systems whose workers wait for answers, such as %s%s", name,
				strings.Join(loopSystems(env.Systems), ", "), remarkWaiting(found))
		}
	}
	if !loops {
		if given("values") {
			if f.Values < 1 {
				return cli.UsageError("--values %d: use 1 or more", f.Values)
			}
			spec.Workload.Values = f.Values
		}
		if err == nil && found.Adds() && !spec.Accelerator { // the accelerator has a more specific error
			return env.Devices.NotBuilt(device, found.Program)
		}
		return nil
	}
	said := func(field string) bool { return slices.ContainsFunc(specFields[field], given) }
	if spec.Loop == nil {
		if f.asksToWait(given) {
			spec.Loop = bench.DefaultLoop()
			spec.Loop.Mode = f.Mode
		}
		spec.MakeLoop(said, !row.Can(testbed.VirtualTime))
	} else if f.asksToWait(given) {
		spec.SetMode(f.Mode, said)
	}
	if err := refuseOptions(given, spec); err != nil {
		return err
	}
	if err := f.setSizes(given, spec); err != nil {
		return err
	}
	if err := f.setLoop(given, spec.Loop); err != nil {
		return err
	}
	return checkLoopDevice(env, device, spec)
}

// asksToWait reports whether the command line selects workers that wait for each other.
func (f *loopFlags) asksToWait(given func(string) bool) bool {
	return given(modeFlag) && f.Mode != netsim.Open
}

// checkMode rejects a mode that the system or the device does not support.
func (f *loopFlags) checkMode(given func(string) bool, env *cli.Env, device string, s *system.System,
	spec *bench.Spec) error {
	switch {
	case !given(modeFlag) || s.OnServers: // a system on servers has its own check
		return nil
	case f.asksToWait(given):
		_, err := env.Systems.LoopedOnes().Mode(s, f.Mode)
		return err
	case !s.Open():
		return cli.UsageError("--%s %s: workers of %s always wait for each other, in mode %s; those of %s need not",
			modeFlag, netsim.Open, s.Name,
			strings.Join(s.ModeNames(), " or "), strings.Join(env.Systems.Open().Names(), ", "))
	case spec.Loop != nil:
		return cli.UsageError("--%s %s: the file has a loop, whose workers wait; leave out the loop", modeFlag,
			netsim.Open)
	case s.Adds() && !spec.Accelerator:
		return env.Devices.Check(device, testbed.AddsUpdates)
	}
	return nil
}

// remarkWaiting returns a remark on how workers that need not wait in this system can be made to wait. It is empty if
// they cannot.
func remarkWaiting(s *system.System) string {
	if s == nil || !s.CanLoop() {
		return ""
	}
	return "; those of " + s.Name + " do in mode " + strings.Join(s.ModeNames(), " or ") + " (--mode)"
}

// checkLoopDevice rejects a device on which the workers cannot wait, and names devices on which they can.
func checkLoopDevice(env *cli.Env, device string, spec *bench.Spec) error {
	needs := testbed.ClosesLoop
	if spec.Loop.Racks > 1 {
		needs |= testbed.HangsRacks
	}
	var programs []*program.Description
	for _, name := range spec.Queues() {
		found, err := env.Systems.Find(name)
		if err != nil || !found.CanLoop() {
			continue // the check of the specification returns a better error
		}
		if !found.HasFrames() {
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

// waitingOptions returns the system options that apply only to workers that wait for answers. These are all options
// except slots, which also applies to queues, and H.
func waitingOptions() []string {
	return slices.DeleteFunc(bench.LoopOptions(),
		func(o string) bool { return o == system.OptionSlots || o == system.OptionH })
}

// refuseOptions rejects options that do not apply to the systems being run.
func refuseOptions(given func(string) bool, spec *bench.Spec) error {
	for _, o := range bench.LoopOptions() {
		if !given(o) && !(o == system.OptionSlots && (given(slotRanges) || given("aggregators"))) {
			continue
		}
		if err := spec.CheckOptions(o); err != nil {
			return err
		}
	}
	return nil
}

// specFields lists the flags that set a field of the specification.
var specFields = map[string][]string{
	"workload.workers": {"workers"}, "workload.clusters": {"clusters"}, "workload.updates_per_worker": {"updates"},
	"out_rates":    {"out-rate"},
	"loop.compute": {"compute"}, "versus": {"versus"}, "slots": {"slots"}, "overhead": {"overhead"}, "runs": {"runs"},
}

// loopSystems returns the systems whose workers always wait.
func loopSystems(set system.Set) []string {
	return set.LoopedOnes().Where(func(s *system.System) bool { return !s.Open() }).Names()
}

// setSizes sets the numbers of jobs, workers and slots.
func (f *loopFlags) setSizes(given func(string) bool, spec *bench.Spec) error {
	w := &spec.Workload
	if given("jobs") {
		if given("clusters") {
			return cli.UsageError("--jobs and --clusters set the same value; use one of them")
		}
		w.Clusters = f.jobs
	}
	switch {
	case given("fan") && given("workers") && w.Workers != f.fan*w.Clusters:
		return cli.UsageError("--workers %d in %d jobs contradicts --fan %d; leave one of them out", w.Workers,
			w.Clusters, f.fan)
	case given("fan"), given("jobs") && !given("workers"):
		w.Workers = f.fan * w.Clusters
	}
	if given("aggregators") {
		if given("slots") {
			return cli.UsageError("--aggregators and --slots set the same value; use one of them")
		}
		if f.aggregators < 1 {
			return cli.UsageError("--aggregators %d: use 1 or more", f.aggregators)
		}
		spec.Slots = f.aggregators
	}
	return nil
}

// setLoop sets the fields of l whose flags are given.
func (f *loopFlags) setLoop(given func(string) bool, l *bench.Loop) error {
	if given("loss") && len(f.loss) != 1 {
		return cli.UsageError("--loss %s: use a single share; --sweep loss=… varies it", &f.loss)
	}
	if given(slotRanges) {
		ranges, err := system.ParseRanges(f.ranges)
		if err != nil {
			return cli.UsageError("--%s: %v", slotRanges, err)
		}
		l.Ranges = ranges
	}
	if given("fraction") && f.Model == "" || given("values") && given("model") {
		return cli.UsageError("--values sets the length itself, and --fraction needs --model; do not combine them")
	}
	for flag, take := range map[string]func(){
		"values": func() { l.Values, l.Model = f.Values, "" }, "compute": func() { l.Compute = f.Compute }, "spread": func() { l.Spread = f.Spread },
		"delay": func() { l.Delay = f.Delay }, "loss": func() { l.Loss = f.loss.First() },
		"limit":             func() { l.Limit = f.Limit },
		system.OptionPacket: func() { l.Packet = f.Packet }, system.OptionWindow: func() { l.Window = f.Window },
		system.OptionTimeout:  func() { l.Timeout = f.Timeout },
		system.OptionRecovery: func() { l.Recovery = f.Recovery },
		"racks":               func() { l.Racks = f.Racks }, system.OptionProfile: func() { l.Profile = f.Profile },
		system.OptionSharing:    func() { l.Sharing = f.Sharing },
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
		return cli.UsageError("--fraction is %g; it must be above 0 and at most 1", f.fraction)
	}
	l.Model, l.Values = model.Name, max(1, int(float64(model.Values)*f.fraction))
	return nil
}
