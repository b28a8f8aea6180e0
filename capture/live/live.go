// Package live captures OLAF frames from a network interface as they arrive, with the time at which the network card or
// the kernel saw each, and with everything that was lost on the way counted. It needs Linux.
//
// A run is a few thousand packets within a millisecond, so that what counts is how much the socket can hold, not how fast
// it is read: a filter in the kernel keeps everything but OLAF out of the buffer, and the reader drains it afterwards.
package live

import (
	"errors"
	"fmt"

	"github.com/olafctl/olaf"
)

// Kinds of errors; match them with errors.Is.
var (
	// ErrInterface says that an interface does not exist or cannot be captured from.
	ErrInterface = olaf.NewError(olaf.Usage, "not an interface to capture from")
	// ErrOptions says that an option is out of its range.
	ErrOptions = olaf.NewError(olaf.Usage, "unusable option")
	// ErrPermission says that the process may not capture.
	ErrPermission = olaf.NewError(olaf.Usage, "capturing is not permitted")
	// ErrUnsupported says that the system or the network card cannot do what was asked for.
	ErrUnsupported = olaf.NewError(olaf.Usage, "not supported")
	// ErrGone says that the interface vanished or went down during a capture.
	ErrGone = olaf.NewError(olaf.Device, "the interface is gone")
	// ErrClocks says that the packets of one capture were stamped by different clocks.
	ErrClocks = errors.New("packets were stamped by different clocks")
)

// Stamps chooses the clock that times packets. It is a flag's value.
type Stamps string

// The clocks. The card's is its own (PHC), which is the system's only where something synchronises the two.
const (
	Auto     Stamps = "auto" // hardware where the card stamps every packet, otherwise kernel
	Hardware Stamps = "hardware"
	Kernel   Stamps = "kernel"
)

// Choices lists the values of Stamps.
func Choices() []string { return []string{string(Auto), string(Hardware), string(Kernel)} }

// String is the choice; none means Auto.
func (s Stamps) String() string {
	if s == "" {
		return string(Auto)
	}
	return string(s)
}

// Type names the flag's value in a help text.
func (s Stamps) Type() string { return "clock" }

// Set parses a choice.
func (s *Stamps) Set(text string) error {
	switch c := Stamps(text); c {
	case Auto, Hardware, Kernel:
		*s = c
		return nil
	}
	return fmt.Errorf("unknown clock %q; use auto, hardware or kernel", text)
}

const (
	// DefaultBufferBytes is the socket's buffer when nothing is asked for.
	DefaultBufferBytes = 64 << 20
	// DefaultSnapBytes keeps the longest OLAF frame, even behind a VLAN tag.
	DefaultSnapBytes = int(olaf.MaxFrame) + vlanBytes
	// minSnapBytes keeps the headers of an update and of an ACK.
	minSnapBytes = olaf.HeaderBytes + olaf.AckStatusBytes
	vlanBytes    = 4
	maxSnapBytes = 1 << 18
)

// Options say what to capture. Only Interface is required.
type Options struct {
	Interface string
	// BufferBytes is what the socket may hold before it drops packets; 0 is DefaultBufferBytes. The kernel charges
	// more than a packet's bytes for each (docs/guide/capture.md).
	BufferBytes int
	// SnapBytes is how much of each packet is kept, 72 to 262,144; 0 is DefaultSnapBytes.
	SnapBytes int
	Stamps    Stamps // zero is Auto
	// Promiscuous takes frames to any MAC address, as the card's generator may send them.
	Promiscuous bool
	// Outgoing captures what this host sends by the interface as well. Senders that go past the system's queues are not seen.
	Outgoing bool
	// All captures every packet that arrives. Otherwise only IPv4 and UDP to OLAF's port reach the buffer.
	All bool
}

// resolve fills in what was left open.
func (o Options) resolve() (Options, error) {
	if o.BufferBytes == 0 {
		o.BufferBytes = DefaultBufferBytes
	}
	if o.SnapBytes == 0 {
		o.SnapBytes = DefaultSnapBytes
	}
	if o.Stamps == "" {
		o.Stamps = Auto
	}
	switch {
	case o.Interface == "":
		return o, fmt.Errorf("%w: no name", ErrInterface)
	case o.BufferBytes < 0 || o.BufferBytes > 1<<30:
		return o, fmt.Errorf("%w: a buffer of %d bytes; use 0 to 1 GiB", ErrOptions, o.BufferBytes)
	case o.SnapBytes < minSnapBytes || o.SnapBytes > maxSnapBytes:
		return o, fmt.Errorf("%w: %d bytes of each packet; use %d to %d", ErrOptions, o.SnapBytes, minSnapBytes, maxSnapBytes)
	}
	if err := o.Stamps.Set(string(o.Stamps)); err != nil {
		return o, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return o, nil
}

// Info says what a socket was given of what was asked for.
type Info struct {
	Interface   string
	BufferBytes int
	SnapBytes   int
	Stamps      Stamps   // Hardware or Kernel
	Notes       []string // what is less than was asked for, a sentence each
}

// Drops is what was lost before it could be read, since the socket was opened: by the socket, whose buffer was full, and
// by the interface. The interface's counters are the kernel's (ip -s -s link), for all frames, OLAF or not; some drivers
// count one loss under two names, so that Total can be too high, and is 0 only if nothing was lost.
type Drops struct {
	Socket int64 `json:"socket"`
	// RXDropped: the host had no room in a queue (rx_dropped).
	RXDropped int64 `json:"rx_dropped"`
	// RXMissed: the card had no descriptor to put the frame in (rx_missed_errors).
	RXMissed int64 `json:"rx_missed_errors"`
	RXFIFO   int64 `json:"rx_fifo_errors"`
	RXOver   int64 `json:"rx_over_errors"`
	// Damaged on the wire.
	RXCRC    int64 `json:"rx_crc_errors"`
	RXFrame  int64 `json:"rx_frame_errors"`
	RXLength int64 `json:"rx_length_errors"`
}

// Interface is the sum of the interface's counters.
func (d Drops) Interface() int64 {
	return d.RXDropped + d.RXMissed + d.RXFIFO + d.RXOver + d.RXCRC + d.RXFrame + d.RXLength
}

// Total is everything that was lost.
func (d Drops) Total() int64 { return d.Socket + d.Interface() }

// Stamped counts packets by who timed them.
type Stamped struct {
	Hardware int64 `json:"hardware"` // the network card
	Kernel   int64 `json:"kernel"`   // the kernel, when it took the packet from the card
	// Late packets have no stamp, because the kernel had not begun to stamp yet; they carry the system's time at which
	// they were read.
	Late int64 `json:"late"`
	// Backwards packets are stamped before their predecessor, as packets of several receive queues can be.
	Backwards int64 `json:"backwards"`
}

// Err matches ErrClocks when the stamps are not comparable with each other.
func (s Stamped) Err() error {
	if s.Hardware > 0 && s.Kernel+s.Late > 0 {
		return fmt.Errorf("%w: %d by the network card, %d by the system; capture with --stamps kernel", ErrClocks, s.Hardware, s.Kernel+s.Late)
	}
	return nil
}
