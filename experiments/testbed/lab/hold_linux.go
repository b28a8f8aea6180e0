package lab

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// prefix is the first part of the names of holders' sockets. The sockets are abstract: they have no file and disappear
// with their process.
const prefix = "@olafctl/testbed/"

// HeldPrefix is the first part of the line that a holder prints when its testbed is up.
const HeldPrefix = "up: "

// Holder keeps a testbed up and answers requests about it.
type Holder struct {
	name     string
	lab      *Lab // nil for a testbed without nodes on this host
	isPart   bool // other hosts hold other nodes of the testbed
	listener *net.UnixListener
	counts   []map[string]uint64 // by adder
	removals []func() error
	shows    []func(*State)
}

// ClaimName returns a holder for the testbed of that name, which has no nodes yet. The error matches ErrExists.
func ClaimName(name string) (*Holder, error) {
	listener, err := listenAs(name)
	if err != nil {
		return nil, err
	}
	return &Holder{name: name, listener: listener}, nil
}

// NewHolder claims the name of a plan and builds the testbed. The error matches ErrExists or comes from Up.
func NewHolder(p *Plan, o Options) (*Holder, error) {
	h, err := ClaimName(p.Name)
	if err != nil {
		return nil, err
	}
	if err := h.Build(p, o); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// Build builds the nodes of a testbed, which the holder then keeps up.
func (h *Holder) Build(p *Plan, o Options) error {
	l, err := Up(p, o)
	if err != nil {
		return err
	}
	h.lab, h.isPart = l, o.Here != ""
	for range l.Adders {
		h.counts = append(h.counts, map[string]uint64{})
	}
	return nil
}

// OnRemove adds a function that the holder calls after it has removed the testbed's nodes. Functions that were added
// later are called first.
func (h *Holder) OnRemove(f func() error) { h.removals = append(h.removals, f) }

// CompleteStateWith adds a function that completes the state of the testbed in the holder's answers.
func (h *Holder) CompleteStateWith(f func(*State)) { h.shows = append(h.shows, f) }

// listenAs claims the name of a testbed on this host. The returned listener accepts requests. The error matches
// ErrExists.
func listenAs(name string) (*net.UnixListener, error) {
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: prefix + name, Net: "unix"})
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%w: %s; 'olafctl testbed show %[2]s' shows it, 'olafctl testbed down %[2]s' takes it down", ErrExists, name)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrHolder, err)
	}
	return listener, nil
}

// Close removes the testbed and releases its name.
func (h *Holder) Close() error { return errors.Join(h.remove(), h.listener.Close()) }

// remove removes the testbed but keeps its name claimed.
func (h *Holder) remove() (err error) {
	if h.lab != nil {
		err = h.lab.Close()
	}
	for _, f := range slices.Backward(h.removals) {
		err = errors.Join(err, f())
	}
	return err
}

// Hold answers requests until the context ends or a request asks it to stop. It then removes the testbed and releases
// its name last, so that a new holder of that name does not find devices or interfaces in use.
func (h *Holder) Hold(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = h.listener.SetDeadline(time.Now()) })
	defer stop()
	for {
		c, err := h.listener.Accept()
		if errors.Is(err, os.ErrDeadlineExceeded) { // the context has ended
			return h.Close()
		}
		if err != nil {
			return errors.Join(h.Close(), err)
		}
		if h.answer(c) {
			return errors.Join(h.Close(), c.Close()) // the requester learns of the end when everything is removed
		}
		_ = c.Close()
	}
}

// patience is the timeout for a request and for its answer.
const patience = 10 * time.Second

// The requests.
const (
	show = "show"
	down = "down"
)

// answer answers one request. It reports whether the request asks the holder to stop. Only users with the holder's
// rights are served.
func (h *Holder) answer(c net.Conn) (end bool) {
	_ = c.SetDeadline(time.Now().Add(patience))
	if !isTrusted(c) {
		return false
	}
	question, err := bufio.NewReader(io.LimitReader(c, 64)).ReadString('\n')
	if err != nil {
		return false
	}
	switch strings.TrimSpace(question) {
	case show:
		_ = json.NewEncoder(c).Encode(h.state())
	case down:
		return true
	default:
		if h.lab != nil && strings.HasPrefix(question, epoch) {
			if first, err := h.epoch(strings.TrimSpace(question)); err != nil {
				_, _ = fmt.Fprintln(c, err) // the requester may be gone
			} else {
				_, _ = fmt.Fprintln(c, first)
			}
		}
	}
	return false
}

