package sweep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/olafctl/olaf/experiments/sweep/grid"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/store"
	"github.com/olafctl/olaf/results/sweep"
)

// toy returns a command whose runs draw numbers around n by their seed.
func toy() *Command {
	return &Command{Name: "toy", Subject: "kind", Headline: []string{"m"}, Runs: 3,
		Fields:  []Field{{"n", grid.Integer}, {"kind", grid.Word}, {"hard", grid.Word}},
		Options: []string{"n", "kind", "hard", "seed"},
		Metrics: []*metric.Metric{{Name: "m", Title: "M", Unit: "ns"}, {Name: "other"}},
		Resolve: func(_ string, options []Option) (Resolver, error) { return toyCells{options}, nil },
		Run:     toyRun}
}

type toyCells struct{ given []Option }

func (c toyCells) Axes(given []string) []grid.Axis {
	for _, name := range given {
		if name == "kind" {
			return nil
		}
	}
	return []grid.Axis{{Name: "kind", Values: []string{"a", "b"}}}
}

func (c toyCells) Cell(values []Option) (json.RawMessage, error) {
	spec := map[string]string{}
	for _, o := range append(append([]Option{}, c.given...), values...) {
		spec[o.Name] = o.Value
	}
	if spec["n"] == "13" {
		return nil, errors.New("13 brings bad luck")
	}
	return json.Marshal(spec)
}

func toyRun(_ context.Context, raw json.RawMessage, from, runs int) (*sweep.Lot, error) {
	spec := map[string]string{}
	if err := json.Unmarshal(raw, &spec); err != nil {
		return nil, err
	}
	switch spec["hard"] {
	case "fail":
		return nil, errors.New("it can't be done")
	case "die":
		os.Exit(3)
	}
	n, err := strconv.Atoi(spec["n"])
	if err != nil {
		return nil, err
	}
	lot := &sweep.Lot{Metrics: []string{"m"}}
	for i := from; i < from+runs; i++ {
		random := rand.New(rand.NewPCG(uint64(i), uint64(n)))
		lot.Runs = append(lot.Runs, sweep.Run{Seed: uint64(i),
			Values: []results.Float{results.Float(float64(n) * (10 + random.NormFloat64()))}})
	}
	return lot, nil
}

func toys() Commands { return Commands{toy()} }

func plan(t testing.TB, f *File) *Plan {
	t.Helper()
	f.Command = "toy"
	p, err := f.Resolve(toys(), false)
	if err != nil {
		t.Fatal(err)
	}
	p.Order = Random
	return p
}

// inside is a worker in this process, which may end before it answers.
type inside struct {
	name string
	ends func(Job) bool
}

func (w *inside) Name() string { return w.name }
func (w *inside) Close() error { return nil }
func (w *inside) Do(ctx context.Context, j Job) (json.RawMessage, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if w.ends != nil && w.ends(j) {
		return nil, ErrGone
	}
	return toys().Do(ctx, j)
}

func starting(ends func(Job) bool) func(context.Context) (Worker, error) {
	var n atomic.Int64
	return func(context.Context) (Worker, error) { return &inside{fmt.Sprint(n.Add(1)), ends}, nil }
}

func singles(t *testing.T) *store.Singles {
	t.Helper()
	s, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s.Singles()
}

func engine(p *Plan, r Results, workers int, start func(context.Context) (Worker, error)) *Engine {
	return &Engine{Plan: p, Results: r, Workers: workers, Start: start, Host: "here", Now: time.Now}
}

func digestOf(t *testing.T, p *Plan, cells []sweep.Outcome) string {
	t.Helper()
	d, err := p.Document(cells)
	if err != nil {
		t.Fatal(err)
	}
	return d.Digest
}

