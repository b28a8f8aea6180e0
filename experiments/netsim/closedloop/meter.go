package closedloop

import (
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/pktgen/endpoint"
	"github.com/olafctl/olaf/results"
)

// meter collects the measurements of a run.
type meter struct {
	sim       *sim
	doneHosts int
	inFlight  int
	hosts     []hostMeter
	// For synchronous jobs, by job and round: when the last gradient was ready, and when the last worker had the sum.
	ready, complete []int64
	// When the first gradient of each round was ready, and when its last sum was at the root.
	begun, summed []int64
	lastSum       int64 // time of the last sum from the root to all
	jobs          []jobMeter
	served        uint64 // packets that reached servers
	arrived       uint64 // frames that arrived at hosts and switches
	switched      uint64 // arrived frames that a program received
	marked        uint64 // packets with a congestion mark

	stale staleness
}

// jobMeter collects the measurements of one job.
type jobMeter struct {
	left int   // unfinished hosts
	end  int64 // when the last worker finished
}

// hostMeter collects the measurements of one host.
type hostMeter struct {
	trace   program.Trace // of the sum being applied
	vectors uint32
	updates uint64
	first   int64 // when the first update was applied
	last    int64
	// gradients counts the gradients in updates after the first.
	gradients uint64
	ages      [stamps]results.Age
}

// Stamps for the age of a sum's contributions.
const (
	newest = iota
	mean
	oldest
	stamps
)

// staleness adds up the staleness of all contributions. The staleness of a contribution is the number of updates
// between reading the weights and applying the gradient.
type staleness struct {
	updates, vectors, contributions float64
}

func newMeter(s *sim) meter {
	m := meter{sim: s, hosts: make([]hostMeter, len(s.hosts)), jobs: make([]jobMeter, s.jobs)}
	for _, h := range s.hosts {
		m.jobs[h.job].left++
	}
	if s.sync {
		rounds := s.jobs * int(s.job.Updates)
		m.ready, m.complete = make([]int64, rounds), make([]int64, rounds)
		if s.jobs == 1 {
			m.begun, m.summed = slices.Repeat([]int64{-1}, rounds), make([]int64, rounds)
		}
	}
	return m
}

// recordDone records the time at which a host is done.
func (m *meter) recordDone(h *host) {
	m.doneHosts++
	k := &m.jobs[h.job]
	if k.left--; !h.server {
		k.end = max(k.end, m.sim.now)
	}
}

// recordLatest stores now as the time of a round in the host's job, unless a later time is already stored.
func (m *meter) recordLatest(times []int64, h *host, round uint32, now int64) {
	if times != nil && round < m.sim.job.Updates {
		at := &times[h.job*int(m.sim.job.Updates)+int(round)]
		*at = max(*at, now)
	}
}

func (m *meter) recordGradient(h *host) {
	m.recordLatest(m.ready, h, h.vector, m.sim.now)
	if i := int(h.vector); i < len(m.begun) && m.begun[i] < 0 {
		m.begun[i] = m.sim.now
	}
}

// recordOutput records that the program at the root sends a sum to all workers.
func (m *meter) recordOutput(o *emitter, to program.Dest, p *program.Packet) {
	if to == program.Down && p.Kind == program.Result && !m.sim.switches[o.at].parent {
		m.lastSum = o.time
		m.sim.job.Observer.OnSumPacket(olaf.Time(o.time), p)
	}
}

// recordApply records that a host received a complete sum and begins to apply it.
func (m *meter) recordApply(h *host, a *endpoint.Aggregate) {
	k := &m.hosts[h.number]
	if k.trace, k.vectors = a.Trace, a.Vectors; k.updates > 0 {
		k.gradients += uint64(a.Vectors)
	}
	if !h.server {
		m.recordLatest(m.complete, h, a.Number, m.sim.now)
	}
	m.recordSum(h, a)
	if t := &a.Trace; t.Vectors > 0 && m.countsUpdates(h) {
		late := float64(float64(t.Vectors)*float64(a.Number)) - float64(t.ReadSum)
		m.stale.updates += late
		m.stale.vectors += float64(late * float64(t.Vectors))
		m.stale.contributions += float64(t.Vectors)
	}
}

// recordSum records when the last sum of a round was complete at the root or at the server.
func (m *meter) recordSum(h *host, a *endpoint.Aggregate) {
	i := int(a.Number)
	switch {
	case i >= len(m.summed):
	case h.server:
		m.summed[i] = m.sim.now
	case m.summed[i] == 0: // a later round's sum cannot have left: it needs this worker's gradient
		m.summed[i] = m.lastSum
	}
}

// countsUpdates reports whether the updates at a host count as updates of the weights. If a server stores the weights,
// only its updates count.
func (m *meter) countsUpdates(h *host) bool { return h.server != m.sim.atWorkers }

// recordUpdate records that a host has updated the weights.
func (m *meter) recordUpdate(h *host) {
	k, now := &m.hosts[h.number], m.sim.now
	if k.updates == 0 {
		k.first = now
	}
	k.updates++
	k.last = now
	t := &k.trace
	if t.Vectors == 0 {
		return
	}
	for i, at := range [stamps]olaf.Time{newest: meanStamp(t.NewestNS, 1), mean: meanStamp(t.SumNS, t.Vectors),
		oldest: meanStamp(t.OldestNS, 1)} {
		k.ages[i].Deliver(results.Window{}, olaf.Time(now), at)
	}
}

// meanStamp returns the mean of n timestamps from their sum in ns, rounded to the picosecond. n must be at least 1.
func meanStamp(sumNS uint64, n uint32) olaf.Time {
	whole, rest := sumNS/uint64(n), sumNS%uint64(n)
	return olaf.Time(whole)*olaf.Time(olaf.Nanosecond) + olaf.Time((rest*uint64(olaf.Nanosecond)+uint64(n)/2)/uint64(n))
}
