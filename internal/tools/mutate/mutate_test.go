package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// toy is a module whose tests notice some mistakes and not others.
var toy = map[string]string{
	"go.mod": "module toy\n\ngo 1.26\n",
	"queue/queue.go": `package queue

import "errors"

const Slots = 4

var ErrFull = errors.New("full")

type Queue[T any] struct{ waiting []T }

func (q *Queue[T]) Put(v T, _ string) error {
	if len(q.waiting) >= Slots {
		return ErrFull
	}
	q.waiting = append(q.waiting, v)
	return nil
}

func Sum(_ int, vs ...int) (sum int) {
	for _, v := range vs {
		sum += v
	}
	return sum
}

func Unasked(a, b int) int { return minus(a, b) }

func minus(a, b int) int { return a - b }

func Spin(n int) {
	for n > 0 {
		n--
	}
}
`,
	"queue/queue_test.go": `package queue

import "testing"

func TestPut(t *testing.T) {
	q := Queue[int]{}
	for range 4 {
		if q.Put(1, "") != nil {
			t.Fatal("refused")
		}
	}
	if q.Put(1, "") == nil {
		t.Fatal("taken")
	}
	if Sum(0, 1, 2) != 3 {
		t.Fatal("sum")
	}
	Spin(3)
}
`,
}

func inToy(t *testing.T) {
	t.Helper()
	folder := t.TempDir()
	for name, text := range toy {
		name = filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(folder)
}

// TestToy runs every mutant of the toy and checks that changes in tested behaviour are noticed, that the others
// survive, and that the tree does not change.
func TestToy(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs")
	}
	inToy(t)
	o := options{pkg: "queue", kept: "kept", seed: 1}
	target, err := load(o.pkg)
	if err != nil {
		t.Fatal(err)
	}
	all, broken := target.draw(target.listMutants(), 0, 1)
	results, err := openKept(o)
	if err != nil {
		t.Fatal(err)
	}
	r := runner{options: o, target: target, results: results}
	if err := r.runAll(all); err != nil {
		t.Fatal(err)
	}
	got := map[string]fate{}
	for _, m := range all {
		got[m.id] = results.of(m)
	}
	want := map[string]fate{
		"package: 4 → 5": noticed,
		"package: 4 → 3": noticed,
		"Queue[T].Put: len(q.waiting) >= Slots → len(q.waiting) > Slots":      noticed,
		"Queue[T].Put: len(q.waiting) >= Slots → len(q.waiting) < Slots":      noticed,
		"Queue[T].Put: Slots → Slots + 1":                                     noticed,
		"Queue[T].Put: return ErrFull → return nil":                           noticed,
		"Queue[T].Put: without if len(q.waiting) >= Slots { return ErrFull }": noticed,
		"Queue[T].Put: without q.waiting = append(q.waiting, v)":              noticed,
		"Sum: sum += v → sum -= v":                                            noticed,
		"Sum: sum += v → sum = v":                                             noticed,
		"Unasked: minus(a, b) → minus(b, a)":                                  survived,
		"minus: a - b → a + b":                                                survived,
		"minus: a - b → a":                                                    survived,
		"minus: a - b → b":                                                    survived,
		"Spin: without n--":                                                   endless,
		"Spin: n-- → n++":                                                     endless,
		"Spin: n > 0 → n >= 0":                                                survived,
		"Spin: n > 0 → n <= 0":                                                survived,
		"Spin: 0 → 1":                                                         survived,
		"Spin: 0 → -1":                                                        survived,
	}
	for id, w := range want {
		if got[id] != w {
			t.Errorf("%q: %q, want %q", id, got[id], w)
		}
		delete(got, id)
	}
	for id, f := range got {
		t.Errorf("a mutant that nobody expected: %q %q", id, f)
	}
	if broken != 1 {
		t.Errorf("%d mutants do not compile, want 1: without sum += v nothing uses v", broken)
	}
	if text, err := os.ReadFile("queue/queue.go"); err != nil || string(text) != toy["queue/queue.go"] {
		t.Errorf("the tree was written to: %v", err)
	}
	var said bytes.Buffer
	report(&said, o, all, results, reasons{"Spin: n > 0 → n >= 0": "one round more changes nothing"}, reasons{"minus: a - b → a + b": "nobody subtracts"})
	if last := "queue: 20 mutants of seed 1, 1 judged equivalent, 12 noticed (2 of them by not ending), 7 survived: 63.2 %\n"; !strings.HasSuffix(said.String(), last) {
		t.Errorf("report:\n%swant at the end: %s", said.String(), last)
	}
	for _, line := range []string{"queue/queue.go:26  Unasked: minus(a, b) → minus(b, a)  no reason yet\n", "queue/queue.go:28  minus: a - b → a + b                nobody subtracts\n"} {
		if !strings.Contains(said.String(), line) {
			t.Errorf("a survivor is not listed with its place and the reason: %q in\n%s", line, said.String())
		}
	}
	again(t, o, all)
}

