//go:build !linux

package trace

// ThreadCPUNS returns the wall time in ns, because this operating system does not report a thread's CPU time.
func (c machineClock) ThreadCPUNS() int64 { return c.NowNS() }
