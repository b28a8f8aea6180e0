package closedloop

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/atp"
	"github.com/olafctl/olaf/fpga/program/pass"
	"github.com/olafctl/olaf/pktgen/endpoint"
	"github.com/olafctl/olaf/results/metric"
)

// TestTimesByHand checks, to the picosecond, that a job takes the sum of the times of its hosts, wires and switches:
// for one worker that computes, pays for what it sends, and applies what comes back from the switch, or from a server
// with costs of its own.
func TestTimesByHand(t *testing.T) {
	const (
		ns, us  = olaf.Nanosecond, olaf.Microsecond
		compute = 100 * us
		apply   = 7 * us
		delay   = 500 * ns
		size    = 50 + 64*4 // for a frame of 64 lanes, and
		bits    = 8 * (size + 24)
		wire    = bits*100*olaf.Picosecond + delay // from the first bit out to the last bit in, at 10 Gbps
	)
	server := psParts(true)
	server.Header = 50
	counts := pass.Describe()
	perByte := func(d olaf.Duration) olaf.Duration { return d << 20 }
	for name, c := range map[string]struct {
		parts   system.Parts
		packets int
		change  func(*Network, *Job)
		want    olaf.Duration
	}{
		"a switch": {iswitchParts(endpoint.ISwitch{}, 8), 1, func(*Network, *Job) {}, compute + wire + wire + apply},
		"an accelerator": {iswitchParts(endpoint.ISwitch{}, 8), 1, func(n *Network, _ *Job) {
			n.Accelerator = Accelerator{BusBytes: 32, Beat: 5 * ns, Pipeline: 16}
		}, compute + wire + (10+16)*5*ns + wire + apply}, // 306 B are 10 beats
		"two frames, one behind the other": {iswitchParts(endpoint.ISwitch{}, 8), 2, func(n *Network, _ *Job) {
			n.Accelerator = Accelerator{BusBytes: 1, Beat: 5 * ns, Pipeline: 16}
		}, compute + wire + (2*size+16)*5*ns + wire + apply},
		"an edge later": {iswitchParts(endpoint.ISwitch{}, 8), 1, func(n *Network, _ *Job) {
			n.Cycle = 100 * us
		}, 200*us + wire + apply},
		"a picosecond behind an edge": {iswitchParts(endpoint.ISwitch{}, 8), 1, func(n *Network, _ *Job) {
			n.Cycle = compute + wire - 1
		}, 2*(compute+wire-1) + wire + apply},
		"at an edge": {iswitchParts(endpoint.ISwitch{}, 8), 1, func(n *Network, _ *Job) {
			n.Cycle = compute + wire
		}, compute + wire + wire + apply},
		"a slow card": {iswitchParts(endpoint.ISwitch{}, 8), 1, func(n *Network, _ *Job) {
			n.Link.Frame = 3 * us
		}, compute + 2*(3*us+delay) + apply},
		"a late worker": {iswitchParts(endpoint.ISwitch{}, 8), 1, func(_ *Network, j *Job) {
			j.Late = []olaf.Duration{5 * us}
		}, compute + 5*us + wire + wire + apply},
		"somebody else's computing": {iswitchParts(endpoint.ISwitch{}, 8), 1, func(_ *Network, j *Job) {
			j.Late, j.Begin = []olaf.Duration{5 * us}, func(int, uint32) olaf.Duration { return 3 * us }
		}, 3*us + wire + wire + apply},
		"computing that takes less than nothing": {iswitchParts(endpoint.ISwitch{}, 8), 1, func(_ *Network, j *Job) {
			j.Begin = func(int, uint32) olaf.Duration { return -3 * us }
		}, wire + wire + apply},
		"a link of its own": {iswitchParts(endpoint.ISwitch{}, 8), 1, func(n *Network, _ *Job) {
			n.Access = []Link{n.Link}
			n.Access[0].Rate, n.Access[0].Overhead = 5*olaf.Gbps, 0
		}, compute + 2*(8*size*200*olaf.Picosecond+delay) + apply},
		"a trunk": {iswitchParts(endpoint.ISwitch{}, 8), 1, func(n *Network, j *Job) { // for the only worker on its rack; the other one's gradient takes no time
			n.Workers, n.PerRack, n.Trunk = 2, 1, Link{Rate: 5 * olaf.Gbps}
		}, compute + 2*wire + 2*8*size*200*olaf.Picosecond + apply},
		"a server": {server, 1, func(_ *Network, j *Job) { j.ServerApply = 11 * us }, compute + 2*wire + 11*us + 2*wire + apply},
		"a server where the root of a tree is": {server, 1, func(n *Network, _ *Job) {
			at := n.Link
			at.Rate /= 2
			n.Tree = &Tree{Servers: []TreeServer{{Link: at}}, Workers: []int{0}}
		}, compute + 2*(wire+bits*200*olaf.Picosecond+delay) + apply},
		"a server, through the switch": {server, 1, func(n *Network, _ *Job) { n.Through = true },
			compute + wire + delay + wire + delay + apply},
		"a switch that counts": {system.Parts{Worker: server.Worker, Server: server.Server, Header: 50, Program: &counts, Passes: true},
			1, func(n *Network, _ *Job) {
				n.Cycle = 100 * us
			}, 300*us + wire + apply}, // one edge in each direction
		"hosts that pay": {server, 1, func(n *Network, j *Job) {
			n.Worker, n.Server = Costs{2 * us, perByte(3)}, Costs{13 * us, perByte(5)}
			j.ServerApply = 11 * us
		}, compute + 2*us + 256*3 + 2*wire + 2*(13*us+256*5) + 11*us + 2*wire + apply},
		"a message of two packets": {server, 2, func(n *Network, _ *Job) {
			n.Worker, n.Server = Costs{2 * us, perByte(10 * ns)}, Costs{13 * us, perByte(20 * ns)}
		}, compute + 2*us + 256*10*ns + 2*wire + 2*(13*us+2*256*20*ns) + 2*wire + apply},
		"two messages of a packet": {server, 2, func(n *Network, j *Job) {
			n.Worker, n.Server = Costs{2 * us, perByte(10 * ns)}, Costs{13 * us, perByte(20 * ns)}
			j.Messages = 2
		}, compute + 2*us + 256*10*ns + 2*wire + 4*(13*us+256*20*ns) + 2*wire + apply},
	} {
		n := Network{Workers: 1, Link: Link{Rate: 10 * olaf.Gbps, Delay: delay, Overhead: 24}}
		j := Job{Layout: endpoint.Layout{Values: 64 * c.packets, PerPacket: 64}, Updates: 1, Compute: compute, Apply: apply}
		if c.packets == 2 {
			c.parts.Build.Slots = 8
		}
		c.change(&n, &j)
		r := run(t, n, j, c.parts, true, 1)
		if got := olaf.Duration(math.Round(float64(r.Duration) * float64(ns))); r.Hung || got != c.want {
			t.Errorf("%s: it took %d ps, %d more than %d; hung %t", name, got, got-c.want, c.want, r.Hung)
		}
	}
}

