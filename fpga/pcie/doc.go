// Package pcie drives a real card. It finds cards in sysfs, rejects foreign ones, and accesses registers through a
// mapping of BAR2.
//
// Nothing is written before the card is identified: vendor, device, BAR size, memory decoding, shell canary, magic
// and version of our register map, and a scratch register that keeps what is written. A card that fails a check can
// be opened read-only at most. All accesses are aligned 32-bit loads and stores under a lock shared by all olafctl
// processes, because the shell answers a read that coincides with a write with stale data. An answer of all ones is
// checked against the shell's canary and read again. If the card is gone, the error matches fpga.ErrGone. Answers
// are checked against earlier ones, counters and clock above all, because no bus on the way carries a checksum. An
// impossible answer gives an error that matches fpga.ErrDoubtful. No write is repeated. docs/reference/safety.md
// lists what the package never does, and why.
package pcie

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
)

// Kinds of errors; match them with errors.Is. If a card stopped answering, the error matches fpga.ErrGone.
var (
	// ErrNoCard reports that there is no usable card at the address.
	ErrNoCard = olaf.NewError(olaf.Device, "no OLAF card")
	// ErrNotOurs reports that the card runs another image. It can be read, not written.
	ErrNotOurs = olaf.NewError(olaf.Device, "the card does not run an OLAF image")
	// ErrNotReady reports that something on the host prevents access to the card.
	ErrNotReady = olaf.NewError(olaf.Device, "the card can't be used yet")
	// ErrBusy reports that another process or a driver uses the card.
	ErrBusy = olaf.NewError(olaf.Device, "the card is in use")
	// ErrDenied reports that the address must not be accessed, ever or in this session. It matches fpga.ErrAddress.
	ErrDenied error = denied{}
	// ErrStale reports that a register does not read back the written value.
	ErrStale = olaf.NewError(olaf.Device, "the register does not contain what was written")
	// ErrChanged reports that the card was reprogrammed while it was open. It matches fpga.ErrGone, because all cached
	// state is invalid.
	ErrChanged = fmt.Errorf("%w: another image answers", fpga.ErrGone)
	// ErrForgot reports that registers lost their written values, for example by a foreign reset. It matches
	// fpga.ErrGone.
	ErrForgot = fmt.Errorf("%w: it lost its registers", fpga.ErrGone)
	// ErrRestarted reports that the card was power-cycled. It matches fpga.ErrGone.
	ErrRestarted = fmt.Errorf("%w: it started anew", fpga.ErrGone)
)

type denied struct{}

func (denied) Error() string { return "not allowed" }
func (denied) Unwrap() error { return fpga.ErrAddress }

// Kinds of errors about a card with impossible answers. All match fpga.ErrDoubtful.
var (
	// ErrLost reports that a snapshot, clear, reset or tick command had no effect.
	ErrLost = fmt.Errorf("%w: a command did not arrive", fpga.ErrDoubtful)
	// ErrUnsteady reports that a constant register changed, or a counter jumped.
	ErrUnsteady = fmt.Errorf("%w: a register keeps changing", fpga.ErrDoubtful)
	// ErrBackwards reports that a counter decreased without a clear.
	ErrBackwards = fmt.Errorf("%w: a counter went back", fpga.ErrDoubtful)
	// ErrNoClock reports that the card reports no clock rate.
	ErrNoClock = fmt.Errorf("%w: its clock has no rate", fpga.ErrDoubtful)
)
