package twin

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/aggregator"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/regmap"
)

// builtSegments is how many partial sums the aggregator block holds.
const builtSegments = 4096

// frontConfig is what the idle registers of the aggregator say, and what the build adds.
type frontConfig struct {
	program  uint32
	h        int
	lanes    int
	segments int // of each cluster's vector
}

// front is the aggregator block: a switch program between VNP4-1 and the queue. Without an Aggregator updates pass on. A loop
// is the program of hosts that wait for answers, whose packets reach no queue.
type front struct {
	*aggregator.Aggregator
	loop     *loop
	config   frontConfig
	program  *program.Description
	own      regmap.AggregatorCounters // as the own ones of counters
	peak     int
	held     aggregator.Held
	clusters int   // that there are segments for
	above    above // which of them have a switch above
	flow     *flow // of the update at hand, the newest inside of what it completes
}

// buildsPrograms says whether the block is there.
func (c *Config) buildsPrograms() bool { return c.builtPrograms() != 1 }

// builtPrograms are the programs' codes as bits. That of passing on is always among them.
func (c *Config) builtPrograms() uint32 {
	bits := uint32(1)
	for i := range c.Programs {
		bits |= 1 << c.Programs[i].Code
	}
	return bits
}

func (c *Config) programOf(code uint32) *program.Description {
	for i := range c.Programs {
		if c.Programs[i].Code == code {
			return &c.Programs[i]
		}
	}
	return nil
}

// reset empties the block at power-up, which is cycle now.
func (b *front) reset(now int64) {
	b.own, b.peak = regmap.AggregatorCounters{}, 0
	b.held.Clear(uint64(now), 0)
	b.loop = nil
	if b.Aggregator != nil {
		b.Reset()
	}
}

// running is the program that counts; nil where none does.
func (b *front) running() program.Program {
	switch {
	case b.loop != nil:
		return b.loop.Program
	case b.Aggregator != nil:
		return b.Program()
	}
	return nil
}

// ledger is what the program counts that runs.
func (b *front) ledger() *olaf.Ledger {
	if b.loop != nil {
		return b.loop.Of.Ledger
	}
	return b.program.Ledger
}

// rebuildFront makes the program that the registers ask for, with an empty table. Counts of the one before go on if it is the
// same program.
func (t *Twin) rebuildFront(c frontConfig) error {
	b := &t.front
	if b.config == c {
		return nil
	}
	t.endSums()
	if b.running() != nil {
		b.own.Add(t.frontCounts())
	}
	if b.config.program != c.program {
		b.own = regmap.AggregatorCounters{}
		b.held.Clear(uint64(t.now), 0)
	}
	*b = front{config: c, own: b.own, held: b.held}
	t.tables.epoch++ // another program, or none: other members and formats
	d := t.cfg.programOf(c.program)
	if c.program == 0 || d == nil {
		return nil
	}
	b.program = d
	if !d.Open { // updates are no packets of it, and pass on; its hosts' are a loop's
		return nil
	}
	b.clusters = min(builtSegments, t.cfg.Clusters) / c.segments
	var err error
	b.Aggregator, err = aggregator.New(d, aggregator.Config{Clusters: b.clusters, Segments: c.segments, H: c.h,
		Lanes: c.lanes, Up: t.enqueueSum})
	return err
}

// partial is what the block holds at a place among what it holds.
func (b *front) partial(index int) (p aggregator.Partial, ok bool) {
	switch {
	case b.loop != nil:
		return b.loop.Partial(index)
	case b.Aggregator != nil:
		return b.Partial(index)
	}
	return p, false
}

// takes says whether there is a segment for an update of a flow, where it needs one.
func (b *front) takes(f *flow) bool {
	return b.Aggregator == nil || int(f.cluster) < b.clusters && f.Seg < uint64(b.config.segments)
}

// understands says whether frames are of a format that the program, or OLAF's queue alone, tells by their headers.
func (b *front) understands(f *flow) bool {
	return f.Format == 0 || b.Aggregator != nil && uint32(f.Format) == b.program.Code && f.ToS == b.program.ToS
}

// admits says whether the program's tables let a worker contribute to its cluster's sums.
func (t *Twin) admits(c olaf.ClusterID, w olaf.WorkerID) bool {
	l, has := t.tables.lookup.(aggregator.Admission)
	return !has || t.front.Aggregator == nil || l.Admits(t.front.program, c, w)
}

// refuse counts an update of a worker that nobody admitted.
func (b *front) refuse() { *b.own.At(countRegister(int(b.program.Stranger)))++ }

