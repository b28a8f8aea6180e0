package wired

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/internal/splitmix"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// host is a worker or a server that runs in a separate goroutine. It implements endpoint.Host for its endpoint.
type host struct {
	run    *run
	number int // node number
	job    int // index, from 0
	worker int // in the job; for a server, the number of workers
	server bool
	end    endpoint.Endpoint
	socket *netlab.Socket
	ears   *netlab.PollSet
	link   int // to the switch

	starts    olaf.Time
	vector    uint32
	awaits    bool      // the work computes the vector
	computed  olaf.Time // when the current gradient is ready; Never if there is none
	applied   olaf.Time // when the current sum is applied; Never if there is none
	values    []uint32
	in, out   []byte
	lanes     []uint32
	arrived   atomic.Uint64 // frames of the format
	strange   atomic.Uint64
	failed    error
	wrong     int // packets with sums that do not contain exactly one contribution per worker
	torn      int // sums with only some correct packets
	updates   uint64
	gradients uint64    // in the updates after the first
	first     olaf.Time // when the first update was applied
	last      olaf.Time
	done      bool
	draw      uint64
	addresses olaf.Addresses
}

// pollEvery is the interval at which a host checks whether its next vector has been computed.
const pollEvery = 100 * olaf.Microsecond

// mostWait is the longest time for which a host sleeps before it checks whether the run has ended.
const mostWait = 20 * time.Millisecond

// playHost runs the endpoint until the run has ended.
func (h *host) playHost() error {
	for !h.run.over.Load() && h.run.runTime() < h.starts { // arriving packets stay in the socket
		time.Sleep(h.waitUntil(h.starts))
	}
	h.end.Start(h.run.runTime())
	for !h.run.over.Load() && h.failed == nil {
		h.runDue(h.run.runTime())
		next := min(h.computed, h.applied, h.end.Next())
		if h.awaits {
			next = min(next, h.run.runTime().Add(pollEvery))
		}
		h.ears.Wait(h.waitUntil(next), func(int) { h.drainSocket() })
	}
	return h.failed
}

// waitUntil returns the time to sleep until next. It is at most mostWait.
func (h *host) waitUntil(next olaf.Time) time.Duration {
	now := h.run.runTime()
	if next >= now.Add(olaf.Duration(mostWait)*olaf.Nanosecond) {
		return mostWait
	}
	return time.Duration(next.Sub(now) / olaf.Nanosecond)
}

// runDue performs all of the host's actions that are due at now.
func (h *host) runDue(now olaf.Time) {
	for {
		if h.awaits {
			if values, ready := h.run.work.Take(h.number); ready {
				h.awaits, h.values, h.computed = false, values, now
			}
		}
		switch {
		case h.computed <= now:
			h.finishGradient()
		case h.applied <= now:
			h.applied = endpoint.Never
			h.countUpdate(now)
			h.end.OnApplied(now)
		case h.end.Next() <= now:
			h.end.Timer(now)
		default:
			h.checkDone(now)
			return
		}
		now = h.run.runTime()
	}
}

// finishGradient passes a computed gradient to the endpoint.
func (h *host) finishGradient() {
	h.computed = endpoint.Never
	if h.run.work == nil {
		h.run.values.fillVector(h.values, h.number, h.vector)
	}
	if in := h.run.inside; in != nil {
		in.recordGradient(marked{h.job, program.ContributionMark(olaf.WorkerID(h.worker), h.vector)},
			Gradient{h.number, h.vector})
	}
	now := h.run.doLocked(func(now olaf.Time) {
		if h.run.job.Values != nil {
			h.run.job.Values(now, h.number, h.vector)
		}
		h.run.meter.recordReady(h, now)
	})
	h.end.OnComputed(now, h.values)
}

// countUpdate records that the weights were updated at now.
func (h *host) countUpdate(now olaf.Time) {
	if h.updates == 0 {
		h.first = now
	}
	h.updates++
	h.last = now
}

// checkDone records the time at which the endpoint is done.
func (h *host) checkDone(now olaf.Time) {
	if !h.done && h.end.Done() {
		h.done = true
		h.run.doLocked(func(olaf.Time) { h.run.meter.recordDone(h, now) })
	}
}

// batch is the number of frames received between checks of the endpoint's timers.
const batch = 64

