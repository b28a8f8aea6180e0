package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/xuri/excelize/v2"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/cmd/olafctl/watch"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/bench/slowmotion"
	"github.com/olafctl/olaf/internal/test/raced"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/store"
	"github.com/olafctl/olaf/tui"
	"github.com/olafctl/olaf/tui/queues"
	"github.com/olafctl/olaf/tui/tuitest"
)

// kept is a run in its own store.
type kept struct {
	t      *testing.T
	env    *cli.Env
	dir    string
	stdout bytes.Buffer
}

// newKept returns an empty store.
func newKept(t *testing.T) *kept {
	k := &kept{t: t, env: process(), dir: t.TempDir()}
	k.env.Stdout, k.env.Stderr, k.env.Terminal, k.env.Interactive = &k.stdout, new(bytes.Buffer), false, false
	k.env.Getenv = func(name string) string {
		return map[string]string{"OLAFCTL_HOME": filepath.Join(k.dir, "store"), "COLUMNS": "200", "HOME": k.dir}[name]
	}
	return k
}

// keepOne runs a command that stores its run.
func keepOne(t *testing.T, args ...string) *kept {
	k := newKept(t)
	k.olafctl(args...)
	return k
}

// olafctl runs a command and returns its output.
func (k *kept) olafctl(args ...string) string {
	k.t.Helper()
	k.stdout.Reset()
	if code := run(k.t.Context(), k.env, args); code != 0 {
		k.t.Fatalf("olafctl %s: exit code %d\n%s", strings.Join(args, " "), code, k.env.Stderr)
	}
	return k.stdout.String()
}

// quantity matches a printed number with its unit.
var quantity = regexp.MustCompile(`^(−?[0-9.]+)(?: ± [0-9.]+)? ?([a-zµ%]*)$`)

