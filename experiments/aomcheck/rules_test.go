package aomcheck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/tc"
)

// TestTimesAreMultiplesOfTick checks that every time of a problem is a multiple of its tick, including the control's if
// it decides.
func TestTimesAreMultiplesOfTick(t *testing.T) {
	free := Control{DeltaT: 400 * ms, Active: 16}
	for name, tt := range map[string]struct {
		set  func(*Problem)
		tick olaf.Duration
	}{
		"none":                       {func(*Problem) {}, ms},
		"service":                    {func(p *Problem) { p.Service += 7 }, 1},
		"separation":                 {func(p *Problem) { p.Separation += 7 }, 1},
		"bound":                      {func(p *Problem) { p.Objective.Bound += 7 }, 1},
		"ack delay":                  {func(p *Problem) { p.Control.AckDelay += 7 }, 1},
		"interval":                   {func(p *Problem) { p.Clusters[1].Interval += 7 }, 1},
		"jitter":                     {func(p *Problem) { p.Clusters[1].Jitter += 7 }, 1},
		"phase low":                  {func(p *Problem) { p.Clusters[1].PhaseLow += 7 }, 1},
		"phase high":                 {func(p *Problem) { p.Clusters[1].PhaseHigh += 7 }, 1},
		"peak":                       {func(p *Problem) { p.Clusters[1].MaxPeak += 7 }, 1},
		"mean":                       {func(p *Problem) { p.Clusters[1].Mean += 7 }, 1},
		"threshold of no control":    {func(p *Problem) { p.Control.DeltaT = 400*ms + 7 }, ms},
		"threshold":                  {func(p *Problem) { p.Control = free; p.Control.DeltaT += 7000 }, 1},
		"a thousandth of it":         {func(p *Problem) { p.Control = free }, ms / 5},
		"threshold of given choices": {func(p *Problem) { p.Control = free; p.Control.Sends, p.Control.DeltaT = SendsGiven, 400*ms+7 }, ms},
	} {
		p := twoClusters(4, 100*ms, 100*ms)
		p.Objective.Bound = ms
		tt.set(&p)
		p = p.WithDefaults()
		if got := p.tick(); got != tt.tick {
			t.Errorf("%s: %v, want %v", name, got, tt.tick)
		}
	}
}

// TestDefaultsOfProblems checks that defaults are set, given values kept, and the given problem not changed.
func TestDefaultsOfProblems(t *testing.T) {
	given := Problem{Clusters: []Cluster{{Interval: 5, EveryPhase: true}, {Interval: 7, PhaseHigh: 3}}}
	p := given.WithDefaults()
	if p.Model != Engine || p.Slots != 8 || p.Horizon != 20 || p.Objective.Mean != Departed || p.Control.Slope != tc.Urgency || p.Control.Sends != SendsFree || p.Control.Active != 2 {
		t.Errorf("%+v", p)
	}
	if fmt.Sprint(p.Clusters) != fmt.Sprint([]Cluster{{Name: "c1", Interval: 5, PhaseHigh: 5, EveryPhase: true, Updates: 20}, {Name: "c2", Interval: 7, PhaseHigh: 3, Updates: 20}}) || given.Clusters[0].Name != "" {
		t.Errorf("%+v", p.Clusters)
	}
	own := Problem{
		Model: Paper, Slots: 1, Horizon: 2, Objective: Objective{Mean: AllUpdates}, Control: Control{Slope: tc.Fairness, Sends: SendsGiven, Active: 1},
		Clusters: []Cluster{{Name: "x", Updates: 1}},
	}
	if p := own.WithDefaults(); fmt.Sprint(p) != fmt.Sprint(own) {
		t.Errorf("%+v, want %+v", p, own)
	}
}

