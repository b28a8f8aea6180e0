package testbed

import (
	"net/netip"
	"os"
	"os/exec"
)

// Hosts are what programs run on at the ends of a testbed's cables.
type Hosts struct {
	Workers []Node
	Server  Node
	Carried int64 // frames a second, through senders, switch and output, when it was opened
}

// Node is one of them, with the first of its addresses.
type Node struct {
	Address netip.Addr
	start   func(*exec.Cmd) (Process, error)
}

// Start starts a program there. It is killed when this process ends in whatever way, and when the testbed is closed.
func (n *Node) Start(cmd *exec.Cmd) (Process, error) { return n.start(cmd) }

// Wires are the cables of a switch: between it and the workers, who have one together, and between it and the server. nil is a virtual one.
type Wires struct{ Workers, Server *Wire }

// Wire is a cable that joins two interfaces of this machine: the host's end and the switch's.
type Wire struct {
	Host, Hub string
	Virtual   bool // they are no network cards', and may end with the testbed
}

// Process is a program that runs on a host.
type Process interface {
	Wait() error // that of exec.Cmd.Wait
	Done() <-chan struct{}
	Signal(os.Signal) error
}
