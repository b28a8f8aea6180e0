package closedloop

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/program"
)

// CeilingAbout says what Ceiling is.
const CeilingAbout = "of values, where a worker's link carries nothing but full packets of them"

// Ceiling is the most goodput that the links let a worker have: the rate of values, in bit/s, where its link carries nothing but full packets
// of them, mean over the workers of a job. What hosts, servers and switches take is not in it.
func Ceiling(net *Network, parts *system.Parts) int64 {
	full := program.Packet{Kind: program.Data, Job: FirstJob, Lanes: uint16(parts.PerPacket)}
	size := parts.Size(&full, false)
	all := int64(0)
	for i := range net.Access {
		all += net.Access[i].ceiling(size, parts.PerPacket)
	}
	return (all + int64(net.Workers-len(net.Access))*net.Link.ceiling(size, parts.PerPacket)) / int64(net.Workers)
}

// ceiling is the rate of values on a link that carries frames of a size alone, each with so many lanes.
func (l *Link) ceiling(size olaf.Size, lanes int) int64 {
	values := float64(lanes) * float64(olaf.LaneBytes)
	rate := int64(float64(l.Rate) * values / float64(size+l.Overhead))
	if l.Frame > 0 {
		rate = min(rate, int64(8*values*float64(olaf.Second)/float64(l.Frame)))
	}
	return rate
}
