package netlab

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// lab opens an empty lab that is closed with the test. If rights are missing, it skips the test and names them.
func lab(t *testing.T) *Lab {
	t.Helper()
	if err := CheckRights(append(NamespaceRights[:len(NamespaceRights):len(NamespaceRights)], PacketRights...)...); err != nil {
		t.Skip(err)
	}
	l, err := New()
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

func node(t *testing.T, l *Lab, name string) *Node {
	t.Helper()
	n, err := l.Node(name)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func cable(t *testing.T, l *Lab) *Cable {
	t.Helper()
	c, err := ConnectNodes(End{node(t, l, "left"), "right"}, End{node(t, l, "right"), "left"}, 1500)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestCable checks that frames sent from one namespace arrive in another and are counted at both ends.
func TestCable(t *testing.T) {
	c := cable(t, lab(t))
	from, err := c.A.Packets(false)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := c.B.Packets(true)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	const frames = 100
	frame := append(bytes.Repeat([]byte{0xff}, 12), 0x88, 0xb5)
	frame = append(frame, make([]byte, 100)...)
	for i := range frames {
		frame[20] = byte(i)
		if err := from.Send(frame); err != nil {
			t.Fatal(err)
		}
	}
	got := make([]byte, 2000)
	for i := range frames {
		n, err := to.Receive(got)
		if err != nil || !bytes.Equal(got[:20], frame[:20]) || n != len(frame) || got[20] != byte(i) {
			t.Fatalf("frame %d: %d bytes, %v", i, n, err)
		}
	}
	if _, err := to.Receive(got); !errors.Is(err, ErrAgain) {
		t.Errorf("one more than was sent: %v", err)
	}
	sent, errA := c.A.Counts()
	received, errB := c.B.Counts()
	if errA != nil || errB != nil || sent.Sent != frames || received.Received != frames {
		t.Errorf("%+v, %+v; %v, %v", sent, received, errA, errB)
	}
}

// TestProcess checks that programs started in a namespace see its interfaces and end with it.
func TestProcess(t *testing.T) {
	l := lab(t)
	c := cable(t, l)
	if err := c.A.Address(netip.MustParsePrefix("10.9.8.7/24")); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := exec.Command("cat", "/proc/net/dev", "/proc/net/fib_trie")
	cmd.Stdout = &out
	p, err := c.A.Node.Start(cmd)
	if err == nil {
		err = p.Wait()
	}
	if err != nil || !strings.Contains(out.String(), "right:") || !strings.Contains(out.String(), "10.9.8.7") {
		t.Fatalf("%v: %s", err, out.String())
	}
	long, err := c.A.Node.Start(exec.Command("sleep", "600"))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := long.Wait(); err == nil {
		t.Error("a program outlived its namespace")
	}
	if err := c.A.Node.Do(func() error { return nil }); !errors.Is(err, ErrNetwork) {
		t.Errorf("after the end: %v", err)
	}
}

// TestImpossibleRequests checks that impossible requests are refused.
func TestImpossibleRequests(t *testing.T) {
	l := lab(t)
	a, b := node(t, l, "a"), node(t, l, "b")
	if _, err := ConnectNodes(End{a, "x"}, End{b, "y"}, 10); !errors.Is(err, ErrNetwork) {
		t.Errorf("an MTU of 10: %v", err)
	}
	for range 2 {
		_, err := ConnectNodes(End{a, "x"}, End{b, "y"}, 1500)
		if err == nil {
			continue
		}
		if !errors.Is(err, ErrNetwork) || !strings.Contains(err.Error(), "from a to b") {
			t.Errorf("a name that exists: %v", err)
		}
		return
	}
	t.Error("two interfaces have one name")
}

// TestKilledLabLeavesNothing kills a process that has a lab open and checks that nothing of the lab is left: neither
// its program nor its end of a cable to one of our namespaces.
func TestKilledLabLeavesNothing(t *testing.T) {
	if os.Getenv("NETLAB_HOLD") != "" {
		hold(t)
	}
	lab(t)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	holder := exec.CommandContext(ctx, os.Args[0], "-test.run", "^TestKilledLabLeavesNothing$", "-test.v")
	holder.Env = append(os.Environ(), "NETLAB_HOLD=1")
	if _, err := holder.StdinPipe(); err != nil { // the pipe ends with this process
		t.Fatal(err)
	}
	pipe, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	var pid string
	lines := bufio.NewScanner(pipe)
	for pid == "" && lines.Scan() {
		pid, _ = strings.CutPrefix(lines.Text(), "sleeper ")
		if !strings.HasPrefix(lines.Text(), "sleeper ") {
			pid = ""
		}
	}
	if err := holder.Process.Kill(); err != nil || pid == "" {
		t.Fatalf("%v, %q", err, pid)
	}
	_ = holder.Wait()
	for deadline := time.Now().Add(time.Minute); ; {
		state, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil || bytes.Contains(state, []byte(") Z ")) {
			return // it has exited, or is a zombie because orphans are not reaped here
		}
		if time.Now().After(deadline) {
			t.Fatalf("the program outlived its parent: %s", state)
		}
	}
}

// hold is the process that TestKilledLabLeavesNothing kills.
func hold(t *testing.T) {
	l := lab(t)
	c := cable(t, l)
	p, err := c.B.Node.Start(exec.Command("sleep", "600"))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = os.Stdout.WriteString(fmt.Sprintf("sleeper %d\n", p.cmd.Process.Pid))
	_, _ = io.Copy(io.Discard, os.Stdin) // runs until its parent exits
	os.Exit(1)
}
