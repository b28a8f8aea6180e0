//go:build !linux

package main

// ThreadCPUNS is the wall time: this system does not tell a thread's own.
func (c machineClock) ThreadCPUNS() int64 { return c.NowNS() }
