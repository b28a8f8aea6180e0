package sshlink

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/olafctl/olaf/internal/tempfolder"
)

// Options contains the options for starting a link.
type Options struct {
	Program string // the ssh program with options, in a shell's words; empty for ssh
	Binary  string // olafctl on the other host; empty for the copy in the user's cache there, or olafctl in PATH
	Sudo    bool   // the agent runs as root, through sudo
	// Identify identifies this program, and Executable returns its file, to copy.
	Identify   func() (Build, error)
	Executable func() (string, error)
	// MayCopy returns an error if the program may not be copied to the host; nil forbids it.
	MayCopy func(ctx context.Context, question string) error
	// Note receives notes about slow steps on the host, and an agent's notes; it may be nil.
	Note func(text string)
	// Serve contains the arguments of 'device serve' there, besides the socket.
	Serve []string
	// AfterKill contains the words of an olafctl command that runs there after the agent was killed; nil for none.
	AfterKill []string

	build Build
}

// Link is a connection to an agent on another host. The agent's socket is forwarded to this host.
type Link struct {
	Address Address
	Target  string // to dial: unix:PATH

	cmd    *exec.Cmd
	in     io.WriteCloser
	remove func() error // the folder of the socket
	words  tail         // output of ssh and of the agent
	lines  chan string
	done   chan struct{}

	mu    sync.Mutex
	cause error // set before done is closed
}

// maxSocketPath is the maximum length of the path in the address of a unix socket.
const maxSocketPath = 103

// Start starts an agent on another host. If this program is missing there and may be copied, Start copies it first.
// Errors match ErrSSH if ssh failed, or ErrBuild if the host does not have this build. Other errors have the kind of
// the agent's exit code.
func Start(ctx context.Context, a Address, o Options) (*Link, error) {
	var err error
	if o.build, err = o.Identify(); err != nil {
		return nil, err
	}
	l, err := start(ctx, a, &o)
	other := new(otherBuild)
	if !errors.As(err, &other) {
		return l, err
	}
	if err := o.copyTo(ctx, a, other); err != nil {
		return nil, err
	}
	return start(ctx, a, &o)
}

// note passes a note, with the host's name, to the caller of Start.
func (o *Options) note(a Address, text string) {
	if o.Note != nil {
		o.Note(a.Name() + ": " + text)
	}
}

func start(ctx context.Context, a Address, o *Options) (l *Link, err error) {
	folder, remove, err := tempfolder.MakeFolder()
	if err != nil {
		return nil, fmt.Errorf("make room for the forwarded socket: %w", err)
	}
	l = &Link{Address: a, remove: remove, lines: make(chan string), done: make(chan struct{})}
	local := filepath.Join(folder, "s")
	if l.Target = "unix:" + local; len(local) > maxSocketPath {
		return nil, errors.Join(fmt.Errorf("%w: the path of the forwarded socket is too long: %s; set TMPDIR to a shorter one", ErrSSH,
			local), remove())
	}
	remote := "/tmp/olafctl-" + rand.Text()
	forward := []string{"-o", "ExitOnForwardFailure=yes", "-o", "StreamLocalBindUnlink=yes", "-o", "StreamLocalBindMask=0177",
		"-L", local + ":" + remote + "/s"}
	script := append([]string{agentScript, remote, o.Binary, o.build.Hash, sudoWord(o.Sudo), strings.Join(o.AfterKill, " ")}, o.Serve...)
	if err := l.run(o, forward, script); err != nil {
		return nil, errors.Join(err, remove())
	}
	if err = l.greet(ctx, o); err == nil {
		err = l.probe(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	for _, line := range l.words.all() {
		if text, ok := strings.CutPrefix(line, messagePrefix); ok {
			o.note(a, text)
		}
	}
	return l, nil
}

func sudoWord(sudo bool) string {
	if sudo {
		return "sudo -n"
	}
	return ""
}

// run starts ssh, and the goroutines that read its output and send signs of life.
func (l *Link) run(o *Options, forward, script []string) (err error) {
	l.cmd = o.command(l.Address, forward, script)
	l.cmd.Stderr = &l.words
	if l.in, err = l.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := l.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := l.cmd.Start(); err != nil {
		return fmt.Errorf("%w to %s: %w; install OpenSSH's client, or name another program in OLAFCTL_SSH", ErrSSH, l.Address.Name(), err)
	}
	go l.read(out)
	return nil
}

// read passes on the lines that the agent prints until it ends. It kills ssh if there is no sign of life for too long.
func (l *Link) read(out io.Reader) {
	patience := time.AfterFunc(startPatience, func() { l.fail(fmt.Errorf("%w: no sign of life from %s", ErrSSH, l.Address.Name())) })
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		patience.Reset(Patience)
		if line := strings.TrimSpace(lines.Text()); line != "" {
			select {
			case l.lines <- line:
			case <-time.After(Patience): // output after the greeting, which nothing reads
			}
		}
	}
	_, _ = io.Copy(io.Discard, out)
	patience.Stop()
	_ = l.cmd.Wait() // the exit code is in the state
	l.mu.Lock()
	if l.cause == nil {
		l.cause = explainEnd(l.Address, l.cmd.ProcessState.ExitCode(), l.words.all())
	}
	l.mu.Unlock()
	close(l.done)
}

// Messages returns the last lines that ssh and the agent printed for people.
func (l *Link) Messages() []string { return l.words.all() }

// fail ends the link because of an error on this side.
func (l *Link) fail(why error) {
	l.mu.Lock()
	if l.cause == nil {
		l.cause = why
	}
	l.mu.Unlock()
	l.kill()
}

// startPatience is the longest time to wait for the first line of a new session. It includes ssh's handshake.
const startPatience = 30 * time.Second

// greet waits for the agent's greeting, accepts its build and waits until it serves.
func (l *Link) greet(ctx context.Context, o *Options) error {
	var found otherBuild
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.done:
			if found.greeted || !found.reached || !l.mayBeOlder(&found) {
				return l.Err()
			}
			return &found
		case line := <-l.lines:
			ready, err := l.handleLine(o, line, &found)
			if ready || err != nil {
				return err
			}
		}
	}
}

