package archive

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/internal/test/golden"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/internal/test/example"
	"github.com/olafctl/olaf/results/internal/test/toy"
	"github.com/olafctl/olaf/results/store"
	"github.com/olafctl/olaf/results/table"
)

// leaf is one value of a document, with a way to replace it.
type leaf struct {
	path string
	put  func(any)
	now  any
}

func leavesOf(path string, v any, put func(any)) (all []leaf) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			all = append(all, leavesOf(path+"."+key, v[key], func(x any) { v[key] = x })...)
		}
	case []any:
		for i := range v {
			all = append(all, leavesOf(fmt.Sprintf("%s[%d]", path, i), v[i], func(x any) { v[i] = x })...)
		}
	default:
		all = append(all, leaf{path, put, v})
	}
	return all
}

// other returns a different value of the same kind.
func other(v any) any {
	switch v := v.(type) {
	case float64:
		return v + 1
	case string:
		return v + "x"
	case bool:
		return !v
	}
	return 5.0
}

// firstLine returns an error's text without the store's path.
func firstLine(f *store.Folder, err error) string {
	line, _, _ := strings.Cut(fmt.Sprint(err), "\n")
	return strings.ReplaceAll(line, filepath.Dir(filepath.Dir(f.Path(""))), "STORE")
}

// TestTamperingMessages checks the messages for a stored run in which a number was changed and the digests were updated
// to match: every third kind of change.
func TestTamperingMessages(t *testing.T) {
	f := keep(t, opened(t), 2)
	var b bytes.Buffer
	for _, file := range []string{BenchFile, RunsFile} {
		raw, err := f.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var document any
		if err := json.Unmarshal(raw, &document); err != nil {
			t.Fatal(err)
		}
		leaves := leavesOf(file, document, nil)
		said := map[string]int{}
		for _, l := range leaves {
			kind := strings.Map(func(r rune) rune {
				if r >= '0' && r <= '9' {
					return -1
				}
				return r
			}, l.path)
			if said[kind]++; said[kind] > 1 || len(said)%3 > 0 {
				continue
			}
			l.put(other(l.now))
			changed, err := json.Marshal(document)
			if err != nil {
				t.Fatal(err)
			}
			l.put(l.now)
			if err := os.WriteFile(f.Path(file), changed, 0o600); err != nil {
				t.Fatal(err)
			}
			reseal(t, f)
			proof, err := Verify(f, toy.Declarations)
			fmt.Fprintf(&b, "%s: %s\n", l.path, firstLine(f, err))
			if err == nil {
				fmt.Fprintf(&b, "  %+v\n", *proof)
			}
		}
		if err := os.WriteFile(f.Path(file), raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	golden.Equal(t, "meddling.txt", b.Bytes())
}

// TestMissingFileMessages checks the messages for a folder in which a file is missing or is not a regular file.
func TestMissingFileMessages(t *testing.T) {
	var b bytes.Buffer
	for _, name := range []string{"", BenchFile, RunsFile, ObservationsFile} {
		for _, junk := range []string{"missing", "", "{", `{"schema":"other"}`} {
			f := keep(t, opened(t), 1)
			switch {
			case name == "" && junk != "missing":
				continue
			case name == "":
			case junk == "missing":
				if err := os.Remove(f.Path(name)); err != nil {
					t.Fatal(err)
				}
				dropDigest(t, f, name)
			default:
				if err := os.WriteFile(f.Path(name), []byte(junk), 0o600); err != nil {
					t.Fatal(err)
				}
				reseal(t, f)
			}
			proof, verified := Verify(f, toy.Declarations)
			loaded, err := Load(f, toy.Declarations)
			_, exported := LoadExportable(f, toy.Declarations, nil)
			fmt.Fprintf(&b, "%s %q\n  verify: %s\n  load: %s\n  export: %s\n", name, junk, firstLine(f, verified),
				firstLine(f, err), firstLine(f, exported))
			if verified == nil {
				fmt.Fprintf(&b, "  %+v\n", *proof)
			}
			if err == nil {
				fmt.Fprintf(&b, "  %d runs, %d samples, %d delivered, %s\n", len(loaded.Runs), len(loaded.Samples),
					loaded.Delivered, strings.ReplaceAll(loaded.RawRows, f.ID(), "ID"))
			}
		}
	}
	golden.Equal(t, "missing.txt", b.Bytes())
}

func dropDigest(t *testing.T, f *store.Folder, name string) {
	t.Helper()
	digests, err := f.Digests()
	if err != nil {
		t.Fatal(err)
	}
	digests = slices.DeleteFunc(digests, func(d store.FileDigest) bool { return d.Name == name })
	raw, err := json.Marshal(digests)
	if err == nil {
		err = os.WriteFile(f.Path("digests.json"), raw, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestStoredDocumentMessages checks what is exported from documents that were stored alone, and the messages for
// invalid ones.
func TestStoredDocumentMessages(t *testing.T) {
	var b bytes.Buffer
	lay := func(document []byte) ([]table.Sheet, error) {
		if bytes.Contains(document, []byte("broken")) {
			return nil, errors.New("this document is broken")
		}
		return []table.Sheet{{Name: "Toy", Columns: []table.Column{{Header: "x"}}, Rows: [][]table.Cell{{table.N(1)}}}}, nil
	}
	const claim = `{"id":"olaf/table1.olaf.40g.received","row":"r","column":"c","kind":"value","basis":"measured","published":2,"ours":{"mean":1,"n":1}}`
	for _, text := range []string{
		`{}`, `[]`, `{"schema":"toy/v1"}`, `{"schema":"toy/v7","config":{"a":1},"statements":["one","two"]}`,
		`{"schema":"other/v1","config":{"a":1}}`, `{"schema":"toy/v1","broken":1}`, `{"schema":"toy"}`,
		`{"schema":"toy/v1","paper":[` + claim + `]}`, `{"schema":"toy/v1","paper":[` + strings.Replace(claim,
			`"basis":"measured",`, "", 1) + "," + claim + `]}`,
		`{"schema":"toy/v1","paper":[` + strings.Replace(claim, `"kind":"value",`, "", 1) + `]}`,
		`{"schema":"toy/v1","config":3,"statements":3}`,
	} {
		f := document(t, store.Manifest{Valid: true}, text)
		proof, verified := Verify(f, toy.Declarations)
		r, err := LoadExportable(f, toy.Declarations, Layouts{"toy": lay})
		fmt.Fprintf(&b, "%s\n  verify %s, export %s\n", text, firstLine(f, verified), firstLine(f, err))
		if verified == nil {
			fmt.Fprintf(&b, "  %+v\n", *proof)
		}
		if err == nil {
			fmt.Fprintf(&b, "  %s, config %s, statements %q, %d paper lines, own %d, valid %t\n", r.Bench.Schema,
				r.Bench.Config, r.Bench.Statements, len(r.Bench.Paper), len(r.Own), r.Valid())
		}
	}
	golden.Equal(t, "documents.txt", b.Bytes())
	f := document(t, store.Manifest{}, `{"schema":"toy/v1"}`)
	if d, err := LoadDocument(f); err != nil || string(d.JSON) != `{"schema":"toy/v1"}` {
		t.Errorf("%+v, %v", d, err)
	}
	if !HasDocument(f) || !HasDocumentOnly(f) {
		t.Error("there is a document, and nothing else")
	}
	for _, name := range []string{TableFile, PrintedFile, DocumentFile} {
		if err := os.Remove(f.Path(name)); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadDocument(f); !errors.Is(err, store.ErrDamaged) {
			t.Errorf("without %s: %v", name, err)
		}
	}
	if HasDocument(f) || HasDocumentOnly(f) {
		t.Error("there is no document any more")
	}
}

// TestForeignFrames checks that frames that belong to no run are found, and that runs whose frames were not stored are
// accepted.
func TestForeignFrames(t *testing.T) {
	for name, c := range map[string]struct {
		ordinals []uint32
		noFrames bool
		want     string
	}{
		"as kept":            {[]uint32{0, 1}, false, ""},
		"a run more":         {[]uint32{0, 1, 2}, false, "frames of a run 2 that is not listed, or twice"},
		"a run less":         {[]uint32{0}, false, "run 1 of"},
		"a run without them": {[]uint32{0}, true, ""},
	} {
		r := record(t, opened(t))
		var kept []StoredRun
		for ordinal := range uint32(2) {
			k := keptRun(ordinal)
			k.NoFrames = c.noFrames && ordinal == 1
			kept = append(kept, k)
		}
		for _, ordinal := range c.ordinals {
			_, observations := measured(uint64(ordinal))
			r.whole(ordinal, observations)
		}
		f := r.kept(&results.Bench{Schema: results.BenchSchema}, kept...)
		proof, err := Verify(f, toy.Declarations)
		if c.want == "" {
			if err != nil || !proof.Raw || proof.Runs != len(c.ordinals) {
				t.Errorf("%s: %+v, %v", name, proof, err)
			}
		} else if !errors.Is(err, ErrMismatch) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		seen := 0
		if err := VisitObservations(f,
			func(uint32, *olaf.Observation) bool { seen++; return seen < 3 }); err != nil || seen != 3 {
			t.Errorf("%s: asked for 3 frames, %d came, %v", name, seen, err)
		}
	}
}

// TestSamplesAreTheFirstFrames checks that samples are the first frames of each configuration's first run, up to a
// fixed number.
func TestSamplesAreTheFirstFrames(t *testing.T) {
	f := keep(t, opened(t), 2)
	r, err := Load(f, toy.Declarations)
	if err != nil {
		t.Fatal(err)
	}
	count := map[[2]any]int{}
	for i := range r.Samples {
		s := &r.Samples[i]
		count[[2]any{s.Queue, s.OutRateBPS}]++
		if s.Run != 0 {
			t.Fatalf("a sample of run %d", s.Run)
		}
		from, _ := example.Observations(s.Queue == "olaf", s.OutRateBPS, 0)
		if want := &from[count[[2]any{s.Queue, s.OutRateBPS}]-1]; s.Observation.Update != want.Update ||
			!slices.Equal(s.Observation.Contributors, want.Contributors) {
			t.Fatalf("%+v is kept, %+v was recorded", s.Observation, want)
		}
	}
	want := map[[2]any]int{}
	for _, rate := range []int64{40e9, 20e9} {
		for _, queue := range []string{"fifo", "olaf"} {
			observations, _ := example.Observations(queue == "olaf", rate, 0)
			want[[2]any{queue, rate}] = min(len(observations), samplesPerConfiguration)
		}
	}
	if !maps.Equal(count, want) {
		t.Errorf("%v, want %v", count, want)
	}
	if r.RawRows != "olafctl export "+f.ID()+" --parquet DIR" || r.Delivered == 0 {
		t.Errorf("%q, %d", r.RawRows, r.Delivered)
	}
}

// TestDoubtsAreDistinguished checks that the reasons that make a run doubtful are distinguished from those known when
// it was stored, and from new rules.
func TestDoubtsAreDistinguished(t *testing.T) {
	broken := toy.Counts(map[string]int64{"sent": 3, "in": 2})
	whole := toy.Counts(map[string]int64{"sent": 3, "in": 3, "appended": 3, "delivered": 3, "received": 3,
		"count_delivered": 3})
	rule := ""
	var why *olaf.BrokenError
	if errors.As(broken.Check(), &why) {
		rule = why.Rule
	}
	if rule == "" || whole.Check() != nil {
		t.Fatal(broken.Check(), whole.Check())
	}
	text := broken.Check().Error()
	for name, c := range map[string]struct {
		kept    StoredRun
		again   results.Run
		reasons []string
		newer   string
	}{
		"as it was": {StoredRun{checks: []string{rule}}, results.Run{Counters: whole}, nil, ""},
		"known before": {StoredRun{checks: []string{rule}, Run: results.Run{Invalid: []string{text}}},
			results.Run{Counters: broken, Invalid: []string{text}}, nil, ""},
		"not known": {StoredRun{checks: []string{rule}}, results.Run{Counters: broken, Invalid: []string{text}},
			[]string{text}, ""},
		"by a new rule": {StoredRun{}, results.Run{Counters: broken, Invalid: []string{text, "and more"}},
			[]string{"and more"}, text},
		"for another one": {StoredRun{checks: []string{rule}, Run: results.Run{Invalid: []string{text}}},
			results.Run{Counters: broken, Invalid: []string{text, "x"}}, []string{"x"}, ""},
	} {
		reasons, newer := c.kept.Doubts(&c.again)
		if !slices.Equal(reasons, c.reasons) || newer != c.newer {
			t.Errorf("%s: %q and %q, want %q and %q", name, reasons, newer, c.reasons, c.newer)
		}
	}
	if got := mergeLists([]string{"a", "b"}, []string{"b", "c", "c"}); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("%q", got)
	}
}

// TestExportsThatFail checks the errors for an export that fails and for an unknown export.
func TestExportsThatFail(t *testing.T) {
	s := opened(t)
	f := keep(t, s, 1)
	if err := s.SetExport(f.ID(), store.Export{Kind: "odt", Tool: "v1"}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := VerifyExports(s, f, "v1", toy.Declarations, nil); err == nil || !strings.Contains(err.Error(),
		`no export of kind "odt"`) {
		t.Errorf("%v", err)
	}
	if made, others, err := VerifyExports(s, f, "v2", toy.Declarations, nil); err != nil || made != 0 || others != 1 {
		t.Error(made, others, err)
	}
	if err := os.Remove(f.Path(BenchFile)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := VerifyExports(s, f, "v1", toy.Declarations, nil); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("%v", err)
	}
	if err := StoreExportDigest(s, f, KindReport, "v1", toy.Declarations, nil); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("%v", err)
	}
	if err := s.SetExport(f.ID(), store.Export{}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.Dir(), "exports", f.ID()), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := VerifyExports(s, f, "v1", toy.Declarations, nil); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("%v", err)
	}
}
