//go:build !linux

package testbed

import (
	"errors"
	"net"
	"os/exec"
)

// endWithParent does nothing: only Linux kills the programs of an agent that was killed.
func endWithParent(*exec.Cmd) {}

// sendFrame returns an error: raw frames need Linux.
func sendFrame(*net.Interface, []byte) error { return errors.ErrUnsupported }
