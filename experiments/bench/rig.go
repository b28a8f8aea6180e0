package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/pktgen"
	"github.com/olafctl/olaf/results"
)

// Rig is one card of a testbed, prepared for the runs of a plan. It is not safe for concurrent use.
type Rig struct {
	testbed.Card
	Generator *pktgen.Generator
	Plan      *Plan
	accounts  []*fpga.Account // by configuration
	tables    []built         // by configuration, for a program in front of the queue
	config    int             // the last prepared configuration
	wire      pktgen.Wire     // format of the loaded flows
	loaded    bool            // flows are loaded
	traffic   traffic
	span      olaf.Duration // when the last frame of the loaded traffic is due
	discarded []olaf.Observation
}

// Rig prepares a card for the plan's runs. Close releases their traffic and leaves the card open. Rig also stops a
// running generator. That is safe, because this process has exclusive access and the owner must be gone.
func (p *Plan) Rig(card testbed.Card) (*Rig, error) {
	accounts, tables := make([]*fpga.Account, len(p.Configs)), make([]built, len(p.Configs))
	for i := range p.Configs {
		err := p.checkDevice(card.Device, &p.Configs[i])
		if err != nil {
			return nil, err
		}
		if accounts[i], err = fpga.NewAccount(p.Declaration(&p.Configs[i]).Ledger); err != nil {
			return nil, err
		}
		if tables[i], err = p.readTable(card.Device, &p.Configs[i]); err != nil {
			return nil, err
		}
	}
	generator := pktgen.NewGenerator(card.Device)
	state, err := generator.State()
	if err == nil && state.Busy() {
		err = generator.Abort()
	}
	if err == nil {
		err = feedQueue(card.Device)
	}
	if err != nil {
		return nil, fmt.Errorf("the generator: %w", err)
	}
	t, err := p.Spec.newTraffic()
	if err != nil {
		return nil, err
	}
	return &Rig{Card: card, Generator: generator, Plan: p, accounts: accounts, tables: tables, traffic: t}, nil
}

// feedQueue directs the generator's frames to the device's queue if they would otherwise leave on the wire. It does
// nothing on a device with an older register map, which offers no choice.
func feedQueue(dev fpga.Device) error {
	if able, err := fpga.HasGeneratorControl(dev); err != nil || !able {
		return err
	}
	v, err := dev.Read32(regmap.GeneratorControl)
	if err != nil || v&regmap.GeneratorControlWire == 0 {
		return err
	}
	return dev.Write32(regmap.GeneratorControl, v&^regmap.GeneratorControlWire)
}

// checkDevice checks that a device can run a configuration: that it supports closed-loop hosts or ACKs if they are
// needed, and that it contains the switch program in front of the queue.
func (p *Plan) checkDevice(dev fpga.Device, c *Config) error {
	if p.Spec.Loop != nil {
		return checkLooper(dev, c)
	}
	if _, answers := dev.(testbed.Answerer); p.Spec.Control != nil && !answers {
		return fmt.Errorf("transmission control: %w: %s does not answer its generator's updates with ACKs; host: does",
			testbed.ErrUnsupported, dev.Identity().Address)
	}
	if !c.system.Adds() {
		return nil
	}
	if err := fpga.CheckProgramBuilt(dev, c.system.Program); err != nil {
		return err
	}
	built, err := dev.Read32(regmap.AggregatorBuiltSlots)
	w := &p.Spec.Workload
	if segments := w.Segments(); err == nil && w.Clusters*segments > int(built) {
		each := "its own segment"
		if segments > 1 {
			each = fmt.Sprintf("%d segments each", segments)
		}
		return fmt.Errorf("%w: %s adds each cluster up in %s; there are %d clusters, and %s was built with %d segments",
			fpga.ErrRefused, c.Queue, each, w.Clusters, dev.Identity().Address, built)
	}
	return err
}

// built is the size of a switch program's table in front of the queue, as it was built into the device.
type built struct {
	slots  int
	memory olaf.Size
}

// readTable reads the size of the program's table from a device. It returns zero if the configuration has no program
// there.
func (p *Plan) readTable(dev fpga.Device, c *Config) (t built, err error) {
	if p.Spec.Loop != nil || !c.system.Adds() {
		return t, nil
	}
	slots, err := dev.Read32(regmap.AggregatorBuiltSlots)
	if err != nil {
		return t, err
	}
	whole, err := c.system.Program.New(program.Config{Slots: int(slots)})
	if err != nil {
		return t, err
	}
	return built{whole.Slots(), whole.Memory()}, nil
}

// Close releases the traffic of the loaded seeds.
func (r *Rig) Close() error { return r.traffic.Close() }

