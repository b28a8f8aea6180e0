package aomcheck

import (
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/tc"
)

// believer returns a prover that accepts everything that simulation does not refute, so that tests of proofs need no
// solver.
func believer(t *testing.T) Options {
	return Options{Simulate: 300, Solvers: liar(t, "if grep -q 'objective is broken'; then echo unsat; else echo sat; fi")}
}

// TestTightenBisects checks that bisection finds, to a twentieth, the service time as the bound on the difference
// between two clusters, and likewise the bounds on peaks and on their mean.
func TestTightenBisects(t *testing.T) {
	p := everyPhase(twoClusters(4, 100*ms, 100*ms))
	for _, tt := range []struct {
		kind  Kind
		bound olaf.Duration
		want  Tight
	}{
		{Fairness, 5 * ms, Tight{2 * ms, 19 * ms / 10}},
		{Fairness, 2*ms + 1, Tight{2 * ms, 19 * ms / 10}},
		{Fairness, 2 * ms, Tight{2 * ms, 19 * ms / 10}},
		{MaxPeak, 150 * ms, Tight{104 * ms, 1039 * ms / 10}},
		{MeanPeak, 104 * ms, Tight{104 * ms, 1039 * ms / 10}},
	} {
		p.Objective = Objective{Kind: tt.kind, Bound: tt.bound}
		if tt.kind == MeanPeak { // for one peak
			p.Horizon = 2
		}
		if got, err := Tighten(t.Context(), p, believer(t)); err != nil || got != tt.want {
			t.Errorf("%s within %v: %+v, %v; want %+v", tt.kind, tt.bound, got, err, tt.want)
		}
	}
	alone := everyPhase(twoClusters(4, 100*ms)) // with fixed and equal peaks, so that fairness cannot be tightened
	alone.Clusters = append(alone.Clusters, alone.Clusters[0])
	for u := range alone.Clusters {
		alone.Clusters[u].EveryPhase, alone.Clusters[u].PhaseLow, alone.Clusters[u].PhaseHigh = false, olaf.Duration(u)*ms*50, olaf.Duration(u)*ms*50
	}
	alone.Objective = Objective{Kind: Fairness, Bound: ms}
	if got, err := Tighten(t.Context(), alone, believer(t)); err != nil || got != (Tight{0, -1}) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, kind := range []Kind{LossFree, PerCluster} {
		if _, err := Tighten(t.Context(), Problem{Objective: Objective{Kind: kind}}, Options{}); err == nil || !strings.Contains(err.Error(), "tighten: the objective "+string(kind)+" has no single bound") {
			t.Error(err)
		}
	}
}

// TestAdmissionByProof checks that newcomers are accepted if there is room, and that otherwise the running clusters are
// shown to be fine without them.
func TestAdmissionByProof(t *testing.T) {
	running := everyPhase(twoClusters(6, 20*ms, 20*ms))
	for bound, want := range map[olaf.Duration]bool{23 * ms: false, 25 * ms: false, 26 * ms: true} {
		running.Objective = Objective{Kind: MaxPeak, Bound: bound}
		a, err := Admit(t.Context(), running, []Cluster{{Interval: 20 * ms, EveryPhase: true}}, believer(t))
		if err != nil || a.IsAccepted() != want {
			t.Fatalf("%v: %+v, %v", bound, a, err)
		}
		switch {
		case want:
			if a.Running != nil {
				t.Errorf("%v: %+v was asked for nothing", bound, a.Running)
			}
		case a.Running.Answer == Holds != (bound >= 24*ms):
			t.Errorf("%v: %s without the newcomer", bound, a.Running.Answer)
		}
	}
}

