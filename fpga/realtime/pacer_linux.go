package realtime

import (
	"sync/atomic"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/netlab"
)

// pacer serves the output: it takes the head, waits until its last bit would be out, and sends it. It runs on a thread of its own
// until quit.
type pacer struct {
	card *Card
	out  *netlab.Socket
	hop  []byte // hardware addresses that frames get, the server's and the switch's; nil where they have them
	quit atomic.Bool
	done chan struct{}

	// What follows is guarded by the card's lock.
	output  engine.Output
	frozen  bool
	sending bool
	flushed bool // what was on the wire is gone
	stats   pacing

	// The thread's own.
	frame  [2][]byte // on the wire, and the next
	size   olaf.Size
	end    int64 // when the last bit is out
	waited int64 // for how long it lay there before this thread looked, which no output would have let it
	behind int64 // when the frame before was out; 0 where the output was idle or stalled since
}

func newPacer(c *Card, out *netlab.Socket) *pacer {
	p := &pacer{card: c, out: out, done: make(chan struct{})}
	for i := range p.frame {
		p.frame[i] = make([]byte, olaf.FrameSize(maxLanes))
	}
	return p
}

// serviceNS is how long a frame takes on the wire.
func serviceNS(out engine.Output, size olaf.Size) int64 {
	rate := out.Rate
	if rate == 0 {
		rate = engine.Line
	}
	bits := 8 * (int64(size) + int64(out.OverheadBytes))
	return bits * int64(olaf.Second/olaf.Nanosecond) / int64(rate.Rate())
}

// Idle output looks for work, soon after the last frame again and again, later less often.
const (
	eagerNS = 2_000_000
	pauseNS = 2_000 // between two looks, in which whoever decides gets the lock
	idleNS  = 20_000
)

// run serves until quit.
func (p *pacer) run() {
	defer close(p.done)
	OwnThread(Output)
	var last int64 // when there was something to do
	for !p.quit.Load() {
		if p.step() {
			last = p.card.clock.now()
			continue
		}
		if p.card.clock.now()-last > eagerNS {
			nap(idleNS)
			continue
		}
		p.card.clock.spin(pauseNS)
	}
}

// step starts a frame, or waits for the end of the one on the wire and sends it. It says whether there was anything to do.
func (p *pacer) step() bool {
	if !p.sending {
		return p.begin()
	}
	if !p.card.clock.until(p.end, outputSpinNS, &p.quit) {
		return false
	}
	return p.finish()
}

// begin starts the head, if one waits.
func (p *pacer) begin() bool {
	c := p.card
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.frozen || c.plane == nil {
		return false
	}
	x, frame, err := c.plane.Turn(false, true, p.frame[0][:cap(p.frame[0])])
	if err != nil {
		c.fail(err)
		return false
	}
	if !x.Started {
		p.behind = 0
		return false
	}
	p.took(int64(x.AppendedNS), len(frame), x.Update.Size())
	return true
}

// took puts a frame on the wire that waited since appended: it begins when it came, or when the one before was out.
func (p *pacer) took(appended int64, n int, size olaf.Size) {
	now := p.card.clock.now()
	from := max(appended, p.behind)
	p.waited = 0
	if p.behind == 0 && now-from > senderSpinNS { // it waited for us, not for the output
		p.waited, from = now-from, now
	}
	p.sending, p.flushed = true, false
	p.size, p.frame[0] = size, p.frame[0][:cap(p.frame[0])][:n]
	p.end = from + serviceNS(p.output, size)
}

// finish sends the frame whose last bit is out, releases it and starts the next.
func (p *pacer) finish() bool {
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
		c.fail(turned)
		return false
	}
	if err != nil {
		p.stats.unsent++
		if p.stats.firstErr == nil {
			p.stats.firstErr = err
		}
	}
	// Small lateness is made up for, so that it does not add up; after a stall the output goes on from now.
	p.behind = p.end
	if p.stats.sent(serviceNS(p.output, p.size), p.end-p.waited, now) {
		p.behind = now
	}
	p.sending = false
	if x.Started {
		p.frame[0], p.frame[1] = p.frame[1][:len(next)], p.frame[0][:cap(p.frame[0])]
		p.took(int64(x.AppendedNS), len(next), x.Update.Size())
		return true
	}
	p.frame[0] = p.frame[0][:cap(p.frame[0])]
	return true
}

// freeze stops the clock of the output or lets it go on; the card's lock is held.
func (p *pacer) freeze(on bool, frozenNS int64) {
	p.frozen = on
	if !on && p.sending {
		p.end += frozenNS
	}
}