// handleLine handles one line while the greeting is expected. Lines that are not part of the greeting come from login
// scripts.
func (l *Link) handleLine(o *Options, line string, found *otherBuild) (ready bool, err error) {
	words := strings.Fields(line)
	switch {
	case words[0] == hostWord && len(words) == 5:
		found.platform, found.binary, found.cached, found.reached = platformOf(words[1], words[2]), words[3], words[4] == "cached", true
	case words[0] == helloWord && len(words) == 4:
		found.greeted, found.version = true, words[2]
		if !o.build.matches(Build{Hash: words[1], Version: words[2], Platform: words[3]}) {
			return false, found
		}
		_, err := fmt.Fprintln(l.in, goWord)
		if err == nil {
			go l.giveSigns()
		}
		return false, nil // ssh's end explains a broken pipe
	case words[0] == readyWord:
		return true, nil
	}
	return false, nil
}

// mayBeOlder reports whether an agent that ended without a greeting may be an older build or missing. In these cases
// the shell did not find the program (it may also have missed sudo), or the program does not know the command or its
// flags.
func (l *Link) mayBeOlder(found *otherBuild) bool {
	code, last := l.cmd.ProcessState.ExitCode(), l.words.last()
	return !found.cached && (code == exitMissing && !strings.Contains(last, "sudo: ") || code == exitUsage && strings.Contains(last, "unknown "))
}

// exitUsage is the exit code of a program for wrong arguments or a wrong configuration. exitMissing is the exit code if the program is
// missing.
const exitUsage, exitMissing = 2, 127

// giveSigns sends signs of life until the link ends.
func (l *Link) giveSigns() {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		select {
		case <-l.done:
			return
		case <-tick.C:
			_, _ = l.in.Write([]byte("\n")) // a broken pipe is noticed as the end of ssh
		}
	}
}

// probe checks that the socket is forwarded, by exchanging HTTP/2's first messages.
func (l *Link) probe(ctx context.Context) error {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", strings.TrimPrefix(l.Target, "unix:"))
	if err != nil {
		return fmt.Errorf("%w to %s: its forwarded socket: %w", ErrSSH, l.Address.Name(), err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if err := conn.SetDeadline(time.Now().Add(Patience)); err != nil {
		return err
	}
	const greeting = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	_, err = conn.Write([]byte(greeting))
	if err == nil {
		_, err = io.ReadFull(conn, make([]byte, 1))
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case l.Err() != nil:
		return l.Err()
	}
	return fmt.Errorf("%w: %s (ssh: %s); set AllowStreamLocalForwarding yes, and no DisableForwarding, in its sshd_config", ErrForward,
		l.Address.Name(), l.words.last())
}

// Done returns a channel that is closed when the link has ended.
func (l *Link) Done() <-chan struct{} { return l.done }

// Err returns the reason why the link ended. It returns nil as long as the link exists.
func (l *Link) Err() error {
	select {
	case <-l.done:
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.cause
	default:
		return nil
	}
}

func (l *Link) kill() { _ = l.cmd.Process.Kill() } // an error means that it has ended

// Close ends the agent and the connection, and waits for ssh. If the agent does not end in time, it ends later because
// it receives no more signs of life.
func (l *Link) Close() error {
	_ = l.in.Close()
	timer := time.AfterFunc(Patience, l.kill)
	defer timer.Stop()
	for {
		select {
		case <-l.lines: // nothing reads them any more
		case <-l.done:
			return l.remove()
		}
	}
}
