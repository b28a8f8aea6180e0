package pcivm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/olafctl/olaf/internal/peer"
)

// patience is how long a guest may take for an answer. Nothing is measured: it only ends a test that hangs.
const patience = 3 * time.Minute

// cleanups run after the tests.
var cleanups []func()

func TestMain(m *testing.M) {
	code := m.Run()
	for _, f := range cleanups {
		f()
	}
	os.Exit(code)
}

// profile is how a virtual machine starts.
type profile struct {
	kernel string   // words for the kernel's command line
	qemu   []string // arguments for QEMU
	card   *board   // on the bus at the start; nil leaves the slot empty
	tables bool     // olafctl with the driver for the card's tables
	wire   string   // a socket for the frames that reach the guest's eth0; empty for no such interface
}

// guest is a running virtual machine.
type guest struct {
	process *exec.Cmd
	serial  net.Conn
	monitor *monitor
	stopped chan struct{} // closed when QEMU has ended
	ended   chan struct{} // closed when no more events come

	mu       sync.Mutex
	console  bytes.Buffer
	last     int
	sessions map[int]*session
}

// Write keeps what the kernel prints.
func (g *guest) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.console.Write(p)
}

// boot starts a virtual machine that ends with the test. On a busy host QEMU 7.2 sometimes crashes in an access to a memory
// region while Linux starts. Two such crashes, before the first command, are only logged.
func boot(t *testing.T, p profile) *guest {
	t.Helper()
	for crashes := 0; ; crashes++ {
		g, ready := power(t, p)
		if crashes == 2 || !g.crashes(ready) {
			ready.awaitLine(t, "ready")
			return g
		}
		t.Logf("QEMU crashed while the guest booted; it is started again\n%s", g.tail())
	}
}

// crashes waits until the guest is ready or has ended, and reports whether QEMU's own fault ended it.
func (g *guest) crashes(ready *session) bool {
	timeout := time.After(patience)
	for {
		ready.mu.Lock()
		ended, started, changed := ready.ended, len(ready.lines) > 0, ready.changed
		ready.mu.Unlock()
		if started && !ended {
			return false
		}
		if ended {
			changed = g.stopped
		}
		select {
		case <-changed:
		case <-timeout:
			return false
		}
		if ended {
			status, ok := g.process.ProcessState.Sys().(syscall.WaitStatus)
			return ok && status.Signaled() && status.Signal() == syscall.SIGSEGV
		}
	}
}

// power starts QEMU, and returns the session in which the guest says that it is ready.
func power(t *testing.T, p profile) (*guest, *session) {
	t.Helper()
	image, found := needKernel(t)
	initramfs := filepath.Join(t.TempDir(), "initramfs")
	programs, err := buildPrograms()
	driver := map[string]string{}
	if p.tables && err == nil {
		peer.Need(t, "gcc")
		driver, err = buildDriver()
	}
	if err := errors.Join(err, pack(initramfs, found, programs, driver)); err != nil {
		t.Fatal(err)
	}
	g := &guest{ended: make(chan struct{}), sessions: map[int]*session{}}
	files := &inherited{}
	defer files.close()
	if g.serial, err = files.socket(); err != nil {
		t.Fatal(err)
	}
	qmp, err := files.socket()
	if err != nil {
		t.Fatal(err)
	}
	args := append(arguments(image, initramfs, &p), p.qemu...)
	if p.card != nil {
		devices, err := files.card(p.card)
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, devices...)
	}
	g.process = exec.Command("qemu-system-x86_64", args...)
	g.process.ExtraFiles, g.process.Stdout, g.process.Stderr = files.files, g, g
	if err := g.launch(); err != nil {
		t.Fatal(err)
	}
	files.close() // else the end of QEMU goes unnoticed
	ready := g.newSession(0)
	t.Cleanup(func() { g.end(t) })
	go g.listen()
	g.monitor = newMonitor(qmp)
	if err := g.monitor.do("qmp_capabilities", nil); err != nil {
		t.Fatalf("QMP: %v\n%s", err, g.tail())
	}
	return g, ready
}

