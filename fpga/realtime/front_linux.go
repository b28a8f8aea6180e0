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

// builtSegments is how many partial sums the inspector reaches.
const builtSegments = 4096

// front is the aggregator block: the program that hosts wait for, whose packets pass no queue. It is presented with packets by
// one thread, and looked at by another.
type front struct {
	mu    Lock
	loop  *aggregator.Loop          // nil where nobody waits
	own   regmap.AggregatorCounters // of loops that are over, less what was cleared
	code  uint32                    // of the program that these are of
	peak  int
	cycle func() uint64 // the card's clock
	held  aggregator.Held
}

// ends discards what the loop holds, under the lock.
func (f *front) ends() {
	f.held.Discard(&f.own, f.cycle(), f.loop.Occupied())
	f.loop.Clear()
}

// builtPrograms are the programs' codes as bits. That of passing on is always among them.
func (b *Backend) builtPrograms() uint32 {
	bits := uint32(1)
	for i := range b.Programs {
		bits |= 1 << b.Programs[i].Code
	}
	return bits
}

func (b *Backend) programOf(code uint32) program.Description {
	for i := range b.Programs {
		if b.Programs[i].Code == code {
			return b.Programs[i]
		}
	}
	return pass.Describe()
}

// loop is the program as hosts have it; their packets come at times of their own.
type loop struct {
	*aggregator.Loop
	front *front
}

var _ fpga.Looper = (*Card)(nil)

// AddsUpdates is false: programs are for hosts that wait, and no update of the generator passes one.
func (c *Card) AddsUpdates() bool { return false }

// OpenLoop begins a loop through the program that register aggregator.program names. Packets may be presented by one thread while
// another reads registers.
func (c *Card) OpenLoop(build program.Config) (program.Program, error) {
	if err := c.fault(); err != nil {
		return nil, err
	}
	if !c.enabled || c.frozen {
		return nil, fmt.Errorf("%w: the data path is stopped; enable the queue", fpga.ErrRefused)
	}
	of := c.backend.programOf(c.file.Reg(regmap.AggregatorProgram))
	p, err := of.New(build)
	if err != nil {
		return nil, err
	}
	f := &c.front
	f.end()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.peak, f.loop = 0, &aggregator.Loop{Program: p, Of: &of, Tables: c.admission}
	return &loop{f.loop, f}, nil
}

// admission is what the tables know of jobs now; nil where they know nothing.
func (c *Card) admission() aggregator.Admission {
	if c.tables == nil {
		return nil
	}
	return c.tables()
}

// Admit lets the tables say which jobs hosts may have; nil lets them have all.
func (c *Card) Admit(tables func() aggregator.Admission) { c.tables = tables }

// end ends the loop, whose counts stay.
func (f *front) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.loop != nil {
		f.ends()
		f.own.Add(aggregator.Counters(f.loop.Program))
		f.loop = nil
	}
}

// adopt ends the loop as the registers begin to name a program, which may be another one: its counts begin at 0.
func (f *front) adopt(code uint32) {
	f.end()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.code != code {
		f.code, f.own = code, regmap.AggregatorCounters{}
		f.held.Clear(f.cycle(), 0)
	}
}

// clear discards the partial sums.
func (f *front) clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.loop != nil {
		f.ends()
	}
}

// total is every counter now.
func (f *front) total() regmap.AggregatorCounters {
	f.mu.Lock()
	defer f.mu.Unlock()
	total := f.own
	if f.loop != nil {
		total.Add(aggregator.Counters(f.loop.Program))
	}
	return total
}

// anew starts the counters anew.
func (f *front) anew() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.own = regmap.AggregatorCounters{}
	if f.loop != nil {
		f.own, f.peak = aggregator.Cleared(f.loop.Program, f.loop.Of.Ledger), f.loop.Occupied()
	}
	f.held.Clear(f.cycle(), f.slots())
}

// occupied is how many slots hold a partial sum, and most how many did at a time.
func (f *front) occupied() uint32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return uint32(f.slots())
}

// slots is occupied under the lock.
func (f *front) slots() int {
	if f.loop == nil {
		return 0
	}
	return f.loop.Occupied()
}

func (f *front) most() uint32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return uint32(f.peak)
}

// inspectFront fills the inspector's registers with a partial sum.
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
	l.front.held.Update(&l.front.own, l.front.cycle(), l.Occupied())
	class := l.Loop.Receive(now, from, p, lanes, out)
	l.front.peak = max(l.front.peak, l.Occupied())
	return class
}
