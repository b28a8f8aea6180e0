package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results"
)

// SimulateOptions contains the settings for running a Simulation. They do not affect its numbers.
type SimulateOptions struct {
	// Stream receives all events; it may be nil. Without a sink, the Collector's metrics are not needed: Simulated.Runs
	// contains only counters, and the simulation costs no more than computing its Results.
	Stream *Stream
	// First contains the options for the run of the first network with the first seed. If they have a watcher, the
	// watcher, not the context, ends that run, and the run is executed in addition to one run per core.
	First netsim.Options
	// Failed, if set, is called with the first error of a run, while a watched run may still continue.
	Failed func(error)
	// Metrics measures all runs even if no sink needs the measurements.
	Metrics bool
	// run simulates one run; nil for netsim.Run.
	run func(context.Context, *netsim.Topology, netsim.Options) (*netsim.Result, error)
}

// SimulateAll runs s in parallel on all cores and publishes events. The number of cores does not affect the result. If
// ctx ends, SimulateAll returns the seeds that every network has finished, together with ctx's error.
func SimulateAll(ctx context.Context, s *Simulation, o SimulateOptions) (*Simulated, error) {
	outline, err := s.Outline()
	if err != nil {
		return nil, err
	}
	if o.Stream == nil {
		o.Stream = NewStream()
	}
	if o.run == nil {
		o.run = netsim.Run
	}
	if err := o.Stream.publishEvent(Started{Work: s}); err != nil {
		return nil, err
	}
	r := &simulator{Simulation: s, SimulateOptions: o, outline: outline, done: make([]finished, s.RunCount())}
	err = r.runNetworks(ctx)
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	out := r.collectSeeds()
	return out, errors.Join(err, o.Stream.publishEvent(Finished{err, out.Partial}))
}

// simulator distributes the runs of a Simulation to cores, seed by seed.
type simulator struct {
	*Simulation
	SimulateOptions
	outline *Outline
	next    atomic.Int64
	done    []finished // by ordinal
	stopped *netsim.Result
}

// finished is the result of one simulated run.
type finished struct {
	done   bool
	run    results.Run
	result *netsim.Result // nil for an invalid run
}

func (r *simulator) runNetworks(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	var once sync.Once
	work := func(do func(context.Context) error) {
		g.Go(func() error {
			err := do(ctx)
			if err != nil && r.Failed != nil && ctx.Err() == nil {
				once.Do(func() { r.Failed(err) })
			}
			return err
		})
	}
	if r.First.Watcher != nil {
		r.next.Store(1)
		// The watcher ends this run, so that it can be measured; the context would discard it.
		work(func(ctx context.Context) error {
			return r.runNetwork(context.WithoutCancel(ctx), results.NewCollector(results.Config{}), 0)
		})
	}
	for range runtime.GOMAXPROCS(0) {
		work(r.runRemaining)
	}
	return g.Wait()
}

