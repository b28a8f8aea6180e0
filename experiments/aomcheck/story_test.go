package aomcheck

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/tc"
	"github.com/olafctl/olaf/internal/test/golden"
)

// drawn returns the problems for these tests: small ones of every model, objective and control.
func drawn(n int) (problems []Problem) {
	rng := rand.New(rand.NewPCG(14, 14))
	for i := range n {
		p := randomProblem(rng, []Model{Engine, Paper, PaperService}[i%3])
		if i%7 == 6 && p.Throttles() { // decisions are given: the first update of each cluster is sent
			p.Control.Sends = SendsGiven
			for u := range p.Clusters {
				for k := range p.Clusters[u].Updates {
					p.Clusters[u].Sends = append(p.Clusters[u].Sends, k == 0 || rng.IntN(3) > 0)
				}
			}
		}
		if i%5 == 4 {
			p.Control.Slope = tc.Fairness
		}
		problems = append(problems, p)
	}
	return problems
}

// TestScripts compares the solvers' input with golden files: two scripts in full, the others by size and digest.
func TestScripts(t *testing.T) {
	var b bytes.Buffer
	long := everyPhase(twoClusters(5, 100*ms, 100*ms)).WithDefaults() // waits repeat
	calm := everyPhase(twoClusters(12, 40*ms, 60*ms)).WithDefaults()
	calm.Objective = Objective{Kind: PerCluster, Mean: Departed}
	calm.Clusters[0].MaxPeak, calm.Clusters[1].Mean = 50*ms, 70*ms
	full := everyPhase(twoClusters(4, 3*ms, 4*ms, 5*ms, 3*ms)).WithDefaults()
	full.Service, full.Slots, full.Objective = 2*ms, 2, Objective{Kind: LossFree, Mean: Departed}
	close := everyPhase(twoClusters(4, 7*ms, 7*ms)).WithDefaults() // jitter alone makes it congested
	close.Service, close.Clusters[0].Jitter = 3*ms, 2*ms
	shaken := everyPhase(twoClusters(5, 100*ms, 100*ms)).WithDefaults()
	shaken.Clusters[1].Jitter = 1
	for i, p := range append([]Problem{long, calm, full}, append(drawn(60), close, shaken)...) {
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		q, notes := p.withinLimits()
		m := build(&q).fork()
		m.violate()
		text := m.text()
		variables, assertions := m.s.Size()
		fmt.Fprintf(&b, "%d: %s; %s\n  %d variables, %d assertions, %x\n", i, q.Objective, q.Scope(), variables, assertions, sha256.Sum256(text))
		for _, note := range notes {
			fmt.Fprintf(&b, "  %s\n", note)
		}
		if i == 3 || i == 4 {
			golden.Equal(t, fmt.Sprintf("question%d.smt2", i), text)
		}
	}
	golden.Equal(t, "scripts.txt", b.Bytes())
}

func tellJudgement(b *bytes.Buffer, j Judgement) {
	for _, broken := range j.Broken {
		fmt.Fprintf(b, "  broken: %s\n", broken)
	}
	for _, c := range j.Clusters {
		text, _ := json.Marshal(c)
		fmt.Fprintf(b, "  %s\n", text)
	}
}

func tellRun(b *bytes.Buffer, p *Problem, run *Run) {
	for u := range run.Fates {
		fmt.Fprintf(b, "  %v %v %v\n", run.Path.Arrivals[u], run.Fates[u], run.Deliveries[u])
	}
	text, _ := json.Marshal(p.Trace(run))
	fmt.Fprintf(b, "  trace %x\n", sha256.Sum256(text))
}

