package queues

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/exp/teatest"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/bench/slowmotion"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/text"
	"github.com/olafctl/olaf/tui"
	"github.com/olafctl/olaf/tui/keys"
	"github.com/olafctl/olaf/tui/num"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/tuitest"
)

// still is a paused source that records requests.
type still struct {
	mu       sync.Mutex
	snapshot *slowmotion.Snapshot
	life     map[int64]slowmotion.Life
	in       *slowmotion.Inspection
	asked    []slowmotion.Command
	busy     bool
}

func (s *still) Snapshot() *slowmotion.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.snapshot
}

func (s *still) Do(c slowmotion.Command) bool {
	s.asked = append(s.asked, c)
	return !s.busy
}

func (s *still) Life(_ int, update int64) (slowmotion.Life, bool) {
	l, ok := s.life[update]
	return l, ok
}

func (s *still) Inspect(context.Context) (*slowmotion.Inspection, error) {
	if s.in == nil {
		return nil, errors.New("the device does not answer")
	}
	return s.in, nil
}

// at opens a real session of a specification and moves it to an instant.
func at(t testing.TB, now olaf.Time, edit func(*bench.Spec)) *still {
	t.Helper()
	spec := bench.DefaultSpec(system.All())
	spec.Experiment = "table1"
	spec.OutRates = []olaf.Rate{20 * olaf.Gbps}
	if edit != nil {
		edit(&spec)
	}
	plan, err := bench.NewPlan(spec)
	if err != nil {
		t.Fatal(err)
	}
	session, err := slowmotion.OpenSession(context.Background(), plan, slowmotion.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if err := session.Seek(context.Background(), now); err != nil {
		t.Fatal(err)
	}
	s := &still{life: map[int64]slowmotion.Life{}}
	if s.snapshot, err = session.Snapshot(); err != nil {
		t.Fatal(err)
	}
	s.snapshot.State, s.snapshot.Speed = slowmotion.Running, slowmotion.Speed(10*olaf.Microsecond)
	for n := range s.snapshot.Queues[0].Counters.Of("in") {
		s.life[n], _ = session.Life(0, n)
	}
	if s.in, err = session.Inspect(context.Background()); err != nil {
		t.Fatal(err)
	}
	s.in.Target, s.in.ElectionID = "unix:/run/p4rt.sock", "1:1"
	return s
}

const instant = olaf.Time(14 * olaf.Microsecond)

// dash returns a dashboard of a given size that has looked at its source.
type dash struct {
	*tui.Frame
	clock   *tuitest.Clock
	session *session
	pages   []tui.Page
	saved   []string
}

func shown(s Source, width, height int, edit func(*Options)) *dash {
	o := Options{Source: s}
	if edit != nil {
		edit(&o)
	}
	pages := New(o)
	d := &dash{clock: new(tuitest.Clock), session: pages.Subject.(*session), pages: pages.Pages}
	d.Frame = tui.New(pages, tui.Options{Tick: d.clock.Tick, Save: func(name string, data []byte) (string, error) {
		d.saved = append(d.saved, name+": "+string(data))
		return name, nil
	}})
	tuitest.SendMessage(d.Frame, tea.WindowSizeMsg{Width: width, Height: height})
	d.clock.Advance(d.Frame, tui.FrameInterval)
	d.View()
	return d
}

// press presses keys, draws the page, and lets the frame look again, so that inspections arrive.
func (d *dash) press(names ...string) *dash {
	for _, name := range names {
		tuitest.PressKeys(d.Frame, name)
		d.View()
		d.clock.Advance(d.Frame, tui.FrameInterval)
	}
	return d
}

// find returns the number of the page with a title, from 1; 0 if the dashboard has no such page.
func (d *dash) find(title string) int {
	return 1 + slices.IndexFunc(d.pages, func(p tui.Page) bool { return p.Title == title })
}

// open presses the number key of the page with a title. Tests name pages, so that a new page breaks none of them.
func (d *dash) open(title string) *dash { return d.press(strconv.Itoa(d.find(title))) }

// body returns the body of the open page.
func (d *dash) body(width, height int) string {
	return tuitest.DrawBody(d.Frame, &d.pages[d.Page()], width, height)
}

// sizes are the page sizes on terminals of 80×24, 90×30, 100×30, 120×40 and 200×60.
var sizes = [][2]int{{80, 21}, {90, 27}, {100, 27}, {120, 37}, {200, 57}}

// TestPages compares the bodies of the pages with the golden files.
func TestPages(t *testing.T) {
	source := at(t, instant, nil)
	for _, title := range []string{"Run", "Clusters", "Tables", "Registers", "Testbed", "Results"} {
		name := strings.ToLower(title)
		for _, size := range sizes {
			if name != "run" && name != "clusters" && size[0] != 120 && size[0] != 80 {
				continue
			}
			t.Run(fmt.Sprintf("%s-%dx%d", name, size[0], size[1]), func(t *testing.T) {
				d := shown(source, size[0], size[1]+3, nil).open(title)
				d.session.inspects.changed = nil
				teatest.RequireEqualOutput(t, []byte(d.body(size[0], size[1])))
			})
		}
	}
	for _, c := range []struct {
		name string
		keys []string
	}{{"maximised", []string{"p", "z"}}, {"filtered", []string{"/", "dropped", "enter"}},
		{"sorted", []string{"2", "s", "s", "down", "down", "enter"}}} {
		t.Run(c.name, func(t *testing.T) {
			d := shown(source, 100, 30, nil).press(c.keys...)
			teatest.RequireEqualOutput(t, []byte(d.body(100, 27)))
		})
	}
	t.Run("form", func(t *testing.T) {
		teatest.RequireEqualOutput(t, []byte(shown(source, 80, 24, nil).press("r").Text()))
	})
}

// TestEveryBinding checks the effect of every key in this dashboard's bindings. The frame's bindings are tested in
// package tui.
func TestEveryBinding(t *testing.T) {
	source := at(t, instant, nil)
	asked := func(want slowmotion.Command) func(*dash) bool {
		return func(*dash) bool { return len(source.asked) == 1 && source.asked[0] == want }
	}
	says := func(text string) func(*dash) bool {
		return func(d *dash) bool { return strings.Contains(d.Text(), text) }
	}
	checks := map[keys.Action]struct {
		before []string
		holds  func(*dash) bool
	}{
		keys.NextPanel: {nil, func(d *dash) bool { return d.session.focusedPlace().panel == panelAoM }},
		keys.LastPanel: {nil, func(d *dash) bool { return d.session.focusedPlace().queue == 1 }},
		keys.Maximise:  {nil, func(d *dash) bool { return d.session.run.zoom }},
		keys.Back:      {[]string{"z"}, func(d *dash) bool { return !d.session.run.zoom }},
		keys.Open:      {nil, says("the life of an update")},
		keys.SortBy:    {[]string{"2"}, func(d *dash) bool { return d.session.order == 1 }},
		keys.Watch:     {nil, asked(slowmotion.Watch{Cluster: 1})},
		keys.Reading:   {nil, says("AoM per worker now")},
		keys.Window:    {nil, func(d *dash) bool { return d.session.wholeRun }},
		keys.Pause:     {nil, asked(slowmotion.Pause{On: true})},
		keys.Faster:    {nil, asked(slowmotion.SetSpeed{Speed: slowmotion.Speed(20 * olaf.Microsecond)})},
		keys.Slower:    {nil, asked(slowmotion.SetSpeed{Speed: slowmotion.Speed(5 * olaf.Microsecond)})},
		keys.FullSpeed: {nil, asked(slowmotion.SetSpeed{})},
		keys.RealTime:  {nil, asked(slowmotion.SetSpeed{Speed: slowmotion.RealTime})},
		keys.Step:      {nil, asked(slowmotion.Step{})},
		keys.StepBack:  {nil, asked(slowmotion.Step{Back: true})},
		keys.Rewind:    {nil, asked(slowmotion.Seek{})},
		keys.Stop:      {[]string{"S"}, asked(slowmotion.Stop{})},
		keys.Rerun:     {nil, says("run again")},
		keys.Workbook:  {nil, says("workbook: book.xlsx")},
		keys.Figures:   {nil, says("figures: drawn")},
	}
	own := map[keys.Action]bool{}
	for _, a := range []keys.Action{
		keys.Help, keys.Quit, keys.NextTab, keys.PreviousTab, keys.Mouse, keys.Freeze, keys.Filter, keys.Up,
		keys.Down, keys.PageUp, keys.PageDown, keys.Top,
		keys.Bottom, keys.SeekForward, keys.SeekBackward, keys.Mark, keys.NextMark, keys.ExportText, keys.ExportSVG,
	} {
		own[a] = true
	}
	for _, b := range keys.Default().Bindings() {
		check, ok := checks[b.Action]
		if !ok && !own[b.Action] && !slices.Contains(keys.Tabs, b.Action) {
			t.Errorf("nobody checks %s", b.Action)
		}
		for _, k := range b.Keys {
			if !ok {
				continue
			}
			d := shown(source, 120, 40, func(o *Options) {
				o.Workbook = func(context.Context) (string, error) { return "book.xlsx", nil }
				o.Figures = func(context.Context) (string, error) { return "drawn", nil }
			})
			d.press(check.before...)
			source.asked = nil
			tuitest.PressKeys(d.Frame, k)
			if !check.holds(d) {
				t.Errorf("%s by %q: asked %v:\n%s", b.Action, k, source.asked, d.Text())
			}
		}
	}
}

func TestRerunByForm(t *testing.T) {
	source := at(t, instant, nil)
	d := shown(source, 120, 40, nil)
	tuitest.PressKeys(d.Frame, "r", "down", "down", "backspace", "16", "down", "down", "down", "backspace", "7", "enter")
	if d.Over() != nil || len(source.asked) != 1 {
		t.Fatalf("asked %v:\n%s", source.asked, d.Text())
	}
	rerun := source.asked[0].(slowmotion.Rerun)
	if rerun.Spec.Slots != 16 || rerun.Spec.Seed != 7 || rerun.Spec.Queue != "olaf" {
		t.Errorf("slots %d, seed %d, queue %q", rerun.Spec.Slots, rerun.Spec.Seed, rerun.Spec.Queue)
	}
	d = shown(source, 120, 40, nil)
	if tuitest.PressKeys(d.Frame, "r", "backspace", "enter"); d.Over() == nil || d.Over().(*settings).form.Err == "" {
		t.Errorf("a rate without its unit was taken:\n%s", d.Text())
	}
	if tuitest.PressKeys(d.Frame, "esc"); d.Over() != nil {
		t.Error("escape does not close the form")
	}
}

// TestBusySessionMessage checks the message if the session accepts no more commands.
func TestBusySessionMessage(t *testing.T) {
	source := at(t, instant, nil)
	source.busy = true
	for _, k := range []string{"space", "right"} {
		d := shown(source, 100, 30, nil)
		if tuitest.PressKeys(d.Frame, k); !strings.Contains(d.Text(), busy) {
			t.Errorf("%q is not said to be in vain", k)
		}
	}
}

func TestFilterAndLife(t *testing.T) {
	d := shown(at(t, instant, nil), 120, 40, nil).press("/", "merge", "enter")
	if text := d.Text(); !strings.Contains(text, "of the newest 256 events") {
		t.Errorf("the filter does not say what it looks at:\n%s", text)
	}
	if text := d.press("enter").Text(); !strings.Contains(text, "together with") {
		t.Errorf("no company in the life of a merged update:\n%s", text)
	}
}

// TestSharesOfFatesAddUp checks the sum of the shares in the panel of fates, at the smallest size and at others.
func TestSharesOfFatesAddUp(t *testing.T) {
	source := at(t, instant, nil)
	for _, size := range sizes {
		d := shown(source, size[0], size[1]+3, nil)
		sum := make([]float64, 2)
		for _, line := range strings.Split(d.Text(), "\n") {
			for i, half := range []string{string([]rune(line)[:min(size[0]/2, utf8.RuneCountInString(line))]),
				string([]rune(line)[min(size[0]/2, utf8.RuneCountInString(line)):])} {
				for _, name := range []string{"✗ lost ", "⊕ merged ", "◀ delivered ", "▮ in queue "} {
					if _, after, ok := strings.Cut(half, name); ok && strings.Contains(after, "%") {
						fields := strings.Fields(strings.SplitN(after, "%", 2)[0])
						share, err := strconv.ParseFloat(fields[len(fields)-1], 64)
						if err != nil {
							t.Fatalf("%q: %v", line, err)
						}
						sum[i] += share
					}
				}
			}
		}
		for i := range sum {
			if math.Abs(sum[i]-100) > 0.25 {
				t.Errorf("%v, queue %d: the fates add up to %.1f %%:\n%s", size, i, sum[i], d.Text())
			}
		}
	}
}

// TestResultsPage checks that a bench's report is shown once it exists and that its lines can be shifted.
func TestResultsPage(t *testing.T) {
	bench := &Bench{Done: 3, Total: 8}
	d := shown(at(t, instant, nil), 100, 30, func(o *Options) { o.Bench = func() *Bench { return bench } }).open("Results")
	if text := d.Text(); !strings.Contains(text, "bench 3/8") || !strings.Contains(text, "3 of 8 runs") ||
		!strings.Contains(text, "AoM/worker") {
		t.Errorf("while it runs:\n%s", text)
	}
	report := tui.NewReport(func(width int) []string {
		return []string{"the report that is a bit long", fmt.Sprintf("folded at %d", width)}
	})
	bench = &Bench{Done: 8, Total: 8, Finished: true, Err: errors.New("two missed"), Report: report}
	d.clock.Advance(d.Frame, time.Second)
	text := d.press("right").Text()
	if !strings.Contains(text, "│hat is a bit long") || !strings.Contains(text, "bench 8/8 ✓") || d.Cursor().Pan == 0 {
		t.Errorf("at the end:\n%s", text)
	}
	for width, want := range map[int]string{100: "folded at 96", 160: "folded at 156", 60: "folded at 56"} {
		tuitest.SendMessage(d.Frame, tea.WindowSizeMsg{Width: width, Height: 30})
		if text := d.press("left").Text(); !strings.Contains(text, want) {
			t.Errorf("a report on %d columns must be %s:\n%s", width, want, text)
		}
	}
}

// TestSlots checks the slots of a switch that adds up, in every size, and that other runs have no such page.
func TestSlots(t *testing.T) {
	if shown(at(t, instant, nil), 80, 24, nil).find("Slots") > 0 {
		t.Error("a run of queues has a page of slots")
	}
	source := at(t, instant, func(s *bench.Spec) { s.Queue, s.Versus, s.H = "iswitch", "", new(4) })
	table := source.in.Cards[0].Table
	if table == nil || len(table.Held) == 0 || table.H != 4 {
		t.Fatalf("the twin tells of %+v", table)
	}
	for i := range table.Held {
		if h := &table.Held[i]; h.Count != len(h.Inside) || h.Count < 1 || h.Count > 3 {
			t.Errorf("slot %d holds %d contributions of %v", i, h.Count, h.Inside)
		}
	}
	d := shown(source, 80, 24, nil).open("Slots")
	teatest.RequireEqualOutput(t, []byte(d.body(80, 21)))
	text := shown(source, 100, 30, nil).open("Slots").Text()
	for _, want := range []string{"Slots", fmt.Sprintf("iswitch: %d of 4096 slots have a partial sum, H=4",
		len(table.Held)), " of 4", "whose"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	source.in.Cards[0].Table = nil
	if text := shown(source, 100, 30, nil).open("Slots").Text(); !strings.Contains(text, "cannot be looked into") {
		t.Errorf("without a table:\n%s", text)
	}
}

// TestTwin checks that ages are shown next to the twin's, with a report's precision and judgement, and that other runs
// have no such page.
func TestTwin(t *testing.T) {
	spec := bench.DefaultSpec(system.All())
	spec.Runs, spec.Versus, spec.OutRates = 1, "", []olaf.Rate{20 * olaf.Gbps}
	m, err := bench.MeasureSpec(t.Context(), spec, bench.Options{})
	if err != nil {
		t.Fatal(err)
	}
	row := m.Bench.Rows[0]
	row.Stats.Of("aom_cluster_ns").TwinComparison = &results.TwinComparison{Plan: 6_119_000, Twin: 6_222_000, Measured: 6_209_000}
	row.Stats.Of("peak_aom_ns").TwinComparison = &results.TwinComparison{Plan: 8_612_000, Twin: 8_633_000, Measured: results.Missing()}
	row.Decisions = &olaf.Decisions{Checked: 27_770, Equal: 27_769, First: "the first"}
	row.LatenessNS = &olaf.Quantiles{P50: 100, P99: 14_000, Max: 2_400_000}
	row.Withheld = &results.Withheld{Runs: 1, Reason: "the pacer was late"}
	var report strings.Builder
	if err := text.Bench(&report, text.View{Width: 200}, &results.Bench{Rows: []results.Row{row}}); err != nil {
		t.Fatal(err)
	}
	source := at(t, instant, nil)
	if shown(source, 120, 40, nil).find("Twin") > 0 {
		t.Error("a run of the twin has a page that compares it with the twin")
	}
	source.snapshot.Logs = true
	if text := shown(source, 120, 40, nil).open("Twin").Text(); !strings.Contains(text, "nothing yet") {
		t.Errorf("before the end:\n%s", text)
	}
	source.snapshot.Queues[0].Pair = &row
	watched := shown(source, 120, 40, nil).open("Twin")
	state := &Bench{Done: 1, Total: 3, Rows: []results.Row{row}}
	source.snapshot.Logs = false
	benched := shown(source, 120, 40, func(o *Options) {
		o.CompareTwin, o.Measured, o.Bench = true, "xdp:",
			func() *Bench { return state }
	}).open("Twin")
	for _, want := range []string{"on xdp: beside twin:"} {
		if !strings.Contains(benched.Text(), want) {
			t.Errorf("no %q in the head:\n%s", want, benched.Text())
		}
	}
	if page := benched.open("Testbed").Text(); !strings.Contains(page, "xdp: measures; the plan also plays on") ||
		!strings.Contains(page, "1 of 3 runs done") {
		t.Errorf("the device that measures is not on the page of devices:\n%s", page)
	}
	benched.open("Twin")
	var plain strings.Builder
	told := NewPlain(&plain)
	for range 2 {
		if err := told.Show(source.snapshot); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(plain.String(), "the pacer was late"); n != 1 {
		t.Errorf("the pair is told %d times:\n%s", n, plain.String())
	}
	if !strings.Contains(benched.Text(), "Ages beside the twin's, 1 of 3 runs") {
		t.Errorf("beside a bench:\n%s", benched.Text())
	}
	for name, screen := range map[string]string{"watched": watched.Text(), "beside a bench": benched.Text(),
		"report": report.String(), "plain": plain.String()} {
		for _, want := range []string{"6.119 ms", "6.222 ms", "6.209 ms", "-0.2", "8.612 ms", "8.633 ms",
			"27769 of 27770 decisions as the engine's", "late by 100ns (p50), 14µs (p99), 2.4ms at most", "the pacer was late"} {
			if !strings.Contains(screen, want) {
				t.Errorf("%s: no %q in\n%s", name, want, screen)
			}
		}
	}
	for _, size := range sizes {
		sized(t, shown(source, size[0], size[1]+3, nil).open("Twin"), size[0], size[1]+3)
	}
}

// TestHostsPage checks the list of hosts in a testbed with roles, with their clocks and the host that does not answer.
func TestHostsPage(t *testing.T) {
	source := at(t, instant, nil)
	if shown(source, 120, 40, nil).find("Hosts") > 0 {
		t.Error("a device without hosts has a page of hosts")
	}
	source.snapshot.Hosts = true
	source.in.Hosts = []results.Host{
		{Name: "here", Roles: []string{"generator"}, Device: "twin twin-1", Kernel: "Linux 6.1 amd64", Build: "4868fe81"},
		{Name: "q", SSH: "root@fpga1", Roles: []string{"queue"}, OffsetNS: 1500, BoundNS: 21_000, DriftNS: -300},
		{Name: "ps", SSH: "lab@ps", Roles: []string{"server"}, NIC: "enp1s0f0", Driver: "ice", OffsetNS: 0, BoundNS: 9_000, DriftNS: results.Missing()},
	}
	d := shown(source, 120, 40, nil).open("Hosts")
	text := d.body(120, 37)
	for _, want := range []string{"3 hosts; clocks are compared", "here", "this machine", "ssh root@fpga1", "1.5µs ± 21µs ahead, -300ns since then",
		"enp1s0f0 (ice)", "0s ± 9µs ahead when opened; the host does not answer now"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page of hosts lacks %q:\n%s", want, text)
		}
	}
}

// TestSumsOnTheirWay checks the number of sums on their way, which is abbreviated to fit.
func TestSumsOnTheirWay(t *testing.T) {
	source := at(t, instant, func(s *bench.Spec) {
		s.Queue, s.Versus, s.H, s.Topology, s.OutRates = "iswitch", "", new(3), bench.ToWorkers, []olaf.Rate{olaf.Gbps}
	})
	for width, want := range map[int]string{120: "sums on their way to workers at 1Gbps", 60: "on their way"} {
		if text := shown(source, width, 30, nil).Text(); !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	both := at(t, instant, func(s *bench.Spec) {
		s.Queue, s.Versus, s.H, s.Topology, s.OutRates = "iswitch", "olaf,fifo", new(3), bench.ToBoth, []olaf.Rate{olaf.Gbps}
	})
	text := shown(both, 200, 60, nil).Text()
	for _, want := range []string{"updates dropped, queue full", "iswitch, 8 slots, out at 1Gbps",
		"fifo, 8 slots, out at 1Gbps", "iswitch S, "} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for _, size := range sizes {
		for page := '1'; page <= '7'; page++ {
			sized(t, shown(both, size[0], size[1]+3, nil).press(string(page)), size[0], size[1]+3)
		}
	}
}

// TestInspectionFails checks that an empty page shows the reason.
func TestInspectionFails(t *testing.T) {
	source := at(t, instant, nil)
	source.in = nil
	if text := shown(source, 100, 30, nil).open("Tables").Text(); !strings.Contains(text, "the device does not answer") {
		t.Errorf("it does not say why:\n%s", text)
	}
}

// TestTour checks the demo's scenes: a minute in which the session gets seeks and speeds.
func TestTour(t *testing.T) {
	source := at(t, instant, nil)
	d := shown(source, 120, 40, func(o *Options) { o.Demo = true })
	story := d.session.demo()
	if n := tui.CountTicks(story); n != 60*15 {
		t.Errorf("the tour takes %d frames, not a minute", n)
	}
	if text := d.Text(); !strings.Contains(text, "27 workers train 9 models") || !strings.Contains(text,
		"1:00 of the tour left") || len(source.asked) != 3 {
		t.Errorf("the tour begins by asking %v:\n%s", source.asked, text)
	}
	for range tui.CountTicks(story) {
		d.clock.Advance(d.Frame, tui.FrameInterval)
	}
	seeks := 0
	for _, c := range source.asked {
		if _, ok := c.(slowmotion.Seek); ok {
			seeks++
		}
	}
	if seeks != 3 || len(source.asked) != 3+2*len(story) || strings.Contains(d.Text(), "tour") {
		t.Errorf("the tour asked for %d instants in %d commands", seeks, len(source.asked))
	}
}

func TestPlainStream(t *testing.T) {
	var out strings.Builder
	p := NewPlain(&out)
	s := at(t, instant, nil).snapshot
	for range 2 {
		if err := p.Show(s); err != nil {
			t.Fatal(err)
		}
	}
	text := out.String()
	for _, want := range []string{"table1 on twin:", "27 workers in 9 clusters", "olaf out at 20Gbps",
		"fifo out at 20Gbps", "merged", "age of model per cluster now"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
	if strings.Count(text, "27 workers") != 1 || strings.Contains(text, "\x1b") {
		t.Errorf("the heading repeats, or there are control sequences:\n%s", text)
	}
}

// TestAgesAgreeOnAllPages checks that at the end of a run the Run page, the Results page and the plain stream show the
// ages that a bench prints, under both readings.
func TestAgesAgreeOnAllPages(t *testing.T) {
	source := at(t, olaf.Time(olaf.Second), nil)
	source.snapshot.State = slowmotion.Done
	spec := source.snapshot.Plan.Spec
	spec.Runs = 1
	measured, err := bench.MeasureSpec(t.Context(), spec, bench.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := shown(source, 120, 40, nil)
	var plain strings.Builder
	if err := NewPlain(&plain).Show(source.snapshot); err != nil {
		t.Fatal(err)
	}
	for i, runs := range measured.Outcome.Runs {
		m := &runs[0].Metrics
		for reading, age := range [olaf.Readings]results.Float{m.Of("aom_cluster_ns"), m.Of("aom_worker_ns")} {
			want := num.FormatNS(float64(age))
			tuitest.PressKeys(d.Frame, "1")
			if titles := d.line("┌─ AoM " + olaf.Reading(reading).String()); !strings.Contains(strings.Split(titles,
				"┐")[i], "mean "+want) {
				t.Errorf("queue %d, %v: want %s, the Run page says %s", i, olaf.Reading(reading), want, titles)
			}
			tuitest.PressKeys(d.Frame, strconv.Itoa(d.find("Results")))
			if row := d.line("│" + source.snapshot.Queues[i].Name); !strings.Contains(row, want) {
				t.Errorf("queue %d, %v: want %s, the Results page says %s", i, olaf.Reading(reading), want, row)
			}
			if line := strings.Split(plain.String(), "\n")[2+i]; !strings.Contains(line, olaf.Reading(reading).String()+
				" average "+want) {
				t.Errorf("queue %d, %v: want %s, the plain stream says %s", i, olaf.Reading(reading), want, line)
			}
			tuitest.PressKeys(d.Frame, "a")
		}
	}
}

// line returns the first line of the screen with a text.
func (d *dash) line(text string) string {
	for _, line := range strings.Split(d.Text(), "\n") {
		if strings.Contains(line, text) {
			return line
		}
	}
	return ""
}

// TestUnits checks that units are found in two spellings.
func TestUnits(t *testing.T) {
	source := at(t, instant, nil)
	for i, page := range shown(source, 120, 40, nil).pages {
		if text := shown(source, 120, 40, nil).open(page.Title).Text(); page.Title != "Registers" &&
			strings.Contains(strings.NewReplacer("status", "", "cluster", "", "bus", "").Replace(text), "us ") {
			t.Errorf("page %d writes us:\n%s", i+1, text)
		}
	}
}

// wrong returns a snapshot that no session produces: numbers that are not finite, and lists of different lengths.
func wrong(s *slowmotion.Snapshot, b byte) *slowmotion.Snapshot {
	c := *s
	c.Queues = append([]slowmotion.QueueSnapshot(nil), s.Queues...)
	for i := range c.Queues {
		q := &c.Queues[i]
		switch b % 8 {
		case 0:
			q.MeanAoM, q.AoMNow, q.InRate, q.OutputRate = [olaf.Readings]results.Float{results.Missing(), -1},
				[olaf.Readings]results.Float{results.Float(math.Inf(1)), 0}, math.Inf(-1), math.NaN()
		case 1:
			q.Items, q.Log, q.Series, q.Teeth, q.Merges = nil, nil, nil, nil, nil
		case 2:
			q.Slots, q.Occupancy = 65536, 70000
		case 3:
			c.Now, c.End = -5, 0
		case 4:
			c.Sampled = true
		case 5:
			q.Series = []slowmotion.SeriesPoint{{At: c.Now, AoM: [olaf.Readings]float64{math.Inf(1), math.NaN()}},
				{At: math.MaxInt64, AoM: [olaf.Readings]float64{-1e308}, Ages: [olaf.Readings][]float32{{1}}}}
		case 6:
			q.Clusters, c.Err = nil, errors.New("a very long error "+strings.Repeat("of many words ", 50))
		case 7:
			q.Counters = olaf.NewCounts(system.QueueDeclaration().Ledger)
			q.Counters.Add("sent", -1)
			q.Counters.Add("delivered", math.MaxInt64)
			c.State = slowmotion.Failed
		}
	}
	if b%16 == 9 {
		c.Queues = c.Queues[:1]
	}
	return &c
}

// FuzzDashboard sends sizes, keys, clicks and odd snapshots, and checks that there is no panic and that every frame has
// the terminal's size.
func FuzzDashboard(f *testing.F) {
	source := at(f, instant, nil)
	var all []string
	for _, b := range keys.Default().Bindings() {
		all = append(all, b.Keys...)
	}
	all = append(all, "x", "enter", "esc", "é", "漢", "backspace")
	f.Add([]byte{0, 80, 24, 1, 3, 2, 1, 1, 9})
	f.Add([]byte{0, 200, 60, 3, 5, 0, 1, 30, 4, 20, 20, 1, 41})
	f.Add([]byte{0, 10, 1, 1, 0, 0, 255, 255, 3, 6})
	f.Fuzz(func(t *testing.T, data []byte) {
		d := shown(&still{snapshot: source.snapshot, life: source.life, in: source.in}, 100, 30, nil)
		width, height := 100, 30
		for len(data) >= 3 {
			op, a, b := data[0], data[1], data[2]
			data = data[3:]
			switch op % 5 {
			case 0:
				width, height = int(a), int(b)
				tuitest.SendMessage(d.Frame, tea.WindowSizeMsg{Width: width, Height: height})
			case 1:
				tuitest.PressKeys(d.Frame, all[int(a)%len(all)], all[int(b)%len(all)])
			case 2:
				d.clock.Advance(d.Frame, tui.FrameInterval)
			case 3:
				d.session.options.Source = &still{snapshot: wrong(source.snapshot, a), life: source.life, in: source.in}
				d.clock.Advance(d.Frame, tui.FrameInterval)
			case 4:
				tuitest.ClickAt(d.Frame, int(a), int(b))
			}
			sized(t, d, width, height)
		}
	})
}

func sized(t *testing.T, d *dash, width, height int) {
	t.Helper()
	d.View()
	lines := strings.Split(strings.TrimSuffix(d.Text(), "\n"), "\n")
	if height > 0 && width > 0 && len(lines) != height {
		t.Fatalf("%d lines on a terminal of %d", len(lines), height)
	}
	for _, l := range lines {
		if screen.TextWidth(l) > width {
			t.Fatalf("%d columns on a terminal of %d: %q", screen.TextWidth(l), width, l)
		}
	}
}

// BenchmarkFrame draws the full Run page at 200 × 60 with 100 clusters.
func BenchmarkFrame(b *testing.B) {
	d := shown(at(b, olaf.Time(60*olaf.Microsecond), func(s *bench.Spec) {
		s.Workload.Clusters, s.Workload.Workers, s.Slots = 100, 300, 32
	}), 200, 60, nil)
	b.ReportAllocs()
	for b.Loop() {
		d.clock.Advance(d.Frame, tui.FrameInterval)
		d.View()
	}
}

// BenchmarkBench runs all of Table 1 alone, and next to a dashboard that draws fifteen frames per second.
func BenchmarkBench(b *testing.B) {
	spec := bench.DefaultSpec(system.All())
	spec.Experiment = "table1"
	spec.Runs = 60
	run := func(b *testing.B) {
		if _, err := bench.MeasureSpec(context.Background(), spec, bench.Options{}); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("alone", func(b *testing.B) {
		for b.Loop() {
			run(b)
		}
	})
	b.Run("beside", func(b *testing.B) {
		plan, err := bench.NewPlan(spec)
		if err != nil {
			b.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		player, err := slowmotion.NewPlayer(ctx, plan, slowmotion.Options{}, slowmotion.Speed(olaf.Microsecond), false, wall{})
		if err != nil {
			b.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() { player.Run(ctx) })
		wg.Go(func() {
			d := shown(player, 200, 60, nil)
			ticker := time.NewTicker(tui.FrameInterval)
			defer ticker.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-ticker.C:
					d.clock.Advance(d.Frame, tui.FrameInterval)
					d.View()
				}
			}
		})
		for b.Loop() {
			run(b)
		}
		stop()
		wg.Wait()
		if err := player.Close(); err != nil {
			b.Fatal(err)
		}
	})
}

type wall struct{}

func (wall) Now() time.Time { return time.Now() }
func (wall) Tick(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTicker(d)
	return t.C, t.Stop
}
