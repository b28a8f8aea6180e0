package lab

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/olafctl/olaf/experiments/testbed"
)

// hostReservations are the reservations of one host of a testbed.
type hostReservations interface {
	take(ctx context.Context, r testbed.Reservation, lasts time.Duration) error
	release(ctx context.Context, name, owner string) (found bool, err error)
	close() error
}

// localReservations are those of this host.
type localReservations struct{ *testbed.Reservations }

func (l localReservations) take(_ context.Context, r testbed.Reservation, lasts time.Duration) error {
	return l.Take(r, lasts)
}
func (l localReservations) release(_ context.Context, name, owner string) (bool, error) {
	return l.Release(name, owner)
}
func (localReservations) close() error { return nil }

// openReservations opens the reservations of a host.
func openReservations(_ context.Context, h *PlannedHost, a *testbed.Access) (hostReservations, error) {
	if h.SSH == "" {
		return localReservations{a.LocalReservations()}, nil
	}
	return nil, fmt.Errorf("%w: hosts with ssh cannot be reserved from here yet; run 'olafctl testbed reserve' there",
		testbed.ErrUnsupported)
}

// resourcesOf returns what a testbed uses of one host, by names for reservations.
func (p *RolePlan) resourcesOf(host string, a *testbed.Access) (all []string, err error) {
	for _, role := range []*PlannedRole{p.Generator, p.Queue, p.Server} {
		switch {
		case role == nil || role.Host != host:
			continue
		case role.Interface != "":
			all = append(all, testbed.InterfaceResource(role.Interface))
			continue
		}
		uses, err := a.Resources(role.Device)
		if err != nil {
			return nil, err
		}
		all = append(all, uses...)
	}
	return all, nil
}

// ReserveHosts reserves all devices and interfaces of a testbed on all its hosts for a time, or none of them. Hosts are
// asked in the order of their names, so that of two testbeds that share hosts one gets all. The error matches ErrReserved if
// something is reserved.
func ReserveHosts(ctx context.Context, p *RolePlan, note string, lasts time.Duration, a testbed.Access) (err error) {
	var taken []hostReservations
	defer func() {
		for _, h := range taken {
			if err != nil {
				_, undone := h.release(context.WithoutCancel(ctx), p.Name, a.OwnerName())
				err = errors.Join(err, undone)
			}
			err = errors.Join(err, h.close())
		}
	}()
	for i := range p.Hosts {
		h, err := openReservations(ctx, &p.Hosts[i], &a)
		if err == nil {
			taken = append(taken, h)
			r := testbed.Reservation{Testbed: p.Name, Owner: a.OwnerName(), Note: note}
			if r.Resources, err = p.resourcesOf(p.Hosts[i].Name, &a); err == nil {
				err = h.take(ctx, r, lasts)
			}
		}
		if err != nil {
			return fmt.Errorf("host %s: %w", p.Hosts[i].Name, err)
		}
	}
	return nil
}

// ReleaseHosts ends the reservations of a testbed on all its hosts, also after an error at one of them. It reports whether
// there were any.
func ReleaseHosts(ctx context.Context, p *RolePlan, a testbed.Access) (found bool, err error) {
	for i := range p.Hosts {
		h, failed := openReservations(ctx, &p.Hosts[i], &a)
		if failed == nil {
			var here bool
			here, failed = h.release(ctx, p.Name, a.OwnerName())
			found, failed = found || here, errors.Join(failed, h.close())
		}
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("host %s: %w", p.Hosts[i].Name, failed))
		}
	}
	return found, err
}
