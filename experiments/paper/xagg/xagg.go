// Package xagg reproduces parts of "XAgg: Accelerating Heterogeneous Distributed Training Through XDP-Based Gradient
// Aggregation" (IEEE/ACM ToN 2023). It simulates the paper's example packet by packet, derives the order of the
// testbed's systems from the wires alone, and checks the paper's arithmetic.
package xagg

import (
	"context"
	"fmt"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/bench/job"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/pktgen/endpoint"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/result"
)

// Experiments returns the paper's experiments in the order of the paper. set contains the available systems.
func Experiments(set system.Set) experiments.Set {
	one := func(name, artefact, about, needs string, run func(context.Context, system.Set,
		experiments.Options) (result.Report, error)) experiments.Experiment {
		return experiments.Experiment{
			Name: "xagg/" + name, Artefact: artefact, About: about, Needs: needs,
			Run:    experiments.On(set, run),
			Inputs: experiments.InputsByTenth(slowRate, fastRate, lateness, volume),
		}
	}
	load := one("load", "§V", "children of a loaded server that move to its parent after an iteration", "5 s", runLoad)
	load.Long = true // checks no claim, so 'reproduce' runs it only if it is named
	return experiments.Set{
		one("fig1", "Fig. 1", "a slow link and a straggler: parameter server, programmable switch, servers that "+
			"store the model", "25 s", runFig1),
		one("fig13", "Fig. 13", "which system is ahead on the heterogeneous testbed, limited by links only", "5 s", runFig13),
		one("text", "§VI", "values computed from the paper's own numbers", "0 s", runText),
		load,
	}
}

// column is a system together with the name that the paper uses for it.
type column struct{ paper, system string }

// variant changes how a system is run. The zero value changes nothing.
type variant struct {
	name      string
	slots     int           // slots in a switch's pool; defaults to the system's
	undivided bool          // workers don't ask for rates
	timeout   olaf.Duration // until a loss is suspected; defaults to the system's
}

// fig1Variants lists the unchanged systems, and systems reduced to the paper's example. The reduced systems have a pool
// with the fewest slots that keep W2's half link busy, and no messages about rates or losses. Without messages about
// rates, a queue of half a second would cause messages about losses.
var fig1Variants = []variant{{name: "as it comes"}, {name: "two slots, no rates, no timeouts", slots: 2,
	undivided: true, timeout: 10 * olaf.Second}}

var (
	fig1Columns   = []column{{"ps", "ps"}, {"switch", "switchml"}, {"xagg", "xagg"}}
	fig1Published = []float64{4, 4, 3} // s, one per column
)

// run runs one job of a system. It uses no random numbers.
func run(ctx context.Context, set system.Set, name string, v variant, build func(*system.System,
	*system.Parts) (closedloop.Network, closedloop.Job)) (*job.Outcome, error) {
	s, mode, err := set.FindMode(name, "sync")
	if err != nil {
		return nil, err
	}
	if v.undivided {
		mode = withoutRates(mode)
	}
	spec := &job.Spec{System: s, Mode: mode}
	if slices.Contains(mode.Takes, system.OptionPacket) {
		spec.Options.Packet = PacketBytes // as many values per frame as XAgg's
	}
	if !s.OnServers && slices.Contains(mode.Takes, system.OptionSlots) {
		spec.Options.Slots = v.slots
	}
	if slices.Contains(mode.Takes, system.OptionTimeout) {
		spec.Options.Timeout = v.timeout
	}
	parts, err := mode.Parts(&spec.Options)
	if err != nil {
		return nil, err
	}
	spec.Network, spec.Job = build(s, &parts)
	o, err := job.Run(ctx, spec, []uint64{1}, nil)
	if err != nil {
		return nil, err
	}
	return o, o.Err()
}

