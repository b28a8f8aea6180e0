package capture

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
)

// Source is a stream of packets in order of time, such as a Reader. Next returns io.EOF after the last packet, and
// ErrIdle if a live capture has no packet at the moment.
type Source interface {
	Next(p *Packet) error
}

// Arrival is an OLAF frame in a capture.
type Arrival struct {
	Number int       // packet number, from 1
	At     olaf.Time // time when the last bit was seen, since the decoder's origin
	Frame  olaf.Frame
	Update olaf.Update
	// GeneratedNS is the update's generation time without the wrap at 48 bits: the instant nearest to At. It can be
	// negative if the capture and the generator have different clocks.
	GeneratedNS int64
	// Truncated means that the capture lacks some lanes.
	Truncated bool
}

// Observation returns the arrival as an observation at the parameter server. Its queueing time and its contributors are
// unknown.
func (a *Arrival) Observation() olaf.Observation {
	return olaf.Observation{At: a.At, Queued: -1, Update: a.Update}
}

// Decoder finds the OLAF frames in a stream of packets and counts the other packets. It allocates memory only once per
// worker.
type Decoder struct {
	src     Source
	name    string
	account Account
	origin  int64
	known   bool // the origin is known
	virtual bool
	packet  Packet // newest packet
	// Others returns the system that a foreign frame belongs to, for the error message, or "" if unknown. It may be
	// nil.
	Others func(frame []byte, wire int) string
	others map[string]int
}

// maxVirtualNS is the range of the run clock, about 106 days. If the first packet of a capture is less than this time
// after 1970, the timestamps come from a run clock and not from a wall clock.
const maxVirtualNS = math.MaxInt64 / int64(olaf.Nanosecond)

// NewDecoder returns a decoder for src. Arrival times are on the run clock if the capture's timestamps come from one,
// such as a twin's. Otherwise they count from the first packet.
func NewDecoder(src Source) *Decoder {
	d := &Decoder{src: src, name: "capture"}
	if named, ok := src.(interface{ Name() string }); ok {
		d.name = named.Name()
	}
	return d
}

// Name returns the capture's name for use in errors.
func (d *Decoder) Name() string { return d.name }

// SetOrigin sets the wall-clock time, in ns since 1970, at which the generator was armed, so that ages can be
// computed from a capture with the generator's clock. It must be called before the first Next.
func (d *Decoder) SetOrigin(unixNS int64) { d.origin, d.known, d.virtual = unixNS, true, true }

// Origin returns the time, in ns since 1970, from which arrival times count. sameClock reports whether generation times
// count from the same time. If not, ages have no meaning.
func (d *Decoder) Origin() (unixNS int64, sameClock bool) { return d.origin, d.virtual }

// Next decodes the next OLAF frame, an update or an ACK, into a. The frame is valid until the next call. Other packets
// are counted and skipped.
//
// At the end, Next returns io.EOF, or an error that matches ErrNoOLAF if there was no OLAF frame. Other errors match
// ErrTime or come from the source. After ErrIdle, Next may be called again.
func (d *Decoder) Next(a *Arrival) error {
	p := &d.packet
	for {
		err := d.src.Next(p)
		if err == io.EOF && d.account.losses.Updates+d.account.losses.Acks == 0 {
			return d.noOLAFError()
		}
		if err != nil {
			return err
		}
		at, err := d.toRunClock(p.UnixNS)
		if err != nil {
			return err
		}
		f, err := d.account.Packet(p)
		if err != nil {
			d.countForeign(p)
			continue
		}
		*a = Arrival{Number: p.Number, At: at, Frame: f, Update: f.Update(), Truncated: len(p.Data) < p.Wire}
		a.GeneratedNS = unwrapGeneration(at.NS(), a.Update.GenNS)
		return nil
	}
}

// toRunClock converts a packet's time to the run clock.
func (d *Decoder) toRunClock(unixNS int64) (olaf.Time, error) {
	if !d.known {
		d.known, d.virtual = true, unixNS <= maxVirtualNS
		if !d.virtual {
			d.origin = unixNS
		}
	}
	ns := unixNS - d.origin
	if ns < 0 || ns > maxVirtualNS {
		return 0, &Error{d.name, d.packet.Number, ErrTime, "it lies before the origin, or more than 106 days after it"}
	}
	return olaf.Time(ns * int64(olaf.Nanosecond)), nil
}

// countForeign counts a packet that belongs to another system.
func (d *Decoder) countForeign(p *Packet) {
	if d.Others == nil {
		return
	}
	frame, wire, _ := removeTag(p, nil)
	if name := d.Others(frame, wire); name != "" {
		if d.others == nil {
			d.others = map[string]int{}
		}
		d.others[name]++
	}
}

func (d *Decoder) noOLAFError() error {
	l := d.account.losses
	advice := "it is empty"
	var known []string
	for _, name := range slices.Sorted(maps.Keys(d.others)) {
		known = append(known, fmt.Sprintf("%d of %s", d.others[name], name))
	}
	switch {
	case known != nil:
		advice = olaf.Plural(l.Packets, "packet") + ", " + strings.Join(known, ", ") +
			": only OLAF's frames carry generation times and contributors, so no age can be observed; " +
			"tshark shows them with the script of 'olafctl system program dissector'"
	case l.Packets > 0:
		worst := FaultCount{}
		for _, f := range d.account.Faults() {
			if f.Count > worst.Count {
				worst = f
			}
		}
		advice = olaf.Plural(l.Packets, "packet") + ", mostly " + worst.Fault.Error()
	}
	return &Error{d.name, 0, ErrNoOLAF, advice}
}

// Grain returns the resolution of the timestamps read so far, or one nanosecond if the source does not report a
// resolution.
func (d *Decoder) Grain() olaf.Duration {
	if r, ok := d.src.(interface{ Grain() olaf.Duration }); ok {
		return max(r.Grain(), olaf.Nanosecond)
	}
	return olaf.Nanosecond
}

// ClockErrorNS returns the source's bound in ns on the difference between the clock of the timestamps and the workers'
// clock. The value is missing if the source has no bound.
func (d *Decoder) ClockErrorNS() results.Float {
	if r, ok := d.src.(interface{ ClockErrorNS() results.Float }); ok {
		return r.ClockErrorNS()
	}
	return results.Missing()
}

// Losses returns the counts so far.
func (d *Decoder) Losses() Losses {
	l := d.account.Losses()
	if r, ok := d.src.(interface{ LinkErrors() int64 }); ok {
		l.LinkErrors = r.LinkErrors()
	}
	if r, ok := d.src.(interface{ DroppedPackets() int64 }); ok {
		l.CaptureDropped = r.DroppedPackets()
	}
	return l
}

// Faults returns the reasons why frames were bypassed or malformed.
func (d *Decoder) Faults() []FaultCount { return d.account.Faults() }

// unwrapGeneration returns the instant in ns that is congruent to gen modulo 2^48 and nearest to atNS.
func unwrapGeneration(atNS int64, gen uint64) int64 {
	const shift = 64 - 48
	return atNS - int64((uint64(atNS)-gen)<<shift)>>shift
}
