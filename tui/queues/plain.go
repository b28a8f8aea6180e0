package queues

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/bench/slowmotion"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/text"
	"github.com/olafctl/olaf/tui/num"
)

// Plain writes the content of the dashboard as lines of text for screen readers, logs and pipes. The output depends
// only on the snapshots. The caller decides how often to write one.
type Plain struct {
	out     io.Writer
	started bool
	full    map[int]bool
	paired  map[int]bool // queues whose ages were printed next to the twin's
	state   slowmotion.State
}

// NewPlain returns a Plain that writes to out.
func NewPlain(out io.Writer) *Plain {
	return &Plain{out: out, full: make(map[int]bool), paired: make(map[int]bool)}
}

// Show writes the changes in s: the heading if it is the first snapshot, a line for each queue, and changes of state in
// words.
func (p *Plain) Show(s *slowmotion.Snapshot) error {
	var b strings.Builder
	if !p.started {
		p.started = true
		w := &s.Plan.Spec.Workload
		fmt.Fprintf(&b, "%s on %s %s: %s in %s offer %v, %s, run %d of seed %d, %s\n",
			s.Plan.Spec.Experiment, s.Device.Address, s.Device.Build, olaf.Plural(w.Workers, "worker"),
			olaf.Plural(w.Clusters, "cluster"), w.MeanRate, olaf.Plural(s.Plan.Spec.Slots, "slot"), slices.Index(s.Plan.Seeds, s.Seed), s.Plan.Spec.Seed, samplingText(s))
	}
	fmt.Fprintf(&b, "%s of %s, %s, sent %d of %d\n", num.FormatInstant(s.Now, s.End), num.FormatEnd(s.End),
		s.State, s.Sent, s.Total)
	for i := range s.Queues {
		p.writeQueue(&b, i, &s.Queues[i])
	}
	if s.State != p.state && s.Err != nil {
		fmt.Fprintf(&b, "error: %v\n", s.Err)
	}
	p.state = s.State
	_, err := io.WriteString(p.out, b.String())
	return err
}

func samplingText(s *slowmotion.Snapshot) string {
	if s.Sampled {
		return "sampled counters"
	}
	return "every event observed"
}

func (p *Plain) writeQueue(b *strings.Builder, i int, q *slowmotion.QueueSnapshot) {
	c := &q.Counters
	fmt.Fprintf(b, "  %s out at %v: %d of %d slots used, merged %d, delivered %d, lost %d, age of model%s\n",
		q.Name, q.OutRate, q.Occupancy, q.Slots, c.SumMerged(), c.SumOutput(), c.SumLost()-c.SumInside(), agesText(q))
	if q.OnTheWay > 0 {
		fmt.Fprintf(b, "  %d sums are on their way to workers\n", q.OnTheWay)
	}
	if full := q.Occupancy >= q.Slots; full != p.full[i] {
		p.full[i] = full
		word := "has free slots again"
		if full {
			word = "is full"
		}
		fmt.Fprintf(b, "  %s %s\n", q.Name, word)
	}
	if q.Invalid != "" {
		fmt.Fprintf(b, "  %s is invalid: %s\n", q.Name, q.Invalid)
	}
	if q.Pair != nil && !p.paired[i] {
		p.paired[i] = true
		writePair(b, q.Name, q.Pair)
	}
}

// writePair writes the ages of a finished run next to those of the twin, and the assessment of the difference.
func writePair(b *strings.Builder, name string, r *results.Row) {
	for i := range r.Stats {
		s := &r.Stats[i]
		if s.TwinComparison == nil || s.Column == "" || s.Unit != "ns" {
			continue
		}
		fmt.Fprintf(b, "  %s %s: the twin's of the plan %s, of the arrivals that were logged %s, measured %s", name,
			s.Column, text.Duration(s.Plan), text.Duration(s.Twin), text.Duration(s.Measured))
		if off := s.OutputPct(); off.Known() {
			fmt.Fprintf(b, ", %s %% off", text.FormatSigned(off))
		} else if s.Reason != "" {
			fmt.Fprintf(b, " (%s)", s.Reason)
		}
		b.WriteString("\n")
	}
	for _, said := range text.Real(r) {
		fmt.Fprintf(b, "  %s: %s\n", name, said.Text)
	}
}

// agesText returns the age of model for every reading: the current age, if known, and the average age.
func agesText(q *slowmotion.QueueSnapshot) string {
	var parts []string
	for reading := range olaf.Reading(olaf.Readings) {
		part := " " + reading.String()
		if now := q.AoMNow[reading]; now.Known() {
			part += " now " + num.FormatNS(float64(now)) + ","
		}
		parts = append(parts, part+" average "+num.FormatNS(float64(q.MeanAoM[reading])))
	}
	return strings.Join(parts, ";")
}
