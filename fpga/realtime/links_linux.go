package realtime

import (
	"sync/atomic"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/internal/splitmix"
)

// Links hold the time of links of some rate in front of cables that have none: of each, frames leave one after the other, when their
// last bits would be out. One thread keeps the time of all.
type Links struct {
	clock clock
	quit  atomic.Bool
	done  chan struct{}

	mu    Lock
	links []*link
	spare [][]byte
	stats pacing
	count LinkCounts
}

// LinkConfig is one direction of a link.
type LinkConfig struct {
	Rate     olaf.Rate
	Overhead olaf.Size     // on the line beside each frame
	Delay    olaf.Duration // beside what the cable takes
	Loss     float64       // share of frames that vanish, 0 to 1, drawn by their numbers
	Seed     uint64        // of these draws
}

// LinkCounts are what all links counted.
type LinkCounts struct {
	Frames uint64 // handed over
	Bytes  uint64 // of these, without what is beside a frame
	Lost   uint64 // of these, by a draw
	Sent   uint64
	Unsent uint64 // that the interface refused
	Why    error  // of the first of these
	Waits  uint64 // that have not left yet
}

// link is one direction of one.
type link struct {
	out    *netlab.Socket
	clock  engine.Clock
	delay  int64 // ns
	loss   uint64
	salt   uint64
	frames uint64
	free   int64 // ps of the clock, when all that was handed over will be out
	line   []held
	first  int   // of the line that has not left
	end    int64 // ps, when its last bit is out
	behind int64 // ps, when the frame before was out
}

// held is a frame that waits.
type held struct {
	bytes []byte
	ticks int64 // ps that it takes
	came  int64 // ps
}

const psPerNS = int64(olaf.Nanosecond)

// OpenLinks starts the thread; Close ends it.
func OpenLinks() *Links {
	l := &Links{clock: clock{zero: time.Now()}, done: make(chan struct{})} // which counts from 0, so that there is room for ps
	go l.run()
	return l
}

// Add makes a link whose frames leave by a socket, and says its number. It is the only one that sends there.
func (l *Links) Add(out *netlab.Socket, c LinkConfig) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.links = append(l.links, &link{
		out: out, clock: engine.Picoseconds(c.Rate, c.Overhead), delay: int64(c.Delay) / psPerNS,
		loss: uint64(c.Loss * (1 << 63)), salt: splitmix.Mix(c.Seed),
	})
	return len(l.links) - 1
}

// Send hands a frame over, which is copied, and says how long from now its last bit will be out.
func (l *Links) Send(number int, frame []byte) (left olaf.Duration) {
	now := l.clock.now() * psPerNS
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.links[number]
	ticks := k.clock.Ticks(olaf.Size(len(frame)))
	k.free = max(k.free, now) + ticks
	k.frames++
	l.count.Frames++
	l.count.Bytes += uint64(len(frame))
	lost := k.loss > 0 && splitmix.Mix(k.salt+k.frames)>>1 < k.loss
	h := held{ticks: ticks, came: now}
	if lost { // it takes its time
		l.count.Lost++
	} else {
		h.bytes = append(l.room(), frame...)
		l.count.Waits++
	}
	k.line = append(k.line, h)
	if len(k.line)-k.first == 1 {
		k.begin()
	}
	return olaf.Duration(k.free - now)
}

func (l *Links) room() []byte {
	n := len(l.spare)
	if n == 0 {
		return nil
	}
	b := l.spare[n-1]
	l.spare = l.spare[:n-1]
	return b[:0]
}

// begin puts the first of the line on the wire.
func (k *link) begin() {
	h := &k.line[k.first]
	k.end = max(h.came, k.behind) + h.ticks
}

// leaves is when the frame that is on the wire goes to the cable, in ns.
func (k *link) leaves() int64 { return k.end/psPerNS + k.delay }

// run serves all links until quit.
func (l *Links) run() {
	defer close(l.done)
	OwnThread(Output)
	for !l.quit.Load() {
		if wait := l.serve(); wait > 2*leastNapNS {
			nap(min(wait-leastNapNS, restNS))
		} else if wait > 0 {
			l.clock.spin(wait)
		}
	}
}

// restNS is how long the thread sleeps at most: what is handed over meanwhile may be due before what waits.
const restNS = 40_000

// serve sends what is due and says how many ns later the next one is.
func (l *Links) serve() (wait int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.now()
	next := now + 2*restNS
	for _, k := range l.links {
		for k.first < len(k.line) && k.leaves() <= now {
			l.send(k)
			now = l.clock.now()
		}
		if k.first < len(k.line) {
			next = min(next, k.leaves())
		}
	}
	return next - now
}

// send lets the first of a line go to its cable.
func (l *Links) send(k *link) {
	h := k.line[k.first]
	k.line[k.first] = held{}
	if k.first++; k.first == len(k.line) {
		k.line, k.first = k.line[:0], 0
	}
	k.behind = k.end
	if h.bytes != nil {
		now := l.clock.now()
		if err := k.out.Send(h.bytes); err != nil {
			if l.count.Unsent++; l.count.Why == nil {
				l.count.Why = err
			}
		} else {
			l.count.Sent++
		}
		l.count.Waits--
		l.spare = append(l.spare, h.bytes)
		if l.stats.sent(h.ticks/psPerNS, k.leaves(), now) { // see pacer.finish
			k.behind = (now - k.delay) * psPerNS
		}
	}
	if k.first < len(k.line) {
		k.begin()
	}
}

// Counts are what was counted so far.
func (l *Links) Counts() LinkCounts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

// Pacing is how well frames left in time.
func (l *Links) Pacing() *fpga.Pacing {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stats.tell(0)
}

// Close ends the thread. What waits is given up; the sockets are their owners'.
func (l *Links) Close() error {
	l.quit.Store(true)
	<-l.done
	return nil
}
