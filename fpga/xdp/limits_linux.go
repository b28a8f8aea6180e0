package xdp

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/cilium/ebpf"
)

// spare is the number of file descriptors needed for probes, types and the log.
const spare = 16

// checkRoom returns an error if the process may not open as many files as the programs and maps need. Without this
// check, the library would mistake the kernel's error for a sign of an old kernel.
func checkRoom(spec *ebpf.CollectionSpec) error {
	var limit syscall.Rlimit
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil || syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return nil // the limit cannot be checked in advance
	}
	return roomFor(len(spec.Maps)+len(spec.Programs)+spare, len(open), limit.Cur)
}

// roomFor returns an error if the needed and the open file descriptors together exceed the permitted number.
func roomFor(needed, open int, allowed uint64) error {
	if uint64(open+needed) <= allowed {
		return nil
	}
	return fmt.Errorf("%w: too many open files: %d are open, %d more are needed, %d are allowed; raise the limit "+
		"with 'ulimit -n 4096'", ErrKernel, open, needed, allowed)
}

// remedies contains advice for errors that have nothing to do with the age of the kernel.
var remedies = []struct {
	number syscall.Errno
	remedy string
}{
	{syscall.EMFILE, "raise the limit of open files with 'ulimit -n 4096'"},
	{syscall.ENFILE, "the system has too many open files; raise fs.file-max with sysctl"},
	{syscall.ENOMEM, "out of memory; free some, or raise the limit of the cgroup or of 'ulimit -l'"},
	{syscall.EPERM, "a required right is missing ('olafctl testbed doctor' lists them), or the container's seccomp " +
		"profile forbids bpf"},
}

// withRemedy adds advice to an error returned by the kernel, if there is any.
func withRemedy(err error) error {
	for _, r := range remedies {
		if errors.Is(err, r.number) {
			return fmt.Errorf("%w; %s", err, r.remedy)
		}
	}
	return err
}
