package tc

import (
	"fmt"
	"slices"

	"github.com/olafctl/olaf"
)

// Law computes from a worker's ACKs the probability that it sends a new update.
type Law interface {
	// Probability returns Ps at now, 0 to 1, for a worker that has received at least one ACK.
	Probability(a *Acks, now olaf.Time) float64
}

// LawName is the name of a control law in flags and files.
type LawName string

const (
	// PaperLaw is Config: Qmax/N while there are more clusters than slots (paper §5).
	PaperLaw LawName = "paper"
	// FullLaw is the paper's law while the last ACK's queue was full, and 1 otherwise: the binary state of §5.
	FullLaw LawName = "full"
	// ExtrapolateLaw replaces N with the occupancy extrapolated from the last two ACKs: the paper's future work (§10).
	ExtrapolateLaw LawName = "extrapolate"
	// NoLaw sends every update.
	NoLaw LawName = "none"
)

// LawNames returns the names of the control laws, the default first.
func LawNames() []LawName { return []LawName{PaperLaw, FullLaw, ExtrapolateLaw, NoLaw} }

// UnmarshalText accepts these names only.
func (n *LawName) UnmarshalText(b []byte) error {
	if v := LawName(b); slices.Contains(LawNames(), v) {
		*n = v
		return nil
	}
	return fmt.Errorf("control law %q is not one of %q", b, LawNames())
}

// AckContent is the part of an ACK's status that a law uses beside N and Qmax (paper §5).
type AckContent string

const (
	// NumberAck is Qn, the number of slots in use.
	NumberAck AckContent = "numbers"
	// FullAck is one bit in place of Qn: laws see Qmax for a full queue and 0 for any other.
	FullAck AckContent = "full"
)

// AckContents returns the contents of ACKs, the default first.
func AckContents() []AckContent { return []AckContent{NumberAck, FullAck} }

// UnmarshalText accepts these contents only.
func (c *AckContent) UnmarshalText(b []byte) error {
	if v := AckContent(b); slices.Contains(AckContents(), v) {
		*c = v
		return nil
	}
	return fmt.Errorf("ACK content %q is not one of %q", b, AckContents())
}

// fromBit is a law that receives one bit in place of each occupancy.
type fromBit struct{ Law }

// Probability implements Law.
func (b fromBit) Probability(a *Acks, now olaf.Time) float64 {
	reduced := *a
	reduced.Last = a.Last.ReduceToBit()
	reduced.Before = Status{Slots: a.Last.Slots, Occupancy: a.Before}.ReduceToBit().Occupancy
	return b.Law.Probability(&reduced, now)
}

// NewLaw returns the named law; the empty name is the paper's. All but NoLaw need a threshold.
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

// newNumberLaw returns the named law for ACKs with all three numbers.
func newNumberLaw(name LawName, c Config) (Law, error) {
	if name != NoLaw && c.Threshold <= 0 {
		return nil, fmt.Errorf("threshold is %v; it must be positive, such as 50ms", c.Threshold)
	}
	switch name {
	case "", PaperLaw:
		return c, nil
	case FullLaw:
		return binary{c}, nil
	case ExtrapolateLaw:
		return extrapolation{c}, nil
	case NoLaw:
		return Free{}, nil
	}
	return nil, fmt.Errorf("law %q is not one of %q", name, LawNames())
}

// Free sends every update.
type Free struct{}

// Probability implements Law.
func (Free) Probability(*Acks, olaf.Time) float64 { return 1 }

// binary knows only whether the queue was full.
type binary struct{ Config }

// Probability implements Law.
func (b binary) Probability(a *Acks, now olaf.Time) float64 {
	if !a.Last.Full() {
		return 1
	}
	return b.Config.Probability(a, now)
}

// maxActive bounds an extrapolation.
const maxActive = 1 << 24

// extrapolation continues the line through the occupancies of the last two ACKs, for at most the threshold.
type extrapolation struct{ Config }

// Probability implements Law.
func (e extrapolation) Probability(a *Acks, now olaf.Time) float64 {
	s := a.Last
	s.Active = s.Occupancy
	if a.Followed {
		ahead := min(a.age(now), e.Threshold).Seconds() / a.At.Sub(a.BeforeAt).Seconds()
		rise := float64(ahead * (float64(s.Occupancy) - float64(a.Before))) // no fused add, which would differ by machine
		s.Active = uint32(min(max(float64(s.Occupancy)+rise, 0), maxActive))
	}
	return e.SendProbability(s, a.age(now))
}
