package netsim

import (
	"context"
	"fmt"
	"runtime"

	"golang.org/x/sync/errgroup"
)

// RunSeeds simulates t once for every seed, in parallel on all cores, and returns the results in the order of the
// seeds. It calls done, if not nil, after each run from any goroutine. After an error, including the context's, the
// missing results are nil.
func RunSeeds(ctx context.Context, t *Topology, seeds []uint64, opt Options, done func()) ([]*Result, error) {
	results := make([]*Result, len(seeds))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, seed := range seeds {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			one := *t
			one.Seed = seed
			r, err := Run(ctx, &one, opt)
			if err != nil {
				return fmt.Errorf("seed %d: %w", seed, err)
			}
			results[i] = r
			if done != nil {
				done()
			}
			return nil
		})
	}
	return results, g.Wait()
}
