package main

import (
	"testing"
	"time"

	"github.com/olafctl/olaf/experiments/testbed/sshlink/sshlinktest"
)

func TestTry(t *testing.T) {
	l := sshlinktest.New(t, 3, pathOfOlafctl(t))
	for _, args := range [][]string{
		{"bench", "-d", l.Hosts[0].URL("host:"), "--rate", "8M", "--out-rate", "3M", "--burst", "1", "--runs", "1", "--updates", "20", "-q", "--explain"},
		{"bench", "-d", l.Hosts[1].URL("xdp:"), "--rate", "8M", "--out-rate", "3M", "--burst", "1", "--runs", "1", "--updates", "20", "-q", "--explain"},
		{"bench", "-d", l.Hosts[1].URL("xdp:"), "--generator", l.Hosts[1].URL("xdp:"), "--runs", "1", "--updates", "20", "-q", "--explain"},
		{"bench", "-d", l.Hosts[1].URL("twin:"), "--generator", l.Hosts[1].URL("twin:"), "--runs", "1", "--updates", "20", "-q", "-o", "csv"},
		{"bench", "-d", l.Hosts[1].URL("twin:"), "--generator", l.Hosts[0].URL("twin:"), "--runs", "1", "--updates", "20", "-q", "-o", "csv"},
		{"bench", "-d", l.Hosts[1].URL("twin:"), "--server", l.Hosts[0].URL("lan"), "--runs", "1", "--updates", "20", "-q", "-o", "csv"},
		{"bench", "-d", "twin:", "--generator", l.Hosts[0].URL("twin:"), "--runs", "1", "--updates", "20", "-q", "-o", "csv"},
	} {
		began := time.Now()
		out, said, code := runOnHead(t, l, args...)
		t.Logf("%q: %d after %v\n%.3000s\n%s", args, code, time.Since(began), out, said)
	}
	l.AwaitIdle(t)
}
