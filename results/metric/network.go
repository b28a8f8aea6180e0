package metric

import "github.com/olafctl/olaf"

// windowed declares a network's counters for the time after the warm-up. They have separate names, because the other
// counters must cover the whole run to satisfy the accounting identities.
var windowed = &olaf.Ledger{
	Counters: []olaf.Counter{
		{Name: "window_generated", Title: "Generated after the warm-up", Unit: "updates",
			Doc: "created by workers after the warm-up"},
		{Name: "window_withheld", Title: "Withheld after the warm-up", Unit: "updates",
			Doc: "of these, withheld by transmission control"},
		{Name: "window_sent", Title: "Sent after the warm-up", Unit: "updates", Doc: "of these, sent by workers"},
		{Name: "window_delivered_frames", Title: "Delivered after the warm-up", Unit: "frames",
			Doc: "frames at servers after the warm-up"},
		{Name: "window_delivered_updates", Title: "Updates delivered after the warm-up", Unit: "updates",
			Doc: "updates inside of these"},
		{Name: "window_aggregated", Title: "Aggregated after the warm-up", Unit: "updates",
			Doc: "merged into a waiting update after the warm-up, at any hop"},
		{Name: "window_replaced", Title: "Replaced after the warm-up", Unit: "updates",
			Doc: "replaced an older update from the same worker after the warm-up, at any hop"},
		{Name: "window_dropped_frames", Title: "Dropped after the warm-up", Unit: "frames",
			Doc: "frames that queues dropped after the warm-up"},
		{Name: "window_dropped_updates", Title: "Updates dropped after the warm-up", Unit: "updates",
			Doc: "updates inside of these"},
	},
	Identities: []olaf.Identity{{Left: []string{"window_generated"}, Right: []string{"window_sent", "window_withheld"}}},
	MaySilent:  true,
}

// windowShares lists the counts after the warm-up as shares of the updates sent after the warm-up.
var windowShares = []*Metric{
	windowShare("window_dropped_frames", Metric{Name: "loss_packets_pct", Title: "Frames dropped after the warm-up",
		Doc: "100 · window_dropped_frames / window_sent; without the losses on links and the frames in flight at " +
			"the end"}),
	windowShare("window_dropped_updates", Metric{Name: "loss_updates_pct", Title: "Updates dropped after the warm-up",
		Doc: "100 · window_dropped_updates / window_sent"}),
	windowShare("window_replaced", Metric{Name: "loss_replaced_pct", Title: "Updates replaced after the warm-up",
		Doc: "100 · window_replaced / window_sent"}),
}

func windowShare(count string, row Metric) *Metric {
	row.Unit, row.MissingReason = "%", fixedReason("nothing was sent after the warm-up")
	row.Of = func(m *Measured) Float {
		sent := m.Counts.Of("window_sent")
		if sent == 0 {
			return Missing()
		}
		return Float(100 * float64(m.Counts.Of(count)) / float64(sent))
	}
	return &row
}

// network is the system name that stored runs of networks have.
const network = "network"

// OfNetwork returns the declaration of a run with a network of queues. It has the counters of one queue, for the whole
// run, and the counters for the time after the warm-up.
func OfNetwork(queue *Declaration) *Declaration {
	d := &Declaration{System: network, Ledger: olaf.JoinLedgers(queue.Ledger, windowed)}
	d.Metrics = append(d.Metrics, queue.Metrics...)
	for i := range windowed.Counters {
		d.Metrics = append(d.Metrics, counterMetric(&windowed.Counters[i], false))
	}
	d.Metrics = append(d.Metrics, windowShares...)
	return d
}

// OfWindow returns the ledger of those counters in OfNetwork that cover the time after the warm-up.
func OfWindow() *olaf.Ledger { return windowed }

// WindowShare returns the metric of windowShares with the given name. It panics if the name is unknown.
func WindowShare(name string) *Metric {
	for _, m := range windowShares {
		if m.Name == name {
			return m
		}
	}
	panic("metric: no share of the window is named " + name)
}
