package schedule

import (
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/sched"
	"github.com/olafctl/olaf/tui"
	"github.com/olafctl/olaf/tui/theme"
	"github.com/olafctl/olaf/tui/tuitest"
)

func example() *sched.Plan {
	p := &sched.Problem{
		Slot: olaf.Second, PortRate: 40 * olaf.Gbps, ServerRate: 40 * olaf.Gbps,
		Units: []sched.Unit{{Name: "a", Ports: 2, INC: 1}, {Name: "b", Ports: 1}},
		Jobs: []sched.Job{
			{ID: "here", Volume: 1e9, Workers: map[string]int{"a": 2}, Server: "a"},
			{ID: "there", Arrival: olaf.Second, Volume: 1e9, Update: 100 * olaf.Millisecond,
				Workers: map[string]int{"a": 1}, Server: "b"},
		},
	}
	return &sched.Plan{
		Policy: sched.Policy{Name: "by hand"}, Problem: p, Slots: 4,
		Outcome: sched.Outcome{CTBTI: 4100 * olaf.Millisecond, Reconfigurations: 1},
		Jobs: []sched.Assignment{{Job: "here", INC: "a", Rates: []float64{8e9}, Finish: olaf.Second},
			{Job: "there", Start: 2, Rates: []float64{4e9, 4e9}, Finish: 4100 * olaf.Millisecond}},
		Connections: []sched.Change{{Slot: 2, Between: [2]string{"a", "b"}, Count: 1}},
	}
}

// TestPages checks that every page fits, shows the plan's work in a slot, and steps through all slots.
func TestPages(t *testing.T) {
	for _, size := range [][2]int{{60, 16}, {80, 24}, {120, 40}} {
		clock := new(tuitest.Clock)
		f := tui.New(New(example(), []string{"checked: every rule is kept"}, false), tui.Options{Tick: clock.Tick,
			Theme: theme.New(theme.Options{})})
		tuitest.SendMessage(f, tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		clock.Advance(f, tui.FrameInterval)
		shows := func(step string, wants ...string) {
			t.Helper()
			text := f.Text()
			for _, want := range wants {
				if !strings.Contains(text, want) {
					t.Errorf("%v, %s: no %q in\n%s", size, step, want, text)
				}
			}
		}
		press := func(names ...string) {
			tuitest.PressKeys(f, names...)
			clock.Advance(f, tui.FrameInterval)
		}
		shows("at first", "here", "8.0 Gbps", "there", "not here", "slot 0 of 4")
		press(".", ".")
		shows("two slots on", "done", "4.0 Gbps", "slot 2 of 4")
		press(".", ".", ".")
		shows("at the end", "slot 3 of 4")
		press("2")
		shows("units", "0 of 1", "1 of 2")
		press(",", ",", ",", ",")
		shows("back at the start", "1 of 1", "0 of 2", "slot 0 of 4")
		press("3")
		shows("check", "every rule is kept")
	}
}