// TestDigestIsIndependentOfWorkers checks that the digest does not depend on the number of workers, their order,
// workers that end, or interruptions.
func TestDigestIsIndependentOfWorkers(t *testing.T) {
	for _, file := range []*File{{Sweep: []string{"n=1..6"}, Runs: 25}, {Sweep: []string{"n=1..6"}, Until: "ci=3%", Runs: 90}} {
		p := plan(t, file)
		cells, differ, err := engine(p, singles(t), 1, starting(nil)).Run(t.Context())
		if err != nil || len(differ) > 0 || len(cells) != 12 {
			t.Fatal(len(cells), differ, err)
		}
		want := digestOf(t, p, cells)
		for _, workers := range []int{2, 8} {
			p := plan(t, file)
			p.Order = []string{Random, Grid}[workers%3/2]
			var once sync.Map
			ends := func(j Job) bool { _, again := once.LoadOrStore(j.Key, true); return !again && j.Key[0] < '8' }
			cells, _, err := engine(p, singles(t), workers, starting(ends)).Run(t.Context())
			if got := digestOf(t, p, cells); got != want || err != nil {
				t.Errorf("%d workers that end: %s, want %s, %v", workers, got, want, err)
			}
		}
		r, stops := singles(t), 0
		for {
			ctx, stop := context.WithCancel(t.Context())
			var calls atomic.Int64
			cells, _, err := engine(p, r, 3, starting(func(Job) bool {
				if calls.Add(1) == 7 {
					stop()
				}
				return false
			})).Run(ctx)
			stop()
			if errors.Is(err, context.Canceled) {
				stops++
				continue
			}
			if got := digestOf(t, p, cells); got != want || err != nil || stops < 2 {
				t.Errorf("after %d stops: %s, want %s, %v", stops, got, want, err)
			}
			break
		}
		found, err := engine(p, r, 1, nil).FindStored()
		if got := digestOf(t, p, found); got != want || err != nil {
			t.Error(got, want, err)
		}
	}
}

// TestRuleEndsRunsEarly checks that a rule saves runs, that its decision is reported, and that the bound is met.
func TestRuleEndsRunsEarly(t *testing.T) {
	p := plan(t, &File{Sweep: []string{"n=1..3"}, Until: "ci=5%", Runs: 200})
	cells, _, err := engine(p, singles(t), 4, starting(nil)).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range cells {
		if c := &cells[i]; c.State != sweep.Done || c.Looks != len(c.Lots) || c.Looks < 2 || c.Looks > 10 || c.HalfWidth > 0.05 {
			t.Errorf("%v: %d lots, %d looks, %v", c.Parameters, len(c.Lots), c.Looks, c.HalfWidth)
		}
	}
	p = plan(t, &File{Sweep: []string{"n=1"}, Until: "ci=0.1%", Runs: 25})
	cells, _, err = engine(p, singles(t), 4, starting(nil)).Run(t.Context())
	if c := &cells[0]; err != nil || len(c.Lots) != 3 || c.State != sweep.Done || c.HalfWidth < 0.001 {
		t.Errorf("%d lots, %v, %v", len(c.Lots), c.State, err)
	}
}

// TestLaterLooksAreStricter checks that the engine decides each look at that look's level: the final half-width is the
// one that the rule gives for the number of looks, which is wider than for a first look.
func TestLaterLooksAreStricter(t *testing.T) {
	p := plan(t, &File{Sweep: []string{"n=1..3"}, Until: "ci=5%", Runs: 200})
	cells, _, err := engine(p, singles(t), 4, starting(nil)).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range cells {
		c := &cells[i]
		var lots []*sweep.Lot
		for _, raw := range c.Lots {
			lot, err := sweep.ParseLot(raw)
			if err != nil {
				t.Fatal(err)
			}
			lots = append(lots, lot)
		}
		_, want := p.Enough.Decide(lots, p.Metrics, c.Looks)
		_, first := p.Enough.Decide(lots, p.Metrics, 1)
		if c.HalfWidth != want || c.Looks < 2 || want <= first {
			t.Errorf("%v ended at look %d with a half-width of %v; look %d gives %v, a first look %v", c.Parameters, c.Looks,
				c.HalfWidth, c.Looks, want, first)
		}
	}
}

