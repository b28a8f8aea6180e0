package pcie

import (
	"errors"
	"fmt"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
)

// Registers of a CMAC and of a packet adapter. Their addresses are cmacBase or adapterBase, plus the port's stride,
// plus these offsets.
const (
	cmacTXStatus   = 0x0200
	cmacRXStatus   = 0x0204
	cmacTick       = 0x02B0
	cmacTickCycles = 0x02B8 // RX clock cycles since the last tick
	cmacFECStatus  = 0x1004
	cmacFECEnable  = 0x107C
	tickRegister   = cmacTick // offset of TICK in a port's 16 KiB, of which cmacBase and its sibling are multiples

	rxClockHz = 322_265_625
	rxHealthy = 0x3 // up and aligned, with no other bit set
)

// PortCounters contains the totals of a port's MAC since the card was opened. Bytes include the FCS.
type PortCounters struct {
	TXPackets, TXBytes, TXBadFCS uint64
	RXPackets, RXBytes           uint64
	RXBadFCS, RXOversize         uint64
	RXTruncated, RXPause         uint64
}

// macCounters lists the MAC's statistics registers whose counts are accumulated. They have 48 bits each, low word
// first.
var macCounters = [...]struct {
	offset uint32
	total  func(*PortCounters) *uint64
}{
	{0x0500, func(c *PortCounters) *uint64 { return &c.TXPackets }},
	{0x0510, func(c *PortCounters) *uint64 { return &c.TXBytes }},
	{0x05B8, func(c *PortCounters) *uint64 { return &c.TXBadFCS }},
	{0x0608, func(c *PortCounters) *uint64 { return &c.RXPackets }},
	{0x0618, func(c *PortCounters) *uint64 { return &c.RXBytes }},
	{0x06C0, func(c *PortCounters) *uint64 { return &c.RXBadFCS }},
	{0x06A8, func(c *PortCounters) *uint64 { return &c.RXOversize }},
	{0x0710, func(c *PortCounters) *uint64 { return &c.RXTruncated }},
	{0x06F8, func(c *PortCounters) *uint64 { return &c.RXPause }},
}

// AdapterCounters contains the counters of a packet adapter since its last reset. The adapter is between the MAC and
// the user box. Frames that overflow its small buffer while the box stalls are lost there and counted nowhere else. The
// hardware's byte counters for dropped frames are meaningless and therefore left out.
type AdapterCounters struct {
	TXPackets, TXBytes     uint64
	TXDropped              uint64 // frames without a destination port
	RXPackets, RXBytes     uint64
	RXDropped, RXErroneous uint64 // dropped (buffer full or damaged), and damaged alone
}

var adapterCounters = []struct {
	offset uint32
	value  func(*AdapterCounters) *uint64
}{
	{0x00, func(c *AdapterCounters) *uint64 { return &c.TXPackets }},
	{0x08, func(c *AdapterCounters) *uint64 { return &c.TXBytes }},
	{0x10, func(c *AdapterCounters) *uint64 { return &c.TXDropped }},
	{0x20, func(c *AdapterCounters) *uint64 { return &c.RXPackets }},
	{0x28, func(c *AdapterCounters) *uint64 { return &c.RXBytes }},
	{0x30, func(c *AdapterCounters) *uint64 { return &c.RXDropped }},
	{0x40, func(c *AdapterCounters) *uint64 { return &c.RXErroneous }},
}

// port is the state of one port.
type port struct {
	base    uint32
	totals  PortCounters
	ticked  time.Time // time of our last tick; zero before the first
	foreign int       // ticks by other programs, each of which cleared counts
	adapter AdapterCounters
}

// restart discards the last tick and the adapter's counts, because a reset clears both.
func (p *port) restart() { p.ticked, p.adapter = time.Time{}, AdapterCounters{} }

// Ports returns the number of MACs in the image.
func (d *Device) Ports() int { return len(d.ports) }

func (d *Device) portCount() string { return olaf.Plural(len(d.ports), "port") + " from 0" }

// portOf returns the port that a MAC or adapter register belongs to. ok is false for other registers.
func portOf(addr uint32) (port int, ok bool) {
	if addr < cmacBase || addr >= cmacBase+maxPorts*portStride {
		return 0, false
	}
	return int((addr - cmacBase) / portStride), true
}