// again opens the stored results and checks that nothing runs twice unless a test changes, and that then only the
// survivors run.
func again(t *testing.T, o options, all []*mutant) {
	t.Helper()
	results, err := openKept(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if !results.known(m) {
			t.Errorf("%q would be run again", m.id)
		}
	}
	if err := os.WriteFile("queue/more_test.go", []byte("package queue\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if results, err = openKept(o); err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if survivor := results.by[m.id].Fate == survived; results.known(m) == survivor {
			t.Errorf("%q after a change of the tests: known %v", m.id, !survivor)
		}
	}
}

// TestOperands checks that one operand is dropped from each binary expression whose type stays the same without it, and
// from no other.
func TestOperands(t *testing.T) {
	inToy(t)
	const file = "package queue\n\nfunc Operands(a, b int, n uint8, p bool, s string) (int, bool, string, bool) {\n" +
		"\treturn a<<n + a*(a-b)%b, p && a < b || p == (b > a), \"it \" + s, s == \"\"\n}\n"
	if err := os.WriteFile("queue/operands.go", []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	target, err := load("queue")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, m := range target.listMutants() {
		was, is, _ := strings.Cut(strings.TrimPrefix(m.id, "Operands: "), " → ")
		if strings.HasPrefix(m.id, "Operands: ") && len(is) < len(was) && (strings.HasPrefix(was, is) || strings.HasSuffix(was, is)) {
			got[was+" → "+is] = true
			if !target.compiles(m) {
				t.Errorf("%q does not compile", m.id)
			}
		}
	}
	for _, id := range []string{
		"a<<n + a*(a-b)%b → a<<n", "a<<n + a*(a-b)%b → a*(a-b)%b", "a<<n → a", "a*(a-b)%b → a*(a-b)", "a*(a-b)%b → b", "a*(a-b) → a", "a*(a-b) → (a-b)", "a-b → a", "a-b → b",
		"p && a < b || p == (b > a) → p && a < b", "p && a < b || p == (b > a) → p == (b > a)", "p && a < b → p", "p && a < b → a < b",
		"p == (b > a) → p", "p == (b > a) → (b > a)", `"it " + s → "it "`, `"it " + s → s`,
	} {
		if !got[id] {
			t.Errorf("no mutant is %q", id)
		}
		delete(got, id)
	}
	for id := range got {
		t.Errorf("a mutant that nobody expected: %q", id)
	}
}

// TestTimedOutMutantIsRetried gives programs no wall time, as on a busy machine. It checks that a mutant that ends in
// the second try does not count as noticed because of that, and that an endless one does.
func TestTimedOutMutantIsRetried(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs")
	}
	inToy(t)
	o := options{pkg: "queue", kept: "kept", seed: 1}
	target, err := load(o.pkg)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]fate{"Spin: n > 0 → n >= 0": survived, "minus: a - b → a + b": survived, "Sum: sum += v → sum = v": noticed, "Spin: without n--": endless}
	batch := slices.DeleteFunc(target.listMutants(), func(m *mutant) bool { return want[m.id] == "" })
	r := runner{options: o, target: target}
	b, err := r.build(batch)
	if err != nil {
		t.Fatal(err)
	}
	defer b.remove()
	for _, m := range batch {
		b.allow(limits{processor: 2})
		if got, _, err := b.run(m); got != want[m.id] || err != nil {
			t.Errorf("%q: %q, want %q: %v", m.id, got, want[m.id], err)
		}
		if b.limits.wall != 0 {
			t.Errorf("after %q others have %s", m.id, b.limits.wall)
		}
	}
	if len(batch) != len(want) {
		t.Errorf("%d of %d mutants", len(batch), len(want))
	}
}

