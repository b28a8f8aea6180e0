package lab

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture/live"
	"github.com/olafctl/olaf/internal/yamlfile"
)

// Host is a machine that a testbed uses, as described in its file.
type Host struct {
	yamlfile.Pos `yaml:"-"`
	SSH          string `yaml:"ssh"`    // destination for ssh, [user@]host[:port]; empty for this machine
	Binary       string `yaml:"binary"` // path of olafctl there; empty for the copy that ssh:// makes
	Sudo         bool   `yaml:"sudo"`   // run it as root
}

// Roles describes the parts of a testbed whose generator, queue and parameter server are devices or interfaces.
type Roles struct {
	yamlfile.Pos `yaml:"-"`
	Generator    *GeneratorRole `yaml:"generator"`
	Queue        *QueueRole     `yaml:"queue"`
	Server       *ServerRole    `yaml:"server"`
}

// GeneratorRole describes the generator, which sends the updates. It is a device, or a network card that acts as all
// workers.
type GeneratorRole struct {
	yamlfile.Pos `yaml:"-"`
	Host         string `yaml:"host"`
	Device       string `yaml:"device"`
	NIC          string `yaml:"nic"`
	Port         int    `yaml:"port"`
}

// QueueRole is the queue under test.
type QueueRole struct {
	yamlfile.Pos `yaml:"-"`
	Host         string `yaml:"host"`
	Device       string `yaml:"device"`
	ServerPort   int    `yaml:"server_port"`
}

// ServerRole describes the parameter server, which captures the frames that the queue delivers.
type ServerRole struct {
	yamlfile.Pos `yaml:"-"`
	Host         string `yaml:"host"`
	Interface    string `yaml:"interface"`
	Stamps       string `yaml:"stamps"` // a live.Stamps
}

// Clock configures how the clocks of the generator and the server are compared.
type Clock struct {
	yamlfile.Pos `yaml:"-"`
	By           string        `yaml:"by"`
	Interface    string        `yaml:"interface"` // at the server's host, to which a switch mirrors the generator's cable
	AtMost       olaf.Duration `yaml:"at_most"`   // larger bounds withhold ages; 0 for any
}

// Names of roles in links.
const (
	Generator = "generator"
	QueueName = "queue"
)

// Methods to compare clocks.
const (
	ByEcho   = "echo"   // message exchanges, exact to half of the shortest round trip
	ByPTP    = "ptp"    // the hosts keep their clocks synchronised within at_most
	ByMirror = "mirror" // the server's host stamps copies of the generator's frames as well
	ByProbe  = "probe"  // frames that bypass the queue; rejected, see checkClock
)

// RolePlan is a completely specified testbed of roles. Roles that the file leaves out are nil.
type RolePlan struct {
	Name      string        `json:"name"`
	Hosts     []PlannedHost `json:"hosts"` // by name, so that all reservations are made in one order
	Generator *PlannedRole  `json:"generator,omitempty"`
	Queue     *PlannedRole  `json:"queue"`
	Server    *PlannedRole  `json:"server,omitempty"`
	ClockBy   string        `json:"clock_by"`
	ClockNS   int64         `json:"clock_at_most_ns"` // 0 for any bound
	// Mirror is the interface of the server's host at which copies of the generator's frames arrive; nil without them.
	Mirror *PlannedRole `json:"mirror,omitempty"`
	Nodes  *Plan        `json:"nodes,omitempty"` // for a testbed with nodes on several hosts, which has no roles
}

// PlannedHost is a host with the roles that it has.
type PlannedHost struct {
	Name   string   `json:"name"`
	SSH    string   `json:"ssh,omitempty"`
	Binary string   `json:"binary,omitempty"`
	Sudo   bool     `json:"sudo,omitempty"`
	Roles  []string `json:"roles"`
}

// PlannedRole is one role that a device or an interface of a host has.
type PlannedRole struct {
	Host      string      `json:"host"`
	Device    string      `json:"device,omitempty"`    // address without the host
	Interface string      `json:"interface,omitempty"` // interface of a server, or of a generator that acts as workers
	Port      int         `json:"port"`                // of a generator's card, or of a queue's card towards the server
	Stamps    live.Stamps `json:"stamps,omitempty"`
}

// Resource returns the name of the resource that the role uses on its host, which is the device or the interface.
func (r *PlannedRole) Resource() string { return cmp.Or(r.Device, r.Interface) }

