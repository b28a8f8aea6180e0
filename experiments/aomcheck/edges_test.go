package aomcheck

import (
	"context"
	"errors"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
)

// TestScopeText checks that equal scopes have equal texts, with the singular for one cluster.
func TestScopeText(t *testing.T) {
	cluster := func(change func(*Cluster)) Cluster {
		c := Cluster{Interval: 100 * ms, EveryPhase: true}
		change(&c)
		return c
	}
	as := func(*Cluster) {}
	fixed := func(c *Cluster) { c.EveryPhase = false }
	for want, p := range map[string]Problem{
		"1 cluster, first 9 updates each, every phase, model engine":                                                    {Clusters: []Cluster{cluster(as)}},
		"2 clusters, first 9 updates each, every phase, model engine":                                                   {Clusters: []Cluster{cluster(as), cluster(as)}},
		"2 clusters, first 9 updates each, phases within their ranges, model engine":                                    {Clusters: []Cluster{cluster(as), cluster(fixed)}},
		"2 clusters, first 9 updates each, this arrival progression, model paper":                                       {Model: Paper, Clusters: []Cluster{cluster(fixed), cluster(fixed)}},
		"1 cluster, first 8 to 9 updates each, every phase, every jitter up to 1ps, model engine":                       {Clusters: []Cluster{cluster(func(c *Cluster) { c.Updates, c.Jitter = 8, 1 })}},
		"1 cluster, first 9 updates each, every phase, arrivals of different clusters at least 1ps apart, model engine": {Separation: 1, Clusters: []Cluster{cluster(as)}},
		"1 cluster, first 9 updates each, every phase, given send decisions, model engine":                              {Control: Control{Sends: SendsGiven}, Clusters: []Cluster{cluster(as)}},
		"1 cluster, first 9 updates each, every phase, free send decisions, model engine":                               {Control: Control{DeltaT: 1, Active: 9}, Clusters: []Cluster{cluster(as)}},
	} {
		p.Horizon = 9
		if p = p.WithDefaults(); p.Scope() != want {
			t.Errorf("%s, want %s", p.Scope(), want)
		}
	}
}

// TestNotesOfLimits checks that decisions stay free up to the limit of the longest cluster and no further, and that
// every change or omission has a note.
func TestNotesOfLimits(t *testing.T) {
	const (
		free   = "free wherever 0 < Ps < 1"
		drawn  = "decided up to 20 updates per cluster; for 21 they are drawn from seed 0"
		seeded = "follow the draws of seed 0"
		calm   = "never withholds an update here: 8 slots serve 8 active"
		given  = "send decisions are given"
		zeros  = "count as peaks of 0"
		spaced = "model paper: paths"
	)
	control := Control{DeltaT: 400 * ms, Active: 9}
	for name, tt := range map[string]struct {
		set  func(*Problem)
		want []string
	}{
		"nothing":              {func(*Problem) {}, nil},
		"at the limit":         {func(p *Problem) { p.Control = control }, []string{free}},
		"beyond it":            {func(p *Problem) { p.Control, p.Horizon = control, 21 }, []string{drawn, seeded}},
		"one cluster below it": {func(p *Problem) { p.Control, p.Horizon, p.Clusters[0].Updates = control, 21, 2 }, []string{drawn, seeded}},
		"seeded":               {func(p *Problem) { p.Control = control; p.Control.Sends = SendsSeeded }, []string{seeded}},
		"given": {func(p *Problem) {
			p.Control = control
			p.Control.Sends = SendsGiven
		}, []string{given}},
		"as many slots": {func(p *Problem) { p.Control, p.Horizon = Control{DeltaT: 1, Active: 8}, 21 }, []string{calm}},
		"all updates":   {func(p *Problem) { p.Objective.Mean = AllUpdates }, []string{zeros}},
		"paper":         {func(p *Problem) { p.Model = Paper }, []string{spaced}},
	} {
		p := twoClusters(FreeLimit, 100*ms, 100*ms)
		tt.set(&p)
		q, notes := p.WithDefaults().withinLimits()
		if (q.Control.Sends != p.WithDefaults().Control.Sends) != slices.Contains(tt.want, drawn) {
			t.Errorf("%s: decisions are %s", name, q.Control.Sends)
		}
		if len(notes) != len(tt.want) {
			t.Errorf("%s: %q, want %q", name, notes, tt.want)
			continue
		}
		for i, want := range tt.want {
			if !strings.Contains(notes[i], want) {
				t.Errorf("%s: %q, want %q", name, notes[i], want)
			}
		}
	}
}

