package engine

import "github.com/olafctl/olaf"

// Row declares one counter of Stats. It has the counter's names in vectors, in JSON output and on a card, and a
// function that reads its value.
type Row struct {
	Vector string // name in golden vectors
	olaf.Counter
	Of func(*Stats) uint64
}

// rows lists all counters of Stats, in the order of golden vectors. Rows without a Name do not appear in JSON output.
var rows = []Row{
	{"offered", olaf.Counter{Name: "in", Title: "Reached the queue", Unit: "updates",
		Doc: "updates that reached the queue", Register: "queue.in", Aside: true},
		func(s *Stats) uint64 { return s.Offered }},
	classRow(Appended, olaf.Counter{Title: "Appended", Doc: "arrivals that took a free slot", Aside: true}),
	classRow(Aggregated, olaf.Counter{Title: "Aggregated",
		Doc: "arrivals merged into a waiting update, one per arrival", Paper: "Algorithm 1, lines 12 and 16",
		Column: "AGGREGATED"}),
	classRow(Replaced, olaf.Counter{Title: "Replaced",
		Doc: "arrivals that took the place of a waiting, unaggregated update of the same worker", Paper: "line 10",
		Column: "REPLACED"}),
	classRow(ReplacedReward, olaf.Counter{Title: "Replaced by reward",
		Doc: "arrivals that took the place because their reward was higher by more than the threshold", Paper: "§3",
		Column: "REWARD"}),
	classRow(DroppedFull, olaf.Counter{Title: "Dropped, queue full",
		Doc: "arrivals without a slot and without a waiting update of their cluster", Paper: "line 22",
		Column: "FULL"}),
	classRow(DroppedReward, olaf.Counter{Title: "Dropped by reward",
		Doc: "arrivals whose reward was lower by more than the threshold", Paper: "§3", Column: "REWARD"}),
	classRow(DroppedMismatch, olaf.Counter{Title: "Dropped, size mismatch",
		Doc: "arrivals of another size than the waiting update", Column: "MISMATCH"}),
	{"locked", olaf.Counter{}, func(s *Stats) uint64 { return s.Locked }},
	{"delivered", olaf.Counter{Name: "delivered", Title: "Delivered", Unit: "frames",
		Doc: "frames whose last bit left the queue", Register: "queue.delivered_frames", Aside: true},
		func(s *Stats) uint64 { return s.Released }},
	{"flushed", olaf.Counter{Name: "flushed", Title: "Flushed", Unit: "frames", Doc: "frames that a stop discarded",
		Register: "queue.flushed_frames", Aside: true},
		func(s *Stats) uint64 { return s.Flushed }},
	{"sum_accepted", olaf.Counter{}, func(s *Stats) uint64 { return s.SumAccepted }},
	{"sum_delivered", olaf.Counter{Name: "count_delivered", Title: "Updates delivered", Unit: "updates",
		Doc: "updates inside the delivered frames", Register: "queue.delivered_updates", Aside: true},
		func(s *Stats) uint64 { return s.SumReleased }},
	{"sum_flushed", olaf.Counter{Name: "count_flushed", Title: "Updates flushed", Unit: "updates",
		Doc: "updates inside the flushed frames", Register: "queue.flushed_updates", Aside: true},
		func(s *Stats) uint64 { return s.SumFlushed }},
	{"sum_discarded", olaf.Counter{Name: "count_discarded", Title: "Updates discarded", Unit: "updates",
		Doc: "updates that replacements of either kind took out", Register: "queue.discarded_updates", Aside: true},
		func(s *Stats) uint64 { return s.SumDiscarded }},
	{"lane_saturations", olaf.Counter{Name: "lane_saturations", Title: "Lane saturations",
		Doc: "gradient sums that hit the end of their range", Register: "queue.lane_saturations", Aside: true},
		func(s *Stats) uint64 { return s.LaneSaturations }},
	{"reward_saturations", olaf.Counter{Name: "reward_saturations", Title: "Reward saturations",
		Doc: "reward sums that hit the end of their range", Register: "queue.reward_saturations", Aside: true},
		func(s *Stats) uint64 { return s.RewardSaturations }},
	{"count_saturations", olaf.Counter{Name: "count_saturations", Title: "Count saturations",
		Doc: "counts that stopped at 65,535; they void the identity over counts", Register: "queue.count_saturations",
		Aside: true},
		func(s *Stats) uint64 { return s.CountSaturations }},
	{"locked_collisions", olaf.Counter{Register: "queue.locked_collisions"},
		func(s *Stats) uint64 { return s.LockedCollisions }},
	{"peak_occupancy", olaf.Counter{}, func(s *Stats) uint64 { return uint64(s.PeakOccupancy) }},
}

