package experiment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	sweepcmd "github.com/olafctl/olaf/cmd/olafctl/sweep"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/sweep"
	"github.com/olafctl/olaf/results/store"
	found "github.com/olafctl/olaf/results/sweep"
)

// farmFlags are the flags for running experiments in several processes on this machine or through a work queue.
type farmFlags struct {
	queue sweepcmd.QueueFlags // in place of a queue's address, --workers may be a number of processes
	store cli.StoreFlag
}

func (f *farmFlags) add(cmd *cobra.Command) {
	f.queue.AddWorkers(cmd, "number of worker processes, or a work queue from which machines take jobs "+
		"('olafctl sweep serve')")
	f.store.Add(cmd)
}

func (f *farmFlags) isSet() bool { return f.queue.Url != "" }

// countProcesses returns the number of processes to start, or 0 if a work queue is used.
func (f *farmFlags) countProcesses() int {
	n, err := strconv.Atoi(f.queue.Url)
	if err != nil {
		return 0
	}
	return n
}

// checkFlags rejects combinations of flags that contradict each other.
func (f *farmFlags) checkFlags(env *cli.Env, o *experiments.Options) error {
	n, err := strconv.Atoi(f.queue.Url)
	switch {
	case !f.isSet():
		return nil
	case err == nil && n < 1:
		return cli.UsageError("--workers %d: use 1 or more, or a queue such as nats://lab:4222", n)
	case o.Device != env.Devices.Default():
		return cli.UsageError("--workers measures on twins; leave out --device %s, or --workers", o.Device)
	case o.Trainings != "":
		return cli.UsageError("with --workers the store keeps trainings; leave out --trainings")
	}
	return nil
}

// reproduction is a job of the command reproduce: an experiment or a part of an experiment.
type reproduction struct {
	Experiment string          `json:"experiment,omitempty"`
	Kind       string          `json:"kind,omitempty"` // kind of the part
	Part       json.RawMessage `json:"part,omitempty"`
	Runs       int             `json:"runs,omitempty"`
	Seed       uint64          `json:"seed,omitempty"`
	Quick      bool            `json:"quick,omitempty"`
}

// reproduceName is the name of the command that runs the jobs of reproduce on workers.
const reproduceName = "reproduce"

// WorkCommand returns the command with which workers run the jobs of reproduce.
func WorkCommand(published experiments.Set) *sweep.Command {
	return &sweep.Command{Name: reproduceName,
		Piece: func(ctx context.Context, spec json.RawMessage) (json.RawMessage, error) {
			var r reproduction
			if err := json.Unmarshal(spec, &r); err != nil {
				return nil, err
			}
			if r.Part != nil {
				parts, err := published.Parts(r.Kind)
				if err != nil {
					return nil, err
				}
				return parts.Do(ctx, r.Part)
			}
			e, err := published.Find(r.Experiment)
			if err != nil {
				return nil, err
			}
			report, err := e.Run(ctx, experiments.Options{Runs: r.Runs, Seed: r.Seed, Quick: r.Quick})
			if err != nil {
				return nil, err
			}
			return json.Marshal(experiments.VerdictsOf(report))
		}}
}

