package saturate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/experiments/testbed/lab"
	"github.com/olafctl/olaf/fpga/dataplane"
	"github.com/olafctl/olaf/fpga/frame"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/xdp"
	"github.com/olafctl/olaf/pktgen/endpoint"
	"github.com/olafctl/olaf/pktgen/process"
)

// LogBytes is the size of the decision log, in bytes. A feeder can empty a log of this size in time.
const LogBytes = 1 << 24

// Feeder is a testbed in which this process operates all ends, those of the workers and of the server.
type Feeder struct {
	lab      *lab.Lab
	workers  []*net.UDPConn // by number
	server   *net.UDPConn
	replays  []*xdp.SumReplayer
	reported []dataplane.Comparison // per replay, the result reported so far
	decided  []uint64               // by adder
	again    uint64                 // sums that agents repeated before the run
	came     []uint64               // by adder, frames from its upward cable before the run
	epoch    uint16                 // epoch of the next vector
	mishaps  process.Mishaps
	deaf     int // the server ignores every n-th sum; 0 for none

	recording *recording // nil without a recorder
}

// NewFeeder opens the ends of a testbed. The testbed's programs must log their decisions with LogBytes. If an end is
// behind an interface, the error matches ErrConfig.
func NewFeeder(l *lab.Lab) (*Feeder, error) {
	f := &Feeder{lab: l}
	if err := f.openEnds(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (f *Feeder) openEnds() (err error) {
	for i := range f.lab.Plan.Nodes {
		if n := &f.lab.Plan.Nodes[i]; n.Device != "" {
			return fmt.Errorf("%w: %s %s is behind interface %s; a bench plays all workers and the server", ErrConfig,
				n.Role, n.Name, n.Device)
		}
	}
	for _, node := range f.lab.Workers() {
		c, err := f.lab.Nodes[node].Datagrams(f.below(node))
		if err != nil {
			return err
		}
		f.workers = append(f.workers, c)
	}
	for _, a := range f.lab.Adders {
		if a.Planned.Mode == lab.User { // an aggregator in user space logs no decisions
			f.replays = append(f.replays, nil)
			continue
		}
		children := len(f.lab.Plan.Nodes[a.Planned.Node].Down)
		r, err := xdp.NewSumReplayer(xdp.AggregatorBuild{Fragments: f.lab.Fragments, Lanes: f.lab.Lanes,
			Wrapping: a.Planned.Wrapping}, xdp.Parent{Job: f.lab.Job, Children: children})
		if err != nil {
			return err
		}
		f.replays = append(f.replays, r)
	}
	f.decided, f.reported = make([]uint64, len(f.lab.Adders)), make([]dataplane.Comparison, len(f.lab.Adders))
	f.server, err = f.lab.Nodes[f.lab.Server()].Datagrams(f.above(f.topAggregator()))
	return err
}

// topAggregator returns the node of the aggregator directly below the server.
func (f *Feeder) topAggregator() int {
	return f.lab.Plan.Cables[f.lab.Plan.Nodes[f.lab.Server()].Down[0]].Child
}

// below returns the socket address at the lower end of a node's cable towards the server. above returns the address at
// the upper end.
func (f *Feeder) below(node int) netip.AddrPort {
	return netip.AddrPortFrom(f.lab.Plan.Cables[f.lab.Plan.Nodes[node].Up].Lower, olaf.UDPPort)
}

func (f *Feeder) above(node int) netip.AddrPort {
	return netip.AddrPortFrom(f.lab.Plan.Cables[f.lab.Plan.Nodes[node].Up].Upper, olaf.UDPPort)
}

// childIndex returns the index of a node among the children of its parent.
func (f *Feeder) childIndex(node int) olaf.WorkerID {
	up := f.lab.Plan.Nodes[node].Up
	return olaf.WorkerID(slices.Index(f.lab.Plan.Nodes[f.lab.Plan.Cables[up].Parent].Down, up))
}

// Close closes the ends. The testbed stays up.
func (f *Feeder) Close() error {
	var errs []error
	for _, c := range append(f.workers, f.server) {
		if c != nil {
			errs = append(errs, c.Close())
		}
	}
	f.workers, f.server = nil, nil
	return errors.Join(errs...)
}

// run is the state of one run.
type run struct {
	*Feeder
	config   *Config
	out      *Run
	job      process.Job
	begun    time.Time
	onVector func()
	left     []atomic.Int64 // ns since begun when the last packet of a fragment left
	times    []int64        // times of sums, from that packet to the server
	distinct int            // distinct sums at the server
	next     []uint16       // by fragment, the epoch of the first missing sum there
	arrived  int            // packets at the server, to count the ignored ones
	sums     expected
}

// expected caches the expected sums for the vectors that the workers currently send.
type expected struct {
	sync.Mutex
	of map[uint32][]int32
}

// worker does the work of one worker. It generates vectors from the run's seed and compares sums with the expected
// ones.
type worker struct {
	*run
	number         int
	values         []uint32
	checked, wrong uint64
}

// Compute implements process.Work.
func (w *worker) Compute(_ context.Context, vector uint32) process.Computed {
	for i := range w.values {
		w.values[i] = uint32(ValueAt(w.config.Seed, w.number, int(vector), i))
	}
	return process.Computed{Values: w.values}
}

// Apply implements process.Work. It compares the sum with the expected one.
func (w *worker) Apply(a *endpoint.Aggregate) {
	want := w.expectedSum(a.Number)
	for i, v := range a.Values {
		w.checked++
		if int32(v) != want[i] {
			w.wrong++
		}
	}
}

// expectedSum returns the sum of a vector over all workers. Only recent sums are cached, because no worker is more than
// one vector behind.
func (k *run) expectedSum(vector uint32) []int32 {
	k.sums.Lock()
	defer k.sums.Unlock()
	if s := k.sums.of[vector]; s != nil {
		return s
	}
	delete(k.sums.of, vector-2)
	s := make([]int32, k.job.Values)
	for number := range k.workers {
		for i := range s {
			s[i] += ValueAt(k.config.Seed, number, int(vector), i)
		}
	}
	k.sums.of[vector] = s
	return s
}

// Record does the same as Run and captures what the workers and the server send and receive, from before the first
// packet until after the last.
func (f *Feeder) Record(ctx context.Context, c Config, to Recorder, onVector func()) (*Run, error) {
	r, err := f.startRecording(to)
	if err != nil {
		return nil, err
	}
	f.recording = r
	run, err := f.Run(ctx, c, onVector)
	f.recording = nil
	if err != nil {
		return nil, errors.Join(err, r.at.Close())
	}
	return run, r.endRecording()
}

// Run lets all workers send all their vectors, and checks the results. If onVector is not nil, it is called after each
// completed vector. The error matches lab.ErrBroken if a cable or a program was removed.
func (f *Feeder) Run(ctx context.Context, c Config, onVector func()) (*Run, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	if onVector == nil {
		onVector = func() {}
	}
	k := &run{
		Feeder: f, config: &c, onVector: onVector, out: &Run{Seed: c.Seed, Kernel: map[string]map[string]uint64{}},
		begun: time.Now(),
		left:  make([]atomic.Int64, f.lab.Fragments), next: slices.Repeat([]uint16{f.epoch}, f.lab.Fragments),
		sums: expected{of: map[uint32][]int32{}},
		job: process.Job{ID: f.lab.Job, Workers: len(f.workers), Values: f.lab.Fragments * f.lab.Lanes,
			Lanes: f.lab.Lanes, Vectors: c.Vectors},
	}
	if _, err := f.readCounts(); err != nil { // earlier counts do not belong to this run
		return nil, err
	}
	f.again = f.countRepeated()
	var err error
	if f.came, err = f.countArrived(); err != nil {
		return nil, err
	}
	if err := f.lab.Guard(ctx, k.runAll); err != nil {
		return nil, err
	}
	k.out.TookNS, k.out.LatencyNS = int64(time.Since(k.begun)), olaf.QuantilesOf(k.times)
	f.epoch += uint16(c.Vectors)
	return k.out, f.completeRun(ctx, k.out, &c)
}

// runAll runs the workers and the server. Meanwhile it reads the logs of decisions.
func (k *run) runAll(ctx context.Context) error {
	root, err := process.NewRoot(process.RootConfig{
		Job: k.job, Group: k.lab.Group, Line: k.config.Line, Agent: k.below(k.topAggregator()),
		Workers: k.workerAddresses(),
		Codec:   &frame.Datagrams{Format: frame.XAgg},
	})
	if err != nil {
		return err
	}
	root.Accept = k.recordArrival
	var server errgroup.Group
	playing, stop := context.WithCancel(ctx)
	defer stop()
	var report *process.StationReport
	server.Go(func() (err error) {
		report, err = root.Run(playing, k.server)
		return err
	})
	played := make(chan error, 1)
	go func() { played <- k.workersPlay(playing) }()
	err = k.readLogs(played, stop)
	stop()
	if err := errors.Join(err, server.Wait()); err != nil {
		return err
	}
	k.out.Sums, k.out.Repeated = report.Counts["completed"], report.Counts["duplicate_dropped"]
	return nil
}

// followEvery is the interval at which logs of decisions and captures are read.
const followEvery = 2 * time.Millisecond

// readLogs reads the logs until all workers are done. It stops the workers if an error occurs.
func (k *run) readLogs(played <-chan error, stop func()) error {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		select {
		case err := <-played:
			return errors.Join(err, k.readDecisions())
		case <-tick.C:
			if err := k.readDecisions(); err != nil {
				stop()
				<-played
				return err
			}
		}
	}
}

// workerAddresses returns the socket addresses of the workers.
func (k *run) workerAddresses() (all []netip.AddrPort) {
	for _, node := range k.lab.Workers() {
		all = append(all, k.below(node))
	}
	return all
}

// workersPlay runs all workers until they are done.
func (k *run) workersPlay(ctx context.Context) error {
	g, within := errgroup.WithContext(ctx)
	works, reports := make([]worker, len(k.workers)), make([]process.SumsReport, len(k.workers))
	for number, conn := range k.workers {
		w := &works[number]
		*w = worker{run: k, number: number, values: make([]uint32, k.job.Values)}
		node := k.lab.Workers()[number]
		above, child := k.above(node), k.childIndex(node)
		p := &process.Player{
			Codec: &frame.Datagrams{Format: frame.XAgg, Results: true}, Work: w, Child: &child, Mishaps: k.mishaps,
			Sent: k.recordLeaving,
			To:   func(endpoint.Peer, *program.Packet) netip.AddrPort { return above },
		}
		cfg := endpoint.Config{
			Job: k.job.ID, Worker: olaf.WorkerID(number), Workers: k.job.Workers, Layout: k.job.Layout(),
			Updates: uint32(k.job.Vectors), Line: k.config.Line,
		}
		x := endpoint.XAgg{Timeout: silence, Overhead: frame.XAgg.Size(0) + system.LineOverhead, Epoch: k.epoch}
		g.Go(func() error {
			r, err := p.Run(within, conn, func(h endpoint.Host) (endpoint.Endpoint,
				error) {
				return endpoint.NewXAgg(cfg, x, h)
			})
			if err == nil {
				err = within.Err()
			}
			if err != nil {
				return fmt.Errorf("worker %d: %w", number, err)
			}
			reports[number].Report = *r
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for i := range reports {
		r := &reports[i]
		k.out.Sent += r.Data()
		k.out.Resent += r.Counts["packets_resent"]
		k.out.Checked += works[i].checked
		k.out.Wrong += works[i].wrong + r.Counts["packets_inexact"]*uint64(k.lab.Lanes)
	}
	return nil
}

// silence is the time without packets after which a worker requests missing packets.
const silence = 50 * olaf.Millisecond

// recordLeaving records the time at which a packet of a fragment is sent. The last packet counts.
func (k *run) recordLeaving(p *program.Packet) {
	if p.Kind != program.Data {
		return
	}
	now := int64(time.Since(k.begun))
	for left := &k.left[p.Seg]; ; {
		if old := left.Load(); old >= now || left.CompareAndSwap(old, now) {
			return
		}
	}
}

// recordArrival records when a sum arrives at the server for the first time. It reports whether the server should
// receive the packet.
func (k *run) recordArrival(_ olaf.Time, _ program.Port, p *program.Packet, _ []uint32) bool {
	if p.Kind != program.Data || p.Seg >= uint64(len(k.left)) {
		return true
	}
	if int16(p.Round-k.epoch) < 0 { // in flight since the previous run
		return false
	}
	if k.arrived++; k.deaf > 0 && k.arrived%k.deaf == 0 {
		return false
	}
	if int16(p.Round-k.next[p.Seg]) < 0 { // repeated; the server counts it
		return true
	}
	k.next[p.Seg] = p.Round + 1
	k.times = append(k.times, int64(time.Since(k.begun))-k.left[p.Seg].Load())
	if k.distinct++; k.distinct%k.lab.Fragments == 0 {
		k.onVector()
	}
	return true
}

// readDecisions reads the decisions that the programs logged, and the captured frames.
func (f *Feeder) readDecisions() error {
	if err := f.recording.passCaptured(); err != nil {
		return err
	}
	for i, a := range f.lab.Adders {
		if f.replays[i] == nil {
			continue
		}
		if err := a.Decisions(f.replays[i].Add); err != nil {
			return err
		}
	}
	return nil
}

// countRepeated returns the number of sums that agents have sent again.
func (f *Feeder) countRepeated() (n uint64) {
	for _, a := range f.lab.Adders {
		n += a.AgentCounts()["sums_resent"]
	}
	return n
}

// countArrived returns, for each adder, the number of frames that arrived over its cable towards the server. Frames
// that were counted as dropped there are included.
func (f *Feeder) countArrived() (came []uint64, err error) {
	for _, a := range f.lab.Adders {
		up := f.lab.Cables[f.lab.Plan.Nodes[a.Planned.Node].Up]
		from, gone := up.A.Counts()
		to, lost := up.B.Counts()
		if err := errors.Join(gone, lost); err != nil {
			return nil, err
		}
		came = append(came, to.Received+from.SendDropped)
	}
	return came, nil
}

// checkVanished marks a run as invalid if fewer frames left a cable than sums were redirected into it. Such frames
// vanish without any error if no program is attached to the other end of the cable. Repeated sums and control packets
// hide some of these losses.
func (f *Feeder) checkVanished(r *Run) error {
	came, err := f.countArrived()
	if err != nil {
		return err
	}
	for i, a := range f.lab.Adders {
		n := &f.lab.Plan.Nodes[a.Planned.Node]
		if sums, frames := r.Kernel[n.Name]["completed"], came[i]-f.came[i]; frames < sums {
			r.Invalid = append(r.Invalid, fmt.Sprintf("the cable from %s to %s: %s went in and %s came out, without a word", n.Name,
				f.lab.Plan.Nodes[f.lab.Plan.Cables[n.Up].Parent].Name, pluralOf(sums, "sum"),
				pluralOf(frames, "frame")))
		}
	}
	return nil
}

// readCounts reads and resets the counts of every aggregator. They are returned by the aggregator's name.
func (f *Feeder) readCounts() (map[string]map[string]uint64, error) {
	all := map[string]map[string]uint64{}
	for i, a := range f.lab.Adders {
		k, err := a.Latch()
		if err != nil {
			return nil, err
		}
		f.decided[i] += sumDecisions(k)
		all[f.lab.Plan.Nodes[a.Planned.Node].Name] = k
	}
	return all, f.readDecisions()
}

// settleCounts reads counts until there are no new decisions and the logs are complete. It gives up after a limited
// number of reads.
func (f *Feeder) settleCounts(ctx context.Context, r *Run) error {
	for looks := 1; ; looks++ {
		more, err := f.readCounts()
		if err != nil {
			return err
		}
		decided := uint64(0)
		for name, counts := range more {
			if r.Kernel[name] == nil {
				r.Kernel[name] = map[string]uint64{}
			}
			for class, n := range counts {
				r.Kernel[name][class] += n
			}
			decided += sumDecisions(counts)
		}
		if decided == 0 && (f.hasAllLogged() || looks >= mostLooks) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(rest):
		}
	}
}

// mostLooks is the maximum number of times that counts are read while a log is incomplete.
const mostLooks = 100

// hasAllLogged reports whether the logs and the counts contain the same decisions.
func (f *Feeder) hasAllLogged() bool {
	for i := range f.replays {
		if f.replays[i] == nil {
			continue
		}
		if c := f.replays[i].Compare(f.decided[i]); c.Void != "" {
			return false
		}
	}
	return true
}

// rest is a time without decisions that is long enough to conclude that nothing is in flight. It covers several rounds
// of an agent.
const rest = 10 * time.Millisecond

// completeRun adds the counts and the decisions of the kernel to a run.
func (f *Feeder) completeRun(ctx context.Context, r *Run, c *Config) error {
	if err := f.settleCounts(ctx, r); err != nil {
		return err
	}
	for i := range f.replays {
		if f.replays[i] == nil {
			continue
		}
		now, before := f.replays[i].Compare(f.decided[i]), f.reported[i]
		d := olaf.Decisions{Checked: int64(now.Checked - before.Checked), Equal: int64(now.Equal - before.Equal),
			Void: now.Void}
		if d.Checked != d.Equal {
			d.First = now.First
		}
		if n := r.Kernel[f.lab.Plan.Nodes[f.lab.Adders[i].Planned.Node].Name]["unlogged"]; n > 0 {
			d.Void = fmt.Sprintf("the log had no room for %d decisions", n)
		}
		r.Decisions.Add(&d)
		f.reported[i] = now
	}
	r.SumsAgain = f.countRepeated() - f.again
	r.Invalid = f.lab.Faults() // they explain other errors
	if err := f.checkVanished(r); err != nil {
		return err
	}
	r.checkRun(f.lab.Plan, c)
	return nil
}
