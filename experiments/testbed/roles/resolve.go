package roles

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture/live"
	"github.com/olafctl/olaf/experiments/testbed/lab"
	"github.com/olafctl/olaf/internal/yamlfile"
)

// Plan is a completely specified testbed of roles. Roles that the file leaves out are nil.
type Plan struct {
	Name      string            `json:"name"`
	Hosts     []lab.PlannedHost `json:"hosts"` // by name, so that all reservations are made in one order
	Generator *Role             `json:"generator,omitempty"`
	Queue     *Role             `json:"queue"`
	Server    *Role             `json:"server,omitempty"`
	ClockBy   string            `json:"clock_by"`
	ClockNS   int64             `json:"clock_at_most_ns"` // 0 for any bound
	// Mirror is the interface of the server's host at which copies of the generator's frames arrive; nil without them.
	Mirror *Role     `json:"mirror,omitempty"`
	Nodes  *lab.Plan `json:"nodes,omitempty"` // for a testbed with nodes on several hosts, which has no roles

	isUp bool // holders on the hosts lend its devices
}

// Role is one role that a device or an interface of a host has.
type Role struct {
	Host      string      `json:"host"`
	Device    string      `json:"device,omitempty"`    // address without the host
	Interface string      `json:"interface,omitempty"` // interface of a server, or of a generator that acts as workers
	Port      int         `json:"port"`                // of a generator's card, or of a queue's card towards the server
	Stamps    live.Stamps `json:"stamps,omitempty"`
}

// Resource returns the name of the resource that the role uses on its host, which is the device or the interface.
func (r *Role) Resource() string { return cmp.Or(r.Device, r.Interface) }

// deviceAddress returns the address of the role's device on its host. An interface that acts as all workers also has
// such an address.
func (r *Role) deviceAddress() string {
	if r.Device == "" {
		return nicScheme + r.Interface
	}
	return r.Device
}

// nicScheme is the first part of the addresses of interfaces that act as all workers.
const nicScheme = "nic:"

// HostOf returns the host with the given name in the plan.
func (p *Plan) HostOf(name string) *lab.PlannedHost {
	i := slices.IndexFunc(p.Hosts, func(h lab.PlannedHost) bool { return h.Name == name })
	return &p.Hosts[i]
}

// Lines returns a description of the plan with one line per host, role, link and clock.
func (p *Plan) Lines() (lines []string) {
	addLine := func(format string, a ...any) { lines = append(lines, fmt.Sprintf(format, a...)) }
	for _, h := range p.Hosts {
		at := "this machine"
		if h.SSH != "" {
			at = "ssh " + h.SSH
		}
		if h.Binary != "" {
			at += ", " + h.Binary
		}
		if h.Sudo {
			at += ", as root"
		}
		addLine("host       %s, %s", h.Name, at)
	}
	if p.Nodes != nil {
		return append(lines, p.Nodes.Lines()...)
	}
	from := "the queue's own"
	if g := p.Generator; g != nil {
		from = fmt.Sprintf("%s of %s, port %d", g.Resource(), g.Host, g.Port)
		if g.Interface != "" { // it has one port
			from = fmt.Sprintf("all workers on interface %s of %s", g.Interface, g.Host)
		}
	}
	addLine("generator  %s", from)
	addLine("queue      %s of %s, port %d to the server", p.Queue.Device, p.Queue.Host, p.Queue.Port)
	if s := p.Server; s != nil {
		addLine("server     interface %s of %s, stamps %s", s.Interface, s.Host, s.Stamps)
	}
	addLine("clocks     %s", p.DescribeClocks())
	return lines
}