// TestPaths compares random paths in each model, with judgement and drawing, with golden files.
func TestPaths(t *testing.T) {
	var b bytes.Buffer
	rng := rand.New(rand.NewPCG(3, 3))
	for i, p := range drawn(45) {
		fmt.Fprintf(&b, "%d: %s %v, tick %v\n", i, p.Model, p.Objective, p.tick())
		for n := range 2 {
			path := p.RandomPath(rng)
			if n == 1 {
				path = p.findPath()
			}
			if path == nil {
				b.WriteString("  no path\n")
				continue
			}
			run, err := p.Replay(path, rng)
			if err == nil && p.Model != Engine {
				path.Sent = make([][]bool, len(run.Fates))
				for u := range run.Fates {
					for _, f := range run.Fates[u] {
						path.Sent[u] = append(path.Sent[u], f != Unsent)
					}
				}
				run, err = p.Evaluate(path)
			}
			if err != nil {
				fmt.Fprintf(&b, "  %v\n", err)
				continue
			}
			tellRun(&b, &p, run)
			tellJudgement(&b, p.Judge(run))
			if i%3 == 0 && n == 0 {
				b.WriteString(p.Plot(run))
			}
		}
	}
	golden.Equal(t, "paths.txt", b.Bytes())
}

// TestPlotShowsWorstPeak checks that a run with many clusters and updates is drawn around its worst peak, with the
// worst clusters.
func TestPlotShowsWorstPeak(t *testing.T) {
	var b bytes.Buffer
	for _, updates := range []int{10, 40} {
		p := Problem{Service: 2 * ms, Objective: Objective{Kind: PerCluster}, Slots: 3, Horizon: updates}
		for u := range 9 {
			p.Clusters = append(p.Clusters, Cluster{Interval: olaf.Duration(9+u) * ms, EveryPhase: true, Jitter: ms, MaxPeak: olaf.Duration(15+10*u) * ms, Mean: ms})
		}
		p = p.WithDefaults()
		run, err := p.Replay(p.RandomPath(rand.New(rand.NewPCG(5, uint64(updates)))), nil)
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString(p.Plot(run))
		tellJudgement(&b, p.Judge(run))
		var svg bytes.Buffer
		if err := p.SVG(&svg, run); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "svg of %d bytes, %x\n", svg.Len(), sha256.Sum256(svg.Bytes()))
		if err := p.SVG(broken{}, run); err == nil {
			t.Error("a writer that fails is not noticed")
		}
	}
	for _, d := range []olaf.Duration{0, 99999, 100000, 123456, 999999, 1234567, 99999 * ms, 123456789 * ms} {
		fmt.Fprintf(&b, "%d is %s\n", d, Tidy(d))
	}
	golden.Equal(t, "drawings.txt", b.Bytes())
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("no room") }

