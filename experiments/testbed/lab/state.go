package lab

import "github.com/olafctl/olaf"

// Kinds of errors of testbeds that are held.
var (
	ErrExists = olaf.NewError(olaf.Device, "a testbed of that name is up")
	ErrAbsent = olaf.NewError(olaf.Usage, "no testbed of that name is up")
	ErrBroken = olaf.NewError(olaf.Device, "the testbed is not as it was made")
	ErrHolder = olaf.NewError(olaf.Device, "whoever holds the testbed does not answer")
)

// MaxJobVectors keeps the epochs of jobs apart that follow each other: frames have 16 bits of them, and what is half of that behind
// counts as ahead.
const MaxJobVectors = 1 << 14

// State is what a testbed is at the moment.
type State struct {
	Name   string      `json:"name"`
	PID    int         `json:"pid"` // of the holder
	Lines  []string    `json:"plan"`
	Nodes  []NodeState `json:"nodes"`
	Faults []string    `json:"faults"`
}

// NodeState is one node of it. A namespace can be entered with nsenter --net=PATH, as long as the holder lives.
type NodeState struct {
	Name    string            `json:"name"`
	Role    string            `json:"role"`
	Path    string            `json:"namespace,omitempty"`
	Address string            `json:"address"`          // towards the server, of that towards the workers
	Counts  map[string]uint64 `json:"counts,omitempty"` // of a program, since it was loaded
}
