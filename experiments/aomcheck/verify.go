package aomcheck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/olafctl/olaf"
)

// Errors other than ErrProblem and the solvers' errors.
var (
	// ErrVacuous reports that no sample path satisfies the problem's assumptions, so that every objective would be
	// satisfied.
	ErrVacuous = olaf.NewError(olaf.Usage, "the assumptions contradict each other")
	// ErrReplay reports that the solver's counter-example does not break the objective when it is replayed. This is a
	// bug in this package or in a solver, never a verdict.
	ErrReplay = olaf.NewError(olaf.Failed, "counter-example does not replay")
)

// Answer is the verifier's answer: holds, violated or unknown.
type Answer string

const (
	Holds    Answer = "holds"
	Violated Answer = "violated"
	Unknown  Answer = "unknown"
)

// Options configures how Verify searches for an answer.
type Options struct {
	Solvers []Solver      // defaults to both
	Agree   bool          // run all solvers to completion and require that they agree
	Limit   time.Duration // for the whole search; defaults to a minute
	// Simulate is the number of random sample paths tried on the engine before a solver is asked. A violation on one of
	// them is an answer; the absence of violations proves nothing.
	Simulate int
	// Dump, if not nil, receives the script's text before it is solved.
	Dump func(script []byte) error
	// Progress, if not nil, receives one line about each step.
	Progress func(line string)
}

// ways lists the named ways to use the solvers.
var ways = []struct {
	name    string
	agree   bool
	solvers []Solver
}{
	{name: "portfolio"},
	{name: "both", agree: true},
	{name: "z3", solvers: []Solver{Z3()}},
	{name: "cvc5", solvers: []Solver{cvc5()}},
}

// Ways returns the names that Options.Ask accepts. They stand for the first answer from any solver, for agreement of
// all solvers, or for one solver alone.
func Ways() (names []string) {
	for _, w := range ways {
		names = append(names, w.name)
	}
	return names
}

// Ask selects how the solvers are used, by one of the names that Ways returns. Any other name changes nothing.
func (o *Options) Ask(way string) {
	for _, w := range ways {
		if w.name == way {
			o.Solvers, o.Agree = w.solvers, w.agree
		}
	}
}

// Verdict is the verifier's answer to a problem, with its evidence.
type Verdict struct {
	Answer  Answer
	Problem Problem  // with defaults and fallbacks, as answered
	Notes   []string // what a reader must know to interpret the answer
	Solver  string   // name of the solver that answered
	Wall    time.Duration
	Script  ScriptSize
	// Counterexample and Judgement show the violation, in the model of the problem.
	Counterexample *Run
	Judgement      Judgement
	// OnEngine is the engine's run of a counter-example of a paper model; else nil.
	OnEngine *EngineView
}

// ScriptSize is the size of a solver script.
type ScriptSize struct {
	Variables  int `json:"variables"`
	Assertions int `json:"assertions"`
	Bytes      int `json:"bytes"`
}

// EngineView is the run on the engine of a path that was found with another model.
type EngineView struct {
	Run       *Run
	Judgement Judgement
}

// Verify decides whether p's objective is satisfied on every sample path. The error matches ErrProblem, ErrVacuous,
// ErrReplay, or an error from a solver. If time runs out, the answer is Unknown.
func Verify(ctx context.Context, p Problem, opt Options) (*Verdict, error) {
	p = p.WithDefaults()
	if err := p.Validate(); err != nil {
		return nil, err
	}
	v := &Verdict{}
	v.Problem, v.Notes = p.withinLimits()
	opt = opt.withDefaults()
	start := time.Now()
	parent := ctx
	ctx, cancel := context.WithTimeout(ctx, opt.Limit)
	defer cancel()

	if opt.Simulate > 0 && v.Problem.Model == Engine {
		if err := v.simulate(ctx, opt.Simulate); err != nil {
			return nil, err
		}
		if v.Answer != "" && opt.Dump == nil {
			v.Wall = time.Since(start)
			return v, nil
		}
	}
	m := build(&v.Problem)
	query := m.fork()
	query.violate()
	text := v.script(query)
	if opt.Dump != nil {
		if err := opt.Dump(text); err != nil {
			return nil, err
		}
	}
	if v.Answer != "" {
		v.Wall = time.Since(start)
		return v, nil
	}
	opt.Progress(fmt.Sprintf("%d variables, %d assertions; asking %s", v.Script.Variables, v.Script.Assertions, names(opt.Solvers)))
	answer, err := opt.ask(ctx, text)
	if err != nil {
		return nil, err
	}
	switch v.Solver = answer.Solver; answer.Status {
	case satStatus:
		err = v.violatedBy(query, answer.Values)
	case unsatStatus:
		err = v.holds(ctx, m, opt)
	default:
		v.Answer, v.Solver = Unknown, ""
		err = parent.Err()
	}
	v.Wall = time.Since(start)
	return v, err
}

