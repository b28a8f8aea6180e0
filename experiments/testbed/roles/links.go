package roles

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/capture/live"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/experiments/testbed/lab"
)

// LinkCheck is the result of sending probe frames over one link of a testbed.
type LinkCheck struct {
	From LinkEnd `json:"from"`
	To   LinkEnd `json:"to"`
	// Fault is the reason why the link cannot be used, Unchecked the reason why nothing was sent. Both are empty if a
	// frame arrived.
	Fault     string `json:"fault,omitempty"`
	Unchecked string `json:"unchecked,omitempty"`
}

// LinkEnd describes one end of a link.
type LinkEnd struct {
	Role      string `json:"role"` // role or node
	Host      string `json:"host"`
	Interface string `json:"interface,omitempty"` // empty for an end inside a device
	Device    string `json:"device,omitempty"`
}

func (e LinkEnd) String() string {
	if e.Interface == "" {
		return e.Device + " of host " + e.Host
	}
	return e.Interface + " of host " + e.Host
}

// err returns the fault of the link as an error that matches ErrUnfit.
func (c *LinkCheck) err() error {
	return fmt.Errorf("link from %s to %s: %w: %s", c.From.Role, c.To.Role, ErrUnfit, c.Fault)
}

// findLinks returns the links of a plan, which are not checked yet. These are the links between roles or the cables
// between hosts.
func (p *Plan) findLinks() (all []LinkCheck) {
	if p.Nodes != nil {
		for i := range p.Nodes.Cables {
			c := &p.Nodes.Cables[i]
			if child, parent := &p.Nodes.Nodes[c.Child], &p.Nodes.Nodes[c.Parent]; c.Ends != nil {
				all = append(all, LinkCheck{From: LinkEnd{Role: child.Name, Host: child.Host, Interface: c.Ends.Child},
					To: LinkEnd{Role: parent.Name, Host: parent.Host, Interface: c.Ends.Parent}})
			}
		}
		return all
	}
	in := LinkEnd{Role: lab.QueueName, Host: p.Queue.Host, Device: p.Queue.Device}
	out := in
	in.Interface, out.Interface, _ = cutInterfaces(p.Queue.Device)
	if g := p.Generator; g != nil {
		all = append(all, LinkCheck{From: LinkEnd{lab.Generator, g.Host, g.Interface, g.Device}, To: in})
	}
	if s := p.Server; s != nil {
		all = append(all, LinkCheck{From: out, To: LinkEnd{lab.Server, s.Host, s.Interface, s.Device}})
	}
	return all
}

// CheckLinks sends probe frames over all links in parallel. A frame that is sent at one end must arrive at the other.
// The result contains the links in order. Cables inside a device are not checked, and no cable is while a command uses
// one of the examined hosts' devices, because its run would count the frames.
func (s *Hosts) CheckLinks(ctx context.Context, examined []Examination) []LinkCheck {
	all := s.plan.findLinks()
	if i := slices.IndexFunc(examined, func(e Examination) bool { return e.User != "" }); i >= 0 {
		for k := range all {
			all[k].Unchecked = fmt.Sprintf("host %s is in use by %s, whose run would count the frame", examined[i].Name, examined[i].User)
		}
		return all
	}
	var checks sync.WaitGroup
	for i := range all {
		checks.Go(func() { s.checkLink(ctx, &all[i]) })
	}
	checks.Wait()
	return all
}

// requireLinks checks all links and returns an error for each link that cannot be used. The error matches ErrUnfit.
func (s *Hosts) requireLinks(ctx context.Context, examined []Examination) (all []LinkCheck, err error) {
	var errs []error
	all = s.CheckLinks(ctx, examined)
	for i := range all {
		if all[i].Fault != "" {
			errs = append(errs, all[i].err())
		}
	}
	return all, errors.Join(append(errs, ctx.Err())...)
}

// linkOf returns the connection to the host with the given name.
func (s *Hosts) linkOf(host string) hostLink {
	for i := range s.plan.Hosts {
		if s.plan.Hosts[i].Name == host {
			return s.links[i]
		}
	}
	return nil // a plan names no other hosts
}

// A probe frame is sent again after probeAgain, and given up after probePatience.
const (
	probePatience = time.Second
	probeAgain    = 100 * time.Millisecond
)

