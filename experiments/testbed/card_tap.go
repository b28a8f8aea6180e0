package testbed

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/capture/live"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/fpga/remote"
)

// Frames is a capture at the parameter server that runs in the background; live.Socket implements it. Next never waits.
// If there is no packet, it returns capture.ErrIdle.
type Frames interface {
	capture.Source
	Info() live.Info
	StampCounts() live.Stamped
	Drops() (live.Drops, error)
	Close() error
}

// farFrames is a capture whose timestamps come from another host's clock. HostFrames implements it.
type farFrames interface {
	Frames
	// Now returns the other host's time at the last look for frames. LocalNow returns this host's current time.
	Now() time.Time
	LocalNow() time.Time
	// Offset measures how far ahead the other clock is.
	Offset() (Offset, error)
}

// Tap returns the frames that reached the parameter server behind a card. Their times are relative to the start of
// the generator's run, which Tap converts to the clock of the timestamps. Other users of the card share it.
type Tap struct {
	card   fpga.Registers
	open   func() (Frames, error)
	frames Frames
	copies *copies       // copies of frames at which ages begin; nil if ages begin by the generator's clock
	path   *pathClock    // compares the clocks by probe frames; nil if it is done otherwise
	queue  fpga.Capturer // reports on the queue's part of a run; nil if nothing does
	now    func() time.Time
	port   int // port of the card, to the server

	order    capture.Order
	newest   int64 // newest timestamp
	ended    error // from the frames; earlier frames may still be sorted
	reported bool  // Capture has reported it

	start uint64     // last value of generator.start_cycle
	drops live.Drops // drops in the capture, after the last Drain
	run   cardRun
}

// cardRun is the state of the generator's run that was started last.
type cardRun struct {
	clock    clockPair // soon after its start
	originNS int64     // start of the run, on the host's clock
	known    bool      // the two above are valid
	before   live.Drops
	decoder  *capture.Decoder
	leftOver int64
	ahead    int64 // frames stamped later than they were read
	updates  int64
	youngest int64
	last     olaf.Time // arrival of the newest update
	late     olaf.Duration
	start    uint64      // cycle of the generator
	path     *pathOffset // measured before the run; nil if ages include the path
	early    int64       // largest time in ns by which an update was faster than path
	broken   error       // error that ended the capture or prevented pairing the clocks
}

var (
	_ capture.Tap   = (*Tap)(nil)
	_ fpga.Capturer = (*Tap)(nil)
)

// NewTap starts a capture of arriving frames and, if there is a mirror, a capture of mirrored frames. It ignores
// the frames of a run that is already in progress.
func NewTap(card fpga.Registers, open func() (Frames, error), mirror *Mirror, now func() time.Time, port int) (*Tap, error) {
	t := &Tap{card: card, open: open, now: now, port: port}
	if err := t.openCapture(); err != nil {
		return nil, err
	}
	var err error
	if mirror != nil {
		if t.copies, err = openCopies(mirror, t.frames); err != nil {
			return nil, errors.Join(err, t.Close())
		}
	}
	if t.start, err = regmap.Read64(card, regmap.GeneratorStartCycle); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	t.beginRun(cardRun{})
	return t, nil
}

// CaptureInterface implements remote.InterfaceTap.
func (t *Tap) CaptureInterface() (name string, mtu int) {
	info := t.frames.Info()
	return info.Interface, info.MTU
}

// checkFrame returns an error that matches fpga.ErrRefused if the interface at which the card's tap captures is too
// small for frames of a size. The interface may be on another host.
func (c *Card) checkFrame(size olaf.Size) error {
	tap, ok := c.Tap.(remote.InterfaceTap)
	if !ok {
		return nil
	}
	const ethernetBytes = 14
	name, mtu := tap.CaptureInterface()
	need := int(size) - ethernetBytes
	if mtu == 0 || need <= mtu {
		return nil
	}
	err := fmt.Errorf("%w: interface %s has an MTU of %d, but frames need %d; run 'sudo ip link set %s mtu %[4]d' there", fpga.ErrRefused,
		name, mtu, need, path.Base(name)) // on another host, the name begins with the host
	if agent, ok := c.Tap.(*remote.Device); ok {
		err = fmt.Errorf("%s: %w", agent.Identity().Address, err)
	}
	return err
}

// openCapture opens the capture at the interface. Frames that were dropped earlier are not counted.
func (t *Tap) openCapture() error {
	frames, err := t.open()
	if err != nil {
		return err
	}
	drops, err := frames.Drops()
	if err != nil {
		return errors.Join(err, frames.Close())
	}
	t.frames, t.drops, t.order = frames, drops, capture.Order{WindowNS: reorderNS}
	return nil
}

// resumeCapture restarts a broken capture after its error was reported. A card may be lent for a long time, and an
// interface that went down may come up again.
func (t *Tap) resumeCapture() {
	if !t.reported {
		return
	}
	t.reported, t.ended = false, nil
	info := t.frames.Info()
	_ = t.frames.Close() // first, because this restores the network card's stamping mode
	if err := t.openCapture(); err != nil {
		t.frames = noFrames{info, err}
	}
}

