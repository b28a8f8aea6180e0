package versus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/aggregator"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/internal/exactmath"
	"github.com/olafctl/olaf/internal/splitmix"
	"github.com/olafctl/olaf/pktgen"
	"github.com/olafctl/olaf/pktgen/trace"
	"github.com/olafctl/olaf/results"
)

// Load is one way of offering Table 1's updates: 27 workers in 9 clusters at 60 Gbps.
type Load struct {
	Name  string
	About string
	// arrivals lists one seed's, in order of time.
	arrivals func(seed uint64, updates int) ([]arrival, error)
}

// arrival is one update at the switch; it was generated then.
type arrival struct {
	at     olaf.Time
	worker int
	seq    uint32
}

const (
	workers  = 27
	clusters = 9
	size     = olaf.Size(256) // of OLAF's frame
	overhead = olaf.Size(24)
	offered  = 60 * olaf.Gbps
	line     = 100 * olaf.Gbps // of the port that recorded traffic comes from
	slots    = 8
)

// poisson sends with exponential gaps from every worker by itself, without the floor of a line rate.
func poisson(seed uint64, updates int) ([]arrival, error) {
	gap := float64(offered.TimeToSend(size+overhead)) * workers
	all := make([]arrival, 0, workers*updates)
	for w := range workers {
		at := 0.0
		stream := splitmix.Mix(splitmix.Mix(seed) ^ uint64(w+1)<<32)
		for k := range updates {
			unit := (float64(splitmix.Mix(stream+uint64(k))>>11) + 0.5) / (1 << 53)
			at -= float64(gap * exactmath.Log(unit))
			all = append(all, arrival{olaf.Time(at), w, uint32(k)})
		}
	}
	slices.SortFunc(all, func(a, b arrival) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.worker, b.worker)) })
	return all, nil
}

// bursts are those that Table 1 was found to fit.
func bursts(seed uint64, updates int) ([]arrival, error) {
	w, err := pktgen.PresetBurst("olaf-table1")
	if err != nil {
		return nil, err
	}
	w.UpdatesPerWorker = updates
	schedule, err := pktgen.NewSchedule(w, seed)
	if err != nil {
		return nil, err
	}
	return played(schedule), nil
}

// recorded is a training of LunarLander, scaled to the load as a bench scales it.
func recorded(seed uint64, updates int) (all []arrival, err error) {
	reader, closer, err := trace.Open(trace.Builtin + "lander8")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	recording, err := trace.Load(reader)
	if err != nil {
		return nil, err
	}
	s := trace.DefaultScaling()
	s.Placement, s.Updates, s.Rate, s.Frame, s.Line, s.Seed = pktgen.Placement{Workers: workers, Clusters: clusters}, updates, offered, size, line, seed
	scaler, err := trace.NewScaler(recording, s)
	if err != nil {
		return nil, err
	}
	schedule, err := trace.NewSchedule(scaler, scaler.Total(), line, size)
	if err != nil {
		return nil, err
	}
	all = played(schedule)
	return all, schedule.Err()
}

// played lists what a source sends.
func played(source pktgen.Source) []arrival {
	descriptors := make([]regmap.Descriptor, source.Total())
	descriptors = descriptors[:source.Fill(descriptors)]
	all := make([]arrival, len(descriptors))
	for i := range descriptors {
		d := &descriptors[i]
		all[i] = arrival{olaf.Time(d.Time) * olaf.Time(olaf.Cycle), int(d.Flow), d.Sequence}
	}
	return all
}

// Loads are what the systems are compared under.
func Loads() []Load {
	return []Load{
		{"poisson", "every worker sends with exponential gaps", poisson},
		{"bursts", "the bursts that Table 1 was fitted with", bursts},
		{"trace", "a recorded training of LunarLander, scaled", recorded},
	}
}

// Contestant is a system with what it is built with.
type Contestant struct {
	Name   string
	System *system.System
	H      int
}

// Contestants are FIFO, OLAF and iSwitch with H below, at and above a cluster's workers.
func Contestants(set system.Set) ([]Contestant, error) {
	var all []Contestant
	for _, s := range []struct {
		name string
		h    []int
	}{{"fifo", []int{0}}, {"olaf", []int{0}}, {"iswitch", []int{2, 3, 6}}} {
		found, err := set.Find(s.name)
		if err != nil {
			return nil, err
		}
		for _, h := range s.h {
			c := Contestant{Name: s.name, System: found, H: h}
			if h > 0 {
				c.Name = fmt.Sprintf("%s H=%d", s.name, h)
			}
			all = append(all, c)
		}
	}
	return all, nil
}

