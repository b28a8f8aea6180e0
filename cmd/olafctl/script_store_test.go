package main

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// find GLOB VAR waits until exactly one path matches and sets VAR to its name or, for a run's folder, to the run's id.
func find(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: find GLOB VAR")
	}
	deadline := time.Now().Add(time.Minute)
	for {
		found, err := filepath.Glob(ts.MkAbs(args[0]))
		ts.Check(err)
		if len(found) == 1 {
			name := strings.TrimPrefix(strings.TrimSuffix(filepath.Base(found[0]), ".incomplete"), ".")
			ts.Setenv(args[1], name)
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s matches %v", args[0], found)
		}
		time.Sleep(time.Millisecond) // another process creates it
	}
}

// until COMMAND… repeats a command until it succeeds, for effects of another process that take some time.
func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: until COMMAND [ARG…]")
	}
	deadline := time.Now().Add(time.Minute)
	for ts.Exec(args[0], args[1:]...) != nil {
		if time.Now().After(deadline) {
			ts.Fatalf("it never succeeded")
		}
	}
}

// digest DIR FILE writes the name and SHA-256 of every file below DIR to FILE.
func digest(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: digest DIR FILE")
	}
	var list strings.Builder
	dir := ts.MkAbs(args[0])
	ts.Check(filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		fmt.Fprintf(&list, "%x %s\n", sha256.Sum256(raw), strings.TrimPrefix(path, dir))
		return err
	}))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(list.String()), 0o644))
}

// smalldisk DIR makes DIR a file system with room for little more than an empty store.
func smalldisk(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: smalldisk DIR")
	}
	ts.Check(mountSmall(ts.MkAbs(args[0])))
	ts.Defer(func() { ts.Check(exec.Command("umount", ts.MkAbs(args[0])).Run()) })
}

// readonly DIR makes a file system created by smalldisk read-only.
func readonly(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: readonly DIR")
	}
	ts.Check(exec.Command("mount", "-o", "remount,ro", ts.MkAbs(args[0])).Run())
}

// largedisk DIR enlarges such a file system.
func largedisk(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: largedisk DIR")
	}
	ts.Check(exec.Command("mount", "-o", "remount,size=64m", ts.MkAbs(args[0])).Run())
}

func mountSmall(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return exec.Command("mount", "-t", "tmpfs", "-o", "size=192k", "olafctl-test", dir).Run()
}

// canMount reports whether this process may mount, by trying.
func canMount() (bool, error) {
	dir, err := os.MkdirTemp("", "olafctl-mount-")
	if err != nil {
		return false, err
	}
	defer os.Remove(dir)
	if mountSmall(dir) != nil {
		return false, nil
	}
	return true, exec.Command("umount", dir).Run()
}