// TestServerDoesOneThingAtATime checks that a server's software receives packets, applies and answers one after the
// other: an update that is applied while the next gradient is received waits for it. With two simultaneous gradients
// the software is never idle in between, so that the last answer leaves when all of its work is done.
func TestServerDoesOneThingAtATime(t *testing.T) {
	const us = olaf.Microsecond
	const wire = 8*(50+64*4+24)*100*olaf.Picosecond + 500*olaf.Nanosecond
	server := psParts(false)
	server.Header = 50
	n := Network{Workers: 2, Link: Link{Rate: 10 * olaf.Gbps, Delay: 500 * olaf.Nanosecond, Overhead: 24},
		Server: Costs{PerMessage: 13 * us}}
	j := Job{Layout: endpoint.Layout{Values: 64, PerPacket: 64}, Updates: 2, Compute: 100 * us, ServerApply: 11 * us}
	answered := map[int]olaf.Time{} // by worker, first answer
	j.Applied = func(at olaf.Time, host int, _ *endpoint.Aggregate) {
		if answered[host] == 0 {
			answered[host] = at
		}
	}
	run(t, n, j, server, false, 1)
	want := olaf.Time(100*us + 2*wire + 2*(13+11+13)*us + 2*wire)
	if got := max(answered[0], answered[1]); got != want {
		t.Errorf("taking in, applying and answering two gradients keep the software busy for 2 × (13 + 11 + 13) µs: want the last answer at %v, got %v", want, got)
	}
}

