package lab

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/olafctl/olaf"
)

// Plan is a completely specified testbed. Nodes and cables are identified by their index.
type Plan struct {
	Name      string         `json:"name"`
	Job       olaf.ClusterID `json:"job"`
	Lanes     int            `json:"lanes"`
	Fragments int            `json:"fragments"`
	Group     int            `json:"group"` // packets that are acknowledged together
	Nodes     []PlannedNode  `json:"nodes"`
	Cables    []PlannedCable `json:"cables"`
	Adders    []PlannedAdder `json:"adders"` // children before their parents
	Switch    *PlannedSwitch `json:"switch,omitempty"`
	Hosts     []PlannedHost  `json:"hosts,omitempty"` // hosts of nodes on other machines
}

// PlannedNode is a node with its position in the tree.
type PlannedNode struct {
	Name   string `json:"name"`
	Role   string `json:"role"`
	Number int    `json:"number"`              // among nodes of its role, from 0
	Up     int    `json:"up"`                  // cable towards the server; -1 for the server
	Down   []int  `json:"down"`                // cables from below
	Device string `json:"interface,omitempty"` // interface of this machine in front of it; empty for a namespace
	MAC    string `json:"mac,omitempty"`       // MAC address of the device behind the interface
	Host   string `json:"host,omitempty"`      // machine behind it
	// Virtual means that the interface is not a network card and may be removed with the testbed.
	Virtual bool `json:"virtual,omitempty"`
	// For a worker below a switch.
	Cluster int           `json:"cluster,omitempty"`
	Rate    olaf.Rate     `json:"rate,omitempty"` // offered rate
	TC      olaf.Duration `json:"tc,omitempty"`   // threshold of transmission control
}

// PlannedCable is a cable that connects a node to its parent.
type PlannedCable struct {
	Child  int          `json:"child"`
	Parent int          `json:"parent"`
	MTU    int          `json:"mtu"`
	Net    netip.Prefix `json:"net"`
	Lower  netip.Addr   `json:"lower"` // address of the child's end
	Upper  netip.Addr   `json:"upper"` // address of the parent's end
	// Ends are the interfaces of this machine that the cable connects, the child's and the parent's; nil for a virtual
	// cable.
	Ends *Ends `json:"interfaces,omitempty"`
}

// Ends names the two interfaces of this machine at the ends of a cable.
type Ends struct {
	Child  string `json:"child"`
	Parent string `json:"parent"`
	// Virtual means that the interfaces are not network cards and may be removed with the testbed.
	Virtual bool `json:"virtual,omitempty"`
	// ChildMAC and ParentMAC are the interfaces' hardware addresses, once they were read from the hosts.
	ChildMAC  string `json:"child_mac,omitempty"`
	ParentMAC string `json:"parent_mac,omitempty"`
}

// IsOnHosts reports whether the nodes are distributed over the hosts that the file describes and are built there.
func (p *Plan) IsOnHosts() bool {
	return slices.ContainsFunc(p.Nodes, func(n PlannedNode) bool { return n.Host != "" && n.Device == "" })
}

// InterfacesOn returns the names of a host's interfaces to which cables are connected.
func (p *Plan) InterfacesOn(host string) (names []string) {
	for i := range p.Cables {
		c := &p.Cables[i]
		if c.Ends != nil && p.Nodes[c.Child].Host == host {
			names = append(names, c.Ends.Child)
		}
		if c.Ends != nil && p.Nodes[c.Parent].Host == host {
			names = append(names, c.Ends.Parent)
		}
	}
	return names
}

// HostWire is a cable between two interfaces of this machine that connects a host to a switch.
type HostWire struct {
	Node      int    // node of the host: a worker or the server
	Host, Hub string // interfaces at the host's end and at the switch's
	Virtual   bool   // not network cards; may be removed with the testbed
}

// HostWires returns the cables between interfaces of this machine in a plan with a switch, in the order of the cables.
func (p *Plan) HostWires() (all []HostWire) {
	for i := range p.Cables {
		c := &p.Cables[i]
		switch {
		case c.Ends == nil:
		case c.Child == p.Switch.Node:
			all = append(all, HostWire{Node: c.Parent, Host: c.Ends.Parent, Hub: c.Ends.Child, Virtual: c.Ends.Virtual})
		default:
			all = append(all, HostWire{Node: c.Child, Host: c.Ends.Child, Hub: c.Ends.Parent, Virtual: c.Ends.Virtual})
		}
	}
	return all
}

// Interfaces returns the names of this machine's interfaces that a plan uses.
func (p *Plan) Interfaces() (names []string) {
	for i := range p.Nodes {
		if name := p.Nodes[i].Device; name != "" {
			names = append(names, name)
		}
	}
	for i := range p.Cables {
		if e := p.Cables[i].Ends; e != nil {
			names = append(names, e.Child, e.Parent)
		}
	}
	return names
}

// PlannedAdder is a program that aggregates at a node.
type PlannedAdder struct {
	Node     int       `json:"node"`
	Program  string    `json:"program"`
	Mode     string    `json:"mode"`
	Wrapping bool      `json:"wrapping"`
	Rate     olaf.Rate `json:"rate"` // divided among children; 0 for unlimited
}

