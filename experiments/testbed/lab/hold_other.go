//go:build !linux

package lab

import "fmt"

// Held are the names of the testbeds that are up: none, as they are of the Linux kernel.
func Held() []string { return nil }

// Show refuses: there is no such kernel here.
func Show(name string) (*State, error) {
	return nil, fmt.Errorf("%w: %s; testbeds need Linux", ErrAbsent, name)
}

// Epoch refuses: there is no such kernel here.
func Epoch(name string, _ int) (uint16, error) {
	return 0, fmt.Errorf("%w: %s; testbeds need Linux", ErrAbsent, name)
}

// Down refuses: there is no such kernel here.
func Down(name string) error { return fmt.Errorf("%w: %s; testbeds need Linux", ErrAbsent, name) }
