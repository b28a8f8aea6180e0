package experiments

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
)

// ErrUnknown says that no experiment has a name.
var ErrUnknown = olaf.NewError(olaf.Usage, "unknown experiment")

// Experiment reproduces one artefact of the paper.
type Experiment struct {
	Name     string // what people type: table1
	Artefact string // what it stands beside: Table 1
	About    string // one line
	Needs    string // what it costs: wall time on two cores
	OnDevice bool   // runs on a device; the others simulate, replay or train
	// Simulates says that its runs are those of a Simulation, which can be kept one by one.
	Simulates bool
	Long      bool // trains for many minutes: only run when named or asked for
	Run       func(context.Context, Options) (Report, error)
}

// Options are the choices that every experiment understands. Zero values stand for the experiment's own defaults.
type Options struct {
	Device string
	Access Access
	Runs   int
	Seed   uint64
	Quick  bool // fewer runs or shorter ones, for a first look; the report says so
	// Trainings is a folder in which experiments that train for long keep what is finished and find it again; empty for
	// none.
	Trainings string
	// Stream receives the events; nil for none.
	Stream *Stream
	// Progress is called as work is done, from any goroutine; nil for none.
	Progress func(done, total int)
}

// Tell reports progress to whoever asked for it.
func (o *Options) Tell(done, total int) {
	if o.Progress != nil {
		o.Progress(done, total)
	}
}

// Set is the experiments that there are, in the papers' order.
type Set []Experiment

// Find returns the named experiment. The error matches ErrUnknown and lists what there is.
func (s Set) Find(name string) (Experiment, error) {
	for _, e := range s {
		if e.Name == name {
			return e, nil
		}
	}
	return Experiment{}, fmt.Errorf("%w %q; there are %s", ErrUnknown, name, strings.Join(s.Names(), ", "))
}

// Names are what people type.
func (s Set) Names() []string {
	var names []string
	for i := range s {
		names = append(names, s[i].Name)
	}
	return names
}

// Short lists those that are done in seconds.
func (s Set) Short() Set {
	return slices.DeleteFunc(slices.Clone(s), func(e Experiment) bool { return e.Long })
}

// Seeds resolves how many seeds to run and the first of them; full and quick are the experiment's own numbers.
func (o *Options) Seeds(full, quick int) (runs int, seed uint64) {
	runs, seed = full, 1
	if o.Quick {
		runs = quick
	}
	if o.Runs > 0 {
		runs = o.Runs
	}
	if o.Seed > 0 {
		seed = o.Seed
	}
	return runs, seed
}