// TestScriptUnit checks that a script uses a readable unit for the service time.
func TestScriptUnit(t *testing.T) {
	for service, want := range map[olaf.Duration]string{
		1: "ps 1", olaf.Nanosecond - 1: "ps 1", olaf.Nanosecond: "ns 1000", olaf.Microsecond - 1: "ns 1000", olaf.Microsecond: "us 1000000", ms - 1: "us 1000000", ms: "ms 1000000000", olaf.Second - 1: "ms 1000000000", olaf.Second: "s 1000000000000", 2 * olaf.Second: "s 1000000000000",
	} {
		p := Problem{Service: service, Clusters: []Cluster{{Name: "x", Interval: olaf.Hour}}, Objective: Objective{Kind: LossFree}}.WithDefaults()
		s := newScript(&p, p.tick())
		if got := fmt.Sprint(s.Unit, " ", s.UnitPS); got != want || s.TickPS != int64(p.tick()) || len(s.Title) != 4 || !strings.Contains(s.Title[3], "u=0 is x: every 3600s") {
			t.Errorf("%v: %s, want %s; %q", service, got, want, s.Title)
		}
	}
}

// TestPrintedEquationsByHand checks the printed equations on paths that can be followed by hand: presence, overtaking,
// loss, and the distance of departures. A service takes 10 steps.
func TestPrintedEquationsByHand(t *testing.T) {
	for name, tt := range map[string]struct {
		model    Model
		slots    int
		arrivals [][]int64
		sent     string // for all updates
		fates    string
		left     string
		fault    string
	}{
		"alone, without own service":      {Paper, 8, [][]int64{{0, 100}}, "11", "[[queued queued]]", "[[0 100]]", ""},
		"alone, with it":                  {PaperService, 8, [][]int64{{0, 100}}, "11", "[[queued queued]]", "[[10 110]]", ""},
		"overtaken at its departure":      {PaperService, 8, [][]int64{{0, 10, 30}}, "111", "[[merged queued queued]]", "[[20 40]]", ""},
		"a step before it":                {PaperService, 8, [][]int64{{0, 11, 30}}, "111", "[[queued queued queued]]", "[[10 21 40]]", ""},
		"overtaken by one that is unsent": {PaperService, 8, [][]int64{{0, 5, 30}}, "101", "[[queued unsent queued]]", "[[10 40]]", ""},
		"behind somebody who is there":    {PaperService, 8, [][]int64{{0, 100}, {9, 109}}, "1111", "[[queued queued] [queued queued]]", "[[10 110] [29 129]]", ""},
		"who leaves at that instant":      {PaperService, 8, [][]int64{{0, 100}, {10, 110}}, "1111", "[[queued queued] [queued queued]]", "[[10 110] [20 120]]", ""},
		"who comes at that instant":       {PaperService, 8, [][]int64{{0, 100}, {0, 100}}, "1111", "[[queued queued] [queued queued]]", "[[10 110] [10 110]]", "departures of c1 and c2 are less than p/C apart"},
		"a service apart":                 {Paper, 8, [][]int64{{0, 100}, {10, 110}}, "1111", "[[queued queued] [queued queued]]", "[[0 100] [10 110]]", ""},
		"a step less":                     {Paper, 8, [][]int64{{0, 100}, {9, 109}}, "1111", "[[queued queued] [queued queued]]", "[[0 100] [9 109]]", "departures of c1 and c2 are less than p/C apart"},
		"a step less, the other first":    {Paper, 8, [][]int64{{9, 109}, {0, 100}}, "1111", "[[queued queued] [queued queued]]", "[[9 109] [0 100]]", "departures of c1 and c2 are less than p/C apart"},
		"a full queue":                    {PaperService, 1, [][]int64{{0, 100}, {9, 109}}, "1111", "[[queued queued] [lost lost]]", "[[10 110] [29 129]]", ""},
		"one slot more":                   {PaperService, 2, [][]int64{{0, 100}, {9, 109}}, "1111", "[[queued queued] [queued queued]]", "[[10 110] [29 129]]", ""},
	} {
		p := Problem{Model: tt.model, Service: 10, Slots: tt.slots, Horizon: len(tt.arrivals[0]), Objective: Objective{Kind: LossFree}}
		path := &Path{PerTick: 1, Arrivals: tt.arrivals}
		sent := tt.sent
		for range tt.arrivals {
			p.Clusters = append(p.Clusters, Cluster{Interval: 1000})
			var own []bool
			for range tt.arrivals[0] {
				own, sent = append(own, sent[0] == '1'), sent[1:]
			}
			path.Sent = append(path.Sent, own)
		}
		p = p.WithDefaults()
		path.PerTick = 10 / int64(p.Service/p.tick())
		run, err := p.Evaluate(path)
		if fmt.Sprint(err) != cmp.Or(tt.fault, "<nil>") {
			t.Errorf("%s: %v", name, err)
		}
		var left [][]int64
		for _, d := range run.Deliveries {
			var own []int64
			for _, one := range d {
				own = append(own, one.At)
			}
			left = append(left, own)
		}
		if fmt.Sprint(run.Fates) != tt.fates || fmt.Sprint(left) != tt.left {
			t.Errorf("%s: %v leave at %v, want %s at %s", name, run.Fates, left, tt.fates, tt.left)
		}
	}
}

