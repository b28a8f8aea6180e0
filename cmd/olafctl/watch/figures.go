package watch

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/results/export"
	"github.com/olafctl/olaf/results/figure"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/result"
	"github.com/olafctl/olaf/results/table"
)

// DrawFigures draws every figure of a report in every format into a folder. It does nothing if folder is empty.
func DrawFigures(env *cli.Env, folder string, force bool, experiment string, r result.Report) error {
	if folder == "" {
		return nil
	}
	laid, ok := r.(interface{ Sheets() []table.Sheet })
	if !ok {
		return fmt.Errorf("%s has no figures for --plots", experiment)
	}
	var targets []export.Target
	for _, s := range laid.Sheets() {
		if !figure.HasData(&s) {
			continue
		}
		base := paper.FileName(experiment)
		name := fmt.Sprintf("%s-%d", base, len(targets)/len(figure.Formats())+1)
		if about := strings.TrimPrefix(strings.TrimPrefix(export.FileName(&s), base), "-"); about != "" {
			name += "-" + about
		}
		for _, format := range figure.Formats() {
			targets = append(targets, export.Figure(folder, format, name, &s))
		}
	}
	return cli.WriteTargets(env, targets, force)
}

// RefusePlots returns an error if a folder already contains figures of the experiment. It is called before the run,
// when the number of figures is still unknown.
func RefusePlots(folder, experiment string, force bool) error {
	if folder == "" {
		return nil
	}
	if about, err := os.Stat(folder); err == nil && !about.IsDir() {
		return cli.UsageError("--plots %s: it is a file, not a folder", folder)
	}
	for _, ending := range figure.Formats() {
		names, err := filepath.Glob(filepath.Join(folder, paper.FileName(experiment)+"-[0-9]*."+ending))
		if err != nil {
			return cli.UsageError("--plots %s: %v", folder, err)
		}
		if len(names) > 0 {
			return cli.RefuseExisting(names[0], force)
		}
	}
	return nil
}