// DescribeClocks describes how the clocks of generator and server are compared.
func (p *Plan) DescribeClocks() string {
	how := "by " + p.ClockBy
	if p.ClockNS > 0 {
		how += fmt.Sprintf(", at most %v", olaf.Duration(p.ClockNS)*olaf.Nanosecond)
	}
	switch {
	case p.Mirror != nil:
		how += fmt.Sprintf(", copies of the generator's frames at %s of %s", p.Mirror.Interface, p.Mirror.Host)
	case p.ClockBy == lab.ByProbe:
		how += ", frames past the queue in each bench; ages are above the fastest path"
	}
	return how
}

// roleResolver checks a testbed file with roles and collects its errors.
type roleResolver struct {
	lab.Checks
	roles *Plan
	pos   map[string]yamlfile.Pos // positions of the file's roles, by name
}

// ResolveRoles returns a plan in which every field that a file with roles leaves open is set. The error matches ErrFile
// and lists several mistakes with their lines.
func ResolveRoles(f *lab.File) (*Plan, error) {
	r := &roleResolver{Checks: lab.Checks{File: f}, roles: &Plan{Name: f.TestbedName()}, pos: map[string]yamlfile.Pos{}}
	for _, step := range []func(){r.checkForm, r.checkHosts, r.checkRoles, r.checkResources, r.checkLinks, r.checkClock} {
		if step(); len(r.Errs) > 0 {
			return nil, errors.Join(r.Errs...)
		}
	}
	return r.roles, nil
}

// ResolveHosts returns the plan of a testbed whose roles or nodes are on the hosts in its file. It returns nil if the
// nodes are on this machine. The error matches ErrFile.
func ResolveHosts(f *lab.File) (*Plan, error) {
	if f.Roles != nil {
		return ResolveRoles(f)
	}
	p, err := f.Resolve()
	if err != nil || !p.IsOnHosts() {
		return nil, err
	}
	return &Plan{Name: p.Name, Hosts: p.Hosts, ClockBy: lab.ByEcho, Nodes: p}, nil
}

// checkForm rejects fields that belong to other kinds of testbeds.
func (r *roleResolver) checkForm() {
	f := r.File
	if !lab.IsTestbedName(r.roles.Name) {
		r.Fail(f.Pos, "name", "the testbed has the name %q; give it one of at most 64 letters, digits, - and _", r.roles.Name)
	}
	if f.Roles == nil {
		r.Fail(f.Pos, "", "there are no roles; write 'roles:' with a queue and a server, or see 'olafctl testbed init'")
		return
	}
	for _, key := range []string{"tree", "queue", "nodes", "devices", "job"} {
		if f.Has(key) {
			r.Fail(f.Pos, key, "%s belongs to a testbed of nodes; a file has either roles or nodes", key)
		}
	}
}

// checkHosts checks the hosts of a file with roles and adds them to the plan.
func (r *roleResolver) checkHosts() {
	if len(r.File.Hosts) == 0 {
		r.Fail(r.File.Pos, "hosts", "there are no hosts; write 'hosts: {here: {}}' for this machine")
	}
	r.roles.Hosts = r.PlanHosts()
}

// checkHost adds a role to its host. It rejects an unknown host.
func (r *roleResolver) checkHost(at yamlfile.Pos, role, host string) {
	r.pos[role] = at
	i := slices.IndexFunc(r.roles.Hosts, func(h lab.PlannedHost) bool { return h.Name == host })
	if i < 0 {
		r.Fail(at, "host", "the %s is on host %q, which the file does not describe%s", role, host,
			yamlfile.Suggest(host, r.File.HostNames()))
		return
	}
	r.roles.Hosts[i].Roles = append(r.roles.Hosts[i].Roles, role)
}

