package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/olafctl/olaf/experiments/testbed/testbedtest"
	"github.com/olafctl/olaf/fpga/netlab"
)

// asHolder makes this test's program hold a testbed of that name until it is killed.
const asHolder = "OLAFCTL_LAB_HOLDER"

func TestMain(m *testing.M) {
	name := os.Getenv(asHolder)
	if name == "" {
		os.Exit(m.Run())
	}
	if err := hold(name); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
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
	h, err := NewHolder(p)
	if err != nil {
		return err
	}
	fmt.Println("stands")
	return h.Hold(context.Background())
}

// able skips a test by name where rights are missing.
func able(t *testing.T) {
	t.Helper()
	if err := netlab.Missing(Rights()...); err != nil {
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

// nameFor is a name that no other run of this test has.
func nameFor(of string) string { return fmt.Sprintf("%s-%d", of, os.Getpid()) }

// TestRoutes lets a worker at the bottom of a tree reach the server and a worker elsewhere, over the aggregators' namespaces.
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

// TestFaults takes a cable and a program away, and hears of both.
func TestFaults(t *testing.T) {
	l := up(t, "tree: {workers: 2}\njob: {lanes: 8, fragments: 4}")
	cut := func(node int, name string) {
		t.Helper()
		err := l.Nodes[node].Do(func() error {
			link, err := netlink.LinkByName(name)
			if err != nil {
				return err
			}
			return netlink.LinkDel(link)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := l.opened[0].Close(); err != nil { // the program at w0's cable
		t.Fatal(err)
	}
	cut(l.Adders[0].Planned.Node, "w1")
	got := strings.Join(l.Faults(), "; ")
	for _, want := range []string{"the cable from w1 to s0", "is gone", "the program of s0 was taken off w0"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q does not say %q", got, want)
		}
	}
}

// TestHolder holds two testbeds at once, refuses a name that exists, tells of them and takes them down.
func TestHolder(t *testing.T) {
	able(t)
	var ended []chan error
	names := []string{nameFor("one"), nameFor("two")}
	for _, name := range names {
		p := plan(t, "name: "+name+"\ntree: {workers: 2}\njob: {lanes: 8, fragments: 4}")
		h, err := NewHolder(p)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := NewHolder(p); !errors.Is(err, ErrExists) || !strings.Contains(err.Error(), name) {
			t.Errorf("a name that exists: %v", err)
		}
		done := make(chan error, 1)
		go func() { done <- h.Hold(context.Background()) }()
		ended = append(ended, done)
	}
	for i, name := range names {
		s, err := Show(name)
		if err != nil || s.PID != os.Getpid() || len(s.Nodes) != 4 || len(s.Faults) > 0 || s.Nodes[0].Path == "" {
			t.Fatalf("%+v, %v", s, err)
		}
		if up := strings.Join(Held(), " "); !strings.Contains(up, name) {
			t.Errorf("%s is not among %s", name, up)
		}
		if err := Down(name); err != nil {
			t.Error(err)
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

// TestKilledHolder kills who holds a testbed, and finds nothing of it; its name is free again.
func TestKilledHolder(t *testing.T) {
	able(t)
	traces := testbedtest.Look(t)
	name := nameFor("killed")
	for range 3 {
		holder := exec.Command(os.Args[0])
		holder.Env = append(os.Environ(), asHolder+"="+name)
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
		traces.Gone(t, asHolder+"="+name)
		if _, err := Show(name); !errors.Is(err, ErrAbsent) {
			t.Errorf("after the kill: %v", err)
		}
	}
}

// TestUpRefuses asks for interfaces that can't be.
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

// exchange sends a datagram from a node to whoever is at an address, and waits for the answer of its socket.
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
	deadline := time.Now().Add(10 * time.Second)
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

// owns says whether an address is a node's.
func (l *Lab) owns(node int, address string) bool {
	for i := range l.Plan.Cables {
		c := &l.Plan.Cables[i]
		if c.Child == node && c.Lower.String() == address || c.Parent == node && c.Upper.String() == address {
			return true
		}
	}
	return false
}
