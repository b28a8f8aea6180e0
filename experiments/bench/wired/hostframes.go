package wired

import (
	"cmp"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/frame"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/xagg"
)

// HostFrames encodes and decodes the frames of a host that is connected to a Stand. It implements process.FrameCodec.
type HostFrames struct {
	parts   *system.Parts
	framer  *closedloop.Framer
	workers int
	number  int            // host number; the server comes after the workers
	own     olaf.Addresses // as sources
	lanes   []uint32
}

// NewHostFrames returns the codec of the host with the given number, in a job with the given number of workers.
func NewHostFrames(parts *system.Parts, workers, number int) *HostFrames {
	net := &closedloop.Network{Jobs: 1, Workers: workers}
	c := &HostFrames{parts: parts, framer: closedloop.NewFramer(parts.Frame, net, parts.Server != nil), workers: workers,
		number: number, lanes: make([]uint32, olaf.MaxLanes)}
	c.own = c.framer.Address(number)
	binary.BigEndian.PutUint32(c.own.SrcMAC[2:], rand.Uint32())
	return c
}

// Switch returns the address of the switch's program. Frames for other addresses bypass it.
func (c *HostFrames) Switch() netip.AddrPort {
	if c.parts.Server != nil {
		return c.Host(c.workers + 1)
	}
	return c.Host(c.workers)
}

// Host returns the address of a host by its number.
func (c *HostFrames) Host(number int) netip.AddrPort {
	a := c.framer.Address(number)
	return netip.AddrPortFrom(netip.AddrFrom4(a.SrcIP), a.SrcPort)
}

// Encode implements process.FrameCodec.
func (c *HostFrames) Encode(dst []byte, p *program.Packet, lanes []uint32, to netip.AddrPort) (int, error) {
	ip := to.Addr().As4()
	there := olaf.Addresses{SrcIP: ip, SrcMAC: [6]byte{2, 0, ip[0], ip[1], ip[2], ip[3]}, SrcPort: to.Port()}
	outer := outerTo(&c.own, &there, to != c.Switch(), c.number == c.workers)
	format := c.parts.Frame
	if isLeave(p) {
		format = frame.Baseline
	}
	return format.Encode(dst, &outer, p, lanes)
}

// isLeave reports whether a packet announces that a host ended. The systems themselves have no such packet, except for
// XAgg, and iSwitch, whose switch would then add fewer vectors.
func isLeave(p *program.Packet) bool { return p.Kind == program.Control && p.Action == xagg.Leave }

// Decode implements process.FrameCodec. The frame of a sum does not contain the sum's contributors; see assumeTrace. The
// job's programs check them.
func (c *HostFrames) Decode(b []byte, vector uint32, p *program.Packet) (lanes []uint32, from netip.AddrPort, ok bool) {
	v, err := c.parts.Frame.Decode(b)
	if err != nil {
		if v, err = frame.Baseline.Decode(b); err != nil || v.Message.Kind != program.Control { // about hosts
			return nil, from, false
		}
	}
	outer := v.Outer()
	if outer.DstIP != c.own.SrcIP {
		return nil, from, false
	}
	from = netip.AddrPortFrom(netip.AddrFrom4(outer.SrcIP), outer.SrcPort)
	worker := c.number < c.workers
	lanes = readPacket(&v, p, c.lanes, 0, worker)
	if p.Kind == program.Control && !isLeave(p) {
		for k := range c.workers {
			if c.framer.Address(k).SrcIP == outer.SrcIP {
				p.Worker = olaf.WorkerID(k) // the requester
			}
		}
	}
	if worker {
		assumeTrace(p, c.workers, vector)
	}
	return lanes, from, true
}

// outerTo returns the headers of a frame between hosts, or between a host and the switch. past means that the frame
// bypasses the program. fromServer means that a server or the switch sends it.
func outerTo(own, there *olaf.Addresses, past, fromServer bool) frame.Outer {
	outer := frame.Outer{Addresses: *own, Past: past}
	outer.DstMAC, outer.DstIP = there.SrcMAC, there.SrcIP
	if fromServer && past {
		outer.SrcPort = there.SrcPort // the worker's port, also for packets to it
	}
	return outer
}

// readPacket reads a packet that arrived at a host of the job with the given index. It returns the packet's lanes in the
// buffer, or nil if there are none.
func readPacket(v *frame.View, p *program.Packet, buffer []uint32, job int, worker bool) (lanes []uint32) {
	v.Packet(p)
	if lanes = buffer[:v.Lanes(buffer)]; len(lanes) == 0 {
		lanes = nil
	}
	if p.Job == 0 { // the frame does not name it
		p.Job = closedloop.FirstJob + olaf.ClusterID(job)
	}
	if worker && p.Kind == program.Data && !v.Message.Past { // both use the same format
		p.Kind = program.Result
	}
	return lanes
}

// assumeTrace adds to a sum the trace that its frame does not contain. It assumes the gradients of the worker's current
// round: one per worker, or as many as the packet counts. Checks of the sum's contents verify this assumption.
func assumeTrace(p *program.Packet, workers int, vector uint32) {
	if p.Kind == program.Result || p.Kind == program.Ack {
		p.Vectors, p.Inside = uint32(cmp.Or(int(p.Count), workers)), program.MarkWorkers(workers, vector)
	}
}
