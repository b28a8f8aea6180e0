package realtime

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/dataplane"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/regmap"
)

// TestWires runs a card whose cables connect interfaces of this machine. Network cards receive only frames addressed to
// them, so frames get their hardware addresses.
func TestWires(t *testing.T) {
	for _, b := range backends {
		t.Run(b.Address, func(t *testing.T) {
			if err := netlab.CheckRights(slices.Concat(netlab.NamespaceRights, netlab.PacketRights, b.Rights)...); err != nil {
				t.Skip(err)
			}
			ground, err := netlab.New()
			must(t, err)
			defer ground.Close()
			here, err := ground.Node("here")
			must(t, err)
			for _, ends := range [][2]string{{"eth0", "eth1"}, {"eth2", "eth3"}} {
				_, err := netlab.ConnectNodes(netlab.End{Node: here, Name: ends[0]}, netlab.End{Node: here, Name: ends[1]}, 1500)
				must(t, err)
			}
			var c *Card
			must(t, here.Do(func() (err error) {
				c, err = Open(b, Hosts{Wires: map[int]Wire{0: {Host: "eth0", Hub: "eth1", Virtual: true},
					1: {Host: "eth3", Hub: "eth2", Virtual: true}}})
				return err
			}))
			defer func() { must(t, c.Close()) }()
			if c.Workers().Name != "eth0" || c.in[0].B.Name != "eth1" || c.out.A.Name != "eth2" || c.Server().Name != "eth3" {
				t.Fatalf("the cables are %+v and %+v", c.in[0], c.out)
			}
			ears, err := c.Server().Packets(true)
			must(t, err)
			defer ears.Close()
			runs(t, c)
			frame := make([]byte, olaf.FrameSize(maxLanes))
			_, err = ears.Receive(frame)
			must(t, err)
			if !bytes.HasPrefix(frame, slices.Concat(c.Server().MAC, c.out.A.MAC)) {
				t.Errorf("a frame came to the server's interface %v as % x", c.Server().MAC, frame[:12])
			}
			sent := c.generator.encodeFrame(frame, &c.generator.flows[0], new(regmap.Descriptor), 256, 0)
			if !bytes.HasPrefix(sent, slices.Concat(c.in[0].B.MAC, c.Workers().MAC)) {
				t.Errorf("a frame leaves for the switch's interface %v as % x", c.in[0].B.MAC, sent[:12])
			}
		})
	}
}

// TestWiresRefused checks that cables of this machine are refused if the switch's programs forward packets themselves.
func TestWiresRefused(t *testing.T) {
	_, err := Open(dataplane.Backend{Address: "own:", Forwards: true}, Hosts{Wires: map[int]Wire{0: {}}})
	if errors.Is(err, netlab.ErrRights) {
		t.Skip(err)
	}
	if !errors.Is(err, netlab.ErrNetwork) {
		t.Error(err)
	}
}
