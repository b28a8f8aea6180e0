package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/store"
)

// keepFlags say whether what runs is kept, and where.
type keepFlags struct {
	store storeFlag
	keep  bool
}

func (f *keepFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.keep, "keep", true, "keep the run in the store; see 'olafctl runs'")
	f.store.add(cmd)
}

// keeping is a run on its way into the store; nil when it is not kept.
type keeping struct {
	store    *store.Store
	sink     *bench.Keeper         // of what publishes events
	document *bench.DocumentKeeper // of everything else
}

// check refuses a store that was asked for by name and can't be written, before anything runs for it.
func (f *keepFlags) check(env *environment) error {
	if !f.keep || f.store.dir == "" {
		return nil
	}
	return f.store.with(env, func(s *store.Store) error {
		if s.ReadOnly() {
			return unwritable(s)
		}
		return nil
	})
}

func unwritable(s *store.Store) error {
	return fmt.Errorf("the run store %s can't be written; make room ('olafctl runs prune') or choose another place with --store", s.Dir())
}

// open opens the store. A store that nobody asked for by name does not stop a run: where it cannot be opened, a remark
// says why the run is not kept.
func (f *keepFlags) open(env *environment) *store.Store {
	if !f.keep {
		return nil
	}
	s, err := f.store.open(env)
	if err != nil {
		f.refused(env, err)
		return nil
	}
	if s.ReadOnly() {
		f.refused(env, errors.Join(unwritable(s), s.Close()))
		return nil
	}
	return s
}

func (f *keepFlags) refused(env *environment, err error) {
	fmt.Fprintf(env.stderr, "not kept: %s; --keep=false says so beforehand\n", oneLine(err))
}

// events prepares to keep what publishes events: benches and simulations.
func (f *keepFlags) events(env *environment, started time.Time) *keeping {
	s := f.open(env)
	if s == nil {
		return nil
	}
	return &keeping{store: s, sink: bench.Keep(s, started)}
}

// documents prepares to keep what has nothing but a document.
func (f *keepFlags) documents(env *environment, name string, started time.Time) *keeping {
	s := f.open(env)
	if s == nil {
		return nil
	}
	document, err := bench.KeepDocument(s, name, started)
	if err != nil {
		f.refused(env, errors.Join(err, s.Close()))
		return nil
	}
	return &keeping{store: s, document: document}
}

// experiment prepares to keep an experiment.
func (f *keepFlags) experiment(env *environment, e *experiments.Experiment, started time.Time) *keeping {
	if e.Spec != nil || e.Simulates {
		return f.events(env, started)
	}
	return f.documents(env, e.Name, started)
}

// sinks are what must hear the events.
func (k *keeping) sinks() []bench.Sink {
	if k == nil || k.sink == nil {
		return nil
	}
	return []bench.Sink{k.sink}
}

// abort leaves nothing behind.
func (k *keeping) abort() error {
	if k == nil {
		return nil
	}
	if k.document != nil {
		return errors.Join(k.document.Abort(), k.store.Close())
	}
	return errors.Join(k.sink.Abort(), k.store.Close())
}

// finish makes the report part of the store and says under which id.
func (k *keeping) finish(env *environment, report bench.Report, by results.Provenance, stopped, quiet bool) error {
	if k == nil {
		return nil
	}
	id, err := k.put(report, by, stopped)
	if err != nil {
		return errors.Join(err, k.abort()) // a full disk gets its room back
	}
	if !quiet {
		fmt.Fprintf(env.stderr, "kept as %s\n", id)
		err = remarkAbandoned(env, k.store)
	}
	return errors.Join(err, k.store.Close())
}

func (k *keeping) put(report bench.Report, by results.Provenance, stopped bool) (id string, err error) {
	if k.document != nil {
		return k.document.Finish(report, by, stopped)
	}
	switch r := report.(type) {
	case *bench.Measurement:
		return k.sink.Finish(r)
	case bench.SimulationReport:
		return k.sink.FinishSimulation(r, by)
	}
	return "", fmt.Errorf("a report of type %T has no runs", report) // a mistake in package experiments
}
