package roles

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture/live"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/experiments/testbed/lab"
	"github.com/olafctl/olaf/experiments/testbed/sshlink"
	"github.com/olafctl/olaf/results"
)

// hostLink is the connection of a testbed to one of its hosts. farHost implements it for other hosts.
type hostLink interface {
	About(ctx context.Context, what testbed.AboutRequest) (testbed.HostAbout, error)
	Reserve(ctx context.Context, r testbed.Reservation, lasts time.Duration) error
	Release(ctx context.Context, name, host, owner string) (found bool, err error)
	Reservations(ctx context.Context) ([]testbed.Reservation, error)
	Offset(ctx context.Context) (testbed.Offset, error)
	SendProbe(ctx context.Context, name string, token []byte) error
	capture(ctx context.Context, o live.Options) (testbed.Frames, error)
	Close() error
	holder
}

// localHost is the hostLink for this host.
type localHost struct{ a *testbed.Access }

func (l localHost) About(ctx context.Context, what testbed.AboutRequest) (testbed.HostAbout, error) {
	return l.a.About(ctx, what), nil
}

func (l localHost) Reserve(_ context.Context, r testbed.Reservation, lasts time.Duration) error {
	return l.a.LocalReservations().Take(r, lasts)
}

func (l localHost) Release(_ context.Context, name, host, owner string) (bool, error) {
	return l.a.LocalReservations().Release(name, host, owner)
}

func (l localHost) Reservations(context.Context) ([]testbed.Reservation, error) {
	return l.a.LocalReservations().List()
}

// Offset returns 0, because the clocks of other hosts are compared with this host's clock.
func (l localHost) Offset(context.Context) (testbed.Offset, error) {
	return testbed.Offset{AtNS: time.Now().UnixNano()}, nil
}

func (localHost) Close() error { return nil }

// Hosts contains the connections to the hosts of a plan.
type Hosts struct {
	plan   *Plan
	access testbed.Access
	links  []hostLink // as in the plan; nil for a host that could not be reached
	logs   hostLogs
}

// Access returns a copy of a with the program and the rights that the file specifies for each host.
func (p *Plan) Access(a testbed.Access) (testbed.Access, error) {
	a.Hosts = map[sshlink.Address]sshlink.Options{}
	for i := range p.Hosts {
		h := &p.Hosts[i]
		if h.SSH == "" {
			continue
		}
		at, _, err := sshlink.Parse(h.Address(""))
		if err != nil {
			return a, fmt.Errorf("host %s: %w", h.Name, err)
		}
		a.Hosts[at] = sshlink.Options{Binary: h.Binary, Sudo: h.Sudo}
	}
	return a, nil
}