// same reports whether a screen shows a value, to the last printed digit. Ages are in ns; unit is the unit in a table's
// header.
func same(shown, unit string, value float64) bool {
	m := quantity.FindStringSubmatch(shown)
	if m == nil {
		return false
	}
	if m[2] != "" {
		unit = m[2]
	}
	value /= map[string]float64{"": 1, "%": 1, "ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}[unit]
	_, decimals, _ := strings.Cut(m[1], ".")
	// A screen may round a rounded number: half a digit more counts as the same.
	got, err := strconv.ParseFloat(strings.Replace(m[1], "−", "-", 1), 64)
	return err == nil && math.Abs(got-value) <= 0.5*math.Pow10(-len(decimals))*(1+1e-9)
}

// TestFiveOutputsShowEqualNumbers checks that the table, the plain stream, the dashboard's last frame, the report and
// the workbook show the same losses, counts and ages for one stored run, to the last digit that each prints.
func TestFiveOutputsShowEqualNumbers(t *testing.T) {
	raced.SkipRaced(t)
	k := keepOne(t, "bench", "--runs", "1", "--out-rate", "20G", "-q")
	var document results.Bench
	if err := json.Unmarshal([]byte(k.olafctl("runs", "show", "last", "-o", "json")), &document); err != nil {
		t.Fatal(err)
	}
	table, plain := k.olafctl("runs", "show", "last"), k.olafctl("tui", "--run", "last", "--plain", "--speed", "max")
	report, book, frame := k.exports(), k.workbook(), k.lastFrame()
	for i := range document.Rows {
		r := &document.Rows[i]
		for _, screen := range []struct {
			name  string
			shown map[string]string
			unit  string // unit of the ages
		}{
			{"table", tableRow(table, r.Queue), tableUnit(table)},
			{"plain", plainRow(plain, r.Queue), ""},
			{"dashboard", frameRow(frame, r.Queue), ""},
			{"report", reportRow(report, r.Queue), "ns"},
			{"workbook", book[r.Queue], "ns"},
		} {
			if len(screen.shown) < 4 {
				t.Errorf("%s shows of %s only %v", screen.name, r.Queue, screen.shown)
			}
			for name, shown := range screen.shown {
				unit := ""
				if strings.HasSuffix(name, "_ns") {
					unit = screen.unit
				}
				if value := float64(r.Stats.Of(name).Mean); !same(shown, unit, value) {
					t.Errorf("%s shows %s of %s as %q, and it is %v", screen.name, name, r.Queue, shown, value)
				}
			}
		}
	}
}

// exports writes the report and returns it.
func (k *kept) exports() string {
	page := filepath.Join(k.dir, "page.html")
	k.olafctl("export", "last", "--report", page, "--xlsx", filepath.Join(k.dir, "book.xlsx"))
	html, err := os.ReadFile(page)
	if err != nil {
		k.t.Fatal(err)
	}
	return string(html)
}

// workbook returns every system's means from the exported workbook.
func (k *kept) workbook() map[string]map[string]string {
	book, err := excelize.OpenFile(filepath.Join(k.dir, "book.xlsx"))
	if err != nil {
		k.t.Fatal(err)
	}
	defer book.Close()
	rows, err := book.GetRows("Statistics", excelize.Options{RawCellValue: true})
	if err != nil {
		k.t.Fatal(err)
	}
	means := map[string]map[string]string{}
	var header []string
	for n, row := range rows {
		at := func(column string) string {
			for i, h := range header {
				if h == column && i < len(row) {
					return row[i]
				}
			}
			return ""
		}
		switch {
		case len(row) > 3 && row[0] == "queue":
			header = row
		case screenMetrics[at("name")]:
			mean := at("mean")
			if cell, err := excelize.CoordinatesToCellName(index(header, "mean")+1, n+1); mean == "" && err == nil {
				// a computed cell
				mean, _ = book.CalcCellValue("Statistics", cell, excelize.Options{RawCellValue: true})
			}
			if means[at("queue")] == nil {
				means[at("queue")] = map[string]string{}
			}
			means[at("queue")][at("name")] = mean
		}
	}
	return means
}

func index(list []string, of string) int {
	for i, s := range list {
		if s == of {
			return i
		}
	}
	return -1
}

// screenMetrics are the metrics to compare.
var screenMetrics = map[string]bool{"received": true, "aggregated": true, "lost": true, "lost_pct": true, "aom_cluster_ns": true, "aom_worker_ns": true}

// lastFrame returns the results page of a dashboard after the run has ended.
func (k *kept) lastFrame() string {
	k.t.Helper()
	var where cli.StoreFlag
	var spec bench.Spec
	err := where.WithRun(k.env, "last", func(_ *store.Store, folder *store.Folder) (err error) {
		spec, err = bench.RepeatableSpec(k.env.Systems, folder)
		return err
	})
	if err != nil {
		k.t.Fatal(err)
	}
	plan, err := bench.NewPlan(spec)
	if err != nil {
		k.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(k.t.Context())
	player, err := slowmotion.NewPlayer(ctx, plan, slowmotion.Options{Device: "twin:"}, slowmotion.AsFastAsPossible, false,
		watch.NewClock(k.env.Now))
	if err != nil {
		stop()
		k.t.Fatal(err)
	}
	var playing sync.WaitGroup
	playing.Go(func() { player.Run(ctx) })
	defer func() {
		stop()
		playing.Wait()
		if err := player.Close(); err != nil {
			k.t.Error(err)
		}
	}()
	if err := (&watch.Dashboard{Env: k.env}).PrintStates(ctx, player); err != nil { // until the run is over
		k.t.Fatal(err)
	}
	var clock tuitest.Clock
	f := tui.New(queues.New(queues.Options{Source: player}), tui.Options{Tick: clock.Tick})
	tuitest.SendMessage(f, tea.WindowSizeMsg{Width: 120, Height: 40})
	clock.Advance(f, time.Second)
	tuitest.PressKeys(f, "6")
	return f.Text()
}

var gaps = regexp.MustCompile(` {2,}`)

// tableRow returns a system's row from the printed table of configurations.
func tableRow(page, queue string) map[string]string {
	row := map[string]string{}
	var header []string
	for line := range strings.Lines(page) {
		cells := gaps.Split(strings.TrimSpace(line), -1)
		switch {
		case cells[0] == "QUEUE":
			header = cells
		case len(cells) == len(header) && cells[0] == queue:
			for i, h := range header {
				name, _, _ := strings.Cut(h, ",")
				if of := map[string]string{"RECEIVED": "received", "AGGREGATED": "aggregated", "LOST %": "lost_pct",
					"AOM/CLUSTER": "aom_cluster_ns", "AOM/WORKER": "aom_worker_ns"}[name]; of != "" {
					row[of] = cells[i]
				}
			}
		}
	}
	return row
}

// tableUnit returns the unit of ages in the header.
func tableUnit(page string) string {
	if m := regexp.MustCompile(`AOM/CLUSTER, (\S+)`).FindStringSubmatch(page); m != nil {
		return m[1]
	}
	return ""
}

// plainRow returns a system's row from the last lines of the plain stream.
func plainRow(page, queue string) map[string]string {
	line := regexp.MustCompile(`  ` + queue + ` out at .* merged (\d+), delivered (\d+), lost (\d+), age of model per cluster average (.*?); per worker average (.*)`)
	all := line.FindAllStringSubmatch(page, -1)
	if all == nil {
		return nil
	}
	m := all[len(all)-1]
	return map[string]string{"aggregated": m[1], "received": m[2], "lost": m[3], "aom_cluster_ns": m[4], "aom_worker_ns": m[5]}
}

// frameRow returns a system's row from the dashboard's results.
func frameRow(frame, queue string) map[string]string {
	m := regexp.MustCompile(queue + ` +\d+Gbps +(\S+ %) +(\d+) +(\d+) +\S+ +(\S+ [µnm]?s) +(\S+ [µnm]?s)`).FindStringSubmatch(frame)
	if m == nil {
		return nil
	}
	return map[string]string{"lost_pct": m[1], "aggregated": m[2], "received": m[3], "aom_cluster_ns": m[4], "aom_worker_ns": m[5]}
}

// reportRow returns a system's means from the report.
func reportRow(html, queue string) map[string]string {
	row := map[string]string{}
	for name := range screenMetrics {
		cell := regexp.MustCompile(fmt.Sprintf(`<td>%s</td><td>[^<]*</td><td>[^<]*</td><td>%s</td><td>[^<]*</td><td class="number">([^<]*)</td>`, queue, name))
		if m := cell.FindStringSubmatch(html); m != nil {
			row[name] = strings.ReplaceAll(m[1], ",", "")
		}
	}
	return row
}
