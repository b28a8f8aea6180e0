package frame

import (
	"fmt"

	"github.com/olafctl/olaf"
)

// Kinds of errors; match them with errors.Is.
var (
	// ErrOther is the error for frames that have another format.
	ErrOther = olaf.NewError(olaf.Usage, "another frame")
	// ErrMalformed is the error for frames that have the format but are broken.
	ErrMalformed = olaf.NewError(olaf.Usage, "malformed frame")
	// ErrEncode is the error for packets that cannot be written in the format.
	ErrEncode = olaf.NewError(olaf.Usage, "cannot write the packet as a frame")
)

// Fault is a reason why bytes are not a valid frame of a format.
type Fault uint8

// Faults that mark frames of other formats come first, followed by faults of broken frames.
const (
	_ Fault = iota
	FaultShort
	FaultEtherType
	FaultIP
	FaultProtocol
	FaultFragment
	FaultPort
	FaultToS
	lastOther = FaultToS
)

const (
	FaultCut Fault = lastOther + 1 + iota
	FaultTrailing
	FaultLength
	FaultChecksum
	FaultCode
	FaultField
	FaultMessage
	FaultLanes
	faults
)

// faultText contains the message for each fault. Its arguments are an Error's Have and Want.
var faultText = [faults]string{
	FaultShort:     "%[1]d bytes, too few for its headers, which take %[2]d",
	FaultEtherType: "EtherType %#04[1]x, not %#04[2]x",
	FaultIP:        "not IPv4 without options (first byte %#02[1]x, not %#02[2]x)",
	FaultProtocol:  "IPv4 protocol %[1]d, not %[2]d",
	FaultFragment:  "a fragment of an IPv4 packet (%#04[1]x)",
	FaultPort:      "UDP port %[1]d, not %[2]d",
	FaultToS:       "ToS %#02[1]x, which tags neither data nor control nor an answer",
	FaultCut:       "cut: %[1]d bytes of %[2]d",
	FaultTrailing:  "%[1]d bytes, but its packet ends after %[2]d",
	FaultLength:    "IPv4 length is %[1]d bytes, UDP length %[2]d",
	FaultChecksum:  "wrong checksum %#04[1]x",
	FaultCode:      "has the unknown value %[1]d",
	FaultField:     "is %[1]d, it must be %[2]d",
	FaultMessage:   "payload of %[1]d bytes; it takes %[2]d",
	FaultLanes:     "payload of %[1]d bytes; headers and at most %[2]d lanes of 4 bytes fit",
}

// Error explains why bytes are not a valid frame of a format. It matches its Fault, and also ErrOther or ErrMalformed.
type Error struct {
	Format *Format
	Field  string // wrong field or message; empty if the frame as a whole is wrong
	Fault  Fault
	Have   int64
	Want   int64
}

// Error returns one line with the format, the location and the reason.
func (e *Error) Error() string {
	where := ""
	if e.Field != "" {
		where = e.Field + " "
	}
	return fmt.Sprintf("%v (%s): %s", e.kind(), e.Format.Name, where) + e.Fault.text(e.Have, e.Want)
}

// Is reports whether target is the error's fault or the kind of this fault, ErrOther or ErrMalformed.
func (e *Error) Is(target error) bool { return target == e.kind() || target == error(e.Fault) }

func (e *Error) kind() error {
	if e.Fault <= lastOther {
		return ErrOther
	}
	return ErrMalformed
}

// Error makes Fault an error, so that it can be matched with errors.Is.
func (f Fault) Error() string { return fmt.Sprintf("frame fault %d", uint8(f)) }

func (f Fault) text(have, want int64) string {
	if f >= faults {
		return f.Error()
	}
	return fmt.Sprintf(faultText[f], have, want)
}
