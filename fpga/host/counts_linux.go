package host

import "github.com/olafctl/olaf/fpga/engine"

// counts contains the plane's counters that the engine does not have.
type counts struct {
	bytes, delivered                                                    uint64 // bytes of arriving frames and of departed frames
	bypassed, foreign, malformed, misidentified, beyond, lost, unlogged uint64

	stats     engine.Stats // value at the previous takeSums
	peak      int
	settled   int64 // in ns, end of the occupancy integral
	occupancy uint64
}

// settle extends the occupancy integral to time at.
func (c *counts) settle(at int64, d engine.Discipline) {
	if frames, _ := d.QueuedCount(); c.settled > 0 && at > c.settled {
		c.occupancy += uint64(at-c.settled) * frames
	}
	c.settled = max(c.settled, at)
}

// takeSums returns the counts since its previous call, with the names that the kernel programs use.
func (c *counts) takeSums(s engine.Stats) map[string]uint64 {
	old := &c.stats
	sums := map[string]uint64{
		"in_bytes": c.bytes, "delivered_bytes": c.delivered, "bypassed": c.bypassed, "foreign": c.foreign, "malformed": c.malformed,
		"misidentified":   c.misidentified,
		"beyond_clusters": c.beyond, "lost_before_engine": c.lost, "unlogged": c.unlogged,
		"delivered_frames": s.Released - old.Released, "delivered_updates": s.SumReleased - old.SumReleased,
		"flushed_frames": s.Flushed - old.Flushed, "flushed_updates": s.SumFlushed - old.SumFlushed,
		"discarded_updates":  s.SumDiscarded - old.SumDiscarded,
		"lane_saturations":   s.LaneSaturations - old.LaneSaturations,
		"reward_saturations": s.RewardSaturations - old.RewardSaturations,
		"count_saturations":  s.CountSaturations - old.CountSaturations,
		"locked_collisions":  s.LockedCollisions - old.LockedCollisions,
	}
	for class := range s.Class {
		sums[engine.Class(class).String()] = s.Class[class] - old.Class[class]
	}
	*c = counts{stats: s, peak: c.peak, settled: c.settled, occupancy: c.occupancy}
	return sums
}