// TestCountsByHand checks the counts for a sum of two workers, one of them late: the slot is held for the delay, and
// each wire carries one frame.
func TestCountsByHand(t *testing.T) {
	const late = 30 * olaf.Microsecond
	n := Network{Workers: 2, Link: Link{Rate: 10 * olaf.Gbps, Delay: olaf.Microsecond, Overhead: 24}}
	j := Job{Layout: endpoint.Layout{Values: 64, PerPacket: 64}, Updates: 1, Compute: 100 * olaf.Microsecond,
		Late: []olaf.Duration{0, late}}
	r := run(t, n, j, iswitchParts(endpoint.ISwitch{}, 8), true, 1)
	const took = 130_000 + 2*264 + 2000 // ns
	near := func(what string, got metric.Float, want float64) {
		t.Helper()
		if !(math.Abs(float64(got)-want) <= 1e-14*want) {
			t.Errorf("%s is %.17g, want %.17g", what, float64(got), want)
		}
	}
	near("the duration", r.Duration, took)
	near("the sum at the root", r.Summed, 30_000+1264)
	near("aggregation", r.Aggregation, 2*1264)
	near("completion", r.Completion, took)
	near("goodput", r.Goodput, 64*32/(took*1e-9))
	near("held", r.OccupiedSlots, 30_000./took)
	near("the peak", r.OccupiedSlotsPeak, 1)
	near("memory held", r.OccupiedBytes, 30_000./took*float64(r.Memory)/8)
	near("the busiest wire", r.Busiest, 264./took)
	if r.Frames != 4 || r.Arrived != 4 || r.Switched != 2 || r.Lost+r.Marked+r.Underway != 0 || r.Bytes != 4*306 || r.Slots != 8 ||
		r.HeldLast != 0 || r.Memory == 0 || r.Updates != 1 {
		t.Errorf("%+v", r)
	}
	if r.Served.Known() || r.Iteration.Known() || r.Below.Of("packets_in") != 0 || r.Ports != nil {
		t.Errorf("served %g, iteration %g, %d packets below the root, ports %v", float64(r.Served), float64(r.Iteration),
			r.Below.Of("packets_in"), r.Ports)
	}
	passes := pass.Describe()
	forwards := psParts(true)
	forwards.Program, forwards.Passes = &passes, true
	if r := run(t, n, j, forwards, true, 1); r.OccupiedBytes.Known() || r.OccupiedSlots.Known() || r.OccupiedSlotsPeak.Known() || r.Slots != 0 ||
		r.Switched != 4 || r.Program.Of("forwarded") != 4 {
		t.Errorf("a switch that counts: held %g B, %+v", float64(r.OccupiedBytes), r)
	}
	four := n
	four.Workers, four.PerRack = 4, 2
	j.Late = []olaf.Duration{0, late, 0, late}
	r = run(t, four, j, iswitchParts(endpoint.ISwitch{}, 8), true, 1)
	near("held in racks", r.OccupiedSlots, 2*30_000/float64(r.Duration))
	near("the peaks of racks", r.OccupiedSlotsPeak, 3)
	j.Limit = olaf.Millisecond
	j.Late[1] = 2 * j.Limit
	if r = run(t, four, j, iswitchParts(endpoint.ISwitch{}, 8), true, 1); !r.Hung || r.HeldLast != 2 {
		t.Errorf("one that never sends: %d slots are held, %+v", r.HeldLast, r)
	}
	j.Limit, j.Late = 0, []olaf.Duration{0, late}
	n.PerRack = 1
	if r = run(t, n, j, iswitchParts(endpoint.ISwitch{}, 8), true, 1); r.Frames != 8 || r.Switched != 6 || r.Slots != 24 ||
		r.OccupiedSlotsPeak != 1 {
		t.Errorf("in racks: %+v", r)
	}
}

