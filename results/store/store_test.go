package store

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/olafctl/olaf/results"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// TestMain lets the test binary act as another olafctl that writes to a store.
func TestMain(m *testing.M) {
	dir := os.Getenv("STORE_TEST_DIR")
	if dir == "" {
		os.Exit(m.Run())
	}
	if err := child(dir, os.Getenv("STORE_TEST_HANG") != ""); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func child(dir string, hang bool) error {
	s, err := Open(dir)
	if err != nil {
		return err
	}
	for range 20 {
		w, err := s.Create("table1", noon)
		if err != nil {
			return err
		}
		if err := w.Put("data", []byte("some")); err != nil {
			return err
		}
		if hang {
			fmt.Println(w.ID())
			_, err := io.Copy(io.Discard, os.Stdin) // until this process or its parent is killed
			runtime.KeepAlive(w)                    // keeps the lock
			return err
		}
		if err := w.Finish(manifest()); err != nil {
			return err
		}
	}
	return s.Close()
}

func manifest() Manifest {
	return Manifest{Experiment: "table1", Deterministic: []byte(`{"seed":1}`), SpecSHA256: "abc", Valid: true,
		Provenance: results.Provenance{Device: "twin:", Started: noon.Format(time.RFC3339)}}
}

func open(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func store(t testing.TB, s *Store, started time.Time) string {
	t.Helper()
	w, err := s.Create("table1", started)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Put("data", []byte("some data")); err != nil {
		t.Fatal(err)
	}
	m := manifest()
	m.Provenance.Started = started.Format(time.RFC3339)
	if err := w.Finish(m); err != nil {
		t.Fatal(err)
	}
	return w.ID()
}

func list(t testing.TB, s *Store) []Entry {
	t.Helper()
	entries, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

func TestStoreListLoadNoteRemove(t *testing.T) {
	s := open(t, t.TempDir())
	first, second := store(t, s, noon), store(t, s, noon.Add(time.Hour))
	if again := store(t, s, noon); again != first+"-2" {
		t.Fatalf("the second run of the same second is %s", again)
	}
	if err := s.Note(second, "  with the\nnew table "); err != nil {
		t.Fatal(err)
	}
	entries := list(t, s)
	if len(entries) != 3 || entries[0].ID != second || entries[0].Note != "with the new table" ||
		!entries[0].Valid || entries[0].Device != "twin:" || entries[0].Bytes == 0 {
		t.Fatalf("%+v", entries)
	}
	f, err := s.Load(second)
	if err != nil || f.Note != "with the new table" {
		t.Fatal(f, err)
	}
	if err := f.VerifyDigests(); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(second); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(second); !errors.Is(err, ErrUnknown) {
		t.Fatal(err)
	}
	if entries := list(t, s); len(entries) != 2 {
		t.Fatalf("%+v", entries)
	}
	if notes, _ := os.ReadDir(filepath.Join(s.Dir(), "notes")); len(notes) != 0 {
		t.Error("the note outlives its run")
	}
	older, err := s.Older(noon.Add(time.Minute))
	if err != nil || len(older) != 2 || older[0].ID != first {
		t.Fatal(older, err)
	}
}

func TestResolve(t *testing.T) {
	s := open(t, t.TempDir())
	if _, err := s.Resolve("x"); !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), "empty") {
		t.Fatal(err)
	}
	first, second := store(t, s, noon), store(t, s, noon.Add(time.Hour))
	for name, want := range map[string]string{first: first, "20260102-13": second, "last": second} {
		if got, err := s.Resolve(name); err != nil || got != want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	for name, want := range map[string]string{"2026": "type more", "20260102-120000-tabel1": "similar names: " + first,
		"../runs": "olafctl runs lists", "": "olafctl runs lists"} {
		if _, err := s.Resolve(name); !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", name, err)
		}
	}
	// An unfinished run is found by its id, whatever else begins with it.
	left, err := s.Create("table1", noon.Add(2*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if next := store(t, s, noon.Add(2*time.Hour)); !strings.HasPrefix(next, left.ID()) {
		t.Fatalf("%s does not begin with %s", next, left.ID())
	}
	if got, err := s.Resolve(left.ID()); err != nil || got != left.ID() {
		t.Errorf("%s, %v", got, err)
	}
	if err := left.Abort(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load("../runs/" + first); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
}

func TestDamageIsNamed(t *testing.T) {
	for name, break1 := range map[string]func(dir string) error{
		"data is not what was stored": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "data"),
				[]byte("some dataX"), 0o644)
		},
		"manifest.json": func(dir string) error {
			return os.WriteFile(filepath.Join(dir,
				"manifest.json"), []byte("{"), 0o644)
		},
		"data is missing":             func(dir string) error { return os.Remove(filepath.Join(dir, "data")) },
		"more was not stored with it": func(dir string) error { return os.WriteFile(filepath.Join(dir, "more"), nil, 0o644) },
		"digests.json":                func(dir string) error { return os.Truncate(filepath.Join(dir, "digests.json"), 9) },
	} {
		s := open(t, t.TempDir())
		id := store(t, s, noon)
		if err := break1(s.path(id)); err != nil {
			t.Fatal(err)
		}
		f, err := s.Load(id)
		if err == nil {
			err = f.VerifyDigests()
		}
		if err == nil || !strings.Contains(err.Error(), strings.TrimSuffix(name, ".json")) && !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: more than a line: %v", name, err)
		}
	}
}

