package sched

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
)

// sound returns a valid plan, made by hand. Job a crosses from u to v over a connection that is set up in slot 0, which
// costs it 0.1 s of its 10 Gbit/s. Job b arrives in slot 1 and is aggregated in u. Job c stays beside its server in v.
func sound() *Plan {
	p := &Problem{
		Slot: olaf.Second, Reconfiguration: 100 * olaf.Millisecond, Step: olaf.Gbps, PortRate: 20 * olaf.Gbps, ServerRate: 20 * olaf.Gbps,
		Units: []Unit{{Name: "u", Ports: 1, INC: 1, SwitchRate: 60 * olaf.Gbps, Memory: 10}, {Name: "v", Ports: 1}, {Name: "w", Ports: 1}},
		Jobs: []Job{
			{ID: "a", Volume: 19e9 / 8, Update: 300 * olaf.Millisecond, Workers: map[string]int{"u": 2}, Server: "v"},
			{ID: "b", Arrival: 600 * olaf.Millisecond, Volume: 5e9 / 8, Update: olaf.Second, Workers: map[string]int{"u": 4}, Server: "w", Segment: 10},
			{ID: "c", Volume: 5e9 / 8, Workers: map[string]int{"v": 2}, Server: "v"},
		},
	}
	return &Plan{
		Schema: PlanSchema, Problem: p, Slots: 2,
		Jobs: []Assignment{
			{Job: "a", Rates: []float64{10e9, 10e9}, Finish: 2300 * olaf.Millisecond},
			{Job: "b", INC: "u", Start: 1, Rates: []float64{5e9}, Finish: 2 * olaf.Second},
			{Job: "c", Rates: []float64{2.5e9, 2.5e9}, Finish: 2 * olaf.Second},
		},
		Connections: []Change{{Slot: 0, Between: [2]string{"v", "u"}, Count: 1}},
		Outcome:     Outcome{CTBTI: 2300 * olaf.Millisecond, TotalJCT: 5700 * olaf.Millisecond, Reconfigurations: 1},
	}
}

func TestCheckPlanAcceptsSoundPlan(t *testing.T) {
	if v := CheckPlan(sound()); !v.OK() {
		t.Fatalf("%+v", v.Violations)
	}
}

