package sched

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/internal/yamlfile"
	"github.com/olafctl/olaf/results/figure"
	"github.com/olafctl/olaf/results/figure/figuretest"
)

const example = `slot: 1s
step: 10Gbps
reconfiguration: 50ms
port_rate: 40Gbps
server_rate: 40Gbps
connections:
  - {between: [r1, spine], count: 2}
units:
  - {name: r, count: 2, ports: 4, inc: 2, memory: 4MB}
  - {name: spine, ports: 8, switch_rate: 1Tbps, memory: 1MB}
jobs:
  - {id: a, volume: 528MB, update: 100ms, workers: {r1: 4}, server: spine}
  - {id: b, arrival: 1.5s, volume: 102MB, workers: {r1: 1, r2: 1}, server: r2, server_only: true}
  - {id: c, volume: 1MB, workers: {r2: 1}, server: r1, segment: 2MB}
`

func TestParse(t *testing.T) {
	p, err := ParseProblem("jobs.yaml", []byte(example))
	if err != nil {
		t.Fatal(err)
	}
	want := []Unit{
		{Name: "r1", Ports: 4, INC: 2, Memory: 4e6}, {Name: "r2", Ports: 4, INC: 2, Memory: 4e6},
		{Name: "spine", Ports: 8, SwitchRate: 1000 * olaf.Gbps, Memory: 1e6},
	}
	ignore := cmpopts.IgnoreTypes(yamlfile.Pos{})
	if diff := cmp.Diff(want, p.Units, ignore); diff != "" {
		t.Error(diff)
	}
	if got := p.Jobs[1].ArrivalSlot(p.Slot); got != 2 {
		t.Errorf("job b arrives in the middle of slot 1; its first slot is %d, want 2", got)
	}
	text, err := p.Text()
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseProblem("jobs.yaml", text)
	if err != nil {
		t.Fatalf("%v of\n%s", err, text)
	}
	if diff := cmp.Diff(p, again, ignore, cmpopts.IgnoreFields(Problem{}, "Schema")); diff != "" {
		t.Error(diff)
	}
}

