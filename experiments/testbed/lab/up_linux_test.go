package lab

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/testbed/testbedtest"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/pktgen"
	"github.com/olafctl/olaf/pktgen/endpoint"
	"github.com/olafctl/olaf/pktgen/process"
)

// asHolder makes the test's program hold a testbed with the given name until it is killed.
const asHolder = "OLAFCTL_LAB_HOLDER"

func TestMain(m *testing.M) {
	var err error
	switch name, host := os.Getenv(asHolder), os.Getenv(asHost); {
	case name != "":
		err = hold(name)
	case host != "":
		err = play(os.Args[1:])
	case os.Getenv(asSlowHolder) != "":
		err = holdSlowly()
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// asHost makes the test's program a worker or a server of a queue, like olafctl.
const asHost = "OLAFCTL_LAB_HOST"

func play(args []string) error {
	f := flag.NewFlagSet("host", flag.ContinueOnError)
	values := map[string]*string{}
	for _, name := range []string{"system", "listen", "server", "tc"} {
		values[name] = f.String(name, "", "")
	}
	id, lanes, clusters, vectors := f.Int("id", 0, ""), f.Int("lanes", 0, ""), f.Int("clusters", 0, ""), f.Int("vectors", 0, "")
	all := f.Int("values", 0, "")
	every := f.Duration("every", 0, "")
	var workers []string
	f.Func("worker", "", func(s string) error {
		workers = append(workers, s)
		return nil
	})
	if err := f.Parse(args[1:]); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	layout := endpoint.Layout{Values: max(*lanes, *all), PerPacket: *lanes}
	own := netip.MustParseAddrPort(*values["listen"])
	at := own
	if layout.Packets() > 1 {
		at = netip.AddrPortFrom(netip.IPv4Unspecified(), own.Port())
	}
	conn, err := netlab.Datagrams(ctx, at)
	if err != nil {
		return err
	}
	p := &process.Player{Codec: &process.Open{Packets: layout.Packets()}, Work: &process.Numbers{Layout: layout}}
	cfg := endpoint.Config{Job: olaf.ClusterID(*id), Layout: layout, Workers: len(workers), Updates: uint32(max(*vectors, 1))}
	if args[0] == "ps" {
		placed := pktgen.Placement{Workers: len(workers), Clusters: *clusters}
		p.To = func(to endpoint.Peer, _ *program.Packet) netip.AddrPort { return netip.MustParseAddrPort(workers[to]) }
		_, err = p.Run(ctx, conn, func(h endpoint.Host) (endpoint.Endpoint, error) {
			return endpoint.NewOpenServer(cfg, endpoint.Olaf{Members: func(job olaf.ClusterID) (int, int) { return placed.Members(int(job)) }}, h)
		})
		return err
	}
	number, err := strconv.Atoi(workers[0])
	if err != nil {
		return err
	}
	cfg.Worker, cfg.Workers = olaf.WorkerID(number), number+1
	p.Work = &process.Numbers{Worker: cfg.Worker, Layout: layout, Every: *every}
	server := netip.MustParseAddrPort(*values["server"])
	p.To = func(endpoint.Peer, *program.Packet) netip.AddrPort { return server }
	if layout.Packets() > 1 { // each packet of the vector has its own source address
		p.From = func(p *program.Packet) netip.Addr {
			b := own.Addr().As4()
			b[3] += byte(p.Seg)
			return netip.AddrFrom4(b)
		}
	}
	_, err = p.Run(ctx, conn, func(h endpoint.Host) (endpoint.Endpoint, error) {
		return endpoint.NewOpenWorker(cfg, endpoint.Olaf{}, h)
	})
	return err
}

// TestQueue checks a testbed in which workers of two clusters overload a queue of each system, while its counters are
// read and one worker is killed. Updates of two frames are in two clusters, like their addresses.
func TestQueue(t *testing.T) {
	able(t)
	if err := netlab.CheckRights(netlab.PacketRights...); err != nil {
		t.Skip(err)
	}
	for _, system := range systems() {
		t.Run(system, func(t *testing.T) {
			traces := testbedtest.RecordTraces(t)
			marker := asHost + "=" + nameFor(system)
			p := plan(t, "name: "+nameFor(system)+"\nqueue: {system: "+system+", workers: 3, clusters: 2, slots: 4, rate: 600kbps, out_rate: 500kbps, tc: 1s}\njob: {lanes: 48, fragments: 2}")
			var started []*exec.Cmd
			h, err := NewHolder(p, Options{Command: func(args ...string) *exec.Cmd {
				cmd := exec.Command(os.Args[0], args...)
				cmd.Env = append(os.Environ(), marker)
				started = append(started, cmd)
				return cmd
			}})
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() { done <- h.Hold(t.Context()) }()
			counts := await(t, p.Name, func(s *State) bool {
				return s.Nodes[3].Counts["delivered_frames"] > 50 && s.Nodes[3].Counts["decisions_checked"] > 0
			})
			q := counts.Nodes[3].Counts
			merged := q["aggregated"] + q["replaced"] + q["dropped_full"]
			if len(counts.Faults) > 0 || merged == 0 || q["decisions_checked"] == 0 || q["decisions_checked"] != q["decisions_equal"] || q["misidentified"]+q["malformed"] > 0 {
				t.Errorf("%+v", counts)
			}
			if len(started) != 4 { // a server and three workers
				t.Fatalf("%d programs", len(started))
			}
			if err := started[2].Process.Kill(); err != nil {
				t.Fatal(err)
			}
			if s := await(t, p.Name, func(s *State) bool { return len(s.Faults) > 0 }); !strings.Contains(s.Faults[0], "the program on w1 ended: signal: killed") {
				t.Errorf("%q", s.Faults)
			}
			if err := started[0].Process.Kill(); err != nil {
				t.Fatal(err)
			}
			if s := await(t, p.Name, func(s *State) bool { return len(s.Faults) > 1 }); !strings.Contains(s.Faults[0], "the program on ps ended: signal: killed") {
				t.Errorf("%q", s.Faults)
			}
			if err := Down(p.Name); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
			traces.AwaitGone(t, marker)
		})
	}
}

// await reads the state of a testbed until it is as expected.
func await(t *testing.T, name string, as func(*State) bool) *State {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		s, err := Show(name)
		if err != nil {
			t.Fatal(err)
		}
		if as(s) {
			return s
		}
		if time.Now().After(deadline) {
			t.Fatalf("it is still %+v", s)
		}
	}
}

// TestQueueRefused checks that a load larger than any machine carries is rejected.
func TestQueueRefused(t *testing.T) {
	able(t)
	_, err := Up(plan(t, "queue: {system: "+systems()[0]+", workers: 2, out_rate: 90G}\njob: {lanes: 48}"), Options{})
	if !errors.Is(err, fpga.ErrRefused) || !strings.Contains(err.Error(), "is what fits") {
		t.Error(err)
	}
}

func hold(name string) error {
	f, err := Parse(name, []byte("tree: {workers: 4, children: 2}\njob: {lanes: 8, fragments: 4}"))
	if err != nil {
		return err
	}
	p, err := f.Resolve()
	if err != nil {
		return err
	}
	h, err := NewHolder(p, Options{})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // runs until its parent exits
		stop()
	}()
	fmt.Println("stands")
	return h.Hold(ctx)
}

