package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/internal/test/example"
	"github.com/olafctl/olaf/results/internal/test/toy"
	"github.com/olafctl/olaf/results/sheets"
	"github.com/olafctl/olaf/results/store"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// recording is a bench in a store whose frames are being recorded.
type recording struct {
	*Recorder
	t testing.TB
	s *store.Store
	w *store.Writer
}

func record(t testing.TB, s *store.Store) *recording {
	t.Helper()
	w, err := s.Create("table1", noon)
	if err != nil {
		t.Fatal(err)
	}
	recorder, err := NewRecorder(w)
	if err != nil {
		t.Fatal(err)
	}
	return &recording{recorder, t, s, w}
}

// frames records frames of a run that continues.
func (r *recording) frames(ordinal uint32, observations []olaf.Observation) {
	r.t.Helper()
	if err := r.Observe(ordinal, observations); err != nil {
		r.t.Fatal(err)
	}
}

// whole records all frames of a run.
func (r *recording) whole(ordinal uint32, observations []olaf.Observation) {
	r.t.Helper()
	r.frames(ordinal, observations)
	if err := r.EndRun(ordinal); err != nil {
		r.t.Fatal(err)
	}
}

// long records some megabytes of a run that continues.
func (r *recording) long(ordinal uint32, frames int) {
	r.t.Helper()
	for n := 0; n < frames; n += thousand {
		r.frames(ordinal, thousandFrames(n))
	}
}

const thousand = 1000

// thousandFrames returns frames of a run from number n on, with contents that cannot be compressed.
func thousandFrames(n int) []olaf.Observation {
	frames := make([]olaf.Observation, thousand)
	for i := range frames {
		x := uint64(n+i) * 0x9e3779b97f4a7c15
		frames[i] = olaf.Observation{At: olaf.Time(n + i), Update: olaf.Update{Seq: uint32(x >> 32),
			Reward: int32(x >> 16), GenNS: x >> 16}}
	}
	return frames
}

// written returns the current size of the file of frames.
func (r *recording) written() int64 {
	r.t.Helper()
	about, err := os.Stat(filepath.Join(r.s.Dir(), "runs", "."+r.w.ID()+".incomplete", ObservationsFile))
	if err != nil {
		r.t.Fatal(err)
	}
	return about.Size()
}

// save ends the recording and writes the results next to it.
func (r *recording) save(bench *results.Bench, runs ...StoredRun) {
	r.t.Helper()
	if err := errors.Join(r.Close(), Save(r.w, bench, runs)); err != nil {
		r.t.Fatal(err)
	}
}

// kept ends the recording and the bench, and opens the stored run.
func (r *recording) kept(bench *results.Bench, runs ...StoredRun) *store.Folder {
	r.t.Helper()
	r.save(bench, runs...)
	return finished(r.t, r.s, r.w, store.Manifest{Experiment: "table1", Provenance: bench.Provenance, Valid: true})
}

