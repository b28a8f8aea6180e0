package feed

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/testbed/lab"
	"github.com/olafctl/olaf/fpga/frame"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/xdp"
)

// LogBytes is the room of a log of decisions that a feeder takes up in time.
const LogBytes = 1 << 24

// Feeder is a testbed with all its ends in the hands of this process: those of the workers, and that of the server.
type Feeder struct {
	lab     *lab.Lab
	workers []*end // by number
	again   []*end // the same once more, for whoever repairs
	server  *netlab.Socket
	agents  []*end // of each adder, towards its parent
	replays []*xdp.SumReplayer
	told    []xdp.Comparison // of each replay, what runs have heard of
	decided []uint64         // by adder
	epoch   uint16
	in      []byte
	lanes   []uint32
	sum     []int32
	opened  []*netlab.Socket
	mishaps mishaps
	heard   int           // sums, for mishaps
	extra   atomic.Uint64 // frames that were sent twice by these
}

// mishaps are what tests let happen to frames: of every so-many-th; 0 is none.
type mishaps struct {
	drop, twice, swap int // of what workers and aggregators' agents send
	deaf              int // of what comes to the server
}

// end is a socket at the lower end of a cable, and how frames that go up there are addressed.
type end struct {
	*netlab.Socket
	outer frame.Outer
	child olaf.WorkerID // below the parent
	node  int
	frame []byte
	lanes []uint32
	sent  int    // frames, for mishaps
	later []byte // a frame that changes places with the next
}

