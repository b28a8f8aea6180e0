//go:build !linux

package onwire

import (
	"context"
	"fmt"

	"github.com/olafctl/olaf/experiments/testbed"
)

// RunSums returns an error, because the aggregator is a program in the Linux kernel.
func (p *Program) RunSums(context.Context, string) (*ProgramReport, error) {
	return nil, fmt.Errorf("%w here: the aggregator is a program of the Linux kernel", testbed.ErrBackend)
}
