//go:build !linux

package lab

import (
	"fmt"
)

// ListHeld returns no names, because testbeds need Linux.
func ListHeld() []string { return nil }

// Show returns an error, because testbeds need Linux.
func Show(name string) (*State, error) {
	return nil, fmt.Errorf("%w: %s; testbeds need Linux", ErrAbsent, name)
}

// Epoch returns an error, because testbeds need Linux.
func Epoch(name string, _ int) (uint16, error) {
	return 0, fmt.Errorf("%w: %s; testbeds need Linux", ErrAbsent, name)
}

// Down returns an error, because testbeds need Linux.
func Down(name string) error { return fmt.Errorf("%w: %s; testbeds need Linux", ErrAbsent, name) }
