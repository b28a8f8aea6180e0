package closedloop

import (
	"errors"
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/pktgen/endpoint"
	"github.com/olafctl/olaf/results/metric"
)

// Result contains the measurements of one run. Times are in ns.
type Result struct {
	Hung     bool   // unfinished when no events were left, or at its limit
	Updates  uint64 // updates of the weights, at the slowest host that stores them
	Duration metric.Float

	Iteration   metric.Float // between updates of the weights, mean over the hosts that store them
	Gradient    metric.Float // Iteration divided by the gradients in an update
	Summed      metric.Float // first gradient ready → last sum at the root or the server; for synchronous jobs that have one
	Aggregation metric.Float // last gradient ready → last worker has the sum; for synchronous jobs
	Goodput     metric.Float // bit/s of gradient values that a worker sent and got back
	// Staleness of a contribution when it is applied: updates since its weights were read, and the contributions in
	// them.
	StaleUpdates, StaleVectors       metric.Float
	AoM                              [3]metric.Float // by the newest, the mean and the oldest contribution, at the workers
	OccupiedSlots, OccupiedSlotsPeak metric.Float    // slots, sum over the switches
	OccupiedBytes                    metric.Float    // memory of the held slots, mean over time
	Memory                           olaf.Size       // total memory of all tables
	// Completion is the time when a job's last worker finished, averaged over the finished jobs.
	Completion metric.Float
	// Served is the number of packets that reach servers per packet of a vector: 1 if the switch adds all, or the
	// number of workers if it adds none.
	Served              metric.Float
	Marked              uint64       // packets with a congestion mark
	Busiest             metric.Float // share of the time that the busiest wire was busy
	Frames, Lost, Bytes uint64
	// Counts of frames that were not lost: frames that arrived, arrived frames that a switch's program received, and
	// frames in flight at the end.
	Arrived, Switched, Underway uint64
	HeldLast                    int // slots at the end
	Slots                       int // total slots in all tables

	Events uint64 // events in the simulation
	// Ports contains the ports towards the root in a tree of switches, by switch; empty without one.
	Ports []Port

	Endpoints olaf.Counts // over all hosts
	Program   olaf.Counts // over all switches; empty for switches that only forward
	Below     olaf.Counts // like Program, but without the root; a tree's servers are below the switch
}

// Port contains the counts at one output of a switch.
type Port struct {
	In, Dropped, Left uint64 // frames that arrived, that found the port full, and that left or were lost on the wire
	Most              int    // maximum number waiting at once
	Busy              metric.Float
}

// Row describes one number in a Result. Reason explains why a finished run may lack the number. It is empty if every
// finished run has it.
type Row struct {
	metric.Host
	Of     func(*Result) metric.Float
	Reason string
	// Zeroed is set if earlier versions stored 0 for a missing value.
	Zeroed bool
}

// Reasons for missing numbers that more than one row uses.
const (
	noSum   = "no sum of all is made at a root or a server"
	noTable = "no switch has a table"
	noAge   = "an age takes two updates of a worker"
	noStale = "no contribution was applied"
)

// ListRows returns descriptions of all numbers in a Result, in the order of display. To add a number, add a row here.
func ListRows() []Row { return rows }

