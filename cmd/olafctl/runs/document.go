package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/job"
	"github.com/olafctl/olaf/experiments/paper/atp"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/archive"
	"github.com/olafctl/olaf/results/compare"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/result"
	"github.com/olafctl/olaf/results/store"
)

// documented describes a kind of document that is kept with its plan.
type documented struct {
	// repeat makes the report again and says of how many runs; none where it was kept without a plan.
	repeat func(ctx context.Context, env *cli.Env, f *store.Folder) (bench.Report, int, error)
	// metrics are those of its numbers.
	metrics []*metric.Metric
	// side is what is compared; nil where documents hold no single runs.
	side func(f *store.Folder, document []byte) (*compare.Side, error)
}

// documentKinds lists the kinds by the name of their schema, without its version.
func documentKinds() map[string]documented {
	return map[string]documented{
		schemaName(job.Schema):    {repeatJob, job.Metrics(), jobSide},
		schemaName(result.Schema): {repeatShared, job.Metrics(), sharedSide},
		"olafctl.table":           {repeatShared, job.Metrics(), sharedSide}, // of earlier versions
	}
}

// schemaName returns a schema without its version.
func schemaName(schema string) string {
	name, _, _ := strings.Cut(schema, "/")
	return name
}

// kindOf is the kind of a run that was kept with its document only; false where that has no single runs.
func kindOf(f *store.Folder) (documented, bool) {
	var fixed struct {
		Document string `json:"document"`
	}
	if !archive.HasDocumentOnly(f) || json.Unmarshal(f.Manifest.Deterministic, &fixed) != nil {
		return documented{}, false
	}
	kind, ok := documentKinds()[schemaName(fixed.Document)]
	return kind, ok
}

// repeatDocument makes a document again from its plan and compares it. It says how many runs that took, 0 where there is no plan, and
// what is new in it.
func repeatDocument(ctx context.Context, env *cli.Env, f *store.Folder) (runs int, news []string, err error) {
	kind, ok := kindOf(f)
	if !ok {
		return 0, nil, nil
	}
	report, runs, err := kind.repeat(ctx, env, f)
	if err != nil || runs == 0 {
		return 0, nil, err
	}
	news, err = bench.SameDocument(f, report, kind.metrics)
	return runs, news, err
}

// documentSide is a side of a comparison; nil of what has single runs elsewhere, or none.
func documentSide(f *store.Folder) (*compare.Side, error) {
	kind, ok := kindOf(f)
	if !ok || kind.side == nil {
		return nil, nil
	}
	document, err := f.ReadFile(archive.DocumentFile)
	if err != nil {
		return nil, err
	}
	return kind.side(f, document)
}

func repeatJob(ctx context.Context, env *cli.Env, f *store.Folder) (bench.Report, int, error) {
	var plan *job.Plan
	there, err := bench.PlanOf(f, func(raw []byte) (err error) {
		plan, err = job.ReadPlan(env.Systems, raw)
		return err
	})
	if err != nil || !there {
		return nil, 0, err
	}
	report, err := cli.PlayJobs(ctx, env, false, nil, plan.Runs(), plan.Run)
	return report, plan.Runs(), cli.NothingToShow(err)
}

func repeatShared(ctx context.Context, env *cli.Env, f *store.Folder) (bench.Report, int, error) {
	plan := atp.Plan{Systems: env.Systems}
	if there, err := bench.PlanOf(f, func(raw []byte) error { return json.Unmarshal(raw, &plan) }); err != nil || !there {
		return nil, 0, err
	}
	if g := plan.Grid; g == nil || len(g.Sharings) == 0 || len(plan.Seeds) == 0 {
		return nil, 0, fmt.Errorf("%w: %s: its plan is not of jobs that share a switch", store.ErrDamaged, f.ID())
	}
	report, err := cli.PlayJobs(ctx, env, false, nil, plan.Runs(), plan.Run)
	return report, plan.Runs(), cli.NothingToShow(err)
}

// sharedSide has the single runs of jobs that share a switch, which are kept beside their document.
func sharedSide(f *store.Folder, document []byte) (*compare.Side, error) {
	raw, err := f.ReadFile(atp.RunsFile)
	if errors.Is(err, fs.ErrNotExist) { // of an experiment, or kept before there were any
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	runs, err := job.NamedRuns(raw)
	if err != nil {
		return nil, err
	}
	return sideOfRuns(f, document, runs)
}

func jobSide(f *store.Folder, document []byte) (*compare.Side, error) {
	runs, err := job.KeptRuns(document)
	if err != nil || len(runs) == 0 {
		return nil, err
	}
	return sideOfRuns(f, document, runs)
}

// sideOfRuns is a side of single runs, with what decided them.
func sideOfRuns(f *store.Folder, document []byte, runs []results.Run) (*compare.Side, error) {
	var stated struct {
		Config json.RawMessage `json:"config"`
	}
	err := json.Unmarshal(document, &stated)
	return &compare.Side{Name: f.ID(), Experiment: f.Manifest.Experiment, Config: stated.Config, Runs: runs, Partial: f.Manifest.Partial}, err
}
