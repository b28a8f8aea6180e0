package store

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// nobody gives what does something with the rights of a user who owns nothing here, or skips the test where this process can't
// act as one. The folder at hand is where it is done, since folders above it need not let strangers pass.
func nobody(t *testing.T) (as func(do func())) {
	t.Helper()
	const uid = 65534
	as = func(do func()) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		was, _ := unix.SetfsuidRetUid(uid)
		defer func() { _, _ = unix.SetfsuidRetUid(was) }()
		do()
	}
	as(func() {
		if is, _ := unix.SetfsuidRetUid(-1); is != uid { // no user has this number: it asks only
			t.Skip("only root, with its rights, can act as somebody else")
		}
	})
	return as
}

// A folder of somebody else's that could be a store and isn't one yet.
func TestAStoreThatOthersOwn(t *testing.T) {
	asNobody := nobody(t)
	t.Chdir(t.TempDir())
	for _, d := range []string{"runs", "notes", "exports"} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(".", 0o555); err != nil {
		t.Fatal(err)
	}
	asNobody(func() {
		if _, err := Open("."); err == nil || !strings.Contains(err.Error(), "the run store can't be written") ||
			!strings.Contains(err.Error(), "choose another place with --store") {
			t.Errorf("%v", err)
		}
	})
}

// A result that is cut short and belongs to another user, in a folder where everybody may add files and take away only their
// own: it can't be replaced, which is said, and it stays.
func TestAResultThatOthersOwn(t *testing.T) {
	asNobody := nobody(t)
	t.Chdir(t.TempDir())
	r := &Singles{"."}
	a := single("a", `{"x":1}`, "here")
	if err := r.Put(a); err != nil {
		t.Fatal(err)
	}
	path := r.path(a.Key)
	if err := errors.Join(os.Truncate(path, 3), os.Chmod(filepath.Dir(path), 0o777|os.ModeSticky)); err != nil {
		t.Fatal(err)
	}
	asNobody(func() {
		if err := r.Put(a); err == nil || !strings.Contains(err.Error(), "a result can't be replaced") {
			t.Errorf("%v", err)
		}
	})
	if info, err := os.Stat(path); err != nil || info.Size() != 3 {
		t.Errorf("%v, %v", info, err)
	}
}

// A run of somebody else's can't be removed, which is said, and stays in the list.
func TestARunThatOthersOwn(t *testing.T) {
	asNobody := nobody(t)
	t.Chdir(t.TempDir())
	s := open(t, ".")
	id := store(t, s, noon)
	if err := os.Chmod("runs", 0o555); err != nil {
		t.Fatal(err)
	}
	asNobody(func() {
		if err := s.Remove(id); err == nil || !strings.Contains(err.Error(), id+" can't be removed") {
			t.Errorf("%v", err)
		}
	})
	if entries := list(t, s); len(entries) != 1 || entries[0].ID != id {
		t.Errorf("%+v", entries)
	}
}

// A run whose files can be read and not be listed is not taken for whole.
func TestARunThatNobodyMayList(t *testing.T) {
	asNobody := nobody(t)
	t.Chdir(t.TempDir())
	s := open(t, ".")
	f, err := s.Load(store(t, s, noon))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(f.Path("."), 0o711); err != nil {
		t.Fatal(err)
	}
	asNobody(func() {
		if err := f.VerifyDigests(); !errors.Is(err, ErrDamaged) {
			t.Errorf("%v", err)
		}
	})
}

// A run of a user who may not enter what he makes can't be stored.
func TestARunThatNobodyMayEnter(t *testing.T) {
	asNobody := nobody(t)
	t.Chdir(t.TempDir())
	s := open(t, ".")
	if err := os.Chmod("runs", 0o777); err != nil {
		t.Fatal(err)
	}
	old := unix.Umask(0o777)
	defer unix.Umask(old)
	asNobody(func() {
		if _, err := s.Create("table1", noon); err == nil || !strings.Contains(err.Error(), "the run can't be stored") {
			t.Errorf("%v", err)
		}
	})
}

// Results can't be put where somebody else keeps them.
func TestResultsWhereOthersKeepThem(t *testing.T) {
	asNobody := nobody(t)
	t.Chdir(t.TempDir())
	r := &Singles{"."}
	a := single("a", `{"x":1}`, "here")
	if err := os.Mkdir(a.Key[:2], 0o555); err != nil {
		t.Fatal(err)
	}
	asNobody(func() {
		if err := r.Put(a); err == nil || !strings.Contains(err.Error(), "a result can't be stored") {
			t.Errorf("%v", err)
		}
	})
}
