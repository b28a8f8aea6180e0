package experiments

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"text/tabwriter"

	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/text"
)

// FigureSchema heads the document of a figure.
const FigureSchema = "olafctl.figure/v2"

// Series is one curve: a statistic over seeds at every x.
type Series struct {
	Name string              `json:"name"`
	X    []float64           `json:"x"`
	Y    []results.Statistic `json:"y"`
}

// Last is the statistic at the end of a curve.
func (s *Series) Last() results.Statistic {
	if len(s.Y) == 0 {
		return Describe(nil)
	}
	return s.Y[len(s.Y)-1]
}

// PaperSeries is the name of the series that holds what the paper printed; a figure shows it as crosses.
const PaperSeries = "paper"

// Panel is one pair of axes, of one unit.
type Panel struct {
	Name string `json:"name"`
	// Group names the figure that panels share; one without stands alone.
	Group  string   `json:"group,omitempty"`
	XLabel string   `json:"x_label"` // with its unit
	YLabel string   `json:"y_label"`
	Series []Series `json:"series"`
}

// Figure is what an experiment that draws curves found.
type Figure struct {
	Schema     string             `json:"schema"`
	Experiment string             `json:"experiment"`
	Artefact   string             `json:"artefact"`
	Config     any                `json:"config"`
	Quick      bool               `json:"quick,omitempty"`
	Partial    bool               `json:"partial,omitempty"`
	Panels     []Panel            `json:"panels"`
	Statements []string           `json:"statements"`
	PaperRows  []results.PaperRow `json:"paper,omitempty"`
	err        error
	simulated  *bench.Simulated // nil of a figure of anything else
}

// NewFigure starts the figure of an experiment.
func NewFigure(experiment, artefact string, o *Options, config any) *Figure {
	return &Figure{Schema: FigureSchema, Experiment: experiment, Artefact: artefact, Config: config, Quick: o.Quick}
}

// Say adds a statement.
func (f *Figure) Say(format string, args ...any) {
	f.Statements = append(f.Statements, fmt.Sprintf(format, args...))
}

// Compare sets ours beside what the paper says of this figure.
func (f *Figure) Compare(ours paper.Ours) { f.PaperRows = paper.Compare(ours, f.Experiment) }

// Fail says that the figure rests on a run that must not be used.
func (f *Figure) Fail(err error) { f.err = err }

// Over says which simulations the figure is over; it is as partial and as valid as they are.
func (f *Figure) Over(s *bench.Simulated) { f.simulated, f.Partial = s, s.Partial }

// Document is the JSON form.
func (f *Figure) Document() any { return f }

// Paper compares with the published statements.
func (f *Figure) Paper() []results.PaperRow { return f.PaperRows }

// Err is nil when every run was complete, and, of a simulation, valid.
func (f *Figure) Err() error {
	if f.simulated != nil {
		return f.simulated.Err()
	}
	return f.err
}

// Simulated is what a figure of simulations is over; nil of any other.
func (f *Figure) Simulated() *bench.Simulated { return f.simulated }

// Table lists every point of every curve.
func (f *Figure) Table() (header []string, rows [][]string) {
	header = []string{"panel", "series", "x", "mean", "sd", "ci95", "min", "max", "n"}
	for _, p := range f.Panels {
		for _, s := range p.Series {
			for i, y := range s.Y {
				rows = append(rows, []string{p.Name, s.Name, strconv.FormatFloat(s.X[i], 'g', -1, 64),
					text.Exact(y.Mean), text.Exact(y.SD), text.Exact(y.CI95), text.Exact(y.Min), text.Exact(y.Max), strconv.Itoa(y.N)})
			}
		}
	}
	return header, rows
}

// WriteText prints a table for each panel, then what can and cannot be said.
func (f *Figure) WriteText(w io.Writer) error {
	quick := ""
	if f.Quick {
		quick = " (quick: fewer or shorter runs than the figure's own)"
	}
	if _, err := fmt.Fprintf(w, "%s: %s%s\n", f.Experiment, f.Artefact, quick); err != nil {
		return err
	}
	for i := range f.Panels {
		if err := f.Panels[i].writeText(w); err != nil {
			return err
		}
	}
	if f.simulated != nil {
		if _, err := fmt.Fprintf(w, "\n%s\n", f.simulated.Validity()); err != nil {
			return err
		}
	}
	for _, s := range f.Statements {
		if _, err := fmt.Fprintf(w, "\n- %s", s); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprint(w, "\n\n"); err != nil {
		return err
	}
	return text.Paper(w, f.PaperRows)
}

func (p *Panel) writeText(w io.Writer) error {
	fmt.Fprintf(w, "\n%s: %s\n", p.Name, p.YLabel)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(tw, "%s\t", p.XLabel)
	for _, s := range p.Series {
		fmt.Fprintf(tw, "%s\t", s.Name)
	}
	fmt.Fprintln(tw)
	if len(p.Series) == 0 {
		return tw.Flush()
	}
	for i, x := range p.Series[0].X {
		fmt.Fprintf(tw, "%.4g\t", x)
		for _, s := range p.Series {
			if i < len(s.Y) {
				fmt.Fprintf(tw, "%s\t", MeanCell(s.Y[i].Mean, float64(s.Y[i].CI95)))
			}
		}
		fmt.Fprintln(tw)
	}
	return tw.Flush()
}

// MeanCell prints a mean with its half-width where there is one.
func MeanCell(mean results.Float, ci float64) string {
	switch {
	case !mean.Known():
		return "–"
	case math.IsNaN(ci):
		return fmt.Sprintf("%.4g", float64(mean))
	}
	return fmt.Sprintf("%.4g ± %.2g", float64(mean), ci)
}

// Describe is the statistic of plain numbers.
func Describe(values []float64) results.Statistic {
	floats := make([]results.Float, len(values))
	for i, v := range values {
		floats[i] = results.Float(v)
	}
	return results.Describe(floats, "no run reached this point")
}
