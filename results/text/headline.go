package text

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/paper"
)

// headlines returns the findings of a bench in a few sentences. They report the losses, how fresh the models were under
// the same reading, and how our results compare with published numbers. If models are older with the system under test,
// or if the readings of an age disagree, the first sentence reports that. If there are only one or two runs, a warning
// comes first.
func headlines(b *results.Bench) []string {
	lines := []string{lossLine(b) + loopLine(b)}
	switch fresh, doubtful := freshLine(b); {
	case doubtful:
		lines = []string{fresh, lines[0]}
	default:
		lines = append(lines, fresh)
	}
	lines = slices.DeleteFunc(append(lines, burstLine(b), paperLine(b.Paper)), func(line string) bool { return line == "" })
	if len(lines) > 0 {
		lines[0] = fewRuns(b) + lines[0]
	}
	return lines
}

// fewRuns returns a warning if there are so few runs that intervals are very wide or missing.
func fewRuns(b *results.Bench) string {
	if len(b.Rows) == 0 || b.Rows[0].Runs < 1 || b.Rows[0].Runs > 2 {
		return ""
	}
	return olaf.Plural(b.Rows[0].Runs, "run") + " only: "
}

// burstLine returns a warning if the loss is determined only by bursts. This is the case if fewer updates are offered
// than the output can carry. It is also the case if the user chose the rate, and the queue empties between bursts at
// this rate and all lower ones. It returns "" if there are no bursts.
func burstLine(b *results.Bench) string {
	c := benchConfig(b)
	w := &c.Spec.Workload
	if len(c.Spec.Trace) > 0 || len(c.Spec.Loop) > 0 || w.MeanRate <= 0 || w.BurstPackets < 2 {
		return ""
	}
	for i := range b.Rows {
		r := &b.Rows[i]
		if lost := r.Stats.Of("lost_pct"); int64(w.MeanRate) < r.OutRateBPS && lost.Known() && lost.Mean > 0 {
			return fmt.Sprintf("Bursts determine the loss: the average of %v offered is below the output of %v, "+
				"so --rate changes only the gaps between bursts of %d.",
				w.MeanRate, olaf.Rate(r.OutRateBPS), w.BurstPackets)
		}
	}
	if !ratesChosen(b.Provenance.Command) || len(b.Rows) == 0 || !c.emptiesBetweenBursts(ratesOf(b.Rows)) {
		return ""
	}
	return fmt.Sprintf("Bursts determine the loss: at %v or less the queue empties between bursts of %d at %v, "+
		"so --rate does not change the loss.",
		w.MeanRate, w.BurstPackets, w.LineRate)
}

// ratesChosen reports whether a command line sets the offered rate or names a file that may set it.
func ratesChosen(command []string) bool {
	return slices.ContainsFunc(command, func(word string) bool {
		name, _, _ := strings.Cut(word, "=")
		return slices.Contains([]string{"--rate", "-f", "--file"}, name)
	})
}

// emptiesBetweenBursts reports whether even a full queue can send all its updates before the next burst begins, at each
// of the output rates. It returns false for random lengths or gaps, and for updates of several frames.
func (c *specConfig) emptiesBetweenBursts(rates []int64) bool {
	w := &c.Spec.Workload
	if w.BurstDist != "fixed" || w.GapDist != "fixed" || w.Values > 0 || w.LineRate <= w.MeanRate || c.Spec.Slots < 1 {
		return false
	}
	burst := float64(w.BurstPackets) * float64(w.Size.Bits())
	gap := burst/float64(w.MeanRate) - burst/float64(w.LineRate)
	full := float64(c.Spec.Slots+1) * float64((w.Size + c.Spec.Overhead).Bits())
	return !slices.ContainsFunc(rates, func(rate int64) bool { return full/float64(rate) > gap })
}

