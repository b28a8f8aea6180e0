package realtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"runtime"
	"slices"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/aggregator"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/regfile"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/fpga/xdp"
)

// What every card is built with.
const (
	builtSlots       = 256
	builtClusters    = 1024
	builtSenders     = 1024
	builtDescriptors = 1 << 22
	maxLanes         = 704 // of a frame that native mode sees in one piece
	logBytes         = 1 << 24

	clockHz = uint64(olaf.Second / olaf.Cycle)
	cycleNS = int64(olaf.Cycle / olaf.Nanosecond)
)

// ownPlaces is how many goroutines run beside those that Go would let run.
const ownPlaces = 6

// mtu is that of the cables: what the longest frame needs.
var mtu = int(olaf.FrameSize(maxLanes)) - 14

// Card is one such device. Its methods are not safe for concurrent use, as those of any device.
type Card struct {
	backend Backend
	clock   clock
	openNS  int64
	lab     *netlab.Lab
	hosts   Hosts
	in      []*netlab.Cable // workers to switch
	out     *netlab.Cable   // switch to server
	procs   int             // GOMAXPROCS before
	carry   int64           // frames a second; 0 before the pacer runs
	rates   Rates

	file      regfile.File[*Card]
	generator *generator
	pacer     *pacer
	enabled   bool
	frozen    bool
	frozenAt  int64
	config    queueConfig // of the plane
	senders   []xdp.Sender
	planes    map[string]Plane
	total     totals
	lost      int64 // frames of the workers that are not waited for any more
	witness   witness
	front     front
	tables    func() aggregator.Admission // nil where nobody keeps any

	mu       Lock // held whenever the plane is used
	plane    Plane
	attached []io.Closer
	programs []attachment
	failure  error // the first of the plane's
}

// attachment is a program at the switch's end of a cable; of a plane without programs its number is 0.
type attachment struct {
	name   string
	at     *netlab.Cable
	end    *netlab.Interface
	number uint32
}

var (
	_ fpga.Device     = (*Card)(nil)
	_ fpga.ArrivalLog = (*Card)(nil)
)

