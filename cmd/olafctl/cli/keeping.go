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
	"github.com/olafctl/olaf/results/store"
)

// KeepFlags say whether what runs is kept, and where.
type KeepFlags struct {
	Store StoreFlag
	keep  bool
}

// Add adds --keep and --store.
func (f *KeepFlags) Add(cmd *cobra.Command) {
	InGroup(cmd, OutputFlags, func() {
		cmd.Flags().BoolVar(&f.keep, "keep", true, "store the run; see 'olafctl runs'")
	})
	f.Store.Add(cmd)
}

// Keeping is a run on its way into the store; nil when it is not kept.
type Keeping struct {
	store    *store.Store
	Sink     *bench.Keeper         // of what publishes events
	document *bench.DocumentKeeper // of everything else
	failed   atomic.Pointer[error] // why Sink could not write an event; runs publish theirs side by side
}

// patientSink keeps what a bench publishes. An event that cannot be written ends the keeping and not the bench: the result
// is printed all the same.
type patientSink struct {
	*bench.Keeper
	keeping *Keeping
}

// Event implements bench.Sink.
func (p patientSink) Event(e bench.Event) error {
	if p.keeping.failed.Load() != nil {
		return nil
	}
	if err := p.Keeper.Event(e); err != nil {
		p.keeping.failed.CompareAndSwap(nil, &err)
	}
	return nil
}

// Wants reports whether the frames of a run are kept: none after a failure.
func (p patientSink) Wants(id bench.RunID) bool {
	return p.keeping.failed.Load() == nil && p.Keeper.Wants(id)
}

// Check refuses a store that was asked for by name and can't be written, before anything runs for it.
func (f *KeepFlags) Check(env *Env) error {
	if !f.keep || f.Store.dir == "" {
		return nil
	}
	return f.Store.With(env, (*store.Store).CheckWritable)
}

// open opens the store. A store that nobody asked for by name does not stop a run: where it cannot be opened, a remark
// says why the run is not kept.
func (f *KeepFlags) open(env *Env) *store.Store {
	if !f.keep {
		return nil
	}
	s, err := f.Store.open(env)
	if err != nil {
		f.refused(env, err)
		return nil
	}
	if err := s.CheckWritable(); err != nil {
		f.refused(env, err)
		return nil
	}
	return s
}

func (f *KeepFlags) refused(env *Env, err error) {
	fmt.Fprintf(env.Stderr, "not kept: %s; --keep=false says so beforehand\n", OneLine(err))
}

// Events prepares to keep what publishes events: benches and simulations.
func (f *KeepFlags) Events(env *Env, started time.Time) *Keeping {
	s := f.open(env)
	if s == nil {
		return nil
	}
	return &Keeping{store: s, Sink: bench.Keep(s, started)}
}

// Documents prepares to keep what has nothing but a document.
func (f *KeepFlags) Documents(env *Env, name string, started time.Time) *Keeping {
	s := f.open(env)
	if s == nil {
		return nil
	}
	document, err := bench.KeepDocument(s, name, started)
	if err != nil {
		f.refused(env, errors.Join(err, s.Close()))
		return nil
	}
	return &Keeping{store: s, document: document}
}

// Experiment prepares to keep an experiment.
func (f *KeepFlags) Experiment(env *Env, e *experiments.Experiment, started time.Time) *Keeping {
	if e.Spec != nil || e.Simulates {
		return f.Events(env, started)
	}
	return f.Documents(env, e.Name, started)
}

// Sinks are what must hear the events.
func (k *Keeping) Sinks() []bench.Sink {
	if k == nil || k.Sink == nil {
		return nil
	}
	return []bench.Sink{patientSink{k.Sink, k}}
}

// Abort leaves nothing behind.
func (k *Keeping) Abort() error {
	if k == nil {
		return nil
	}
	if k.document != nil {
		return errors.Join(k.document.Abort(), k.store.Close())
	}
	return errors.Join(k.Sink.Abort(), k.store.Close())
}

// Finish makes the report part of the store and prints its id. An error means that the report is not kept; the caller prints
// it all the same.
func (k *Keeping) Finish(env *Env, report bench.Report, by results.Provenance, stopped, quiet bool) error {
	if k == nil {
		return nil
	}
	id, err := k.put(report, by, stopped)
	if err != nil {
		err = errors.Join(err, k.Abort()) // a full disk gets its room back
		return &Exit{olaf.Failed, fmt.Errorf("the result is shown and not kept: %w", err)}
	}
	if !quiet {
		fmt.Fprintf(env.Stderr, "kept as %s\n", id)
	}
	return errors.Join(err, k.store.Close())
}

func (k *Keeping) put(report bench.Report, by results.Provenance, stopped bool) (id string, err error) {
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
