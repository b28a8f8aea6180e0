//go:build !linux

package testbed

import (
	"context"
	"fmt"
)

// openKernel refuses: there is no such kernel here.
func openKernel(context.Context, string, OpenOptions) (*Parts, error) {
	return nil, fmt.Errorf("%w here: the switch is the Linux kernel, and this is another one", ErrBackend)
}
