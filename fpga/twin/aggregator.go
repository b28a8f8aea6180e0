package twin

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/aggregator"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/regmap"
)

// builtSegments is the maximum number of partial sums in the aggregator.
const builtSegments = 4096

// frontConfig is the configuration of the aggregator block, from the registers that take effect when the queue is
// enabled, and from the build.
type frontConfig struct {
	program  uint32
	h        int
	lanes    int
	segments int // segments per cluster
}

// front is the aggregator block, which contains a switch program between VNP4-1 and the queue. If Aggregator is nil,
// updates pass unchanged. If loop is set, it is the program of closed-loop hosts, whose packets bypass the queue.
type front struct {
	*aggregator.Aggregator
	loop     *loop
	config   frontConfig
	program  *program.Description
	own      regmap.AggregatorCounters // like counters.own
	peak     int
	slotTime aggregator.SlotIntegral
	clusters int   // number of clusters that have segments
	above    above // clusters with a parent switch
	flow     *flow // newest contributor of the update being presented
}

// buildsPrograms reports whether the build includes the aggregator block.
func (c *Config) buildsPrograms() bool { return c.builtPrograms() != 1 }

// builtPrograms returns the codes of the built-in programs as a bit mask. The bit of the pass-through program is always
// set.
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

// reset sets the block to its state after power-up, in cycle now.
func (b *front) reset(now int64) {
	b.own, b.peak = regmap.AggregatorCounters{}, 0
	b.slotTime.Clear(uint64(now), 0)
	b.loop = nil
	if b.Aggregator != nil {
		b.Reset()
	}
}

// activeProgram returns the program that processes packets, or nil if there is none.
func (b *front) activeProgram() program.Program {
	switch {
	case b.loop != nil:
		return b.loop.Program
	case b.Aggregator != nil:
		return b.Program()
	}
	return nil
}

// activeLedger returns the ledger of the active program.
func (b *front) activeLedger() *olaf.Ledger {
	if b.loop != nil {
		return b.loop.Of.Ledger
	}
	return b.program.Ledger
}

// rebuildFront creates the program selected by the registers, with an empty table. If it is the same program as before,
// its counters continue.
func (t *Twin) rebuildFront(c frontConfig) error {
	b := &t.front
	if b.config == c {
		return nil
	}
	t.endSums()
	if b.activeProgram() != nil {
		b.own.Add(t.frontCounts())
	}
	if b.config.program != c.program {
		b.own = regmap.AggregatorCounters{}
		b.slotTime.Clear(uint64(t.now), 0)
	}
	*b = front{config: c, own: b.own, slotTime: b.slotTime}
	t.tables.epoch++ // a different program may have different members and formats
	d := t.cfg.programOf(c.program)
	if c.program == 0 || d == nil {
		return nil
	}
	b.program = d
	if !d.Open { // not for updates, which pass unchanged: only packets of a closed loop reach the program
		return nil
	}
	b.clusters = min(builtSegments, t.cfg.Clusters) / c.segments
	var err error
	b.Aggregator, err = aggregator.New(d, aggregator.Config{Clusters: b.clusters, Segments: c.segments, H: c.h,
		Lanes: c.lanes, Up: t.enqueueSum})
	return err
}

// partialAt returns the partial sum in the occupied segment with the given index, counting only occupied segments. ok
// is false if there are fewer occupied segments.
func (b *front) partialAt(index int) (p aggregator.Partial, ok bool) {
	switch {
	case b.loop != nil:
		return b.loop.Partial(index)
	case b.Aggregator != nil:
		return b.Partial(index)
	}
	return p, false
}

// hasSegment reports whether there is a segment for updates of the flow. It returns true if no program is active,
// because segments are then not needed.
func (b *front) hasSegment(f *flow) bool {
	return b.Aggregator == nil || int(f.cluster) < b.clusters && f.Seg < uint64(b.config.segments)
}

// knowsFormat reports whether frames of the flow are recognized by their headers. They must be in OLAF's format or in
// the format of the active program.
func (b *front) knowsFormat(f *flow) bool {
	return f.Format == 0 || b.Aggregator != nil && uint32(f.Format) == b.program.Code && f.ToS == b.program.ToS
}

// admitsWorker reports whether the program's tables permit a worker to contribute to the cluster's sums.
func (t *Twin) admitsWorker(c olaf.ClusterID, w olaf.WorkerID) bool {
	l, has := t.tables.lookup.(aggregator.Admission)
	return !has || t.front.Aggregator == nil || l.Admits(t.front.program, c, w)
}

// followTables discards the partial sums of clusters whose last member was removed from the tables, as a program does
// when a job is removed.
func (t *Twin) followTables() {
	l, has := t.tables.lookup.(aggregator.Admission)
	if !has || t.front.Aggregator == nil || t.front.occupied() == 0 {
		return
	}
	if jobs, has := l.Jobs(t.front.program); has {
		t.countDiscarded()
		t.front.KeepJobs(jobs)
	}
}

