package testbed

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/pcie"
	"github.com/olafctl/olaf/p4ctl/agent"
)

// CardAccess is what a testbed on a card needs beside the card.
type CardAccess struct {
	// Tables starts the driver of the card's tables; nil lends a card without them. What it returns besides the backend is
	// called at the end.
	Tables func(*CardTables) (agent.Backend, func() error, error)
	// Capture starts to capture at the parameter server's interface; nil lends a card without a tap.
	Capture func() (Frames, error)
	// ServerPort is the card's port towards that interface.
	ServerPort int
}

// ErrIncomplete says that a card alone is no testbed, and what to add. It matches ErrBackend.
var ErrIncomplete error = incomplete{}

type incomplete struct{}

func (incomplete) Error() string { return "a card alone is no testbed" }
func (incomplete) Unwrap() error { return ErrBackend }

// lacks says what must be added before a card is a testbed; empty when nothing is.
func (a *CardAccess) lacks() string {
	var add []string
	if a.Tables == nil {
		add = append(add, "the tables' driver (--vnp4-1 and --vnp4-2, of an olafctl that was built with -tags vnp4)")
	}
	if a.Capture == nil {
		add = append(add, "the parameter server's network interface (--capture INTERFACE)")
	}
	return strings.Join(add, ", and ")
}

// openCardTestbed opens a card with its tables and a capture. It lends them to itself, as Serve lends them to others, so that
// there is one way to use a card.
func openCardTestbed(ctx context.Context, bdf string, o OpenOptions) (*Testbed, error) {
	switch lacks := o.Card.lacks(); {
	case lacks != "":
		return nil, fmt.Errorf("%w: add %s; 'olafctl bench', 'tui' and 'serve' take them, and -d grpc:… uses what serve lends", ErrIncomplete, lacks)
	case o.Wire:
		return nil, fmt.Errorf("%w: a card hands out no frames; use 'olafctl capture' at the parameter server's interface", ErrBackend)
	}
	listen, bed := o.Listen, new(Testbed)
	if listen == "" {
		address, remove, err := privateAddress()
		if err != nil {
			return nil, err
		}
		listen = address
		bed.close = append(bed.close, remove)
	}
	s, err := Serve(ctx, "pci:"+bdf, ServeOptions{Listen: listen, Device: DeviceOptions{Access: o.Access}})
	if err != nil {
		return nil, errors.Join(err, bed.Close())
	}
	bed.close = append(bed.close, s.Close)
	if err := bed.attach(ctx, s.Target, o.Access, true); err != nil {
		return nil, errors.Join(err, bed.Close())
	}
	return bed, nil
}

// captureBehind starts to capture what a card sends to the parameter server.
func (s *Service) captureBehind(card *pcie.Device, o Access) (*cardTap, error) {
	if p := o.Card.ServerPort; p < 0 || p >= card.Ports() {
		return nil, fmt.Errorf("%w: the card's image has no port %d towards the parameter server, but %s from 0 (--server-port)", fpga.ErrRefused, p, olaf.Plural(card.Ports(), "port"))
	}
	now := time.Now
	if o.Clock != nil {
		now = o.Clock.Now
	}
	tap, err := newCardTap(card, o.Card.Capture, now, o.Card.ServerPort)
	if err != nil {
		return nil, err
	}
	s.close = append([]func() error{tap.Close}, s.close...)
	return tap, nil
}
