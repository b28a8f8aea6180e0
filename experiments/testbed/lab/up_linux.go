package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/dataplane"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/realtime"
	"github.com/olafctl/olaf/fpga/xdp"
	"github.com/olafctl/olaf/pktgen/endpoint"
	"github.com/olafctl/olaf/pktgen/process"
)

// The plan's limits equal those of the packages that build it.
var (
	_ [netlab.MaxMTU]struct{}   = [MaxNativeMTU]struct{}{}
	_ [xdp.MaxChildren]struct{} = [MaxChildren]struct{}{}

	_ [realtime.MaxAddresses]struct{} = [MaxFrames]struct{}{}
)

// Lab is a running testbed. It is removed by Close or when the process ends.
type Lab struct {
	*Plan
	Nodes  []*netlab.Node  // by node; nil for a node behind an interface of this machine
	Cables []*netlab.Cable // A is the child's end, nil if it is on another machine; B the parent's
	Adders []*Adder        // as planned

	here     string // host whose nodes are built; empty for all nodes
	lab      *netlab.Lab
	opened   []io.Closer
	attached map[*netlab.Interface]attachment
	queue    *queue          // queue of a plan with a switch, on the switch's host
	programs []*hosted       // programs of a plan with a switch
	epochs   endpoint.Epochs // epochs of the jobs of a plan with a tree
}

// Adder is a running program that aggregates at a node.
type Adder struct {
	*xdp.Aggregator // nil for a program in this process
	Planned         *PlannedAdder
	Fanout          *xdp.Fanout // copies results to the children; nil if the kernel or the plan does not allow it
	agent           *agent
	latched         map[string]uint64 // counters at the last Latch, of a program in this process
}

// attachment is a program that is attached to an interface.
type attachment struct {
	name   string
	number uint32 // the program's number in the kernel
}

// Options configures how a plan is built.
type Options struct {
	Here     string // host whose nodes are built; empty for all nodes
	LogBytes int    // size of each aggregator's log of decisions, a power of two; 0 for no log
	// Command returns the command of a queue's worker or server, given its name and arguments, as for 'olafctl worker'
	// and 'olafctl ps'; nil starts none.
	Command func(args ...string) *exec.Cmd
}

// Rights returns the rights that Up needs. PacketRights also includes the rights for cables between interfaces of this
// machine. Rights are tested by using them.
func Rights() []netlab.Right { return slices.Concat(netlab.NamespaceRights, xdp.LoadRights) }