// TestEveryRule checks every rule by breaking the plan in one way at a time.
func TestEveryRule(t *testing.T) {
	for name, c := range map[string]struct {
		breaks func(*Plan)
		rule   Rule
		want   string
	}{
		"job left out":      {func(p *Plan) { p.Jobs = p.Jobs[:2] }, BadForm, "the plan lacks job c"},
		"job twice":         {func(p *Plan) { p.Jobs = append(p.Jobs, p.Jobs[0]) }, BadForm, "serves job a twice"},
		"job of nobody":     {func(p *Plan) { p.Jobs[0].Job = "z" }, BadForm, `serves "z", which is not a job`},
		"no number":         {func(p *Plan) { p.Jobs[0].Rates[1] = math.NaN() }, BadForm, "rate NaN in slot 1"},
		"negative":          {func(p *Plan) { p.Jobs[0].Rates[1] = -1 }, BadForm, "rate -1 in slot 1"},
		"after the end":     {func(p *Plan) { p.Jobs[1].Start = 2 }, BadForm, "sends in slots 2 to 2, but the plan has slots 0 to 1"},
		"no unit":           {func(p *Plan) { p.Jobs[1].INC = "x" }, BadForm, `aggregated in "x", which is not a unit`},
		"too many slots":    {func(p *Plan) { p.Slots = 1 << 30 }, BadForm, "slots; use 0 to"},
		"odd connections":   {func(p *Plan) { p.Connections[0].Count = -1 }, BadForm, "are not possible"},
		"too early":         {func(p *Plan) { p.Jobs[1].Start = 0 }, earlyArrival, "job b sends in slot 0, but it arrives at 600ms, so its first slot is 1"},
		"not for switches":  {func(p *Plan) { p.Problem.Jobs[1].ServerOnly = true }, badAggregator, "is server_only"},
		"elsewhere":         {func(p *Plan) { p.Jobs[1].INC = "v" }, badAggregator, "has no workers in that unit"},
		"not whole":         {func(p *Plan) { p.Problem.Jobs[1].Workers["v"] = 1 }, badAggregator, "whose workers are in 2 units"},
		"no place":          {func(p *Plan) { p.Problem.Units[0].INC = 0 }, overCapacity, "aggregates for 1 jobs in slot 1, but it has room for 0"},
		"no memory":         {func(p *Plan) { p.Problem.Units[0].Memory = 9 }, overMemory, "needs a segment of 10B"},
		"worker too fast":   {func(p *Plan) { p.Problem.ServerRate = 4 * olaf.Gbps }, overServerRate, "above the 4Gbps of their interfaces"},
		"server too slow":   {func(p *Plan) { p.Problem.ServerRate = 15 * olaf.Gbps }, overServerRate, "2 streams of 10 Gbps arrive at the server of a"},
		"switch too slow":   {func(p *Plan) { p.Problem.Units[0].SwitchRate = 39 * olaf.Gbps }, overSwitchRate, "moves 40 Gbps in slot 1, but it can move only 39Gbps"},
		"no ports":          {func(p *Plan) { p.Problem.Units[1].Ports = 0 }, tooManyPorts, "v has 1 connections in slot 0, but only 0 ports"},
		"port too slow":     {func(p *Plan) { p.Problem.PortRate = 19 * olaf.Gbps }, overPortRate, "20 Gbps flow from u to v in slot 0 over 1 connections of 19Gbps"},
		"not connected":     {func(p *Plan) { p.Connections = nil }, overPortRate, "over 0 connections"},
		"fixed":             {func(p *Plan) { p.Problem.Fixed = true }, changedConnection, "change to 1 in slot 0, but they are fixed at 0"},
		"too little":        {func(p *Plan) { p.Jobs[0].Rates[1] = 9e9 }, wrongVolume, "the workers of a in u send 18 of 19 Gb"},
		"set up for free":   {func(p *Plan) { p.Problem.Reconfiguration = 101 * olaf.Millisecond }, wrongVolume, "send 18.99 of 19 Gb"},
		"finish":            {func(p *Plan) { p.Jobs[2].Finish = olaf.Second }, wrongClaim, "the plan ends job c at 1s, but it ends at 2s"},
		"CT-BTI":            {func(p *Plan) { p.Outcome.CTBTI = olaf.Second }, wrongClaim, "claims a CT-BTI of 1s, but the check gives 2.3s"},
		"JCT":               {func(p *Plan) { p.Outcome.TotalJCT = olaf.Second }, wrongClaim, "claims a total JCT of 1s, but the check gives 5.7s"},
		"reconfigurations":  {func(p *Plan) { p.Outcome.Reconfigurations = 0 }, wrongClaim, "reconfigurations of 0, but the check gives 1"},
		"unfinished":        {func(p *Plan) { p.Outcome.Unfinished = []string{"a"} }, wrongClaim, "these unfinished jobs: [a], but the check gives []"},
		"impossible bound":  {func(p *Plan) { p.Proof = &Proof{Bound: 3 * olaf.Second} }, wrongClaim, "no plan has less than 3s, but has less itself: 2.3s"},
		"late update saved": {func(p *Plan) { p.Jobs[0].Finish = 2 * olaf.Second }, wrongClaim, "the plan ends job a at 2s, but it ends at 2.3s"},
	} {
		p := sound()
		c.breaks(p)
		v := CheckPlan(p)
		found := slices.ContainsFunc(v.Violations, func(one Violation) bool { return one.Rule == c.rule && strings.Contains(one.What, c.want) })
		if !found {
			t.Errorf("%s: %+v\nwant %s: %s", name, v.Violations, c.rule, c.want)
		}
		for _, one := range v.Violations {
			// The choice of aggregator determines all flows, so a bad aggregator also violates other rules.
			if one.Rule != c.rule && one.Rule != wrongClaim && c.rule != badAggregator {
				t.Errorf("%s: also %s: %s", name, one.Rule, one.What)
			}
		}
	}
}

// risen returns a plan in which job a rises from 6 to 10 Gbit/s when a second connection is set up in slot 1, so that
// only the additional 4 Gbit/s wait 0.5 s for it. The first connection exists before slot 0 and costs nothing.
func risen() *Plan {
	p := sound()
	p.Problem.Reconfiguration, p.Problem.PortRate = 500*olaf.Millisecond, 10*olaf.Gbps
	p.Problem.Units[0].Ports, p.Problem.Units[1].Ports = 2, 2
	p.Problem.Connections = []Connection{{Between: []string{"u", "v"}, Count: 1}}
	p.Problem.Jobs, p.Jobs = p.Problem.Jobs[:1], p.Jobs[:1]
	p.Problem.Jobs[0].Workers = map[string]int{"u": 1}
	p.Problem.Jobs[0].Volume = 14e9 / 8
	p.Jobs[0].Rates = []float64{6e9, 10e9}
	p.Connections = []Change{{Slot: 1, Between: [2]string{"u", "v"}, Count: 2}}
	p.Outcome = Outcome{CTBTI: 2300 * olaf.Millisecond, TotalJCT: 2300 * olaf.Millisecond, Reconfigurations: 1}
	return p
}

