package closedloop

import (
	"context"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/olafctl/olaf/experiments/system"
)

// RunSeeds is Run for every seed, on all cores, in the order of the seeds. done is called after each, from any goroutine;
// nil for nobody. What was finished before an error comes back with it, nil where nothing was.
func RunSeeds(ctx context.Context, net Network, job Job, parts system.Parts, sync bool, seeds []uint64, done func()) ([]*Result, error) {
	results := make([]*Result, len(seeds))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, seed := range seeds {
		group.Go(func() (err error) {
			if err := ctx.Err(); err != nil {
				return err // a short run does not look
			}
			if results[i], err = Run(ctx, net, job, parts, sync, seed); err == nil && done != nil {
				done()
			}
			return err
		})
	}
	return results, group.Wait()
}
