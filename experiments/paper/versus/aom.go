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

// Load is a process that generates arrivals for Table 1's workload: 27 workers in 9 clusters at 60 Gbps.
type Load struct {
	Name  string
	About string
	// arrivals returns one seed's arrivals, in time order.
	arrivals func(seed uint64, updates int) ([]arrival, error)
}

// arrival is one update that arrives at the switch. The time at is also its generation time.
type arrival struct {
	at     olaf.Time
	worker int
	seq    uint32
}

const (
	workers  = 27
	clusters = 9
	size     = olaf.Size(256) // OLAF's frame
	overhead = olaf.Size(24)
	offered  = 60 * olaf.Gbps
	line     = 100 * olaf.Gbps // of the port that recorded traffic comes from
	slots    = 8
)

// poissonArrivals returns arrivals with exponentially distributed gaps for each worker. No line rate limits the gaps.
func poissonArrivals(seed uint64, updates int) ([]arrival, error) {
	gap := float64(offered.TimeToSend(size+overhead)) * workers
	all := make([]arrival, 0, workers*updates)
	for w := range workers {
		at := 0.0
		stream := splitmix.MixBits(splitmix.MixBits(seed) ^ uint64(w+1)<<32)
		for k := range updates {
			unit := (float64(splitmix.MixBits(stream+uint64(k))>>11) + 0.5) / (1 << 53)
			at -= float64(gap * exactmath.Log(unit))
			all = append(all, arrival{olaf.Time(at), w, uint32(k)})
		}
	}
	slices.SortFunc(all, func(a, b arrival) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.worker, b.worker))
	})
	return all, nil
}

// burstArrivals returns arrivals in the bursts that were fitted to Table 1.
func burstArrivals(seed uint64, updates int) ([]arrival, error) {
	w := pktgen.Table1Burst()
	w.UpdatesPerWorker = updates
	schedule, err := pktgen.NewSchedule(w, seed)
	if err != nil {
		return nil, err
	}
	return arrivalsOf(schedule), nil
}

// recordedArrivals returns the arrivals of a recorded LunarLander training run, scaled to the load as in a bench.
func recordedArrivals(seed uint64, updates int) (all []arrival, err error) {
	reader, closer, err := trace.Open(trace.Builtin + "lander8")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	recording, err := trace.LoadRecording(reader)
	if err != nil {
		return nil, err
	}
	s := trace.DefaultScaling()
	s.Placement, s.Updates, s.Rate, s.Frame, s.Line, s.Seed = pktgen.Placement{Workers: workers, Clusters: clusters},
		updates, offered, size, line, seed
	scaler, err := trace.NewScaler(recording, s)
	if err != nil {
		return nil, err
	}
	schedule, err := trace.NewSchedule(scaler, scaler.Total(), line, size)
	if err != nil {
		return nil, err
	}
	all = arrivalsOf(schedule)
	return all, schedule.Err()
}

// arrivalsOf returns the updates from a source as arrivals.
func arrivalsOf(source pktgen.Source) []arrival {
	descriptors := make([]regmap.Descriptor, source.Total())
	descriptors = descriptors[:source.Fill(descriptors)]
	all := make([]arrival, len(descriptors))
	for i := range descriptors {
		d := &descriptors[i]
		all[i] = arrival{olaf.Time(d.Time) * olaf.Time(olaf.Cycle), int(d.Flow), d.Sequence}
	}
	return all
}

// Loads returns the arrival processes that the comparison uses.
func Loads() []Load {
	return []Load{
		{"poisson", "every worker sends at exponentially distributed intervals", poissonArrivals},
		{"bursts", "the bursts that Table 1 was fitted with", burstArrivals},
		{"trace", "a recorded training of LunarLander, scaled", recordedArrivals},
	}
}

// contestant is one of the compared systems, with its parameters.
type contestant struct {
	Name   string
	System *system.System
	H      int
}

// contestants returns FIFO, OLAF, and iSwitch with values of H below, at and above the number of workers in a cluster.
func contestants(set system.Set) ([]contestant, error) {
	var all []contestant
	for _, s := range []struct {
		name string
		h    []int
	}{{"fifo", []int{0}}, {"olaf", []int{0}}, {"iswitch", []int{2, 3, 6}}} {
		found, err := set.Find(s.name)
		if err != nil {
			return nil, err
		}
		for _, h := range s.h {
			c := contestant{Name: s.name, System: found, H: h}
			if h > 0 {
				c.Name = fmt.Sprintf("%s H=%d", s.name, h)
			}
			all = append(all, c)
		}
	}
	return all, nil
}