var rows = []Row{
	{metric.Host{Name: "updates", Title: "Updates", Unit: "updates", Doc: "of the weights"},
		func(r *Result) metric.Float { return metric.Float(r.Updates) }, "", false},
	{metric.OfHosts("iteration_ns"), func(r *Result) metric.Float { return r.Iteration },
		"the time between updates takes two of a host", false},
	{metric.OfHosts("gradient_ns"), func(r *Result) metric.Float { return r.Gradient },
		"the time between updates takes two of a host", false},
	{metric.OfHosts("aggregation_ns"), func(r *Result) metric.Float { return r.Aggregation },
		"no worker waits for the sum of all", false},
	{metric.Host{Name: "summed_ns", Title: "Sum at the root", Unit: "ns",
		Doc: "from the first gradient that is ready to the last sum that leaves the root, or is whole at the " +
			"server; of synchronous jobs"}, func(r *Result) metric.Float { return r.Summed }, noSum, false},
	{metric.OfHosts("goodput_bps"), func(r *Result) metric.Float { return r.Goodput }, "no update was done", false},
	{metric.OfHosts("staleness_updates"), func(r *Result) metric.Float { return r.StaleUpdates }, noStale, false},
	{metric.Host{Name: "staleness_vectors", Title: "Staleness in vectors", Unit: "vectors",
		Doc: "contributions inside these updates"}, func(r *Result) metric.Float { return r.StaleVectors }, noStale,
		false},
	{metric.Host{Name: "aom_newest_ns", Title: "AoM, newest", Unit: "ns",
		Doc: "age of the model at the workers by the newest contribution inside, first to last update"},
		func(r *Result) metric.Float { return r.AoM[newest] }, noAge, false},
	{metric.Host{Name: "aom_mean_ns", Title: "AoM, mean", Unit: "ns",
		Doc: "the same by the mean stamp of the contributions, rounded to 1 ps"},
		func(r *Result) metric.Float { return r.AoM[mean] }, noAge, false},
	{metric.Host{Name: "aom_oldest_ns", Title: "AoM, oldest", Unit: "ns", Doc: "the same by the oldest contribution"},
		func(r *Result) metric.Float { return r.AoM[oldest] }, noAge, false},
	{metric.OfHosts("slots_held"), func(r *Result) metric.Float { return r.OccupiedSlots }, noTable, true},
	{metric.OfHosts("slots_held_peak"), func(r *Result) metric.Float { return r.OccupiedSlotsPeak }, noTable, true},
	{metric.OfHosts("held_bytes"), func(r *Result) metric.Float { return r.OccupiedBytes }, noTable, true},
	{metric.OfHosts("memory_bytes"), (*Result).tableMemory, noTable, true},
	{metric.Host{Name: "busiest_wire", Title: "Busiest wire", Unit: "",
		Doc: "share of the duration that the busiest direction of a link was busy"},
		func(r *Result) metric.Float { return r.Busiest }, "no time passed", false},
	{metric.OfHosts("frames"), func(r *Result) metric.Float { return metric.Float(r.Frames) }, "", false},
	{metric.OfHosts("frames_lost"), func(r *Result) metric.Float { return metric.Float(r.Lost) }, "", false},
	{metric.OfHosts("wire_bytes"), func(r *Result) metric.Float { return metric.Float(r.Bytes) }, "", false},
	{metric.Host{Name: "jct_ns", Title: "Completion of a job", Unit: "ns",
		Doc: "until its last worker had finished, mean over jobs"}, func(r *Result) metric.Float { return r.Completion },
		"no job finished", false},
	{metric.Host{Name: "served", Title: "Packets at servers", Unit: "",
		Doc: "for each packet of a vector; missing where there is no server"},
		func(r *Result) metric.Float { return r.Served }, "there is no server", false},
	{metric.OfHosts("frames_marked"), func(r *Result) metric.Float { return metric.Float(r.Marked) }, "", false},
	{metric.Host{Name: "duration_ns", Title: "Duration", Unit: "ns", Doc: "until the last host had finished"},
		func(r *Result) metric.Float { return r.Duration }, "", false},
}

// tableMemory returns the memory of all switches' tables together. It is missing if there are no tables.
func (r *Result) tableMemory() metric.Float {
	if r.Slots == 0 {
		return metric.Missing()
	}
	return metric.Float(r.Memory)
}

// Of returns the number with the given name. It is missing if the run does not have it.
func (r *Result) Of(name string) metric.Float {
	for i := range rows {
		if rows[i].Name == name {
			return rows[i].Of(r)
		}
	}
	return metric.Missing()
}

// makeResult computes the Result of the run. The error matches olaf.ErrAccounting if an accounting identity is
// violated.
func (s *sim) makeResult() (*Result, error) {
	r := &Result{Hung: s.meter.doneHosts < len(s.hosts), Duration: nanoseconds(s.now), Events: s.events}
	if err := errors.Join(s.countEndpoints(r), s.countPrograms(r), s.countWires(r)); err != nil {
		return nil, err
	}
	s.computeTimes(r)
	s.computeJobs(r)
	if s.places != nil {
		s.computePorts(r)
	}
	return r, nil
}

// endpoints is the declaration of the hosts' counters.
var endpoints = endpoint.Describe()

func nanoseconds(ps int64) metric.Float { return metric.Float(ps) / metric.Float(olaf.Nanosecond) }

func (s *sim) countEndpoints(r *Result) error {
	r.Endpoints = olaf.NewCounts(endpoints)
	for _, h := range s.hosts {
		if err := addUp(r.Endpoints, h.end.Counts()); err != nil {
			return fmt.Errorf("host %d: %w", h.number, err)
		}
	}
	return nil
}

// addUp adds the counts of one part of the network to total. It returns an error if the part's counts do not balance.
func addUp(total olaf.Counts, values []uint64) error {
	one := olaf.NewCounts(total.Ledger())
	for i, n := range values {
		one.SetAt(i, int64(n))
		total.SetAt(i, total.At(i)+int64(n))
	}
	return one.Balance()
}