// able skips a test if rights are missing.
func able(t *testing.T) {
	t.Helper()
	if err := netlab.CheckRights(Rights()...); err != nil {
		t.Skip(err)
	}
}

func up(t *testing.T, text string) *Lab {
	t.Helper()
	able(t)
	l, err := Up(plan(t, text), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// nameFor returns a unique name for this run of the test.
func nameFor(of string) string { return fmt.Sprintf("%s-%d", of, os.Getpid()) }

// TestRoutes checks that a worker at the bottom of a tree reaches the server and a worker elsewhere through the
// aggregators' namespaces.
func TestRoutes(t *testing.T) {
	l := up(t, "tree: {workers: 4, children: 2}\njob: {lanes: 8, fragments: 4}")
	if faults := l.Faults(); len(faults) > 0 {
		t.Errorf("%q", faults)
	}
	last := l.Workers()[3]
	for _, to := range []string{l.Plan.Cables[l.Plan.Nodes[last].Up].Lower.String(), l.Plan.Cables[l.Plan.Nodes[l.Server()].Down[0]].Upper.String()} {
		if err := exchange(l, l.Workers()[0], to); err != nil {
			t.Errorf("%s: %v", to, err)
		}
	}
}

// TestLongFrames checks sums over cables whose frames are too long for native mode.
func TestLongFrames(t *testing.T) {
	l := up(t, "tree: {workers: 2, mtu: 4000, mode: generic}\njob: {lanes: 8, fragments: 4}")
	new(ground).job(t, l, endpoint.XAgg{})
	if faults := l.Faults(); len(faults) > 0 {
		t.Error(faults)
	}
}

// TestFaults checks the reported faults after cables and programs of every kind are removed and an interface is
// disabled.
func TestFaults(t *testing.T) {
	at := func(l *Lab, node int, name string, do func(netlink.Link) error) {
		t.Helper()
		err := l.Nodes[node].Do(func() error {
			link, err := netlink.LinkByName(name)
			if err != nil {
				return err
			}
			return do(link)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	off := func(attached int) func(*Lab) {
		return func(l *Lab) {
			if err := l.opened[attached].Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		says string
		do   func(*Lab)
	}{
		{"the cable from w0 to s0: the program arrive was detached from w0 of s0", off(0)},
		{"the cable from s0 to ps: the program pass was detached from s0 of ps", off(2)},
		{"the cable from w1 to s0 is gone", func(l *Lab) { at(l, l.Adders[0].Planned.Node, "w1", netlink.LinkDel) }},
		{"the cable from s0 to ps: interface s0 of ps is down", func(l *Lab) { at(l, l.Server(), "s0", netlink.LinkSetDown) }},
		{"10 data packets came to the agent of s0, past its program", func(l *Lab) { l.Adders[0].agent.past.Store(10) }},
	} {
		t.Run(c.says, func(t *testing.T) {
			l := up(t, "tree: {workers: 2}\njob: {lanes: 8, fragments: 4}")
			if err := l.Broken(); err != nil {
				t.Error(err)
			}
			c.do(l)
			if faults := l.Faults(); len(faults) != 1 || !strings.HasPrefix(faults[0], c.says) {
				t.Errorf("%q", faults)
			}
			if err := l.Broken(); !errors.Is(err, ErrBroken) || !strings.Contains(err.Error(), c.says) {
				t.Error(err)
			}
		})
	}
}

// TestQueueFaults checks the reported fault after a queue's program for ACKs is detached.
func TestQueueFaults(t *testing.T) {
	able(t)
	if err := netlab.CheckRights(netlab.PacketRights...); err != nil {
		t.Skip(err)
	}
	l := up(t, "queue: {system: olaf, workers: 2, clusters: 2, slots: 4, rate: 600kbps, out_rate: 500kbps}\njob: {lanes: 48}")
	if faults := l.Faults(); len(faults) > 0 {
		t.Errorf("%q", faults)
	}
	if err := testbedtest.DetachPrograms("mark"); err != nil {
		t.Fatal(err)
	}
	if faults := l.Faults(); len(faults) != 1 || !strings.Contains(faults[0], "the program mark was detached from "+
		"the cable from switch to server") {
		t.Errorf("%q", faults)
	}
}

// TestTwoTestbedsAtOnce checks that two testbeds can be held at once, shown and removed, and that an existing name is
// rejected.
func TestTwoTestbedsAtOnce(t *testing.T) {
	able(t)
	var ended []chan error
	names := []string{nameFor("one"), nameFor("two")}
	for _, name := range names {
		p := plan(t, "name: "+name+"\ntree: {workers: 2}\njob: {lanes: 8, fragments: 4}")
		h, err := NewHolder(p, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := NewHolder(p, Options{}); !errors.Is(err, ErrExists) || !strings.Contains(err.Error(), name) {
			t.Errorf("a name that exists: %v", err)
		}
		done := make(chan error, 1)
		go func() { done <- h.Hold(t.Context()) }()
		ended = append(ended, done)
	}
	for i, name := range names {
		s, err := Show(name)
		if err != nil || s.PID != os.Getpid() || len(s.Nodes) != 4 || len(s.Faults) > 0 || s.Nodes[0].Path == "" {
			t.Fatalf("%+v, %v", s, err)
		}
		if up := strings.Join(ListHeld(), " "); !strings.Contains(up, name) {
			t.Errorf("%s is not among %s", name, up)
		}
		if err := Down(name); err != nil {
			t.Fatal(err)
		}
		if err := <-ended[i]; err != nil {
			t.Error(err)
		}
		if _, err := Show(name); !errors.Is(err, ErrAbsent) {
			t.Errorf("after the end: %v", err)
		}
	}
	if err := Down(names[0]); !errors.Is(err, ErrAbsent) || !strings.Contains(err.Error(), names[0]) {
		t.Errorf("nobody's: %v", err)
	}
}

// TestKilledHolder checks that nothing is left of a testbed whose holder is killed, and that its name can be used
// again.
func TestKilledHolder(t *testing.T) {
	able(t)
	traces := testbedtest.RecordTraces(t)
	name := nameFor("killed")
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	for range 3 {
		holder := exec.CommandContext(ctx, os.Args[0])
		holder.Env = append(os.Environ(), asHolder+"="+name)
		if _, err := holder.StdinPipe(); err != nil { // the pipe ends with this process
			t.Fatal(err)
		}
		out, err := holder.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := holder.Start(); err != nil {
			t.Fatal(err)
		}
		line, _ := bufio.NewReader(out).ReadString('\n')
		s, err := Show(name)
		if err != nil || s.PID != holder.Process.Pid || line != "stands\n" {
			t.Fatalf("%+v, %v, %q", s, err, line)
		}
		if err := holder.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = holder.Wait()
		traces.AwaitGone(t, asHolder+"="+name)
		if _, err := Show(name); !errors.Is(err, ErrAbsent) {
			t.Errorf("after the kill: %v", err)
		}
	}
}

// TestUpRefuses checks that impossible interfaces are rejected.
func TestUpRefuses(t *testing.T) {
	able(t)
	for device, want := range map[string]string{"olafnone0": "interface olafnone0 for low", "lo": ""} {
		text := strings.ReplaceAll(byHand, "eth1", device)
		_, err := Up(plan(t, text), Options{})
		if !errors.Is(err, netlab.ErrNetwork) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", device, err)
		}
	}
}

// exchange sends a datagram from a node to an address, and waits for its answer.
func exchange(l *Lab, from int, to string) error {
	var at *net.UDPConn
	listen := func() (err error) {
		at, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.MustParseAddrPort(to+":9000")))
		return err
	}
	for node := range l.Nodes {
		if l.owns(node, to) {
			if err := l.Nodes[node].Do(listen); err != nil {
				return err
			}
		}
	}
	defer at.Close()
	var c *net.UDPConn
	err := l.Nodes[from].Do(func() (err error) {
		c, err = net.DialUDP("udp4", nil, at.LocalAddr().(*net.UDPAddr))
		return err
	})
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Write([]byte("there")); err != nil {
		return err
	}
	b := make([]byte, 10)
	deadline := time.Now().Add(time.Minute)
	_ = at.SetReadDeadline(deadline)
	n, who, err := at.ReadFromUDPAddrPort(b)
	if err != nil {
		return err
	}
	if _, err := at.WriteToUDPAddrPort(b[:n], who); err != nil {
		return err
	}
	_ = c.SetReadDeadline(deadline)
	_, err = c.Read(b)
	return err
}

// owns reports whether an address is a node's.
func (l *Lab) owns(node int, address string) bool {
	for i := range l.Plan.Cables {
		c := &l.Plan.Cables[i]
		if c.Child == node && c.Lower.String() == address || c.Parent == node && c.Upper.String() == address {
			return true
		}
	}
	return false
}
