package sweep

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/archive"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/store"
	"github.com/olafctl/olaf/results/sweep"
)

// Recompute makes the document of a kept sweep again from its results and compares it with the stored one, number by number.
// A difference matches archive.ErrMismatch.
func Recompute(f *store.Folder, all Commands) (*Plan, []sweep.Outcome, error) {
	plan, cells, err := Kept(f, all)
	if err != nil {
		return nil, nil, err
	}
	stored := new(sweep.Document)
	if err := f.ReadJSON(archive.DocumentFile, stored); err != nil {
		return nil, nil, err
	}
	again, err := plan.Document(cells)
	if err != nil {
		return nil, nil, err
	}
	if stored.Digest != again.Digest {
		return nil, nil, fmt.Errorf("%w: %s: its digest is %.12s…, its results have %.12s…", archive.ErrMismatch, f.ID(), stored.Digest, again.Digest)
	}
	for _, part := range []struct {
		what      string
		was, made any
	}{{"its cells", stored.Cells, again.Cells}, {"its analysis", stored.Analysis, again.Analysis}} {
		if why := results.Difference(part.was, part.made); why != "" {
			return nil, nil, fmt.Errorf("%w: %s: %s: %s", archive.ErrMismatch, f.ID(), part.what, why)
		}
	}
	return plan, cells, nil
}

// Repeat carries out every result of a kept sweep again in this process, side by side on all cores, and compares them byte by
// byte. done counts them while it goes on. A difference matches sweep.ErrDiffers.
func Repeat(ctx context.Context, plan *Plan, cells []sweep.Outcome, all Commands, done *atomic.Int64) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range cells {
		for lot, was := range cells[i].Lots {
			g.Go(func() error {
				if err := ctx.Err(); err != nil {
					return err
				}
				again, err := all.Do(ctx, plan.Job(i, lot))
				if err != nil {
					return fmt.Errorf("%s: %w", plan.where(&plan.Cells[i]), err)
				}
				if !bytes.Equal(was, again) {
					return fmt.Errorf("%w: %s: %s", sweep.ErrDiffers, plan.where(&plan.Cells[i]), results.Difference(was, json.RawMessage(again)))
				}
				done.Add(1)
				return nil
			})
		}
	}
	return g.Wait()
}

// Runs are all runs of a sweep, named by their cells, so that two sweeps can be compared cell by cell.
func Runs(plan *Plan, cells []sweep.Outcome) (runs []results.Run, err error) {
	rows := map[string]*metric.Metric{}
	for _, m := range plan.command.Metrics {
		// What was counted is a number of the run here, like what was measured.
		one := &metric.Metric{Name: m.Name, Title: m.Title, Unit: m.Unit, Age: m.Age, Doc: m.Doc, Of: func(*metric.Measured) metric.Float { return metric.Missing() }}
		rows[m.Name] = one
	}
	for i := range cells {
		index := 0
		for _, raw := range cells[i].Lots {
			lot, err := sweep.ParseLot(raw)
			if err != nil {
				return nil, err
			}
			declared := new(metric.Declaration)
			var at []int
			for k, name := range lot.Metrics {
				m := rows[name]
				if m == nil { // of an earlier build: another name today, so that nothing is compared with it
					m = &metric.Metric{Name: name, Title: name + ", as an earlier olafctl defined it"}
				}
				declared.Metrics, at = append(declared.Metrics, m), append(at, k)
			}
			for k := range lot.Runs {
				r := &lot.Runs[k]
				one := results.Run{Queue: plan.where(&plan.Cells[i]), Index: index, Seed: r.Seed, Declared: declared}
				if one.Metrics = metric.NewValues(declared.Metrics, func(m int) metric.Float { return r.Value(at[m]) }); r.Invalid != "" {
					one.Invalid = []string{r.Invalid}
				}
				runs = append(runs, one)
				index++
			}
		}
	}
	return runs, nil
}
