package results

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/olafctl/olaf/results/metric"
)

// Differs returns where a recomputed run differs from the stored run, or "" if it does not. It compares the counters
// and metrics that the stored run has and this version of olafctl declares. A zeroed metric may be 0 or missing.
// Metrics whose denominator has changed are not compared. Reasons are not compared either, because their wording may
// have changed.
func (r *Run) Differs(again *Run) string {
	for _, name := range r.Counters.Names() {
		if is, was := again.Counters.Of(name), r.Counters.Of(name); is != was && again.Counters.Index(name) >= 0 {
			return fmt.Sprintf("%s: stored %d, computed %d", name, was, is)
		}
	}
	for m, was := range r.Metrics.All {
		if !m.IsDeclared() { // the metric cannot be computed any more
			continue
		}
		if m.Over != "" && r.Counters.Index(m.Over) < 0 && again.Counters.Index(m.Over) >= 0 {
			continue
		}
		is := again.Metrics.Of(m.Name)
		if m.Zeroed && was == 0 && !is.Known() {
			continue
		}
		if is != was && (is.Known() || was.Known()) {
			return fmt.Sprintf("%s: stored %s, computed %s", m.Name, floatText(was), floatText(is))
		}
	}
	other := *again
	other.Counters, other.Metrics, other.Missing, other.Invalid = r.Counters, r.Metrics, r.Missing, r.Invalid
	return Difference(r, &other)
}

// Differs returns where a recomputed row differs from the stored row, or "" if it does not. The rules are the same as
// for runs.
func (r *Row) Differs(again *Row) string {
	for i := range r.Stats {
		was := r.Stats[i]
		at := slices.IndexFunc(again.Stats, func(s Stat) bool { return s.Name == was.Name })
		if at < 0 && !was.IsDeclared() {
			continue
		}
		is := *again.Stats.Of(was.Name)
		is.Reason = was.Reason
		if why := Difference(was.Statistic, is); why != "" {
			return was.Name + ": " + why
		}
	}
	other := *again
	other.Stats, other.Reasons, other.Clusters = r.Stats, r.Reasons, slices.Clone(again.Clusters)
	for i := range min(len(r.Clusters), len(other.Clusters)) {
		was, is := &r.Clusters[i], &other.Clusters[i]
		is.AoM.Reason, is.PeakAoM.Reason, is.AoMWorker.Reason = was.AoM.Reason, was.PeakAoM.Reason, was.AoMWorker.Reason
	}
	return Difference(r, &other)
}

// Differs returns where a recomputed comparison differs from the stored comparison, or "" if it does not. The rules are
// the same as for runs.
func (c *Comparison) Differs(again *Comparison) string {
	other := *again
	was, is := &c.AoMReduction, &other.AoMReduction
	is.WorkerCluster.Reason, is.ClusterCluster.Reason, is.WorkerWorker.Reason = was.WorkerCluster.Reason,
		was.ClusterCluster.Reason, was.WorkerWorker.Reason
	other.Speedup.Reason = c.Speedup.Reason
	return Difference(c, &other)
}

// Difference compares two values by their JSON encodings, which contain all numbers in full precision. It returns the
// first difference, or "" if they are equal.
func Difference(stored, again any) string {
	a, errA := json.Marshal(stored)
	b, errB := json.Marshal(again)
	switch {
	case errA != nil || errB != nil:
		return fmt.Sprintf("can't be written: %v, %v", errA, errB)
	case bytes.Equal(a, b):
		return ""
	}
	at := 0
	for at < min(len(a), len(b)) && a[at] == b[at] {
		at++
	}
	from := max(at-40, 0)
	return fmt.Sprintf("stored …%s…, computed …%s…", clipBytes(a, from), clipBytes(b, from))
}

func clipBytes(b []byte, from int) []byte { return b[min(from, len(b)):min(from+80, len(b))] }

func floatText(f Float) string {
	raw, err := json.Marshal(f)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// New returns the names in d that a stored run does not have because it is older, and the names in the run that d does
// not have.
func (r *Run) New(d *metric.Declaration) (new, unknown []string) {
	for i := range d.Ledger.Counters {
		if c := &d.Ledger.Counters[i]; !c.Sparse && r.Counters.Index(c.Name) < 0 {
			new = append(new, c.Name)
		}
	}
	for _, m := range d.Metrics {
		if m.Of != nil && !m.Sparse && !r.Metrics.Has(m.Name) {
			new = append(new, m.Name)
		}
	}
	for _, name := range r.Counters.Names() {
		if d.Ledger.Index(name) < 0 {
			unknown = append(unknown, name)
		}
	}
	for m := range r.Metrics.All {
		if d.Metric(m.Name) == nil {
			unknown = append(unknown, m.Name)
		}
	}
	return new, unknown
}
