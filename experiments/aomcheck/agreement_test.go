package aomcheck

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/internal/test/peer"
)

const ms = olaf.Millisecond

// needSolvers skips the test if a solver is missing.
func needSolvers(t *testing.T) []Solver {
	t.Helper()
	solvers := []Solver{Z3(), cvc5()}
	for _, s := range solvers {
		peer.NeedProgram(t, s.Program)
	}
	return solvers
}

// randomProblem draws a small problem with times in whole milliseconds: congested and idle queues, one slot or several,
// all objectives, with and without jitter and transmission control.
func randomProblem(rng *rand.Rand, model Model) Problem {
	pick := func(values ...int) int { return values[rng.IntN(len(values))] }
	p := Problem{Model: model, Service: olaf.Duration(pick(1, 2, 3)) * ms, Slots: pick(1, 2, 3, 8), Horizon: pick(2, 3, 3, 4)}
	clusters, stretch := pick(2, 2, 3), 1
	if model == Paper { // its spacing excludes nearly all paths if updates are dense
		p.Service, stretch = ms, 2
	}
	if clusters == 3 {
		p.Horizon = pick(2, 3)
	}
	for range clusters {
		c := Cluster{Interval: olaf.Duration(stretch*pick(2, 3, 4, 5)) * ms, EveryPhase: true}
		if rng.IntN(3) == 0 && clusters == 2 && p.Horizon < 4 {
			c.Jitter = olaf.Duration(pick(1, 2)) * ms
		}
		if rng.IntN(4) == 0 {
			c.EveryPhase, c.PhaseLow, c.PhaseHigh = false, ms, 2*ms
		}
		c.MaxPeak, c.Mean = olaf.Duration(pick(0, 6, 9))*ms, olaf.Duration(pick(5, 8))*ms
		p.Clusters = append(p.Clusters, c)
	}
	if rng.IntN(3) == 0 {
		p.Separation = ms
	}
	if rng.IntN(2) == 0 {
		p.Control = Control{DeltaT: olaf.Duration(pick(2, 4)) * ms, Active: pick(2, 9, 16), AckDelay: olaf.Duration(pick(0, 1)) * ms}
		if rng.IntN(3) == 0 && model == Engine {
			p.Control.Sends, p.Control.Seed = SendsSeeded, rng.Uint64()
		}
	}
	p.Objective = Objective{Kind: []Kind{Fairness, MaxPeak, MeanPeak, LossFree, PerCluster}[rng.IntN(5)]}
	p.Objective.Bound = olaf.Duration(pick(1, 2, 3, 4))*ms + ms/2
	if p.Objective.Kind != Fairness {
		p.Objective.Bound += olaf.Duration(pick(2, 4, 6)) * ms
	}
	if rng.IntN(3) == 0 {
		p.Objective.Mean = AllUpdates
	}
	return p.WithDefaults()
}

// gridOf enumerates every path of p whose phases and jitters are whole steps, with every free send decision, until
// visit returns false.
func gridOf(p *Problem, step olaf.Duration, visit func(*Path) bool) {
	tick := p.tick()
	s := int64(step / tick)
	path := &Path{PerTick: 1}
	for _, c := range p.Clusters {
		path.Arrivals = append(path.Arrivals, make([]int64, c.Updates))
		path.Sent = append(path.Sent, make([]bool, c.Updates))
	}
	var next func(u, k int, phase int64) bool
	next = func(u, k int, phase int64) bool {
		switch {
		case u == len(p.Clusters):
			return !p.allows(path) || decisions(p, path, 0, 0, visit)
		case k < 0:
			c := p.Clusters[u]
			hi := int64(c.PhaseHigh / tick)
			if c.EveryPhase {
				hi--
			}
			for f := int64(c.PhaseLow / tick); f <= hi; f += s {
				if !next(u, 0, f) {
					return false
				}
			}
			return true
		case k == p.Clusters[u].Updates:
			return next(u+1, -1, 0)
		}
		c := p.Clusters[u]
		for j := int64(0); j <= int64(c.Jitter/tick); j += s {
			path.Arrivals[u][k] = phase + int64(k)*int64(c.Interval/tick) + j
			if !next(u, k+1, phase) {
				return false
			}
		}
		return true
	}
	next(0, -1, 0)
}

// decisions enumerates the free send decisions; the first update of a cluster is always sent.
func decisions(p *Problem, path *Path, u, k int, visit func(*Path) bool) bool {
	switch {
	case u == len(p.Clusters):
		return visit(path)
	case k == p.Clusters[u].Updates:
		return decisions(p, path, u+1, 0, visit)
	}
	path.Sent[u][k] = true
	if !decisions(p, path, u, k+1, visit) {
		return false
	}
	if k == 0 || !p.Throttles() || p.Control.Sends != SendsFree {
		return true
	}
	path.Sent[u][k] = false
	return decisions(p, path, u, k+1, visit)
}