// followTables ends the sums of clusters whose last member a controller took out, as the program does with a job that is removed.
func (t *Twin) followTables() {
	l, has := t.tables.lookup.(aggregator.Admission)
	if !has || t.front.Aggregator == nil || t.front.occupied() == 0 {
		return
	}
	if jobs, has := l.Jobs(t.front.program); has {
		t.discards()
		t.front.Keep(jobs)
	}
}

// above are the jobs whose sums go up to a switch above, as the tables say at an epoch.
type above struct {
	epoch uint64
	jobs  map[olaf.ClusterID]bool
}

// rises says whether the program's tables name a switch above a cluster's.
func (t *Twin) rises(c olaf.ClusterID) bool {
	if a := &t.front.above; a.epoch != t.tables.epoch {
		a.epoch, a.jobs = t.tables.epoch, nil
		if l, has := t.tables.lookup.(aggregator.Admission); has {
			jobs, _ := l.Jobs(t.front.program)
			a.jobs = parents(jobs)
		}
	}
	return t.front.above.jobs[c]
}

// parents are those of some jobs that have a switch above.
func parents(jobs []program.Job) map[olaf.ClusterID]bool {
	up := map[olaf.ClusterID]bool{}
	for i := range jobs {
		if jobs[i].Parent {
			up[jobs[i].ID] = true
		}
	}
	return up
}

// present brings one update of f to the program; what it completes reaches the queue at once.
func (t *Twin) present(f *flow, lanes []int32) {
	b := &t.front
	b.flow = f
	t.presents()
	b.Offer(t.queue.time(t.now), &t.queue.arriving, f.Seg, lanes)
	b.peak = max(b.peak, b.Program().Occupied())
}

// enqueueSum takes a sum that the program sends towards the server.
func (t *Twin) enqueueSum(_ olaf.Time, u *olaf.Update, lanes []int32, inside []olaf.Contributor) {
	if !t.recording {
		lanes = nil
	}
	if o := t.enqueue(t.front.flow, u, lanes, inside); o.Slot == engine.NoSlot {
		t.front.own.DroppedVectors += uint64(u.Count)
	}
}

// frontCounts is what the present program has counted.
func (t *Twin) frontCounts() regmap.AggregatorCounters { return aggregator.Counters(t.front.running()) }

func countRegister(i int) uint32 { return regmap.AggregatorCount0 + uint32(8*i) }

// frontTotal is every counter of the block now.
func (t *Twin) frontTotal() regmap.AggregatorCounters {
	total := t.front.own
	if t.front.running() != nil {
		total.Add(t.frontCounts())
	}
	return total
}

// presents and discards count what was held up to now. They come before anything that may change that, and not before a look.
func (t *Twin) presents() {
	t.front.held.Update(&t.front.own, uint64(t.now), int(t.front.occupied()))
}

func (t *Twin) discards() {
	t.front.held.Discard(&t.front.own, uint64(t.now), int(t.front.occupied()))
}

// snapshotFront latches the block's bank.
func (t *Twin) snapshotFront() {
	total := t.frontTotal()
	for at := regmap.AggregatorCount0; total.At(at) != nil; at += 8 {
		t.set64(at, *total.At(at))
	}
}

// clearFront starts the block's counters anew; levels stay, and what they stand at is carried over.
func (t *Twin) clearFront() {
	b := &t.front
	b.own = regmap.AggregatorCounters{}
	b.held.Clear(uint64(t.now), int(b.occupied()))
	p := b.running()
	if p == nil {
		return
	}
	b.own = aggregator.Cleared(p, b.ledger())
	b.peak = p.Occupied()
}

// endSums discards the partial sums.
func (t *Twin) endSums() {
	t.discards()
	switch b := &t.front; {
	case b.loop != nil:
		b.loop.Clear()
	case b.Aggregator != nil:
		b.Clear()
	}
}

// occupied is how many segments hold a partial sum.
func (b *front) occupied() uint32 {
	if p := b.running(); p != nil {
		return uint32(p.Occupied())
	}
	return 0
}

// Table is what the program in front of the queue holds now, with who is inside, which registers do not say; nil where none
// is. Times are those since power-up.
func (t *Twin) Table() *aggregator.Table {
	if t.front.Aggregator == nil {
		return nil
	}
	table := t.front.Table(t.front.program.Name)
	for i := range table.Held {
		table.Held[i].Since = t.queue.device(table.Held[i].Since)
	}
	return table
}

// inspectFront fills the inspector's registers with a partial sum.
func (t *Twin) inspectFront(index uint32) {
	p, ok := t.front.partial(int(index))
	if !ok {
		t.file.ShowPartial(nil, 0)
		return
	}
	t.file.ShowPartial(&p, uint64(cycleOf(t.queue.device(p.Since))))
}
