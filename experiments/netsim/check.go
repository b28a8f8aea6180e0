package netsim

import (
	"errors"
	"fmt"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/yamlfile"
	"github.com/olafctl/olaf/fpga/engine"
)

// Limits of a topology: what the types hold, and what keeps integer picoseconds exact.
const (
	maxClusterID  = 1<<16 - 1
	maxPerCluster = 1 << 16
	maxWorkers    = 1 << 24
	maxNodes      = 1 << 16
	maxOverhead   = 1 << 16
	maxSimulated  = 40 * 24 * olaf.Hour
)

// checker collects what is wrong with a topology.
type checker struct {
	t    *Topology
	errs []error
	kind map[string]string // node name → switch or server
}

func (c *checker) fail(p Pos, key, format string, args ...any) {
	if len(c.errs) < yamlfile.MaxErrors {
		c.errs = append(c.errs, &Error{c.t.File, p.Of(key), fmt.Sprintf(format, args...)})
	}
}

// Check says what is wrong with t before anything runs; every error matches ErrTopology and names file, line and fix.
func (t *Topology) Check() error {
	c := &checker{t: t, kind: map[string]string{}}
	c.general()
	c.waiting()
	c.program()
	c.nodes()
	c.links()
	c.clusters()
	c.background()
	c.schedule()
	if len(c.errs) > 0 {
		return errors.Join(c.errs...)
	}
	return nil
}

func (c *checker) general() {
	t := c.t
	if t.Duration <= 0 {
		c.fail(t.Pos, "duration", "duration is %v; give the time to measure, such as duration: 60s", t.Duration)
	}
	if t.Warmup < 0 {
		c.fail(t.Pos, "warmup", "warmup is %v; it must not be negative", t.Warmup)
	}
	if t.Duration > maxSimulated || t.Warmup > maxSimulated {
		c.fail(t.Pos, "duration", "duration %v exceeds virtual time; at most %v", t.Duration, maxSimulated)
	}
	if t.Update < olaf.HeaderBytes || t.Update > olaf.MaxFrame || (t.Update-olaf.HeaderBytes)%olaf.LaneBytes != 0 {
		c.fail(t.Pos, "update", "update is %v; a frame has %d bytes of headers and whole lanes of %d bytes, at most %v in all, such as 1000B",
			t.Update, olaf.HeaderBytes, olaf.LaneBytes, olaf.MaxFrame)
	}
	c.queue(t.Pos, t.Queue, true)
	if t.Control.Enabled && t.Control.Threshold <= 0 {
		c.fail(t.Control.Pos, "threshold", "transmission_control.threshold is %v; it must be positive, such as 50ms", t.Control.Threshold)
	}
	if t.Control.Window < 0 {
		c.fail(t.Control.Pos, "window", "transmission_control.window is %v; it must not be negative", t.Control.Window)
	}
}

func (c *checker) queue(p Pos, name string, needed bool) {
	if name == "" && !needed || slices.Contains(engine.DisciplineNames(), name) {
		return
	}
	c.fail(p, "queue", "queue %q is not known%s", name, yamlfile.Suggest(name, engine.DisciplineNames()))
}

// queues looks at what the queues of a switch are built as.
func (c *checker) queues(s *Switch) {
	c.queue(s.Pos, s.Queue, false)
	if s.Slots < 1 || s.Slots > engine.MaxSlots {
		c.fail(s.Pos, "slots", "switch %q has %d slots; a queue holds 1 to %d updates", s.Name, s.Slots, engine.MaxSlots)
	}
	if s.Bypass < 0 || s.Bypass > engine.MaxBypassSlots {
		c.fail(s.Pos, "bypass_slots", "switch %q has bypass_slots %d; 0 (64) to %d", s.Name, s.Bypass, engine.MaxBypassSlots)
	}
	if s.Profile == "" {
		return
	}
	if err := engine.Profile(s.Profile).Validate(); err != nil {
		c.fail(s.Pos, "profile", "switch %q: %v", s.Name, err)
	} else if c.t.Timing == NS3 && engine.Profile(s.Profile).ReadPorts() != 0 {
		c.fail(s.Pos, "profile", "switch %q: profile %s counts cycles of the logic, which ns-3's timing has not; use ideal", s.Name, s.Profile)
	}
}

