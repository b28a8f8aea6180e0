package closedloop

import (
	"context"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/olafctl/olaf/experiments/system"
)

// RunSeeds calls Run for every seed, in parallel as described at ForSeeds.
func RunSeeds(ctx context.Context, net Network, job Job, parts system.Parts, sync bool, seeds []uint64,
	done func()) ([]*Result, error) {
	return ForSeeds(ctx, seeds, func(ctx context.Context, seed uint64) (*Result, error) {
		return Run(ctx, net, job, parts, sync, seed)
	}, done)
}

// ForSeeds calls run for every seed, on all cores, and returns the results in the order of the seeds. If done is not
// nil, it is called after each run, from any goroutine. After an error, ForSeeds returns the finished results, and nil
// for the other seeds.
func ForSeeds[R any](ctx context.Context, seeds []uint64, run func(ctx context.Context, seed uint64) (R, error),
	done func()) ([]R, error) {
	results := make([]R, len(seeds))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, seed := range seeds {
		group.Go(func() (err error) {
			if err := ctx.Err(); err != nil {
				return err // a short run does not check the context
			}
			if results[i], err = run(ctx, seed); err == nil && done != nil {
				done()
			}
			return err
		})
	}
	return results, group.Wait()
}
