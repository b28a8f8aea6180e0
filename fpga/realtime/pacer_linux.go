package realtime

import (
	"cmp"
	"sync/atomic"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/netlab"
)

// pacer serves the output. It starts the frame at the head of the queue, waits until its last bit would have left, and
// sends it. It runs in a separate thread until quit is set.
type pacer struct {
	card *Card
	out  *netlab.Socket
	hop  []byte // MAC addresses for frames, the server's and the switch's; nil if frames already have them
	quit atomic.Bool
	done chan struct{}

	// The following fields are guarded by the card's lock.
	output  engine.Output
	frozen  bool
	sending bool
	flushed bool // the frame on the wire has been flushed
	stats   pacing

	// The following fields are used only by the thread.
	frame  [2][]byte // frame on the wire, and the next one
	size   olaf.Size
	end    int64 // time at which the last bit has left
	waited int64 // time that the frame waited for this thread, not for the output
	behind int64 // time at which the previous frame left; 0 after idling or a stall
}

func newPacer(c *Card, out *netlab.Socket) *pacer {
	p := &pacer{card: c, out: out, done: make(chan struct{})}
	for i := range p.frame {
		p.frame[i] = make([]byte, olaf.FrameSize(maxLanes))
	}
	return p
}

// serviceNS returns the transmission time of a frame in nanoseconds.
func serviceNS(out engine.Output, size olaf.Size) int64 {
	rate := out.Rate
	rate = cmp.Or(rate, engine.Line)
	bits := 8 * (int64(size) + int64(out.OverheadBytes))
	return bits * int64(olaf.Second/olaf.Nanosecond) / int64(rate.Rate())
}

// Polling intervals of an idle output: short after a frame, longer later. A card that is open but not used must not
// keep a processor busy.
const (
	eagerNS     = 2_000_000
	pauseNS     = 2_000 // between two polls, so that the threads that decide get the lock
	idleNS      = 20_000
	unusedNS    = 1_000_000_000 // time without a frame or a write to a register
	unusedNapNS = 100_000
	forgottenNS = 10_000_000_000 // a testbed that is up has its card open for hours
	forgotten   = 5 * time.Millisecond
)

// run serves the output until quit is set.
func (p *pacer) run() {
	defer close(p.done)
	OwnThread(Output)
	var last int64 // time of the last work
	for !p.quit.Load() {
		if p.stepOutput() {
			last = p.card.clock.now()
			continue
		}
		now := p.card.clock.now()
		switch unused := now - max(last, p.card.writtenNS.Load()); {
		case unused > forgottenNS:
			p.card.awaitWrite(forgotten)
		case unused > unusedNS:
			napFor(unusedNapNS)
		case now-last > eagerNS:
			napFor(idleNS)
		default:
			p.card.clock.spinFor(pauseNS)
		}
	}
}

// stepOutput starts a frame, or waits until the frame on the wire ends and sends it. It reports whether there was a
// frame.
func (p *pacer) stepOutput() bool {
	if !p.sending {
		return p.startHead()
	}
	if !p.card.clock.waitUntil(p.endOfFrame(), outputSpinNS, &p.quit) {
		return false
	}
	return p.finishFrame()
}

// endOfFrame returns the time at which the transmission of the current frame ends. A freeze delays it.
func (p *pacer) endOfFrame() int64 {
	p.card.mu.Lock()
	defer p.card.mu.Unlock()
	return p.end
}

// startHead starts the frame at the head of the queue, and reports whether there was one.
func (p *pacer) startHead() bool {
	c := p.card
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.frozen || c.plane == nil {
		return false
	}
	x, frame, err := c.plane.Turn(false, true, p.frame[0][:cap(p.frame[0])])
	if err != nil {
		c.recordFailure(err)
		return false
	}
	if !x.Started {
		p.behind = 0
		return false
	}
	p.putOnWire(int64(x.AppendedNS), len(frame), x.Update.Size())
	return true
}

// putOnWire starts a frame that has been queued since appended. Its transmission begins when it was appended or when
// the previous frame left, whichever is later.
func (p *pacer) putOnWire(appended int64, n int, size olaf.Size) {
	now := p.card.clock.now()
	from := max(appended, p.behind)
	p.waited = 0
	if p.behind == 0 && now-from > senderSpinNS { // the frame waited for this thread, not for the output
		p.waited, from = now-from, now
	}
	p.sending, p.flushed = true, false
	p.size, p.frame[0] = size, p.frame[0][:cap(p.frame[0])][:n]
	p.end = from + serviceNS(p.output, size)
}

// finishFrame sends the frame whose last bit has left, releases it, and starts the next one. It returns false if it
// could not.
func (p *pacer) finishFrame() bool {
	c := p.card
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case p.flushed:
		p.sending, p.flushed, p.behind = false, false, 0
		return true
	case p.frozen:
		return false
	}
	now := c.clock.now()
	copy(p.frame[0], p.hop)
	err := p.out.Send(p.frame[0])
	x, next, turned := c.plane.Turn(true, true, p.frame[1][:cap(p.frame[1])])
	if turned != nil {
		c.recordFailure(turned)
		return false
	}
	if err != nil {
		p.stats.unsent++
		p.stats.firstErr = cmp.Or(p.stats.firstErr, err)
	}
	// A small delay is made up for, so that delays do not accumulate. After a stall the output continues from now.
	p.behind = p.end
	if p.stats.recordSent(serviceNS(p.output, p.size), p.end-p.waited, now) {
		p.behind = now
	}
	p.sending = false
	if x.Started {
		p.frame[0], p.frame[1] = p.frame[1][:len(next)], p.frame[0][:cap(p.frame[0])]
		p.putOnWire(int64(x.AppendedNS), len(next), x.Update.Size())
		return true
	}
	p.frame[0] = p.frame[0][:cap(p.frame[0])]
	return true
}

// setFreeze stops or resumes the output. The caller must hold the card's lock.
func (p *pacer) setFreeze(on bool, frozenNS int64) {
	p.frozen = on
	if !on && p.sending {
		p.end += frozenNS
	}
}
