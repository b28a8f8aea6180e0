//go:build !linux

package live

import (
	"context"
	"fmt"
	"runtime"

	"github.com/olafctl/olaf/capture"
)

// Socket is a placeholder on this operating system, because capturing requires Linux.
type Socket struct{}

// Open returns an error, because this operating system does not support capturing.
func Open(Options) (*Socket, error) {
	return nil, fmt.Errorf("live capture on %s is %w; it needs Linux", runtime.GOOS, ErrUnsupported)
}

// Name returns "".
func (*Socket) Name() string { return "" }

// Info returns an empty Info.
func (*Socket) Info() Info { return Info{} }

// StampCounts returns zero counts.
func (*Socket) StampCounts() Stamped { return Stamped{} }

// Next returns ErrUnsupported.
func (*Socket) Next(*capture.Packet) error { return ErrUnsupported }

// Wait returns ErrUnsupported.
func (*Socket) Wait(context.Context) error { return ErrUnsupported }

// Stop returns ErrUnsupported.
func (*Socket) Stop() error { return ErrUnsupported }

// Drops returns ErrUnsupported.
func (*Socket) Drops() (Drops, error) { return Drops{}, ErrUnsupported }

// DroppedPackets returns 0.
func (*Socket) DroppedPackets() int64 { return 0 }

// Close does nothing.
func (*Socket) Close() error { return nil }