func (c *checker) nodes() {
	add := func(p Pos, name, kind string) {
		switch {
		case name == "":
			c.fail(p, "name", "a %s has no name", kind)
		case c.kind[name] != "":
			c.fail(p, "name", "the name %q is used twice; rename one", name)
		}
		c.kind[name] = kind
	}
	for i := range c.t.Switches {
		s := &c.t.Switches[i]
		add(s.Pos, s.Name, "switch")
		c.queues(s)
	}
	for i := range c.t.Servers {
		s := &c.t.Servers[i]
		add(s.Pos, s.Name, "server")
		if s.Processing < 0 {
			c.fail(s.Pos, "processing", "server %q has processing %v; it must not be negative", s.Name, s.Processing)
		}
	}
	if len(c.t.Servers) == 0 {
		c.fail(c.t.Pos, "servers", "there is no parameter server; add servers: [{name: ps}] and a link to it")
	}
	if len(c.t.Switches) == 0 {
		c.fail(c.t.Pos, "switches", "there is no switch; workers reach a server through at least one")
	}
	if len(c.kind) > maxNodes {
		c.fail(c.t.Pos, "switches", "there are %d nodes; at most %d", len(c.kind), maxNodes)
	}
}

// node refuses an unknown name or one of another kind; an empty kind accepts both.
func (c *checker) node(p Pos, key, name, kind string) {
	have := c.kind[name]
	if have == "" {
		var names []string
		for n := range c.kind {
			names = append(names, n)
		}
		slices.Sort(names)
		c.fail(p, key, "%s names the unknown node %q%s", key, name, yamlfile.Suggest(name, names))
	} else if kind != "" && have != kind {
		c.fail(p, key, "%s names %q, which is a %s; it must be a %s", key, name, have, kind)
	}
}

func (c *checker) links() {
	seen := map[[2]string]bool{}
	for i := range c.t.Links {
		l := &c.t.Links[i]
		c.node(l.Pos, "from", l.From, "")
		c.node(l.Pos, "to", l.To, "")
		if l.From == l.To || c.kind[l.From] == "server" && c.kind[l.To] == "server" {
			c.fail(l.Pos, "to", "the link %s–%s must join a switch and another node", l.From, l.To)
		}
		if seen[[2]string{l.From, l.To}] || seen[[2]string{l.To, l.From}] {
			c.fail(l.Pos, "from", "the link %s–%s is there twice; remove one", l.From, l.To)
		}
		seen[[2]string{l.From, l.To}] = true
		c.rate(l.Pos, "rate", l.Rate, false)
		c.rate(l.Pos, "ack_rate", l.AckRate, true)
		if l.AckSlots < 0 || l.AckSlots > 0 && l.AckRate == 0 {
			c.fail(l.Pos, "ack_slots", "ack_slots is %d; it must be 1 or more, beside an ack_rate that ACKs wait for", l.AckSlots)
		}
		c.wire(l.Pos, l.Delay, l.Overhead, l.Loss)
	}
}

func (c *checker) rate(p Pos, key string, r olaf.Rate, optional bool) {
	if r < 0 || r == 0 && !optional {
		c.fail(p, key, "%s is %v; it must be positive, such as 1Gbps", key, r)
	}
}

func (c *checker) wire(p Pos, delay olaf.Duration, overhead olaf.Size, loss float64) {
	if delay < 0 || delay > olaf.Hour {
		c.fail(p, "delay", "delay is %v; it must be 0s to %v", delay, olaf.Hour)
	}
	if overhead < 0 || overhead > maxOverhead {
		c.fail(p, "overhead", "overhead is %v; it must be 0B to %dB", overhead, maxOverhead)
	}
	c.loss(p, loss)
}

func (c *checker) loss(p Pos, share float64) {
	if !(share >= 0 && share <= 1) {
		c.fail(p, "loss", "a loss of %g; it must be 0 to 1", share)
	}
}

func (c *checker) clusters() {
	if len(c.t.Clusters) == 0 {
		c.fail(c.t.Pos, "clusters", "there are no clusters; add clusters: with id, workers, at and period")
	}
	owner := map[int]*Clusters{}
	workers := 0
	for i := range c.t.Clusters {
		k := &c.t.Clusters[i]
		c.cluster(k)
		workers += k.count() * max(k.Workers, 0)
		for id := k.ID; id < k.ID+k.count() && id <= maxClusterID; id++ {
			if first := owner[id]; first != nil {
				c.fail(k.Pos, "id", "cluster id %d is already used by the clusters of line %d; give these other ids", id, first.Line)
				break
			}
			owner[id] = k
		}
	}
	if workers > maxWorkers {
		c.fail(c.t.Pos, "clusters", "there are %d workers; at most %d", workers, maxWorkers)
	}
}

