// Package experiments defines what all reproductions of published results have in common: names and costs, options,
// figures, and the comparison with the papers. The experiments of each paper are in a separate folder below this one.
package experiments

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/internal/suggest"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/result"
)

// ErrUnknown reports that no experiment has the given name.
var ErrUnknown = olaf.NewError(olaf.Usage, "unknown experiment")

// Experiment reproduces one artefact of a paper, such as a figure or a table.
type Experiment struct {
	Name     string // including its paper: olaf/table1
	Artefact string // the artefact to compare with: Table 1
	About    string // one line
	Needs    string // cost: wall time on two cores
	OnDevice bool   // runs on a device; the others simulate, replay or train
	// Simulates is set if the experiment runs a Simulation, whose runs can be stored one by one.
	Simulates bool
	Timed     bool // measures wall time, so no two runs agree and none can replace another
	Long      bool // trains for many minutes: runs only on request
	Run       func(context.Context, Options) (result.Report, error)
	Parts     *Parts // nil for an experiment that is not divided
	// Spec returns the bench of an experiment that is a single bench; nil for the others.
	Spec func() bench.Spec
	// Inputs contains up to five physical quantities that the predicted numbers depend on.
	Inputs []Input
	// ComparePaper compares benches with this artefact: its own bench and ones that a user derived from it. It may be
	// nil.
	ComparePaper bench.PaperComparison
}

// On returns a function for an experiment's Run field. The experiment runs on the given systems.
func On(set system.Set, run func(context.Context, system.Set, Options) (result.Report, error)) func(context.Context,
	Options) (result.Report, error) {
	return func(ctx context.Context, o Options) (result.Report, error) { return run(ctx, set, o) }
}

// RunSpec returns a function for an experiment's Run field. The experiment consists of a single bench, whose
// specification is spec.
func RunSpec(spec func() bench.Spec, beside bench.PaperComparison) func(context.Context, Options) (result.Report, error) {
	return func(ctx context.Context, o Options) (result.Report, error) {
		report, err := o.Measure(ctx, o.specOf(spec), o.Stream, beside)
		if report == nil {
			return nil, err // not a Report that contains a nil pointer
		}
		return report, err
	}
}

// SpecParts returns the parts of an experiment that consists of a single bench. systems contains the available systems.
func SpecParts(systems system.Set, spec func() bench.Spec) *Parts {
	return BenchParts(systems, func(o *Options) ([]bench.Spec, error) { return []bench.Spec{o.specOf(spec)}, nil })
}

// The inputs of an experiment that is a single bench.
const (
	OfferedRate = "offered rate"
	OutputRate  = "output rate"
	FrameSize   = "frame size"
)

// specOf returns the specification, with the number of runs, the seed and the changed input that the options select.
func (o *Options) specOf(spec func() bench.Spec) bench.Spec {
	s := spec()
	s.Runs, s.Seed = o.resolveSeeds(s.Runs, 6, s.Seed)
	s.Workload.MeanRate = ScaleInput(o, OfferedRate, s.Workload.MeanRate)
	s.Workload.Size = ScaleInput(o, FrameSize, s.Workload.Size)
	for i := range s.OutRates {
		s.OutRates[i] = ScaleInput(o, OutputRate, s.OutRates[i])
	}
	return s
}

// Options contains the options that every experiment accepts. Zero values select the experiment's own defaults.
type Options struct {
	Device string
	Access testbed.Access
	Runs   int
	Seed   uint64
	Quick  bool // fewer or shorter runs, for a first look, with a note in the report
	// Changed is the input that a test changes; the zero value changes none.
	Changed Input
	// Trainings is the folder where experiments store long training runs and find them again; empty for none.
	Trainings string
	// Stream receives the events; it may be nil.
	Stream *bench.Stream
	// Done looks up the result of a Part by its specification; nil if no part was run before.
	Done func(spec json.RawMessage) (result json.RawMessage, ok bool)
	// Progress is called as work is done, from any goroutine; it may be nil.
	Progress func(done, total int)
}

// ReportProgress calls o.Progress if it is set.
func (o *Options) ReportProgress(done, total int) {
	if o.Progress != nil {
		o.Progress(done, total)
	}
}

