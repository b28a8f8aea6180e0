package realtime

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/pair"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/fpga/xdp"
)

// openAt opens a card at interfaces in a namespace.
func openAt(t *testing.T, at *netlab.Node, h Hosts) *Card {
	t.Helper()
	var c *Card
	must(t, at.Do(func() (err error) { c, err = Open(backends[0], h); return err }))
	return c
}

// sendOthers sends frames that are not OLAF's from a node's eth0, and returns their number.
func sendOthers(t *testing.T, from *netlab.Node) uint64 {
	t.Helper()
	at, err := from.Interface("eth0")
	must(t, err)
	out, err := at.Packets(false)
	must(t, err)
	defer out.Close()
	kinds := []uint16{0x88cc, 0x0806, 0x86dd, 0x0800} // LLDP, ARP, IPv6, and IPv4 without OLAF
	for _, kind := range kinds {
		must(t, out.Send(binary.BigEndian.AppendUint16(bytes.Repeat([]byte{0xff}, 12), kind)))
	}
	return uint64(len(kinds))
}

// TestInterfacesInSeparateNamespaces sends from a generator at one interface through a queue between two others, each
// in a separate namespace. It checks that every frame reaches the server, that every decision is the engine's, that
// frames that are not OLAF's are counted separately, and that the interfaces are restored.
func TestInterfacesInSeparateNamespaces(t *testing.T) {
	if err := netlab.CheckRights(slices.Concat(netlab.NamespaceRights, netlab.PacketRights, xdp.LoadRights)...); err != nil {
		t.Skip(err)
	}
	ground, err := netlab.New()
	must(t, err)
	defer ground.Close()
	var nodes [3]*netlab.Node
	for i, name := range []string{"gen", "q", "ps"} {
		nodes[i], err = ground.Node(name)
		must(t, err)
	}
	_, err = netlab.ConnectNodes(netlab.End{Node: nodes[0], Name: "eth0"}, netlab.End{Node: nodes[1], Name: "in"}, 1500)
	must(t, err)
	last, err := netlab.ConnectNodes(netlab.End{Node: nodes[1], Name: "out"}, netlab.End{Node: nodes[2], Name: "eth0"}, 1500)
	must(t, err)
	queue, generator := openAt(t, nodes[1], Between("in", "out")), openAt(t, nodes[0], Hosts{Generator: "eth0"})
	if queue.Identity().Address != "xdp:in,out" || generator.Identity().Address != "nic:eth0" {
		t.Errorf("the addresses are %s and %s", queue.Identity().Address, generator.Identity().Address)
	}
	for c, want := range map[*Card]string{queue: "has no generator", generator: "has no queue"} {
		if err := c.Write32(regmap.GeneratorCommand, regmap.GeneratorCommandArm); !errors.Is(err, fpga.ErrRefused) || !strings.Contains(err.Error(), want) {
			t.Errorf("arming %s: %v; want %q", c.Identity().Address, err, want)
		}
	}
	joined, err := pair.New(generator, queue, true)
	must(t, err)
	ears, err := last.B.Packets(true)
	must(t, err)
	defer ears.Close()
	before, err := joined.PortCounts()
	must(t, err)
	w := workload{workers: 6, clusters: 3, updates: 300, gap: 25_000, size: 256}
	w.load(t, generator)
	configure(t, queue, "olaf", 5*olaf.Mbps)
	must(t, queue.SetSenders(generator.senders), fpga.ClearCounters(generator))
	must(t, generator.Write32(regmap.GeneratorCommand, regmap.GeneratorCommandArm), generator.Write32(regmap.GeneratorCommand, regmap.GeneratorCommandStart))
	others := sendOthers(t, nodes[0])
	ctx := within(t)
	for state := uint32(running); state == running || state == stopping; {
		must(t, joined.Sleep(ctx, olaf.Millisecond))
		state, err = joined.Read32(regmap.GeneratorState)
		must(t, err)
	}
	must(t, fpga.DrainQueue(ctx, joined))
	n, err := fpga.Snapshot(joined)
	must(t, err)
	d, err := queue.Decisions()
	must(t, err)
	if n.Generator.SentPackets != 300 || n.Queue.In != 300 || n.Queue.DeliveredFrames == 0 || d.Equal != d.Checked || d.Checked < 300 {
		t.Errorf("%d sent, %d arrived, %d left, decisions %+v", n.Generator.SentPackets, n.Queue.In, n.Queue.DeliveredFrames, d)
	}
	latched, now, err := queue.OtherFrames()
	if err != nil || n.Queue.Bypassed != others || latched != others || now != others {
		t.Errorf("of %d frames that are not OLAF's, %d bypassed the queue, and %d and %d were told from updates (%v)", others,
			n.Queue.Bypassed, latched, now, err)
	}
	for i := range n.Queue.DeliveredFrames {
		if _, err := ears.Receive(make([]byte, 2048)); err != nil {
			t.Fatalf("frame %d of %d at the server: %v", i, n.Queue.DeliveredFrames, err)
		}
	}
	after, err := joined.PortCounts()
	must(t, err)
	if got := after[2].Sent - before[2].Sent; !after[2].Feeds || got != 300+others || after[0].Received-before[0].Received != 300+others ||
		after[1].Sent-before[1].Sent != n.Queue.DeliveredFrames {
		t.Errorf("ports %+v, before %+v", after, before)
	}
	must(t, joined.Close())
	for _, name := range []string{"in", "out"} {
		i, err := nodes[1].Interface(name)
		must(t, err)
		if s, err := i.State(); err != nil || !s.Up || s.Program != 0 {
			t.Errorf("afterwards, interface %s is %+v (%v)", name, s, err)
		}
	}
}
