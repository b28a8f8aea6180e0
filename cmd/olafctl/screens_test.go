package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/cmd/olafctl/sweep"
	experimentsweep "github.com/olafctl/olaf/experiments/sweep"
	"github.com/olafctl/olaf/internal/test/raced"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/compare"
	"github.com/olafctl/olaf/results/result"
	"github.com/olafctl/olaf/results/store"
	"github.com/olafctl/olaf/tui"
	pages "github.com/olafctl/olaf/tui/sweep"
	"github.com/olafctl/olaf/tui/tuitest"
)

// numbersShown contains the numbers in one output of a run, by configuration and metric.
type numbersShown map[string]map[string]float64

func (s numbersShown) add(configuration, metric string, v results.Float) {
	if !v.Known() {
		return
	}
	if s[configuration] == nil {
		s[configuration] = map[string]float64{}
	}
	s[configuration][metric] = float64(v)
}

// screenKinds lists a run of every kind, with the names that its document uses for metrics.
var screenKinds = []struct {
	name    string
	command []string
	read    func(t *testing.T, document []byte) numbersShown
	least   int // metrics that the comparison must share with the document
}{
	{"bench", []string{"bench", "--runs", "2", "--updates", "20", "--out-rate", "20G"}, rowScreen, 20},
	{"closed loop", []string{"bench", "--system", "iswitch", "--mode", "async", "--h", "4", "--workers", "4", "--versus", "ps", "--runs", "2", "--updates", "3"}, rowScreen, 10},
	{"simulation", []string{"simulate", "--preset", "multihop", "--system", "olaf", "--tc", "on", "--duration", "5s", "--runs", "2"}, resultScreen, 12},
	{"simulation beside another", []string{"simulate", "--preset", "multihop", "--versus", "fifo", "--duration", "2s", "--runs", "2"}, resultScreen, 12},
	{"job", []string{"simulate", "--preset", "isw-lab", "--updates", "2", "--runs", "2"}, resultScreen, 10},
	{"training", []string{"train", "--system", "olaf", "--versus", "fifo", "--seeds", "2", "--workers", "2", "--clusters", "1", "--iterations", "2", "--epochs", "1"},
		trainingScreen, 4},
}

// TestOutputsOfARunAgree runs one run of every kind and checks that a metric has the same value in the document, in the
// comparison of the run with itself, in the exported statistics and in the list of runs.
func TestOutputsOfARunAgree(t *testing.T) {
	raced.SkipRaced(t)
	for _, kind := range screenKinds {
		t.Run(kind.name, func(t *testing.T) {
			k := keepOne(t, append(kind.command, "-q")...)
			k.listAgrees(k.screensAgree("last", kind.read, kind.least))
		})
	}
	k, ids := earlierStore(t) // a sweep starts processes, which is not possible in this test
	for _, id := range ids {
		if strings.Contains(id, "-sweep-") {
			t.Run(id, func(t *testing.T) {
				k.t = t
				document := k.screensAgree(id, sweepScreen, 3)
				// The dashboard's Results page and 'sweep show' print the plan's document of all cells.
				anew := sweepScreen(t, []byte(k.olafctl("sweep", "show", id, "-o", "json")))
				if shared := document.agrees(t, "sweep show", anew); shared < 3 {
					t.Errorf("sweep show shares %d numbers with the document; it must show at least 3", shared)
				}
				k.resultsPageAgrees(id)
			})
		}
	}
}

// screensAgree compares the document of a run with its comparison and its exported statistics, and returns the document's numbers.
func (k *kept) screensAgree(id string, read func(*testing.T, []byte) numbersShown, least int) numbersShown {
	k.t.Helper()
	document := read(k.t, []byte(k.olafctl("runs", "show", id, "-o", "json")))
	if shared := document.agrees(k.t, "runs compare", k.compareScreen(id)); shared < least {
		k.t.Errorf("runs compare shares %d numbers with the document; it must show at least %d", shared, least)
	}
	document.agrees(k.t, "export --csv", k.statisticsScreen(id))
	return document
}

// agrees compares two outputs by configuration and metric, and returns the number of values that both contain.
func (s numbersShown) agrees(t *testing.T, name string, other numbersShown) (shared int) {
	t.Helper()
	for configuration, numbers := range other {
		for metric, v := range numbers {
			mine, ok := s[configuration][metric]
			if !ok {
				continue
			}
			shared++
			if math.Abs(mine-v) > 1e-9*math.Abs(v) {
				t.Errorf("%s of %s is %v in the document and %v by %s: one name must have one value", metric, configuration, mine, v,
					name)
			}
		}
	}
	return shared
}

