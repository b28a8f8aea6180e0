package metric

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/olafctl/olaf"
)

// queue returns a small declaration: a counter that is part of the loss, a sparse one, and one with Aside set.
func queue() *Declaration {
	flow := &olaf.Ledger{
		Counters: []olaf.Counter{
			{Name: "in", Title: "In", Unit: "updates", Aside: true},
			{Name: "dropped", Title: "Dropped", Unit: "updates", Column: "DROP"},
			{Name: "late", Title: "Late", Unit: "updates"},
			{Name: "odd", Title: "Odd", Unit: "updates", Sparse: true},
			{Name: "delivered", Title: "Delivered", Unit: "frames", Aside: true},
		},
		Output: []string{"delivered"}, Parts: []string{"dropped", "late"},
	}
	sums := &olaf.Ledger{Counters: []olaf.Counter{{Name: "count_delivered", Title: "Inside", Unit: "updates",
		Aside: true}}}
	return OfQueue(flow, sums)
}

// TestOfQueue checks the order of a run's counters, and each counter's role in tables.
func TestOfQueue(t *testing.T) {
	d := queue()
	at := func(name string) int {
		return slices.IndexFunc(d.Ledger.Counters, func(c olaf.Counter) bool { return c.Name == name })
	}
	if !(at("sent") < at("in") && at("in") < at("received") && at("received") < at("count_delivered")) {
		t.Errorf("counters are in the order %v", d.Ledger.Counters)
	}
	for name, want := range map[string]Metric{
		"dropped": {Part: "DROP"}, "late": {Part: "Late"}, "odd": {Sparse: true}, "lost_pct": {Column: "LOST %"},
	} {
		m := d.Metric(name)
		if m == nil || m.Part != want.Part || m.Column != want.Column || m.Sparse != want.Sparse {
			t.Errorf("%s is %+v, want %+v", name, m, want)
		}
	}
	if d.Metric("in") != nil || d.Metric("nowhere") != nil {
		t.Error("what is aside is a metric")
	}
	if c := CountOf(&olaf.Counter{Name: "x", Title: "X", Column: "COL"}); c.Part != "" || c.Column != "COL" ||
		c.Counter != "x" || !c.IsDeclared() {
		t.Errorf("%+v", c)
	}
	if (&Metric{Name: "x"}).IsDeclared() || !(&Metric{Of: func(*Measured) Float { return 1 }}).IsDeclared() {
		t.Error("declared is what is counted or measured")
	}
}

// TestEvaluate checks values from counters and from measurements.
func TestEvaluate(t *testing.T) {
	d := queue()
	c := olaf.NewCounts(d.Ledger)
	c.Add("sent", 8)
	c.Add("dropped", 3)
	half := &Metric{Name: "half", Of: func(m *Measured) Float { return Float(m.Counts.Of("sent")) / 2 }}
	v := Evaluate([]*Metric{d.Metric("dropped"), half}, &Measured{Counts: c})
	if v.Of("dropped") != 3 || v.Of("half") != 4 || v.Of("nowhere").Known() {
		t.Errorf("%v", v)
	}
	var none *Declaration
	if v, missing := none.Measure(&Measured{}); len(v.metrics) != 0 || len(missing) != 0 {
		t.Errorf("of nothing: %v, %v", v, missing)
	}
}

// TestMissingSaysWhy checks the reasons for missing values in a run in which nothing was sent.
func TestMissingSaysWhy(t *testing.T) {
	d := queue()
	v, missing := d.Measure(&Measured{Counts: olaf.NewCounts(d.Ledger),
		AgeBelow: func(float64) Float { return Missing() }})
	if v.Of("lost_pct").Known() || missing["lost_pct"] != "nothing was sent" {
		t.Errorf("%v for %q", v.Of("lost_pct"), missing["lost_pct"])
	}
	if v.Has("dropped") {
		t.Error("a count was measured")
	}
}

// TestAmong checks that a declaration is reduced to the names that a stored run has.
func TestAmong(t *testing.T) {
	d := queue()
	values := Values{[]*Metric{d.Metric("lost_pct")}, []Float{1}}
	all, _ := d.Measure(&Measured{Counts: olaf.NewCounts(d.Ledger), AgeBelow: func(float64) Float { return Missing() }})
	if d.ForStored(olaf.NewCounts(d.Ledger), all) != d {
		t.Error("a run that has everything has another declaration")
	}
	copied := *d.Ledger
	if d.ForStored(olaf.NewCounts(&copied), all) == d {
		t.Error("a run of another ledger has the same declaration")
	}
	if some := (Values{all.metrics[1:], all.values[1:]}); d.ForStored(olaf.NewCounts(d.Ledger), some) == d {
		t.Error("a run without a metric has the same declaration")
	}
	less := &olaf.Ledger{Counters: []olaf.Counter{{Name: "dropped"}}}
	part := d.ForStored(olaf.NewCounts(less), values)
	var names []string
	for _, m := range part.Metrics {
		names = append(names, m.Name)
	}
	// Sparse counters are 0 if they are absent; lost is a sum of counters that this ledger lacks.
	for name, want := range map[string]bool{"dropped": true, "late": false, "odd": true, "lost": false,
		"lost_pct": true, "aom_p50_ns": false} {
		if slices.Contains(names, name) != want {
			t.Errorf("%s: %v, in %v", name, !want, names)
		}
	}
	foreign := Values{[]*Metric{{Name: "of another"}, d.Metric("lost_pct")}, []Float{1, 2}}
	part = d.ForStored(olaf.NewCounts(less), foreign)
	if got := part.Metric("of another"); got == nil || part.Metric("lost_pct") != d.Metric("lost_pct") {
		t.Errorf("%+v", part)
	}
	if n := len(part.Metrics); n != len(names)+1 {
		t.Errorf("%d metrics, want one more than %d", n, len(names))
	}
	under := foreign.Under(d)
	if under.metrics[0] != foreign.metrics[0] || under.metrics[1] != d.Metric("lost_pct") || under.Of("of another") != 1 {
		t.Errorf("%+v", under)
	}
}

