package aomcheck

import (
	"strings"
	"testing"

	"github.com/olafctl/olaf"
)

// writeOut returns the problem with its periodic arrivals written out.
func writeOut(p Problem) Problem {
	p.Clusters = append([]Cluster(nil), p.Clusters...)
	for i := range p.Clusters {
		c := &p.Clusters[i]
		for k := range p.Horizon {
			c.Arrivals = append(c.Arrivals, c.PhaseLow+olaf.Duration(k)*c.Interval)
		}
		c.Interval, c.PhaseLow, c.PhaseHigh, c.EveryPhase = 0, 0, 0, false
	}
	return p
}

// TestGivenArrivalsAreThePeriodicOnes checks that a progression that is given has the verdict, and the ages, of the same one that
// is described, under every model.
func TestGivenArrivalsAreThePeriodicOnes(t *testing.T) {
	const ms = olaf.Millisecond
	for _, model := range []Model{Engine, Paper, PaperService} {
		for _, bound := range []olaf.Duration{30 * ms, 40 * ms} {
			p := Problem{Model: model, Service: 5 * ms, Slots: 2, Horizon: 4, Objective: Objective{Kind: MaxPeak, Bound: bound},
				Clusters: []Cluster{{Interval: 30 * ms}, {Interval: 30 * ms, PhaseLow: 8 * ms, PhaseHigh: 8 * ms},
					{Interval: 30 * ms, PhaseLow: 16 * ms, PhaseHigh: 16 * ms}}}
			described, err := Verify(t.Context(), p, Options{})
			if err != nil {
				t.Fatal(err)
			}
			written, err := Verify(t.Context(), writeOut(p), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if described.Answer != written.Answer {
				t.Errorf("%s, bound %v: %v as described, %v as given", model, bound, described.Answer, written.Answer)
			}
		}
	}
}

func TestBadArrivalsAreRefused(t *testing.T) {
	const ms = olaf.Millisecond
	long := make([]olaf.Duration, MaxUpdates+1)
	for k := range long {
		long[k] = olaf.Duration(k) * ms
	}
	for want, arrivals := range map[string][]olaf.Duration{
		"update 1 at 5ms; arrivals are 0 … 1h, each later than the one before": {5 * ms, 5 * ms},
		"update 0 at -1ms":                  {-ms, 0},
		"updates: 1; a peak needs":          {0},
		"4001 updates in all; at most 4000": long,
	} {
		p := Problem{Service: ms, Horizon: 5000, Objective: Objective{Kind: MaxPeak, Bound: ms}, Clusters: []Cluster{{Arrivals: arrivals}}}.WithDefaults()
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}
