package testbed

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/pktgen"
)

// Probes describes how probe frames compare the generator's clock with the server's. The generator sends and stamps the
// frames like updates. They bypass the queue, because they are sent to another port than OLAF's.
type Probes struct {
	// Open starts a capture of the packets to regmap.NotOlafPort, stamped by the clock that stamps the server's frames.
	Open     func() (Frames, error)
	AtMostNS int64 // larger bounds withhold ages; 0 for any
}

// ErrProbes reports that too few probe frames reached the server.
var ErrProbes = olaf.NewError(olaf.Device, "the clocks cannot be compared")

// Number of probe frames in a measurement, and the number that must arrive.
const (
	pathProbes  = 64
	leastProbes = pathProbes / 4
)

// pathApart is the time between probe frames. A measurement takes 16 ms, because a busy host delays frames for
// milliseconds. pathPatience is the longest time that frames may need to arrive.
const (
	pathApart    = 250 * olaf.Microsecond
	pathStep     = 2 * olaf.Millisecond
	pathPatience = olaf.Second
)

// earlyNS is the largest time by which an update may seem to arrive before the run's start. Earlier frames belong to an
// earlier run.
const earlyNS = int64(time.Millisecond)

// notProbed is the reason to withhold the ages of a run after which the path was not measured.
const notProbed = "clock.by probe needs probe frames before and after the run, which only 'olafctl bench' sends"

// pathTimes are the times of one probe frame in ns. The generator's clock stamped it when it was sent, and the server's
// when it arrived.
type pathTimes struct{ sentNS, arrivedNS int64 }

// pathOffset is the time of the server's clock minus that of the generator's, plus the delay of the fastest path from
// one to the other. Times are those of the generator's clock in ns.
type pathOffset struct {
	fromNS, atNS int64 // when the first and the quickest probe frame were sent
	offsetNS     int64 // up to boundNS too large
	boundNS      int64
}

// measurePath returns the offset that the quickest probe frame shows. Its bound is the time within which the quickest
// quarter arrived. all must contain at least leastProbes frames.
func measurePath(all []pathTimes) pathOffset {
	delay := func(p pathTimes) int64 { return p.arrivedNS - p.sentNS }
	from := slices.MinFunc(all, func(a, b pathTimes) int { return cmp.Compare(a.sentNS, b.sentNS) })
	all = slices.SortedFunc(slices.Values(all), func(a, b pathTimes) int { return cmp.Compare(delay(a), delay(b)) })
	quarter := all[(len(all)-1)/4]
	return pathOffset{fromNS: from.sentNS, atNS: all[0].sentNS, offsetNS: delay(all[0]),
		boundNS: delay(quarter) - delay(all[0]) + 2*cycleNS} // two starts of runs are whole cycles
}

// serverTimeOf returns the server's time at which the fastest frame arrives if it is sent at a cycle of the generator.
// The result may be up to boundNS too early.
func (p *pathOffset) serverTimeOf(cycle uint64) int64 {
	return int64(cycle)*cycleNS + p.offsetNS - p.boundNS
}

// pathClock measures the path from the generator to the server.
type pathClock struct {
	frames   Frames
	atMostNS int64
	sequence uint32      // of the next probe frame
	measured *pathOffset // since the last run; nil if there is none
}

// openProbes starts a capture of probe frames. It does nothing if p is nil.
func (t *Tap) openProbes(p *Probes) error {
	if p == nil {
		return nil
	}
	frames, err := p.Open()
	if err != nil {
		return err
	}
	t.path = &pathClock{frames: frames, atMostNS: p.AtMostNS}
	if a, b := frames.Info().Stamps, t.frames.Info().Stamps; a != b {
		return fmt.Errorf("%w: probe frames have timestamps from the %s clock and updates from the %s clock; use stamps: kernel",
			ErrBackend, a, b)
	}
	return nil
}

// Close ends the capture of probe frames.
func (p *pathClock) Close() error {
	if p == nil {
		return nil
	}
	return p.frames.Close()
}

// takeMeasured returns the path as measured since the last run, or nil.
func (p *pathClock) takeMeasured() *pathOffset {
	if p == nil {
		return nil
	}
	m := p.measured
	p.measured = nil
	return m
}

// ProbePath measures the path from the generator to the server before a run, if probe frames compare the clocks, and
// reports whether they do. The generator must be idle. Its flows and descriptors are overwritten. The error matches
// ErrProbes if too few frames arrive.
func (c *Card) ProbePath(ctx context.Context) (probed bool, err error) {
	t, ok := c.Tap.(*Tap)
	if !ok || t.path == nil {
		return false, nil
	}
	t.path.measured, err = t.probePath(ctx, c.Device)
	return true, err
}

