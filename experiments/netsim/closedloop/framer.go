package closedloop

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/fpga/frame"
	"github.com/olafctl/olaf/pktgen"
)

// Framer encodes frames from a tap in a system's own format. Gradients are simulated only in training; without them,
// frames are cut after their headers. Frames do not contain generation times and contributors. The number of vectors in
// a sum is written to the packet's comment.
type Framer struct {
	format  *frame.Format
	nodes   []olaf.Addresses // their own addresses are SrcMAC, SrcIP and SrcPort
	workers int              // number of workers, which precede servers and switches
	buffer  []byte
}

// headersKept is the number of bytes stored for a frame without computed lanes.
const headersKept = 128

// NewFramer returns a Framer for a network, with an address for each node. server states whether jobs have servers.
func NewFramer(format *frame.Format, n *Network, server bool) *Framer {
	f := &Framer{format: format, workers: max(1, n.Jobs) * n.Workers, buffer: make([]byte, olaf.MaxFrame)}
	for i := range n.NodeNames(server) {
		f.nodes = append(f.nodes, f.computeAddress(i))
	}
	return f
}

// Address returns the addresses of a node. The node's own addresses are the source addresses.
func (w *Framer) Address(node int) olaf.Addresses { return w.nodes[node] }

// firstSwitch is the first address in the range for servers and switches.
var firstSwitch = [4]byte{10, 2, 0, 0}

// computeAddress computes a node's addresses.
func (w *Framer) computeAddress(i int) olaf.Addresses {
	if i < w.workers {
		return pktgen.DefaultAddressing().WorkerAddresses(i)
	}
	ip := firstSwitch
	ip[2], ip[3] = byte((i-w.workers)>>8), byte(i-w.workers)
	return olaf.Addresses{SrcMAC: [6]byte{2, 0, ip[0], ip[1], ip[2], ip[3]}, SrcIP: ip, SrcPort: w.format.Carrier.Port}
}

// StoredBytes returns the number of bytes that are stored per frame. It is smaller if lanes are not computed.
func StoredBytes(computed bool) int {
	if computed {
		return int(olaf.MaxFrame)
	}
	return headersKept
}

// CaptureInterface returns the interface description for a capture of one node's frames. computed states whether the
// frames' lanes are computed.
func CaptureInterface(node string, format *frame.Format, computed bool) capture.Interface {
	return capture.Interface{Name: node, SnapBytes: StoredBytes(computed),
		Comment: fmt.Sprintf("what %s hears: %s frames (%s)", node, format.Title, format.Name)}
}

// Packet converts a frame to a packet for a capture. The packet's bytes are valid until the next call.
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
	p = capture.Packet{UnixNS: f.At.NS(), Data: w.buffer[:min(n, StoredBytes(f.Lanes != nil))], Wire: n}
	if f.Packet.Vectors > 1 {
		p.Comment = fmt.Sprintf("merged %d", f.Packet.Vectors)
	}
	return p, nil
}
