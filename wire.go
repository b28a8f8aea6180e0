package olaf

// Layout of a frame (DESIGN, Frame): Ethernet 14, IPv4 20, UDP 8 and the OLAF header 22 make one 64-byte block, so that
// gradients start on a 512-bit beat. All fields are big-endian.
const (
	// HeaderBytes is everything before the first gradient lane.
	HeaderBytes = 64
	// LaneBytes is one int32 fixed-point gradient.
	LaneBytes = 4
	// MaxFrame is the largest frame, the jumbo frame of the paper's training runs (§8.2).
	MaxFrame Size = 9036
	// MaxLanes is how many gradients MaxFrame holds.
	MaxLanes = int(MaxFrame-HeaderBytes) / LaneBytes
	// AckStatusBytes is the queue status between an ACK's header and its lanes.
	AckStatusBytes = 8
	// MaxAckLanes is how many lanes an ACK holds, two fewer than an update.
	MaxAckLanes = MaxLanes - AckStatusBytes/LaneBytes
	// UDPPort is the destination port of every OLAF frame.
	UDPPort = 20300
	// MaxCount is where the count of merged updates saturates.
	MaxCount = 65535
	// GenModulus is where generation times wrap.
	GenModulus = uint64(1) << 48
)

// FrameSize is the length of an update's frame with the given number of lanes.
func FrameSize(lanes int) Size { return Size(HeaderBytes + LaneBytes*lanes) }
