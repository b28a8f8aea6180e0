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

// nobody returns a function that does something with the rights of a user who owns nothing here. It skips the test if
// this process cannot change its user. The function runs in the current folder, since folders above it may be closed to
// other users.
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
		if is, _ := unix.SetfsuidRetUid(-1); is != uid { // no user has this number, so this only reads the id
			t.Skip("only root, with its rights, can act as somebody else")
		}
	})
	return as
}

// TestFolderOfAnotherUser checks a folder of another user that could become a store and is not one yet.
func TestFolderOfAnotherUser(t *testing.T) {
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

// TestResultOfAnotherUser checks a truncated result of another user, in a folder where all users may add files but
// remove only their own: it cannot be replaced, which is reported, and it stays.
func TestResultOfAnotherUser(t *testing.T) {
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

// TestRunOfAnotherUser checks that a run of another user cannot be removed, that this is reported, and that the run
// stays in the list.
func TestRunOfAnotherUser(t *testing.T) {
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

// TestUnlistableRunIsIncomplete checks that a run whose files can be read but not listed is not accepted as complete.
func TestUnlistableRunIsIncomplete(t *testing.T) {
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

// TestStoringFailsInForbiddenFolder checks that a run cannot be stored by a user who may not enter folders that the
// process creates.
func TestStoringFailsInForbiddenFolder(t *testing.T) {
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

// TestStoreInAnotherUsersFolder checks that results cannot be stored in another user's folder.
func TestStoreInAnotherUsersFolder(t *testing.T) {
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
