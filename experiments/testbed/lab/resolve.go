package lab

import (
	"errors"
	"fmt"
	"math/bits"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program/xagg"
	"github.com/olafctl/olaf/internal/yamlfile"
)

// Limits of a testbed.
const (
	MaxCables    = 250 // each has a separate network
	MaxChildren  = 64  // bits of a bitmap
	MaxLanes     = 704 // in an unfragmented packet
	MaxNativeMTU = 3000
	MaxMTU       = 65535
	maxInterface = 15
	maxName      = 12      // an interface has the name of the node behind it, at most 15 letters
	maxModel     = 1 << 30 // bytes of a model
	MaxValues    = maxModel / olaf.LaneBytes
)

// Defaults of optional fields.
const (
	DefaultJob       = 1
	DefaultLanes     = 256
	DefaultFragments = 1024
	DefaultGroup     = 1024
	DefaultMTU       = 1500
)

// resolver converts a testbed file to a plan.
type resolver struct {
	Checks
	plan  *Plan
	nodes map[string]int
	links map[string]*Link // by child
}

// Resolve returns a plan in which every field that the file leaves open is set. The error matches ErrFile and lists
// several mistakes with their lines.
func (f *File) Resolve() (*Plan, error) {
	r := &resolver{Checks: Checks{File: f}, nodes: map[string]int{}, links: map[string]*Link{}, plan: &Plan{Name: f.TestbedName()}}
	for _, step := range []func(){r.general, r.expand, r.spread, r.name, r.connect, r.order, r.program, r.queue, r.checkNetworks, r.once, r.checkSpread} {
		step()
		if len(r.Errs) > 0 { // further checks would report the same mistake again
			return nil, errors.Join(r.Errs...)
		}
	}
	return r.plan, nil
}

func (r *resolver) general() {
	f, j := r.File, &r.File.Job
	if !IsTestbedName(r.plan.Name) {
		r.Fail(f.Pos, "name", "the testbed has the name %q; give it one of at most 64 letters, digits, - and _", r.plan.Name)
	}
	number := func(key string, given, otherwise, least, most int) int {
		if given == 0 && !j.Has(key) {
			return otherwise
		}
		if given < least || given > most {
			r.Fail(j.Pos, key, "job.%s is %d; use %d to %d", key, given, least, most)
		}
		return given
	}
	r.plan.Job = olaf.ClusterID(number("id", j.ID, DefaultJob, 0, 1023))
	r.plan.Lanes = number("lanes", j.Lanes, DefaultLanes, 1, MaxLanes)
	r.plan.Fragments = number("fragments", j.Fragments, DefaultFragments, 1, MaxValues)
	r.plan.Group = number("group", j.Group, DefaultGroup, 1, MaxValues)
	if r.plan.Group > 0 && bits.OnesCount(uint(r.plan.Group)) != 1 {
		r.Fail(j.Pos, "group", "job.group is %d; use a power of two", r.plan.Group)
	}
	if r.plan.Lanes*r.plan.Fragments > MaxValues {
		r.Fail(j.Pos, "fragments", "%d fragments of %d lanes take more than 1 GiB of the kernel's memory", r.plan.Fragments, r.plan.Lanes)
	}
	if f.Roles != nil {
		r.Fail(f.Pos, "roles", "the file describes roles on devices; use it as -d testbed:FILE, and with 'olafctl testbed'")
		return
	}
	if f.Clock != nil {
		r.Fail(f.Pos, "clock", "clock belongs to a testbed of roles")
	}
	forms := 0
	for _, given := range []bool{len(f.Nodes) > 0, f.Tree != nil, f.Queue != nil} {
		if given {
			forms++
		}
	}
	if forms != 1 {
		r.Fail(f.Pos, "tree", "write a tree, such as 'tree: {workers: 4, children: 4}', a queue, such as 'queue: {system: olaf, workers: 4}', or nodes with links; one of them")
	} else if len(f.Nodes) == 0 && (len(f.Links) > 0 || len(f.Devices) > 0) {
		r.Fail(f.Pos, "links", "a tree or queue implies its links and devices; leave them out, or write nodes instead")
	}
}