// TestReconfigurationDelaysOnlyTheRise checks that bits at the previous slot's rate still flow while connections are
// set up: only the additional rate is lost for the time of a reconfiguration.
func TestReconfigurationDelaysOnlyTheRise(t *testing.T) {
	p := risen()
	if v := CheckPlan(p); !v.OK() {
		t.Errorf("6 Gb and 10 Gb less 4 Gbit/s for 0.5 s are 14 Gb, so the plan is sound; the checker says %+v", v.Violations)
	}
	p.Problem.Jobs[0].Volume += 1e6
	if v := CheckPlan(p); v.OK() {
		t.Error("8 Mb more than the 14 Gb that arrive must be missed by the checker's sum")
	}
}

// TestConnectionsBeforeSlotZeroAreFree checks that slot 0 counts and charges only connections beyond those that existed
// before it.
func TestConnectionsBeforeSlotZeroAreFree(t *testing.T) {
	p := risen()
	p.Connections[0].Slot = 0
	p.Problem.Jobs[0].Volume = 13e9 / 8 // 6 less 6 Gbit/s for 0.5 s, and 10
	if v := CheckPlan(p); !v.OK() || v.Outcome.Reconfigurations != 1 {
		t.Errorf("one connection of two is new in slot 0: want one reconfiguration and 13 Gb, got %d and %+v", v.Outcome.Reconfigurations, v.Violations)
	}
	p.Connections = nil
	p.Problem.Jobs[0].Volume, p.Outcome.Reconfigurations = 16e9/8, 0
	if v := CheckPlan(p); !v.OK() || v.Outcome.Reconfigurations != 0 {
		t.Errorf("nothing is set up, so all 16 Gb arrive: got %d reconfigurations and %+v", v.Outcome.Reconfigurations, v.Violations)
	}
}

// TestHalfDuplexAddsDirections checks that the traffic in both directions is added up in a half-duplex network.
func TestHalfDuplexAddsDirections(t *testing.T) {
	p := sound()
	p.Problem.Jobs[2].Workers, p.Problem.Jobs[2].Server = map[string]int{"v": 2}, "u"
	p.Problem.Reconfiguration = 0
	if v := CheckPlan(p); !v.OK() {
		t.Fatalf("%+v", v.Violations)
	}
	p.Problem.HalfDuplex = true
	v := CheckPlan(p)
	if !slices.ContainsFunc(v.Violations, func(one Violation) bool {
		return one.Rule == overPortRate && strings.Contains(one.What, "25 Gbps flow")
	}) {
		t.Errorf("%+v", v.Violations)
	}
}

// TestPartialAggregation checks that a switch may aggregate some of the workers if the network allows it, and that
// their sum is one stream.
func TestPartialAggregation(t *testing.T) {
	p := sound()
	p.Problem.PartialINC = true
	p.Problem.Jobs[1].Workers = map[string]int{"u": 2, "w": 1}
	p.Problem.Jobs[0].Workers, p.Jobs[0] = map[string]int{"v": 2}, Assignment{Job: "a", Rates: []float64{9.5e9, 9.5e9}, Finish: 2300 * olaf.Millisecond}
	p.Connections = []Change{{Slot: 1, Between: [2]string{"u", "w"}, Count: 1}}
	p.Problem.PortRate, p.Problem.Reconfiguration = 5*olaf.Gbps, 0
	p.Jobs[1].Finish, p.Outcome.CTBTI, p.Outcome.TotalJCT = 3*olaf.Second, 3*olaf.Second, 6700*olaf.Millisecond
	if v := CheckPlan(p); !v.OK() {
		t.Fatalf("%+v", v.Violations)
	}
	p.Jobs[1].INC = ""
	if v := CheckPlan(p); v.OK() || v.Violations[0].Rule != overPortRate {
		t.Errorf("without the switch two streams share a connection of one: %+v", v.Violations)
	}
}

func TestVerdictSummary(t *testing.T) {
	v := Verdict{Violations: []Violation{{Rule: tooManyPorts}, {Rule: wrongVolume}, {Rule: tooManyPorts}}}
	if got := v.Summary(); got != "ports 2×, volume 1×" {
		t.Error(got)
	}
}

// FuzzCheck checks everything that parses as a plan.
func FuzzCheck(f *testing.F) {
	text, err := json.Marshal(sound())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	f.Add(strings.Replace(string(text), `"slots":2`, `"slots":1000000`, 1))
	f.Fuzz(func(t *testing.T, text string) {
		if p, err := ParsePlan("plan.json", []byte(text)); err == nil {
			CheckPlan(p)
		}
	})
}