// above caches the jobs that have a parent switch. The cache is valid until the tables change.
type above struct {
	epoch uint64
	jobs  map[olaf.ClusterID]bool
}

// hasParentSwitch reports whether the program's tables name a parent switch for the cluster.
func (t *Twin) hasParentSwitch(c olaf.ClusterID) bool {
	if a := &t.front.above; a.epoch != t.tables.epoch {
		a.epoch, a.jobs = t.tables.epoch, nil
		if l, has := t.tables.lookup.(aggregator.Admission); has {
			jobs, _ := l.Jobs(t.front.program)
			a.jobs = findParents(jobs)
		}
	}
	return t.front.above.jobs[c]
}

// findParents returns the ids of the jobs that have a parent switch, as the keys of a map.
func findParents(jobs []program.Job) map[olaf.ClusterID]bool {
	up := map[olaf.ClusterID]bool{}
	for i := range jobs {
		if jobs[i].Parent {
			up[jobs[i].ID] = true
		}
	}
	return up
}

// presentUpdate passes one update of flow f to the program. If the update completes a sum, the sum reaches the queue
// immediately.
func (t *Twin) presentUpdate(f *flow, lanes []int32) {
	b := &t.front
	b.flow = f
	t.countHeld()
	b.Offer(t.queue.clockAt(t.now), &t.queue.arriving, f.Seg, lanes)
	b.peak = max(b.peak, b.Program().CountOccupied())
}

// enqueueSum appends a sum to the queue after the program has sent it to the server.
func (t *Twin) enqueueSum(_ olaf.Time, u *olaf.Update, lanes []int32, inside []olaf.Contributor) {
	if !t.recording {
		lanes = nil
	}
	if o := t.offerUpdate(t.front.flow, u, lanes, inside); o.Slot == engine.NoSlot {
		t.front.own.DroppedVectors += uint64(u.Count)
	}
}

// frontCounts returns the counters of the active program.
func (t *Twin) frontCounts() regmap.AggregatorCounters {
	return aggregator.ReadCounters(t.front.activeProgram())
}

func countRegister(i int) uint32 { return regmap.AggregatorCount0 + uint32(8*i) }

// frontTotal returns the current values of all counters of the block, including those of replaced programs.
func (t *Twin) frontTotal() regmap.AggregatorCounters {
	total := t.front.own
	if t.front.activeProgram() != nil {
		total.Add(t.frontCounts())
	}
	return total
}

// countHeld extends the occupancy integral up to now. countDiscarded does the same before sums are discarded. One of
// them must be called before every change of the occupancy, but not before a read.
func (t *Twin) countHeld() {
	t.front.slotTime.Update(&t.front.own, uint64(t.now), int(t.front.occupied()))
}

func (t *Twin) countDiscarded() {
	t.front.slotTime.Discard(&t.front.own, uint64(t.now), int(t.front.occupied()))
}

// snapshotFront latches the counter bank of the block.
func (t *Twin) snapshotFront() {
	total := t.frontTotal()
	for at := regmap.AggregatorCount0; total.At(at) != nil; at += 8 {
		t.set64(at, *total.At(at))
	}
}

// clearFront clears the counters of the block. Gauges are kept and counted as carried over.
func (t *Twin) clearFront() {
	b := &t.front
	b.own = regmap.AggregatorCounters{}
	b.slotTime.Clear(uint64(t.now), int(b.occupied()))
	p := b.activeProgram()
	if p == nil {
		return
	}
	b.own = aggregator.ClearOffsets(p, b.activeLedger())
	b.peak = p.CountOccupied()
}

// endSums discards all partial sums of the program.
func (t *Twin) endSums() {
	t.countDiscarded()
	switch b := &t.front; {
	case b.loop != nil:
		b.loop.Clear()
	case b.Aggregator != nil:
		b.Clear()
	}
}

// occupied returns the number of segments with a partial sum.
func (b *front) occupied() uint32 {
	if p := b.activeProgram(); p != nil {
		return uint32(p.CountOccupied())
	}
	return 0
}

// Table returns the contents of the program's table, or nil if there is no program. It includes all contributors, which
// the registers do not. Times count from power-up.
func (t *Twin) Table() *aggregator.Table {
	if t.front.Aggregator == nil {
		return nil
	}
	table := t.front.Table(t.front.program.Name)
	for i := range table.Held {
		table.Held[i].Since = t.queue.deviceTime(table.Held[i].Since)
	}
	return table
}

// inspectFront writes the partial sum with the given index into the inspector's registers.
func (t *Twin) inspectFront(index uint32) {
	p, ok := t.front.partialAt(int(index))
	if !ok {
		t.file.ShowPartial(nil, 0)
		return
	}
	t.file.ShowPartial(&p, uint64(cycleOf(t.queue.deviceTime(p.Since))))
}
