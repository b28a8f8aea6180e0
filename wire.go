package olaf

// Layout of a frame (DESIGN, Frame): Ethernet 14, IPv4 20, UDP 8 and the OLAF header 22 make one 64-byte block, so that
// gradients start on a 512-bit beat. All fields are big-endian.
const (
	// HeaderBytes is the length of everything before the first gradient lane.
	HeaderBytes = 64
	// LaneBytes is the length of one int32 fixed-point gradient.
	LaneBytes = 4
	// MaxFrame is the largest frame, the jumbo frame of the paper's training runs (§8.2).
	MaxFrame Size = 9036
	// MaxLanes is the number of gradients in a MaxFrame.
	MaxLanes = int(MaxFrame-HeaderBytes) / LaneBytes
	// AckStatusBytes is the length of the queue status between an ACK's header and its lanes.
	AckStatusBytes = 8
	// MaxAckLanes is the maximum number of lanes in an ACK, two fewer than in an update.
	MaxAckLanes = MaxLanes - AckStatusBytes/LaneBytes
	// UDPPort is the destination port of every OLAF frame.
	UDPPort = 20300
	// MaxCount is the value at which the count of merged updates saturates.
	MaxCount = 65535
	// GenModulus is the modulus of generation times.
	GenModulus = uint64(1) << 48
)

// FrameSize returns the length of an update's frame with the given number of lanes.
func FrameSize(lanes int) Size { return Size(HeaderBytes + LaneBytes*lanes) }
