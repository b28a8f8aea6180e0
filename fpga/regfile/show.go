package regfile

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/aggregator"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/regmap"
)

// ShowSlot writes an update into the inspector's registers. state contains the bits for a valid and a departing frame,
// and appended is the cycle at which the slot was filled.
func (f *File[C]) ShowSlot(state uint32, u *olaf.Update, appended uint64) {
	if u.Flags&olaf.Retransmission != 0 {
		state |= regmap.QueueInspectStateRetransmission
	}
	if u.Flags&olaf.CountSaturated != 0 {
		state |= regmap.QueueInspectStateSaturated
	}
	f.Set(regmap.QueueInspectState, state)
	f.Set(regmap.QueueInspectIdentity, uint32(u.Worker)|uint32(u.Cluster)<<16)
	f.Set(regmap.QueueInspectSize, uint32(u.Count)|uint32(u.Lanes)<<16)
	f.Set(regmap.QueueInspectSequence, u.Seq)
	f.Set(regmap.QueueInspectReward, uint32(u.Reward))
	f.Set64(regmap.QueueInspectGeneration, u.GenNS)
	f.Set64(regmap.QueueInspectAppended, appended)
}

// Cluster contains the counts of one cluster.
type Cluster struct {
	Class            [engine.Classes]uint64
	DeliveredFrames  uint64
	DeliveredUpdates uint64
	LastDeparture    uint64 // in cycles; 0 if there was none
}

// classRegisters contains the address of the counter for each class in the cluster bank.
var classRegisters = func() (at [engine.Classes]uint32) {
	for class := range at {
		if ref, err := regmap.FindRegister("queue.cluster_" + engine.Class(class).String()); err == nil {
			at[class] = ref.Address()
		}
	}
	return at
}()

// ShowCluster writes the counts of one cluster into the registers of the cluster bank.
func (f *File[C]) ShowCluster(c *Cluster) {
	var in uint64
	for class, at := range classRegisters {
		in += c.Class[class]
		f.Set64(at, c.Class[class])
	}
	f.Set64(regmap.QueueClusterIn, in)
	f.Set64(regmap.QueueClusterDeliveredFrames, c.DeliveredFrames)
	f.Set64(regmap.QueueClusterDeliveredUpdates, c.DeliveredUpdates)
	f.Set64(regmap.QueueClusterLastDeparture, c.LastDeparture)
}

// ShowPartial writes a partial sum of the switch program before the queue into the inspector's registers. since is the
// cycle of its first contribution. If p is nil, all registers read as 0.
func (f *File[C]) ShowPartial(p *aggregator.Partial, since uint64) {
	for _, at := range partialRegisters {
		f.Set(at, 0)
	}
	if p == nil {
		return
	}
	newest := olaf.Contributor{GenNS: p.NewestNS} // the contributors of a closed loop's slot are unknown
	if len(p.Inside) > 0 {
		newest = p.Inside[len(p.Inside)-1]
	}
	f.Set(regmap.AggregatorInspectState, regmap.AggregatorInspectStateValid)
	f.Set(regmap.AggregatorInspectIdentity, uint32(p.Job)<<16|uint32(newest.Worker))
	f.Set(regmap.AggregatorInspectSize, uint32(len(p.Lanes))<<16|uint32(p.Count))
	f.Set(regmap.AggregatorInspectSegment, uint32(p.Place))
	f.Set64(regmap.AggregatorInspectGeneration, newest.GenNS)
	f.Set64(regmap.AggregatorInspectSince, since)
}

var partialRegisters = []uint32{
	regmap.AggregatorInspectState, regmap.AggregatorInspectIdentity, regmap.AggregatorInspectSize,
	regmap.AggregatorInspectSegment,
	regmap.AggregatorInspectGeneration, regmap.AggregatorInspectGeneration + 4, regmap.AggregatorInspectSince,
	regmap.AggregatorInspectSince + 4,
}
