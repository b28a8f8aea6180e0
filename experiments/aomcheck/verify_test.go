package aomcheck

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
)

// twoClusters returns the paper's setting (§6): p/C = 2 ms, ε = 0.1 ms.
func twoClusters(horizon int, intervals ...olaf.Duration) Problem {
	p := Problem{Service: 2 * ms, Horizon: horizon, Objective: Objective{Kind: Fairness, Bound: ms / 10}}
	for i, t := range intervals {
		p.Clusters = append(p.Clusters, Cluster{Interval: t, PhaseLow: olaf.Duration(i) * 37 * ms, PhaseHigh: olaf.Duration(i) * 37 * ms})
	}
	return p
}

func everyPhase(p Problem) Problem {
	for i := range p.Clusters {
		p.Clusters[i].EveryPhase = true
	}
	return p
}

// TestPaperCases checks the verdicts on the two published queries with the choices that decide them: phases, and the
// updates in the mean.
func TestPaperCases(t *testing.T) {
	solvers := needSolvers(t)
	control := Control{DeltaT: 400 * ms, Active: 16}
	with := func(p Problem, change func(*Problem)) Problem {
		change(&p)
		return p
	}
	tests := []struct {
		name string
		p    Problem
		want Answer
	}{
		{"100/100, this progression", twoClusters(40, 100*ms, 100*ms), Holds},
		{"100/100, every phase", everyPhase(twoClusters(40, 100*ms, 100*ms)), Violated},
		{"100/100, every phase, within one service time", with(everyPhase(twoClusters(40, 100*ms, 100*ms)), func(p *Problem) { p.Objective.Bound = 2 * ms }), Holds},
		{"100/300, this progression", twoClusters(40, 100*ms, 300*ms), Violated},
		{"100/300, every phase", everyPhase(twoClusters(40, 100*ms, 300*ms)), Violated},
		{"control, 100/100, departed", with(everyPhase(twoClusters(12, 100*ms, 100*ms)), func(p *Problem) {
			p.Control, p.Objective.Bound = control, 100*ms
		}), Violated},
		{"paper model, 100/100, every phase: contention is excluded", with(everyPhase(twoClusters(20, 100*ms, 100*ms)), func(p *Problem) { p.Model = Paper }), Holds},
		{"paper model with service, 100/100, every phase", with(everyPhase(twoClusters(10, 100*ms, 100*ms)), func(p *Problem) { p.Model = PaperService }), Violated},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, opt := range []Options{{Limit: time.Minute}, {Limit: time.Minute, Solvers: solvers[1:]}} {
				v, err := Verify(t.Context(), tt.p, opt)
				if err != nil {
					t.Fatal(err)
				}
				if v.Answer != tt.want {
					t.Errorf("%s, want %s (%s)", v.Answer, tt.want, v.Solver)
				}
				if (v.Answer == Violated) != (len(v.Judgement.Broken) > 0) {
					t.Errorf("%s with %q", v.Answer, v.Judgement.Broken)
				}
			}
		})
	}
}

// TestMeanChangesTheVerdict checks that the paper's literal mean, which counts unsent updates as zeros, calls a cluster
// fair that delivers half as often.
func TestMeanChangesTheVerdict(t *testing.T) {
	needSolvers(t)
	p := twoClusters(12, 100*ms, 100*ms)
	p.Objective.Bound = 20 * ms
	p.Control.Sends = SendsGiven
	p.Clusters[0].Sends = []bool{true, true, true, true, true, true, true, true, true, true, true, true}
	p.Clusters[1].Sends = []bool{true, false, true, false, true, false, true, false, true, false, true, true}
	for _, tt := range []struct {
		mean Mean
		want Answer
	}{{Departed, Violated}, {AllUpdates, Holds}} {
		p.Objective.Mean = tt.mean
		v, err := Verify(t.Context(), p, Options{})
		if err != nil || v.Answer != tt.want {
			t.Errorf("mean over %s: %v, %v; want %s", tt.mean, v, err, tt.want)
		}
	}
}

