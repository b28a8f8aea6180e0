package frame

import (
	"fmt"

	"github.com/olafctl/olaf"
)

// Kinds of errors; match them with errors.Is.
var (
	// ErrOther says that a frame is not of a format at all.
	ErrOther = olaf.NewError(olaf.Usage, "another frame")
	// ErrMalformed says that a frame claims to be of a format and is broken.
	ErrMalformed = olaf.NewError(olaf.Usage, "malformed frame")
	// ErrEncode says that a packet cannot be written in a format.
	ErrEncode = olaf.NewError(olaf.Usage, "cannot write the packet as a frame")
)

// Fault is one reason why bytes are no frame of a format.
type Fault uint8

// The faults of what does not claim to be of a format, and below those of what does.
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

// faultText says what is wrong; the two numbers of an Error are in its order.
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

// Error says why bytes are no frame of a format. It matches its Fault, and ErrOther or ErrMalformed.
type Error struct {
	Format *Format
	Field  string // the field that is wrong, with its message; empty where it is the frame
	Fault  Fault
	Have   int64
	Want   int64
}

// Error is one line: the format, where, what.
func (e *Error) Error() string {
	where := ""
	if e.Field != "" {
		where = e.Field + " "
	}
	return fmt.Sprintf("%v (%s): %s", e.kind(), e.Format.Name, where) + e.Fault.text(e.Have, e.Want)
}

// Is matches the fault and its kind.
func (e *Error) Is(target error) bool { return target == e.kind() || target == error(e.Fault) }

func (e *Error) kind() error {
	if e.Fault <= lastOther {
		return ErrOther
	}
	return ErrMalformed
}

// Error makes a Fault something to match with errors.Is.
func (f Fault) Error() string { return fmt.Sprintf("frame fault %d", uint8(f)) }

func (f Fault) text(have, want int64) string {
	if f >= faults {
		return f.Error()
	}
	return fmt.Sprintf(faultText[f], have, want)
}
