package aomcheck

import (
	"fmt"
	"math"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/tc"
)

// ErrProblem is matched by all errors in a problem. They are of type *FieldError.
var ErrProblem = olaf.NewError(olaf.Usage, "bad verification problem")

// FieldError is an error in a field of a problem. It matches ErrProblem.
type FieldError struct {
	Field  string // as in a file: objective.bound, clusters[0] (vision).interval
	Reason string
}

// Error returns the message, with the field named as in a problem file.
func (e *FieldError) Error() string { return fmt.Sprintf("%v: %s: %s", ErrProblem, e.Field, e.Reason) }

// Unwrap returns ErrProblem.
func (e *FieldError) Unwrap() error { return ErrProblem }

// Model selects the equations of the queue.
type Model string

const (
	// Engine is the queue described in docs/reference/semantics.md. A merged update replaces the waiting one and
	// inherits its service time. An update that finds all slots occupied is dropped.
	Engine Model = "engine"
	// Paper is the model of §12.3 as printed: D = A + Q·p/C does not include the update's own service, an update
	// overtaken by its successor restarts the wait, and departures of different clusters are assumed to be at least p/C
	// apart.
	Paper Model = "paper"
	// PaperService is Paper with the update's own service included: D = A + (Q+1)·p/C.
	PaperService Model = "paper+service"
)

// Kind is the quantity that an objective bounds.
type Kind string

const (
	Fairness   Kind = "fairness"    // means of the peak AoM of any two clusters differ by at most Bound
	MaxPeak    Kind = "max-peak"    // no peak AoM exceeds Bound
	MeanPeak   Kind = "mean"        // no cluster's mean peak AoM exceeds Bound
	LossFree   Kind = "loss-free"   // no update finds the queue full
	PerCluster Kind = "per-cluster" // each cluster has its MaxPeak and Mean
)

// Mean selects the updates that are included in the mean peak AoM.
type Mean string

const (
	// Departed takes the mean over the delivered frames only.
	Departed Mean = "departed"
	// AllUpdates averages over all updates, as the paper's text says. Replaced and unsent updates have a peak of 0.
	// With this mean, clusters look alike however rarely they deliver.
	AllUpdates Mean = "all"
)

// Objective is the property to verify.
type Objective struct {
	Kind  Kind
	Bound olaf.Duration // ε of Fairness, the bound of MaxPeak and MeanPeak
	Mean  Mean          // defaults to Departed
}

// Cluster describes the updates that one training job sends to the engine.
type Cluster struct {
	Name     string
	Interval olaf.Duration // between sends, positive
	// PhaseLow and PhaseHigh bound the first send; EveryPhase allows all of [0, Interval).
	PhaseLow, PhaseHigh olaf.Duration
	EveryPhase          bool
	Jitter              olaf.Duration // each arrival is late by 0 … Jitter, independently
	// Arrivals, if set, is a progression {A(n)} (§12.2), such as a recorded one, that replaces Interval and the phase.
	Arrivals      []olaf.Duration `json:",omitempty"`
	Updates       int             // K for this cluster; defaults to the problem's horizon
	Sends         []bool          // given send decisions, one per update; used with SendsGiven
	MaxPeak, Mean olaf.Duration   // bounds for a PerCluster objective; 0 means none
}

// Sends selects how the transmission control decides whether to send an update.
type Sends string

const (
	// SendsFree leaves every decision with 0 < Ps < 1 undetermined. A verdict then covers both outcomes.
	SendsFree Sends = "free"
	// SendsSeeded draws one uniform number per update from a seeded generator; the update is sent if the number is
	// below Ps. A verdict covers all arrivals, but only these draws.
	SendsSeeded Sends = "seeded"
	// SendsGiven uses the decisions in Cluster.Sends.
	SendsGiven Sends = "given"
)

// Control configures the transmission control at the workers (paper §5). The zero value disables it.
type Control struct {
	DeltaT   olaf.Duration // Δ̄T, positive switches the control on
	Slope    tc.Slope      // v
	Active   int           // N in Qmax/N; defaults to the number of clusters
	AckDelay olaf.Duration // R, from departure to the worker
	Sends    Sends         // defaults to SendsFree
	Seed     uint64        // for SendsSeeded
}