// TestReplayMatchesQueue checks that the steps of a path agree with cycles of the data path, on paths in whole cycles.
func TestReplayMatchesQueue(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for i := range 200 {
		frame := 64 << rng.IntN(3) // 1, 2 or 4 cycles at 64 B a cycle
		p := Problem{Service: olaf.Duration(frame/64) * olaf.Cycle, Slots: 1 + rng.IntN(4), Horizon: 8, Objective: Objective{Kind: LossFree}}
		for range 1 + rng.IntN(4) {
			p.Clusters = append(p.Clusters, Cluster{
				Interval: olaf.Duration(1+rng.IntN(5)) * olaf.Cycle, EveryPhase: true, Jitter: olaf.Duration(rng.IntN(3)) * olaf.Cycle,
			})
		}
		p = p.WithDefaults()
		path := p.randomPath(rng, 1)
		if path == nil {
			continue
		}
		run, err := p.Replay(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(queueDeliveries(t, &p, path, frame), run.Deliveries); diff != "" {
			t.Fatalf("path %d (-queue +replay):\n%s", i, diff)
		}
	}
}

type deliveries struct {
	perTick olaf.Duration
	run     *Run
}

func (d *deliveries) Deliver(f *engine.Departure) {
	u := &f.Frame.Update
	d.run.deliver(int(u.Cluster), int(u.Seq), int64(f.At)/int64(d.perTick))
}

func queueDeliveries(t *testing.T, p *Problem, path *Path, frame int) [][]Delivery {
	t.Helper()
	sink := &deliveries{p.tick(), &Run{Path: path, Deliveries: make([][]Delivery, len(p.Clusters))}}
	q, err := engine.NewPort("olaf", engine.Config{Slots: p.Slots, Clusters: len(p.Clusters)}, engine.Output{}, sink)
	if err != nil {
		t.Fatal(err)
	}
	for _, ev := range path.events() {
		u := olaf.Update{Cluster: olaf.ClusterID(ev.u), Seq: uint32(ev.k), GenNS: uint64(ev.k), Count: 1, Lanes: uint16((frame - 64) / 4)}
		q.Offer(olaf.Time(ev.at*int64(p.tick())), &u, nil)
	}
	q.Drain()
	return sink.run.Deliveries
}

func TestVacuousIsNotProved(t *testing.T) {
	needSolvers(t)
	for _, model := range []Model{Engine, Paper} {
		p := twoClusters(4, 10*ms, 10*ms)
		p.Model = model
		p.Clusters[1].PhaseLow, p.Clusters[1].PhaseHigh = ms, ms
		p.Separation = 5 * ms
		p.Objective.Bound = olaf.Second
		if v, err := Verify(t.Context(), p, Options{}); !errors.Is(err, ErrVacuous) {
			t.Errorf("%s: %v, %v", model, v, err)
		}
	}
	p := twoClusters(4, 100*ms, 100*ms) // these arrivals violate the spacing of §12.3, but are possible in the engine
	p.Model, p.Objective.Bound = Paper, olaf.Second
	p.Clusters[1].PhaseLow, p.Clusters[1].PhaseHigh = ms, ms
	if v, err := Verify(t.Context(), p, Options{}); !errors.Is(err, ErrVacuous) {
		t.Errorf("spacing: %v, %v", v, err)
	}
}

// liar returns a solver that gives the same answer to every question.
func liar(t *testing.T, says string) []Solver {
	t.Helper()
	path := filepath.Join(t.TempDir(), "liar")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+says+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return []Solver{{Name: "liar", Program: path, Package: "liar"}}
}

// TestWrongModelsAndProofsAreRejected checks that a solver's model is rejected if its replay violates nothing, and a
// proof if a simulated path refutes it.
func TestWrongModelsAndProofsAreRejected(t *testing.T) {
	fair := everyPhase(twoClusters(5, 100*ms, 100*ms))
	fair.Objective.Bound = 5 * ms
	unfair := everyPhase(twoClusters(5, 100*ms, 300*ms))
	tests := []struct {
		name, says string
		p          Problem
		err        error
	}{
		{"sat for what holds", "echo sat; echo '((phase.0 0.0) (phase.1 1.0))'", fair, ErrReplay},
		{"sat without values", "echo sat", fair, ErrReplay},
		{"a negative phase", "echo sat; echo '((phase.0 (- 7.0)) (phase.1 1.0))'", unfair, ErrReplay},
		{"a phase beyond its range", "echo sat; echo '((phase.0 0.0) (phase.1 99999.0))'", unfair, ErrReplay},
		{"a decision instead of a phase", "echo sat; echo '((phase.0 true) (phase.1 0.0))'", fair, ErrReplay},
		{"a fraction too fine", "echo sat; echo '((phase.0 (/ 1 987654321987654321987654321)) (phase.1 1.0))'", fair, ErrReplay},
		{"unsat for what does not hold", "echo unsat", unfair, ErrReplay},
		{"a crash", "kill -11 $$", fair, ErrSolver},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v, err := Verify(t.Context(), tt.p, Options{Solvers: liar(t, tt.says)})
			if !errors.Is(err, tt.err) {
				t.Errorf("%v, %v; want %v", v, err, tt.err)
			}
		})
	}
	v, err := Verify(t.Context(), fair, Options{Solvers: liar(t, "exec sleep 20"), Limit: 200 * time.Millisecond})
	if err != nil || v.Answer != Unknown {
		t.Errorf("a solver that hangs: %v, %v", v, err)
	}
}

