package sweep

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/figure"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/table"
	"github.com/olafctl/olaf/results/text"
)

// lotOf returns a result with some values of one metric.
func lotOf(t *testing.T, name string, values ...float64) json.RawMessage {
	t.Helper()
	lot := Lot{Metrics: []string{name}}
	for i, v := range values {
		lot.Runs = append(lot.Runs, Run{Seed: uint64(i), Values: []results.Float{results.Float(v)}})
	}
	raw, err := json.Marshal(&lot)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// example returns a sweep of slots and systems in which a is younger than b from 4 slots on, and older below.
func example(t *testing.T) *Document {
	t.Helper()
	d := &Document{Schema: Schema, Command: "bench", Subject: "system", Rule: "5 runs each", Config: json.RawMessage(`{}`),
		Axes:    []Axis{{Name: "slots", Values: []string{"2", "4", "8"}, Numbers: []float64{2, 4, 8}}, {Name: "system", Values: []string{"a", "b"}}},
		Metrics: []Shown{{Name: "age_ns", Title: "Age", Unit: "ns"}}}
	var cells []Outcome
	for i, centre := range [][2]float64{{130, 100}, {80, 100}, {60, 100}} {
		for k, v := range centre {
			cells = append(cells, Outcome{Parameters: []string{d.Axes[0].Values[i], d.Axes[1].Values[k]}, At: []int{i, k}, State: Done,
				Lots: []json.RawMessage{lotOf(t, "age_ns", v-1, v+2, v, v+1, v-2), lotOf(t, "age_ns", v+float64(k))}, Keys: []string{"x"}})
		}
	}
	if err := d.Fill(cells, func(string) *metric.Metric { return nil }); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDocument(t *testing.T) {
	d := example(t)
	if len(d.Cells) != 6 || d.Cells[0].Runs != 6 || d.Cells[0].Statistics.Of("age_ns").Mean != 130 || d.Partial || d.Err() != nil {
		t.Errorf("%+v, %v", d.Cells[0], d.Err())
	}
	var signs []string
	for _, c := range d.Comparisons {
		signs = append(signs, c.Sign)
	}
	if got := strings.Join(signs, " "); got != "higher lower lower" {
		t.Error(got)
	}
	if len(d.Crossings) != 1 || d.Crossings[0].After != "2" || d.Crossings[0].Before != "4" || d.Crossings[0].From != higher {
		t.Errorf("%+v", d.Crossings)
	}
	two := Crossing{Metric: "age_ns", Subject: "a", Versus: "b", Axis: "slots", From: higher, To: lower, After: "2", Before: "4", Parameters: map[string]Value{"rate": "5"}}
	same, later := two, two
	same.Parameters, later.Parameters, later.After, later.Before = map[string]Value{"rate": "10"}, map[string]Value{"rate": "20"}, "4", "8"
	if got, want := describeCrossings([]Crossing{two, same, later}), "age_ns: a's is higher than b's up to slots 2, and lower from 4 on (rate 5; rate 10), "+
		"up to 4 and from 8 on (rate 20)"; len(got) != 1 || got[0] != want {
		t.Errorf("crossings of one comparison take one sentence, %q, not %q", want, got)
	}
	s := d.Sensitivity[0]
	sum := float64(s.Rest)
	for _, share := range s.Shares {
		sum += float64(share.Share)
	}
	if sum < 0.999 || sum > 1.001 {
		t.Errorf("%+v add up to %v", s, sum)
	}
	raw, err := json.Marshal(d)
	if err != nil || !bytes.Contains(raw, []byte(`"slots":2,`)) {
		t.Errorf("%s, %v", raw, err)
	}
	sheets, err := Sheets(raw)
	if err != nil || len(sheets) != 5 {
		t.Fatal(len(sheets), err)
	}
	if got := sheets[1].Columns[1].Header; got != "system a" || len(sheets[1].Charts) != 1 {
		t.Error(got)
	}
	if c := sheets[4].Rows[0][0]; c.Kind != table.Number || c.Number != 2 {
		t.Error(c)
	}
}

// TestAnalysisIsInEveryOutput checks that maps, crossings, sensitivity and fronts are in workbook, report and terminal
// and can be drawn.
func TestAnalysisIsInEveryOutput(t *testing.T) {
	d := &Document{Schema: Schema, Command: "bench", Subject: "system", Rule: "6 runs each", Config: json.RawMessage(`{}`),
		Axes: []Axis{{Name: "slots", Values: []string{"2", "4", "8"}, Numbers: []float64{2, 4, 8}}, {Name: "rate", Values: []string{"5Gbps", "9Gbps"}, Unit: "bps", Numbers: []float64{5e9, 9e9}},
			{Name: "system", Values: []string{"a", "b"}}},
		Metrics: []Shown{{Name: "age_ns", Title: "Age", Unit: "ns"}, {Name: "lost_pct", Title: "Lost", Unit: "%"}}}
	var cells []Outcome
	for i := range 3 {
		for r := range 2 {
			for k := range 2 {
				age := map[bool]float64{true: 150 - 40*float64(i), false: 100 + 5*float64(r)}[k == 0]
				lot := Lot{Metrics: []string{"age_ns", "lost_pct"}}
				for n := range 6 {
					noise := float64(n%3) - 1
					lot.Runs = append(lot.Runs, Run{Seed: uint64(n), Values: []results.Float{results.Float(age + noise*float64(k+1)), results.Float(10*float64(i) + 5*float64(k) + noise*float64(k+1)/9)}})
				}
				raw, err := json.Marshal(&lot)
				if err != nil {
					t.Fatal(err)
				}
				cells = append(cells, Outcome{Parameters: []string{d.Axes[0].Values[i], d.Axes[1].Values[r], d.Axes[2].Values[k]}, At: []int{i, r, k}, State: Done, Lots: []json.RawMessage{raw}, Keys: []string{"x"}})
			}
		}
	}
	if err := d.Fill(cells, func(string) *metric.Metric { return nil }); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	sheets, err := Sheets(raw)
	if err != nil {
		t.Fatal(err)
	}
	drawn := map[string]bool{}
	for i := range sheets {
		s := &sheets[i]
		for k, row := range s.Rows {
			if len(row) != len(s.Columns) {
				t.Errorf("%s: row %d has %d cells in %d columns", s.Name, k, len(row), len(s.Columns))
			}
		}
		if !figure.HasData(s) {
			drawn[s.Name] = false
			continue
		}
		var svg bytes.Buffer
		if err := figure.SVG(&svg, s); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
		drawn[s.Name] = true
	}
	want := map[string]bool{"Cells": false, "age_ns": true, "lost_pct": true, "Map 1 age_ns": true, "Map 1 lost_pct": true, "Crossings": false, "Sensitivity": true, "Pareto": true, "Sweep comparisons": false}
	if diff := cmp.Diff(want, drawn); diff != "" {
		t.Error(diff)
	}
	var page bytes.Buffer
	if err := d.WriteText(&page, text.View{}); err != nil {
		t.Fatal(err)
	}
	said := strings.Join(strings.Fields(page.String()), " ")
	for _, want := range []string{"rate \\ slots 2 4 8", "a's is higher than b's up to slots 4, and lower from 8 on (rate 5Gbps;", "of the variance over the cells, slots", "no other cell beats in both age_ns", "power: in every place"} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in\n%s", want, &page)
		}
	}
}