// finished completes a folder and opens it.
func finished(t testing.TB, s *store.Store, w *store.Writer, m store.Manifest) *store.Folder {
	t.Helper()
	if err := w.Finish(m); err != nil {
		t.Fatal(err)
	}
	f, err := s.Load(w.ID())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// oneFrame is a run of a single frame.
var oneFrame = []olaf.Observation{{At: 1000}}

// keep stores the example with its frames; the runs are recorded at the same time.
func keep(t testing.TB, s *store.Store, runs int) *store.Folder {
	t.Helper()
	r := example.Result(runs)
	recording := record(t, s)
	kept := make([]StoredRun, len(r.Runs))
	var wait sync.WaitGroup
	for i := range r.Runs {
		run := &r.Runs[i]
		kept[i] = StoredRun{Ordinal: uint32(run.Index*4 + i/runs), Measure: example.Collect(run.OutRateBPS), Run: *run}
		wait.Go(func() {
			observations, _ := example.Observations(run.Queue == "olaf", run.OutRateBPS, run.Seed)
			for half := range 2 {
				part := observations[half*len(observations)/2 : (half+1)*len(observations)/2]
				if err := recording.Observe(kept[i].Ordinal, part); err != nil {
					t.Error(err)
				}
			}
			if err := recording.EndRun(kept[i].Ordinal); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	return recording.kept(r.Bench, kept...)
}

func opened(t testing.TB) *store.Store {
	t.Helper()
	s, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestKeepLoadVerify(t *testing.T) {
	f := keep(t, opened(t), 3)
	proof, err := Verify(f, toy.Declarations)
	if err != nil {
		t.Fatal(err)
	}
	if !proof.Raw || proof.Runs != 12 || proof.Rows != 4 || proof.Comparisons != 2 || proof.Paper != 13 ||
		proof.Observations != 3*(2*1000+2*500) {
		t.Errorf("%+v", proof)
	}
	loaded, err := Load(f, toy.Declarations)
	if err != nil {
		t.Fatal(err)
	}
	original := example.Result(3)
	a, _ := json.Marshal([]any{original.Bench, original.Runs})
	b, _ := json.Marshal([]any{loaded.Bench, loaded.Runs})
	if !bytes.Equal(a, b) {
		t.Error("what was loaded is not what was kept")
	}
	if len(loaded.Samples) != 4*samplesPerConfiguration || loaded.Samples[0].Observation.Contributors == nil {
		t.Errorf("%d samples", len(loaded.Samples))
	}
	if s := sheets.Sawtooths(loaded.Samples); len(s.Rows) == 0 {
		t.Error("no sawtooth")
	}
}

func TestFileIsIndependentOfRunOrder(t *testing.T) {
	digest := func() string {
		raw, err := os.ReadFile(keep(t, opened(t), 3).Path(ObservationsFile))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(raw)
		return hex.EncodeToString(sum[:])
	}
	first, second := digest(), digest()
	if first != second {
		t.Error("two recordings differ")
	}
}

func TestOneFlippedByteIsFound(t *testing.T) {
	f := keep(t, opened(t), 2)
	for _, name := range []string{ObservationsFile, RunsFile, BenchFile, "manifest.json", "digests.json"} {
		raw, err := os.ReadFile(f.Path(name))
		if err != nil {
			t.Fatal(err)
		}
		bad := bytes.Clone(raw)
		bad[len(bad)/2] ^= 1
		if err := os.WriteFile(f.Path(name), bad, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Verify(f, toy.Declarations); !errors.Is(err, store.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.WriteFile(f.Path(name), raw, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// reseal updates the digests to match the files, as in a run that was tampered with.
func reseal(t *testing.T, f *store.Folder) {
	t.Helper()
	digests, err := f.Digests()
	if err != nil {
		t.Fatal(err)
	}
	for i := range digests {
		raw, err := os.ReadFile(f.Path(digests[i].Name))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(raw)
		digests[i].SHA256 = hex.EncodeToString(sum[:])
	}
	raw, err := json.Marshal(digests)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.Path("digests.json"), raw, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestVerifyFindsWrongNumbers(t *testing.T) {
	for name, edit := range map[string]func(f *store.Folder) (file, old, new string){
		"run": func(*store.Folder) (string, string, string) { return RunsFile, `"jain":0.`, `"jain":0.1` },
		"row": func(*store.Folder) (string, string, string) {
			return BenchFile, `"aom_cluster_ns":{"mean":`, `"aom_cluster_ns":{"mean":1`
		},
		"paper": func(*store.Folder) (string, string, string) { return BenchFile, `"ours":{"mean":`, `"ours":{"mean":1` },
	} {
		f := keep(t, opened(t), 2)
		file, old, replacement := edit(f)
		raw, err := os.ReadFile(f.Path(file))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(raw), old) {
			t.Fatalf("%s: %s holds no %s", name, file, old)
		}
		if err := os.WriteFile(f.Path(file), []byte(strings.Replace(string(raw), old, replacement, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
		reseal(t, f)
		if _, err := Verify(f, toy.Declarations); !errors.Is(err, ErrMismatch) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestStoredWithoutFrames(t *testing.T) {
	s := opened(t)
	r := example.Result(2)
	w, err := s.Create("table1", noon)
	if err != nil {
		t.Fatal(err)
	}
	var kept []StoredRun
	for i, run := range r.Runs {
		kept = append(kept, StoredRun{Ordinal: uint32(i), Run: run})
	}
	if err := Save(w, r.Bench, kept); err != nil {
		t.Fatal(err)
	}
	f := finished(t, s, w, store.Manifest{Experiment: "table1"})
	if proof, err := Verify(f, toy.Declarations); err != nil || proof.Raw || proof.Rows != 4 {
		t.Errorf("%+v %v", proof, err)
	}
	if loaded, err := Load(f, toy.Declarations); err != nil || len(loaded.Samples) != 0 || len(loaded.Runs) != 8 {
		t.Errorf("%v", err)
	}
}

func TestInterruptedRecordingKeepsFinishedRuns(t *testing.T) {
	r := record(t, opened(t))
	r.frames(0, oneFrame) // this run never ends
	r.whole(2, oneFrame)
	r.whole(1, oneFrame)
	var got []uint32
	err := VisitObservations(r.kept(&results.Bench{}),
		func(ordinal uint32, _ *olaf.Observation) bool { got = append(got, ordinal); return true })
	if err != nil || len(got) != 2 || got[0] != 1 || got[1] != 2 {
		t.Errorf("%v %v", got, err)
	}
}

// TestLongRunIsWrittenAsItRuns checks that a long run is written while it continues, so memory stays flat, and that a
// run that was not completed is removed.
func TestLongRunIsWrittenAsItRuns(t *testing.T) {
	const frames = 600_000
	kept := func(end bool) *store.Folder {
		r := record(t, opened(t))
		r.whole(0, oneFrame)
		r.whole(2, oneFrame)
		r.long(1, frames)
		if size := r.written(); size < 2*chunk {
			t.Errorf("%d bytes are written while the run goes on", size)
		}
		if end {
			if err := r.EndRun(1); err != nil {
				t.Fatal(err)
			}
		}
		f := r.kept(&results.Bench{})
		if err := f.VerifyDigests(); err != nil {
			t.Error(err)
		}
		digests, err := f.Digests()
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range digests {
			if about, err := os.Stat(f.Path(d.Name)); err != nil || about.Size() != d.Bytes {
				t.Errorf("%s has %d bytes, %d by its digest: %v", d.Name, about.Size(), d.Bytes, err)
			}
		}
		return f
	}
	for _, end := range []bool{true, false} {
		want := map[uint32]int{0: 1, 2: 1}
		if end {
			want[1] = frames
		}
		got := map[uint32]int{}
		last := uint32(0)
		err := VisitObservations(kept(end), func(ordinal uint32, o *olaf.Observation) bool {
			if ordinal == 1 && o.At != olaf.Time(got[1]) || ordinal < last {
				t.Fatalf("run %d at %v after run %d", ordinal, o.At, last)
			}
			got[ordinal]++
			last = ordinal
			return true
		})
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("ended %v: %v, want %v: %v", end, got, want, err)
		}
	}
}

// BenchmarkKeep30Runs stores as many frames as the bare bench delivers: 30 runs of some 17,000 frames.
func BenchmarkKeep30Runs(b *testing.B) {
	s := opened(b)
	observations, _ := example.Observations(true, 120e9, 1)
	for b.Loop() {
		r := record(b, s)
		for run := range uint32(120) {
			for n := 0; n < 17000/4; n += len(observations) {
				r.frames(run, observations)
			}
			if err := r.EndRun(run); err != nil {
				b.Fatal(err)
			}
		}
		if err := errors.Join(r.Close(), r.w.Finish(store.Manifest{Experiment: "table1"})); err != nil {
			b.Fatal(err)
		}
	}
}

func TestExportsComeOutTheSame(t *testing.T) {
	s := opened(t)
	f := keep(t, s, 2)
	for _, kind := range []string{KindWorkbook, KindReport} {
		if err := StoreExportDigest(s, f, kind, "v1", toy.Declarations, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := StoreExportDigest(s, f, "odt", "v1", toy.Declarations, nil); err == nil {
		t.Error("odt")
	}
	if made, others, err := VerifyExports(s, f, "v1", toy.Declarations, nil); err != nil || made != 2 || others != 0 {
		t.Error(made, others, err)
	}
	if made, others, err := VerifyExports(s, f, "v2", toy.Declarations, nil); err != nil || made != 0 || others != 2 {
		t.Error("exports of another version were compared", made, others, err)
	}
	// Many programs share such a version, so none can be assumed to have made the exports.
	for _, tool := range []string{"(devel)", "(devel) 0123abcd",
		"v1.2.3-0.20260102030405-0123abcd4567+dirty 0123abcd4567"} {
		if err := s.SetExport(f.ID(), store.Export{Kind: KindReport, Tool: tool, SHA256: "00"}); err != nil {
			t.Fatal(err)
		}
		if made, others, err := VerifyExports(s, f, tool, toy.Declarations, nil); err != nil || made != 0 || others == 0 {
			t.Errorf("%s: %d made again, %d not comparable: %v", tool, made, others, err)
		}
	}
	if err := s.SetExport(f.ID(), store.Export{Kind: KindReport, Tool: "v1", SHA256: "00"}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := VerifyExports(s, f, "v1", toy.Declarations, nil); !errors.Is(err, ErrMismatch) ||
		!strings.Contains(err.Error(), f.ID()+": the report comes out differently (SHA-256 ") ||
		!strings.Contains(err.Error(), "…, was 00…)") {
		t.Error(err)
	}
	if err := s.Remove(f.ID()); err != nil {
		t.Fatal(err)
	}
	if left, err := s.Exports(f.ID()); err != nil || left != nil {
		t.Error(left, err)
	}
}

// TestNewRulesKeepStoredRunsValid stores a run without any output, as an older olafctl without a rule against it would,
// and checks that it stays valid.
func TestNewRulesKeepStoredRunsValid(t *testing.T) {
	for _, knew := range []bool{true, false} {
		collector := results.NewCollector(example.Collect(1e9))
		run := collector.Finish(toy.Counts(map[string]int64{"sent": 3, "in": 3, "turned_away": 3}))
		if len(run.Invalid) != 1 || !strings.Contains(run.Invalid[0], "delivered > 0 where sent > 0: 0 of 3") {
			t.Fatal(run.Invalid)
		}
		run.Invalid = nil
		f := record(t, opened(t)).kept(&results.Bench{}, StoredRun{Measure: example.Collect(1e9), Run: run})
		if !knew {
			raw, err := os.ReadFile(f.Path(RunsFile))
			if err != nil {
				t.Fatal(err)
			}
			from, to := bytes.Index(raw, []byte(`"checks":`)), bytes.Index(raw, []byte(`"runs":`))
			if err := os.WriteFile(f.Path(RunsFile), slices.Delete(raw, from, to), 0o644); err != nil {
				t.Fatal(err)
			}
			reseal(t, f)
		}
		proof, err := Verify(f, toy.Declarations)
		if knew && !errors.Is(err, ErrMismatch) || !knew && (err != nil || len(proof.Doubts) != 1) {
			t.Errorf("the rule was known %v: %+v, %v", knew, proof, err)
		}
	}
}
