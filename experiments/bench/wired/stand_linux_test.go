package wired

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// testStand is a switch for one worker, with the worker's socket.
type testStand struct {
	*testing.T
	*Stand
	parts system.Parts
	conn  *netlab.FrameConn
	said  []string
}

// newTestStand starts a switch for one worker of SwitchML.
func newTestStand(t *testing.T) *testStand {
	t.Helper()
	if err := netlab.CheckRights(append(netlab.NamespaceRights, netlab.PacketRights...)...); err != nil {
		t.Skip(err)
	}
	s, err := system.All().Find("switchml")
	if err != nil {
		t.Fatal(err)
	}
	k := &testStand{T: t}
	if k.parts, err = s.Modes[0].Parts(&system.Options{}); err != nil {
		t.Fatal(err)
	}
	k.parts.Root = k.parts.Program.New
	net := closedloop.Network{Jobs: 1, Workers: 1, Link: closedloop.Link{Rate: 10 * olaf.Gbps}}
	job := closedloop.Job{Layout: endpoint.Layout{Values: k.parts.PerPacket, PerPacket: k.parts.PerPacket}, Updates: 1}
	if k.Stand, err = OpenStand(net, job, k.parts, nil, func(format string, args ...any) {
		k.said = append(k.said, fmt.Sprintf(format, args...))
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = k.Close() })
	lab, err := netlab.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lab.Close() })
	node, err := lab.Enter("worker", k.Paths[0])
	if err != nil {
		t.Fatal(err)
	}
	at, err := node.Interface(HostInterface)
	if err != nil {
		t.Fatal(err)
	}
	if k.conn, err = at.Frames(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.conn.Close() })
	return k
}

// send sends a full packet in a slot.
func (k *testStand) send(c *HostFrames, slot uint32) {
	k.Helper()
	p := program.Packet{Kind: program.Data, Job: closedloop.FirstJob, Index: slot, Count: 1, Lanes: uint16(k.parts.PerPacket)}
	b := make([]byte, olaf.MaxFrame)
	n, err := c.Encode(b, &p, make([]uint32, k.parts.PerPacket), c.Switch())
	if err != nil {
		k.Fatal(err)
	}
	if err := k.conn.Send(b[:n]); err != nil {
		k.Fatal(err)
	}
}

// await returns the next packet from the switch.
func (k *testStand) await(c *HostFrames) (p program.Packet) {
	k.Helper()
	if err := k.conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		k.Fatal(err)
	}
	if _, err := k.conn.Receive(func(b []byte) {
		if _, _, ok := c.Decode(b, 0, &p); !ok {
			k.Errorf("the switch sends % x, want a packet for the worker", b)
		}
	}); err != nil {
		k.Fatal(err)
	}
	return p
}

// awaitSum waits for the sum in a slot.
func (k *testStand) awaitSum(c *HostFrames, slot uint32) {
	k.Helper()
	if p := k.await(c); p.Index != slot || p.Kind != program.Result {
		k.Errorf("the switch sends %+v, want the sum in slot %d", p, slot)
	}
}

// TestStandRejectsARestartedHost sends frames of two processes of one worker to a switch that remembers its sums: the
// second process gets none of them, and the first one still does.
func TestStandRejectsARestartedHost(t *testing.T) {
	k := newTestStand(t)
	first, second := NewHostFrames(&k.parts, 1, 0), NewHostFrames(&k.parts, 1, 0)
	k.send(first, 3)
	k.awaitSum(first, 3)
	k.send(second, 3) // the switch remembers this sum
	k.send(first, 4)
	k.awaitSum(first, 4)
	counts, err := k.Stop()
	if err != nil || counts["strange"] != 1 || len(k.said) != 1 || !strings.Contains(k.said[0], "was restarted") {
		t.Errorf("the switch ends with %v, %v and says %q; want one strange frame, of a worker that was restarted", counts, err, k.said)
	}
}

// TestStandAnnouncesItsEnd checks that a switch ignores frames of other protocols, and that its hosts learn when it ends.
func TestStandAnnouncesItsEnd(t *testing.T) {
	k := newTestStand(t)
	arp := append(bytes.Repeat([]byte{0xff}, 12), 8, 6)
	if err := k.conn.Send(append(arp, make([]byte, 46)...)); err != nil {
		t.Fatal(err)
	}
	c := NewHostFrames(&k.parts, 1, 0)
	k.send(c, 0)
	k.awaitSum(c, 0)
	counts, err := k.Stop()
	if err != nil || counts["strange"] != 1 {
		t.Errorf("the switch ends with %v, %v; want one strange frame", counts, err)
	}
	k.announceEnd()
	if p := k.await(c); !isLeave(&p) || int(p.Worker) != 2 {
		t.Errorf("at its end the switch sends %+v, want that host 2 left", p)
	}
}