// CheckDevice returns an error if e is a simulation and the user selected a device other than the default. The error
// matches testbed.ErrBackend.
func (e *Experiment) CheckDevice(devices testbed.Devices, address string) error {
	if e.OnDevice || address == "" || address == devices.Default() {
		return nil
	}
	return fmt.Errorf("%w for %s: it simulates, so leave out --device %s", testbed.ErrBackend, e.Name, address)
}

// Set is a list of experiments, in the papers' order.
type Set []Experiment

// Find returns the experiment with the given name. For the first paper, the name of the artefact alone is enough. The
// error matches ErrUnknown and names the command that lists all experiments.
func (s Set) Find(name string) (Experiment, error) {
	for _, e := range s {
		if e.Name == paper.Canonical(name) {
			return e, nil
		}
	}
	return Experiment{}, fmt.Errorf("%w %q%s; 'olafctl experiment list' lists them", ErrUnknown, name, s.suggest(name))
}

// suggest returns a phrase that proposes experiments for a mistyped name. The name may lack the paper.
func (s Set) suggest(typed string) string {
	full := s.Names()
	names := slices.Clone(full)
	if !strings.Contains(typed, "/") {
		for i, name := range names {
			_, names[i], _ = strings.Cut(name, "/")
		}
	}
	var meant []string
	for _, near := range suggest.NearestNames(typed, names, 3) {
		for i, name := range names {
			if name == near && !slices.Contains(meant, full[i]) {
				meant = append(meant, full[i])
			}
		}
	}
	if len(meant) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(meant[:min(3, len(meant))], " or ") + "?"
}

// Parts returns the Parts of the first experiment whose parts have the given kind. The error matches ErrUnknown.
func (s Set) Parts(kind string) (*Parts, error) {
	for i := range s {
		if p := s[i].Parts; p != nil && p.Kind == kind {
			return p, nil
		}
	}
	return nil, fmt.Errorf("%w: none has parts called %q", ErrUnknown, kind)
}

// Spec returns the specification of the experiment with the given name. The error matches ErrUnknown.
func (s Set) Spec(name string) (bench.Spec, error) {
	if e, err := s.Find(name); err == nil && e.Spec != nil {
		return e.Spec(), nil
	}
	return bench.Spec{}, fmt.Errorf("%w: %q is none that runs on a single-queue testbed", ErrUnknown, name)
}

// WithBench returns the experiments that run on a single-queue testbed.
func (s Set) WithBench() Set {
	return slices.DeleteFunc(slices.Clone(s), func(e Experiment) bool { return e.Spec == nil })
}

// CompareBench compares the bench with every published artefact for which a comparison exists.
func (s Set) CompareBench(spec *bench.Spec, b *results.Bench) (rows []results.PaperRow, statements []string) {
	for i := range s {
		if s[i].ComparePaper == nil {
			continue
		}
		r, added := s[i].ComparePaper(spec, b)
		rows, statements = append(rows, r...), append(statements, added...)
	}
	return rows, statements
}

// Names returns the names of the experiments.
func (s Set) Names() []string {
	return olaf.Map(s, func(e Experiment) string { return e.Name })
}

// ShortOnes returns the experiments that finish in seconds.
func (s Set) ShortOnes() Set {
	return slices.DeleteFunc(slices.Clone(s), func(e Experiment) bool { return e.Long })
}

// Seeds returns the number of seeds to run and the first seed. full and quick are the experiment's numbers of seeds for
// a full and a quick run.
func (o *Options) Seeds(full, quick int) (runs int, seed uint64) {
	return o.resolveSeeds(full, quick, 1)
}

func (o *Options) resolveSeeds(full, quick int, first uint64) (runs int, seed uint64) {
	if o.Quick {
		full = quick
	}
	return cmp.Or(o.Runs, full), cmp.Or(o.Seed, first)
}

// ListSeeds returns the seeds to run. full and quick are as in Seeds.
func (o *Options) ListSeeds(full, quick int) []uint64 {
	runs, first := o.Seeds(full, quick)
	return SeedsFrom(first, runs)
}

// SeedsFrom returns consecutive seeds, one per run.
func SeedsFrom(first uint64, runs int) (seeds []uint64) {
	for i := range runs {
		seeds = append(seeds, first+uint64(i))
	}
	return seeds
}