// recorded returns a solver that replays z3's recorded answers and knows no others. With -update z3 answers and is
// recorded.
func recorded(t *testing.T) ([]Solver, func()) {
	t.Helper()
	const kept = "testdata/answers.json"
	folder := t.TempDir()
	answers := map[string]string{}
	updating := flag.Lookup("update").Value.String() == "true"
	other := "echo unknown"
	if updating {
		needSolvers(t)
		other = "z3 -smt2 -in smt.arith.solver=2 < $q > $q.said; mv $q.said $f; cat $f"
	} else {
		text, err := os.ReadFile(kept)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &answers); err != nil {
			t.Fatal(err)
		}
		for name, answer := range answers {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(answer), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	program := filepath.Join(folder, "recorded.sh")
	script := fmt.Sprintf("#!/bin/sh\ncd %s\nq=question.$$; cat > $q\nf=answer-$(sha256sum < $q | cut -c1-12)\nif [ -e $f ]; then cat $f; else %s; fi\n", folder, other)
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	keep := func() {
		if !updating {
			return
		}
		files, err := filepath.Glob(folder + "/answer-*")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			answers[filepath.Base(f)] = string(text)
		}
		text, err := json.MarshalIndent(answers, "", " ")
		if err == nil {
			err = os.WriteFile(kept, append(text, '\n'), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return []Solver{{Name: "recorded", Program: program, Package: "z3"}}, keep
}

func tellVerdict(b *bytes.Buffer, v *Verdict, err error) {
	if err != nil {
		fmt.Fprintf(b, "  error: %v\n", err)
		return
	}
	fmt.Fprintf(b, "  %s by %q, %+v, %s\n  %+v\n", v.Answer, v.Solver, v.Script, v.Problem.Scope(), v.Problem)
	for _, note := range v.Notes {
		fmt.Fprintf(b, "  note: %s\n", note)
	}
	if v.Counterexample != nil {
		tellRun(b, &v.Problem, v.Counterexample)
		tellJudgement(b, v.Judgement)
	}
	if v.OnEngine != nil {
		b.WriteString(" on the engine\n")
		tellRun(b, &v.Problem, v.OnEngine.Run)
		tellJudgement(b, v.OnEngine.Judgement)
	}
}

// TestRecordedAnswers compares verdicts, admissions, regions and bounds from a solver's recorded answers with golden
// files.
func TestRecordedAnswers(t *testing.T) {
	solvers, keep := recorded(t)
	defer keep()
	var b bytes.Buffer
	opt := Options{Solvers: solvers, Progress: func(line string) { fmt.Fprintf(&b, "  progress: %s\n", line) }}
	for i, p := range drawn(36) {
		fmt.Fprintf(&b, "%d: %s %v\n", i, p.Model, p.Objective)
		v, err := Verify(t.Context(), p, opt)
		tellVerdict(&b, v, err)
		if err == nil && v.OnEngine != nil {
			for u, c := range v.OnEngine.Judgement.Clusters {
				if paper := v.Judgement.Clusters[u]; c.First != paper.First {
					t.Errorf("problem %d: %s arrives at %v on the engine, at %v in the model", i, c.Name, c.First, paper.First)
				}
			}
		}
	}
	two := everyPhase(twoClusters(4, 100*ms, 100*ms))
	two.Objective.Kind, two.Objective.Bound = MaxPeak, 104*ms
	b.WriteString("simulated first\n")
	simulated := opt
	simulated.Simulate = 50
	tight := two
	tight.Objective.Bound = 100 * ms
	v, err := Verify(t.Context(), tight, simulated)
	tellVerdict(&b, v, err)
	dumped := 0
	simulated.Dump = func(text []byte) error { dumped = len(text); return nil }
	v, err = Verify(t.Context(), tight, simulated)
	tellVerdict(&b, v, err)
	fmt.Fprintf(&b, "dumped %d bytes\n", dumped)
	simulated.Dump = func([]byte) error { return errors.New("no room") }
	v, err = Verify(t.Context(), tight, simulated)
	tellVerdict(&b, v, err)

	b.WriteString("two solvers\n")
	both := opt
	both.Solvers, both.Agree = append(append([]Solver(nil), solvers...), solvers...), true
	both.Solvers[1].Name = "another"
	first := len(b.Bytes())
	if v, err = Verify(t.Context(), two, both); err != nil {
		t.Fatal(err)
	}
	asked, _, _ := strings.Cut(string(b.Bytes()[first:]), "\n")
	b.Truncate(first) // the order of solvers is random
	fmt.Fprintf(&b, "%s\n%s\n", asked, v.Answer)

	b.WriteString("admission\n")
	newcomer := []Cluster{{Name: "new", Interval: 100 * ms, EveryPhase: true}}
	for _, bound := range []olaf.Duration{104 * ms, 110 * ms, 100 * ms} {
		two.Objective.Bound = bound
		a, err := Admit(t.Context(), two, newcomer, opt)
		if err != nil {
			fmt.Fprintf(&b, "  %v\n", err)
			continue
		}
		fmt.Fprintf(&b, "accepted %t\n", a.IsAccepted())
		tellVerdict(&b, a.Together, nil)
		if a.Running != nil {
			b.WriteString(" running alone\n")
			tellVerdict(&b, a.Running, nil)
		}
	}
	for _, clusters := range [][]Cluster{nil, {{Name: "c1", Interval: ms, EveryPhase: true}}} {
		_, err := Admit(t.Context(), two, clusters, opt)
		fmt.Fprintf(&b, "  %v\n", err)
	}

	b.WriteString("region\n")
	two.Objective.Bound = 104 * ms
	for _, axes := range [][]string{{"bound=102ms:106ms:3", "service=1ms:3ms:3"}, {"slots=1:3:3"}, {"interval.2=50ms:100ms:2", "jitter=0ms:2ms:2"}, {"separation=1ms:60ms:2"}} {
		var parsed []Axis
		for _, text := range axes {
			a, err := ParseAxis(text)
			if err != nil {
				t.Fatal(err)
			}
			parsed = append(parsed, a)
		}
		r, err := Explore(t.Context(), two, parsed, opt, func(n, of int) { fmt.Fprintf(&b, "  %d of %d\n", n, of) })
		if err != nil {
			fmt.Fprintf(&b, "  %v\n", err)
			continue
		}
		b.WriteString(r.Plot())
		fmt.Fprintf(&b, "%+v %q\n", r.Points, r.Notes)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	bound, _ := ParseAxis("bound=102ms:106ms:3")
	service, _ := ParseAxis("service=1ms:3ms:3")
	r, err := Explore(ctx, two, []Axis{bound, service}, opt, func(n, _ int) {
		if n == 5 {
			interrupt()
		}
	})
	fmt.Fprintf(&b, "interrupted: %v, %d points, partial %t\n%s", err, len(r.Points), r.Partial, r.Plot())
	tightened, err := Tighten(t.Context(), two, opt)
	fmt.Fprintf(&b, "tightened to %+v, %v\n", tightened, err)
	golden.Equal(t, "verdicts.txt", b.Bytes())
}

// TestLimits checks that every limit of a problem is accepted at its last valid value and rejected one beyond.
func TestLimits(t *testing.T) {
	var b bytes.Buffer
	hour := int64(olaf.Hour)
	for _, c := range []struct {
		what string
		set  func(*Problem, int64)
		at   []int64
	}{
		{"service", func(p *Problem, v int64) { p.Service = olaf.Duration(v) }, []int64{0, hour, hour + 1}},
		{"slots", func(p *Problem, v int64) { p.Slots = int(v) }, []int64{-1, 1, 1 << 16, 1<<16 + 1}},
		{"separation", func(p *Problem, v int64) { p.Separation = olaf.Duration(v) }, []int64{-1, 0, hour, hour + 1}},
		{"horizon", func(p *Problem, v int64) { p.Horizon = int(v) }, []int64{1, 2, 2000, 2001}},
		{"delta-t", func(p *Problem, v int64) { p.Control.DeltaT = olaf.Duration(v) }, []int64{-1, 0, hour, hour + 1}},
		{"ack-delay", func(p *Problem, v int64) { p.Control.AckDelay = olaf.Duration(v) }, []int64{-1, 0, hour, hour + 1}},
		{"active", func(p *Problem, v int64) { p.Control.Active = int(v) }, []int64{-1, 1, 1 << 16, 1<<16 + 1}},
		{"bound", func(p *Problem, v int64) { p.Objective.Bound = olaf.Duration(v) }, []int64{-1, 0, hour, hour + 1}},
		{"peak", func(p *Problem, v int64) { p.Objective = Objective{Kind: MaxPeak, Bound: olaf.Duration(v)} }, []int64{0, int64(ms)}},
		{"mean", func(p *Problem, v int64) { p.Objective = Objective{Kind: MeanPeak, Bound: olaf.Duration(v)} }, []int64{0, int64(ms)}},
		{"interval", func(p *Problem, v int64) { p.Clusters[1].Interval = olaf.Duration(v) }, []int64{0, int64(ms), hour, hour + 1}},
		{"jitter", func(p *Problem, v int64) { p.Clusters[1].Jitter = olaf.Duration(v) }, []int64{-1, 0, hour, hour + 1}},
		{"phase low", func(p *Problem, v int64) { p.Clusters[1].PhaseLow = olaf.Duration(v) }, []int64{-1, 0}},
		{"phase high", func(p *Problem, v int64) { p.Clusters[1].PhaseHigh = olaf.Duration(v) }, []int64{hour, hour + 1}},
		{"updates", func(p *Problem, v int64) { p.Clusters[1].Updates = int(v) }, []int64{1, 2, 10, 11}},
		{"decisions", func(p *Problem, v int64) { p.Clusters[1].Sends = make([]bool, v) }, []int64{10, 11}},
		{"given decisions", func(p *Problem, v int64) {
			p.Control.Sends, p.Clusters[0].Sends, p.Clusters[1].Sends = SendsGiven, make([]bool, 10), make([]bool, v)
		}, []int64{9, 10}},
		{"own peak", func(p *Problem, v int64) { p.Clusters[1].MaxPeak = olaf.Duration(v) }, []int64{-1, 0, hour, hour + 1}},
		{"own mean", func(p *Problem, v int64) { p.Clusters[1].Mean = olaf.Duration(v) }, []int64{-1, 0, hour, hour + 1}},
		{"clusters", func(p *Problem, v int64) {
			p.Clusters = nil
			for range v {
				p.Clusters = append(p.Clusters, Cluster{Interval: ms})
			}
		}, []int64{0, 1, 2, MaxClusters, MaxClusters + 1}},
		{"per cluster", func(p *Problem, v int64) { p.Objective.Kind, p.Clusters[1].Mean = PerCluster, olaf.Duration(v) }, []int64{0, int64(ms)}},
		{"step", func(p *Problem, v int64) { p.Service, p.Horizon = olaf.Duration(v), 1000 }, []int64{1, 2, 3, 5, 10, 1000}},
	} {
		for _, v := range c.at {
			p := twoClusters(10, 100*ms, 100*ms)
			c.set(&p, v)
			p = p.WithDefaults()
			fmt.Fprintf(&b, "%s %d: %v\n", c.what, v, p.Validate())
		}
	}
	for _, set := range []func(*Problem){
		func(p *Problem) { p.Model = "queue" }, func(p *Problem) { p.Control.Slope = "steep" }, func(p *Problem) { p.Control.Sends = "later" },
		func(p *Problem) { p.Objective.Mean = "most" }, func(p *Problem) { p.Objective.Mean = AllUpdates }, func(p *Problem) { p.Objective.Kind = "" },
		func(p *Problem) { p.Objective.Kind = "speed" }, func(p *Problem) { p.Clusters[0].Name = "a|b" }, func(p *Problem) { p.Clusters[0].Name = "a\nb" }, func(p *Problem) { p.Objective.Kind = LossFree },
	} {
		p := twoClusters(10, 100*ms, 100*ms)
		set(&p)
		p = p.WithDefaults()
		fmt.Fprintf(&b, "%s %s: %v\n", p.Model, p.Objective, p.Validate())
	}
	for _, slope := range []tc.Slope{tc.Urgency, tc.Fairness} {
		c := Control{DeltaT: 5 * ms, Slope: slope, Active: 10}
		for _, draw := range []int{0, 399, 400, 401, 700, certain} {
			fmt.Fprintf(&b, "a draw of %d is sent after %v with slope %s\n", draw, c.sendsAfter(4, draw), slope)
		}
	}
	slow := Control{DeltaT: olaf.Hour, Slope: tc.Fairness, Active: 1 << 16}
	fmt.Fprintf(&b, "a flat slope sends after %v, a short one after %v in steps of %v\n", slow.sendsAfter(1, certain), (&Control{DeltaT: 500, Slope: tc.Urgency, Active: 2}).sendsAfter(1, certain), (&Control{DeltaT: 500}).step())
	for _, axis := range []string{
		"bound=1ms:2ms", "bound=1ms:2ms:2", "bound=1ms:2ms:2500", "bound=1ms:2ms:2501", "bound=1ms:2ms:1", "bound=1ms:1ms", "bound=1us:3us:3", "bound=100us:200us:7", "bound=99us:100us:3", "slots=1:3", "slots=0:3",
		"slots=1:3:3", "slots=a:3", "jitter.0=1ms:2ms", "jitter.2=1ms:2ms:2", "interval.x=1ms:2ms", "interval=1ms:2ms:2", "delta-t=0s:1ms:2", "ack-delay=0s:1ms:2", "separation=0s:1ms:2", "epsilon=0s:1ms:2", "service=0s:1ms:2", "speed=1:2",
		"bound=-9000000s:9000000s:3", "bound=0s:9000000s:2", "bound", "bound=1ms", "bound=1ms:2ms:3:4", "bound=1ms:2ms:x", "bound=1:2",
	} {
		a, err := ParseAxis(axis)
		values := a.Values
		if len(values) > 8 {
			values = values[:8]
		}
		p := twoClusters(10, 100*ms, 100*ms)
		if err == nil {
			a.set(&p, a.Values[0])
		}
		fmt.Fprintf(&b, "%s: %d %v %v %+v\n", axis, len(a.Values), values, err, p)
	}
	one, _ := ParseAxis("bound=1ms:2ms:2")
	many, _ := ParseAxis("bound=1ms:2ms:50")
	more, _ := ParseAxis("service=1ms:2ms:51")
	far, _ := ParseAxis("interval.3=1ms:2ms:2")
	for _, axes := range [][]Axis{{}, {one, one, one}, {many, more}, {far}} {
		_, err := Explore(t.Context(), twoClusters(10, 100*ms, 100*ms), axes, Options{Solvers: liar(t, "echo unknown")}, nil)
		fmt.Fprintf(&b, "%d axes: %v\n", len(axes), err)
	}
	golden.Equal(t, "limits.txt", b.Bytes())
}

// TestFileMistakes checks that errors in files name line, field and mistake.
func TestFileMistakes(t *testing.T) {
	var b bytes.Buffer
	for _, text := range []string{
		"", "[]", "a: b", "schema: x", "schema: [x]", "service: 1ms\nservice: 2ms", "slots: 0", "slots: x", "horizon: 1.5", "control: 3", "control: {active: x}", "control: {active: -1}", "control: {speed: 1}",
		"control:\n  slope: x", "control:\n  sends: x", "control: {sends: seed 5}", "control: {sends: 'seeded 5'}", "control: {sends: free, slope: fairness, delta-t: 3ms, ack-delay: 1ms}", "clusters: 3", "clusters: [3]", "clusters:\n  - {name: a, interval: 1ms}\n  - {interval: x}",
		"clusters: [{phase: every}, {phase: 1ms}, {phase: 1ms..2ms}]", "clusters: [{phase: 2ms..1ms}]", "clusters: [{phase: x}]", "clusters: [{sends: 1011}]", "clusters: [{sends: 102}]", "clusters: [{sends: ''}]", "clusters: [{jitter: [1]}]",
		"objective: {kind: mean, bound: 3ms, mean: all}", "objective: {epsilon: 3ms}", "objective: {bound: x}", "model: paper\nseparation: 1ms\nslots: 3\nhorizon: 7", "a: [", "schema: olafctl.verify-problem/v1\nclusters: [{max-peak: 1ms, mean: 2ms, updates: 3}]",
	} {
		p, err := ParseFile([]byte(text))
		clusters, clustersErr := ParseClusters([]byte(text))
		fmt.Fprintf(&b, "%q\n  %+v\n  %v\n  %+v\n  %v\n", text, p, firstLine(err), clusters, firstLine(clustersErr))
	}
	golden.Equal(t, "files.txt", b.Bytes())
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(fmt.Sprint(err), "\n")
	return line
}

// TestReplayLimits checks that an impossible replay is an error and that unreachable ages do not overflow.
func TestReplayLimits(t *testing.T) {
	p := everyPhase(twoClusters(3, 100*ms, 100*ms)).WithDefaults()
	path := p.findPath()
	p.Slots = -1
	if run, err := p.Replay(path, nil); err == nil {
		t.Errorf("a queue without slots: %+v", run)
	}
	for perTick, want := range map[int64]int64{1: 1 << 60, 1000: (1 << 60) / 1000 * 1000} {
		d := decider{p: &Problem{Service: 1, Control: Control{DeltaT: 0}}, path: &Path{PerTick: perTick}}
		if have := d.steps(1000 * olaf.Hour); have != want {
			t.Errorf("%d steps a tick: %d, want %d", perTick, have, want)
		}
		if have := d.steps(5); have != 5*perTick {
			t.Errorf("%d steps a tick: 5 ticks are %d", perTick, have)
		}
	}
	for err, want := range map[error]olaf.Kind{ErrVacuous: olaf.Usage, ErrReplay: olaf.Failed, ErrProblem: olaf.Usage, ErrFile: olaf.Usage} {
		if kind, _ := olaf.KindOf(err); kind != want {
			t.Errorf("%v is of kind %v, want %v", err, kind, want)
		}
	}
}
