// Package experiments says what every reproduction of something published has in common: what it is called and costs, what
// it is asked for, the figures that it draws, and how all of them together are set beside the papers. The papers
// themselves are below, one folder a system.
package experiments

import (
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
)

// ErrUnknown says that no experiment has a name.
var ErrUnknown = olaf.NewError(olaf.Usage, "unknown experiment")

// Experiment reproduces one artefact of the paper.
type Experiment struct {
	Name     string // with its paper: olaf/table1
	Artefact string // what it stands beside: Table 1
	About    string // one line
	Needs    string // what it costs: wall time on two cores
	OnDevice bool   // runs on a device; the others simulate, replay or train
	// Simulates says that its runs are those of a Simulation, which can be kept one by one.
	Simulates bool
	Timed     bool // measures wall time, so that no two runs agree and none stands for another
	Long      bool // trains for many minutes: only run when named or asked for
	Run       func(context.Context, Options) (bench.Report, error)
	Parts     *Parts // of its work; nil of one that is done in one piece
	// Spec is what an experiment runs that is one bench; nil of the others.
	Spec func() bench.Spec
	// Inputs are up to five physical quantities that its predicted numbers depend on.
	Inputs []Input
	// Beside sets benches beside this artefact, its own and those that a user made from it; nil where it stands beside none.
	Beside bench.Beside
}

// RunSpec is Run of an experiment that is one bench.
func RunSpec(spec func() bench.Spec, beside bench.Beside) func(context.Context, Options) (bench.Report, error) {
	return func(ctx context.Context, o Options) (bench.Report, error) {
		report, err := o.Measure(ctx, o.specOf(spec), o.Stream, beside)
		if report == nil {
			return nil, err // not a Report that holds nothing
		}
		return report, err
	}
}

// SpecParts are the parts of an experiment that is one bench, with systems of a set.
func SpecParts(systems system.Set, spec func() bench.Spec) *Parts {
	return BenchParts(systems, func(o *Options) ([]bench.Spec, error) { return []bench.Spec{o.specOf(spec)}, nil })
}

// The inputs of an experiment that is one bench.
const (
	OfferedRate = "offered rate"
	OutputRate  = "output rate"
	FrameSize   = "frame size"
)

// specOf returns the specification with as many runs as the options ask for, and with their changed input.
func (o *Options) specOf(spec func() bench.Spec) bench.Spec {
	s := spec()
	s.Runs, s.Seed = o.or(s.Runs, 6, s.Seed)
	s.Workload.MeanRate = Scale(o, OfferedRate, s.Workload.MeanRate)
	s.Workload.Size = Scale(o, FrameSize, s.Workload.Size)
	for i := range s.OutRates {
		s.OutRates[i] = Scale(o, OutputRate, s.OutRates[i])
	}
	return s
}

// Options are the choices that every experiment understands. Zero values stand for the experiment's own defaults.
type Options struct {
	Device string
	Access testbed.Access
	Runs   int
	Seed   uint64
	Quick  bool // fewer runs or shorter ones, for a first look; the report says so
	// Changed is the one input that differs from the experiment's own; the zero value changes none.
	Changed Input
	// Trainings is a folder in which experiments that train for long keep what is finished and find it again; empty for
	// none.
	Trainings string
	// Stream receives the events; nil for none.
	Stream *bench.Stream
	// Done looks up the result of a Part by its specification; nil where none was carried out before.
	Done func(spec json.RawMessage) (result json.RawMessage, ok bool)
	// Progress is called as work is done, from any goroutine; nil for none.
	Progress func(done, total int)
}

// Tell reports progress to whoever asked for it.
func (o *Options) Tell(done, total int) {
	if o.Progress != nil {
		o.Progress(done, total)
	}
}

// CheckDevice says that e runs on no device, when another one is asked for than where nothing is said. The error matches
// testbed.ErrBackend.
func (e *Experiment) CheckDevice(devices testbed.Devices, address string) error {
	if e.OnDevice || address == "" || address == devices.Default() {
		return nil
	}
	return fmt.Errorf("%w for %s: it simulates, so leave out --device %s", testbed.ErrBackend, e.Name, address)
}

// Set is the experiments that there are, in the papers' order.
type Set []Experiment

// Find returns the named experiment; of the first paper's the artefact is enough. The error matches ErrUnknown and lists
// what there is.
func (s Set) Find(name string) (Experiment, error) {
	for _, e := range s {
		if e.Name == paper.Canonical(name) {
			return e, nil
		}
	}
	return Experiment{}, fmt.Errorf("%w %q%s; 'olafctl experiment list' lists them", ErrUnknown, name, s.suggest(name))
}

// suggest proposes experiments for a mistyped name, which may lack the paper.
func (s Set) suggest(typed string) string {
	full := s.Names()
	names := slices.Clone(full)
	if !strings.Contains(typed, "/") {
		for i, name := range names {
			_, names[i], _ = strings.Cut(name, "/")
		}
	}
	var meant []string
	for _, near := range suggest.Names(typed, names, 3) {
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

// Parts finds how experiments are cut up whose parts are of a kind. The error matches ErrUnknown.
func (s Set) Parts(kind string) (*Parts, error) {
	for i := range s {
		if p := s[i].Parts; p != nil && p.Kind == kind {
			return p, nil
		}
	}
	return nil, fmt.Errorf("%w: none has parts called %q", ErrUnknown, kind)
}

// Spec is the specification of the named experiment. The error matches ErrUnknown.
func (s Set) Spec(name string) (bench.Spec, error) {
	if e, err := s.Find(name); err == nil && e.Spec != nil {
		return e.Spec(), nil
	}
	return bench.Spec{}, fmt.Errorf("%w: %q is none that runs on a single-queue testbed", ErrUnknown, name)
}

// Benches are those that run on a single-queue testbed.
func (s Set) Benches() Set {
	return slices.DeleteFunc(slices.Clone(s), func(e Experiment) bool { return e.Spec == nil })
}

// Beside sets a bench beside every artefact that it can stand beside.
func (s Set) Beside(spec *bench.Spec, b *results.Bench) (rows []results.PaperRow, statements []string) {
	for i := range s {
		if s[i].Beside == nil {
			continue
		}
		r, said := s[i].Beside(spec, b)
		rows, statements = append(rows, r...), append(statements, said...)
	}
	return rows, statements
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
func (o *Options) Seeds(full, quick int) (runs int, seed uint64) { return o.or(full, quick, 1) }

func (o *Options) or(full, quick int, first uint64) (runs int, seed uint64) {
	runs, seed = full, first
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