func TestRunsCopiedOrRemovedByHandAreListedAsTheyAre(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	first, second := store(t, s, noon), store(t, s, noon.Add(time.Hour))
	if err := s.Note(first, "kept"); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(s.path(second)); err != nil {
		t.Fatal(err)
	}
	if entries := list(t, s); len(entries) != 1 || entries[0].Note != "kept" {
		t.Fatalf("after one of two runs was removed by hand, want the other with its note; got %+v", entries)
	}
}

// TestIndexOfAnOldReleaseIsIgnored checks that an SQLite index left by an old release is ignored.
func TestIndexOfAnOldReleaseIsIgnored(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "index.db"), []byte("SQLite format 3"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	id := store(t, s, noon)
	if entries := list(t, s); len(entries) != 1 || entries[0].ID != id || s.CheckWritable() != nil {
		t.Errorf("want the one run %s in a writable store, got %+v, %v", id, entries, s.CheckWritable())
	}
}

func TestNewerStoreIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "VERSION"), []byte("olafctl.store/v9\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); !errors.Is(err, ErrNewer) {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(file); err == nil || strings.Contains(err.Error(), "\n") {
		t.Fatal(err)
	}
}

func TestNamesAreChecked(t *testing.T) {
	s := open(t, t.TempDir())
	for _, name := range []string{"", "a/b", "..", "A b"} {
		if _, err := s.Create(name, noon); !errors.Is(err, ErrName) {
			t.Errorf("%q: %v", name, err)
		}
	}
	w, err := s.Create("ok", noon)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "a/b", "..", "manifest.json", "lock"} {
		if err := w.Put(name, nil); !errors.Is(err, ErrName) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if err := w.Abort(); err != nil {
		t.Fatal(err)
	}
	if entries := list(t, s); len(entries) != 0 {
		t.Errorf("an aborted run stays: %+v", entries)
	}
}

func command(t *testing.T, dir string, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), "STORE_TEST_DIR="+dir), env...)
	cmd.Stderr = os.Stderr
	return cmd
}

func TestKilledProcessLeavesAnIncompleteRun(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	before := store(t, s, noon.Add(-time.Hour))
	cmd := command(t, dir, "STORE_TEST_HANG=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	id, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	id = strings.TrimSpace(id)
	if entries := list(t, s); len(entries) != 2 || entries[0].State != Running {
		t.Errorf("while it writes: %+v", entries)
	}
	if err := s.Remove(id); err == nil {
		t.Error("a run was removed under its writer")
	}
	if err := cmd.Process.Kill(); err != nil { // kill -9
		t.Fatal(err)
	}
	_ = cmd.Wait()
	s.Close()
	s = open(t, dir)
	if entries := list(t, s); len(entries) != 2 || entries[0].State != Incomplete || entries[0].ID != id ||
		entries[1].ID != before || entries[1].State != Complete {
		t.Errorf("after kill -9: %+v", entries)
	}
	if _, err := s.Load(id); !errors.Is(err, ErrIncomplete) || !strings.Contains(err.Error(), "runs rm") {
		t.Error(err)
	}
	if err := s.Remove(id); err != nil {
		t.Error(err)
	}
}

func TestTwoProcessesWriteAtOnce(t *testing.T) {
	dir := t.TempDir()
	var wait sync.WaitGroup
	for range 2 {
		cmd := command(t, dir)
		wait.Go(func() {
			if err := cmd.Run(); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	s := open(t, dir)
	entries := list(t, s)
	if len(entries) != 40 {
		t.Errorf("%d of 40 runs are listed", len(entries))
	}
	for _, e := range entries {
		f, err := s.Load(e.ID)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.VerifyDigests(); err != nil {
			t.Error(err)
		}
	}
}

// BenchmarkList10k lists a store of 10,000 runs from a cold start.
func BenchmarkList10k(b *testing.B) {
	dir := b.TempDir()
	s := open(b, dir)
	for i := range 10_000 {
		store(b, s, noon.Add(time.Duration(i)*time.Second))
	}
	for b.Loop() {
		s, err := Open(dir)
		if err != nil {
			b.Fatal(err)
		}
		if got, err := s.List(); err != nil || len(got) != 10_000 {
			b.Fatal(len(got), err)
		}
	}
}

// TestNothingIsWrittenToTMPDIR stores a run with a note and an export, and checks that no file was created in $TMPDIR,
// because a killed process would leave it there.
func TestNothingIsWrittenToTMPDIR(t *testing.T) {
	dir, tmp := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", tmp)
	past := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	if err := os.Chtimes(tmp, past, past); err != nil {
		t.Fatal(err)
	}
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.Create("bench", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Finish(Manifest{Experiment: "bench"}), s.Note(w.ID(), "x"),
		s.SetExport(w.ID(), Export{Kind: "xlsx"})); err != nil {
		t.Fatal(err)
	}
	if about, err := os.Stat(tmp); err != nil || !about.ModTime().Equal(past) {
		t.Errorf("$TMPDIR was changed at %v (%v); the store's temporary files belong into the store", about.ModTime(), err)
	}
}
