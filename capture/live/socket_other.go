//go:build !linux

package live

import (
	"context"
	"fmt"
	"runtime"

	"github.com/olafctl/olaf/capture"
)

// Socket exists only where Open succeeds.
type Socket struct{}

// Open says that this system cannot capture.
func Open(Options) (*Socket, error) {
	return nil, fmt.Errorf("live capture on %s is %w; it needs Linux", runtime.GOOS, ErrUnsupported)
}

// Name is empty.
func (*Socket) Name() string { return "" }

// Info is empty.
func (*Socket) Info() Info { return Info{} }

// Stamped counts nothing.
func (*Socket) Stamped() Stamped { return Stamped{} }

// Next matches ErrUnsupported.
func (*Socket) Next(*capture.Packet) error { return ErrUnsupported }

// Wait matches ErrUnsupported.
func (*Socket) Wait(context.Context) error { return ErrUnsupported }

// Stop matches ErrUnsupported.
func (*Socket) Stop() error { return ErrUnsupported }

// Drops matches ErrUnsupported.
func (*Socket) Drops() (Drops, error) { return Drops{}, ErrUnsupported }

// Dropped is 0.
func (*Socket) Dropped() int64 { return 0 }

// Close does nothing.
func (*Socket) Close() error { return nil }
