package realtime

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/regfile"
	"github.com/olafctl/olaf/fpga/xdp"
)

// measureNS is how long is measured, measureLanes how many lanes frames have meanwhile, and measureWindow how many of them are
// under way: fewer than fit the queue.
const (
	measureNS     = 500_000_000
	patientNS     = 40 * measureNS
	measureLanes  = 48
	measureWindow = 4
)

// Carry is how many frames a second came through senders, plane and pacer, side by side and as fast as they could, for half a
// second when the card was opened.
func (c *Card) Carry() int64 { return c.carry }

// Rates are frames a second that each would carry if nobody else were there.
type Rates struct {
	Senders int64 // with what the kernel does for a frame until it is decided
	Program int64 // alone, on one frame again and again; 0 where there is none
	Pacer   int64
}

// Rates are those of the half second in which Carry was measured.
func (c *Card) Rates() Rates { return c.rates }

// measure sends and serves as fast as it goes, and forgets all of it.
func (c *Card) measure() error {
	address := netip.AddrFrom4([4]byte{192, 0, 2, 1}) // of a block that nobody has
	if err := c.SetSenders([]xdp.Sender{{Address: address}}); err != nil {
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
	ended.Go(func() { m.refused = c.send(address, &m) })
	ended.Go(func() { c.serve(&m) })
	ended.Wait()
	c.carry = m.served.Load() * int64(olaf.Second/olaf.Nanosecond) / m.tookNS
	if c.carry == 0 {
		return errors.Join(fmt.Errorf("%w: no frame gets from the workers to the server", netlab.ErrNetwork), m.refused,
			c.failure)
	}
	c.rates = Rates{Senders: perSecond(m.sendNS, m.sent), Pacer: perSecond(m.serveNS, m.served.Load())}
	if p, ok := c.plane.(timed); ok {
		if c.rates.Program, err = c.cost(p, address); err != nil {
			return err
		}
	}
	return c.forget()
}

// timed is a plane that can say what it takes for a frame.
type timed interface {
	Cost(frame []byte) (time.Duration, error)
}

// cost is how many frames a second a plane decides about.
func (c *Card) cost(p timed, from netip.Addr) (int64, error) {
	frame := make([]byte, olaf.FrameSize(measureLanes))
	if _, err := olaf.EncodeUpdate(frame, &olaf.Addresses{SrcIP: from.As4()},
		&olaf.Update{Count: 1, Lanes: measureLanes}, nil); err != nil {
		return 0, err
	}
	d, err := p.Cost(frame)
	return perSecond(int64(d), 1), err
}

// perSecond is how often something happens that took ns for n times; 0 where nothing is known.
func perSecond(ns, n int64) int64 {
	if ns <= 0 {
		return 0
	}
	return n * int64(olaf.Second/olaf.Nanosecond) / ns
}

// measurement is what the two threads share. The sender ends it: nobody else runs in time beside them.
type measurement struct {
	stop    atomic.Bool
	served  atomic.Int64
	tookNS  int64
	refused error

	begun        bool // what follows is the sender's
	beganNS      int64
	sent, sendNS int64
	serveNS      int64 // the pacer's, while it had something to do
}

// goesOn says whether the measurement does, which begins with the first frame that was served: on a machine that is busy with other
// things it is waited for.
func (m *measurement) goesOn(now int64) bool {
	if m.served.Load() == 0 {
		return now-m.beganNS < patientNS
	}
	if !m.begun {
		m.begun, m.beganNS = true, now
	}
	return now-m.beganNS < measureNS
}

// send sends one sender's updates, a few ahead of what was served. One that got lost is not waited for very long.
func (c *Card) send(from netip.Addr, m *measurement) error {
	OwnThread(Senders)
	frame := make([]byte, olaf.FrameSize(measureLanes))
	a := olaf.Addresses{SrcIP: from.As4(), DstIP: [4]byte{192, 0, 2, 2}}
	defer m.stop.Store(true)
	lost := int64(0)
	m.beganNS = c.clock.now()
	defer func() { m.tookNS = c.clock.now() - m.beganNS }()
	for n := int64(0); m.goesOn(c.clock.now()); n++ {
		if !c.room(n-lost, m) {
			lost = n - m.served.Load()
			nap(napNS) // frames may wait for threads of the kernel that come after all of ours
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

// room waits until few enough of n frames are under way, and says whether that happened.
func (c *Card) room(n int64, m *measurement) bool {
	patience := c.clock.now() + napNS
	for n-m.served.Load() >= measureWindow {
		if c.clock.now() > patience {
			return false
		}
		yield()
	}
	return true
}

// serve takes frames out and sends them, without holding any time.
func (c *Card) serve(m *measurement) {
	OwnThread(Output)
	c.pacer.output = engine.Output{}
	last := c.clock.now()
	for !m.stop.Load() {
		switch before := c.clock.now(); {
		case c.pacer.step():
			last = c.clock.now()
			m.serveNS += last - before
		case before-last > eagerNS:
			nap(idleNS)
		default:
			c.clock.spin(pauseNS)
		}
		m.served.Store(int64(c.pacer.stats.late.n))
	}
}

// forget empties queue, log and counters of what was measured.
func (c *Card) forget() error {
	c.mu.Lock()
	err := c.plane.Run(false)
	c.mu.Unlock()
	if err != nil {
		return err
	}
	if err := c.flush(); err != nil {
		return err
	}
	c.pacer.sending = false
	if err := c.SetSenders(nil); err != nil {
		return err
	}
	if err := c.adopt(c.configured()); err != nil {
		return err
	}
	return c.clearCounters()
}

// timely is how many frames a second an output is measured to serve in time: on a quiet machine nearly all runs at that tell their ages, at
// twice as much two of three (docs/notes/kernel.md).
const timely = 5000

// carries refuses what this machine can't carry, of however few frames: half of what it does at full speed is as much as leaves it time to be
// on time. What it says instead changes what is too fast and nothing else.
func (c *Card) carries(limit int64, l *load) *regfile.Reason {
	if limit == 0 || c.backend.AnyRate {
		return nil
	}
	out := c.configured().output
	served := int64(0)
	if out.Rate != 0 {
		served = perSecond(serviceNS(out, olaf.Size(l.size)), 1)
	}
	offered := l.offered()
	if max(offered, served) <= limit {
		return nil
	}
	return regfile.Unfit(fmt.Sprintf("this machine carried %d frames a second when it was measured, and at most half of that is accepted, %v of %v each; the workers offer %v, %s; try %s, or --time-scale 1/%d: outputs of up to %d frames a second were measured to keep time on a quiet machine, and with more ages are withheld the more often",
		2*limit, roundDown(l.rate(limit)), olaf.Size(l.size), nearest(l.offers()), serving(out),
		l.instead(offered, served, limit), int64(1/fitting(offered, served, limit))+1, timely))
}

func serving(out engine.Output) string {
	if out.Rate == 0 {
		return "the output contains no time"
	}
	return fmt.Sprintf("the output serves %v", nearest(out.Rate.Rate()))
}

// instead are the flags of a run that is carried.
func (l *load) instead(offered, served, limit int64) string {
	rate, out := offered, served
	switch {
	case offered > limit && served > limit, served == 0: // the queue is as full as it would have been
		share := fitting(offered, served, limit)
		rate, out = int64(share*float64(offered)), int64(share*float64(served))
	case offered > limit:
		rate = limit
	default:
		out = timely
	}
	var flags []string
	if rate != offered && l.bursts == 1 { // all of it comes at once, at whatever rate on the average
		flags = append(flags, "--burst 1")
	}
	if rate != offered {
		flags = append(flags, fmt.Sprintf("--rate %v", roundDown(l.rate(rate))))
	}
	if out != served {
		flags = append(flags, fmt.Sprintf("--out-rate %v", roundDown(l.rate(out))))
	}
	return strings.Join(flags, " ")
}

// fitting is by which share of its rates a run fits a machine that takes limit frames a second, with an output that is in time. One that
// serves without holding any time, at rate 0, has as much to do as is offered.
func fitting(offered, served, limit int64) float64 {
	output := served
	if output == 0 {
		output = offered
	}
	return min(float64(limit)/float64(max(offered, served)), timely/float64(output))
}

// roundDown leaves the first two digits of a rate.
func roundDown(r olaf.Rate) olaf.Rate {
	unit := olaf.Rate(1)
	for r/unit >= 100 {
		unit *= 10
	}
	return r / unit * unit
}

// nearest is a rate to three digits, as whoever asked for it wrote it: frames and counters hold it a little less exactly.
func nearest(r olaf.Rate) olaf.Rate {
	unit := olaf.Rate(1)
	for r/unit >= 1000 {
		unit *= 10
	}
	return (r + unit/2) / unit * unit
}
