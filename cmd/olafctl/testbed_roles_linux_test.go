package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/testbed/lab"
	"github.com/olafctl/olaf/experiments/testbed/roles"
	"github.com/olafctl/olaf/experiments/testbed/testbedtest"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/netlab/netlabtest"
	"github.com/olafctl/olaf/results"
)

// writeRoles writes a testbed file of roles on the laboratory's hosts.
func writeRoles(t *testing.T, l *testbedtest.Network, text string) string {
	t.Helper()
	for i, h := range l.Hosts {
		text = strings.ReplaceAll(text, fmt.Sprintf("HOST%d", i), h.Name)
	}
	file := filepath.Join(t.TempDir(), fmt.Sprintf("roles%d.yaml", os.Getpid()))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestTestbedOfTwoHosts brings up a testbed of roles on hosts behind sshd, measures on it by name and by file, and
// takes it down. It checks that the rows equal those from a twin on this host, that the document describes the hosts
// with their clocks, that a second user is told the owner's name, and that nothing is left.
func TestTestbedOfTwoHosts(t *testing.T) {
	l := testbedtest.NewNetwork(t, 2, pathOfOlafctl(t))
	file := writeRoles(t, l, "hosts: {a: {ssh: HOST0}, b: {ssh: HOST1}}\nroles:\n"+
		"  queue: {host: a, device: 'twin:'}\n  server: {host: b, interface: lan}\n")
	expect := func(code int, want string, args ...string) string {
		t.Helper()
		out, said, got := runOnHead(t, l, args...)
		if got != code || !strings.Contains(out+said, want) {
			t.Fatalf("%v: exit code %d, %s%s; want %d and %q", args, got, out, said, code, want)
		}
		return out
	}
	expect(3, "captures behind twin:, but the twin captures at the parameter server itself", "bench", "-d", "testbed:"+file, "--keep=false")
	file = writeRoles(t, l, "hosts: {a: {ssh: HOST0}, b: {ssh: HOST1}}\nroles:\n"+
		"  queue: {host: a, device: 'twin:'}\n  generator: {host: b, device: 'twin:'}\n")
	expect(0, "twin twin-1", "testbed", "doctor", file)
	file = writeRoles(t, l, "hosts: {a: {ssh: HOST0}}\nroles:\n  queue: {host: a, device: 'twin:'}\n  generator: {host: a, device: 'twin:'}\n")
	name := strings.TrimSuffix(filepath.Base(file), ".yaml")
	t.Cleanup(func() { runOnHead(t, l, "testbed", "down", name) })
	expect(0, "up: "+name, "testbed", "up", file, "--for", "1h", "--note", "this test")
	expect(0, "up: "+name, "testbed", "up", file) // again
	if out := expect(0, "for "+name, "testbed", "show", name); !strings.Contains(out, "±") {
		t.Errorf("no clock in\n%s", out)
	}
	bench := []string{"bench", "--runs", "2", "--updates", "60", "-q", "--keep=false", "-o", "csv", "-d"}
	here := expect(0, "", append(bench, "twin:")...)
	for _, device := range []string{"testbed:" + name, "testbed:" + file} {
		if there := expect(0, "", append(bench, device)...); there != here {
			t.Errorf("rows of a twin:\n%s\nof %s:\n%s", here, device, there)
		}
	}
	var doc results.Bench
	if err := json.Unmarshal([]byte(expect(0, "", append(bench[:len(bench)-2:len(bench)-2], "json", "-d", "testbed:"+name)...)), &doc); err != nil {
		t.Fatal(err)
	}
	hosts := doc.Provenance.Hosts
	if len(hosts) != 1 || hosts[0].SSH != l.Hosts[0].Name || hosts[0].Build == "" || !(hosts[0].BoundNS > 0) || !hosts[0].DriftNS.Known() {
		t.Errorf("the document describes the hosts as %+v", hosts)
	}
	expect(0, name+" is down", "testbed", "down", name)
	expect(2, "no testbed of that name is up", "bench", "-d", "testbed:"+name, "--keep=false")
	l.AwaitIdle(t)
}

// TestReservationAcrossHosts checks that an interface is reserved on each of two hosts or on neither: a second user is
// refused with the name of the host, and does not get an interface on the first host either.
func TestReservationAcrossHosts(t *testing.T) {
	l := testbedtest.NewNetwork(t, 2, pathOfOlafctl(t))
	eth := func(i int) string { return fmt.Sprintf("t%d-%d", i, os.Getpid()%1e6) }
	text := func(first int) string {
		return fmt.Sprintf("hosts: {a: {ssh: HOST0}, b: {ssh: HOST1}}\nroles:\n  queue: {host: a, device: 'twin:'}\n"+
			"  generator: {host: a, nic: %s}\n  server: {host: b, interface: %s}\n", eth(first), eth(1))
	}
	mine, theirs := writeRoles(t, l, text(0)), writeRoles(t, l, text(2))
	as := func(who, want string, code int, args ...string) {
		t.Helper()
		t.Setenv("SUDO_USER", who)
		if out, said, got := runOnHead(t, l, append([]string{"testbed"}, args...)...); got != code || !strings.Contains(out+said, want) {
			t.Errorf("%s, %v: exit code %d, %s%s; want %d and %q", who, args, got, out, said, code, want)
		}
	}
	as("alice", " is reserved until ", 0, "reserve", mine, "--for", "1m", "--note", "this test")
	defer as("alice", " is released", 0, "release", mine)
	as("bob", "host b: interface "+eth(1)+": it is reserved by alice@", 3, "reserve", theirs)
	as("bob", "you have no reservation", 2, "release", theirs) // not even of host a
	l.AwaitIdle(t)
}

// kernelRoles is a testbed without cards: a generator, a queue in the kernel and a server on three hosts.
const kernelRoles = "hosts: {gen: {ssh: HOST0}, q: {ssh: HOST1}, ps: {ssh: HOST2}}\nroles:\n" +
	"  generator: {host: gen, nic: eth0}\n  queue: {host: q, device: 'xdp:in,out'}\n  server: {host: ps, interface: eth2}\n"

// kernelLab is three hosts with the cables of kernelRoles.
type kernelLab struct {
	*testbedtest.Network
	file string
	// feed is the end at which a plain switch receives from the generator, last the server's interface.
	feed, last *netlab.Interface
	statements []string // statements of the last bench
}

// newKernelRoles makes the hosts and cables. suffix is added to the names of the interfaces in kernelRoles.
func newKernelRoles(t *testing.T, suffix string) *kernelLab {
	t.Helper()
	if !canReal() {
		t.Skip("without the rights to make namespaces and load programs")
	}
	l := &kernelLab{Network: testbedtest.NewNetwork(t, 3, pathOfOlafctl(t))}
	l.file = writeRoles(t, l.Network, strings.NewReplacer("eth0", "eth0"+suffix, "in,out", "in"+suffix+",out"+suffix, "eth2", "eth2"+suffix).Replace(kernelRoles))
	ground, err := netlab.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ground.Close() })
	between, err := ground.Node("switch")
	if err != nil {
		t.Fatal(err)
	}
	cable := func(a *netlab.Node, nameA string, b *netlab.Node, nameB string) *netlab.Interface {
		c, err := netlab.ConnectNodes(netlab.End{Node: a, Name: nameA}, netlab.End{Node: b, Name: nameB}, 1500)
		if err != nil {
			t.Fatal(err)
		}
		return c.B
	}
	l.feed = cable(l.Hosts[0].Node, "eth0"+suffix, between, "port0")
	cable(l.Hosts[1].Node, "in"+suffix, between, "port1")
	cable(l.Hosts[2].Node, "eth1", between, "port2")
	netlabtest.Bridge(t, between, "port0", "port1", "port2") // floods updates to both ports, because it has learned no address
	l.last = cable(l.Hosts[1].Node, "out"+suffix, l.Hosts[2].Node, "eth2"+suffix)
	return l
}

