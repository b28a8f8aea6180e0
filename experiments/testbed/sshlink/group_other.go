//go:build !unix

package sshlink

import "os/exec"

// leaveGroup does nothing where there are no process groups.
func leaveGroup(*exec.Cmd) {}

// ShareSocket does nothing where there is no sudo.
func ShareSocket(string) error { return nil }