// launch starts QEMU from a thread that lives as long: QEMU is killed with the thread that started it.
func (g *guest) launch() error {
	g.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	g.stopped = make(chan struct{})
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := g.process.Start()
		started <- err
		if err == nil {
			_ = g.process.Wait()
		}
		close(g.stopped)
	}()
	return <-started
}

// arguments returns what all machines share. The root port rp2 has no room for BAR2. On a busy host the kernel's check of
// its timer fails, so that it is left out.
func arguments(image, initramfs string, p *profile) []string {
	args := []string{
		"-accel", "tcg", "-cpu", "max", "-smp", "1", "-M", "q35,memory-backend=mem", "-m", "384M",
		"-object", "memory-backend-memfd,id=mem,size=384M,share=on", "-nodefaults", "-display", "none", "-no-reboot",
		"-device", "intel-iommu", // for vfio-pci
		"-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console",
		"-chardev", "socket,id=commands,fd=3", "-serial", "chardev:commands",
		"-chardev", "socket,id=qmp,fd=4", "-mon", "chardev=qmp,mode=control",
		"-device", "pcie-root-port,id=rp1,chassis=1,slot=1,mem-reserve=16M",
		"-device", "pcie-root-port,id=rp2,chassis=2,slot=2,mem-reserve=1M",
		"-kernel", image, "-initrd", initramfs, "-append",
		"console=ttyS0 panic=-1 loglevel=5 no_timer_check intel_iommu=on " + p.kernel,
	}
	if p.wire != "" {
		args = append(args, "-netdev", "dgram,id=wire,local.type=unix,local.path="+p.wire+",remote.type=unix,remote.path="+p.wire+".far",
			"-device", "virtio-net-pci,netdev=wire,romfile=")
	}
	return args
}

// inherited are descriptors that QEMU inherits, from 3 on.
type inherited struct{ files []*os.File }

func (i *inherited) add(f *os.File) (fd int) {
	i.files = append(i.files, f)
	return 2 + len(i.files)
}

func (i *inherited) socket() (net.Conn, error) {
	ours, theirs, err := socketPair()
	if err == nil {
		i.add(theirs)
	}
	return ours, err
}

// card returns the arguments for the functions of a card. Function 0 must be the last one.
func (i *inherited) card(b *board) (args []string, err error) {
	for n := len(b.functions) - 1; n >= 0; n-- {
		theirs, err := b.functions[n].connect()
		if err != nil {
			return nil, err
		}
		args = append(args, "-device", "x-pci-proxy-dev,fd="+fmt.Sprint(i.add(theirs))+","+b.functions[n].place("rp1", ","))
	}
	return args, nil
}

func (i *inherited) close() {
	for _, f := range i.files {
		_ = f.Close()
	}
	i.files = nil
}

// place words where a function goes, for a command line or for QMP.
func (f *function) place(port, separator string) string {
	words := []string{fmt.Sprintf("id=card%d", f.number), "bus=" + port, fmt.Sprintf("addr=0.%d", f.number)}
	if f.number == 0 && len(f.board.functions) > 1 {
		words = append(words, "multifunction=on")
	}
	return strings.Join(words, separator)
}

// end stops QEMU, and reports what the kernel printed where the test failed.
func (g *guest) end(t *testing.T) {
	_ = g.process.Process.Kill()
	<-g.stopped
	_ = g.serial.Close()
	<-g.ended
	if t.Failed() {
		t.Logf("QEMU ended with %v; the guest's console:\n%s", g.process.ProcessState, g.tail())
	}
}

func (g *guest) tail() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	text := g.console.Bytes()
	return string(text[max(0, len(text)-4000):])
}

