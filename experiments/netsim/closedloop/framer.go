package closedloop

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/fpga/frame"
	"github.com/olafctl/olaf/pktgen"
)

// Framer makes the bytes of what a tap hears, in a system's own format. Gradients are not simulated unless they are trained;
// frames are then cut behind their headers. When a gradient was made and whose are inside is on no wire: how many vectors a sum
// holds is a comment.
type Framer struct {
	format  *frame.Format
	nodes   []olaf.Addresses // SrcMAC, SrcIP and SrcPort are their own
	workers int              // before servers and switches
	buffer  []byte
}

// headersKept is how much is kept of frames whose lanes nobody computes.
const headersKept = 128

// NewFramer gives a network's nodes their addresses; server says whether jobs have one.
func NewFramer(format *frame.Format, n *Network, server bool) *Framer {
	f := &Framer{format: format, workers: max(1, n.Jobs) * n.Workers, buffer: make([]byte, olaf.MaxFrame)}
	for i := range n.Nodes(server) {
		f.nodes = append(f.nodes, f.address(i))
	}
	return f
}

// Address is a node's: its own are the sources.
func (w *Framer) Address(node int) olaf.Addresses { return w.nodes[node] }

// firstSwitch is where a network's servers and switches have their addresses from.
var firstSwitch = [4]byte{10, 2, 0, 0}

// address is a node's own.
func (w *Framer) address(i int) olaf.Addresses {
	if i < w.workers {
		return pktgen.DefaultAddressing().Worker(i)
	}
	ip := firstSwitch
	ip[2], ip[3] = byte((i-w.workers)>>8), byte(i-w.workers)
	return olaf.Addresses{SrcMAC: [6]byte{2, 0, ip[0], ip[1], ip[2], ip[3]}, SrcIP: ip, SrcPort: w.format.Carrier.Port}
}

// Kept is how many bytes of a frame are kept at most, whether or not its lanes are computed.
func Kept(computed bool) int {
	if computed {
		return int(olaf.MaxFrame)
	}
	return headersKept
}

// Heard is where a capture of a node's frames comes from, whether or not their lanes are computed.
func Heard(node string, format *frame.Format, computed bool) capture.Interface {
	return capture.Interface{Name: node, SnapBytes: Kept(computed), Comment: fmt.Sprintf("what %s hears: %s frames (%s)", node, format.Title, format.Name)}
}

// Packet is a frame as captures keep it. Its bytes are valid until the next call.
func (w *Framer) Packet(f *Frame) (p capture.Packet, err error) {
	from, to := &w.nodes[f.From], &w.nodes[f.For]
	outer := frame.Outer{Addresses: *from, Past: f.Past}
	outer.DstMAC, outer.DstIP = to.SrcMAC, to.SrcIP
	if f.From >= w.workers && f.For < w.workers {
		outer.SrcPort = to.SrcPort
	}
	n, err := w.format.Encode(w.buffer, &outer, f.Packet, f.Lanes)
	if err != nil {
		return p, err
	}
	p = capture.Packet{UnixNS: f.At.NS(), Data: w.buffer[:min(n, Kept(f.Lanes != nil))], Wire: n}
	if f.Packet.Vectors > 1 {
		p.Comment = fmt.Sprintf("merged %d", f.Packet.Vectors)
	}
	return p, nil
}
