package netsim

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/netsim/tc"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/aggregator"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/internal/calendar"
	"github.com/olafctl/olaf/internal/yamlfile"
)

// Limits of a topology, from the sizes of types and the range of exact integer picoseconds.
const (
	maxClusterID  = 1<<16 - 1
	maxPerCluster = 1 << 16
	maxWorkers    = 1 << 24
	maxNodes      = 1 << 16
	maxOverhead   = 1 << 16
	maxSimulated  = 40 * 24 * olaf.Hour
)

// checker collects the errors in a topology.
type checker struct {
	t    *Topology
	errs []error
	kind map[string]string // node name → switch or server
}

func (c *checker) addError(p Pos, key, format string, args ...any) {
	if len(c.errs) < yamlfile.MaxErrors {
		c.errs = append(c.errs, &Error{c.t.File, p.LineOf(key), fmt.Sprintf(format, args...)})
	}
}

// Check checks t before anything runs. Every error matches ErrTopology and names the file, line and fix.
func (t *Topology) Check() error {
	c := &checker{t: t, kind: map[string]string{}}
	c.checkGeneral()
	c.checkWaiting()
	c.checkProgram()
	c.checkNodes()
	c.checkLinks()
	c.checkClusters()
	c.checkBackground()
	c.checkSchedule()
	if len(c.errs) > 0 {
		return errors.Join(c.errs...)
	}
	return nil
}

func (c *checker) checkGeneral() {
	t := c.t
	if t.Duration <= 0 {
		c.addError(t.Pos, "duration", "duration is %v; give the time to measure, such as duration: 60s", t.Duration)
	}
	if t.Warmup < 0 {
		c.addError(t.Pos, "warmup", "warmup is %v; it must not be negative", t.Warmup)
	}
	if t.Duration > maxSimulated || t.Warmup > maxSimulated {
		c.addError(t.Pos, "duration", "duration %v exceeds virtual time; at most %v", t.Duration,
			maxSimulated)
	}
	if t.Update < olaf.HeaderBytes || t.Update > olaf.MaxFrame || (t.Update-olaf.HeaderBytes)%olaf.LaneBytes != 0 {
		c.addError(t.Pos, "update", "update is %v; a frame has %d bytes of headers and whole lanes of %d bytes, at most %v in all, such as 1000B",
			t.Update, olaf.HeaderBytes, olaf.LaneBytes, olaf.MaxFrame)
	}
	c.checkQueue(t.Pos, t.Queue, true)
	c.checkFilter()
	if t.Control.Enabled {
		if _, err := tc.NewLaw(t.Control.Law, tc.Config{Threshold: t.Control.Threshold}); err != nil {
			c.addError(t.Control.Pos, "threshold", "transmission_control.%v", err)
		}
	}
	if t.Control.Window < 0 {
		c.addError(t.Control.Pos, "window", "transmission_control.window is %v; it must not be negative",
			t.Control.Window)
	}
}

func (c *checker) checkFilter() {
	t := c.t
	_, err := engine.FixedReward(t.RewardThreshold)
	switch {
	case t.RewardThreshold != 0 && !t.RewardFilter:
		c.addError(t.Pos, "reward_threshold",
			"a reward threshold does nothing without the reward filter; switch reward_filter on (--reward-filter), or leave the threshold out")
	case err != nil:
		c.addError(t.Pos, "reward_threshold", "%v", err)
	case t.RewardFilter && !t.FiltersReward():
		c.addError(t.Pos, "reward_filter", "system %s has no reward filter, unlike %s; leave the filter out", t.System(),
			strings.Join(engine.FilteringNames(), ", "))
	}
}

// FiltersReward reports whether any queue in t has a reward filter, and passes single updates.
func (t *Topology) FiltersReward() bool {
	filters := func(queue string) bool { return slices.Contains(engine.FilteringNames(), queue) }
	return t.Waiting == nil && t.Program == "" && (filters(t.Queue) ||
		slices.ContainsFunc(t.Switches, func(sw Switch) bool { return filters(sw.Queue) }))
}

func (c *checker) checkQueue(p Pos, name string, needed bool) {
	if name == "" && !needed || slices.Contains(engine.DisciplineNames(), name) {
		return
	}
	c.addError(p, "queue", "queue %q is not known%s", name, yamlfile.Suggest(name, engine.DisciplineNames()))
}

// checkSwitchQueue checks the queue configuration of a switch.
func (c *checker) checkSwitchQueue(s *Switch) {
	c.checkQueue(s.Pos, s.Queue, false)
	if s.Slots < 1 || s.Slots > engine.MaxSlots {
		c.addError(s.Pos, "slots", "switch %q has %d slots; a queue holds 1 to %d updates", s.Name, s.Slots,
			engine.MaxSlots)
	}
	if s.Bypass < 0 || s.Bypass > engine.MaxBypassSlots {
		c.addError(s.Pos, "bypass_slots", "switch %q has bypass_slots %d; 0 (64) to %d", s.Name, s.Bypass,
			engine.MaxBypassSlots)
	}
	if s.Profile == "" {
		return
	}
	if err := engine.Profile(s.Profile).Validate(); err != nil {
		c.addError(s.Pos, "profile", "switch %q: %v", s.Name, err)
	} else if c.t.Timing == NS3 && engine.Profile(s.Profile).ReadPorts() != 0 {
		c.addError(s.Pos, "profile", "switch %q: profile %s counts cycles of the logic, which ns-3's timing has not; use ideal", s.Name, s.Profile)
	}
}

