// Package pcie drives a real card. It finds cards in sysfs, rejects foreign ones, and accesses registers through a
// mapping of BAR2.
//
// Nothing is written before the card is identified by its vendor, device, BAR size and memory decoding, the canary of
// the shell, the magic number and version of our register map, and a scratch register that must keep the written value.
// A card that fails a check can be opened read-only at most.
//
// All accesses are aligned 32-bit loads and stores. They are made under a lock shared by all olafctl processes, because
// the shell answers a read that coincides with a write with stale data. A read that returns all ones is checked against
// the shell's canary and repeated. If the card is gone, the error matches fpga.ErrGone. Because no bus between host and
// card carries a checksum, values are compared with earlier ones, especially those of the counters and the clock. An
// impossible value is reported with an error that matches fpga.ErrDoubtful. Writes are never repeated.
// docs/reference/safety.md lists the actions that the package never performs, with the reasons.
package pcie

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
)

// Kinds of errors; match them with errors.Is. If a card has stopped answering, the error also matches fpga.ErrGone.
var (
	// ErrNoCard is returned if there is no usable card at the requested PCI address.
	ErrNoCard = olaf.NewError(olaf.Device, "no OLAF card")
	// ErrNotOurs is the error for a card that runs another image. Such a card can be read but not written.
	ErrNotOurs = olaf.NewError(olaf.Device, "the card does not run an OLAF image")
	// ErrNotReady is returned if a setting or program of the host prevents access to the card.
	ErrNotReady = olaf.NewError(olaf.Device, "the card can't be used yet")
	// ErrBusy is the error for a card that is in use by another process or a driver.
	ErrBusy = olaf.NewError(olaf.Device, "the card is in use")
	// ErrDenied is the error for an address that must not be accessed, either in this session or ever. It matches
	// fpga.ErrAddress.
	ErrDenied error = denied{}
	// ErrStale is the error for a register whose value does not read back as it was written.
	ErrStale = olaf.NewError(olaf.Device, "the register does not contain what was written")
	// ErrChanged is the error for a card that was reprogrammed while it was open. It matches fpga.ErrGone, because all
	// cached state is invalid.
	ErrChanged = fmt.Errorf("%w: it now runs another image", fpga.ErrGone)
	// ErrForgot is the error for a card whose registers lost their written values, for example because another program
	// reset it. It matches fpga.ErrGone.
	ErrForgot = fmt.Errorf("%w: its registers lost their values", fpga.ErrGone)
	// ErrRestarted is the error for a card that was power-cycled. It matches fpga.ErrGone.
	ErrRestarted = fmt.Errorf("%w: it restarted", fpga.ErrGone)
)

type denied struct{}

func (denied) Error() string { return "not allowed" }
func (denied) Unwrap() error { return fpga.ErrAddress }

// Kinds of errors for cards whose answers are impossible. All match fpga.ErrDoubtful.
var (
	// ErrLost is the error for a snapshot, clear, reset or tick command that had no effect.
	ErrLost = fmt.Errorf("%w: a command had no effect", fpga.ErrDoubtful)
	// ErrUnsteady is the error for a constant register that changed, or a counter that jumped.
	ErrUnsteady = fmt.Errorf("%w: a register keeps changing", fpga.ErrDoubtful)
	// ErrBackwards is the error for a counter that decreased without having been cleared.
	ErrBackwards = fmt.Errorf("%w: a counter decreased", fpga.ErrDoubtful)
	// ErrNoClock is the error for a card whose registers do not give the rate of its clock.
	ErrNoClock = fmt.Errorf("%w: the rate of its clock is unknown", fpga.ErrDoubtful)
)
