package roles

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/experiments/testbed/lab"
)

// HostPart is the part of a testbed on several hosts that one host contains. A background process on that host holds
// the part. It owns the reservation, namespaces, interfaces, programs and devices, and ends with the reservation, by
// TakeDown or by a signal.
type HostPart struct {
	Testbed   string        `json:"testbed"`
	Host      string        `json:"host"` // its name in the testbed
	Owner     string        `json:"owner"`
	Note      string        `json:"note,omitempty"`
	Lasts     time.Duration `json:"lasts_ns"` // duration of the reservation
	Resources []string      `json:"resources"`
	Nodes     *lab.Plan     `json:"nodes,omitempty"` // nodes, of which those on this host are built; nil for a testbed with roles
	Devices   []LentDevice  `json:"devices,omitempty"`
	Driver    []string      `json:"driver,omitempty"` // flags of the driver for the tables of a card
}

func (p *HostPart) reservation() testbed.Reservation {
	return testbed.Reservation{Testbed: p.Testbed, Host: p.Host, Owner: p.Owner, Note: p.Note, Resources: p.Resources}
}

// lines describes everything that is built for the part. Parts with equal lines are the same.
func (p *HostPart) lines() (lines []string) {
	if p.Nodes != nil {
		return p.Nodes.Lines()
	}
	for i := range p.Devices {
		lines = append(lines, p.Devices[i].line())
	}
	return lines
}

// Names of requests to a host.
const (
	callHold  = "hold"
	callHeld  = "held"
	callLetGo = "let go"
)

// HostCalls returns the handlers for requests about holders that a host answers by name.
func HostCalls(a testbed.Access) map[string]testbed.CallHandler {
	name := func(body json.RawMessage) (name string, err error) { return name, json.Unmarshal(body, &name) }
	return map[string]testbed.CallHandler{
		callHold: func(ctx context.Context, body json.RawMessage) (any, error) {
			part := new(HostPart)
			if err := json.Unmarshal(body, part); err != nil {
				return nil, err
			}
			return nil, holdHere(ctx, part, &a)
		},
		callHeld: func(_ context.Context, body json.RawMessage) (any, error) {
			n, err := name(body)
			if err != nil {
				return nil, err
			}
			return stateHere(n)
		},
		callLetGo: func(_ context.Context, body json.RawMessage) (any, error) {
			n, err := name(body)
			if err != nil {
				return nil, err
			}
			return nil, letGoHere(n)
		},
	}
}

// stateHere returns the state of this host's part of a testbed, or nil if no holder holds it.
func stateHere(name string) (*lab.State, error) {
	s, err := lab.Show(name)
	if errors.Is(err, lab.ErrAbsent) {
		return nil, nil
	}
	return s, err
}

// letGoHere ends the holder of this host's part of a testbed, if there is one. A holder that was killed has left its
// sockets, which letGoHere removes.
func letGoHere(name string) error {
	if err := lab.Down(name); !errors.Is(err, lab.ErrAbsent) {
		return err
	}
	removeSockets(name)
	return nil
}

// holder is implemented by connections to hosts on which holders can be started and ended.
type holder interface {
	hold(ctx context.Context, part *HostPart) error
	testbedState(ctx context.Context, name string) (*lab.State, error)
	letGo(ctx context.Context, name string) error
}

func (l localHost) hold(ctx context.Context, part *HostPart) error { return holdHere(ctx, part, l.a) }
func (localHost) testbedState(_ context.Context, name string) (*lab.State, error) {
	return stateHere(name)
}
func (localHost) letGo(_ context.Context, name string) error { return letGoHere(name) }

// farHost is the hostLink for another host.
type farHost struct{ *testbed.Host }

func (h farHost) hold(ctx context.Context, part *HostPart) error {
	return h.Call(ctx, callHold, part, new(any))
}

func (h farHost) testbedState(ctx context.Context, name string) (s *lab.State, err error) {
	return s, h.Call(ctx, callHeld, name, &s)
}

func (h farHost) letGo(ctx context.Context, name string) error {
	return h.Call(ctx, callLetGo, name, new(any))
}