// checkRoles checks the roles and adds them to the plan.
func (r *roleResolver) checkRoles() {
	if g := r.File.Roles.Generator; g != nil {
		r.checkHost(g.Pos, lab.Generator, g.Host)
		r.roles.Generator = &Role{Host: g.Host, Device: g.Device, Interface: g.NIC, Port: g.Port}
		switch {
		case (g.Device == "") == (g.NIC == ""):
			r.Fail(g.Pos, "device", "the generator has the device %q and the nic %q; give one of them", g.Device, g.NIC)
		case g.NIC != "" && g.Has("port"):
			r.Fail(g.Pos, "port", "the generator plays workers on interface %s; port belongs to a card", g.NIC)
		}
	}
	q := r.File.Roles.Queue
	if q == nil {
		r.Fail(r.File.Roles.Pos, lab.QueueName, "there is no queue; write 'queue: {host: …, device: …}'")
		return
	}
	r.checkHost(q.Pos, lab.QueueName, q.Host)
	r.roles.Queue = &Role{Host: q.Host, Device: q.Device, Port: q.ServerPort}
	if q.Device == "" {
		r.Fail(q.Pos, "device", "the queue has no device; write one, such as \"pci:0000:3b:00.0\"")
	}
	if s := r.File.Roles.Server; s != nil {
		r.checkHost(s.Pos, lab.Server, s.Host)
		p := &Role{Host: s.Host, Interface: s.Interface}
		r.roles.Server = p
		if s.Interface == "" {
			r.Fail(s.Pos, "interface", "the server has no interface; name the one behind which the queue's cable ends")
		}
		if err := p.Stamps.Set(cmp.Or(s.Stamps, string(live.Auto))); err != nil {
			r.Fail(s.Pos, "stamps", "the server's stamps: %v", err)
		}
	}
}

// checkResources rejects devices and interfaces that are impossible or used twice, and hosts without a role.
func (r *roleResolver) checkResources() {
	taken := map[string]string{}
	for _, role := range []struct {
		name string
		*Role
	}{{lab.Generator, r.roles.Generator}, {lab.QueueName, r.roles.Queue}, {lab.Server, r.roles.Server}} {
		if role.Role == nil {
			continue
		}
		at := r.pos[role.name]
		if role.Interface != "" {
			r.CheckInterface(at, map[string]string{lab.Generator: "nic", lab.Server: "interface"}[role.name], role.Interface)
		}
		if in, out, isPair := cutInterfaces(role.Device); isPair {
			r.checkBetween(at, role.Role, in, out)
		}
		if scheme, _, found := strings.Cut(role.Device, ":"); role.Device != "" {
			switch {
			case !found:
				r.Fail(at, "device", "the %s's device %q has no scheme; write it as for -d, such as twin: or pci:0000:3b:00.0", role.name, role.Device)
			case scheme == "ssh" || scheme == "testbed":
				r.Fail(at, "device", "the %s's device %q is not on one host; describe the host in hosts, and write its device here", role.name, role.Device)
			case strings.ContainsAny(role.Device, " \t\n"):
				r.Fail(at, "device", "the %s's device %q has a space", role.name, role.Device)
			}
		}
		_, name, _ := strings.Cut(role.Device, ":")
		if role.Device != "" && name == "" { // made for the testbed, so that there can be several
			continue
		}
		what := fmt.Sprintf("%s of host %s", role.Resource(), role.Host)
		if other := taken[what]; other != "" {
			r.Fail(at, "", "%s is both %s and %s; a card or interface has one role (without a generator, the queue's own sends)", what, other, role.name)
		}
		taken[what] = role.name
	}
	for _, h := range r.roles.Hosts {
		if len(h.Roles) == 0 && len(r.Errs) == 0 {
			r.Fail(r.File.Hosts[h.Name].Pos, "", "host %s has no role; give it one, or leave it out", h.Name)
		}
	}
}

// cutInterfaces returns the two interfaces in the address of a kernel queue, which has the form xdp:IN,OUT or
// xdp:IN,OUT,MODE.
func cutInterfaces(device string) (in, out string, ok bool) {
	names, xdp := strings.CutPrefix(device, "xdp:")
	in, rest, ok := strings.Cut(names, ",")
	out, _, _ = strings.Cut(rest, ",")
	return in, out, xdp && ok
}

