package lab

import (
	"cmp"
	"embed"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
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
	ByProbe  = "probe"  // frames that bypass the queue; ages are then above the fastest path
)

// ClockMethods are the possible values of clock.by.
var ClockMethods = []string{ByEcho, ByPTP, ByMirror, ByProbe}

// PlannedHost is a host with the roles that it has.
type PlannedHost struct {
	Name   string   `json:"name"`
	SSH    string   `json:"ssh,omitempty"`
	Binary string   `json:"binary,omitempty"`
	Sudo   bool     `json:"sudo,omitempty"`
	Roles  []string `json:"roles"`
}

// Address returns the address of a device on a host. For this machine it is unchanged; for other hosts it begins with
// ssh://.
func (h *PlannedHost) Address(resource string) string {
	if h.SSH == "" {
		return resource
	}
	return "ssh://" + h.SSH + "/" + resource
}

// HostNames returns the names of the hosts in the file, in order.
func (f *File) HostNames() []string { return slices.Sorted(maps.Keys(f.Hosts)) }

// PlanHosts checks the hosts in a file of any kind and returns them, sorted by name.
func (r *Checks) PlanHosts() (all []PlannedHost) {
	by := map[string]string{}
	for _, name := range r.File.HostNames() {
		h := r.File.Hosts[name]
		there := cmp.Or(h.SSH, "this machine")
		switch {
		case !isName(name, maxName):
			r.Fail(h.Pos, "", "a host has the name %q; give it one of at most %d letters, digits, - and _", name, maxName)
		case h.SSH != "" && !isDestination(h.SSH):
			r.Fail(h.Pos, "ssh", "host %s: ssh %q is no [user@]host[:port]; put options into your ssh config", name, h.SSH)
		case h.SSH == "" && (h.Binary != "" || h.Sudo):
			r.Fail(h.Pos, "", "host %s is this machine; binary and sudo belong to a host with ssh", name)
		case h.Binary != "" && !path.IsAbs(h.Binary):
			r.Fail(h.Pos, "binary", "host %s: binary %q is no absolute path", name, h.Binary)
		case by[there] != "":
			r.Fail(h.Pos, "ssh", "hosts %s and %s are both %s; give one of them all roles", by[there], name, there)
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