// Load programs the generator with the traffic for a seed, and returns the number of updates per worker.
func (r *Rig) Load(ctx context.Context, seed int) (updates []int64, err error) {
	source, err := r.traffic.Load(r.Plan.Seeds[seed])
	if err != nil {
		return nil, err
	}
	w := &r.Plan.Spec.Workload
	counted := &tallied{Source: source, segments: w.Segments(), updates: make([]int64, w.Workers)}
	job := r.Plan.generatorJob(counted)
	if job.Wire, err = r.Plan.wireOn(r.Device, &r.Plan.Configs[r.config]); err != nil {
		return nil, err
	}
	if err := r.Generator.Program(ctx, job); err != nil {
		return nil, fmt.Errorf("%s: program the generator: %w", r.Device.Identity().Address, err)
	}
	r.wire, r.loaded, r.span = job.Wire, true, counted.span
	return counted.updates, nil
}

// describeFlows rewrites the loaded flows in a configuration's frame format.
func (r *Rig) describeFlows(ctx context.Context, c *Config) error {
	wire, err := r.Plan.wireOn(r.Device, c)
	if err != nil || !r.loaded || wire == r.wire {
		return err
	}
	job := r.Plan.generatorJob(nil)
	job.Wire = wire
	if err := r.Generator.WriteFlows(ctx, job); err != nil {
		return fmt.Errorf("%s: program the generator: %w", r.Device.Identity().Address, err)
	}
	r.wire = wire
	return nil
}

// describeHosts sets the flows to the identities and the frame format of the hosts in a closed loop. The generator
// sends nothing for these hosts.
func (r *Rig) describeHosts(ctx context.Context, c *Config, parts *system.Parts) error {
	wire, err := r.Plan.wireOn(r.Device, c)
	if err != nil || wire == (pktgen.Wire{}) { // nothing for a card to parse
		return err
	}
	full := program.Packet{Kind: program.Data, Job: closedloop.FirstJob, Lanes: uint16(parts.PerPacket)}
	job := pktgen.Job{Placement: r.Plan.Spec.Workload.Placement, Addressing: pktgen.DefaultAddressing(),
		Size: parts.FrameSize(&full, false), Wire: wire}
	if err := r.Generator.WriteFlows(ctx, job); err != nil {
		return fmt.Errorf("describe the hosts: %w", err)
	}
	return nil
}

// wireOn returns the frame format for a card. It is the switch program's format, or OLAF's without a program. A card
// that supports only OLAF's format is not configured.
func (p *Plan) wireOn(dev fpga.Device, c *Config) (pktgen.Wire, error) {
	if p.Spec.Loop == nil && !c.system.Adds() {
		return pktgen.Wire{}, nil
	}
	capabilities, err := dev.Read32(regmap.CommonCapabilities)
	if err != nil || capabilities&regmap.CommonCapabilitiesWireFormats == 0 {
		return pktgen.Wire{}, err
	}
	d := c.system.SwitchProgram()
	return pktgen.Wire{Format: uint8(d.Code), ToS: d.ToS}, nil
}

// tallied is a source that counts the updates of each worker while they are loaded.
type tallied struct {
	pktgen.Source
	segments int
	updates  []int64 // by worker
	span     olaf.Duration
}

// Fill implements pktgen.Source.
func (c *tallied) Fill(dst []regmap.Descriptor) int {
	n := c.Source.Fill(dst)
	for i := range dst[:n] {
		if w, segment := int(dst[i].Flow)/c.segments, int(dst[i].Flow)%c.segments; w < len(c.updates) && segment == 0 {
			c.updates[w]++
		}
		c.span = olaf.Duration(dst[i].Time) * olaf.Cycle
	}
	return n
}

// Prepare configures the queue for one of the plan's configurations, empties the capture and clears all counters.
func (r *Rig) Prepare(ctx context.Context, config int) error {
	r.config = config
	queue, err := r.Plan.queueOn(r.Device, &r.Plan.Configs[config])
	if err != nil {
		return err
	}
	if err := r.describeFlows(ctx, &r.Plan.Configs[config]); err != nil {
		return err
	}
	if err := fpga.ConfigureQueue(ctx, r.Device, queue); err != nil {
		return err
	}
	r.discarded = r.Tap.Drain(r.discarded[:0])
	return nil
}

// Snapshot reads the device's counters, including those of the switch program if the configuration has one.
func (r *Rig) Snapshot() (fpga.Counters, error) {
	if r.Plan.Spec.Loop != nil || r.Plan.Configs[r.config].system.Adds() {
		return fpga.SnapshotProgram(r.Device)
	}
	return fpga.Snapshot(r.Device)
}

// Account combines the card's counters with the number of captured frames.
func (r *Rig) Account(c *fpga.Counters, observed int64) olaf.Counts {
	counts := r.accounts[r.config].Counts(c)
	counts.Add("received", observed)
	counts.Add("capture_lost", counts.Of("delivered")-observed)
	if t := &r.tables[r.config]; t.slots > 0 {
		counts.Add("slots_built", int64(t.slots))
		counts.Add("memory_bytes", int64(t.memory))
	}
	return counts
}

// queueOn returns the settings of a device's queue for one configuration. Provenance is left out if the card does not
// support it.
func (p *Plan) queueOn(dev fpga.Device, c *Config) (fpga.QueueConfig, error) {
	queue := p.queueConfig(c)
	capabilities, err := dev.Read32(regmap.CommonCapabilities)
	queue.Provenance = queue.Provenance && capabilities&regmap.CommonCapabilitiesProvenance != 0
	return queue, err
}

