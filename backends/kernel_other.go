//go:build !linux

package backends

import (
	"context"
	"fmt"

	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga/program"
)

// openKernel returns an error, because it needs a Linux kernel.
func openKernel(context.Context, string, testbed.OpenOptions) (*testbed.Parts, error) {
	return nil, fmt.Errorf("%w here: the switch is the Linux kernel, but this system has another kernel",
		testbed.ErrBackend)
}

// openHost returns an error, because it needs network namespaces.
func openHost([]program.Description, testbed.OpenOptions) (*testbed.Parts, error) {
	return nil, fmt.Errorf("%w here: workers and server are in network namespaces of Linux", testbed.ErrBackend)
}

// openBetween returns an error, because it needs a Linux kernel.
func openBetween(string) (*testbed.Shared, error) {
	return nil, fmt.Errorf("%w here: the queue is in the Linux kernel, but this system has another kernel",
		testbed.ErrBackend)
}

// openNIC returns an error, because it needs a Linux kernel.
func openNIC(string) (*testbed.Shared, error) {
	return nil, fmt.Errorf("%w here: the generator needs packet sockets of Linux", testbed.ErrBackend)
}