// Open lays the network and measures for half a second what it carries. All of it ends with Close or with the process.
func Open(b Backend, h Hosts) (*Card, error) {
	if err := netlab.Missing(slices.Concat(netlab.NamespaceRights, netlab.PacketRights, b.Rights)...); err != nil {
		return nil, err
	}
	if err := h.check(&b); err != nil {
		return nil, err
	}
	c := &Card{backend: b, hosts: h, planes: map[string]Plane{}}
	if err := c.open(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Card) open() error {
	var err error
	if c.clock, err = newClock(); err != nil {
		return err
	}
	c.openNS = c.clock.now()
	c.front.cycle = func() uint64 { return uint64(c.cycle(c.clock.now())) }
	if err := c.connect(); err != nil {
		return err
	}
	c.file = regfile.New(behaviour, c, regfile.NewLayout(c.backend.capabilities()), builtDescriptors)
	c.file.Reset()
	// Threads that look at the clock again and again keep a place at which goroutines run each, and who comes back from the kernel
	// must find one free.
	c.procs = runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(c.procs + ownPlaces)
	if err := c.adopt(c.configured()); err != nil {
		return err
	}
	if err := c.measure(); err != nil {
		c.carry = 0
		return err
	}
	if err := c.turnOut(); err != nil {
		c.carry = 0
		return err
	}
	go c.pacer.run()
	return nil
}

// connect makes workers, switch and server, and the cables between them.
func (c *Card) connect() error {
	var err error
	if c.lab, err = netlab.New(); err != nil {
		return err
	}
	hub, err := c.lab.Node("switch")
	if err != nil {
		return err
	}
	names := c.hosts.names()
	server, here, err := c.reach(hub, c.hosts.Server(), "server")
	if err != nil {
		return err
	}
	c.out = &netlab.Cable{A: here, B: server}
	for i, name := range names {
		worker, here, err := c.reach(hub, i, name)
		if err != nil {
			return err
		}
		c.in = append(c.in, &netlab.Cable{A: worker, B: here})
	}
	if err := c.join(hub); err != nil {
		return err
	}
	in, out, err := c.gauges(hub)
	if err != nil {
		return err
	}
	workers, err := in.Packets(false)
	if err != nil {
		return err
	}
	c.generator = &generator{card: c, out: workers}
	measured, err := out.Packets(false)
	if err != nil {
		return err
	}
	c.pacer = newPacer(c, measured)
	if c.hosts.foreign() && len(c.hosts.Outside) == 0 {
		c.generator.hop, c.pacer.hop = slices.Concat(c.in[0].B.MAC, in.MAC), slices.Concat(c.serverMAC(), out.MAC)
	}
	return nil
}

// turnOut lets the output lead to the server, where it was measured elsewhere.
func (c *Card) turnOut() error {
	if len(c.hosts.Outside) == 0 {
		return nil
	}
	out, err := c.out.A.Packets(false)
	if err != nil {
		return err
	}
	err = c.pacer.out.Close()
	c.pacer.out, c.pacer.hop = out, slices.Concat(c.serverMAC(), c.out.A.MAC)
	return err
}

// Server is the interface of the parameter server, for a capture; nil of one behind an interface of this machine.
func (c *Card) Server() *netlab.Interface { return c.out.B }

// Workers is the interface at which the card's own generator sends, and Show lets captures there see its frames or hides them again.
func (c *Card) Workers() *netlab.Interface { return c.in[0].A }

// Show is told of by Workers. Nothing must be sent meanwhile.
func (c *Card) Show(on bool) error { return c.generator.out.Show(on) }

// Identity says what this is.
func (c *Card) Identity() fpga.Identity {
	return fpga.Identity{
		Address: c.backend.Address, Kind: c.backend.Kind,
		MapVersion: fmt.Sprintf("%d.%d.%d", regmap.VersionMajor, regmap.VersionMinor, regmap.VersionPatch),
		Build:      c.backend.Build, ClockHz: clockHz,
	}
}

func (c *Card) buildHash() uint32 { return crc32.ChecksumIEEE([]byte(c.backend.Build)) }

// cycle is device time at an instant of the monotonic clock.
func (c *Card) cycle(ns int64) int64 { return (ns - c.openNS) / cycleNS }

// leastSleep is how long Sleep sleeps at least: whoever looks more often takes the processor from those who keep time.
const leastSleep = 2 * time.Millisecond

// Sleep waits, and takes up what was decided meanwhile.
func (c *Card) Sleep(ctx context.Context, d olaf.Duration) error {
	if err := c.fault(); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(max(time.Duration(d/olaf.Nanosecond), leastSleep)):
	}
	return errors.Join(c.listen(), c.fault())
}

// fail keeps the first failure of the plane; the lock is held.
func (c *Card) fail(err error) {
	if c.failure == nil {
		c.failure = fmt.Errorf("%w: %w", fpga.ErrGone, err)
	}
}

// fault is the first failure.
func (c *Card) fault() error {
	if err := c.file.Closed(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failure
}

// SetSenders replaces the table of workers, for frames as for later planes.
func (c *Card) SetSenders(list []xdp.Sender) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.plane.SetSenders(list); err != nil {
		return fmt.Errorf("%w: %w", fpga.ErrRefused, err)
	}
	c.senders = list
	return nil
}

// Keep is SetSenders for those whom nobody listens to: what keeps the plane from taking the table makes the card fail.
func (c *Card) Keep(list []xdp.Sender) {
	if err := c.SetSenders(list); err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.fail(err)
	}
}

// adopt lets the plane of a configuration decide, empty and not running. The pacer waits meanwhile.
func (c *Card) adopt(q queueConfig) error {
	if err := c.fold(); err != nil {
		return err
	}
	c.front.adopt(c.file.Reg(regmap.AggregatorProgram))
	kind, _ := engine.Coded(q.discipline) // the register takes no other
	c.mu.Lock()
	defer c.mu.Unlock()
	plane, err := c.load(kind.Name)
	if err != nil {
		return err
	}
	if plane != c.plane {
		if err := c.attach(plane); err != nil {
			return err
		}
	}
	c.config, c.pacer.output = q, q.output
	if err := errors.Join(plane.Reset(), plane.Configure(q.settings), plane.SetSenders(c.senders)); err != nil {
		return err
	}
	return c.witness.begin(kind.Name, q)
}