// compareScreen returns the numbers from a comparison of the run with itself.
func (k *kept) compareScreen(id string) numbersShown {
	k.t.Helper()
	var d compare.Document
	if err := json.Unmarshal([]byte(k.olafctl("runs", "compare", id, id, "-o", "json")), &d); err != nil {
		k.t.Fatal(err)
	}
	s := numbersShown{}
	for i := range d.Lines {
		s.add(d.Lines[i].Queue, d.Lines[i].Metric, d.Lines[i].A.Mean)
	}
	return s
}

// statisticsScreen returns the exported statistics; nil for a kind without such a file.
func (k *kept) statisticsScreen(id string) numbersShown {
	k.t.Helper()
	dir := filepath.Join(k.dir, "csv-"+id)
	k.olafctl("export", id, "--csv", dir, "--force")
	file, err := os.Open(filepath.Join(dir, "statistics.csv"))
	if err != nil {
		return k.curvesScreen(filepath.Join(dir, "train.csv"))
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		k.t.Fatal(err)
	}
	s := numbersShown{}
	for _, row := range rows[1:] {
		if v, err := strconv.ParseFloat(row[index(rows[0], "mean")], 64); err == nil {
			s.add(row[index(rows[0], "queue")], row[index(rows[0], "name")], results.Float(v))
		}
	}
	return s
}

// curvesScreen reads the exported learning curves of a training run; it returns nothing if the run has none.
func (k *kept) curvesScreen(name string) numbersShown {
	k.t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	rows, err := csv.NewReader(bytes.NewReader(raw)).ReadAll()
	if err != nil {
		k.t.Fatal(err)
	}
	s := numbersShown{}
	for _, row := range rows[1:] {
		v, err := strconv.ParseFloat(row[index(rows[0], "mean")], 64)
		if err != nil {
			k.t.Fatal(err)
		}
		s.add(row[index(rows[0], "row")], "reward_"+row[index(rows[0], "column")], results.Float(v))
	}
	if len(s) == 0 {
		k.t.Errorf("%s has no curve", name)
	}
	return s
}

// lossInList matches a loss in the list of runs.
var lossInList = regexp.MustCompile(`(\S+(?: tc)?) lost ([0-9.]+) %`)

// listAgrees compares the loss in the list of runs with the loss in the document.
func (k *kept) listAgrees(s numbersShown) {
	k.t.Helper()
	m := lossInList.FindStringSubmatch(strings.Join(strings.Fields(k.olafctl("runs", "-o", "csv")), " "))
	if m == nil {
		return
	}
	name := m[1][strings.LastIndexAny(m[1], ",\"")+1:]
	if lost, ok := s[name]["lost_pct"]; !ok || !same(m[2], "%", lost) {
		k.t.Errorf("the list of runs says that %s lost %s %%, the document %v: one name must have one value", name, m[2], lost)
	}
}

func decode(t *testing.T, raw []byte, to any) {
	t.Helper()
	if err := json.Unmarshal(raw, to); err != nil {
		t.Fatal(err)
	}
}

func rowScreen(t *testing.T, raw []byte) numbersShown {
	var d results.Bench
	decode(t, raw, &d)
	s := numbersShown{}
	for i := range d.Rows {
		for k := range d.Rows[i].Stats {
			s.add(d.Rows[i].Queue, d.Rows[i].Stats[k].Name, d.Rows[i].Stats[k].Mean)
		}
	}
	return s
}

func resultScreen(t *testing.T, raw []byte) numbersShown {
	d, err := result.Read(raw)
	if err != nil {
		t.Fatal(err)
	}
	s := numbersShown{}
	for i := range d.Rows {
		for k := range d.Rows[i].Stats {
			s.add(d.Rows[i].Name, d.Rows[i].Stats[k].Name, d.Rows[i].Stats[k].Mean)
		}
	}
	return s
}