// simulate tries random paths on the engine. If one violates the objective, simulate stores it in v as the
// counter-example.
func (v *Verdict) simulate(ctx context.Context, paths int) error {
	run, err := v.search(ctx, paths)
	if run != nil {
		v.Answer, v.Solver, v.Counterexample, v.Judgement = Violated, "simulation", run, v.Problem.Judge(run)
	}
	return err
}

// script returns the solvers' input and stores its size.
func (v *Verdict) script(query *model) []byte {
	text := query.text()
	v.Script.Variables, v.Script.Assertions = query.s.Size()
	v.Script.Bytes = len(text)
	return text
}

func (o Options) withDefaults() Options {
	if len(o.Solvers) == 0 {
		o.Solvers = []Solver{Z3(), cvc5()}
	}
	o.Limit = cmp.Or(o.Limit, time.Minute)
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	return o
}

func (o Options) ask(ctx context.Context, script []byte) (solverAnswer, error) {
	if o.Agree {
		return askAll(ctx, o.Solvers, script)
	}
	return askFirst(ctx, o.Solvers, script)
}

func names(solvers []Solver) string {
	return strings.Join(olaf.Map(solvers, func(s Solver) string { return s.Name }), " and ")
}

func (m *model) fork() *model {
	f := *m
	f.s = m.s.Fork()
	f.streams = append([]stream(nil), m.streams...)
	return &f
}

func (m *model) text() []byte { return m.s.Text() }

// withinLimits returns p with changes that make a problem of this size decidable, and notes about them.
func (p Problem) withinLimits() (Problem, []string) {
	var notes []string
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if p.Control.DeltaT > 0 && !p.Throttles() {
		note("transmission control never withholds an update here: %d slots serve %d active clusters (paper §5)", p.Slots, p.Control.Active)
	}
	longest := 0
	for _, c := range p.Clusters {
		longest = max(longest, c.Updates)
	}
	if p.Throttles() && p.Control.Sends == SendsFree {
		if longest > FreeLimit {
			p.Control.Sends = SendsSeeded
			note("free send decisions are decided up to %d updates per cluster; for %d they are drawn from seed %d instead",
				FreeLimit, longest, p.Control.Seed)
		} else {
			note("send decisions are free wherever 0 < Ps < 1: the verdict covers every outcome of the coin, however unlikely")
		}
	}
	if p.Throttles() && p.Control.Sends == SendsSeeded {
		note("send decisions follow the draws of seed %d: the verdict covers every arrival pattern, but only these draws", p.Control.Seed)
	}
	if p.Control.Sends == SendsGiven {
		note("send decisions are given: the verdict covers only them")
	}
	if p.Objective.Mean == AllUpdates {
		note("mean over all updates, as printed in the paper: replaced and unsent updates count as peaks of 0")
	}
	if p.Model != Engine {
		note("model %s: paths whose departures are less than p/C apart are excluded by the equations, which excludes most contention", p.Model)
	}
	return p, notes
}

// violatedBy replays the path in a solver's values and stores it as the counter-example if it breaks the objective.
func (v *Verdict) violatedBy(m *model, values map[string]any) error {
	path, err := m.pathOf(values)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrReplay, err)
	}
	if !v.Problem.allows(path) {
		return fmt.Errorf("%w: its arrivals break an assumption", ErrReplay)
	}
	if v.Counterexample, err = v.Problem.run(path); err != nil {
		return fmt.Errorf("%w: %w", ErrReplay, err)
	}
	v.Judgement = v.Problem.Judge(v.Counterexample)
	if len(v.Judgement.Broken) == 0 {
		return fmt.Errorf("%w: the objective holds on it", ErrReplay)
	}
	v.Answer = Violated
	if v.Problem.Model != Engine {
		return v.viewOnEngine(path)
	}
	return nil
}

