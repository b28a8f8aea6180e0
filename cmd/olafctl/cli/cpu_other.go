//go:build !linux

package cli

// ThreadCPUNS returns the wall time in ns, because this operating system does not report a thread's CPU time.
func (c MachineClock) ThreadCPUNS() int64 { return c.NowNS() }
