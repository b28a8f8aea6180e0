package cells

import (
	"context"
	"encoding/json"

	"github.com/olafctl/olaf/experiments/bench/job"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/results/sweep"
)

// OneJob is the specification of a cell that runs a closed-loop job.
type OneJob struct {
	Job  *job.Spec `json:"job"`
	Seed uint64    `json:"seed"` // seed of the first run
}

// readJob parses a OneJob and looks up its system by name.
func (c Carrier) readJob(spec json.RawMessage) (cell OneJob, err error) {
	written, err := readSpec[struct {
		Job  json.RawMessage `json:"job"`
		Seed uint64          `json:"seed"`
	}](spec)
	if err != nil {
		return cell, err
	}
	cell.Seed = written.Seed
	cell.Job, err = job.ReadSpec(c.Systems, written.Job)
	return cell, err
}

// JobPatience rejects a OneJob if a single run would take too long.
func (c Carrier) JobPatience(spec json.RawMessage) error {
	cell, err := c.readJob(spec)
	if err != nil {
		return err
	}
	return job.Patience([]*job.Spec{cell.Job}, 1)
}

// Jobs carries out the runs from to from+n of a OneJob. A run that hung is marked as invalid.
func (c Carrier) Jobs(ctx context.Context, spec json.RawMessage, from, n int) (*sweep.Lot, error) {
	cell, err := c.readJob(spec)
	if err != nil {
		return nil, err
	}
	lot, seeds := newLot(job.Metrics()), make([]uint64, n)
	for i := range seeds {
		seeds[i] = cell.Seed + uint64(from+i)
	}
	o, err := job.Run(ctx, cell.Job, seeds, nil)
	if err != nil {
		return nil, err
	}
	for i, r := range o.Runs {
		run := sweep.Run{Seed: seeds[i]}
		if r.Hung {
			run.Invalid = job.ErrHung.Error()
		}
		for _, row := range closedloop.ListRows() {
			run.Values = append(run.Values, row.Of(r))
		}
		lot.Runs = append(lot.Runs, run)
	}
	return lot, nil
}
