package olaf

// Layout of a frame (DESIGN, Frame): Ethernet 14, IPv4 20, UDP 8 and the OLAF header 22 make one 64-byte block, so that
// gradients start on a 512-bit beat. All fields are big-endian.
const (
	// HeaderBytes is the length of all headers before the first gradient lane.
	HeaderBytes = 64
	// LaneBytes is the length of one gradient lane, a fixed-point int32.
	LaneBytes = 4
	// MaxFrame is the length of the largest frame, the jumbo frame of the paper's training runs (§8.2).
	MaxFrame Size = 9036
	// MaxLanes is the number of gradients in a frame of MaxFrame bytes.
	MaxLanes = int(MaxFrame-HeaderBytes) / LaneBytes
	// AckStatusBytes is the length of the queue status, which is between the header and the lanes of an ACK.
	AckStatusBytes = 8
	// MaxAckLanes is the maximum number of lanes in an ACK, two fewer than in an update.
	MaxAckLanes = MaxLanes - AckStatusBytes/LaneBytes
	// UDPPort is the destination port of every OLAF frame.
	UDPPort = 20300
	// MaxCount is the maximum count of merged updates, at which the count saturates.
	MaxCount = 65535
	// GenModulus is the modulus of generation times on the wire.
	GenModulus = uint64(1) << 48
)

// FrameSize returns the length of an update's frame with the given number of lanes.
func FrameSize(lanes int) Size { return Size(HeaderBytes + LaneBytes*lanes) }

// UnwrapStamp returns the latest time that is not after at and equals the timestamp modulo 2^48 ns.
func UnwrapStamp(at Time, genNS uint64) Time {
	age := (uint64(at.NS()) - genNS) % GenModulus
	return Time(at.NS()-int64(age)) * Time(Nanosecond)
}
