package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
)

// TestReserveForTwoPeople lets a second person meet a reservation: the testbed, its interface and its card are refused with
// the first one's name, until that one releases them.
func TestReserveForTwoPeople(t *testing.T) {
	locks := t.TempDir()
	file := filepath.Join(t.TempDir(), "paper.yaml")
	const text = "hosts: {here: {}}\nroles:\n  queue: {host: here, device: \"pci:0000:3b:00.0\"}\n  server: {host: here, interface: eth7}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	as := func(who string, args ...string) (code int, said string) {
		t.Setenv("SUDO_USER", who)
		var out bytes.Buffer
		env := testEnvironment(&out, &out)
		env.Bus.Locks, env.Bus.Sysfs = locks, locks
		code = run(t.Context(), env, append([]string{"testbed"}, args...))
		return code, out.String()
	}
	expect := func(who string, code int, said string, args ...string) {
		t.Helper()
		if c, all := as(who, args...); c != code || !strings.Contains(all, said) {
			t.Errorf("%s, %v: exit code %d, %q; want %d and %q", who, args, c, all, code, said)
		}
	}
	expect("alice", cli.ExitUsage, "use more than 0s", "reserve", file, "--for", "0s")
	expect("alice", cli.ExitUsage, "you have no reservation of testbed paper", "release", file)
	expect("alice", cli.ExitDone, "paper is reserved until ", "reserve", file, "--for", "1h", "--note", "table 1 runs")
	expect("bob", cli.ExitDevice, "host here: pci:0000:3b:00: it is reserved by alice@", "reserve", file)
	expect("bob", cli.ExitUsage, "you have no reservation", "release", file)
	lab := filepath.Join(t.TempDir(), "lab.yaml")
	const cable = "nodes: [{name: w, role: worker}, {name: s, role: aggregator}, {name: ps, role: server}]\n" +
		"links: [{child: w, parent: s, interfaces: [eth6, eth7]}, {child: s, parent: ps}]\n"
	if err := os.WriteFile(lab, []byte(cable), 0o600); err != nil {
		t.Fatal(err)
	}
	expect("bob", cli.ExitDevice, "interface eth7: it is reserved by alice@", "up", lab)
	expect("alice", cli.ExitDone, "paper is released", "release", file)
	expect("bob", cli.ExitDone, "paper is reserved", "reserve", file, "--wait")
}