// TestDecisionsOfAPath checks that a worker may keep an update back while its last ACK is younger than the age at which
// Ps reaches 1, and must send at that age, before any ACK, and without throttling.
func TestDecisionsOfAPath(t *testing.T) {
	for name, tt := range map[string]struct {
		second int64 // arrival of the second update in ms; the first, at 0, leaves at 1, and its ACK arrives at 3
		active int
		legal  bool
	}{
		"before the ACK": {2, 16, false}, "with the ACK": {3, 16, true}, "young": {5, 16, true}, "a step before": {412, 16, true}, "old enough": {2000, 16, false}, "not throttled": {5, 1, false},
	} {
		p := Problem{Service: ms, Slots: 4, Horizon: 2, Control: Control{DeltaT: 400 * ms, Active: tt.active, AckDelay: 2 * ms, Slope: tc.Urgency}, Objective: Objective{Kind: LossFree}, Clusters: []Cluster{{Interval: olaf.Second}}}.WithDefaults()
		per := int64(ms / p.tick())
		path := &Path{PerTick: 1, Arrivals: [][]int64{{0, tt.second * per}}, Sent: [][]bool{{true, false}}}
		run, err := p.Replay(path, nil)
		switch {
		case tt.active == 1: // the path's decisions are not used
			if err != nil || run.Fates[0][1] == Unsent {
				t.Errorf("%s: %+v, %v", name, run, err)
			}
		case (err == nil) != tt.legal || err == nil && run.Fates[0][1] != Unsent:
			t.Errorf("%s: %+v, %v", name, run, err)
		}
	}
	p := Problem{Service: ms, Slots: 4, Horizon: 2, Control: Control{DeltaT: 400 * ms, Active: 16, AckDelay: 2 * ms}, Objective: Objective{Kind: LossFree}, Clusters: []Cluster{{Interval: olaf.Second}}}.WithDefaults()
	age := p.Control.sendsAfter(4, certain)
	for late, legal := range map[olaf.Duration]bool{-p.tick(): true, 0: false} {
		path := &Path{PerTick: 1, Arrivals: [][]int64{{0, int64((3*ms + age + late) / p.tick())}}, Sent: [][]bool{{true, false}}}
		if _, err := p.Replay(path, nil); (err == nil) != legal {
			t.Errorf("%v after the age of certainty: %v", late, err)
		}
	}
}

// TestDrawsOfASeed checks that draws are thousandths, equal for equal seeds and different for another cluster.
func TestDrawsOfASeed(t *testing.T) {
	p := everyPhase(twoClusters(2000, 100*ms, 100*ms))
	p.Control = Control{DeltaT: 400 * ms, Active: 16, Sends: SendsSeeded, Seed: 5}
	p = p.WithDefaults()
	a, b := p.Draws(0), p.Draws(1)
	if len(a) != 2000 || slices.Equal(a, b) || !slices.Equal(a, p.Draws(0)) || slices.Min(a) < 0 || slices.Min(a) > 9 || slices.Max(a) > 999 || slices.Max(a) < 990 {
		t.Errorf("%d draws from %d to %d", len(a), slices.Min(a), slices.Max(a))
	}
	p.Control.Sends = SendsFree
	if d := p.Draws(0); d != nil {
		t.Errorf("free decisions are drawn: %d", d[0])
	}
}