// specConfig contains those parts of a bench's configuration that the headlines need.
type specConfig struct {
	Spec struct {
		Slots    int             `json:"slots"`
		Overhead olaf.Size       `json:"overhead"`
		Trace    json.RawMessage `json:"trace"`
		Loop     json.RawMessage `json:"loop"`
		Workload struct {
			Clusters     int       `json:"clusters"`
			MeanRate     olaf.Rate `json:"mean_rate"`
			LineRate     olaf.Rate `json:"line_rate"`
			Size         olaf.Size `json:"size"`
			Values       int       `json:"values"`
			BurstPackets int       `json:"burst_packets"`
			BurstDist    string    `json:"burst_dist"`
			GapDist      string    `json:"gap_dist"`
		} `json:"workload"`
	} `json:"spec"`
}

// benchConfig returns the configuration of a bench. It is empty for documents that have none.
func benchConfig(b *results.Bench) *specConfig {
	c := new(specConfig)
	if json.Unmarshal(b.Config, c) != nil {
		return new(specConfig)
	}
	return c
}

// lossLine returns a sentence with the losses of every system at every rate.
func lossLine(b *results.Bench) string {
	rates := ratesOf(b.Rows)
	var parts []string
	for _, rate := range rates {
		between := ", "
		if len(parts) > 0 {
			between = " and " // the systems were named in this order
		}
		if shares := lossesAt(b.Rows, rate, len(parts) == 0); len(shares) > 0 {
			parts = append(parts, atRate(rates, rate)+strings.Join(shares, between))
		}
	}
	return sentence(parts)
}

// loopLine returns a sentence about closed-loop workers. It contains the time of an iteration, or of a gradient if
// iterations have different numbers of gradients, and the share of gradients on their links. It returns "" for workers
// that do not wait for answers.
func loopLine(b *results.Bench) string {
	rates, same := ratesOf(b.Rows), results.SameWork(b.Rows)
	var parts []string
	for i := range b.Rows {
		r := &b.Rows[i]
		iteration, goodput, ceiling := r.Stats.Of("iteration_ns"), r.Stats.Of("goodput_gbps"), r.Stats.Of("ceiling_gbps")
		if !iteration.Known() || !goodput.Known() || !ceiling.Known() {
			continue
		}
		per, unit := 1.0, "Gbit/s"
		if ceiling.Mean < 0.1 {
			per, unit = 1000, "Mbit/s"
		}
		takes := "an iteration takes " + Age(iteration) + ", "
		if !same {
			takes = perGradient(r)
		}
		parts = append(parts, fmt.Sprintf("%s%s: %s%s of %s %s of values a worker", atRate(rates, r.OutRateBPS), strings.ToUpper(r.Queue),
			takes, Decimal(per*float64(goodput.Mean), 2), Decimal(per*float64(ceiling.Mean), 2), unit))
	}
	return sentence(parts)
}

// perGradient returns the time per gradient as text. It is empty for a row that was stored by an earlier build without
// this time.
func perGradient(r *results.Row) string {
	if gradient := r.Stats.Of("gradient_ns"); gradient.Known() {
		return "a gradient takes " + Age(gradient) + ", "
	}
	return ""
}

// lossesAt returns the losses of all systems at a rate as text. The system under test comes first. If first is set, the
// systems are named.
func lossesAt(rows []results.Row, rate int64, first bool) (shares []string) {
	tested := results.Float(0)
	for i := range rows {
		lost := rows[i].Stats.Of("lost_pct")
		if rows[i].OutRateBPS != rate || !lost.Known() {
			continue
		}
		name, share := strings.ToUpper(rows[i].Queue), Decimal(float64(lost.Mean), 1)+" %"
		switch {
		case len(shares) == 0 && first:
			share = name + " lost " + share + " of updates"
		case first && lost.Mean < tested:
			share = name + " only " + share
		case first:
			share = name + " " + share
		}
		if len(shares) == 0 {
			tested = lost.Mean
		}
		shares = append(shares, share)
	}
	return shares
}

// sentence joins parts into a sentence that begins with a capital letter.
func sentence(parts []string) string {
	if len(parts) == 0 {
		return ""
	}
	s := strings.Join(parts, "; ") + "."
	return strings.ToUpper(s[:1]) + s[1:]
}

// ratesOf returns the output rates of the rows, in order.
func ratesOf(rows []results.Row) (rates []int64) {
	for i := range rows {
		if rate := rows[i].OutRateBPS; !slices.Contains(rates, rate) {
			rates = append(rates, rate)
		}
	}
	return rates
}

