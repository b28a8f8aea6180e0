package olaf

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/figure"
	"github.com/olafctl/olaf/results/figure/figuretest"
	"github.com/olafctl/olaf/results/report"
	"github.com/olafctl/olaf/results/report/reporttest"
	"github.com/olafctl/olaf/results/result"
	"github.com/olafctl/olaf/results/sheets"
	"github.com/olafctl/olaf/results/table"
)

// laidOut is a report that has tables with figures.
type laidOut interface {
	result.Report
	Sheets() []table.Sheet
}

// quickly returns the results of all experiments, or skips a test without time for them.
func quickly(t *testing.T) map[string]laidOut {
	t.Helper()
	if testing.Short() {
		t.Skip("takes seconds")
	}
	reports, err := carriedOut()
	if err != nil {
		t.Fatal(err)
	}
	return reports
}

// carriedOut runs every experiment once for all tests: three seeds each, with invented learning curves.
var carriedOut = sync.OnceValues(func() (map[string]laidOut, error) {
	trainings, err := os.MkdirTemp("", "olaf-trainings")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(trainings)
	done := map[string]laidOut{}
	for _, e := range Experiments(system.All()) {
		o := experiments.Options{Quick: true, Runs: 3, Trainings: trainings}
		if err := pretend(trainings, e.Name, o.Runs); err != nil {
			return nil, err
		}
		r, err := e.Run(context.Background(), o)
		if err != nil {
			return nil, err
		}
		done[e.Name] = r.(laidOut)
	}
	return done, nil
})

// pretend stores training runs as if they were finished: rewards that rise with every scheme and differ by seed.
func pretend(folder, experiment string, runs int) error {
	schemes := map[string][]scheme{"olaf/fig2": Fig2(), "olaf/fig3": Fig3(), "olaf/fig8": Fig8(),
		"olaf/fig8-shared": fig8SharedSchemes(new(experiments.Options)), "olaf/filter": filterSchemes(new(experiments.Options))}[experiment]
	for k, s := range schemes {
		c := s.Config
		if c.Until > 0 { // shortened as in the quick versions
			c.Until, c.Iterations = c.Until/5, c.Iterations/5
		} else {
			c.Iterations = 40
		}
		for seed := range runs {
			c.Seed = uint64(1 + seed)
			if err := pretendOne(folder, &c, 10*float64(k)+3*float64(seed)); err != nil {
				return err
			}
		}
	}
	return nil
}

func pretendOne(folder string, c *rl.Config, above float64) error {
	const period = 1e6 // ns
	iterations := min(c.Iterations, 40)
	l := learned{EndNS: int64(iterations) * period}
	if c.Until > 0 {
		l.EndNS = int64(c.Until.NS())
	}
	for range c.Workers {
		var points []rl.Point
		for i := range iterations {
			points = append(points, rl.Point{AtNS: l.EndNS * int64(i) / int64(iterations), Reward: -200 + above + 8*float64(i)})
		}
		l.Curves = append(l.Curves, points)
	}
	text, err := json.Marshal(&l)
	if err != nil {
		return err
	}
	path, err := storedPath(folder, c)
	return errors.Join(err, os.WriteFile(path, text, 0o600))
}

// TestFiguresOfThePaper checks the geometry of every figure of every experiment, drawn in every format.
func TestFiguresOfThePaper(t *testing.T) {
	reports := quickly(t)
	for name, r := range reports {
		drawn := 0
		for _, s := range r.Sheets() {
			if !figure.HasData(&s) {
				continue
			}
			drawn++
			var svg strings.Builder
			if err := figure.Write(&svg, "svg", &s); err != nil {
				t.Fatal(err)
			}
			if keep := os.Getenv("OLAF_KEEP"); keep != "" {
				keepPicture(t, filepath.Join(keep, strings.ReplaceAll(name, "/", "-")+"-"+s.Name+".png"), &s)
			}
			faults, err := figuretest.FindFaults(strings.NewReader(svg.String()))
			if err != nil {
				t.Fatal(err)
			}
			for _, fault := range faults {
				t.Errorf("%s, %s: %s", name, s.Name, fault)
			}
		}
		if drawn == 0 {
			t.Errorf("%s draws nothing", name)
		}
	}
}

func keepPicture(t *testing.T, path string, s *table.Sheet) {
	t.Helper()
	f, err := os.Create(path)
	if err == nil {
		err = errors.Join(figure.Write(f, "png", s), f.Close())
	}
	if err != nil {
		t.Error(err)
	}
}

// TestKeptDocumentsDrawTheSame checks that a stored document and its report have the same layout.
func TestKeptDocumentsDrawTheSame(t *testing.T) {
	reports := quickly(t)
	again := 0
	for name, r := range reports {
		if _, ok := r.Document().(*result.Result); !ok {
			continue
		}
		text, err := json.Marshal(r.Document())
		if err != nil {
			t.Fatal(err)
		}
		read, err := result.Sheets(text)
		if d := cmp.Diff(r.Sheets(), read); err != nil || d != "" {
			t.Errorf("%s: %v, %s", name, err, d)
		}
		again++
	}
	if again < 8 {
		t.Errorf("%d documents, want 8 or more", again)
	}
	if _, err := ReadEarlier([]byte(`{"rows": 1}`)); err == nil {
		t.Error("a table whose rows are a number was read")
	}
}

// TestFiguresShowPrintedNumbers checks that artefacts with printed numbers show them.
func TestFiguresShowPrintedNumbers(t *testing.T) {
	reports := quickly(t)
	for name, want := range map[string]int{"olaf/table1": 12, "olaf/table1-trace": 8, "olaf/table2": 8, "olaf/table3": 12, "olaf/fig10": 1} {
		crosses := 0
		for _, s := range reports[name].Sheets() {
			for _, c := range s.Charts {
				for _, one := range c.Series {
					for _, row := range s.Rows {
						if one.PaperColumn > 0 && row[one.PaperColumn].Kind == table.Number {
							crosses++
						}
					}
				}
			}
		}
		if crosses < want {
			t.Errorf("%s has %d crosses, want %d", name, crosses, want)
		}
	}
}

// TestReportsInABrowser checks that a browser renders the report of every experiment as exported from the store.
func TestReportsInABrowser(t *testing.T) {
	reports := quickly(t)
	pages := map[string]string{}
	for name, r := range reports {
		result := &sheets.Result{DocumentOnly: true, Own: r.Sheets(), Bench: &results.Bench{Experiment: name, Paper: r.Paper()}}
		if m, ok := r.(*bench.Measurement); ok {
			result = m.Result()
		}
		var page strings.Builder
		if err := report.Write(&page, result); err != nil {
			t.Fatal(err)
		}
		_, short, _ := strings.Cut(name, "/")
		pages[short] = page.String()
	}
	for name, found := range reporttest.Show(t, 1280, pages) {
		if !strings.HasPrefix(found, "FINE") || slices.Contains([]string{"FINE 0 figures", "FINE figures"}, found) {
			t.Errorf("%s: %s", name, found)
		}
	}
}
