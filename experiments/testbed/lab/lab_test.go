package lab

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/olafctl/olaf/internal/test/golden"
)

func plan(t *testing.T, text string) *Plan {
	t.Helper()
	f, err := Parse("lab.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p, err := f.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// byHand is a testbed of nodes: two levels, a short cable, a worker behind an interface.
const byHand = `
name: rack
job: {id: 7, lanes: 64, fragments: 10}
nodes:
  - {name: a, role: worker}
  - {name: b, role: worker, interface: eth1, address: 192.168.5.9}
  - {name: c, role: worker}
  - {name: low, role: aggregator}
  - {name: high, role: aggregator}
  - {name: ps, role: server}
links:
  - {child: a, parent: low, mtu: 400}
  - {child: b, parent: low}
  - {child: c, parent: high}
  - {child: low, parent: high}
  - {child: high, parent: ps}
devices:
  - {node: low, program: xagg, arithmetic: wrapping}
  - {node: high, mode: native}
`

// wires is a testbed whose cables, except one, connect interfaces of this machine.
const wires = `
nodes:
  - {name: a, role: worker}
  - {name: b, role: worker}
  - {name: low, role: aggregator}
  - {name: high, role: aggregator}
  - {name: ps, role: server}
links:
  - {child: a, parent: low, interfaces: [eth1, eth0]}
  - {child: b, parent: high}
  - {child: low, parent: high, interfaces: [eth2, eth3], mtu: 1200}
  - {child: high, parent: ps, interfaces: [eth4, eth5], virtual: true}
`

func TestPlans(t *testing.T) {
	for name, text := range map[string]string{
		"wires": wires, "star": "tree: {workers: 4}", "tree": "tree: {workers: 8, children: 3, mode: generic}\njob: {fragments: 1}", "hand": byHand,
	} {
		t.Run(name, func(t *testing.T) {
			p := plan(t, text)
			lines := append([]string{p.Summary()}, p.Lines()...)
			for i := range p.Nodes {
				for _, r := range p.routes(i) {
					to := "default"
					if r.to.IsValid() {
						to = r.to.String()
					}
					if r.via.IsValid() {
						to += fmt.Sprintf(" via %v", r.via)
					}
					lines = append(lines, fmt.Sprintf("route      %s: %s by %s", p.Nodes[i].Name, to, r.by))
				}
			}
			golden.Equal(t, "plan-"+name+".txt", []byte(strings.Join(lines, "\n")+"\n"))
		})
	}
}

// TestHostWires checks that the host's end of a cable is distinguished from the switch's: below a switch the host is
// the child, above it the parent.
func TestHostWires(t *testing.T) {
	p := plan(t, `nodes: [{name: ps, role: server}, {name: s, role: switch}, {name: a, role: worker, cluster: 0}, {name: b, role: worker, cluster: 1}]
links: [{child: s, parent: ps, interfaces: [eth2, eth3]}, {child: a, parent: s}, {child: b, parent: s, interfaces: [eth1, eth0], virtual: true}]
devices: [{node: s, program: olaf}]`)
	want := []HostWire{{Node: 0, Host: "eth3", Hub: "eth2"}, {Node: 3, Host: "eth1", Hub: "eth0", Virtual: true}}
	if got := p.HostWires(); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

func TestSchema(t *testing.T) {
	text, err := JSONSchema()
	if err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "schema.json", append(text, '\n'))
}

// TestExamples checks the files in docs/testbeds: each is a testbed, named after its file.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "docs", "testbeds", "*.yaml"))
	if err != nil || len(files) < 3 {
		t.Fatalf("%q, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		p := plan(t, string(text))
		if p.Name+".yaml" != filepath.Base(file) {
			t.Errorf("%s is called %s", file, p.Name)
		}
		golden.Equal(t, "example-"+p.Name+".txt", []byte(strings.Join(append([]string{p.Summary()}, p.Lines()...), "\n")+"\n"))
	}
}

// TestQueueRefusals checks the errors for invalid queues.
func TestQueueRefusals(t *testing.T) {
	hand := func(worker, more, device string) string {
		return "nodes:\n  - {name: w, role: worker" + worker + "}\n  - {name: s, role: switch}\n  - {name: ps, role: server}\n" + more +
			"links:\n  - {child: w, parent: s}\n  - {child: s, parent: ps}\ndevices:\n  - {node: s" + device + "}\n"
	}
	const good = ", program: olaf"
	for name, c := range map[string]struct{ text, want string }{
		"good":               {hand(", cluster: 0, rate: 1M, tc: 5ms", "", good+", slots: 256, rate: 1M"), ""},
		"no workers":         {"queue:\n  system: olaf\n  workers: 0\n", "lab.yaml:3: a queue has 0 workers; use 1 to 249"},
		"clusters":           {"queue: {system: olaf, workers: 2, clusters: 3}\n", "lab.yaml:1: 2 workers in 3 clusters"},
		"no system":          {"queue: {workers: 2}\n", `lab.yaml:1: system "" does not queue; there is`},
		"a system":           {"queue:\n  workers: 2\n  system: xagg\n", `lab.yaml:3: system "xagg" does not queue; there is`},
		"a program":          {hand("", "", ", program: xagg"), `lab.yaml:9: program "xagg" does not queue; there is`},
		"an output":          {"queue:\n  system: olaf\n  rate: 1M\n  workers: 2\n  out_rate: 900G\n", "lab.yaml:5: "},
		"no output":          {"queue:\n  system: olaf\n  rate: 1M\n  workers: 2\n  out_rate: 0bps\n", "lab.yaml:5: "},
		"beside a tree":      {"queue: {system: olaf, workers: 2}\ntree: {workers: 2}\n", "one of them"},
		"no device":          {strings.Split(hand("", "", ""), "devices:")[0], "lab.yaml:3: no queue is given at s; add a device"},
		"two devices":        {hand("", "", good) + "  - {node: s, program: olaf}\n", "lab.yaml:10: there are two devices at s"},
		"a device elsewhere": {hand("", "", good) + "  - {node: w, program: olaf}\n", "lab.yaml:10: w is a worker; programs are at aggregators and switches"},
		"slots":              {hand("", "", good+", slots: 257"), "lab.yaml:9: a queue of 257 slots; use 1 to 256"},
		"no slots":           {hand("", "", good+", slots: 0"), "lab.yaml:9: a queue of 0 slots"},
		"a mode":             {hand("", "", good+", mode: fast"), `lab.yaml:9: mode "fast"; use native or generic`},
		"arithmetic":         {hand("", "", good+", arithmetic: wrapping"), "lab.yaml:9: a queue merges saturating"},
		"a rate":             {hand("", "", good+", rate: 900G"), "lab.yaml:9: "},
		"a gap of clusters":  {hand(", cluster: 1", "", good), "lab.yaml:2: worker w is in cluster 1; with 1 worker and 2 clusters"},
		"a threshold":        {hand(", tc: -1ms", "", good), "lab.yaml:2: worker w has a threshold of -1ms"},
		"two switches":       {hand("", "  - {name: t, role: switch}\n  - {name: v, role: worker}\n", good), "lab.yaml:5: switch t has no parent"},
		"an aggregator too":  {strings.Replace(hand("", "  - {name: a, role: aggregator}\n  - {name: v, role: worker}\n", good), "links:\n", "links:\n  - {child: v, parent: a}\n  - {child: a, parent: s}\n", 1), "a switch is between workers and the server"},
		"a cable":            {strings.Replace(hand("", "", good), "parent: s}", "parent: s, mtu: 1500}", 1), "lab.yaml:6: cables around a queue carry what it merges"},
		"outside":            {hand(", interface: eth1, address: 10.0.0.1", "", good), ""},
		"told elsewhere":     {hand(", interface: eth1, address: 10.0.0.1, rate: 1M", "", good), "lab.yaml:2: worker w is behind interface eth1, where its own command line sets the rate; leave rate and tc out"},
		"a switch outside":   {strings.Replace(hand("", "", good), "role: switch", "role: switch, interface: eth1, address: 10.0.0.1", 1), "lab.yaml:3: switch s is behind interface eth1; aggregators and switches are namespaces here"},
		"a network of ours":  {hand(", interface: eth1, address: 10.78.1.9", "", good), "lab.yaml:2: w is behind interface eth1 in 10.78.1.0/24, and so is the cable from s; give it a separate network"},
		"no address outside": {hand(", interface: eth1", "", good), "lab.yaml:2: node w is behind interface eth1; give its IPv4 address"},
		"no MAC outside":     {strings.Replace(hand("", "", good), "role: server", "role: server, interface: eth1, address: 10.0.0.1", 1), "lab.yaml:4: server ps is behind interface eth1; give its MAC"},
		"a rate without a switch": {"nodes:\n  - {name: w, role: worker, rate: 1M}\n  - {name: s, role: aggregator}\n  - {name: ps, role: server}\nlinks:\n  - {child: w, parent: s}\n  - {child: s, parent: ps}\n",
			"lab.yaml:2: node w has a cluster, a rate or transmission control"},
		"slots of a server": {"nodes:\n  - {name: w, role: worker}\n  - {name: s, role: aggregator}\n  - {name: ps, role: server}\nlinks:\n  - {child: w, parent: s}\n  - {child: s, parent: ps}\ndevices:\n  - {node: s, slots: 4}\n",
			"lab.yaml:9: an aggregator stores a whole model"},
	} {
		f, err := Parse("lab.yaml", []byte(c.text))
		if err == nil {
			_, err = f.Resolve()
		}
		switch {
		case c.want == "" && err != nil, c.want != "" && (!errors.Is(err, ErrFile) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestRefusals checks that every mistake is reported with its line.
func TestRefusals(t *testing.T) {
	nodes := func(more string) string {
		return "nodes:\n  - {name: w, role: worker}\n  - {name: s, role: aggregator}\n  - {name: ps, role: server}\n" + more
	}
	const links = "links:\n  - {child: w, parent: s}\n  - {child: s, parent: ps}\n"
	for name, c := range map[string]struct{ text, want string }{
		"empty":                 {"", "lab.yaml:1: the file is empty; docs/reference/testbed-file.md has whole ones"},
		"an unknown field":      {"tree: {workers: 4}\nnode: []\n", `lab.yaml:2: testbed has no field "node"; did you mean "nodes"?`},
		"a wrong type":          {"tree: {workers: many}\n", `lab.yaml:1: testbed.tree.workers: "many" is not a whole number`},
		"another schema":        {"schema: olafctl.bench-spec/v1\ntree: {workers: 1}\n", `lab.yaml:1: schema "olafctl.bench-spec/v1" is not olafctl.testbed-spec/v2`},
		"neither":               {"name: x\n", "write a tree, such as"},
		"both":                  {"tree: {workers: 4}\n" + nodes(""), "one of them"},
		"a tree with links":     {"tree: {workers: 4}\n" + links, "a tree or queue implies its links and devices"},
		"a name":                {"name: a/b\ntree: {workers: 4}\n", `lab.yaml:1: the testbed has the name "a/b"`},
		"a testbed's long name": {"name: " + strings.Repeat("a", 65) + "\ntree: {workers: 4}\n", "give it one of at most 64 letters"},
		"a long interface": {nodes("  - {name: x, role: worker, interface: enp101s0f0np0v0, address: 192.0.2.1}\n  - {name: y, role: worker, interface: enp101s0f0np0v10, address: 198.51.100.1}\n" + links),
			`lab.yaml:6: no interface is called "enp101s0f0np0v10"; Linux takes names of at most 15 letters`},
		"a cable's long interface": {nodes("links:\n  - {child: w, parent: s, interfaces: [enp101s0f0np0v10, eth1]}\n"),
			`lab.yaml:6: no interface is called "enp101s0f0np0v10"`},
		"no workers":     {"tree:\n  workers: 0\n", "lab.yaml:2: a tree has 0 workers; use 1 to 125"},
		"one child":      {"tree:\n  workers: 4\n  children: 1\n", "lab.yaml:3: a node of the tree has 1 children; use 2 to 64"},
		"too many lanes": {"tree: {workers: 4}\njob:\n  lanes: 705\n", "lab.yaml:3: job.lanes is 705; use 1 to 704"},
		"a large model":  {"tree: {workers: 4}\njob:\n  fragments: 10000000\n", "lab.yaml:3: 10000000 fragments of 256 lanes take more than 1 GiB"},
		"a job beyond":   {"tree: {workers: 4}\njob: {id: 5000}\n", "lab.yaml:2: job.id is 5000; use 0 to 1023"},
		"a long name":    {nodes("  - {name: thirteen-long, role: worker}\n" + links), `lab.yaml:5: a node has the name "thirteen-long"`},
		"a name of ours": {nodes("  - {name: up, role: worker}\n" + links), `lab.yaml:5: a node has the name "up"`},
		"a name twice":   {nodes("  - {name: w, role: worker}\n" + links), "lab.yaml:5: node w is there twice"},
		"a role":         {nodes("  - {name: x, role: wroker}\n" + links), `lab.yaml:5: node x has the role "wroker"; use worker, aggregator, switch or server`},
		"two servers":    {nodes("  - {name: p2, role: server}\n" + links), "there are 2 nodes of role server"},
		"no worker":      {"nodes: [{name: s, role: aggregator}, {name: ps, role: server}]\nlinks: [{child: s, parent: ps}]\n", "there is no node of role worker"},
		"an address":     {nodes("  - {name: x, role: worker, address: 10.0.0.1}\n" + links), "lab.yaml:5: node x is a namespace, whose addresses are chosen"},
		"no address":     {nodes("  - {name: x, role: worker, interface: eth0}\n" + links), "lab.yaml:5: node x is behind interface eth0; give its IPv4 address"},
		"one network twice": {nodes("  - {name: x, role: worker, interface: eth0, address: 192.0.2.1}\n  - {name: y, role: worker, interface: eth1, address: 192.0.2.2}\n" + links + "  - {child: x, parent: s}\n  - {child: y, parent: s}\n"),
			"lab.yaml:5: x is behind interface eth0 in 192.0.2.0/24, and so is the cable from y"},
		"a switch outside":       {nodes("  - {name: x, role: aggregator, interface: eth0, address: 10.0.0.1}\n" + links), "lab.yaml:5: aggregator x is behind interface eth0"},
		"an unknown node":        {nodes("links:\n  - {child: w, parent: z}\n"), `lab.yaml:6: parent "z" is no node`},
		"two parents":            {nodes(links + "  - {child: w, parent: s}\n"), "lab.yaml:8: node w has a second parent"},
		"below a worker":         {nodes("links:\n  - {child: s, parent: w}\n"), "lab.yaml:6: worker w is the parent of aggregator s"},
		"straight to the server": {nodes("links:\n  - {child: w, parent: ps}\n"), "lab.yaml:6: server ps is the parent of worker w"},
		"a server below":         {nodes("links:\n  - {child: ps, parent: s}\n"), "lab.yaml:6: server ps is the child of s; sums end at a server"},
		"no parent":              {nodes("links:\n  - {child: w, parent: s}\n"), "lab.yaml:3: aggregator s has no parent"},
		"no children":            {nodes("links:\n  - {child: s, parent: ps}\n"), "lab.yaml:3: aggregator s has no children"},
		"a circle": {nodes("  - {name: t, role: aggregator}\n  - {name: u, role: aggregator}\nlinks:\n  - {child: w, parent: s}\n  - {child: s, parent: ps}\n  - {child: t, parent: u}\n  - {child: u, parent: t}\n"),
			"lab.yaml:5: aggregator t is above itself"},
		"one interface":   {nodes("links:\n  - {child: w, parent: s, interfaces: [eth0]}\n"), `lab.yaml:6: the cable from w to s joins the interfaces ["eth0"]; give two of this machine, that of w first`},
		"no interface":    {nodes("links:\n  - {child: w, parent: s, interfaces: [eth0, '']}\n"), `joins the interfaces ["eth0" ""]`},
		"virtual already": {nodes("links:\n  - {child: w, parent: s, virtual: true}\n"), "lab.yaml:6: the cable from w to s is made, and virtual in any case"},
		"both ways outside": {nodes("  - {name: x, role: worker, interface: eth0, address: 192.0.2.1}\n" + links + "  - {child: x, parent: s, interfaces: [eth1, eth2]}\n"),
			"lab.yaml:9: worker x is behind interface eth0 by itself, and the cable from x to s joins two; say one of both"},
		"one end twice": {nodes("links:\n  - {child: w, parent: s, interfaces: [eth0, eth1]}\n  - {child: s, parent: ps, interfaces: [eth1, eth2]}\n"),
			"lab.yaml:7: interface eth1 is the end at s of its cable to w, and the end at s of its cable to ps; it can be taken once"},
		"an interface of two": {nodes("  - {name: x, role: worker, interface: eth0, address: 192.0.2.1}\n" + "links:\n  - {child: w, parent: s}\n  - {child: s, parent: ps, interfaces: [eth1, eth0]}\n  - {child: x, parent: s}\n"),
			"lab.yaml:8: interface eth0 is that of x, and the end at ps of its cable to s; it can be taken once"},
		"a short cable":        {nodes("links:\n  - {child: w, parent: s, mtu: 1000}\n"), "lab.yaml:6: the cable from w to s has an MTU of 1000; 256 lanes take 1074 to 65535"},
		"a cable for native":   {nodes("links:\n  - {child: w, parent: s, mtu: 4000}\n  - {child: s, parent: ps}\n"), "lab.yaml:6: the cable from w to s has an MTU of 4000; mode native takes 3000"},
		"a device at a worker": {nodes(links + "devices:\n  - {node: w}\n"), "lab.yaml:9: w is a worker; programs are at aggregators and switches"},
		"two devices":          {nodes(links + "devices:\n  - {node: s}\n  - {node: s}\n"), "lab.yaml:10: there are two devices at s"},
		"another program":      {nodes(links + "devices:\n  - {node: s, program: olaf}\n"), `lab.yaml:9: program "olaf" does not add; there is xagg, and `},
		"another mode":         {nodes(links + "devices:\n  - {node: s, mode: fast}\n"), `lab.yaml:9: mode "fast"; use native or generic`},
		"another arithmetic":   {nodes(links + "devices:\n  - {node: s, arithmetic: float}\n"), `lab.yaml:9: arithmetic "float"; use saturating or wrapping`},
		"native below generic": {nodes("  - {name: t, role: aggregator}\nlinks:\n  - {child: w, parent: s}\n  - {child: s, parent: t}\n  - {child: t, parent: ps}\ndevices:\n  - {node: t, mode: generic}\n"),
			"lab.yaml:11: t is in mode generic and its child s in mode native"},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := Parse("lab.yaml", []byte(c.text))
			if err == nil {
				_, err = f.Resolve()
			}
			if !errors.Is(err, ErrFile) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v\nwant %s", err, c.want)
			}
		})
	}
}

// TestTrees checks that any tree is sound: every worker has one chain of aggregators to the server, no node exceeds its
// number of children, networks are distinct, and all nodes can reach each other.
func TestTrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		workers, children := rapid.IntRange(1, 125).Draw(t, "workers"), rapid.IntRange(2, 64).Draw(t, "children")
		f, err := Parse("x.yaml", fmt.Appendf(nil, "tree: {workers: %d, children: %d}\njob: {lanes: 1, fragments: 1}", workers, children))
		if err != nil {
			t.Fatal(err)
		}
		p, err := f.Resolve()
		if err != nil {
			t.Fatal(err)
		}
		below := p.Below(p.Server())
		slices.Sort(below)
		for i := range workers {
			if len(below) != workers || below[i] != i {
				t.Fatalf("workers below the server: %v", below)
			}
		}
		if n := p.Children(); n > children {
			t.Fatalf("a node has %d children", n)
		}
		for range 5 {
			from, to := rapid.SampledFrom(p.Workers()).Draw(t, "from"), rapid.SampledFrom(p.Workers()).Draw(t, "to")
			reaches(t, p, from, p.Cables[p.Nodes[to].Up].Lower)
			reaches(t, p, from, p.Cables[p.Nodes[p.Server()].Down[0]].Upper)
			reaches(t, p, p.Server(), p.Cables[p.Nodes[to].Up].Lower)
		}
	})
}