// bench measures with real packets and returns the document, the messages and the exit code.
func (l *kernelLab) bench(t *testing.T, device string) (doc results.Bench, said string, code int) {
	t.Helper()
	out, said, code := runOnHead(t, l.Network, slowBench(device, "--runs", "1", "--versus", "none", "-o", "json")...)
	if out != "" {
		if err := json.Unmarshal([]byte(out), &doc); err != nil {
			t.Fatal(err)
		}
	}
	return doc, said, code
}

// expectBench checks that runs are valid, that every decision is the engine's, and that the given share of frames is
// lost on the cable to the queue.
func (l *kernelLab) expectBench(t *testing.T, device string, lost float64) {
	t.Helper()
	doc, said, code := l.bench(t, device)
	l.statements = doc.Statements
	if code != 0 || len(doc.Rows) != 1 || len(doc.Provenance.Hosts) != 3 {
		t.Fatalf("exit code %d, %d rows, hosts %+v: %s", code, len(doc.Rows), doc.Provenance.Hosts, said)
	}
	for i := range doc.Provenance.Hosts {
		h := &doc.Provenance.Hosts[i]
		log := strings.Join(h.Log, "\n")
		for _, want := range []string{"connected to " + h.SSH, "examined: olafctl ", "opened ", "clock ahead by "} {
			if !strings.Contains(log, want) {
				t.Errorf("the log of host %s contains no %q: %s", h.Name, want, log)
			}
		}
	}
	for i := range doc.Rows {
		r := &doc.Rows[i]
		if d := r.Decisions; d == nil || d.Checked == 0 || d.Equal != d.Checked {
			t.Errorf("%s: decisions %+v, want each one of the engine", r.Queue, d)
		}
		sent, gone := r.Stats.Of("sent").Mean, r.Stats.Of("lost_on_cable").Mean
		if !(sent > 0) || lost > 0 && float64(gone) != lost*float64(sent) || lost == 0 && gone > 0 {
			t.Errorf("%s: %v of %v updates were lost on the cable, want a share of %v", r.Queue, gone, sent, lost)
		}
	}
}

