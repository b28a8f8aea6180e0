// Package testbed opens what a run is carried out on: a card or its twin with a controller's session and a capture, here
// or behind the agent of another process, and lends it to others.
package testbed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/twin"
	"github.com/olafctl/olaf/p4ctl"
)

// ErrBackend says that this build cannot open a device of that kind.
var ErrBackend = olaf.NewError(olaf.Usage, "no such device backend")

// Testbed is one device to program, tables to fill, generators to fire, captures to read. Whether a card or the twin is
// behind it makes no difference to a run.
type Testbed struct {
	// Cards are equal ones that runs may use side by side. A real testbed has one.
	Cards []Card
	// Tables is the primary controller's session with the device that they all are copies of.
	Tables *p4ctl.Session
	// P4InfoHash is the SHA-256 of the P4Info that the device forwards by.
	P4InfoHash string
	// AgeErrorPct is by how much of a run's mean AoM its ages may be wrong where two clocks measure them; beyond that they
	// are withheld. 0 is 10 %.
	AgeErrorPct float64
	close       []func() error
}

// Card is one device and what captures behind it.
type Card struct {
	Device fpga.Device
	Tap    capture.Tap
}

// AgeError is AgeErrorPct, or what stands for 0.
func (b *Testbed) AgeError() float64 { return cmp.Or(b.AgeErrorPct, 10) }

// OpenOptions say what a testbed is opened for.
type OpenOptions struct {
	Access
	Cards  int    // cards side by side, where the device can be copied; 0 is one
	Listen string // also serve P4Runtime here; empty for a private socket
	Wire   bool   // move gradients and record frames, for captures
	// Observe gives every card its observer, called with their numbers from 0; nil for none. Only a twin of this process can be
	// observed; elsewhere nobody is asked.
	Observe func(lane int) twin.Observer
}

// openers is the table of backends by the scheme of an address.
var openers = map[string]func(context.Context, string, OpenOptions) (*Testbed, error){
	"twin": openTwin,
	"pci":  openCardTestbed,
	"grpc": openAgent,
}

// Addresses is the form that Open takes, for help texts.
const Addresses = "twin:, pci:0000:3b:00.0, grpc://HOST:PORT"

// Open opens the device at an address. The error matches ErrBackend where this build has no way to it.
func Open(ctx context.Context, address string, o OpenOptions) (*Testbed, error) {
	if address == "" {
		address = "twin:"
	}
	o.Cards = max(o.Cards, 1)
	scheme, rest, _ := strings.Cut(address, ":")
	open, ok := openers[scheme]
	if !ok {
		return nil, fmt.Errorf("%w for %q; this build opens %s", ErrBackend, address, Addresses)
	}
	return open(ctx, rest, o)
}

// Close gives everything back, last opened first.
func (b *Testbed) Close() error {
	var errs []error
	for i := len(b.close) - 1; i >= 0; i-- {
		errs = append(errs, b.close[i]())
	}
	b.close = nil
	return errors.Join(errs...)
}

// guard ends the context when the tables are lost, with the reason as its cause.
func (b *Testbed) Guard(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stopped := make(chan struct{})
	go func() {
		select {
		case <-b.Tables.Preempted():
			cancel(fmt.Errorf("the tables: %w", p4ctl.ErrPreempted))
		case <-stopped:
		}
	}()
	return ctx, func() {
		close(stopped)
		cancel(context.Canceled)
	}
}

// program makes the tables hold want, reads them back, and returns the hash of their content.
func (b *Testbed) Program(ctx context.Context, want p4ctl.Tables) (hash string, err error) {
	if _, err := b.Tables.Sync(ctx, want); err != nil {
		return "", fmt.Errorf("write the tables: %w", err)
	}
	got, err := b.Tables.Read(ctx)
	if err != nil {
		return "", fmt.Errorf("read the tables back: %w", err)
	}
	if got.Hash() != want.Hash() {
		return "", fmt.Errorf("%w: the tables read back differ from what was written", fpga.ErrRefused)
	}
	return want.Hash(), nil
}

// Capture is what the card's tap says of the run that it has just watched; nil for one that sees everything by itself.
func (l *Card) Capture() (*fpga.Capture, error) {
	if c, ok := l.Tap.(fpga.Capturer); ok {
		return c.Capture()
	}
	return nil, nil
}
