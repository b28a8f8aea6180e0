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
	if err := part.bringUp(context.WithoutCancel(ctx), h, *a); err != nil {
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

// bringUp reserves the part's resources, and builds its nodes or opens its devices.
func (p *HostPart) bringUp(ctx context.Context, h *lab.Holder, a testbed.Access) error {
	reservations := a.LocalReservations()
	if err := reservations.Take(p.reservation(), p.Lasts); err != nil {
		return err
	}
	h.OnRemove(func() error {
		_, err := reservations.Release(p.Testbed, p.Host, p.Owner)
		return err
	})
	if p.Nodes == nil {
		return p.lendDevices(ctx, h, a)
	}
	self, err := a.SSH.Executable()
	if err != nil {
		return err
	}
	return h.Build(p.Nodes, lab.Options{Here: p.Host, Command: func(args ...string) *exec.Cmd { return exec.Command(self, args...) }})
}

// lendDevices opens the part's devices and lends them until the holder removes the part.
func (p *HostPart) lendDevices(ctx context.Context, h *lab.Holder, a testbed.Access) error {
	a.Owner = p.Owner
	lent := map[string]string{}
	for i := range p.Devices {
		d := &p.Devices[i]
		s, end, err := d.serve(ctx, p.Testbed, a)
		if err != nil {
			return err
		}
		h.OnRemove(end)
		lent[d.Role] = s.Target
		h.CompleteStateWith(reportLost(d.Address, s.LostDevice()))
	}
	h.CompleteStateWith(func(s *lab.State) { s.Lines, s.Lent = p.lines(), lent })
	return nil
}

// reportLost returns a function that adds a fault to the holder's state after the device was lost.
func reportLost(address string, lost <-chan error) func(*lab.State) {
	var why error
	return func(s *lab.State) {
		select {
		case why = <-lost:
		default:
		}
		if why != nil {
			s.Faults = append(s.Faults, fmt.Sprintf("%s: %v; 'olafctl testbed down %s' and up again", address, why, s.Name))
		}
	}
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
	_, err = lab.StartHolder(ctx, exec.Command(self, append([]string{"testbed", "hold"}, part.Driver...)...), text)
	return err
}
