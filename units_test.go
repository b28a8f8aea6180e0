package olaf

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseUnits(t *testing.T) {
	rate := func(s string) (int64, error) { v, err := ParseRate(s); return int64(v), err }
	size := func(s string) (int64, error) { v, err := ParseSize(s); return int64(v), err }
	span := func(s string) (int64, error) { v, err := ParseDuration(s); return int64(v), err }
	tests := []struct {
		name  string
		parse func(string) (int64, error)
		in    string
		want  int64
		err   string // a part of the message; empty if want is expected
	}{
		{"rate", rate, "60G", 60e9, ""},
		{"rate", rate, "60Gbps", 60e9, ""},
		{"rate", rate, "60 Gbps", 60e9, ""},
		{"rate", rate, " 60Gb/s ", 60e9, ""},
		{"rate", rate, "60Gbit/s", 60e9, ""},
		{"rate", rate, "60Gbit", 60e9, ""},
		{"rate", rate, "2.5G", 2.5e9, ""},
		{"rate", rate, ".5T", 5e11, ""},
		{"rate", rate, "0.000001M", 1, ""},
		{"rate", rate, "100M", 1e8, ""},
		{"rate", rate, "9600bps", 9600, ""},
		{"rate", rate, "33.333333333Gbps", 33333333333, ""},
		{"rate", rate, "0bps", 0, ""},
		{"rate", rate, "60", 0, "did you mean 60G?"},
		{"rate", rate, "-60", 0, "has no unit"},
		{"rate", rate, "-60G", 0, "negative"},
		{"rate", rate, "", 0, "does not start with a number"},
		{"rate", rate, "G", 0, "does not start with a number"},
		{"rate", rate, "fast", 0, "does not start with a number"},
		{"rate", rate, "1.2.3G", 0, "does not start with a number"},
		{"rate", rate, "60GB/s", 0, `unknown unit "GB/s"`},
		{"rate", rate, "60m", 0, `unknown unit "m"`},
		{"rate", rate, "1e9bps", 0, "unknown unit"},
		{"rate", rate, "0.3bps", 0, "finer than 1bps"},
		{"rate", rate, "99999999999T", 0, "out of range"},
		{"rate", rate, strings.Repeat("9", 1000) + "G", 0, "1000 digits"},
		{"size", size, "256B", 256, ""},
		{"size", size, "2048b", 256, ""},
		{"size", size, "2048 b", 256, ""},
		{"size", size, "9kB", 9000, ""},
		{"size", size, "64KiB", 65536, ""},
		{"size", size, "256", 0, "did you mean 256B or 256b?"},
		{"size", size, "2047b", 0, "whole number of bytes"},
		{"size", size, "2Kb", 0, `unknown unit "Kb"`},
		{"size", size, "-1B", 0, "negative"},
		{"size", size, "-8b", 0, "negative"},
		{"size", size, "b", 0, "does not start with a number"},
		{"size", size, "1.5B", 0, "finer than 1B"},
		{"duration", span, "4ns", 4000, ""},
		{"duration", span, "1.5us", 1500000, ""},
		{"duration", span, "1.5µs", 1500000, ""},
		{"duration", span, "-100ms", -1e11, ""},
		{"duration", span, "2m", 120e12, ""},
		{"duration", span, "100", 0, "did you mean 100ms?"},
		{"duration", span, "1Gs", 0, "unknown unit"},
		{"duration", span, "0.1ps", 0, "finer than 1ps"},
		{"duration", span, "10000h", 0, "out of range"},
	}
	for _, tt := range tests {
		got, err := tt.parse(tt.in)
		switch {
		case tt.err == "" && (err != nil || got != tt.want):
			t.Errorf("%s %q = %d, %v; want %d", tt.name, tt.in, got, err, tt.want)
		case tt.err != "" && (!errors.Is(err, ErrUnit) || !strings.Contains(err.Error(), tt.err) || got != 0):
			t.Errorf("%s %q = %d, %v; want an ErrUnit with %q", tt.name, tt.in, got, err, tt.err)
		}
	}
}

func TestPrintUnits(t *testing.T) {
	tests := []struct{ got, want string }{
		{(60 * Gbps).String(), "60Gbps"},
		{(2500 * Mbps).String(), "2.5Gbps"},
		{Rate(1234567).String(), "1234.567kbps"},
		{Rate(1).String(), "1bps"},
		{Rate(0).String(), "0bps"},
		{Size(256).String(), "256B"},
		{Duration(20480).String(), "20.48ns"},
		{(100 * Millisecond).String(), "100ms"},
		{(-100 * Millisecond).String(), "-100ms"},
		{(90 * Second).String(), "90s"},
		{Time(4000).String(), "4ns"},
		{Duration(math.MinInt64).String(), "-9223372036854775.808ns"},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("printed %s, want %s", tt.got, tt.want)
		}
	}
}

// TestUnitsRoundTrip checks that printed values parse to the same value, also through JSON.
func TestUnitsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Round values are printed short; sampling them makes them as likely as others.
		round := rapid.SampledFrom([]int64{1, 1e3, 1e5, 1e9, 25e8, 1e12}).Draw(t, "round")
		v := rapid.Int64().Draw(t, "value")
		v -= v % round
		rate, size := max(v, -(v+1)), max(v, -(v+1))
		if got, err := ParseRate(Rate(rate).String()); err != nil || got != Rate(rate) {
			t.Fatalf("rate %d printed %s, parsed %d, %v", rate, Rate(rate), got, err)
		}
		if got, err := ParseSize(Size(size).String()); err != nil || got != Size(size) {
			t.Fatalf("size %d printed %s, parsed %d, %v", size, Size(size), got, err)
		}
		type doc struct {
			D Duration
			R Rate
		}
		in := doc{Duration(v), Rate(rate)}
		b, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		var out doc
		if err := json.Unmarshal(b, &out); err != nil || in != out {
			t.Fatalf("%+v became %s, then %+v, %v", in, b, out, err)
		}
	})
}

func TestTimeToSend(t *testing.T) {
	tests := []struct {
		rate Rate
		size Size
		want Duration
	}{
		{100 * Gbps, 256, 20480},
		{60 * Gbps, 256, 34133}, // 34,133 1/3 ps, rounded down
		{Gbps, 0, 0},
		{BitPerSecond, 1, 8 * Second},
		{8 * Gbps, 10_000_000, 10 * Millisecond}, // exceeds 64 bits in between
	}
	for _, tt := range tests {
		if got := tt.rate.TimeToSend(tt.size); got != tt.want {
			t.Errorf("%v at %v takes %v, want %v", tt.size, tt.rate, got, tt.want)
		}
	}
}

func FuzzParseUnits(f *testing.F) {
	for _, s := range []string{"60G", "60", "-1B", "2048b", "1.5µs", "..", "+-1G", "99999999999999999999T", "µ"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if r, err := ParseRate(s); err == nil && r < 0 {
			t.Errorf("rate %q is %d", s, r)
		}
		if v, err := ParseSize(s); err == nil && v < 0 {
			t.Errorf("size %q is %d", s, v)
		}
		if d, err := ParseDuration(s); err == nil {
			if again, err := ParseDuration(d.String()); err != nil || again != d {
				t.Errorf("%q is %d, prints %s, parses %d, %v", s, d, d, again, err)
			}
		}
	})
}
