//go:build !unix

package sshlink

import "os/exec"

// leaveGroup does nothing, because this system has no process groups.
func leaveGroup(*exec.Cmd) {}

// ShareSocket does nothing, because this system has no sudo.
func ShareSocket(string) error { return nil }
