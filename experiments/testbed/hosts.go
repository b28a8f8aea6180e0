package testbed

import (
	"net/netip"
	"os"
	"os/exec"
)

// Hosts describes the hosts at the ends of a testbed's cables on which programs can run.
type Hosts struct {
	Workers []Node
	Server  Node
	Carried int64 // measured frames per second through senders, switch and output
}

// Node is one host with the first of its addresses.
type Node struct {
	Address netip.Addr
	Run     func(*exec.Cmd) (Process, error) // starts a program; see Start
}

// Start starts a program on the host. The program is killed when this process ends or the testbed is closed.
func (n *Node) Start(cmd *exec.Cmd) (Process, error) { return n.Run(cmd) }

// Wires contains the cables of a switch: one that all workers share, and one for the server. A nil cable is virtual.
type Wires struct{ Workers, Server *Wire }

// Wire is a cable between two interfaces of this machine, one for the host and one for the switch.
type Wire struct {
	Host, Hub string
	Virtual   bool // not network cards; they may end with the testbed
}

// Process is a program that runs on a host.
type Process interface {
	Wait() error // like exec.Cmd.Wait
	Done() <-chan struct{}
	Signal(os.Signal) error
}
