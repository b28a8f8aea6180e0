package netsim

import (
	"fmt"
	"math"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/node"
	"github.com/olafctl/olaf/experiments/netsim/tc"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/aggregator"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/internal/calendar"
)

// Open is the mode of open-loop workers on switches that add.
const Open = "open"

// station is a switch with workers and a program: it adds their updates before they reach a port, and forwards packets
// from other switches.
type station struct {
	node.Switch
	front    *aggregator.Aggregator // nil without workers
	sim      *sim
	at       int32
	clusters int    // highest cluster id of its workers, plus one
	vectors  int    // index of the number of added updates in the program's counts
	merged   uint64 // updates in sums, except the first of each
	refused  uint64 // updates not added
}

// addingSystem returns the system of the switches' program. The error matches system.ErrUnknown.
func (t *Topology) addingSystem() (*system.System, error) { return t.systems.Adding().Find(t.Program) }

// AddUp sets the switches' program to s's, with open-loop workers. H becomes the number of workers in the first
// cluster.
func (t *Topology) AddUp(s *system.System) {
	t.Queue, t.Waiting, t.Program, t.H = s.Discipline, nil, s.Name, 1
	if len(t.Clusters) > 0 {
		t.H = max(t.Clusters[0].Workers, 1)
	}
}

// DescribeSums describes how switches add updates, or returns "" if they only forward.
func (t *Topology) DescribeSums() string {
	if t.Program == "" {
		return ""
	}
	return fmt.Sprintf("%s, sums of %d", t.Program, t.H)
}

// checkProgram checks the program without the network.
func (c *checker) checkProgram() {
	t := c.t
	if t.Program == "" {
		if t.H != 0 {
			c.addError(t.Pos, "h", "h is %d, but switches have no program that adds up; add program: %s", t.H,
				strings.Join(t.systems.Adding().Names(), " or "))
		}
		return
	}
	s, err := t.addingSystem()
	if err != nil {
		c.errs = append(c.errs, t.locateError(t.Pos, "program", err))
		return
	}
	if t.Waiting != nil {
		c.addError(t.Pos, "program", "switches add up for workers that do not wait, but those of %s wait; leave "+
			"out program or waiting", t.Waiting.System)
	}
	if t.H < 1 || t.H > math.MaxUint16 {
		c.addError(t.Pos, "h", "h is %d; a sum has 1 to %d updates", t.H, math.MaxUint16)
	}
	if t.Queue != s.Discipline {
		c.addError(t.Pos, "queue", "ports of %s are %s, not %s", s.Name, s.Discipline, t.Queue)
	}
	for i := range t.Switches {
		if sw := &t.Switches[i]; t.queueOf(sw) != t.Queue {
			c.addError(sw.Pos, "queue", "ports of %s are %s, not %s", s.Name, s.Discipline, sw.Queue)
		}
	}
}

// addPrograms installs the program on every switch with workers.
func (n *network) addPrograms(t *Topology) error {
	if t.Program == "" {
		return nil
	}
	s, err := t.addingSystem()
	if err != nil {
		return err
	}
	n.stations = make([]station, n.switches)
	for i := range n.trees {
		tr := &n.trees[i]
		for _, at := range tr.attached {
			st := &n.stations[at]
			st.at, st.clusters = at, max(st.clusters, tr.spec.ID+tr.spec.clusterCount())
		}
	}
	for i := range n.stations {
		if st := &n.stations[i]; st.clusters > 0 {
			if err := st.installProgram(s.Program, t.H); err != nil {
				return t.locateError(t.Pos, "program", err)
			}
		}
	}
	return nil
}

// installProgram creates the switch's program, which precedes its ports.
func (st *station) installProgram(d *program.Description, h int) error {
	own := *d
	own.New = func(cfg program.Config) (p program.Program, err error) {
		st.Program, err = d.New(cfg)
		return &st.Switch, err
	}
	st.vectors = d.Ledger.Index("vectors_in")
	var err error
	st.front, err = aggregator.New(&own, aggregator.Config{Clusters: st.clusters, H: h, Up: st.offerSum})
	return err
}

// reachSwitch delivers a worker's update to its switch, for output on a port.
func (s *sim) reachSwitch(to, c int32, u *olaf.Update) {
	if s.stations == nil {
		s.offerUpdate(to, c, u, nil)
		return
	}
	st := &s.stations[s.ports[to].from]
	before := st.Counts()[st.vectors]
	st.front.Offer(olaf.Time(s.now), u, 0, nil)
	if st.Counts()[st.vectors] == before {
		st.refused++
		s.meter.countDrop(c, u, s.now)
	}
}

// offerSum offers a sum to a port.
func (st *station) offerSum(_ olaf.Time, u *olaf.Update, _ []int32, inside []olaf.Contributor) {
	s := st.sim
	c := s.byID[u.Cluster]
	for range u.Count - 1 {
		st.merged++
		s.meter.countMerge(c, engine.Aggregated, s.now)
	}
	s.offerUpdate(s.portToward(s.clusters[c].server, st.at), c, u, inside)
}

