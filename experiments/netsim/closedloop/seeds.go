package closedloop

import (
	"context"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/olafctl/olaf/experiments/system"
)

// RunSeeds calls Run for every seed, on all cores, and returns the results in the order of the seeds. It calls done, if
// not nil, after each, from any goroutine. After an error it returns the finished results, and nil for the others.
func RunSeeds(ctx context.Context, net Network, job Job, parts system.Parts, sync bool, seeds []uint64,
	done func()) ([]*Result, error) {
	results := make([]*Result, len(seeds))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, seed := range seeds {
		group.Go(func() (err error) {
			if err := ctx.Err(); err != nil {
				return err // a short run does not check the context
			}
			if results[i], err = Run(ctx, net, job, parts, sync, seed); err == nil && done != nil {
				done()
			}
			return err
		})
	}
	return results, group.Wait()
}
