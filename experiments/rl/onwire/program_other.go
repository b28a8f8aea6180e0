//go:build !linux

package onwire

import (
	"context"
	"fmt"

	"github.com/olafctl/olaf/experiments/bench/job"
	"github.com/olafctl/olaf/experiments/testbed"
)

// RunSums returns an error, because the aggregator is a program in the Linux kernel.
func (p *Program) RunSums(context.Context, string) (*ProgramReport, error) {
	return nil, fmt.Errorf("%w here: the aggregator is a program of the Linux kernel", testbed.ErrBackend)
}

// runAnswered returns an error, because the workers and the server need network namespaces.
func (p *Program) runAnswered(context.Context, *job.Spec, uint64) (*ProgramRun, error) {
	return nil, fmt.Errorf("%w here: workers and server run in network namespaces of Linux", testbed.ErrBackend)
}