// diary records the actions of a job's hosts.
type diary struct {
	n       *Network
	j       *Job
	parts   *system.Parts
	ready   map[int][]olaf.Time // by host and vector
	applied map[int][]told      // by host
	whole   olaf.Time           // the latest sum that left the root
	arrived map[int]int         // frames by node
}

// told is a sum applied by a host, with its details.
type told struct {
	at    olaf.Time // when it began
	whole olaf.Time // the latest sum to leave the root before that
	a     endpoint.Aggregate
}

func (d *diary) OnCompute(olaf.Time, int)                     {}
func (d *diary) OnSend(olaf.Time, int)                        {}
func (d *diary) OnSumPacket(now olaf.Time, _ *program.Packet) { d.whole = now }
func (d *diary) OnDrop(olaf.Time, *program.Packet)            {}
func (d *diary) OnLoss(now olaf.Time, lost *program.Packet)   {}

// runWithDiary runs a job with a diary.
func runWithDiary(t *testing.T, n Network, j Job, parts system.Parts, sync bool) (*diary, *Result) {
	d := &diary{n: &n, j: &j, parts: &parts, ready: map[int][]olaf.Time{}, applied: map[int][]told{}, arrived: map[int]int{}}
	n.Jobs = max(n.Jobs, 1)
	j.Observer = d
	j.Values = func(now olaf.Time, host int, vector uint32) []uint32 {
		if int(vector) != len(d.ready[host]) {
			t.Fatalf("host %d has computed vector %d after %d", host, vector, len(d.ready[host]))
		}
		d.ready[host] = append(d.ready[host], now)
		return nil
	}
	j.Applied = func(now olaf.Time, host int, a *endpoint.Aggregate) {
		d.applied[host] = append(d.applied[host], told{now, d.whole, *a})
	}
	j.Tap = func(f *Frame) { d.arrived[f.To]++ }
	return d, run(t, n, j, parts, sync, 5)
}

// hosts returns the hosts that a mean covers: workers or servers.
func (d *diary) hosts(servers bool) (all []int) {
	workers := d.n.Jobs * d.n.Workers
	if !servers {
		for h := range workers {
			all = append(all, h)
		}
	} else if d.parts.Server != nil {
		for h := range d.n.Jobs {
			all = append(all, workers+h)
		}
	}
	return all
}

// ends returns when a host finished with each sum.
func (d *diary) ends(host int) (at []olaf.Time) {
	takes := d.j.Apply
	if host >= d.n.Jobs*d.n.Workers {
		takes = d.j.ServerApply
	}
	for _, a := range d.applied[host] {
		at = append(at, a.at.Add(takes))
	}
	return at
}

func average(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values)) // NaN for an empty list
}

// age returns the mean age at a host, from its first sum to its last, by the stamps of the contributions.
func (d *diary) age(host int, stamp func(*program.Trace) float64) float64 {
	area, newest := 0.0, 0.0
	ends := d.ends(host)
	for i, a := range d.applied[host] {
		newest = max(newest, stamp(&a.a.Trace))
		if i+1 < len(ends) {
			from, to := float64(ends[i])/1000-newest, float64(ends[i+1])/1000-newest
			area += (to*to - from*from) / 2
		}
	}
	return area / (float64(ends[len(ends)-1].Sub(ends[0])) / 1000)
}

