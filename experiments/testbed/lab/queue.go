package lab

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/internal/yamlfile"
	"github.com/olafctl/olaf/pktgen"
)

// Queue is the short form for a testbed in which workers send to a switch with a queue.
type Queue struct {
	yamlfile.Pos `yaml:"-"`
	System       string        `yaml:"system"`
	Workers      int           `yaml:"workers"`
	Clusters     int           `yaml:"clusters"` // workers are spread evenly among them
	Slots        int           `yaml:"slots"`
	OutRate      olaf.Rate     `yaml:"out_rate"` // rate of the switch's output
	Rate         olaf.Rate     `yaml:"rate"`     // per worker; with 0 no workers are started
	TC           olaf.Duration `yaml:"tc"`       // threshold of transmission control; 0 sends every update
	Mode         string        `yaml:"mode"`
}

// PlannedSwitch is a switch that has a queue at its output.
type PlannedSwitch struct {
	Node     int       `json:"node"`
	System   string    `json:"system"`
	Mode     string    `json:"mode"`
	Slots    int       `json:"slots"`
	OutRate  olaf.Rate `json:"out_rate"`
	Clusters int       `json:"clusters"`
	// Frames is the number of frames per update; 0 means one. Each worker has as many addresses, and each frame's place
	// is a cluster with Slots slots.
	Frames int `json:"frames,omitempty"`
}

// frames returns the number of frames per update.
func (s *PlannedSwitch) frames() int { return max(s.Frames, 1) }

// Limits and defaults of a switch's queue.
const (
	MaxSlots       = 256
	MaxQueued      = MaxCables - 1 // workers
	MaxFrames      = 250           // frames per update
	DefaultSlots   = 8
	DefaultOutRate = 3 * olaf.Mbps
)

// queueMTU is the MTU of the cables at a queue. The longest frame that can be merged fits into it.
const queueMTU = olaf.HeaderBytes + olaf.LaneBytes*MaxLanes - 14

// systems returns the names of the systems whose queue can run in the kernel.
func systems() []string { return engine.DisciplineNames() }

// spread expands the short form of a queue into nodes, links and a device.
func (r *resolver) spread() {
	q := r.File.Queue
	if q == nil {
		return
	}
	clusters := q.Clusters
	if !q.Has("clusters") {
		clusters = 1
	}
	switch {
	case q.Workers < 1 || q.Workers > MaxQueued:
		r.Fail(q.Pos, "workers", "a queue has %d workers; use 1 to %d", q.Workers, MaxQueued)
		return
	case clusters < 1 || clusters > q.Workers:
		r.Fail(q.Pos, "clusters", "%s in %d clusters; every cluster needs one", olaf.Plural(q.Workers, Worker), clusters)
		return
	}
	copied := *r.File
	r.File = &copied
	placed := pktgen.Placement{Workers: q.Workers, Clusters: clusters}
	const hub, server = "s0", "ps"
	for w := range q.Workers {
		name := "w" + strconv.Itoa(w)
		copied.Nodes = append(copied.Nodes, Node{Pos: q.Pos, Name: name, Role: Worker, Cluster: int(placed.Cluster(w)), Rate: q.Rate, TC: q.TC})
		copied.Links = append(copied.Links, Link{Pos: q.Pos, Child: name, Parent: hub})
	}
	copied.Nodes = append(copied.Nodes, Node{Pos: q.Pos, Name: hub, Role: Switch}, Node{Pos: q.Pos, Name: server, Role: Server})
	copied.Links = append(copied.Links, Link{Pos: q.Pos, Child: hub, Parent: server})
	copied.Devices = append(copied.Devices, Device{Pos: q.Pos, Node: hub, Program: q.System, Mode: q.Mode, Slots: q.Slots, Rate: q.OutRate})
}

