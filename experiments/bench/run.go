package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/twin"
	"github.com/olafctl/olaf/pktgen"
	"github.com/olafctl/olaf/pktgen/trace"
	"github.com/olafctl/olaf/results"
)

// ErrRun reports that a run did not finish.
var ErrRun = errors.New("run failed")

// Outcome contains the finished runs of a plan, by configuration and then by seed.
type Outcome struct {
	Plan       *Plan
	Device     fpga.Identity
	TablesHash string
	P4InfoHash string
	Runs       [][]results.Run // Runs[config] has one element per finished seed, in seed order
	Partial    bool            // some seeds are missing
	Measured   bool            // on this machine's clocks: the device has no virtual time
	Hosts      []results.Host  // hosts of a testbed with roles
	// Departures is the deviation of departures from the instants of Spec.Trace, over all seeds.
	Departures trace.DepartureError
	// captured is the quality of the captures, if there were any.
	captured captured
}

// RunPlan runs plan on bed and publishes events to stream. It writes and verifies the tables, and then runs every seed
// on every configuration, in parallel on the testbed's cards. The number of cards does not affect the result. If ctx
// ends or another controller takes the tables, RunPlan stops the generators and returns the finished runs as a partial
// outcome, together with the cause.
func RunPlan(ctx context.Context, plan *Plan, bed *testbed.Testbed, stream *Stream) (*Outcome, error) {
	return runWith(ctx, plan, bed, stream, nil)
}

// runWith runs a plan like RunPlan, and compares the runs with the twin's runs in planned, if any.
func runWith(ctx context.Context, plan *Plan, bed *testbed.Testbed, stream *Stream, planned [][]results.Run) (*Outcome,
	error) {
	ctx, stop := bed.Guard(ctx)
	defer stop()
	hash, err := plan.Program(ctx, bed)
	if err != nil {
		return nil, causeOf(ctx, err)
	}
	measured := !bed.Can(testbed.VirtualTime)
	r := &runner{plan: plan, stream: stream, ageError: bed.AgeError(), planned: planned, measured: measured,
		done: make([][]results.Run, len(plan.Seeds))}
	out := &Outcome{Plan: plan, Device: bed.Cards[0].Device.Identity(), TablesHash: hash, P4InfoHash: bed.P4InfoHash,
		Measured: measured}
	if err := stream.publishEvent(Started{plan, out.Device, hash, bed.Can(testbed.Repeats)}); err != nil {
		return nil, err
	}
	if err = causeOf(ctx, r.runSeeds(ctx, bed.Cards)); err == nil {
		err = bed.CheckTables()
	}
	out.collectSeeds(r.done)
	out.Departures, out.captured = r.departures, r.captured
	out.captured.percent, out.Hosts = r.ageError, bed.DescribeHosts(context.WithoutCancel(ctx))
	return out, errors.Join(err, stream.publishEvent(Finished{err, out.Partial}))
}

// Program writes the tables and verifies them on a device that was built for the plan. It returns the hash of their
// content.
func (p *Plan) Program(ctx context.Context, bed *testbed.Testbed) (hash string, err error) {
	for i := range p.Configs {
		c := &p.Configs[i]
		if err := p.checkDevice(bed.Cards[0].Device, c); err != nil {
			return "", err
		}
		if c.system.Adds() && p.Spec.Loop == nil {
			if err := bed.CheckAdds(); err != nil {
				return "", err
			}
		}
		if p.Spec.Loop != nil && !bed.Can(testbed.VirtualTime) {
			if err := p.Spec.checkNumbers(c.system); err != nil {
				return "", err
			}
		}
	}
	tables, err := p.Tables()
	if err != nil {
		return "", err
	}
	return bed.Program(ctx, tables)
}

// causeOf returns err, or the cause of the context's end if err is not nil and the context has ended.
func causeOf(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// collectSeeds stores the runs of finished seeds by configuration.
func (o *Outcome) collectSeeds(done [][]results.Run) {
	o.Runs = make([][]results.Run, len(o.Plan.Configs))
	for _, seed := range done {
		if seed == nil {
			o.Partial = true
			continue
		}
		for config := range seed {
			o.Runs[config] = append(o.Runs[config], seed[config])
		}
	}
}

// runner distributes the seeds of a plan to the testbed's cards.
type runner struct {
	plan   *Plan
	stream *Stream

	mu   sync.Mutex
	next int
	done [][]results.Run // by seed; nil until all its configurations are done

	departures trace.DepartureError
	captured   captured
	ageError   float64         // per cent
	planned    [][]results.Run // the twin's, by configuration, for comparison; may be nil
	measured   bool            // see Outcome
}

// runSeeds runs all seeds on the cards in parallel. It stops at the first error.
func (r *runner) runSeeds(ctx context.Context, cards []testbed.Card) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, card := range cards {
		g.Go(func() error { return r.runCard(ctx, card) })
	}
	return g.Wait()
}

