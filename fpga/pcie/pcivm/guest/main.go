//go:build linux

// Command guest is the first process in a virtual machine started by package pcivm. It mounts file systems and runs
// commands that arrive as JSON lines over the second serial port. If a command runs /init with arguments, the new
// process runs one of the tools instead.
package main

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/olafctl/olaf/fpga/pcie/pcivm"
)

const port = "/dev/ttyS1"

func main() {
	if os.Getpid() != 1 {
		if err := runTool(os.Stdout, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if err := serveCommands(); err != nil {
		fmt.Fprintln(os.Stderr, "guest:", err)
	}
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART) // ends QEMU
}

// mounts lists the file systems that are mounted in the guest.
var mounts = []struct{ kind, path string }{
	{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"tmpfs", "/run"}, {"tmpfs", "/tmp"},
}

func serveCommands() error {
	for _, m := range mounts {
		if err := errors.Join(os.MkdirAll(m.path, 0o755), unix.Mount(m.kind, m.path, m.kind, 0, "")); err != nil {
			return fmt.Errorf("mount %s: %w", m.path, err)
		}
	}
	err := errors.Join(os.Setenv("PATH", "/bin"), os.Mkdir("/run/lock", 0o777), os.Chmod("/run/lock", 0o1777),
		os.Chmod("/tmp", 0o1777))
	if err != nil {
		return err
	}
	line, err := os.OpenFile(port, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	if err := makeRaw(int(line.Fd())); err != nil {
		return err
	}
	s := &server{out: json.NewEncoder(line), running: map[int]*os.Process{}}
	s.send(pcivm.Event{Line: "ready"})
	commands := json.NewDecoder(bufio.NewReader(line))
	for {
		var c pcivm.Command
		if err := commands.Decode(&c); err != nil {
			return fmt.Errorf("%s: %w", port, err)
		}
		s.handle(&c)
	}
}

// makeRaw sets the terminal to raw mode, in which it neither changes nor echoes bytes.
func makeRaw(fd int) error {
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return err
	}
	t.Iflag, t.Oflag, t.Lflag = 0, 0, 0
	t.Cflag |= unix.CLOCAL | unix.CREAD
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
	return unix.IoctlSetTermios(fd, unix.TCSETS, t)
}

// server runs commands and sends their output as events.
type server struct {
	mu      sync.Mutex
	out     *json.Encoder
	running map[int]*os.Process
}

func (s *server) send(e pcivm.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.out.Encode(e)
}

func (s *server) handle(c *pcivm.Command) {
	if c.Kill != 0 {
		s.mu.Lock()
		defer s.mu.Unlock()
		if p := s.running[c.ID]; p != nil {
			_ = p.Signal(syscall.Signal(c.Kill))
		}
		return
	}
	if tools[c.Args[0]] == nil {
		s.start(c)
		return
	}
	go func() {
		var text strings.Builder
		end := pcivm.Event{ID: c.ID, Ended: true}
		if err := runTool(&text, c.Args); err != nil {
			end.Line, end.Code = err.Error(), 1
		}
		s.copy(strings.NewReader(text.String()), pcivm.Event{ID: c.ID})
		s.send(end)
	}()
}

// start starts a program. It sends an event for each line of output and one when the program has ended.
func (s *server) start(c *pcivm.Command) {
	p := exec.Command(c.Args[0], c.Args[1:]...)
	p.Env = []string{"HOME=/tmp", "PATH=/bin", "OLAFCTL_HOME=/tmp/runs-" + strconv.Itoa(c.User), "TERM=dumb", "GOTRACEBACK=all"}
	p.Dir = "/tmp"
	if c.User != 0 {
		p.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(c.User), Gid: uint32(c.User)}}
		if c.Also != 0 {
			p.SysProcAttr.Credential.Groups = []uint32{uint32(c.Also)}
		}
	}
	stdout, err1 := p.StdoutPipe()
	stderr, err2 := p.StderrPipe()
	if err := errors.Join(err1, err2, p.Start()); err != nil {
		s.send(pcivm.Event{ID: c.ID, Ended: true, Line: err.Error(), Code: 127})
		return
	}
	s.mu.Lock()
	s.running[c.ID] = p.Process
	s.mu.Unlock()
	go func() {
		var copies sync.WaitGroup
		copies.Go(func() { s.copy(stdout, pcivm.Event{ID: c.ID}) })
		copies.Go(func() { s.copy(stderr, pcivm.Event{ID: c.ID, Stderr: true}) })
		copies.Wait()
		_ = p.Wait()
		s.mu.Lock()
		delete(s.running, c.ID)
		s.mu.Unlock()
		s.send(pcivm.Event{ID: c.ID, Ended: true, Code: exitCode(p.ProcessState)})
	}()
}

