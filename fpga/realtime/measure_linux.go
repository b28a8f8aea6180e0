package realtime

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/dataplane"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/regfile"
	"github.com/olafctl/olaf/fpga/regmap"
)

// measureNS is the duration of the measurement, measureLanes the number of lanes per frame, and measureWindow the
// number of frames in flight. The window is smaller than the queue.
const (
	measureNS     = 500_000_000
	patientNS     = 40 * measureNS
	measureLanes  = 48
	measureWindow = 4
)

// Carry returns the number of frames per second that senders, plane and pacer processed together at full speed. Open
// measures it for half a second.
func (c *Card) Carry() int64 { return c.carry }

// Rates contains the number of frames per second that each part of the card could process alone.
type Rates struct {
	Senders int64 // including the kernel's work up to the decision
	Program int64 // processing the same frame repeatedly; 0 without a program
	Pacer   int64
}

// Rates returns the rates that Open measured together with Carry.
func (c *Card) Rates() Rates { return c.rates }

// measureRates measures the card's rates by sending and serving frames at full speed. It then discards all frames and
// counts.
func (c *Card) measureRates() error {
	address := netip.AddrFrom4([4]byte{192, 0, 2, 1}) // from a reserved address block
	if err := c.SetSenders([]dataplane.Sender{{Address: address}}); err != nil {
		return err
	}
	c.mu.Lock()
	err := c.plane.Run(true)
	c.mu.Unlock()
	if err != nil {
		return err
	}
	defer holdCollector()()
	var m measurement
	var ended sync.WaitGroup
	ended.Go(func() { m.refused = c.sendUpdates(address, &m) })
	ended.Go(func() { c.serveOutput(&m) })
	ended.Wait()
	c.carry = m.served.Load() * int64(olaf.Second/olaf.Nanosecond) / m.tookNS
	if c.carry == 0 {
		return errors.Join(fmt.Errorf("%w: no frame reaches the server from the workers", netlab.ErrNetwork), m.refused,
			c.failure)
	}
	c.rates = Rates{Senders: perSecond(m.sendNS, m.sent), Pacer: perSecond(m.serveNS, m.served.Load())}
	if p, ok := c.plane.(timed); ok {
		if c.rates.Program, err = c.measureProgram(p, address); err != nil {
			return err
		}
	}
	return c.clearMeasured()
}

// timed is implemented by planes that can measure their time per frame.
type timed interface {
	Cost(frame []byte) (time.Duration, error)
}

// measureProgram returns the number of frames per second that a plane can process.
func (c *Card) measureProgram(p timed, from netip.Addr) (int64, error) {
	frame := make([]byte, olaf.FrameSize(measureLanes))
	if _, err := olaf.EncodeUpdate(frame, &olaf.Addresses{SrcIP: from.As4()},
		&olaf.Update{Count: 1, Lanes: measureLanes}, nil); err != nil {
		return 0, err
	}
	d, err := p.Cost(frame)
	return perSecond(int64(d), 1), err
}

// perSecond returns the rate of n events in ns nanoseconds, or 0 if ns is not positive.
func perSecond(ns, n int64) int64 {
	if ns <= 0 {
		return 0
	}
	return n * int64(olaf.Second/olaf.Nanosecond) / ns
}

// measurement is the state shared by the sending and the serving thread. The sending thread ends the measurement,
// because another thread might not run at the right time.
type measurement struct {
	stop    atomic.Bool
	served  atomic.Int64
	tookNS  int64
	refused error

	begun        bool // the following fields belong to the sender
	beganNS      int64
	sent, sendNS int64
	serveNS      int64 // belongs to the pacer: time during which it had work
}

// continues reports whether the measurement continues. Its time begins when the first frame is served, which may take
// long on a busy machine.
func (m *measurement) continues(now int64) bool {
	if m.served.Load() == 0 {
		return now-m.beganNS < patientNS
	}
	if !m.begun {
		m.begun, m.beganNS = true, now
	}
	return now-m.beganNS < measureNS
}

// sendUpdates sends updates from one sender as fast as possible, with only a few in flight at a time. It waits only
// briefly for frames that are lost.
func (c *Card) sendUpdates(from netip.Addr, m *measurement) error {
	OwnThread(Senders)
	frame := make([]byte, olaf.FrameSize(measureLanes))
	a := olaf.Addresses{SrcIP: from.As4(), DstIP: [4]byte{192, 0, 2, 2}}
	defer m.stop.Store(true)
	lost := int64(0)
	m.beganNS = c.clock.now()
	defer func() { m.tookNS = c.clock.now() - m.beganNS }()
	for n := int64(0); m.continues(c.clock.now()); n++ {
		if !c.waitForRoom(n-lost, m) {
			lost = n - m.served.Load()
			napFor(napNS) // frames may be waiting for kernel threads whose priority is lower than ours
		}
		u := olaf.Update{Seq: uint32(n), Count: 1, Lanes: measureLanes}
		if _, err := olaf.EncodeUpdate(frame, &a, &u, nil); err != nil {
			return err
		}
		copy(frame, c.generator.hop)
		before := c.clock.now()
		if err := c.generator.out.Send(frame); err != nil {
			return err
		}
		m.sent, m.sendNS = m.sent+1, m.sendNS+c.clock.now()-before
	}
	return nil
}

