package pcivm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience is the maximum time that a guest may take for an answer. It only ends a test that hangs.
const patience = 3 * time.Minute

// profile describes how a virtual machine starts.
type profile struct {
	kernel string   // arguments for the kernel's command line
	qemu   []string // arguments for QEMU
	card   *board   // in the slot at the start; nil leaves it empty
	wire   string   // a socket for the frames that reach the guest's eth0; empty for no such interface
}

// arguments returns QEMU's arguments. The root port rp2 has no room for BAR2. The kernel's timer check is disabled
// because it fails on a busy host.
func (p *profile) arguments(image, initramfs string) []string {
	args := []string{
		"-accel", "tcg", "-cpu", "max", "-smp", "1", "-M", "q35,memory-backend=mem", "-m", "384M",
		"-object", "memory-backend-memfd,id=mem,size=384M,share=on", "-nodefaults", "-display", "none", "-no-reboot", "-S",
		"-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console",
		"-chardev", "socket,id=commands,fd=3", "-serial", "chardev:commands",
		"-chardev", "socket,id=qmp,fd=4", "-mon", "chardev=qmp,mode=control",
		"-device", "pcie-root-port,id=rp1,chassis=1,slot=1,mem-reserve=16M",
		"-device", "pcie-root-port,id=rp2,chassis=2,slot=2,mem-reserve=1M",
		"-kernel", image, "-initrd", initramfs, "-append", "console=ttyS0 panic=-1 loglevel=5 no_timer_check " + p.kernel,
	}
	if p.wire != "" {
		args = append(args,
			"-netdev", "dgram,id=wire,local.type=unix,local.path="+p.wire+",remote.type=unix,remote.path="+p.wire+".far",
			"-device", "virtio-net-pci,netdev=wire,romfile=")
	}
	return append(args, p.qemu...)
}

// guest is a running virtual machine.
type guest struct {
	process *exec.Cmd
	serial  *net.UnixConn // to the guest's init
	monitor *net.UnixConn // to QEMU, which speaks QMP
	replies *json.Decoder // QEMU's replies

	mu       sync.Mutex
	console  bytes.Buffer
	last     int
	sessions map[int]*session
}

// boot starts a virtual machine that ends with the test, and waits until its init is ready.
func boot(t *testing.T, p profile) *guest {
	t.Helper()
	image, initramfs := needImages(t)
	g := &guest{sessions: map[int]*session{}}
	var commands, qmp *os.File
	var err1, err2 error
	g.serial, commands, err1 = socketPair()
	g.monitor, qmp, err2 = socketPair()
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	g.process = exec.Command("qemu-system-x86_64", p.arguments(image, initramfs)...)
	g.process.ExtraFiles, g.process.Stdout, g.process.Stderr = []*os.File{commands, qmp}, g, g
	g.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // all threads of this process end together
	err := errors.Join(g.process.Start(), commands.Close(), qmp.Close())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.end(t) })
	ready := g.newSession(0)
	go g.listen()
	g.replies = json.NewDecoder(g.monitor)
	g.ask(t, "", "qmp_capabilities", nil)
	if p.card != nil {
		g.plug(t, p.card, "rp1")
	}
	g.ask(t, "", "cont", nil)
	ready.awaitLine(t, "ready")
	return g
}

// end stops QEMU. If the test failed, it reports the kernel's output.
func (g *guest) end(t *testing.T) {
	_ = g.process.Process.Kill()
	_ = g.process.Wait()
	_ = errors.Join(g.serial.Close(), g.monitor.Close())
	if t.Failed() {
		t.Logf("QEMU ended with %v; the guest's console:\n%s", g.process.ProcessState, g.tail())
	}
}

// Write stores the kernel's output.
func (g *guest) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.console.Write(p)
}

func (g *guest) tail() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	text := g.console.Bytes()
	return string(text[max(0, len(text)-4000):])
}

// listen passes the guest's events to the sessions until the machine ends.
func (g *guest) listen() {
	events := json.NewDecoder(g.serial)
	for {
		var e Event
		err := events.Decode(&e)
		g.mu.Lock()
		if err != nil {
			break
		}
		if s := g.sessions[e.ID]; s != nil {
			s.events <- e
		}
		g.mu.Unlock()
	}
	defer g.mu.Unlock()
	for _, s := range g.sessions {
		close(s.events)
	}
}

// session is a command in a guest.
type session struct {
	guest       *guest
	id          int
	what        string
	events      chan Event // buffers all that a command prints unread; closed when the guest ends
	out, errors strings.Builder
	ended       bool
	code        int
}

func (g *guest) newSession(id int) *session {
	s := &session{guest: g, id: id, events: make(chan Event, 1<<15)}
	g.mu.Lock()
	g.sessions[id] = s
	g.mu.Unlock()
	return s
}

