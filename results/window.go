package results

import (
	"fmt"

	"github.com/olafctl/olaf"
)

// UnknownAge is the InitialAge of a Window in which ages are undefined until the first delivery.
const UnknownAge olaf.Duration = -1

// Window is the time over which ages are averaged (docs/reference/semantics.md, AoM window). The zero Window lasts from
// the first to the last delivery of each age, as in the micro-benchmark. A Window with a To is a fixed part of the run.
type Window struct {
	From olaf.Time `json:"from_ps"`
	To   olaf.Time `json:"to_ps"`
	// InitialAge is the age at From of sawtooths without an earlier delivery; with UnknownAge they start at their
	// first delivery.
	InitialAge olaf.Duration `json:"initial_age"`
}

// FirstToLast reports whether the window lasts from the first to the last delivery of each age.
func (w Window) FirstToLast() bool { return w.To == 0 }

// String returns a description of the window in words.
func (w Window) String() string {
	switch {
	case w.FirstToLast():
		return "first to last delivery"
	case w.InitialAge < 0:
		return fmt.Sprintf("%s to %s, from the first delivery on", w.From, w.To)
	}
	return fmt.Sprintf("%s to %s, age %s at the start", w.From, w.To, w.InitialAge)
}
