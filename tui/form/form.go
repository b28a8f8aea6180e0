// Package form implements the dialogue for the settings of the next run.
package form

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/tui/edit"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// field is a line in the form and its effect on a specification.
type field struct {
	name string
	get  func(*bench.Spec, int) string
	set  func(*bench.Spec, string) error
}

var fields = []field{
	{"rate", func(s *bench.Spec, _ int) string { return s.Workload.MeanRate.String() },
		func(s *bench.Spec, v string) error { return s.Workload.MeanRate.Set(v) }},
	{"output rate", func(s *bench.Spec, i int) string { return s.OutRates[i].String() },
		func(s *bench.Spec, v string) error {
			rate, err := olaf.ParseRate(v)
			s.OutRates = []olaf.Rate{rate}
			return err
		}},
	{"slots", func(s *bench.Spec, _ int) string { return strconv.Itoa(s.Slots) },
		func(s *bench.Spec, v string) error { return setInt(&s.Slots, v) }},
	{"queue", func(s *bench.Spec, _ int) string { return s.Queue },
		func(s *bench.Spec, v string) error { s.Queue = v; return nil }},
	{"versus", func(s *bench.Spec, _ int) string { return s.Versus },
		func(s *bench.Spec, v string) error {
			if v == "none" {
				v = ""
			}
			s.Versus = v
			return nil
		}},
	{"seed", func(s *bench.Spec, _ int) string { return strconv.FormatUint(s.Seed, 10) },
		func(s *bench.Spec, v string) (err error) {
			s.Seed, err = strconv.ParseUint(v, 10, 64)
			return err
		}},
}

func setInt(dst *int, v string) error {
	n, err := strconv.Atoi(v)
	if err != nil {
		return fmt.Errorf("%q is not a whole number", v)
	}
	*dst = n
	return nil
}

// Form is the state of the settings dialogue.
type Form struct {
	base   bench.Spec
	inputs []edit.Line
	at     int
	Err    string
}

// New returns a form with the settings from a specification.
func New(spec bench.Spec, rate int) Form {
	f := Form{base: spec}
	for _, field := range fields {
		f.inputs = append(f.inputs, edit.New(field.get(&spec, min(max(rate, 0), len(spec.OutRates)-1))))
	}
	return f
}

// Update handles a key press. Up and down select a line; other keys edit the line.
func (f Form) Update(msg tea.KeyMsg) Form {
	f.inputs = slices.Clone(f.inputs)
	switch msg.String() {
	case "up", "shift+tab":
		f.at = (f.at + len(f.inputs) - 1) % len(f.inputs)
	case "down", "tab":
		f.at = (f.at + 1) % len(f.inputs)
	default:
		f.inputs[f.at] = f.inputs[f.at].Update(msg)
	}
	return f
}

// Spec returns the specification that the form describes. If a line is invalid, the error names it.
func (f *Form) Spec() (bench.Spec, error) {
	spec := f.base
	for i, field := range fields {
		if err := field.set(&spec, strings.TrimSpace(f.inputs[i].Value())); err != nil {
			return spec, fmt.Errorf("%s: %w", field.name, err)
		}
	}
	if err := spec.Validate(); err != nil {
		return spec, err
	}
	return spec, nil
}

// Height is the height of the form in rows.
const Height = 10

func (f *Form) Draw(r screen.Region) {
	for i, field := range fields {
		mark, style := "  ", theme.Text
		if i == f.at {
			mark, style = "▸ ", theme.Strong
		}
		r.Text(1, i, style, mark+field.name)
		f.inputs[i].Draw(r.Sub(18, i, r.W-18, 1), style, i == f.at)
	}
	r.Text(1, len(fields)+1, theme.Dim, "↑↓ line   enter run   esc back")
	r.Text(1, len(fields)+2, theme.Bad, f.Err)
}
