package results

import (
	"fmt"

	"github.com/olafctl/olaf"
)

// ErrAccounting is the kind of every broken accounting identity; such a run is invalid.
var ErrAccounting = olaf.ErrAccounting

// Counters is what became of every update of one run, in updates unless a name says frames or count. The names and the
// identities between them are those of docs/semantics.md, Accounting identities.
type Counters struct {
	Sent int64 `json:"sent"`
	// TCWithheld counts what transmission control kept from being sent, beside Sent and in no identity. Only simulated
	// workers control themselves.
	TCWithheld       int64 `json:"tc_withheld,omitempty"`
	LostBeforeEngine int64 `json:"lost_before_engine"`
	Bypassed         int64 `json:"bypassed"`
	Malformed        int64 `json:"malformed"`
	// Misidentified is not a class of its own: the update went on under the table's identity.
	Misidentified int64 `json:"misidentified"`

	In              int64 `json:"in"`
	Appended        int64 `json:"appended"`
	Aggregated      int64 `json:"aggregated"`
	Replaced        int64 `json:"replaced"`
	ReplacedReward  int64 `json:"replaced_reward"`
	DroppedFull     int64 `json:"dropped_full"`
	DroppedReward   int64 `json:"dropped_reward"`
	DroppedMismatch int64 `json:"dropped_mismatch"`

	// Delivered counts frames that left the engine, Queued frames still inside at the end, Flushed frames that a stop
	// discarded.
	Delivered int64 `json:"delivered"`
	Queued    int64 `json:"queued"`
	Flushed   int64 `json:"flushed"`
	// Received counts frames that the capture handed over, CaptureLost those it is known to have lost.
	Received    int64 `json:"received"`
	CaptureLost int64 `json:"capture_lost"`

	// The sums of the count field behind the identity over counts. CountSaturations voids that identity.
	CountDelivered    int64 `json:"count_delivered"`
	CountQueued       int64 `json:"count_queued"`
	CountFlushed      int64 `json:"count_flushed"`
	CountDiscarded    int64 `json:"count_discarded"`
	CountSaturations  int64 `json:"count_saturations"`
	LaneSaturations   int64 `json:"lane_saturations"`
	RewardSaturations int64 `json:"reward_saturations"`
}

// Lost is what the paper's Table 1 prints: sent − frames delivered − aggregated. It is the sum of LostParts.
func (c *Counters) Lost() int64 { return c.Sent - c.Delivered - c.Aggregated }

// Part is one named share of a count.
type Part struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`
}

// LostParts splits Lost by what happened, in a fixed order. Updates inside frames that were still queued or were flushed
// count once a frame, as their merged ones are in Aggregated.
func (c *Counters) LostParts() []Part {
	return []Part{
		{"replaced", c.Replaced},
		{"replaced_reward", c.ReplacedReward},
		{"dropped_full", c.DroppedFull},
		{"dropped_reward", c.DroppedReward},
		{"dropped_mismatch", c.DroppedMismatch},
		{"bypassed", c.Bypassed},
		{"malformed", c.Malformed},
		{"lost_before_engine", c.LostBeforeEngine},
		{"queued", c.Queued},
		{"flushed", c.Flushed},
	}
}

// LostPct is Lost as a percentage of Sent, not a number when nothing was sent.
func (c *Counters) LostPct() float64 { return 100 * float64(c.Lost()) / float64(c.Sent) }

// Check verifies the accounting identities. The error names the first one that does not hold, with both sides, and
// matches ErrAccounting.
func (c *Counters) Check() error {
	classes := c.Appended + c.Aggregated + c.Replaced + c.ReplacedReward + c.DroppedFull + c.DroppedReward + c.DroppedMismatch
	inside := c.Appended + c.Aggregated + c.Replaced + c.ReplacedReward - c.CountDiscarded
	identities := []struct {
		name        string
		left, right int64
		void        bool
	}{
		{"sent = in + bypassed + malformed + lost_before_engine", c.Sent, c.In + c.Bypassed + c.Malformed + c.LostBeforeEngine, false},
		{"in = appended + aggregated + replaced + replaced_reward + dropped_full + dropped_reward + dropped_mismatch", c.In, classes, false},
		{"appended = delivered + queued + flushed", c.Appended, c.Delivered + c.Queued + c.Flushed, false},
		{"delivered = received + capture_lost", c.Delivered, c.Received + c.CaptureLost, false},
		{"Σcount(delivered, queued, flushed) = appended + aggregated + replaced + replaced_reward − Σcount(discarded)",
			c.CountDelivered + c.CountQueued + c.CountFlushed, inside, c.CountSaturations > 0},
	}
	for _, id := range identities {
		if !id.void && id.left != id.right {
			return fmt.Errorf("%w: %s: %d ≠ %d", ErrAccounting, id.name, id.left, id.right)
		}
	}
	return nil
}