// TestRegionByProof checks that a region has a row for each value of its first axis, ascending, and a column for each
// of its second.
func TestRegionByProof(t *testing.T) {
	p := everyPhase(twoClusters(4, 100*ms, 100*ms))
	p.Objective.Kind = MaxPeak
	var axes []Axis
	for _, text := range []string{"bound=102ms..106ms/2", "service=1ms..4ms/3"} {
		a, err := ParseAxis(text)
		if err != nil {
			t.Fatal(err)
		}
		axes = append(axes, a)
	}
	r, err := Explore(t.Context(), p, axes, believer(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := `bound
106ms |  #  #  #  .
104ms |  #  #  .  .
102ms |  #  .  .  .
      +------------
       service from 1ms to 4ms
# holds   . violated   ? unknown   ~ assumptions contradict each other
`
	if diff := cmp.Diff(want, r.Plot()); diff != "" {
		t.Error(diff)
	}
	for i, point := range r.Points {
		bound, service := axes[0].Values[i/4], axes[1].Values[i%4]
		if !slices.Equal(point.Values, []AxisValue{bound, service}) || (point.Answer == Violated) != (point.Broken != "") {
			t.Errorf("point %d is at %v: %+v", i, point.Values, point)
		}
	}
}

// TestSolverValuesBecomePath checks that a solver's fractions of its unit are converted to a path, exactly to the last
// step and at both ends of every range.
func TestSolverValuesBecomePath(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Problem{Service: ms, Horizon: 3, Objective: Objective{Kind: LossFree}, Clusters: []Cluster{
			{Interval: 7 * ms, EveryPhase: true, Jitter: 2 * ms}, {Interval: 5 * ms, PhaseLow: ms, PhaseHigh: 3 * ms}, {Interval: 9 * ms, PhaseLow: 4 * ms, PhaseHigh: 4 * ms},
		}}.WithDefaults()
		m := build(&p)
		values := map[string]any{}
		draw := func(id string, lo, hi int64) *big.Rat { // in ms, the unit of a service of 1 ms
			of := rapid.SampledFrom([]int64{1, 2, 3, 7, 10, 64}).Draw(t, "part")
			v := big.NewRat(rapid.Int64Range(lo*of, hi*of).Draw(t, id), of)
			values[id] = v
			return v
		}
		phases := []*big.Rat{draw("phase.0", 0, 7), draw("phase.1", 1, 3), big.NewRat(4, 1)}
		if rapid.Bool().Draw(t, "left out") {
			delete(values, "phase.1")
			phases[1] = big.NewRat(1, 1)
		}
		jitter := []*big.Rat{draw("jitter.0.0", 0, 2), draw("jitter.0.1", 0, 2), draw("jitter.0.2", 0, 2)}
		path, err := m.pathOf(values)
		if err != nil {
			t.Fatal(err)
		}
		for u, interval := range []int64{7, 5, 9} {
			for k := range 3 {
				want := new(big.Rat).Add(phases[u], big.NewRat(int64(k)*interval, 1))
				if u == 0 {
					want.Add(want, jitter[k])
				}
				if got := big.NewRat(path.Arrivals[u][k], path.PerTick); got.Cmp(want) != 0 || !path.Sent[u][k] {
					t.Fatalf("update %d of %d at %v, sent %t; want %v", k, u, got, path.Sent[u][k], want)
				}
			}
		}
	})
	p := Problem{Service: ms, Horizon: 2, Objective: Objective{Kind: LossFree}, Clusters: []Cluster{{Interval: 5 * ms, PhaseLow: ms, PhaseHigh: 3 * ms, Jitter: ms}}}.WithDefaults()
	m := build(&p)
	for id, ends := range map[string][2]int64{"phase.0": {1, 3}, "jitter.0.0": {0, 1}, "jitter.0.1": {0, 1}} {
		little := big.NewRat(1, 1000)
		for v, good := range map[*big.Rat]bool{
			big.NewRat(ends[0], 1): true, big.NewRat(ends[1], 1): true,
			new(big.Rat).Sub(big.NewRat(ends[0], 1), little): false, new(big.Rat).Add(big.NewRat(ends[1], 1), little): false,
		} {
			if path, err := m.pathOf(map[string]any{id: v}); (err == nil) != good || !good && !strings.Contains(err.Error(), id+" = ") {
				t.Errorf("%s of %v: %+v, %v", id, v, path, err)
			}
		}
	}
	finest := p.finest()
	for of, good := range map[int64]bool{finest: true, finest + 1: false} {
		if path, err := m.pathOf(map[string]any{"jitter.0.0": big.NewRat(1, of)}); (err == nil) != good || !good && !strings.Contains(err.Error(), "need steps finer than 1/") {
			t.Errorf("a step of 1/%d: %+v, %v", of, path, err)
		}
	}
}