// trainingScreen returns the means of the learning curves.
func trainingScreen(t *testing.T, raw []byte) numbersShown {
	var d struct {
		Panels []struct {
			Series []struct {
				Name string              `json:"name"`
				X    []float64           `json:"x"`
				Y    []results.Statistic `json:"y"`
			} `json:"series"`
		} `json:"panels"`
	}
	decode(t, raw, &d)
	s := numbersShown{}
	for _, panel := range d.Panels {
		for _, series := range panel.Series {
			for i, x := range series.X {
				s.add(series.Name, fmt.Sprintf("reward_%v", x), series.Y[i].Mean)
			}
		}
	}
	return s
}

// TestPlaybackOutputsAgree plays a plan and checks that its CSV and its document agree.
func TestPlaybackOutputsAgree(t *testing.T) {
	raced.SkipRaced(t)
	k := newKept(t)
	jobs, plan := filepath.Join(k.dir, "jobs.yaml"), filepath.Join(k.dir, "plan.json")
	k.olafctl("schedule", "jobs", "--jobs", "4", "-w", jobs)
	k.olafctl("schedule", "plan", jobs, "--policy", "tw", "-w", plan)
	play := []string{"simulate", "--schedule", plan, "-q"}
	document := resultScreen(t, []byte(k.olafctl(append(play, "-o", "json")...)))
	rows, err := csv.NewReader(strings.NewReader(k.olafctl(append(play, "-o", "csv")...))).ReadAll()
	if err != nil || len(document) != 5 {
		t.Fatalf("the playback has %d rows, want 4 jobs and their sum: %v", len(document), err)
	}
	sheet := numbersShown{}
	for _, row := range rows[1:] {
		if v, err := strconv.ParseFloat(row[index(rows[0], "mean")], 64); err == nil {
			sheet.add(row[index(rows[0], "row")], row[index(rows[0], "column")], results.Float(v))
		}
	}
	if shared := document.agrees(t, "its CSV", sheet); shared < 4*5 {
		t.Errorf("the CSV shares %d numbers with the document, want at least 20", shared)
	}
}

// resultsPageAgrees checks that the dashboard for a finished sweep shows the same lines as 'sweep show'.
func (k *kept) resultsPageAgrees(id string) {
	k.t.Helper()
	var where cli.StoreFlag
	var report *tui.Report
	err := where.WithRun(k.env, id, func(_ *store.Store, folder *store.Folder) error {
		plan, cells, err := experimentsweep.ReadKept(folder, k.env.SweepCommands(k.env))
		report = sweep.NewReport(plan, cells)
		return err
	})
	if err != nil {
		k.t.Fatal(err)
	}
	var clock tuitest.Clock
	f := tui.New(pages.New(pages.Options{ID: id, Progress: func() experimentsweep.Progress { return experimentsweep.Progress{} },
		Report: func() *tui.Report { return report }}), tui.Options{Tick: clock.Tick})
	tuitest.SendMessage(f, tea.WindowSizeMsg{Width: 120, Height: 100})
	clock.Advance(f, time.Second)
	tuitest.PressKeys(f, "4")
	clock.Advance(f, tui.FrameInterval)
	page, lines := f.Text(), 0
	k.env.Getenv = withColumns(k.env.Getenv, "116") // the page without its frame
	for line := range strings.Lines(k.olafctl("sweep", "show", id)) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if lines++; !strings.Contains(page, line) {
			k.t.Errorf("%s: the dashboard lacks the line %q of 'sweep show'", id, line)
		}
	}
	if lines < 5 {
		k.t.Errorf("%s: 'sweep show' prints %d lines, want at least 5", id, lines)
	}
}

// withColumns returns an environment whose terminal has another width.
func withColumns(getenv func(string) string, columns string) func(string) string {
	return func(name string) string {
		if name == "COLUMNS" {
			return columns
		}
		return getenv(name)
	}
}

func sweepScreen(t *testing.T, raw []byte) numbersShown {
	var d struct {
		Axes []struct {
			Name string `json:"name"`
		} `json:"axes"`
		Cells []struct {
			Parameters map[string]any               `json:"parameters"`
			Statistics map[string]results.Statistic `json:"statistics"`
		} `json:"cells"`
	}
	decode(t, raw, &d)
	s := numbersShown{}
	for _, c := range d.Cells {
		name := ""
		for _, axis := range d.Axes {
			text, err := json.Marshal(c.Parameters[axis.Name])
			if err != nil {
				t.Fatal(err)
			}
			name += " " + axis.Name + "=" + strings.Trim(string(text), `"`)
		}
		for metric, n := range c.Statistics {
			s.add(strings.TrimSpace(name), metric, n.Mean)
		}
	}
	return s
}
