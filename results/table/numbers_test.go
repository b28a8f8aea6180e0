package table

import (
	"errors"
	"math"
	"testing"
)

// TestGroupedAtTheEdges checks numbers around those that are printed as nothing.
func TestGroupedAtTheEdges(t *testing.T) {
	for _, c := range []struct {
		v        float64
		decimals int
		want     string
	}{
		{0, 0, "0"}, {-0.4, 0, "0"}, {-0.5, 0, "−0"}, {-0.51, 0, "−1"}, {-1, 0, "−1"}, {-0.04, 1, "0.0"}, {-0.06, 1, "−0.1"},
		{-0.0004, 3, "0.000"}, {-0.0006, 3, "−0.001"}, {999, 0, "999"}, {1000, 0, "1,000"},
		{-1234567.25, 1, "−1,234,567.2"}, {1e-9, 0, "0"},
	} {
		if got := groupDigits(c.v, c.decimals); got != c.want {
			t.Errorf("%v with %d decimals: %s, want %s", c.v, c.decimals, got, c.want)
		}
	}
}

// TestPrettyByFormat checks one number in every format.
func TestPrettyByFormat(t *testing.T) {
	for format, want := range map[Format]string{Integer: "1,235", Fixed1: "1,234.6", Fixed3: "1,234.568"} {
		if got := (Column{Format: format}).Pretty(N(1234.56789)); got != want {
			t.Errorf("format %v: %s, want %s", format, got, want)
		}
	}
}

// TestIntegersStayExact checks the largest integers that a float64 represents, and the first that it does not.
func TestIntegersStayExact(t *testing.T) {
	const last = 1 << 53
	for _, v := range []int64{0, 1, -1, last, -last} {
		if c := I(v); c.Kind != Number || int64(c.Number) != v {
			t.Errorf("%d is %+v", v, c)
		}
	}
	for v, want := range map[int64]string{last + 1: "9007199254740993", -last - 1: "-9007199254740993",
		math.MinInt64: "-9223372036854775808"} {
		if c := I(v); c.Kind != String || c.Text != want {
			t.Errorf("%d is %+v", v, c)
		}
	}
	if c := U(math.MaxUint64); c.Text != "18446744073709551615" {
		t.Errorf("%+v", c)
	}
}

// full is a writer that accepts a limited number of bytes.
type full int

var errFull = errors.New("full")

func (f *full) Write(p []byte) (int, error) {
	if *f -= full(len(p)); *f < 0 {
		return 0, errFull
	}
	return len(p), nil
}

// TestFullDiskIsReported checks that writing a long sheet reports that there is too little room.
func TestFullDiskIsReported(t *testing.T) {
	s := Sheet{Columns: []Column{{Header: "a"}}}
	for range 5000 {
		s.Rows = append(s.Rows, []Cell{S("0123456789")})
	}
	for _, room := range []full{0, 10, 5000, 40000} {
		left := room
		if err := s.WriteCSV(&left); !errors.Is(err, errFull) {
			t.Errorf("CSV with room for %d: %v", room, err)
		}
		left = room
		if err := s.WriteText(&left, 80); !errors.Is(err, errFull) {
			t.Errorf("text with room for %d: %v", room, err)
		}
	}
	short := Sheet{Columns: []Column{{Header: "a"}}, Rows: [][]Cell{{S("b")}}}
	if left := full(2); short.WriteCSV(&left) == nil {
		t.Error("what waited in the buffer is lost in silence")
	}
}