func (r *runner) nextSeed() (seed int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	seed = r.next
	r.next++
	return seed, seed < len(r.plan.Seeds)
}

// runCard runs seeds on one card until no seed is left.
func (r *runner) runCard(ctx context.Context, card testbed.Card) (err error) {
	rig, err := r.plan.Rig(card)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rig.Close()) }()
	b := &station{runner: r, Rig: rig, collector: results.NewCollector(results.Config{})}
	for {
		seed, ok := r.nextSeed()
		if !ok {
			return nil
		}
		runs, err := b.runSeed(ctx, seed)
		if err != nil {
			return err
		}
		r.mu.Lock()
		r.done[seed] = runs
		r.departures.Merge(b.traffic.Departures())
		r.mu.Unlock()
	}
}

// station is one card with the buffers that are reused between its runs.
type station struct {
	*runner
	*Rig
	collector    *results.Collector
	observations []olaf.Observation
	recorder     frameRecorder // set while the frames of a run are recorded
	ends         testbed.Ends  // captured at both ends of the device; else nil
	packets      []twin.Packet
	withheld     int64 // updates of the run that transmission control withheld
}

// runSeed loads the traffic for one seed and runs every configuration with it.
func (b *station) runSeed(ctx context.Context, index int) ([]results.Run, error) {
	measure := b.runLoop
	if b.plan.Spec.Loop == nil {
		measure = b.measureRun
		if _, err := b.Load(ctx, index); err != nil {
			return nil, err
		}
	}
	runs := make([]results.Run, len(b.plan.Configs))
	for config := range b.plan.Configs {
		run, err := measure(ctx, RunID{config, index})
		if err != nil {
			return nil, err
		}
		runs[config] = run
		if err := b.stream.publishEvent(RunDone{RunID{config, index}, &runs[config]}); err != nil {
			return nil, err
		}
	}
	return runs, nil
}

// measureRun measures one run. It configures the queue, clears the counters, starts the generator, waits until all
// frames have arrived and reads the counters.
func (b *station) measureRun(ctx context.Context, id RunID) (run results.Run, err error) {
	if probed, err := b.ProbePath(ctx); err != nil {
		return run, err
	} else if probed { // over the traffic
		if _, err := b.Load(ctx, id.Index); err != nil {
			return run, err
		}
	}
	portsBefore, err := b.prepareRun(ctx, id)
	if err != nil {
		return run, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Generator.Abort())
		}
	}()
	stop, err := b.startControl(id)
	if err != nil {
		return run, err
	}
	counters, err := b.watchRun(ctx, id, portsBefore)
	if err = errors.Join(err, stop()); err != nil {
		return run, err
	}
	portsNow, err := fpga.PortCounts(b.Device)
	if err != nil {
		return run, err
	}
	ports, err := fpga.SubtractPorts(portsBefore, portsNow)
	if err != nil {
		return run, err
	}
	seen, err := b.Capture()
	if err == nil {
		err = b.ReportPath(ctx, seen) // after the queue's counts were read
	}
	if err != nil {
		return run, err
	}
	run = b.judgeRun(id, &counters, ports, seen)
	if err := b.bookBursts(id, &run); err != nil {
		return run, err
	}
	if b.ends != nil {
		lost, err := b.ends.Lost()
		if err = errors.Join(err, b.stream.publishEvent(Captured{id, lost})); err != nil {
			return run, err
		}
	}
	if b.planned != nil {
		err = b.compareWithTwin(id, id.Index, &run)
	}
	return run, err
}

// prepareRun configures the queue, discards frames left over from an earlier run, and returns the current counts of the
// network ports.
func (b *station) prepareRun(ctx context.Context, id RunID) ([]fpga.Port, error) {
	b.recorder = nil
	if r, ok := b.Device.(frameRecorder); ok {
		recorded := b.stream.recordsRun(id)
		if r.Record(recorded); recorded {
			b.recorder = r
		}
	}
	b.ends = nil
	if r, ok := b.Device.(testbed.EndsRecorder); ok {
		if err := r.RecordEnds(b.stream.recordsRun(id)); err != nil {
			return nil, err
		}
		b.ends = r.Ends()
	}
	if err := b.Prepare(ctx, id.Config); err != nil {
		return nil, err
	}
	b.collector.Reset(b.plan.measureConfig(&b.plan.Configs[id.Config]))
	return fpga.PortCounts(b.Device)
}

// watchRun starts the generator and waits until all frames that were sent have arrived or can no longer arrive.
func (b *station) watchRun(ctx context.Context, id RunID, portsBefore []fpga.Port) (counters fpga.Counters, err error) {
	if err := b.runGenerator(ctx, id); err != nil {
		return counters, err
	}
	if err := b.settleCable(ctx, portsBefore); err != nil {
		return counters, err
	}
	if err := fpga.DrainQueue(ctx, b.Device); err != nil {
		return counters, err
	}
	if b.plan.Answers(&b.plan.Configs[id.Config]) {
		if err := fpga.DrainDownlinks(ctx, b.Device); err != nil {
			return counters, err
		}
	}
	if err := b.collectFrames(id); err != nil {
		return counters, err
	}
	if counters, err = b.Snapshot(); err != nil {
		return counters, err
	}
	return counters, b.settleFrames(ctx, id, &counters)
}

