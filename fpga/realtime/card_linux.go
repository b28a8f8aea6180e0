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
	"sync/atomic"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/aggregator"
	"github.com/olafctl/olaf/fpga/dataplane"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/regfile"
	"github.com/olafctl/olaf/fpga/regmap"
)

// Build limits that apply to every card.
const (
	builtSlots       = 256
	builtClusters    = 1024
	builtSenders     = 1024
	builtDescriptors = 1 << 22
	maxLanes         = 704 // longest frame that native mode receives in one piece
	logBytes         = 1 << 24

	clockHz = uint64(olaf.Second / olaf.Cycle)
	cycleNS = int64(olaf.Cycle / olaf.Nanosecond)
)

// ownPlaces is the number of threads that a card needs in addition to GOMAXPROCS.
const ownPlaces = 6

// mtu is the MTU of the cables, which allows the longest frame.
var mtu = int(olaf.FrameSize(maxLanes)) - 14

// Card is a device whose ports are connected by network cables. It is not safe for concurrent use.
type Card struct {
	backend dataplane.Backend
	clock   clock
	openNS  int64
	lab     *netlab.Lab
	hosts   Hosts
	here    *netlab.Node    // namespace of this process; nil unless interfaces stay in it
	in      []*netlab.Cable // from the workers to the switch
	out     *netlab.Cable   // from the switch to the server
	procs   int             // previous value of GOMAXPROCS
	carry   int64           // frames per second that the card can process; 0 before the pacer runs
	rates   Rates

	file      regfile.File[*Card]
	writtenNS atomic.Int64  // when a register was last written
	written   chan struct{} // has room for one; receives a value at each write
	generator *generator
	pacer     *pacer
	enabled   bool
	frozen    bool
	frozenAt  int64
	config    queueConfig // of the plane
	senders   []dataplane.Sender
	planes    map[string]dataplane.Plane
	closers   []io.Closer // closers other than planes
	total     totals
	lost      int64 // frames of the workers that were given up as lost
	witness   witness
	front     front
	tables    func() aggregator.Admission // nil if there are no tables

	mu       Lock // held whenever the plane is used
	plane    dataplane.Plane
	attached []io.Closer
	programs []attachment
	failure  error // first failure of the plane
}

// attachment is a kernel program attached at the switch's end of a cable. number is 0 if the plane has no programs.
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

// Open creates the network and measures its capacity for half a second. Everything is removed by Close or when the
// process ends.
func Open(b dataplane.Backend, h Hosts) (*Card, error) {
	if err := netlab.CheckRights(slices.Concat(netlab.NamespaceRights, netlab.PacketRights, b.Rights)...); err != nil {
		return nil, err
	}
	if err := h.checkHosts(&b); err != nil {
		return nil, err
	}
	c := &Card{backend: b, hosts: h, planes: map[string]dataplane.Plane{}}
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
	c.file = regfile.New(behaviour, c, regfile.NewLayout(c.capabilities()), builtDescriptors)
	c.file.Reset()
	// Each thread that polls the clock occupies one of Go's running threads, and a thread that returns from the kernel
	// must find a free one.
	c.procs = runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(c.procs + ownPlaces)
	if err := c.adoptConfig(c.readQueueConfig()); err != nil {
		return err
	}
	if err := c.measureRates(); err != nil {
		c.carry = 0
		return err
	}
	if err := errors.Join(c.redirectOutput(), c.redirectGenerator()); err != nil {
		c.carry = 0
		return err
	}
	if c.generator.at != nil { // the generator sends elsewhere, so nothing reaches the queue
		close(c.pacer.done)
		return nil
	}
	go c.pacer.run()
	return nil
}

// connect creates the workers, the switch, the server and the cables between them.
func (c *Card) connect() error {
	var err error
	if c.lab, err = netlab.New(); err != nil {
		return err
	}
	hub, err := c.lab.Node("switch")
	if err != nil {
		return err
	}
	names := c.hosts.workerNames()
	server, here, err := c.connectHost(hub, c.hosts.Server(), "server")
	if err != nil {
		return err
	}
	c.out = &netlab.Cable{A: here, B: server}
	for i, name := range names {
		worker, here, err := c.connectHost(hub, i, name)
		if err != nil {
			return err
		}
		c.in = append(c.in, &netlab.Cable{A: worker, B: here})
	}
	if err := c.joinHosts(hub); err != nil {
		return err
	}
	in, out, err := c.makeGauges(hub)
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
	if c.hosts.hasForeign() && len(c.hosts.Outside) == 0 {
		c.generator.hop, c.pacer.hop = slices.Concat(c.in[0].B.MAC, in.MAC), slices.Concat(c.serverMAC(), out.MAC)
	}
	return nil
}