// expand expands the short form of a tree into nodes, links and devices.
func (r *resolver) expand() {
	f, t := r.File, r.File.Tree
	if t == nil {
		return
	}
	tree := r.grow(t)
	if tree == nil {
		return
	}
	copied := *f
	r.File = &copied
	add := func(name, role, parent string) {
		copied.Nodes = append(copied.Nodes, Node{Pos: t.Pos, Name: name, Role: role})
		if parent != "" {
			copied.Links = append(copied.Links, Link{Pos: t.Pos, Child: name, Parent: parent, MTU: t.MTU})
		}
		if role == Aggregator {
			copied.Devices = append(copied.Devices, Device{Pos: t.Pos, Node: name, Mode: t.Mode, Arithmetic: t.Arithmetic, Rate: t.Rate})
		}
	}
	const top = "s0" // the kernel before the parameter server is the tree's root
	above := func(node int) string {
		if node == xagg.Root {
			return top
		}
		return tree.Nodes[node].Server
	}
	parents := make([]string, t.Workers)
	for _, w := range tree.Workers {
		parents[w] = top
	}
	for i := range tree.Nodes {
		for _, w := range tree.Nodes[i].Workers {
			parents[w] = above(i)
		}
	}
	for w := range parents {
		add("w"+strconv.Itoa(w), Worker, parents[w])
	}
	for i := range tree.Nodes {
		add(tree.Nodes[i].Server, Aggregator, above(tree.Nodes[i].Parent))
	}
	add(top, Aggregator, "ps")
	add("ps", Server, "")
}

// grow returns the tree of aggregators that the file requests. It returns nil after an error.
func (r *resolver) grow(t *Tree) *xagg.Tree {
	children := t.Children
	if !t.Has("children") {
		children = MaxChildren
	}
	switch {
	case t.Workers < 1 || t.Workers > MaxCables/2:
		r.Fail(t.Pos, "workers", "a tree has %d workers; use 1 to %d", t.Workers, MaxCables/2)
		return nil
	case children < 2 || children > MaxChildren:
		r.Fail(t.Pos, "children", "a node of the tree has %d children; use 2 to %d", children, MaxChildren)
		return nil
	}
	workers, servers := make([]xagg.Worker, t.Workers), make([]xagg.Candidate, t.Workers)
	for i := range servers {
		servers[i] = xagg.Candidate{Name: "s" + strconv.Itoa(i+1), Idle: 1}
	}
	tree, err := xagg.BuildTree(children, workers, servers)
	if err != nil {
		r.Fail(t.Pos, "", "%v", err)
		return nil
	}
	return tree
}

// name checks the names and roles of the nodes and assigns numbers.
func (r *resolver) name() {
	numbers := map[string]int{}
	r.plan.Hosts = r.PlanHosts()
	for i := range r.File.Nodes {
		n := &r.File.Nodes[i]
		switch _, twice := r.nodes[n.Name]; {
		case !isName(n.Name, maxName) || n.Name == UpName || n.Name == "lo":
			r.Fail(n.Pos, "name", "a node has the name %q; give it one of at most %d letters, digits, - and _, other than %s and lo", n.Name, maxName, UpName)
		case twice:
			r.Fail(n.Pos, "name", "node %s is there twice; give one another name", n.Name)
			continue
		case !slices.Contains([]string{Worker, Aggregator, Switch, Server}, n.Role):
			r.Fail(n.Pos, "role", "node %s has the role %q; use %s, %s, %s or %s", n.Name, n.Role, Worker, Aggregator, Switch, Server)
		}
		r.outside(n)
		r.nodes[n.Name] = len(r.plan.Nodes)
		r.plan.Nodes = append(r.plan.Nodes, PlannedNode{Name: n.Name, Role: n.Role, Number: numbers[n.Role], Up: -1, Device: n.Interface, MAC: n.MAC, Virtual: n.Virtual, Host: n.Host})
		numbers[n.Role]++
	}
	if n := numbers[Server]; n != 1 {
		r.Fail(r.File.Pos, "nodes", "there are %d nodes of role %s; there must be one", n, Server)
	}
	if numbers[Worker] == 0 {
		r.Fail(r.File.Pos, "nodes", "there is no node of role %s", Worker)
	}
}

