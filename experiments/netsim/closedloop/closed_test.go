package closedloop

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/iswitch"
	"github.com/olafctl/olaf/fpga/program/switchml"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// lab returns iSwitch's main cluster: one switch with 10G ports.
func lab(workers int) Network {
	return Network{
		Workers: workers, Link: Link{Rate: 10 * olaf.Gbps, Delay: 500 * olaf.Nanosecond, Overhead: 24},
		Accelerator: Accelerator{BusBytes: 32, Beat: 5 * olaf.Nanosecond, Pipeline: 16},
	}
}

func iswitchParts(isw endpoint.ISwitch, slots int) system.Parts {
	d := iswitch.Describe()
	return system.Parts{
		Header: 50, Program: &d, Build: program.Config{Slots: slots, Profile: isw.Profile},
		Worker: func(cfg endpoint.Config, h endpoint.Host) (endpoint.Endpoint, error) {
			return endpoint.NewISwitchSync(cfg, isw, h)
		},
	}
}

func run(t *testing.T, n Network, j Job, p system.Parts, sync bool, seed uint64) *Result {
	t.Helper()
	r, err := Run(context.Background(), n, j, p, sync, seed)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestExactlyOnce checks that under isw-x and SwitchML every worker ends every round with exactly one contribution of
// every worker, with any losses.
func TestExactlyOnce(t *testing.T) {
	seeds := 300
	if testing.Short() {
		seeds = 20
	}
	for _, protocol := range []struct {
		name  string
		parts system.Parts
		codec codec
	}{
		{"isw-x", iswitchParts(endpoint.ISwitch{Profile: iswitch.Exactly}, 8), floats},
		{"switchml", switchmlParts(2), integers},
		{"xagg", xaggParts(), integers},
	} {
		var all exactness
		for _, shape := range []struct {
			name             string
			workers, perRack int
		}{{"switch", 4, 0}, {"racks", 6, 3}, {"uneven", 5, 2}} {
			for _, loss := range []float64{0, 0.0001, 0.001, 0.01, 0.05} {
				t.Run(fmt.Sprintf("%s/%s/%g", protocol.name, shape.name, loss), func(t *testing.T) {
					for seed := range seeds {
						n := lab(shape.workers)
						n.PerRack = shape.perRack
						n.Link.Loss = loss
						all.add(exactlyOnce(t, n, protocol.parts, protocol.codec, uint64(seed)))
					}
				})
			}
		}
		t.Logf("%s: %s", protocol.name, &all)
	}
}

// exactness sums up the results of exact runs.
type exactness struct{ runs, sums, frames, lost, again int64 }

func (e *exactness) add(r *Result) {
	e.runs++
	e.sums += r.Endpoints.Of("updates_applied")
	e.frames += int64(r.Frames)
	e.lost += int64(r.Lost)
	e.again += r.Endpoints.Of("packets_resent")
}

func (e *exactness) String() string {
	return fmt.Sprintf("%d runs, %d sums at workers, each exact; %d frames, %d lost, %d packets sent again", e.runs, e.sums, e.frames,
		e.lost, e.again)
}

func switchmlParts(slots int) system.Parts {
	d := switchml.Describe()
	return system.Parts{
		Program: &d, Build: program.Config{Slots: slots}, Header: 52,
		Worker: func(cfg endpoint.Config, h endpoint.Host) (endpoint.Endpoint, error) {
			return endpoint.NewSwitchML(cfg, endpoint.SwitchML{Slots: slots}, h)
		},
	}
}

// floats and integers encode gradients that are small whole numbers.
var (
	floats = codec{func(v int) uint32 { return math.Float32bits(float32(v)) },
		func(w uint32) int { return int(math.Float32frombits(w)) }}
	integers = codec{func(v int) uint32 { return uint32(int32(v)) }, func(w uint32) int { return int(int32(w)) }}
)

type codec struct {
	word func(int) uint32
	of   func(uint32) int
}

func exactlyOnce(t *testing.T, n Network, parts system.Parts, c codec, seed uint64) *Result {
	t.Helper()
	return exactlyOnceBut(t, n, parts, c, seed, -1)
}

// exactlyOnceBut allows a killed server to keep its slots.
func exactlyOnceBut(t *testing.T, n Network, parts system.Parts, c codec, seed uint64, killed int) *Result {
	t.Helper()
	const rounds = 5
	layout := endpoint.Layout{Values: 23, PerPacket: 4}
	value := func(worker int, vector uint32, i int) int { return (worker+1)*(int(vector)+3) + i }
	sums := 0
	j := Job{
		Layout: layout, Updates: rounds, Compute: 200 * olaf.Microsecond, Jitter: 0.5, Limit: 1000 * olaf.Second,
		Values: func(_ olaf.Time, w int, vector uint32) []uint32 {
			v := make([]uint32, layout.Values)
			for i := range v {
				v[i] = c.word(value(w, vector, i))
			}
			return v
		},
		Applied: func(_ olaf.Time, host int, a *endpoint.Aggregate) {
			sums++
			for i, word := range a.Values {
				want := 0
				for w := range n.Workers {
					want += value(host/n.Workers*n.Workers+w, a.Number, i)
				}
				if got := c.of(word); got != want {
					t.Fatalf("seed %d: worker %d, round %d, value %d is %d, want %d", seed, host, a.Number, i, got, want)
				}
			}
		},
	}
	parts.Build.LaneMemory = 4
	r := run(t, n, j, parts, true, seed)
	if want := rounds * n.Workers * max(n.Jobs, 1); r.Hung || sums != want {
		t.Fatalf("seed %d: hung %v, %d sums, want %d; %v %v", seed, r.Hung, sums, want, r.Endpoints, r.Program)
	}
	if n := r.Endpoints.Of("packets_inexact"); n != 0 {
		t.Fatalf("seed %d: %d inexact packets", seed, n)
	}
	if held := r.Program.Of("vectors_held"); held != 0 && killed < 0 {
		t.Fatalf("seed %d: %d contributions are held after the job; %v", seed, held, r.Program)
	}
	return r
}

func psParts(sync bool) system.Parts {
	return system.Parts{
		Worker: func(cfg endpoint.Config, h endpoint.Host) (endpoint.Endpoint, error) {
			return endpoint.NewPSWorker(cfg, h)
		},
		Server: func(cfg endpoint.Config, h endpoint.Host) (endpoint.Endpoint, error) {
			return endpoint.NewPSServer(cfg, sync, h)
		},
	}
}

func ringParts() system.Parts {
	return system.Parts{Worker: func(cfg endpoint.Config, h endpoint.Host) (endpoint.Endpoint, error) {
		return endpoint.NewRing(cfg, h)
	}}
}

func asyncParts(bound, h, slots int) system.Parts {
	d := iswitch.Describe()
	return system.Parts{
		Header: 50, Program: &d, Build: program.Config{Slots: slots}, Fan: h,
		Worker: func(cfg endpoint.Config, h endpoint.Host) (endpoint.Endpoint, error) {
			return endpoint.NewISwitchAsync(cfg, endpoint.Async{Bound: bound}, h)
		},
	}
}

// values returns gradients that differ between workers and vectors.
func values(layout endpoint.Layout) func(olaf.Time, int, uint32) []uint32 {
	return func(_ olaf.Time, w int, vector uint32) []uint32 {
		v := make([]uint32, layout.Values)
		for i := range v {
			v[i] = math.Float32bits(float32((w+1)*(int(vector)+3) + i))
		}
		return v
	}
}

// TestBaselinesSumAll checks that baselines compute the same sums as iSwitch, exact for integers.
func TestBaselinesSumAll(t *testing.T) {
	for name, parts := range map[string]system.Parts{"server": psParts(true), "ring": ringParts()} {
		for _, workers := range []int{2, 3, 4, 7} {
			t.Run(fmt.Sprintf("%s/%d", name, workers), func(t *testing.T) {
				layout := endpoint.Layout{Values: 41, PerPacket: 4, Messages: 2}
				gradient := values(layout)
				sums := 0
				j := Job{Layout: layout, Updates: 4, Compute: 100 * olaf.Microsecond, Jitter: 1, Values: gradient}
				j.Applied = func(_ olaf.Time, host int, a *endpoint.Aggregate) {
					sums++
					for i, bits := range a.Values {
						want := float32(0)
						for w := range workers {
							want += math.Float32frombits(gradient(0, w, a.Number)[i])
						}
						if got := math.Float32frombits(bits); got != want || a.Torn || a.Vectors != uint32(workers) {
							t.Fatalf("host %d, update %d: value %d is %g, want %g; %d vectors, torn %v", host, a.Number, i, got, want,
								a.Vectors, a.Torn)
						}
					}
				}
				r := run(t, lab(workers), j, parts, true, 1)
				hosts := workers
				if parts.Server != nil {
					hosts++
				}
				if r.Hung || sums != 4*hosts {
					t.Fatalf("hung %v, %d sums on %d hosts", r.Hung, sums, hosts)
				}
				c := r.Endpoints
				if c.Of("packets_sent") != c.Of("packets_received") || c.Of("packets_repeated")+c.Of("packets_resent") != 0 ||
					c.Of("updates_applied") != int64(sums) {
					t.Fatalf("without loss: %v", c)
				}
				if all := int64(2 * 4 * workers * layout.Packets()); parts.Server != nil && c.Of("packets_sent") != all {
					t.Fatalf("%d packets sent, want %d", c.Of("packets_sent"), all)
				}
			})
		}
	}
}

// TestAsyncWeightsAreEqual checks that every worker of asynchronous iSwitch applies the same sums in the same order, so
// that weights are equal everywhere.
func TestAsyncWeightsAreEqual(t *testing.T) {
	layout := endpoint.Layout{Values: 41, PerPacket: 4}
	for _, bound := range []int{0, 3} {
		weights := make([][][]uint32, 4) // by worker and update
		j := Job{Layout: layout, Updates: 50, Compute: 20 * olaf.Microsecond, Apply: 15 * olaf.Microsecond, Jitter: 0.9,
			Values: values(layout)}
		j.Applied = func(_ olaf.Time, host int, a *endpoint.Aggregate) {
			weights[host] = append(weights[host], slices.Clone(a.Values))
			if late := uint64(a.Vectors)*uint64(a.Number) - a.Trace.ReadSum; bound == 0 && late > uint64(a.Vectors)*2 {
				// Gradients are fresh when they are sent, but delays in flight have no bound.
				t.Errorf("update %d holds gradients that are %d updates old together", a.Number, late)
			}
		}
		parts := asyncParts(bound, 4, 100)
		parts.Build.LaneMemory = 4
		r := run(t, lab(4), j, parts, false, 7)
		if r.Hung {
			t.Fatalf("bound %d: hung: %v", bound, r.Endpoints)
		}
		for w := 1; w < 4; w++ {
			if !reflect.DeepEqual(weights[w], weights[0]) {
				t.Fatalf("bound %d: worker %d does not apply what worker 0 applies", bound, w)
			}
		}
		if discarded := r.Endpoints.Of("vectors_discarded"); (bound == 0) != (discarded > 0) {
			t.Errorf("bound %d: %d gradients discarded", bound, discarded)
		}
	}
}

// TestPublishedFramesAreNotExactUnderLoss checks that the paper's frame, which has no round number, gives wrong or
// missing sums under loss, and that they are counted.
func TestPublishedFramesAreNotExactUnderLoss(t *testing.T) {
	for _, c := range []struct {
		recovery endpoint.Recovery
		hangs    bool
	}{{endpoint.RecoverHelp, false}, {endpoint.RecoverForce, false}, {endpoint.RecoverNone, true}} {
		n := lab(4)
		n.Link.Loss = 0.02
		j := Job{Layout: endpoint.Layout{Values: 200, PerPacket: 4}, Updates: 10, Compute: 100 * olaf.Microsecond,
			Limit: 10 * olaf.Second}
		r := run(t, n, j, iswitchParts(endpoint.ISwitch{Recovery: c.recovery}, 100), true, 3)
		wrong := r.Endpoints.Of("packets_inexact") + r.Endpoints.Of("packets_zeroed")
		for i := range r.Endpoints.Ledger().Counters {
			if n := r.Endpoints.At(i); n < 0 {
				t.Errorf("%s: %d %s", c.recovery, n, r.Endpoints.Ledger().Counters[i].Name)
			}
		}
		if r.Hung != c.hangs || !c.hangs && wrong == 0 {
			t.Errorf("%s: hung %v, %d wrong packets; %v", c.recovery, r.Hung, wrong, r.Endpoints)
		}
	}
}

// TestShortTableIsReused checks that a table shorter than the vector is reused without errors if nothing is lost.
func TestShortTableIsReused(t *testing.T) {
	j := Job{Layout: endpoint.Layout{Values: 401, PerPacket: 4}, Updates: 5, Compute: 100 * olaf.Microsecond, Jitter: 1}
	parts := iswitchParts(endpoint.ISwitch{Ahead: 7, Wrap: true}, 7)
	parts.Build.Wrap = true
	r := run(t, lab(5), j, parts, true, 1)
	if r.Hung || r.Endpoints.Of("packets_inexact") != 0 || r.OccupiedSlotsPeak > 7 {
		t.Errorf("hung %v, %v, peak %g", r.Hung, r.Endpoints, float64(r.OccupiedSlotsPeak))
	}
}

// TestDeterminism checks that the same arguments give the same result, and another seed a different one.
func TestDeterminism(t *testing.T) {
	n := lab(6)
	n.PerRack, n.Link.Loss = 3, 0.01
	j := Job{Layout: endpoint.Layout{Values: 100, PerPacket: 4}, Updates: 5, Compute: 100 * olaf.Microsecond, Jitter: 0.5}
	parts := iswitchParts(endpoint.ISwitch{Profile: iswitch.Exactly}, 25)
	a, b, c := run(t, n, j, parts, true, 1), run(t, n, j, parts, true, 1), run(t, n, j, parts, true, 2)
	said := func(r *Result) string { return fmt.Sprintf("%+v", *r) } // as text, because missing values are NaN, which equals nothing
	if said(a) != said(b) || said(a) == said(c) {
		t.Error("a run does not depend on its seed alone")
	}
}

func TestRefusals(t *testing.T) {
	good := Job{Layout: endpoint.Layout{Values: 100, PerPacket: 4}, Updates: 1}
	parts := iswitchParts(endpoint.ISwitch{}, 25)
	for name, c := range map[string]struct {
		change func(*Network, *Job, *system.Parts)
		want   error
	}{
		"no workers":      {func(n *Network, _ *Job, _ *system.Parts) { n.Workers = 0 }, ErrConfig},
		"no rate":         {func(n *Network, _ *Job, _ *system.Parts) { n.Link.Rate = 0 }, ErrConfig},
		"more is lost":    {func(n *Network, _ *Job, _ *system.Parts) { n.Link.Loss = 1.5 }, ErrConfig},
		"jitter":          {func(_ *Network, j *Job, _ *system.Parts) { j.Jitter = 2 }, ErrConfig},
		"H over children": {func(_ *Network, _ *Job, p *system.Parts) { p.Fan = 5 }, ErrConfig},
		"no values":       {func(_ *Network, j *Job, _ *system.Parts) { j.Layout.Values = 0 }, endpoint.ErrConfig},
		"no updates":      {func(_ *Network, j *Job, _ *system.Parts) { j.Updates = 0 }, endpoint.ErrConfig},
		"small table": {func(_ *Network, _ *Job, p *system.Parts) { *p = iswitchParts(endpoint.ISwitch{Ahead: 3}, 3) },
			endpoint.ErrConfig},
		"bad profile": {func(_ *Network, _ *Job, p *system.Parts) { p.Build.Profile = "isw-9" }, program.ErrConfig},
		"ring of one": {func(n *Network, _ *Job, p *system.Parts) { n.Workers, *p = 1, ringParts() }, endpoint.ErrConfig},
	} {
		n, j, p := lab(4), good, parts
		c.change(&n, &j, &p)
		if _, err := Run(context.Background(), n, j, p, true, 1); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func BenchmarkIteration(b *testing.B) {
	j := Job{Layout: endpoint.Layout{Values: 1681062, PerPacket: iswitch.Lanes}, Updates: uint32(b.N), Compute: 12 * olaf.Millisecond}
	if _, err := Run(context.Background(), lab(4), j, iswitchParts(endpoint.ISwitch{}, 4594), true, 1); err != nil {
		b.Fatal(err)
	}
}

// TestPacketsAllocateNothing checks that a longer job allocates only for its measurements, not per packet.
func TestPacketsAllocateNothing(t *testing.T) {
	allocs := func(updates uint32) float64 {
		j := Job{Layout: endpoint.Layout{Values: 100 * iswitch.Lanes, PerPacket: iswitch.Lanes}, Updates: updates,
			Compute: olaf.Millisecond}
		return testing.AllocsPerRun(1, func() {
			if _, err := Run(context.Background(), lab(4), j, iswitchParts(endpoint.ISwitch{}, 128), true, 1); err != nil {
				t.Fatal(err)
			}
		})
	}
	if short, long := allocs(10), allocs(110); long-short > 100 { // for 80,000 more packets
		t.Errorf("100 updates more allocate %v times", long-short)
	}
}