// atRate returns the name of a rate for a sentence if there is more than one rate, and otherwise "".
func atRate(rates []int64, rate int64) string {
	if len(rates) < 2 {
		return ""
	}
	return "at " + olaf.Rate(rate).String() + " "
}

// AgesNotCompared is the headline that is printed if ages cannot be compared; see results.SameWork.
const AgesNotCompared = "Ages are not compared, because an update of the weights contains more gradients in one " +
	"system than in the other."

// freshLine returns a sentence about how much fresher or older models are under the same reading, or about their age if
// nothing is compared. doubtful is true if they are older under any reading.
func freshLine(b *results.Bench) (line string, doubtful bool) {
	if len(b.Comparisons) == 0 {
		return ageLine(b), false
	}
	shown := *b
	if shown.Comparisons = b.CompareAges(); len(shown.Comparisons) == 0 {
		return AgesNotCompared, false
	}
	b = &shown
	disagree := false
	for i := range b.Comparisons {
		cluster, worker := &b.Comparisons[i].AoMReduction.ClusterCluster, &b.Comparisons[i].AoMReduction.WorkerWorker
		doubtful = doubtful || older(cluster) || older(worker)
		disagree = disagree || older(cluster) && fresher(worker) || fresher(cluster) && older(worker)
	}
	var parts []string
	for i := range b.Comparisons {
		if part := fresherAt(b, i, doubtful); part != "" {
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		return "", false
	}
	if doubtful {
		parts[len(parts)-1] += crowd(b)
	}
	if disagree {
		parts[0] = "the readings of an age disagree: " + parts[0]
	}
	return sentence(parts), doubtful
}

// fresherAt returns the text about comparison i, with ages per cluster and, if both is set, also per worker. For the
// first comparison it names the systems.
func fresherAt(b *results.Bench, i int, both bool) string {
	c := &b.Comparisons[i]
	cluster, worker := &c.AoMReduction.ClusterCluster, &c.AoMReduction.WorkerWorker
	var parts []string
	if cluster.Known() {
		parts = append(parts, Freshness(cluster)+" per cluster")
	}
	if worker.Known() && (both || !cluster.Known()) {
		parts = append(parts, Freshness(worker)+" per worker")
	}
	if len(parts) == 0 {
		return ""
	}
	part := strings.Join(parts, ", ")
	switch {
	case i == 0:
		part = fmt.Sprintf("%s's models were %s than %s's", strings.ToUpper(c.Queue), part, strings.ToUpper(c.Versus))
	case c.Versus != b.Comparisons[i-1].Versus:
		part += fmt.Sprintf(" than %s's", strings.ToUpper(c.Versus))
	}
	if r := results.FindMixedReduction(b.Paper, c); r != nil {
		part += fmt.Sprintf(" (the paper's reading: %s %%, published %s)", Decimal(float64(r.Ours.Mean), 1), formatPrinted(r.Published))
	}
	return atRate(ratesOf(b.Rows), c.OutRateBPS) + part
}

// fresher reports whether the interval of a reduction is above 0. older reports whether it is below 0.
func fresher(s *results.Statistic) bool { return s.Known() && s.Mean > 0 && !withinSpread(s) }
func older(s *results.Statistic) bool   { return s.Known() && s.Mean < 0 && !withinSpread(s) }

// withinSpread reports whether the interval of a difference contains 0.
func withinSpread(s *results.Statistic) bool {
	return s.CI95.Known() && math.Abs(float64(s.Mean)) <= float64(s.CI95)
}

// Freshness returns a reduction of an age in words.
func Freshness(s *results.Statistic) string {
	switch {
	case !s.Known():
		return "of unknown age"
	case withinSpread(s):
		return "neither fresher nor older"
	case s.Mean < 0:
		return Decimal(-float64(s.Mean), 1) + " % older"
	}
	return Decimal(float64(s.Mean), 1) + " % fresher"
}

// ageLine returns a sentence with the age of the models with the first system.
func ageLine(b *results.Bench) string {
	rates := ratesOf(b.Rows)
	var parts []string
	for i := range b.Rows {
		r := &b.Rows[i]
		cluster, worker := r.Stats.Of("aom_cluster_ns"), r.Stats.Of("aom_worker_ns")
		if !cluster.Known() || r.Queue != b.Rows[0].Queue {
			continue
		}
		part := Age(cluster) + " old per cluster"
		if worker.Known() {
			part += ", " + Age(worker) + " per worker"
		}
		if len(parts) == 0 {
			part = strings.ToUpper(r.Queue) + "'s models were " + part
		}
		parts = append(parts, atRate(rates, r.OutRateBPS)+part)
	}
	return sentence(parts)
}

// Age returns the mean of a statistic in nanoseconds as text in a suitable unit.
func Age(s *results.Statistic) string {
	by, unit := ScaleOf("ns", s)
	mean, _ := FormatRoundedParts(s, by)
	return mean + " " + unit
}

// crowd returns the number of clusters that shared the queue, in words, or "" if the configuration does not have it.
func crowd(b *results.Bench) string {
	c := benchConfig(b)
	if c.Spec.Slots == 0 || c.Spec.Workload.Clusters == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s on %s)", olaf.Plural(c.Spec.Workload.Clusters, "cluster"), olaf.Plural(c.Spec.Slots, "slot"))
}

