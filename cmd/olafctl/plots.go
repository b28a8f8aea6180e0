package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/results/table"
)

// drawPanels draws every panel of a figure into a folder, as SVG and PNG. Without a folder, or of a report without
// panels, it draws nothing.
func drawPanels(env *environment, folder string, r experiments.Report) error {
	f, ok := r.(interface{ Sheets() []table.Sheet })
	if folder == "" || !ok {
		return nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	name := "figure"
	if figure, ok := r.(*experiments.Figure); ok {
		name = figure.Experiment
	}
	for i, s := range f.Sheets() {
		for _, ending := range []string{".svg", ".png"} {
			path := filepath.Join(folder, fmt.Sprintf("%s-%d%s", name, i+1, ending))
			if err := drawTo(path, &s, &s.Charts[0]); err != nil {
				return err
			}
		}
		fmt.Fprintf(env.stderr, "plot: %s (%s)\n", filepath.Join(folder, fmt.Sprintf("%s-%d", name, i+1)), s.Name)
	}
	return nil
}