// TestPoisonedJobFailsAlone checks that a job that fails, or that ends its workers, fails alone.
func TestPoisonedJobFailsAlone(t *testing.T) {
	p := plan(t, &File{Sweep: []string{"hard=no,fail"}, Options: map[string]string{"n": "4"}, Runs: 30})
	cells, _, err := engine(p, singles(t), 3, starting(nil)).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d, err := p.Document(cells)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []sweep.State{sweep.Done, sweep.Done, sweep.Failed, sweep.Failed} {
		if d.Cells[i].State != want || want == sweep.Failed && d.Cells[i].Error != "it can't be done" {
			t.Errorf("%+v", d.Cells[i])
		}
	}
	if d.Err() == nil {
		t.Error("two cells failed, and the sweep did not")
	}
	cells, _, err = engine(plan(t, &File{Sweep: []string{"n=1..2"}}), singles(t), 2,
		starting(func(Job) bool { return true })).Run(t.Context())
	if err != nil || cells[0].State != sweep.Failed || !strings.Contains(cells[0].Error, "3 workers ended while running it") {
		t.Errorf("%+v, %v", cells[0], err)
	}
}

// TestDifferentResultsAreReported checks that a second, different result of a key is reported with both makers, and
// that the first one counts.
func TestDifferentResultsAreReported(t *testing.T) {
	p, r := plan(t, &File{Sweep: []string{"n=1..2"}}), singles(t)
	late := &forgetful{Results: r, key: p.Job(1, 0).Key}
	first := store.Single{Key: late.key, Result: json.RawMessage(`{"metrics":["m"],"runs":[]}`), By: store.Maker{Host: "elsewhere"}}
	if err := r.Put(first); err != nil {
		t.Fatal(err)
	}
	cells, differ, err := engine(p, late, 2, starting(nil)).Run(t.Context())
	if err != nil || len(differ) != 1 || !strings.Contains(differ[0], "elsewhere") || !strings.Contains(differ[0], "here") ||
		string(cells[1].Lots[0]) != string(first.Result) {
		t.Error(differ, err)
	}
}

// forgetful hides a result until another one is put.
type forgetful struct {
	Results
	mu  sync.Mutex
	key string
}

func (f *forgetful) Get(key string) (store.Single, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if key == f.key {
		return store.Single{}, false, nil
	}
	return f.Results.Get(key)
}

func (f *forgetful) Put(one store.Single) error {
	f.mu.Lock()
	f.key = ""
	f.mu.Unlock()
	return f.Results.Put(one)
}

// TestSweepSurvivesFailedStore checks that a sweep goes on in memory, and that a share of one ends.
func TestSweepSurvivesFailedStore(t *testing.T) {
	full := errors.New("no space left")
	e := engine(plan(t, &File{Sweep: []string{"n=1..9"}}), broken{singles(t), full}, 4, starting(nil))
	cells, _, err := e.Run(t.Context())
	if err != nil || len(cells) != 18 || slices.ContainsFunc(cells, func(c sweep.Outcome) bool { return c.State != sweep.Done }) {
		t.Errorf("%d cells, %v; want 18, all done: a store that cannot be written costs none of them", len(cells), err)
	}
	if why := e.Progress().Unkept; why != full.Error() {
		t.Errorf("results are not kept because of %q, want %q", why, full)
	}
	e = engine(plan(t, &File{Sweep: []string{"n=1..9"}}), broken{singles(t), full}, 4, starting(nil))
	e.Shards = 2
	if _, _, err := e.Run(t.Context()); !errors.Is(err, full) {
		t.Errorf("a share whose results the others cannot read ends with %v, want %v", err, full)
	}
}

type broken struct {
	Results
	err error
}

func (b broken) Put(store.Single) error { return b.err }