// deviceAddress returns the address of the role's device on its host. An interface that acts as all workers also has
// such an address.
func (r *PlannedRole) deviceAddress() string {
	if r.Device == "" {
		return nicScheme + r.Interface
	}
	return r.Device
}

// nicScheme is the first part of the addresses of interfaces that act as all workers.
const nicScheme = "nic:"

// HostOf returns the host with the given name in the plan.
func (p *RolePlan) HostOf(name string) *PlannedHost {
	i := slices.IndexFunc(p.Hosts, func(h PlannedHost) bool { return h.Name == name })
	return &p.Hosts[i]
}

// Address returns the address of a device on a host. For this machine it is unchanged; for other hosts it begins with
// ssh://.
func (h *PlannedHost) Address(resource string) string {
	if h.SSH == "" {
		return resource
	}
	return "ssh://" + h.SSH + "/" + resource
}

// Lines returns a description of the plan with one line per host, role, link and clock.
func (p *RolePlan) Lines() (lines []string) {
	say := func(format string, a ...any) { lines = append(lines, fmt.Sprintf(format, a...)) }
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
		say("host       %s, %s", h.Name, at)
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
	say("generator  %s", from)
	say("queue      %s of %s, port %d to the server", p.Queue.Device, p.Queue.Host, p.Queue.Port)
	if s := p.Server; s != nil {
		say("server     interface %s of %s, stamps %s", s.Interface, s.Host, s.Stamps)
	}
	within := ""
	if p.ClockNS > 0 {
		within = fmt.Sprintf(", at most %v", olaf.Duration(p.ClockNS)*olaf.Nanosecond)
	}
	if p.Mirror != nil {
		within = fmt.Sprintf(", copies of the generator's frames at %s of %s", p.Mirror.Interface, p.Mirror.Host)
	}
	say("clocks     by %s%s", p.ClockBy, within)
	return lines
}

// roleResolver checks a testbed file with roles and collects its errors.
type roleResolver struct {
	resolver
	roles *RolePlan
	pos   map[string]yamlfile.Pos // positions of the file's roles, by name
}

// ResolveRoles returns a plan in which every field that a file with roles leaves open is set. The error matches ErrFile
// and lists several mistakes with their lines.
func (f *File) ResolveRoles() (*RolePlan, error) {
	r := &roleResolver{resolver: resolver{file: f}, roles: &RolePlan{Name: f.name()}, pos: map[string]yamlfile.Pos{}}
	for _, step := range []func(){r.checkForm, r.checkHosts, r.checkRoles, r.checkResources, r.checkLinks, r.checkClock} {
		if step(); len(r.errs) > 0 {
			return nil, errors.Join(r.errs...)
		}
	}
	return r.roles, nil
}

// checkForm rejects fields that belong to other kinds of testbeds.
func (r *roleResolver) checkForm() {
	f := r.file
	if !isName(r.roles.Name, 64) {
		r.fail(f.Pos, "name", "the testbed has the name %q; give it one of at most 64 letters, digits, - and _", r.roles.Name)
	}
	if f.Roles == nil {
		r.fail(f.Pos, "", "there are no roles; write 'roles:' with a queue and a server, or see 'olafctl testbed init'")
		return
	}
	for _, key := range []string{"tree", "queue", "nodes", "devices", "job"} {
		if f.Has(key) {
			r.fail(f.Pos, key, "%s belongs to a testbed of nodes; a file has either roles or nodes", key)
		}
	}
}

// hostNames returns the names of the hosts in the file, in order.
func (f *File) hostNames() []string { return slices.Sorted(maps.Keys(f.Hosts)) }

// planHosts checks the hosts in a file of any kind and returns them, sorted by name.
func (r *resolver) planHosts() (all []PlannedHost) {
	by := map[string]string{}
	for _, name := range r.file.hostNames() {
		h := r.file.Hosts[name]
		there := cmp.Or(h.SSH, "this machine")
		switch {
		case !isName(name, maxName):
			r.fail(h.Pos, "", "a host has the name %q; give it one of at most %d letters, digits, - and _", name, maxName)
		case h.SSH != "" && !isDestination(h.SSH):
			r.fail(h.Pos, "ssh", "host %s: ssh %q is no [user@]host[:port]; put options into your ssh config", name, h.SSH)
		case h.SSH == "" && (h.Binary != "" || h.Sudo):
			r.fail(h.Pos, "", "host %s is this machine; binary and sudo belong to a host with ssh", name)
		case h.Binary != "" && !path.IsAbs(h.Binary):
			r.fail(h.Pos, "binary", "host %s: binary %q is no absolute path", name, h.Binary)
		case by[there] != "":
			r.fail(h.Pos, "ssh", "hosts %s and %s are both %s; give one of them all roles", by[there], name, there)
		}
		by[there] = name
		all = append(all, PlannedHost{Name: name, SSH: h.SSH, Binary: h.Binary, Sudo: h.Sudo})
	}
	return all
}