// Problem is one question for the verifier: clusters, a queue, and the objective to prove.
type Problem struct {
	Model      Model
	Clusters   []Cluster
	Service    olaf.Duration // p/C, one update's time on the output, positive
	Slots      int           // Qmax
	Separation olaf.Duration // assumed minimum distance between arrivals of different clusters
	Horizon    int           // updates per cluster
	Control    Control
	Objective  Objective
}

// Limits of a problem. A larger problem is rejected with an error that names the limit.
const (
	MaxClusters = 64
	MaxUpdates  = 4000 // over all clusters
	// FreeLimit is the maximum number of updates per cluster with free send decisions. Each further update doubles the
	// length of a proof.
	FreeLimit = 20
	// maxSpan limits the sum of times over all updates, so that it fits into 64 bits.
	maxSpan = olaf.Duration(1) << 50
)

// WithDefaults returns p with the default for every field that is not set.
func (p Problem) WithDefaults() Problem {
	setDefault(&p.Model, Engine)
	setDefault(&p.Slots, 8)
	setDefault(&p.Horizon, 20)
	setDefault(&p.Objective.Mean, Departed)
	setDefault(&p.Control.Slope, tc.Urgency)
	setDefault(&p.Control.Sends, SendsFree)
	setDefault(&p.Control.Active, len(p.Clusters))
	p.Clusters = append([]Cluster(nil), p.Clusters...)
	for i := range p.Clusters {
		c := &p.Clusters[i]
		setDefault(&c.Name, fmt.Sprintf("c%d", i+1))
		setDefault(&c.Updates, p.Horizon)
		if len(c.Arrivals) > 0 {
			c.Updates, c.Interval, c.EveryPhase = min(c.Updates, len(c.Arrivals)), 0, false
			c.PhaseLow, c.PhaseHigh = 0, 0
		}
		if c.EveryPhase {
			c.PhaseLow, c.PhaseHigh = 0, c.Interval
		}
	}
	return p
}

// nominalArrival returns the arrival time of update k without phase and jitter.
func (c *Cluster) nominalArrival(k int) olaf.Duration {
	if len(c.Arrivals) > 0 {
		return c.Arrivals[k]
	}
	return olaf.Duration(k) * c.Interval
}

// lastArrival returns a time by which all of the cluster's updates have arrived. The number of updates must be valid.
func (c *Cluster) lastArrival() olaf.Duration {
	if len(c.Arrivals) > 0 {
		return c.Arrivals[c.Updates-1] + c.Jitter
	}
	return c.PhaseHigh + c.Jitter + olaf.Duration(min(c.Updates, MaxUpdates))*c.Interval
}

