// Package tc implements the worker's side of OLAF's transmission control (paper §5). From the queue status in ACKs, it
// decides whether to send a new update. It has no clock, so that a simulator and a real worker can use the same code.
package tc

import "github.com/olafctl/olaf"

// Status is the queue status in an ACK: N, Qmax and Qn in the paper. A server sends the zero Status, which ports on the
// way overwrite.
type Status struct {
	Active    uint32 // N: active clusters, or senders if configured so
	Slots     uint32 // Qmax
	Occupancy uint32 // Qn
}

// Congested reports whether the queue has fewer slots than there are clusters to serve.
func (s Status) Congested() bool { return s.Slots < s.Active }

// Full reports whether no slot is free. An ACK may carry this binary state instead of Qn (paper §5).
func (s Status) Full() bool { return s.Occupancy >= s.Slots && s.Slots > 0 }

// ReduceToBit returns the status that a worker can derive from N, Qmax and one bit for a full queue.
func (s Status) ReduceToBit() Status {
	full := s.Full()
	if s.Occupancy = 0; full {
		s.Occupancy = s.Slots
	}
	return s
}

// MoreCongestedThan reports whether the ratio Active/Slots is larger in s than in o. It does not divide. A status
// without slots is unknown and is never more congested than another status.
func (s Status) MoreCongestedThan(o Status) bool {
	if s.Slots == 0 || o.Slots == 0 {
		return s.Slots != 0
	}
	return uint64(s.Active)*uint64(o.Slots) > uint64(o.Active)*uint64(s.Slots)
}

// PassHop returns the status in an ACK after it has passed a hop. It is the hop's status if the hop is more congested
// than the status in the ACK.
func (s Status) PassHop(hop Status) Status {
	if hop.MoreCongestedThan(s) {
		return hop
	}
	return s
}

// Slope selects the meaning of v in f(Δ̂) = v·(Δ̂ − Δ̄T).
type Slope string

const (
	// Urgency selects v = 1/Δ̄T, per second. It is the default.
	Urgency Slope = "1/threshold"
	// Fairness selects v = Δ̄T; its value in seconds is used as a rate per second.
	Fairness Slope = "threshold"
)

// Slopes returns the possible slopes. The default comes first.
func Slopes() []Slope { return []Slope{Urgency, Fairness} }

// UnmarshalText sets s and rejects slopes that Slopes does not return.
func (s *Slope) UnmarshalText(b []byte) error { return oneOf(s, "slope", b, Slopes()) }

// Config contains the settings of the transmission control for all workers of a job.
type Config struct {
	Threshold olaf.Duration // Δ̄T, positive
	Slope     Slope         // default Urgency
	Ack       AckContent    // default NumberAck
}

// perSecond returns the slope v in 1/s.
func (c Config) perSecond() float64 {
	if c.Slope == Fairness {
		return c.Threshold.Seconds()
	}
	return 1 / c.Threshold.Seconds()
}

// SendProbability returns Ps for a worker whose last ACK had status s and is sinceAck old (paper §5). Ps is 1 while
// Qmax ≥ N.
func (c Config) SendProbability(s Status, sinceAck olaf.Duration) float64 {
	return c.linear().sendProbability(s, sinceAck)
}

// linear returns the paper's law.
func (c Config) linear() linear { return linear{c.Threshold, c.perSecond()} }

// linear is the paper's law. Simulations call it for every update, so it stores the slope.
type linear struct {
	threshold olaf.Duration
	perSecond float64
}

func (l linear) sendProbability(s Status, sinceAck olaf.Duration) float64 {
	if !s.Congested() {
		return 1
	}
	p := float64(s.Slots) / float64(s.Active)
	if late := sinceAck - l.threshold; late > 0 {
		p += float64(l.perSecond * late.Seconds()) // the conversion forbids a fused add, which would differ by machine
	}
	return min(p, 1)
}

// Probability implements Law.
func (l linear) Probability(a *Acks, now olaf.Time) float64 {
	return l.sendProbability(a.Last, a.age(now))
}

// Acks contains what a worker has learnt from its ACKs. A law may assume that the worker has received at least one ACK.
type Acks struct {
	Last Status
	At   olaf.Time // arrival time of Last
	// Before is the occupancy in the previous ACK, at BeforeAt. It is valid if Followed is true, which means that the
	// previous ACK is older and comes from a queue of the same size.
	Before   uint32
	BeforeAt olaf.Time
	Followed bool
}

// age returns the time since the last ACK.
func (a *Acks) age(now olaf.Time) olaf.Duration { return now.Sub(a.At) }

// Controller is the transmission control state of one worker. The zero Controller has received no ACK and sends every
// update.
type Controller struct {
	acks    Acks
	listens bool
}

// OnAck records the status in an ACK that was received at now. It ignores an ACK that is older than the last one.
func (c *Controller) OnAck(now olaf.Time, s Status) {
	a := &c.acks
	if c.listens && now < a.At {
		return
	}
	if c.listens && now > a.At {
		a.Before, a.BeforeAt, a.Followed = a.Last.Occupancy, a.At, a.Last.Slots == s.Slots
	}
	a.Last, a.At, c.listens = s, now, true
}

// SendProbability returns the probability Ps of sending an update at now.
func (c *Controller) SendProbability(law Law, now olaf.Time) float64 {
	if !c.listens {
		return 1
	}
	return law.Probability(&c.acks, now)
}

// Decide reports whether to send an update at now. u must be drawn uniformly from [0, 1).
func (c *Controller) Decide(law Law, now olaf.Time, u float64) bool {
	return u < c.SendProbability(law, now)
}

// Last returns the status in the last ACK and the ACK's age at now. ok is false before the first ACK.
func (c *Controller) Last(now olaf.Time) (s Status, age olaf.Duration, ok bool) {
	return c.acks.Last, c.acks.age(now), c.listens
}