// checkNodeHost rejects a node on an unknown host.
func (r *resolver) checkNodeHost(n *Node) {
	if _, known := r.File.Hosts[n.Host]; n.Host != "" && !known {
		r.Fail(n.Pos, "host", "node %s is on host %q, which the file does not describe%s", n.Name, n.Host,
			yamlfile.Suggest(n.Host, r.File.HostNames()))
	}
}

// checkSpread checks a testbed whose nodes are on several hosts. Every node must be on a host, and cables between hosts
// must exist.
func (r *resolver) checkSpread() {
	if !r.plan.IsOnHosts() {
		return
	}
	for i := range r.plan.Nodes {
		n, at := &r.plan.Nodes[i], r.File.Nodes[i].Pos
		switch {
		case n.Device != "":
			r.Fail(at, "interface", "%s %s is behind interface %s, and other nodes are built on their hosts; give the interface in the link to it", n.Role, n.Name, n.Device)
		case n.Host == "":
			r.Fail(at, "name", "%s %s names no host, and other nodes do; a host without ssh is this machine", n.Role, n.Name)
		}
	}
	for i := range r.plan.Cables {
		c := &r.plan.Cables[i]
		child, parent := &r.plan.Nodes[c.Child], &r.plan.Nodes[c.Parent]
		if at := r.links[child.Name].Pos; child.Host != parent.Host && c.Ends == nil {
			r.Fail(at, "child", "the link from %s to %s leads from host %s to %s; give its interfaces: [that of %[3]s, that of %s]", child.Name, parent.Name,
				child.Host, parent.Host)
		}
	}
	for i := range r.plan.Hosts {
		h := &r.plan.Hosts[i]
		for k := range r.plan.Nodes {
			if n := &r.plan.Nodes[k]; n.Host == h.Name {
				h.Roles = append(h.Roles, n.Role+" "+n.Name)
			}
		}
		if len(h.Roles) == 0 {
			r.Fail(r.File.Hosts[h.Name].Pos, "", "host %s has no node; give it one, or leave it out", h.Name)
		}
	}
}

// outside checks a node that is behind an interface of this machine.
func (r *resolver) outside(n *Node) {
	if n.Interface == "" {
		r.checkNodeHost(n)
		if n.Address != "" || n.MAC != "" || n.Virtual {
			r.Fail(n.Pos, "address", "node %s is a namespace, whose addresses are chosen; address, mac and virtual belong to one with an interface", n.Name)
		}
		return
	}
	r.CheckInterface(n.Pos, "interface", n.Interface)
	r.checkNodeHost(n)
	if n.Role == Aggregator || n.Role == Switch {
		r.Fail(n.Pos, "interface", "%s %s is behind interface %s; aggregators and switches are namespaces here", n.Role, n.Name, n.Interface)
	}
	if a, err := netip.ParseAddr(n.Address); err != nil || !a.Is4() {
		r.Fail(n.Pos, "address", "node %s is behind interface %s; give its IPv4 address, not %q", n.Name, n.Interface, n.Address)
	}
	if _, err := net.ParseMAC(n.MAC); n.Role == Server && err != nil {
		r.Fail(n.Pos, "mac", "server %s is behind interface %s; give its MAC, not %q", n.Name, n.Interface, n.MAC)
	}
}

// find returns the index of the node with the given name. If there is none, it records an error.
func (r *resolver) find(at yamlfile.Pos, key, name string) (int, bool) {
	i, ok := r.nodes[name]
	if !ok {
		var names []string
		for i := range r.File.Nodes {
			names = append(names, r.File.Nodes[i].Name)
		}
		r.Fail(at, key, "%s %q is no node%s", key, name, yamlfile.Suggest(name, names))
	}
	return i, ok
}