// noFrames replaces a capture that could not be restarted.
type noFrames struct {
	info  live.Info
	cause error
}

func (n noFrames) Next(*capture.Packet) error { return n.cause }
func (n noFrames) Info() live.Info            { return n.info }
func (n noFrames) StampCounts() live.Stamped  { return live.Stamped{} }
func (n noFrames) Drops() (live.Drops, error) { return live.Drops{}, nil }
func (n noFrames) Close() error               { return nil }

// stampsNow returns the time, on the clock of the timestamps, at which the tap last looked for frames.
func (t *Tap) stampsNow() time.Time {
	if far, ok := t.frames.(farFrames); ok {
		return far.Now()
	}
	return t.now()
}

// pair reads the card's clock and the clock of the timestamps at the same instant. If the timestamps come from another
// host, the width of the pair includes twice the bound on the offset of that host's clock, so that no frame appears to
// arrive before it was sent.
func (t *Tap) pair() (clockPair, error) {
	far, ok := t.frames.(farFrames)
	if !ok {
		return pairClocks(t.card, t.now)
	}
	offset, err := far.Offset()
	if err != nil {
		return clockPair{}, err
	}
	p, err := pairClocks(t.card, far.LocalNow)
	if err != nil {
		return p, err
	}
	offset = (&Relation{Before: offset, After: offset}).OffsetAt(p.echo.T0)
	p.echo.T0 += offset.OffsetNS - offset.BoundNS
	p.echo.T3 += offset.OffsetNS + offset.BoundNS
	return p, nil
}

// Close ends the capture.
func (t *Tap) Close() error { return errors.Join(t.frames.Close(), t.copies.Close(), t.path.Close()) }

// beginRun resets the state for a new run.
func (t *Tap) beginRun(r cardRun) {
	t.run = r
	t.run.decoder = capture.NewDecoder(t)
	t.run.decoder.SetOrigin(0) // Next returns times since the run's start
	if t.copies != nil {
		t.copies.begin(r.originNS)
	}
}

// Drain returns the arrivals since the last call. If the card is lost, the next access to a register reports it.
func (t *Tap) Drain(buf []olaf.Observation) []olaf.Observation {
	t.resumeCapture()
	start, err := regmap.Read64(t.card, regmap.GeneratorStartCycle)
	if err != nil {
		return buf
	}
	if start != t.start {
		t.start = start
		t.beginRun(t.compareClocks(start))
	}
	from := len(buf)
	buf = t.decodeFrames(buf)
	t.run.late = max(t.run.late, lateAtLeast(buf[from:]))
	if t.copies != nil {
		t.copies.settle()
	}
	if t.drops, err = t.frames.Drops(); t.run.broken == nil {
		t.run.broken = err
	}
	return buf
}

// compareClocks compares the clocks for a run that began at a cycle of the generator.
func (t *Tap) compareClocks(start uint64) cardRun {
	if p := t.path.takeMeasured(); p != nil {
		return cardRun{start: start, path: p, originNS: p.serverTimeOf(start), known: true, before: t.drops}
	}
	clock, err := t.pair()
	return cardRun{clock: clock, originNS: clock.hostTimeOf(start), known: err == nil, broken: err, before: t.drops}
}

// takenAtMost is the maximum number of frames that are processed per call, so that a flood of frames does not block
// other users of the card.
const takenAtMost = 1 << 16

// decodeFrames decodes the frames that are available and appends them to buf.
func (t *Tap) decodeFrames(buf []olaf.Observation) []olaf.Observation {
	r := &t.run
	if t.copies != nil {
		t.copies.read()
	}
	for taken := 0; taken < takenAtMost && r.broken == nil; taken++ {
		var a capture.Arrival
		err := r.decoder.Next(&a)
		if errors.Is(err, capture.ErrIdle) {
			break
		}
		if err != nil {
			r.broken = err
			break
		}
		if a.Frame.Kind() == olaf.KindAck {
			continue
		}
		if t.copies != nil {
			if t.copies.takes(&a) {
				continue
			}
			t.copies.date(&a)
		}
		if ahead := a.GeneratedNS - a.At.NS(); r.path != nil && ahead > 0 {
			r.early = max(r.early, ahead)
			a.Update.GenNS, a.GeneratedNS = uint64(a.At.NS()), a.At.NS()
		}
		if age := a.At.NS() - a.GeneratedNS; r.updates == 0 || age < r.youngest {
			r.youngest = age
		}
		r.updates++
		r.last = max(r.last, a.At)
		buf = append(buf, a.Observation())
	}
	return buf
}

// reorderNS is the largest time by which a packet from one receive queue can be delivered later than a newer packet
// from another queue. The last frames of a run wait for this time.
const reorderNS = int64(time.Millisecond)