// Up builds the testbed that a plan describes. The error matches netlab.ErrRights, with a line for each missing right,
// netlab.ErrNetwork or xdp.ErrKernel. After an error nothing is left of the testbed.
func Up(p *Plan, o Options) (*Lab, error) {
	if err := netlab.CheckRights(Rights()...); err != nil {
		return nil, err
	}
	l := &Lab{Plan: p, Nodes: make([]*netlab.Node, len(p.Nodes)), Cables: make([]*netlab.Cable, len(p.Cables)),
		attached: map[*netlab.Interface]attachment{}, here: o.Here}
	l.epochs.Newest, l.epochs.Summed, l.epochs.Lacks = l.newest, l.summed, l.lacks
	if o.Here != "" {
		l.epochs.Newest = l.epochs.NewestExpected
	}
	l.epochs.Lock() // requests to agents wait for the complete tree
	err := l.up(o)
	l.epochs.Unlock()
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (l *Lab) up(o Options) (err error) {
	if l.Switch != nil && l.isHere(l.Switch.Node) {
		return l.raise(o)
	}
	if l.lab, err = netlab.New(); err != nil {
		return err
	}
	for i := range l.Plan.Nodes {
		if err := l.node(i); err != nil {
			return err
		}
	}
	for i := range l.Plan.Cables {
		if err := l.cable(i); err != nil {
			return err
		}
	}
	for i := range l.Plan.Nodes {
		if err := l.route(i); err != nil {
			return err
		}
	}
	if l.Switch != nil && o.Command != nil {
		return l.host(o.Command)
	}
	for i := range l.Plan.Adders {
		p := &l.Plan.Adders[i]
		build := l.adder
		if !l.isHere(p.Node) {
			build = l.receiveSums
		}
		if err := build(p, o); err != nil {
			return err
		}
	}
	return nil
}

// receiveSums attaches a program to the server's end of the cable from an aggregator on another host. Without it,
// redirected frames would be lost.
func (l *Lab) receiveSums(p *PlannedAdder, _ Options) error {
	up := l.Cables[l.Plan.Nodes[p.Node].Up].B
	if up == nil || p.Mode != Native || l.Plan.Nodes[l.Plan.Cables[l.Plan.Nodes[p.Node].Up].Parent].Role != Server {
		return nil
	}
	pass, err := xdp.AttachPass(up)
	return l.keep("pass", up, pass, err)
}

// isHere reports whether a node is built on this host.
func (l *Lab) isHere(node int) bool { return l.here == "" || l.Plan.Nodes[node].Host == l.here }

// node creates the namespace of node i. If the node is an aggregator, its namespace forwards answers.
func (l *Lab) node(i int) (err error) {
	p := &l.Plan.Nodes[i]
	if p.Device != "" || !l.isHere(i) {
		return nil
	}
	if l.Nodes[i], err = l.lab.Node(p.Name); err != nil || p.Role != Aggregator {
		return err
	}
	return l.Nodes[i].Forward()
}

// cable creates cable i. If one of its ends is behind an interface, it uses that interface instead.
func (l *Lab) cable(i int) (err error) {
	p := &l.Plan.Cables[i]
	child, parent := &l.Plan.Nodes[p.Child], &l.Plan.Nodes[p.Parent]
	c := &netlab.Cable{}
	switch {
	case !l.isHere(p.Child) && !l.isHere(p.Parent):
	case !l.isHere(p.Child):
		c.B, err = l.Nodes[p.Parent].Adopt(p.Ends.Parent, p.Ends.Virtual)
	case !l.isHere(p.Parent):
		c.A, err = l.Nodes[p.Child].Adopt(p.Ends.Child, p.Ends.Virtual)
	case child.Device != "":
		c.B, err = l.Nodes[p.Parent].Adopt(child.Device, child.Virtual)
	case parent.Device != "":
		c.A, err = l.Nodes[p.Child].Adopt(parent.Device, parent.Virtual)
	default:
		lower, upper := l.Plan.endNames(i)
		below, above := netlab.End{Node: l.Nodes[p.Child], Name: lower}, netlab.End{Node: l.Nodes[p.Parent], Name: upper}
		if p.Ends != nil {
			c, err = netlab.LayCable(below, above, p.Ends.Virtual)
		} else {
			c, err = netlab.ConnectNodes(below, above, p.MTU)
		}
	}
	if err != nil {
		return err
	}
	l.Cables[i] = c
	err = errors.Join(wide(c.A, p.MTU), wide(c.B, p.MTU), address(c.A, p.Lower), address(c.B, p.Upper))
	if l.Switch != nil && child.Role == Worker { // an address for each frame of an update
		for at, place := p.Lower.Next(), 1; place < l.Switch.frames(); at, place = at.Next(), place+1 {
			err = errors.Join(err, address(c.A, at))
		}
	}
	return err
}

// wide rejects an interface whose MTU is smaller than that of its cable.
func wide(at *netlab.Interface, mtu int) error {
	if at == nil || at.MTU >= mtu {
		return nil
	}
	return fmt.Errorf("%w: interface %s has an MTU of %d bytes, the cable is to carry %d; raise it, or let "+
		"packets be shorter (job.lanes, the link's mtu)", netlab.ErrNetwork, at.Name, at.MTU, mtu)
}

func address(at *netlab.Interface, a netip.Addr) error {
	if at == nil {
		return nil
	}
	return at.Address(netip.PrefixFrom(a, netBits))
}

// route sets the routes of a node to nodes to which it is not directly connected.
func (l *Lab) route(node int) error {
	n := l.Nodes[node]
	if n == nil {
		return nil
	}
	for _, r := range l.Plan.routes(node) {
		err := n.Do(func() error {
			by, err := netlink.LinkByName(r.by)
			if err != nil {
				return err
			}
			route := &netlink.Route{LinkIndex: by.Attrs().Index}
			if r.via.IsValid() {
				route.Gw = r.via.AsSlice()
			} else {
				route.Scope = netlink.SCOPE_LINK
			}
			if r.to.IsValid() {
				route.Dst = &net.IPNet{IP: r.to.Addr().AsSlice(), Mask: net.CIDRMask(r.to.Bits(), 32)}
			}
			return netlink.RouteAdd(route)
		})
		if err != nil {
			return fmt.Errorf("%s: a route by %s: %w: %w", n.Name(), r.by, netlab.ErrNetwork, err)
		}
	}
	return nil
}

// adder loads the program of an aggregator and attaches it to the cables of its children. If it redirects in native
// mode to the server, the server's end of that cable also gets a program, because frames are lost without one.
func (l *Lab) adder(p *PlannedAdder, o Options) error {
	if p.Mode == User {
		return l.addInUserSpace(p)
	}
	n := &l.Plan.Nodes[p.Node]
	program, err := xdp.LoadAggregator(xdp.AggregatorBuild{
		Fragments: l.Fragments, Lanes: l.mostLanes(), Wrapping: p.Wrapping, Group: l.Group, Senders: 2 * len(n.Down), LogBytes: o.LogBytes,
	})
	if err != nil {
		return err
	}
	a := &Adder{Aggregator: program, Planned: p}
	l.Adders = append(l.Adders, a)
	var senders []dataplane.Sender
	for i, c := range n.Down {
		senders = append(senders, dataplane.Sender{Address: l.Plan.Cables[c].Lower, Cluster: l.Job, Worker: olaf.WorkerID(i)})
		at := l.Cables[c].B
		arrive, err := a.Attach(at, dataplane.Mode(p.Mode))
		if err := l.keep("arrive", at, arrive, err); err != nil {
			return err
		}
	}
	up := l.Cables[n.Up]
	if top := &l.Plan.Nodes[l.Plan.Cables[n.Up].Parent]; top.Role == Server && up.B != nil && p.Mode == Native {
		pass, err := xdp.AttachPass(up.B)
		if err := l.keep("pass", up.B, pass, err); err != nil {
			return err
		}
	}
	parent, err := l.parent(p.Node)
	if err != nil {
		return err
	}
	if err := errors.Join(a.SetSenders(senders), a.Configure(parent), a.SetUplink(up.A), a.Run(true), l.fanOut(a)); err != nil {
		return err
	}
	return l.serve(a, parent.Child)
}

// fanOut makes an aggregator copy results to its children if the plan has a group and the kernel supports it.
func (l *Lab) fanOut(a *Adder) (err error) {
	group, n := l.Plan.Fanout(), &l.Plan.Nodes[a.Planned.Node]
	if !group.IsValid() {
		return nil
	}
	var copies []xdp.Copy
	for _, c := range n.Down {
		to := xdp.Copy{Cable: l.Cables[c]}
		if l.Plan.Nodes[l.Plan.Cables[c].Child].Role == Worker {
			to.Worker = l.Plan.Cables[c].Lower
		}
		copies = append(copies, to)
	}
	if a.Fanout, err = xdp.AttachFanout(l.Cables[n.Up].A, group, copies); errors.Is(err, xdp.ErrFeature) {
		return nil
	}
	return err
}

// Fanout returns the group address to which the server can send each result once. It returns the zero address if the
// server must send results to each worker.
func (l *Lab) Fanout() netip.Addr {
	for _, a := range l.Adders {
		if a.Fanout == nil {
			return netip.Addr{}
		}
	}
	return l.Plan.Fanout()
}

// mostLanes returns the largest number of lanes for which the cables have room. Workers may use more lanes than the
// plan.
func (l *Lab) mostLanes() int {
	most := l.Lanes
	for i := range l.Plan.Cables {
		most = max(most, process.MostLanes(l.Plan.Cables[i].MTU))
	}
	return most
}

// keep stores a program that was attached to an interface, with the program's number in the kernel.
func (l *Lab) keep(name string, at *netlab.Interface, attached io.Closer, err error) error {
	if err != nil {
		return err
	}
	l.opened = append(l.opened, attached)
	number, err := at.XDP()
	l.attached[at] = attachment{name, number}
	return err
}

// parent returns the parent of a node, to which the node sends its sums.
func (l *Lab) parent(node int) (xdp.Parent, error) {
	n := &l.Plan.Nodes[node]
	c, up := &l.Plan.Cables[n.Up], l.Cables[n.Up]
	above := &l.Plan.Nodes[c.Parent]
	a := olaf.Addresses{SrcIP: c.Lower.As4(), DstIP: c.Upper.As4(), SrcMAC: [6]byte(up.A.MAC), SrcPort: olaf.UDPPort}
	if up.B != nil {
		a.DstMAC = [6]byte(up.B.MAC)
	} else {
		text := above.MAC
		if c.Ends != nil {
			text = c.Ends.ParentMAC
		}
		mac, err := net.ParseMAC(text)
		if err != nil || len(mac) != len(a.DstMAC) {
			return xdp.Parent{}, fmt.Errorf("%w: %s has the MAC %q", ErrFile, above.Name, text)
		}
		a.DstMAC = [6]byte(mac)
	}
	p := xdp.Parent{Job: l.Job, Children: len(n.Down), Child: olaf.WorkerID(slices.Index(above.Down, n.Up)), Source: a}
	for _, c := range n.Down {
		p.Addresses = append(p.Addresses, l.Plan.Cables[c].Upper)
	}
	return p, nil
}

// Faults describes changes since the start: interfaces that are missing or down, and programs that were detached.
// Errors of agents are listed last, because they are consequences of these changes, but are read first.
func (l *Lab) Faults() (faults []string) {
	met := l.agentFaults()
	if l.queue != nil {
		faults = l.queue.faults()
	}
	faults = append(faults, l.programFaults()...)
	for i := range l.Cables {
		faults = append(faults, l.cableFaults(i)...)
	}
	return append(faults, met...)
}

// agentFaults describes the errors of agents.
func (l *Lab) agentFaults() (faults []string) {
	for _, a := range l.Adders {
		if err := a.agent.fault(); err != nil {
			faults = append(faults, fmt.Sprintf("the agent of %s ended: %v", l.nameOf(a.Planned.Node), err))
		}
		if n := a.agent.past.Load(); n > 0 {
			faults = append(faults, fmt.Sprintf("%s came to the agent of %s, past its program",
				olaf.Plural(int(n), "data packet"), l.nameOf(a.Planned.Node)))
		}
		if a.Fanout == nil {
			continue
		}
		if err := a.Fanout.CheckAttached(); err != nil {
			faults = append(faults, fmt.Sprintf("%s: %v", l.nameOf(a.Planned.Node), err))
		}
	}
	return faults
}

// Broken returns an error for the first change since the start, or nil. The error matches ErrBroken.
func (l *Lab) Broken() error {
	if faults := l.Faults(); len(faults) > 0 {
		return fmt.Errorf("%w: %s", ErrBroken, faults[0])
	}
	return nil
}

// lookEvery is the interval at which Guard checks the testbed.
const lookEvery = time.Second

// Guard calls do with a context that ends when the testbed changes. If do fails for this reason, Guard returns the
// error from Broken.
func (l *Lab) Guard(ctx context.Context, do func(context.Context) error) error {
	within, stop := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		stop(l.watch(within))
	}()
	err := do(within)
	stop(nil)
	<-ended
	if err == nil || ctx.Err() != nil {
		return err
	}
	if why := context.Cause(within); errors.Is(why, ErrBroken) {
		return why
	}
	return cmp.Or(l.Broken(), err)
}