// connect creates the cables for all links.
func (r *resolver) connect() {
	for i := range r.File.Links {
		l := &r.File.Links[i]
		if l.From != "" || l.To != "" {
			r.Fail(l.Pos, "from", "from and to belong to a link between roles; links of nodes have child and parent")
			continue
		}
		child, ok := r.find(l.Pos, "child", l.Child)
		parent, also := r.find(l.Pos, "parent", l.Parent)
		if !ok || !also {
			continue
		}
		r.link(l, child, parent)
	}
	if n := len(r.plan.Cables); n > MaxCables {
		r.Fail(r.File.Pos, "links", "there are %d cables; use at most %d", n, MaxCables)
	}
}

// link creates the cable for one link.
func (r *resolver) link(l *Link, child, parent int) {
	below, above := &r.plan.Nodes[child], &r.plan.Nodes[parent]
	switch {
	case below.Up >= 0:
		r.Fail(l.Pos, "child", "node %s has a second parent; it sends what it has to one", l.Child)
		return
	case below.Role == Server:
		r.Fail(l.Pos, "child", "server %s is the child of %s; sums end at a server", l.Child, l.Parent)
		return
	case above.Role == Worker || above.Role == Server && below.Role == Worker:
		r.Fail(l.Pos, "parent", "%s %s is the parent of %s %s; what a worker sends is added by an aggregator, or waits at a switch", above.Role, l.Parent, below.Role, l.Child)
		return
	case below.Role == Switch && above.Role != Server || above.Role == Switch && below.Role != Worker:
		r.Fail(l.Pos, "parent", "%s %s is the parent of %s %s; a switch is between workers and the server", above.Role, l.Parent, below.Role, l.Child)
		return
	}
	mtu := l.MTU
	if mtu == 0 && !l.Has("mtu") {
		mtu = DefaultMTU
	}
	if least := int(olaf.FrameSize(r.plan.Lanes)) - 14; above.Role != Switch && below.Role != Switch && mtu < least || mtu > MaxMTU {
		r.Fail(l.Pos, "mtu", "the cable from %s to %s has an MTU of %d; %d lanes take %d to %d", l.Child, l.Parent, mtu, r.plan.Lanes, least, MaxMTU)
	}
	at := len(r.plan.Cables)
	c := PlannedCable{Child: child, Parent: parent, MTU: mtu, Ends: r.ends(l, below, above)}
	switch {
	case below.Device != "":
		c.Lower, c.Upper = r.opposite(l.Child)
	case above.Device != "":
		c.Upper, c.Lower = r.opposite(l.Parent)
	default:
		c.Upper = netip.AddrFrom4([4]byte{10, 77, byte(at), 1})
		c.Lower = c.Upper.Next()
	}
	c.Net = netip.PrefixFrom(c.Upper, netBits).Masked()
	below.Up = at
	above.Down = append(above.Down, at)
	r.links[l.Child] = l
	r.plan.Cables = append(r.plan.Cables, c)
}

// ends returns the interfaces of this machine that a link connects. It returns nil for a virtual cable, and for a cable
// to a node on another machine.
func (r *resolver) ends(l *Link, below, above *PlannedNode) *Ends {
	if len(l.Interfaces) == 0 && !l.Has("interfaces") {
		if l.Virtual {
			r.Fail(l.Pos, "virtual", "the cable from %s to %s is made, and virtual in any case; virtual belongs to one with interfaces", l.Child, l.Parent)
		}
		return nil
	}
	if len(l.Interfaces) != 2 || l.Interfaces[0] == "" || l.Interfaces[1] == "" {
		r.Fail(l.Pos, "interfaces", "the cable from %s to %s joins the interfaces %q; give two of this machine, that of %[1]s first", l.Child, l.Parent, l.Interfaces)
		return nil
	}
	for _, n := range []*PlannedNode{below, above} {
		if n.Device != "" {
			r.Fail(l.Pos, "interfaces", "%s %s is behind interface %s by itself, and the cable from %s to %s joins two; say one of both", n.Role, n.Name, n.Device, l.Child, l.Parent)
			return nil
		}
	}
	for _, name := range l.Interfaces {
		r.CheckInterface(l.Pos, "interfaces", name)
	}
	return &Ends{Child: l.Interfaces[0], Parent: l.Interfaces[1], Virtual: l.Virtual}
}

