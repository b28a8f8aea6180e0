package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/olafctl/olaf/experiments/testbed/sshlink/sshlinktest"
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