// checkBetween checks a kernel queue between two interfaces. The second interface leads to the server.
func (r *roleResolver) checkBetween(at yamlfile.Pos, role *Role, in, out string) {
	for _, name := range []string{in, out} {
		r.CheckInterface(at, "device", name)
		for _, other := range []*Role{r.roles.Generator, r.roles.Server} {
			if other != nil && other.Host == role.Host && other.Interface == name {
				r.Fail(at, "device", "interface %s of host %s is both the queue's and another role's; an interface has one role", name, role.Host)
			}
		}
	}
	switch {
	case in == "" || out == "" || in == out:
		r.Fail(at, "device", "the queue is between the interfaces %q and %q; name two of its host", in, out)
	case role != r.roles.Queue:
		r.Fail(at, "device", "the generator's device is a queue between interfaces %s and %s; use 'nic: %s'", in, out, out)
	case r.roles.Generator == nil:
		r.Fail(at, "device", "the queue between interfaces %s and %s has no generator; add one, such as 'generator: {host: …, nic: …}'", in, out)
	case r.roles.Server == nil:
		r.Fail(at, "device", "the queue between interfaces %s and %s has no server; add 'server: {host: …, interface: …}'", in, out)
	case at.Has("server_port") && role.Port != outPort:
		r.Fail(at, "server_port", "the queue's port to the server is interface %s; leave server_port out", out)
	}
	role.Port = outPort
}

// outPort is the port number of the second interface of a kernel queue between two interfaces. This interface leads to
// the server.
const outPort = 1

// checkLinks checks that the links lead from the generator to the queue and from the queue to the server. A file may
// leave out the links.
func (r *roleResolver) checkLinks() {
	has := map[string]bool{lab.Generator: r.roles.Generator != nil, lab.QueueName: true, lab.Server: r.roles.Server != nil}
	next := map[string]string{lab.Generator: lab.QueueName, lab.QueueName: lab.Server}
	laid := map[string]bool{}
	for i := range r.File.Links {
		l := &r.File.Links[i]
		ends := true
		for _, end := range [][2]string{{"from", l.From}, {"to", l.To}} {
			if !has[end[1]] {
				r.Fail(l.Pos, end[0], "a link leads %s %q, which is no role of this file%s", end[0], end[1],
					yamlfile.Suggest(end[1], slices.DeleteFunc([]string{lab.Generator, lab.QueueName, lab.Server}, func(n string) bool { return !has[n] })))
				ends = false
			}
		}
		switch {
		case !ends:
		case l.Child != "" || l.Parent != "" || l.MTU != 0 || l.Interfaces != nil || l.Virtual:
			r.Fail(l.Pos, "", "a link between roles has from and to; its other fields belong to a testbed of nodes")
		case next[l.From] != l.To:
			r.Fail(l.Pos, "to", "a link leads from %s to %s, where nothing is sent; links are from generator to queue and from queue to server", l.From, l.To)
		case laid[l.From]:
			r.Fail(l.Pos, "from", "two links lead from %s to %s", l.From, l.To)
		}
		laid[l.From] = true
	}
	for _, from := range []string{lab.Generator, lab.QueueName} {
		if to := next[from]; len(r.File.Links) > 0 && has[from] && has[to] && !laid[from] && len(r.Errs) == 0 {
			r.Fail(r.File.Pos, "links", "no link leads from %s to %s; add it, or leave all links out", from, to)
		}
	}
}

