package cli

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/archive"
	"github.com/olafctl/olaf/results/result"
	"github.com/olafctl/olaf/results/store"
)

// KeepFlags are the flags for storing runs.
type KeepFlags struct {
	Store StoreFlag
	keep  bool
}

func (f *KeepFlags) Add(cmd *cobra.Command) {
	InGroup(cmd, OutputFlags, func() {
		cmd.Flags().BoolVar(&f.keep, "keep", true, "store the run; see 'olafctl runs'")
	})
	f.Store.Add(cmd)
}

// Keeping is a run that is being stored. It is nil if the run is not stored.
type Keeping struct {
	store    *store.Store
	Sink     *bench.Keeper           // for commands that publish events
	document *archive.DocumentKeeper // for all others
	failed   atomic.Pointer[error]   // why Sink could not write an event; runs publish concurrently
}

// patientSink stores a bench's events. If an event cannot be written, it stops storing, but the bench continues and
// still prints its result.
type patientSink struct {
	*bench.Keeper
	keeping *Keeping
}

func (p patientSink) Event(e bench.Event) error {
	if p.keeping.failed.Load() != nil {
		return nil
	}
	if err := p.Keeper.Event(e); err != nil {
		p.keeping.failed.CompareAndSwap(nil, &err)
	}
	return nil
}

// Wants reports whether the frames of a run are stored. After a failure it returns false.
func (p patientSink) Wants(id bench.RunID) bool {
	return p.keeping.failed.Load() == nil && p.Keeper.Wants(id)
}

// CheckStore returns an error if the folder in --store cannot be written. It is called before anything runs.
func (f *KeepFlags) CheckStore(env *Env) error {
	if !f.keep || f.Store.dir == "" {
		return nil
	}
	return f.Store.WithStore(env, (*store.Store).CheckWritable)
}

// openStore opens the store. If the default store cannot be opened, it prints a remark and returns nil, and the run
// continues without being stored.
func (f *KeepFlags) openStore(env *Env) *store.Store {
	if !f.keep {
		return nil
	}
	s, err := f.Store.openStore(env)
	if err == nil {
		err = s.CheckWritable()
	}
	if err != nil {
		f.reportUnsaved(env, err)
		return nil
	}
	return s
}

func (f *KeepFlags) reportUnsaved(env *Env, err error) {
	fmt.Fprintf(env.Stderr, "not kept: %s; --keep=false turns this remark off\n", OneLine(err))
}

// KeepEvents prepares to store the events of a bench or a simulation.
func (f *KeepFlags) KeepEvents(env *Env, started time.Time) *Keeping {
	s := f.openStore(env)
	if s == nil {
		return nil
	}
	return &Keeping{store: s, Sink: bench.NewKeeper(s, started)}
}

// KeepDocument prepares to store the result of a command that produces only a document.
func (f *KeepFlags) KeepDocument(env *Env, name string, started time.Time) *Keeping {
	s := f.openStore(env)
	if s == nil {
		return nil
	}
	document, err := archive.KeepDocument(s, name, started)
	if err != nil {
		f.reportUnsaved(env, errors.Join(err, s.Close()))
		return nil
	}
	return &Keeping{store: s, document: document}
}

// KeepExperiment prepares to store the result of an experiment.
func (f *KeepFlags) KeepExperiment(env *Env, e *experiments.Experiment, started time.Time) *Keeping {
	if e.Spec != nil || e.Simulates {
		return f.KeepEvents(env, started)
	}
	return f.KeepDocument(env, e.Name, started)
}

// Sinks returns the sinks that store events.
func (k *Keeping) Sinks() []bench.Sink {
	if k == nil || k.Sink == nil {
		return nil
	}
	return []bench.Sink{patientSink{k.Sink, k}}
}

// Abort removes everything stored so far.
func (k *Keeping) Abort() error {
	if k == nil {
		return nil
	}
	if k.document != nil {
		return errors.Join(k.document.Abort(), k.store.Close())
	}
	return errors.Join(k.Sink.Abort(), k.store.Close())
}

// Finish stores the report and prints the run's ID. If it fails, the report is not stored, but the caller can still
// print it.
func (k *Keeping) Finish(env *Env, report result.Report, by results.Provenance, stopped, quiet bool) error {
	if k == nil {
		return nil
	}
	id, err := k.putReport(report, by, stopped)
	if err != nil {
		err = errors.Join(err, k.Abort()) // free the space on a full disk
		return &Exit{olaf.Failed, fmt.Errorf("the result is shown, but not kept: %w", err)}
	}
	if !quiet {
		fmt.Fprintf(env.Stderr, "kept as %s\n", id)
	}
	return errors.Join(err, k.store.Close())
}

func (k *Keeping) putReport(report result.Report, by results.Provenance, stopped bool) (id string, err error) {
	if failed := k.failed.Load(); failed != nil {
		return "", *failed
	}
	if k.document != nil {
		return k.document.Finish(report, by, stopped)
	}
	switch r := report.(type) {
	case *bench.Measurement:
		return k.Sink.Finish(r)
	case bench.SimulationReport:
		return k.Sink.FinishSimulation(r, by)
	}
	return "", fmt.Errorf("a report of type %T has no runs", report) // a mistake in package experiments
}