// reaches follows routes, the longest prefix first, from a node to an address.
func reaches(t *rapid.T, p *Plan, node int, to netip.Addr) {
	for range len(p.Nodes) {
		owner := map[netip.Addr]int{}
		n := &p.Nodes[node]
		var next netip.Addr
		for _, c := range append(slices.Clone(n.Down), n.Up) {
			if c < 0 {
				continue
			}
			cable := &p.Cables[c]
			owner[cable.Lower], owner[cable.Upper] = cable.Child, cable.Parent
			if (cable.Lower == to || cable.Upper == to) && owner[to] == node {
				return
			}
			if cable.Net.Contains(to) {
				next = to
			}
		}
		for _, r := range p.routes(node) {
			if !next.IsValid() && r.to.IsValid() && r.to.Contains(to) {
				next = r.via
			}
		}
		for _, r := range p.routes(node) {
			if !next.IsValid() && !r.to.IsValid() {
				next = r.via
			}
		}
		at, ok := owner[next]
		if !ok {
			t.Fatalf("%s does not know the way to %v", n.Name, to)
		}
		node = at
	}
	t.Fatalf("%v is never reached", to)
}

func TestDifference(t *testing.T) {
	got := strings.Join(Difference([]string{"a", "b"}, []string{"b", "c"}), "|")
	if got != "- a|  b|+ c" {
		t.Error(got)
	}
}