// Topology says whom results reach.
type Topology string

const (
	ToServer  Topology = "P" // everything crosses the link to the server, where ages are taken
	ToWorkers Topology = "S" // the switch answers by one link a worker, and ages are taken there
)

// Setting is what a comparison charges for, beside the common ground on which systems differ only in what they merge.
type Setting struct {
	Name  string // empty of the common ground
	About string
	// Frames charges every system's own frame for the same 48 lanes.
	Frames bool
	// Cycles charges the engine cycles that were fitted to Table 1, by the clock of the data path.
	Cycles bool
	// Accelerator lets updates through the paper's unit before they are added, 32 bytes in 5 ns, with room for as many frames
	// in front of it as a queue has slots.
	Accelerator bool
	// Slots are those of a queue that alone holds what waits; 0 for as many as a queue behind segments has.
	Slots int
}

// Settings are what is shown beside the common ground, with no order expected.
func Settings() []Setting {
	return []Setting{
		{Name: "own frames", About: "iSwitch's frame is 14 B shorter than OLAF's for the same 48 lanes", Frames: true},
		{Name: "fitted cycles", About: "engine cycles that were fitted to Table 1", Cycles: true},
		{Name: "accelerator", About: "iSwitch's unit takes 40 ns a frame, 60 Gbps bring one every 37 ns; 8 may wait, more are lost", Accelerator: true},
		{Name: "equal bytes", About: "FIFO and OLAF have 17 slots, the 4352 B that iSwitch's 9 segments and 8 slots take", Slots: clusters + slots},
	}
}

// overhead is what the line takes beside OLAF's frame.
func (s *Setting) overhead(of *system.System) olaf.Size {
	if !s.Frames || of.Frame == nil {
		return overhead
	}
	return overhead + of.Frame.Size(lanes) - size
}

// slots are those of a system's queue.
func (s *Setting) slots(of *system.System) int {
	if s.Slots > 0 && of.Program == nil {
		return s.Slots
	}
	return slots
}

// memory is what a contestant's switch holds frames in: here, and as it was published, of OLAF with the queue that Table 1 was
// measured with and of a program with its whole table.
func (c *Contestant) memory() (here, published olaf.Size, err error) {
	queue := slots * size
	if c.System.Program == nil {
		return queue, queue, nil
	}
	p, err := c.System.Program.New(program.Config{})
	if err != nil {
		return 0, 0, err
	}
	return queue + clusters*size, p.Memory(), nil
}

// output is the port of a system at a rate, paced to the picosecond where no cycles are charged.
func (s *Setting) output(of *system.System, rate olaf.Rate, sink engine.Sink) (*engine.Port, error) {
	out := engine.Output{}
	if s.Cycles {
		var err error
		if out, err = engine.Calibrated.Output(of.Discipline, rate); err != nil {
			return nil, err
		}
	}
	out.OverheadBytes = int(s.overhead(of))
	port, err := engine.NewPort(of.Discipline, engine.Config{Slots: s.slots(of), Clusters: clusters, Provenance: true}, out, sink)
	if err == nil && !s.Cycles {
		port.SetClock(engine.PicosecondClock(rate, s.overhead(of)))
	}
	return port, err
}

// inlet is what frames pass in front of a program; nil lets all pass at once.
func (s *Setting) inlet(of *system.System) *aggregator.Inlet {
	if !s.Accelerator {
		return nil
	}
	unit := *of.Unit
	unit.Room = slots
	return aggregator.NewInlet(unit)
}

// lanes are those of OLAF's frame.
const lanes = int(size-olaf.HeaderBytes) / olaf.LaneBytes

// Cell is one contestant at one rate, over the seeds.
type Cell struct {
	Newest, Oldest, Loss []results.Float
}

// outlet is where updates end: it keeps the age of every reader and counts what arrived.
type outlet struct {
	newest, oldest []results.Age
	arrived        uint64
}

func newOutlet(readers int) *outlet {
	return &outlet{newest: make([]results.Age, readers), oldest: make([]results.Age, readers)}
}

// take is a delivery to one reader.
func (o *outlet) take(reader int, at olaf.Time, u *olaf.Update, inside []olaf.Contributor) {
	oldest := u.GenNS
	for i := range inside {
		oldest = min(oldest, inside[i].GenNS)
	}
	o.newest[reader].Deliver(results.Window{}, at, stamp(u.GenNS))
	o.oldest[reader].Deliver(results.Window{}, at, stamp(oldest))
}

