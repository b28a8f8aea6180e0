package olaf

// ClusterID identifies a cluster, the workers of one training job. There are at most 65,536 clusters (DESIGN,
// Registers).
type ClusterID uint16

// WorkerID identifies a worker within its cluster. In a testbed, workers of all clusters are numbered from 0 without
// gaps, so that the id alone identifies a worker.
type WorkerID uint16

// Flags are the Boolean properties of an update.
type Flags uint8

const (
	// Retransmission marks an update that was sent before (header bit 1).
	Retransmission Flags = 1 << iota
	// CountSaturated marks an update whose count reached the maximum of 65,535. The mark is not transmitted. In such a
	// run, the accounting identity over counts is not checked.
	CountSaturated
)

// Update is one model update in the data path. It contains the fields of the OLAF header and the number of gradients.
// The gradients themselves are passed separately, only where they are needed.
type Update struct {
	GenNS   uint64    // generation time of the newest update inside, ns since the generator was armed, modulo 2^48
	Seq     uint32    // number of the newest contributor's update, per worker from 0
	Reward  int32     // signed Q24.8; saturating sum of the rewards of all Count updates inside
	Cluster ClusterID // id from the tables, not from the header
	Worker  WorkerID  // worker of the newest contributor
	Count   uint16    // updates inside, 1 from a worker, saturating
	Lanes   uint16    // int32 gradients in the payload, at most MaxLanes
	Flags   Flags
}

// Size returns the length of the update's frame, which has 64 bytes of headers and 4 bytes per lane.
func (u *Update) Size() Size { return FrameSize(int(u.Lanes)) }

// Contributor describes one worker's update that is part of a merged update.
type Contributor struct {
	GenNS  uint64
	Seq    uint32
	Worker WorkerID
}

// Observation describes one delivered frame as the parameter server saw it.
type Observation struct {
	At     Time     // time when the last bit was received, since the generator was armed
	Queued Duration // time from the filling of the slot until At; negative if not measured (in a plain capture)
	Update Update
	// Contributors lists the merged updates, oldest first; nil without a provenance log. It may be reused after the
	// call that returned it.
	Contributors []Contributor
}
