package tc

import (
	"fmt"
	"slices"

	"github.com/olafctl/olaf"
)

// Law computes the probability with which a worker sends a new update, from the ACKs that it received.
type Law interface {
	// Probability returns Ps at now, 0 to 1, for a worker that has received at least one ACK.
	Probability(a *Acks, now olaf.Time) float64
}

// LawName is the name of a control law in flags and files.
type LawName string

const (
	// PaperLaw is the law of Config.SendProbability. It sends with probability Qmax/N, corrected by the ACK's age, while there are more
	// clusters than slots (paper §5).
	PaperLaw LawName = "paper"
	// FullLaw is the paper's law if the queue was full at the last ACK, and 1 otherwise. It corresponds to the binary
	// state in §5.
	FullLaw LawName = "full"
	// ExtrapolateLaw replaces N by the occupancy extrapolated from the last two ACKs, which the paper mentions as
	// future work (§10).
	ExtrapolateLaw LawName = "extrapolate"
	// NoLaw sends every update.
	NoLaw LawName = "none"
)

// LawNames returns the names of the control laws. The default comes first.
func LawNames() []LawName { return []LawName{PaperLaw, FullLaw, ExtrapolateLaw, NoLaw} }

// UnmarshalText sets n and rejects names that LawNames does not return.
func (n *LawName) UnmarshalText(b []byte) error { return oneOf(n, "control law", b, LawNames()) }

// oneOf sets dst to the value in b, which must be one of the given values.
func oneOf[T ~string](dst *T, what string, b []byte, values []T) error {
	if v := T(b); slices.Contains(values, v) {
		*dst = v
		return nil
	}
	return fmt.Errorf("%s %q is not one of %q", what, b, values)
}

// AckContent is the part of an ACK's status that a law uses in addition to N and Qmax (paper §5).
type AckContent string

const (
	// NumberAck means that ACKs carry Qn, the number of slots in use.
	NumberAck AckContent = "numbers"
	// FullAck means that ACKs carry one bit instead of Qn. Laws see Qmax for a full queue and 0 for any other.
	FullAck AckContent = "full"
)

// AckContents returns the possible contents of ACKs. The default comes first.
func AckContents() []AckContent { return []AckContent{NumberAck, FullAck} }

// UnmarshalText sets c and rejects contents that AckContents does not return.
func (c *AckContent) UnmarshalText(b []byte) error { return oneOf(c, "ACK content", b, AckContents()) }

// fromBit applies a law to ACKs that contain one bit instead of an occupancy.
type fromBit struct{ Law }

// Probability implements Law.
func (b fromBit) Probability(a *Acks, now olaf.Time) float64 {
	reduced := *a
	reduced.Last = a.Last.ReduceToBit()
	reduced.Before = Status{Slots: a.Last.Slots, Occupancy: a.Before}.ReduceToBit().Occupancy
	return b.Law.Probability(&reduced, now)
}

// NewLaw returns the law with the given name. An empty name selects the paper's law. All laws except NoLaw need a
// threshold.
func NewLaw(name LawName, c Config) (Law, error) {
	law, err := newNumberLaw(name, c)
	if err != nil {
		return nil, err
	}
	switch c.Ack {
	case "", NumberAck:
		return law, nil
	case FullAck:
		return fromBit{law}, nil
	}
	return nil, fmt.Errorf("ACK content %q is not one of %q", c.Ack, AckContents())
}

// newNumberLaw returns the law with the given name for ACKs that contain all three numbers.
func newNumberLaw(name LawName, c Config) (Law, error) {
	if name != NoLaw && c.Threshold <= 0 {
		return nil, fmt.Errorf("threshold is %v; it must be positive, such as 50ms", c.Threshold)
	}
	switch name {
	case "", PaperLaw:
		return c.linear(), nil
	case FullLaw:
		return binary{c.linear()}, nil
	case ExtrapolateLaw:
		return extrapolation{c.linear()}, nil
	case NoLaw:
		return Free{}, nil
	}
	return nil, fmt.Errorf("law %q is not one of %q", name, LawNames())
}

// Free is a law that sends every update.
type Free struct{}

// Probability implements Law.
func (Free) Probability(*Acks, olaf.Time) float64 { return 1 }

// binary is a law that uses only whether the queue was full.
type binary struct{ linear }

// Probability implements Law.
func (b binary) Probability(a *Acks, now olaf.Time) float64 {
	if !a.Last.Full() {
		return 1
	}
	return b.linear.Probability(a, now)
}

// maxActive is the largest extrapolated occupancy.
const maxActive = 1 << 24

// extrapolation is a law that extends the line through the occupancies in the last two ACKs, for at most the threshold.
type extrapolation struct{ linear }

// Probability implements Law.
func (e extrapolation) Probability(a *Acks, now olaf.Time) float64 {
	s := a.Last
	s.Active = s.Occupancy
	if a.Followed {
		ahead := min(a.age(now), e.threshold).Seconds() / a.At.Sub(a.BeforeAt).Seconds()
		rise := float64(ahead * (float64(s.Occupancy) - float64(a.Before))) // no fused add, which would differ by machine
		s.Active = uint32(min(max(float64(s.Occupancy)+rise, 0), maxActive))
	}
	return e.sendProbability(s, a.age(now))
}