// isDestination reports whether ssh can only interpret s as a destination. Such a text is not an option and needs no
// quotes.
func isDestination(s string) bool {
	return !strings.HasPrefix(s, "-") && !strings.HasPrefix(s, "@") && strings.Count(s, "@") <= 1 && !strings.Contains(s, "@-") &&
		strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.@:[]%") == "" &&
		!strings.HasSuffix(s, "@")
}

// checkHosts checks the hosts of a file with roles and adds them to the plan.
func (r *roleResolver) checkHosts() {
	if len(r.file.Hosts) == 0 {
		r.fail(r.file.Pos, "hosts", "there are no hosts; write 'hosts: {here: {}}' for this machine")
	}
	r.roles.Hosts = r.planHosts()
}

// checkHost adds a role to its host. It rejects an unknown host.
func (r *roleResolver) checkHost(at yamlfile.Pos, role, host string) {
	r.pos[role] = at
	i := slices.IndexFunc(r.roles.Hosts, func(h PlannedHost) bool { return h.Name == host })
	if i < 0 {
		r.fail(at, "host", "the %s is on host %q, which the file does not describe%s", role, host,
			yamlfile.Suggest(host, r.file.hostNames()))
		return
	}
	r.roles.Hosts[i].Roles = append(r.roles.Hosts[i].Roles, role)
}

// checkRoles checks the roles and adds them to the plan.
func (r *roleResolver) checkRoles() {
	if g := r.file.Roles.Generator; g != nil {
		r.checkHost(g.Pos, Generator, g.Host)
		r.roles.Generator = &PlannedRole{Host: g.Host, Device: g.Device, Interface: g.NIC, Port: g.Port}
		switch {
		case (g.Device == "") == (g.NIC == ""):
			r.fail(g.Pos, "device", "the generator has the device %q and the nic %q; give one of them", g.Device, g.NIC)
		case g.NIC != "" && g.Has("port"):
			r.fail(g.Pos, "port", "the generator plays workers on interface %s; port belongs to a card", g.NIC)
		}
	}
	q := r.file.Roles.Queue
	if q == nil {
		r.fail(r.file.Roles.Pos, QueueName, "there is no queue; write 'queue: {host: …, device: …}'")
		return
	}
	r.checkHost(q.Pos, QueueName, q.Host)
	r.roles.Queue = &PlannedRole{Host: q.Host, Device: q.Device, Port: q.ServerPort}
	if q.Device == "" {
		r.fail(q.Pos, "device", "the queue has no device; write one, such as \"pci:0000:3b:00.0\"")
	}
	if s := r.file.Roles.Server; s != nil {
		r.checkHost(s.Pos, Server, s.Host)
		p := &PlannedRole{Host: s.Host, Interface: s.Interface}
		r.roles.Server = p
		if s.Interface == "" {
			r.fail(s.Pos, "interface", "the server has no interface; name the one behind which the queue's cable ends")
		}
		if err := p.Stamps.Set(cmp.Or(s.Stamps, string(live.Auto))); err != nil {
			r.fail(s.Pos, "stamps", "the server's stamps: %v", err)
		}
	}
}