// classRow returns the row for the counter of arrivals with the given class. It has the same name in vectors, JSON
// output and registers.
func classRow(class Class, c olaf.Counter) Row {
	c.Name, c.Unit, c.Register = class.String(), "updates", "queue."+class.String()
	return Row{c.Name, c, func(s *Stats) uint64 { return s.Class[class] }}
}

// CounterRows returns the rows for all counters of Stats, in the order of golden vectors.
func CounterRows() []Row { return append([]Row(nil), rows...) }

// Counters in an account that are not in Stats: queued frames and updates, and updates merged by an earlier hop.
var (
	queued = olaf.Counter{Name: "queued", Title: "Queued", Unit: "frames", Doc: "frames still inside at the end",
		Register: "queue.queued_frames", Aside: true}
	countQueued = olaf.Counter{Name: "count_queued", Title: "Updates queued", Unit: "updates",
		Doc: "updates inside these frames", Register: "queue.queued_updates", Aside: true}
	premerged = olaf.Counter{Name: "count_premerged", Title: "Merged before", Unit: "updates",
		Doc: "updates that accepted arrivals held beyond one each, as an earlier hop had merged them", Sparse: true,
		Aside: true}
)

// FlowLedger returns the ledger of a queue's arrivals and frames. SumsLedger has the counts of updates in them; a
// complete account needs both ledgers.
func FlowLedger() *olaf.Ledger {
	l := &olaf.Ledger{
		Counters: findCounters("in"), Output: []string{"delivered"}, Merged: []string{"aggregated"},
		Parts: []string{"replaced", "replaced_reward", "dropped_full", "dropped_reward", "dropped_mismatch", "queued",
			"flushed"}, Inside: []string{"queued"},
	}
	classes := classNames[:]
	l.Counters = append(l.Counters, findCounters(classes...)...)
	l.Counters = append(l.Counters, findCounters("delivered")[0], queued, findCounters("flushed")[0])
	l.Identities = []olaf.Identity{
		{Left: []string{"in"}, Right: classes},
		{Left: []string{"appended"}, Right: []string{"delivered", "queued", "flushed"}},
	}
	return l
}

// SumsLedger returns the ledger of the updates in a queue's arrivals and frames. See FlowLedger.
func SumsLedger() *olaf.Ledger {
	return &olaf.Ledger{
		Counters: append([]olaf.Counter{findCounters("count_delivered")[0], countQueued},
			append(findCounters("count_flushed", "count_discarded", "count_saturations", "lane_saturations",
				"reward_saturations"), premerged)...),
		Identities: []olaf.Identity{{
			Left:  []string{"count_delivered", "count_queued", "count_flushed"},
			Right: []string{"appended", "aggregated", "replaced", "replaced_reward", "count_premerged"},
			Less:  []string{"count_discarded"},
			Void:  "count_saturations",
			Text:  "Σcount(delivered, queued, flushed) = appended + aggregated + replaced + replaced_reward − Σcount(discarded)",
		}},
	}
}

// findCounters returns the declarations of the counters with the given names.
func findCounters(names ...string) []olaf.Counter {
	var found []olaf.Counter
	for _, name := range names {
		for i := range rows {
			if rows[i].Name == name {
				found = append(found, rows[i].Counter)
			}
		}
	}
	return found
}
