package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/internal/test/golden"
)

// clerk uses a store and records its messages.
type clerk struct {
	*testing.T
	*Store
	text bytes.Buffer
}

func (c *clerk) say(what string, args ...any) {
	line := fmt.Sprintf(what, args...)
	fmt.Fprintln(&c.text, strings.ReplaceAll(line, c.Dir(), "STORE"))
}

func (c *clerk) entries(what string) {
	for _, e := range list(c, c.Store) {
		c.say("%s: %+v", what, e)
	}
}

// must stores a finished run of an experiment, with files.
func (c *clerk) must(experiment string, started time.Time, files map[string]string) string {
	c.Helper()
	w, err := c.Create(experiment, started)
	if err != nil {
		c.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		if text, ok := files[name]; ok {
			if err := w.Put(name, []byte(text)); err != nil {
				c.Fatal(err)
			}
		}
	}
	m := manifest()
	m.Experiment, m.Provenance.Started, m.Partial = experiment, started.Format(time.RFC3339), experiment == "partial"
	if err := w.Finish(m); err != nil {
		c.Fatal(err)
	}
	return w.ID()
}

// TestStoreMessages checks the messages about runs that are stored, half written, damaged, noted, exported and removed.
func TestStoreMessages(t *testing.T) {
	c := &clerk{T: t, Store: open(t, t.TempDir())}
	c.entries("empty")
	for _, name := range []string{"", "x", "last", ".."} {
		id, err := c.Resolve(name)
		c.say("resolve %q: %q, %v", name, id, err)
	}
	first := c.must("table1", noon, map[string]string{"a": "four", "b": ""})
	again := c.must("table1", noon, nil)
	third := c.must("table1", noon, nil)
	later := c.must("partial", noon.Add(36*time.Hour), map[string]string{"b": "data"})
	half, err := c.Create("half.written", noon.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if err := half.Put("a", []byte("12345")); err != nil {
		t.Fatal(err)
	}
	c.entries("kept")
	for _, name := range []string{"last", first, "2026", "20260102-120000-table1", again, later[:9], later[:14],
		half.ID(), half.ID()[:16], "20260102-120000-tabel1", "nothing like it", "a/b", third + "x", ""} {
		id, err := c.Resolve(name)
		c.say("resolve %q: %q, %v", name, id, err)
	}
	for _, name := range []string{"..", ".", "." + half.ID() + incomplete} {
		id, err := c.Resolve(name)
		c.say("resolve %q: %q, %v, remove %v", name, id, err, c.Remove(name))
	}
	for _, name := range []string{first, half.ID(), "none", "a/b", "../x", "..", ""} {
		f, err := c.Load(name)
		c.say("load %q: %t, %v", name, f != nil, err)
	}
	c.say("note: %v, %v", c.Note(first, " of  two\n words "), c.Note("none", "x"))
	f, err := c.Load(first)
	if err != nil {
		t.Fatal(err)
	}
	digests, err := f.Digests()
	c.say("%s with note %q, %+v, %v, verified %v", f.ID(), f.Note, digests, err, f.VerifyDigests())
	for _, name := range []string{"a", "none"} {
		raw, err := f.ReadFile(name)
		c.say("read %s: %q, %v", name, raw, err)
		file, err := f.Open(name)
		c.say("open %s: %t, %v, not there %t", name, file != nil, err, errors.Is(err, fs.ErrNotExist))
		if file != nil {
			file.Close()
		}
	}
	var v any
	c.say("JSON: %v, %v", f.ReadJSON("a", &v), f.ReadJSON("none", &v))
	for _, e := range []Export{{"xlsx", "v1", "1"}, {"report", "v1", "2"}, {"xlsx", "v2", "3"}, {"xlsx", "v1", "4"}} {
		if err := c.SetExport(first, e); err != nil {
			t.Fatal(err)
		}
		all, err := c.Exports(first)
		c.say("exports %+v, %v", all, err)
	}
	if err := os.WriteFile(c.exportsPath(again), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := c.Exports(again)
	c.say("damaged exports: %v, %v, %v", all, err, c.SetExport(again, Export{}))
	if err := os.Mkdir(c.exportsPath(third), 0o700); err != nil {
		t.Fatal(err)
	}
	all, err = c.Exports(third)
	c.say("a folder of exports: %v, %v", all, err)
	if err := os.Remove(c.exportsPath(third)); err != nil {
		t.Fatal(err)
	}
	for _, before := range []time.Duration{0, time.Second, 36 * time.Hour, 36*time.Hour + time.Second} {
		older, err := c.Older(noon.Add(before))
		ids := []string{}
		for _, e := range older {
			ids = append(ids, e.ID)
		}
		c.say("older than noon and %v: %v, %v", before, ids, err)
	}
	abandoned, err := c.ListAbandoned()
	c.say("abandoned while it is written: %v, %v", abandoned, err)
	c.say("remove what is written: %v", c.Remove(half.ID()))
	half.lock.Close()
	abandoned, err = c.ListAbandoned()
	c.say("abandoned: %v, %v", abandoned, err)
	c.entries("abandoned")
	c.say("remove: %v, %v, %v", c.Remove(half.ID()), c.Remove(first), c.Remove(first))
	c.entries("removed")
	for _, left := range []string{"notes", "exports", "runs"} {
		names, _ := os.ReadDir(filepath.Join(c.Dir(), left))
		c.say("%s: %v", left, names)
	}
	golden.Equal(t, "store.txt", c.text.Bytes())
}

// TestDamageMessages checks that every kind of damage to a folder is named.
func TestDamageMessages(t *testing.T) {
	c := &clerk{T: t, Store: open(t, t.TempDir())}
	for _, d := range []struct {
		what string
		do   func(path string) error
	}{
		{"nothing", func(string) error { return nil }},
		{"another file", func(p string) error { return os.WriteFile(filepath.Join(p, "more"), nil, 0o600) }},
		{"a file less", func(p string) error { return os.Remove(filepath.Join(p, "a")) }},
		{"another content", func(p string) error { return os.WriteFile(filepath.Join(p, "a"), []byte("five"), 0o600) }},
		{"a folder for a file", func(p string) error {
			return errors.Join(os.Remove(filepath.Join(p, "a")), os.Mkdir(filepath.Join(p, "a"), 0o700))
		}},
		{"no digests", func(p string) error { return os.Remove(filepath.Join(p, digestsName)) }},
		{"digests of nothing", func(p string) error {
			return os.WriteFile(filepath.Join(p, digestsName), []byte("[]"),
				0o600)
		}},
		{"digests that are none", func(p string) error {
			return os.WriteFile(filepath.Join(p, digestsName),
				[]byte("{"), 0o600)
		}},
		{"no manifest", func(p string) error { return os.Remove(filepath.Join(p, manifestName)) }},
		{"a manifest that is none", func(p string) error {
			return os.WriteFile(filepath.Join(p, manifestName),
				[]byte("{"), 0o600)
		}},
		{"a newer manifest", func(p string) error {
			return os.WriteFile(filepath.Join(p, manifestName), []byte(`{"schema":"olafctl.run/v2"}`), 0o600)
		}},
		{"the manifest of another", func(p string) error {
			return os.WriteFile(filepath.Join(p, manifestName), []byte(`{"schema":"olafctl.run/v1","id":"other"}`), 0o600)
		}},
	} {
		id := c.must("table1", noon, map[string]string{"a": "four"})
		f, err := c.Load(id)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.do(c.path(id)); err != nil {
			t.Fatal(err)
		}
		_, loaded := c.Load(id)
		verified := f.VerifyDigests()
		c.say("%s: load %v | verify %v", d.what, loaded, verified)
		if good := d.what == "nothing"; good != (loaded == nil && verified == nil) {
			t.Errorf("%s: %v, %v", d.what, loaded, verified)
		}
		for _, err := range []error{loaded, verified} {
			if err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNewer) {
				t.Errorf("%s: %v", d.what, err)
			}
		}
		if err := c.Remove(id); err != nil {
			t.Fatal(err)
		}
	}
	golden.Equal(t, "damage.txt", c.text.Bytes())
}

// TestIDsGiveRunInformation checks the information taken from an id if the run's manifest cannot be read.
func TestIDsGiveRunInformation(t *testing.T) {
	for id, want := range map[string][2]string{
		"20260102-120000-table1":   {"2026-01-02T12:00:00Z", "table1"},
		"20260102-120000-table1-2": {"2026-01-02T12:00:00Z", "table1"},
		"20260102-120000-fig-7-12": {"2026-01-02T12:00:00Z", "fig-7"},
		"20260102-120000-":         {"2026-01-02T12:00:00Z", ""}, "20260102-120000": {"2026-01-02T12:00:00Z", ""},
		"20260102-12000": {"", ""}, "20261302-120000-x": {"", "x"}, "": {"", ""},
	} {
		if have := [2]string{startedOf(id), experimentOf(id)}; have != want {
			t.Errorf("%q: %q, want %q", id, have, want)
		}
	}
	s := open(t, t.TempDir())
	if err := os.Mkdir(s.path("20260102-120000-lost"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{".hidden", ".x.removed"} {
		if err := os.Mkdir(filepath.Join(s.Dir(), "runs", other), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(s.Dir(), "runs", "a-file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if n := sizeOf(s.path("gone")); n != 0 {
		t.Errorf("a folder that is gone has %d bytes", n)
	}
	if all := list(t, s); len(all) != 1 || all[0].Experiment != "lost" ||
		all[0].Started != "2026-01-02T12:00:00Z" || all[0].Valid || all[0].State != Complete {
		t.Errorf("%+v", all)
	}
}

// TestFilesOfARun checks that a file of a run may be rewound to a mark, that only one is open at a time, and that the
// store's own names are not available.
func TestFilesOfARun(t *testing.T) {
	s := open(t, t.TempDir())
	w, err := s.Create("table1", noon)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", ".", "..", "a/b", ".hidden", manifestName, digestsName, lockName} {
		if _, err := w.File(name); !errors.Is(err, ErrName) {
			t.Errorf("%q: %v", name, err)
		}
	}
	f, err := w.File("data")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.File("other"); err == nil || !strings.Contains(err.Error(), "data is still open") {
		t.Errorf("two at once: %v", err)
	}
	write := func(text string) {
		t.Helper()
		if n, err := f.Write([]byte(text)); err != nil || n != len(text) {
			t.Fatal(n, err)
		}
	}
	write("kept ")
	mark, err := f.Mark()
	if err != nil {
		t.Fatal(err)
	}
	write("taken back, which is longer than what follows")
	if err := f.Rewind(mark); err != nil {
		t.Fatal(err)
	}
	write("and kept")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.File("data"); err == nil {
		t.Error("the same file twice")
	}
	if err := w.Finish(manifest()); err != nil {
		t.Fatal(err)
	}
	kept, err := s.Load(w.ID())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := kept.ReadFile("data")
	if err != nil || string(raw) != "kept and kept" || kept.VerifyDigests() != nil {
		t.Errorf("%q, %v, %v", raw, err, kept.VerifyDigests())
	}
	digests, err := kept.Digests()
	if err != nil || len(digests) != 2 || digests[0].Name != "data" || digests[0].Bytes != 13 ||
		digests[1].Name != manifestName {
		t.Errorf("%+v, %v", digests, err)
	}
	gone, err := s.Create("table1", noon)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gone.File("data"); err != nil {
		t.Fatal(err)
	}
	if err := gone.Abort(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(gone.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an aborted run: %v", err)
	}
}

// TestExperimentNames checks valid names of experiments up to the limits.
func TestExperimentNames(t *testing.T) {
	s := open(t, t.TempDir())
	for name, good := range map[string]bool{"a": true, "0": true, "a.b_c-d": true, strings.Repeat("a", 64): true,
		strings.Repeat("a", 65): false, "": false, "A": false, "-a": false, ".a": false, "a/b": false, "a b": false,
		"é": false} {
		w, err := s.Create(name, noon)
		if good != (err == nil) || err != nil && !errors.Is(err, ErrName) {
			t.Errorf("%q: %v", name, err)
		}
		if w != nil {
			if err := w.Abort(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestStoresThatAreRefused checks that a store that cannot be created, read or understood is refused with advice.
func TestStoresThatAreRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(file); err == nil || !strings.Contains(err.Error(), "choose another place with --store") {
		t.Errorf("a file: %v", err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "VERSION"), []byte(" olafctl.store/v1 \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	open(t, dir)
	if err := os.WriteFile(filepath.Join(dir, "VERSION"), []byte("olafctl.store/v2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), `"olafctl.store/v2"`) {
		t.Errorf("a newer one: %v", err)
	}
	if err := errors.Join(os.Remove(filepath.Join(dir, "VERSION")), os.Mkdir(filepath.Join(dir, "VERSION"),
		0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "can't be read") {
		t.Errorf("a folder for the version: %v", err)
	}
	for err, want := range map[error]olaf.Kind{ErrUnknown: olaf.Usage, ErrIncomplete: olaf.Usage,
		ErrDamaged: olaf.Failed, ErrNewer: olaf.Usage, ErrName: olaf.Usage, ErrConflict: olaf.Missed} {
		if kind, _ := olaf.KindOf(err); kind != want {
			t.Errorf("%v is of kind %v", err, kind)
		}
	}
}

// TestMissingRunsFolder checks that every method of a store whose folder of runs is missing reports this.
func TestMissingRunsFolder(t *testing.T) {
	s := open(t, t.TempDir())
	store(t, s, noon)
	if err := os.Rename(filepath.Join(s.Dir(), "runs"), filepath.Join(s.Dir(), "elsewhere")); err != nil {
		t.Fatal(err)
	}
	for what, ask := range map[string]func() error{
		"list":      func() error { _, err := s.List(); return err },
		"older":     func() error { _, err := s.Older(noon); return err },
		"last":      func() error { _, err := s.Resolve("last"); return err },
		"abandoned": func() error { _, err := s.ListAbandoned(); return err },
		"remove":    func() error { return s.Remove("x") },
	} {
		if err := ask(); err == nil || !strings.Contains(err.Error(), "the run store can't be read") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := s.Create("table1", noon); err == nil || !strings.Contains(err.Error(), "the run can't be stored") {
		t.Errorf("create: %v", err)
	}
	r := &Singles{filepath.Join(s.Dir(), "VERSION")}
	if _, _, err := r.List(); err == nil || !strings.Contains(err.Error(), "the results can't be read") {
		t.Errorf("a file for the results: %v", err)
	}
}

// TestMovedRunsAreReadAgain checks that a run that was moved away is forgotten, and that a run that returns under its
// name is read again.
func TestMovedRunsAreReadAgain(t *testing.T) {
	s := open(t, t.TempDir())
	id := store(t, s, noon)
	away := filepath.Join(s.Dir(), "away")
	for step, do := range []func() error{
		func() error { return nil },
		func() error { return os.Rename(s.path(id), away) },
		func() error {
			return errors.Join(os.Remove(filepath.Join(away, manifestName)), os.Rename(away, s.path(id)))
		},
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
		all := list(t, s)
		if want := []int{1, 0, 1}[step]; len(all) != want || len(all) > 0 && all[0].Valid != (step == 0) {
			t.Errorf("step %d: %+v", step, all)
		}
	}
}

// TestLastOfOne checks that the last of one run is that run.
func TestLastOfOne(t *testing.T) {
	s := open(t, t.TempDir())
	id := store(t, s, noon)
	if last, err := s.Resolve("last"); last != id || err != nil {
		t.Errorf("%q, %v", last, err)
	}
}

// TestFinishErrors checks the errors if a run cannot be finished, and that all users may read what was stored.
func TestFinishErrors(t *testing.T) {
	old := syscall.Umask(0o022)
	defer syscall.Umask(old)
	s := open(t, t.TempDir())
	for what, hinder := range map[string]func(*Writer) error{
		"a manifest":         func(w *Writer) error { return os.WriteFile(filepath.Join(w.dir, manifestName), nil, 0o600) },
		"a folder":           func(w *Writer) error { return os.Mkdir(filepath.Join(w.dir, digestsName), 0o700) },
		"a run of that name": func(w *Writer) error { return os.MkdirAll(filepath.Join(s.path(w.ID()), "x"), 0o700) },
		"no lock":            func(w *Writer) error { return os.Remove(filepath.Join(w.dir, lockName)) },
	} {
		w, err := s.Create("table1", noon)
		if err != nil {
			t.Fatal(err)
		}
		if err := hinder(w); err != nil {
			t.Fatal(err)
		}
		if err := w.Finish(manifest()); err == nil || !strings.Contains(err.Error(), "can't be stored") {
			t.Errorf("%s: %v", what, err)
		}
		_ = w.Abort() // delete the remains
		_ = os.RemoveAll(s.path(w.ID()))
	}
	w, err := s.Create("table1", noon)
	if err != nil {
		t.Fatal(err)
	}
	modes := func(folder string, lock bool) {
		t.Helper()
		for name, want := range map[string]fs.FileMode{"": 0o755, lockName: 0o644, manifestName: 0o644,
			digestsName: 0o644, "data": 0o644} {
			info, err := os.Stat(filepath.Join(folder, name))
			if errors.Is(err, fs.ErrNotExist) && (name == lockName) != lock {
				continue
			}
			if err != nil || info.Mode().Perm() != want {
				t.Errorf("%q: %v, %v", name, info, err)
			}
		}
	}
	info, err := os.Stat(filepath.Join(w.dir, lockName))
	if err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", info, err)
	}
	if err := errors.Join(w.Put("data", nil), w.Finish(manifest())); err != nil {
		t.Fatal(err)
	}
	modes(s.path(w.ID()), false)
	singles := s.Singles()
	one := single("a", "{}", "here")
	if err := singles.Put(one); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Note(w.ID(), "read by all"), s.SetExport(w.ID(), Export{Kind: "xlsx"})); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]fs.FileMode{
		filepath.Join(s.Dir(), "singles", one.Key[:2], one.Key): 0o644, filepath.Join(s.Dir(), "VERSION"): 0o644,
		filepath.Join(s.Dir(), "runs"): 0o755, filepath.Join(s.Dir(), "notes"): 0o755, filepath.Join(s.Dir(),
			"exports"): 0o755,
		filepath.Dir(singles.path(one.Key)): 0o755, s.notePath(w.ID()): 0o644, s.exportsPath(w.ID()): 0o644,
	} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%v, %v, want %v", info, err, want)
		}
	}
}

// TestSingleErrors checks the errors if a single result cannot be stored, and that invalid ones are listed once.
func TestSingleErrors(t *testing.T) {
	r := &Singles{t.TempDir()}
	a := single("a", "{}", "here")
	if err := os.MkdirAll(filepath.Join(r.path(a.Key), "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Get(a.Key); err == nil {
		t.Error("a folder is read")
	}
	if err := r.Put(a); err == nil {
		t.Error("a folder is replaced")
	}
	if err := os.RemoveAll(r.path(a.Key)); err != nil {
		t.Fatal(err)
	}
	if err := r.Put(a); err != nil {
		t.Fatal(err)
	}
	other := single("a", "[]", "there")
	for range 2 { // the second time, the conflicting file already exists
		if err := r.Put(other); !errors.Is(err, ErrConflict) {
			t.Error(err)
		}
	}
	if err := os.WriteFile(filepath.Join(r.dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	keys, others, err := r.List()
	if want := []string{a.Key[:2] + "/" + a.Key + ".differs-" + sumOf(other.Result)[:12], "file"}; err != nil ||
		len(keys) != 1 || !slices.Equal(others, want) {
		t.Errorf("%q, %q, want %q, %v", keys, others, want, err)
	}
}
