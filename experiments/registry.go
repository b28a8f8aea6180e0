package experiments

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
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

func (o Options) progress(done, total int) {
	if o.Progress != nil {
		o.Progress(done, total)
	}
}

// Report is what an experiment found, ready to be printed, exported and compared with the paper.
type Report interface {
	// Document is the JSON form, with its schema.
	Document() any
	// WriteText prints it for people.
	WriteText(io.Writer) error
	// Table is the list for CSV: a header row, then rows.
	Table() (header []string, rows [][]string)
	// Paper compares with every published number the experiment reaches.
	Paper() []results.PaperRow
	// Err is nil when every run was valid and complete.
	Err() error
}

// All lists the experiments in the paper's order.
func All() []Experiment {
	return []Experiment{table1, table1Trace, fig6, fig2, fig3, fig7, fig8, table2, table3, fig10}
}

// Short lists those that are done in seconds.
func Short() []Experiment {
	return slices.DeleteFunc(All(), func(e Experiment) bool { return e.Long })
}

// CheckDevice says that e runs on no device, when one other than the twin is asked for. The error matches ErrBackend.
func (e *Experiment) CheckDevice(address string) error {
	if e.OnDevice || address == "" || address == "twin:" {
		return nil
	}
	return fmt.Errorf("%w for %s: it simulates, so leave out --device %s", ErrBackend, e.Name, address)
}

// Find returns the named experiment. The error matches ErrUnknown and lists what there is.
func Find(name string) (Experiment, error) {
	var names []string
	for _, e := range All() {
		if e.Name == name {
			return e, nil
		}
		names = append(names, e.Name)
	}
	return Experiment{}, fmt.Errorf("%w %q; there are %s", ErrUnknown, name, strings.Join(names, ", "))
}
