package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/olafctl/olaf/experiments/testbed/sshlink/sshlinktest"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/netlab/netlabtest"
	"github.com/olafctl/olaf/results"
)

// writeRoles writes a testbed of roles on the laboratory's hosts.
func writeRoles(t *testing.T, l *sshlinktest.Lab, text string) string {
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

// TestTestbedOfTwoHosts brings a testbed of roles up on hosts behind sshd, measures on it by name and by file, and takes it
// down: its rows are those of a twin of this host, its document describes the hosts with their clocks, a second person is told
// who has it, and nothing is left there.
func TestTestbedOfTwoHosts(t *testing.T) {
	l := sshlinktest.New(t, 2, pathOfOlafctl(t))
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

// TestReservationAcrossHosts reserves an interface on each of two hosts, or none: a second person is refused by the name of the
// host, and gets nothing of the first one.
func TestReservationAcrossHosts(t *testing.T) {
	l := sshlinktest.New(t, 2, pathOfOlafctl(t))
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
	"  generator: {host: gen, nic: eth0}\n  queue: {host: q, device: 'xdp:in,out'}\n  server: {host: ps, interface: eth0}\n"

// kernelLab is three hosts with the cables of kernelRoles.
type kernelLab struct {
	*sshlinktest.Lab
	file string
	// feed is the end at which a plain switch receives from the generator, last the server's interface.
	feed, last *netlab.Interface
}

// newKernelRoles makes the hosts and cables.
func newKernelRoles(t *testing.T) *kernelLab {
	t.Helper()
	if !canReal() {
		t.Skip("without the rights to make namespaces and load programs")
	}
	l := &kernelLab{Lab: sshlinktest.New(t, 3, pathOfOlafctl(t))}
	l.file = writeRoles(t, l.Lab, kernelRoles)
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
	l.feed = cable(l.Hosts[0].Node, "eth0", between, "port0")
	cable(l.Hosts[1].Node, "in", between, "port1")
	netlabtest.Bridge(t, between, "port0", "port1")
	l.last = cable(l.Hosts[1].Node, "out", l.Hosts[2].Node, "eth0")
	return l
}

// bench measures with real packets and returns the document.
func (l *kernelLab) bench(t *testing.T, device string) (doc results.Bench, said string, code int) {
	t.Helper()
	out, said, code := runOnHead(t, l.Lab, "bench", "-d", device, "--rate", "8M", "--out-rate", "3M", "--burst", "1", "--runs", "1",
		"--updates", "20", "--versus", "", "-q", "--keep=false", "-o", "json")
	if out != "" {
		if err := json.Unmarshal([]byte(out), &doc); err != nil {
			t.Fatal(err)
		}
	}
	return doc, said, code
}

// expectBench expects valid runs, in which every decision is the engine's, and a share of lost frames on the cable to the queue.
func (l *kernelLab) expectBench(t *testing.T, device string, lost float64) {
	t.Helper()
	doc, said, code := l.bench(t, device)
	if code != 0 || len(doc.Rows) != 1 || len(doc.Provenance.Hosts) != 3 {
		t.Fatalf("exit code %d, %d rows, hosts %+v: %s", code, len(doc.Rows), doc.Provenance.Hosts, said)
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

// TestKernelRolesOnThreeHosts sends from one host's interface through a queue in the kernel of a second one to the interface of a third:
// every run is valid, every decision is the engine's, and each frame lost on a cable is counted there.
func TestKernelRolesOnThreeHosts(t *testing.T) {
	l := newKernelRoles(t)
	l.expectBench(t, "testbed:"+l.file, 0)
	restore := netlabtest.LoseFrames(t, l.feed)
	l.expectBench(t, "testbed:"+l.file, 3.0/20) // of each worker's updates 0, 8 and 16
	restore()
	netlabtest.LoseFrames(t, l.last)
	if _, said, code := l.bench(t, "testbed:"+l.file); code != 1 || !strings.Contains(said, "on the cable from port 1 to root@10.29.2.2/eth0") {
		t.Errorf("with losses behind the queue: exit code %d: %s", code, said)
	}
	l.AwaitIdle(t)
}