// listen hands the guest's events to the sessions until the machine ends.
func (g *guest) listen() {
	defer close(g.ended)
	events := json.NewDecoder(g.serial)
	for {
		var e Event
		if err := events.Decode(&e); err != nil {
			break
		}
		g.mu.Lock()
		s := g.sessions[e.ID]
		g.mu.Unlock()
		if s != nil {
			s.take(&e)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.sessions {
		s.take(&Event{Ended: true, Stderr: true, Line: "the guest ended", Code: -1})
	}
}

// session is a command in a guest.
type session struct {
	guest *guest
	id    int
	what  string

	mu          sync.Mutex
	lines       []string // of both streams
	out, errors strings.Builder
	ended       bool
	code        int
	changed     chan struct{} // closed and made anew at each event
}

func (g *guest) newSession(id int) *session {
	s := &session{guest: g, id: id, changed: make(chan struct{})}
	g.mu.Lock()
	g.sessions[id] = s
	g.mu.Unlock()
	return s
}

func (s *session) take(e *Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	if !e.Ended || e.Line != "" {
		s.lines = append(s.lines, e.Line)
		to := &s.out
		if e.Stderr || e.Ended {
			to = &s.errors
		}
		to.WriteString(e.Line + "\n")
	}
	s.ended, s.code = e.Ended, e.Code
	close(s.changed)
	s.changed = make(chan struct{})
}

// await waits until a condition holds, which is asked at each event.
func (s *session) await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	timeout := time.After(patience)
	for {
		s.mu.Lock()
		done, ended, changed := holds(), s.ended, s.changed
		s.mu.Unlock()
		if done {
			return
		}
		if ended {
			t.Fatalf("%s: ended with %d before %s:\n%s", s.what, s.code, what, s.errors.String())
		}
		select {
		case <-changed:
		case <-timeout:
			t.Fatalf("%s: %v passed without %s\n%s\n%s", s.what, patience, what, strings.Join(s.lines[max(0, len(s.lines)-20):], "\n"),
				s.guest.tail())
		}
	}
}

// awaitLine waits for a line that matches a pattern.
func (s *session) awaitLine(t *testing.T, pattern string) {
	t.Helper()
	form, seen := regexp.MustCompile(pattern), 0
	s.await(t, fmt.Sprintf("a line %q", pattern), func() bool {
		for ; seen < len(s.lines); seen++ {
			if form.MatchString(s.lines[seen]) {
				return true
			}
		}
		return false
	})
}

// answer is what a command printed, and its exit code.
type answer struct {
	out, err string
	code     int
}

// wait returns when the command has ended.
func (s *session) wait(t *testing.T) answer {
	t.Helper()
	s.await(t, "its end", func() bool { return s.ended })
	s.mu.Lock()
	defer s.mu.Unlock()
	return answer{s.out.String(), s.errors.String(), s.code}
}

// kill ends a command that a test left running.
func (s *session) kill(t *testing.T) {
	s.mu.Lock()
	ended := s.ended
	s.mu.Unlock()
	if !ended {
		s.signal(t, syscall.SIGKILL)
		s.wait(t)
	}
	s.guest.mu.Lock()
	defer s.guest.mu.Unlock()
	delete(s.guest.sessions, s.id)
}

// signal sends a signal to the command.
func (s *session) signal(t *testing.T, signal syscall.Signal) {
	t.Helper()
	s.guest.write(t, &Command{ID: s.id, Kill: int(signal)})
}

func (g *guest) write(t *testing.T, c *Command) {
	t.Helper()
	if err := json.NewEncoder(g.serial).Encode(c); err != nil {
		t.Fatalf("%v: %v\n%s", c.Args, err, g.tail())
	}
}

// send starts a command, whose ID it sets.
func (g *guest) send(t *testing.T, c Command) *session {
	t.Helper()
	g.mu.Lock()
	g.last++
	c.ID = g.last
	g.mu.Unlock()
	s := g.newSession(c.ID)
	s.what = strings.Join(c.Args, " ")
	g.write(t, &c)
	t.Cleanup(func() { s.kill(t) })
	return s
}

// start starts a command, whose words are separated by spaces.
func (g *guest) start(t *testing.T, command string) *session {
	t.Helper()
	return g.send(t, Command{Args: strings.Fields(command)})
}

// run runs a command.
func (g *guest) run(t *testing.T, command string) answer {
	t.Helper()
	return g.start(t, command).wait(t)
}

// do runs a command that must succeed, and returns what it printed.
func (g *guest) do(t *testing.T, command string) string {
	t.Helper()
	a := g.run(t, command)
	if a.code != 0 {
		t.Fatalf("%s: exit code %d\n%s%s", command, a.code, a.out, a.err)
	}
	return a.out
}

// monitor speaks QMP.
type monitor struct {
	conn    *net.UnixConn
	answers chan reply
	mu      sync.Mutex
	deleted map[string]chan struct{} // by the id of a device
}

type reply struct {
	Return json.RawMessage `json:"return"`
	Error  *struct {
		Desc string `json:"desc"`
	} `json:"error"`
	Event string `json:"event"`
	Data  struct {
		Device string `json:"device"`
	} `json:"data"`
}

func newMonitor(conn net.Conn) *monitor {
	m := &monitor{conn: conn.(*net.UnixConn), answers: make(chan reply, 1), deleted: map[string]chan struct{}{}}
	go m.listen()
	return m
}

func (m *monitor) listen() {
	defer close(m.answers)
	replies := json.NewDecoder(m.conn)
	for {
		var r reply
		if err := replies.Decode(&r); err != nil {
			return
		}
		switch {
		case r.Event == "DEVICE_DELETED" && r.Data.Device != "":
			close(m.deletion(r.Data.Device))
		case r.Return != nil || r.Error != nil:
			m.answers <- r
		}
	}
}

// deletion returns a channel that is closed when a device is gone.
func (m *monitor) deletion(id string) chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.deleted[id] == nil {
		m.deleted[id] = make(chan struct{})
	}
	return m.deleted[id]
}

