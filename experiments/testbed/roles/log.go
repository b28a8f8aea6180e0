package roles

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// hostLogs contains what happened on each host of a testbed. It may be used concurrently.
type hostLogs struct {
	now   func() time.Time // this host's clock; nil for time.Now
	mu    sync.Mutex
	lines map[string][]string
}

// add appends a line to a host's log.
func (l *hostLogs) add(host, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lines == nil {
		l.lines = map[string][]string{}
	}
	l.lines[host] = append(l.lines[host], l.stamp(fmt.Sprintf(format, args...)))
}

// stamp returns a line of a log: the current time (UTC) and the text.
func (l *hostLogs) stamp(text string) string {
	now := time.Now
	if l.now != nil {
		now = l.now
	}
	return now().UTC().Format("15:04:05.000000 ") + text
}

// of returns a copy of a host's log.
func (l *hostLogs) of(host string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines[host])
}
