//go:build !linux

package testbed

import (
	"context"
	"fmt"

	"github.com/olafctl/olaf/fpga/program"
)

// openKernel refuses: there is no such kernel here.
func openKernel(context.Context, string, OpenOptions) (*Parts, error) {
	return nil, fmt.Errorf("%w here: the switch is the Linux kernel, and this is another one", ErrBackend)
}

// openHost refuses: there are no namespaces here.
func openHost([]program.Description, OpenOptions) (*Parts, error) {
	return nil, fmt.Errorf("%w here: workers and server are in network namespaces of Linux", ErrBackend)
}
