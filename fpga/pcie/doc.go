// Package pcie drives a real card: it finds cards in sysfs, refuses what is not ours, and reads and writes registers
// through a mapping of BAR2.
//
// Nothing is written before the card has proved what it is: vendor, device, BAR size, memory decoding, shell canary, the
// magic and version of our register map, and a scratch register that holds what it is given. A card that fails one of
// these is opened read-only at most. All accesses are aligned 32-bit loads and stores under a lock that every olafctl
// process shares, because the shell answers a read that meets a write with stale data. An answer of all ones is checked
// against the shell's canary and asked for again; a card that is gone is an error that matches fpga.ErrGone. What a card says
// is held against what it said before, its counters and its clock above all, because no bus between here and its registers
// carries a checksum: an answer that can't be true matches fpga.ErrDoubtful. No write is repeated.
// docs/reference/safety.md lists what the package never does, and why.
package pcie

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
)

// Kinds of errors; match them with errors.Is. Errors of a card that stopped answering match fpga.ErrGone.
var (
	// ErrNoCard says that nothing usable is at an address.
	ErrNoCard = olaf.NewError(olaf.Device, "no OLAF card")
	// ErrNotOurs says that the card runs another image; it can be read, not written.
	ErrNotOurs = olaf.NewError(olaf.Device, "the card does not run an OLAF image")
	// ErrNotReady says that something on the host stands between this program and the card.
	ErrNotReady = olaf.NewError(olaf.Device, "the card can't be used yet")
	// ErrBusy says that another process or a driver holds the card.
	ErrBusy = olaf.NewError(olaf.Device, "the card is in use")
	// ErrDenied says that an address must never be read or written, or not in this session. It matches fpga.ErrAddress.
	ErrDenied error = denied{}
	// ErrStale says that a register does not read back what was written.
	ErrStale = olaf.NewError(olaf.Device, "the register does not contain what was written")
	// ErrChanged says that the card was reprogrammed while it was open. It matches fpga.ErrGone: what was known of the card
	// holds no longer.
	ErrChanged = fmt.Errorf("%w: another image answers", fpga.ErrGone)
	// ErrForgot says that registers lost what was written, as after a reset by somebody else. It matches fpga.ErrGone.
	ErrForgot = fmt.Errorf("%w: it lost its registers", fpga.ErrGone)
	// ErrRestarted says that the card was switched off and on, whoever wrote to it. It matches fpga.ErrGone.
	ErrRestarted = fmt.Errorf("%w: it started anew", fpga.ErrGone)
)

type denied struct{}

func (denied) Error() string { return "not allowed" }
func (denied) Unwrap() error { return fpga.ErrAddress }

// Kinds of errors of a card that is there and says what can't be true. All match fpga.ErrDoubtful.
var (
	// ErrLost says that a command left no trace: the snapshot, the clear, the reset or the tick did not arrive.
	ErrLost = fmt.Errorf("%w: a command did not arrive", fpga.ErrDoubtful)
	// ErrUnsteady says that a register which holds still reads differently, or one that counts does so in leaps.
	ErrUnsteady = fmt.Errorf("%w: a register keeps changing", fpga.ErrDoubtful)
	// ErrBackwards says that a counter went back though nobody cleared it.
	ErrBackwards = fmt.Errorf("%w: a counter went back", fpga.ErrDoubtful)
	// ErrNoClock says that the card does not know how fast it is.
	ErrNoClock = fmt.Errorf("%w: its clock has no rate", fpga.ErrDoubtful)
)
