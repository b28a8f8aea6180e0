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

// RecomputeDocument builds the document of a stored sweep again from the stored results, and compares it with the
// stored document number by number. A difference matches archive.ErrMismatch.
func RecomputeDocument(f *store.Folder, all Commands) (*Plan, []sweep.Outcome, error) {
	plan, cells, err := ReadKept(f, all)
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
		return nil, nil, fmt.Errorf("%w: %s: its digest is %.12s…, but its results have the digest %.12s…",
			archive.ErrMismatch, f.ID(), stored.Digest, again.Digest)
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

// RepeatResults executes every lot of a stored sweep again in this process, on all cores, and compares the results byte
// by byte. It counts the results in done. A difference matches sweep.ErrDiffers.
func RepeatResults(ctx context.Context, plan *Plan, cells []sweep.Outcome, all Commands, done *atomic.Int64) error {
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
					return fmt.Errorf("%s: %w", plan.cellName(&plan.Cells[i]), err)
				}
				if !bytes.Equal(was, again) {
					return fmt.Errorf("%w: %s: %s", sweep.ErrDiffers, plan.cellName(&plan.Cells[i]),
						results.Difference(was, json.RawMessage(again)))
				}
				done.Add(1)
				return nil
			})
		}
	}
	return g.Wait()
}

// ListRuns returns all runs in a sweep. They are named after their cells, so that two sweeps can be compared cell by
// cell.
func ListRuns(plan *Plan, cells []sweep.Outcome) (runs []results.Run, err error) {
	rows := map[string]*metric.Metric{}
	for _, m := range plan.command.Metrics {
		// Counters are plain numbers here, like measurements.
		one := &metric.Metric{Name: m.Name, Title: m.Title, Unit: m.Unit, Age: m.Age, Doc: m.Doc,
			Of: func(*metric.Measured) metric.Float { return metric.Missing() }}
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
				if m == nil { // from an earlier build; the different title prevents a comparison
					m = &metric.Metric{Name: name, Title: name + ", as defined by an earlier olafctl"}
				}
				declared.Metrics, at = append(declared.Metrics, m), append(at, k)
			}
			for k := range lot.Runs {
				r := &lot.Runs[k]
				one := results.Run{Queue: plan.cellName(&plan.Cells[i]), Index: index, Seed: r.Seed, Declared: declared}
				if one.Metrics = metric.NewValues(declared.Metrics,
					func(m int) metric.Float { return r.Value(at[m]) }); r.Invalid != "" {
					one.Invalid = []string{r.Invalid}
				}
				runs = append(runs, one)
				index++
			}
		}
	}
	return runs, nil
}