// do runs a command of QMP, with a descriptor beside it unless file is nil.
func (m *monitor) do(name string, arguments map[string]any, file ...*os.File) error {
	command := map[string]any{"execute": name}
	if arguments != nil {
		command["arguments"] = arguments
	}
	text, err := json.Marshal(command)
	if err != nil {
		return err
	}
	var rights []byte
	if len(file) > 0 {
		rights = unix.UnixRights(int(file[0].Fd()))
	}
	if _, _, err := m.conn.WriteMsgUnix(append(text, '\n'), rights, nil); err != nil {
		return err
	}
	select {
	case r, ok := <-m.answers:
		if !ok {
			return errors.New("QEMU ended")
		}
		if r.Error != nil {
			return fmt.Errorf("%s: %s", name, r.Error.Desc)
		}
		return nil
	case <-time.After(patience):
		return fmt.Errorf("%s: no answer", name)
	}
}

// plug puts a card into a slot of a running machine.
func (g *guest) plug(t *testing.T, b *board, port string) {
	t.Helper()
	for n := len(b.functions) - 1; n >= 0; n-- {
		f := b.functions[n]
		theirs, err := f.connect()
		if err != nil {
			t.Fatal(err)
		}
		arguments := map[string]any{"driver": "x-pci-proxy-dev", "fd": f.name()}
		for _, word := range strings.Fields(f.place(port, " ")) {
			key, value, _ := strings.Cut(word, "=")
			arguments[key] = value
		}
		if value, ok := arguments["multifunction"]; ok {
			arguments["multifunction"] = value == "on"
		}
		err = errors.Join(g.monitor.do("getfd", map[string]any{"fdname": f.name()}, theirs), g.monitor.do("device_add", arguments),
			theirs.Close())
		if err != nil {
			t.Fatal(err)
		}
	}
}

func (f *function) name() string { return fmt.Sprintf("card%d", f.number) }

// unplug asks the guest to give the card up, and waits until it did.
func (g *guest) unplug(t *testing.T) {
	t.Helper()
	gone := g.monitor.deletion("card0")
	if err := g.monitor.do("device_del", map[string]any{"id": "card0"}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-gone:
	case <-time.After(patience):
		t.Fatalf("the guest keeps the card\n%s", g.tail())
	}
	g.monitor.mu.Lock()
	defer g.monitor.mu.Unlock()
	delete(g.monitor.deleted, "card0")
}