// The queue's last frames may be on the wire or in the kernel for a while.
const (
	settleStep = olaf.Millisecond
	SettleTime = 200 * olaf.Millisecond
)

// settleCable waits until the queue's port has received all frames from another card's generator, or until no more
// frames are expected.
func (b *station) settleCable(ctx context.Context, before []fpga.Port) error {
	feeds := slices.IndexFunc(before, func(p fpga.Port) bool { return p.Feeds })
	for waited := olaf.Duration(0); feeds >= 0 && waited < SettleTime; waited += settleStep {
		if err := b.Device.Sleep(ctx, settleStep); err != nil { // first, because other frames may hide one that is on its way
			return err
		}
		now, err := fpga.PortCounts(b.Device)
		if err != nil || feeds >= len(now) || now[0].Received-before[0].Received >= now[feeds].Sent-before[feeds].Sent {
			return err
		}
	}
	return nil
}

// settleFrames waits until as many frames were observed as the card has sent and delivered, or until no more frames are
// expected.
func (b *station) settleFrames(ctx context.Context, id RunID, counters *fpga.Counters) error {
	for waited := olaf.Duration(0); waited < SettleTime && b.expectsFrames(counters); waited += settleStep {
		if err := b.Device.Sleep(ctx, settleStep); err != nil {
			return err
		}
		if err := b.collectFrames(id); err != nil {
			return err
		}
	}
	return nil
}

// expectsFrames reports whether more frames should still arrive at the tap or at the captured ends.
func (b *station) expectsFrames(counters *fpga.Counters) bool {
	delivered := counters.Queue.DeliveredFrames
	if b.ends != nil {
		if at := b.ends.Counts(); at[0] < counters.Generator.SentPackets || at[1] < delivered {
			return true
		}
	}
	return b.collector.ObservedCount() < int64(delivered)
}

// bookCapture records the quality of a run's capture and removes results that a poor capture makes doubtful.
func (b *station) bookCapture(run *results.Run, seen *fpga.Capture) {
	if seen == nil {
		return
	}
	run.Decisions = seen.Decisions
	if p := seen.Pacing; p != nil {
		run.LatenessNS = &p.LatenessNS
		withholdLate(run, p, b.collector)
	}
	withheld := withholdAges(run, seen, b.ageError)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.captured.addCapture(seen, withheld)
}

// WatchStep is the time, on the device's clock, between polls of the generator.
const WatchStep = 100 * olaf.Microsecond

// overdue is the longest time that a generator may take beyond its schedule. A generator that is busy for longer has
// stalled.
const overdue = 10 * olaf.Second

// runGenerator starts the generator and collects arrivals until everything was sent.
func (b *station) runGenerator(ctx context.Context, id RunID) error {
	if err := b.stream.publishEvent(RunStarted{id}); err != nil {
		return err
	}
	if err := b.Generator.ArmAndStart(); err != nil {
		return err
	}
	return fpga.WatchGenerator(ctx, b.Device, WatchStep, func(waited olaf.Duration) (more bool, err error) {
		if err := b.collectFrames(id); err != nil {
			return false, err
		}
		switch state, err := b.Generator.State(); {
		case err != nil:
			return false, err
		case state == pktgen.Done:
			return false, nil
		case state != pktgen.Running && state != pktgen.Stopping:
			return false, fmt.Errorf("%w: the generator is in state %v during a run; 'olafctl device reg read "+
				"generator.events' shows the reason", ErrRun, state)
		case waited > b.span+overdue:
			return false, fmt.Errorf("%w: the generator had not sent everything %v after its last frame was due, and "+
				"was stopped; reset it with 'olafctl device reset'", ErrRun, overdue)
		}
		return true, nil
	})
}

// collectFrames collects the frames that have reached the parameter server or the workers since the last call.
func (b *station) collectFrames(id RunID) error {
	b.observations = b.Tap.Drain(b.observations[:0])
	for i := range b.observations {
		b.collector.Observe(&b.observations[i])
	}
	if b.recorder != nil {
		b.packets = b.recorder.DrainPackets(b.packets[:0])
		if err := b.stream.publishEvent(Recorded{id, b.packets}); err != nil {
			return err
		}
	}
	if b.ends != nil {
		err := b.ends.Drain(func(p *capture.Packet) error { return b.stream.publishEvent(Framed{id, *p}) })
		if err != nil {
			return err
		}
	}
	if len(b.observations) == 0 || !b.stream.hasSinks() {
		return nil
	}
	return b.stream.publishEvent(Observed{id, b.observations})
}