// UpName is the name, within a namespace, of the interface towards the parent. Interfaces towards children have the
// children's names. An interface of this machine keeps its name.
const UpName = "up"

// endNames returns the names of the interfaces at the child's and the parent's end of a cable. If one end is on another
// machine, the name of the local end is returned for both.
func (p *Plan) endNames(cable int) (lower, upper string) {
	c := &p.Cables[cable]
	child, parent := &p.Nodes[c.Child], &p.Nodes[c.Parent]
	switch {
	case c.Ends != nil:
		return c.Ends.Child, c.Ends.Parent
	case child.Device != "":
		return UpName, child.Device
	case parent.Device != "":
		return parent.Device, child.Name
	}
	return UpName, child.Name
}

// Workers returns the worker nodes, in the order of their numbers.
func (p *Plan) Workers() (nodes []int) { return p.of(Worker) }

// Server returns the index of the server's node.
func (p *Plan) Server() int { return p.of(Server)[0] }

func (p *Plan) of(role string) (nodes []int) {
	for i := range p.Nodes {
		if p.Nodes[i].Role == role {
			nodes = append(nodes, i)
		}
	}
	return nodes
}

// Children returns the largest number of children that an aggregator in the plan has.
func (p *Plan) Children() (most int) {
	for i := range p.Adders {
		most = max(most, len(p.Nodes[p.Adders[i].Node].Down))
	}
	return most
}

// Below returns the numbers of the workers whose vectors pass through a node.
func (p *Plan) Below(node int) (workers []int) {
	if n := &p.Nodes[node]; n.Role == Worker {
		return []int{n.Number}
	}
	for _, c := range p.Nodes[node].Down {
		workers = append(workers, p.Below(p.Cables[c].Child)...)
	}
	return workers
}

// nets returns the networks of all cables below a node.
func (p *Plan) nets(node int) (nets []netip.Prefix) {
	for _, c := range p.Nodes[node].Down {
		nets = append(nets, p.Cables[c].Net)
		nets = append(nets, p.nets(p.Cables[c].Child)...)
	}
	return nets
}

// route is a route that a node needs in addition to the routes of its cables.
type route struct {
	to  netip.Prefix // the zero value is the default route
	via netip.Addr   // invalid for a group
	by  string       // interface
}

// Fanout returns the group address to which the server of a tree sends each result once. The aggregators copy these
// results to the workers. It returns the zero address if results must be sent to each worker, because a node is behind
// an interface or on another host.
func (p *Plan) Fanout() netip.Addr {
	if p.Switch != nil {
		return netip.Addr{}
	}
	for i := range p.Nodes {
		if p.Nodes[i].Device != "" || p.Nodes[i].Host != "" {
			return netip.Addr{}
		}
	}
	return netip.AddrFrom4([4]byte{239, 77, byte(p.Job >> 8), byte(p.Job)})
}

// routes returns the additional routes of a node. The default route leads up to the server; others lead down to nodes
// without a direct cable, and to the server's group.
func (p *Plan) routes(node int) (all []route) {
	n := &p.Nodes[node]
	if n.Up >= 0 {
		by, _ := p.endNames(n.Up)
		all = append(all, route{via: p.Cables[n.Up].Upper, by: by})
	}
	for _, c := range n.Down {
		_, by := p.endNames(c)
		for _, net := range p.nets(p.Cables[c].Child) {
			all = append(all, route{to: net, via: p.Cables[c].Lower, by: by})
		}
		if group := p.Fanout(); n.Role == Server && group.IsValid() {
			all = append(all, route{to: netip.PrefixFrom(group, group.BitLen()), by: by})
		}
	}
	return all
}

// Lines describes everything that is built, one item per line. Plans with equal lines describe the same testbed.
func (p *Plan) Lines() []string {
	var lines []string
	addLine := func(format string, a ...any) { lines = append(lines, fmt.Sprintf(format, a...)) }
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Device != "" {
			addLine("interface  %s, behind which %s %s is", n.Device, n.Role, n.Name)
			continue
		}
		on := ""
		if n.Host != "" {
			on = " on host " + n.Host
		}
		addLine("namespace  %s, %s%s", n.Name, n.Role, on)
	}
	for i := range p.Cables {
		c := &p.Cables[i]
		joins := ""
		if c.Ends != nil {
			joins = fmt.Sprintf(", that of interfaces %s and %s", c.Ends.Child, c.Ends.Parent)
		}
		addLine("cable      %s %v to %s %v, MTU %d%s", p.Nodes[c.Child].Name, c.Lower, p.Nodes[c.Parent].Name, c.Upper, c.MTU, joins)
	}
	for i := range p.Adders {
		a := &p.Adders[i]
		n := &p.Nodes[a.Node]
		divided := ""
		if a.Rate > 0 {
			divided = fmt.Sprintf(" that share %v", a.Rate)
		}
		addLine("program    %s at %s, %s, %s: job %d, %s of %d lanes in groups of %d, %s%s, up to %s", a.Program, n.Name, a.Mode, Arithmetic(a.Wrapping), p.Job,
			olaf.Plural(p.Fragments, "fragment"), p.Lanes, p.Group, childrenOf(len(n.Down)), divided, p.Nodes[p.Cables[n.Up].Parent].Name)
	}
	return slices.Concat(lines, p.queueLines(), p.listRemoteCommands())
}