// withoutRates returns a copy of a mode in which workers have no line rate and therefore do not request a rate.
func withoutRates(m *system.Mode) *system.Mode {
	bare := *m
	bare.Parts = func(o *system.Options) (system.Parts, error) {
		parts, err := m.Parts(o)
		worker := parts.Worker
		parts.Worker = func(cfg endpoint.Config, h endpoint.Host) (endpoint.Endpoint, error) {
			cfg.Line = 0
			return worker(cfg, h)
		}
		return parts, err
	}
	return &bare
}

// The inputs of every experiment.
const (
	slowRate = "rate of slow links"
	fastRate = "rate of other links"
	lateness = "lateness of the straggler"
	volume   = "values of a vector"
)

// change applies the input that the options change to a job. The links to workers that have a separate link rate are
// the slow links.
func change(o *experiments.Options, net *closedloop.Network, j *closedloop.Job) {
	fast := net.Link.Rate
	scaled := func(l *closedloop.Link) {
		input := fastRate
		if l.Rate < fast {
			input = slowRate
		}
		l.Rate = experiments.ScaleInput(o, input, l.Rate)
	}
	for i := range net.Access {
		scaled(&net.Access[i])
	}
	if net.Tree != nil {
		for i := range net.Tree.Servers {
			scaled(&net.Tree.Servers[i].Link)
		}
	}
	scaled(&net.Link)
	for i := range j.Late {
		j.Late[i] = experiments.ScaleInput(o, lateness, j.Late[i])
	}
	j.Layout.Values = experiments.ScaleInput(o, volume, j.Layout.Values)
}

// fig1Time contains the time at which the root has the last sum in the example, and the transmission time of a packet.
type fig1Time struct{ summed, packet float64 } // ns; packet is the time of a full packet on W2's half link

// deviation returns the difference between the time and a published time in seconds, as a number of packets. It is
// positive if the time is later than the published one.
func (f *fig1Time) deviation(seconds float64) float64 {
	return (f.summed - float64(seconds*1e9)) / f.packet
}

// fig1Sum runs the example for one system, with all times divided by scale, and returns the time of the last sum.
func fig1Sum(ctx context.Context, set system.Set, o *experiments.Options, name string, v variant, scale int) (fig1Time, error) {
	var f fig1Time
	out, err := run(ctx, set, name, v, func(s *system.System, p *system.Parts) (closedloop.Network, closedloop.Job) {
		net, j := Fig1(s, p, scale)
		change(o, &net, &j)
		f.packet = float64(net.Access[1].Rate.TimeToSend(p.FrameSize(fullPacket(p), false)+overhead)) / float64(olaf.Nanosecond)
		return net, j
	})
	if err != nil {
		return f, err
	}
	f.summed = float64(out.Number("summed_ns").Mean)
	return f, nil
}

func runFig1(ctx context.Context, set system.Set, o experiments.Options) (result.Report, error) {
	scale := 1
	if o.Quick {
		scale = fig1Scales
	}
	t := experiments.NewResult("xagg/fig1", "Fig. 1", &o, map[string]int{"scale": scale})
	times := result.Block{Name: "from the first gradient to the last sum", Unit: "s"}
	off := result.Block{Name: "delay compared with the figure, on W2's half link", Unit: "packets"}
	ours := paper.Ours{}
	for i, v := range fig1Variants {
		row, away := result.Line{Name: v.name}, result.Line{Name: v.name}
		for k, c := range fig1Columns {
			f, err := fig1Sum(ctx, set, &o, c.system, v, scale)
			if err != nil {
				return nil, err
			}
			seconds := results.Exactly(f.summed / 1e9 * float64(scale))
			row.Cells = append(row.Cells, seconds)
			away.Cells = append(away.Cells, results.Exactly(f.deviation(fig1Published[k]/float64(scale))))
			if i == 0 {
				ours["xagg/fig1.aggregation_time."+c.paper] = paper.Of(seconds)
				times.Columns, off.Columns = append(times.Columns, c.paper), append(off.Columns, c.paper)
			}
			o.ReportProgress(i*len(fig1Columns)+k+1, len(fig1Variants)*len(fig1Columns))
		}
		times.Rows, off.Rows = append(times.Rows, row), append(off.Rows, away)
	}
	t.Blocks = append(t.Blocks, times, off)
	if o.Quick {
		ours = ours.MarkShortened(fmt.Sprintf("a vector of 1/%d", scale))
	}
	t.Compare(ours)
	t.Say("a vector with all its overhead takes one second on a 10 Gbps link; with XAgg's overhead its values " +
		"are 1.151 GB of the paper's 1.25 GB")
	t.Say("XAgg is late by one packet, which its server receives before it forwards the sum, and by two messages " +
		"on the link to the server; if it divides rates, it is later by six messages and by one packet's time in " +
		"which that link is idle (docs/papers/xagg.md)")
	t.Say("the programmable switch is early: for each slot beyond the first, what its pool accepts before W3 " +
		"begins saves a packet on W2's link, and at least two slots are needed to keep that link busy")
	t.Say("results go down while sums go up, and nothing waits for them, as in the figure; W2's link is the last " +
		"to carry them")
	return t, nil
}

