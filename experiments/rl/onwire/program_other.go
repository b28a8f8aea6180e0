//go:build !linux

package onwire

import (
	"context"
	"fmt"

	"github.com/olafctl/olaf/experiments/testbed"
)

// RunSums refuses: the aggregator is a program of the Linux kernel.
func (p *Program) RunSums(context.Context, string) (*ProgramReport, error) {
	return nil, fmt.Errorf("%w here: the aggregator is a program of the Linux kernel", testbed.ErrBackend)
}
