package roles

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/olafctl/olaf/experiments/testbed/lab"
	"github.com/olafctl/olaf/internal/test/golden"
	"github.com/olafctl/olaf/internal/yamlfile/yamlfiletest"
)

// rolePlan resolves a file of roles.
func rolePlan(t *testing.T, text string) *Plan {
	t.Helper()
	f, err := lab.Parse("paper.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p, err := ResolveRoles(f)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestExamplesOfInit checks that every file that 'testbed init' writes can be resolved and that its name is the
// testbed's.
func TestExamplesOfInit(t *testing.T) {
	if lab.Example("nothing") != nil {
		t.Error("there is an example of an unknown name")
	}
	for _, name := range lab.Examples() {
		f, err := lab.Parse(name+".yaml", lab.Example(name))
		if err != nil {
			t.Fatal(err)
		}
		var plan interface{ Lines() []string }
		if f.Roles != nil {
			plan, err = ResolveRoles(f)
		} else {
			plan, err = f.Resolve()
		}
		if err != nil {
			t.Fatal(err)
		}
		if f.Name != name {
			t.Errorf("the example %s describes the testbed %s", name, f.Name)
		}
		golden.Equal(t, "init-"+name+".txt", []byte(strings.Join(plan.Lines(), "\n")+"\n"))
	}
}

// TestAddressesOfRoles checks that devices of other hosts are written as ssh:// addresses.
func TestAddressesOfRoles(t *testing.T) {
	p := rolePlan(t, string(lab.Example("paper")))
	for want, r := range map[string]*Role{"ssh://lab@fpga2/pci:0000:5e:00.0": p.Generator,
		"ssh://lab@fpga1/pci:0000:3b:00.0": p.Queue, "ssh://lab@ps/enp1s0f0": p.Server} {
		if got := p.HostOf(r.Host).Address(r.Resource()); got != want {
			t.Errorf("address %s, want %s", got, want)
		}
	}
	p = rolePlan(t, string(lab.Example("local")))
	if got := p.HostOf("here").Address("twin:"); got != "twin:" {
		t.Errorf("a device of this machine has the address %s", got)
	}
}

const (
	hosts = "hosts:\n  gen: {ssh: lab@a}\n  q: {ssh: b}\n  ps: {ssh: 'c:22'}\n"
	gen   = "  generator: {host: gen, device: \"pci:0000:5e:00.0\"}\n"
	que   = "  queue: {host: q, device: \"pci:0000:3b:00.0\"}\n"
	srv   = "  server: {host: ps, interface: eth0}\n"
	good  = hosts + "roles:\n" + gen + que + srv
	// between is a testbed without cards.
	between = hosts + "roles:\n  generator: {host: gen, nic: eth0}\n  queue: {host: q, device: 'xdp:in,out'}\n  server: {host: ps, interface: eth0}\n"
)

// TestRoleRefusals checks that each mistake is reported with its line and the host's name.
func TestRoleRefusals(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"good":            {good, ""},
		"no generator":    {"hosts: {q: {ssh: b}, ps: {ssh: c}}\nroles:\n" + que + srv, ""},
		"links":           {good + "links: [{from: generator, to: queue}, {from: queue, to: server}]\n", ""},
		"one card twice":  {hosts + "roles:\n" + gen + "  queue: {host: gen, device: \"pci:0000:5e:00.0\"}\n  server: {host: ps, interface: eth0}\n", "paper.yaml:7: pci:0000:5e:00.0 of host gen is both generator and queue"},
		"two twins":       {"hosts: {h: {}}\nroles:\n  generator: {host: h, device: 'twin:'}\n  queue: {host: h, device: 'twin:'}\n", ""},
		"one nic twice":   {"hosts: {h: {}}\nroles:\n  generator: {host: h, nic: eth0}\n  queue: {host: h, device: 'xdp:'}\n  server: {host: h, interface: eth0}\n", "paper.yaml:5: eth0 of host h is both generator and server"},
		"unknown host":    {hosts + "roles:\n" + gen + "  queue: {host: qq, device: 'twin:'}\n", `paper.yaml:7: the queue is on host "qq", which the file does not describe; did you mean "q"?`},
		"no hosts":        {"roles:\n" + que, "there are no hosts"},
		"idle host":       {hosts + "roles:\n" + que + srv, "paper.yaml:2: host gen has no role"},
		"no queue":        {hosts + "roles:\n" + gen + srv, "there is no queue"},
		"unknown role":    {hosts + "roles:\n  sender: {host: gen}\n" + que, `paper.yaml:6: testbed.roles has no field "sender"`},
		"device and nic":  {hosts + "roles:\n  generator: {host: gen, device: 'twin:', nic: eth0}\n" + que, `paper.yaml:6: the generator has the device "twin:" and the nic "eth0"`},
		"neither":         {hosts + "roles:\n  generator: {host: gen}\n" + que, "paper.yaml:6: the generator has the device"},
		"port of a nic":   {hosts + "roles:\n  generator: {host: gen, nic: eth0, port: 1}\n" + que, "paper.yaml:6: the generator plays workers on interface eth0"},
		"a long nic":      {hosts + "roles:\n  generator: {host: gen, nic: enp101s0f0np0v10}\n" + que + srv, `paper.yaml:6: no interface is called "enp101s0f0np0v10"`},
		"no device":       {hosts + "roles:\n  queue: {host: q}\n", "paper.yaml:6: the queue has no device"},
		"no scheme":       {hosts + "roles:\n" + gen + "  queue: {host: q, device: '0000'}\n" + srv, `paper.yaml:7: the queue's device "0000" has no scheme`},
		"ssh in a device": {hosts + "roles:\n" + gen + "  queue: {host: q, device: 'ssh://b/twin:'}\n" + srv, "describe the host in hosts"},
		"a testbed":       {hosts + "roles:\n" + gen + "  queue: {host: q, device: 'testbed:x'}\n" + srv, "is not on one host"},
		"no interface":    {hosts + "roles:\n" + gen + que + "  server: {host: ps}\n", "paper.yaml:8: the server has no interface"},
		"stamps":          {hosts + "roles:\n" + gen + que + "  server: {host: ps, interface: eth0, stamps: gps}\n", `paper.yaml:8: the server's stamps: unknown clock "gps"`},
		"an option":       {strings.Replace(good, "lab@a", "'-oProxyCommand=x'", 1), `paper.yaml:2: host gen: ssh "-oProxyCommand=x" is no [user@]host[:port]`},
		"an inner option": {strings.Replace(good, "lab@a", "'lab@-v'", 1), "paper.yaml:2: host gen: ssh"},
		"a command":       {strings.Replace(good, "lab@a", "'a; reboot'", 1), "paper.yaml:2: host gen: ssh"},
		"one ssh twice":   {strings.Replace(good, "lab@a", "b", 1), "paper.yaml:3: hosts gen and q are both b"},
		"between":         {between, ""},
		"in a mode":       {strings.Replace(between, "in,out", "in,out,generic", 1), ""},
		"one interface":   {strings.Replace(between, "in,out", "in,", 1), `the queue is between the interfaces "in" and ""; name two of its host`},
		"a taken one":     {strings.Replace(between, "host: ps, interface: eth0", "host: q, interface: out", 1), "interface out of host q is both the queue's and another role's"},
		"no generator of": {strings.Replace(between, "  generator: {host: gen, nic: eth0}\n", "", 1), "has no generator; add one"},
		"no server of":    {strings.Replace(between, "  server: {host: ps, interface: eth0}\n", "", 1), "has no server; add"},
		"its port":        {strings.Replace(between, "'xdp:in,out'", "'xdp:in,out', server_port: 0", 1), "leave server_port out"},
		"two locals":      {"hosts:\n  a: {}\n  b: {}\nroles:\n  queue: {host: a, device: 'twin:'}\n", "paper.yaml:3: hosts a and b are both this machine"},
		"sudo here":       {"hosts:\n  a: {sudo: true}\nroles:\n  queue: {host: a, device: 'twin:'}\n", "paper.yaml:2: host a is this machine; binary and sudo"},
		"a binary":        {strings.Replace(good, "lab@a", "lab@a, binary: olafctl", 1), `paper.yaml:2: host gen: binary "olafctl" is no absolute path`},
		"a host's name":   {strings.Replace(good, "  gen:", "  g n:", 1), `paper.yaml:2: a host has the name "g n"`},
		"link nowhere":    {good + "links:\n  - {from: generator, to: sever}\n", `paper.yaml:10: a link leads to "sever", which is no role of this file; did you mean "server"?`},
		"link past":       {good + "links:\n  - {from: generator, to: server}\n", "paper.yaml:10: a link leads from generator to server, where nothing is sent"},
		"link back":       {good + "links:\n  - {from: server, to: queue}\n", "paper.yaml:10: a link leads from server to queue"},
		"link twice":      {good + "links:\n  - {from: generator, to: queue}\n  - {from: generator, to: queue}\n", "paper.yaml:11: two links lead from generator"},
		"link missing":    {good + "links:\n  - {from: generator, to: queue}\n", "paper.yaml:9: no link leads from queue to server"},
		"link of nodes":   {good + "links:\n  - {from: generator, to: queue, mtu: 1500}\n", "paper.yaml:10: a link between roles has from and to"},
		"nodes":           {good + "nodes: []\n", "paper.yaml:9: nodes belongs to a testbed of nodes"},
		"a clock":         {good + "clock: {by: sundial}\n", `paper.yaml:9: clock.by "sundial"; there are echo, ptp, mirror, probe`},
		"a mirror":        {good + "clock: {by: mirror}\n", ""},
		"apart":           {good + "clock: {by: mirror, interface: eth1}\n", ""},
		"of no generator": {"hosts: {q: {ssh: b}, ps: {ssh: c}}\nroles:\n" + que + srv + "clock: {by: mirror}\n", "paper.yaml:5: clock.by mirror takes a copy of the cable from a generator"},
		"two clocks":      {strings.Replace(good, "interface: eth0", "interface: eth0, stamps: hardware", 1) + "clock: {by: mirror, interface: eth1}\n", "paper.yaml:9: the hardware clocks of eth0 and eth1 are two"},
		"its own cable":   {"hosts: {gen: {ssh: a}, q: {ssh: b}}\nroles:\n  generator: {host: gen, nic: eth0}\n  queue: {host: q, device: 'xdp:in,out'}\n  server: {host: gen, interface: eth1}\nclock: {by: mirror, interface: eth0}\n", "interface eth0 of host gen is both another role's and the mirror's"},
		"a mirror's age":  {good + "clock: {by: mirror, at_most: 1us}\n", "paper.yaml:9: clock.at_most is 1us, and clock.by mirror compares no clocks"},
		"no mirror":       {good + "clock: {interface: eth1}\n", "paper.yaml:9: clock.interface eth1 belongs to clock.by mirror, not to echo"},
		"probes":          {good + "clock: {by: probe, at_most: 1us}\n", ""},
		"to no server":    {"hosts: {q: {ssh: b}}\nroles:\n" + que + "clock: {by: probe}\n", "paper.yaml:4: clock.by probe: there is no server whose clock is compared"},
		"a probed twin":   {strings.Replace(good, "pci:0000:3b:00.0", "twin:", 1) + "clock: {by: probe}\n", "but the queue is twin:, which has no cables; use echo, or leave clock out"},
		"a probing twin":  {strings.Replace(good, "pci:0000:5e:00.0", "rtl:", 1) + "clock: {by: probe}\n", "but the generator is rtl:, which has no cables"},
		"probes between":  {between + "clock: {by: probe}\n", ""},
		"ptp":             {good + "clock: {by: ptp}\n", "paper.yaml:9: clock.by is ptp; state with at_most"},
		"ptp with bound":  {good + "clock: {by: ptp, at_most: 200ns}\n", ""},
		"a bound":         {good + "clock: {at_most: 0s}\n", "paper.yaml:9: clock.at_most is 0ps"},
		"first version":   {"schema: olafctl.testbed-spec/v1\n" + good, "paper.yaml:2: hosts belongs to schema: olafctl.testbed-spec/v2"},
	} {
		f, err := lab.Parse("paper.yaml", []byte(c.text))
		if err == nil {
			_, err = ResolveRoles(f)
		}
		switch {
		case c.want == "" && err != nil, c.want != "" && (!errors.Is(err, lab.ErrFile) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", name, err, c.want)
		case err != nil && strings.Contains(err.Error(), "\n"):
			t.Errorf("%s: %q has more than one line", name, err)
		}
	}
}

// spread is a tree whose aggregators are on two hosts, below a server on a third.
const spread = `hosts: {a: {ssh: HOST0}, b: {ssh: HOST1}, c: {ssh: HOST2}}
job: {lanes: 64, fragments: 32}
nodes:
  - {name: w0, role: worker, host: a}
  - {name: low, role: aggregator, host: a}
  - {name: w1, role: worker, host: b}
  - {name: high, role: aggregator, host: b}
  - {name: ps, role: server, host: c}
links:
  - {child: w0, parent: low}
  - {child: low, parent: high, interfaces: [eth0, eth0], virtual: true}
  - {child: w1, parent: high}
  - {child: high, parent: ps, interfaces: [eth1, eth0], virtual: true}
`

// spreadQueue is a queue with a worker and the server on other hosts.
const spreadQueue = `hosts: {a: {ssh: HOST0}, b: {ssh: HOST1}, c: {ssh: HOST2}}
job: {lanes: 48}
nodes:
  - {name: w0, role: worker, host: a, cluster: 0, rate: 300kbps}
  - {name: w1, role: worker, host: b, cluster: 1, rate: 300kbps}
  - {name: s, role: switch, host: b}
  - {name: ps, role: server, host: c}
links:
  - {child: w0, parent: s, interfaces: [eth0, eth0], virtual: true}
  - {child: w1, parent: s}
  - {child: s, parent: ps, interfaces: [eth1, eth0], virtual: true}
devices: [{node: s, program: olaf, rate: 400kbps}]
`

// TestSpreadQueue checks the plan for a queue whose nodes are on several hosts. The switch's host is the first to come
// up.
func TestSpreadQueue(t *testing.T) {
	f, err := lab.Parse("lab.yaml", []byte(spreadQueue))
	if err != nil {
		t.Fatal(err)
	}
	p, err := ResolveHosts(f)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.holdOrder(); !slices.Equal(got, []int{1, 0, 2}) {
		t.Errorf("the hosts come up in the order %v, want that of the switch first", got)
	}
	lines := strings.Join(p.Lines(), "\n")
	for _, want := range []string{"namespace  s, switch on host b", "cable      w0 10.78.0.2 to s 10.78.0.1", "cable      s 10.78.2.1 to ps 10.78.2.2"} {
		if !strings.Contains(lines, want) {
			t.Errorf("the plan lacks %q:\n%s", want, lines)
		}
	}
}

// TestSpreadNodes checks the plan for nodes on several hosts, each with its own resources, and the reported mistakes.
func TestSpreadNodes(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"good":         {spread, ""},
		"no host":      {strings.Replace(spread, "role: server, host: c", "role: server", 1), "lab.yaml:8: server ps names no host, and other nodes do"},
		"no cable":     {strings.Replace(spread, ", interfaces: [eth1, eth0], virtual: true", "", 1), "lab.yaml:13: the link from high to ps leads from host b to c; give its interfaces"},
		"an idle host": {strings.Replace(spread, "hosts: {", "hosts: {d: {ssh: z}, ", 1), "lab.yaml:1: host d has no node"},
		"one end twice": {strings.Replace(spread, "interfaces: [eth1, eth0]", "interfaces: [eth0, eth0]", 1),
			"lab.yaml:13: interface eth0 is the end at high of its cable to low, and the end at high of its cable to ps"},
		"unknown": {strings.Replace(spread, "host: c}", "host: cc}", 1), `lab.yaml:8: node ps is on host "cc", which the file does not describe`},
		"a queue": {strings.Replace(spreadQueue, "[eth0, eth0]", "[eth0]", 1), "lab.yaml:9: the cable from w0 to s joins the interfaces [\"eth0\"]; give two"},
	} {
		f, err := lab.Parse("lab.yaml", []byte(c.text))
		var p *Plan
		if err == nil {
			p, err = ResolveHosts(f)
		}
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, lab.ErrFile) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if err != nil {
			continue
		}
		if got, want := p.Nodes.InterfacesOn("b"), []string{"eth0", "eth1"}; !slices.Equal(got, want) {
			t.Errorf("host b uses the interfaces %q, want %q", got, want)
		}
		if lines := strings.Join(p.Lines(), "\n"); !strings.Contains(lines, "namespace  low, aggregator on host a") {
			t.Errorf("the plan does not name the nodes' hosts:\n%s", lines)
		}
	}
}