func TestMistakes(t *testing.T) {
	change := func(from, to string) string {
		if !strings.Contains(example, from) {
			t.Fatalf("the example has no %q", from)
		}
		return strings.Replace(example, from, to, 1)
	}
	for name, c := range map[string]struct{ text, want string }{
		"empty":                {"", "jobs.yaml:1: the file is empty"},
		"unknown field":        {change("port_rate", "port_rat"), `jobs.yaml:4: problem has no field "port_rat"; did you mean "port_rate"?`},
		"no unit":              {change("slot: 1s", "slot: 1"), `jobs.yaml:1: problem.slot: bad quantity: duration "1" has no unit`},
		"no slot":              {change("slot: 1s", "slot: 0s"), "jobs.yaml:1: slot is 0ps; it must be 1us to 3600s, such as 1s"},
		"slow reconfiguration": {change("50ms", "2s"), "jobs.yaml:3: reconfiguration is 2s; it must be 0s to a slot (1s)"},
		"no port rate":         {change("port_rate: 40Gbps\n", ""), "port_rate is 0bps"},
		"no units":             {change("units:\n  - {name: r, count: 2, ports: 4, inc: 2, memory: 4MB}\n  - {name: spine, ports: 8, switch_rate: 1Tbps, memory: 1MB}\n", ""), "there are 0 units; use 1 to 512"},
		"unit twice":           {change("name: spine", "name: r1"), `jobs.yaml:10: unit "r1" appears twice, also in line 9`},
		"unit without name":    {change("name: spine, ", ""), `a unit has the name ""`},
		"negative ports":       {change("ports: 8", "ports: -8"), `jobs.yaml:10: unit "spine" has ports -8; use 0 to 4096`},
		"too many units":       {change("name: r, count: 2", "name: r, count: 2000"), `jobs.yaml:9: unit "r" has count 2000; use 1 to 512`},
		"no capacity":          {change("switch_rate: 1Tbps", "switch_rate: -1bps"), "is negative"},
		"a switch of nothing":  {change("switch_rate: 1Tbps", "switch_rate: 0bps"), "jobs.yaml:10: switch_rate is 0bps; it must be positive"},
		"memory of nothing":    {change("memory: 1MB", "memory: 0B"), `jobs.yaml:10: unit "spine" has memory 0B; omit memory if only inc is a limit`},
		"segment of nothing":   {change("segment: 2MB", "segment: 0B"), `jobs.yaml:14: job "c" has segment 0B; omit segment if only inc is a limit`},
		"a server of nothing":  {change("server_rate: 40Gbps", "server_rate: 0bps"), "jobs.yaml:5: server_rate is 0bps; it must be positive"},
		"connected to itself":  {change("[r1, spine]", "[r1, r1]"), "jobs.yaml:7: a connection is between two units, not [r1 r1]"},
		"connection of nobody": {change("[r1, spine]", "[r1, spin]"), `jobs.yaml:7: between names the unknown unit "spin"; did you mean "spine"?`},
		"too few ports":        {change("count: 2}", "count: 5}"), `jobs.yaml:9: unit "r1" has 4 ports, but its connections before slot 0 need 5`},
		"no connections":       {change("count: 2}", "count: 0}"), "connections between r1 and spine: count 0"},
		"job twice":            {change("id: b", "id: a"), `jobs.yaml:13: job "a" appears twice, also in line 12`},
		"job without id":       {change("id: b, ", ""), `jobs.yaml:13: a job has the id ""`},
		"no volume":            {change("volume: 528MB", "volume: 0B"), `jobs.yaml:12: job "a" has volume 0B; it must be positive`},
		"no workers":           {change("workers: {r1: 4}", "workers: {}"), `jobs.yaml:12: job "a" has no workers`},
		"zero workers":         {change("workers: {r1: 4}", "workers: {r1: 0}"), `jobs.yaml:12: job "a" has 0 workers in r1; use 1 to 4096`},
		"unknown unit":         {change("{r1: 4}", "{r9: 4}"), `jobs.yaml:12: workers names the unknown unit "r9"; did you mean "r1"?`},
		"unknown server":       {change("server: spine", "server: spline"), `jobs.yaml:12: server names the unknown unit "spline"; did you mean "spine"?`},
		"late arrival":         {change("arrival: 1.5s", "arrival: 900h"), `jobs.yaml:13: job "b" has arrival`},
		"memory":               {change("segment: 2MB", "segment: 5MB"), `jobs.yaml:14: job "c" needs a segment of 5000000B, more than any switch has (4000000B); use a smaller segment, or set server_only: true`},
		"no ports":             {change("ports: 4, inc: 2", "ports: 0") /* of r1 and r2 */, "the unit"},
		"wrong schema":         {"schema: olafctl.topology/v1\n" + example, `jobs.yaml:1: schema "olafctl.topology/v1" is not olafctl.jobs/v1`},
		"alias":                {change("id: a,", "id: &x a,") + "  - *x\n", "aliases are not supported"},
	} {
		_, err := ParseProblem("jobs.yaml", []byte(c.text))
		switch {
		case name == "no ports":
			if err == nil || !strings.Contains(err.Error(), `unit "r1" has 0 ports, but its connections before slot 0 need 2`) {
				t.Errorf("%s: %v", name, err)
			}
		case err == nil || !errors.Is(err, ErrProblem) || !strings.Contains(err.Error(), c.want):
			t.Errorf("%s: %v\nwant %s", name, err, c.want)
		}
	}
}

