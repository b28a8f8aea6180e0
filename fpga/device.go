// Package fpga defines the interface of a single card, with its registers, identity, reset and device time. The
// backends are in the packages twin, pcie, remote and playback. Package regmap describes the registers.
package fpga

import (
	"context"

	"github.com/olafctl/olaf"
)

// Kinds of device errors; match them with errors.Is.
var (
	// ErrGone is the error for a device that stopped answering, as shown by a PCIe read of all ones or a closed
	// connection.
	ErrGone = olaf.NewError(olaf.Device, "device is gone")
	// ErrAddress is the error for an address that has no register or whose register does not allow the access.
	ErrAddress = olaf.NewError(olaf.Device, "no such register")
	// ErrRefused is the error for a write that the device rejected, such as a mode change while it runs.
	ErrRefused = olaf.NewError(olaf.Device, "device refused")
	// ErrDoubtful is the error for values from a device that cannot be correct and are therefore not used.
	ErrDoubtful = olaf.NewError(olaf.Device, "device contradicts itself")
)

// Registers reads and writes the registers of one card. Addresses are byte offsets within BAR2 and multiples of 4.
// Values have 32 bits. A 64-bit counter occupies two registers, low word first, and does not change between snapshot
// commands.
type Registers interface {
	Read32(addr uint32) (uint32, error)
	Write32(addr uint32, value uint32) error
	// WriteBurst writes all words to one address, in order. It serves the data register of a memory proxy.
	WriteBurst(addr uint32, words []uint32) error
}

// Device is an open card or its software twin. It is not safe for concurrent use.
type Device interface {
	Registers
	// Identity describes the device without touching its state.
	Identity() Identity
	// Sleep lets d of device time pass: a card waits, the twin simulates. It returns early with the context's
	// error.
	Sleep(ctx context.Context, d olaf.Duration) error
	Close() error
}

// Watcher is implemented by devices that are reached over a network. They let several steps of device time pass with a
// single request.
type Watcher interface {
	// WatchGenerator implements the package's function WatchGenerator for the device.
	WatchGenerator(ctx context.Context, step olaf.Duration, each func(passed olaf.Duration) (more bool, err error)) error
}

// WatchGenerator lets device time pass in steps while the generator runs. After one or several steps it calls each with
// the total time that has passed. It ends when each returns false or an error.
func WatchGenerator(ctx context.Context, d Device, step olaf.Duration, each func(passed olaf.Duration) (more bool, err error)) error {
	if far, ok := d.(Watcher); ok {
		return far.WatchGenerator(ctx, step, each)
	}
	for passed := step; ; passed += step {
		if err := d.Sleep(ctx, step); err != nil {
			return err
		}
		if more, err := each(passed); err != nil || !more {
			return err
		}
	}
}

// Port contains traffic counts for one network port, from the MAC and from the adapter between the MAC and the user
// box. Only differences are meaningful, because the counts do not start at 0.
type Port struct {
	Sent     uint64 `json:"sent"`     // frames that left the MAC
	Received uint64 `json:"received"` // frames that reached the MAC
	// SentDamaged counts sent frames with a wrong FCS. ReceivedDamaged counts received frames that had a wrong FCS,
	// were too long, or were truncated.
	SentDamaged     uint64 `json:"sent_damaged"`
	ReceivedDamaged uint64 `json:"received_damaged"`
	// ReceivedBadFCS and ReceivedOversize are included in ReceivedDamaged.
	ReceivedBadFCS   uint64 `json:"received_bad_fcs"`
	ReceivedOversize uint64 `json:"received_oversize"`
	// Dropped counts frames received but lost before the user box, because its buffer was full or the frame was
	// damaged. No other counter includes them, so loss accounting must add them.
	Dropped uint64 `json:"dropped"`
	// Stray counts frames from the user box without a destination port.
	Stray uint64 `json:"stray"`
	// ForeignTicks counts how often another program latched the MAC's counters. If it is not 0, the counts above are
	// too small.
	ForeignTicks uint64 `json:"foreign_ticks"`
	// Feeds is set for the port through which another card's generator sends to port 0 of this card. It is listed after
	// this card's own ports.
	Feeds bool `json:"feeds,omitempty"`
}

// PortCounter is a Device that counts the traffic at its network ports.
type PortCounter interface {
	// PortCounts returns the counts of all ports, sorted by number, or none if the device has no ports.
	PortCounts() ([]Port, error)
}

// PortCounts returns the traffic counts of dev's network ports, or nil if dev does not have any.
func PortCounts(dev Device) ([]Port, error) {
	if d, ok := dev.(PortCounter); ok {
		return d.PortCounts()
	}
	return nil, nil
}

// Identity identifies a device and the build of its logic.
type Identity struct {
	Address    string `json:"address"` // address that opens the device again: twin:, pci:0000:3b:00.0
	Kind       string `json:"kind"`    // twin, pcie, remote, playback
	MapVersion string `json:"map_version"`
	Build      string `json:"build"` // bitstream hash, or the twin's model version
	ClockHz    uint64 `json:"clock_hz"`
}
