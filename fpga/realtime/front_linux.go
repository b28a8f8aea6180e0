package realtime

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/aggregator"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/pass"
	"github.com/olafctl/olaf/fpga/regmap"
)

// builtSegments is the number of partial sums that can be read with the inspector's registers.
const builtSegments = 4096

// front is the aggregator block, in which the switch program of closed-loop hosts runs. Their packets bypass the queue.
// One thread may pass packets to the program while another reads registers.
type front struct {
	mu       Lock
	loop     *aggregator.Loop          // nil without closed-loop hosts
	own      regmap.AggregatorCounters // sums over ended loops, minus what was cleared
	code     uint32                    // code of the program of these loops
	peak     int
	cycle    func() uint64 // the card's clock
	slotTime aggregator.SlotIntegral
}

// discardSums discards the loop's partial sums. The caller must hold the lock.
func (f *front) discardSums() {
	f.slotTime.Discard(&f.own, f.cycle(), f.loop.CountOccupied())
	f.loop.Clear()
}

// builtPrograms returns the codes of the built-in programs as a bit mask. The bit of the pass-through program is always
// set.
func (c *Card) builtPrograms() uint32 {
	bits := uint32(1)
	for i := range c.backend.Programs {
		bits |= 1 << c.backend.Programs[i].Code
	}
	return bits
}

func (c *Card) programOf(code uint32) program.Description {
	for i := range c.backend.Programs {
		if c.backend.Programs[i].Code == code {
			return c.backend.Programs[i]
		}
	}
	return pass.Describe()
}

// loop is the program as it is used by the hosts. It locks the front during each call.
type loop struct {
	*aggregator.Loop
	front *front
}

var _ fpga.Looper = (*Card)(nil)

// AddsUpdates returns false, because programs serve only closed-loop hosts. The generator's updates bypass them.
func (c *Card) AddsUpdates() bool { return false }

// OpenLoop starts a closed loop through the program selected by register aggregator.program. One thread may pass
// packets to the program while another reads registers.
func (c *Card) OpenLoop(build program.Config) (program.Program, error) {
	if err := c.firstFailure(); err != nil {
		return nil, err
	}
	if !c.enabled || c.frozen {
		return nil, fmt.Errorf("%w: the data path is stopped; enable the queue", fpga.ErrRefused)
	}
	of := c.programOf(c.file.Reg(regmap.AggregatorProgram))
	p, err := of.New(build)
	if err != nil {
		return nil, err
	}
	f := &c.front
	f.endLoop()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.peak, f.loop = 0, &aggregator.Loop{Program: p, Of: &of, Tables: c.jobTables}
	return &loop{f.loop, f}, nil
}

// jobTables returns the current tables of jobs, or nil if there are no tables.
func (c *Card) jobTables() aggregator.Admission {
	if c.tables == nil {
		return nil
	}
	return c.tables()
}

// SetTables sets the function that returns the tables of jobs. If tables is nil, all jobs are admitted.
func (c *Card) SetTables(tables func() aggregator.Admission) { c.tables = tables }

// endLoop ends the closed loop, if there is one, and keeps its counts.
func (f *front) endLoop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.loop != nil {
		f.discardSums()
		f.own.Add(aggregator.ReadCounters(f.loop.Program))
		f.loop = nil
	}
}

// adoptProgram ends the closed loop when a program is selected by registers. If it is another program than before, the
// counts start at 0.
func (f *front) adoptProgram(code uint32) {
	f.endLoop()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.code != code {
		f.code, f.own = code, regmap.AggregatorCounters{}
		f.slotTime.Clear(f.cycle(), 0)
	}
}

// clearSums discards all partial sums of the loop.
func (f *front) clearSums() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.loop != nil {
		f.discardSums()
	}
}

// totalCounters returns the current values of all counters.
func (f *front) totalCounters() regmap.AggregatorCounters {
	f.mu.Lock()
	defer f.mu.Unlock()
	total := f.own
	if f.loop != nil {
		total.Add(aggregator.ReadCounters(f.loop.Program))
	}
	return total
}

// clearCounters clears all counters except gauges.
func (f *front) clearCounters() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.own = regmap.AggregatorCounters{}
	if f.loop != nil {
		f.own, f.peak = aggregator.ClearOffsets(f.loop.Program, f.loop.Of.Ledger), f.loop.CountOccupied()
	}
	f.slotTime.Clear(f.cycle(), f.countOccupied())
}

// readOccupied returns the number of slots with a partial sum. peakOccupied returns its maximum.
func (f *front) readOccupied() uint32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return uint32(f.countOccupied())
}

// countOccupied does the same as readOccupied, but for callers that hold the lock.
func (f *front) countOccupied() int {
	if f.loop == nil {
		return 0
	}
	return f.loop.CountOccupied()
}

func (f *front) peakOccupied() uint32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return uint32(f.peak)
}

// inspectFront writes the partial sum with the given index into the inspector's registers.
func (c *Card) inspectFront(index uint32) {
	f := &c.front
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.loop != nil {
		if p, ok := f.loop.Partial(int(index)); ok {
			c.file.ShowPartial(&p, uint64(p.Since/olaf.Time(olaf.Cycle)))
			return
		}
	}
	c.file.ShowPartial(nil, 0)
}

// Configure implements program.Program.
func (l *loop) Configure(j program.Job) error {
	l.front.mu.Lock()
	defer l.front.mu.Unlock()
	return l.Loop.Configure(j)
}

// Receive implements program.Program.
func (l *loop) Receive(now olaf.Time, from program.Port, p *program.Packet, lanes []uint32,
	out program.Out) program.Class {
	l.front.mu.Lock()
	defer l.front.mu.Unlock()
	l.front.slotTime.Update(&l.front.own, l.front.cycle(), l.CountOccupied())
	class := l.Loop.Receive(now, from, p, lanes, out)
	l.front.peak = max(l.front.peak, l.CountOccupied())
	return class
}