// run evaluates a path with the problem's model.
func (p *Problem) run(path *Path) (*Run, error) {
	if p.Model == Engine {
		return p.Replay(path, nil)
	}
	return p.Evaluate(path)
}

// viewOnEngine runs a path with the same arrivals and send decisions on the engine.
func (v *Verdict) viewOnEngine(path *Path) error {
	p := v.Problem
	p.Model, p.Control.Sends = Engine, SendsGiven
	p.Clusters = append([]Cluster(nil), p.Clusters...)
	for u := range p.Clusters {
		p.Clusters[u].Sends = path.Sent[u]
	}
	same := *path // the same instants in more steps per tick, because ticks are coarser with given decisions
	same.PerTick *= int64(p.tick() / v.Problem.tick())
	run, err := p.Replay(&same, nil)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrReplay, err)
	}
	v.OnEngine = &EngineView{Run: run, Judgement: p.Judge(run)}
	if len(v.OnEngine.Judgement.Broken) == 0 {
		v.Notes = append(v.Notes, "on the engine the same arrivals keep the objective: this counter-example is one of the printed equations only")
	}
	return nil
}

// holds ensures that a proof is not vacuous, which requires at least one path that satisfies the assumptions and the
// equations.
func (v *Verdict) holds(ctx context.Context, m *model, opt Options) error {
	opt.Progress(v.Solver + " proved it; checking that the assumptions can be met")
	witness := m.fork()
	if v.Problem.Model == Engine {
		if path := v.Problem.findPath(); path != nil {
			run, err := v.Problem.Replay(path, rand.New(rand.NewPCG(1, 1)))
			if err != nil {
				return err
			}
			if j := v.Problem.Judge(run); len(j.Broken) > 0 {
				return fmt.Errorf("%w: %s reports that it holds, but a simulated path violates it: %s", ErrReplay, v.Solver, j.Broken[0])
			}
			witness.pin(run)
		}
	}
	answer, err := opt.ask(ctx, witness.text())
	if err != nil {
		return err
	}
	switch answer.Status {
	case satStatus:
		v.Answer = Holds
	case unsatStatus:
		return fmt.Errorf("%w: no arrival pattern satisfies phases, jitter, separation and spacing together, so nothing was proved", ErrVacuous)
	default:
		if errors.Is(ctx.Err(), context.Canceled) {
			return ctx.Err() // cancelled, not out of time
		}
		v.Answer = Unknown
		v.Notes = append(v.Notes, "the objective was proved, but within the time limit no path was found that meets the assumptions")
	}
	return nil
}

// findPath draws an allowed path whose times are whole ticks. It returns nil if a limited number of attempts finds
// none.
func (p *Problem) findPath() *Path {
	rng := rand.New(rand.NewPCG(7, 7))
	for range 200 {
		if path := p.randomPath(rng, 1); path != nil {
			return path
		}
	}
	return nil
}

// pin restricts the model to the arrivals and send decisions of a run whose times are whole ticks.
func (m *model) pin(run *Run) {
	for u, st := range m.streams {
		for k := range st.arrival {
			at := makeConstant(run.Path.Arrivals[u][k])
			m.s.Assert(eq("witness arrival", u, k), m.s.Eq(st.arrival[k], at))
			if sent := st.sent[k]; sent != True && sent != False {
				m.s.Assert(eq("witness decision", u, k), iff(sent, Const(run.Fates[u][k] != Unsent)))
			}
		}
	}
}

// search looks for a violation among random sample paths on the engine. It returns nil if it finds none.
func (v *Verdict) search(ctx context.Context, paths int) (*Run, error) {
	rng := rand.New(rand.NewPCG(v.Problem.Control.Seed, 2))
	for range paths {
		if ctx.Err() != nil {
			return nil, nil
		}
		path := v.Problem.RandomPath(rng)
		if path == nil {
			continue
		}
		run, err := v.Problem.Replay(path, rng)
		if err != nil {
			return nil, err
		}
		if len(v.Problem.Judge(run).Broken) > 0 {
			return run, nil
		}
	}
	return nil, nil
}
