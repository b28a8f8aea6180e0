package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/pktgen/trace"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/archive"
	"github.com/olafctl/olaf/results/store"
)

// runAndKeep runs s into a new store.
func runAndKeep(t *testing.T, s Spec) (*store.Store, *store.Folder) {
	t.Helper()
	st, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	k := NewKeeper(st, time.Unix(1_700_000_000, 0))
	report := mustBench(t, s, Options{Stream: NewStream(k)})
	id, err := k.Finish(report)
	if err != nil {
		t.Fatal(err)
	}
	f, err := st.Load(id)
	if err != nil {
		t.Fatal(err)
	}
	return st, f
}

func TestKeptRunRepeats(t *testing.T) {
	_, f := runAndKeep(t, smallSpecOf(t))
	proof, err := archive.Verify(f, system.All().FindDeclaration)
	if err != nil {
		t.Fatal(err)
	}
	if proof.Runs != 4 || !proof.Raw || proof.Rows != 4 || proof.Observations == 0 {
		t.Errorf("proof %+v", proof)
	}
	if n, err := RepeatStored(t.Context(), system.All(), f, NewStream()); err != nil || n != 4*5 {
		t.Errorf("%d runs repeated: %v", n, err)
	}
	r, err := archive.Load(f, system.All().FindDeclaration)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Runs) != 4*5 || len(r.Samples) == 0 || r.Delivered == 0 {
		t.Errorf("%d runs, %d samples, %d delivered", len(r.Runs), len(r.Samples), r.Delivered)
	}
	if !f.Manifest.Valid || f.Manifest.Partial {
		t.Errorf("manifest says valid %v, partial %v", f.Manifest.Valid, f.Manifest.Partial)
	}
}

// TestBenchOmitsWithholding checks that a bench's output does not mention what only simulated workers do.
func TestBenchOmitsWithholding(t *testing.T) {
	_, f := runAndKeep(t, smallSpecOf(t))
	for _, name := range []string{archive.BenchFile, archive.RunsFile} {
		raw, err := f.ReadFile(name)
		if err != nil || !strings.Contains(string(raw), "dropped_full") || strings.Contains(string(raw), "tc_withheld") {
			t.Errorf("%s: %s %v", name, raw, err)
		}
	}
	header, rows := mustBench(t, smallSpecOf(t), Options{}).Table()
	if columns := 4 + 2*(len(results.MetricsOf([]results.Run{{Declared: system.QueueDeclaration()}}))); len(header) != columns ||
		len(rows[0]) != columns || slices.Contains(header, "tc_withheld") {
		t.Errorf("%d columns: %q", len(rows[0]), header)
	}
}

// TestVerifyDetectsOneByte checks that verification detects a flipped byte in any file of a run.
func TestVerifyDetectsOneByte(t *testing.T) {
	_, f := runAndKeep(t, smallSpecOf(t))
	for _, name := range []string{archive.PlanFile, eventsFile, archive.BenchFile, archive.RunsFile, archive.ObservationsFile} {
		raw, err := os.ReadFile(f.Path(name))
		if err != nil {
			t.Fatal(err)
		}
		raw[len(raw)/2] ^= 1
		if err := os.WriteFile(f.Path(name), raw, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Verify(f, system.All().FindDeclaration); !errors.Is(err, store.ErrDamaged) ||
			!strings.Contains(err.Error(), name) {
			t.Errorf("%s with a flipped byte: %v", name, err)
		}
		raw[len(raw)/2] ^= 1
		if err := os.WriteFile(f.Path(name), raw, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestVerifyDetectsChangedNumbers checks that verification detects a number that follows neither from its frames nor
// from the plan, as in a manipulated file with new digests.
func TestVerifyDetectsChangedNumbers(t *testing.T) {
	st, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	k := NewKeeper(st, time.Unix(1_700_000_000, 0))
	report := mustBench(t, smallSpecOf(t), Options{Stream: NewStream(k)})
	m := &report.Outcome.Runs[1][0].Metrics
	raw, err := json.Marshal(*m)
	if err == nil {
		err = json.Unmarshal(bytes.Replace(raw, []byte(`"aom_cluster_ns":`), []byte(`"aom_cluster_ns":1`), 1), m)
	}
	if err != nil {
		t.Fatal(err)
	}
	name, err := k.Finish(report)
	if err != nil {
		t.Fatal(err)
	}
	f, err := st.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Verify(f, system.All().FindDeclaration); !errors.Is(err, archive.ErrMismatch) {
		t.Errorf("error %v, want ErrMismatch", err)
	}
	if _, err := RepeatStored(t.Context(), system.All(), f, NewStream()); !errors.Is(err, archive.ErrDiffers) {
		t.Errorf("error %v, want ErrDiffers", err)
	}
}

// TestUnfinishedRunIsMarked checks that the folder of a process that died is marked, and that the store still works.
func TestUnfinishedRunIsMarked(t *testing.T) {
	dir := t.TempDir()
	st, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	k := NewKeeper(st, time.Unix(1_700_000_000, 0))
	mustBench(t, smallSpecOf(t), Options{Stream: NewStream(k)})
	entries, err := st.List()
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || entries[0].State == store.Complete {
		t.Errorf("the list is %+v", entries)
	}
	if err := k.Abort(); err != nil {
		t.Fatal(err)
	}
	if entries, err = st.List(); err != nil || len(entries) != 0 {
		t.Errorf("after the abort: %+v, %v", entries, err)
	}
}

// TestManifestNamesAllInputs checks that the manifest contains everything that determines a result.
func TestManifestNamesAllInputs(t *testing.T) {
	s := smallSpecOf(t)
	traffic, err := trace.NewTraffic("builtin:lander8", &s.Workload)
	if err != nil {
		t.Fatal(err)
	}
	s.Trace = traffic
	_, f := runAndKeep(t, s)
	var fixed essence
	if err := json.Unmarshal(f.Manifest.Deterministic, &fixed); err != nil {
		t.Fatal(err)
	}
	if fixed.Seed != s.Seed || fixed.Trace != traffic.Digest || fixed.MapVersion == "" || fixed.Build == "" ||
		fixed.DeviceKind != "twin" {
		t.Errorf("the manifest says %+v", fixed)
	}
	for name, sum := range map[string]string{"plan": fixed.Plan, "P4Info": fixed.P4Info, "tables": fixed.Tables, "trace": fixed.Trace,
		"spec": f.Manifest.SpecSHA256} {
		if len(sum) != 64 {
			t.Errorf("the digest of %s is %q", name, sum)
		}
	}
}

// BenchmarkBenchKept runs BenchmarkBench with every run stored, for comparison.
func BenchmarkBenchKept(b *testing.B) {
	st, err := store.Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	for b.Loop() {
		k := NewKeeper(st, time.Unix(1_700_000_000, 0))
		report, err := MeasureSpec(b.Context(), usualSpec(), Options{Stream: NewStream(k)})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := k.Finish(report); err != nil {
			b.Fatal(err)
		}
	}
	updates := 4 * 30 * 13_500
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(updates), "ns/update")
}
