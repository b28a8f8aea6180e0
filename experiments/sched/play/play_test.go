package play

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/sched"
	"github.com/olafctl/olaf/experiments/sched/policy"
)

func plan(t *testing.T, p *sched.Problem, name policy.Name) *sched.Plan {
	t.Helper()
	plan, err := policy.Plan(context.Background(), p, name, policy.Options{Repairs: sched.AllRepairs})
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func crowded(t *testing.T, jobs int, seed uint64) *sched.Problem {
	t.Helper()
	s := sched.PaperWorkload(jobs, seed)
	s.Units, s.Ports, s.INC, s.PerSecond, s.Local = 8, 2, 2, 60, 0.5
	p, err := sched.GenerateProblem(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPacketsFollowTheFluid checks that paced packets finish when the fluid does, to 2 % of a job's sending time, for
// every planner, with and without switches, under any reconfiguration. Every fragment is summed once, over all workers.
func TestPacketsFollowTheFluid(t *testing.T) {
	for seed := range uint64(4) {
		p := crowded(t, 20, seed)
		for _, of := range []*sched.Problem{p, p.WithINC(0)} {
			for _, name := range []policy.Name{policy.TW, policy.FCFS} {
				r, err := PlayPlan(context.Background(), plan(t, of, name), Options{Packets: 40_000, Paced: true})
				if err != nil {
					t.Fatal(err)
				}
				if math.Abs(float64(r.WorstPct)) > 2 {
					t.Errorf("seed %d, %s: %s is %.2f %% off", seed, name, r.Worst, float64(r.WorstPct))
				}
				if r.Sums != r.Expected || r.Packets > 40_000 || r.Marked != 0 {
					t.Errorf("seed %d, %s: %d of %d sums of %d packets, %d marks", seed, name, r.Sums, r.Expected, r.Packets, r.Marked)
				}
			}
		}
	}
}

// TestPartsOfJobs checks that if switches sum part of a job's workers, one stream leaves the unit for the server
// instead of one per worker, that packets still follow the fluid with exact sums, and that workers with windows finish
// too.
func TestPartsOfJobs(t *testing.T) {
	parts := 0
	for seed := range uint64(4) {
		p := crowded(t, 20, seed)
		p.PartialINC = true
		for _, name := range []policy.Name{policy.TW, policy.FCFS} {
			r, err := PlayPlan(context.Background(), plan(t, p, name), Options{Packets: 40_000})
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(float64(r.WorstPct)) > 2 || r.Sums != r.Expected || r.Marked != 0 || r.CTBTI.Windowed == nil {
				t.Errorf("seed %d, %s: %s is %.2f %% off, %d of %d sums, %d marks, windows %v", seed, name, r.Worst,
					float64(r.WorstPct), r.Sums, r.Expected, r.Marked, r.CTBTI.Windowed)
			}
			for i := range r.Jobs {
				if r.Jobs[i].Part {
					parts++
				}
			}
		}
	}
	if parts == 0 {
		t.Error("no job was summed in part")
	}
}

// TestPartialAggregationByHand checks two workers at the switch and one at the server: a connection for a single stream
// is enough.
func TestPartialAggregationByHand(t *testing.T) {
	p := &sched.Problem{
		Slot: olaf.Second, Step: 10 * olaf.Gbps, PortRate: 10 * olaf.Gbps, ServerRate: 40 * olaf.Gbps, PartialINC: true,
		Units: []sched.Unit{{Name: "a", Ports: 1, INC: 1}, {Name: "b", Ports: 1}},
		Jobs: []sched.Job{{ID: "j", Volume: 1e9, Update: 100 * olaf.Millisecond, Workers: map[string]int{"a": 2, "b": 1},
			Server: "b"}},
	}
	made := &sched.Plan{
		Schema: sched.PlanSchema, Policy: sched.Policy{Name: "by hand", Repairs: sched.AllRepairs}, Problem: p, Slots: 1,
		Jobs:        []sched.Assignment{{Job: "j", INC: "a", Rates: []float64{10e9}, Finish: 1100 * olaf.Millisecond}},
		Connections: []sched.Change{{Between: [2]string{"a", "b"}, Count: 1}},
		Outcome:     sched.Outcome{CTBTI: 1100 * olaf.Millisecond, TotalJCT: 1100 * olaf.Millisecond, Reconfigurations: 1},
	}
	r, err := PlayPlan(context.Background(), made, Options{Packets: 3000, Paced: true})
	if err != nil {
		t.Fatal(err)
	}
	if j := &r.Jobs[0]; !j.Part || j.Fluid != 900*olaf.Millisecond || j.Paced < j.Fluid || j.Paced > j.Fluid+3*olaf.Millisecond ||
		r.Sums != r.Expected {
		t.Errorf("%+v, %d of %d sums", j, r.Sums, r.Expected)
	}
}

// TestFluidEndsInPlansSlot checks that the fluid ends in the plan's slot.
func TestFluidEndsInPlansSlot(t *testing.T) {
	p := crowded(t, 30, 7)
	made := plan(t, p, policy.TW)
	r, err := PlayPlan(context.Background(), made, Options{Packets: 10_000, Paced: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Jobs {
		if j := &r.Jobs[i]; j.Fluid > j.Planned || j.Planned-j.Fluid >= p.Slot {
			t.Errorf("%s: the fluid is done at %v, the plan says %v", j.Job, j.Fluid, j.Planned)
		}
	}
}

// TestWindows checks that workers with windows finish, and that the same plan gives the same result.
func TestWindows(t *testing.T) {
	made := plan(t, crowded(t, 12, 3), policy.TW)
	o := Options{Packets: 20_000}
	r, err := PlayPlan(context.Background(), made, o)
	if err != nil {
		t.Fatal(err)
	}
	if r.CTBTI.Windowed == nil || *r.CTBTI.Windowed <= 0 {
		t.Fatalf("with windows: %+v", r.CTBTI)
	}
	again, err := PlayPlan(context.Background(), made, o)
	if diff := cmp.Diff(r, again); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// TestOneJobByHand checks one job by hand: 1 s of volume over an interface, with a connection set up in 50 ms.
func TestOneJobByHand(t *testing.T) {
	p := &sched.Problem{
		Slot: olaf.Second, Step: 10 * olaf.Gbps, Reconfiguration: 50 * olaf.Millisecond, PortRate: 40 * olaf.Gbps,
		ServerRate: 40 * olaf.Gbps,
		Units:      []sched.Unit{{Name: "a", Ports: 1}, {Name: "b", Ports: 1}},
		Jobs:       []sched.Job{{ID: "j", Volume: 1e9, Workers: map[string]int{"a": 1}, Server: "b"}},
	}
	made := &sched.Plan{
		Schema: sched.PlanSchema, Policy: sched.Policy{Name: "by hand", Repairs: sched.AllRepairs}, Problem: p, Slots: 1,
		Jobs:        []sched.Assignment{{Job: "j", Rates: []float64{40e9}, Finish: olaf.Second}},
		Connections: []sched.Change{{Between: [2]string{"a", "b"}, Count: 1}},
		Outcome:     sched.Outcome{CTBTI: olaf.Second, TotalJCT: olaf.Second, Reconfigurations: 1},
	}
	r, err := PlayPlan(context.Background(), made, Options{Packets: 1000, Paced: true})
	if err != nil {
		t.Fatal(err)
	}
	if want := 250 * olaf.Millisecond; r.Jobs[0].Fluid != want {
		t.Errorf("the fluid is done after %v, want %v", r.Jobs[0].Fluid, want)
	}
	if late := r.Jobs[0].Paced - r.Jobs[0].Fluid; late < 0 || late > olaf.Millisecond {
		t.Errorf("packets are %v late", late)
	}
}

func TestRefusals(t *testing.T) {
	made := plan(t, crowded(t, 5, 1), policy.TW)
	if _, err := PlayPlan(context.Background(), made, Options{Packets: maxPackets + 1}); !errors.Is(err, ErrPlay) {
		t.Error(err)
	}
	broken := *made
	broken.Connections = nil
	if _, err := PlayPlan(context.Background(), &broken, Options{}); !errors.Is(err, ErrPlay) {
		t.Errorf("without connections: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := PlayPlan(ctx, made, Options{Packets: 10_000}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	many := crowded(t, 1, 1)
	many.Jobs[0].Workers = map[string]int{"r1": 40}
	many.Jobs[0].Server = "r2"
	if _, err := PlayPlan(context.Background(), plan(t, many, policy.TW), Options{}); !errors.Is(err, ErrPlay) {
		t.Errorf("more workers than a bitmap has: %v", err)
	}
}

func BenchmarkPlay(b *testing.B) {
	s := sched.PaperWorkload(40, 1)
	s.Units, s.Ports = 8, 4
	p, err := sched.GenerateProblem(s)
	if err != nil {
		b.Fatal(err)
	}
	made, err := policy.Plan(context.Background(), p, policy.TW, policy.Options{Repairs: sched.AllRepairs})
	if err != nil {
		b.Fatal(err)
	}
	packets := 0
	for b.Loop() {
		r, err := PlayPlan(context.Background(), made, Options{Packets: 1_000_000, Paced: true})
		if err != nil {
			b.Fatal(err)
		}
		packets += r.Packets
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(packets), "ns/packet")
}