// TestUnionOfDeclarations checks that every name occurs once, as in the first declaration that has it.
func TestUnionOfDeclarations(t *testing.T) {
	a, b, again := &Metric{Name: "a"}, &Metric{Name: "b"}, &Metric{Name: "a", Unit: "other"}
	u := Union(&Declaration{Metrics: []*Metric{a}}, &Declaration{Metrics: []*Metric{again, b}}, new(Declaration))
	if !slices.Equal(u.Metrics, []*Metric{a, b}) || len(Union().Metrics) != 0 {
		t.Errorf("%+v", u.Metrics)
	}
}

// TestInline checks that the members of an object replace it, with the right number of commas.
func TestInline(t *testing.T) {
	type object map[string]int
	for want, v := range map[string]any{
		`{"a":1,"x":2,"b":3}`: struct {
			A int    `json:"a"`
			H object `json:"*"`
			B int    `json:"b"`
		}{1, object{"x": 2}, 3},
		`{"a":1,"b":3}`: struct {
			A int    `json:"a"`
			H object `json:"*"`
			B int    `json:"b"`
		}{1, object{}, 3},
		`{"a":1}`: struct {
			A int    `json:"a"`
			H object `json:"*"`
		}{1, object{}},
		`{"b":"<}\"{"}`: struct {
			H object `json:"*"`
			B string `json:"b"`
		}{object{}, `<}"{`},
		`{}`: struct {
			H object `json:"*"`
		}{object{}},
		`{"y":{"z":1},"s":"}"}`: struct {
			H map[string]any `json:"*"`
			S string         `json:"s"`
		}{map[string]any{"y": object{"z": 1}}, "}"},
		`{"q":"a\"}b"}`: struct {
			H map[string]string `json:"*"`
		}{map[string]string{"q": `a"}b`}},
	} {
		got, err := Inline(v)
		if err != nil || string(got) != want {
			t.Errorf("got %s, want %s: %v", got, want, err)
		}
	}
	if _, err := Inline(math.NaN()); err == nil {
		t.Error("what can't be written is no error")
	}
}

// TestMembers checks that an object's members are read in order, and that other values are rejected.
func TestMembers(t *testing.T) {
	read := func(text string) (got []string, err error) {
		err = EachMember([]byte(text), func(name string, value json.RawMessage) error {
			got = append(got, name+"="+string(value))
			if name == "stop" {
				return errors.New("stopped")
			}
			return nil
		})
		return got, err
	}
	if got, err := read(`{"b":1,"a":[2]}`); err != nil || !slices.Equal(got, []string{"b=1", "a=[2]"}) {
		t.Errorf("%v, %v", got, err)
	}
	for text, want := range map[string]string{"[1]": "an object is expected", "": "EOF", `{"a":`: "EOF",
		`{"a":1,`: "EOF", `{"a":1,}`: "invalid", `{"stop":1,"b":2}`: "stopped"} {
		if got, err := read(text); err == nil || !strings.Contains(err.Error(), want) || len(got) > 1 {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

// TestSeries checks the summaries of several values, of one, and of none.
func TestSeries(t *testing.T) {
	for _, c := range []struct {
		values          []Float
		mean, max, jain Float
	}{
		{nil, Missing(), Missing(), Missing()},
		{[]Float{Missing()}, Missing(), Missing(), Missing()},
		{[]Float{0, 0}, 0, 0, Missing()},
		{[]Float{-3}, -3, -3, 1},
		{[]Float{1}, 1, 1, 1},
		{[]Float{1, Missing(), 4, 3}, 8.0 / 3, 4, 64.0 / (3 * 26)},
		{[]Float{5, 2, -1}, 2, 5, 36.0 / (3 * 30)},
	} {
		var s Series
		for _, v := range c.values {
			s.Add(v)
		}
		if d := cmp.Diff([]Float{c.mean, c.max, c.jain}, []Float{s.Mean(), s.Max(), s.Jain()},
			cmp.Comparer(func(a, b Float) bool { return a == b || !a.Known() && !b.Known() })); d != "" {
			t.Errorf("%v: %s", c.values, d)
		}
	}
}

// TestValuesAreWithheld checks that known ages are removed and that their names are returned.
func TestValuesAreWithheld(t *testing.T) {
	v := Values{[]*Metric{{Name: "age", Age: true}, {Name: "gone", Age: true}, {Name: "rate"}}, []Float{1, Missing(), 3}}
	var told []string
	v.Withhold(func(name string) { told = append(told, name) })
	if !slices.Equal(told, []string{"age"}) || v.Of("age").Known() || v.Of("rate") != 3 {
		t.Errorf("%v, %v", told, v)
	}
	raw, err := json.Marshal(v)
	if err != nil || string(raw) != `{"age":null,"gone":null,"rate":3}` {
		t.Errorf("%s, %v", raw, err)
	}
	var back Values
	if err := json.Unmarshal([]byte(`{"a":0.1,"b":null}`), &back); err != nil || back.Of("a") != 0.1 ||
		!back.Has("b") || back.Of("b").Known() {
		t.Errorf("%v, %v", back, err)
	}
	if err := json.Unmarshal([]byte(`{"a":"x"}`), &back); err == nil || !strings.Contains(err.Error(), "metric a") {
		t.Errorf("%v", err)
	}
}
