package roles

import (
	"context"
	"errors"
	"time"

	"github.com/olafctl/olaf/experiments/testbed"
)

// resourcesOf returns the names of the resources on one host that a testbed uses. Reservations use the same names.
func (p *Plan) resourcesOf(host string, a *testbed.Access) (all []string, err error) {
	if p.Nodes != nil {
		for _, name := range p.Nodes.InterfacesOn(host) {
			all = append(all, testbed.InterfaceResource(name))
		}
		return all, nil
	}
	roles := []*Role{p.Generator, p.Queue, p.Server}
	if p.hasSeparateMirror() {
		roles = append(roles, p.Mirror)
	}
	for _, role := range roles {
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

// ReserveHosts reserves all devices and interfaces of a testbed on all its hosts for the given time, or none of them.
// Hosts are asked in the order of their names, so that of two testbeds that share hosts one gets all of them. The error
// matches ErrReserved if something is already reserved. Before each further attempt, wait is called with this error; it
// ends the attempts by returning an error. If wait is nil, there is only one attempt.
func ReserveHosts(ctx context.Context, p *Plan, note string, lasts time.Duration, a testbed.Access, wait func(error) error) error {
	s, err := ConnectHosts(ctx, p, a)
	if err != nil {
		return err
	}
	for {
		_, err := s.reserve(ctx, note, lasts)
		if wait != nil && errors.Is(err, testbed.ErrReserved) {
			if err = wait(err); err == nil {
				continue
			}
		}
		return errors.Join(err, s.Close())
	}
}

// ReleaseHosts ends the reservations of a testbed on all hosts that can be reached, and reports whether there were any.
// The error names the hosts that could not be reached.
func ReleaseHosts(ctx context.Context, p *Plan, a testbed.Access) (found bool, err error) {
	s, unreached := connectReachable(ctx, p, a)
	found, err = s.release(ctx)
	return found, errors.Join(unreached, err, s.Close())
}
