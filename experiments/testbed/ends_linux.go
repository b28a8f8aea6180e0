package testbed

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/capture/live"
	"github.com/olafctl/olaf/fpga/netlab"
)

// End is one interface at which packets are captured.
type End struct {
	Name string
	At   *netlab.Interface
}

// Capture captures packets at several ends until it is closed. Its methods must not be called concurrently.
type Capture struct {
	ends    []End
	sockets []*live.Socket
	counts  []uint64
	batch   []capture.Packet
	data    []byte
}

// OpenCapture starts to capture packets that arrive at the given ends, and packets that sockets shown with
// netlab.Socket.Show send there. Each packet has the number of its interface, in the order of the arguments.
func OpenCapture(at ...End) (*Capture, error) {
	c := &Capture{ends: at, counts: make([]uint64, len(at))}
	for _, end := range at {
		err := end.At.Do(func() error {
			s, err := live.Open(live.Options{Interface: end.At.Name, Stamps: live.Kernel, Outgoing: true})
			if err == nil {
				c.sockets = append(c.sockets, s)
			}
			return err
		})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("capture at the end %s: %w", end.Name, err), c.Close())
		}
	}
	return c, nil
}

// Drain calls visit for the packets that were captured since the last call, in time order. The packets' bytes are
// reused by the next call.
func (c *Capture) Drain(visit func(*capture.Packet) error) error {
	c.batch, c.data = c.batch[:0], c.data[:0]
	for i, s := range c.sockets {
		if err := c.takePackets(i, s); err != nil {
			return fmt.Errorf("capture at the end %s: %w", c.ends[i].Name, err)
		}
	}
	slices.SortStableFunc(c.batch, func(a, b capture.Packet) int { return cmp.Compare(a.UnixNS, b.UnixNS) })
	for i := range c.batch {
		if err := visit(&c.batch[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *Capture) takePackets(end int, s *live.Socket) error {
	for {
		var p capture.Packet
		switch err := s.Next(&p); {
		case errors.Is(err, capture.ErrIdle):
			return nil
		case err != nil:
			return err
		}
		from := len(c.data)
		c.data = append(c.data, p.Data...) // earlier slices may keep the old memory
		p.Data, p.Interface = c.data[from:len(c.data):len(c.data)], end
		c.batch = append(c.batch, p)
		c.counts[end]++
	}
}

// Counts returns the number of packets that were captured at each end.
func (c *Capture) Counts() []uint64 { return slices.Clone(c.counts) }

// Lost returns the number of packets that were lost because the capture had no room for them.
func (c *Capture) Lost() (lost int64, err error) {
	for i, s := range c.sockets {
		d, err := s.Drops()
		if err != nil {
			return lost, fmt.Errorf("capture at the end %s: %w", c.ends[i].Name, err)
		}
		lost += d.Socket
	}
	return lost, nil
}

// Close ends the capture.
func (c *Capture) Close() error {
	var errs []error
	for _, s := range c.sockets {
		errs = append(errs, s.Close())
	}
	c.sockets = nil
	return errors.Join(errs...)
}
