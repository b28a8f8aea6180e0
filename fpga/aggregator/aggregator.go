// Package aggregator runs a switch program before an output port, for open-loop workers. Each update becomes a packet
// for one segment of its cluster's vector. Each sum becomes an update again, for the port's queue or for the workers.
package aggregator

import (
	"fmt"
	"math"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// Sink receives each sum that leaves the aggregator. Its arguments are valid only during the call.
type Sink func(now olaf.Time, u *olaf.Update, lanes []int32, inside []olaf.Contributor)

// Config configures an aggregator.
type Config struct {
	Clusters int // each is a job
	Segments int // segments per vector; 0 means 1
	H        int // number of vectors that complete a sum, at least 1
	Lanes    int // lanes stored per segment; 0 does not move gradients
	Profile  string
	// Departing sums are passed to Down, for the workers, if it is set, and otherwise to Up, for the server.
	Up, Down Sink
}

// Aggregator is the program of one switch. It also stores contributors and rewards, which updates have but the
// program's packets do not. It is not safe for concurrent use. After each cluster's first update, updates cause no
// allocation.
type Aggregator struct {
	program program.Program
	cfg     Config
	now     olaf.Time
	known   []bool
	inside  [][]olaf.Contributor // contributors by segment of the table, oldest first
	rewards []int32
	vectors int // index of the added vectors in the program's counts
	// pending and reward belong to the sender of the current packet. sent is set if the packet completed a sum.
	pending olaf.Contributor
	reward  int32
	sent    bool
	packet  program.Packet
	out     olaf.Update
	lanes   []uint32
	sums    []int32
}

// New returns an aggregator that runs the program d. The error matches program.ErrConfig.
func New(d *program.Description, cfg Config) (*Aggregator, error) {
	if cfg.H < 1 {
		return nil, fmt.Errorf("%w: H is %d; an open loop of workers needs 1 or more", program.ErrConfig, cfg.H)
	}
	if !d.Open {
		return nil, fmt.Errorf("%w: workers of %s wait for answers", program.ErrConfig, d.Name)
	}
	cfg.Segments = max(cfg.Segments, 1)
	places := cfg.Clusters * cfg.Segments
	p, err := d.New(program.Config{Slots: places, LaneMemory: cfg.Lanes, Profile: cfg.Profile})
	if err != nil {
		return nil, err
	}
	a := &Aggregator{
		program: p, cfg: cfg,
		known: make([]bool, cfg.Clusters), inside: make([][]olaf.Contributor, places), rewards: make([]int32, places),
		lanes: make([]uint32, cfg.Lanes), sums: make([]int32, cfg.Lanes), vectors: d.Ledger.Index("vectors_in"),
	}
	if a.vectors < 0 {
		return nil, fmt.Errorf("%w: %s adds no vectors", program.ErrConfig, d.Name)
	}
	return a, nil
}

// Program returns the program. Callers must not change its state.
func (a *Aggregator) Program() program.Program { return a.program }

// Clear discards all partial sums. The program counts them as discarded.
func (a *Aggregator) Clear() {
	for c, known := range a.known {
		if known {
			a.endJob(c)
		}
	}
}

// endJob removes the job of cluster c from the program, with its partial sums.
func (a *Aggregator) endJob(c int) {
	a.program.Remove(olaf.ClusterID(c))
	a.known[c] = false
	for i := c * a.cfg.Segments; i < (c+1)*a.cfg.Segments; i++ {
		a.inside[i], a.rewards[i] = a.inside[i][:0], 0
	}
}

// KeepJobs discards the partial sums of all clusters whose jobs are not in the list.
func (a *Aggregator) KeepJobs(jobs []program.Job) {
	kept := make(map[olaf.ClusterID]bool, len(jobs))
	for i := range jobs {
		kept[jobs[i].ID] = true
	}
	for c, known := range a.known {
		if known && !kept[olaf.ClusterID(c)] {
			a.endJob(c)
		}
	}
}

// Reset empties the table and sets all counts to 0. It keeps the allocated memory.
func (a *Aggregator) Reset() {
	a.Clear()
	a.program.Reset()
}

// Partial is a sum that is not yet complete.
type Partial struct {
	Place  int // index in the program's table
	Inside []olaf.Contributor
	program.Slot
}

// Partial returns the partial sum in the occupied slot with the given index, counting only occupied slots, in table
// order. ok is false if there are fewer occupied slots. The result is valid until the next call.
func (a *Aggregator) Partial(index int) (p Partial, ok bool) {
	for place, inside := range a.inside {
		if len(inside) == 0 {
			continue
		}
		if index == 0 {
			return Partial{place, inside, a.program.Slot(place)}, true
		}
		index--
	}
	return p, false
}

// Offer passes an update that arrives at now to the program, as a contribution to segment seg of its cluster's vector.
// If the update completes a sum, the sum is sent before Offer returns.
func (a *Aggregator) Offer(now olaf.Time, u *olaf.Update, seg uint64, lanes []int32) program.Class {
	c := int(u.Cluster)
	if !a.known[c] {
		a.known[c] = true
		// Configure cannot fail: one vector per cluster fits into the table, and H was checked.
		if err := a.program.Configure(program.Job{ID: u.Cluster, Fan: a.cfg.H, Base: c * a.cfg.Segments,
			Slots: a.cfg.Segments, Parent: a.cfg.Down == nil}); err != nil {
			panic(err)
		}
	}
	a.now = now
	a.packet = program.Packet{
		Kind: program.Data, Job: u.Cluster, Seg: seg, Worker: u.Worker, Count: u.Count, Lanes: u.Lanes,
		Trace: program.NewTrace(u.Worker, u.Seq, u.GenNS),
	}
	a.pending = olaf.Contributor{GenNS: u.GenNS, Seq: u.Seq, Worker: u.Worker}
	a.reward = u.Reward
	before := a.program.Counts()[a.vectors]
	a.sent = false
	class := a.program.Receive(now, program.Port(u.Worker), &a.packet, a.toWords(lanes), a)
	if !a.sent && a.program.Counts()[a.vectors] > before {
		a.addContributor(a.slotOf(u.Cluster, seg))
	}
	return class
}

// slotOf returns the table slot for a segment of a cluster's vector.
func (a *Aggregator) slotOf(c olaf.ClusterID, seg uint64) int {
	return int(c)*a.cfg.Segments + int(seg)
}

// addContributor adds the current packet's sender and reward to the sum in a slot.
func (a *Aggregator) addContributor(place int) {
	a.inside[place] = append(a.inside[place], a.pending)
	a.rewards[place] = int32(min(max(int64(a.rewards[place])+int64(a.reward), math.MinInt32), math.MaxInt32))
}

// Emit implements program.Out. It sends the sum of a segment, which includes the current packet, as an update.
func (a *Aggregator) Emit(_ program.Dest, p *program.Packet, lanes []uint32) {
	place := a.slotOf(p.Job, p.Seg)
	a.sent = true
	a.addContributor(place)
	inside := a.inside[place]
	newest := &inside[0]
	for i := range inside {
		if inside[i].GenNS >= newest.GenNS {
			newest = &inside[i]
		}
	}
	a.out = olaf.Update{
		GenNS: newest.GenNS, Seq: newest.Seq, Worker: newest.Worker, Cluster: p.Job, Count: p.Count, Lanes: p.Lanes,
		Reward: a.rewards[place],
	}
	a.sums = a.sums[:0]
	for _, v := range lanes {
		a.sums = append(a.sums, int32(v))
	}
	a.inside[place], a.rewards[place] = inside[:0], 0
	to := a.cfg.Up
	if a.cfg.Down != nil {
		to = a.cfg.Down
	}
	to(a.now, &a.out, a.sums, inside)
}

// toWords converts signed lanes to the program's unsigned words. The result is valid until the next call.
func (a *Aggregator) toWords(lanes []int32) []uint32 {
	if lanes == nil {
		return nil
	}
	a.lanes = a.lanes[:0]
	for _, v := range lanes {
		a.lanes = append(a.lanes, uint32(v))
	}
	return a.lanes
}

// Table is a snapshot of a program's table of sums. It shares no memory with the aggregator.
type Table struct {
	Program string
	H       int // number of vectors that complete a sum
	Slots   int // number of slots built
	Held    []Segment
}

// Segment is a slot with a partial sum. It is identified by the cluster and by the segment's position in the cluster's
// vector.
type Segment struct {
	Cluster olaf.ClusterID
	Seg     uint64
	Count   int
	Since   olaf.Time // time of the first contribution, on the device's clock
	Inside  []olaf.Contributor
}

// Table returns a snapshot of all partial sums, in table order.
func (a *Aggregator) Table(program string) *Table {
	t := &Table{Program: program, H: a.cfg.H, Slots: a.program.Slots()}
	for index := 0; ; index++ {
		p, ok := a.Partial(index)
		if !ok {
			return t
		}
		t.Held = append(t.Held, Segment{Cluster: p.Job, Seg: p.Seg, Count: p.Count, Since: p.Since,
			Inside: slices.Clone(p.Inside)})
	}
}
