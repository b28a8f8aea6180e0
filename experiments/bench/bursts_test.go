package bench

import (
	"strings"
	"testing"

	"github.com/olafctl/olaf/results"
)

// TestBurstStatement checks that the statement on bursts gives the measured rate of valid runs.
func TestBurstStatement(t *testing.T) {
	spec := usualSpec()
	o := &Outcome{Plan: &Plan{Spec: spec}, Runs: [][]results.Run{{{BurstRate: 120e6}, {BurstRate: 124.4e6}},
		{{BurstRate: 9e9, Invalid: []string{"x"}}}}}
	if s := o.burstStatement(); !strings.Contains(s, "planned at 100Gbps") || !strings.Contains(s, "can, 122Mbps inside bursts") {
		t.Error(s)
	}
	o.Runs = nil
	if s := o.burstStatement(); !strings.Contains(s, "testbed doctor") {
		t.Error(s)
	}
}
