package monitor

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc/stats"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/bench/slowmotion"
	"github.com/olafctl/olaf/experiments/sweep"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/results"
)

// seen returns a monitor after a complete small bench.
func seen(t *testing.T) (*Monitor, *bench.Measurement) {
	t.Helper()
	m := New("v1", "abc")
	spec := bench.DefaultSpec(system.All())
	spec.Runs, spec.Workload.UpdatesPerWorker = 3, 20
	r, err := bench.MeasureSpec(t.Context(), spec, bench.Options{Stream: bench.NewStream(m.Sinks()...), Access: testbed.Access{Devices: testbed.Devices{testbed.TwinDevice()}}})
	if err != nil {
		t.Fatal(err)
	}
	return m, r
}

// scrape requests OpenMetrics text, as Prometheus does.
func scrape(t *testing.T, m *Monitor) string {
	t.Helper()
	server := httptest.NewServer(m.Handler())
	defer server.Close()
	ask, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	ask.Header.Set("Accept", "application/openmetrics-text;version=1.0.0")
	answer, err := server.Client().Do(ask)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if kind := answer.Header.Get("Content-Type"); !strings.HasPrefix(kind, "application/openmetrics-text") || !strings.HasSuffix(string(body), "# EOF\n") {
		t.Fatalf("%s ends with %q", kind, body[max(0, len(body)-20):])
	}
	return string(body)
}

func TestScrapeHasTheNumbersOfTheDocument(t *testing.T) {
	m, r := seen(t)
	m.AddVerdicts("olaf/table1", []results.PaperRow{{Verdict: "match"}, {Verdict: "match"}, {Verdict: "near"}})
	body := scrape(t, m)
	for i := range r.Bench.Rows {
		row := &r.Bench.Rows[i]
		name := r.Outcome.Plan.Configs[i].Queue + " at " + r.Outcome.Plan.Configs[i].OutRate.String()
		stat := row.Stats.Of("aom_cluster_ns")
		for what, v := range map[string]results.Float{"mean": stat.Mean, "ci95": stat.CI95} {
			text, err := json.Marshal(float64(v))
			if err != nil {
				t.Fatal(err)
			}
			want := `olafctl_metric_` + what + `{configuration="` + name + `",experiment="bench",metric="aom_cluster_ns",unit="ns"} ` + string(text) + "\n"
			if !strings.Contains(body, want) {
				t.Errorf("no %s", want)
			}
		}
	}
	for _, want := range []string{
		`olafctl_build_info{revision="abc",version="v1"} 1.0`,
		`olafctl_runs_planned{experiment="bench"} 12.0`,
		`olafctl_runs_total{configuration="olaf at 40Gbps",experiment="bench",valid="true"} 3.0`,
		`olafctl_runs_total{configuration="fifo at 20Gbps",experiment="bench",valid="false"} 0.0`,
		`olafctl_published_numbers{experiment="olaf/table1",verdict="match"} 2.0`,
		"go_goroutines ",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in\n%s", want, body)
		}
	}
	if strings.Contains(body, "tc_withheld") || strings.Contains(body, "duration_ns") {
		t.Error("what a document leaves out is told")
	}
}

func TestTextFile(t *testing.T) {
	m, _ := seen(t)
	path := filepath.Join(t.TempDir(), "olafctl.prom")
	if err := m.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `olafctl_metric_mean{configuration="olaf at 40Gbps",experiment="bench",metric="lost_pct",unit="%"}`) || strings.Contains(string(text), "go_goroutines") {
		t.Errorf("%s", text)
	}
}