// runRemaining simulates runs on one core until none is left.
func (r *simulator) runRemaining(ctx context.Context) error {
	c := results.NewCollector(results.Config{})
	for {
		ordinal := int(r.next.Add(1)) - 1
		if ordinal >= r.RunCount() {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.runNetwork(ctx, c, ordinal); err != nil {
			return err
		}
	}
}

// runNetwork simulates one run and computes its metrics and counts.
func (r *simulator) runNetwork(ctx context.Context, c *results.Collector, ordinal int) error {
	id := RunID{Config: ordinal % len(r.Networks), Index: ordinal / len(r.Networks)}
	network, seed := &r.Networks[id.Config], r.Seeds[id.Index]
	if err := r.Stream.publishEvent(RunStarted{id}); err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	t := *network.Topology
	t.Seed = seed
	var opt netsim.Options
	if ordinal == 0 {
		opt = r.First
	}
	tap := r.newTap(id, c, opt.Observer, stop)
	if tap != nil {
		opt.Observer = tap
	}
	result, err := r.run(ctx, &t, opt)
	if tap != nil {
		err = errors.Join(err, tap.publishBatch())
	}
	switch broken := errors.Is(err, netsim.ErrAccounting); {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil && !broken:
		return fmt.Errorf("%s: seed %d: %w", network.Name, seed, err)
	case !broken && result.Time != t.Warmup+t.Duration:
		r.stopped = result
		return nil
	}
	done := &r.done[ordinal]
	done.run, done.result = r.accountRun(c, result, err), result
	done.run.Queue, done.run.OutRateBPS = network.Name, int64(r.outline.Configurations[id.Config].Measure.OutRate)
	done.run.Index, done.run.Seed = id.Index, seed
	if !done.run.Valid() {
		done.result = nil
	}
	if err := r.Stream.publishEvent(RunDone{id, &done.run}); err != nil {
		return err
	}
	done.done = true
	return nil
}

// needsMetrics reports whether the metrics of runs must be computed.
func (r *simulator) needsMetrics() bool { return r.Metrics || r.Stream.hasSinks() }

// accountRun computes the metrics of a run from the tap's observations. If metrics are not needed, it only checks that
// the run is valid.
func (r *simulator) accountRun(c *results.Collector, result *netsim.Result, broken error) (run results.Run) {
	totals := olaf.NewCounts(system.NetworkDeclaration().Ledger)
	if broken == nil {
		totals = result.Totals.Clone()
	}
	if r.needsMetrics() {
		totals.Add("received", c.ObservedCount()-totals.Of("received"))
		run = c.Finish(totals)
	} else {
		run.Counters = totals
		if err := totals.Check(); err != nil {
			run.Invalid = []string{err.Error()}
		}
	}
	if broken != nil {
		run.Invalid = []string{broken.Error()} // other errors only follow from this one
	}
	return run
}

// collectSeeds returns the runs of those seeds that every network has finished, sorted by network.
func (r *simulator) collectSeeds() *Simulated {
	n := len(r.Networks)
	out := &Simulated{Simulation: r.Simulation, Stopped: r.stopped, Runs: make([][]results.Run, n),
		Results: make([][]*netsim.Result, n)}
	for seed := range r.Seeds {
		of := r.done[seed*n : (seed+1)*n]
		if slices.ContainsFunc(of, func(f finished) bool { return !f.done }) {
			out.Partial = true
			continue
		}
		for i := range of {
			out.Runs[i] = append(out.Runs[i], of[i].run)
			if of[i].result != nil {
				out.Results[i] = append(out.Results[i], of[i].result)
			}
		}
	}
	return out
}

// tapBatch is the number of frames that a tap publishes together.
const tapBatch = 1024

// tap passes the deliveries of one run to its Collector, to the stream, and to another observer.
type tap struct {
	collector *results.Collector
	other     netsim.Observer // may be nil
	stream    *Stream         // nil if the frames are not needed
	id        RunID
	stop      context.CancelCauseFunc
	err       error

	frames []olaf.Observation
	inside []olaf.Contributor // contributors of all frames, concatenated
}

// newTap returns a tap for one run, or nil if nothing listens to the run's deliveries.
func (r *simulator) newTap(id RunID, c *results.Collector, other netsim.Observer, stop context.CancelCauseFunc) *tap {
	if !r.needsMetrics() {
		if other == nil {
			return nil
		}
		return &tap{other: other}
	}
	c.Reset(r.outline.Configurations[id.Config].Measure)
	t := &tap{collector: c, other: other, id: id, stop: stop}
	if r.Stream.wantsRun(id) {
		t.stream, t.frames = r.Stream, make([]olaf.Observation, 0, tapBatch)
	}
	return t
}

// Deliver implements netsim.Observer.
func (t *tap) Deliver(server, worker int, o *olaf.Observation) {
	if t.other != nil {
		t.other.Deliver(server, worker, o)
	}
	if t.collector == nil {
		return
	}
	t.collector.Observe(o)
	if t.stream == nil {
		return
	}
	seen := *o
	// The simulator reuses the list. When inside grows, earlier frames keep their old memory.
	from := len(t.inside)
	if seen.Contributors != nil {
		t.inside = append(t.inside, seen.Contributors...)
		seen.Contributors = t.inside[from:len(t.inside):len(t.inside)]
	}
	if t.frames = append(t.frames, seen); len(t.frames) == tapBatch {
		if err := t.publishBatch(); err != nil {
			t.stop(err)
		}
	}
}

// publishBatch publishes the collected frames. After an error it publishes nothing more.
func (t *tap) publishBatch() error {
	if t.stream == nil || t.err != nil || len(t.frames) == 0 {
		return t.err
	}
	t.err = t.stream.publishEvent(Observed{t.id, t.frames})
	t.frames, t.inside = t.frames[:0], t.inside[:0]
	return t.err
}

// Simulation is work for the simulator: a set of networks, each of which runs once per seed.
type Simulation struct {
	Experiment string
	Networks   []Network
	Seeds      []uint64
	// Compared adds comparisons of the first network with every other one.
	Compared bool
}

// Network is one configuration of a Simulation.
type Network struct {
	Name     string // unique in the Simulation; usually the topology's Title
	Topology *netsim.Topology
}

// RunCount returns the number of single runs.
func (s *Simulation) RunCount() int { return len(s.Networks) * len(s.Seeds) }

// simulationFile is the JSON form of a Simulation. Stored runs are repeated from it.
type simulationFile struct {
	Experiment string        `json:"experiment"`
	Networks   []networkFile `json:"networks"`
	Seeds      []uint64      `json:"seeds"`
}

type networkFile struct {
	Name     string          `json:"name"`
	Topology json.RawMessage `json:"topology"`
	// Sends is the digest of the arrivals file, which the topology only names.
	Sends string `json:"sends_sha256,omitempty"`
}

// Outline describes the work to the consumers of its events.
func (s *Simulation) Outline() (*Outline, error) {
	file := simulationFile{Experiment: s.Experiment, Seeds: s.Seeds}
	o := &Outline{Experiment: s.Experiment, Seeds: s.Seeds, Repeats: true}
	for i := range s.Networks {
		n := &s.Networks[i]
		document, err := n.Topology.Document()
		if err != nil {
			return nil, fmt.Errorf("write the topology of %s: %w", n.Name, err)
		}
		topology, err := json.Marshal(document)
		if err != nil {
			return nil, fmt.Errorf("write the topology of %s: %w", n.Name, err)
		}
		sends := n.Topology.SendsDigest()
		o.Repeats = o.Repeats && sends == ""
		file.Networks = append(file.Networks, networkFile{n.Name, topology, sends})
		o.Configurations = append(o.Configurations, Configuration{n.Name, n.Topology.CollectorConfig()})
	}
	var err error
	if o.Config, err = json.Marshal(&file); err != nil {
		return nil, fmt.Errorf("write the simulation: %w", err)
	}
	return o, nil
}

// readSimulation parses the configuration that Outline writes. systems contains the available systems. Networks that
// read their arrivals from a file are returned without arrivals and cannot run.
func readSimulation(systems system.Set, text []byte) (*Simulation, error) {
	var file simulationFile
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	s := &Simulation{Experiment: file.Experiment, Seeds: file.Seeds}
	for _, n := range file.Networks {
		t, err := netsim.ParseTopology(systems, n.Name, n.Topology)
		if err != nil {
			return nil, err
		}
		s.Networks = append(s.Networks, Network{n.Name, t})
	}
	return s, nil
}

// Storage per frame, and per update in a merged one, rounded up from BenchmarkSimulate.
const (
	frameBytes  = 14
	insideBytes = 5
)

// FrameBytes estimates the storage, in bytes, for the frames of one seed. It is an upper limit computed from the rates
// of workers and links.
func (s *Simulation) FrameBytes() (bytes float64) {
	for i := range s.Networks {
		sent, delivered := s.Networks[i].Topology.EstimateTraffic()
		bytes += float64(frameBytes * delivered)
		if s.Networks[i].Topology.Merges() {
			bytes += float64(insideBytes * sent)
		}
	}
	return bytes
}

// Simulated contains the results of a Simulation.
type Simulated struct {
	Simulation *Simulation
	// Runs and Results are indexed by network, then by the seeds that every network has finished. A run that breaks an
	// accounting identity is invalid: it is in Runs, but not in Results.
	Runs    [][]results.Run
	Results [][]*netsim.Result
	// Stopped is the first run if its watcher ended it early; it is neither in Runs nor in Results.
	Stopped *netsim.Result
	Partial bool // some seeds are missing
}

// Err returns nil if every run was valid and none is missing.
func (s *Simulated) Err() error {
	for i := range s.Runs {
		for k := range s.Runs[i] {
			if r := &s.Runs[i][k]; !r.Valid() {
				return fmt.Errorf("%w: %s, seed %d: %s", ErrInvalid, r.Queue, r.Seed, r.Invalid[0])
			}
		}
	}
	if s.Partial {
		return fmt.Errorf("%w: stopped before all runs were done", ErrRun)
	}
	return nil
}

// DescribeValidity describes which runs are valid and are therefore included in the statistics.
func (s *Simulated) DescribeValidity() string {
	valid, total, why := 0, 0, ""
	for i := range s.Runs {
		for k := range s.Runs[i] {
			total++
			if r := &s.Runs[i][k]; r.Valid() {
				valid++
			} else if why == "" {
				why = fmt.Sprintf("%s, seed %d: %s", r.Queue, r.Seed, r.Invalid[0])
			}
		}
	}
	switch {
	case valid < total:
		return fmt.Sprintf("INVALID: %d of %d runs are excluded: %s", total-valid, total, why)
	case s.Partial:
		return fmt.Sprintf("PARTIAL: stopped after %d of %d runs; all numbers cover only these runs", total,
			s.Simulation.RunCount())
	}
	return fmt.Sprintf("valid: %d of %d runs, accounting identities exact in every run", valid, total)
}

// simulatedCounts is a note stored with every simulation. It explains which part of a run its counts and ages cover.
const simulatedCounts = "counts and lost_pct cover the whole run with the warm-up and treat the network as one " +
	"queue, because only these counts balance; window_* and loss_* cover the time after the warm-up; ages cover " +
	"the window, and workers are numbered within their cluster"

// toBench converts the outcome to the form of a bench result, with one row per network.
func (s *Simulated) toBench(o *Outline) *results.Bench {
	b := &results.Bench{
		Schema: results.BenchSchema, Experiment: o.Experiment, Config: o.Config, Partial: s.Partial,
		Window: o.Configurations[0].Measure.Window.String(), Statements: []string{simulatedCounts},
	}
	for i, runs := range s.Runs {
		row := results.Summarise(o.Configurations[i].Measure.Declared, runs)
		row.Queue, row.OutRateBPS = o.Configurations[i].Name, int64(o.Configurations[i].Measure.OutRate)
		b.Rows = append(b.Rows, row)
	}
	if s.Simulation.Compared && len(s.Runs) > 1 {
		for _, versus := range s.Runs[1:] {
			b.Comparisons = append(b.Comparisons, results.CompareRuns(s.Runs[0], versus))
		}
	}
	return b
}