// New takes the ends of a testbed, whose programs log their decisions with LogBytes of room. A node behind an interface cannot
// be one of them: the error matches ErrConfig.
func New(l *lab.Lab) (*Feeder, error) {
	f := &Feeder{lab: l, in: make([]byte, olaf.MaxFrame), lanes: make([]uint32, l.Lanes), sum: make([]int32, l.Lanes)}
	if err := f.open(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (f *Feeder) open() error {
	for i := range f.lab.Plan.Nodes {
		if n := &f.lab.Plan.Nodes[i]; n.Device != "" {
			return fmt.Errorf("%w: %s %s is behind interface %s; a bench plays all workers and the server, which must be namespaces", ErrConfig, n.Role, n.Name, n.Device)
		}
	}
	for _, node := range f.lab.Workers() {
		for _, list := range []*[]*end{&f.workers, &f.again} {
			e, err := f.endOf(node)
			if err != nil {
				return err
			}
			*list = append(*list, e)
		}
	}
	for _, a := range f.lab.Adders {
		e, err := f.endOf(a.Planned.Node)
		if err != nil {
			return err
		}
		f.agents = append(f.agents, e)
		children := len(f.lab.Plan.Nodes[a.Planned.Node].Down)
		r, err := xdp.NewSumReplayer(xdp.AggregatorBuild{Fragments: f.lab.Fragments, Lanes: f.lab.Lanes, Wrapping: a.Planned.Wrapping}, xdp.Parent{Job: f.lab.Job, Children: children})
		if err != nil {
			return err
		}
		f.replays = append(f.replays, r)
	}
	f.decided, f.told = make([]uint64, len(f.lab.Adders)), make([]xdp.Comparison, len(f.lab.Adders))
	var err error
	f.server, err = f.lab.Cables[f.lab.Plan.Nodes[f.lab.Server()].Down[0]].B.Packets(true)
	if err == nil {
		f.opened = append(f.opened, f.server)
	}
	return err
}

// endOf opens a socket at the lower end of a node's cable.
func (f *Feeder) endOf(node int) (*end, error) {
	up := f.lab.Plan.Nodes[node].Up
	p, c := &f.lab.Plan.Cables[up], f.lab.Cables[up]
	s, err := c.A.Packets(false)
	if err != nil {
		return nil, err
	}
	f.opened = append(f.opened, s)
	e := &end{
		Socket: s, node: node, frame: make([]byte, olaf.MaxFrame), lanes: make([]uint32, f.lab.Lanes),
		outer: frame.Outer{Addresses: olaf.Addresses{
			SrcMAC: [6]byte(c.A.MAC), DstMAC: [6]byte(c.B.MAC), SrcIP: p.Lower.As4(), DstIP: p.Upper.As4(), SrcPort: olaf.UDPPort,
		}},
	}
	for i, below := range f.lab.Plan.Nodes[p.Parent].Down {
		if below == up {
			e.child = olaf.WorkerID(i)
		}
	}
	return e, nil
}

// Close closes the ends; the testbed stays.
func (f *Feeder) Close() error {
	var errs []error
	for _, s := range f.opened {
		errs = append(errs, s.Close())
	}
	f.opened = nil
	return errors.Join(errs...)
}

// sendVector sends a fragment of a worker's vector.
func (e *end) sendVector(f *Feeder, seed uint64, epoch uint16, number, vector, fragment int) error {
	for i := range e.lanes {
		e.lanes[i] = uint32(Value(seed, number, vector, fragment*f.lab.Lanes+i))
	}
	return e.send(f, epoch, fragment, 1, e.lanes)
}

func (e *end) send(f *Feeder, epoch uint16, fragment, count int, lanes []uint32) error {
	p := program.Packet{Kind: program.Data, Job: f.lab.Job, Worker: e.child, Seg: uint64(fragment), Round: epoch, Count: uint16(count), Lanes: uint16(len(lanes))}
	p.NewestNS = uint64(time.Now().UnixNano()) % olaf.GenModulus
	n, err := frame.XAgg.Encode(e.frame, &e.outer, &p, lanes)
	if err != nil {
		return err
	}
	if f.mishaps != (mishaps{}) {
		return e.mishap(f, e.frame[:n])
	}
	return e.Send(e.frame[:n])
}

// mishap sends a frame as tests want it.
func (e *end) mishap(f *Feeder, b []byte) error {
	m := &f.mishaps
	e.sent++
	every := func(n int) bool { return n > 0 && e.sent%n == 0 }
	if every(m.drop) {
		return nil
	}
	if every(m.swap) && e.later == nil {
		e.later = append([]byte(nil), b...)
		return nil
	}
	err := e.Send(b)
	if every(m.twice) {
		err = errors.Join(err, e.Send(b))
		f.extra.Add(1)
	}
	if e.later != nil {
		err = errors.Join(err, e.Send(e.later))
		e.later = nil
	}
	return err
}

// round is one vector of all workers under way.
type round struct {
	*Feeder
	config *Config
	run    *Run
	vector int
	begun  time.Time
	there  []bool         // sums, by fragment
	came   atomic.Int64   // of them
	left   []atomic.Int64 // ns since begun when the last packet of a fragment left
	next   []atomic.Int64 // fragment that each thread sends next
	sent   atomic.Uint64
	times  []int64
}

// Run sends every vector once, and holds what came of it. A nil said tells nobody how many vectors are through.
func (f *Feeder) Run(ctx context.Context, c Config, said func()) (*Run, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	r := &Run{Seed: c.Seed, Kernel: map[string]map[string]uint64{}}
	if _, err := f.counts(); err != nil { // what was counted before is not of this run
		return nil, err
	}
	started := time.Now()
	var times []int64
	for v := range c.Vectors {
		f.epoch++
		k := &round{
			Feeder: f, config: &c, run: r, vector: v, begun: time.Now(), there: make([]bool, f.lab.Fragments),
			left: make([]atomic.Int64, f.lab.Fragments), next: make([]atomic.Int64, min(runtime.GOMAXPROCS(0), len(f.workers))),
		}
		if err := k.play(ctx); err != nil {
			return nil, err
		}
		times = append(times, k.times...)
		if said != nil {
			said()
		}
	}
	r.TookNS = int64(time.Since(started))
	r.LatencyNS = quantiles(times)
	return r, f.account(r, &c)
}

// play sends a vector on several threads, while this one takes sums.
func (k *round) play(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	g, within := errgroup.WithContext(ctx)
	for thread := range k.next {
		g.Go(func() error { return k.feed(within, thread) })
	}
	err := k.take(within)
	stop()
	if sent := g.Wait(); sent != nil && !errors.Is(sent, context.Canceled) {
		err = errors.Join(sent, err)
	}
	k.run.Sent += k.sent.Load() + k.extra.Swap(0)
	return err
}

// feed sends the fragments of every so-many-th worker, no further ahead of the sums than the window is.
func (k *round) feed(ctx context.Context, thread int) error {
	for fragment := range k.lab.Fragments {
		for int64(fragment) >= k.came.Load()+int64(k.config.Window) {
			if err := ctx.Err(); err != nil {
				return err
			}
			time.Sleep(breath)
		}
		for number := thread; number < len(k.workers); number += len(k.next) {
			k.leaves(fragment)
			if err := k.workers[number].sendVector(k.Feeder, k.config.Seed, k.epoch, number, k.vector, fragment); err != nil {
				return k.broken(fmt.Errorf("send for worker %d: %w", number, err))
			}
			k.sent.Add(1)
		}
		k.next[thread].Store(int64(fragment) + 1)
	}
	return nil
}

// breath is how long a sender lets others go on before it looks again whether sums have come.
const breath = 20 * time.Microsecond

// leaves notes that a packet of a fragment is about to leave; the last one counts.
func (k *round) leaves(fragment int) {
	now := int64(time.Since(k.begun))
	for left := &k.left[fragment]; ; {
		if old := left.Load(); old >= now || left.CompareAndSwap(old, now) {
			return
		}
	}
}

// silence is how long nothing may come before what is missing is looked for, patience how long before a run is given up.
const (
	silence  = 20 * time.Millisecond
	patience = 10 * time.Second
)

// take takes sums until all of the vector are there.
func (k *round) take(ctx context.Context) error {
	heard, looked := time.Now(), time.Now()
	for int(k.came.Load()) < k.lab.Fragments {
		n, err := k.server.Receive(k.in)
		if err == nil && k.deaf() {
			continue
		}
		if err == nil {
			if k.sumOf(k.in[:n]) {
				heard, looked = time.Now(), time.Now()
			}
			if k.came.Load()%logEvery == 0 {
				if err := k.listen(); err != nil {
					return err
				}
			}
			continue
		}
		if !errors.Is(err, netlab.ErrAgain) {
			return err
		}
		switch now := time.Now(); {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case now.Sub(heard) > patience:
			return k.stalled()
		case now.Sub(looked) > silence:
			looked = now
			if err := k.repair(); err != nil {
				return err
			}
		default:
			k.server.Wait(1)
		}
	}
	return k.listen()
}

// deaf says whether tests want a frame not to be heard.
func (k *round) deaf() bool {
	k.heard++
	return k.mishaps.deaf > 0 && k.heard%k.mishaps.deaf == 0
}

// logEvery is how many sums there are between two looks into the logs of decisions.
const logEvery = 256

func (k *round) stalled() error {
	return k.broken(fmt.Errorf("%w after %d of %d of vector %d", ErrStalled, k.came.Load(), k.lab.Fragments, k.vector))
}

// broken adds to an error what of the testbed is not as it was made.
func (k *round) broken(err error) error {
	if faults := k.lab.Faults(); len(faults) > 0 {
		return fmt.Errorf("%w; %w: %s", err, lab.ErrBroken, faults[0])
	}
	return err
}

// sumOf holds a sum against what it must be, and says whether it was one that was missing.
func (k *round) sumOf(b []byte) bool {
	v, err := frame.XAgg.Decode(b)
	if err != nil {
		return false // other traffic
	}
	var p program.Packet
	v.Packet(&p)
	if p.Job != k.lab.Job || p.Seg >= uint64(len(k.there)) || p.Round != k.epoch || k.there[p.Seg] {
		k.run.Repeated++
		return false
	}
	fragment := int(p.Seg)
	k.times = append(k.times, int64(time.Since(k.begun))-k.left[fragment].Load())
	k.there[fragment] = true
	k.run.Sums++
	lanes := k.lanes[:min(v.Lanes(k.lanes), len(k.lanes))]
	if int(p.Lanes) != k.lab.Lanes || int(p.Count) != len(k.workers) {
		k.run.Wrong += uint64(k.lab.Lanes)
	}
	for i, got := range lanes {
		want := int32(0)
		for number := range k.workers {
			want += Value(k.config.Seed, number, k.vector, fragment*k.lab.Lanes+i)
		}
		k.run.Checked++
		if int32(got) != want {
			k.run.Wrong++
		}
	}
	k.came.Add(1)
	return true
}

// listen takes up what the programs have decided.
func (f *Feeder) listen() error {
	for i, a := range f.lab.Adders {
		if err := a.Decisions(f.replays[i].Add); err != nil {
			return err
		}
	}
	return nil
}

// repair looks for what is missing of fragments that all have sent: from the lowest aggregator on, children send again that are
// not inside, and whole sums go up once more where the parent lacks them.
func (k *round) repair() error {
	sent := int64(k.lab.Fragments)
	for i := range k.next {
		sent = min(sent, k.next[i].Load())
	}
	for fragment := range int(sent) {
		if k.there[fragment] {
			continue
		}
		for i := range k.lab.Adders {
			if err := k.mend(i, fragment); err != nil {
				return err
			}
		}
	}
	return nil
}

// mend looks at one fragment at one aggregator.
func (k *round) mend(adder, fragment int) error {
	a := k.lab.Adders[adder]
	n := &k.lab.Plan.Nodes[a.Planned.Node]
	s, err := a.Fragment(fragment, k.sum)
	if err != nil {
		return err
	}
	begun := s.Lanes > 0 && s.Epoch == k.epoch
	if begun && s.Inside == len(n.Down) {
		for i := range int(s.Lanes) {
			k.lanes[i] = uint32(k.sum[i])
		}
		k.run.SumsAgain++
		return k.agents[adder].send(k.Feeder, k.epoch, fragment, s.Count, k.lanes[:s.Lanes])
	}
	for i, c := range n.Down {
		child := &k.lab.Plan.Nodes[k.lab.Plan.Cables[c].Child]
		if child.Role != lab.Worker || begun && s.Bitmap>>i&1 == 1 {
			continue
		}
		k.run.Resent++
		k.sent.Add(1)
		if err := k.again[child.Number].sendVector(k.Feeder, k.config.Seed, k.epoch, child.Number, k.vector, fragment); err != nil {
			return err
		}
	}
	return nil
}

// counts takes what every aggregator has counted, by its name.
func (f *Feeder) counts() (map[string]map[string]uint64, error) {
	all := map[string]map[string]uint64{}
	for i, a := range f.lab.Adders {
		k, err := a.Latch()
		if err != nil {
			return nil, err
		}
		f.decided[i] += decisions(k)
		all[f.lab.Plan.Nodes[a.Planned.Node].Name] = k
	}
	return all, f.listen()
}

// account completes a run by what the kernel counted and decided.
func (f *Feeder) account(r *Run, c *Config) (err error) {
	if r.Kernel, err = f.counts(); err != nil {
		return err
	}
	for i := range f.replays {
		now, before := f.replays[i].Compare(f.decided[i]), f.told[i]
		d := olaf.Decisions{Checked: int64(now.Checked - before.Checked), Equal: int64(now.Equal - before.Equal), Void: now.Void}
		if d.Checked != d.Equal {
			d.First = now.First
		}
		if n := r.Kernel[f.lab.Plan.Nodes[f.lab.Adders[i].Planned.Node].Name]["unlogged"]; n > 0 {
			d.Void = fmt.Sprintf("the log had no room for %d decisions", n)
		}
		r.Decisions.Add(&d)
		f.told[i] = now
	}
	r.judge(f.lab.Plan, c)
	r.Invalid = append(r.Invalid, f.lab.Faults()...)
	return nil
}