// checkPort returns an error for a register of a MAC or adapter that is not in the image. Reads of such registers
// return placeholders.
func (d *Device) checkPort(addr uint32) error {
	if p, ok := portOf(addr); ok && len(d.ports) > 0 && p >= len(d.ports) {
		return fmt.Errorf("%w at %#x: it belongs to port %d, and this image has %s", fpga.ErrAddress, addr, p,
			d.portCount())
	}
	return nil
}

func (d *Device) port(i int) (*port, error) {
	if i < 0 || i >= len(d.ports) {
		return nil, fmt.Errorf("%w: port %d; this image has %s", fpga.ErrAddress, i, d.portCount())
	}
	return &d.ports[i], nil
}

// Tick latches the counters of a port's MAC and returns the totals. Latching clears the hardware's counters, so it is
// reserved for the process that has the exclusive lock on the card. Counts from before the first tick are dropped.
// foreign is the number of ticks made by other programs. Such ticks removed counts, so that the totals are too small.
func (d *Device) Tick(i int) (totals PortCounters, foreign int, err error) {
	p, err := d.port(i)
	if err != nil {
		return totals, 0, err
	}
	if err := d.checkFresh(); err != nil {
		return p.totals, p.foreign, err
	}
	if d.options.ReadOnly || d.options.DryRun != nil {
		return totals, 0, fmt.Errorf("latch the counters of port %d: %w: it clears them, and the session is read-only",
			i, ErrDenied)
	}
	first := p.ticked.IsZero()
	if err := d.tickPort(i, p); err != nil {
		return p.totals, p.foreign, err
	}
	counted, err := d.readMAC(i, cmacBase+p.base)
	if err != nil || first {
		return p.totals, p.foreign, err
	}
	for n, c := range macCounters {
		*c.total(&p.totals) += counted[n]
	}
	return p.totals, p.foreign, nil
}

// tickPort latches a port's counters and checks that the MAC's tick counter restarted.
func (d *Device) tickPort(i int, p *port) error {
	base := cmacBase + p.base
	sinceTick := func() (uint32, error) {
		c, err := d.readRunning(fmt.Sprintf("the clock of port %d", i),
			func() uint64 { return uint64(d.load(base + cmacTickCycles)) })
		return uint32(c), err
	}
	now := d.clock.Now() // read before the MAC and after the tick, so that a delay in between does not look like a foreign tick
	before, err := sinceTick()
	if err != nil {
		return err
	}
	if !p.ticked.IsZero() && hasForeignTick(before, now.Sub(p.ticked)) {
		p.foreign++
	}
	d.window.Store32(base+cmacTick, 1)
	d.window.Load32(base + cmacVersion) // reading ensures that the tick has arrived
	ticked := d.clock.Now()
	after, err := sinceTick()
	if err != nil {
		return errors.Join(d.verify(), err)
	}
	if passed := d.clock.Now().Sub(now).Seconds() * rxClockHz; after >= before && float64(after) > 1.02*passed {
		return errors.Join(d.verify(), fmt.Errorf(
			"latch the counters of port %d: %w: the MAC's clock reads %d after %d, so the tick did not clear it; "+
				"wait if it is being reset, or try 'olafctl device reset --part cmac%d'", i, ErrLost, after, before, i))
	}
	p.ticked = ticked
	return nil
}

// readMAC reads the counters that the last tick latched, until two reads agree.
func (d *Device) readMAC(i int, base uint32) (counted [len(macCounters)]uint64, err error) {
	last := counted
	for look := range 4 {
		for n, c := range macCounters {
			low, high := d.load(base+c.offset), d.load(base+c.offset+4)
			counted[n] = uint64(high&0xFFFF)<<32 | uint64(low)
		}
		if look > 0 && counted == last {
			return counted, nil
		}
		last = counted
	}
	return counted, errors.Join(d.verify(),
		fmt.Errorf("the counters of port %d: %w: no two reads agree; stop other programs that read them", i,
			ErrUnsteady))
}

// slowest is the minimum ratio of the MAC's clock to its nominal rate. Crystals are accurate to 100 ppm, and time
// synchronization changes the rate of the host's clock by at most 500 ppm.
const slowest = 0.999

// hasForeignTick reports whether the MAC's clock counted fewer cycles since the last tick than the elapsed time
// requires, because another program made a tick. The register wraps after 13 s, so it returns false for longer times.
func hasForeignTick(cycles uint32, passed time.Duration) bool {
	want := passed.Seconds() * rxClockHz
	return want < 1<<32 && float64(cycles) < float64(want*slowest)-1000
}