// countHeld returns the number of updates in partial sums.
func (st *station) countHeld() uint64 {
	if st.front == nil {
		return 0
	}
	return st.Counts()[st.vectors-program.VectorsIn+program.VectorsHeld]
}

// auditPrograms checks the programs' own accounts.
func (s *sim) auditPrograms() error {
	if s.stations == nil {
		return nil
	}
	of, err := s.t.addingSystem()
	if err != nil {
		return err
	}
	for i := range s.stations {
		if st := &s.stations[i]; st.front != nil {
			if err := of.Program.CountsOf(st).Balance(); err != nil {
				return fmt.Errorf("switch %s: %w", s.names[i], err)
			}
		}
	}
	return nil
}

type serverState struct {
	processing int64
	free       int64
}

// deliverToServer handles the reception of a frame by the server at the end of p's link, and answers it.
func (s *sim) deliverToServer(p *port, f *frame) {
	if f.update.Count == 0 {
		s.meter.backgroundDelivered++
		return
	}
	server := p.to - int32(s.switches)
	c := s.byID[f.update.Cluster]
	s.meter.recordDelivery(s, server, c, f, p.link.contributorsOf(f))
	if !s.acks {
		return
	}
	sv := &s.servers[server]
	sv.free = max(sv.free, s.now) + sv.processing
	tr := &s.trees[s.clusters[c].tree]
	for _, h := range tr.roots {
		s.sendAck(c, tr, h, sv.free, tc.Status{})
	}
}

// ack is one copy of an ACK in flight.
type ack struct {
	at      int64
	ord     uint64
	cluster int32
	hop     int32 // in the cluster's tree; on the workers' links, the listener
	status  tc.Status
}

// sendAck sends one copy of an ACK down to a hop, not before now, nor before an earlier ACK to the same hop.
func (s *sim) sendAck(c int32, tr *tree, h int32, at int64, status tc.Status) {
	i := tr.hops[h].uplink
	p := &s.ports[i]
	if !p.output.Up() {
		s.meter.acksLost++
		return
	}
	at, _, fate := p.down.Pass(at, 0, s.ack)
	if fate != 0 {
		s.meter.acksLost++
		return
	}
	s.pushAck(&p.acks, kindAck|uint64(i), ack{at, s.arrivalOrder(), c, h, status})
}

// pushAck adds an ACK to a link. Only the first one has an event.
func (s *sim) pushAck(acks *line[ack], what uint64, a ack) {
	*acks.push() = a
	if acks.len() == 1 {
		s.queue.Push(calendar.Event{At: a.at, Ord: a.ord, What: what})
	}
}

// popAck removes the first ACK from a link.
func (s *sim) popAck(acks *line[ack], what uint64) ack {
	a := *acks.at(0)
	acks.drop()
	if acks.len() > 0 {
		next := acks.at(0)
		s.queue.Push(calendar.Event{At: next.at, Ord: next.ord, What: what})
	}
	return a
}

// passAck writes the status of port i into an arriving ACK, and multicasts it downwards.
func (s *sim) passAck(i int32) {
	p := &s.ports[i]
	a := s.popAck(&p.acks, kindAck|uint64(i))
	c := &s.clusters[a.cluster]
	tr := &s.trees[c.tree]
	h := &tr.hops[a.hop]
	status := a.status.PassHop(p.ackStatus(s.now, s.t.Control.Count))
	for _, child := range h.children {
		s.sendAck(a.cluster, tr, child, s.now, status)
	}
	if h.leaf < 0 {
		return
	}
	src := &s.sources[c.source]
	s.pushAck(&src.acks, kindHeard|uint64(c.source),
		ack{s.now + src.transmit + src.delay, s.arrivalOrder(), a.cluster, c.listen + h.leaf, status})
}

// hearAck delivers an ACK to all workers of a cluster behind one switch at once: their links are identical, so they
// share one state, unless links lose ACKs.
func (s *sim) hearAck(i int32) {
	a := s.popAck(&s.sources[i].acks, kindHeard|uint64(i))
	s.meter.acks++
	if s.sources[i].lossy {
		s.hearApart(&a)
		return
	}
	s.listeners[a.hop].OnAck(olaf.Time(s.now), a.status)
}

// hearApart delivers a copy of an ACK to each worker of a cluster behind one switch, over a link that may lose it.
func (s *sim) hearApart(a *ack) {
	c := &s.clusters[a.cluster]
	leafOf := s.trees[c.tree].leafOf
	for i := range c.workers {
		if leafOf[int(i)%len(leafOf)] != a.hop-c.listen {
			continue
		}
		if s.cables[s.places[c.firstWorker+i]].down.Carry(s.ack, s.sources[c.source].transmit) {
			s.meter.acksLost++
			continue
		}
		s.listeners[c.listen+i].OnAck(olaf.Time(s.now), a.status)
	}
}
