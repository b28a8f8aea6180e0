package pcie

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/olafctl/olaf/internal/lockfile"
)

// lock is this process's hold on a card.
type lock struct{ file *os.File }

// takeLock holds the card bdf: alone for writing, together with other readers otherwise. The error matches ErrBusy and
// names the holder where it is known.
func takeLock(dir, bdf string, alone bool) (*lock, error) {
	path := filepath.Join(dir, "olafctl-"+bdf+".lock")
	file, err := lockfile.Open(path, os.O_RDWR|os.O_CREATE, 0o644)
	if errors.Is(err, fs.ErrPermission) { // another user's file: a lock needs no more than reading
		file, err = lockfile.Open(path, os.O_RDONLY, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("lock file of the card: %w", err)
	}
	if err := lockfile.Lock(file, alone); err != nil {
		holder := readHolder(file)
		file.Close()
		if errors.Is(err, lockfile.ErrHeld) {
			return nil, fmt.Errorf("%w: %s; wait for it, or go through its agent with -d grpc://", ErrBusy, holder)
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if alone {
		text := fmt.Sprintf("%d %s\n", os.Getpid(), filepath.Base(os.Args[0]))
		if file.Truncate(0) == nil {
			_, _ = file.WriteAt([]byte(text), 0) // for people; the lock holds without it
		}
	}
	return &lock{file}, nil
}

func readHolder(file *os.File) string {
	text := make([]byte, 200)
	n, _ := file.ReadAt(text, 0)
	pid, name, ok := strings.Cut(strings.TrimSpace(string(text[:n])), " ")
	if _, err := strconv.Atoi(pid); err != nil || !ok {
		return "another process reads it"
	}
	return fmt.Sprintf("process %s (%s) had it last", pid, name)
}

// release lets go.
func (l *lock) release() error {
	if l == nil {
		return nil
	}
	return l.file.Close()
}

// mappers lists processes that have a file mapped, this one left out, by what /proc tells this user.
func mappers(proc, path string) []int {
	maps, _ := filepath.Glob(filepath.Join(proc, "[0-9]*", "maps"))
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		real = path
	}
	var pids []int
	for _, m := range maps {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(m)))
		if err != nil || pid == os.Getpid() {
			continue
		}
		text, err := os.ReadFile(m)
		if err == nil && (strings.Contains(string(text), path+"\n") || strings.Contains(string(text), real+"\n")) {
			pids = append(pids, pid)
		}
	}
	return pids
}