// TestRandomPathsStayInRange checks that drawn paths stay within the problem and reach both ends of every range, and
// compares the separation of two clusters with that of all pairs.
func TestRandomPathsStayInRange(t *testing.T) {
	p := Problem{Service: ms, Horizon: 3, Separation: ms / 2, Objective: Objective{Kind: LossFree}, Clusters: []Cluster{
		{Interval: 7 * ms, EveryPhase: true, Jitter: 2 * ms}, {Interval: 5 * ms, PhaseLow: ms, PhaseHigh: 3 * ms},
	}}.WithDefaults()
	rng := rand.New(rand.NewPCG(9, 9))
	phases, jitters := map[int64]bool{}, map[int64]bool{}
	apart := int64(p.Separation/p.tick()) * 2
	refused := 0
	for range 2000 {
		path := p.randomPath(rng, 2)
		if path == nil {
			refused++
			continue
		}
		nearestPair := int64(1) << 40
		for _, a := range path.Arrivals[0] {
			for _, b := range path.Arrivals[1] {
				nearestPair = min(nearestPair, max(a-b, b-a))
			}
		}
		if nearestPair < apart || nearest(path.Arrivals[0], path.Arrivals[1]) != nearestPair {
			t.Fatalf("%v come within %d of each other, of %d: %d", path.Arrivals, nearestPair, apart, nearest(path.Arrivals[0], path.Arrivals[1]))
		}
		for k, at := range path.Arrivals[1] {
			phases[at-int64(k)*20] = true // with 4 steps per millisecond
		}
		for _, at := range path.Arrivals[0] {
			jitters[at%28] = true
		}
	}
	for at := range int64(16) {
		if phases[at] != (at >= 4 && at <= 12) {
			t.Errorf("a phase of %d steps was drawn: %t", at, phases[at])
		}
	}
	if len(jitters) != 28 || refused == 0 || refused > 1500 {
		t.Errorf("%d of 28 offsets were drawn, %d of 2000 paths refused", len(jitters), refused)
	}
	for name, tt := range map[string]struct {
		arrivals [][]int64
		good     bool
	}{
		"in order": {[][]int64{{0, 1, 2}, {10, 11, 12}}, true}, "at once": {[][]int64{{0, 1, 1}, {10, 11, 12}}, false}, "swapped": {[][]int64{{0, 2, 1}, {10, 11, 12}}, false},
		"as far as demanded": {[][]int64{{0, 1, 2}, {4, 5, 6}}, true}, "nearer": {[][]int64{{0, 1, 2}, {3, 5, 6}}, false}, "nearer before": {[][]int64{{7, 8, 9}, {4, 5, 6}}, false},
		"behind": {[][]int64{{8, 9, 10}, {4, 5, 6}}, true},
	} {
		if got := p.allows(&Path{PerTick: 2, Arrivals: tt.arrivals}); got != tt.good {
			t.Errorf("%s: allowed %t", name, got)
		}
	}
}

// TestSendsAfterMatchesWorkerRule checks step by step that the age from which an update is sent follows the worker's
// rule.
func TestSendsAfterMatchesWorkerRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Control{DeltaT: olaf.Duration(rapid.Int64Range(1, 1000).Draw(t, "ms")) * ms, Active: rapid.IntRange(2, 40).Draw(t, "active"), Slope: rapid.SampledFrom([]tc.Slope{tc.Urgency, tc.Fairness}).Draw(t, "slope")}
		slots, draw := rapid.IntRange(1, c.Active-1).Draw(t, "slots"), rapid.IntRange(0, certain).Draw(t, "draw")
		rule := tc.Config{Threshold: c.DeltaT, Slope: c.Slope}
		p := func(age olaf.Duration) float64 {
			return rule.SendProbability(tc.Status{Active: uint32(c.Active), Slots: uint32(slots)}, age)
		}
		const near = 1e-9 // tolerance for sums in floating point
		want := float64(draw) / drawSteps
		age := c.sendsAfter(slots, draw)
		if got := p(age); got < want-near {
			t.Fatalf("after %v it is sent with %g, below the draw of %g", age, got, want)
		}
		if age == 0 {
			return
		}
		if got := p(age - c.step()); got >= want+near {
			t.Fatalf("a step before %v it is sent with %g already, for a draw of %g", age, got, want)
		}
	})
}

// TestMeanAoMIsAnArea compares the mean of a sawtooth with its area in thin slices.
func TestMeanAoMIsAnArea(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &Run{Path: &Path{Arrivals: [][]int64{{}}}, Deliveries: make([][]Delivery, 1)}
		at := int64(0)
		n := rapid.IntRange(2, 6).Draw(t, "deliveries")
		for k := range n {
			gen := at + rapid.Int64Range(0, 3).Draw(t, "pause")
			at = gen + rapid.Int64Range(1, 5).Draw(t, "delay")
			r.Path.Arrivals[0] = append(r.Path.Arrivals[0], gen)
			r.deliver(0, k, at)
		}
		d := r.Deliveries[0]
		area := big.NewRat(0, 1)
		for i := 1; i < n; i++ {
			for s := d[i-1].At; s < d[i].At; s++ { // the age in the middle of a step is its mean in that step
				area.Add(area, big.NewRat(2*(s-d[i-1].Generated)+1, 2))
			}
			if d[i].Peak != d[i].At-d[i-1].Generated {
				t.Fatalf("delivery %d: %+v", i, d[i])
			}
		}
		want := area.Quo(area, big.NewRat(d[n-1].At-d[0].At, 1))
		if got := meanAoM(d); got.Cmp(want) != 0 || d[0].Peak != 0 {
			t.Fatalf("%v, want %v: %v", got, want, d)
		}
	})
}