// predictOnTwin runs spec's plan on the twin. It omits engine cycles, because real wires have none.
func predictOnTwin(ctx context.Context, spec Spec, o *Options) ([][]results.Run, error) {
	spec.Profile, spec.DequeueCycles, spec.MergeCycles = engine.Ideal, nil, nil
	plan, err := NewPlan(spec)
	if err != nil {
		return nil, err
	}
	plan.Declared = o.Declared
	bed, err := testbed.OpenTestbed(ctx, "",
		testbed.OpenOptions{Access: testbed.Access{Programs: spec.Systems.Programs()},
			Cards: 1}) // the twin alone
	if err != nil {
		return nil, err
	}
	outcome, err := RunPlan(ctx, plan, bed, NewStream())
	if err = errors.Join(err, bed.Close()); err != nil {
		return nil, fmt.Errorf("the plan on the twin: %w", err)
	}
	return outcome.Runs, nil
}

// compareWithTwin compares a measured run with two runs of the twin: the run of the same plan, whose index there is
// planned, and a run with the logged arrivals.
func (b *station) compareWithTwin(id RunID, planned int, measured *results.Run) error {
	log, err := logOf(b.Device)
	if err != nil {
		return err
	}
	arrivals, err := log.Arrivals()
	if err != nil {
		return err
	}
	twin, err := b.plan.replayArrivals(&b.plan.Configs[id.Config], arrivals, measured.Counters)
	if err != nil {
		return err
	}
	measured.Compare(&b.planned[id.Config][planned], twin)
	return nil
}

// logOf returns the device's log of the arrivals at its queue.
func logOf(dev fpga.Device) (fpga.ArrivalLog, error) {
	log, ok := fpga.FindArrivalLog(dev)
	if !ok {
		return nil, fmt.Errorf("--beside: %w: %s does not log what reached its queue", testbed.ErrUnsupported,
			dev.Identity().Address)
	}
	return log, nil
}

// replayArrivals sends logged arrivals through a queue with a cycle-accurate output. The result contains the original
// run's counts; only its ages come from the replay.
func (p *Plan) replayArrivals(c *Config, arrivals []fpga.Arrival, counts olaf.Counts) (*results.Run, error) {
	q := p.queueConfig(c)
	observer := &observed{results.NewCollector(p.measureConfig(c))}
	port, err := engine.NewPort(q.Discipline, engine.Config{
		Slots: q.Depth, Clusters: p.Spec.Workload.Clusters, RewardFilter: q.RewardFilter,
		RewardThreshold: q.RewardThreshold, Provenance: true,
	}, engine.Output{Rate: q.Output.Rate, OverheadBytes: q.Output.OverheadBytes}, observer)
	if err != nil {
		return nil, err
	}
	for i := range arrivals {
		port.Offer(arrivals[i].At, &arrivals[i].Update, nil)
	}
	port.Drain()
	run := observer.collector.Finish(counts)
	return &run, nil
}

// observed is a sink that passes departed frames to a collector, which measures ages.
type observed struct{ collector *results.Collector }

// Deliver records a frame when its last bit has left the queue.
func (o *observed) Deliver(d *engine.Departure) {
	o.collector.Observe(&olaf.Observation{At: d.At, Queued: d.Queued, Update: d.Frame.Update,
		Contributors: d.Frame.Contributors})
}

// HasLog reports whether the device logs the arrivals at its queue. The twin can then be run with the same arrivals.
func (r *Rig) HasLog() bool {
	_, ok := fpga.FindArrivalLog(r.Device)
	return ok
}

// NewCollector returns a collector for one of the plan's configurations.
func (r *Rig) NewCollector(config int) *results.Collector {
	return results.NewCollector(r.Plan.measureConfig(&r.Plan.Configs[config]))
}

// PairLast returns a row that contains only the run watched last. The run is judged as in a bench, and each age is
// compared with the twin's age for the plan and for the logged arrivals. The collector must have observed the whole
// run. ageErrorPct is the limit from testbed.Testbed.
func (r *Rig) PairLast(ctx context.Context, id RunID, c *results.Collector, ageErrorPct float64) (*results.Row, error) {
	spec := r.Plan.Spec
	spec.Runs, spec.Seed = 1, r.Plan.Seeds[id.Index]
	planned, err := predictOnTwin(ctx, spec, &Options{Declared: r.Plan.Declared})
	if err != nil {
		return nil, err
	}
	counters, err := r.Snapshot()
	if err != nil {
		return nil, err
	}
	seen, err := r.Capture()
	if err != nil {
		return nil, err
	}
	b := &station{runner: &runner{plan: r.Plan, ageError: ageErrorPct, planned: planned}, Rig: r, collector: c}
	run := b.judgeRun(id, &counters, nil, seen)
	if err := b.compareWithTwin(id, 0, &run); err != nil {
		return nil, err
	}
	row := results.Summarise(r.Plan.Declaration(&r.Plan.Configs[id.Config]), []results.Run{run})
	return &row, nil
}
