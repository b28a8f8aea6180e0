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

// predict runs the plan on the twin, without engine cycles, which real wires do not have.
func predict(ctx context.Context, spec Spec, o *Options) ([][]results.Run, error) {
	spec.Profile, spec.DequeueCycles, spec.MergeCycles = engine.Ideal, nil, nil
	plan, err := NewPlan(spec)
	if err != nil {
		return nil, err
	}
	plan.Declared = o.Declared
	bed, err := testbed.Open(ctx, "", testbed.OpenOptions{Access: testbed.Access{Programs: spec.Systems.Programs()},
		Cards: 1}) // the twin alone
	if err != nil {
		return nil, err
	}
	outcome, err := Run(ctx, plan, bed, NewStream())
	if err = errors.Join(err, bed.Close()); err != nil {
		return nil, fmt.Errorf("the plan on the twin: %w", err)
	}
	return outcome.Runs, nil
}

// compare compares a run with the twin's run of the plan, and with the twin's result for the logged arrivals.
func (b *station) compare(id RunID, measured *results.Run) error {
	return b.set(id, id.Index, measured)
}

// set is compare for a different index of the twin's run.
func (b *station) set(id RunID, planned int, measured *results.Run) error {
	log, err := logOf(b.Device)
	if err != nil {
		return err
	}
	arrivals, err := log.Arrivals()
	if err != nil {
		return err
	}
	twin, err := b.plan.replay(&b.plan.Configs[id.Config], arrivals, measured.Counters)
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

// replay sends logged arrivals through a queue that serves its output to the cycle. counts are those of the original
// run: only the ages of the result are meaningful.
func (p *Plan) replay(c *Config, arrivals []fpga.Arrival, counts olaf.Counts) (*results.Run, error) {
	q := p.queue(c)
	observer := &observed{results.NewCollector(p.measure(c))}
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

// Logs reports whether a rig's device logs the arrivals at its queue, so that its runs can be compared with the twin's.
func (r *Rig) Logs() bool {
	_, ok := fpga.FindArrivalLog(r.Device)
	return ok
}

// Collector returns a collector for one of the plan's configurations.
func (r *Rig) Collector(config int) *results.Collector {
	return results.NewCollector(r.Plan.measure(&r.Plan.Configs[config]))
}

// Paired returns a row with the last watched run alone: judged as in a bench, with each age compared with the twin's
// for the plan and for the logged arrivals. The collector must have observed the whole run; ageErrorPct is that of
// testbed.Testbed.
func (r *Rig) Paired(ctx context.Context, id RunID, c *results.Collector, ageErrorPct float64) (*results.Row, error) {
	spec := r.Plan.Spec
	spec.Runs, spec.Seed = 1, r.Plan.Seeds[id.Index]
	planned, err := predict(ctx, spec, &Options{Declared: r.Plan.Declared})
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
	run := b.judge(id, &counters, nil, seen)
	if err := b.set(id, 0, &run); err != nil {
		return nil, err
	}
	row := results.Summarise(r.Plan.Declaration(&r.Plan.Configs[id.Config]), []results.Run{run})
	return &row, nil
}
