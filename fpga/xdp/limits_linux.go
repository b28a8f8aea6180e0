package xdp

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/cilium/ebpf"
)

// spare is how many descriptors loading takes beside those of programs and maps: probes, types and the log.
const spare = 16

// checkRoom returns an error if the process may not open as many files as programs and maps take. The library would take the
// kernel's refusal for an old kernel.
func checkRoom(spec *ebpf.CollectionSpec) error {
	var limit syscall.Rlimit
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil || syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return nil // it cannot be known beforehand
	}
	return roomFor(len(spec.Maps)+len(spec.Programs)+spare, len(open), limit.Cur)
}

// roomFor checks a number of descriptors against the open and the allowed ones.
func roomFor(needed, open int, allowed uint64) error {
	if uint64(open+needed) <= allowed {
		return nil
	}
	return fmt.Errorf("%w: too many open files: %d are open, %d more are needed, %d are allowed; raise the limit with 'ulimit -n 4096'", ErrKernel, open, needed, allowed)
}

// remedies are what to do about errors that have nothing to do with the age of a kernel.
var remedies = []struct {
	number syscall.Errno
	remedy string
}{
	{syscall.EMFILE, "raise the limit of open files with 'ulimit -n 4096'"},
	{syscall.ENFILE, "the system has too many open files; raise fs.file-max with sysctl"},
	{syscall.ENOMEM, "no memory is left for it; free some, or raise the limit of the cgroup or of 'ulimit -l'"},
	{syscall.EPERM, "a right is missing that 'olafctl testbed doctor' lists, or the container's seccomp profile forbids bpf"},
}

// withRemedy adds what to do to an error of the kernel.
func withRemedy(err error) error {
	for _, r := range remedies {
		if errors.Is(err, r.number) {
			return fmt.Errorf("%w; %s", err, r.remedy)
		}
	}
	return err
}