// checkResources rejects devices and interfaces that are impossible or used twice, and hosts without a role.
func (r *roleResolver) checkResources() {
	taken := map[string]string{}
	for _, role := range []struct {
		name string
		*PlannedRole
	}{{Generator, r.roles.Generator}, {QueueName, r.roles.Queue}, {Server, r.roles.Server}} {
		if role.PlannedRole == nil {
			continue
		}
		at := r.pos[role.name]
		if role.Interface != "" {
			r.checkInterface(at, map[string]string{Generator: "nic", Server: "interface"}[role.name], role.Interface)
		}
		if in, out, isPair := cutInterfaces(role.Device); isPair {
			r.checkBetween(at, role.PlannedRole, in, out)
		}
		if scheme, _, found := strings.Cut(role.Device, ":"); role.Device != "" {
			switch {
			case !found:
				r.fail(at, "device", "the %s's device %q has no scheme; write it as for -d, such as twin: or pci:0000:3b:00.0", role.name, role.Device)
			case scheme == "ssh" || scheme == "testbed":
				r.fail(at, "device", "the %s's device %q is not on one host; describe the host in hosts, and write its device here", role.name, role.Device)
			case strings.ContainsAny(role.Device, " \t\n"):
				r.fail(at, "device", "the %s's device %q has a space", role.name, role.Device)
			}
		}
		_, name, _ := strings.Cut(role.Device, ":")
		if role.Device != "" && name == "" { // made for the testbed, so that there can be several
			continue
		}
		what := fmt.Sprintf("%s of host %s", role.Resource(), role.Host)
		if other := taken[what]; other != "" {
			r.fail(at, "", "%s is both %s and %s; a card or interface has one role (without a generator, the queue's own sends)", what, other, role.name)
		}
		taken[what] = role.name
	}
	for _, h := range r.roles.Hosts {
		if len(h.Roles) == 0 && len(r.errs) == 0 {
			r.fail(r.file.Hosts[h.Name].Pos, "", "host %s has no role; give it one, or leave it out", h.Name)
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
func (r *roleResolver) checkBetween(at yamlfile.Pos, role *PlannedRole, in, out string) {
	for _, name := range []string{in, out} {
		r.checkInterface(at, "device", name)
		for _, other := range []*PlannedRole{r.roles.Generator, r.roles.Server} {
			if other != nil && other.Host == role.Host && other.Interface == name {
				r.fail(at, "device", "interface %s of host %s is both the queue's and another role's; an interface has one role", name, role.Host)
			}
		}
	}
	switch {
	case in == "" || out == "" || in == out:
		r.fail(at, "device", "the queue is between the interfaces %q and %q; name two of its host", in, out)
	case role != r.roles.Queue:
		r.fail(at, "device", "the generator's device is a queue between interfaces %s and %s; use 'nic: %s'", in, out, out)
	case r.roles.Generator == nil:
		r.fail(at, "device", "the queue between interfaces %s and %s has no generator; add one, such as 'generator: {host: …, nic: …}'", in, out)
	case r.roles.Server == nil:
		r.fail(at, "device", "the queue between interfaces %s and %s has no server; add 'server: {host: …, interface: …}'", in, out)
	case at.Has("server_port") && role.Port != outPort:
		r.fail(at, "server_port", "the queue's port to the server is interface %s; leave server_port out", out)
	}
	role.Port = outPort
}

// outPort is the port number of the second interface of a kernel queue between two interfaces. This interface leads to
// the server.
const outPort = 1

// checkLinks checks that the links lead from the generator to the queue and from the queue to the server. A file may
// leave out the links.
func (r *roleResolver) checkLinks() {
	has := map[string]bool{Generator: r.roles.Generator != nil, QueueName: true, Server: r.roles.Server != nil}
	next := map[string]string{Generator: QueueName, QueueName: Server}
	laid := map[string]bool{}
	for i := range r.file.Links {
		l := &r.file.Links[i]
		ends := true
		for _, end := range [][2]string{{"from", l.From}, {"to", l.To}} {
			if !has[end[1]] {
				r.fail(l.Pos, end[0], "a link leads %s %q, which is no role of this file%s", end[0], end[1],
					yamlfile.Suggest(end[1], slices.DeleteFunc([]string{Generator, QueueName, Server}, func(n string) bool { return !has[n] })))
				ends = false
			}
		}
		switch {
		case !ends:
		case l.Child != "" || l.Parent != "" || l.MTU != 0 || l.Interfaces != nil || l.Virtual:
			r.fail(l.Pos, "", "a link between roles has from and to; its other fields belong to a testbed of nodes")
		case next[l.From] != l.To:
			r.fail(l.Pos, "to", "a link leads from %s to %s, where nothing is sent; links are from generator to queue and from queue to server", l.From, l.To)
		case laid[l.From]:
			r.fail(l.Pos, "from", "two links lead from %s to %s", l.From, l.To)
		}
		laid[l.From] = true
	}
	for _, from := range []string{Generator, QueueName} {
		if to := next[from]; len(r.file.Links) > 0 && has[from] && has[to] && !laid[from] && len(r.errs) == 0 {
			r.fail(r.file.Pos, "links", "no link leads from %s to %s; add it, or leave all links out", from, to)
		}
	}
}

// checkClock sets how the clocks are compared.
func (r *roleResolver) checkClock() {
	r.roles.ClockBy = ByEcho
	c := r.file.Clock
	if c == nil {
		return
	}
	r.roles.ClockBy = cmp.Or(c.By, ByEcho)
	r.roles.ClockNS = int64(c.AtMost / olaf.Nanosecond)
	switch {
	case c.AtMost < 0 || c.AtMost == 0 && c.Has("at_most") || c.AtMost > 0 && c.AtMost < olaf.Nanosecond:
		r.fail(c.Pos, "at_most", "clock.at_most is %v; use 1ns or more, or leave it out", c.AtMost)
	case r.roles.ClockBy == ByEcho:
	case r.roles.ClockBy == ByPTP && c.AtMost == 0:
		r.fail(c.Pos, "by", "clock.by is ptp; state with at_most how far apart the clocks are, such as 200ns")
	case r.roles.ClockBy == ByPTP:
	case r.roles.ClockBy == ByMirror:
		r.checkMirror(c)
	case c.By == ByProbe:
		r.fail(c.Pos, "by", "clock.by probe is not possible: a queue passes frames to the server only, and the shortest passage one way "+
			"bounds no clock error; use echo, ptp or mirror")
	default:
		r.fail(c.Pos, "by", "clock.by %q%s", c.By, yamlfile.Suggest(c.By, clockMethods))
	}
	if c.Interface != "" && r.roles.ClockBy != ByMirror {
		r.fail(c.Pos, "interface", "clock.interface %s belongs to clock.by mirror, not to %s", c.Interface, r.roles.ClockBy)
	}
}

// clockMethods are the possible values of clock.by.
var clockMethods = []string{ByEcho, ByPTP, ByMirror}

// checkMirror checks and adds the interface at which copies of the generator's frames arrive.
func (r *roleResolver) checkMirror(c *Clock) {
	g, q, s := r.roles.Generator, r.roles.Queue, r.roles.Server
	switch {
	case g == nil || s == nil:
		r.fail(c.Pos, "by", "clock.by mirror takes a copy of the cable from a generator, at a server's host; add these roles, or use echo")
		return
	case c.AtMost != 0:
		r.fail(c.Pos, "at_most", "clock.at_most is %v, and clock.by mirror compares no clocks; leave it out", c.AtMost)
	}
	m := &PlannedRole{Host: s.Host, Interface: cmp.Or(c.Interface, s.Interface), Stamps: s.Stamps}
	r.checkInterface(c.Pos, "interface", m.Interface)
	in, out, _ := cutInterfaces(q.Device)
	for _, other := range []*PlannedRole{g, {Host: q.Host, Interface: in}, {Host: q.Host, Interface: out}} {
		if other.Host == m.Host && other.Interface == m.Interface {
			r.fail(c.Pos, "interface", "interface %s of host %s is both another role's and the mirror's; give one that a switch mirrors the "+
				"generator's cable to", m.Interface, m.Host)
		}
	}
	switch {
	case m.Interface == s.Interface:
	case s.Stamps == live.Hardware:
		r.fail(c.Pos, "interface", "the hardware clocks of %s and %s are two; use stamps: kernel, or mirror to the server's interface "+
			"(leave clock.interface out)", s.Interface, m.Interface)
	default:
		s.Stamps, m.Stamps = live.Kernel, live.Kernel // auto could choose different clocks
	}
	r.roles.Mirror = m
}

// mirrorsApart reports whether copies arrive at another interface than the server's frames.
func (p *RolePlan) mirrorsApart() bool {
	return p.Mirror != nil && p.Mirror.Interface != p.Server.Interface
}

//go:embed examples
var examples embed.FS

// Examples returns the names that Example accepts.
func Examples() (names []string) {
	files, _ := examples.ReadDir("examples") // embedded in this binary
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f.Name(), ".yaml"))
	}
	return names
}

// Example returns the commented testbed file with the given name, which users can copy and change. It returns nil if
// there is none.
func Example(name string) []byte {
	text, _ := examples.ReadFile("examples/" + name + ".yaml")
	return text
}
