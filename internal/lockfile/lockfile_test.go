//go:build unix

package lockfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOneHolder checks that a lock has one holder. Locks belong to open files, so two files in one process behave like
// two processes.
func TestOneHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if IsHeld(path) {
		t.Error("a file that is not there is held")
	}
	first, err := Take(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
	if _, err := Take(path, 0o600); !errors.Is(err, ErrHeld) || !IsHeld(path) {
		t.Errorf("a second one gets it: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Take(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
	if IsHeld(path) {
		t.Error("held after it was closed")
	}
}

func TestReadersShare(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	if err := errors.Join(Lock(open(), false), Lock(open(), false)); err != nil {
		t.Fatal(err)
	}
	if err := Lock(open(), true); !errors.Is(err, ErrHeld) {
		t.Errorf("a writer beside readers: %v", err)
	}
}

func TestLinkIsRefused(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if f, err := Take(link, 0o600); err == nil {
		f.Close()
		t.Error("a lock was taken through a link")
	} else if !strings.Contains(err.Error(), link+": a symbolic link") {
		t.Errorf("%v", err)
	}
	if _, err := os.Lstat(target); err == nil {
		t.Error("a file was made behind a link")
	}
}