// redirectOutput connects the pacer to the server's interface, if its capacity was measured at another interface.
func (c *Card) redirectOutput() error {
	if len(c.hosts.Outside) == 0 {
		return nil
	}
	out, err := c.out.A.Packets(false)
	if err != nil {
		return err
	}
	err = c.pacer.out.Close()
	c.pacer.out = out
	if c.hosts.isBetween() { // frames keep their addresses, as behind a card
		c.limitFrames(c.in[0].B)
		c.limitFrames(c.out.A)
		return errors.Join(err, c.hearAll(c.in[0].B))
	}
	c.pacer.hop = slices.Concat(c.serverMAC(), c.out.A.MAC)
	return err
}

// redirectGenerator connects the generator to its own interface, after its capacity was measured at another interface.
func (c *Card) redirectGenerator() error {
	if c.hosts.Generator == "" {
		return nil
	}
	at, err := c.findInPlace(c.hosts.Generator)
	if err != nil {
		return err
	}
	c.limitFrames(at)
	out, err := at.Packets(false)
	if err != nil {
		return err
	}
	err = c.generator.out.Close()
	c.generator.out, c.generator.at = out, at
	return err
}

// limitFrames limits the size of frames to those that an interface takes.
func (c *Card) limitFrames(at *netlab.Interface) {
	if at.MTU < mtu {
		c.generator.most = min(c.generator.maxBytes(), at.MTU+ethernetBytes)
	}
}

// ethernetBytes is the length of the Ethernet header, which an MTU does not include.
const ethernetBytes = 14

// hearAll makes an interface receive frames for any address until the card is closed.
func (c *Card) hearAll(at *netlab.Interface) error {
	all, err := at.HearAll()
	if err == nil {
		c.closers = append(c.closers, all)
	}
	return err
}

// Server returns the parameter server's interface, for captures. It returns nil if the server is connected to an
// interface of this machine.
func (c *Card) Server() *netlab.Interface { return c.out.B }

// Workers returns the interface through which the card's generator sends. Use SetVisible to make its frames visible to
// captures.
func (c *Card) Workers() *netlab.Interface { return c.in[0].A }

// SetVisible sets whether captures at Workers see the generator's frames. It must not be called while frames are sent.
func (c *Card) SetVisible(on bool) error { return c.generator.out.SetVisible(on) }

// SetGate sets the function that decides, at an instant of the kernel's monotonic clock, whether the generator sends a
// worker's next update, from the next run on; nil sends all. It returns the number of updates withheld since the last call.
func (c *Card) SetGate(gate func(olaf.WorkerID, olaf.Time) bool) (withheld int64) {
	c.generator.gate = gate
	return c.generator.withheld.Swap(0)
}

// Cables returns the cables between workers and switch, and between switch and server. The first one is the generator's.
func (c *Card) Cables() (in []*netlab.Cable, out *netlab.Cable) { return c.in, c.out }

// CurrentPlane returns the plane in use. It is valid until the queue is configured again.
func (c *Card) CurrentPlane() dataplane.Plane {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.plane
}

// Identity returns the device's identity.
func (c *Card) Identity() fpga.Identity {
	return fpga.Identity{
		Address: c.address(), Kind: c.backend.Kind,
		MapVersion: fmt.Sprintf("%d.%d.%d", regmap.VersionMajor, regmap.VersionMinor, regmap.VersionPatch),
		Build:      c.backend.Build, ClockHz: clockHz,
	}
}

// address returns the device address with which the card can be opened again.
func (c *Card) address() string {
	switch h := &c.hosts; {
	case h.isBetween():
		address := "xdp:" + h.Outside[0].Interface + "," + h.Outside[1].Interface
		if c.backend.Mode != dataplane.Native {
			address += "," + string(c.backend.Mode)
		}
		return address
	case h.Generator != "":
		return "nic:" + h.Generator
	}
	return c.backend.Address
}

func (c *Card) buildHash() uint32 { return crc32.ChecksumIEEE([]byte(c.backend.Build)) }

// cycle returns the device cycle at an instant of the monotonic clock.
func (c *Card) cycle(ns int64) int64 { return (ns - c.openNS) / cycleNS }

// leastSleep is the minimum duration of Sleep. More frequent polling would take processor time from the timing threads.
const leastSleep = 2 * time.Millisecond

// Sleep waits for the given time and then reads the decisions that the plane made in this time.
func (c *Card) Sleep(ctx context.Context, d olaf.Duration) error {
	if err := c.firstFailure(); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(max(time.Duration(d/olaf.Nanosecond), leastSleep)):
	}
	return errors.Join(c.readDecisions(), c.firstFailure())
}

// recordFailure records the plane's first failure. The caller must hold the lock.
func (c *Card) recordFailure(err error) {
	if c.failure == nil {
		c.failure = fmt.Errorf("%w: %w", fpga.ErrGone, err)
	}
}

// firstFailure returns the plane's first failure, or an error if the card is closed.
func (c *Card) firstFailure() error {
	if err := c.file.CheckOpen(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failure
}

// SetSenders replaces the table of workers in the current plane and in all later ones.
func (c *Card) SetSenders(list []dataplane.Sender) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.plane.SetSenders(list); err != nil {
		return fmt.Errorf("%w: %w", fpga.ErrRefused, err)
	}
	c.senders = list
	return nil
}

