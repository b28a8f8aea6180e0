package netsim

import (
	"fmt"
	"math"
	"time"

	"github.com/olafctl/olaf"
)

// ErrLong is the kind of a refusal to start what would take too long without being asked.
var ErrLong = olaf.NewError(olaf.Usage, "this would take long")

const (
	// eventsPerSecond is what one core does with a few thousand workers, rounded down.
	eventsPerSecond = 4e6
	// patience is how long a run may take before somebody has to say that it is wanted.
	patience = 10 * time.Minute
)

// Estimate is about how many events runs of t take, from its rates and the lengths of its paths.
func (t *Topology) Estimate() (float64, error) {
	n, err := build(t)
	if err != nil {
		return 0, err
	}
	events := 3 * float64(len(t.sends))
	for i := range n.clusters {
		c := &n.clusters[i]
		if t.sends == nil {
			life := (t.Warmup + t.Duration).Seconds()
			events += 2 * float64(c.workers) * life / n.trees[c.tree].spec.Period.Seconds()
		}
	}
	for i := range t.Background {
		b := &t.Background[i]
		events += 4 * (t.Warmup + t.Duration).Seconds() * float64(b.Rate) / float64(b.Size.Bits())
	}
	for i := range n.ports {
		p := &n.ports[i]
		rate := float64(p.spec.Rate) / float64((t.Update + p.spec.Overhead).Bits()) // frames a second at most
		events += float64(3 * math.Min(rate*(t.Warmup+t.Duration).Seconds(), events))
	}
	return events, nil
}

// Patience refuses runs of t that would take more than ten minutes on one core. The error matches ErrLong and says how
// long.
func (t *Topology) Patience(runs int) error {
	events, err := t.Estimate()
	if err != nil {
		return err
	}
	events *= float64(max(runs, 1))
	return Patient(events/eventsPerSecond, fmt.Sprintf("%.2g events", events), "shorten the duration")
}

// Patient refuses what takes more than ten minutes on one core: so many seconds for what there is of it. instead is what would
// take less. The error matches ErrLong.
func Patient(seconds float64, what, instead string) error {
	if seconds < patience.Seconds() {
		return nil
	}
	return fmt.Errorf("%w: about %s, %s on one core; %s, or add --yes if you mean it", ErrLong, what, spoken(seconds), instead)
}

// spoken is a span of wall time in the unit that people would use.
func spoken(seconds float64) string {
	for _, u := range []struct {
		name  string
		worth float64
	}{{"years", 365 * 86400}, {"days", 86400}, {"hours", 3600}, {"minutes", 60}} {
		if seconds >= 2*u.worth {
			return fmt.Sprintf("%.0f %s", seconds/u.worth, u.name)
		}
	}
	return fmt.Sprintf("%.0f seconds", seconds)
}
