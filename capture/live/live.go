// Package live captures OLAF frames from a network interface when they arrive. The network card or the kernel adds the
// timestamps, and all losses are counted. The package requires Linux.
//
// A run consists of a few thousand packets within a millisecond, so the size of the socket buffer matters more than the
// reading speed. A filter in the kernel keeps other packets out of the buffer, which is read afterwards.
package live

import (
	"errors"
	"fmt"

	"github.com/olafctl/olaf"
)

// Kinds of errors, for errors.Is.
var (
	// ErrInterface is the error for an interface that does not exist or from which packets cannot be captured.
	ErrInterface = olaf.NewError(olaf.Usage, "not an interface to capture from")
	// ErrOptions is the error for an option that is out of range.
	ErrOptions = olaf.NewError(olaf.Usage, "unusable option")
	// ErrPermission is the error for a process that does not have permission to capture.
	ErrPermission = olaf.NewError(olaf.Usage, "capturing is not permitted")
	// ErrUnsupported is the error for an option that the operating system or the network card does not support.
	ErrUnsupported = olaf.NewError(olaf.Usage, "not supported")
	// ErrGone is the error for an interface that disappeared or went down during the capture.
	ErrGone = olaf.NewError(olaf.Device, "the interface is gone")
	// ErrClocks is the error for a capture whose packets have timestamps from different clocks.
	ErrClocks = errors.New("packets were stamped by different clocks")
)

// Stamps selects the clock for packet timestamps. It implements pflag.Value.
type Stamps string

// The clocks. Hardware is the card's own clock (PHC), which agrees with the system's only if a service synchronises
// them.
const (
	Auto     Stamps = "auto" // hardware if the card stamps every packet, otherwise kernel
	Hardware Stamps = "hardware"
	Kernel   Stamps = "kernel"
)

// Choices returns the valid values of Stamps.
func Choices() []string { return []string{string(Auto), string(Hardware), string(Kernel)} }

// String returns the choice. An empty choice means Auto.
func (s Stamps) String() string {
	if s == "" {
		return string(Auto)
	}
	return string(s)
}

// Type returns the name of the flag's value for help texts.
func (s Stamps) Type() string { return "clock" }

// Set parses a choice from the command line.
func (s *Stamps) Set(text string) error {
	switch c := Stamps(text); c {
	case Auto, Hardware, Kernel:
		*s = c
		return nil
	}
	return fmt.Errorf("unknown clock %q; use auto, hardware or kernel", text)
}

const (
	// DefaultBufferBytes is the default size of the socket buffer in bytes.
	DefaultBufferBytes = 64 << 20
	// DefaultSnapBytes is the default number of bytes to keep of each packet. It is large enough for the longest OLAF
	// frame with a VLAN tag.
	DefaultSnapBytes = int(olaf.MaxFrame) + vlanBytes
	// minSnapBytes is the minimum number of bytes to keep of each packet. It is large enough for the headers of an
	// update or an ACK.
	minSnapBytes = olaf.HeaderBytes + olaf.AckStatusBytes
	vlanBytes    = 4
	maxSnapBytes = 1 << 18
)

// Options configures a capture. Only Interface is required.
type Options struct {
	Interface string
	// BufferBytes is the size of the socket buffer; default DefaultBufferBytes. The kernel charges more than a
	// packet's bytes for each packet (docs/guide/capture.md).
	BufferBytes int
	// SnapBytes is the number of bytes to keep of each packet, 72 to 262,144; default DefaultSnapBytes.
	SnapBytes int
	Stamps    Stamps // default Auto
	// Promiscuous accepts frames to any MAC address, which the card's generator may send.
	Promiscuous bool
	// Outgoing also captures packets that this host sends on the interface. Packets that bypass the system's queues
	// are not captured.
	Outgoing bool
	// All captures every packet that arrives. Otherwise only IPv4 UDP to Port reaches the buffer.
	All  bool
	Port uint16 // default olaf.UDPPort
}

// resolve fills in defaults and checks the options.
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
	if o.Port == 0 {
		o.Port = olaf.UDPPort
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

// Info describes the options that are in effect.
type Info struct {
	Interface   string
	MTU         int // of the interface at the moment; 0 if unknown
	BufferBytes int
	SnapBytes   int
	Stamps      Stamps   // Hardware or Kernel
	Loopback    bool     // every frame comes from this host
	Notes       []string // one sentence for each limitation
}

// Drops counts the packets lost since the socket was opened. The socket loses packets when its buffer is full, and the
// interface loses packets as well. The interface's counters are those of the kernel (ip -s -s link) and cover all
// frames, not only OLAF frames. Some drivers count a loss twice. Total can therefore be too high, but it is 0 only if
// nothing was lost.
type Drops struct {
	Socket int64 `json:"socket"`
	// RXDropped counts packets lost because the host's queue was full (rx_dropped).
	RXDropped int64 `json:"rx_dropped"`
	// RXMissed counts packets lost because the card had no free descriptor (rx_missed_errors).
	RXMissed int64 `json:"rx_missed_errors"`
	RXFIFO   int64 `json:"rx_fifo_errors"`
	RXOver   int64 `json:"rx_over_errors"`
	// RXCRC counts packets that were damaged on the wire.
	RXCRC    int64 `json:"rx_crc_errors"`
	RXFrame  int64 `json:"rx_frame_errors"`
	RXLength int64 `json:"rx_length_errors"`
}

// Interface returns the sum of the interface's counters.
func (d Drops) Interface() int64 {
	return d.RXDropped + d.RXMissed + d.RXFIFO + d.RXOver + d.RXCRC + d.RXFrame + d.RXLength
}

// Total returns the total number of lost packets.
func (d Drops) Total() int64 { return d.Socket + d.Interface() }

// Stamped counts packets by the source of their timestamps.
type Stamped struct {
	Hardware int64 `json:"hardware"` // the network card
	Kernel   int64 `json:"kernel"`   // the kernel, on receipt from the card
	// Late counts packets without a stamp because the kernel had not started stamping. They have the system time at
	// which they were read.
	Late int64 `json:"late"`
	// Backwards counts packets with an earlier stamp than the packet before, which happens with several receive queues.
	Backwards int64 `json:"backwards"`
}

// Err returns an error that matches ErrClocks if the timestamps come from different clocks.
func (s Stamped) Err() error {
	if s.Hardware > 0 && s.Kernel+s.Late > 0 {
		return fmt.Errorf("%w: %d by the network card, %d by the system; capture with --stamps kernel", ErrClocks,
			s.Hardware, s.Kernel+s.Late)
	}
	return nil
}