// checkClock sets how the clocks are compared.
func (r *roleResolver) checkClock() {
	r.roles.ClockBy = lab.ByEcho
	c := r.File.Clock
	if c == nil {
		return
	}
	r.roles.ClockBy = cmp.Or(c.By, lab.ByEcho)
	r.roles.ClockNS = int64(c.AtMost / olaf.Nanosecond)
	switch {
	case c.AtMost < 0 || c.AtMost == 0 && c.Has("at_most") || c.AtMost > 0 && c.AtMost < olaf.Nanosecond:
		r.Fail(c.Pos, "at_most", "clock.at_most is %v; use 1ns or more, or leave it out", c.AtMost)
	case r.roles.ClockBy == lab.ByEcho:
	case r.roles.ClockBy == lab.ByPTP && c.AtMost == 0:
		r.Fail(c.Pos, "by", "clock.by is ptp; state with at_most how far apart the clocks are, such as 200ns")
	case r.roles.ClockBy == lab.ByPTP:
	case r.roles.ClockBy == lab.ByMirror:
		r.checkMirror(c)
	case c.By == lab.ByProbe:
		r.checkProbe(c)
	default:
		r.Fail(c.Pos, "by", "clock.by %q%s", c.By, yamlfile.Suggest(c.By, lab.ClockMethods))
	}
	if c.Interface != "" && r.roles.ClockBy != lab.ByMirror {
		r.Fail(c.Pos, "interface", "clock.interface %s belongs to clock.by mirror, not to %s", c.Interface, r.roles.ClockBy)
	}
}

// checkProbe rejects roles between which no probe frame passes.
func (r *roleResolver) checkProbe(c *lab.Clock) {
	refuse := func(format string, a ...any) {
		r.Fail(c.Pos, "by", "clock.by probe: %s; use echo, or leave clock out", fmt.Sprintf(format, a...))
	}
	if r.roles.Server == nil {
		refuse("there is no server whose clock is compared with the generator's")
		return
	}
	for _, role := range []struct {
		name string
		*Role
	}{{lab.Generator, r.roles.Generator}, {lab.QueueName, r.roles.Queue}} {
		if role.Role == nil || role.Device == "" {
			continue
		}
		scheme, _, _ := strings.Cut(role.Device, ":")
		if _, _, isPair := cutInterfaces(role.Device); scheme != "pci" && !isPair {
			refuse("probe frames pass cards and kernel queues between two interfaces, but the %s is %s, which has no cables", role.name,
				role.Device)
		}
	}
}

// checkMirror checks and adds the interface at which copies of the generator's frames arrive.
func (r *roleResolver) checkMirror(c *lab.Clock) {
	g, q, s := r.roles.Generator, r.roles.Queue, r.roles.Server
	switch {
	case g == nil || s == nil:
		r.Fail(c.Pos, "by", "clock.by mirror takes a copy of the cable from a generator, at a server's host; add these roles, or use echo")
		return
	case c.AtMost != 0:
		r.Fail(c.Pos, "at_most", "clock.at_most is %v, and clock.by mirror compares no clocks; leave it out", c.AtMost)
	}
	m := &Role{Host: s.Host, Interface: cmp.Or(c.Interface, s.Interface), Stamps: s.Stamps}
	r.CheckInterface(c.Pos, "interface", m.Interface)
	in, out, _ := cutInterfaces(q.Device)
	for _, other := range []*Role{g, {Host: q.Host, Interface: in}, {Host: q.Host, Interface: out}} {
		if other.Host == m.Host && other.Interface == m.Interface {
			r.Fail(c.Pos, "interface", "interface %s of host %s is both another role's and the mirror's; give one that a switch mirrors the "+
				"generator's cable to", m.Interface, m.Host)
		}
	}
	switch {
	case m.Interface == s.Interface:
	case s.Stamps == live.Hardware:
		r.Fail(c.Pos, "interface", "the hardware clocks of %s and %s are two; use stamps: kernel, or mirror to the server's interface "+
			"(leave clock.interface out)", s.Interface, m.Interface)
	default:
		s.Stamps, m.Stamps = live.Kernel, live.Kernel // auto could choose different clocks
	}
	r.roles.Mirror = m
}

// hasSeparateMirror reports whether copies arrive at another interface than the server's frames.
func (p *Plan) hasSeparateMirror() bool {
	return p.Mirror != nil && p.Mirror.Interface != p.Server.Interface
}