// listPieces returns the jobs for some experiments: first the parts of long experiments, next the whole experiments,
// and finally all other parts. A part that several experiments share is listed once. Experiments that measure time are
// omitted, because they run in this process.
func (f *reproduceFlags) listPieces(chosen experiments.Set) (names []string, specs []json.RawMessage, err error) {
	o := &f.options
	seen := map[string]bool{}
	add := func(name string, r reproduction) error {
		spec, err := json.Marshal(&r)
		if err == nil && !seen[string(spec)] {
			seen[string(spec)], names, specs = true, append(names, name), append(specs, spec)
		}
		return err
	}
	parts := func(long bool) error {
		for i := range chosen {
			e := &chosen[i]
			if e.Parts == nil || e.Long != long {
				continue
			}
			all, err := e.Parts.List(*o)
			if err != nil {
				return err
			}
			for _, p := range all {
				if err := add(e.Name+": "+p.Name, reproduction{Kind: e.Parts.Kind, Part: p.Spec}); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if err := parts(true); err != nil {
		return nil, nil, err
	}
	for i := range chosen {
		if e := &chosen[i]; e.Parts == nil && !e.Timed {
			if err := add(e.Name, reproduction{Experiment: e.Name, Runs: o.Runs, Seed: o.Seed,
				Quick: o.Quick}); err != nil {
				return nil, nil, err
			}
		}
	}
	if err := parts(false); err != nil {
		return nil, nil, err
	}
	return names, specs, nil
}

// runElsewhere runs the experiments' jobs on workers. It returns a function that builds the verdicts on an experiment
// from the results.
func (f *reproduceFlags) runElsewhere(ctx context.Context, env *cli.Env,
	chosen experiments.Set) (func(context.Context, experiments.Experiment) (experiments.Judged, error), error) {
	names, specs, err := f.listPieces(chosen)
	if err != nil {
		return nil, err
	}
	plan := sweep.NewPieces(WorkCommand(env.Published), names, specs)
	if plan.Build, err = sweepcmd.ThisBuild(env); err != nil {
		return nil, err
	}
	done := map[string]json.RawMessage{} // finished parts by specification
	err = f.workers.store.WithStore(env, func(s *store.Store) error {
		cells, err := f.runPieces(ctx, env, plan, s)
		for i := range cells {
			if cells[i].State == found.Done {
				done[string(specs[i])] = cells[i].Lots[0]
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, e experiments.Experiment) (experiments.Judged, error) {
		return f.assembleExperiment(ctx, &e, done)
	}, nil
}

// runPieces runs all jobs. The error for a failed job includes a remedy.
func (f *reproduceFlags) runPieces(ctx context.Context, env *cli.Env, plan *sweep.Plan,
	s *store.Store) ([]found.Outcome, error) {
	host := sweepcmd.NewPresence(env, "", plan.Build).Host
	engine := &sweep.Engine{Plan: plan, Results: s.Singles(), Workers: f.workers.countProcesses(), Host: host,
		Now: env.Now, Start: sweepcmd.ProcessStarter(env, plan.Build)}
	handedOut := func(error) (sweepcmd.Handed, error) { return sweepcmd.Handed{}, nil }
	if engine.Workers == 0 {
		var err error
		if handedOut, err = f.workers.queue.HandOut(ctx, env, engine); err != nil {
			return nil, err
		}
	}
	f.monitor.AddSweep(engine.Progress)
	bar := cli.StartNotedProgress(env, f.quiet, func() (int, int) { p := engine.Progress(); return p.LotsDone, p.Lots },
		sweepcmd.SweepNote(env, engine))
	cells, differ, err := engine.Run(ctx)
	bar.Stop()
	elsewhere, lost := handedOut(err)
	if differ = append(differ, elsewhere.Differences...); err == nil {
		err = lost
	}
	p := engine.Progress()
	if p.Unkept != "" {
		fmt.Fprintf(env.Stderr, "not all pieces are kept, so the same command repeats some: %s\n", p.Unkept)
	}
	switch {
	case errors.Is(err, context.Canceled):
		fmt.Fprintf(env.Stderr, "%d of %d pieces are done; the same command continues\n", p.Done, p.Cells)
		return nil, cli.ShortenInterrupt(ctx, err)
	case err != nil:
		return nil, err
	case len(differ) > 0:
		return nil, fmt.Errorf("%w: %s", store.ErrConflict, differ[0])
	}
	for i := range cells {
		if cells[i].State == found.Failed {
			return nil, fmt.Errorf("%s failed: %s; the same command tries it again",
				cells[i].Parameters[0], cells[i].Error)
		}
	}
	if !f.quiet {
		for i := range elsewhere.Checked {
			fmt.Fprintf(env.Stderr, "checked: %v\n", &elsewhere.Checked[i])
		}
		fmt.Fprintf(env.Stderr, "%s, %d of them found\n", olaf.Plural(p.Cells, "piece"), p.Found)
	}
	return cells, nil
}

// assembleExperiment returns the verdicts on an experiment. It uses the workers' results and computes the remaining
// parts in this process.
func (f *reproduceFlags) assembleExperiment(ctx context.Context, e *experiments.Experiment,
	done map[string]json.RawMessage) (experiments.Judged, error) {
	o := f.options
	if e.Parts == nil && !e.Timed {
		spec, err := json.Marshal(reproduction{Experiment: e.Name, Runs: o.Runs, Seed: o.Seed, Quick: o.Quick})
		if err != nil {
			return nil, err
		}
		v := new(experiments.Verdicts)
		return v, json.Unmarshal(done[string(spec)], v)
	}
	o.Done = func(part json.RawMessage) (json.RawMessage, bool) {
		spec, err := json.Marshal(reproduction{Kind: e.Parts.Kind, Part: part})
		if err != nil {
			return nil, false
		}
		result, ok := done[string(spec)]
		return result, ok
	}
	report, err := e.Run(ctx, o)
	if report == nil {
		return nil, err // not a non-nil Judged with a nil pointer
	}
	return report, err
}
