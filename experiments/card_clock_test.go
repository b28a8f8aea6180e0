package experiments

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/regmap"
)

// slowClock is a card whose clock takes a while to read, seen from a host whose clock runs beside it.
type slowClock struct {
	ns        int64 // of the card's life; the host's clock shows the same
	out, back func() int64
	latched   uint32
}

func (c *slowClock) Read32(addr uint32) (uint32, error) {
	c.ns += c.out()
	cycle := uint64(c.ns / cycleNS)
	if addr == regmap.CommonCycles {
		c.latched = uint32(cycle >> 32)
	}
	c.ns += c.back()
	if addr == regmap.CommonCycles {
		return uint32(cycle), nil
	}
	return c.latched, nil
}

func (c *slowClock) Write32(uint32, uint32) error      { return nil }
func (c *slowClock) WriteBurst(uint32, []uint32) error { return nil }

// TestPairsAreEarlyAtMost holds that a cycle is never put later than it was, nor earlier than the width of its pair says.
func TestPairsAreEarlyAtMost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		way := func(name string) func() int64 {
			return func() int64 { return rapid.Int64Range(1, 5000).Draw(t, name) }
		}
		card := &slowClock{ns: rapid.Int64Range(1<<20, 1<<50).Draw(t, "age"), out: way("out"), back: way("back")}
		start := uint64(card.ns/cycleNS) - rapid.Uint64Range(0, 1<<17).Draw(t, "since")
		p, err := pairClocks(card, func() time.Time { return time.Unix(0, card.ns) })
		if err != nil {
			t.Fatal(err)
		}
		if early := int64(start)*cycleNS - p.at(start); early < -cycleNS || early > p.widthNS {
			t.Errorf("put %d ns too early, with a width of %d ns", early, p.widthNS)
		}
	})
}

func TestStepsAreToldFromDrift(t *testing.T) {
	from := clockPair{hostNS: 1_000, widthNS: 500, cycle: 100}
	for name, c := range map[string]struct {
		to   clockPair
		want bool
	}{
		"together":      {clockPair{1_001_000, 500, 100 + 250_000}, false},
		"100 ppm":       {clockPair{1_001_100, 500, 100 + 250_000}, false},
		"slow readings": {clockPair{1_001_900, 500, 100 + 250_000}, false},
		"a step":        {clockPair{1_004_000, 500, 100 + 250_000}, true},
		"a step back":   {clockPair{-1_004_000, 500, 100 + 250_000}, true},
	} {
		if got := stepped(from, c.to); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if span, drift := (clockPair{1_001_100, 500, 250_100}).since(from); span != 1_000_000 || drift != 100 {
		t.Errorf("%d ns of drift in %d", drift, span)
	}
}

// TestLateStamps counts what the line's rate proves.
func TestLateStamps(t *testing.T) {
	frames := func(at ...olaf.Time) (seen []olaf.Observation) {
		for _, ns := range at {
			seen = append(seen, olaf.Observation{At: ns * olaf.Time(olaf.Nanosecond), Update: olaf.Update{Lanes: 48}})
		}
		return seen
	}
	wire := lineTime(&olaf.Update{Lanes: 48})
	for name, c := range map[string]struct {
		seen []olaf.Observation
		want olaf.Duration
	}{
		"none":                     {nil, 0},
		"one":                      {frames(5), 0},
		"far apart":                {frames(0, 100, 200), 0},
		"three at once":            {frames(1000, 1000, 1000), 2 * wire},
		"two at once, then a late": {frames(1000, 1000, 2000), wire},
		"two bursts":               {frames(1000, 1000, 5000, 5000, 5000, 5000), 3 * wire},
	} {
		if got := lateAtLeast(c.seen); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if wire != (256+24)*80*olaf.Picosecond {
		t.Errorf("an update of 256 B takes %v", wire)
	}
}