// ReplaceSenders is SetSenders for callers that cannot handle an error. If it fails, later accesses to the card return
// the error.
func (c *Card) ReplaceSenders(list []dataplane.Sender) {
	if err := c.SetSenders(list); err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.recordFailure(err)
	}
}

// adoptConfig activates the plane for a configuration. The plane is then empty and stopped. The pacer waits until this
// is done.
func (c *Card) adoptConfig(q queueConfig) error {
	if err := c.saveCounts(); err != nil {
		return err
	}
	c.front.adoptProgram(c.file.Reg(regmap.AggregatorProgram))
	kind, _ := engine.FindByCode(q.discipline) // always known: the register accepts no other value
	c.mu.Lock()
	defer c.mu.Unlock()
	plane, err := c.loadPlane(kind.Name)
	if err != nil {
		return err
	}
	if plane != c.plane {
		if err := c.attachPlane(plane); err != nil {
			return err
		}
	}
	c.config, c.pacer.output = q, q.output
	if err := errors.Join(plane.Reset(), plane.Configure(q.settings), plane.SetSenders(c.senders)); err != nil {
		return err
	}
	return c.witness.reset(kind.Name, q)
}

func (c *Card) loadPlane(discipline string) (dataplane.Plane, error) {
	if p := c.planes[discipline]; p != nil {
		return p, nil
	}
	p, err := c.backend.Load(discipline, dataplane.Build{
		Slots: builtSlots + 1, Clusters: builtClusters, Lanes: maxLanes, FrameLanes: maxLanes, Senders: builtSenders,
		LogBytes: cmp.Or(c.backend.LogBytes, logBytes),
	})
	if err == nil {
		c.planes[discipline] = p
	}
	return p, err
}

// attachPlane attaches a plane to the switch's interfaces. The plane receives frames from the workers, and answers from
// the server bypass its queue.
func (c *Card) attachPlane(p dataplane.Plane) error {
	if err := c.detachPlane(); err != nil {
		return err
	}
	for _, cable := range c.in {
		arrive, err := p.Attach(cable.B, c.backend.Mode)
		if err := c.recordAttached(arrive, err, &attachment{name: "arrive", at: cable, end: cable.B}); err != nil {
			return err
		}
	}
	if marks, ok := p.(marker); ok && c.hosts.Workers > 0 {
		mark, err := marks.AttachMark(c.out.A, c.backend.Mode)
		if err := c.recordAttached(mark, err, &attachment{name: "mark", at: c.out, end: c.out.A}); err != nil {
			return err
		}
	}
	if f, ok := p.(forwarder); ok && c.hosts.Workers > 0 {
		forward, err := f.Forward(c.out.A, c.listRoutes())
		if err := c.recordAttached(forward, err, nil); err != nil {
			return err
		}
	}
	c.plane = p
	return nil
}

// recordAttached records an attachment so that it can be closed and, unless a is nil, the number of the attached
// program.
func (c *Card) recordAttached(l io.Closer, err error, a *attachment) error {
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

// detachPlane detaches the current plane from all interfaces.
func (c *Card) detachPlane() error {
	c.plane = nil
	var errs []error
	for _, l := range c.attached {
		errs = append(errs, l.Close())
	}
	c.attached, c.programs = nil, nil
	return errors.Join(errs...)
}

// CheckAttached returns an error if one of our programs was detached from its interface or replaced during the run.
func (c *Card) CheckAttached() error {
	for i := range c.programs {
		a := &c.programs[i]
		switch number, err := a.end.XDP(); {
		case err != nil:
			return c.goneError(a.at)
		case number != a.number:
			return fmt.Errorf("%w: the program %s was detached from the cable %s during the run",
				fpga.ErrDoubtful, a.name, c.nameOf(a.at))
		}
	}
	return nil
}

// nameOf describes a cable by its two ends, which are namespaces or hosts behind interfaces.
func (c *Card) nameOf(cable *netlab.Cable) string {
	name := func(at, other *netlab.Interface) string {
		if at == nil {
			return "the host behind " + other.Name
		}
		return at.Node.Name()
	}
	return fmt.Sprintf("from %s to %s", name(cable.A, cable.B), name(cable.B, cable.A))
}

// Close stops the generator and the pacer, and removes all programs, namespaces and cables.
func (c *Card) Close() error {
	if c.file.CheckOpen() != nil {
		return nil
	}
	c.file.Close()
	var errs []error
	if c.generator != nil {
		c.generator.stopThread()
		errs = append(errs, c.generator.out.Close())
	}
	if c.pacer != nil {
		c.pacer.quit.Store(true)
		if c.carry > 0 {
			<-c.pacer.done
		}
		errs = append(errs, c.pacer.out.Close())
	}
	errs = append(errs, c.detachPlane())
	for _, p := range c.planes {
		errs = append(errs, p.Close())
	}
	for _, l := range c.closers {
		errs = append(errs, l.Close())
	}
	if c.lab != nil {
		errs = append(errs, c.lab.Close())
	}
	if c.procs > 0 {
		runtime.GOMAXPROCS(c.procs)
	}
	return errors.Join(errs...)
}