// shortestGap returns the shortest time between successive updates, without jitter.
func (c *Cluster) shortestGap() olaf.Duration {
	if len(c.Arrivals) == 0 {
		return c.Interval
	}
	gap := olaf.Hour
	for k := 1; k < c.Updates; k++ {
		gap = min(gap, c.Arrivals[k]-c.Arrivals[k-1])
	}
	return gap
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Validate checks a problem whose defaults are set. The error matches ErrProblem and names the field.
func (p *Problem) Validate() error {
	if err := p.validateQueue(); err != nil {
		return err
	}
	if p.Objective.Bound > olaf.Hour {
		return bad("objective.bound", fmt.Sprintf("%v is above the limit of 1h", p.Objective.Bound))
	}
	total, span := 0, max(p.Objective.Bound, p.Separation, p.Control.AckDelay, p.Control.DeltaT)
	for i := range p.Clusters {
		c := &p.Clusters[i]
		if err := c.validate(p); err != nil {
			return bad(fmt.Sprintf("clusters[%d] (%s).%s", i, c.Name, err.field), err.reason)
		}
		total += c.Updates
		span = max(span, c.MaxPeak, c.Mean, c.lastArrival())
	}
	if total > MaxUpdates {
		return bad("horizon", fmt.Sprintf("%d updates in all; at most %d are supported", total, MaxUpdates))
	}
	if tick := p.tick(); span/tick > maxSpan/olaf.Duration(total) {
		return bad("horizon", fmt.Sprintf("a path of %v in steps of %v is too long; use coarser times or fewer updates", span, tick))
	}
	return p.validateObjective()
}

func bad(field, why string) error { return &FieldError{field, why} }

func (p *Problem) validateQueue() error {
	switch {
	case p.Model != Engine && p.Model != Paper && p.Model != PaperService:
		return bad("model", fmt.Sprintf("%q is not one of engine, paper, paper+service", p.Model))
	case len(p.Clusters) == 0:
		return bad("clusters", "there is none")
	case len(p.Clusters) > MaxClusters:
		return bad("clusters", fmt.Sprintf("%d; at most %d are supported", len(p.Clusters), MaxClusters))
	case p.Service <= 0:
		return bad("service", fmt.Sprintf("%v is not a positive time", p.Service))
	case p.Service > olaf.Hour:
		return bad("service", fmt.Sprintf("%v is above the limit of 1h", p.Service))
	case p.Slots < 1 || p.Slots > 1<<16:
		return bad("slots", fmt.Sprintf("%d is outside 1 … 65536", p.Slots))
	case p.Separation < 0 || p.Separation > olaf.Hour:
		return bad("separation", fmt.Sprintf("%v is outside 0 … 1h", p.Separation))
	case p.Horizon < 2:
		return bad("horizon", fmt.Sprintf("%d; a peak needs at least 2 updates", p.Horizon))
	}
	return p.Control.validate()
}

func (c *Control) validate() error {
	switch {
	case c.DeltaT < 0 || c.DeltaT > olaf.Hour:
		return bad("control.delta-t", fmt.Sprintf("%v is outside 0 … 1h", c.DeltaT))
	case c.AckDelay < 0 || c.AckDelay > olaf.Hour:
		return bad("control.ack-delay", fmt.Sprintf("%v is outside 0 … 1h", c.AckDelay))
	case c.Active < 1 || c.Active > 1<<16:
		return bad("control.active", fmt.Sprintf("%d is outside 1 … 65536", c.Active))
	case c.Slope != tc.Urgency && c.Slope != tc.Fairness:
		return bad("control.slope", fmt.Sprintf("%q is not one of urgency, fairness", c.Slope))
	case c.Sends != SendsFree && c.Sends != SendsSeeded && c.Sends != SendsGiven:
		return bad("control.sends", fmt.Sprintf("%q is not one of free, seeded, given", c.Sends))
	}
	return nil
}

type fieldError struct{ field, reason string }

func (c *Cluster) validate(p *Problem) *fieldError {
	for k := range c.Arrivals {
		if at := c.Arrivals[k]; at < 0 || at > olaf.Hour || k > 0 && at <= c.Arrivals[k-1] {
			return &fieldError{"arrivals", fmt.Sprintf("update %d at %v; arrivals are 0 … 1h, each later than the one before", k, at)}
		}
	}
	switch {
	case len(c.Arrivals) > 0 && c.Updates > len(c.Arrivals):
		return &fieldError{"updates", fmt.Sprintf("%d of %d arrivals", c.Updates, len(c.Arrivals))}
	case c.Interval <= 0 && len(c.Arrivals) == 0:
		return &fieldError{"interval", fmt.Sprintf("%v is not a positive time", c.Interval)}
	case c.Interval > olaf.Hour:
		return &fieldError{"interval", fmt.Sprintf("%v is above the limit of 1h", c.Interval)}
	case c.Jitter < 0 || c.Jitter > olaf.Hour:
		return &fieldError{"jitter", fmt.Sprintf("%v is outside 0 … 1h", c.Jitter)}
	case c.PhaseLow < 0 || c.PhaseHigh > olaf.Hour:
		return &fieldError{"phase", "it is outside 0 … 1h"}
	case c.Updates < 2:
		return &fieldError{"updates", fmt.Sprintf("%d; a peak needs at least 2", c.Updates)}
	case c.Updates > p.Horizon:
		return &fieldError{"updates", fmt.Sprintf("%d is more than the horizon of %d", c.Updates, p.Horizon)}
	case len(c.Sends) > c.Updates:
		return &fieldError{"sends", fmt.Sprintf("%d decisions for a horizon of %d updates", len(c.Sends), c.Updates)}
	case p.Control.Sends == SendsGiven && len(c.Sends) < c.Updates:
		return &fieldError{"sends", fmt.Sprintf("%d decisions given for %d updates", len(c.Sends), c.Updates)}
	case c.MaxPeak < 0 || c.Mean < 0 || c.MaxPeak > olaf.Hour || c.Mean > olaf.Hour:
		return &fieldError{"bounds", "a bound is outside 0 … 1h"}
	case strings.ContainsAny(c.Name, "|\\\n"):
		return &fieldError{"name", "it contains a character that SMT-LIB cannot quote"}
	}
	return nil
}

func (p *Problem) validateObjective() error {
	o := &p.Objective
	if o.Mean != Departed && o.Mean != AllUpdates {
		return bad("objective.mean", fmt.Sprintf("%q is not one of departed, all", o.Mean))
	}
	switch o.Kind {
	case LossFree:
		return nil
	case Fairness:
		if len(p.Clusters) < 2 {
			return bad("clusters", "fairness compares at least two")
		}
		if o.Bound < 0 {
			return bad("objective.epsilon", fmt.Sprintf("%v is negative", o.Bound))
		}
		return nil
	case MaxPeak, MeanPeak:
		if o.Bound <= 0 {
			return bad("objective.bound", fmt.Sprintf("%v is not a positive time", o.Bound))
		}
		return nil
	case PerCluster:
		for _, c := range p.Clusters {
			if c.MaxPeak > 0 || c.Mean > 0 {
				return nil
			}
		}
		return bad("clusters", "a per-cluster objective needs max-peak or mean on at least one of them")
	case "":
		return bad("objective.kind", "it is missing; one of fairness, max-peak, mean, loss-free, per-cluster")
	}
	return bad("objective.kind", fmt.Sprintf("unknown objective %q; one of fairness, max-peak, mean, loss-free, per-cluster", o.Kind))
}

// Throttles reports whether the control can ever withhold an update. According to §5, workers send freely as long as
// Qmax ≥ N.
func (p *Problem) Throttles() bool {
	return p.Control.DeltaT > 0 && p.Slots < p.Control.Active
}

// hasFixedSends reports whether the problem alone determines all send decisions.
func (p *Problem) hasFixedSends() bool { return p.Control.Sends == SendsGiven || !p.Throttles() }

// tick returns the largest duration of which all times in the problem are multiples.
func (p *Problem) tick() olaf.Duration {
	t := gcd(p.Service, p.Separation)
	t = gcd(t, gcd(p.Objective.Bound, p.Control.AckDelay))
	for _, c := range p.Clusters {
		for _, d := range []olaf.Duration{c.Interval, c.Jitter, c.PhaseLow, c.PhaseHigh, c.MaxPeak, c.Mean} {
			t = gcd(t, d)
		}
		for _, at := range c.Arrivals[:min(c.Updates, len(c.Arrivals))] {
			t = gcd(t, at)
		}
	}
	if !p.hasFixedSends() {
		t = gcd(t, gcd(p.Control.DeltaT, p.Control.step()))
	}
	return t
}

func gcd[T ~int64](a, b T) T {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// drawSteps is the resolution of Ps and of the random draws. A draw is i/1000, and an ACK's age is measured in steps of
// Δ̄T/1000.
const drawSteps = 1000

// certain is the value of a draw for which an update is sent only if Ps = 1.
const certain = drawSteps

func (c *Control) step() olaf.Duration { return max(c.DeltaT/drawSteps, 1) }

// sendsAfter returns the age of the last ACK from which on an update with the given draw, in thousandths, is sent. It
// is the age at which Ps = Qmax/N + v·(Δ̂ − Δ̄T) reaches the draw (paper §5), rounded up to a step, or 0 if an update
// is sent even after a fresh ACK.
func (c *Control) sendsAfter(slots, draw int) olaf.Duration {
	missing := draw*c.Active - slots*drawSteps // part missing from Ps, in units of 1/(1000·N)
	if missing < 0 {
		return 0
	}
	late := float64(missing) / float64(drawSteps*c.Active) * float64(c.DeltaT)
	if c.Slope == tc.Fairness {
		perSecond := c.DeltaT.Seconds()
		late = float64(missing) / float64(drawSteps*c.Active) / perSecond * float64(olaf.Second)
	}
	steps := math.Ceil(math.Min(late, float64(1000*olaf.Hour)) / float64(c.step()))
	return c.DeltaT + olaf.Duration(steps)*c.step()
}