// near is the largest deviation, in per cent, of results that the headline counts as near the printed numbers.
const near = 5

// paperLine returns a sentence with the number of printed numbers in the first artefact to which our results are near,
// and with their basis. It ignores results with too few runs for a verdict.
func paperLine(rows []results.PaperRow) string {
	for of := range artefacts(rows) {
		within, all, short := 0, 0, 0
		for i := range of {
			if !of[i].DeviationPct.Known() {
				continue
			}
			all++
			if of[i].Verdict == string(paper.TooShort) {
				short++
				continue
			}
			if math.Abs(float64(of[i].DeviationPct)) <= near {
				within++
			}
		}
		if all == 0 {
			return ""
		}
		if short == all {
			return fmt.Sprintf("%s: too few runs to judge %s.", titleOf(&of[0]), olaf.Plural(all, "number"))
		}
		line := fmt.Sprintf("%s: %d of %s within %d %%", titleOf(&of[0]), within, olaf.Plural(all, "number"), near)
		if short > 0 {
			line = fmt.Sprintf("%s: too few runs to judge %d of %s; %d of %d others within %d %%", titleOf(&of[0]), short, olaf.Plural(all, "number"), within, all-short, near)
		}
		if basis := sharedBasis(of); basis != "" {
			line += ", all " + basis
		}
		return line + "."
	}
	return ""
}

// titleOf returns the paper's name for an artefact, which is the last part of its source.
func titleOf(r *results.PaperRow) string {
	if at := strings.LastIndex(r.Source, ", "); at >= 0 {
		return r.Source[at+2:]
	}
	return r.Source
}

// Brief returns the findings of a bench in a few words, for lists. It contains the losses of the first system. It also
// contains how much fresher its models were under the same reading or, if there is no comparison, their age.
func Brief(b *results.Bench) string {
	if len(b.Rows) == 0 {
		return ""
	}
	r := &b.Rows[0]
	var parts []string
	if lost := r.Stats.Of("lost_pct"); lost.Known() {
		parts = append(parts, r.Queue+" lost "+Decimal(float64(lost.Mean), 1)+" %")
	}
	if iteration := r.Stats.Of("iteration_ns"); iteration.Known() {
		parts = append(parts, r.Queue+" iterates in "+Age(iteration))
	}
	aom, above, ages := r.Stats.Of("aom_cluster_ns"), r.Stats.Of(results.AbovePath), b.CompareAges()
	switch {
	case len(ages) > 0 && ages[0].AoMReduction.ClusterCluster.Known():
		parts = append(parts, Freshness(&ages[0].AoMReduction.ClusterCluster))
	case aom.Known():
		parts = append(parts, "AoM "+Age(aom))
	case above.Known():
		parts = append(parts, "AoM "+Age(above)+" above the path")
	}
	return strings.Join(parts, ", ")
}
