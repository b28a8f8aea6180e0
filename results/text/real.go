package text

import (
	"fmt"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
)

// Mood is the tone of a Saying, such as fine or doubtful.
type Mood int

const (
	Neutral Mood = iota
	Fine
	Doubt // acceptable, but less than possible
	Wrong
)

// Saying is a line about the quality of a row of runs in real time.
type Saying struct {
	About, Text string
	Mood        Mood
}

// Real returns lines about the quality of a row that was measured in real time. They are about the comparison of
// decisions, the lateness of frames, the rate in bursts, and withheld ages. The list is empty for other rows.
func Real(r *results.Row) (list []Saying) {
	say := func(about string, mood Mood, format string, a ...any) {
		list = append(list, Saying{about, fmt.Sprintf(format, a...), mood})
	}
	if d := r.Decisions; d != nil {
		mood, void := Fine, ""
		if d.Differ() || d.Void != "" {
			mood = Wrong
		}
		if d.Void != "" {
			void = ", which says nothing: " + d.Void
		}
		say("decisions", mood, "%d of %d decisions as the engine's%s", d.Equal, d.Checked, void)
	}
	if l := r.LatenessNS; l != nil {
		say("lateness", Neutral, "frames left late by %v (p50), %v (p99), %v at most", time.Duration(l.P50),
			time.Duration(l.P99), time.Duration(l.Max))
	}
	if b := r.BurstRate; b != nil {
		say("bursts", Neutral, "updates came at %s inside bursts", Rate(b.Mean))
	}
	if w := r.Withheld; w != nil {
		say("withheld", Doubt, "ages of %s withheld, counts are valid: %s", olaf.Plural(w.Runs, "run"), w.Reason)
	}
	return list
}
