package netsim

import (
	"fmt"
	"math"
	"time"

	"github.com/olafctl/olaf"
)

// ErrLong reports that a run would take long and needs confirmation.
var ErrLong = olaf.NewError(olaf.Usage, "this would take long")

const (
	// eventsPerSecond is the rate of one core with a few thousand workers, rounded down.
	eventsPerSecond = 4e6
	// patience is the duration above which a run needs confirmation.
	patience = 10 * time.Minute
)

// EstimateEvents estimates the number of events in runs of t, from its rates and path lengths.
func (t *Topology) EstimateEvents() (float64, error) {
	n, err := buildNetwork(t)
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
		rate := float64(p.spec.Rate) / float64((t.Update + p.spec.Overhead).Bits()) // upper limit, in frames per second
		events += float64(3 * math.Min(rate*(t.Warmup+t.Duration).Seconds(), events))
	}
	return events, nil
}

// CheckPatience rejects runs of t that would take more than ten minutes on one core. The error matches ErrLong and gives the
// duration.
func (t *Topology) CheckPatience(runs int) error {
	events, err := t.EstimateEvents()
	if err != nil {
		return err
	}
	events *= float64(max(runs, 1))
	return CheckDuration(events/eventsPerSecond, fmt.Sprintf("%.2g events", events), "shorten the duration")
}

// CheckDuration rejects work that takes more than ten minutes on one core. what describes its size, instead suggests a way to
// reduce it. The error matches ErrLong.
func CheckDuration(seconds float64, what, instead string) error {
	if seconds < patience.Seconds() {
		return nil
	}
	return fmt.Errorf("%w: about %s, %s on one core; %s, or add --yes if you mean it", ErrLong, what,
		formatDuration(seconds), instead)
}

// formatDuration formats a span of wall time in a suitable unit.
func formatDuration(seconds float64) string {
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
