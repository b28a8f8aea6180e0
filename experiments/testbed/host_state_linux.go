package testbed

import (
	"fmt"
	"os"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// readBootClock returns the id of the current boot and the time since then, including the time of suspension.
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

// interfaceCounts returns the kernel's counters for an interface, or nil if the interface does not exist.
func interfaceCounts(name string) []HostCount {
	link, err := netlink.LinkByName(name)
	if err != nil || link.Attrs().Statistics == nil {
		return nil
	}
	s := link.Attrs().Statistics
	return []HostCount{{name, "received", s.RxPackets}, {name, "receive drops", s.RxDropped}, {name, "receive errors", s.RxErrors},
		{name, "sent", s.TxPackets}}
}

// freeBytes returns the number of free bytes in the file system that contains a folder.
func freeBytes(folder string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * s.Bsize, nil
}
