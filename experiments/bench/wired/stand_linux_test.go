package wired

import (
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

// TestStandRejectsARestartedHost sends frames of two processes of one worker to a switch that remembers its sums: the
// second process gets none of them, and the first one still does.
func TestStandRejectsARestartedHost(t *testing.T) {
	if err := netlab.CheckRights(append(netlab.NamespaceRights, netlab.PacketRights...)...); err != nil {
		t.Skip(err)
	}
	s, err := system.All().Find("switchml")
	if err != nil {
		t.Fatal(err)
	}
	parts, err := s.Modes[0].Parts(&system.Options{})
	if err != nil {
		t.Fatal(err)
	}
	parts.Root = parts.Program.New
	net := closedloop.Network{Jobs: 1, Workers: 1, Link: closedloop.Link{Rate: 10 * olaf.Gbps}}
	job := closedloop.Job{Layout: endpoint.Layout{Values: parts.PerPacket, PerPacket: parts.PerPacket}, Updates: 1}
	var said []string
	stand, err := OpenStand(net, job, parts, nil, func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) })
	if err != nil {
		t.Fatal(err)
	}
	lab, err := netlab.New()
	if err != nil {
		t.Fatal(err)
	}
	defer lab.Close()
	node, err := lab.Enter("worker", stand.Paths[0])
	if err != nil {
		t.Fatal(err)
	}
	at, err := node.Interface(HostInterface)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := at.Frames()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	first, second := NewHostFrames(&parts, 1, 0), NewHostFrames(&parts, 1, 0)
	send := func(c *HostFrames, slot uint32) {
		t.Helper()
		p := program.Packet{Kind: program.Data, Job: closedloop.FirstJob, Index: slot, Count: 1, Lanes: uint16(parts.PerPacket)}
		frame := make([]byte, olaf.MaxFrame)
		n, err := c.Encode(frame, &p, make([]uint32, parts.PerPacket), c.Switch())
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.Send(frame[:n]); err != nil {
			t.Fatal(err)
		}
	}
	awaitSlot := func(slot uint32) {
		t.Helper()
		if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		var p program.Packet
		if _, err := conn.Receive(func(b []byte) {
			if _, _, ok := first.Decode(b, 0, &p); !ok || p.Index != slot || p.Kind != program.Result {
				t.Errorf("the switch sends %+v, want the sum in slot %d", p, slot)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	send(first, 3)
	awaitSlot(3)
	send(second, 3) // the switch remembers this sum
	send(first, 4)
	awaitSlot(4)
	counts, err := stand.Close()
	if err != nil || counts["strange"] != 1 || len(said) != 1 || !strings.Contains(said[0], "was restarted") {
		t.Errorf("the switch ends with %v, %v and says %q; want one strange frame, of a worker that was restarted", counts, err, said)
	}
}