func stamp(ns uint64) olaf.Time { return olaf.Time(ns) * olaf.Time(olaf.Nanosecond) }

func (o *outlet) means() (newest, oldest results.Float) {
	mean := func(ages []results.Age) results.Float {
		var sum float64
		n := 0
		for i := range ages {
			if age := ages[i].MeanNS(); age.Known() {
				sum, n = sum+float64(age), n+1
			}
		}
		if n == 0 {
			return results.Missing()
		}
		return results.Float(sum / float64(n))
	}
	return mean(o.newest), mean(o.oldest)
}

// Deliver implements engine.Sink: the server has a frame.
func (o *outlet) Deliver(d *engine.Departure) {
	o.arrived += uint64(d.Frame.Update.Count)
	o.take(int(d.Frame.Update.Cluster), d.At, &d.Frame.Update, d.Frame.Contributors)
}

// downlinks are the links to the workers of a cluster, all alike, FIFO and without a limit.
type downlinks struct {
	outlet
	takes olaf.Duration
	free  []olaf.Time // by cluster: its workers' links carry the same
}

func (d *downlinks) send(now olaf.Time, u *olaf.Update, _ []int32, inside []olaf.Contributor) {
	c := int(u.Cluster)
	d.free[c] = max(d.free[c], now).Add(d.takes)
	d.arrived += uint64(u.Count)
	d.take(c, d.free[c], u, inside)
}

// play lets one seed's arrivals through a contestant's switch.
func (c *Contestant) play(all []arrival, rate olaf.Rate, topology Topology, set *Setting) (newest, oldest, loss results.Float, err error) {
	server := newOutlet(clusters)
	port, err := set.output(c.System, rate, server)
	if err != nil {
		return 0, 0, 0, err
	}
	end := server
	offer := func(now olaf.Time, u *olaf.Update) { port.Offer(now, u, nil) }
	if c.System.Program != nil {
		cfg := aggregator.Config{Clusters: clusters, H: c.H, Up: func(now olaf.Time, u *olaf.Update, lanes []int32, inside []olaf.Contributor) {
			port.OfferMerged(now, u, lanes, inside)
		}}
		if topology == ToWorkers {
			down := &downlinks{outlet: *newOutlet(clusters), takes: rate.TimeToSend(size + set.overhead(c.System)), free: make([]olaf.Time, clusters)}
			cfg.Down, end = down.send, &down.outlet
		}
		a, err := aggregator.New(c.System.Program, cfg)
		if err != nil {
			return 0, 0, 0, err
		}
		unit := set.inlet(c.System)
		offer = func(now olaf.Time, u *olaf.Update) {
			at, ok := now, true
			if unit != nil {
				at, ok = unit.Pass(now, c.System.Frame.Size(lanes))
			}
			if ok {
				a.Offer(at, u, 0, nil)
			}
		}
	}
	for i := range all {
		k := &all[i]
		offer(k.at, &olaf.Update{
			GenNS: uint64(k.at) / uint64(olaf.Nanosecond), Seq: k.seq, Cluster: olaf.ClusterID(k.worker * clusters / workers),
			Worker: olaf.WorkerID(k.worker), Count: 1, Lanes: uint16(lanes),
		})
	}
	port.Drain()
	newest, oldest = end.means()
	return newest, oldest, results.Float(100 * (1 - float64(end.arrived)/float64(len(all)))), nil
}

// traffic is the arrivals of every seed.
func (l *Load) traffic(seeds []uint64, updates int) ([][]arrival, error) {
	all := make([][]arrival, len(seeds))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, seed := range seeds {
		group.Go(func() (err error) {
			all[i], err = l.arrivals(seed, updates)
			return err
		})
	}
	return all, group.Wait()
}

// each does something for every one of some seeds, on all cores.
func each[T any](ctx context.Context, seeds []T, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range seeds {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return do(ctx, i)
		})
	}
	return group.Wait()
}

// Play is a contestant at a rate under every seed's arrivals, on all cores, in their order.
func (c *Contestant) Play(ctx context.Context, traffic [][]arrival, rate olaf.Rate, topology Topology, set *Setting) (*Cell, error) {
	n := len(traffic)
	cell := &Cell{Newest: make([]results.Float, n), Oldest: make([]results.Float, n), Loss: make([]results.Float, n)}
	return cell, each(ctx, traffic, func(_ context.Context, i int) (err error) {
		cell.Newest[i], cell.Oldest[i], cell.Loss[i], err = c.play(traffic[i], rate, topology, set)
		return err
	})
}
