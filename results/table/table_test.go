package table

import (
	"encoding/csv"
	"encoding/json"
	"math"
	"strings"
	"testing"
)

func sheet() *Sheet {
	return &Sheet{Name: "T", Columns: []Column{{Header: "queue"}, {Header: "AoM", Unit: "ns", Format: Fixed1},
		{Header: "received", Unit: "frames", Format: Integer}},
		Rows:  [][]Cell{{S("fifo"), N(1234.56), I(6109)}, {S("olaf, new"), Missing("needs provenance"), I(math.MaxInt64)}},
		Notes: []string{"one note"}}
}

func TestText(t *testing.T) {
	var b strings.Builder
	if err := sheet().WriteText(&b, 80); err != nil {
		t.Fatal(err)
	}
	want := "" +
		"queue      AoM [ns]    received [frames]\n" +
		"fifo        1,234.6                6,109\n" +
		"olaf, new         –  9223372036854775807\n" +
		"one note\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestCSVReadsBack(t *testing.T) {
	var b strings.Builder
	if err := sheet().WriteCSV(&b); err != nil {
		t.Fatal(err)
	}
	records, err := csv.NewReader(strings.NewReader(b.String())).ReadAll()
	if err != nil || len(records) != 3 || records[1][1] != "1234.56" || records[2][0] != "olaf, new" ||
		records[2][1] != "" {
		t.Errorf("%v %v", records, err)
	}
}

func TestCellsAreNeverNotFinite(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if N(v).Kind != Empty {
			t.Errorf("%v became a number", v)
		}
	}
	if got, err := json.Marshal([]Cell{N(1.5), S("x"), Missing("y"), I(1<<53 + 1)}); err != nil ||
		string(got) != `[1.5,"x",null,"9007199254740993"]` {
		t.Errorf("%s %v", got, err)
	}
}

func TestGrouped(t *testing.T) {
	c := Column{Format: Integer}
	for v, want := range map[float64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "−1,234,567", -0.2: "0"} {
		if got := c.Pretty(N(v)); got != want {
			t.Errorf("%v prints %s, want %s", v, got, want)
		}
	}
}