// Adapter returns the counters of a port's packet adapter.
func (d *Device) Adapter(i int) (c AdapterCounters, err error) {
	p, err := d.port(i)
	if err != nil {
		return c, err
	}
	if err := d.checkFresh(); err != nil {
		return c, err
	}
	last := p.adapter
	for _, a := range adapterCounters {
		v := a.value(&c)
		if *v, err = d.unlatched64(adapterBase + p.base + a.offset); err != nil {
			return c, err
		}
		if was := *a.value(&last); *v < was {
			p.adapter = AdapterCounters{}
			return c, fmt.Errorf("the adapter of port %d: %w: %#x went from %d to %d; the adapter was reset and its "+
				"earlier counts are lost: measure again", i, ErrBackwards, a.offset, was, *v)
		}
	}
	p.adapter = c
	return c, nil
}

var _ fpga.PortCounter = (*Device)(nil)

// PortCounts latches the counters of every MAC and reads every adapter. Dropped includes damaged frames. The counts of
// the MACs start at the first tick.
func (d *Device) PortCounts() ([]fpga.Port, error) {
	counts := make([]fpga.Port, len(d.ports))
	for i := range counts {
		mac, foreign, err := d.Tick(i)
		if err != nil {
			return nil, err
		}
		adapter, err := d.Adapter(i)
		if err != nil {
			return nil, err
		}
		counts[i] = fpga.Port{
			Sent: mac.TXPackets, SentDamaged: mac.TXBadFCS, Received: mac.RXPackets,
			ReceivedDamaged: mac.RXBadFCS + mac.RXOversize + mac.RXTruncated,
			ReceivedBadFCS:  mac.RXBadFCS, ReceivedOversize: mac.RXOversize, Dropped: adapter.RXDropped,
			Stray: adapter.TXDropped, ForeignTicks: uint64(foreign),
		}
	}
	return counts, nil
}

// unlatched64 reads a running 64-bit counter. It reads the high word before and after the low word until both values
// agree, and does all of this twice.
func (d *Device) unlatched64(addr uint32) (uint64, error) {
	v, err := d.readRunning(fmt.Sprintf("%#x", addr), func() uint64 {
		high := d.load(addr + 4)
		for range 8 {
			low, again := d.load(addr), d.load(addr+4)
			if again == high {
				return uint64(high)<<32 | uint64(low)
			}
			high = again
		}
		return 0
	})
	if err != nil || v == allOnes64 {
		err = errors.Join(d.verify(), err)
	}
	return v, err
}

const allOnes64 = ^uint64(0)

// Link is the state of a port's MAC.
type Link struct {
	Up       bool   `json:"up"`
	RXStatus uint32 `json:"rx_status"` // current status, after clearing the latched history
	TXStatus uint32 `json:"tx_status"`
	FEC      bool   `json:"rs_fec"` // RS-FEC enabled in both directions
	Reason   string `json:"why,omitempty"`
}

// rxFaults lists fault bits in the receiver's status register, with the most specific first.
var rxFaults = []struct {
	bit  uint
	text string
}{
	{6, "local fault: no light, a wrong cable, or a different FEC at the far end"}, {7, "internal fault"},
	{5, "remote fault: the far end does not receive our signal"}, {4, "high bit error rate"}, {3, "alignment error"},
	{2, "misaligned"},
}

// Link returns the state of a port's MAC. Status bits stay latched until they are read, so each register is read twice.
func (d *Device) Link(i int) (l Link, err error) {
	p, err := d.port(i)
	if err != nil {
		return l, err
	}
	base := cmacBase + p.base
	reads := []struct {
		offset uint32
		to     *uint32
	}{{cmacRXStatus, &l.RXStatus}, {cmacRXStatus, &l.RXStatus}, {cmacTXStatus, &l.TXStatus},
		{cmacTXStatus, &l.TXStatus}}
	for _, r := range reads {
		if *r.to, err = d.Read32(base + r.offset); err != nil {
			return l, err
		}
	}
	fec, err := d.Read32(base + cmacFECEnable)
	if err != nil {
		return l, err
	}
	l.FEC = fec&3 == 3
	l.Up = l.RXStatus == rxHealthy && l.TXStatus == 0
	if !l.Up {
		l.Reason = fmt.Sprintf("RX status %#x, TX status %#x", l.RXStatus, l.TXStatus)
		for _, f := range rxFaults {
			if l.RXStatus>>f.bit&1 != 0 {
				l.Reason += ": " + f.text
				break
			}
		}
	}
	return l, nil
}
