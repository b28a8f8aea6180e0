package testbed

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// pairOfClocks is a local clock and a remote one that is ahead by skewNS at local time 0 and gains driftPPB per second.
type pairOfClocks struct{ skewNS, driftPPB int64 }

func (c pairOfClocks) offsetAt(localNS int64) int64 {
	return c.skewNS + int64(float64(localNS)*float64(c.driftPPB)/1e9)
}

func (c pairOfClocks) remoteAt(localNS int64) int64 { return localNS + c.offsetAt(localNS) }

// echo returns an exchange whose messages take upNS and downNS, with an answer after workNS.
func (c pairOfClocks) echo(atNS, upNS, workNS, downNS int64) Exchange {
	return Exchange{atNS, c.remoteAt(atNS + upNS), c.remoteAt(atNS + upNS + workNS), atNS + upNS + workNS + downNS}
}

// calibrate draws exchanges from a time on, with any asymmetry, and measures them.
func (c pairOfClocks) calibrate(t *rapid.T, fromNS int64) Offset {
	way := rapid.Int64Range(0, 5*int64(time.Millisecond))
	var all []Exchange
	for range rapid.IntRange(1, 32).Draw(t, "exchanges") {
		e := c.echo(fromNS, way.Draw(t, "up"), rapid.Int64Range(0, 1e6).Draw(t, "work"), way.Draw(t, "down"))
		all, fromNS = append(all, e), e.T3+rapid.Int64Range(0, 1e6).Draw(t, "pause")
	}
	o, err := Measure(all)
	if err != nil {
		t.Fatalf("%d exchanges of clocks that were not set: %v", len(all), err)
	}
	best, _ := Quickest(all)
	if least := max(best.RoundTripNS(), 0) / 2; o.BoundNS < least || o.BoundNS > least+(best.T3-best.T0)/1000+2 {
		t.Fatalf("bound %d ns, want half of the shortest round trip, %d ns, and the drift meanwhile", o.BoundNS, least)
	}
	return o
}

// expectWithin requires that an offset is right within its bound.
func (c pairOfClocks) expectWithin(t *rapid.T, o Offset) {
	if wrong := o.OffsetNS - c.offsetAt(o.AtNS); max(wrong, -wrong) > o.BoundNS {
		t.Fatalf("at %d ns the offset is wrong by %d ns, outside its bound of %d ns", o.AtNS, wrong, o.BoundNS)
	}
}

// TestOffsetIsWithinItsBound checks that the offset is right within its bound with a skew of up to 3 s, a drift of up
// to 50 ppm and any asymmetry of the two directions.
func TestOffsetIsWithinItsBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := pairOfClocks{rapid.Int64Range(-3e9, 3e9).Draw(t, "skew"), rapid.Int64Range(-50_000, 50_000).Draw(t, "ppb")}
		r := Relation{Before: c.calibrate(t, rapid.Int64Range(0, 1e12).Draw(t, "start"))}
		c.expectWithin(t, r.Before)
		r.After = c.calibrate(t, r.Before.AtNS+1e9+rapid.Int64Range(0, 1e11).Draw(t, "run"))
		c.expectWithin(t, r.After)
		if err := r.Check(); err != nil {
			t.Fatalf("a drift of %d ppb was taken for a step: %v", c.driftPPB, err)
		}
		span := r.After.AtNS - r.Before.AtNS
		c.expectWithin(t, r.OffsetAt(rapid.Int64Range(r.Before.AtNS-1e9, r.After.AtNS+1e9).Draw(t, "at")))
		wrong := r.DriftPPM() - float64(c.driftPPB)/1000
		if allowed := float64(r.Before.BoundNS+r.After.BoundNS+2) / float64(span) * 1e6; max(wrong, -wrong) > allowed {
			t.Fatalf("drift of %d ppb measured as %.4f ppm, outside ±%.4f", c.driftPPB, r.DriftPPM(), allowed)
		}
	})
}

// TestTwoRemoteClocksAreRelated checks that two hosts measured from a third can be related to each other.
func TestTwoRemoteClocksAreRelated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func() (c pairOfClocks, r Relation) {
			c = pairOfClocks{rapid.Int64Range(-3e9, 3e9).Draw(t, "skew"), rapid.Int64Range(-50_000, 50_000).Draw(t, "ppb")}
			r.Before = c.calibrate(t, rapid.Int64Range(0, 1e9).Draw(t, "start"))
			r.After = c.calibrate(t, 10e9)
			return c, r
		}
		a, from := draw()
		b, to := draw()
		apart := pairOfClocks{b.skewNS - a.skewNS, b.driftPPB - a.driftPPB}
		both := Between(&from, &to)
		for _, o := range []Offset{both.Before, both.After, both.OffsetAt(rapid.Int64Range(0, 12e9).Draw(t, "at"))} {
			o.BoundNS += 2 // rounding of the two injected offsets
			apart.expectWithin(t, o)
		}
	})
}

// TestQuickestExchangeCounts checks that delayed exchanges, and those with a clock that was set, do not count.
func TestQuickestExchangeCounts(t *testing.T) {
	c := pairOfClocks{skewNS: 3e9}
	quick := c.echo(1000, 10, 5, 10)
	slow := c.echo(2000, 10, 5, 900)
	set := Exchange{5000, 3e9, 3e9 + 5000, 5100} // the remote clock was set forward before it answered
	for _, all := range [][]Exchange{{quick, slow, set}, {set, slow, quick}, {slow, set, quick}} {
		if best, ok := Quickest(all); !ok || best != quick {
			t.Errorf("the quickest of %v is %v, want %v", all, best, quick)
		}
	}
	if _, err := Measure([]Exchange{set}); !errors.Is(err, ErrSet) {
		t.Errorf("a clock that was set gave %v, want ErrSet", err)
	}
	if _, err := Measure(nil); !errors.Is(err, ErrSet) {
		t.Errorf("no exchange gave %v, want ErrSet", err)
	}
}

// TestClockStepsAreDetected checks that setting the remote clock between two measurements is detected.
func TestClockStepsAreDetected(t *testing.T) {
	before := Offset{AtNS: 0, OffsetNS: 100, BoundNS: 10_000}
	for _, c := range []struct {
		after Offset
		fails bool
	}{
		{Offset{1e9, 100, 10_000}, false},
		{Offset{1e9, 1_000_000, 10_000}, false}, // 1,000 ppm
		{Offset{1e9, 3_000_000, 10_000}, true},
		{Offset{1e9, -3_000_000, 10_000}, true},
		{Offset{-1, 100, 10_000}, true}, // the local clock went back
	} {
		r := Relation{before, c.after}
		if err := r.Check(); (err != nil) != c.fails {
			t.Errorf("from %v to %v: %v, want an error: %v", before, c.after, err, c.fails)
		}
	}
}