// readStates returns the state of each host's part. It is nil for a host without a holder.
func (s *Hosts) readStates(ctx context.Context) (all []*lab.State, err error) {
	all = make([]*lab.State, len(s.links))
	return all, s.each(func(i int) (err error) {
		all[i], err = s.links[i].testbedState(ctx, s.plan.Name)
		return err
	})
}

// holdOrder returns the indexes of the hosts in the order in which their holders start. The host of a switch comes
// first, because workers send as soon as they are up. The other hosts follow in the order of their names.
func (p *Plan) holdOrder() (order []int) {
	for i := range p.Hosts {
		if p.Nodes != nil && p.Nodes.Switch != nil && p.Nodes.Nodes[p.Nodes.Switch.Node].Host == p.Hosts[i].Name {
			order = slices.Insert(order, 0, i)
		} else {
			order = append(order, i)
		}
	}
	return order
}

// hold starts holders on all hosts or on none. Holders that already exist extend their reservations. If only some hosts
// have the testbed's nodes up, these nodes are built again, so that all hosts begin together. undo ends the holders
// that hold started. If hold fails, it does this itself.
func (s *Hosts) hold(ctx context.Context, note string, lasts time.Duration) (undo undoing, err error) {
	before, err := s.readStates(ctx)
	if err != nil {
		return nil, err
	}
	nodes := s.plan.Nodes
	if absent := slices.Contains(before, nil); nodes != nil && absent {
		if err := s.letGo(ctx); err != nil {
			return nil, err
		}
		clear(before)
		if nodes, err = s.readMACs(ctx); err != nil {
			return nil, err
		}
	}
	undo = func(ctx context.Context) error {
		return s.each(func(i int) error {
			if before[i] != nil {
				return nil
			}
			return s.links[i].letGo(ctx, s.plan.Name)
		})
	}
	for _, i := range s.plan.holdOrder() {
		part := &HostPart{Testbed: s.plan.Name, Host: s.plan.Hosts[i].Name, Owner: s.access.OwnerName(), Note: note, Lasts: lasts,
			Nodes: nodes, Devices: s.plan.devicesOn(s.plan.Hosts[i].Name), Driver: s.access.SSH.Serve}
		if part.Resources, err = s.plan.resourcesOf(part.Host, &s.access); err == nil {
			// A holder that is being started cannot be ended yet, so an interrupt waits for it.
			err = cmp.Or(s.links[i].hold(context.WithoutCancel(ctx), part), ctx.Err())
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("host %s: %w", part.Host, s.plan.adviseSudo(part.Host, err)), undo(context.WithoutCancel(ctx)))
		}
	}
	return undo, nil
}

// readMACs returns the plan's nodes, with the hardware addresses of the interfaces at both ends of cables between
// hosts.
func (s *Hosts) readMACs(ctx context.Context) (*lab.Plan, error) {
	nodes := *s.plan.Nodes
	nodes.Cables = slices.Clone(nodes.Cables)
	read := func(node int, name string) (string, error) {
		host := nodes.Nodes[node].Host
		i := slices.IndexFunc(s.plan.Hosts, func(h lab.PlannedHost) bool { return h.Name == host })
		about, err := s.links[i].About(ctx, testbed.AboutRequest{Interface: name})
		if err == nil && about.NIC == nil {
			err = fmt.Errorf("%w: %s", ErrUnfit, strings.Join(about.Faults, "; "))
		}
		if err != nil {
			return "", fmt.Errorf("host %s: %w", host, err)
		}
		return about.NIC.MAC, nil
	}
	for i := range nodes.Cables {
		c := &nodes.Cables[i]
		if c.Ends == nil {
			continue
		}
		ends, err := *c.Ends, error(nil)
		if ends.ChildMAC, err = read(c.Child, ends.Child); err != nil {
			return nil, err
		}
		if ends.ParentMAC, err = read(c.Parent, ends.Parent); err != nil {
			return nil, err
		}
		c.Ends = &ends
	}
	return &nodes, nil
}

// letGo ends the holders on all connected hosts.
func (s *Hosts) letGo(ctx context.Context) error {
	return s.each(func(i int) error {
		if s.links[i] == nil {
			return nil
		}
		return s.links[i].letGo(ctx, s.plan.Name)
	})
}