func TestText(t *testing.T) {
	var page bytes.Buffer
	if err := example(t).WriteText(&page, text.View{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"A's Age is lower than b's in 2 of 3 places and higher in 1", "a's is higher than b's up to slots 2, and lower from 4 on", "valid: 6 of 6 cells, 36 runs", "digest "} {
		if !strings.Contains(strings.Join(strings.Fields(page.String()), " "), want) {
			t.Errorf("no %q in\n%s", want, &page)
		}
	}
	for line := range strings.Lines(page.String()) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 80 {
			t.Errorf("%d characters: %s", n, line)
		}
	}
}

// TestWideMaps checks that a map with more values than fit is printed as characters that represent the values.
func TestWideMaps(t *testing.T) {
	d := &Document{Axes: []Axis{{Name: "x"}, {Name: "y", Values: []string{"1", "2"}, Numbers: []float64{1, 2}}}, Metrics: []Shown{{Name: "m", Title: "M"}}, Rule: "1 run each"}
	var cells []Outcome
	for i := range 40 {
		d.Axes[0].Values, d.Axes[0].Numbers = append(d.Axes[0].Values, fmt.Sprint(1000+i)), append(d.Axes[0].Numbers, float64(1000+i))
	}
	for i := range 40 {
		for k := range 2 {
			cells = append(cells, Outcome{Parameters: []string{d.Axes[0].Values[i], d.Axes[1].Values[k]}, At: []int{i, k}, State: Done, Lots: []json.RawMessage{lotOf(t, "m", float64(i*(k+1)))}})
		}
	}
	if err := d.Fill(cells, func(string) *metric.Metric { return nil }); err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	if err := d.WriteText(&page, text.View{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(page.String(), "1 |.....") || !strings.Contains(page.String(), "@|\n") {
		t.Error(page.String())
	}
}

// TestDigestIsOfResults checks that the digest depends only on parameters and results.
func TestDigestIsOfResults(t *testing.T) {
	axes := []Axis{{Name: "x", Values: []string{"1"}}}
	one := func() []Outcome {
		return []Outcome{{Parameters: []string{"1"}, State: Done, Lots: []json.RawMessage{lotOf(t, "m", 1)}, Keys: []string{"k"}}}
	}
	want := digest(axes, one())
	same := one()
	same[0].Keys = []string{"another build's"}
	if digest(axes, same) != want {
		t.Error("keys are in the digest")
	}
	for name, change := range map[string]func([]Outcome){
		"value":  func(c []Outcome) { c[0].Lots[0] = lotOf(t, "m", 2) },
		"state":  func(c []Outcome) { c[0].State = Failed },
		"places": func(c []Outcome) { c[0].Parameters[0] = "2" },
		"more":   func(c []Outcome) { c[0].Lots = append(c[0].Lots, lotOf(t, "m", 1)) },
	} {
		other := one()
		if change(other); digest(axes, other) == want {
			t.Errorf("another %s has the same digest", name)
		}
	}
}

func TestFailedAndInvalid(t *testing.T) {
	d := example(t)
	d.Cells[1].State, d.Cells[1].Error = Failed, "boom"
	if err := d.Err(); !errors.Is(err, ErrFailed) || !strings.Contains(err.Error(), "boom") {
		t.Error(err)
	}
	d = example(t)
	d.Cells[2].InvalidRuns, d.Cells[2].Reasons = 1, []string{"seed 3: odd"}
	if err := d.Err(); !errors.Is(err, ErrFailed) || !strings.Contains(err.Error(), "odd") {
		t.Error(err)
	}
	d.Differences = []string{"x"}
	if err := d.Err(); !errors.Is(err, ErrDiffers) {
		t.Error(err)
	}
}

func TestValues(t *testing.T) {
	for text, want := range map[Value]string{"2": "2", "0.25": "0.25", "5Gbps": `"5Gbps"`, "olaf": `"olaf"`, "true": `"true"`, "null": `"null"`, "": `""`, "1e3": "1e3"} {
		raw, err := json.Marshal(text)
		var back Value
		if err := errors.Join(err, json.Unmarshal(raw, &back)); string(raw) != want || back != text || err != nil {
			t.Errorf("%q: %s, %q, %v", text, raw, back, err)
		}
	}
}

func TestFront(t *testing.T) {
	d := &Document{}
	for _, xy := range [][2]float64{{1, 9}, {2, 5}, {3, 6}, {4, 1}, {2, 5}} {
		stat := func(v float64) results.Statistic { return results.Describe([]results.Float{results.Float(v)}, "") }
		d.Cells = append(d.Cells, Cell{Statistics: results.Stats{{Metric: &metric.Metric{Name: "lost"}, Statistic: stat(xy[0])}, {Metric: &metric.Metric{Name: "t"}, Statistic: stat(xy[1])}}})
	}
	if got := d.front(&Shown{Name: "lost"}, &Shown{Name: "t", Unit: "ns"}).Cells; cmp.Diff(got, []int{0, 1, 4, 3}) != "" {
		t.Error(got)
	}
	for i := range d.Cells {
		d.Cells[i].Statistics[0].Metric = &metric.Metric{Name: "gained"}
	}
	if got := d.front(&Shown{Name: "gained"}, &Shown{Name: "t", Unit: "ns"}).Cells; cmp.Diff(got, []int{3}) != "" {
		t.Error(got)
	}
}

func TestParseEnough(t *testing.T) {
	for text, want := range map[string]float64{"ci=2%": 0.02, "ci=0.05": 0.05, "ci = 0.5 %": 0.005} {
		if e, err := ParseEnough(text); err != nil || e.Within != want {
			t.Error(text, e, err)
		}
	}
	for _, text := range []string{"", "2%", "ci=", "ci=0", "ci=100%", "ci=-1%", "ci=nan", "sd=2%"} {
		if _, err := ParseEnough(text); !errors.Is(err, ErrRule) {
			t.Error(text, err)
		}
	}
}

// TestEnoughKeepsItsLevel applies the rule many times: the interval at which it stops contains the mean in at least 95
// % of cases. The plain interval, with as many looks, does not.
func TestEnoughKeepsItsLevel(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const mean, sd, times, most = 100, 30, 300, 40
	stops := func(level func(e *Enough, look int) float64) (misses int) {
		e := &Enough{Within: 0.1}
		for range times {
			var values []float64
			for look := 1; look <= most; look++ {
				for range 5 {
					values = append(values, mean+sd*random.NormFloat64())
				}
				sum := 0.0
				for _, v := range values {
					sum += v
				}
				width, got := halfWidth(values, level(e, look)), sum/float64(len(values))
				if width <= e.Within || look == most {
					if got-width*got > mean || got+width*got < mean {
						misses++
					}
					break
				}
			}
		}
		return misses
	}
	corrected := stops((*Enough).Level)
	plain := stops(func(*Enough, int) float64 { return alpha })
	if corrected > times*alpha {
		t.Errorf("the corrected interval misses %d of %d times", corrected, times)
	}
	if plain <= times*alpha {
		t.Errorf("the plain interval misses %d of %d times only: the test shows nothing", plain, times)
	}
	t.Logf("misses: corrected %d, plain %d of %d", corrected, plain, times)
}

// TestLevelsAddUpToFivePercent checks that look k uses 5 % · 6/(π²k²), so that all looks together err in 5 % of cases.
func TestLevelsAddUpToFivePercent(t *testing.T) {
	e, sum := &Enough{}, 0.0
	for look := 1; look <= 100_000; look++ {
		level := e.Level(look)
		if want := e.Level(1) / float64(look) / float64(look); math.Abs(level-want) > 1e-15 {
			t.Fatalf("look %d spends %v; it must spend the first look's level over %d squared, %v", look, level, look, want)
		}
		sum += level
	}
	if sum > 0.05 || sum < 0.0499 {
		t.Errorf("100,000 looks spend %v together; all looks together must spend 0.05 and no more", sum)
	}
}

func TestDecide(t *testing.T) {
	e := &Enough{Within: 0.1}
	lots := func(values ...float64) []*Lot {
		lot, err := ParseLot(lotOf(t, "m", values...))
		if err != nil {
			t.Fatal(err)
		}
		return []*Lot{lot}
	}
	for _, c := range []struct {
		values []float64
		want   bool
	}{{[]float64{5}, false}, {[]float64{0, 0, 0}, true}, {[]float64{7, 7}, true}, {[]float64{1, 9, 5}, false}, {[]float64{100, 101, 99, 100, 100, 100}, true}, {[]float64{-1, 1}, false}} {
		if got, width := e.Decide(lots(c.values...), []string{"m", "absent"}, 1); got != c.want {
			t.Errorf("%v: %v, %v", c.values, got, width)
		}
	}
}

// TestDetectable checks values against tables of the t distribution: 2.262 and 0.883 at 9 degrees of freedom.
func TestDetectable(t *testing.T) {
	if got, want := detectable(10, 10), (2.2622+0.8834)*10/3.16228; got < want-0.01 || got > want+0.01 {
		t.Error(got, want)
	}
}