// once rejects an interface that is used more than once.
func (r *resolver) once() {
	at := map[string]string{}
	take := func(pos yamlfile.Pos, key, host, name, where string) {
		if there := at[host+"/"+name]; there != "" {
			r.Fail(pos, key, "interface %s is %s, and %s; it can be taken once", name, there, where)
		}
		at[host+"/"+name] = where
	}
	for i := range r.plan.Nodes {
		if n := &r.plan.Nodes[i]; n.Device != "" {
			take(r.File.Nodes[i].Pos, "interface", "", n.Device, "that of "+n.Name)
		}
	}
	for i := range r.plan.Cables {
		c := &r.plan.Cables[i]
		if c.Ends == nil {
			continue
		}
		child, parent := &r.plan.Nodes[c.Child], &r.plan.Nodes[c.Parent]
		pos := r.links[child.Name].Pos
		take(pos, "interfaces", child.Host, c.Ends.Child, fmt.Sprintf("the end at %s of its cable to %s", child.Name, parent.Name))
		take(pos, "interfaces", parent.Host, c.Ends.Parent, fmt.Sprintf("the end at %s of its cable to %s", parent.Name, child.Name))
	}
}

// netBits is the prefix length of the network of a cable.
const netBits = 24

// opposite returns the address of a node behind an interface, and an address in the same network for the local end.
func (r *resolver) opposite(node string) (there, here netip.Addr) {
	there, _ = netip.ParseAddr(r.File.Nodes[r.nodes[node]].Address) // outside has checked it
	b := there.As4()
	if b[3] ^= 254; b[3] == 0 || b[3] == 255 {
		b[3] = 253
	}
	return there, netip.AddrFrom4(b)
}

// checkNetworks rejects interfaces whose networks overlap with another network, because a namespace would then have two
// routes to them.
func (r *resolver) checkNetworks() {
	for i := range r.plan.Nodes {
		n := &r.plan.Nodes[i]
		if n.Device == "" {
			continue
		}
		own := n.Up
		if own < 0 {
			own = n.Down[0]
		}
		for at := range r.plan.Cables {
			c := &r.plan.Cables[at]
			if at != own && c.Net.Overlaps(r.plan.Cables[own].Net) {
				r.Fail(r.File.Nodes[i].Pos, "address", "%s is behind interface %s in %v, and so is the cable from %s; give it a separate network", n.Name, n.Device, c.Net, r.plan.Nodes[c.Child].Name)
				break
			}
		}
	}
}

// order checks that the cables form a tree.
func (r *resolver) order() {
	for i := range r.plan.Nodes {
		n, at := &r.plan.Nodes[i], r.File.Nodes[i].Pos
		switch {
		case n.Role != Server && n.Up < 0:
			r.Fail(at, "name", "%s %s has no parent; add a link 'child: %s, parent: …'", n.Role, n.Name, n.Name)
		case n.Role != Worker && len(n.Down) == 0:
			r.Fail(at, "name", "%s %s has no children", n.Role, n.Name)
		case n.Role == Aggregator && len(n.Down) > MaxChildren:
			r.Fail(at, "name", "aggregator %s has %d children; its bitmap has bits for %d", n.Name, len(n.Down), MaxChildren)
		case n.Role == Server && len(n.Down) > 1:
			r.Fail(at, "name", "server %s has %d children; it gets whole sums, from one aggregator", n.Name, len(n.Down))
		case r.circular(i):
			r.Fail(at, "name", "%s %s is above itself; links must lead to the server", n.Role, n.Name)
		}
	}
}