// listRemoteCommands returns lines with the commands that must be run on a tree's hosts behind interfaces.
func (p *Plan) listRemoteCommands() (lines []string) {
	for i := range p.Nodes {
		if n := &p.Nodes[i]; p.Switch == nil && n.Device != "" {
			lines = append(lines, fmt.Sprintf("%-10s %s is started %s: %s", n.Role, n.Name, p.whereabouts(i), p.HostCommand(i)))
		}
	}
	return lines
}

// whereabouts returns a phrase for the machine of a node that is behind an interface.
func (p *Plan) whereabouts(node int) string {
	for _, h := range p.Hosts {
		if h.Name == p.Nodes[node].Host {
			return fmt.Sprintf("on host %s (ssh %s)", h.Name, h.SSH)
		}
	}
	return "where it is"
}

// HostCommand returns the command to run a worker or a server that is behind an interface. It lacks the number and the
// rate of a worker's vectors.
func (p *Plan) HostCommand(node int) string {
	args := p.treeArgs
	if p.Switch != nil {
		args = p.hostArgs
	}
	return "olafctl testbed " + strings.Join(args(node), " ")
}

// treeArgs returns the name and the arguments of the program that runs on a host in a tree.
func (p *Plan) treeArgs(node int) []string {
	n := &p.Nodes[node]
	at := func(a netip.Addr) string { return netip.AddrPortFrom(a, olaf.UDPPort).String() }
	common := []string{
		"--id", strconv.Itoa(int(p.Job)), "--workers", strconv.Itoa(len(p.Workers())), "--lanes", strconv.Itoa(p.Lanes), "--values", strconv.Itoa(p.Lanes * p.Fragments),
	}
	if n.Role == Worker {
		c := &p.Cables[n.Up]
		args := append([]string{"worker", "--worker", strconv.Itoa(n.Number), "--listen", at(c.Lower), "--aggregator", at(c.Upper)}, common...)
		if child := slices.Index(p.Nodes[c.Parent].Down, n.Up); child != n.Number {
			args = append(args, "--child", strconv.Itoa(child))
		}
		return args
	}
	c := &p.Cables[n.Down[0]]
	args := append([]string{"ps", "--listen", at(c.Upper), "--agent", at(c.Lower), "--group", strconv.Itoa(p.Group)}, common...)
	for _, w := range p.Workers() {
		args = append(args, "--worker", at(p.Cables[p.Nodes[w].Up].Lower))
	}
	return args
}

// LocalCables returns one line per cable between interfaces of this machine.
func (p *Plan) LocalCables() (lines []string) {
	for i := range p.Cables {
		if c := &p.Cables[i]; c.Ends != nil {
			lines = append(lines, fmt.Sprintf("the cable from %s to %s is that of interfaces %s and %s", p.Nodes[c.Child].Name, p.Nodes[c.Parent].Name, c.Ends.Child, c.Ends.Parent))
		}
	}
	return lines
}

func childrenOf(n int) string {
	if n == 1 {
		return "1 child"
	}
	return fmt.Sprintf("%d children", n)
}

// Arithmetic returns the word with which files describe the overflow behaviour of sums.
func Arithmetic(wrapping bool) string {
	if wrapping {
		return Wrapping
	}
	return Saturating
}

// Summary returns a description of the plan in one line.
func (p *Plan) Summary() string {
	between, modes := olaf.Plural(len(p.Adders), Aggregator), p.modes()
	if s := p.Switch; s != nil {
		between, modes = fmt.Sprintf("a switch of %s", s.System), "mode "+s.Mode
	}
	return fmt.Sprintf("%s: %s, %s, %s, a server, %s", p.Name, olaf.Plural(len(p.Workers()), Worker), between, olaf.Plural(len(p.Cables), "cable"), modes)
}

// modes returns a text with the modes of the programs, each listed once.
func (p *Plan) modes() string {
	var modes []string
	for i := range p.Adders {
		if m := p.Adders[i].Mode; len(modes) == 0 || modes[len(modes)-1] != m {
			modes = append(modes, m)
		}
	}
	return "mode " + strings.Join(modes, ", ")
}

// Difference returns the lines that a change from one plan to another removes (marked with -), adds (+) and keeps (two
// spaces).
func Difference(from, to []string) []string {
	had, wanted := map[string]bool{}, map[string]bool{}
	for _, l := range from {
		had[l] = true
	}
	for _, l := range to {
		wanted[l] = true
	}
	var lines []string
	for _, l := range from {
		if !wanted[l] {
			lines = append(lines, "- "+l)
		}
	}
	for _, l := range to {
		mark := "+ "
		if had[l] {
			mark = "  "
		}
		lines = append(lines, mark+l)
	}
	return lines
}
