package sweep

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"testing"

	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
)

// FuzzParseLot parses random results: rejected ones are damaged, and every run of an accepted one has a value of every
// metric or none, and gives a document.
func FuzzParseLot(f *testing.F) {
	for _, seed := range []string{
		`{"metrics":["m","n"],"runs":[{"seed":1,"values":[1.5,null]},{"seed":18446744073709551615,"values":[-0,1e308],"invalid":"lost"}]}`,
		`{"metrics":["m","m"],"runs":[{"seed":1,"values":[1]},{"values":[]},{"values":null}]}`, `{}`, `{"metrics":["m"],"runs":null}`,
		`{"runs":[{"seed":-1}]}`, `{"runs":[{"values":["1"]}]}`, `{"runs":[{"values":[1e999]}]}`, `null`, `[`, `{"metrics":["m"],"runs":[{"values":[1,2,3]}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		lot, err := ParseLot(raw)
		if err != nil {
			if !errors.Is(err, ErrResult) {
				t.Errorf("%v is no ErrResult", err)
			}
			return
		}
		written, err := json.Marshal(lot)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseLot(written)
		if err != nil {
			t.Fatalf("%v in %s", err, written)
		}
		if second, err := json.Marshal(again); err != nil || !bytes.Equal(second, written) {
			t.Errorf("%s and %s, %v", written, second, err)
		}
		for _, name := range append(lot.Metrics, "none") {
			values := lot.Of(name)
			if len(values) != len(lot.Runs) {
				t.Errorf("%d values of %s in %d runs", len(values), name, len(lot.Runs))
			}
		}
		documented(t, lot, written)
	})
}

// documented makes the document over one result twice and compares the bytes.
func documented(t *testing.T, lot *Lot, raw []byte) {
	d := Document{Axes: []Axis{{Name: "n", Values: []string{"1"}, Numbers: []float64{1}}}}
	for _, name := range lot.Metrics {
		d.Metrics = append(d.Metrics, Shown{Name: name})
	}
	cells := []Outcome{{Parameters: []string{"1"}, At: []int{0}, Lots: []json.RawMessage{raw}, State: Done}}
	var first []byte
	for range 2 {
		if err := d.Fill(cells, func(string) *metric.Metric { return nil }); err != nil {
			t.Fatal(err)
		}
		if n := d.Cells[0].Runs + d.Cells[0].InvalidRuns; n != len(lot.Runs) {
			t.Errorf("%d runs of %d", n, len(lot.Runs))
		}
		text, err := json.Marshal(d)
		if err != nil || first != nil && !bytes.Equal(first, text) {
			t.Errorf("%s and %s, %v", first, text, err)
		}
		first = text
	}
}

// FuzzParseEnough parses random rules: an accepted one is a share, is stable when formatted and parsed again, and can
// decide.
func FuzzParseEnough(f *testing.F) {
	for _, seed := range []string{"ci=2%", "ci=0.05", "ci = 0.5 %", "ci=1e-300", "ci=100%", "ci=0", "ci=nan", "ci=inf%", "ci=-1%", "ci=0x1p-3", "sd=2%", "ci=%", ""} {
		f.Add(seed)
	}
	lots := []*Lot{{Metrics: []string{"m"}, Runs: []Run{{Values: []results.Float{1}}, {Values: []results.Float{3}}}}}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := ParseEnough(text)
		if err != nil {
			if !errors.Is(err, ErrRule) {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		if !(e.Within > 0 && e.Within < 1) {
			t.Errorf("%q is %v", text, e.Within)
		}
		if again, err := ParseEnough("ci=" + strconv.FormatFloat(e.Within, 'g', -1, 64)); err != nil || *again != *e {
			t.Errorf("%q is %v, which reads as %v, %v", text, e.Within, again, err)
		}
		if enough, widest := e.Decide(lots, []string{"m"}, 1); enough != (widest <= e.Within) || math.IsNaN(widest) {
			t.Errorf("%q: %v at %v", text, enough, widest)
		}
	})
}