// drainSocket passes the received packets to the endpoint.
func (h *host) drainSocket() {
	for range batch {
		n, err := h.socket.Receive(h.in)
		switch {
		case errors.Is(err, netlab.ErrAgain):
			return
		case err != nil:
			h.failed = fmt.Errorf("%s: %w", h.run.names[h.number], err)
			return
		}
		h.takeFrame(h.in[:n])
	}
}

func (h *host) takeFrame(b []byte) {
	v, err := h.run.parts.Frame.Decode(b)
	if err != nil {
		h.strange.Add(1)
		return
	}
	var p program.Packet
	lanes := readPacket(&v, &p, h.lanes, h.job, !h.server)
	if from, known := h.run.nodes[v.Outer().SrcIP]; known && p.Kind == program.Control &&
		from < h.run.net.Jobs*h.run.net.Workers {
		p.Worker = olaf.WorkerID(from % h.run.net.Workers) // the requester
	}
	switch {
	case h.run.inside != nil:
		h.completeTrace(v.Outer().SrcIP, &p, lanes)
	case !h.server:
		assumeTrace(&p, h.run.net.Workers, h.vector)
	}
	now := h.run.tapFrame(h.number, &v, &p, lanes)
	h.arrived.Add(1)
	h.end.Receive(now, &p, lanes)
}

// completeTrace adds the trace that the sender recorded to a packet, and checks the packet's values against the trace.
func (h *host) completeTrace(from [4]byte, p *program.Packet, lanes []uint32) {
	r := h.run
	t := r.inside.takeTrace(way{r.nodes[from], h.number})
	p.Trace.Set(&t)
	if len(lanes) > 0 && !r.values.checkPacket(lanes, int(p.Seg)*r.job.PerPacket,
		r.inside.gradientsOf(marked{h.job, t.Inside})) {
		h.wrong++
	}
}

// Compute implements endpoint.Host.
func (h *host) Compute(vector uint32) {
	h.vector = vector
	if h.run.work != nil {
		h.run.work.Begin(h.number, vector)
		h.awaits = true
		return
	}
	j := h.run.job
	unit := float64(splitmix.MixBits(h.draw+uint64(vector))>>11) / (1 << 53)
	h.computed = h.run.runTime().Add(olaf.Duration(float64(j.Compute) * (1 + float64(j.Jitter*(float64(2*unit)-1)))))
}

// Message implements endpoint.Host. It notifies the observer that a worker sends. It adds no time, because the real
// software already takes time.
func (h *host) Message() {
	if observer := h.run.job.Observer; observer != nil && !h.server {
		h.run.doLocked(func(now olaf.Time) { observer.OnSend(now, h.number) })
	}
}

// Apply implements endpoint.Host. It also checks the values of the sum.
func (h *host) Apply(a *endpoint.Aggregate) {
	r := h.run
	now := r.doLocked(func(now olaf.Time) {
		if r.job.Applied != nil {
			r.job.Applied(now, h.number, a)
		}
		r.meter.recordApply(h, a, now)
	})
	if !h.server && r.inside == nil && r.work == nil {
		wrong := r.values.countWrong(a.Values, h.job, a.Number, r.job.PerPacket)
		h.wrong += wrong
		if wrong > 0 && wrong < r.job.Packets() {
			h.torn++
		}
	}
	h.applied = now.Add(r.job.Apply)
}

// Send implements endpoint.Host.
func (h *host) Send(to endpoint.Peer, p *program.Packet, lanes []uint32) (left olaf.Time) {
	r := h.run
	target := r.root
	switch {
	case to == endpoint.Server:
		target = r.net.Jobs*r.net.Workers + h.job
	case to != endpoint.Network:
		target = h.job*r.net.Workers + int(to)
	}
	there := r.framer.Address(target)
	outer := outerTo(&h.addresses, &there, to != endpoint.Network, h.server)
	if r.inside != nil {
		r.inside.recordFrame(way{h.number, target}, &p.Trace)
	}
	n, err := r.parts.Frame.Encode(h.out, &outer, p, lanes)
	if err != nil {
		h.failed = fmt.Errorf("%s: %w", r.names[h.number], err)
		return 0
	}
	return r.runTime().Add(r.links.Send(h.link, h.out[:n]))
}
