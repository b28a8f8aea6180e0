package grid

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestValues(t *testing.T) {
	for _, c := range []struct {
		of           Type
		values, want string
	}{
		{Integer, "2..64:x2", "2 4 8 16 32 64"},
		{Integer, "2..5", "2 3 4 5"},
		{Integer, "1,2,8..10", "1 2 8 9 10"},
		{Integer, "0..10:4", "0 4 8"},
		{Integer, "0..10/2", "0 5 10"},
		{Rate, "5G..40G:5G", "5Gbps 10Gbps 15Gbps 20Gbps 25Gbps 30Gbps 35Gbps 40Gbps"},
		{Rate, "5..20G:x2", "5Gbps 10Gbps 20Gbps"},
		{Rate, "1G, 2500M", "1Gbps 2.5Gbps"},
		{Duration, "0..100ms/4", "0ps 25ms 50ms 75ms 100ms"},
		{Duration, "0..1ns/3", "0ps 333ps 666ps 1ns"},
		{Size, "64..256B:x2", "64B 128B 256B"},
		{Real, "0..0.3:0.1", "0 0.1 0.2 0.3"},
		{Real, "1e-3..1:x10", "0.001 0.01 0.1 1"},
		{Word, "olaf,fifo", "olaf fifo"},
		{Word, "a..b", "a..b"},
	} {
		a, err := ParseAxis("x", c.of, c.values)
		if got := strings.Join(a.Values, " "); got != c.want || err != nil {
			t.Errorf("%s: %q, %v; want %q", c.values, got, err, c.want)
		}
	}
	a, err := ParseAxis("phase", Duration, "0..100ms")
	if len(a.Values) != defaultSteps+1 || err != nil {
		t.Errorf("without steps there are %d values, %v", len(a.Values), err)
	}
}

func TestRefusedValues(t *testing.T) {
	for _, c := range []struct {
		of          Type
		values, say string
	}{
		{Integer, "", "no whole number"}, {Integer, "2..", "no whole number"}, {Integer, "9..3", "9 is more than 3"},
		{Integer, "2..64:x1", "a factor is above 1"},
		{Integer, "0..64:x2", "begin above 0"}, {Integer, "2..64:0", "a step is above 0"}, {Integer, "2..64:-1", "a step is above 0"},
		{Integer, "2..64/3:2", "not both"},
		{Integer, "2..64/0", "number of steps"}, {Integer, "2..64/1001", "number of steps"},
		{Integer, "0..10/3", "no whole number; give another step"},
		{Integer, "1..10000000", "more than"}, {Integer, "2,4,2", "2 is in it twice"}, {Rate, "5..40", "has no unit"},
		{Rate, "5G..40ms", "unknown unit"},
		{Real, "1/3", "no number"}, {Real, "1e999999999", "no number"}, {Real, "nan", "no number"}, {Word, "a,,b", "empty"},
		{Integer, "1.5..2.5", "no whole number"},
	} {
		if a, err := ParseAxis("x", c.of, c.values); !errors.Is(err, ErrSweep) || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%q: %v, %v; want %q", c.values, a.Values, err, c.say)
		}
	}
	for _, text := range []string{"", "slots", "=2..4"} {
		if _, _, err := SplitAxis(text); !errors.Is(err, ErrSweep) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if name, values, err := SplitAxis("out_rate=5G"); name != "out-rate" || values != "5G" || err != nil {
		t.Error(name, values, err)
	}
}

// TestValueRoundTrip checks that a printed value parses to the same value, so that a sweep's values can be passed as
// text.
func TestValueRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		of := Type(rapid.IntRange(int(Integer), int(Duration)).Draw(t, "type"))
		unit := map[Type][]string{Integer: {""}, Real: {""}, Rate: {"bps", "k", "M", "G"}, Size: {"B", "kB", "KiB"},
			Duration: {"ps", "ns", "us", "ms", "s"}}[of]
		u := rapid.SampledFrom(unit).Draw(t, "unit")
		low := rapid.IntRange(1, 1000).Draw(t, "low")
		text := itoa(low) + u + ".." + itoa(low+rapid.IntRange(0, 1000).Draw(t, "more")) + u +
			rapid.SampledFrom([]string{":x2", ":7" + u, "/1"}).Draw(t, "how")
		a, err := ParseAxis("x", of, text)
		if err != nil {
			if strings.Contains(err.Error(), "twice") { // the steps of an empty range are equal
				return
			}
			t.Fatal(text, err)
		}
		last := -1.0
		for _, v := range a.Values {
			again, err := ParseAxis("x", of, v)
			if err != nil || len(again.Values) != 1 || again.Values[0] != v {
				t.Fatal(text, v, again.Values, err)
			}
			n, ok := of.Number(v)
			if !ok || n <= last {
				t.Fatal(text, a.Values)
			}
			last = n
		}
	})
}

func itoa(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + itoa(n%10)
}

func TestGrid(t *testing.T) {
	axes := []Axis{{"a", []string{"1", "2"}}, {"b", []string{"x", "y", "z"}}}
	var got []string
	for _, c := range BuildGrid(axes) {
		got = append(got, strings.Join(c, ""))
	}
	if want := "1x 1y 1z 2x 2y 2z"; strings.Join(got, " ") != want || CountCells(axes) != 6 {
		t.Error(got, CountCells(axes))
	}
}

func FuzzValues(f *testing.F) {
	f.Add(uint8(Integer), "2..64:x2")
	f.Add(uint8(Duration), "0..100ms/20")
	f.Add(uint8(Rate), "5..40G:5G,1T")
	f.Fuzz(func(t *testing.T, of uint8, text string) {
		a, err := ParseAxis("x", Type(of%6), text)
		if err == nil && len(a.Values) == 0 {
			t.Error("no values, and no error")
		}
	})
}