// queue sets defaults for the settings of a switch's queue.
func (r *resolver) queue() {
	switches := r.plan.of(Switch)
	if len(switches) == 0 {
		for i := range r.File.Nodes {
			if n := &r.File.Nodes[i]; n.Cluster != 0 || n.Rate != 0 || n.TC != 0 {
				r.Fail(n.Pos, "cluster", "node %s has a cluster, a rate or transmission control; these belong to workers below a node of role %s", n.Name, Switch)
			}
		}
		return
	}
	node := switches[0]
	at := r.File.Nodes[node].Pos
	if len(switches) > 1 || len(r.plan.of(Aggregator)) > 0 {
		r.Fail(at, "role", "there are %s and %s; a testbed has one switch, or aggregators", plural(len(switches), Switch), plural(len(r.plan.of(Aggregator)), Aggregator))
		return
	}
	s := &PlannedSwitch{Node: node, Mode: Native, Slots: DefaultSlots, OutRate: DefaultOutRate}
	for i := range r.File.Devices {
		r.settings(s, &r.File.Devices[i])
	}
	if s.System == "" {
		r.Fail(at, "name", "no queue is given at %s; add a device 'node: %[1]s, program: %s'", r.plan.Nodes[node].Name, strings.Join(systems(), " or "))
	}
	if j := &r.File.Job; j.Has("fragments") {
		if s.Frames = j.Fragments; s.Frames > MaxFrames {
			r.Fail(j.Pos, "fragments", "an update of %d frames; through a queue use 1 to %d", s.Frames, MaxFrames)
		}
	}
	r.plan.Switch = s
	r.clusters(s)
	r.hosts(s)
}

// inQueue maps the names of a device's fields to their names in a queue's short form, if they differ.
var inQueue = map[string]string{"program": "system", "rate": "out_rate"}

// settings copies the queue's settings from the file to the plan.
func (r *resolver) settings(s *PlannedSwitch, d *Device) {
	key := func(of string) string {
		if r.File.Queue != nil {
			return cmp.Or(inQueue[of], of)
		}
		return of
	}
	switch {
	case d.Node != r.plan.Nodes[s.Node].Name:
		r.Fail(d.Pos, "node", "%s queues nothing; the queue is at %s", d.Node, r.plan.Nodes[s.Node].Name)
		return
	case s.System != "":
		r.Fail(d.Pos, "node", "there are two devices at %s", d.Node)
	case !slices.Contains(systems(), d.Program):
		r.Fail(d.Pos, key("program"), "%s %q does not queue; there is %s", key("program"), d.Program, strings.Join(systems(), ", "))
	case d.Mode != "" && d.Mode != Native && d.Mode != Generic:
		r.Fail(d.Pos, "mode", "mode %q; use %s or %s", d.Mode, Native, Generic)
	case d.Arithmetic != "":
		r.Fail(d.Pos, "arithmetic", "a queue merges saturating; leave arithmetic out")
	case (d.Slots != 0 || d.Has("slots")) && (d.Slots < 1 || d.Slots > MaxSlots):
		r.Fail(d.Pos, "slots", "a queue of %d slots; use 1 to %d", d.Slots, MaxSlots)
	}
	s.System = d.Program
	if d.Mode != "" {
		s.Mode = d.Mode
	}
	if d.Slots > 0 {
		s.Slots = d.Slots
	}
	if d.Rate > 0 || d.Has(key("rate")) {
		s.OutRate = d.Rate
	}
	if _, err := engine.FromRate(s.OutRate); err != nil {
		r.Fail(d.Pos, key("rate"), "%v", err)
	}
}

// clusters checks that a worker's cluster follows from the worker's number. The server relies on this.
func (r *resolver) clusters(s *PlannedSwitch) {
	workers := r.plan.Workers()
	for _, node := range workers {
		s.Clusters = max(s.Clusters, r.File.Nodes[node].Cluster+1)
	}
	placed := pktgen.Placement{Workers: len(workers), Clusters: s.Clusters}
	for number, node := range workers {
		n, p := &r.File.Nodes[node], &r.plan.Nodes[node]
		if n.Cluster < 0 || s.Clusters > len(workers) || int(placed.Cluster(number)) != n.Cluster {
			r.Fail(n.Pos, "cluster", "worker %s is in cluster %d; with %s and %d clusters it must be %d: workers of a cluster stand next to each other, as many in each",
				n.Name, n.Cluster, olaf.Plural(len(workers), Worker), s.Clusters, placed.Cluster(number))
			return
		}
		if n.TC < 0 {
			r.Fail(n.Pos, "tc", "worker %s has a threshold of %v; use 0 or more", n.Name, n.TC)
		}
		p.Cluster, p.Rate, p.TC = n.Cluster, n.Rate, n.TC
	}
}

