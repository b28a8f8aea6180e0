package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results/figure"
	"github.com/olafctl/olaf/results/figure/figuretest"
	"github.com/olafctl/olaf/results/table"
)

// checkFigures draws the figures for some sheets, and reports labels that are cut or overlap, and series with different
// units on one axis.
func checkFigures(t *testing.T, of string, all []table.Sheet) {
	t.Helper()
	for i := range all {
		s := &all[i]
		if !figure.HasData(s) {
			continue
		}
		var svg strings.Builder
		if err := figure.Write(&svg, "svg", s); err != nil {
			t.Fatal(err)
		}
		faults, err := figuretest.FindFaults(strings.NewReader(svg.String()))
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range faults {
			t.Errorf("%s, figure %q: %s", of, s.Name, fault)
		}
		for k := range s.Charts {
			units := map[string]bool{}
			for _, one := range s.Charts[k].Series {
				units[s.Columns[one.Column].Unit] = true
			}
			if len(units) > 1 {
				t.Errorf("%s, figure %q: its axis has %d units, want one: %v", of, s.Name, len(units), units)
			}
		}
	}
}

// TestFiguresOfExperiments checks the figures for every experiment from a short run, and those for training runs from
// made-up curves.
func TestFiguresOfExperiments(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	t.Parallel() // most experiments compute on one processor
	for _, e := range listExperiments(system.All()) {
		if e.Long || e.Timed {
			continue
		}
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			env := testEnvironment(io.Discard, io.Discard)
			r, err := e.Run(t.Context(), experiments.Options{Quick: true, Runs: 2, Device: env.Devices.Default()})
			if err != nil {
				t.Fatal(err)
			}
			if laid, ok := r.(interface{ Sheets() []table.Sheet }); ok {
				checkFigures(t, e.Name, laid.Sheets())
			}
		})
	}
}

// figures FOLDER… fails if a figure in the folders has a label that is cut or overlaps another, or if a folder contains
// no figures.
func figures(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: figures FOLDER…")
	}
	for _, folder := range args {
		names, err := filepath.Glob(filepath.Join(ts.MkAbs(folder), "*.svg"))
		ts.Check(err)
		if len(names) == 0 {
			ts.Fatalf("%s has no figure", folder)
		}
		for _, name := range names {
			file, err := os.Open(name)
			ts.Check(err)
			faults, err := figuretest.FindFaults(file)
			_ = file.Close()
			ts.Check(err)
			if len(faults) > 0 {
				ts.Fatalf("%s: %s", filepath.Base(name), strings.Join(faults, "; "))
			}
		}
	}
}