// TestUnservableJobsAreRejected checks that jobs that cannot be served are rejected.
func TestUnservableJobsAreRejected(t *testing.T) {
	base := Problem{Slot: olaf.Second, Step: olaf.Gbps, PortRate: olaf.Gbps, ServerRate: olaf.Gbps,
		Units: []Unit{{Name: "a", Ports: 1}, {Name: "b", Ports: 1}, {Name: "c", Ports: 1}},
		Jobs:  []Job{{ID: "j", Volume: 1, Workers: map[string]int{"a": 1}, Server: "b"}}}
	for name, c := range map[string]struct {
		change func(*Problem)
		want   string
	}{
		"fine":           {func(*Problem) {}, ""},
		"no port":        {func(p *Problem) { p.Units[0].Ports = 0 }, "because a has no ports"},
		"no server port": {func(p *Problem) { p.Units[1].Ports = 0 }, "b has only 0 ports"},
		"a switch helps": {func(p *Problem) { p.Units[0].Ports, p.Units[0].INC = 0, 1 }, ""},
		"it may not":     {func(p *Problem) { p.Units[0].Ports, p.Units[0].INC, p.Jobs[0].ServerOnly = 0, 1, true }, "because a has no ports"},
		"too small":      {func(p *Problem) { p.Units[0] = Unit{Name: "a", INC: 1, Memory: 1}; p.Jobs[0].Segment = 2 }, "because a has no ports"},
		"spread":         {func(p *Problem) { p.Jobs[0].Workers = map[string]int{"a": 1, "c": 1} }, "are in 2 units other than its server's, and b has only 1 ports"},
		"fixed":          {func(p *Problem) { p.Fixed = true }, "have no connection to its server in b"},
		"fixed, wired":   {func(p *Problem) { p.Fixed, p.Connections = true, []Connection{{Between: []string{"b", "a"}, Count: 1}} }, ""},
	} {
		p := base
		p.Units, p.Jobs = append([]Unit(nil), base.Units...), append([]Job(nil), base.Jobs...)
		c.change(&p)
		err := p.Check()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestWithMesh(t *testing.T) {
	p := &Problem{}
	for _, name := range []string{"a", "b", "c", "d"} {
		p.Units = append(p.Units, Unit{Name: name, Ports: 6})
	}
	m := p.WithMesh()
	if len(m.Connections) != 6 || !m.Fixed || p.Fixed {
		t.Fatalf("%+v", m)
	}
	for _, c := range m.Connections {
		if c.Count != 2 {
			t.Errorf("6 ports among 3 others: %v has %d", c.Between, c.Count)
		}
	}
	p.Units[0].Ports = 2
	used := map[string]int{}
	for _, c := range p.WithMesh().Connections {
		used[c.Between[0]] += c.Count
		used[c.Between[1]] += c.Count
	}
	for _, u := range p.Units {
		if used[u.Name] > u.Ports {
			t.Errorf("%s has %d ports and %d connections", u.Name, u.Ports, used[u.Name])
		}
	}
}

func TestRepairs(t *testing.T) {
	for text, want := range map[string]Repairs{
		"all": AllRepairs, "none": 0, "duplex": Duplex, "duplex,enough": Duplex | Enough, "-duplex,-enough": AllRepairs &^ (Duplex | Enough),
	} {
		got, err := ParseRepairs(text)
		if err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
		if again, err := ParseRepairs(got.String()); err != nil || again != got {
			t.Errorf("%s prints as %s, which is %v, %v", text, got, again, err)
		}
	}
	for text, want := range map[string]string{"duplexx": `unknown repair "duplexx"; use volume, `, "duplex,-enough": "mixes", "": "unknown repair"} {
		if _, err := ParseRepairs(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if n := len(AllRepairs.Names()); n != len(repairList()) {
		t.Errorf("%d names of %d repairs", n, len(repairList()))
	}
}

func TestParsePlan(t *testing.T) {
	problem, err := ParseProblem("jobs.yaml", []byte(example))
	if err != nil {
		t.Fatal(err)
	}
	plan := &Plan{Schema: PlanSchema, Policy: Policy{"tw", AllRepairs &^ Enough}, Problem: problem, Slots: 2,
		Jobs:        []Assignment{{Job: "a", INC: "r1", Start: 0, Rates: []float64{1e10, 2.5}, Finish: 2 * olaf.Second}},
		Connections: []Change{{Slot: 1, Between: [2]string{"r1", "r2"}, Count: 1}}, Outcome: Outcome{CTBTI: 2 * olaf.Second, Unfinished: []string{"b"}},
		Proof: &Proof{Solver: "cbc", Status: Within, Bound: olaf.Second, GapPct: 50}}
	text, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParsePlan("plan.json", text)
	if err != nil {
		t.Fatal(err)
	}
	ignore := []cmp.Option{cmpopts.IgnoreTypes(yamlfile.Pos{}), cmpopts.IgnoreFields(Problem{}, "File", "Schema")}
	if diff := cmp.Diff(plan, got, ignore...); diff != "" {
		t.Error(diff)
	}
	for name, c := range map[string]struct{ text, want string }{
		"no JSON":    {"{\n\"schema\": x}", "bad plan: plan.json:2: "},
		"wrong type": {"{\"schema\": \"olafctl.schedule/v1\",\n \"slots\": \"many\"}", "bad plan: plan.json:2: "},
		"newer":      {`{"schema": "olafctl.schedule/v2"}`, `schema "olafctl.schedule/v2" is not olafctl.schedule/v1`},
		"no problem": {`{"schema": "olafctl.schedule/v1"}`, "it has no problem section"},
		"bad":        {`{"schema": "olafctl.schedule/v1", "problem": {"slot": "1s"}}`, "plan.json: there are 0 units"},
	} {
		if _, err := ParsePlan("plan.json", []byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// TestParsePlanOrders checks that readers get a plan's jobs in the order of the problem, whatever the order in the
// file.
func TestParsePlanOrders(t *testing.T) {
	problem, err := ParseProblem("jobs.yaml", []byte(example))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(&Plan{Schema: PlanSchema, Problem: problem, Jobs: []Assignment{{Job: "nobody"}, {Job: "c"}, {Job: "b"}, {Job: "a"}, {Job: "b", Start: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParsePlan("plan.json", text)
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, a := range got.Jobs {
		order = append(order, fmt.Sprint(a.Job, a.Start))
	}
	if want := "a0 b0 b1 c0 nobody0"; strings.Join(order, " ") != want {
		t.Errorf("%v, want %s", order, want)
	}
}

func TestDifferences(t *testing.T) {
	a, _ := ParseProblem("", []byte(example))
	b, _ := ParseProblem("", []byte(example))
	if got := Differences(a, b); got != nil {
		t.Errorf("equal problems differ: %v", got)
	}
	b.Units[0].Ports, b.Jobs[2].Server, b.Jobs[0].ID = 3, "spine", "z"
	b.Connections = nil
	got := strings.Join(Differences(a, b), "\n")
	for _, want := range []string{"connections before slot 0: ", "ports of r1: 4 and 3", "job z: none and one", "server of c: r1 and spine"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nwithout %q", got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(example)
	f.Add("units: [{name: r, count: 600}]\n")
	f.Add("jobs: [{id: a, workers: {r1: 99999999999999999999}}]\n")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParseProblem("jobs.yaml", []byte(text))
		if (p == nil) == (err == nil) && p == nil {
			t.Fatal("neither a problem nor an error")
		}
		if err != nil {
			if !errors.Is(err, ErrProblem) {
				t.Fatalf("%v is no ErrProblem", err)
			}
			return
		}
		p.Instance(true)
		if out, err := p.Text(); err != nil {
			t.Fatal(err)
		} else if _, err := ParseProblem("again.yaml", out); err != nil {
			t.Fatalf("%v of\n%s", err, out)
		}
	})
}

func FuzzParsePlan(f *testing.F) {
	p, err := ParseProblem("jobs.yaml", []byte(example))
	if err != nil {
		f.Fatal(err)
	}
	text, err := json.Marshal(&Plan{Schema: PlanSchema, Problem: p, Jobs: []Assignment{{Job: "a", Rates: []float64{1}}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := ParsePlan("plan.json", []byte(text)); err != nil && !errors.Is(err, ErrPlan) && !errors.Is(err, ErrProblem) {
			t.Fatalf("%v is neither ErrPlan nor ErrProblem", err)
		}
	})
}

// TestDrawingIsComplete checks that a drawing has nothing cut, covered or unnamed, and no bar before a job arrives.
func TestDrawingIsComplete(t *testing.T) {
	p := &Problem{
		Slot: olaf.Second, Step: 10 * olaf.Gbps, PortRate: 40 * olaf.Gbps, ServerRate: 40 * olaf.Gbps,
		Units: []Unit{{Name: "a", Ports: 1, INC: 1}, {Name: "b", Ports: 1}},
		Jobs: []Job{
			{ID: "here", Volume: 1e9, Workers: map[string]int{"a": 2}, Server: "a"},
			{ID: "there", Arrival: olaf.Second, Volume: 1e9, Update: 100 * olaf.Millisecond, Workers: map[string]int{"a": 1}, Server: "b"},
		},
	}
	plan := &Plan{
		Policy: Policy{Name: "by hand"}, Problem: p, Slots: 4, Outcome: Outcome{CTBTI: 4100 * olaf.Millisecond, Reconfigurations: 1},
		Jobs: []Assignment{{Job: "here", INC: "a", Rates: []float64{8e9}, Finish: olaf.Second},
			{Job: "there", Start: 2, Rates: []float64{4e9, 4e9}, Finish: 4100 * olaf.Millisecond}},
		Connections: []Change{{Slot: 2, Between: [2]string{"a", "b"}, Count: 1}},
	}
	for _, s := range plan.Sheets(0) {
		var svg bytes.Buffer
		if err := figure.Write(&svg, "svg", &s); err != nil {
			t.Fatal(err)
		}
		if faults, err := figuretest.FindFaults(&svg); err != nil || len(faults) > 0 {
			t.Errorf("%s: %v, %v", s.Name, faults, err)
		}
		if strings.Contains(svg.String(), "before") {
			t.Errorf("%s names the room before a job", s.Name)
		}
	}
	row := plan.Sheets(0)[0].Rows[1]
	for i, want := range []float64{1, 1, 2, 0.1, 4.1} {
		if row[i+1].Number != want {
			t.Errorf("column %d of the second job is %v, want %v", i+1, row[i+1].Number, want)
		}
	}
}