// checkLink sends probe frames over a link until one of them arrives.
func (s *Hosts) checkLink(ctx context.Context, c *LinkCheck) {
	failed := func(end LinkEnd, err error) {
		why := fmt.Sprintf("host %s: %v", end.Host, s.plan.adviseSudo(end.Host, err))
		if errors.Is(err, testbed.ErrReserved) {
			c.Unchecked = why
		} else {
			c.Fault = why
		}
	}
	ends := []LinkEnd{c.From, c.To}
	for _, end := range ends {
		if end.Interface == "" {
			c.Unchecked = s.explainUnchecked(c, end)
			return
		}
	}
	for _, end := range ends {
		if err := s.checkReserved(ctx, end); err != nil {
			failed(end, err)
			return
		}
	}
	frames, err := s.linkOf(c.To.Host).capture(ctx, live.Options{Interface: c.To.Interface, Stamps: live.Kernel, All: true})
	if err != nil {
		failed(c.To, err)
		return
	}
	defer frames.Close()
	token := []byte("olafctl " + rand.Text())
	for began := time.Now(); time.Since(began) < probePatience; {
		if err := s.linkOf(c.From.Host).SendProbe(ctx, c.From.Interface, token); err != nil {
			failed(c.From, err)
			return
		}
		switch arrived, err := capture.AwaitProbe(ctx, frames, token, probeAgain); {
		case err != nil:
			failed(c.To, err)
			return
		case arrived:
			s.logs.add(c.To.Host, "received a probe frame from %s at %s", c.From, c.To.Interface)
			s.compareRates(ctx, c)
			return
		}
	}
	c.Fault = fmt.Sprintf("no probe frame from %s reached %s in %v; check the cable between them, and the ports and VLANs of a switch",
		c.From, c.To, probePatience)
}

// checkReserved returns an error that matches ErrReserved if another user has reserved a link's end.
func (s *Hosts) checkReserved(ctx context.Context, end LinkEnd) error {
	all, err := s.linkOf(end.Host).Reservations(ctx)
	if err != nil {
		return err
	}
	return testbed.CheckOwner(all, s.access.OwnerName(), time.Now(), testbed.InterfaceResource(end.Interface))
}

// compareRates sets the link's fault if its ends run at different line rates. Drivers that report none are not compared.
func (s *Hosts) compareRates(ctx context.Context, c *LinkCheck) {
	rateOf := func(end LinkEnd) int {
		about, err := s.linkOf(end.Host).About(ctx, testbed.AboutRequest{Interface: end.Interface})
		if err != nil || about.NIC == nil {
			return 0
		}
		return about.NIC.Mbps
	}
	if from, to := rateOf(c.From), rateOf(c.To); from > 0 && to > 0 && from != to {
		c.Fault = fmt.Sprintf("%s has a line rate of %d Mbit/s and %s one of %d; set both to the same (ethtool -s INTERFACE speed …)", c.From,
			from, c.To, to)
	}
}

// explainUnchecked returns why no frame can be sent over a link with an end inside a device, and what checks it.
func (s *Hosts) explainUnchecked(c *LinkCheck, end LinkEnd) string {
	lasts, err := s.access.IsLasting(end.Device)
	switch {
	case err != nil || !lasts:
		return fmt.Sprintf("the cable is part of %s", end)
	case c.From.Role == lab.Generator:
		return fmt.Sprintf("%s has no interface on its host; each bench sends frames from card to card first", end)
	}
	return fmt.Sprintf("%s has no interface on its host; each run names the frames that it loses there", end)
}

// capture starts a capture at an interface of this host.
func (l localHost) capture(_ context.Context, o live.Options) (testbed.Frames, error) {
	if l.a.OpenCapture == nil {
		return nil, fmt.Errorf("%w: this program captures nothing", testbed.ErrUnsupported)
	}
	return l.a.OpenCapture(o)
}

// SendProbe sends a probe frame through an interface of this host.
func (l localHost) SendProbe(_ context.Context, name string, token []byte) error {
	return l.a.SendProbe(name, token)
}

// capture starts a capture at an interface of the host.
func (h farHost) capture(ctx context.Context, o live.Options) (testbed.Frames, error) {
	frames, err := h.OpenFrames(ctx, o)
	if err != nil {
		return nil, err // not a Frames that contains a nil pointer
	}
	return sharedFrames{frames}, nil
}

// sharedFrames is a capture on a host whose connection is still used after the capture.
type sharedFrames struct{ *testbed.HostFrames }

// Close ends the capture but keeps the connection.
func (f sharedFrames) Close() error {
	f.Stop()
	return nil
}
