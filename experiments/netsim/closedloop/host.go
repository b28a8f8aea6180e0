package closedloop

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/internal/splitmix"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// host is a worker or a server with its software. It implements endpoint.Host.
type host struct {
	sim    *sim
	number int
	job    int // that it is of, from 0
	worker int // its number there; of a server the number of workers
	end    endpoint.Endpoint
	server bool
	costs  Costs
	cpu    int64 // from which the software is free
	opens  bool  // the next packet is the first of a message
	vector uint32
	armed  olaf.Time // a timer event is scheduled for then
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
			draw: splitmix.Mix(s.seed ^ uint64(i)<<40 ^ 0x6a09e667),
		}
		h.job, h.worker = s.whose(i)
		cfg.Job = FirstJob + olaf.ClusterID(h.job)
		var err error
		if h.server {
			h.costs = s.net.Server
			h.end, err = parts.Server(cfg, h)
		} else {
			cfg.Worker, cfg.Line = olaf.WorkerID(h.worker), s.net.access(h.worker).Rate
			h.end, err = parts.Worker(cfg, h)
		}
		if err != nil {
			return err
		}
		s.hosts[i] = h
	}
	return nil
}

// begin starts the host's side of its job.
func (h *host) begin() {
	h.end.Start(olaf.Time(h.sim.now))
	h.arm()
}

// Compute implements endpoint.Host.
func (h *host) Compute(vector uint32) {
	h.vector, h.doing = vector, Computing
	j := h.sim.job
	if j.Begin != nil {
		h.sim.push(h.sim.now+int64(max(j.Begin(h.number, vector), 0)), kindComputed|uint64(h.number))
		return
	}
	unit := float64(splitmix.Mix(h.draw+uint64(vector))>>11) / (1 << 53)
	takes := int64(float64(j.Compute) * (1 + float64(j.Jitter*(float64(2*unit)-1))))
	if h.worker < len(j.Late) {
		takes += int64(j.Late[h.worker])
	}
	h.sim.push(h.sim.now+takes, kindComputed|uint64(h.number))
}

// Message implements endpoint.Host.
func (h *host) Message() {
	h.opens = true
	if o := h.sim.job.Observer; o != nil && !h.server {
		o.Sent(olaf.Time(h.sim.now), h.number)
	}
}

// Send implements endpoint.Host: the software makes the packet, then it waits for the wire.
func (h *host) Send(to endpoint.Peer, p *program.Packet, lanes []uint32) (left olaf.Time) {
	s := h.sim
	i := s.room()
	q := &s.packets[i]
	q.Packet, q.to, q.first, q.from = *p, to, h.opens, int32(h.number)
	q.lanes = copied(q.lanes, lanes)
	if s.grove != nil {
		s.address(h, q)
	}
	if o := s.job.Observer; o != nil && h.server && p.Kind == program.Ack && p.Vectors > 0 {
		o.Whole(olaf.Time(s.now), p)
	}
	h.pay(q)
	h.opens = false
	s.meter.inFlight++
	s.transmit(i, s.access[h.number], h.cpu)
	return olaf.Time(s.wires[s.access[h.number]].Free)
}

// pay lets the software work on a packet.
func (h *host) pay(p *packet) {
	h.cpu = max(h.cpu, h.sim.now)
	if p.first {
		h.cpu += int64(h.costs.PerMessage)
	}
	h.cpu += h.costs.bytes(olaf.LaneBytes * olaf.Size(p.Lanes))
}

// Apply implements endpoint.Host.
func (h *host) Apply(a *endpoint.Aggregate) {
	s := h.sim
	h.doing = Applying
	s.meter.applies(h, a)
	if s.job.Applied != nil {
		s.job.Applied(olaf.Time(s.now), h.number, a)
	}
	at := s.now + int64(s.job.Apply)
	if h.server { // between packets, by the same software
		h.cpu = max(h.cpu, s.now) + int64(s.job.ServerApply)
		at = h.cpu
	}
	s.push(at, kindApplied|uint64(h.number))
}

// reach is the arrival of packet i. A server's software pays for it first.
func (h *host) reach(i int32) {
	if !h.server || h.costs == (Costs{}) {
		h.take(i)
		return
	}
	h.pay(&h.sim.packets[i])
	h.sim.push(h.cpu, kindHand|uint64(uint32(i)))
}

func (h *host) take(i int32) {
	p := &h.sim.taken
	*p = h.sim.packets[i]
	h.end.Receive(olaf.Time(h.sim.now), &p.Packet, p.lanes)
	h.sim.drop(i)
	if h.server { // one that only adds up applies nothing
		h.look()
	}
	h.arm()
}

func (h *host) computed() {
	s := h.sim
	h.doing = Talking
	s.meter.computed(h)
	if s.job.Observer != nil {
		s.job.Observer.Computed(olaf.Time(s.now), h.number)
	}
	var values []uint32
	if s.job.Values != nil {
		values = s.job.Values(olaf.Time(s.now), h.number, h.vector)
	}
	h.end.Computed(olaf.Time(s.now), values)
	h.arm()
}

func (h *host) applied() {
	h.doing = Talking
	h.sim.meter.applied(h)
	h.end.Applied(olaf.Time(h.sim.now))
	h.look()
	h.arm()
}

// look notes that the job is over on this side.
func (h *host) look() {
	if !h.done && h.end.Done() {
		h.done = true
		h.sim.meter.finished(h)
	}
}

func (h *host) timer() {
	h.armed = endpoint.Never
	if h.end.Next() <= olaf.Time(h.sim.now) {
		h.end.Timer(olaf.Time(h.sim.now))
		h.look()
	}
	h.arm()
}

// arm schedules the endpoint's timer, unless an earlier event will look at it.
func (h *host) arm() {
	if next := h.end.Next(); next < h.armed {
		h.armed = next
		h.sim.push(int64(next), kindTimer|uint64(h.number))
	}
}
