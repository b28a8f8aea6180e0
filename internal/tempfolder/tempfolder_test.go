//go:build unix

package tempfolder

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func mustMake(t *testing.T) (string, func() error) {
	t.Helper()
	path, remove, err := MakeFolder()
	if err != nil {
		t.Fatal(err)
	}
	return path, remove
}

func gone(path string) bool {
	_, err := os.Lstat(path)
	return os.IsNotExist(err)
}

// TestSweep checks that a folder is removed when its lock is no longer held, and not before.
func TestSweep(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	dead := filepath.Join(temp, prefix+"1")
	foreign, link := filepath.Join(temp, "olafctl-1"), filepath.Join(temp, prefix+"2")
	for _, dir := range []string{dead, foreign} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{lockName, "s"} {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	unlocked := filepath.Join(temp, prefix+"3") // its process was killed before it could take the lock
	if err := errors.Join(os.Symlink(foreign, link), os.Mkdir(unlocked, 0o700)); err != nil {
		t.Fatal(err)
	}
	first, remove := mustMake(t)
	second, removeSecond := mustMake(t)
	if !gone(dead) || !gone(unlocked) || gone(link) || gone(filepath.Join(foreign, "s")) || gone(first) || gone(second) {
		t.Error("the wrong folders were swept")
	}
	if info, err := os.Stat(first); err != nil || info.Mode().Perm() != 0o700 {
		t.Error(info, err)
	}
	for _, remove := range []func() error{remove, removeSecond} {
		if err := remove(); err != nil {
			t.Error(err)
		}
	}
	if !gone(first) || !gone(second) {
		t.Error("a folder stays")
	}
}

// TestManyAtOnce checks that a folder that another process is about to lock is not swept.
func TestManyAtOnce(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 20 {
				path, remove, err := MakeFolder()
				if err != nil {
					t.Error(err)
					return
				}
				if err := os.WriteFile(filepath.Join(path, "s"), nil, 0o600); err != nil {
					t.Error(err)
				}
				if err := remove(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
}
