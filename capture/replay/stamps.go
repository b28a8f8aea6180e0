package replay

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture/ages"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
)

// StampCheck compares the resolution of a capture's timestamps with the speed of the queue. Frames within one tick seem
// to arrive at the same time. A queue that in reality serves several of them within a tick would then lose and merge
// too many.
type StampCheck struct {
	output engine.Output
	any    bool
	free   olaf.Time // time when the output is idle again after the newest arrival, if it was idle before that
	// service is the time that the output takes to send the shortest frame. idle is the shortest gap between the end of
	// a frame and the next arrival, assuming that each frame finds the output idle.
	service, idle olaf.Duration
}

// NewStampCheck returns a check for a queue with the given output.
func NewStampCheck(out engine.Output) StampCheck {
	out.Rate = cmp.Or(out.Rate, engine.Line)
	return StampCheck{output: out, service: math.MaxInt64, idle: math.MaxInt64}
}

// Arrive records the arrival of an update in a frame of the given length.
func (c *StampCheck) Arrive(at olaf.Time, size olaf.Size) {
	onWire := c.output.Rate.Rate().TimeToSend(size + olaf.Size(c.output.OverheadBytes))
	whole := onWire + olaf.Duration(c.output.DequeueCycles+1)*olaf.Cycle
	if c.any {
		c.idle = min(c.idle, at.Sub(c.free))
	}
	c.any, c.free, c.service = true, at.Add(whole), min(c.service, onWire)
}

// TooCoarse returns the reason why the timestamps are too coarse for this queue, or "" if they are precise enough.
// Precise timestamps are not needed if arrivals are so far apart that each one finds an empty queue.
func (c *StampCheck) TooCoarse(grain olaf.Duration) string {
	if grain <= max(c.service, olaf.Nanosecond) || c.idle >= grain {
		return ""
	}
	return fmt.Sprintf("the capture's stamps have a resolution of %v, and the output sends a frame in %v; %s",
		grain, c.service, ages.Remedy)
}

// counted contains the names of the counters that depend only on the capture and not on the queue.
var counted = map[string]bool{
	"sent": true, "tc_withheld": true, "in": true, "bypassed": true, "malformed": true, "lost_before_engine": true,
	"misidentified": true, "capture_lost": true,
}

// withhold marks all fields that depend on the order of arrivals and the time between them as withheld.
func (res *Result) withhold(why string) {
	res.WithheldWhy = why
	for _, c := range declared.Ledger.Counters {
		if !counted[c.Name] {
			res.Withheld = append(res.Withheld, c.Name)
		}
	}
	res.Withheld = append(res.Withheld, "lost", "lost_pct", "count_in", "last_delivery_ns", "utilisation",
		"aggregations_cdf")
	res.Utilisation, res.LostPct, res.AggregationsCDF = results.Missing(), results.Missing(), nil
	res.Ages = &ages.Ages{Reason: why, ClockErrorNS: res.Ages.ClockErrorNS}
}

// DeclareMetrics returns the counters and metrics of a replay.
func DeclareMetrics() *metric.Declaration { return declared }

// Row returns the result as a bench row with one run, for comparison with expectations.
func (res *Result) Row() results.Row {
	row := results.Row{Queue: res.Queue, OutRateBPS: res.OutRateBPS, Runs: 1, Valid: res.Valid}
	for _, m := range declared.Metrics {
		v, why := res.value(m)
		row.Stats = append(row.Stats, results.Stat{Metric: m, Statistic: results.Describe([]results.Float{v}, why)})
	}
	return row
}

// value returns the value of a metric, or the reason why it is missing.
func (res *Result) value(m *metric.Metric) (v results.Float, why string) {
	switch {
	case slices.Contains(res.Withheld, m.Name):
		return results.Missing(), "it is withheld: " + res.WithheldWhy
	case m.Age:
		return res.Ages.Metrics.Of(m.Name), cmp.Or(res.Ages.Missing[m.Name], res.Ages.Reason)
	case m.Counter != "":
		return results.Float(res.Counts.Of(m.Counter)), ""
	case m.Name == "lost":
		return results.Float(res.Lost), ""
	case m.Name == "lost_pct":
		return res.LostPct, "nothing was sent"
	}
	return results.Missing(), "a replay does not measure it"
}