func (k *Clusters) count() int { return max(k.Count, 1) }

// allGroups is the row of all groups together in reports.
const allGroups = "all"

func (c *checker) cluster(k *Clusters) {
	if k.Group == allGroups {
		c.fail(k.Pos, "group", "a group can't be called %s, which is the name of the total in reports; give it another one", allGroups)
	}
	if k.Count < 0 || k.ID < 0 || k.ID+k.count()-1 > maxClusterID {
		c.fail(k.Pos, "id", "cluster ids %d to %d do not fit 0 to %d", k.ID, k.ID+k.count()-1, maxClusterID)
	}
	if k.Workers < 1 || k.Workers > maxPerCluster {
		c.fail(k.Pos, "workers", "workers is %d; a cluster has 1 to %d", k.Workers, maxPerCluster)
	}
	if len(k.At) == 0 {
		c.fail(k.Pos, "at", "at is missing; name the switch that the workers hang on")
	}
	for _, name := range k.At {
		c.node(k.Pos, "at", name, "switch")
	}
	switch {
	case k.Server != "":
		c.node(k.Pos, "server", k.Server, "server")
	case len(c.t.Servers) > 1:
		c.fail(k.Pos, "server", "server is missing; name one of the %d", len(c.t.Servers))
	}
	c.rate(k.Access.Pos, "rate", k.Access.Rate, true)
	c.wire(k.Access.Pos, k.Access.Delay, k.Access.Overhead, k.Access.Loss)
	c.life(k.Pos, k.Start, k.Stop)
	if c.t.Sends != "" || c.t.sends != nil {
		return // the file says when
	}
	if k.Period <= 0 {
		c.fail(k.Pos, "period", "period is %v; it must be positive, such as 100ms", k.Period)
		return
	}
	if k.Jitter < 0 || k.Jitter > k.Period {
		c.fail(k.Pos, "jitter", "jitter is %v; it must be 0s to the period, %v, so that updates keep their order", k.Jitter, k.Period)
	}
	if k.Access.Rate > 0 {
		if tx := k.Access.Rate.TimeToSend(c.t.Update + k.Access.Overhead); k.shortest() < tx {
			c.fail(k.Pos, "period", "period %v is below one transmission on the access link, %v; use a longer period or a faster link", k.shortest(), tx)
		}
	}
}

// shortest is the least period any worker of k may have.
func (k *Clusters) shortest() olaf.Duration {
	return olaf.Duration(float64(k.Period) * (1 - float64(k.Spread)))
}

func (c *checker) life(p Pos, start, stop olaf.Duration) {
	if start < 0 || stop < 0 || stop != 0 && stop <= start {
		c.fail(p, "stop", "start %v and stop %v: the stop must come after the start", start, stop)
	}
}

func (c *checker) background() {
	for i := range c.t.Background {
		b := &c.t.Background[i]
		c.node(b.Pos, "at", b.At, "switch")
		c.node(b.Pos, "to", b.To, "server")
		c.rate(b.Pos, "rate", b.Rate, false)
		c.life(b.Pos, b.Start, b.Stop)
		if b.Size <= 0 || b.Size > olaf.MaxFrame {
			c.fail(b.Pos, "size", "size is %v; a frame has 1B to %v", b.Size, olaf.MaxFrame)
		}
	}
	for i := range c.t.Routes {
		r := &c.t.Routes[i]
		c.node(r.Pos, "at", r.At, "switch")
		c.node(r.Pos, "to", r.To, "server")
		c.node(r.Pos, "via", r.Via, "")
		if !c.linked(r.At, r.Via) {
			c.fail(r.Pos, "via", "there is no link %s–%s for the route to %s", r.At, r.Via, r.To)
		}
	}
}

func (c *checker) linked(a, b string) bool {
	return slices.ContainsFunc(c.t.Links, func(l Link) bool { return l.From == a && l.To == b || l.From == b && l.To == a })
}

func (c *checker) schedule() {
	for i := range c.t.Schedule {
		s := &c.t.Schedule[i]
		if !c.linked(s.From, s.To) {
			c.fail(s.Pos, "from", "there is no link %s–%s to change", s.From, s.To)
		}
		if s.At < 0 {
			c.fail(s.Pos, "at", "at is %v; it must not be negative", s.At)
		}
		c.rate(s.Pos, "rate", s.Rate, s.Link != "")
	}
}
