package queue

import (
	"net/netip"
	"os/exec"
	"testing"
	"time"

	"github.com/olafctl/olaf/fpga/netlab"
)

// TestPartitions lets two hosts work together, each in a network of its own, whose cable is dead for 200 ms
// twenty times, whenever a hundred more results came: one host has server and coordinator, the other the only machine. The digest is
// that of one process.
func TestPartitions(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	if err := netlab.Missing(netlab.NamespaceRights...); err != nil {
		t.Skip(err)
	}
	ip, err := exec.LookPath("ip")
	if err != nil {
		t.Skip("without ip (Debian package iproute2) nobody cuts cables")
	}
	lab, err := netlab.New()
	must(t, err)
	t.Cleanup(func() { must(t, lab.Close()) })
	near, err := lab.Node("near")
	must(t, err)
	far, err := lab.Node("far")
	must(t, err)
	cable, err := netlab.Connect(netlab.End{Node: near, Name: "far"}, netlab.End{Node: far, Name: "near"}, 1500)
	must(t, err)
	must(t, cable.A.Address(netip.MustParsePrefix("10.19.0.1/24")))
	must(t, cable.B.Address(netip.MustParsePrefix("10.19.0.2/24")))
	in := func(n *netlab.Node) func(*exec.Cmd) error {
		return func(cmd *exec.Cmd) error { _, err := n.Start(cmd); return err }
	}
	link := func(state string) {
		t.Helper()
		p, err := far.Start(exec.Command(ip, "link", "set", "dev", "near", state))
		must(t, err)
		must(t, p.Wait())
	}
	const address, values = "10.19.0.1:4222", "1000..3999"
	server := &role{kind: "server", env: []string{hostOf + "=" + address, folderOf + "=" + t.TempDir()}, start: in(near)}
	server.begin(t)
	machine := &role{kind: "machine", name: "far", env: []string{hostOf + "=" + address}, start: in(far)}
	machine.begin(t)
	coordinator := &role{kind: "coordinator", env: []string{hostOf + "=" + address, folderOf + "=" + t.TempDir(), valuesOf + "=" + values}, start: in(near)}
	coordinator.begin(t)
	want := alone(t, plan(t, values))
	const dead, most, between = 200 * time.Millisecond, 20, 100
	cuts := 0
	got := untilDigest(t, coordinator, between, func() int {
		link("down")
		time.Sleep(dead) // for as long as the cable is to be dead
		link("up")
		if cuts++; cuts == most {
			return 0
		}
		return between
	})
	if got != want {
		t.Fatalf("after %d partitions: %q, want %s", cuts, got, want)
	}
	if cuts < most {
		t.Fatalf("only %d partitions: the sweep is too short for more", cuts)
	}
	t.Logf("%d partitions of %v in a sweep of 3,000 cells: the digest is the one of one process", cuts, dead)
}
