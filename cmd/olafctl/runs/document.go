package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/bench/job"
	"github.com/olafctl/olaf/experiments/paper/atp"
	"github.com/olafctl/olaf/results/archive"
	"github.com/olafctl/olaf/results/compare"
	"github.com/olafctl/olaf/results/result"
	"github.com/olafctl/olaf/results/store"
)

// repeatDocument runs a document's plan again and compares the new document with the stored one. It returns the number
// of runs, which is 0 without a plan, and the names of fields that the stored document does not have.
func repeatDocument(ctx context.Context, env *cli.Env, f *store.Folder) (runs int, news []string, err error) {
	if !archive.HasDocumentOnly(f) {
		return 0, nil, nil
	}
	var kind struct {
		Jobs json.RawMessage `json:"jobs"`
		Grid json.RawMessage `json:"grid"`
	}
	if there, err := archive.PlanOf(f, func(raw []byte) error { return json.Unmarshal(raw, &kind) }); err != nil ||
		!there {
		return 0, nil, err
	}
	var report result.Report
	switch {
	case kind.Grid != nil:
		report, runs, err = repeatShared(ctx, env, f)
	case kind.Jobs != nil:
		report, runs, err = repeatJob(ctx, env, f)
	default: // a sweep repeats its cells
		return 0, nil, nil
	}
	if err != nil {
		return 0, nil, err
	}
	news, err = archive.SameDocument(f, env.Readers, report, job.Metrics())
	return runs, news, err
}

// documentSide returns a stored document as one side of a comparison. It returns nil if the document has no single runs
// or if they are stored elsewhere.
func documentSide(env *cli.Env, f *store.Folder) (*compare.Side, error) {
	if !archive.HasDocumentOnly(f) {
		return nil, nil
	}
	document, err := f.ReadFile(archive.DocumentFile)
	if err != nil {
		return nil, err
	}
	r, err := env.Readers.Read(document)
	if err != nil || r == nil {
		return nil, err
	}
	runs := r.Runs()
	if len(runs) == 0 {
		raw, err := f.ReadFile(atp.RunsFile)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err == nil {
			runs, err = job.NamedRuns(raw)
		}
		if err != nil {
			return nil, err
		}
	}
	config, _ := r.Config.(json.RawMessage) // set by Readers
	return &compare.Side{Name: f.ID(), Experiment: f.Manifest.Experiment, Config: config, Runs: runs,
		Partial: f.Manifest.Partial}, nil
}

func repeatJob(ctx context.Context, env *cli.Env, f *store.Folder) (result.Report, int, error) {
	var plan *job.Plan
	there, err := archive.PlanOf(f, func(raw []byte) (err error) {
		plan, err = job.ReadPlan(env.Systems, raw)
		return err
	})
	if err != nil || !there {
		return nil, 0, err
	}
	report, err := cli.PlayJobs(ctx, env, false, nil, plan.Runs(), plan.Run)
	return report, plan.Runs(), cli.MarkNothingToShow(err)
}

func repeatShared(ctx context.Context, env *cli.Env, f *store.Folder) (result.Report, int, error) {
	plan := atp.Plan{Systems: env.Systems}
	if there, err := archive.PlanOf(f, func(raw []byte) error { return json.Unmarshal(raw, &plan) }); err != nil ||
		!there {
		return nil, 0, err
	}
	if g := plan.Grid; g == nil || len(g.Sharings) == 0 || len(plan.Seeds) == 0 {
		return nil, 0, fmt.Errorf("%w: %s: its plan does not describe jobs that share "+
			"a switch", store.ErrDamaged, f.ID())
	}
	report, err := cli.PlayJobs(ctx, env, false, nil, plan.Runs(), plan.Run)
	return report, plan.Runs(), cli.MarkNothingToShow(err)
}
