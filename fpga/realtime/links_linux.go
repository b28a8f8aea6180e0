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

// Links emulates links with given rates, because virtual cables have no rate. It delays the frames of each link until
// their last bits would have left, and then sends them to the cable. One thread serves all links.
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

// LinkConfig configures one direction of a link.
type LinkConfig struct {
	Rate     olaf.Rate
	Overhead olaf.Size     // line bytes added to each frame
	Delay    olaf.Duration // added to the delay of the cable
	Loss     float64       // share of lost frames, 0 to 1, drawn by frame number
	Seed     uint64        // seed of the draws
}

// LinkCounts contains counts summed over all links.
type LinkCounts struct {
	Frames     uint64 // accepted frames
	Bytes      uint64 // bytes of the accepted frames, without overhead
	Lost       uint64 // accepted frames that were dropped by a draw
	Sent       uint64
	Unsent     uint64 // frames rejected by the interface
	FirstError error  // error of the first rejected frame
	Waits      uint64 // frames that are still waiting
}

// link is the state of one direction of a link.
type link struct {
	out    *netlab.Socket
	clock  engine.Clock
	delay  int64 // in ns
	loss   uint64
	salt   uint64
	frames uint64
	free   int64 // in ps; time at which all accepted frames will have left
	line   []waitingFrame
	first  int   // index of the first waiting frame in line
	end    int64 // in ps; time at which the last bit of that frame has left
	behind int64 // in ps; time at which the previous frame left
}

// waitingFrame is a frame that waits on a link.
type waitingFrame struct {
	bytes []byte
	ticks int64 // in ps; transmission time
	came  int64 // in ps; arrival time
}

const psPerNS = int64(olaf.Nanosecond)

// OpenLinks returns an empty set of links and starts the thread that serves it. Close stops the thread.
func OpenLinks() *Links {
	// The clock starts at 0, so that times in ps do not overflow.
	l := &Links{clock: clock{zero: time.Now()}, done: make(chan struct{})}
	go l.run()
	return l
}

// AddLink adds a link whose frames are sent through a socket, and returns the link's number. No other code may send
// through this socket.
func (l *Links) AddLink(out *netlab.Socket, c LinkConfig) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.links = append(l.links, &link{
		out: out, clock: engine.PicosecondClock(c.Rate, c.Overhead), delay: int64(c.Delay) / psPerNS,
		loss: uint64(c.Loss * (1 << 63)), salt: splitmix.MixBits(c.Seed),
	})
	return len(l.links) - 1
}

// Send copies a frame to a link and returns the time until the frame's last bit will have left.
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
	lost := k.loss > 0 && splitmix.MixBits(k.salt+k.frames)>>1 < k.loss
	h := waitingFrame{ticks: ticks, came: now}
	if lost { // a lost frame also occupies the link
		l.count.Lost++
	} else {
		h.bytes = append(l.takeBuffer(), frame...)
		l.count.Waits++
	}
	k.line = append(k.line, h)
	if len(k.line)-k.first == 1 {
		k.startFirst()
	}
	return olaf.Duration(k.free - now)
}

func (l *Links) takeBuffer() []byte {
	n := len(l.spare)
	if n == 0 {
		return nil
	}
	b := l.spare[n-1]
	l.spare = l.spare[:n-1]
	return b[:0]
}

// startFirst starts the transmission of the first waiting frame.
func (k *link) startFirst() {
	h := &k.line[k.first]
	k.end = max(h.came, k.behind) + h.ticks
}

// departureNS returns the time in nanoseconds at which the frame on the wire is sent to the cable.
func (k *link) departureNS() int64 { return k.end/psPerNS + k.delay }

// run serves all links until quit is set.
func (l *Links) run() {
	defer close(l.done)
	OwnThread(Output)
	for !l.quit.Load() {
		if wait := l.sendDue(); wait > 2*leastNapNS {
			napFor(min(wait-leastNapNS, restNS))
		} else if wait > 0 {
			l.clock.spinFor(wait)
		}
	}
}

// restNS is the maximum time to sleep in nanoseconds. It is limited because a new frame may be due before the waiting
// ones.
const restNS = 40_000

// sendDue sends all frames that are due and returns the number of nanoseconds until the next one is due.
func (l *Links) sendDue() (wait int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.now()
	next := now + 2*restNS
	for _, k := range l.links {
		for k.first < len(k.line) && k.departureNS() <= now {
			l.sendFirst(k)
			now = l.clock.now()
		}
		if k.first < len(k.line) {
			next = min(next, k.departureNS())
		}
	}
	return next - now
}

// sendFirst sends the first frame of a link to its cable.
func (l *Links) sendFirst(k *link) {
	h := k.line[k.first]
	k.line[k.first] = waitingFrame{}
	if k.first++; k.first == len(k.line) {
		k.line, k.first = k.line[:0], 0
	}
	k.behind = k.end
	if h.bytes != nil {
		now := l.clock.now()
		if err := k.out.Send(h.bytes); err != nil {
			if l.count.Unsent++; l.count.FirstError == nil {
				l.count.FirstError = err
			}
		} else {
			l.count.Sent++
		}
		l.count.Waits--
		l.spare = append(l.spare, h.bytes)
		if l.stats.recordSent(h.ticks/psPerNS, k.departureNS(), now) { // see pacer.finishFrame
			k.behind = (now - k.delay) * psPerNS
		}
	}
	if k.first < len(k.line) {
		k.startFirst()
	}
}

// Counts returns the current counts.
func (l *Links) Counts() LinkCounts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

// Pacing returns the timing of departures so far.
func (l *Links) Pacing() *fpga.Pacing {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stats.report(0)
}

// Close stops the thread and discards waiting frames. The sockets stay open.
func (l *Links) Close() error {
	l.quit.Store(true)
	<-l.done
	return nil
}
