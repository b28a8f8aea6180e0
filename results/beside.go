package results

import (
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results/metric"
)

// Beside is an age three times, of one and the same plan: on the twin with the plan's arrivals, on the twin with those that were
// logged, and as it was measured. The first two differ by the senders, the last two by the output. What is withheld or not known
// is missing.
type Beside struct {
	Plan     Float `json:"plan"`
	Twin     Float `json:"twin"`
	Measured Float `json:"measured"`
}

// OutputPct is by how many per cent what was measured is above the twin's of the same arrivals: what the output adds.
func (b *Beside) OutputPct() Float {
	if !b.Twin.Known() || !b.Measured.Known() || b.Twin == 0 {
		return Missing()
	}
	return 100 * (b.Measured/b.Twin - 1)
}

// Compare takes the ages of the twin's runs into one that was measured; a nil run is not known.
func (r *Run) Compare(plan, twin *Run) {
	r.Beside = map[string]Beside{}
	for m, measured := range r.Metrics.All {
		if m.Age {
			r.Beside[m.Name] = Beside{plan.age(m), twin.age(m), measured}
		}
	}
}

// Recall takes over from a stored run what its frames do not tell: how decisions compared, how late frames left, how fast bursts were, and the twin's
// ages, beside which stands what was measured again.
func (r *Run) Recall(stored *Run) {
	r.Decisions, r.LatenessNS, r.BurstRate = stored.Decisions, stored.LatenessNS, stored.BurstRate
	if stored.Beside == nil {
		return
	}
	r.Beside = map[string]Beside{}
	for name, b := range stored.Beside {
		r.Beside[name] = Beside{b.Plan, b.Twin, r.Metrics.Of(name)}
	}
}

func (r *Run) age(m *metric.Metric) Float {
	if r == nil {
		return Missing()
	}
	return r.Metrics.Of(m.Name)
}

// Withheld says how many runs do not tell their ages, and why the first of them does not.
type Withheld struct {
	Runs   int    `json:"runs"`
	Reason string `json:"reason"`
}

// real sums up what only runs on real wires have: whether the engine decides the same, how late frames left, what is withheld, how fast bursts were.
func (row *Row) real(runs []*Run) {
	var bursts []Float
	for _, r := range runs {
		if d := r.Decisions; d != nil {
			if row.Decisions == nil {
				row.Decisions = new(olaf.Decisions)
			}
			row.Decisions.Add(d)
		}
		if l := r.LatenessNS; l != nil {
			if row.LatenessNS == nil {
				row.LatenessNS = new(olaf.Quantiles)
			}
			row.LatenessNS.Worst(l)
		}
		if r.Withheld != "" {
			if row.Withheld == nil {
				row.Withheld = &Withheld{Reason: r.Withheld}
			}
			row.Withheld.Runs++
		}
		if r.BurstRate > 0 {
			bursts = append(bursts, r.BurstRate)
		}
	}
	if len(bursts) > 0 {
		s := Describe(bursts, "")
		row.BurstRate = &s
	}
	for i := range row.Stats {
		row.Stats[i].Beside = BesideOver(runs, row.Stats[i].Name)
	}
}

// BesideOver is the mean of each column of an age, over the runs that tell what was measured where any does, so that all columns are of the
// same runs; nil where no run was set beside the twin.
func BesideOver(runs []*Run, name string) *Beside {
	told := slices.ContainsFunc(runs, func(r *Run) bool { b, ok := r.Beside[name]; return ok && b.Measured.Known() })
	var plan, twin, measured []Float
	for _, r := range runs {
		if b, ok := r.Beside[name]; ok && b.Measured.Known() == told {
			plan, twin, measured = append(plan, b.Plan), append(twin, b.Twin), append(measured, b.Measured)
		}
	}
	if plan == nil {
		return nil
	}
	mean := func(values []Float) Float {
		s := Describe(values, "")
		return s.Mean
	}
	return &Beside{mean(plan), mean(twin), mean(measured)}
}
