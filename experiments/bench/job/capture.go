package job

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
)

// ErrFrames reports that a system's packets have no frame format to capture.
var ErrFrames = olaf.NewError(olaf.Usage, "nothing to capture")

// Captures writes all frames that arrive at hosts and switches during a run, in the system's own format. Each node has
// one pcapng file in a common folder.
type Captures struct {
	framer  *closedloop.Framer
	nodes   []*capture.File
	folder  string
	created bool // the folder was created here
	err     error
}

// Capture prepares the capture files for a job and taps its frames. The job must not run more than once. The error
// matches ErrFrames, system.ErrOptions if the frames have no room for packet numbers, or capture.ErrExists unless force
// is set.
func Capture(s *Spec, folder string, force bool) (*Captures, error) {
	parts, err := s.Mode.Parts(&s.Options)
	if err != nil {
		return nil, err
	}
	if parts.Frame == nil {
		return nil, fmt.Errorf("%w: %s has no frame format", ErrFrames, s.System.Name)
	}
	layout := s.Job.Layout
	layout.PerPacket = parts.PerPacket
	if err := parts.CheckNumbers(layout.Packets(), int(s.Job.Updates)); err != nil {
		return nil, fmt.Errorf("%s: %w", s.System.Name, err)
	}
	c := &Captures{framer: closedloop.NewFramer(parts.Frame, &s.Network, parts.Server != nil), folder: folder}
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		c.created = true
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	for _, name := range s.Network.NodeNames(parts.Server != nil) {
		file, err := capture.CreateFrom(filepath.Join(folder, name+".pcapng"), force,
			closedloop.CaptureInterface(name, parts.Frame, s.Job.Values != nil))
		if err != nil {
			return nil, errors.Join(err, c.Abandon())
		}
		c.nodes = append(c.nodes, file)
	}
	s.Job.Tap = c.hear
	return c, nil
}

// hear writes a frame to the file for the node where it arrived. After an error it writes nothing more; Commit returns
// the error.
func (c *Captures) hear(f *closedloop.Frame) {
	if c.err != nil {
		return
	}
	p, err := c.framer.Packet(f)
	if err == nil {
		err = c.nodes[f.To].WritePacket(&p)
	}
	c.err = err
}

// Frames returns the number of frames written.
func (c *Captures) Frames() (n uint64) {
	for i := range c.nodes {
		n += c.nodes[i].Packets()
	}
	return n
}

// Commit completes the files and makes them visible under their names.
func (c *Captures) Commit() error {
	if c.err != nil {
		return c.err
	}
	for i := range c.nodes {
		if err := c.nodes[i].Commit(); err != nil {
			return err
		}
	}
	return nil
}

// Abandon removes the files that were not committed.
func (c *Captures) Abandon() (err error) {
	for i := range c.nodes {
		err = errors.Join(err, c.nodes[i].Abandon())
	}
	if c.created { // this fails if committed captures remain in it
		_ = os.Remove(c.folder)
	}
	return err
}