func runFig13(ctx context.Context, set system.Set, o experiments.Options) (result.Report, error) {
	models := Models()[1:2]
	t := experiments.NewResult("xagg/fig13", "Fig. 13", &o, models)
	columns := []column{{"xagg", "xagg"}, {"switchml", "switchml"}, {"nccl", "ring"}, {"byteps", "ps"}}
	b := result.Block{Name: "one vector, from the last gradient until the last worker has the sum, limited by " +
		"links only", Unit: "ms"}
	ours := paper.Ours{}
	for _, m := range models {
		line := result.Line{Name: m.Name}
		times := map[string]results.Statistic{}
		for i, c := range columns {
			out, err := run(ctx, set, c.system, variant{}, func(s *system.System, _ *system.Parts) (closedloop.Network, closedloop.Job) {
				net, j := BuildTestbed(s, m)
				change(&o, &net, &j)
				return net, j
			})
			if err != nil {
				return nil, err
			}
			times[c.paper] = results.Exactly(float64(out.Number("aggregation_ns").Mean) / 1e6)
			line.Cells = append(line.Cells, times[c.paper])
			o.ReportProgress(i+1, len(columns))
		}
		for _, c := range columns[1:] {
			ratio := results.Exactly(float64(times["xagg"].Mean / times[c.paper].Mean))
			ours["xagg/fig13."+m.Name+"_over."+c.paper] = paper.Of(ratio)
		}
		b.Rows = append(b.Rows, line)
	}
	for _, c := range columns {
		b.Columns = append(b.Columns, c.paper)
	}
	t.Blocks = append(t.Blocks, b)
	t.Compare(ours)
	t.Say("the paper's times are per epoch, and it does not state how many vectors an epoch has or how long " +
		"workers compute and wait, so only the order is compared")
	t.Say("assumed: all gradients are ready at once; hosts, servers and their cores take no time; NCCL is a ring " +
		"of 7 workers, BytePS is one parameter server")
	t.Say("the paper's SwitchML uses raw sockets and reaches 11.6 Gbps; here it fills the 40 Gbps of W1 to W3, " +
		"which share S1's link in XAgg")
	return t, nil
}

// runText compares printed numbers with numbers that are derived from other printed numbers.
func runText(_ context.Context, _ system.Set, o experiments.Options) (result.Report, error) {
	t := experiments.NewResult("xagg/text", "§VI", &o, nil)
	t.Compare(paper.Ours{})
	t.Say("the speed-up of VGG16's training is printed as 1 + the share of time that is saved")
	t.Say("10⁸ as the scale of gradients in int32 leaves ±21.47 for a sum: beyond that it wraps without notice")
	t.Say("32 values in a frame of 128 B take 239 ns, 320 take 901 ns, but 256 take 628 ns: the last 64 values " +
		"take as long as 157 did before, so the optimum at 256 depends on one step")
	return t, nil
}
