//go:build !linux

package wired

import (
	"context"
	"fmt"

	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/system"
)

// Run needs namespaces and packet sockets, which only Linux has.
func Run(context.Context, closedloop.Network, closedloop.Job, system.Parts, bool, uint64) (*Played, error) {
	return nil, fmt.Errorf("%w: it takes Linux", ErrNetwork)
}