// isTrusted reports whether the process at the other end of c belongs to this user or to root.
func isTrusted(c net.Conn) bool {
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		return false
	}
	var who *unix.Ucred
	var got error
	err = raw.Control(func(fd uintptr) { who, got = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	return err == nil && got == nil && (who.Uid == 0 || int(who.Uid) == os.Geteuid())
}

func (h *Holder) state() *State {
	l := h.lab
	if l == nil {
		s := &State{Name: h.name, PID: os.Getpid()}
		for _, f := range h.shows {
			f(s)
		}
		return s
	}
	s := &State{Name: l.Name, PID: os.Getpid(), Lines: l.Lines(), Faults: l.Faults()}
	for i := range l.Plan.Nodes {
		p := &l.Plan.Nodes[i]
		n := NodeState{Name: p.Name, Role: p.Role}
		if p.Up >= 0 {
			n.Address = l.Plan.Cables[p.Up].Lower.String()
		} else {
			n.Address = l.Plan.Cables[p.Down[0]].Upper.String()
		}
		if l.Nodes[i] != nil {
			n.Path = l.Nodes[i].Path()
		}
		s.Nodes = append(s.Nodes, n)
	}
	if l.queue != nil {
		counted, err := l.queue.counts()
		if err != nil {
			s.Faults = append(s.Faults, err.Error())
		}
		s.Nodes[l.Switch.Node].Counts = counted
	}
	for i, a := range l.Adders {
		counted, err := a.Latch()
		if err != nil {
			s.Faults = append(s.Faults, err.Error())
		}
		for name, n := range counted {
			h.counts[i][name] += n
		}
		s.Nodes[a.Planned.Node].Counts = h.counts[i]
	}
	s.remark()
	if h.isPart { // other hosts' holders describe their nodes
		s.Nodes = slices.DeleteFunc(s.Nodes, func(n NodeState) bool { return n.Path == "" && n.Counts == nil })
	}
	return s
}

// reportAbsent returns an error that matches ErrAbsent and lists the testbeds that are up.
func reportAbsent(name string) error {
	up := "none is"
	if names := ListHeld(); len(names) > 0 {
		up = "up is " + strings.Join(names, ", ")
	}
	return fmt.Errorf("%w: %s; %s", ErrAbsent, name, up)
}

// ask sends a request to the holder of a testbed. The error matches ErrAbsent if there is none.
func ask(name, question string) (net.Conn, error) {
	c, err := net.DialTimeout("unix", prefix+name, patience)
	if err != nil {
		return nil, reportAbsent(name)
	}
	_ = c.SetDeadline(time.Now().Add(patience))
	if !isTrusted(c) {
		return nil, errors.Join(fmt.Errorf("%w: %s is another user's", ErrHolder, name), c.Close())
	}
	_, err = io.WriteString(c, question+"\n")
	if errors.Is(err, syscall.EPIPE) { // it ended after it was dialled
		return nil, errors.Join(reportAbsent(name), c.Close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %s: %w", ErrHolder, name, err), c.Close())
	}
	return c, nil
}

// Show returns the state of a testbed that is up. The error matches ErrAbsent if it is not, or if it was removed before
// its holder answered.
func Show(name string) (*State, error) {
	c, err := ask(name, show)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	s, err := readState(c, name)
	if errors.Is(err, syscall.ECONNRESET) {
		return nil, reportAbsent(name)
	}
	return s, err
}

// Down removes a testbed and waits until it is removed. A holder that is already ending need not answer.
func Down(name string) error {
	c, err := ask(name, down)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := io.Copy(io.Discard, c); err != nil && !errors.Is(err, syscall.ECONNRESET) {
		return fmt.Errorf("%w: %s: %w", ErrHolder, name, err)
	}
	return nil
}

// ListHeld returns the names of the testbeds that are up.
func ListHeld() (names []string) {
	list, err := os.ReadFile("/proc/thread-self/net/unix") // the process's first thread may be in a namespace
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(list)) {
		fields := strings.Fields(line)
		name, ours := strings.CutPrefix(fields[len(fields)-1], prefix)
		if ours && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