// sendARP sends ARP frames from a node's eth0 until stop is called.
func sendARP(t *testing.T, from *netlab.Node) (stop func()) {
	t.Helper()
	at, err := from.Interface("eth0")
	if err != nil {
		t.Fatal(err)
	}
	out, err := at.Packets(false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var sends sync.WaitGroup
	sends.Go(func() {
		every := time.NewTicker(20 * time.Millisecond)
		defer every.Stop()
		frame := slices.Concat(bytes.Repeat([]byte{0xff}, 6), at.MAC, []byte{0x08, 0x06}, make([]byte, 46))
		for ctx.Err() == nil {
			if err := out.Send(frame); err != nil {
				t.Error(err)
				return
			}
			select {
			case <-ctx.Done():
			case <-every.C:
			}
		}
	})
	return func() {
		cancel()
		sends.Wait()
		_ = out.Close() // nothing is on its way
	}
}

// setMTU sets the MTU of an interface of a host.
func setMTU(t *testing.T, h *testbedtest.Host, name string, mtu int) {
	t.Helper()
	if err := h.Do(func() error {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		return netlink.LinkSetMTU(link, mtu)
	}); err != nil {
		t.Fatal(err)
	}
}

// TestKernelRolesOnThreeHosts sends from one host's interface through a kernel queue on a second host to an interface
// of a third. It checks that every run is valid, even with ARP traffic, that every decision is the engine's, that each
// frame lost on a cable is counted there, and that links which lead elsewhere and small MTUs are reported.
func TestKernelRolesOnThreeHosts(t *testing.T) {
	l := newKernelRoles(t, "")
	elsewhere := writeRoles(t, l.Network, strings.Replace(kernelRoles, "{host: ps, interface: eth2}", "{host: ps, interface: lan}", 1))
	out, said, code := runOnHead(t, l.Network, "testbed", "doctor", elsewhere)
	const nowhere = "no probe frame from out of host q reached lan of host ps in 1s"
	if code != 3 || !strings.Contains(said, nowhere) || !strings.Contains(out, "  arrived\n") {
		t.Errorf("a link that leads elsewhere: exit code %d, %s%s", code, out, said)
	}
	for i, name := range []string{"eth0", "in", "eth2"} { // of the generator, the queue and the server
		setMTU(t, l.Hosts[i], name, 200)
		large := fmt.Sprintf("host %s: not ready: interface %s has an MTU of 200, but frames need 242; ", []string{"gen", "q", "ps"}[i], name)
		if _, said, code := l.bench(t, "testbed:"+l.file); code != 3 || !strings.Contains(said, large) || strings.Count(said, "\n") > 1 {
			t.Errorf("frames larger than an MTU: exit code %d: %s; want one line with %q", code, said, large)
		}
		setMTU(t, l.Hosts[i], name, 1500)
	}
	setMTU(t, l.Hosts[2], "eth2", 200)
	const largeThere = "interface root@10.29.2.2/eth2 has an MTU of 200, but frames need 242; run 'sudo ip link set eth2 mtu 242' there"
	_, said, code = runOnHead(t, l.Network, slowBench(l.Hosts[1].URL("xdp:in,out"), "--generator", l.Hosts[0].URL("nic:eth0"), "--server", l.Hosts[2].URL("eth2"))...)
	if code != 3 || !strings.Contains(said, largeThere) || strings.Count(said, "\n") > 1 {
		t.Errorf("frames larger than the MTU of a server named by flags: exit code %d: %s; want one line with %q", code, said, largeThere)
	}
	setMTU(t, l.Hosts[2], "eth2", 1500)
	quiet := sendARP(t, l.Hosts[0].Node)
	l.expectBench(t, "testbed:"+l.file, 0)
	quiet()
	if said := strings.Join(l.statements, "\n"); !strings.Contains(said, "at the queue's input that were not updates") {
		t.Errorf("no statement mentions ARP: %s", said)
	}
	restore := netlabtest.LoseFrames(t, l.feed)
	mirror := writeRoles(t, l.Network, kernelRoles+"clock: {by: mirror, interface: eth1}\n")
	l.expectBench(t, "testbed:"+mirror, 1.0/6) // the first of the six updates of each worker
	// On a busy machine the ages are withheld, because the kernel's stamps are late.
	if said := strings.Join(l.statements, "\n"); !strings.Contains(said, "arrived at root@10.29.2.2/eth1, stamped by the same clock") {
		t.Errorf("ages by a mirror: %s", said)
	}
	restore()
	netlabtest.LoseFrames(t, l.last)
	if _, said, code := l.bench(t, "testbed:"+l.file); code != 1 || !strings.Contains(said, "on the cable from port 1 to root@10.29.2.2/eth2") {
		t.Errorf("with losses behind the queue: exit code %d: %s", code, said)
	}
	l.AwaitIdle(t)
}

// TestHoldersOutliveTheirHead kills the head of a running testbed and the head of one of its benches. It checks that
// the holders run until down, and that a killed holder is named by show and restarted by up.
func TestHoldersOutliveTheirHead(t *testing.T) {
	l := testbedtest.NewNetwork(t, 2, pathOfOlafctl(t))
	file := writeRoles(t, l, "hosts: {a: {ssh: HOST0}, b: {ssh: HOST1}}\nroles:\n  queue: {host: a, device: 'twin:'}\n  generator: {host: b, device: 'twin:'}\n")
	name := strings.TrimSuffix(filepath.Base(file), ".yaml")
	expect := func(code int, want string, args ...string) {
		t.Helper()
		if out, said, got := runOnHead(t, l, append([]string{"testbed"}, args...)...); got != code || !strings.Contains(out+said, want) {
			t.Fatalf("%v: exit code %d, %s%s; want %d and %q", args, got, out, said, code, want)
		}
	}
	t.Cleanup(func() { runOnHead(t, l, "testbed", "down", name) })
	unfit := writeRoles(t, l, "hosts: {a: {ssh: HOST0}, b: {ssh: HOST1}}\nroles:\n  generator: {host: a, nic: none0}\n"+
		"  queue: {host: b, device: 'xdp:lan,none1'}\n  server: {host: a, interface: lan}\n")
	expect(3, "host a: not ready: there is no interface none0; there are ", "up", unfit)
	expect(3, "b: there is no interface none1", "doctor", unfit)
	holder := func(i int) int { return pidOf(t, l.Hosts[i], "olafctl testbed hold") }
	expect(0, "up: "+name, "up", file)
	first := holder(0)
	bench, err := l.Head.Start(headCommand(t, l, "bench", "-d", l.Hosts[0].URL("twin:"), "--runs", "1000", "-q", "--keep=false"))
	if err != nil {
		t.Fatal(err)
	}
	for pidOf(t, l.Hosts[0], "olafctl device serve") == 0 && t.Context().Err() == nil {
		runtime.Gosched()
	}
	_ = bench.Signal(os.Kill)
	_ = bench.Wait() // it was killed
	expect(0, "up: "+name, "up", file)
	if again := holder(0); first == 0 || again != first {
		t.Errorf("the first host is held by process %d, and later by %d; want one", first, again)
	}
	_ = syscall.Kill(holder(1), syscall.SIGKILL)
	expect(3, "host b: not ready: no process holds testbed "+name, "show", name)
	expect(0, "up: "+name, "up", file)
	expect(0, name, "show", name)
	expect(0, "up: "+name, "up", file, "--for", "1s")
	l.AwaitIdle(t) // the reservation ends, and the holders with it
	expect(0, name+" is down", "down", name)
	l.AwaitIdle(t)
}

// spreadTree is a tree whose aggregators are on two hosts, below a server on a third.
const spreadTree = `hosts: {a: {ssh: HOST0}, b: {ssh: HOST1}, c: {ssh: HOST2}}
job: {lanes: 64, fragments: 32}
nodes:
  - {name: w0, role: worker, host: a}
  - {name: low, role: aggregator, host: a}
  - {name: w1, role: worker, host: b}
  - {name: high, role: aggregator, host: b}
  - {name: ps, role: server, host: c}
links:
  - {child: w0, parent: low}
  - {child: low, parent: high, interfaces: [a0-PID, b0-PID], virtual: true}
  - {child: w1, parent: high}
  - {child: high, parent: ps, interfaces: [b1-PID, c0-PID], virtual: true}
`

// newSpreadHosts creates three hosts, with one cable between the first two and one between the last two, and writes a
// file of nodes on them.
func newSpreadHosts(t *testing.T, text string) (l *testbedtest.Network, file string) {
	t.Helper()
	l = testbedtest.NewNetwork(t, 3, pathOfOlafctl(t))
	pid := fmt.Sprint(os.Getpid() % 1e5) // the hosts share the folder with reservations, so names must be unique
	for _, ends := range [][2]netlab.End{{{Node: l.Hosts[0].Node, Name: "a0-" + pid}, {Node: l.Hosts[1].Node, Name: "b0-" + pid}},
		{{Node: l.Hosts[1].Node, Name: "b1-" + pid}, {Node: l.Hosts[2].Node, Name: "c0-" + pid}}} {
		if _, err := netlab.ConnectNodes(ends[0], ends[1], 1500); err != nil {
			t.Fatal(err)
		}
	}
	return l, writeRoles(t, l, strings.ReplaceAll(text, "PID", pid))
}

// spreadQueue is a kernel queue with one worker on the same host, one on another, and a server on a third.
const spreadQueue = `hosts: {a: {ssh: HOST0}, b: {ssh: HOST1}, c: {ssh: HOST2}}
job: {lanes: 48}
nodes:
  - {name: w0, role: worker, host: a, cluster: 0, rate: 300kbps, tc: 100ms}
  - {name: w1, role: worker, host: b, cluster: 1, rate: 300kbps}
  - {name: s, role: switch, host: b}
  - {name: ps, role: server, host: c}
links:
  - {child: w0, parent: s, interfaces: [a0-PID, b0-PID], virtual: true}
  - {child: w1, parent: s}
  - {child: s, parent: ps, interfaces: [b1-PID, c0-PID], virtual: true}
devices: [{node: s, program: olaf, rate: 400kbps}]
`

// TestQueueOnThreeHosts brings up a queue whose workers and server are on three hosts and send until it is taken down.
// Updates have one frame, and then two, which have addresses and clusters of their own. It checks that updates from both
// workers reach the queue, that every decision is the engine's, that its output arrives, and that nothing is left.
func TestQueueOnThreeHosts(t *testing.T) {
	if !canReal() {
		t.Skip("without the rights to make namespaces and load programs")
	}
	for name, job := range map[string]string{"one frame": "{lanes: 48}", "two frames": "{lanes: 48, fragments: 2}"} {
		t.Run(name, func(t *testing.T) {
			l, file := newSpreadHosts(t, strings.Replace(spreadQueue, "{lanes: 48}", job, 1))
			checkSpreadQueue(t, l, file)
			l.AwaitIdle(t)
		})
	}
}

// checkSpreadQueue brings up the queue in a file, waits until it has delivered updates, and takes it down.
func checkSpreadQueue(t *testing.T, l *testbedtest.Network, file string) {
	t.Helper()
	name := strings.TrimSuffix(filepath.Base(file), ".yaml")
	t.Cleanup(func() { runOnHead(t, l, "testbed", "down", name) })
	if out, said, code := runOnHead(t, l, "testbed", "up", file, "--for", "1h"); code != 0 {
		t.Fatalf("up: exit code %d, %s%s", code, out, said)
	}
	paths := map[string]string{}
	for n := map[string]uint64{}; n["delivered_updates"] < 100; {
		out, said, code := runOnHead(t, l, "testbed", "show", name, "-o", "json")
		var shown struct{ Examined []roles.Examination }
		if err := json.Unmarshal([]byte(out), &shown); err != nil || code != 0 {
			t.Fatalf("show: exit code %d, %v: %s", code, err, said)
		}
		for _, e := range shown.Examined {
			for _, node := range e.Testbed.Nodes {
				if paths[node.Name] = node.Path; node.Name == "s" {
					n = node.Counts
				}
			}
		}
		if n["decisions_checked"] != n["decisions_equal"] || n["malformed"] > 0 || n["misidentified"] > 0 {
			t.Fatalf("the queue counted %v", n)
		}
	}
	for node, end := range map[string]string{"ps": "c0-", "w0": "a0-"} { // updates at the server, answers at w0
		if n := countReceived(t, paths[node], end); n < 10 {
			t.Errorf("%d frames came to %s", n, node)
		}
	}
	if out, said, code := runOnHead(t, l, "testbed", "down", name); code != 0 {
		t.Errorf("down: exit code %d, %s%s", code, out, said)
	}
}

// countReceived returns the number of frames that an interface in a namespace has received.
func countReceived(t *testing.T, path, prefix string) (frames int) {
	t.Helper()
	out, err := exec.Command("nsenter", "--net="+path, "cat", "/proc/net/dev").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		name, counts, _ := strings.Cut(strings.TrimSpace(line), ":")
		if fields := strings.Fields(counts); strings.HasPrefix(name, prefix) {
			frames, err = strconv.Atoi(fields[1])
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return frames
}

// TestTreeOnThreeHosts brings up a tree whose nodes are on three hosts, sums a job's vectors in it, and takes it down.
// It checks that every value is right and that nothing is left.
func TestTreeOnThreeHosts(t *testing.T) {
	if !canReal() {
		t.Skip("without the rights to make namespaces and load programs")
	}
	l, file := newSpreadHosts(t, spreadTree)
	name := strings.TrimSuffix(filepath.Base(file), ".yaml")
	t.Cleanup(func() { runOnHead(t, l, "testbed", "down", name) })
	for range 2 { // the second time there is nothing to do
		if out, said, code := runOnHead(t, l, "testbed", "up", file, "--for", "1h"); code != 0 {
			t.Fatalf("up: exit code %d, %s%s", code, out, said)
		}
	}
	out, said, code := runOnHead(t, l, "testbed", "show", name, "-o", "json")
	var shown struct{ Examined []roles.Examination }
	if err := json.Unmarshal([]byte(out), &shown); err != nil || code != 0 {
		t.Fatalf("show: exit code %d, %v: %s", code, err, said)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	f, err := lab.Parse(file, text)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := roles.ResolveHosts(f)
	if err != nil {
		t.Fatal(err)
	}
	var programs []*exec.Cmd
	outputs := map[*exec.Cmd]*bytes.Buffer{}
	for _, e := range shown.Examined {
		for _, n := range e.Testbed.Nodes {
			i := slices.IndexFunc(plan.Nodes.Nodes, func(p lab.PlannedNode) bool { return p.Name == n.Name })
			if n.Role == lab.Aggregator {
				continue
			}
			words := append(strings.Fields(plan.Nodes.HostCommand(i))[1:], "--vectors", "3")
			cmd := exec.Command("nsenter", append([]string{"--net=" + n.Path, filepath.Join(pathOfOlafctl(t), "olafctl")}, words...)...)
			outputs[cmd] = new(bytes.Buffer)
			cmd.Stdout, cmd.Stderr = outputs[cmd], outputs[cmd]
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if n.Role == lab.Server {
				defer func() { _ = cmd.Wait() }() // after its kill
				defer func() { _ = cmd.Process.Kill() }()
				continue
			}
			programs = append(programs, cmd)
		}
	}
	if len(programs) != 2 {
		t.Fatalf("%d workers run: %s", len(programs), out)
	}
	for _, cmd := range programs {
		err := cmd.Wait()
		var r struct {
			Checked int `json:"values_checked"`
			Wrong   int `json:"values_wrong"`
		}
		if err == nil {
			err = json.Unmarshal(outputs[cmd].Bytes(), &r)
		}
		if err != nil || r.Checked != 3*64*32 || r.Wrong > 0 {
			t.Errorf("worker: %v, %d values checked, %d wrong: %s", err, r.Checked, r.Wrong, outputs[cmd])
		}
	}
	if t.Failed() {
		out, said, _ := runOnHead(t, l, "testbed", "show", name)
		t.Logf("%s%s", out, said)
	}
	if out, said, code := runOnHead(t, l, "testbed", "down", name); code != 0 {
		t.Errorf("down: exit code %d, %s%s", code, out, said)
	}
}

// TestBadTestbeds gives bench and up bad testbeds of three hosts. It checks that each is refused in one line with the
// host's name, and that neither a program nor a reservation is left.
func TestBadTestbeds(t *testing.T) {
	suffix := fmt.Sprint("-", os.Getpid()%1e5) // the hosts share the folder with reservations, so names must be unique
	l := newKernelRoles(t, suffix)
	text, err := os.ReadFile(l.file)
	if err != nil {
		t.Fatal(err)
	}
	setUp := func(i int, name string, up bool) {
		set := map[bool]func(netlink.Link) error{true: netlink.LinkSetUp, false: netlink.LinkSetDown}[up]
		if err := l.Hosts[i].Do(func() error {
			link, err := netlink.LinkByName(name + suffix)
			if err == nil {
				err = set(link)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	const refused, wrong = cli.ExitDevice, cli.ExitUsage
	before := listReservations(t)
	for _, c := range []struct {
		name, old, new string // the change to the good file
		code           int
		want           string
	}{
		{"a role on an unknown host", "host: gen,", "host: gne,", wrong, `the generator is on host "gne", which the file does not describe; there are gen, ps, q`},
		{"an unknown role", "roles:", "links: [{from: generator, to: qeue}]\nroles:", wrong, `a link leads to "qeue", which is no role of this file; did you mean "queue"?`},
		{"a host that does not exist", "root@10.29.2.2", "root@10.29.2.77", refused, "host ps: no ssh connection to root@10.29.2.77: "},
		{"a device without the role", "'xdp:in" + suffix + ",out" + suffix + "'", "'nic:in" + suffix + "'", refused,
			"host q: not ready: device refused: nic:in" + suffix + " was built without a queue (common.role is 0x2); name a device or card image that has one"},
		{"a missing interface", "eth2", "eth9", refused, "host ps: not ready: there is no interface eth9" + suffix + "; there are "},
		{"an interface that is down", "", "", refused, "host q: not ready: interface in" + suffix + " is down; run 'sudo ip link set in" + suffix + " up'"},
		{"a link that leads elsewhere", "eth2" + suffix, "eth1", refused, "link from queue to server: not ready: no probe frame from out" + suffix + " of host q reached eth1 of host ps"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.old == "" {
				setUp(1, "in", false)
				defer setUp(1, "in", true)
			}
			file := filepath.Join(t.TempDir(), filepath.Base(l.file))
			if err := os.WriteFile(file, []byte(strings.Replace(string(text), c.old, c.new, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{{"testbed", "up", "-q", file}, slowBench("testbed:" + file)} {
				if _, said, code := runOnHead(t, l.Network, args...); code != c.code || !strings.Contains(said, c.want) || strings.Count(said, "\n") != 1 {
					t.Errorf("%s: exit code %d, want %d and one line with %q: %s", args[0], code, c.code, c.want, said)
				}
			}
			if now := listReservations(t); !slices.Equal(now, before) {
				t.Errorf("the reservations are %q, want %q as before", now, before)
			}
		})
	}
	l.AwaitIdle(t)
}

// listReservations returns the files of the reservations on this machine.
func listReservations(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("/run/lock/olafctl/*.reservation")
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestFullDiskOnAHost checks that a host without room for a run's files is refused in one line with the host's name.
func TestFullDiskOnAHost(t *testing.T) {
	full := t.TempDir()
	fillDisk(t, full)
	l := testbedtest.NewNetwork(t, 1, pathOfOlafctl(t), "ForceCommand env TMPDIR="+full+` sh -c "$SSH_ORIGINAL_COMMAND"`)
	file := writeRoles(t, l, "hosts: {q: {ssh: HOST0}}\nroles: {queue: {host: q, device: 'twin:'}}\n")
	want := "host q: not ready: " + full + " has room for 0 MB, but a run's files take up to 64 MB; free some space\n"
	for _, args := range [][]string{{"testbed", "up", "-q", file}, {"bench", "-d", "testbed:" + file, "--keep=false", "-q", "--runs", "1"}} {
		if _, said, code := runOnHead(t, l, args...); code != 3 || said != "olafctl: "+want {
			t.Errorf("%s: exit code %d, want 3 and %q: %s", args[0], code, want, said)
		}
	}
	l.AwaitIdle(t)
}
