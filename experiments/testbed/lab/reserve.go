package lab

import (
	"context"
	"errors"
	"time"

	"github.com/olafctl/olaf/experiments/testbed"
)

// resourcesOf returns the resources that a testbed uses on one host, by names for reservations.
func (p *RolePlan) resourcesOf(host string, a *testbed.Access) (all []string, err error) {
	if p.Nodes != nil {
		for _, name := range p.Nodes.interfacesOn(host) {
			all = append(all, testbed.InterfaceResource(name))
		}
		return all, nil
	}
	roles := []*PlannedRole{p.Generator, p.Queue, p.Server}
	if p.mirrorsApart() {
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

// ReserveHosts reserves all devices and interfaces of a testbed on all its hosts for a time, or none of them. Hosts are
// asked in the order of their names, so that one of two testbeds that share hosts gets all of them. The error matches
// ErrReserved if something is reserved; wait is called with it before each further attempt, and ends the attempts with an
// error. nil makes one attempt.
func ReserveHosts(ctx context.Context, p *RolePlan, note string, lasts time.Duration, a testbed.Access, wait func(error) error) error {
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
// The error names the other hosts.
func ReleaseHosts(ctx context.Context, p *RolePlan, a testbed.Access) (found bool, err error) {
	s, unreached := connectReachable(ctx, p, a)
	found, err = s.release(ctx)
	return found, errors.Join(unreached, err, s.Close())
}