func TestKeys(t *testing.T) {
	p := plan(t, &File{Sweep: []string{"n=1..2"}, Runs: 25})
	keys := map[string]bool{}
	for cell := range p.Cells {
		for lot := range p.MaxLots() {
			keys[p.Job(cell, lot).Key] = true
		}
	}
	if len(keys) != 4*3 {
		t.Errorf("%d keys", len(keys))
	}
	other := *p
	other.Build.Go = "go0"
	if keys[other.Job(0, 0).Key] {
		t.Error("another build has the same key")
	}
	if j := p.Job(0, 2); j.From != 20 || j.Runs != 5 {
		t.Error(j)
	}
	// A longer sweep reuses the common results.
	longer := plan(t, &File{Sweep: []string{"n=1..3"}, Runs: 40})
	if !keys[longer.Job(0, 1).Key] {
		t.Error("a longer sweep does everything anew")
	}
}

func TestFiles(t *testing.T) {
	good := "command: toy\nsweep: [n=1..3]\nruns: 5\nmetrics: [m, other]\n"
	f, err := ParseFile("x.yaml", []byte(good))
	if err != nil {
		t.Fatal(err)
	}
	p, err := f.Resolve(toys(), false)
	if err != nil || len(p.Cells) != 6 || p.Runs != 5 || p.Subject != "kind" || len(p.Metrics) != 2 {
		t.Error(p, err)
	}
	f, err = ParseFile("x.yaml", []byte("command: toy\nlist:\n  - {n: 2, kind: a}\n  - {n: 7, kind: b}\n"))
	if err != nil {
		t.Fatal(err)
	}
	p, err = f.Resolve(toys(), false)
	if err != nil || len(p.Cells) != 2 || p.Runs != 3 || p.cellName(&p.Cells[1]) != "kind=b n=7" {
		t.Error(p, err)
	}
	for text, want := range map[string]string{
		"":                                             "the file is empty",
		"command: toy":                                 "nothing is varied",
		"command: tool\nsweep: [n=1]":                  `x.yaml:1: bad sweep: "tool" is not a command`,
		"command: toy\nsweep: [m=1]":                   `x.yaml:2: bad sweep: toy has no option "m" to vary; there are n, kind, hard`,
		"command: toy\nsweep: [seed=1..2]":             "seed of toy can't be varied",
		"command: toy\nsweep: [n=5..2]":                "5 is more than 2",
		"command: toy\nsweep: [n=1..2, n=3..4]":        "n is varied twice",
		"command: toy\noptions: {n: 1}\nsweep: [n=1]":  "n is varied and also set for all cells (1)",
		"command: toy\noptions: {sed: 1}\nsweep: [n]":  `x.yaml:2: bad sweep: toy has no option "sed" that a sweep can give; similar names: seed`,
		"command: toy\nsweep: [n=1]\nlist: [{n: 1}]":   "not both",
		"command: toy\nlist: [{n: 1}, {kind: a}]":      "all cells must set the same",
		"command: toy\nlist: [{n: 1}, {n: 1}]":         "listed twice",
		"command: toy\nlist: [{n: 1..3}]":              "a cell of a list has one value per option",
		"command: toy\nsweep: [n=1]\nruns: 0x":         "is not a whole number",
		"command: toy\nsweep: [n=1]\nruns: 1000000":    "1000000 runs; use 1 to 100000",
		"command: toy\nsweep: [n=1]\nuntil: never":     "x.yaml:3: bad --until",
		"command: toy\nsweep: [n=1]\nmetrics: [mm]":    `toy has no metric "mm"; similar names: m`,
		"command: toy\nsweep: [n=1]\nmetrics: [m, m]":  "given twice",
		"command: toy\nsweep: [n=12..14]":              "2 of 6 cells are invalid: n=13 kind=a and 1 more: 13 brings bad luck; nothing was run",
		"command: toy\nsweep: [n=1]\nschema: other/v1": "is not olafctl.sweep-spec/v1",
		"command: toy\nswep: [n=1]":                    `has no field "swep"`,
	} {
		f, err := ParseFile("x.yaml", []byte(text))
		if err == nil {
			_, err = f.Resolve(toys(), false)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	large := &File{Command: "toy", Sweep: []string{"n=1..1000", "hard=no", "kind=a"}, Runs: 5}
	if _, err := large.Resolve(toys(), false); err != nil && !strings.Contains(err.Error(), "13") {
		t.Error(err)
	}
	large.Sweep = []string{"n=1..90000", "hard=" + manyWords(20)}
	if _, err := large.Resolve(toys(), false); !errors.Is(err, ErrLarge) || !strings.Contains(err.Error(), "3.6 million cells") {
		t.Error(err)
	}
}

func manyWords(n int) string {
	var words []string
	for i := range n {
		words = append(words, fmt.Sprintf("w%d", i))
	}
	return strings.Join(words, ",")
}

// TestSweepsOfOneSecond checks that sweeps which start in the same second have different ids and keep their true start,
// by which the newest run is found.
func TestSweepsOfOneSecond(t *testing.T) {
	s, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, want := range []string{"20260102-030405-sweep-toy", "20260102-030405-sweep-toy-2", "20260102-030405-sweep-toy-3"} {
		p := plan(t, &File{Sweep: []string{"n=1..4"}})
		folder, err := FoldersOf(s).Create(p, time.Date(2026, 1, 2, 3, 4, 5, 7e8, time.UTC))
		if err != nil {
			t.Fatal(err)
		}
		if p.ID != want || p.Started != "2026-01-02T03:04:05.7Z" {
			t.Errorf("the sweep is %s, started %s; want %s, and the time at which it started", p.ID, p.Started, want)
		}
		if err := folder.Leave(); err != nil {
			t.Error(err)
		}
	}
}

// TestFolders checks that a sweep stays where it was left, is locked by one process at a time, and becomes a run with
// its own id.
func TestFolders(t *testing.T) {
	s, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	folders, p := FoldersOf(s), plan(t, &File{Sweep: []string{"n=1..4"}})
	folder, err := folders.Create(p, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	const id = "20260102-030405-sweep-toy"
	if _, err := folders.Open(id, toys()); !errors.Is(err, ErrHeld) {
		t.Error(err)
	}
	if err := folders.Remove(id); !errors.Is(err, ErrHeld) {
		t.Error(err)
	}
	folder.Beat(Beat{Progress: Progress{Cells: 8, Done: 3}, Host: "here"})
	if b, ok := folders.LastBeat(id); !ok || b.Done != 3 {
		t.Error(b, ok)
	}
	if err := folder.Leave(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"last", "2026", id} {
		if got, err := folders.Find(name, []string{"19991231-235959-sweep-toy"}); got != id || err != nil {
			t.Error(name, got, err)
		}
	}
	if folder, err = folders.Open(id, toys()); err != nil {
		t.Fatal(err)
	}
	cells, _, err := engine(folder.Plan, s.Singles(), 2, starting(nil)).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d, err := folder.Plan.Document(cells)
	if err != nil {
		t.Fatal(err)
	}
	got, err := folder.Finish(d, cells)
	if got != id || err != nil {
		t.Fatal(got, err)
	}
	if ids, err := folders.List(); len(ids) > 0 || err != nil {
		t.Error(ids, err)
	}
	kept, err := s.Load(id)
	if err != nil || !IsKept(kept) {
		t.Fatal(err)
	}
	again, cells, err := RecomputeDocument(kept, toys())
	if err != nil || digestOf(t, again, cells) != d.Digest {
		t.Error(err)
	}
	var done atomic.Int64
	if err := RepeatResults(t.Context(), again, cells, toys(), &done); err != nil || done.Load() != 8 {
		t.Error(done.Load(), err)
	}
	cells[3].Lots[0] = json.RawMessage(strings.Replace(string(cells[3].Lots[0]), "1", "2", 1))
	if err := RepeatResults(t.Context(), again, cells, toys(), &done); !errors.Is(err, sweep.ErrDiffers) {
		t.Error(err)
	}
	runs, err := ListRuns(again, cells)
	if len(runs) != 8*3 || runs[0].Queue != "n=1 kind=a" || err != nil {
		t.Error(len(runs), err)
	}
	for _, c := range []struct {
		name     string
		finished []string
		says     string
	}{
		{"last", nil, "this store has no sweeps yet"},
		{"nobody", []string{id}, "the last one is " + id},
		{strings.Replace(id, "toy", "toi", 1), []string{id}, "similar names: " + id},
		{"2026", []string{id, "20260101-000000-sweep-toy"}, "is the beginning of 2 sweeps"},
		{"", []string{id}, "the last one is " + id},
	} {
		if got, err := folders.Find(c.name, c.finished); !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %s, %v; want %q", c.name, got, err, c.says)
		}
	}
}

// asWorker makes the test binary a worker.
const asWorker = "SWEEP_TEST_WORKER"

func TestMain(m *testing.M) {
	if os.Getenv(asWorker) == "" {
		os.Exit(m.Run())
	}
	if err := ServeJobs(context.Background(), toys(), Build{}, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// spawn starts worker processes and lets the test kill them.
type spawn struct {
	mu   sync.Mutex
	all  []*exec.Cmd
	last int
}

func (s *spawn) start(ctx context.Context) (Worker, error) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asWorker+"=1")
	s.mu.Lock()
	s.last++
	name := fmt.Sprint(s.last)
	s.mu.Unlock()
	w, err := StartProcess(ctx, name, cmd, Build{})
	if err == nil {
		s.mu.Lock()
		s.all = append(s.all, cmd)
		s.mu.Unlock()
	}
	return w, err
}

func (s *spawn) kill(at int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) > 0 {
		if p := s.all[at%len(s.all)].Process; p != nil {
			_ = p.Kill()
		}
	}
}

// TestWorkerRestartsAreLimited checks that a worker may end before it is ready, but only a few times.
func TestWorkerRestartsAreLimited(t *testing.T) {
	for gone, want := range map[int]error{mostFaulty - 1: nil, mostFaulty: ErrGone} {
		starts := 0
		begin := starting(nil)
		p := plan(t, &File{Sweep: []string{"n=1..2"}, Runs: 1})
		_, _, err := engine(p, singles(t), 1, func(ctx context.Context) (Worker, error) {
			if starts++; starts <= gone {
				return nil, fmt.Errorf("start a worker: %w", ErrGone)
			}
			return begin(ctx)
		}).Run(t.Context())
		if !errors.Is(err, want) {
			t.Errorf("%d workers gone: %v, want %v", gone, err, want)
		}
	}
}

// TestProcesses checks that killed workers do not change the result, that a worker that exits during a job fails that
// job alone with its last output, and that no process remains.
func TestProcesses(t *testing.T) {
	file := &File{Sweep: []string{"n=1..12"}, Runs: 40}
	p := plan(t, file)
	cells, _, err := engine(p, singles(t), 1, starting(nil)).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := digestOf(t, p, cells)
	s := &spawn{}
	e := engine(plan(t, file), singles(t), 3, s.start)
	quit, killed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(killed)
		seen := 0
		for n := 0; n < 5; {
			select {
			case <-quit:
				return
			default:
			}
			if done := e.Progress().LotsDone; done > seen {
				seen = done
				s.kill(n)
				n++
			}
		}
	}()
	cells, _, err = e.Run(t.Context())
	close(quit)
	<-killed
	if got := digestOf(t, p, cells); got != want || err != nil {
		t.Errorf("%s, want %s, %v", got, want, err)
	}
	for _, cmd := range s.all {
		if cmd.ProcessState == nil {
			t.Error("a worker was left behind")
		}
	}
	dying := plan(t, &File{Sweep: []string{"hard=no,die"}, Options: map[string]string{"n": "4"}})
	cells, _, err = engine(dying, singles(t), 2, s.start).Run(t.Context())
	if err != nil || cells[0].State != sweep.Done || cells[2].State != sweep.Failed ||
		!strings.Contains(cells[2].Error, "exit status 3") {
		t.Errorf("%+v, %v", cells, err)
	}
	other := plan(t, &File{Sweep: []string{"n=1"}})
	other.Build.Go = "go0"
	_, _, err = engine(other, singles(t), 1, func(ctx context.Context) (Worker, error) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), asWorker+"=1")
		return StartProcess(ctx, "x", cmd, other.Build)
	}).Run(t.Context())
	if !errors.Is(err, ErrBuild) {
		t.Error(err)
	}
}