// TestSolverWays checks the named ways of asking solvers, and that any other name changes nothing.
func TestSolverWays(t *testing.T) {
	if got := Ways(); !slices.Equal(got, []string{"portfolio", "both", "z3", "cvc5"}) {
		t.Errorf("%v", got)
	}
	for way, want := range map[string]string{"portfolio": "z3 and cvc5 false", "both": "z3 and cvc5 true", "z3": "z3 false", "cvc5": "cvc5 false"} {
		o := Options{Agree: way != "both"}
		o.Ask(way)
		if o = o.withDefaults(); fmt.Sprint(names(o.Solvers), " ", o.Agree) != want || o.Limit <= 0 {
			t.Errorf("%s: %s, agree %t, %v", way, names(o.Solvers), o.Agree, o.Limit)
		}
	}
	o := Options{Solvers: liar(t, "echo sat"), Agree: true}
	if o.Ask("best"); len(o.Solvers) != 1 || !o.Agree {
		t.Errorf("%+v", o)
	}
}

// TestSearchStops checks that a cancelled search finds nothing, and that a complete one finds what one path in a
// hundred shows.
func TestSearchStops(t *testing.T) {
	p := everyPhase(twoClusters(4, 100*ms, 100*ms))
	p.Objective = Objective{Kind: MaxPeak, Bound: 50 * ms}
	v := &Verdict{Problem: p.WithDefaults()}
	ctx, stop := context.WithCancel(t.Context())
	if run, err := v.search(ctx, 5); err != nil || run == nil {
		t.Errorf("%+v, %v", run, err)
	}
	if run, err := v.search(ctx, 0); err != nil || run != nil {
		t.Errorf("%+v, %v", run, err)
	}
	stop()
	if run, err := v.search(ctx, 5); err != nil || run != nil {
		t.Errorf("%+v, %v", run, err)
	}
	v.Problem.Slots = -1
	if run, err := v.search(t.Context(), 5); err == nil {
		t.Errorf("%+v", run)
	}
	impossible := twoClusters(3, 10*ms, 10*ms)
	impossible.Separation, impossible.Clusters[1].PhaseLow, impossible.Clusters[1].PhaseHigh = 9*ms, ms, ms
	impossible = impossible.WithDefaults()
	if path := impossible.findPath(); path != nil || impossible.RandomPath(rand.New(rand.NewPCG(1, 1))) != nil {
		t.Errorf("%+v", path)
	}
}

// TestDumpErrorsEndVerification checks that an error of a dump ends the verification before a solver is asked, and that
// a violation found by simulation is dumped, too.
func TestDumpErrorsEndVerification(t *testing.T) {
	p := everyPhase(twoClusters(4, 100*ms, 100*ms))
	p.Objective = Objective{Kind: MaxPeak, Bound: 50 * ms}
	full := errors.New("no room")
	for _, simulate := range []int{0, 5} {
		opt := Options{Simulate: simulate, Solvers: liar(t, "kill -9 $$"), Dump: func([]byte) error { return full }}
		if v, err := Verify(t.Context(), p, opt); !errors.Is(err, full) {
			t.Errorf("%+v, %v", v, err)
		}
	}
	size := 0
	v, err := Verify(t.Context(), p, Options{Simulate: 5, Solvers: liar(t, "kill -9 $$"), Dump: func(text []byte) error { size = len(text); return nil }})
	if err != nil || v.Answer != Violated || v.Solver != "simulation" || v.Script.Bytes != size || size == 0 || v.Script.Variables == 0 || v.Script.Assertions == 0 || v.Wall <= 0 || v.Counterexample == nil || len(v.Judgement.Broken) == 0 {
		t.Errorf("%+v, %v; %d bytes", v, err, size)
	}
}

// TestBoundOfOneIsValid checks that 1 is a valid bound of a cluster.
func TestBoundOfOneIsValid(t *testing.T) {
	for name, set := range map[string]func(*Cluster){"peak": func(c *Cluster) { c.MaxPeak = 1 }, "mean": func(c *Cluster) { c.Mean = 1 }} {
		p := everyPhase(twoClusters(4, 100*ms, 100*ms))
		p.Objective = Objective{Kind: PerCluster}
		set(&p.Clusters[1])
		v, err := Verify(t.Context(), p, found(t))
		if err != nil || v.Answer != Violated || len(v.Judgement.Broken) != 1 || !strings.Contains(v.Judgement.Broken[0], "c2 has a ") || !strings.HasSuffix(v.Judgement.Broken[0], "above 1ps") {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
	}
}
