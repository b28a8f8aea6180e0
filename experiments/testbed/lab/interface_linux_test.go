package lab

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sync/errgroup"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/frame"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/xdp"
	"github.com/olafctl/olaf/pktgen/endpoint"
	"github.com/olafctl/olaf/pktgen/process"
)

// ground is a test machine with an interface that replaces a network card, and the device behind it.
type ground struct {
	here, far *netlab.Node
	nic       *netlab.Cable // A is on this side
}

const farAddress = "192.0.2.1"

func newGround(t *testing.T) *ground {
	t.Helper()
	able(t)
	outside, err := netlab.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := outside.Close(); err != nil {
			t.Error(err)
		}
	})
	g := new(ground)
	if g.here, err = outside.Node("here"); err == nil {
		g.far, err = outside.Node("far")
	}
	if err == nil {
		g.nic, err = netlab.ConnectNodes(netlab.End{Node: g.here, Name: "nic0"}, netlab.End{Node: g.far, Name: "far0"}, 1500)
	}
	if err == nil {
		err = g.nic.B.Address(netip.MustParsePrefix(farAddress + "/24"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// up builds a testbed on this machine.
func (g *ground) up(t *testing.T, text string, o Options) (l *Lab, err error) {
	t.Helper()
	p := plan(t, text)
	err = g.here.Do(func() error {
		l, err = Up(p, o)
		return err
	})
	if err == nil {
		t.Cleanup(func() {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return l, err
}

// behind returns a testbed file with two workers and a server, one of which is behind the interface.
func behind(far, mode string) string {
	text := fmt.Sprintf("job: {lanes: 8, fragments: 70}\nlinks: [{child: a, parent: s}, {child: b, parent: s}, {child: s, parent: ps}]\ndevices: [{node: s, mode: %s}]\nnodes:\n  - {name: s, role: aggregator}\n", mode)
	for name, role := range map[string]string{"a": Worker, "ps": Server} {
		if name == "a" {
			text += "  - {name: b, role: worker}\n"
		}
		if name == far {
			text += fmt.Sprintf("  - {name: %s, role: %s, interface: nic0, virtual: true, address: %s, mac: \"MAC\"}\n", name, role, farAddress)
		} else {
			text += fmt.Sprintf("  - {name: %s, role: %s}\n", name, role)
		}
	}
	return text
}

// TestInterface checks the sums of workers if one of them, or the server, is behind an interface of this machine, in
// both modes. A pair of virtual interfaces replaces a network card and the device behind it.
func TestInterface(t *testing.T) {
	for _, far := range []string{"a", "ps"} {
		for _, mode := range []string{Native, Generic} {
			t.Run(far+" "+mode, func(t *testing.T) {
				g := newGround(t)
				l, err := g.up(t, strings.Replace(behind(far, mode), "MAC", g.nic.B.MAC.String(), 1), Options{})
				if err != nil {
					t.Fatal(err)
				}
				if far == "ps" { // deliver frames like a card in another machine
					pass, err := xdp.AttachPass(g.nic.B)
					if err != nil {
						t.Fatal(err)
					}
					defer pass.Close()
				}
				g.route(t, l, "10.77.0.0/16")
				g.job(t, l, endpoint.XAgg{})
				if faults := l.Faults(); len(faults) > 0 {
					t.Error(faults)
				}
			})
		}
	}
}

// pair creates two interfaces of this machine that are connected.
func (g *ground) pair(t *testing.T, a, b string) {
	t.Helper()
	if _, err := netlab.ConnectNodes(netlab.End{Node: g.here, Name: a}, netlab.End{Node: g.here, Name: b}, 1500); err != nil {
		t.Fatal(err)
	}
}

// TestWires checks sums over cables between interfaces of this machine, at every place in a tree and in both modes.
// Pairs of virtual interfaces replace network cards.
func TestWires(t *testing.T) {
	for _, mode := range []string{Native, Generic} {
		t.Run(mode, func(t *testing.T) {
			g := newGround(t)
			g.pair(t, "eth1", "eth0")
			g.pair(t, "eth2", "eth3")
			g.pair(t, "eth4", "eth5")
			text := strings.NewReplacer("eth0]", "eth0], virtual: true", "eth3]", "eth3], virtual: true").Replace(wires)
			l, err := g.up(t, text+"devices: [{node: low, mode: "+mode+"}, {node: high, mode: "+mode+"}]\njob: {lanes: 8, fragments: 70}\n", Options{})
			if err != nil {
				t.Fatal(err)
			}
			g.job(t, l, endpoint.XAgg{})
			if faults := l.Faults(); len(faults) > 0 {
				t.Error(faults)
			}
			for i, ends := range [][2]string{{"eth1", "eth0"}, {UpName, "b"}, {"eth2", "eth3"}, {"eth4", "eth5"}} {
				c := l.Cables[i]
				n, err := c.A.Counts()
				if c.A.Name != ends[0] || c.B.Name != ends[1] || err != nil || n.Sent < 3*70 {
					t.Errorf("cable %d joins %s and %s, not %v; %+v, %v", i, c.A.Name, c.B.Name, ends, n, err)
				}
			}
		})
	}
}

// TestQueueWires checks a queue over cables between interfaces of this machine, for workers and for the server, in both
// modes.
func TestQueueWires(t *testing.T) {
	able(t)
	if err := netlab.CheckRights(netlab.PacketRights...); err != nil {
		t.Skip(err)
	}
	for _, mode := range []string{Native, Generic} {
		t.Run(mode, func(t *testing.T) {
			g := newGround(t)
			g.pair(t, "eth1", "eth0")
			g.pair(t, "eth2", "eth3")
			l, err := g.up(t, `nodes: [{name: a, role: worker, cluster: 0, rate: 500kbps}, {name: b, role: worker, cluster: 1, rate: 500kbps, tc: 1s}, {name: s, role: switch}, {name: ps, role: server}]
links: [{child: a, parent: s}, {child: b, parent: s, interfaces: [eth1, eth0], virtual: true}, {child: s, parent: ps, interfaces: [eth2, eth3], virtual: true}]
devices: [{node: s, program: olaf, slots: 4, rate: 300kbps, mode: `+mode+`}]
job: {lanes: 48}`, Options{Command: hostsOf("wires")})
			if err != nil {
				t.Fatal(err)
			}
			if l.Cables[1].A.Name != "eth1" || l.Cables[2].B.Name != "eth3" {
				t.Errorf("the cables are %+v and %+v", l.Cables[1], l.Cables[2])
			}
			counts := l.overloaded(t)
			acks, err := l.Cables[1].A.Counts()
			if faults := l.Faults(); len(faults) > 0 || err != nil || acks.Received == 0 {
				t.Error(faults, acks, err)
			}
			if counts["decisions_checked"] != counts["decisions_equal"] || counts["misidentified"]+counts["malformed"]+counts["lost_before_engine"] > 0 {
				t.Error(counts)
			}
		})
	}
}

// hostsOf starts this test as the programs on hosts, marked by a name.
func hostsOf(name string) func(args ...string) *exec.Cmd {
	marker := asHost + "=" + nameFor(name)
	return func(args ...string) *exec.Cmd {
		cmd := exec.Command(os.Args[0], args...)
		cmd.Env = append(os.Environ(), marker)
		return cmd
	}
}

// overloaded waits until a queue has delivered and merged updates, and its decisions were compared.
func (l *Lab) overloaded(t *testing.T) (counts map[string]uint64) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	for counts["delivered_frames"] < 50 || counts["aggregated"]+counts["replaced"]+counts["dropped_full"] == 0 || counts["decisions_checked"] == 0 {
		var err error
		if counts, err = l.queue.counts(); err != nil || ctx.Err() != nil {
			t.Fatal(counts, err, ctx.Err())
		}
	}
	return counts
}

// route sets the route back to the testbed.
func (g *ground) route(t *testing.T, l *Lab, nets string) {
	t.Helper()
	here := netip.Addr{}
	for i := range l.Plan.Cables {
		c := &l.Plan.Cables[i]
		if l.Plan.Nodes[c.Child].Device != "" {
			here = c.Upper
		}
		if l.Plan.Nodes[c.Parent].Device != "" {
			here = c.Lower
		}
	}
	err := g.far.Do(func() error {
		_, all, err := net.ParseCIDR(nets)
		if err != nil {
			return err
		}
		return netlink.RouteAdd(&netlink.Route{LinkIndex: g.nic.B.Index, Dst: all, Gw: here.AsSlice()})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// at opens a socket at a node.
func (g *ground) at(t *testing.T, l *Lab, node int, address netip.Addr) *net.UDPConn {
	t.Helper()
	n := l.Nodes[node]
	if n == nil {
		n = g.far
	}
	c, err := n.Datagrams(netip.AddrPortFrom(address, olaf.UDPPort))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// job runs workers and server, from x's epoch or from a requested one, and checks every value of every sum.
func (g *ground) job(t *testing.T, l *Lab, x endpoint.XAgg) {
	t.Helper()
	job := process.Job{ID: l.Job, Workers: len(l.Workers()), Values: l.Fragments * l.Lanes, Lanes: l.Lanes, Vectors: 3}
	cable := func(node int) *PlannedCable { return &l.Plan.Cables[l.Plan.Nodes[node].Up] }
	port := func(a netip.Addr) netip.AddrPort { return netip.AddrPortFrom(a, olaf.UDPPort) }
	top := l.Adders[len(l.Adders)-1].Planned.Node
	c := process.RootConfig{Job: job, Group: l.Group, Agent: port(cable(top).Lower), Codec: &frame.Datagrams{Format: frame.XAgg}}
	for _, node := range l.Workers() {
		c.Workers = append(c.Workers, port(cable(node).Lower))
	}
	root, err := process.NewRoot(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	x.Timeout = 50 * olaf.Millisecond
	var server, workers errgroup.Group
	at := g.at(t, l, l.Server(), cable(top).Upper)
	defer at.Close()
	server.Go(func() error {
		_, err := root.Run(ctx, at)
		return err
	})
	for number, node := range l.Workers() {
		work := &process.Sums{Job: job, Worker: olaf.WorkerID(number)}
		conn, above := g.at(t, l, node, cable(node).Lower), port(cable(node).Upper)
		defer conn.Close()
		p := &process.Player{Codec: &frame.Datagrams{Format: frame.XAgg, Results: true}, Work: work, To: func(endpoint.Peer, *program.Packet) netip.AddrPort { return above }}
		cfg := endpoint.Config{Job: job.ID, Worker: olaf.WorkerID(number), Workers: job.Workers, Layout: job.Layout(), Updates: uint32(job.Vectors)}
		workers.Go(func() error {
			_, err := p.Run(ctx, conn, func(h endpoint.Host) (endpoint.Endpoint, error) {
				return endpoint.NewXAgg(cfg, x, h)
			})
			if err == nil && (work.Wrong > 0 || work.Checked != job.Vectors*job.Values) {
				err = fmt.Errorf("worker %d: %d of %d values are wrong", number, work.Wrong, work.Checked)
			}
			return err
		})
	}
	err = workers.Wait()
	stop()
	if why := server.Wait(); err != nil || why != nil {
		t.Fatal(err, why)
	}
}

// queueBehind returns a testbed file with a queue that an internal worker overloads, with a second worker, or the
// server, behind the interface.
func queueBehind(far, mode string) string {
	text := "job: {lanes: 48}\nlinks: [{child: a, parent: s}, {child: b, parent: s}, {child: s, parent: ps}]\n" +
		"devices: [{node: s, program: olaf, mode: " + mode + ", slots: 4, rate: 300kbps}]\nnodes:\n  - {name: a, role: worker, cluster: 0, rate: 500kbps}\n  - {name: s, role: switch}\n"
	for _, n := range []struct{ name, is, rate string }{{"b", "role: worker, cluster: 1", ", rate: 500kbps"}, {"ps", "role: server", ""}} {
		if n.rate != "" && n.name == far {
			n.rate = ""
		}
		if n.name == far {
			n.is += fmt.Sprintf(", interface: nic0, virtual: true, address: %s, mac: \"MAC\"", farAddress)
		}
		text += fmt.Sprintf("  - {name: %s, %s%s}\n", n.name, n.is, n.rate)
	}
	return text
}

// TestQueueInterface checks that a queue with one of two workers, or the server, behind an interface of this machine
// communicates with the nodes in namespaces in both directions, in both modes.
func TestQueueInterface(t *testing.T) {
	able(t)
	if err := netlab.CheckRights(netlab.PacketRights...); err != nil {
		t.Skip(err)
	}
	for _, far := range []string{"b", "ps"} {
		for _, mode := range []string{Native, Generic} {
			t.Run(far+" "+mode, func(t *testing.T) {
				g := newGround(t)
				l, err := g.up(t, strings.Replace(queueBehind(far, mode), "MAC", g.nic.B.MAC.String(), 1), Options{Command: hostsOf("card")})
				if err != nil {
					t.Fatal(err)
				}
				g.route(t, l, "10.78.0.0/16")
				g.overload(t, l, far == "ps")
			})
		}
	}
}

// overload acts as the node behind the interface until the queue has delivered and the received packets are correct.
func (g *ground) overload(t *testing.T, l *Lab, serves bool) {
	t.Helper()
	number, node := 1, l.Workers()[1]
	if serves {
		node = l.Server()
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	layout := endpoint.Layout{Values: l.Lanes, PerPacket: l.Lanes}
	work := &process.Numbers{Worker: olaf.WorkerID(number), Layout: layout, Every: 5 * time.Millisecond}
	p := &process.Player{Codec: &process.Open{Packets: 1}, Work: work}
	port := func(a netip.Addr) netip.AddrPort { return netip.AddrPortFrom(a, olaf.UDPPort) }
	server := l.Plan.Cables[l.Plan.Nodes[l.Switch.Node].Up].Upper
	at, cfg := server, endpoint.Config{Workers: 2, Layout: layout, Updates: endless}
	play := func(h endpoint.Host) (endpoint.Endpoint, error) {
		return endpoint.NewOpenServer(cfg, endpoint.Olaf{Members: func(job olaf.ClusterID) (int, int) { return int(job), 1 }}, h)
	}
	p.To = func(to endpoint.Peer, _ *program.Packet) netip.AddrPort {
		return port(l.Plan.Cables[l.Plan.Nodes[l.Workers()[to]].Up].Lower)
	}
	if !serves {
		at, cfg.Job, cfg.Worker = l.Plan.Cables[l.Plan.Nodes[node].Up].Lower, 1, olaf.WorkerID(number)
		p.To = func(endpoint.Peer, *program.Packet) netip.AddrPort { return port(server) }
		play = func(h endpoint.Host) (endpoint.Endpoint, error) {
			return endpoint.NewOpenWorker(cfg, endpoint.Olaf{}, h)
		}
	}
	conn := g.at(t, l, node, at)
	defer conn.Close()
	var host errgroup.Group
	var report *process.Report
	host.Go(func() (err error) {
		report, err = p.Run(ctx, conn, play)
		return err
	})
	counts := l.overloaded(t)
	if faults := l.Faults(); len(faults) > 0 {
		t.Error(faults)
	}
	stop()
	if err := host.Wait(); err != nil {
		t.Fatal(err)
	}
	if counts["decisions_checked"] != counts["decisions_equal"] || counts["misidentified"]+counts["malformed"]+counts["lost_before_engine"] > 0 {
		t.Error(counts)
	}
	if report.Received == 0 || work.Wrong > 0 || serves && work.Checked == 0 {
		t.Errorf("%+v; %d of %d values are wrong", report, work.Wrong, work.Checked)
	}
}

// TestInterfaceRefused checks that interfaces that cannot be used are rejected and not moved.
func TestInterfaceRefused(t *testing.T) {
	hookless := func(*ground) error { return netlink.LinkAdd(&netlink.Ifb{LinkAttrs: netlink.LinkAttrs{Name: "card0"}}) }
	narrow := func(mtu int) func(*ground) error {
		return func(*ground) error {
			link, err := netlink.LinkByName("nic0")
			if err != nil {
				return err
			}
			return netlink.LinkSetMTU(link, mtu)
		}
	}
	for name, c := range map[string]struct {
		device, mode, extra string
		before              func(*ground) error // called in the namespace here
		says                string
		queue               bool
	}{
		"not there": {device: "card0", mode: Native, extra: ", virtual: true", says: "interface card0 for s: Link " +
			"not found; 'ip link' lists those that there are"},
		"virtual": {device: "nic0", mode: Native, says: "is of kind veth and would end with the namespace; use a " +
			"network card's, or say 'virtual: true' if it may"},
		"loopback": {device: "lo", mode: Native, extra: ", virtual: true", says: "interface lo for s leads nowhere"},
		"in use": {device: "nic0", mode: Native, extra: ", virtual: " +
			"true", before: func(g *ground) error { return g.nic.A.Address(netip.MustParsePrefix("198.51.100.7/24")) },
			says: "has the address 198.51.100.7/24, which it would lose"},
		"no hook": {device: "card0", mode: Native, extra: ", virtual: true", before: hookless,
			says: "attach arrive to card0: the kernel refused: its driver does not support XDP; use mode generic"},
		"too narrow":             {device: "nic0", mode: Generic, extra: ", virtual: true", before: narrow(600), says: "interface nic0 has an MTU of 600 bytes, the cable is to carry 1500"},
		"of a queue, not there":  {device: "card0", mode: Native, queue: true, says: "interface card0 for switch: Link not found; 'ip link' lists those that there are"},
		"of a queue, too narrow": {device: "nic0", mode: Generic, extra: ", virtual: true", queue: true, before: narrow(200), says: "interface nic0 has an MTU of 200 bytes, the cable is to carry 242"},
		"a bridge's":             {device: "nic0", mode: Native, extra: ", virtual: true", before: bridge, says: "belongs to a bridge or a bond; 'ip link set nic0 nomaster' frees it"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGround(t)
			if c.before != nil {
				before := func() error { return c.before(g) }
				if name == "in use" { // before enters the namespace itself
					if err := before(); err != nil {
						t.Fatal(err)
					}
				} else if err := g.here.Do(before); err != nil {
					t.Fatal(err)
				}
			}
			text := behind("a", c.mode)
			if c.queue {
				text = queueBehind("b", c.mode)
			}
			text = strings.NewReplacer("nic0", c.device, ", virtual: true", c.extra).Replace(text)
			if _, err := g.up(t, text, Options{}); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v does not say %q", err, c.says)
			}
			if c.mode == Native && c.device == "nic0" {
				if _, err := g.here.Interface("nic0"); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// bridge puts the interface into a bridge.
func bridge(*ground) error {
	b := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br0"}}
	if err := netlink.LinkAdd(b); err != nil {
		return err
	}
	link, err := netlink.LinkByName("nic0")
	if err != nil {
		return err
	}
	return netlink.LinkSetMaster(link, b)
}