func (c *checker) checkNodes() {
	add := func(p Pos, name, kind string) {
		switch {
		case name == "":
			c.addError(p, "name", "a %s has no name", kind)
		case c.kind[name] != "":
			c.addError(p, "name", "the name %q is used twice; rename one", name)
		}
		c.kind[name] = kind
	}
	for i := range c.t.Switches {
		s := &c.t.Switches[i]
		add(s.Pos, s.Name, "switch")
		c.checkSwitchQueue(s)
	}
	for i := range c.t.Servers {
		s := &c.t.Servers[i]
		add(s.Pos, s.Name, "server")
		if s.Processing < 0 {
			c.addError(s.Pos, "processing", "server %q has processing %v; it must not be negative", s.Name,
				s.Processing)
		}
	}
	if len(c.t.Servers) == 0 {
		c.addError(c.t.Pos, "servers", "there is no parameter server; add servers: [{name: ps}] and a link to it")
	}
	if len(c.t.Switches) == 0 {
		c.addError(c.t.Pos, "switches", "there is no switch; workers reach a server through at least one")
	}
	if len(c.kind) > maxNodes {
		c.addError(c.t.Pos, "switches", "there are %d nodes; at most %d", len(c.kind), maxNodes)
	}
}

// checkNode rejects an unknown name or one of the wrong kind; an empty kind accepts both.
func (c *checker) checkNode(p Pos, key, name, kind string) {
	have := c.kind[name]
	if have == "" {
		var names []string
		for n := range c.kind {
			names = append(names, n)
		}
		slices.Sort(names)
		c.addError(p, key, "%s names the unknown node %q%s", key, name, yamlfile.Suggest(name, names))
	} else if kind != "" && have != kind {
		c.addError(p, key, "%s names %q, which is a %s; it must be a %s", key, name, have, kind)
	}
}

func (c *checker) checkLinks() {
	seen := map[[2]string]bool{}
	for i := range c.t.Links {
		l := &c.t.Links[i]
		c.checkNode(l.Pos, "from", l.From, "")
		c.checkNode(l.Pos, "to", l.To, "")
		if l.From == l.To || c.kind[l.From] == "server" && c.kind[l.To] == "server" {
			c.addError(l.Pos, "to", "the link %s–%s must join a switch and another node", l.From, l.To)
		}
		if seen[[2]string{l.From, l.To}] || seen[[2]string{l.To, l.From}] {
			c.addError(l.Pos, "from", "the link %s–%s is there twice; remove one", l.From, l.To)
		}
		seen[[2]string{l.From, l.To}] = true
		c.checkRate(l.Pos, "rate", l.Rate, false)
		c.checkRate(l.Pos, "ack_rate", l.AckRate, true)
		if l.AckSlots < 0 || l.AckSlots > 0 && l.AckRate == 0 {
			c.addError(l.Pos, "ack_slots",
				"ack_slots is %d; it must be 1 or more, beside an ack_rate that ACKs wait for", l.AckSlots)
		}
		c.checkWire(l.Pos, l.Delay, l.Overhead, l.Loss)
	}
}

func (c *checker) checkRate(p Pos, key string, r olaf.Rate, optional bool) {
	if r < 0 || r == 0 && !optional {
		c.addError(p, key, "%s is %v; it must be positive, such as 1Gbps", key, r)
	}
}

func (c *checker) checkWire(p Pos, delay olaf.Duration, overhead olaf.Size, loss float64) {
	if delay < 0 || delay > olaf.Hour {
		c.addError(p, "delay", "delay is %v; it must be 0s to %v", delay, olaf.Hour)
	}
	if overhead < 0 || overhead > maxOverhead {
		c.addError(p, "overhead", "overhead is %v; it must be 0B to %dB", overhead, maxOverhead)
	}
	c.checkLoss(p, loss)
}

func (c *checker) checkLoss(p Pos, share float64) {
	if !(share >= 0 && share <= 1) {
		c.addError(p, "loss", "a loss of %g; it must be 0 to 1", share)
	}
}

func (c *checker) checkClusters() {
	if len(c.t.Clusters) == 0 {
		c.addError(c.t.Pos, "clusters", "there are no clusters; add clusters: with id, workers, at and period")
	}
	owner := map[int]*Clusters{}
	workers := 0
	for i := range c.t.Clusters {
		k := &c.t.Clusters[i]
		c.checkCluster(k)
		workers += k.clusterCount() * max(k.Workers, 0)
		for id := k.ID; id < k.ID+k.clusterCount() && id <= maxClusterID; id++ {
			if first := owner[id]; first != nil {
				c.addError(k.Pos, "id", "cluster id %d is already used by the clusters of line %d; give these other ids", id, first.Line)
				break
			}
			owner[id] = k
		}
	}
	if workers > maxWorkers {
		c.addError(c.t.Pos, "clusters", "there are %d workers; at most %d", workers, maxWorkers)
	}
}