// next waits for the next line of a running command, or for its end.
func (s *session) next(t *testing.T, wanted string) (line string) {
	t.Helper()
	select {
	case e, ok := <-s.events:
		if !ok {
			t.Fatalf("%s: the guest ended before %s\n%s", s.what, wanted, s.guest.tail())
		}
		to := &s.out
		if e.Stderr || e.Ended {
			to = &s.errors
		}
		if !e.Ended || e.Line != "" {
			to.WriteString(e.Line + "\n")
		}
		s.ended, s.code = e.Ended, e.Code
		return e.Line
	case <-time.After(patience):
		t.Fatalf("%s: %v passed without %s\n%s%s\n%s",
			s.what, patience, wanted, s.out.String(), s.errors.String(), s.guest.tail())
		return ""
	}
}

// awaitLine waits for a line that matches a pattern.
func (s *session) awaitLine(t *testing.T, pattern string) {
	t.Helper()
	form, wanted := regexp.MustCompile(pattern), fmt.Sprintf("a line %q", pattern)
	for !form.MatchString(s.next(t, wanted)) {
		if s.ended {
			t.Fatalf("%s: ended with %d before %s:\n%s", s.what, s.code, wanted, s.errors.String())
		}
	}
}

// answer is the output of a command and its exit code.
type answer struct {
	out, err string
	code     int
}

// wait waits until the command has ended.
func (s *session) wait(t *testing.T) answer {
	t.Helper()
	for !s.ended {
		s.next(t, "its end")
	}
	return answer{s.out.String(), s.errors.String(), s.code}
}

// stop ends a command with a signal.
func (s *session) stop(t *testing.T, signal syscall.Signal) answer {
	t.Helper()
	if !s.ended {
		s.guest.write(t, &Command{ID: s.id, Kill: int(signal)})
	}
	return s.wait(t)
}

func (g *guest) write(t *testing.T, c *Command) {
	t.Helper()
	if err := json.NewEncoder(g.serial).Encode(c); err != nil {
		t.Fatalf("%v: %v\n%s", c.Args, err, g.tail())
	}
}

// send starts a command that ends with the test, and sets its ID.
func (g *guest) send(t *testing.T, c Command) *session {
	t.Helper()
	g.last++
	c.ID = g.last
	s := g.newSession(c.ID)
	s.what = strings.Join(c.Args, " ")
	g.write(t, &c)
	t.Cleanup(func() {
		s.stop(t, syscall.SIGKILL)
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.sessions, c.ID)
	})
	return s
}

// start starts a command given as words separated by spaces.
func (g *guest) start(t *testing.T, command string) *session {
	t.Helper()
	return g.send(t, Command{Args: strings.Fields(command)})
}

// run runs a command.
func (g *guest) run(t *testing.T, command string) answer {
	t.Helper()
	return g.start(t, command).wait(t)
}

// do runs a command that must succeed, and returns its output.
func (g *guest) do(t *testing.T, command string) string {
	t.Helper()
	a := g.run(t, command)
	if a.code != 0 {
		t.Fatalf("%s: exit code %d\n%s%s", command, a.code, a.out, a.err)
	}
	return a.out
}

// reply is an answer or an event from QMP.
type reply struct {
	Return json.RawMessage `json:"return"`
	Error  *struct {
		Desc string `json:"desc"`
	} `json:"error"`
	Data struct {
		Device string `json:"device"` // the deleted device
	} `json:"data"`
}

// ask runs a QMP command and sends descriptors with it. It waits for the answer and, if a device is named, until the
// device is gone.
func (g *guest) ask(t *testing.T, device, name string, arguments map[string]any, beside ...*os.File) {
	t.Helper()
	command := map[string]any{"execute": name}
	if arguments != nil {
		command["arguments"] = arguments
	}
	text, err := json.Marshal(command)
	if err != nil {
		t.Fatal(err)
	}
	var rights []byte
	for _, file := range beside {
		rights = unix.UnixRights(int(file.Fd()))
	}
	_, _, err = g.monitor.WriteMsgUnix(append(text, '\n'), rights, nil)
	if err := errors.Join(err, g.monitor.SetReadDeadline(time.Now().Add(patience))); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, g.tail())
	}
	for answered, gone := false, device == ""; !answered || !gone; {
		var r reply
		if err := g.replies.Decode(&r); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, g.tail())
		}
		if r.Error != nil {
			t.Fatalf("%s: %s", name, r.Error.Desc)
		}
		answered = answered || r.Return != nil
		gone = gone || r.Data.Device == device
	}
}

// plug inserts a card into a slot. Function 0 must be inserted last.
func (g *guest) plug(t *testing.T, b *board, port string) {
	t.Helper()
	for n := len(b.functions) - 1; n >= 0; n-- {
		theirs, err := b.functions[n].connect()
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("card%d", n)
		g.ask(t, "", "getfd", map[string]any{"fdname": name}, theirs)
		g.ask(t, "", "device_add", map[string]any{
			"driver": "x-pci-proxy-dev", "fd": name, "id": name, "bus": port,
			"addr": fmt.Sprintf("0.%d", n), "multifunction": len(b.functions) > 1,
		})
		_ = theirs.Close()
	}
}

// unplug asks the guest to release the card, and waits until it has.
func (g *guest) unplug(t *testing.T) {
	t.Helper()
	g.ask(t, "card0", "device_del", map[string]any{"id": "card0"})
}
