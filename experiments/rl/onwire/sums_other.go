//go:build !linux

package onwire

import (
	"context"
	"fmt"

	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/experiments/testbed"
)

// TrainSums returns an error, because the aggregator is a program in the Linux kernel.
func TrainSums(context.Context, rl.Config, string, Options) (*Summed, error) {
	return nil, fmt.Errorf("%w here: the aggregator is a program of the Linux kernel", testbed.ErrBackend)
}
