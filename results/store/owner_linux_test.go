package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRunsOfSudoBelongToThePerson stores a run as root for a user and checks the owner of every file.
func TestRunsOfSudoBelongToThePerson(t *testing.T) {
	nobody(t) // skips without root
	person := Person{65534, 65534}
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	top := filepath.Join(t.TempDir(), "share")
	dir := filepath.Join(top, "olafctl")
	s, err := OpenFor(dir, person)
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.Create("bench", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Put("plan.json", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if err := w.Finish(Manifest{Experiment: "bench"}); err != nil {
		t.Fatal(err)
	}
	for name, lay := range map[string]func(old, name string) error{"symbolic": os.Symlink, "hard": os.Link} {
		if err := lay(outside, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{top, dir, filepath.Join(dir, "VERSION"), filepath.Join(dir, "runs", w.ID()),
		filepath.Join(dir, "runs", w.ID(), "plan.json"), filepath.Join(dir, "runs", w.ID(), manifestName)} {
		if uid := owner(t, path); uid != person.UID {
			t.Errorf("%s belongs to user %d, want the person who used sudo, %d", path, uid, person.UID)
		}
	}
	if uid := owner(t, outside); uid != 0 {
		t.Errorf("a link in the store gave a file outside of it to user %d", uid)
	}
}

func TestStoresOfOthersKeepTheirOwner(t *testing.T) {
	nobody(t) // skips without root
	for _, uid := range []int{0, 1234} {
		dir := t.TempDir()
		if err := os.Chown(dir, uid, uid); err != nil {
			t.Fatal(err)
		}
		s, err := OpenFor(dir, Person{65534, 65534})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if got := owner(t, filepath.Join(dir, "VERSION")); got != 0 {
			t.Errorf("sudo gave a file in the store of user %d to user %d", uid, got)
		}
	}
}

// TestRefusalsNameTheOwnerOfAStore opens another user's store as a user without rights, and checks that the error names
// the owner and gives advice.
func TestRefusalsNameTheOwnerOfAStore(t *testing.T) {
	asNobody := nobody(t)
	t.Chdir(t.TempDir())
	if _, err := Open("."); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(".", 1234, 1234); err != nil {
		t.Fatal(err)
	}
	asNobody(func() {
		s, err := Open(".")
		if err != nil {
			t.Fatal(err)
		}
		const want = "can't be written: permission denied; . belongs to user 1234, and 'sudo chown -R"
		if err := s.CheckWritable(); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "--store") {
			t.Errorf("a store of user 1234 is refused with %v; want %q and another place", err, want)
		}
	})
}

func owner(t *testing.T, path string) int {
	t.Helper()
	about, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	uid, _, _ := ownerOf(about)
	return uid
}