// numbers computes the numbers of a Result from the diary alone.
func (d *diary) numbers(sync bool) map[string]float64 {
	workers, atServers := d.hosts(false), d.parts.Server != nil && d.parts.Window == 0
	out := map[string]float64{}
	var iterations, goodput, staleness, vectors, contributions []float64
	ages := map[string][]float64{}
	out["updates"] = math.Inf(1)
	for _, h := range d.hosts(atServers) {
		ends := d.ends(h)
		out["updates"] = min(out["updates"], float64(len(ends)))
		if n := len(ends); n > 1 {
			iterations = append(iterations, float64(ends[n-1].Sub(ends[0]))/float64(n-1)/1000)
		}
		for _, a := range d.applied[h] {
			late := float64(a.a.Trace.Vectors)*float64(a.a.Number) - float64(a.a.Trace.ReadSum)
			staleness, vectors = append(staleness, late), append(vectors, late*float64(a.a.Trace.Vectors))
			contributions = append(contributions, float64(a.a.Trace.Vectors))
		}
	}
	for _, h := range workers {
		ends := d.ends(h)
		goodput = append(goodput, float64(len(ends)*d.j.Layout.Values*32)/(float64(ends[len(ends)-1])*1e-12))
		for name, stamp := range map[string]func(*program.Trace) float64{
			"aom_newest_ns": func(t *program.Trace) float64 { return float64(t.NewestNS) },
			"aom_oldest_ns": func(t *program.Trace) float64 { return float64(t.OldestNS) },
			"aom_mean_ns":   func(t *program.Trace) float64 { return float64(t.SumNS) / float64(t.Vectors) },
		} {
			ages[name] = append(ages[name], d.age(h, stamp))
		}
	}
	out["iteration_ns"], out["goodput_bps"] = average(iterations), average(goodput)
	for name, of := range ages {
		out[name] = average(of)
	}
	out["staleness_updates"], out["staleness_vectors"] = average(staleness)/average(contributions),
		average(vectors)/average(contributions)
	var aggregation, summed []float64
	for round := range int(d.j.Updates) {
		for job := range d.n.Jobs {
			if !sync {
				continue
			}
			var begun, ready, whole, left olaf.Time = math.MaxInt64, 0, 0, math.MaxInt64
			for w := range d.n.Workers {
				h := job*d.n.Workers + w
				begun, ready = min(begun, d.ready[h][round]), max(ready, d.ready[h][round])
				whole, left = max(whole, d.applied[h][round].at), min(left, d.applied[h][round].whole)
			}
			aggregation = append(aggregation, float64(whole.Sub(ready))/1000)
			if d.parts.Server != nil {
				left = 0 // a server that only adds does not report the end of a round
				if atServers {
					left = d.applied[d.n.Jobs*d.n.Workers+job][round].at
				}
			}
			if d.n.Jobs == 1 && left > 0 {
				summed = append(summed, float64(left.Sub(begun))/1000)
			}
		}
	}
	out["aggregation_ns"], out["summed_ns"] = average(aggregation), average(summed)
	var completion []float64
	for job := range d.n.Jobs {
		last := olaf.Time(0)
		for w := range d.n.Workers {
			ends := d.ends(job*d.n.Workers + w)
			last = max(last, ends[len(ends)-1])
		}
		completion = append(completion, float64(last)/1000)
	}
	out["jct_ns"] = average(completion)
	served := 0
	for _, h := range d.hosts(true) {
		served += d.arrived[h]
	}
	if out["served"] = float64(served) / float64(d.n.Jobs*d.j.Packets()) / float64(d.j.Updates); d.parts.Server == nil {
		out["served"] = math.NaN()
	}
	return out
}

