package testbed

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// readBootClock returns the id of this boot and the time since it, suspension included.
func readBootClock() (id string, nowNS int64, err error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", 0, fmt.Errorf("identify this boot: %w", err)
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return "", 0, fmt.Errorf("read the boot clock: %w", err)
	}
	return strings.TrimSpace(string(text)), now.Nano(), nil
}

// freeBytes returns the room in the file system of a folder.
func freeBytes(folder string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * s.Bsize, nil
}
