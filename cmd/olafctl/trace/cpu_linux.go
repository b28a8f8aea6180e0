package trace

import "golang.org/x/sys/unix"

// ThreadCPUNS returns the CPU time of the calling thread in ns.
func (c machineClock) ThreadCPUNS() int64 {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &used); err != nil {
		return c.NowNS()
	}
	return used.Utime.Nano() + used.Stime.Nano()
}
