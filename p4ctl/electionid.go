package p4ctl

import (
	"fmt"
	"math"
	"strings"

	v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/olafctl/olaf"
)

// ElectionID is an unsigned number of 128 bits: among the controllers of a device the highest one that was ever seen
// writes. A server remembers that number until it restarts.
type ElectionID struct{ High, Low uint64 }

// DefaultElectionID is what a session uses when nothing else is asked for: just above p4runtime-shell's default of (1, 0).
func DefaultElectionID() ElectionID { return ElectionID{High: 1, Low: 1} }

// ParseElectionID reads HIGH:LOW or just LOW, decimal or with 0x.
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

// String is HIGH:LOW, which ParseElectionID reads.
func (e ElectionID) String() string { return fmt.Sprintf("%d:%d", e.High, e.Low) }

// Compare is -1, 0 or 1 as e is lower than, equal to or higher than f.
func (e ElectionID) Compare(f ElectionID) int {
	switch {
	case e == f:
		return 0
	case e.High < f.High || e.High == f.High && e.Low < f.Low:
		return -1
	}
	return 1
}

// Next is the next higher id; the highest one stays.
func (e ElectionID) Next() ElectionID {
	if e.Low < math.MaxUint64 {
		return ElectionID{e.High, e.Low + 1}
	}
	if e.High < math.MaxUint64 {
		return ElectionID{e.High + 1, 0}
	}
	return e
}

func (e ElectionID) proto() *v1.Uint128 { return &v1.Uint128{High: e.High, Low: e.Low} }

func fromProto(u *v1.Uint128) ElectionID { return ElectionID{u.GetHigh(), u.GetLow()} }
