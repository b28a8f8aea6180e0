package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/olafctl/olaf"
)

// Errors of running testbeds.
var (
	ErrExists = olaf.NewError(olaf.Device, "a testbed of that name is up")
	ErrAbsent = olaf.NewError(olaf.Usage, "no testbed of that name is up")
	ErrBroken = olaf.NewError(olaf.Device, "the testbed is not as it was made")
	ErrNotUp  = olaf.NewError(olaf.Device, "the testbed did not come up")
	ErrHolder = olaf.NewError(olaf.Device, "the process that holds the testbed does not answer")
)

// State is the current state of a testbed.
type State struct {
	Name   string      `json:"name"`
	PID    int         `json:"pid"` // process id of the holder
	Lines  []string    `json:"plan"`
	Nodes  []NodeState `json:"nodes"`
	Faults []string    `json:"faults"`
	// Remarks are faults in the jobs that run on it, such as two workers with the same number.
	Remarks []string `json:"remarks,omitempty"`
	// Lent contains the agents that lend the devices of a testbed with roles on this host, by role.
	Lent map[string]string `json:"lent,omitempty"`
}

// NodeState is the state of a node. While the holder is running, users can enter the node's namespace with nsenter
// --net=PATH.
type NodeState struct {
	Name    string            `json:"name"`
	Role    string            `json:"role"`
	Path    string            `json:"namespace,omitempty"`
	Address string            `json:"address"`          // towards the server; for the server, towards the workers
	Counts  map[string]uint64 `json:"counts,omitempty"` // counters of a program, since it was loaded
}

// readState parses the state that a holder returned. The error matches ErrHolder.
func readState(r io.Reader, name string) (*State, error) {
	s := new(State)
	err := json.NewDecoder(r).Decode(s)
	if err == nil && (s.Name != name || s.PID < 1) {
		err = errors.New("it has no testbed of that name")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrHolder, name, err)
	}
	return s, nil
}

// remark adds remarks about faults in jobs that the counters of the nodes reveal.
func (s *State) remark() {
	for i := range s.Nodes {
		if n := s.Nodes[i].Counts["misidentified"]; n > 0 {
			s.Remarks = append(s.Remarks,
				fmt.Sprintf("%s: %s named another worker than the one behind their port; do two workers have the "+
					"same number (--worker), or each other's?",
					s.Nodes[i].Name, olaf.Plural(n, "packet")))
		}
	}
}