// waitForRoom waits until only a few of n frames are in flight. It returns false if this takes too long.
func (c *Card) waitForRoom(n int64, m *measurement) bool {
	patience := c.clock.now() + napNS
	for n-m.served.Load() >= measureWindow {
		if c.clock.now() > patience {
			return false
		}
		yieldThread()
	}
	return true
}

// serveOutput takes frames from the queue and sends them at full speed until the measurement stops.
func (c *Card) serveOutput(m *measurement) {
	OwnThread(Output)
	c.pacer.output = engine.Output{}
	last := c.clock.now()
	for !m.stop.Load() {
		switch before := c.clock.now(); {
		case c.pacer.stepOutput():
			last = c.clock.now()
			m.serveNS += last - before
		case before-last > eagerNS:
			napFor(idleNS)
		default:
			c.clock.spinFor(pauseNS)
		}
		m.served.Store(int64(c.pacer.stats.late.n))
	}
}

// clearMeasured discards the frames, decisions and counts of the measurement.
func (c *Card) clearMeasured() error {
	c.mu.Lock()
	err := c.plane.Run(false)
	c.mu.Unlock()
	if err != nil {
		return err
	}
	if err := c.flushQueue(); err != nil {
		return err
	}
	c.pacer.sending = false
	if err := c.SetSenders(nil); err != nil {
		return err
	}
	if err := c.adoptConfig(c.readQueueConfig()); err != nil {
		return err
	}
	return c.clearCounters()
}

// timely is the rate, in frames per second, at which an output is known to keep its times. On a quiet machine, nearly
// all runs at this rate report ages, and two of three at twice the rate (docs/notes/kernel.md).
const timely = 5000

// checkLoad rejects loads above half of the machine's full speed, so that there is time left to be punctual. The
// returned advice changes only rates that are too high.
func (c *Card) checkLoad(limit int64, l *load) *regfile.Reason {
	if limit == 0 || c.backend.AnyRate {
		return nil
	}
	out := c.readQueueConfig().output
	served := int64(0)
	if out.Rate != 0 {
		served = perSecond(serviceNS(out, olaf.Size(l.size)), 1)
	}
	offered := l.framesPerSecond()
	if max(offered, served) <= limit {
		return nil
	}
	return &regfile.Reason{Bit: regmap.CommonErrorsValue, Kind: fpga.ErrRefused, Full: true, Message: fmt.Sprintf(
		"this machine carried %d frames a second when it was measured, and a run may use half of that, %v of %v "+
			"each; the workers offer %v, %s; try %s, or --time-scale 1/%d: on a quiet machine, outputs of up to %d "+
			"frames a second were measured to keep time, and above that ages are withheld more often",
		2*limit, roundDown(l.rateOf(limit)), olaf.Size(l.size), roundNearest(l.offeredRate()), describeOutput(out),
		l.suggestFlags(offered, served, limit), int64(1/fittingShare(offered, served, limit))+1, timely)}
}

func describeOutput(out engine.Output) string {
	if out.Rate == 0 {
		return "the output is not paced"
	}
	return fmt.Sprintf("the output serves %v", roundNearest(out.Rate.Rate()))
}

// suggestFlags returns command-line flags for a run that is within the machine's capacity.
func (l *load) suggestFlags(offered, served, limit int64) string {
	rate, out := offered, served
	switch {
	case offered > limit && served > limit, served == 0: // scaling both keeps the queue's fill level
		share := fittingShare(offered, served, limit)
		rate, out = int64(share*float64(offered)), int64(share*float64(served))
	case offered > limit:
		rate = limit
	default:
		out = timely
	}
	var flags []string
	if rate != offered && l.bursts == 1 { // all frames come in one burst, regardless of the average rate
		flags = append(flags, "--burst 1")
	}
	if rate != offered {
		flags = append(flags, fmt.Sprintf("--rate %v", roundDown(l.rateOf(rate))))
	}
	if out != served {
		flags = append(flags, fmt.Sprintf("--out-rate %v", roundDown(l.rateOf(out))))
	}
	return strings.Join(flags, " ")
}

// fittingShare returns the factor by which the rates of a run must be multiplied to fit the machine. The capacity is
// limit frames per second, and the output must be slow enough to keep its times. An unpaced output, with served 0, must
// serve the offered rate.
func fittingShare(offered, served, limit int64) float64 {
	output := served
	output = cmp.Or(output, offered)
	return min(float64(limit)/float64(max(offered, served)), timely/float64(output))
}

// roundDown rounds a rate down to two significant digits.
func roundDown(r olaf.Rate) olaf.Rate {
	unit := olaf.Rate(1)
	for r/unit >= 100 {
		unit *= 10
	}
	return r / unit * unit
}

// roundNearest rounds a rate to three significant digits, so that it is printed as the user wrote it.
func roundNearest(r olaf.Rate) olaf.Rate {
	unit := olaf.Rate(1)
	for r/unit >= 1000 {
		unit *= 10
	}
	return (r + unit/2) / unit * unit
}
