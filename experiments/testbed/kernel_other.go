//go:build !linux

package testbed

import (
	"context"
	"fmt"

	"github.com/olafctl/olaf/fpga/program"
)

// openKernel returns an error, because this is not a Linux kernel.
func openKernel(context.Context, string, OpenOptions) (*Parts, error) {
	return nil, fmt.Errorf("%w here: the switch is the Linux kernel, and this is another one", ErrBackend)
}

// openHost returns an error, because there are no network namespaces.
func openHost([]program.Description, OpenOptions) (*Parts, error) {
	return nil, fmt.Errorf("%w here: workers and server are in network namespaces of Linux", ErrBackend)
}
