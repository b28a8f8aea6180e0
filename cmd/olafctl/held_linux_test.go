package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/capture/live"
	"github.com/olafctl/olaf/experiments/testbed/lab"
	"github.com/olafctl/olaf/experiments/testbed/testbedtest"
	"github.com/olafctl/olaf/fpga/netlab"
)

// findProgram returns the id of the XDP program at an interface of a host, or 0 if there is none.
func findProgram(t *testing.T, h *testbedtest.Host, name string) (id uint32) {
	t.Helper()
	err := h.Do(func() error {
		link, err := netlink.LinkByName(name)
		if err == nil && link.Attrs().Xdp != nil {
			id = link.Attrs().Xdp.ProgId
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// bringUp brings up the file's testbed until the test ends. It returns the testbed's name and a function that runs a
// command of testbed and checks its exit code and output.
func (l *kernelLab) bringUp(t *testing.T) (name string, expect func(code int, want string, args ...string)) {
	t.Helper()
	name = strings.TrimSuffix(filepath.Base(l.file), ".yaml")
	expect = func(code int, want string, args ...string) {
		t.Helper()
		if out, said, got := runOnHead(t, l.Network, append([]string{"testbed"}, args...)...); got != code || !strings.Contains(out+said, want) {
			t.Fatalf("%v: exit code %d, %s%s; want %d and %q", args, got, out, said, code, want)
		}
	}
	t.Cleanup(func() { runOnHead(t, l.Network, "testbed", "down", name) })
	expect(0, "up: "+name, "up", l.file)
	return name, expect
}

// TestHoldersShareDevices brings up a testbed with a kernel queue. It checks that all benches use one XDP program, that
// a bench whose head or agent was killed leaves the holders running and the generator stopped, that a second writer is
// told the first one's name, and that down, the end of the reservation and a signal remove the program.
func TestHoldersShareDevices(t *testing.T) {
	suffix := fmt.Sprint("-", os.Getpid()%1e5) // the hosts share the folder with reservations, so names must be unique
	l := newKernelRoles(t, suffix)
	queue, in := l.Hosts[1], "in"+suffix
	name, expect := l.bringUp(t)
	device := "testbed:" + name
	if findProgram(t, queue, in) == 0 {
		t.Fatal("the queue's program is not loaded although the testbed is up")
	}
	l.expectBench(t, device, 0)
	loaded := findProgram(t, queue, in) // that of the bench's discipline
	holders := []int{pidOf(t, l.Hosts[0], "olafctl testbed hold"), pidOf(t, queue, "olafctl testbed hold")}
	if _, said, code := l.bench(t, "testbed:"+l.file); code != 3 || !strings.Contains(said, "testbed "+name+" is up and its holders have opened the devices") {
		t.Errorf("a bench of the file: exit code %d: %s; want advice", code, said)
	}
	for _, victim := range []string{"head", "agent"} {
		bench, err := l.Head.Start(headCommand(t, l.Network, slowBench(device, "--runs", "1000")...))
		if err != nil {
			t.Fatal(err)
		}
		for sent := countSent(t, l.Hosts[0], "eth0"+suffix); countSent(t, l.Hosts[0], "eth0"+suffix) < sent+50 && !hasEnded(bench); {
			runtime.Gosched()
		}
		if victim == "agent" {
			_ = syscall.Kill(pidOf(t, queue, "olafctl device serve", "held:"), syscall.SIGKILL)
		} else {
			l.checkSecond(t, name, "in"+suffix, expect)
			_ = bench.Signal(os.Kill)
		}
		_ = bench.Wait() // it failed or was killed
		for _, h := range l.Hosts {
			for pidOf(t, h, "olafctl device serve") != 0 && t.Context().Err() == nil {
				runtime.Gosched()
			}
		}
	}
	l.expectBench(t, device, 0)
	if now := findProgram(t, queue, in); now != loaded {
		t.Errorf("program %d was loaded, and later %d; want one for all benches", loaded, now)
	}
	for i, was := range holders {
		if now := pidOf(t, l.Hosts[i], "olafctl testbed hold"); was == 0 || now != was {
			t.Errorf("host %d is held by process %d, and later by %d; want one", i, was, now)
		}
	}
	expect(0, name+" is down", "down", name)
	l.AwaitIdle(t)
	if id := findProgram(t, queue, in); id != 0 {
		t.Errorf("program %d is loaded after down", id)
	}
	expect(0, "up: "+name, "up", l.file, "--for", "1s")
	for findProgram(t, queue, in) != 0 && t.Context().Err() == nil { // until the reservation ends
		runtime.Gosched()
	}
	l.AwaitIdle(t)
	expect(0, "up: "+name, "up", l.file)
	_ = syscall.Kill(pidOf(t, queue, "olafctl testbed hold"), syscall.SIGTERM)
	for findProgram(t, queue, in) != 0 && t.Context().Err() == nil {
		runtime.Gosched()
	}
	if _, said, code := l.bench(t, device); code != 3 || !strings.Contains(said, "host q: not ready: no process holds testbed "+name) {
		t.Errorf("without a holder: exit code %d: %s", code, said)
	}
	expect(0, name+" is down", "down", name)
	l.AwaitIdle(t)
}

// checkSecond checks what a second user of a testbed gets while a bench is running: a bench is refused with the name of
// the first, up and doctor check no links, show names the first, and no probe frame reaches the queue's interface.
func (l *kernelLab) checkSecond(t *testing.T, name, in string, expect func(code int, want string, args ...string)) {
	t.Helper()
	var frames *live.Socket
	if err := l.Hosts[1].Do(func() (err error) {
		frames, err = live.Open(live.Options{Interface: in, Stamps: live.Kernel, All: true})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer frames.Close()
	_, said, code := l.bench(t, "testbed:"+name)
	if code != 3 || strings.Count(said, "\n") != 1 || !strings.Contains(said, "/queue: the device is in use by another client: ") ||
		!strings.Contains(said, "(olafctl bench -d testbed:") {
		t.Errorf("a second bench: exit code %d: %s; want one line with the name of the first", code, said)
	}
	const user = "host q is in use by "
	expect(0, user, "up", l.file)
	expect(0, user, "doctor", l.file)
	expect(0, "q: in use by ", "show", name)
	if probed, err := capture.AwaitProbe(t.Context(), frames, []byte("olafctl "), 100*time.Millisecond); probed || err != nil {
		t.Errorf("a probe frame reached the queue during a run: %t, %v", probed, err)
	}
}

// countSent returns the number of frames that were sent through an interface of a host.
func countSent(t *testing.T, h *testbedtest.Host, name string) (frames uint64) {
	t.Helper()
	if err := h.Do(func() error {
		link, err := netlink.LinkByName(name)
		if err == nil {
			frames = link.Attrs().Statistics.TxPackets
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return frames
}

// TestHolderCapturesAtTheQueue brings up a testbed whose generator, kernel queue and server are on one host. It checks
// that benches are valid and that the host's one clock measures ages.
func TestHolderCapturesAtTheQueue(t *testing.T) {
	if !canReal() {
		t.Skip("without the rights to make namespaces and load programs")
	}
	l := &kernelLab{Network: testbedtest.NewNetwork(t, 1, pathOfOlafctl(t))}
	suffix := fmt.Sprint("-", os.Getpid()%1e5)
	for _, ends := range [][2]string{{"gen" + suffix, "in" + suffix}, {"out" + suffix, "server" + suffix}} {
		h := l.Hosts[0].Node
		if _, err := netlab.ConnectNodes(netlab.End{Node: h, Name: ends[0]}, netlab.End{Node: h, Name: ends[1]}, 1500); err != nil {
			t.Fatal(err)
		}
	}
	l.file = writeRoles(t, l.Network, strings.ReplaceAll("hosts: {a: {ssh: HOST0}}\nroles:\n  generator: {host: a, nic: gen-PID}\n"+
		"  queue: {host: a, device: 'xdp:in-PID,out-PID'}\n  server: {host: a, interface: server-PID}\n", "-PID", suffix))
	name, expect := l.bringUp(t)
	for range 2 {
		doc, said, code := l.bench(t, "testbed:"+name)
		if code != 0 || len(doc.Rows) != 1 {
			t.Fatalf("exit code %d, %d rows: %s", code, len(doc.Rows), said)
		}
		if said := strings.Join(doc.Statements, "\n"); !strings.Contains(said, "stamped by the kernel with the system's clock") || strings.Contains(said, "compared") {
			t.Errorf("ages by one clock: %s", said)
		}
	}
	expect(0, name+" is down", "down", name)
	l.AwaitIdle(t)
}

// TestTestbedOnThisMachine brings up a testbed of two joined twins on this machine. It checks that benches on the held
// twins print the rows of a new twin, and that a bench without the holder names it.
func TestTestbedOnThisMachine(t *testing.T) {
	olafctl := filepath.Join(pathOfOlafctl(t), "olafctl")
	name := fmt.Sprintf("local%d", os.Getpid())
	file := filepath.Join(t.TempDir(), name+".yaml")
	text := "hosts: {here: {}}\nroles:\n  generator: {host: here, device: 'twin:'}\n  queue: {host: here, device: 'twin:'}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	expect := func(code int, want string, args ...string) (stdout string) {
		t.Helper()
		var out, said bytes.Buffer
		cmd := exec.Command(olafctl, args...)
		cmd.Stdout, cmd.Stderr = &out, &said
		_ = cmd.Run() // the exit code is checked
		if got := cmd.ProcessState.ExitCode(); got != code || !strings.Contains(out.String()+said.String(), want) {
			t.Fatalf("%v: exit code %d, %s%s; want %d and %q", args, got, &out, &said, code, want)
		}
		return out.String()
	}
	t.Cleanup(func() { _ = exec.Command(olafctl, "testbed", "down", name).Run() })
	bench := []string{"bench", "--runs", "2", "--updates", "60", "-q", "--keep=false", "-o", "csv", "-d"}
	want := expect(0, "", append(bench, "twin:")...)
	expect(0, "up: "+name, "testbed", "up", file)
	for range 2 {
		if got := expect(0, "", append(bench, "testbed:"+name)...); got != want {
			t.Errorf("rows of held twins:\n%s\nwant\n%s", got, want)
		}
	}
	expect(0, "twin-1", "device", "info", "-d", "testbed:"+name)
	expect(3, "is up with its driver; give --vnp4-1 to 'olafctl testbed up'", append(bench, "testbed:"+name, "--vnp4-1", "a:b")...)
	s, err := lab.Show(name)
	if err != nil {
		t.Fatal(err)
	}
	_ = syscall.Kill(s.PID, syscall.SIGKILL)
	for err == nil {
		_, err = lab.Show(name)
	}
	expect(3, "host here: not ready: no process holds testbed "+name, append(bench, "testbed:"+name)...)
	expect(0, "up: "+name, "testbed", "up", file)
	expect(0, name+" is down", "testbed", "down", name)
}
