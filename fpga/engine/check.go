package engine

import (
	"errors"
	"fmt"
)

// ErrAccounting is the kind of a broken accounting identity. A run that breaks one is invalid.
var ErrAccounting = errors.New("engine: the accounts do not balance")

// Check verifies the engine's identities of docs/semantics.md, Accounting: every arrival has one class, every frame that
// was appended has left, waits or was flushed, and no update inside a frame was lost or made up. queuedFrames and
// queuedUpdates are what QueuedCount said at the same instant. The identity over updates is void after a count
// saturated; Stats.CountSaturations tells. The error matches ErrAccounting and shows both sides.
func Check(s Stats, queuedFrames, queuedUpdates uint64) error {
	accepted := s.Class[Appended] + s.Class[Aggregated] + s.Class[Replaced] + s.Class[ReplacedReward]
	identities := []struct {
		what        string
		left, right uint64
		void        bool
	}{
		{"arrivals = sum of the classes", s.Offered, s.In(), false},
		{"appended = delivered + queued + flushed frames", s.Class[Appended], s.Released + queuedFrames + s.Flushed, false},
		{"updates delivered + queued + flushed + discarded = updates accepted",
			s.SumReleased + queuedUpdates + s.SumFlushed + s.SumDiscarded, s.SumAccepted, s.CountSaturations > 0},
		{"updates accepted are at least the arrivals accepted", max(s.SumAccepted, accepted), s.SumAccepted, false},
	}
	for _, id := range identities {
		if id.left != id.right && !id.void {
			return fmt.Errorf("%w: %s: %d ≠ %d", ErrAccounting, id.what, id.left, id.right)
		}
	}
	return nil
}

// Audit checks e as it stands.
func Audit(e Engine) error {
	frames, updates := e.QueuedCount()
	return Check(e.Stats(), frames, updates)
}
