//go:build !linux

package testbed

import (
	"errors"
	"net"
	"os/exec"
)

// EndWithParent does nothing. Only on Linux are the programs of an agent killed together with the agent.
func EndWithParent(*exec.Cmd) {}

// sendFrame returns an error, because sending raw frames needs Linux.
func sendFrame(*net.Interface, []byte) error { return errors.ErrUnsupported }