// TestTwins checks which waits repeat, with one tick or many, also for an interval as long as a first phase.
func TestTwins(t *testing.T) {
	for name, tt := range map[string]struct {
		p    Problem
		want []int // the twin of each update of the first cluster
	}{
		"a tick":     {Problem{Service: ms, Clusters: []Cluster{{Interval: ms, EveryPhase: true}}}, []int{0, 1, 1, 2, 3}},
		"two alike":  {Problem{Service: ms, Clusters: []Cluster{{Interval: 4 * ms, EveryPhase: true}, {Interval: 4 * ms, EveryPhase: true}}}, []int{0, 1, 1, 2, 3}},
		"two to one": {Problem{Service: ms, Clusters: []Cluster{{Interval: 2 * ms, EveryPhase: true}, {Interval: 4 * ms, EveryPhase: true}}}, []int{0, 1, 2, 1, 2}},
		"one is short": {Problem{Service: ms, Clusters: []Cluster{{Interval: 4 * ms, EveryPhase: true}, {Interval: 4 * ms, EveryPhase: true, Updates: 3}}},
			[]int{0, 1, 1, 3, 4}},
		"a phase at its end": {Problem{Service: ms, Clusters: []Cluster{{Interval: 4 * ms, PhaseHigh: 3 * ms}, {Interval: 4 * ms}}}, []int{0, 1, 1, 2, 3}},
		"a phase beyond it":  {Problem{Service: ms, Clusters: []Cluster{{Interval: 4 * ms, PhaseHigh: 4 * ms}, {Interval: 4 * ms}}}, []int{0, 1, 2, 3, 4}},
		"a tick, from there": {Problem{Service: ms, Clusters: []Cluster{{Interval: ms, PhaseLow: ms, PhaseHigh: ms}}}, []int{0, 1, 2, 3, 4}},
		"jitter":             {Problem{Service: ms, Clusters: []Cluster{{Interval: 4 * ms, EveryPhase: true}, {Interval: 4 * ms, EveryPhase: true, Jitter: 1}}}, []int{0, 1, 2, 3, 4}},
		"hurried":            {Problem{Service: 3 * ms, Clusters: []Cluster{{Interval: 4 * ms, EveryPhase: true}, {Interval: 4 * ms, EveryPhase: true}}}, []int{0, 1, 2, 3, 4}},
	} {
		tt.p.Horizon, tt.p.Objective = 5, Objective{Kind: LossFree}
		p := tt.p.WithDefaults()
		m := build(&p)
		var got []int
		for k := range 5 {
			got = append(got, m.twin(0, k))
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// TestFinestStep checks that a step is as fine as 60 bits for a whole path allow.
func TestFinestStep(t *testing.T) {
	for _, p := range []Problem{
		{Service: ms, Clusters: []Cluster{{Interval: ms}}},
		{Service: ms, Clusters: []Cluster{{Interval: 3 * ms, PhaseHigh: 5 * ms, Jitter: 2 * ms}, {Interval: ms, Updates: 2}}},
		{Service: ms, Clusters: []Cluster{{Interval: ms, Updates: 2}, {Interval: 7 * ms, EveryPhase: true}}},
		{Service: 1, Clusters: []Cluster{{Interval: olaf.Hour}}},
	} {
		p = p.WithDefaults()
		longest := int64(0)
		for _, c := range p.Clusters {
			longest = max(longest, int64((c.PhaseHigh+c.Jitter+olaf.Duration(c.Updates)*c.Interval)/p.tick()))
		}
		n := p.finest()
		if longest*n > 1<<60 || longest*(n+1) <= 1<<60 {
			t.Errorf("%d steps of %v on a path of %d ticks", n, p.tick(), longest)
		}
	}
	p := Problem{Service: 1, Clusters: []Cluster{{Interval: olaf.Hour, Updates: 400}}}
	if n := p.finest(); n != 1 {
		t.Errorf("%d steps of the least time on a path that is too long", n)
	}
}

// found returns options that answer by simulation or give up, so that no solver is needed.
func found(t *testing.T) Options { return Options{Simulate: 50, Solvers: liar(t, "echo unknown")} }

// TestAdmitCountsNewcomers checks that newcomers count among the active workers, and that the running clusters are
// checked alone only if that is possible.
func TestAdmitCountsNewcomers(t *testing.T) {
	newcomers := []Cluster{{Name: "x", Interval: 100 * ms, EveryPhase: true}, {Name: "y", Interval: 100 * ms, EveryPhase: true}}
	violated := Objective{Kind: MaxPeak, Bound: 50 * ms}
	for name, tt := range map[string]struct {
		running   Problem
		objective Objective
		active    int
		blamed    bool // the running clusters are checked alone
	}{
		"two of two":              {everyPhase(twoClusters(4, 100*ms, 100*ms)), violated, 0, true},
		"two of ten":              {everyPhase(twoClusters(4, 100*ms, 100*ms)), violated, 10, true},
		"one":                     {everyPhase(twoClusters(4, 100*ms)), violated, 1, true},
		"none":                    {twoClusters(4), violated, 0, false},
		"one has nobody beside":   {everyPhase(twoClusters(4, 300*ms)), Objective{Kind: Fairness, Bound: ms}, 0, false},
		"two who are fair or not": {everyPhase(twoClusters(4, 300*ms, 300*ms)), Objective{Kind: Fairness, Bound: ms}, 0, true},
		"nobody knows":            {everyPhase(twoClusters(4, 100*ms, 100*ms)), Objective{Kind: MaxPeak, Bound: olaf.Second}, 0, false},
	} {
		tt.running.Objective, tt.running.Control.Active = tt.objective, tt.active
		a, err := Admit(t.Context(), tt.running, newcomers, found(t))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := tt.active + 2
		if tt.active == 0 {
			want = len(tt.running.Clusters) + 2
		}
		if got := a.Together.Problem.Control.Active; got != want || len(a.Together.Problem.Clusters) != len(tt.running.Clusters)+2 {
			t.Errorf("%s: %d clusters of which %d are active, want %d", name, len(a.Together.Problem.Clusters), got, want)
		}
		if (a.Running != nil) != tt.blamed || a.IsAccepted() {
			t.Errorf("%s: running alone %+v, accepted %t", name, a.Running, a.IsAccepted())
		}
	}
}

// TestRegionNamesUncheckedPoints checks that a region reports a note once and names points that cannot be checked, and
// that the progress callback may be nil.
func TestRegionNamesUncheckedPoints(t *testing.T) {
	p := everyPhase(twoClusters(4, 100*ms, 100*ms))
	p.Objective = Objective{Kind: MeanPeak, Bound: 50 * ms, Mean: AllUpdates}
	axis, err := ParseAxis("bound=1ms..4ms/3")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Explore(t.Context(), p, []Axis{axis}, found(t), nil)
	if err != nil || len(r.Points) != 4 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "peaks of 0") {
		t.Errorf("%+v, %v", r, err)
	}
	for _, point := range r.Points {
		if point.Answer != Violated || point.Solver != "simulation" || !strings.Contains(point.Broken, "has a mean peak AoM of") {
			t.Errorf("%+v", point)
		}
	}
	for axes, want := range map[string]string{"slots=65536,65537": "at slots=65537: ", "jitter=1ms,3601s": "at jitter=3601s: ", "interval.2=1ms,7000s": "at interval.2=7000s: "} {
		axis, err := ParseAxis(axes)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Explore(t.Context(), p, []Axis{axis}, found(t), nil)
		if r != nil || !errors.Is(err, ErrProblem) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %+v, %v", axes, r, err)
		}
	}
}

// TestAxesReach checks that an axis names one cluster or all, and that its range has a countable length.
func TestAxesReach(t *testing.T) {
	for name, want := range map[string][]olaf.Duration{"interval": {ms, ms, ms}, "interval.1": {ms, 20 * ms, 30 * ms}, "interval.2": {10 * ms, ms, 30 * ms}, "interval.3": {10 * ms, 20 * ms, ms}} {
		got, err := twoClusters(4, 10*ms, 20*ms, 30*ms).With(name, "1ms")
		if err != nil {
			t.Fatal(err)
		}
		for u, c := range got.Clusters {
			if c.Interval != want[u] || c.Jitter != 0 {
				t.Errorf("%s: cluster %d sends every %v, want %v", name, u, c.Interval, want[u])
			}
		}
	}
	if _, err := twoClusters(4, 10*ms, 20*ms).With("jitter.3", "1ms"); err == nil || !strings.Contains(err.Error(), "there are 2 clusters") {
		t.Error(err)
	}
	for _, text := range []string{"bound=-9223372036854775808ps:9223372036854775807ps:2", "bound=0ps:4611686018427387904ps:2", "bound=0ps:-1ps:2", "bound=0ps:0ps:2"} {
		if a, err := ParseAxis(text); !errors.Is(err, ErrProblem) {
			t.Errorf("%s: %v, %v", text, a.Values, err)
		}
	}
	a, err := ParseAxis("bound=0ps:4611686018427387903ps:2")
	if err != nil || a.Values[1] != AxisValue(4611686018427387903/olaf.Microsecond*olaf.Microsecond) {
		t.Errorf("%v, %v", a.Values, err)
	}
}

// TestClustersKeyMakesAList checks that the key makes a list of clusters, not a cluster's name.
func TestClustersKeyMakesAList(t *testing.T) {
	got, err := ParseClusters([]byte("name: clusters\ninterval: 70ms\n"))
	if err != nil || len(got) != 1 || got[0].Name != "clusters" {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestStoppedIsNotUnknown checks that a cancelled search returns an error and no answer, before the first question and
// before the second.
func TestStoppedIsNotUnknown(t *testing.T) {
	p := everyPhase(twoClusters(5, 100*ms, 100*ms))
	p.Objective.Bound = 5 * ms
	for _, at := range []string{"asking liar", "proved it"} {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		v, err := Verify(ctx, p, Options{Solvers: liar(t, "echo unsat"), Progress: func(line string) {
			if strings.Contains(line, at) {
				stop()
			}
		}})
		if !errors.Is(err, context.Canceled) || v != nil && v.Answer == Holds {
			t.Errorf("stopped at %q: %+v, %v", at, v, err)
		}
	}
}

// TestTightenReportsNoUnknownBound checks that no violated bound is reported if none was found.
func TestTightenReportsNoUnknownBound(t *testing.T) {
	p := everyPhase(twoClusters(4, 100*ms, 100*ms))
	for kind, bound := range map[Kind]olaf.Duration{Fairness: ms, MaxPeak: olaf.Second, MeanPeak: olaf.Second} {
		p.Objective = Objective{Kind: kind, Bound: bound}
		got, err := Tighten(t.Context(), p, Options{Solvers: liar(t, "echo unknown"), Dump: func([]byte) error { return errors.New("nobody keeps the steps") }})
		if want := (Tight{Proved: bound, Violated: -1}); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", kind, got, err, want)
		}
	}
	p.Service, p.Objective = 19, Objective{Kind: Fairness, Bound: 2} // steps of a picosecond, of which the first is 0
	asked := 0
	if got, err := Tighten(t.Context(), p, Options{Solvers: liar(t, "echo unknown"), Progress: func(string) { asked++ }}); err != nil || got.Proved != 2 || asked != 2 {
		t.Errorf("%+v after %d questions, %v", got, asked, err)
	}
}

// TestOnlySwappableUpdatesAreOrdered checks that exactly those updates are constrained in order that jitter could swap.
func TestOnlySwappableUpdatesAreOrdered(t *testing.T) {
	for jitter, want := range map[olaf.Duration][]string{0: nil, 2*ms - 1: nil, 2 * ms: {"in order u=0 k=1", "in order u=0 k=2"}} {
		p := Problem{Service: ms, Horizon: 3, Objective: Objective{Kind: LossFree}, Clusters: []Cluster{{Interval: 2 * ms, EveryPhase: true, Jitter: jitter}}}
		p = p.WithDefaults()
		text := string(build(&p).text())
		for _, line := range want {
			if !strings.Contains(text, line) {
				t.Errorf("jitter of %v: no %q", jitter, line)
			}
		}
		if n := strings.Count(text, "in order u="); n != len(want) {
			t.Errorf("jitter of %v: %d are asked for, want %d", jitter, n, len(want))
		}
	}
}

// TestPlotWindow checks the drawn part of a run: everything up to fourteen deliveries of a cluster, else a part around
// the worst peak, within the run.
func TestPlotWindow(t *testing.T) {
	run := func(worst int, at ...int64) *Run {
		r := &Run{Deliveries: [][]Delivery{{}, {}}}
		for i, a := range at {
			r.Deliveries[1] = append(r.Deliveries[1], Delivery{At: a, Peak: 5})
			if i == worst {
				r.Deliveries[1][i].Peak = 6
			}
		}
		return r
	}
	every := func(n int) (at []int64) {
		for i := range n {
			at = append(at, int64(10*(i+1)))
		}
		return at
	}
	for _, tt := range []struct {
		name string
		r    *Run
		want window
	}{
		{"nothing", run(0), window{0, 1}},
		{"one delivery", run(0, 7), window{0, 7}},
		{"fourteen", run(9, every(14)...), window{0, 140}},
		{"fifteen, the first is worst", run(0, every(15)...), window{0, 140}},
		{"fifteen, the last is worst", run(14, every(15)...), window{10, 150}},
		{"thirty, the middle is worst", run(14, every(30)...), window{80, 220}},
		{"thirty, the eighth is worst", run(7, every(30)...), window{10, 150}},
		{"thirty, alike", run(-1, every(30)...), window{0, 140}},
	} {
		if got := tt.r.widest(); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

// TestPointsOfRegions checks the maximum number of points of a region for every grammar and number of axes.
func TestPointsOfRegions(t *testing.T) {
	p := everyPhase(twoClusters(4, 100*ms, 100*ms))
	p.Objective = Objective{Kind: MaxPeak, Bound: 50 * ms}
	const most = "2500"
	for axes, want := range map[string]string{
		"bound=1ms..2501ms:1ms":                         "vary bound: 2501 values; at most " + most + " are verified in one region",
		"bound=1ms:2501ms:2501":                         "is no number of steps from 2 to " + most,
		"bound=1ms..50ms:1ms service=1us..51us:1us":     "vary: 2550 points; at most " + most + " are verified in one region",
		"bound=1ms..50ms:1ms service=1us..50us:1us":     "",
		"bound=1ms..2500ms:1ms":                         "",
		"bound=1ms,2ms slots=1..2 service=1ms..2ms:1ms": "vary: one or two parameters can be varied at once",
		"interval.3=1ms,2ms":                            "vary interval.3: there are 2 clusters",
		"interval.2=1ms,2ms":                            "",
	} {
		var parsed []Axis
		var err error
		for text := range strings.FieldsSeq(axes) {
			var a Axis
			if a, err = ParseAxis(text); err != nil {
				break
			}
			parsed = append(parsed, a)
		}
		ctx, stop := context.WithCancel(t.Context())
		if stop(); err == nil { // Explore stops at once: only the size is checked
			_, err = Explore(ctx, p, parsed, Options{Solvers: liar(t, "echo unknown")}, nil)
		}
		if want == "" && !errors.Is(err, context.Canceled) || want != "" && (!errors.Is(err, ErrProblem) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", axes, err, want)
		}
	}
}

// TestLongestPath checks that the longest path in picoseconds that fits into 64 bits is accepted, and that negative
// jitter is rejected.
func TestLongestPath(t *testing.T) {
	for bound, good := range map[olaf.Duration]bool{maxSpan / 4: true, maxSpan/4 + 1: false} {
		p := Problem{Service: 1, Horizon: 2, Objective: Objective{Kind: Fairness, Bound: bound}, Clusters: []Cluster{{Interval: 5, EveryPhase: true}, {Interval: 5, EveryPhase: true}}}.WithDefaults()
		if err := p.Validate(); (err == nil) != good || !good && !strings.Contains(err.Error(), "in steps of 1ps is too long") {
			t.Errorf("%d: %v", bound, err)
		}
	}
	p := Problem{Service: 1, Horizon: 2, Objective: Objective{Kind: LossFree}, Clusters: []Cluster{{Interval: 5, Jitter: 3, EveryPhase: true}}}.WithDefaults()
	m := build(&p)
	for value, good := range map[int64]bool{-1: false, 0: true, 3: true, 4: false} {
		if path, err := m.pathOf(map[string]any{"jitter.0.1": big.NewRat(value, 1)}); (err == nil) != good || good && path.Arrivals[0][1] != 5+value {
			t.Errorf("jitter of %d ps: %+v, %v", value, path, err)
		}
	}
}

// TestPlotHeight checks that a drawing's height is the greatest age within it.
func TestPlotHeight(t *testing.T) {
	p := Problem{Service: ms, Objective: Objective{Kind: LossFree}, Clusters: []Cluster{{Name: "often", Interval: 10 * ms}, {Name: "once", Interval: 10 * ms}}}.WithDefaults()
	r := &Run{Path: &Path{PerTick: 1, Arrivals: [][]int64{{}, {0}}}, Deliveries: make([][]Delivery, 2)}
	for k := range 30 {
		at := int64(10 * (k + 1))
		if k == 5 {
			at += 3
		}
		r.Path.Arrivals[0] = append(r.Path.Arrivals[0], at-2)
		r.deliver(0, k, at)
	}
	r.deliver(1, 0, 290)
	top := p.span(r, 290).String()
	if text := p.Plot(r); strings.Contains(text, top+" |") || !strings.Contains(text, Tidy(p.span(r, 15))+" |") {
		t.Errorf("drawn to a height of %s:\n%s", top, text)
	}
}

// TestCountsInFiles checks that every field that counts accepts 1 and rejects 0.
func TestCountsInFiles(t *testing.T) {
	for field, of := range map[string]func(Problem) int{
		"slots: %s": func(p Problem) int { return p.Slots }, "horizon: %s": func(p Problem) int { return p.Horizon },
		"clusters: [{updates: %s}]": func(p Problem) int { return p.Clusters[0].Updates },
	} {
		for text, want := range map[string]int{"1": 1, "2": 2, "65537": 65537} {
			if p, err := ParseFile([]byte(strings.Replace(field, "%s", text, 1))); err != nil || of(p) != want {
				t.Errorf("%s of %s: %+v, %v", field, text, p, err)
			}
		}
		for _, text := range []string{"0", "-1", "x", "1.5", "''"} {
			if p, err := ParseFile([]byte(strings.Replace(field, "%s", text, 1))); !errors.Is(err, ErrFile) {
				t.Errorf("%s of %s: %+v, %v", field, text, p, err)
			}
		}
	}
}

// TestStarvingClusters checks that only a cluster without a bound may starve, and none in a comparison.
func TestStarvingClusters(t *testing.T) {
	run := &Run{Path: &Path{PerTick: 1, Arrivals: [][]int64{{0, 10, 20}, {0, 10, 20}}}, Fates: [][]Fate{{Queued, Queued, Queued}, {Queued, Unsent, Unsent}}, Deliveries: make([][]Delivery, 2)}
	for k := range 3 {
		run.deliver(0, k, int64(10*k+1))
	}
	run.deliver(1, 0, 5)
	const starved = "c2 is starved: it delivers 1 frames"
	for name, tt := range map[string]struct {
		o            Objective
		peak, mean   olaf.Duration // of the second cluster
		broken       string
		wholeAboveOf olaf.Duration // the first cluster's bound on its peak
	}{
		"nothing":             {o: Objective{Kind: PerCluster}},
		"a peak":              {o: Objective{Kind: PerCluster}, peak: ms, broken: starved},
		"a mean":              {o: Objective{Kind: PerCluster}, mean: ms, broken: starved},
		"a peak of all":       {o: Objective{Kind: MaxPeak, Bound: 50 * ms}, broken: starved},
		"a mean of all":       {o: Objective{Kind: MeanPeak, Bound: 50 * ms}, broken: starved},
		"fairness":            {o: Objective{Kind: Fairness, Bound: 50 * ms}, broken: starved},
		"fairness of nothing": {o: Objective{Kind: Fairness}, broken: starved},
		"no loss":             {o: Objective{Kind: LossFree}},
		"the first's peak":    {o: Objective{Kind: PerCluster}, wholeAboveOf: 10 * ms, broken: "c1 has a peak AoM of 11ms at 11ms, above 10ms"},
		"its very peak":       {o: Objective{Kind: PerCluster}, wholeAboveOf: 11 * ms},
	} {
		p := twoClusters(3, 10*ms, 10*ms)
		p.Service, p.Objective, p.Clusters[1].MaxPeak, p.Clusters[1].Mean, p.Clusters[0].MaxPeak = ms, tt.o, tt.peak, tt.mean, tt.wholeAboveOf
		p = p.WithDefaults()
		p.Clusters[1].PhaseLow, p.Clusters[1].PhaseHigh = 0, 0
		want := []string{tt.broken}
		if tt.broken == "" {
			want = nil
		}
		if got := p.Judge(run); !slices.Equal(got.Broken, want) || got.Clusters[1].Delivered != 1 || got.Clusters[1].Sent != 1 || got.Clusters[1].MeanPeak != nil || *got.Clusters[0].MaxPeak != 11*ms {
			t.Errorf("%s: %q, want %q; %+v", name, got.Broken, want, got.Clusters)
		}
	}
}

// TestWitnessIsOnePath checks that a witness is one path: every arrival and every open decision is pinned.
func TestWitnessIsOnePath(t *testing.T) {
	for sends, want := range map[Sends]int{SendsFree: 4, SendsSeeded: 4, SendsGiven: 0} {
		p := everyPhase(twoClusters(3, 10*ms, 10*ms))
		p.Control = Control{DeltaT: 20 * ms, Active: 16, Sends: sends}
		for u := range p.Clusters {
			p.Clusters[u].Sends = []bool{true, true, false}
		}
		p = p.WithDefaults()
		path := p.findPath()
		run, err := p.Replay(path, rand.New(rand.NewPCG(1, 1)))
		if err != nil {
			t.Fatal(err)
		}
		m := build(&p).fork()
		m.pin(run)
		text := string(m.text())
		if arrivals, decisions := strings.Count(text, "witness arrival u="), strings.Count(text, "witness decision u="); arrivals != 6 || decisions != want {
			t.Errorf("%s: %d arrivals and %d decisions are pinned, want 6 and %d", sends, arrivals, decisions, want)
		}
	}
}
