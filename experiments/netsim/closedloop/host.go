package closedloop

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/internal/splitmix"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// host is a worker or a server, including the time that its software takes. It implements endpoint.Host.
type host struct {
	sim    *sim
	number int
	job    int // job number, from 0
	worker int // worker number in its job; for a server, the number of workers
	end    endpoint.Endpoint
	server bool
	costs  Costs
	cpu    int64 // when the software is free
	opens  bool  // the next packet starts a message
	vector uint32
	armed  olaf.Time // time of the scheduled timer event
	doing  Doing
	done   bool
	draw   uint64
}

func (s *sim) addHosts(parts *system.Parts) error {
	s.hosts = make([]*host, s.ends)
	cfg := endpoint.Config{Workers: s.workers, Layout: s.job.Layout, Updates: s.job.Updates}
	for i := range s.hosts {
		h := &host{
			sim: s, number: i, costs: s.net.Worker, server: i >= s.jobs*s.workers, armed: endpoint.Never,
			draw: splitmix.MixBits(s.seed ^ uint64(i)<<40 ^ 0x6a09e667),
		}
		h.job, h.worker = s.jobAndWorker(i)
		cfg.Job = FirstJob + olaf.ClusterID(h.job)
		var err error
		if h.server {
			h.costs = s.net.Server
			h.end, err = parts.Server(cfg, h)
		} else {
			cfg.Worker, cfg.Line = olaf.WorkerID(h.worker), s.net.accessLink(h.worker).Rate
			h.end, err = parts.Worker(cfg, h)
		}
		if err != nil {
			return err
		}
		s.hosts[i] = h
	}
	return nil
}

// startEndpoint starts the host's endpoint and its timer.
func (h *host) startEndpoint() {
	h.end.Start(olaf.Time(h.sim.now))
	h.armTimer()
}

// Compute implements endpoint.Host.
func (h *host) Compute(vector uint32) {
	h.vector, h.doing = vector, Computing
	j := h.sim.job
	if j.Begin != nil {
		h.sim.pushEvent(h.sim.now+int64(max(j.Begin(h.number, vector), 0)), kindComputed|uint64(h.number))
		return
	}
	unit := float64(splitmix.MixBits(h.draw+uint64(vector))>>11) / (1 << 53)
	takes := int64(float64(j.Compute) * (1 + float64(j.Jitter*(float64(2*unit)-1))))
	if h.worker < len(j.Late) {
		takes += int64(j.Late[h.worker])
	}
	h.sim.pushEvent(h.sim.now+takes, kindComputed|uint64(h.number))
}

// Message implements endpoint.Host.
func (h *host) Message() {
	h.opens = true
	if !h.server {
		h.sim.job.Observer.OnSend(olaf.Time(h.sim.now), h.number)
	}
}

// Send implements endpoint.Host. The packet waits for the software to create it, and then for the wire.
func (h *host) Send(to endpoint.Peer, p *program.Packet, lanes []uint32) (left olaf.Time) {
	s := h.sim
	i := s.newPacket()
	q := &s.packets[i]
	q.Packet, q.to, q.first, q.from = *p, to, h.opens, int32(h.number)
	q.lanes = copyLanes(q.lanes, lanes)
	if s.grove != nil {
		s.setTarget(h, q)
	}
	if h.server && p.Kind == program.Ack && p.Vectors > 0 {
		s.job.Observer.OnSumPacket(olaf.Time(s.now), p)
	}
	h.addCost(q)
	h.opens = false
	s.meter.inFlight++
	s.transmitPacket(i, s.access[h.number], h.cpu)
	return olaf.Time(s.wires[s.access[h.number]].Free)
}

// addCost extends the time for which the host's CPU is busy by the software's time for a packet.
func (h *host) addCost(p *packet) {
	h.cpu = max(h.cpu, h.sim.now)
	if p.first {
		h.cpu += int64(h.costs.PerMessage)
	}
	h.cpu += h.costs.timeOfBytes(olaf.LaneBytes * olaf.Size(p.Lanes))
}

// Apply implements endpoint.Host.
func (h *host) Apply(a *endpoint.Aggregate) {
	s := h.sim
	h.doing = Applying
	s.meter.recordApply(h, a)
	if s.job.Applied != nil {
		s.job.Applied(olaf.Time(s.now), h.number, a)
	}
	at := s.now + int64(s.job.Apply)
	if h.server { // between packets, on the same CPU
		h.cpu = max(h.cpu, s.now) + int64(s.job.ServerApply)
		at = h.cpu
	}
	s.pushEvent(at, kindApplied|uint64(h.number))
}

// arriveAt handles the arrival of packet i. On a server, the software first takes its time for the packet.
func (h *host) arriveAt(i int32) {
	if !h.server || h.costs == (Costs{}) {
		h.receivePacket(i)
		return
	}
	h.addCost(&h.sim.packets[i])
	h.sim.pushEvent(h.cpu, kindHand|uint64(uint32(i)))
}

func (h *host) receivePacket(i int32) {
	p := &h.sim.taken
	*p = h.sim.packets[i]
	h.end.Receive(olaf.Time(h.sim.now), &p.Packet, p.lanes)
	h.sim.dropPacket(i)
	if h.server { // a server that only adds never applies
		h.checkDone()
	}
	h.armTimer()
}

func (h *host) finishGradient() {
	s := h.sim
	h.doing = Talking
	s.meter.recordGradient(h)
	s.job.Observer.OnCompute(olaf.Time(s.now), h.number)
	var values []uint32
	if s.job.Values != nil {
		values = s.job.Values(olaf.Time(s.now), h.number, h.vector)
	}
	h.end.OnComputed(olaf.Time(s.now), values)
	h.armTimer()
}

func (h *host) finishApply() {
	h.doing = Talking
	h.sim.meter.recordUpdate(h)
	h.end.OnApplied(olaf.Time(h.sim.now))
	h.checkDone()
	h.armTimer()
}

// checkDone records the time at which the endpoint is done.
func (h *host) checkDone() {
	if !h.done && h.end.Done() {
		h.done = true
		h.sim.meter.recordDone(h)
	}
}

func (h *host) runTimer() {
	h.armed = endpoint.Never
	if h.end.Next() <= olaf.Time(h.sim.now) {
		h.end.Timer(olaf.Time(h.sim.now))
		h.checkDone()
	}
	h.armTimer()
}

// armTimer schedules an event for the endpoint's timer, unless an earlier event will check the timer anyway.
func (h *host) armTimer() {
	if next := h.end.Next(); next < h.armed {
		h.armed = next
		h.sim.pushEvent(int64(next), kindTimer|uint64(h.number))
	}
}
