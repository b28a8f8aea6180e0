package netsim

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/netsim/tc"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/engine"
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

// Check checks t before anything runs. Every error matches ErrTopology. It names the file and the line, and suggests a
// fix.
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
	return errors.Join(c.errs...)
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
		c.addError(t.Pos, "duration", "duration %v exceeds virtual time; at most %v", t.Duration, maxSimulated)
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

// FiltersReward reports whether any queue in t has a reward filter. Networks with closed-loop workers or a switch
// program have none.
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

// checkSwitchQueue checks the queue settings of a switch.
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

// checkNode rejects a name that is unknown or belongs to a node of the wrong kind. An empty kind accepts both kinds of
// nodes.
func (c *checker) checkNode(p Pos, key, name, kind string) {
	have := c.kind[name]
	if have == "" {
		names := slices.Sorted(maps.Keys(c.kind))
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

// allGroups is the name of the row for all groups together in reports.
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
		return l.From == a && l.To == b || l.From == b && l.To == a
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

// Open is the name of the mode in which open-loop workers send to switches that add updates.
const Open = "open"

// addingSystem returns the system whose program the switches run. The error matches system.ErrUnknown.
func (t *Topology) addingSystem() (*system.System, error) { return t.systems.Adding().Find(t.Program) }

// AddUp makes the switches run the program of s, with open-loop workers. It sets H to the number of workers in the
// first cluster.
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

// checkProgram checks the settings of the switches' program, without building the network.
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

// eventsPerSecond is the number of events that one core simulates per second with a few thousand workers, rounded down.
const eventsPerSecond = 4e6

// EstimateEvents estimates the number of events in runs of t, from its rates and path lengths.
func (t *Topology) EstimateEvents() (float64, error) {
	n, err := buildNetwork(t)
	if err != nil {
		return 0, err
	}
	events := 3 * float64(len(t.sends))
	for i := range n.clusters {
		c := &n.clusters[i]
		if t.sends == nil {
			life := (t.Warmup + t.Duration).Seconds()
			events += 2 * float64(c.workers) * life / n.trees[c.tree].spec.Period.Seconds()
		}
	}
	for i := range t.Background {
		b := &t.Background[i]
		events += 4 * (t.Warmup + t.Duration).Seconds() * float64(b.Rate) / float64(b.Size.Bits())
	}
	for i := range n.ports {
		p := &n.ports[i]
		rate := float64(p.spec.Rate) / float64((t.Update + p.spec.Overhead).Bits()) // upper limit, in frames per second
		events += float64(3 * math.Min(rate*(t.Warmup+t.Duration).Seconds(), events))
	}
	return events, nil
}

// CheckPatience rejects simulations of t that would take more than ten minutes on one core. The error matches
// closedloop.ErrLong and contains the duration.
func (t *Topology) CheckPatience(runs int) error {
	events, err := t.EstimateEvents()
	if err != nil {
		return err
	}
	events *= float64(max(runs, 1))
	return closedloop.CheckDuration(events/eventsPerSecond, fmt.Sprintf("%.2g events", events), "shorten the duration")
}

// EstimateTraffic returns upper limits for one run: the number of updates that workers send, and the number of frames
// that the links to servers can deliver.
func (t *Topology) EstimateTraffic() (sent, delivered float64) {
	span := (t.Warmup + t.Duration).Seconds()
	sent = float64(len(t.sends))
	if t.sends == nil {
		for i := range t.Clusters {
			k := &t.Clusters[i]
			sent += float64(k.clusterCount()*k.Workers) * span / k.Period.Seconds()
		}
	}
	for _, l := range t.serverLinks() {
		delivered += float64(float64(l.Rate) / float64((t.Update + l.Overhead).Bits()) * span)
	}
	return sent, min(sent, delivered)
}