// TestCellsThatTakeLongAreRefused checks that a cell whose runs take too long is rejected by name, unless the sweep is
// confirmed.
func TestCellsThatTakeLongAreRefused(t *testing.T) {
	long := errors.New("that takes long")
	patient := toy()
	patient.Patience = func(spec json.RawMessage) error {
		if strings.Contains(string(spec), "7") {
			return long
		}
		return nil
	}
	for sweep, refused := range map[string]bool{"n=1..3": false, "n=6..8": true} {
		f := &File{Command: "toy", Sweep: []string{sweep, "kind=a"}, Runs: 2}
		if _, err := f.Resolve(Commands{patient}, false); errors.Is(err, long) != refused || refused &&
			!strings.HasPrefix(err.Error(), "a run of n=7 kind=a: ") {
			t.Errorf("%s: %v", sweep, err)
		}
		if _, err := f.Resolve(Commands{patient}, true); err != nil {
			t.Errorf("%s that is meant: %v", sweep, err)
		}
	}
}

// TestEqualFaultsShareALine checks that cells with the same fault share one line of the message, with their number.
func TestEqualFaultsShareALine(t *testing.T) {
	var f faults
	for i := range 9000 {
		reason := errors.New("the card has 64 slots")
		if i < 2*mostFaults {
			reason = fmt.Errorf("reason %c", 'a'+i)
		}
		f.add(fmt.Sprintf("n=%d", i), reason)
	}
	got := f.String()
	if want := "; n=4: reason e; 8995 cells for other reasons"; !strings.HasSuffix(got, want) {
		t.Errorf("9000 cells with 11 reasons: %q, want %d reasons and then %q", got, mostFaults, want)
	}
	f = faults{}
	for i := range 9000 {
		f.add(fmt.Sprintf("n=%d", i), fmt.Errorf("%d slots asked for; the card has 64", 65+i))
	}
	if got, want := f.String(), "n=0 and 8999 more: 65 slots asked for; the card has 64"; got != want {
		t.Errorf("9000 cells whose reasons differ in a number: %q, want %q", got, want)
	}
}

// TestSpotCheckExclusions checks which results of other machines a spot check leaves out, and why.
func TestSpotCheckExclusions(t *testing.T) {
	here := Build{Commit: "0123456789abcdef", Go: "go1.26", Arch: "amd64"}
	there := Build{Commit: "0123456789abcdef", Go: "go1.26", Arch: "arm64"}
	for _, c := range []struct {
		name  string
		build Build
		took  float64
		timed bool
		share float64
		want  string
	}{
		{"a short one", here, 59, false, 0.02, ""},
		{"turned off", here, 1, false, 0, "turned off"},
		{"a long one", here, 60, false, 1, "took a minute or longer"},
		{"wall time", here, 1, true, 1, "depends on wall time"},
		{"another architecture", there, 1, false, 1, "a different build or architecture, " + there.String()},
	} {
		e := &Engine{Plan: &Plan{Build: here, command: &Command{Timed: c.timed}}}
		if got := e.notRepeatableReason(&store.Maker{Build: c.build.String(), Seconds: c.took}, c.share); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