// watch checks the testbed periodically until the context ends or the testbed has changed. It returns an error in the
// second case.
func (l *Lab) watch(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if err := l.Broken(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// cableFaults describes the faults at both ends of a cable. If one end is removed, the other disappears as well.
func (l *Lab) cableFaults(cable int) (faults []string) {
	c, planned := l.Cables[cable], &l.Plan.Cables[cable]
	child, parent := l.nameOf(planned.Child), l.nameOf(planned.Parent)
	say := func(format string, a ...any) {
		faults = append(faults, fmt.Sprintf("the cable from %s to %s: ", child, parent)+fmt.Sprintf(format, a...))
	}
	for _, end := range []struct {
		at *netlab.Interface
		of string
	}{{c.A, child}, {c.B, parent}} {
		if end.at == nil {
			continue
		}
		s, err := end.at.State()
		if err != nil {
			return []string{fmt.Sprintf("the cable from %s to %s is gone, with interface %s of %s", child, parent, end.at.Name, end.of)}
		}
		if !s.Up {
			say("interface %s of %s is down", end.at.Name, end.of)
		}
		if a := l.attached[end.at]; s.Program != a.number && a.name != "" {
			say("the program %s was detached from %s of %s", a.name, end.at.Name, end.of)
		}
	}
	return faults
}

func (l *Lab) nameOf(node int) string { return l.Plan.Nodes[node].Name }

// Close removes the testbed.
func (l *Lab) Close() error {
	var errs []error
	for _, c := range l.opened {
		errs = append(errs, c.Close())
	}
	for _, a := range l.Adders { // every agent may read all of them
		if a.agent != nil {
			errs = append(errs, a.agent.Close())
		}
	}
	for _, a := range l.Adders {
		if a.Fanout != nil {
			errs = append(errs, a.Fanout.Close())
		}
		errs = append(errs, a.Close())
	}
	if l.lab != nil {
		errs = append(errs, l.lab.Close())
	}
	if l.queue != nil {
		errs = append(errs, l.queue.Close())
	}
	return errors.Join(errs...)
}
