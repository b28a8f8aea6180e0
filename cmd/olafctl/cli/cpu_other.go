//go:build !linux

package cli

// ThreadCPUNS is the wall time: this system does not tell a thread's own.
func (c MachineClock) ThreadCPUNS() int64 { return c.NowNS() }
