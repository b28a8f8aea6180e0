package p4ctl

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/olafctl/olaf"
)

// ElectionID is an unsigned 128-bit number. Of the controllers of a device, the one with the highest ID may write.
// Until it restarts, a server remembers the highest ID that it has seen.
type ElectionID struct{ High, Low uint64 }

// DefaultElectionID returns the ID that a session announces by default. It is just above (1, 0), the default of
// p4runtime-shell.
func DefaultElectionID() ElectionID { return ElectionID{High: 1, Low: 1} }

// ParseElectionID parses an ID of the form HIGH:LOW or LOW. The numbers are decimal or have the prefix 0x.
func ParseElectionID(s string) (ElectionID, error) {
	high, low, both := strings.Cut(s, ":")
	if !both {
		high, low = "0", s
	}
	h, errHigh := olaf.ParseWord(high, 64)
	l, errLow := olaf.ParseWord(low, 64)
	if errHigh != nil || errLow != nil {
		return ElectionID{}, fmt.Errorf("election id %q: use HIGH:LOW or LOW, such as 1:1", s)
	}
	return ElectionID{h, l}, nil
}

// String returns the ID in the form HIGH:LOW, which ParseElectionID accepts.
func (e ElectionID) String() string { return fmt.Sprintf("%d:%d", e.High, e.Low) }

// Compare returns -1, 0 or 1 if e is lower than, equal to or higher than f.
func (e ElectionID) Compare(f ElectionID) int {
	return cmp.Or(cmp.Compare(e.High, f.High), cmp.Compare(e.Low, f.Low))
}

// Next returns the next higher ID, or e if there is none.
func (e ElectionID) Next() ElectionID {
	if e.Low < math.MaxUint64 {
		return ElectionID{e.High, e.Low + 1}
	}
	if e.High < math.MaxUint64 {
		return ElectionID{e.High + 1, 0}
	}
	return e
}

func (e ElectionID) toProto() *v1.Uint128 { return &v1.Uint128{High: e.High, Low: e.Low} }

func fromProto(u *v1.Uint128) ElectionID { return ElectionID{u.GetHigh(), u.GetLow()} }
