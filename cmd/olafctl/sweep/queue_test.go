package sweep

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
)

// TestErrorNamesQueueWithoutWorkers checks that the command for starting a worker is printed after two seconds without
// a worker, and that there is no remark if a worker came or the sweep ended before. The seconds are those of a synctest
// bubble.
func TestErrorNamesQueueWithoutWorkers(t *testing.T) {
	for name, c := range map[string]struct {
		came, ended bool
		want        string
	}{
		"no worker":       {want: "no worker of this build is there yet; start some with 'olafctl sweep work --from nats://lab:4222'\n"},
		"a worker":        {came: true},
		"the sweep ended": {ended: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, end := context.WithCancel(t.Context())
				defer end()
				arrived := make(chan struct{})
				if c.came {
					close(arrived)
				}
				if c.ended {
					end()
				}
				var stderr strings.Builder
				if awaitWorker(ctx, &cli.Env{Stderr: &stderr}, "nats://lab:4222", arrived); stderr.String() != c.want {
					t.Errorf("%q, want %q", &stderr, c.want)
				}
			})
		})
	}
}