func (s *sim) countPrograms(r *Result) error {
	held, bytes, peak := 0.0, 0.0, 0
	for i := range s.switches {
		sw := &s.switches[i]
		if sw.Program == nil {
			continue
		}
		if r.Program.Ledger() == nil {
			r.Program, r.Below = olaf.NewCounts(s.ledger), olaf.NewCounts(s.ledger)
		}
		err := addUp(r.Program, sw.Program.Counts())
		if i > 0 {
			err = errors.Join(err, addUp(r.Below, sw.Program.Counts()))
		}
		if err != nil {
			return fmt.Errorf("switch %d: %w", i, err)
		}
		sw.RecordTable(s.now)
		held += sw.Table.Area
		if slots := sw.Program.Slots(); slots > 0 {
			bytes += sw.Table.Area * float64(sw.Program.Memory()) / float64(slots)
		}
		peak += sw.Table.Peak
		r.HeldLast += sw.Table.Slots
		r.Slots += sw.Program.Slots()
		r.Memory += sw.Program.Memory()
	}
	r.OccupiedSlots, r.OccupiedBytes, r.OccupiedSlotsPeak = metric.Missing(), metric.Missing(), metric.Missing()
	if r.Slots == 0 {
		return nil
	}
	if r.OccupiedSlotsPeak = metric.Float(peak); s.now > 0 {
		r.OccupiedSlots, r.OccupiedBytes = metric.Float(held/float64(s.now)), metric.Float(bytes/float64(s.now))
	}
	return nil
}

// countWires adds up the frames on all wires. Each frame must have arrived, been lost, or still be in flight.
func (s *sim) countWires(r *Result) error {
	busiest := int64(0)
	for i := range s.wires {
		w := &s.wires[i]
		r.Frames += w.Frames
		r.Lost += w.Lost
		r.Bytes += w.Bytes
		busiest = max(busiest, w.Busy)
	}
	r.Busiest = metric.Missing()
	if s.now > 0 {
		r.Busiest = metric.Float(busiest) / metric.Float(s.now)
	}
	r.Arrived, r.Switched, r.Underway = s.meter.arrived, s.meter.switched, uint64(s.meter.inFlight)
	if on := len(s.packets) - len(s.spare); on != s.meter.inFlight {
		return fmt.Errorf("%w: %d packets are in memory, %d on their way", olaf.ErrAccounting, on, s.meter.inFlight)
	}
	return nil
}

// computeTimes computes the mean times over hosts and rounds.
func (s *sim) computeTimes(r *Result) {
	var iteration, gradient, goodput metric.Series
	var ages [stamps]metric.Series
	r.Updates = ^uint64(0)
	for _, h := range s.hosts {
		k := &s.meter.hosts[h.number]
		if s.meter.countsUpdates(h) {
			r.Updates = min(r.Updates, k.updates)
			if k.updates > 1 {
				iteration.Add(metric.Float(float64(k.last-k.first) / float64(k.updates-1) / float64(olaf.Nanosecond)))
				if k.gradients > 0 {
					gradient.Add(metric.Float(float64(k.last-k.first) / float64(k.gradients) / float64(olaf.Nanosecond)))
				}
			}
		}
		if h.server {
			continue
		}
		for i := range ages {
			ages[i].Add(k.ages[i].MeanNS())
		}
		if k.last > 0 {
			bits := float64(k.updates) * float64(s.job.Layout.Values) * 8 * olaf.LaneBytes
			goodput.Add(metric.Float(bits / (float64(k.last) / float64(olaf.Second))))
		}
	}
	r.Iteration, r.Gradient, r.Goodput = iteration.Mean(), gradient.Mean(), goodput.Mean()
	for i := range ages {
		r.AoM[i] = ages[i].Mean()
	}
	s.computeSumTimes(r)
	r.StaleUpdates, r.StaleVectors = metric.Missing(), metric.Missing()
	if n := s.meter.stale.contributions; n > 0 {
		r.StaleUpdates, r.StaleVectors = metric.Float(s.meter.stale.updates/n), metric.Float(s.meter.stale.vectors/n)
	}
}

// computeSumTimes computes two mean times over all sums: the time until the sum was complete, and the time until all
// workers had received it.
func (s *sim) computeSumTimes(r *Result) {
	var aggregation, summed metric.Series
	for i, at := range s.meter.summed {
		if at > 0 {
			summed.Add(metric.Float(float64(at-s.meter.begun[i]) / float64(olaf.Nanosecond)))
		}
	}
	r.Summed = summed.Mean()
	for i := range s.meter.complete {
		if s.meter.complete[i] > 0 {
			aggregation.Add(metric.Float(float64(s.meter.complete[i]-s.meter.ready[i]) / float64(olaf.Nanosecond)))
		}
	}
	r.Aggregation = aggregation.Mean()
}

// computeJobs fills in the measurements of each job.
func (s *sim) computeJobs(r *Result) {
	var completion metric.Series
	for i := range s.meter.jobs {
		if k := &s.meter.jobs[i]; k.left == 0 {
			completion.Add(nanoseconds(k.end))
		}
	}
	r.Completion, r.Served, r.Marked = completion.Mean(), metric.Missing(), s.meter.marked
	if s.ends > s.jobs*s.workers && r.Updates > 0 {
		packets := float64(s.jobs) * float64(s.job.Packets()) * float64(s.job.Updates)
		r.Served = metric.Float(float64(s.meter.served) / packets)
	}
}
