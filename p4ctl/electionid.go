package p4ctl

import (
	"fmt"
	"math"
	"strings"

	v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/olafctl/olaf"
)

// ElectionID is an unsigned 128-bit number. Among the controllers of a device, the one with the highest id may
// write. A server remembers the highest id it has seen until it restarts.
type ElectionID struct{ High, Low uint64 }

// DefaultElectionID returns the id that a session announces by default, just above p4runtime-shell's default of (1,
// 0).
func DefaultElectionID() ElectionID { return ElectionID{High: 1, Low: 1} }

// ParseElectionID parses HIGH:LOW or just LOW, in decimal or with 0x.
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

// String formats the id as HIGH:LOW, which ParseElectionID reads.
func (e ElectionID) String() string { return fmt.Sprintf("%d:%d", e.High, e.Low) }

// Compare returns -1, 0 or 1 if e is lower than, equal to or higher than f.
func (e ElectionID) Compare(f ElectionID) int {
	switch {
	case e == f:
		return 0
	case e.High < f.High || e.High == f.High && e.Low < f.Low:
		return -1
	}
	return 1
}

// Next returns the next higher id, or e if it is the highest.
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