// FuzzRead reads arbitrary text as a testbed with roles: each mistake is in a line of the file, and a plan survives a
// JSON round trip, with destinations that ssh cannot take for options.
func FuzzRead(f *testing.F) {
	for _, name := range lab.Examples() {
		f.Add(string(lab.Example(name)))
	}
	f.Add(good)
	f.Add(good + "links: [{from: queue, to: queue}]\nclock: {by: ptp, at_most: 1ps}\n")
	f.Add("hosts: {a: {ssh: -x}}\nroles: {queue: {host: a, device: x}}\n")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := lab.Parse("f.yaml", []byte(text))
		var p *Plan
		if err == nil {
			p, err = ResolveRoles(file)
		}
		if err != nil {
			yamlfiletest.CheckMistakes(t, err, lab.ErrFile, "f.yaml", text)
			return
		}
		for _, h := range p.Hosts {
			if strings.HasPrefix(h.SSH, "-") || strings.ContainsAny(h.SSH, " \t\n'\"$;`\\") {
				t.Errorf("ssh would misread the destination %q", h.SSH)
			}
		}
		kept, err := json.Marshal(p)
		again := new(Plan)
		if err == nil {
			err = json.Unmarshal(kept, again)
		}
		if err != nil || !reflect.DeepEqual(again.Lines(), p.Lines()) {
			t.Errorf("%s is %q when it is read, %v, not %q", kept, again.Lines(), err, p.Lines())
		}
	})
}
