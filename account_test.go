package olaf_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
)

// toy is the ledger of a program that answers every second packet and forwards the others.
var toy = olaf.Ledger{
	Counters: []olaf.Counter{
		{Name: "in", Unit: "packets"}, {Name: "answered"}, {Name: "forwarded"}, {Name: "seen_before", Sparse: true},
		{Name: "overflows"},
	},
	Identities: []olaf.Identity{
		{Left: []string{"in"}, Right: []string{"answered", "forwarded"}, Less: []string{"seen_before"}},
		{Left: []string{"answered"}, Right: []string{"forwarded"}, Void: "overflows", Text: "every second one is answered"},
	},
	Offered: []string{"in"}, Output: []string{"answered", "forwarded"},
}

func toyCounts(values ...int64) olaf.Counts {
	c := olaf.NewCounts(&toy)
	for i, v := range values {
		c.SetAt(i, v)
	}
	return c
}

func TestCountsBalance(t *testing.T) {
	for _, c := range []struct {
		counts olaf.Counts
		broken string // empty for none
	}{
		{toyCounts(4, 2, 2, 0, 0), ""},
		{toyCounts(4, 3, 3, 2, 0), ""},
		{toyCounts(4, 3, 3, 1, 0), "in = answered + forwarded − seen_before: 4 ≠ 5"},
		{toyCounts(4, 1, 3, 0, 0), "every second one is answered: 1 ≠ 3"},
		{toyCounts(4, 1, 3, 0, 1), ""}, // void
		{toyCounts(0, 0, 0, 0, 0), ""},
		{toyCounts(4, 0, 0, -4, 0), "answered + forwarded > 0 where in > 0: 0 of 4"},
		{olaf.Counts{}, ""},
	} {
		err := c.counts.Check()
		if c.broken == "" && err != nil || c.broken != "" &&
			(!errors.Is(err, olaf.ErrAccounting) || !strings.HasSuffix(err.Error(), ": "+c.broken)) {
			t.Errorf("%v: %v, want %q", c.counts, err, c.broken)
		}
	}
	if err := toyCounts(4, 0, 0, -4, 0).Balance(); err != nil {
		t.Errorf("nothing came out, but the identities hold: %v", err)
	}
}

func TestCountsByName(t *testing.T) {
	c := toyCounts(4, 2, 2)
	c.Add("in", 3)
	copied := c.Clone()
	copied.Add("in", 1)
	if c.Of("in") != 7 || copied.Of("in") != 8 || c.Of("nowhere") != 0 || c.Sum("answered", "forwarded") != 4 ||
		c.Index("nowhere") != -1 {
		t.Errorf("%v and %v", c, copied)
	}
	if c.Equal(copied) || !c.Equal(c.Clone()) || !(olaf.Counts{}).Equal(olaf.Counts{}) || c.Equal(olaf.Counts{}) {
		t.Error("equal")
	}
	defer func() {
		if recover() == nil {
			t.Error("a count of nothing that is declared got lost")
		}
	}()
	c.Add("nowhere", 1)
}

func TestCountsInDocuments(t *testing.T) {
	for want, c := range map[string]olaf.Counts{
		`{"in":4,"answered":2,"forwarded":2,"overflows":0}`:                 toyCounts(4, 2, 2),
		`{"in":4,"answered":3,"forwarded":3,"seen_before":2,"overflows":0}`: toyCounts(4, 3, 3, 2),
		`{}`: {},
	} {
		raw, err := json.Marshal(c)
		if err != nil || string(raw) != want {
			t.Errorf("%s, want %s: %v", raw, want, err)
		}
		var back olaf.Counts
		if err := json.Unmarshal(raw, &back); err != nil {
			t.Fatal(err)
		}
		back = back.Under(&toy)
		if again, err := json.Marshal(back); err != nil || string(again) != want || back.Of("answered") != c.Of("answered") {
			t.Errorf("%s came back as %s: %v", want, again, err)
		}
	}
	for _, bad := range []string{`[1]`, `7`, `{"in":1.5}`, `{"in":"1"}`} {
		if err := json.Unmarshal([]byte(bad), new(olaf.Counts)); err == nil {
			t.Errorf("%s was read", bad)
		}
	}
}

// TestCountsOfAnotherBuild checks counts that lack a counter and counts with an unknown one.
func TestCountsOfAnotherBuild(t *testing.T) {
	read := func(raw string) olaf.Counts {
		var c olaf.Counts
		if err := json.Unmarshal([]byte(raw), &c); err != nil {
			t.Fatal(err)
		}
		return c.Under(&toy)
	}
	fewer := read(`{"in":4,"answered":1,"forwarded":1}`)
	if err := fewer.Check(); err == nil || !strings.Contains(err.Error(), "4 ≠ 2") {
		t.Errorf("the sparse counter is 0 where it is not stored: %v", err)
	}
	if row := fewer.Ledger().Counters[0]; row.Unit != "packets" || len(fewer.Ledger().Identities) != 1 {
		t.Errorf("%+v, %v", row, fewer.Ledger().Identities)
	}
	more := read(`{"gone":9,"in":4,"answered":2,"forwarded":2}`)
	if raw, err := json.Marshal(more); err != nil || string(raw) != `{"gone":9,"in":4,"answered":2,"forwarded":2}` ||
		more.Check() != nil {
		t.Errorf("%s: %v", raw, err)
	}
	if err := read(`{"in":4,"answered":0}`).Check(); err != nil {
		t.Errorf("an identity of a counter that is not stored was checked: %v", err)
	}
}

func TestLedgersAreChecked(t *testing.T) {
	if err := toy.Validate(); err != nil {
		t.Error(err)
	}
	for want, l := range map[string]*olaf.Ledger{
		`"in"`: olaf.JoinLedgers(&toy, &toy),
		`""`:   {Counters: []olaf.Counter{{}}},
		`"b"`:  {Counters: []olaf.Counter{{Name: "a"}}, Identities: []olaf.Identity{{Left: []string{"a"}, Right: []string{"b"}}}},
		`"v"`:  {Counters: []olaf.Counter{{Name: "a"}}, Identities: []olaf.Identity{{Left: []string{"a"}, Void: "v"}}},
		`"o"`:  {Output: []string{"o"}},
	} {
		if err := l.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want one that names %s", err, want)
		}
	}
}
