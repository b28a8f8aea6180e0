// Package fpga is what one card can do: registers, identity, reset, and letting its time pass. Backends live below it
// (twin, pcie, remote, playback); fpga/regmap says what the registers mean.
package fpga

import (
	"context"

	"github.com/olafctl/olaf"
)

// Kinds of device errors; match them with errors.Is.
var (
	// ErrGone says that the device stopped answering: a PCIe read of all ones, a closed connection.
	ErrGone = olaf.NewError(olaf.Device, "device is gone")
	// ErrAddress says that no register answers at an address, or that access there is not allowed.
	ErrAddress = olaf.NewError(olaf.Device, "no such register")
	// ErrRefused says that the device declined a write, for example of a mode while it runs.
	ErrRefused = olaf.NewError(olaf.Device, "device refused")
	// ErrDoubtful says that what a device answers can't be true, so that it is handed out to nobody.
	ErrDoubtful = olaf.NewError(olaf.Device, "device contradicts itself")
)

// Registers is access to the register space of one card. Addresses are byte offsets within BAR2, multiples of 4;
// values are 32 bit. 64-bit counters are two registers, low word first, stable after a snapshot command.
type Registers interface {
	Read32(addr uint32) (uint32, error)
	Write32(addr uint32, value uint32) error
	// WriteBurst writes all words to the one address, in order: the data register of a memory proxy.
	WriteBurst(addr uint32, words []uint32) error
}

// Device is one open card or its twin. It is not safe for concurrent use.
type Device interface {
	Registers
	// Identity says what this is, without touching its state.
	Identity() Identity
	// Sleep lets d of the device's own time pass: a card's by waiting, the twin's by simulating. It ends early with the
	// context's error.
	Sleep(ctx context.Context, d olaf.Duration) error
	Close() error
}

// Port is what a network port of a card counted, at the MAC and in the adapter between MAC and box. Only differences mean
// something: the counts start at some time before the first look.
type Port struct {
	Sent     uint64 `json:"sent"`     // frames that left the MAC
	Received uint64 `json:"received"` // frames that came to the MAC
	// SentDamaged left with a wrong FCS, ReceivedDamaged came with one, too long or cut.
	SentDamaged     uint64 `json:"sent_damaged"`
	ReceivedDamaged uint64 `json:"received_damaged"`
	// ReceivedBadFCS and ReceivedOversize are the first two of these.
	ReceivedBadFCS   uint64 `json:"received_bad_fcs"`
	ReceivedOversize uint64 `json:"received_oversize"`
	// Dropped frames were received and lost on their way to the box: for want of buffer while the box held them up, or
	// damaged. They appear in no counter of ours; loss accounting must add them.
	Dropped uint64 `json:"dropped"`
	// Stray frames came out of the box without a port to go to.
	Stray uint64 `json:"stray"`
	// ForeignTicks is how often somebody else took counts of the MAC away, so that its counts above are too small.
	ForeignTicks uint64 `json:"foreign_ticks"`
}

// PortCounter is a Device with network ports of its own.
type PortCounter interface {
	// PortCounts are all ports', by number; none where the device turns out to have no ports.
	PortCounts() ([]Port, error)
}

// PortCounts are what the device's network ports counted; none where it has none.
func PortCounts(dev Device) ([]Port, error) {
	if d, ok := dev.(PortCounter); ok {
		return d.PortCounts()
	}
	return nil, nil
}

// Identity tells one device and what it was built as.
type Identity struct {
	Address    string `json:"address"` // the form that opens it again: twin:, pci:0000:3b:00.0
	Kind       string `json:"kind"`    // twin, pcie, remote, playback
	MapVersion string `json:"map_version"`
	Build      string `json:"build"` // bitstream hash, or the twin's model version
	ClockHz    uint64 `json:"clock_hz"`
}
