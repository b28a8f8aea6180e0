package job

import (
	"fmt"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/result"
	"github.com/olafctl/olaf/results/text"
)

// Clustered contains the results of the closed-loop clusters in a simulated topology. The statistics of the topology's
// runs do not include them.
type Clustered struct {
	Outcome       // counts and metrics over the whole runs
	Stalled []int // by run: number of clusters without recent deliveries at the end
}

// OfClusters collects the results of the clusters from a topology's runs.
func OfClusters(t *netsim.Topology, runs []*netsim.Result) (*Clustered, error) {
	j, err := netsim.NewJobs(t)
	if err != nil {
		return nil, err
	}
	c := &Clustered{Outcome: Outcome{Spec: &Spec{System: j.System, Mode: j.Mode, Options: j.Options, Network: j.Network,
		Job: j.Job}}}
	for _, r := range runs {
		c.Runs, c.Stalled = append(c.Runs, r.Waited.Result), append(c.Stalled, r.Waited.Stalled)
	}
	c.describe()
	return c, nil
}

// Name returns the name under which tables list the clusters.
func (r *Clustered) Name() string { return r.Spec.Name() }

// Err returns nil if no cluster stalled. The error matches ErrHung.
func (r *Clustered) Err() error {
	clusters, runs := 0, 0
	for _, n := range r.Stalled {
		if clusters += n; n > 0 {
			runs++
		}
	}
	if clusters == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s in %d of %s had stopped at the end", ErrHung, olaf.Plural(clusters, "cluster"), runs,
		olaf.Plural(len(r.Stalled), "run"))
}

// shown lists the metrics that are meaningful for an endless job.
var shown = []string{"iteration_ns", "staleness_updates", "staleness_vectors", "aom_newest_ns", "slots_held",
	"slots_held_peak", "memory_bytes", "frames", "wire_bytes"}

// stalled is the metric for the number of clusters that had no recent deliveries at the end of a run.
var stalled = result.NewMetric("stalled_clusters", "Clusters that stood still", "")

// Stats returns the statistics that are meaningful for workers that train until the simulated time is up.
func (r *Clustered) Stats() (stats results.Stats) {
	for _, m := range jobMetrics {
		if slices.Contains(shown, m.Name) {
			stats = append(stats, results.Stat{Metric: m, Statistic: r.Number(m.Name)})
		}
	}
	values := olaf.Map(r.Stalled, func(n int) metric.Float { return metric.Float(n) })
	return append(stats, results.Stat{Metric: stalled, Statistic: results.Describe(values, "no run")})
}

// Totals returns the counters of hosts and switches, summed over all runs.
func (r *Clustered) Totals() map[string]int64 { return r.totals() }

// Lines returns text about the clusters that a network's statistics do not contain: iteration times, ages at the
// workers, and retransmissions.
func (r *Clustered) Lines() (lines []string) {
	iteration, here, held := r.Number("iteration_ns"), r.Number("aom_newest_ns"), r.Number("slots_held")
	lines = append(lines, r.Spec.Mode.About+fmt.Sprintf(
		": %s between updates; a gradient takes what lies between two updates of workers that do not wait",
		text.Age(&iteration)))
	lines = append(lines, fmt.Sprintf("at the workers, half a round trip later, models were %s old; switches held "+
		"%s slots, mean over time", text.Age(&here), text.FormatRounded(&held, 1)))
	packets := fmt.Sprintf("a gradient takes %s; ", olaf.Plural(r.Spec.Job.Packets(), "packet"))
	if r.Spec.Options.Timeout > 0 {
		packets += fmt.Sprintf("after %s of silence workers try again: ", r.Spec.Options.Timeout)
	}
	return append(lines, packets+fmt.Sprintf("%d sent again, %d packets of sums inexact, %d updates torn, %d gradients too stale",
		r.Endpoints.Of("packets_resent"), r.Endpoints.Of("packets_inexact"), r.Endpoints.Of("updates_torn"),
		r.Endpoints.Of("vectors_discarded")))
}