// TestMeanStampIsNotTruncated checks that the mean of stamps in whole nanoseconds keeps its fraction, to the
// picosecond.
func TestMeanStampIsNotTruncated(t *testing.T) {
	const week = 7 * 24 * 3600 * uint64(1e9)
	for _, c := range []struct {
		sum  uint64
		n    uint32
		want olaf.Time
	}{{0, 1, 0}, {7, 1, 7000}, {10, 4, 2500}, {10, 3, 3333}, {11, 3, 3667}, {3*week + 1, 3, olaf.Time(week)*1000 + 333}} {
		if got := meanStamp(c.sum, c.n); got != c.want {
			t.Errorf("%d stamps that sum to %d ns have a mean of %d ps, want %d ps", c.n, c.sum, int64(got), int64(c.want))
		}
	}
}

// TestMeasurementsMatchDiary compares all measurements of hosts with those from a diary, for updates at workers and
// servers, in one job or several.
func TestMeasurementsMatchDiary(t *testing.T) {
	free := func() system.Parts {
		parts := psParts(false)
		parts.Header = 50
		return parts
	}
	for name, c := range map[string]struct {
		parts         system.Parts
		jobs, perRack int
		sync          bool
	}{
		"a server": {psParts(true), 1, 0, true}, "a server of each job": {psParts(true), 3, 2, true},
		"a server that does not wait":   {free(), 1, 0, false},
		"a switch":                      {iswitchParts(endpoint.ISwitch{}, 100), 1, 0, true},
		"racks":                         {iswitchParts(endpoint.ISwitch{}, 100), 1, 2, true},
		"sums of four, without waiting": {asyncParts(3, 4, 100), 1, 0, false}, "a ring": {ringParts(), 1, 0, true},
		"slots in turn":            {switchmlParts(4), 1, 0, true},
		"servers that only add up": {atpParts(crowdedATP(atp.Released, 0)), 3, 0, true},
		"one that only adds up":    {atpParts(crowdedATP(atp.Paper, 0)), 1, 0, true},
	} {
		n := lab(4)
		n.Jobs, n.PerRack = c.jobs, c.perRack
		j := Job{
			Layout: endpoint.Layout{Values: 41, PerPacket: 4}, Updates: 6, Compute: 50 * olaf.Microsecond, Apply: 3 * olaf.Microsecond,
			ServerApply: 2 * olaf.Microsecond,
			Jitter:      0.5, Apart: 20 * olaf.Microsecond,
		}
		d, r := runWithDiary(t, n, j, c.parts, c.sync)
		if r.Hung {
			t.Fatalf("%s: hung", name)
		}
		for of, want := range d.numbers(c.sync) {
			got := float64(r.Of(of))
			if math.IsNaN(want) != math.IsNaN(got) || math.Abs(got-want) > 1e-13*math.Abs(want) {
				t.Errorf("%s: %s is %.17g, want %.17g", name, of, got, want)
			}
		}
		arrived := 0
		for _, n := range d.arrived {
			arrived += n
		}
		if r.Arrived != uint64(arrived) || r.Frames != r.Arrived+r.Lost+r.Underway {
			t.Errorf("%s: %d of %d frames arrived, heard of %d", name, r.Arrived, r.Frames, arrived)
		}
	}
}

// TestSpreadOfStarts checks that workers start within the configured time and compute within the jitter, near both ends
// of each range, by the seed.
func TestSpreadOfStarts(t *testing.T) {
	const compute, apart = 100 * olaf.Microsecond, 40 * olaf.Microsecond
	n := Network{Workers: 500, Link: Link{Rate: 100 * olaf.Gbps}}
	begun := func(j Job, seed uint64) (at []olaf.Duration) {
		at = make([]olaf.Duration, n.Workers)
		j.Layout, j.Updates, j.Compute = endpoint.Layout{Values: 1, PerPacket: 1}, 1, compute
		j.Values = func(now olaf.Time, w int, _ uint32) []uint32 {
			at[w] = olaf.Duration(now) - compute
			return nil
		}
		run(t, n, j, iswitchParts(endpoint.ISwitch{}, 1), true, seed)
		return at
	}
	for name, c := range map[string]struct {
		j        Job
		from, to olaf.Duration
	}{"apart": {Job{Apart: apart}, 0, apart - 1}, "jitter": {Job{Jitter: 0.3}, -3 * compute / 10, 3 * compute / 10},
		"together": {Job{}, 0, 0}} {
		at := begun(c.j, 1)
		slack := (c.to - c.from) / 50
		if least, most := slices.Min(at), slices.Max(at); least < c.from || least > c.from+slack || most > c.to || most < c.to-slack {
			t.Errorf("%s: from %v to %v, want %v to %v", name, least, most, c.from, c.to)
		}
		if other := begun(c.j, 2); slices.Equal(at, other) != (name == "together") {
			t.Errorf("%s: another seed", name)
		}
	}
}

