package play

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/p4inc"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// startWindowed starts a job whose workers do not know the planned rates. P4INC's congestion windows determine how fast
// they send, and sums are sent back over the same wires.
func (p *play) startWindowed(j *job) {
	p.windows = true
	cfg := endpoint.Config{
		Job: j.jobID(), Workers: j.Workers, Updates: 1,
		Layout: endpoint.Layout{Values: j.packets * p4inc.Lanes, PerPacket: p4inc.Lanes},
	}
	// Nothing is lost, so silence means a missing connection.
	own := endpoint.P4INC{Base: j.base, Size: p.o.Segment, Timeout: olaf.Duration(1 << 61)}
	for w := j.first; w < j.first+j.Workers; w++ {
		cfg.Worker = olaf.WorkerID(w - j.first)
		end, err := endpoint.NewP4INC(cfg, own, &host{p, w})
		if err != nil {
			panic(err) // our own values are valid
		}
		p.workers[w].end = end
		end.Start(olaf.Time(p.now))
	}
}

// host runs the endpoint of a worker. Computing and applying take no time.
type host struct {
	play   *play
	worker int
}

// Compute implements endpoint.Host.
func (h *host) Compute(uint32) { h.play.pushEvent(h.play.now, kindWake|uint64(h.worker)) }

// Message implements endpoint.Host.
func (h *host) Message() {}

// Apply implements endpoint.Host.
func (h *host) Apply(*endpoint.Aggregate) { h.play.pushEvent(h.play.now, kindWake|uint64(h.worker)) }

// Send implements endpoint.Host.
func (h *host) Send(_ endpoint.Peer, q *program.Packet, _ []uint32) olaf.Time {
	return olaf.Time(min(h.play.transmitPacket(h.play.newPacket(int32(h.worker), q)), 1<<60))
}

// wakeWorker ends the computation or the update of worker w.
func (p *play) wakeWorker(w int) {
	of := &p.workers[w]
	if of.wakes++; of.wakes == 1 {
		of.end.OnComputed(olaf.Time(p.now), nil)
	} else {
		of.end.OnApplied(olaf.Time(p.now))
	}
	p.checkDone(w)
}

// checkDone records the time at which worker w has received all sums.
func (p *play) checkDone(w int) {
	of := &p.workers[w]
	j := &p.jobs[of.job]
	if !of.end.Done() || of.wakes < 2 {
		return
	}
	of.wakes = -1 << 30
	j.end = p.now
	if j.done++; j.done == j.Workers {
		p.releaseSegment(j)
	}
}