// ConnectHosts connects to all hosts of a plan in parallel. The error names each host that could not be reached.
func ConnectHosts(ctx context.Context, p *Plan, a testbed.Access) (*Hosts, error) {
	s, err := connectReachable(ctx, p, a)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// connectReachable connects to those hosts of a plan that can be reached. The other hosts have no link and are named in
// the error.
func connectReachable(ctx context.Context, p *Plan, a testbed.Access) (*Hosts, error) {
	s := &Hosts{plan: p, access: a, links: make([]hostLink, len(p.Hosts)), logs: hostLogs{now: a.Now}}
	var err error
	if s.access, err = p.Access(a); err != nil {
		return s, err
	}
	return s, s.each(func(i int) error {
		h := &p.Hosts[i]
		if h.SSH == "" {
			s.links[i] = localHost{&s.access}
			return nil
		}
		at, _, err := sshlink.Parse(h.Address(""))
		if err != nil {
			return err
		}
		link, err := testbed.ConnectHost(ctx, at, &s.access)
		if err == nil {
			s.links[i] = farHost{link}
			s.logs.add(h.Name, "connected to %s", h.SSH)
		}
		return err
	})
}

// isConnected reports whether a host could be reached.
func (s *Hosts) isConnected(host string) bool {
	for i := range s.plan.Hosts {
		if s.plan.Hosts[i].Name == host {
			return s.links[i] != nil
		}
	}
	return false
}

// each calls do for all hosts in parallel. It returns the errors together with the hosts' names.
func (s *Hosts) each(do func(i int) error) error {
	errs := make([]error, len(s.plan.Hosts))
	var all sync.WaitGroup
	for i := range s.plan.Hosts {
		all.Go(func() {
			if err := do(i); err != nil {
				name := s.plan.Hosts[i].Name
				s.logs.add(name, "error: %v", err)
				errs[i] = fmt.Errorf("host %s: %w", name, s.plan.adviseSudo(name, err))
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// adviseSudo adds to an error about missing rights on another host that the file can ask for sudo there. Of errors from
// other hosts only the text is known; if rights are missing, it contains their names.
func (p *Plan) adviseSudo(host string, err error) error {
	h := p.HostOf(host)
	if h.SSH == "" || h.Sudo || !strings.Contains(err.Error(), "CAP_") {
		return err
	}
	return fmt.Errorf("%w; or write 'sudo: true' at host %s in the testbed's file", err, host)
}

// Close closes the connections to all hosts.
func (s *Hosts) Close() error {
	var errs []error
	for _, l := range s.links {
		if l != nil {
			errs = append(errs, l.Close())
		}
	}
	return errors.Join(errs...)
}

// Examination contains a host's description of itself and of its roles.
type Examination struct {
	testbed.HostAbout
	Name         string                `json:"host"`
	SSH          string                `json:"ssh,omitempty"`
	Roles        []string              `json:"roles"`
	Clock        testbed.Offset        `json:"clock"`
	Reservations []testbed.Reservation `json:"reservations"`
	Testbed      *lab.State            `json:"held,omitempty"` // the part of a testbed that is up, with its nodes
	// Holder is the testbed's reservation, or another one that prevents it; nil if there is neither.
	Holder *testbed.Reservation `json:"-"`
}

// findHolder returns the reservation of the named testbed on the host, or a reservation of another testbed for a
// resource in uses. It returns nil if there is neither.
func (e *Examination) findHolder(name string, uses []string) (holder *testbed.Reservation) {
	for i := range e.Reservations {
		r := &e.Reservations[i]
		switch {
		case r.Testbed == name && r.Host == e.Name:
			return r
		case slices.ContainsFunc(r.Resources, func(resource string) bool { return slices.Contains(uses, resource) }):
			holder = r
		}
	}
	return holder
}

// Examine examines all hosts in parallel and returns the results in the order of the plan. The reasons why a host
// cannot have its roles are in the field Faults. frame is the size of the largest frame that will be sent, or 0 if it is
// unknown.
func (s *Hosts) Examine(ctx context.Context, frame olaf.Size) ([]Examination, error) {
	all := make([]Examination, len(s.links))
	err := s.each(func(i int) error {
		h, link := &s.plan.Hosts[i], s.links[i]
		e := &all[i]
		e.Name, e.SSH, e.Roles = h.Name, h.SSH, h.Roles
		for _, what := range s.plan.requests(h.Name, frame) {
			about, err := link.About(ctx, what)
			if err != nil {
				return err
			}
			e.merge(&about)
		}
		var err error
		if e.Reservations, err = link.Reservations(ctx); err != nil {
			return err
		}
		uses, _ := s.plan.resourcesOf(h.Name, &s.access) // an unknown device is among the faults
		e.Holder = e.findHolder(s.plan.Name, uses)
		if e.Clock, err = link.Offset(ctx); err != nil {
			return err
		}
		if bound := s.plan.ClockNS; bound > 0 && s.plan.ClockBy == lab.ByEcho && e.Clock.BoundNS > bound {
			e.Faults = append(e.Faults, fmt.Sprintf("its clock is compared within %v, clock.at_most is %v; ages will be withheld",
				time.Duration(e.Clock.BoundNS), time.Duration(bound)))
		}
		s.logs.add(h.Name, "examined: olafctl %s, %s, clock %s", e.Build, e.Kernel, describeClock(e.Clock))
		for _, fault := range e.Faults {
			s.logs.add(h.Name, "fault: %s", fault)
		}
		return nil
	})
	return all, err
}

// merge adds the description of another role of the host.
func (e *Examination) merge(about *testbed.HostAbout) {
	e.Build, e.Kernel, e.Root = about.Build, about.Kernel, about.Root
	if about.Device != "" {
		e.Device = about.Device
	}
	if about.NIC != nil {
		e.NIC = about.NIC
	}
	if about.User != "" {
		e.User = about.User
	}
	e.Faults, e.Counts = append(e.Faults, about.Faults...), append(e.Counts, about.Counts...)
}

// requests returns the requests to be sent to a host, one for each of its roles.
func (p *Plan) requests(host string, frame olaf.Size) (all []testbed.AboutRequest) {
	if p.Nodes != nil {
		return []testbed.AboutRequest{{}}
	}
	leastMTU := int(max(frame, olaf.HeaderBytes)) - 14 // without the Ethernet header
	type request struct {
		*Role
		generator bool
		lentAs    string // role in which a holder lends its device; empty if it has none
	}
	roles := []request{{p.Generator, true, p.lenderOfGenerator()}, {p.Queue, false, lab.QueueName}, {p.Server, false, ""}}
	if p.hasSeparateMirror() {
		roles = slices.Insert(roles, 0, request{p.Mirror, false, ""}) // the last description of an interface is kept
	}
	for _, role := range roles {
		if role.Role == nil || role.Host != host {
			continue
		}
		what := testbed.AboutRequest{Device: role.Device, Generator: role.generator, Interface: role.Interface, LeastMTU: leastMTU}
		if role.Device != "" && role.lentAs != "" {
			what.Lent = HeldScheme + p.Name + "/" + role.lentAs
		}
		all = append(all, what)
	}
	return all
}

// lenderOfGenerator returns the role in which a holder lends the generator's device.
func (p *Plan) lenderOfGenerator() string {
	if p.joinsAtQueue() {
		return lab.QueueName
	}
	return lab.Generator
}

// undoing is a function that undoes one step of setting up a testbed.
type undoing func(context.Context) error

// reserve reserves all hosts or none of them, in the order of their names. undo restores the earlier reservation of
// each host or, if there was none, ends the new one. If reserve fails, it does this itself.
func (s *Hosts) reserve(ctx context.Context, note string, lasts time.Duration) (undo undoing, err error) {
	var before []*testbed.Reservation // by host that is reserved
	undo = func(ctx context.Context) error {
		var errs []error
		for i, r := range before {
			var err error
			if r != nil {
				err = s.links[i].Reserve(ctx, *r, r.Left)
			} else {
				_, err = s.links[i].Release(ctx, s.plan.Name, s.plan.Hosts[i].Name, s.access.OwnerName())
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	}
	for i := range s.links {
		there, err := s.reserveHost(ctx, i, note, lasts)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("host %s: %w", s.plan.Hosts[i].Name, err), undo(context.WithoutCancel(ctx)))
		}
		before = append(before, there)
	}
	return undo, nil
}

// reserveHost reserves one host. It returns the reservation that the new one replaces, if any.
func (s *Hosts) reserveHost(ctx context.Context, i int, note string, lasts time.Duration) (
	before *testbed.Reservation, err error) {
	want := testbed.Reservation{Testbed: s.plan.Name, Host: s.plan.Hosts[i].Name, Owner: s.access.OwnerName(), Note: note}
	if want.Resources, err = s.plan.resourcesOf(want.Host, &s.access); err != nil {
		return nil, err
	}
	all, err := s.links[i].Reservations(ctx)
	if err != nil {
		return nil, err
	}
	if k := slices.IndexFunc(all, func(r testbed.Reservation) bool { return r.IsSame(&want) }); k >= 0 {
		before = &all[k]
	}
	return before, s.links[i].Reserve(ctx, want, lasts)
}

// release ends the reservations on all connected hosts and reports whether there were any.
func (s *Hosts) release(ctx context.Context) (found bool, err error) {
	var mu sync.Mutex
	err = s.each(func(i int) error {
		if s.links[i] == nil {
			return nil
		}
		here, err := s.links[i].Release(ctx, s.plan.Name, s.plan.Hosts[i].Name, s.access.OwnerName())
		mu.Lock()
		defer mu.Unlock()
		found = found || here
		return err
	})
	return found, err
}

// measure measures the clocks of all hosts in parallel.
func (s *Hosts) measure(ctx context.Context) ([]testbed.Offset, error) {
	all := make([]testbed.Offset, len(s.links))
	return all, s.each(func(i int) (err error) {
		all[i], err = s.links[i].Offset(ctx)
		return err
	})
}

// describeClock returns the time by which a host's clock is ahead.
func describeClock(o testbed.Offset) string {
	return fmt.Sprintf("ahead by %v ± %v", time.Duration(o.OffsetNS), time.Duration(o.BoundNS))
}

// describe returns descriptions of the hosts for a document. They include the hosts' clocks before and after the runs.
func (s *Hosts) describe(ctx context.Context, examined []Examination) (all []results.Host) {
	after, err := s.measure(ctx)
	for i := range examined {
		e := &examined[i]
		h := results.Host{Name: e.Name, SSH: e.SSH, Roles: e.Roles, Build: e.Build, Kernel: e.Kernel, Device: e.Device,
			OffsetNS: results.Float(e.Clock.OffsetNS), BoundNS: results.Float(e.Clock.BoundNS), DriftNS: results.Missing(),
			ClockBy: s.plan.ClockBy, Log: s.logs.of(e.Name)}
		if e.NIC != nil {
			h.NIC, h.Driver = e.NIC.Name, e.NIC.Driver
		}
		if err == nil {
			r := testbed.Relation{Before: e.Clock, After: after[i]}
			h.DriftNS, h.BoundNS = results.Float(r.DriftNS()), results.Float(max(r.Before.BoundNS, r.After.BoundNS))
			h.Log = append(h.Log, s.logs.stamp("clock "+describeClock(after[i])))
		}
		if far, ok := s.links[i].(farHost); ok {
			h.Log = append(h.Log, far.Messages()...)
		}
		all = append(all, h)
	}
	return all
}