func TestBadProblems(t *testing.T) {
	good := twoClusters(10, 100*ms, 100*ms)
	tests := []struct {
		change func(*Problem)
		want   string
	}{
		{func(p *Problem) { p.Service = 0 }, "service: 0ps is not a positive time"},
		{func(p *Problem) { p.Clusters[1].Interval = -ms }, "clusters[1] (c2).interval: -1ms is not a positive time"},
		{func(p *Problem) { p.Clusters = nil }, "clusters: there is none"},
		{func(p *Problem) { p.Horizon = 1 }, "horizon: 1; a peak needs"},
		{func(p *Problem) { p.Clusters[0].Updates = 11 }, "updates: 11 is more than the horizon of 10"},
		{func(p *Problem) { p.Clusters[0].Sends = make([]bool, 11) }, "sends: 11 decisions for a horizon of 10 updates"},
		{func(p *Problem) { p.Control.Sends = SendsGiven }, "sends: 0 decisions given for 10 updates"},
		{func(p *Problem) { p.Objective.Kind = "speed" }, `unknown objective "speed"`},
		{func(p *Problem) { p.Objective.Kind = "" }, "objective.kind: it is missing"},
		{func(p *Problem) { p.Objective = Objective{Kind: MaxPeak} }, "objective.bound: 0ps is not a positive time"},
		{func(p *Problem) { p.Objective = Objective{Kind: PerCluster} }, "needs max-peak or mean"},
		{func(p *Problem) { p.Model = "queue" }, `model: "queue" is not one of`},
		{func(p *Problem) { p.Slots = -1 }, "slots: -1 is outside"},
		{func(p *Problem) { p.Control.DeltaT = -ms }, "control.delta-t: -1ms is outside"},
		{func(p *Problem) { p.Horizon = 3000 }, "at most 4000 are supported"},
		{func(p *Problem) { p.Service = 1; p.Horizon = 900 }, "in steps of 1ps is too long"},
		{func(p *Problem) { p.Clusters = p.Clusters[:1] }, "fairness compares at least two"},
	}
	for _, tt := range tests {
		p := good
		p.Clusters = append([]Cluster(nil), good.Clusters...)
		tt.change(&p)
		_, err := Verify(t.Context(), p, Options{Solvers: liar(t, "echo unsat")})
		if !errors.Is(err, ErrProblem) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %q", err, tt.want)
		}
	}
}