// bruteForce reports whether any path of the grid breaks the objective, and the number of paths.
func bruteForce(t *testing.T, p *Problem, step olaf.Duration) (broken bool, paths int) {
	t.Helper()
	gridOf(p, step, func(path *Path) bool {
		run, err := allowedRun(p, path)
		if err != nil {
			return true // the control or the spacing forbids this path
		}
		paths++
		broken = len(p.Judge(run).Broken) > 0
		return !broken
	})
	return broken, paths
}

// allowedRun runs a path. For the paper models, which evaluate given decisions unchecked, it checks that the control
// allows them.
func allowedRun(p *Problem, path *Path) (*Run, error) {
	run, err := p.run(path)
	if err != nil || p.Model == Engine || !p.Throttles() {
		return run, err
	}
	age := int64(p.Control.sendsAfter(p.Slots, certain) / p.tick())
	delay := int64(p.Control.AckDelay / p.tick())
	for u, sent := range path.Sent {
		for k := range sent {
			young := false
			for _, d := range run.Deliveries[u] {
				ack := d.At + delay
				young = young || d.Update < k && ack <= path.Arrivals[u][k] && ack > path.Arrivals[u][k]-age
			}
			if !sent[k] && !young {
				return nil, fmt.Errorf("update %d of %d must be sent", k, u)
			}
		}
	}
	return run, nil
}

// onGrid restricts a model to the paths that gridOf enumerates.
func onGrid(m *model, step olaf.Duration) {
	s := m.ticks(step)
	among := func(v lin, lo, hi int64) Bool {
		var any []Bool
		for x := lo; x <= hi; x += s {
			any = append(any, m.s.Eq(v, makeConstant(x)))
		}
		return or(any...)
	}
	for u, st := range m.streams {
		m.s.Assert("grid", among(st.phase, m.ticks(st.c.PhaseLow), m.ticks(st.c.PhaseHigh)))
		for k := range st.jitter {
			m.s.Assert(eq("grid", u, k), among(st.jitter[k], 0, m.ticks(st.c.Jitter)))
		}
	}
}

// TestSolversAgreeWithEnumeration compares both solvers with brute force over all paths of a grid; the solvers'
// question is restricted to the same grid.
func TestSolversAgreeWithEnumeration(t *testing.T) {
	solvers := needSolvers(t)
	for _, model := range []Model{Engine, Paper, PaperService} {
		rng := rand.New(rand.NewPCG(8, 20))
		broken, holding, vacuous := 0, 0, 0
		cases := 30
		if model != Engine {
			cases = 15
		}
		for i := range cases {
			p := randomProblem(rng, model)
			if err := p.Validate(); err != nil {
				t.Fatalf("case %d: %v", i, err)
			}
			wantBroken, paths := bruteForce(t, &p, ms)
			m := build(&p)
			onGrid(m, ms)
			m.violate()
			got, err := askAll(t.Context(), solvers, m.text())
			if err != nil {
				t.Fatalf("case %d: %v\n%+v", i, err, p)
			}
			if (got.Status == satStatus) != wantBroken || got.Status == unknownStatus {
				t.Errorf("%s case %d: solvers say %v, %d enumerated paths say broken=%v\n%+v", model, i, got.Status, paths, wantBroken,
					p)
			}
			switch {
			case wantBroken:
				broken++
			case paths == 0:
				vacuous++
			default:
				holding++
			}
		}
		if broken < cases/6 || holding < cases/6 {
			t.Errorf("%s: the sample is one-sided: %d broken, %d holding, %d vacuous", model, broken, holding, vacuous)
		}
		t.Logf("%s: %d broken, %d holding, %d vacuous", model, broken, holding, vacuous)
	}
}

// TestEncodingFollowsTheEngine checks with random paths of random problems that the script allows each path, and that
// it is violated exactly if the engine's run violates the objective.
func TestEncodingFollowsTheEngine(t *testing.T) {
	needSolvers(t)
	rng := rand.New(rand.NewPCG(3, 14))
	outcomes := map[bool]int{}
	for i := range 45 {
		p := randomProblem(rng, Engine)
		p.Horizon = 6
		for u := range p.Clusters {
			p.Clusters[u].Updates = 6
		}
		if i%3 == 0 {
			calm(&p, rng)
		}
		path := p.randomPath(rng, 4)
		if path == nil {
			continue
		}
		run, err := p.Replay(path, rng)
		if err != nil {
			t.Fatal(err)
		}
		m := build(&p)
		m.pinFraction(run)
		if got := ask(t, m); got != satStatus {
			t.Fatalf("case %d: the equations do not have a path of the engine (%v)\n%+v\n%+v", i, got, p, run)
		}
		want := len(p.Judge(run).Broken) > 0
		outcomes[want]++
		m.violate()
		if got := ask(t, m); (got == satStatus) != want {
			t.Fatalf("case %d: the engine breaks the objective: %v, the equations say %v\n%+v\n%v", i, want, got, p,
				p.Judge(run).Broken)
		}
	}
	if outcomes[true] < 10 || outcomes[false] < 10 {
		t.Errorf("one-sided sample: %v", outcomes)
	}
}