// Topology selects whether the results are sent to the server or to the workers.
type Topology string

const (
	toServer  Topology = "P" // all results cross the link to the server, where ages are measured
	toWorkers Topology = "S" // the switch answers over one link per worker; ages are measured there
)

// setting selects costs that are added to the base setting. In the base setting, systems differ only in how they merge.
type setting struct {
	Name  string // empty for the base setting
	About string
	// Frames uses each system's own frame for the same 48 lanes.
	Frames bool
	// Cycles adds the engine cycles fitted to Table 1, at the clock of the data path.
	Cycles bool
	// Accelerator sends updates through the paper's unit before adding them: 32 bytes in 5 ns, with room for as many
	// frames as a queue has slots.
	Accelerator bool
	// Slots is the size of a queue in a system without segments; 0 for the same as behind segments.
	Slots int
}

// Settings returns the variants that are shown next to the base setting. There is no expectation about the order of
// systems in them.
func Settings() []setting {
	return []setting{
		{Name: "own frames", About: "iSwitch's frame is 14 B shorter than OLAF's for the same 48 lanes", Frames: true},
		{Name: "fitted cycles", About: "engine cycles that were fitted to Table 1", Cycles: true},
		{Name: "accelerator", About: "iSwitch's unit takes 40 ns per frame, but 60 Gbps bring one every 37 ns; 8 " +
			"may wait, more are lost", Accelerator: true},
		{Name: "equal bytes", About: "FIFO and OLAF have 17 slots, which take the same 4352 B as iSwitch's 9 " +
			"segments and 8 slots", Slots: clusters + slots},
	}
}

// lineOverhead returns a system's overhead on the line relative to OLAF's frame.
func (s *setting) lineOverhead(of *system.System) olaf.Size {
	if !s.Frames || of.Frame == nil {
		return overhead
	}
	return overhead + of.Frame.Size(lanes) - size
}

// queueSlots returns the number of slots in a system's queue.
func (s *setting) queueSlots(of *system.System) int {
	if s.Slots > 0 && of.Program == nil {
		return s.Slots
	}
	return slots
}

