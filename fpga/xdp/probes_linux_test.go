package xdp

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/regmap"
)

// TestForwardProbes checks that probe frames, and no others, leave by another interface, with all their bytes.
func TestForwardProbes(t *testing.T) {
	if err := netlab.CheckRights(append(append([]netlab.Right{}, netlab.NamespaceRights...), LoadRights...)...); err != nil {
		t.Skip(err)
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	lab, err := netlab.New()
	check(err)
	t.Cleanup(func() { check(lab.Close()) })
	var nodes [3]*netlab.Node // generator, queue and server
	for i, name := range []string{"generator", "queue", "server"} {
		nodes[i], err = lab.Node(name)
		check(err)
	}
	in, err := netlab.ConnectNodes(netlab.End{Node: nodes[0], Name: "out"}, netlab.End{Node: nodes[1], Name: "in"}, 1500)
	check(err)
	out, err := netlab.ConnectNodes(netlab.End{Node: nodes[1], Name: "out"}, netlab.End{Node: nodes[2], Name: "in"}, 1500)
	check(err)
	forwarder, err := ForwardProbes(in.B, out.A)
	check(err)
	sender, err := in.A.Packets(false)
	check(err)
	defer sender.Close()
	server, err := out.B.Packets(true)
	check(err)
	defer server.Close()

	frame := func(port uint16, seq uint32) []byte {
		b := make([]byte, olaf.FrameSize(4))
		_, err := olaf.EncodeUpdate(b, &olaf.Addresses{DstMAC: [6]byte{2, 0, 0, 0, 0, 9}}, &olaf.Update{Count: 1, Seq: seq, Lanes: 4}, make([]int32, 4))
		check(err)
		binary.BigEndian.PutUint16(b[36:], port)
		return b
	}
	received := func(atMostMS int) (seen string) { // frames of IPv6 come from the kernel
		for buf := make([]byte, 2048); ; {
			server.Wait(atMostMS)
			switch n, err := server.Receive(buf); {
			case errors.Is(err, netlab.ErrAgain):
				return seen
			case err != nil:
				t.Fatal(err)
			case string(buf[:n]) == string(frame(regmap.NotOlafPort, 2)):
				return seen + "the probe frame"
			case binary.BigEndian.Uint16(buf[12:]) != 0x86dd:
				seen += "another frame, "
			}
		}
	}
	arp := append(make([]byte, 12), 0x08, 0x06)
	seen := ""
	for range 100 { // a new cable loses frames until the kernel has activated its ends
		for _, b := range [][]byte{frame(olaf.UDPPort, 1), append(arp, make([]byte, 46)...), frame(regmap.NotOlafPort, 2)} {
			check(sender.Send(b))
		}
		if seen = received(100); seen != "" {
			break
		}
	}
	if seen != "the probe frame" {
		t.Errorf("the server received %q, want the probe frame only", seen)
	}
	check(forwarder.Close())
	check(sender.Send(frame(regmap.NotOlafPort, 3)))
	if seen := received(100); seen != "" {
		t.Errorf("after the forwarder was closed, the server received %q", seen)
	}
}
