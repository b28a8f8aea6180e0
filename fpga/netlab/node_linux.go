package netlab

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Node is a network namespace. A dedicated thread keeps it alive and runs all operations in it.
type Node struct {
	name  string
	tasks chan func()
	ended chan struct{}
	file  *os.File // open file of the namespace

	mu        sync.Mutex
	closed    bool
	processes map[*Process]bool
}

// newNode creates a namespace and the thread that keeps it alive.
func newNode(name string) (*Node, error) {
	n, err := startNode(name, func() error { return unix.Unshare(unix.CLONE_NEWNET) })
	if err != nil {
		return nil, fmt.Errorf("make a namespace for %s: %w: %w", name, ErrNetwork, err)
	}
	if err := n.Do(n.configureNew); err != nil {
		return nil, errors.Join(err, n.close())
	}
	return n, nil
}

// enterNode joins the namespace at path, which is the Node.Path of another process. It starts a thread that keeps the
// namespace alive.
func enterNode(name, path string) (*Node, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("enter the namespace of %s: %w: %w", name, ErrNetwork, err)
	}
	defer file.Close()
	n, err := startNode(name, func() error { return unix.Setns(int(file.Fd()), unix.CLONE_NEWNET) })
	if err != nil {
		return nil, fmt.Errorf("enter the namespace of %s: %w: %w", name, ErrNetwork, err)
	}
	return n, nil
}

// startNode starts a thread that enters a namespace by calling into, and keeps the thread there.
func startNode(name string, into func() error) (*Node, error) {
	n := &Node{name: name, tasks: make(chan func()), ended: make(chan struct{}), processes: map[*Process]bool{}}
	made := make(chan error)
	go n.runTasks(into, made)
	return n, <-made
}

// runTasks enters a namespace by calling into and then runs the node's tasks until the node is closed. It never unlocks
// its thread, so that the thread ends with the goroutine.
func (n *Node) runTasks(into func() error, made chan<- error) {
	defer close(n.ended)
	runtime.LockOSThread()
	err := into()
	if err == nil {
		n.file, err = os.Open("/proc/thread-self/ns/net")
	}
	made <- err
	if err != nil {
		return
	}
	for task := range n.tasks {
		task()
	}
}

// configureNew disables traffic that the kernel would send on new interfaces, and brings the loopback interface up.
func (n *Node) configureNew() error {
	for _, scope := range []string{"all", "default"} { // a kernel without IPv6 does not have the file and sends nothing
		_ = os.WriteFile("/proc/sys/net/ipv6/conf/"+scope+"/disable_ipv6", []byte("1"), 0)
	}
	lo, err := FindInterface("lo")
	if err != nil {
		return err
	}
	return lo.setUp()
}

// Name returns the node's name.
func (n *Node) Name() string { return n.name }

// errClosed is the error for operations on a node after its lab was closed.
var errClosed = errors.New("the namespace is gone")

// Do calls f in the node's namespace. Sockets, programs and links that f creates belong to the namespace and remain
// there. A node runs only one function at a time, so long operations belong in a Process or a separate thread.
func (n *Node) Do(f func() error) error {
	n.mu.Lock()
	closed := n.closed
	n.mu.Unlock()
	if closed {
		return fmt.Errorf("%s: %w: %w", n.name, ErrNetwork, errClosed)
	}
	done := make(chan error, 1)
	n.tasks <- func() { done <- f() }
	return <-done
}

// Path returns a path by which other programs on this machine can enter the namespace, for example with nsenter
// --net=PATH. It is valid while this process lives.
func (n *Node) Path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), n.file.Fd()) }

// Process is a program that runs in a namespace.
type Process struct {
	node *Node
	cmd  *exec.Cmd
	done chan struct{}
	err  error // error of Wait, valid once done is closed
}

// Start starts a program in the namespace. The program is killed when this process ends or the lab is closed.
func (n *Node) Start(cmd *exec.Cmd) (*Process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL // kill the program when the namespace's thread ends
	p := &Process{node: n, cmd: cmd, done: make(chan struct{})}
	if err := n.Do(cmd.Start); err != nil {
		return nil, fmt.Errorf("start %s in %s: %w", cmd.Path, n.name, err)
	}
	n.mu.Lock()
	n.processes[p] = true
	n.mu.Unlock()
	go p.wait()
	return p, nil
}

func (p *Process) wait() {
	p.err = p.cmd.Wait()
	p.node.mu.Lock()
	delete(p.node.processes, p)
	p.node.mu.Unlock()
	close(p.done)
}

// Wait waits until the program has ended. The error is the same as for exec.Cmd.Wait.
func (p *Process) Wait() error {
	<-p.done
	return p.err
}

// Done returns a channel that is closed when the program has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Signal sends a signal to the program.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

func (n *Node) close() error {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return nil
	}
	n.closed = true
	running := slices.Collect(maps.Keys(n.processes))
	n.mu.Unlock()
	for _, p := range running {
		_ = p.Signal(os.Kill) // the program may have ended already
		<-p.done
	}
	close(n.tasks)
	<-n.ended
	return n.file.Close()
}
