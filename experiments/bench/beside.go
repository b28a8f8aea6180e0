package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/results"
)

// predictOnTwin runs the plan on the twin, without engine cycles, because real wires have none.
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

// compareWithTwin compares a run with the twin's run of the plan, and with the twin's result for the logged arrivals.
func (b *station) compareWithTwin(id RunID, measured *results.Run) error {
	return b.compareAt(id, id.Index, measured)
}

// compareAt is compare for a different index of the twin's run.
func (b *station) compareAt(id RunID, planned int, measured *results.Run) error {
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

// logOf returns a device's log of its queue's arrivals.
func logOf(dev fpga.Device) (fpga.ArrivalLog, error) {
	log, ok := fpga.FindArrivalLog(dev)
	if !ok {
		return nil, fmt.Errorf("--beside: %w: %s does not log what reached its queue", testbed.ErrUnsupported,
			dev.Identity().Address)
	}
	return log, nil
}

// replayArrivals sends logged arrivals through a queue with a cycle-accurate output. counts are those of the original
// run: only the ages of the result are meaningful.
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

// observed is a sink that measures ages.
type observed struct{ collector *results.Collector }

// Deliver records a frame whose last bit has left.
func (o *observed) Deliver(d *engine.Departure) {
	o.collector.Observe(&olaf.Observation{At: d.At, Queued: d.Queued, Update: d.Frame.Update,
		Contributors: d.Frame.Contributors})
}

// HasLog reports whether a rig's device logs the arrivals at its queue, so that its runs can be compared with the twin's.
func (r *Rig) HasLog() bool {
	_, ok := fpga.FindArrivalLog(r.Device)
	return ok
}

// NewCollector returns a collector for one of the plan's configurations.
func (r *Rig) NewCollector(config int) *results.Collector {
	return results.NewCollector(r.Plan.measureConfig(&r.Plan.Configs[config]))
}

// PairLast returns a row with the last watched run alone: judged as in a bench, with each age compared with the twin's
// for the plan and for the logged arrivals. The collector must have observed the whole run; ageErrorPct is that of
// testbed.Testbed.
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
	if err := b.compareAt(id, 0, &run); err != nil {
		return nil, err
	}
	row := results.Summarise(r.Plan.Declaration(&r.Plan.Configs[id.Config]), []results.Run{run})
	return &row, nil
}