// nextInOrder returns the next packet in the order of timestamps.
func (t *Tap) nextInOrder(p *capture.Packet) error {
	quiet := false
	for !t.order.Pop(p, quiet) {
		if quiet {
			return cmp.Or(t.ended, capture.ErrIdle)
		}
		err := t.ended
		if err == nil {
			err = t.frames.Next(p)
		}
		switch {
		case err == nil:
			t.newest = max(t.newest, p.UnixNS)
			t.order.Push(p)
		case !errors.Is(err, capture.ErrIdle):
			t.ended, quiet = err, true
		default:
			age := t.stampsNow().UnixNano() - t.newest
			if quiet = max(age, -age) >= reorderNS; !quiet {
				return capture.ErrIdle
			}
		}
	}
	return nil
}

// aheadNS is the largest time by which a timestamp may be ahead of the host's clock. Timestamps that are further ahead
// are considered to come from another clock.
const aheadNS = int64(time.Millisecond)

// Next returns the next frame of the run, with the time since the start of the run. It skips frames with earlier
// timestamps, which belong to an earlier run.
func (t *Tap) Next(p *capture.Packet) error {
	for {
		if err := t.nextInOrder(p); err != nil {
			return err
		}
		ns := p.UnixNS - t.run.originNS
		if t.run.path != nil && ns < 0 && ns > -earlyNS {
			t.run.early, ns = max(t.run.early, -ns), 0
		}
		switch {
		case !t.run.known || ns < 0:
			t.run.leftOver++
		case p.UnixNS > t.stampsNow().UnixNano()+aheadNS:
			t.run.ahead++
		default:
			p.UnixNS = ns
			return nil
		}
	}
}

// Name returns the name of the interface. The decoder uses it in errors.
func (t *Tap) Name() string { return t.frames.Info().Interface }

// Capture pairs the clocks again and returns the quality of the run's capture, including the queue's report.
func (t *Tap) Capture() (*fpga.Capture, error) {
	c, err := t.reportCapture()
	if err != nil {
		return c, err
	}
	if t.queue != nil {
		q, err := t.queue.Capture()
		if err != nil {
			return c, err
		}
		if q != nil {
			c.Decisions, c.Others, c.OthersNow = q.Decisions, q.Others, q.OthersNow
			c.Faults = append(q.Faults, c.Faults...)
			c.Withheld = cmp.Or(c.Withheld, q.Withheld)
		}
	}
	if t.path != nil {
		c.Withheld = cmp.Or(c.Withheld, notProbed) // until ReportPath measures the path again
	}
	return c, nil
}

// reportCapture returns the quality of the run's capture, without the queue's report.
func (t *Tap) reportCapture() (*fpga.Capture, error) {
	r, info, losses := &t.run, t.frames.Info(), t.run.decoder.Losses()
	c := &fpga.Capture{
		Interface: info.Interface, ServerPort: t.port, Hardware: info.Stamps == live.Hardware,
		Updates: r.updates, YoungestNS: r.youngest, LateNS: int64(r.late / olaf.Nanosecond), LeftOver: r.leftOver,
		SocketLost: t.drops.Socket - r.before.Socket, InterfaceLost: t.drops.Interface() - r.before.Interface(),
		Malformed: losses.Malformed, Duplicates: losses.Duplicates,
	}
	addFault := func(format string, a ...any) { c.Faults = append(c.Faults, fmt.Sprintf(format, a...)) }
	if r.broken != nil {
		addFault("the capture failed: %v", r.broken)
		t.reported = t.ended != nil
	}
	if err := t.frames.StampCounts().Err(); err != nil {
		addFault("%v", err)
	}
	if r.ahead > 0 {
		addFault("%d frames have timestamps later than the time at which they were read: the timestamps do not come from "+
			"the system's clock%s", r.ahead,
			HardwareAdvice(c))
	}
	if !r.known {
		if r.broken == nil {
			addFault("no run was started since the capture began")
		}
		return c, nil
	}
	c.SpanNS = r.last.NS()
	if c.AbovePath = r.path != nil; c.AbovePath {
		return c, nil
	}
	end, err := t.pair()
	if err != nil {
		return nil, err
	}
	c.UncertaintyNS = r.clock.widthNS()
	if f, ok := t.frames.(interface{ WithholdAges() string }); ok {
		c.Withheld = f.WithholdAges()
	}
	span, drift := end.echo.ElapsedSince(r.clock.echo)
	if wasStepped(r.clock, end) {
		addFault("a clock was set during the run: the host's clock moved by %v relative to the card's in %v",
			time.Duration(drift),
			time.Duration(span))
	}
	c.DriftNS = drift
	if span > c.SpanNS { // the last Drain came long after the last update
		c.DriftNS = int64(float64(drift) * float64(c.SpanNS) / float64(span))
	}
	if t.copies != nil {
		t.copies.report(c)
	}
	return c, nil
}

// HardwareAdvice returns advice for captures whose timestamps come from a free-running clock in a network card.
func HardwareAdvice(c *fpga.Capture) string {
	if !c.Hardware {
		return ""
	}
	return "; synchronise the network card's clock with the system's (phc2sys), or use --stamps kernel"
}