func (r *resolver) circular(node int) bool {
	for steps := 0; r.plan.Nodes[node].Up >= 0; steps++ {
		if steps > len(r.plan.Nodes) {
			return true
		}
		node = r.plan.Cables[r.plan.Nodes[node].Up].Parent
	}
	return false
}

// program assigns the programs to the aggregators, beginning with the lowest.
func (r *resolver) program() {
	devices := map[int]*Device{}
	for i := range r.File.Devices {
		d := &r.File.Devices[i]
		node, ok := r.find(d.Pos, "node", d.Node)
		if !ok {
			continue
		}
		switch {
		case r.plan.Nodes[node].Role == Switch: // switches are handled below
			continue
		case devices[node] != nil:
			r.Fail(d.Pos, "node", "there are two devices at %s", d.Node)
		case r.plan.Nodes[node].Role != Aggregator:
			r.Fail(d.Pos, "node", "%s is a %s; programs are at aggregators and switches", d.Node, r.plan.Nodes[node].Role)
		case d.Program != "" && !slices.Contains(programs, d.Program):
			r.Fail(d.Pos, "program", "program %q does not add; there is %s, and %s at switches", d.Program, strings.Join(programs, ", "), strings.Join(systems(), ", "))
		case d.Has("slots"):
			r.Fail(d.Pos, "slots", "an aggregator stores a whole model; slots belong to a queue at a switch")
		case d.Mode != "" && d.Mode != Native && d.Mode != Generic:
			r.Fail(d.Pos, "mode", "mode %q; use %s or %s", d.Mode, Native, Generic)
		case d.Arithmetic != "" && d.Arithmetic != Saturating && d.Arithmetic != Wrapping:
			r.Fail(d.Pos, "arithmetic", "arithmetic %q; use %s or %s", d.Arithmetic, Saturating, Wrapping)
		}
		devices[node] = d
	}
	for _, node := range r.bottomUp() {
		a := PlannedAdder{Node: node, Program: programs[0], Mode: Native}
		if d := devices[node]; d != nil {
			if d.Mode != "" {
				a.Mode = d.Mode
			}
			a.Wrapping, a.Rate = d.Arithmetic == Wrapping, d.Rate
		}
		r.plan.Adders = append(r.plan.Adders, a)
	}
	r.modes(devices)
}

// bottomUp returns the aggregators in an order in which each comes before its parent.
func (r *resolver) bottomUp() (nodes []int) {
	var walk func(node int)
	walk = func(node int) {
		for _, c := range r.plan.Nodes[node].Down {
			walk(r.plan.Cables[c].Child)
		}
		if r.plan.Nodes[node].Role == Aggregator {
			nodes = append(nodes, node)
		}
	}
	walk(r.plan.Server())
	return nodes
}

// modes rejects plans in which frames would be lost without any error. This happens if the MTU of a cable is too large
// for native mode, or if a program redirects natively to a node that cannot receive such frames.
func (r *resolver) modes(devices map[int]*Device) {
	mode := map[int]string{}
	for i := range r.plan.Adders {
		mode[r.plan.Adders[i].Node] = r.plan.Adders[i].Mode
	}
	for i := range r.plan.Cables {
		c := &r.plan.Cables[i]
		child, parent := &r.plan.Nodes[c.Child], &r.plan.Nodes[c.Parent]
		at := r.links[child.Name].Pos
		if c.MTU > MaxNativeMTU && (mode[c.Child] == Native || mode[c.Parent] == Native) {
			r.Fail(at, "mtu", "the cable from %s to %s has an MTU of %d; mode native takes %d, mode generic more", child.Name, parent.Name, c.MTU, MaxNativeMTU)
		}
		if mode[c.Child] == Native && mode[c.Parent] == Generic {
			if d := devices[c.Parent]; d != nil {
				at = d.Pos
			}
			r.Fail(at, "mode", "%s is in mode generic and its child %s in mode native, whose frames it would silently lose; use one mode for both", parent.Name, child.Name)
		}
	}
}
