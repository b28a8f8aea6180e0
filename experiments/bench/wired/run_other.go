//go:build !linux

package wired

import (
	"context"
	"fmt"

	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/system"
)

// Run returns an error, because it needs Linux network namespaces and packet sockets.
func Run(context.Context, closedloop.Network, closedloop.Job, system.Parts, bool, uint64) (*Played, error) {
	return nil, fmt.Errorf("%w: this needs Linux", ErrNetwork)
}

// RunWork returns an error, because it needs Linux network namespaces and packet sockets.
func RunWork(context.Context, closedloop.Network, closedloop.Job, system.Parts, Work, uint64) (*Played, error) {
	return nil, fmt.Errorf("%w: this needs Linux", ErrNetwork)
}