// TestDrawsOfASeed checks that a seed's draws for a worker never change, because stored runs name their seeds: start
// times and compute times with jitter.
func TestDrawsOfASeed(t *testing.T) {
	for name, c := range map[string]struct {
		j    Job
		want []olaf.Time
	}{
		"apart":  {Job{Apart: olaf.Second}, []olaf.Time{934_211_953_948, 531_080_014_358, 16_719_096_173}},
		"jitter": {Job{Compute: olaf.Second, Jitter: 1}, []olaf.Time{1_449_028_534_818, 1_920_479_980_282, 1_716_144_626_841}},
	} {
		got := make([]olaf.Time, 3)
		c.j.Layout, c.j.Updates = endpoint.Layout{Values: 1, PerPacket: 1}, 1
		c.j.Values = func(now olaf.Time, w int, _ uint32) []uint32 { got[w] = now; return nil }
		run(t, Network{Workers: 3, Link: Link{Rate: olaf.Gbps}}, c.j, iswitchParts(endpoint.ISwitch{}, 1), true, 9)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestFinishedRunIgnoresContext checks that a finished run is not affected by the end of its context.
func TestFinishedRunIgnoresContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	j := Job{Layout: endpoint.Layout{Values: 1, PerPacket: 1}, Updates: 1}
	j.Applied = func(olaf.Time, int, *endpoint.Aggregate) { cancel() }
	if r, err := Run(ctx, lab(1), j, iswitchParts(endpoint.ISwitch{}, 1), true, 1); err != nil || r.Hung {
		t.Errorf("%+v, %v", r, err)
	}
	j.Follow = func(last, _ olaf.Time, _ *Look) (olaf.Time, bool) { return last, true }
	if r, err := Run(ctx, lab(1), j, iswitchParts(endpoint.ISwitch{}, 1), true, 1); r != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestSumsOfOneAreReported checks that a sum of one is reported where it is complete, also at a server that only adds.
func TestSumsOfOneAreReported(t *testing.T) {
	for name, parts := range map[string]system.Parts{"a server": atpParts(crowdedATP(atp.Released, 0)),
		"a switch": iswitchParts(endpoint.ISwitch{}, 10)} {
		e := new(ears)
		run(t, lab(1), Job{Layout: endpoint.Layout{Values: 40, PerPacket: 4}, Updates: 2, Compute: olaf.Microsecond, Observer: e},
			parts, true, 1)
		if e.whole != 20 || e.computed != 2 || e.sent != 2 {
			t.Errorf("%s: heard of %+v", name, *e)
		}
	}
}

// TestEndAtTheLimit checks that a job ends at its limit, including events at that instant, and that unfinished values
// are missing.
func TestEndAtTheLimit(t *testing.T) {
	n := Network{Workers: 1, Link: Link{Rate: olaf.Gbps, Delay: olaf.Second}}
	for late, computed := range map[olaf.Duration]bool{0: true, 1: false} {
		j := Job{Layout: endpoint.Layout{Values: 1, PerPacket: 1}, Updates: 1, Compute: 5 * olaf.Millisecond,
			Late: []olaf.Duration{late}, Limit: 5 * olaf.Millisecond}
		heard := false
		j.Values = func(olaf.Time, int, uint32) []uint32 { heard = true; return nil }
		r := run(t, n, j, iswitchParts(endpoint.ISwitch{}, 1), true, 1)
		if !r.Hung || heard != computed || r.Updates != 0 || r.Completion.Known() || r.Goodput.Known() || r.Iteration.Known() ||
			r.Summed.Known() || r.Aggregation.Known() || r.AoM[newest].Known() || r.StaleUpdates.Known() || r.StaleVectors.Known() {
			t.Errorf("late by %d: computed %t, %+v", late, heard, r)
		}
		if computed != (r.Underway == 1) || r.Duration.Known() && computed != (r.Duration == 5e6) {
			t.Errorf("late by %d: %d on their way after %g ns", late, r.Underway, float64(r.Duration))
		}
		if r.OccupiedSlots.Known() != computed || r.Busiest.Known() != computed {
			t.Errorf("late by %d: held %g, busiest %g", late, float64(r.OccupiedSlots), float64(r.Busiest))
		}
	}
}

// TestSeedsInTheirOrder checks that results are in the order of seeds, and that a failed run does not affect finished
// ones.
func TestSeedsInTheirOrder(t *testing.T) {
	n, j := lab(3), Job{Layout: endpoint.Layout{Values: 40, PerPacket: 4}, Updates: 3, Compute: 100 * olaf.Microsecond, Jitter: 1}
	parts := iswitchParts(endpoint.ISwitch{}, 10)
	seeds := []uint64{9, 1, 5, 9}
	told := make(chan bool, len(seeds))
	all, err := RunSeeds(context.Background(), n, j, parts, true, seeds, func() { told <- true })
	if err != nil || len(told) != len(seeds) {
		t.Fatalf("%d were done, %v", len(told), err)
	}
	for i, seed := range seeds {
		if want := run(t, n, j, parts, true, seed); all[i].Duration != want.Duration || all[i].Events != want.Events {
			t.Errorf("seed %d took %g ns, want %g", seed, float64(all[i].Duration), float64(want.Duration))
		}
	}
	n.Workers = 0
	if all, err := RunSeeds(context.Background(), n, j, parts, true, seeds, nil); !errors.Is(err, ErrConfig) ||
		!slices.Equal(all, make([]*Result, 4)) {
		t.Errorf("%v, %v", all, err)
	}
}

// TestMarksOfAPort checks that exactly the frames that arrive at a switch port with enough waiting frames are marked.
// With simultaneous senders, these are all frames that arrive while the server's port is busy, each marked once.
func TestMarksOfAPort(t *testing.T) {
	const workers, packets, size, mark = 5, 20, 50 + 256, 8*(50+256) - 1
	parts := psParts(true)
	parts.Header = 50
	n := Network{Workers: workers, Link: Link{Rate: 10 * olaf.Gbps, Mark: mark}}
	j := Job{Layout: endpoint.Layout{Values: 64 * packets, PerPacket: 64}, Updates: 1, Compute: olaf.Microsecond}
	came, marked, want := 0, 0, 0
	j.Tap = func(f *Frame) {
		ecn := f.Packet.Flags&program.ECN != 0
		switch {
		case f.To == workers+1: // the switch: all but those that left meanwhile are waiting
			if f.From < workers {
				if gone := int(int64(f.At)-int64(olaf.Microsecond))/(8*size*100) - 1; came > gone && (came-gone)*size >= mark {
					want++
				}
				came++
			}
			if ecn {
				t.Errorf("at %d a frame of node %d came to the switch with a mark", f.At, f.From)
			}
		case ecn && f.To == workers:
			marked++
		case ecn:
			t.Errorf("at %d a frame came to worker %d with a mark", f.At, f.To)
		}
	}
	r := run(t, n, j, parts, true, 1)
	if marked == 0 || marked == workers*packets || int(r.Marked) != marked || marked != want {
		t.Errorf("%d of %d frames came with a mark, %d were marked, want %d", marked, came, r.Marked, want)
	}
}
