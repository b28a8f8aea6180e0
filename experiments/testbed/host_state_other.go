//go:build !linux

package testbed

import (
	"errors"
	"time"
)

// readBootClock returns the wall clock. That is sufficient, because devices that can be reserved are not opened on this
// system.
func readBootClock() (id string, nowNS int64, err error) { return "", time.Now().UnixNano(), nil }

// interfaceCounts returns nil, because the counters are not read on this system.
func interfaceCounts(string) []HostCount { return nil }

// freeBytes returns an error, because the free space is unknown on this system.
func freeBytes(string) (int64, error) { return 0, errors.ErrUnsupported }