// TestNodesNameHosts checks nodes of a tree on other hosts, behind interfaces of this one. The first version of the
// file format has no hosts.
func TestNodesNameHosts(t *testing.T) {
	text := "hosts:\n  far: {ssh: lab@far}\n" + strings.Replace(byHand, "interface: eth1,", "interface: eth1, host: far,", 1)
	p := plan(t, text)
	if len(p.Hosts) != 1 || p.Nodes[1].Host != "far" {
		t.Errorf("hosts %v, node b on %q; want it on far", p.Hosts, p.Nodes[1].Host)
	}
	if lines := strings.Join(p.Lines(), "\n"); !strings.Contains(lines, "b is started on host far (ssh lab@far): olafctl testbed worker") {
		t.Errorf("the plan does not name the host:\n%s", lines)
	}
	for name, c := range map[string]struct{ text, want string }{
		"unknown":       {strings.Replace(text, "host: far", "host: fra", 1), `lab.yaml:8: node b is on host "fra", which the file does not describe`},
		"a namespace":   {strings.Replace(text, "{name: a, role: worker}", "{name: a, role: worker, host: far}", 1), "lab.yaml:8: worker b is behind interface eth1, and other nodes are built on their hosts"},
		"first version": {"schema: olafctl.testbed-spec/v1\n" + strings.TrimPrefix(text, "hosts:\n  far: {ssh: lab@far}\n"), "lab.yaml:7: host belongs to schema"},
		"of roles":      {"hosts: {q: {ssh: b}}\nroles:\n  queue: {host: q, device: 'twin:'}\n", "lab.yaml:2: the file describes roles on devices; use it as -d testbed:FILE"},
		"from and to":   {strings.Replace(text, "{child: a, parent: low, mtu: 400}", "{from: a, to: low}", 1), "from and to belong to a link between roles"},
	} {
		f, err := Parse("lab.yaml", []byte(c.text))
		if err == nil {
			_, err = f.Resolve()
		}
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, ErrFile) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