func (k *Clusters) clusterCount() int { return max(k.Count, 1) }

// allGroups is the name of the total over all groups in reports.
const allGroups = "all"

func (c *checker) checkCluster(k *Clusters) {
	if k.Group == allGroups {
		c.addError(k.Pos, "group", "a group can't be called %s, which is the name of the total in reports; give it another one", allGroups)
	}
	if k.Count < 0 || k.ID < 0 || k.ID+k.clusterCount()-1 > maxClusterID {
		c.addError(k.Pos, "id", "cluster ids %d to %d do not fit 0 to %d", k.ID, k.ID+k.clusterCount()-1, maxClusterID)
	}
	if k.Workers < 1 || k.Workers > maxPerCluster {
		c.addError(k.Pos, "workers", "workers is %d; a cluster has 1 to %d", k.Workers, maxPerCluster)
	}
	if len(k.At) == 0 {
		c.addError(k.Pos, "at", "at is missing; name the switch of the workers")
	}
	for _, name := range k.At {
		c.checkNode(k.Pos, "at", name, "switch")
	}
	switch {
	case k.Server != "":
		c.checkNode(k.Pos, "server", k.Server, "server")
	case len(c.t.Servers) > 1:
		c.addError(k.Pos, "server", "server is missing; name one of the %d", len(c.t.Servers))
	}
	c.checkRate(k.Access.Pos, "rate", k.Access.Rate, true)
	c.checkWire(k.Access.Pos, k.Access.Delay, k.Access.Overhead, k.Access.Loss)
	c.checkLife(k.Pos, k.Start, k.Stop)
	if c.t.Sends != "" || c.t.sends != nil {
		return // the file of sends replaces periods
	}
	if k.Period <= 0 {
		c.addError(k.Pos, "period", "period is %v; it must be positive, such as 100ms", k.Period)
		return
	}
	if k.Jitter < 0 || k.Jitter > k.Period {
		c.addError(k.Pos, "jitter", "jitter is %v; it must be 0s to the period, %v, so that updates keep their order",
			k.Jitter, k.Period)
	}
	if k.Access.Rate > 0 {
		if tx := k.Access.Rate.TimeToSend(c.t.Update + k.Access.Overhead); k.shortestPeriod() < tx {
			c.addError(k.Pos, "period", "period %v is below one transmission on the access link, %v; use a longer period or a faster link", k.shortestPeriod(), tx)
		}
	}
}

// shortestPeriod returns the shortest possible period of a worker in k.
func (k *Clusters) shortestPeriod() olaf.Duration {
	return olaf.Duration(float64(k.Period) * (1 - float64(k.Spread)))
}

func (c *checker) checkLife(p Pos, start, stop olaf.Duration) {
	if start < 0 || stop < 0 || stop != 0 && stop <= start {
		c.addError(p, "stop", "start %v and stop %v: the stop must come after the start", start, stop)
	}
}

func (c *checker) checkBackground() {
	for i := range c.t.Background {
		b := &c.t.Background[i]
		c.checkNode(b.Pos, "at", b.At, "switch")
		c.checkNode(b.Pos, "to", b.To, "server")
		c.checkRate(b.Pos, "rate", b.Rate, false)
		c.checkLife(b.Pos, b.Start, b.Stop)
		if b.Size <= 0 || b.Size > olaf.MaxFrame {
			c.addError(b.Pos, "size", "size is %v; a frame has 1B to %v", b.Size, olaf.MaxFrame)
		}
	}
	for i := range c.t.Routes {
		r := &c.t.Routes[i]
		c.checkNode(r.Pos, "at", r.At, "switch")
		c.checkNode(r.Pos, "to", r.To, "server")
		c.checkNode(r.Pos, "via", r.Via, "")
		if !c.hasLink(r.At, r.Via) {
			c.addError(r.Pos, "via", "there is no link %s–%s for the route to %s", r.At, r.Via, r.To)
		}
	}
}

func (c *checker) hasLink(a, b string) bool {
	return slices.ContainsFunc(c.t.Links, func(l Link) bool {
		return l.From == a && l.To == b || l.From == b &&
			l.To == a
	})
}

func (c *checker) checkSchedule() {
	for i := range c.t.Schedule {
		s := &c.t.Schedule[i]
		if !c.hasLink(s.From, s.To) {
			c.addError(s.Pos, "from", "there is no link %s–%s to change", s.From, s.To)
		}
		if s.At < 0 {
			c.addError(s.Pos, "at", "at is %v; it must not be negative", s.At)
		}
		c.checkRate(s.Pos, "rate", s.Rate, s.Link != "")
	}
}

// Open is the mode of open-loop workers on switches that add.
const Open = "open"

// station is a switch with workers and a program: it adds their updates before they reach a port, and forwards packets
// from other switches.
type station struct {
	closedloop.Switch
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
