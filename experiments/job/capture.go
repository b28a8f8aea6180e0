package job

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/experiments/netsim/closed"
	"github.com/olafctl/olaf/fpga/frame"
	"github.com/olafctl/olaf/pktgen"
)

// ErrFrames says that a system's packets have no frames that could be captured.
var ErrFrames = olaf.NewError(olaf.Usage, "nothing to capture")

// Captures writes what every host and switch of a run hears, in the system's own frames: a pcapng a node, in one folder.
// Gradients are not simulated unless they are trained; frames are then kept without lanes. When a gradient was made and
// whose are inside is on no wire: how many vectors a sum holds is a comment.
type Captures struct {
	format  *frame.Format
	nodes   []node
	workers int // before servers and switches
	folder  string
	made    bool // the folder was
	buffer  []byte
	err     error
}

// node is one file, and where its owner is.
type node struct {
	file *capture.File
	at   olaf.Addresses // SrcMAC, SrcIP and SrcPort are its own
}

// capturedHeaders is how much is kept of frames whose lanes nobody computes.
const capturedHeaders = 128

// Capture prepares the files of a job and lets its frames be heard; the job is to run once. The error matches ErrFrames, or
// capture.ErrExists unless force is set.
func Capture(s *Spec, folder string, force bool) (*Captures, error) {
	parts, err := s.Mode.Parts(&s.Options)
	if err != nil {
		return nil, err
	}
	if parts.Frame == nil {
		return nil, fmt.Errorf("%w: %s is a baseline without frames of its own", ErrFrames, s.System.Name)
	}
	c := &Captures{format: parts.Frame, folder: folder, buffer: make([]byte, olaf.MaxFrame)}
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		c.made = true
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	kept := capturedHeaders
	if s.Job.Values != nil {
		kept = int(olaf.MaxFrame)
	}
	names := s.Network.Nodes(parts.Server != nil)
	c.workers = max(1, s.Network.Jobs) * s.Network.Workers
	for i, name := range names {
		from := capture.Interface{Name: name, SnapBytes: kept, Comment: fmt.Sprintf("what %s hears: %s frames (%s)", name, c.format.Title, c.format.Name)}
		file, err := capture.CreateFrom(filepath.Join(folder, name+".pcapng"), force, from)
		if err != nil {
			return nil, errors.Join(err, c.Abandon())
		}
		c.nodes = append(c.nodes, node{file, c.address(i)})
	}
	s.Job.Tap = c.hear
	return c, nil
}

// firstSwitch is where a network's servers and switches have their addresses from.
var firstSwitch = [4]byte{10, 2, 0, 0}

// address is a node's own.
func (c *Captures) address(i int) olaf.Addresses {
	if i < c.workers {
		return pktgen.DefaultAddressing().Worker(i)
	}
	ip := firstSwitch
	ip[2], ip[3] = byte((i-c.workers)>>8), byte(i-c.workers)
	return olaf.Addresses{SrcMAC: [6]byte{2, 0, ip[0], ip[1], ip[2], ip[3]}, SrcIP: ip, SrcPort: c.format.Carrier.Port}
}

// hear writes a frame to the file of the node that it arrived at; the first error is kept for Commit.
func (c *Captures) hear(f *closed.Frame) {
	if c.err != nil {
		return
	}
	from, to := &c.nodes[f.From].at, &c.nodes[f.For].at
	outer := frame.Outer{Addresses: *from, Past: f.Past}
	outer.DstMAC, outer.DstIP = to.SrcMAC, to.SrcIP
	if f.From >= c.workers && f.For < c.workers {
		outer.SrcPort = to.SrcPort
	}
	n, err := c.format.Encode(c.buffer, &outer, f.Packet, f.Lanes)
	if err != nil {
		c.err = err
		return
	}
	p := capture.Packet{UnixNS: f.At.NS(), Data: c.buffer[:n], Wire: n}
	if f.Lanes == nil {
		p.Data = p.Data[:min(n, capturedHeaders)]
	}
	if f.Packet.Vectors > 1 {
		p.Comment = fmt.Sprintf("merged %d", f.Packet.Vectors)
	}
	c.err = c.nodes[f.To].file.WritePacket(&p)
}

// Frames is how many were written.
func (c *Captures) Frames() (n uint64) {
	for i := range c.nodes {
		n += c.nodes[i].file.Packets()
	}
	return n
}

// Commit makes the files appear.
func (c *Captures) Commit() error {
	if c.err != nil {
		return c.err
	}
	for i := range c.nodes {
		if err := c.nodes[i].file.Commit(); err != nil {
			return err
		}
	}
	return nil
}

// Abandon leaves no file behind that was not committed.
func (c *Captures) Abandon() (err error) {
	for i := range c.nodes {
		err = errors.Join(err, c.nodes[i].file.Abandon())
	}
	if c.made { // with captures in it, which stay, it can't go
		_ = os.Remove(c.folder)
	}
	return err
}
