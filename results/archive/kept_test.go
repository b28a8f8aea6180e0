package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/internal/test/example"
	"github.com/olafctl/olaf/results/internal/test/toy"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/sheets"
	"github.com/olafctl/olaf/results/store"
	"github.com/olafctl/olaf/results/table"
	"github.com/olafctl/olaf/results/xlsx"
)

// measured returns a run of the example and its frames.
func measured(seed uint64) (results.Run, []olaf.Observation) {
	observations, counters := example.Observations(true, 40e9, seed)
	collector := results.NewCollector(example.Collect(40e9))
	for i := range observations {
		collector.Observe(&observations[i])
	}
	run := collector.Finish(counters)
	run.Queue, run.OutRateBPS, run.Index, run.Seed = "olaf", 40e9, int(seed), seed
	return run, observations
}

// saved stores a bench with some runs, the frames of the runs with the given numbers, and additional documents.
func saved(t *testing.T, bench *results.Bench, kept []StoredRun, frames []uint32, documents ...string) *store.Folder {
	t.Helper()
	r := record(t, opened(t))
	for _, ordinal := range frames {
		_, observations := measured(uint64(ordinal))
		r.whole(ordinal, observations)
	}
	r.save(bench, kept...)
	for _, text := range documents {
		if err := r.w.Put(DocumentFile, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	return finished(t, r.s, r.w, store.Manifest{Experiment: "table1", Valid: true})
}

func keptRun(ordinal uint32) StoredRun {
	run, _ := measured(uint64(ordinal))
	return StoredRun{Ordinal: ordinal, Measure: example.Collect(40e9), Run: run}
}

// TestForeignFramesInBetween checks that frames that belong to no run are found between those of other runs.
func TestForeignFramesInBetween(t *testing.T) {
	f := saved(t, &results.Bench{Schema: results.BenchSchema}, []StoredRun{keptRun(0), keptRun(2)}, []uint32{0, 1, 2})
	if _, err := Verify(f, toy.Declarations); !errors.Is(err, ErrMismatch) || !strings.Contains(err.Error(),
		"frames of a run 1 that is not listed") {
		t.Errorf("%v", err)
	}
}

// TestFramesOfAnUnfinishedSeed stores frames of runs that are in no list, as a bench that ended early leaves them. They
// must not enter any number. The same run twice, and an unlisted run of a finished bench, are still errors.
func TestFramesOfAnUnfinishedSeed(t *testing.T) {
	for _, c := range []struct {
		name    string
		partial bool
		frames  []uint32
		ok      bool
	}{
		{"ended early", true, []uint32{0, 1, 2, 3}, true}, {"finished", false, []uint32{0, 1, 2, 3}, false},
		{"first", true, []uint32{1, 0, 2}, true}, {"last", true, []uint32{0, 2, 7}, true},
		{"twice", true, []uint32{0, 1, 0, 2}, false},
	} {
		r := record(t, opened(t))
		unfinished := int64(0)
		for _, ordinal := range c.frames {
			_, observations := measured(uint64(ordinal))
			if ordinal != 0 && ordinal != 2 {
				unfinished += int64(len(observations))
			}
			r.whole(ordinal, observations)
		}
		r.save(&results.Bench{Schema: results.BenchSchema, Partial: c.partial}, keptRun(0), keptRun(2))
		f := finished(t, r.s, r.w, store.Manifest{Experiment: "table1", Partial: c.partial})
		proof, err := Verify(f, toy.Declarations)
		if (err == nil) != c.ok || !c.ok && !errors.Is(err, ErrMismatch) {
			t.Errorf("%s: %v, accepted is %v", c.name, err, c.ok)
		} else if c.ok && (proof.Unfinished != unfinished || proof.Runs != 2) {
			t.Errorf("%s: %+v, want %d frames of unfinished seeds", c.name, proof, unfinished)
		}
	}
}

// TestEveryRunIsCompared checks that the numbers of every run, including the last, are compared with its frames.
func TestEveryRunIsCompared(t *testing.T) {
	for wrong := range 3 {
		kept := []StoredRun{keptRun(0), keptRun(1), keptRun(2)}
		other, _ := measured(9)
		kept[wrong].Run.Metrics = other.Metrics
		f := saved(t, &results.Bench{Schema: results.BenchSchema}, kept, []uint32{0, 1, 2})
		if _, err := Verify(f, toy.Declarations); !errors.Is(err, ErrMismatch) || !strings.Contains(err.Error(),
			fmt.Sprintf("run %d of olaf", wrong)) {
			t.Errorf("run %d has another's numbers: %v", wrong, err)
		}
	}
}

// TestRememberedWorkbook checks that the stored digest of the workbook is that of the exported workbook.
func TestRememberedWorkbook(t *testing.T) {
	s := opened(t)
	f := keep(t, s, 1)
	if err := StoreExportDigest(s, f, KindWorkbook, "v1", toy.Declarations, nil); err != nil {
		t.Fatal(err)
	}
	r, err := LoadExportable(f, toy.Declarations, nil)
	if err != nil {
		t.Fatal(err)
	}
	h := sha256.New()
	if err := xlsx.Write(h, sheets.Book(r)); err != nil {
		t.Fatal(err)
	}
	if exports, err := s.Exports(f.ID()); err != nil || len(exports) != 1 ||
		exports[0].SHA256 != hex.EncodeToString(h.Sum(nil)) {
		t.Errorf("%+v, %v", exports, err)
	}
}

func TestKindsOfErrors(t *testing.T) {
	for err, want := range map[error]olaf.Kind{ErrMismatch: olaf.Missed, ErrDocumentOnly: olaf.Usage} {
		if kind, _ := olaf.KindOf(err); kind != want {
			t.Errorf("%v is of kind %v, want %v", err, kind, want)
		}
	}
}

// TestEarlyRunsDoNotDelayWriting checks that runs that end before their turn do not keep a later run in memory: it is
// written while it continues.
func TestEarlyRunsDoNotDelayWriting(t *testing.T) {
	r := record(t, opened(t))
	r.whole(1, oneFrame)
	r.whole(0, oneFrame)
	r.long(2, 200_000)
	if size := r.written(); size < chunk {
		t.Errorf("%d bytes are written while the run goes on", size)
	}
	if err := errors.Join(r.EndRun(2), r.Close(), r.w.Abort()); err != nil {
		t.Fatal(err)
	}
}

// TestLongRunWaitsForItsTurn checks that a long run whose turn has not come waits for it, whatever its size.
func TestLongRunWaitsForItsTurn(t *testing.T) {
	r := record(t, opened(t))
	r.long(1, 200_000)
	r.whole(0, oneFrame)
	if err := r.EndRun(1); err != nil {
		t.Fatal(err)
	}
	var order []uint32
	if err := VisitObservations(r.kept(&results.Bench{}), func(ordinal uint32, _ *olaf.Observation) bool {
		if n := len(order); n == 0 || order[n-1] != ordinal {
			order = append(order, ordinal)
		}
		return true
	}); err != nil || !slices.Equal(order, []uint32{0, 1}) {
		t.Errorf("runs in the order %v, %v", order, err)
	}
}

// TestEveryConfigurationHasSamples checks that every configuration, including the last, has its samples.
func TestEveryConfigurationHasSamples(t *testing.T) {
	a, b := keptRun(0), keptRun(1)
	b.Run.Queue = "another"
	f := saved(t, &results.Bench{Schema: results.BenchSchema}, []StoredRun{a, b}, []uint32{0, 1})
	r, err := Load(f, toy.Declarations)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for i := range r.Samples {
		count[r.Samples[i].Queue]++
	}
	if count["olaf"] != samplesPerConfiguration || count["another"] != samplesPerConfiguration {
		t.Errorf("%v, want %d of each", count, samplesPerConfiguration)
	}
}

// TestSystemsAreKept checks that a run stores the name of the system under which it was measured and is read with that
// system's declaration, and that rows follow it.
func TestSystemsAreKept(t *testing.T) {
	other := *toy.Declared
	other.System = "other"
	other.Metrics = slices.Clone(other.Metrics)
	for i := range other.Metrics {
		m := *other.Metrics[i]
		m.Title += " of another"
		other.Metrics[i] = &m
	}
	d := func(system string) *metric.Declaration {
		if system == other.System {
			return &other
		}
		return toy.Declarations(system)
	}
	k := keptRun(0)
	k.Run.Declare(&other)
	bench := &results.Bench{Schema: results.BenchSchema, Rows: []results.Row{results.Summarise(&other,
		[]results.Run{k.Run})}}
	f := saved(t, bench, []StoredRun{k}, []uint32{0})
	kept, err := Runs(f, d)
	if err != nil || len(kept) != 1 || kept[0].System != "other" || kept[0].Run.Declared != &other {
		t.Fatalf("%+v, %v", kept, err)
	}
	loaded, err := Load(f, d)
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for _, stat := range loaded.Bench.Rows[0].Stats {
		if want := other.Metric(stat.Name); want != nil {
			if rows++; stat.Metric != want {
				t.Errorf("%s is titled %q, the system says %q", stat.Name, stat.Metric.Title, want.Title)
			}
		}
	}
	if rows == 0 {
		t.Error("the row has no statistic")
	}
	if proof, err := Verify(f, d); err != nil || proof.Rows != 1 || proof.Runs != 1 || len(proof.New)+
		len(proof.Unknown) > 0 {
		t.Errorf("%+v, %v", proof, err)
	}
}

// TestEmptyAndWithheldRunsVerify checks that a run in which nothing was sent, and one whose ages were withheld, are
// verified like any other.
func TestEmptyAndWithheldRunsVerify(t *testing.T) {
	collector := results.NewCollector(example.Collect(40e9))
	nothing := StoredRun{Ordinal: 0, Measure: example.Collect(40e9), Run: collector.Finish(toy.Counts(nil))}
	withheld := keptRun(1)
	withheld.Run.Withhold("the clocks were too far apart")
	f := saved(t, &results.Bench{Schema: results.BenchSchema}, []StoredRun{nothing, withheld}, []uint32{1})
	proof, err := Verify(f, toy.Declarations)
	if err != nil || proof.Runs != 2 || !proof.Raw {
		t.Errorf("%+v, %v", proof, err)
	}
}

// TestNewMetricsAreListedInOrder checks that metrics that are newer than a stored run are listed in the order of the
// runs, each name once.
func TestNewMetricsAreListedInOrder(t *testing.T) {
	f := saved(t, &results.Bench{Schema: results.BenchSchema}, []StoredRun{keptRun(0), keptRun(1)}, []uint32{0, 1})
	// The first run lacks metrics that the declaration lists later.
	var early, late string
	for _, m := range toy.Declared.Metrics {
		switch {
		case m.Of == nil:
		case early == "":
			early = m.Name
		case late == "":
			late = m.Name
		}
	}
	raw, err := f.ReadFile(RunsFile)
	if err != nil {
		t.Fatal(err)
	}
	var document any
	if err := json.Unmarshal(raw, &document); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{late, early} {
		run := document.(map[string]any)["runs"].([]any)[i].(map[string]any)["run"].(map[string]any)
		delete(run["metrics"].(map[string]any), name)
	}
	if raw, err = json.Marshal(document); err == nil {
		err = os.WriteFile(f.Path(RunsFile), raw, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	reseal(t, f)
	proof, err := Verify(f, toy.Declarations)
	if err != nil || !slices.Equal(proof.New, []string{late, early}) {
		t.Errorf("%+v, %v, want what is new to be %s, then %s", proof, err, late, early)
	}
}

// TestSavingErrors checks the errors for contents that cannot be written, and for a run that is already written.
func TestSavingErrors(t *testing.T) {
	r := record(t, opened(t))
	if _, err := NewRecorder(r.w); err == nil {
		t.Error("two recordings of one run")
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Save(r.w, &results.Bench{Config: json.RawMessage("{")}, nil); err == nil ||
		!strings.Contains(err.Error(), BenchFile+" can't be written") {
		t.Errorf("%v", err)
	}
	if err := r.w.Abort(); err != nil {
		t.Fatal(err)
	}
}

// TestRunsWithComparisonsVerify checks that a run with values to compare with is verified together with them.
func TestRunsWithComparisonsVerify(t *testing.T) {
	k := keptRun(0)
	k.Run.Decisions = &olaf.Decisions{Checked: 3, Equal: 3}
	k.Run.TwinComparisons = map[string]results.TwinComparison{"aom_cluster_ns": {Plan: 1, Twin: 2,
		Measured: k.Run.Metrics.Of("aom_cluster_ns")}}
	if proof, err := Verify(saved(t, &results.Bench{Schema: results.BenchSchema}, []StoredRun{k}, []uint32{0}),
		toy.Declarations); err != nil || proof.Runs != 1 {
		t.Errorf("%+v, %v", proof, err)
	}
}

// TestDocumentStoredWithRuns checks that a document stored with runs adds its sheets and statements to them and removes
// nothing.
func TestDocumentStoredWithRuns(t *testing.T) {
	lay := func([]byte) ([]table.Sheet, error) {
		return []table.Sheet{{Name: "Toy", Columns: []table.Column{{Header: "x"}}, Rows: [][]table.Cell{{table.N(1)}}}}, nil
	}
	bench := &results.Bench{Schema: results.BenchSchema, Config: json.RawMessage(`{"a":1}`), Statements: []string{"one"}}
	f := saved(t, bench, []StoredRun{keptRun(0)}, []uint32{0}, `{"schema":"toy/v1","statements":["two"]}`)
	r, err := LoadExportable(f, toy.Declarations, Layouts{"toy": lay})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Runs) != 1 || len(r.Own) != 1 || string(r.Bench.Config) != `{"a":1}` ||
		!slices.Equal(r.Bench.Statements, []string{"one", "two"}) {
		t.Errorf("%d runs, %d sheets, config %s, %q", len(r.Runs), len(r.Own), r.Bench.Config, r.Bench.Statements)
	}
	for _, broken := range []string{`[]`, `{`} {
		if _, err := LoadExportable(saved(t, bench, []StoredRun{keptRun(0)}, []uint32{0}, broken), toy.Declarations,
			nil); !errors.Is(err, store.ErrDamaged) {
			t.Errorf("%s: %v", broken, err)
		}
	}
}

// TestFirstVersionDocuments checks that a document of the first version is judged again, that a statement reports this
// if anything was judged, and that claims that no longer exist are counted.
func TestFirstVersionDocuments(t *testing.T) {
	const first = "olafctl.bench/v1"
	plain := saved(t, &results.Bench{Schema: first}, []StoredRun{keptRun(0)}, []uint32{0})
	if r, err := Load(plain, toy.Declarations); err != nil || len(r.Bench.Statements) != 0 ||
		r.Bench.Schema != results.BenchSchema {
		t.Errorf("%+v, %v", r.Bench, err)
	}
	example := example.Result(2)
	example.Bench.Schema = first
	claims := len(example.Bench.Paper)
	gone := example.Bench.Paper[0]
	gone.ID = "olaf/table1.olaf.40g.forgotten"
	example.Bench.Paper = append(example.Bench.Paper, gone)
	kept := make([]StoredRun, len(example.Runs))
	for i := range kept {
		kept[i] = StoredRun{Ordinal: uint32(i), Run: example.Runs[i], NoFrames: true}
	}
	f := saved(t, example.Bench, kept, nil)
	if proof, err := Verify(f, toy.Declarations); err != nil || proof.Anew != claims || proof.Dropped != 1 {
		t.Errorf("%+v, %v, want %d judged anew and 1 dropped", proof, err, claims)
	}
	old := example.Bench.Paper[0]
	old.Kind = "" // the first version had no kinds
	old.Ours.Mean++
	if _, err := Verify(saved(t, &results.Bench{Schema: first, Rows: example.Bench.Rows,
		Paper: []results.PaperRow{old}}, kept, nil), toy.Declarations); !errors.Is(err, ErrMismatch) {
		t.Errorf("a number that is not the runs': %v", err)
	}
	one := &results.Bench{Schema: first, Rows: example.Bench.Rows, Paper: []results.PaperRow{example.Bench.Paper[0], gone}}
	if proof, err := Verify(saved(t, one, kept, nil), toy.Declarations); err != nil || proof.Anew != 1 ||
		proof.Dropped != 1 {
		t.Errorf("%+v, %v, want 1 judged anew and 1 dropped", proof, err)
	}
	if r, err := Load(f, toy.Declarations); err != nil || len(r.Bench.Statements) != 2 ||
		!strings.Contains(r.Bench.Statements[1], "judged again") {
		t.Errorf("%q, %v", r.Bench.Statements, err)
	}
}
