package testbed

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	endpoints "github.com/olafctl/olaf/pktgen/process"
)

// TestEarlyExitHasReasonAndRemedy checks the reason and the remedy for a worker or server that stopped early.
func TestEarlyExitHasReasonAndRemedy(t *testing.T) {
	if err := explainEnd(t.Context(), nil); err != nil {
		t.Errorf("who was done: %v", err)
	}
	gone, end := context.WithCancelCause(t.Context())
	end(fmt.Errorf("%w: no interface has the address 192.0.2.1", endpoints.ErrOffline))
	for _, c := range []struct {
		ctx       context.Context
		err, kind error
		says      string
	}{
		{gone, nil, endpoints.ErrOffline, "no interface has the address 192.0.2.1; check with 'olafctl testbed show' that the testbed"},
		{t.Context(), endpoints.ErrStalled, endpoints.ErrStalled, "if one of them was restarted, restart all workers"},
	} {
		if err := explainEnd(c.ctx, c.err); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
			t.Error(err)
		}
	}
}

// TestUnansweredWorkerFails checks that a worker behind a queue fails if none of its updates is answered.
func TestUnansweredWorkerFails(t *testing.T) {
	for _, c := range []struct {
		sent, received uint64
		want           int
	}{{0, 0, cli.ExitDone}, {100, 1, cli.ExitDone}, {100, 0, cli.ExitFailed}} {
		err := checkAnswered(map[string]uint64{"packets_sent": c.sent, "packets_received": c.received})
		if got := cli.ExitCode(err); got != c.want {
			t.Errorf("%d packets sent and %d received end with %d, want %d: %v", c.sent, c.received, got, c.want, err)
		}
	}
}

// TestWrongValuesFail checks that a document with a wrong value is accompanied by an error.
func TestWrongValuesFail(t *testing.T) {
	for _, tt := range []struct {
		wrong  int
		counts map[string]uint64
		want   string
	}{
		{0, map[string]uint64{"packets_sent": 3}, ""},
		{3, nil, "3 of 9 values are wrong"},
		{0, map[string]uint64{"packets_inexact": 1}, "the sums of 1 packet are not exact"},
		{0, map[string]uint64{"misidentified": 2}, "2 packets had another worker's number"},
	} {
		err := checkValues(tt.wrong, 9, tt.counts)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.want) || cli.ExitCode(err) != cli.ExitFailed) {
			t.Errorf("%d wrong, %v: %v, want %q with exit code 1", tt.wrong, tt.counts, err, tt.want)
		}
	}
}
