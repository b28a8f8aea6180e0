package queue

import (
	"os/exec"
	"testing"
	"time"

	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/netlab/netlabtest"
)

// TestPartitions checks a sweep on two hosts, each in its own network namespace, whose cable is cut for 200 ms twenty
// times, each time after a hundred more results. One host runs server and coordinator, the other the only machine. The
// digest must be that of a single process.
func TestPartitions(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	pair := netlabtest.NewPair(t)
	in := func(n *netlab.Node) func(*exec.Cmd) error {
		return func(cmd *exec.Cmd) error { _, err := n.Start(cmd); return err }
	}
	const address, values = netlabtest.Near + ":4222", "1000..3999"
	server := &role{kind: "server", env: []string{hostOf + "=" + address, folderOf + "=" + t.TempDir()}, start: in(pair.Near)}
	server.begin(t)
	machine := &role{kind: "machine", name: "far", env: []string{hostOf + "=" + address}, start: in(pair.Far)}
	machine.begin(t)
	coordinator := &role{kind: "coordinator", env: []string{hostOf + "=" + address, folderOf + "=" + t.TempDir(),
		valuesOf + "=" + values}, start: in(pair.Near)}
	coordinator.begin(t)
	want := soloDigest(t, plan(t, values))
	const dead, most, between = 200 * time.Millisecond, 20, 100
	cuts := 0
	got := untilDigest(t, coordinator, between, func() int {
		pair.Cut(t, dead)
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