// TestLongFreeDecisionsFallBack checks that too many free decisions become seeded draws, with a note.
func TestLongFreeDecisionsFallBack(t *testing.T) {
	needSolvers(t)
	p := everyPhase(twoClusters(FreeLimit+1, 100*ms, 100*ms))
	p.Control, p.Objective = Control{DeltaT: 400 * ms, Active: 16}, Objective{Kind: MaxPeak, Bound: 705 * ms}
	v, err := Verify(t.Context(), p, Options{})
	if err != nil || v.Answer != Holds || v.Problem.Control.Sends != SendsSeeded || !strings.Contains(strings.Join(v.Notes, "\n"), "drawn from seed 0") {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestAdmission(t *testing.T) {
	needSolvers(t)
	running := everyPhase(twoClusters(6, 20*ms, 20*ms))
	running.Objective = Objective{Kind: MaxPeak, Bound: 25 * ms}
	for _, tt := range []struct {
		interval olaf.Duration
		want     bool
	}{{20 * ms, false}, {18 * ms, false}} {
		a, err := Admit(t.Context(), running, []Cluster{{Interval: tt.interval, EveryPhase: true}}, Options{})
		if err != nil || a.IsAccepted() != tt.want || a.Running.Answer != Holds {
			t.Errorf("%v: %+v, %v", tt.interval, a, err)
		}
	}
	running.Objective.Bound = 27 * ms
	if a, err := Admit(t.Context(), running, []Cluster{{Interval: 20 * ms, EveryPhase: true}}, Options{}); err != nil || !a.IsAccepted() {
		t.Errorf("with room to spare: %+v, %v", a, err)
	}
	if _, err := Admit(t.Context(), running, []Cluster{{Name: "c1", Interval: ms}}, Options{}); !errors.Is(err, ErrProblem) {
		t.Errorf("a name twice: %v", err)
	}
}

func TestRegion(t *testing.T) {
	needSolvers(t)
	axis := func(s string) Axis {
		a, err := ParseAxis(s)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	p := everyPhase(twoClusters(4, 100*ms, 100*ms))
	p.Objective.Kind = MaxPeak
	r, err := Explore(t.Context(), p, []Axis{axis("bound=102ms:106ms:3"), axis("service=1ms:3ms:3")}, Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := `bound
106ms |  #  #  #
104ms |  #  #  .
102ms |  #  .  .
      +---------
       service from 1ms to 3ms
# holds   . violated   ? unknown   ~ assumptions contradict each other
`
	if diff := cmp.Diff(want, r.Plot()); diff != "" {
		t.Error(diff)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	r, err = Explore(ctx, p, []Axis{axis("bound=102ms:106ms:3"), axis("service=1ms:3ms:3")}, Options{}, func(n, _ int) {
		if n == 5 {
			interrupt()
		}
	})
	if !errors.Is(err, context.Canceled) || !r.Partial || len(r.Points) != 5 {
		t.Fatalf("%+v, %v", r, err)
	}
	want = strings.NewReplacer("106ms |  #  #  #", "106ms |         ", "#  #  .", "#  #   ").Replace(want) + "blank: not verified, because it was interrupted\n"
	if diff := cmp.Diff(want, r.Plot()); diff != "" {
		t.Error(diff)
	}
	for _, s := range []string{"bound", "bound=1ms", "bound=2ms:1ms", "colour=1:2", "interval.0=1ms:2ms", "bound=1:2", "bound=1ms:2ms:1", "slots=a:b"} {
		if _, err := ParseAxis(s); !errors.Is(err, ErrProblem) {
			t.Errorf("%s: %v", s, err)
		}
	}
}

// TestAxisGrammar checks that an axis can be written as in any sweep, and that the older form means the same.
func TestAxisGrammar(t *testing.T) {
	for text, older := range map[string]string{"bound=102ms..106ms/2": "bound=102ms:106ms:3", "bound=102ms..106ms:2ms": "bound=102ms:106ms:3", "bound=102,104,106ms": "", "slots=1..3": "slots=1:3:3",
		"slots=1,2,3": "slots=1:3:3", "slots=1..8:x2": "", "slots=4,2": "", "slots=2,2": "", "slots=0..2": "", "bound=5ms..2ms": "", "colour=1..2": "", "interval.2=1ms..2ms/1": "interval.2=1ms:2ms:2"} {
		a, err := ParseAxis(text)
		if older == "" {
			if text == "slots=1..8:x2" {
				if err != nil || !slices.Equal(a.Values, []AxisValue{1, 2, 4, 8}) {
					t.Errorf("%s: %v, %v", text, a.Values, err)
				}
			} else if !errors.Is(err, ErrProblem) {
				t.Errorf("%s: %v, %v", text, a.Values, err)
			}
			continue
		}
		want, bad := ParseAxis(older)
		if err != nil || bad != nil || !slices.Equal(a.Values, want.Values) || a.which != want.which {
			t.Errorf("%s: %v, want %v; %v, %v", text, a.Values, want.Values, err, bad)
		}
	}
	p := twoClusters(4, 100*ms, 100*ms)
	for _, c := range []struct {
		name, value string
		ok          bool
	}{{"slots", "3", true}, {"interval.2", "50ms", true}, {"interval.3", "50ms", false}, {"slots", "many", false}, {"colour", "1", false}} {
		got, err := p.With(c.name, c.value)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, ErrProblem) {
			t.Errorf("%s=%s: %v", c.name, c.value, err)
		}
		if c.name == "interval.2" && (got.Clusters[1].Interval != 50*ms || p.Clusters[1].Interval != 100*ms) {
			t.Errorf("%v, and the one it was made of has %v", got.Clusters[1].Interval, p.Clusters[1].Interval)
		}
	}
}

// TestDumpGivesSameAnswer checks that a solver gives the same answer to a dumped file.
func TestDumpGivesSameAnswer(t *testing.T) {
	needSolvers(t)
	var kept []byte
	p := everyPhase(twoClusters(5, 100*ms, 300*ms))
	v, err := Verify(t.Context(), p, Options{Dump: func(b []byte) error { kept = b; return nil }})
	if err != nil || v.Answer != Violated {
		t.Fatal(v, err)
	}
	a, err := cvc5().Run(t.Context(), kept)
	if err != nil || a.Status != satStatus {
		t.Errorf("%v, %v", a, err)
	}
	for _, want := range []string{"; all times are in ms", "12.2 departures p/C apart", "6 the objective is broken: fairness within 100us", "; u=1 is c2: every 300ms"} {
		if !bytes.Contains(kept, []byte(want)) {
			t.Errorf("no %q in the dump", want)
		}
	}
}

func TestPlot(t *testing.T) {
	p := twoClusters(4, 10*ms, 30*ms).WithDefaults()
	p.Clusters[1].PhaseLow, p.Clusters[1].PhaseHigh = 5*ms, 5*ms
	path := p.randomPath(rand.New(rand.NewPCG(1, 1)), 1)
	run, err := p.Replay(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	text := p.Plot(run)
	if strings.Count(text, "\n") != 2*(plotRows+1)+2 || !strings.Contains(text, "AoM of c2") || strings.Count(text, "|") < 2*plotRows+6 {
		t.Errorf("got\n%s", text)
	}
	var svg bytes.Buffer
	if err := p.SVG(&svg, run); err != nil || !bytes.Contains(svg.Bytes(), []byte("</svg>")) {
		t.Errorf("%v, %d bytes", err, svg.Len())
	}
}

// TestTighten checks that the bound on the difference between two clusters is found to be one service time.
func TestTighten(t *testing.T) {
	needSolvers(t)
	p := everyPhase(twoClusters(4, 100*ms, 100*ms))
	p.Objective.Bound = 5 * ms
	got, err := Tighten(t.Context(), p, Options{Simulate: 50})
	if want := (Tight{2 * ms, 19 * ms / 10}); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if _, err := Tighten(t.Context(), Problem{Objective: Objective{Kind: LossFree}}, Options{}); !errors.Is(err, ErrProblem) {
		t.Error(err)
	}
}
