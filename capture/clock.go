package capture

import (
	"fmt"

	"github.com/olafctl/olaf/results"
)

// clockClaim is the clock error that is stored in a comment on the first packet of a capture. It includes the packet's
// timestamp, which invalidates the claim if the timestamps are shifted (editcap -t).
type clockClaim struct{ errorNS, atNS int64 }

const claimFormat = "olafctl: stamps and workers' clocks are at most %d ns apart, first stamp %d ns"

func (c clockClaim) String() string { return fmt.Sprintf(claimFormat, c.errorNS, c.atNS) }

// parseClaim parses a packet comment. ok is false if the comment is not a clock claim.
func parseClaim(comment string) (c clockClaim, ok bool) {
	if _, err := fmt.Sscanf(comment, claimFormat, &c.errorNS, &c.atNS); err != nil {
		return clockClaim{}, false
	}
	return c, c.errorNS >= 0 && c.String() == comment
}

// clockState is the clock error of one interface in a file, according to the packets read so far.
type clockState struct {
	seen, known bool
	errorNS     int64
}

// note records the claim in a packet with timestamp atNS. c is nil if the packet has no claim.
func (s *clockState) note(c *clockClaim, atNS int64) {
	if c == nil && s.seen {
		return
	}
	valid := c != nil && c.atNS == atNS
	s.known = valid && (!s.seen || s.known)
	if s.seen = true; valid {
		s.errorNS = max(s.errorNS, c.errorNS)
	}
}

// ClockErrorNS returns the file's bound in ns on the difference between the clock of the timestamps and the workers'
// clock. The value is missing if an interface with packets has no bound.
func (r *Reader) ClockErrorNS() results.Float {
	if r.ng == nil {
		return results.Missing()
	}
	worst, any := int64(0), false
	for i := range r.ng.interfaces {
		c := &r.ng.interfaces[i].clock
		if c.seen && !c.known {
			return results.Missing()
		}
		any, worst = any || c.seen, max(worst, c.errorNS)
	}
	if !any || r.ng.sections > 1 {
		return results.Missing()
	}
	return results.Float(worst)
}