// calm changes p so that its waits repeat with the common period of its intervals.
func calm(p *Problem, rng *rand.Rand) {
	p.Horizon, p.Slots, p.Control.DeltaT, p.Separation = 9, 8, 0, 0
	for u := range p.Clusters {
		c := &p.Clusters[u]
		c.Jitter, c.Updates, c.Interval = 0, 7+rng.IntN(3), olaf.Duration(9+3*rng.IntN(3))*ms
		c.PhaseLow, c.PhaseHigh = 0, []olaf.Duration{0, 2 * ms, 8 * ms}[rng.IntN(3)]
		if c.EveryPhase {
			c.PhaseHigh = c.Interval
		}
	}
	if p.Objective.Kind != Fairness {
		p.Objective.Bound += 9 * ms
	}
}

// pinFraction does the same as pin, for paths with steps below a tick.
func (m *model) pinFraction(run *Run) {
	n := run.Path.PerTick
	for u, st := range m.streams {
		for k := range st.arrival {
			m.s.Assert("pin", m.s.Eq(st.arrival[k].Times(n), makeConstant(run.Path.Arrivals[u][k])))
			if s := st.sent[k]; s != True && s != False {
				m.s.Assert("pin", iff(s, Const(run.Fates[u][k] != Unsent)))
			}
		}
	}
}

func ask(t *testing.T, m *model) Status {
	t.Helper()
	a, err := Z3().Run(t.Context(), m.text())
	if err != nil {
		t.Fatal(err)
	}
	return a.Status
}

// TestProvedBoundsHoldInSimulation checks thousands of simulated paths of problems that were proved.
func TestProvedBoundsHoldInSimulation(t *testing.T) {
	needSolvers(t)
	rng := rand.New(rand.NewPCG(2, 71))
	proved, paths := 0, 0
	for i := range 40 {
		p := randomProblem(rng, Engine)
		p.Horizon = 5
		for u := range p.Clusters {
			p.Clusters[u].Updates = 5
			p.Clusters[u].MaxPeak, p.Clusters[u].Mean = 4*p.Clusters[u].MaxPeak, 3*p.Clusters[u].Mean
		}
		if p.Objective.Kind != Fairness {
			p.Objective.Bound *= 2
		}
		v, err := Verify(t.Context(), p, Options{Limit: 20 * time.Second, Simulate: 100})
		if errors.Is(err, ErrVacuous) && p.findPath() == nil {
			continue
		}
		if err != nil {
			t.Fatalf("case %d: %v", i, err)
		}
		if v.Answer != Holds {
			continue
		}
		proved++
		for range 1000 {
			path := p.RandomPath(rng)
			if path == nil {
				continue
			}
			run, err := p.Replay(path, rng)
			if err != nil {
				t.Fatal(err)
			}
			paths++
			if j := p.Judge(run); len(j.Broken) > 0 {
				t.Fatalf("case %d was proved, but %v\n%+v\n%+v", i, j.Broken, p, path)
			}
		}
	}
	t.Logf("%d proved regions, %d paths", proved, paths)
	if proved < 8 {
		t.Errorf("only %d of the random problems hold", proved)
	}
}

// TestTwinsWaitEquallyLong checks on the engine that twins wait equally long, which lets one wait represent many in the
// script.
func TestTwinsWaitEquallyLong(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 28))
	twins := 0
	for range 400 {
		p := randomProblem(rng, Engine)
		calm(&p, rng)
		m := build(&p)
		for range 20 {
			path := p.randomPath(rng, 4)
			run, err := p.Replay(path, nil)
			if err != nil {
				t.Fatal(err)
			}
			for u, deliveries := range run.Deliveries {
				for k := range deliveries {
					early := m.twin(u, k)
					if early < k {
						twins++
					}
					if got, want := deliveries[k].At-deliveries[k].Generated,
						deliveries[early].At-deliveries[early].Generated; got != want {
						t.Fatalf("update %d of %s waits %d steps, its twin %d waits %d\n%+v\n%v", k, p.Clusters[u].Name, got, early,
							want, p, path.Arrivals)
					}
				}
			}
		}
	}
	if twins < 10000 {
		t.Errorf("only %d twins", twins)
	}
}