// hosts assigns to each host in a namespace the address that the switch expects.
func (r *resolver) hosts(s *PlannedSwitch) {
	for _, node := range r.plan.Workers() {
		if n := &r.File.Nodes[node]; n.Interface != "" && (n.Rate != 0 || n.TC != 0) {
			r.Fail(n.Pos, "rate", "worker %s is behind interface %s, where its own command line sets the rate; leave rate and tc out", n.Name, n.Interface)
		}
	}
	for i := range r.plan.Cables {
		c := &r.plan.Cables[i]
		if l := r.links[r.plan.Nodes[c.Child].Name]; l.Has("mtu") {
			r.Fail(l.Pos, "mtu", "cables around a queue carry what it merges, %d bytes, and interfaces what job.lanes take; leave mtu out", queueMTU)
		}
		if name := r.plan.Nodes[c.Child].Device; name != "" && s.frames() > 1 {
			r.Fail(r.File.Job.Pos, "fragments", "the worker behind %s has one address, and updates of %d frames need as many", name, s.Frames)
		}
		outside := r.plan.Nodes[c.Child].Device != "" || r.plan.Nodes[c.Parent].Device != ""
		if c.MTU = queueMTU; outside || c.Ends != nil {
			c.MTU = int(olaf.FrameSize(r.plan.Lanes)) - 14
		}
		if outside {
			continue
		}
		number := r.plan.Nodes[c.Child].Number
		if c.Child == s.Node {
			number = len(r.plan.Workers())
		}
		c.Net = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 78, byte(number), 0}), netBits)
		hub := c.Net.Addr().Next()
		if c.Upper, c.Lower = hub, hub.Next(); c.Child == s.Node {
			c.Upper, c.Lower = c.Lower, c.Upper
		}
	}
}

// queueLines returns lines that describe the queue and the workers.
func (p *Plan) queueLines() (lines []string) {
	s := p.Switch
	if s == nil {
		return nil
	}
	lines = append(lines, fmt.Sprintf("program    %s at %s, %s: %s, output %v, %s", s.System, p.Nodes[s.Node].Name, s.Mode, olaf.Plural(s.Slots, "slot"), s.OutRate, olaf.Plural(s.Clusters, "cluster")))
	for _, node := range p.Workers() {
		n := &p.Nodes[node]
		does := "sends nothing on its own"
		if n.Device != "" {
			does = "is started " + p.whereabouts(node) + ": " + p.HostCommand(node)
		}
		if n.Rate > 0 {
			does = fmt.Sprintf("offers %v in updates of %s", n.Rate, olaf.Plural(p.Lanes, "lane"))
			if s.frames() > 1 {
				does += fmt.Sprintf(" in each of %d frames", s.frames())
			}
		}
		if n.TC > 0 {
			does += fmt.Sprintf(", transmission control %v", n.TC)
		}
		lines = append(lines, fmt.Sprintf("worker     %s, of cluster %d, %s", n.Name, n.Cluster, does))
	}
	if n := &p.Nodes[p.Server()]; n.Device != "" {
		lines = append(lines, fmt.Sprintf("server     %s is started %s: %s", n.Name, p.whereabouts(p.Server()), p.HostCommand(p.Server())))
	}
	return lines
}

// hostArgs returns the name and the arguments of the program that runs on a host at a queue. They do not include the
// number and the rate of a worker's updates.
func (p *Plan) hostArgs(node int) []string {
	s := p.Switch
	at := func(a netip.Addr) string { return netip.AddrPortFrom(a, olaf.UDPPort).String() }
	server := at(p.Cables[p.Nodes[s.Node].Up].Upper)
	common := []string{"--system", s.System, "--lanes", strconv.Itoa(p.Lanes)}
	if s.frames() > 1 {
		common = append(common, "--values", strconv.Itoa(p.Lanes*s.frames()))
	}
	if n := &p.Nodes[node]; n.Role == Worker {
		return append([]string{"worker", "--id", strconv.Itoa(n.Cluster), "--worker", strconv.Itoa(n.Number), "--listen", at(p.Cables[n.Up].Lower), "--server", server}, common...)
	}
	args := append([]string{"ps", "--id", "0", "--listen", server, "--clusters", strconv.Itoa(s.Clusters)}, common...)
	for _, w := range p.Workers() {
		args = append(args, "--worker", at(p.Cables[p.Nodes[w].Up].Lower))
	}
	return args
}

func plural(n int, noun string) string {
	if noun == Switch && n != 1 {
		return strconv.Itoa(n) + " switches"
	}
	return olaf.Plural(n, noun)
}