// whole returns a monitor with all metrics.
func whole(t *testing.T) *Monitor {
	t.Helper()
	m, _ := seen(t)
	m.AddSweep(func() sweep.Progress {
		return sweep.Progress{Cells: 5, Done: 2, Failed: 1, Lots: 7, LotsDone: 3, Working: map[string]string{"process 1": "slots=4"}}
	})
	m.AddValue("training_reward", "mean reward", func() float64 { return math.NaN() })
	m.AddVerdicts("olaf/table1", []results.PaperRow{{Verdict: "match"}})
	counts := olaf.NewCounts(system.QueueDeclaration().Ledger)
	counts.Add("sent", 5)
	m.AddSession(func() *slowmotion.Snapshot {
		return &slowmotion.Snapshot{Now: olaf.Time(olaf.Second), Queues: []slowmotion.QueueSnapshot{
			{Name: "olaf", Occupancy: 3, Counters: counts, MeanAoM: [olaf.Readings]results.Float{2000, results.Missing()}}}}
	})
	calls := m.CountCalls()
	ctx := calls.TagRPC(t.Context(), &stats.RPCTagInfo{FullMethodName: "/p4.v1.P4Runtime/Write"})
	calls.HandleRPC(ctx, &stats.Begin{})
	calls.HandleRPC(ctx, &stats.End{})
	calls.HandleRPC(ctx, &stats.Begin{})
	return m
}

func TestAllMetricsAreExported(t *testing.T) {
	m := whole(t)
	body := scrape(t, m)
	for _, want := range []string{
		`olafctl_work_done{work="sweep"} 3.0`, `olafctl_work_steps{work="sweep"} 7.0`, "olafctl_sweep_cells 5.0", "olafctl_sweep_cells_done 2.0", "olafctl_sweep_cells_failed 1.0", "olafctl_sweep_workers 1.0", "olafctl_training_reward NaN",
		"olafctl_live_time_seconds 1.0", `olafctl_live_queue_occupancy{queue="olaf"} 3.0`, `olafctl_live_queue_counted{counter="sent",queue="olaf"} 5.0`,
		`olafctl_live_queue_aom_seconds{queue="olaf",reading="per cluster"} 2e-06`,
		`olafctl_calls_total{code="OK",method="/p4.v1.P4Runtime/Write"} 1.0`, `olafctl_calls_open{method="/p4.v1.P4Runtime/Write"} 1.0`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in\n%s", want, body)
		}
	}
	if strings.Contains(body, "per worker") {
		t.Error("an age that is not there is told")
	}
	problems, err := testutil.GatherAndLint(m.registry)
	if err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
}

// TestDashboardUsesScrapedNames checks that every expression uses names that occur in a scrape, and that the docs list
// every name.
func TestDashboardUsesScrapedNames(t *testing.T) {
	text, err := Dashboard()
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(text) {
		t.Fatal("no JSON")
	}
	body := scrape(t, whole(t))
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "guide", "monitoring.md"))
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`olafctl_[a-z0-9_]+`)
	for _, p := range panels {
		for _, q := range p.queries {
			for _, asked := range name.FindAllString(q.expr, -1) {
				if !strings.Contains(body, "\n"+asked+"{") && !strings.Contains(body, "\n"+asked+" ") {
					t.Errorf("%s asks for %s, which nobody tells", p.title, asked)
				}
			}
		}
	}
	for _, told := range regexp.MustCompile(`(?m)^# TYPE (olafctl_[a-z0-9_]+)`).FindAllStringSubmatch(body, -1) {
		if !strings.Contains(string(page), "`"+told[1]) {
			t.Errorf("docs/guide/monitoring.md does not tell of %s", told[1])
		}
	}
}

func TestListen(t *testing.T) {
	for _, address := range []string{"0", ":0", "127.0.0.1:0", "localhost:0"} {
		l, err := Listen(address)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		if ip := l.Addr().(*net.TCPAddr).IP; !ip.IsLoopback() {
			t.Errorf("%s listens at %v", address, ip)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	l, err := Listen("0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if ip := l.Addr().(*net.TCPAddr).IP; !ip.IsUnspecified() {
		t.Errorf("an address that was given is %v", ip)
	}
	for _, address := range []string{"", "x:y:z", "99999", "nowhere.invalid:1"} {
		_, err := Listen(address)
		if kind, _ := olaf.KindOf(err); err == nil || kind != olaf.Usage || !errors.Is(err, ErrAddress) {
			t.Errorf("%q: %v of kind %v", address, err, kind)
		}
	}
}

func TestNilMonitorDoesNothing(t *testing.T) {
	var m *Monitor
	m.AddWork("sweep", nil)
	m.AddValue("reward", "", nil)
	m.AddVerdicts("olaf/table1", []results.PaperRow{{}})
	m.AddSession(nil)
	if m.Sinks() != nil {
		t.Error("a sink of nobody")
	}
}
