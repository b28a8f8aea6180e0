package closedloop

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/program"
)

// CeilingAbout is the description of the metric that GoodputCeiling computes.
const CeilingAbout = "of values, if a worker's link carries only full packets of them"

// GoodputCeiling returns the upper limit that the links set on goodput. It is the rate, in bit/s, at which a worker's
// link carries values if every packet is full, averaged over the workers of a job. Hosts, servers and switches are
// ignored.
func GoodputCeiling(net *Network, parts *system.Parts) int64 {
	full := program.Packet{Kind: program.Data, Job: FirstJob, Lanes: uint16(parts.PerPacket)}
	size := parts.FrameSize(&full, false)
	all := int64(0)
	for i := range net.Access {
		all += net.Access[i].goodputCeiling(size, parts.PerPacket)
	}
	return (all + int64(net.Workers-len(net.Access))*net.Link.goodputCeiling(size,
		parts.PerPacket)) / int64(net.Workers)
}

// goodputCeiling returns the rate of values, in bit/s, on a link whose frames all have the given size and number of
// lanes.
func (l *Link) goodputCeiling(size olaf.Size, lanes int) int64 {
	values := float64(lanes) * float64(olaf.LaneBytes)
	rate := int64(float64(l.Rate) * values / float64(size+l.Overhead))
	if l.Frame > 0 {
		rate = min(rate, int64(8*values*float64(olaf.Second)/float64(l.Frame)))
	}
	return rate
}