// TestDrawIsSeeded checks that equal seeds give equal samples, that different ones do not, and that no mutant is drawn
// twice.
func TestDrawIsSeeded(t *testing.T) {
	inToy(t)
	target, err := load("queue")
	if err != nil {
		t.Fatal(err)
	}
	ids := func(seed uint64) (ids []string) {
		sample, _ := target.draw(target.listMutants(), 8, seed)
		for _, m := range sample {
			ids = append(ids, m.id)
		}
		return ids
	}
	first := ids(1)
	if !slices.Equal(first, ids(1)) {
		t.Error("seed 1 drew two samples")
	}
	if slices.Equal(first, ids(2)) {
		t.Error("seeds 1 and 2 drew the same sample")
	}
	slices.Sort(first)
	if len(slices.Compact(first)) != 8 {
		t.Errorf("%d different mutants, want 8", len(slices.Compact(first)))
	}
}

// TestReviewedSamplesAreNotRedrawn checks that reviewed samples are not drawn again, until no mutants are left.
func TestReviewedSamplesAreNotRedrawn(t *testing.T) {
	inToy(t)
	target, err := load("queue")
	if err != nil {
		t.Fatal(err)
	}
	all := target.listMutants()
	samples := func(from []*mutant, seeds ...uint64) []*mutant {
		var both []*mutant
		for _, seed := range seeds {
			sample, _ := target.draw(from, 4, seed)
			both = append(both, sample...)
		}
		return both
	}
	o := options{n: 4}
	var left []*mutant
	for step, seeds := range []string{"1,2", "3"} {
		before := target.unseen(all, o)
		looked := samples(before, [][]uint64{{1, 2}, {3}}[step]...)
		if err := o.addSeen(seeds); err != nil {
			t.Fatal(err)
		}
		left = target.unseen(all, o)
		for _, m := range all {
			if want := slices.Contains(before, m) && !slices.Contains(looked, m); slices.Contains(left, m) != want {
				t.Errorf("after %s: %q is left %t, want %t", seeds, m.id, !want, want)
			}
		}
	}
	if len(left) == 0 || len(samples(left, 4)) == 0 {
		t.Error("nothing is left of 20 that compile")
	}
	if err := o.addSeen("1,x"); err == nil {
		t.Error("a seed that is no number was taken")
	}
}

// TestCommittedListsAreValid checks the committed lists: every line has its parts, names an existing mutant, and is in
// one list only.
func TestCommittedListsAreValid(t *testing.T) {
	if testing.Short() {
		t.Skip("loads packages with their types")
	}
	t.Chdir("../../..")
	lists := []string{"internal/tools/mutate/equivalent.txt", "internal/tools/mutate/survivors.txt"}
	named := map[string]bool{}
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			t.Fatal(err)
		}
		for l := range strings.Lines(string(text)) {
			if pkg, _, ok := strings.Cut(l, " "); ok && !strings.HasPrefix(l, "#") {
				named[pkg] = true
			}
		}
	}
	for pkg := range named {
		target, err := load(pkg)
		if err != nil {
			t.Fatal(err)
		}
		all, judged := target.listMutants(), map[string]bool{}
		for _, list := range lists {
			found, err := readJudged(list, pkg)
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range found.stale(all) {
				t.Errorf("%s: no mutant of %s is %q", list, pkg, id)
			}
			for id := range found {
				if judged[id] {
					t.Errorf("%s: %q changes nothing and survives", pkg, id)
				}
				judged[id] = true
			}
		}
	}
}

func TestJudgedMutantsNeedAReason(t *testing.T) {
	name := filepath.Join(t.TempDir(), "list")
	for _, text := range []string{"fpga/engine f: a → b\n", "fpga/engine f: a → b | \n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readJudged(name, "fpga/engine"); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}