// copy sends an event for each line that it reads from r. e is the template for these events.
func (s *server) copy(r io.Reader, e pcivm.Event) {
	text := bufio.NewReader(r)
	for {
		line, err := text.ReadString('\n')
		if line != "" {
			e.Line = strings.TrimSuffix(line, "\n")
			s.send(e)
		}
		if err != nil {
			return
		}
	}
}

func exitCode(p *os.ProcessState) int {
	if status, ok := p.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return p.ExitCode()
}

// tools contains the helper programs for test cases. They run in the guest's first process, or in a child process if
// the command names /init.
var tools = map[string]func(out io.Writer, args []string) error{
	"read": func(out io.Writer, args []string) error {
		text, err := os.ReadFile(args[0])
		_, _ = out.Write(text)
		return err
	},
	"write":  func(_ io.Writer, args []string) error { return os.WriteFile(args[0], []byte(args[1]), 0o644) },
	"poke":   func(_ io.Writer, args []string) error { return pokeBytes(args[0], args[1], args[2]) },
	"await":  func(_ io.Writer, args []string) error { return awaitPath(args[0], true) },
	"absent": func(_ io.Writer, args []string) error { return awaitPath(args[0], false) },
	"insmod": func(_ io.Writer, args []string) error { return loadModule(args[0], strings.Join(args[1:], " ")) },
	"share":  func(_ io.Writer, args []string) error { return shareFile(args[0], args[1]) },
	"map":    func(out io.Writer, args []string) error { return holdFile(out, args[0], true) },
	"hold":   func(out io.Writer, args []string) error { return holdFile(out, args[0], false) },
}

func runTool(out io.Writer, args []string) error {
	if len(args) == 0 || tools[args[0]] == nil {
		return fmt.Errorf("no tool for %q", args)
	}
	return tools[args[0]](out, append(args[1:], "", "")[:max(2, len(args)-1)])
}

// pokeBytes writes bytes, given as hexadecimal text, at an offset in a file such as a configuration space.
func pokeBytes(path, offset, text string) error {
	at, err1 := strconv.ParseInt(offset, 0, 64)
	data, err2 := hex.DecodeString(text)
	file, err3 := os.OpenFile(path, os.O_WRONLY, 0)
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	_, err := file.WriteAt(data, at)
	return errors.Join(err, file.Close())
}

// awaitPath waits until a path exists, or until it no longer exists if there is false. It fails after three minutes;
// the calling test gives up earlier.
func awaitPath(path string, there bool) error {
	for range 180_000 {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) != there {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
	return fmt.Errorf("%s: waited in vain", path)
}

func loadModule(path, parameters string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	err = unix.FinitModule(int(file.Fd()), strings.TrimSpace(parameters), 0)
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// shareFile gives a group permission to read and write a file.
func shareFile(path, group string) error {
	gid, err := strconv.Atoi(group)
	if err != nil {
		return err
	}
	return errors.Join(os.Chown(path, 0, gid), os.Chmod(path, 0o660))
}

// holdFile opens the first file that matches a pattern and keeps it open until the process is killed. If mapped is set,
// it also maps the file's first page.
func holdFile(out io.Writer, pattern string, mapped bool) error {
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		return fmt.Errorf("no file %s: %w", pattern, err)
	}
	fd, err := unix.Open(found[0], unix.O_RDWR, 0)
	if err == nil && mapped {
		_, err = unix.Mmap(fd, 0, 4096, unix.PROT_READ, unix.MAP_SHARED)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", found[0], err)
	}
	fmt.Fprintln(out, "held")
	return unix.Pause() // select {} would end the program, because there is no other goroutine
}
