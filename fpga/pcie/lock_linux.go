package pcie

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/olafctl/olaf/internal/caller"
	"github.com/olafctl/olaf/internal/lockfile"
)

// lock is the lock that this process has on a card. It is a locked file.
type lock struct{ file *os.File }

// takeLock locks the card in a PCI slot, with all its functions. If exclusive is set, the lock is exclusive, for
// writing; otherwise it is shared with other readers. The error matches ErrBusy and names the process that has the
// lock, if it is known.
func takeLock(dir, slot string, exclusive bool) (*lock, error) {
	path := lockPath(dir, slot)
	file, err := lockfile.Open(path, os.O_RDWR|os.O_CREATE, 0o644)
	if errors.Is(err, fs.ErrPermission) { // the file belongs to another user; opening it for reading is enough for a lock
		file, err = lockfile.Open(path, os.O_RDONLY, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("open the card's lock file: %w", err)
	}
	if err := lockfile.Lock(file, exclusive); err != nil {
		holder := readHolder(file)
		file.Close()
		if errors.Is(err, lockfile.ErrHeld) {
			return nil, fmt.Errorf("%w: %s; wait until it ends, or use its agent with -d grpc://", ErrBusy, holder)
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if exclusive {
		text := fmt.Sprintf("%d %s: %s, since %s\n", os.Getpid(), caller.Name(), caller.Command(),
			time.Now().Format(time.TimeOnly))
		if file.Truncate(0) == nil {
			_, _ = file.WriteAt([]byte(text), 0) // the text is only information
		}
	}
	return &lock{file}, nil
}

// inheritLock returns the lock on a card that this process shares with the process that started it. The error matches
// ErrDenied if there is no such lock, because then another process may use the card.
func inheritLock(dir, slot string) (*lock, error) {
	file := os.NewFile(inheritedLock, "lock")
	inherited, err := file.Stat()
	if err == nil {
		var expected fs.FileInfo
		if expected, err = os.Stat(lockPath(dir, slot)); err == nil && !os.SameFile(inherited, expected) {
			err = errors.New("descriptor 3 is another file")
		}
	}
	if err == nil {
		err = lockfile.Lock(file, true) // succeeds for the starter's lock only
	}
	if err != nil {
		return nil, fmt.Errorf("%w: this process has no lock on %s (%w); olafctl itself starts this command for its cards",
			ErrDenied, slot, err)
	}
	return &lock{file}, nil
}

func lockPath(dir, slot string) string { return filepath.Join(dir, "olafctl-"+slot+".lock") }

// readHolder returns a description of the process that last locked the file for writing, or a text for readers, which
// do not write their names.
func readHolder(file *os.File) string {
	text := make([]byte, 400)
	n, _ := file.ReadAt(text, 0)
	pid, who, ok := strings.Cut(strings.TrimSpace(string(text[:n])), " ")
	if _, err := strconv.Atoi(pid); err != nil || !ok {
		return "another process is reading it"
	}
	return fmt.Sprintf("process %s (%s) opened it last", pid, caller.Plain(who))
}

// release unlocks the card.
func (l *lock) release() error {
	if l == nil {
		return nil
	}
	return l.file.Close()
}

// findUsers lists other processes that can access a card's registers, as far as /proc shows them to this user. Such
// processes map BAR2, directly or through a UIO driver, or use VFIO.
func findUsers(bus Bus, slot string) []string {
	mapped, opened := registerFiles(bus, slot)
	processes, _ := filepath.Glob(filepath.Join(bus.Proc, "[0-9]*"))
	var users []string
	for _, dir := range processes {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() {
			continue
		}
		maps, _ := os.ReadFile(filepath.Join(dir, "maps"))
		by := slices.IndexFunc(mapped, func(path string) bool { return bytes.Contains(maps, []byte(path+"\n")) })
		if by >= 0 {
			users = append(users, fmt.Sprintf("process %d (which maps %s)", pid, mapped[by]))
		} else if path := findOpen(dir, opened); path != "" {
			users = append(users, fmt.Sprintf("process %d (which has %s open)", pid, path))
		}
	}
	return users
}

// registerFiles returns the files through which a card's registers can be mapped, and the VFIO files that give access
// to the card to the process that opens them.
func registerFiles(bus Bus, slot string) (mapped, opened []string) {
	functions, _ := filepath.Glob(filepath.Join(bus.Sysfs, slot+".[0-7]"))
	for _, dir := range functions {
		for _, name := range []string{"resource2", "resource2_wc"} {
			path := filepath.Join(dir, name)
			mapped = append(mapped, path)
			if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
				mapped = append(mapped, real)
			}
		}
		for _, name := range listNames(filepath.Join(dir, "uio")) {
			mapped = append(mapped, "/dev/"+name)
		}
		for _, name := range listNames(filepath.Join(dir, "vfio-dev")) {
			opened = append(opened, "/dev/vfio/devices/"+name)
		}
		driver, _ := os.Readlink(filepath.Join(dir, "driver"))
		if group, err := os.Readlink(filepath.Join(dir, "iommu_group")); err == nil &&
			filepath.Base(driver) == "vfio-pci" {
			opened = append(opened, "/dev/vfio/"+filepath.Base(group), "/dev/vfio/noiommu-"+filepath.Base(group))
		}
	}
	return mapped, opened
}

func listNames(dir string) (names []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// findOpen returns the first of the files that a process has open. It returns "" if there is none, or if the process
// belongs to another user.
func findOpen(process string, files []string) string {
	if len(files) == 0 {
		return ""
	}
	descriptors := filepath.Join(process, "fd")
	for _, name := range listNames(descriptors) {
		if path, err := os.Readlink(filepath.Join(descriptors, name)); err == nil && slices.Contains(files, path) {
			return path
		}
	}
	return ""
}