// ReportPath measures the path again after a run, if ProbePath measured it before, and completes the report on the run's
// capture with the error of its ages. The conditions and the errors are those of ProbePath.
func (c *Card) ReportPath(ctx context.Context, seen *fpga.Capture) error {
	t, ok := c.Tap.(*Tap)
	if !ok || t.path == nil || t.run.path == nil || seen == nil {
		return nil
	}
	after, err := t.probePath(ctx, c.Device)
	if err != nil {
		return err
	}
	t.reportPath(after, seen)
	return nil
}

// reportPath completes the report on a run's capture by the path after the run. The path's delay is constant, so its
// increase is the drift of the clocks.
func (t *Tap) reportPath(after *pathOffset, seen *fpga.Capture) {
	r, before := &t.run, t.run.path
	span, drift := after.atNS-before.atNS, after.offsetNS-before.offsetNS
	seen.UncertaintyNS, seen.DriftNS = before.boundNS+after.boundNS, drift
	if WasStepped(drift, seen.UncertaintyNS, span) {
		seen.Faults = append(seen.Faults, fmt.Sprintf("a clock was set during the run: the server's clock moved by %v relative to the "+
			"generator's in %v", time.Duration(drift), time.Duration(span)))
	}
	if until := int64(r.start)*cycleNS + seen.SpanNS - before.fromNS; until < span {
		seen.DriftNS = int64(float64(drift) * float64(until) / float64(span))
	}
	if seen.Withheld != notProbed {
		return
	}
	seen.Withheld = ""
	bound := seen.UncertaintyNS + max(seen.DriftNS, -seen.DriftNS)
	switch {
	case r.early > bound:
		seen.Withheld = fmt.Sprintf("an update was faster than the quickest probe frame by %v, which is more than the bound of %v",
			time.Duration(r.early), time.Duration(bound))
	case t.path.atMostNS > 0 && bound > t.path.atMostNS:
		seen.Withheld = fmt.Sprintf("probe frames compared the clocks within %v, and the testbed's file allows %v (clock.at_most)",
			time.Duration(bound), time.Duration(t.path.atMostNS))
	}
}

// probePath sends probe frames and measures the path by their arrivals.
func (t *Tap) probePath(ctx context.Context, dev fpga.Device) (*pathOffset, error) {
	p := t.path
	first := p.sequence
	p.sequence += pathProbes
	g := pktgen.NewGenerator(dev)
	if err := g.Program(ctx, probeJob(&probes{total: pathProbes, first: first, apart: pathApart})); err != nil {
		return nil, fmt.Errorf("%s: probe the path: %w", dev.Identity().Address, err)
	}
	if err := g.ArmAndStart(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: probe the path: %w", dev.Identity().Address, err), g.Abort())
	}
	var all []pathTimes
	err := dev.Sleep(ctx, pathProbes*pathApart)
	for waited := olaf.Duration(0); err == nil && len(all) < pathProbes && waited < pathPatience; waited += pathStep {
		if err = dev.Sleep(ctx, pathStep); err == nil {
			err = p.collect(first, &all)
		}
	}
	start, unread := regmap.Read64(dev, regmap.GeneratorStartCycle)
	if err := errors.Join(err, unread, g.Abort()); err != nil {
		return nil, err
	}
	t.start = start
	if len(all) < leastProbes {
		return nil, fmt.Errorf("%w by probe frames: %d of %d (UDP port %d) reached %s past the queue; check the cables, and on a kernel "+
			"queue's host that Linux is 6.6 or newer", ErrProbes, len(all), pathProbes, regmap.NotOlafPort, p.frames.Info().Interface)
	}
	for i := range all {
		all[i].sentNS += int64(start) * cycleNS
	}
	m := measurePath(all)
	return &m, nil
}

// collect appends the times of the probe frames that have arrived, whose sequence numbers begin at first. Their sending
// times are relative to the start of the generator's run.
func (p *pathClock) collect(first uint32, all *[]pathTimes) error {
	for {
		var packet capture.Packet
		err := p.frames.Next(&packet)
		if errors.Is(err, capture.ErrIdle) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the capture of probe frames failed: %w", err)
		}
		if u, ok := parseProbe(packet.Data); ok && u.Seq-first < pathProbes {
			*all = append(*all, pathTimes{int64(u.GenNS), packet.UnixNS})
		}
	}
}

// parseProbe returns the update in a probe frame, which differs from an OLAF frame only by its port. It returns false
// for other frames.
func parseProbe(frame []byte) (u olaf.Update, ok bool) {
	const portAt, checksumAt, end = 36, 40, 42 // of UDP, behind an IPv4 header without options
	if len(frame) < end || binary.BigEndian.Uint16(frame[portAt:]) != regmap.NotOlafPort {
		return u, false
	}
	frame = slices.Clone(frame)
	binary.BigEndian.PutUint16(frame[portAt:], olaf.UDPPort)
	binary.BigEndian.PutUint16(frame[checksumAt:], 0) // none
	f, err := olaf.ParseFrame(frame)
	if err != nil || f.Kind() != olaf.KindUpdate {
		return u, false
	}
	return f.Update(), true
}