// switchMemory returns the memory for frames in a contestant's switch, as configured here and as published. For OLAF,
// the published memory is the queue with which Table 1 was measured; for a program, it is the whole table.
func (c *contestant) switchMemory() (here, published olaf.Size, err error) {
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

// newPort returns an output port for a system at the given rate. If no cycles are added, the port is paced to the
// picosecond.
func (s *setting) newPort(of *system.System, rate olaf.Rate, sink engine.Sink) (*engine.Port, error) {
	out := engine.Output{}
	if s.Cycles {
		var err error
		if out, err = engine.Calibrated.Output(of.Discipline, rate); err != nil {
			return nil, err
		}
	}
	out.OverheadBytes = int(s.lineOverhead(of))
	port, err := engine.NewPort(of.Discipline,
		engine.Config{Slots: s.queueSlots(of), Clusters: clusters, Provenance: true}, out, sink)
	if err == nil && !s.Cycles {
		port.SetClock(engine.PicosecondClock(rate, s.lineOverhead(of)))
	}
	return port, err
}

// newInlet returns the accelerator unit through which frames enter the switch program. It returns nil if the setting
// has no accelerator, so that frames enter the program at once.
func (s *setting) newInlet(of *system.System) *aggregator.Inlet {
	if !s.Accelerator {
		return nil
	}
	unit := *of.Unit
	unit.Room = slots
	return aggregator.NewInlet(unit)
}

// lanes is the number of values in OLAF's frame.
const lanes = int(size-olaf.HeaderBytes) / olaf.LaneBytes

// Cell contains the results of one contestant at one rate, per seed.
type Cell struct {
	Newest, Oldest, Loss []results.Float
}

// outlet is the end of the path. It measures the age at every reader and counts the arrivals.
type outlet struct {
	newest, oldest []results.Age
	arrived        uint64
}

func newOutlet(readers int) *outlet {
	return &outlet{newest: make([]results.Age, readers), oldest: make([]results.Age, readers)}
}

// record records the delivery of an update to one reader.
func (o *outlet) record(reader int, at olaf.Time, u *olaf.Update, inside []olaf.Contributor) {
	oldest := u.GenNS
	for i := range inside {
		oldest = min(oldest, inside[i].GenNS)
	}
	o.newest[reader].Deliver(results.Window{}, at, stampTime(u.GenNS))
	o.oldest[reader].Deliver(results.Window{}, at, stampTime(oldest))
}

func stampTime(ns uint64) olaf.Time { return olaf.Time(ns) * olaf.Time(olaf.Nanosecond) }

func (o *outlet) meanAges() (newest, oldest results.Float) {
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

// Deliver implements engine.Sink. It records a delivery to the server.
func (o *outlet) Deliver(d *engine.Departure) {
	o.arrived += uint64(d.Frame.Update.Count)
	o.record(int(d.Frame.Update.Cluster), d.At, &d.Frame.Update, d.Frame.Contributors)
}

// downlinks models the links to the workers of a cluster. They are identical, FIFO and unbounded.
type downlinks struct {
	outlet
	takes olaf.Duration
	free  []olaf.Time // by cluster, because the links to its workers carry the same frames
}

func (d *downlinks) send(now olaf.Time, u *olaf.Update, _ []int32, inside []olaf.Contributor) {
	c := int(u.Cluster)
	d.free[c] = max(d.free[c], now).Add(d.takes)
	d.arrived += uint64(u.Count)
	d.record(c, d.free[c], u, inside)
}

// play sends the arrivals of one seed through a contestant's switch.
func (c *contestant) play(all []arrival, rate olaf.Rate, topology Topology, set *setting) (newest, oldest,
	loss results.Float, err error) {
	server := newOutlet(clusters)
	port, err := set.newPort(c.System, rate, server)
	if err != nil {
		return 0, 0, 0, err
	}
	end := server
	offer := func(now olaf.Time, u *olaf.Update) { port.Offer(now, u, nil) }
	if c.System.Program != nil {
		cfg := aggregator.Config{Clusters: clusters, H: c.H,
			Up: func(now olaf.Time, u *olaf.Update, lanes []int32, inside []olaf.Contributor) {
				port.OfferMerged(now, u, lanes, inside)
			}}
		if topology == toWorkers {
			down := &downlinks{outlet: *newOutlet(clusters), takes: rate.TimeToSend(size + set.lineOverhead(c.System)),
				free: make([]olaf.Time, clusters)}
			cfg.Down, end = down.send, &down.outlet
		}
		a, err := aggregator.New(c.System.Program, cfg)
		if err != nil {
			return 0, 0, 0, err
		}
		unit := set.newInlet(c.System)
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
			GenNS: uint64(k.at) / uint64(olaf.Nanosecond), Seq: k.seq,
			Cluster: olaf.ClusterID(k.worker * clusters / workers),
			Worker:  olaf.WorkerID(k.worker), Count: 1, Lanes: uint16(lanes),
		})
	}
	port.Drain()
	newest, oldest = end.meanAges()
	return newest, oldest, results.Float(100 * (1 - float64(end.arrived)/float64(len(all)))), nil
}

// makeTraffic returns the arrivals for every seed.
func (l *Load) makeTraffic(seeds []uint64, updates int) ([][]arrival, error) {
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

// forEach calls do for each index of seeds, in parallel on all cores.
func forEach[T any](ctx context.Context, seeds []T, do func(ctx context.Context, i int) error) error {
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

// Play runs a contestant at the given rate with the arrivals of every seed, in parallel on all cores. Results are in
// the order of the seeds.
func (c *contestant) Play(ctx context.Context, traffic [][]arrival, rate olaf.Rate, topology Topology,
	set *setting) (*Cell, error) {
	n := len(traffic)
	cell := &Cell{Newest: make([]results.Float, n), Oldest: make([]results.Float, n), Loss: make([]results.Float, n)}
	return cell, forEach(ctx, traffic, func(_ context.Context, i int) (err error) {
		cell.Newest[i], cell.Oldest[i], cell.Loss[i], err = c.play(traffic[i], rate, topology, set)
		return err
	})
}
