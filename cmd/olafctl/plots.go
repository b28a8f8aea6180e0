package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/results/paper"
)

// drawPanels draws every panel of a figure into a folder, as SVG and PNG. Without a folder it draws nothing; of a
// report without panels it says so.
func drawPanels(env *cli.Env, folder string, force bool, r bench.Report) error {
	if folder == "" {
		return nil
	}
	f, ok := r.(*experiments.Figure)
	if !ok {
		fmt.Fprintln(env.Stderr, "nothing drawn: this experiment has no panels for --plots; a kept run has figures (olafctl export last --svg FOLDER)")
		return nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for i, s := range f.Sheets() {
		for _, ending := range plotEndings {
			path := filepath.Join(folder, fmt.Sprintf("%s-%d%s", paper.FileName(f.Experiment), i+1, ending))
			if err := cli.RefuseExisting(path, force); err != nil {
				return err
			}
			if err := drawTo(path, &s, &s.Charts[0]); err != nil {
				return err
			}
			fmt.Fprintf(env.Stderr, "wrote %s (%s)\n", path, s.Name)
		}
	}
	return nil
}

var plotEndings = []string{".svg", ".png"}

// refusePlots refuses a folder with panels of an experiment before it runs; how many it will draw nobody knows yet.
func refusePlots(folder, experiment string, force bool) error {
	if folder == "" {
		return nil
	}
	if about, err := os.Stat(folder); err == nil && !about.IsDir() {
		return cli.UsageError("--plots %s: it is a file; give a folder", folder)
	}
	for _, ending := range plotEndings {
		names, err := filepath.Glob(filepath.Join(folder, paper.FileName(experiment)+"-[0-9]*"+ending))
		if err != nil {
			return cli.UsageError("--plots %s: %v", folder, err)
		}
		if len(names) > 0 {
			return cli.RefuseExisting(names[0], force)
		}
	}
	return nil
}
