package simulate

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/engine"
)

// waitFlags are the flags for closed-loop workers, either in a job or in clusters.
type waitFlags struct {
	set     system.Set // the known systems
	mode    string
	losses  olaf.Shares
	options system.Options
}

func (f *waitFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.mode, "mode", "", "closed-loop mode: sync|async; or "+netsim.Open+": workers send without waiting")
	flags.Var(&f.losses, "loss", "frame loss of every link, such as 0.01 or 1%; "+sharedPreset+": a list")
	flags.IntVar(&f.options.Slots, system.OptionSlots, 0,
		"slots (segments, aggregators) per switch; 0 for the system's default")
	flags.BoolVar(&f.options.Wrap, system.OptionWrap, false,
		"iswitch sync: let vectors longer than the table wrap around")
	cli.AddSystemOptions(cmd, &f.options)
	cli.Complete(cmd, "mode", func() []string { return []string{"sync", "async", netsim.Open} })
}

// singleLoss returns the loss rate. It returns an error if the flag contains a list.
func (f *waitFlags) singleLoss() (float64, error) {
	if len(f.losses) > 1 {
		return 0, cli.UsageError("--loss %s: a list belongs to --preset %s", &f.losses, sharedPreset)
	}
	return f.losses.First(), nil
}

// waitsNot lists the network flags that do not apply to workers that wait for answers.
var waitsNot = []string{"tc", "tc-count", "tc-law", "tc-ack", "arrivals", "rx-import"}

// chooseSystem sets the network's system according to the flags.
func (f *topologyFlags) chooseSystem(t *netsim.Topology) error {
	if f.queue == "" {
		return nil
	}
	s, err := f.waits.set.Find(f.queue)
	t.Program, t.H = "", 0
	switch {
	case err == nil && s.Adds() && f.waits.mode == netsim.Open:
		t.AddUp(s)
	case err == nil && s.Rises():
		if t.Waiting == nil || t.Waiting.System != s.Name {
			t.Waiting = &netsim.Waiting{System: s.Name}
		}
		t.Queue = s.Discipline
	case err == nil && len(s.Modes) > 0:
		return cli.UsageError("--system %s: its sums do not go to a server above the switches; use %s, whose sums "+
			"do, or %s, whose workers do not wait, or --preset %s",
			s.Name, strings.Join(f.waits.set.Rising().Names(), ", "), strings.Join(engine.DisciplineNames(), ", "),
			strings.Join(append(JobPresetNames(), sharedPreset), "|"))
	case slices.Contains(engine.DisciplineNames(), f.queue):
		t.Queue, t.Waiting = f.queue, nil
	default:
		return cli.UsageError("--system %q is not one of %s", f.queue, strings.Join(f.systemNames(), ", "))
	}
	for i := range t.Switches {
		t.Switches[i].Queue = ""
	}
	return nil
}

// appliesToOpen reports whether a flag also applies to workers that do not wait and whose switches sum.
func (f *topologyFlags) appliesToOpen(name string) bool {
	return name == system.OptionH || name == "mode" && f.waits.mode == netsim.Open
}

// setWaiting sets how the network's workers wait for answers.
func (f *topologyFlags) setWaiting(given func(string) bool, t *netsim.Topology) error {
	if err := f.refuseWaits(given, t); err != nil {
		return err
	}
	if given("loss") {
		loss, err := f.waits.singleLoss()
		if err != nil {
			return err
		}
		t.SetLoss(loss)
	}
	if t.Program != "" && given(system.OptionH) {
		t.H = f.waits.options.H
	}
	w := t.Waiting
	if w == nil {
		return nil
	}
	o := &f.waits.options
	for name, take := range map[string]func(){
		"mode":         func() { w.Mode = f.waits.mode },
		system.OptionH: func() { w.H = o.H }, system.OptionBound: func() { bound := o.Bound; w.Bound = &bound },
		system.OptionSlots: func() { w.Slots = o.Slots }, system.OptionWrap: func() { w.Wrap = o.Wrap },
		system.OptionProfile:  func() { w.Profile = o.Profile },
		system.OptionRecovery: func() { w.Recovery = o.Recovery },
		system.OptionTimeout:  func() { w.Timeout = o.Timeout }, system.OptionPacket: func() { w.Packet = o.Packet },
		system.OptionWindow:     func() { w.Window = o.Window },
		system.OptionCongestion: func() { w.Congestion = o.Congestion },
	} {
		if given(name) {
			take()
		}
	}
	return nil
}

// refuseWaits rejects flags that do not apply to the network's workers.
func (f *topologyFlags) refuseWaits(given func(string) bool, t *netsim.Topology) error {
	w := t.Waiting
	names, say := cli.WaitNames, func(name string) error {
		return cli.UsageError("--%s is for workers that wait for answers; use --system %s, or --preset %s", name,
			strings.Join(f.waits.set.Rising().Names(), "|"), strings.Join(append(JobPresetNames(), sharedPreset), "|"))
	}
	if w != nil {
		names, say = waitsNot, func(name string) error {
			return cli.UsageError("--%s does not apply to %s on this network, whose workers wait for answers", name,
				w.System)
		}
	}
	if t.Program != "" {
		names, say = slices.DeleteFunc(slices.Clone(names), f.appliesToOpen), func(name string) error {
			return cli.UsageError("--%s does not apply to %s in mode %s, whose workers do not wait", name, t.Program,
				netsim.Open)
		}
	}
	if i := slices.IndexFunc(names, given); i >= 0 {
		return say(names[i])
	}
	return nil
}