func (c *Card) load(discipline string) (Plane, error) {
	if p := c.planes[discipline]; p != nil {
		return p, nil
	}
	p, err := c.backend.Load(discipline, xdp.Build{
		Slots: builtSlots + 1, Clusters: builtClusters, Lanes: maxLanes, FrameLanes: maxLanes, Senders: builtSenders,
		LogBytes: cmp.Or(c.backend.LogBytes, logBytes),
	})
	if err == nil {
		c.planes[discipline] = p
	}
	return p, err
}

// attach brings the workers' frames to a plane, and the server's answers past it.
func (c *Card) attach(p Plane) error {
	if err := c.detach(); err != nil {
		return err
	}
	for _, cable := range c.in {
		arrive, err := p.Attach(cable.B, c.backend.Mode)
		if err := c.hold(arrive, err, &attachment{name: "arrive", at: cable, end: cable.B}); err != nil {
			return err
		}
	}
	if marks, ok := p.(marker); ok && c.hosts.Workers > 0 {
		mark, err := marks.AttachMark(c.out.A, c.backend.Mode)
		if err := c.hold(mark, err, &attachment{name: "mark", at: c.out, end: c.out.A}); err != nil {
			return err
		}
	}
	if f, ok := p.(forwarder); ok && c.hosts.Workers > 0 {
		forward, err := f.Forward(c.out.A, c.routes())
		if err := c.hold(forward, err, nil); err != nil {
			return err
		}
	}
	c.plane = p
	return nil
}

// hold keeps what was attached, and notes which program that is; nil is none.
func (c *Card) hold(l io.Closer, err error, a *attachment) error {
	if err != nil {
		return err
	}
	c.attached = append(c.attached, l)
	if a == nil {
		return nil
	}
	a.number, err = a.end.XDP()
	c.programs = append(c.programs, *a)
	return err
}

// detach lets nothing decide.
func (c *Card) detach() error {
	c.plane = nil
	var errs []error
	for _, l := range c.attached {
		errs = append(errs, l.Close())
	}
	c.attached, c.programs = nil, nil
	return errors.Join(errs...)
}

// Attached says whether somebody took a program off an interface, or put another one there.
func (c *Card) Attached() error {
	for i := range c.programs {
		a := &c.programs[i]
		switch number, err := a.end.XDP(); {
		case err != nil:
			return c.gone(a.at)
		case number != a.number:
			return fmt.Errorf("%w: the program %s at the cable %s was taken off in the middle of the run",
				fpga.ErrDoubtful, a.name, c.nameOf(a.at))
		}
	}
	return nil
}

// nameOf says whom a cable joins: namespaces, or whatever is behind an interface.
func (c *Card) nameOf(cable *netlab.Cable) string {
	name := func(at, other *netlab.Interface) string {
		if at == nil {
			return "the host behind " + other.Name
		}
		return at.Node.Name()
	}
	return fmt.Sprintf("from %s to %s", name(cable.A, cable.B), name(cable.B, cable.A))
}

// Close ends senders and pacer, and removes programs, namespaces and cables.
func (c *Card) Close() error {
	if c.file.Closed() != nil {
		return nil
	}
	c.file.Close()
	var errs []error
	if c.generator != nil {
		c.generator.halt()
		errs = append(errs, c.generator.out.Close())
	}
	if c.pacer != nil {
		c.pacer.quit.Store(true)
		if c.carry > 0 {
			<-c.pacer.done
		}
		errs = append(errs, c.pacer.out.Close())
	}
	errs = append(errs, c.detach())
	for _, p := range c.planes {
		errs = append(errs, p.Close())
	}
	if c.lab != nil {
		errs = append(errs, c.lab.Close())
	}
	if c.procs > 0 {
		runtime.GOMAXPROCS(c.procs)
	}
	return errors.Join(errs...)
}
