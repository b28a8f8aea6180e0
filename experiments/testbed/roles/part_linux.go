package roles

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"time"

	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/experiments/testbed/lab"
)

// reservationCheck is the interval at which a holder checks whether its reservation has ended.
const reservationCheck = time.Second

// HoldPart builds and holds a host's part of a testbed until the context ends, the reservation ends, or a request asks
// it to stop. It calls ready when the part is up.
func HoldPart(ctx context.Context, part *HostPart, a *testbed.Access, ready func() error) error {
	h, err := lab.ClaimName(part.Testbed)
	if err != nil {
		return err
	}
	if err := part.bringUp(h, a); err != nil {
		return errors.Join(err, h.Close())
	}
	if err := ready(); err != nil {
		return errors.Join(err, h.Close())
	}
	within, end := context.WithCancel(ctx)
	defer end()
	go part.watchReservation(within, a.LocalReservations(), end)
	return h.Hold(within)
}

// bringUp reserves the part's resources and builds its nodes.
func (p *HostPart) bringUp(h *lab.Holder, a *testbed.Access) error {
	reservations := a.LocalReservations()
	if err := reservations.Take(p.reservation(), p.Lasts); err != nil {
		return err
	}
	h.OnRemove(func() error {
		_, err := reservations.Release(p.Testbed, p.Host, p.Owner)
		return err
	})
	if p.Nodes == nil {
		return nil
	}
	self, err := a.SSH.Executable()
	if err != nil {
		return err
	}
	return h.Build(p.Nodes, lab.Options{Here: p.Host, Command: func(args ...string) *exec.Cmd { return exec.Command(self, args...) }})
}

// watchReservation calls end when the reservation was released or has expired. The host's boot clock determines when it
// expires.
func (p *HostPart) watchReservation(ctx context.Context, all *testbed.Reservations, end func()) {
	for {
		left, err := p.reservationLeft(all)
		if err != nil || left <= 0 {
			end()
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(left, reservationCheck)):
		}
	}
}

// reservationLeft returns the remaining time of the part's reservation, or 0 if there is no reservation.
func (p *HostPart) reservationLeft(reservations *testbed.Reservations) (time.Duration, error) {
	all, err := reservations.List()
	own := p.reservation()
	if i := slices.IndexFunc(all, func(r testbed.Reservation) bool { return r.IsSame(&own) }); i >= 0 {
		return all[i].Left, nil
	}
	return 0, err
}

// holdHere starts a holder on this host that outlives this process. If a holder of the same part is already running, it
// extends that holder's reservation.
func holdHere(ctx context.Context, part *HostPart, a *testbed.Access) error {
	there, err := stateHere(part.Testbed)
	switch {
	case err != nil:
		return err
	case there != nil && !slices.Equal(there.Lines, part.lines()):
		return fmt.Errorf("%w and differs: %s; 'olafctl testbed down %[2]s' first, or give the file another name", lab.ErrExists, part.Testbed)
	case there != nil:
		return a.LocalReservations().Take(part.reservation(), part.Lasts)
	}
	self, err := a.SSH.Executable()
	if err != nil {
		return err
	}
	text, err := json.Marshal(part)
	if err != nil {
		return err
	}
	_, err = lab.StartHolder(ctx, exec.Command(self, "testbed", "hold"), text)
	return err
}
