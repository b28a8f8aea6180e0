package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/sched/sweep"
	"github.com/olafctl/olaf/experiments/sched/workload"
	"github.com/olafctl/olaf/results"
)

func newScheduleSweepCmd(env *cli.Env) *cobra.Command {
	s := workload.Paper(0, 1)
	s.Units, s.Ports = 8, 4
	jobs, seeds := []int{40, 60, 100}, 10
	var out cli.Format
	cmd := &cobra.Command{
		Use:   "sweep",
		Short: "Compare both policies with and without aggregation, over numbers of jobs and seeds",
		Long: `Plan made-up jobs in the paper's four scenarios (first come first served or time windows, with and without switches that
aggregate), for several numbers of jobs and seeds. All scenarios of a seed have the same jobs; every plan is checked.`,
		Example: "  olafctl schedule sweep --jobs 40,60,100 --units 8 --ports 4 --seeds 10",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if seeds < 1 {
				return cli.UsageError("--seeds: %d is not a positive number", seeds)
			}
			rows, err := sweep.Run(cmd.Context(), s, sweep.Axes()[0], floats(jobs), seeds, nil)
			if err != nil {
				return err
			}
			if out == cli.JSON {
				return cli.WriteJSON(env.Stdout, struct {
					cli.Head
					Workload workload.Spec `json:"workload"`
					Seeds    int           `json:"seeds"`
					Rows     []sweep.Row   `json:"rows"`
				}{cli.Head{Schema: "olafctl.schedule-sweep/v1"}, s, seeds, rows})
			}
			return sweepGrid(rows).Write(env, out)
		},
	}
	flags := cmd.Flags()
	flags.IntSliceVar(&jobs, "jobs", jobs, "numbers of jobs")
	flags.IntVar(&seeds, "seeds", seeds, "seeds, from --seed on")
	flags.Uint64Var(&s.Seed, "seed", s.Seed, "first seed")
	flags.IntVar(&s.Units, "units", s.Units, "racks or pods")
	flags.IntVar(&s.Ports, "ports", s.Ports, "optical ports of each")
	flags.IntVar(&s.INC, "inc", s.INC, "jobs that each switch aggregates for at a time")
	flags.Float64Var(&s.PerSecond, "arrivals", s.PerSecond, "jobs that arrive a second; 0 for all at once")
	flags.Float64Var(&s.Local, "local", s.Local, "share of jobs whose workers are all in one unit")
	flags.Var(&s.Slot, "slot", "length of a slot")
	cli.AddFormatFlag(cmd, &out)
	return cmd
}

// sweepGrid lists means with the half-widths of their 95 % intervals.
func sweepGrid(rows []sweep.Row) *cli.Grid {
	list := &cli.Grid{Header: []string{"JOBS", "SCENARIO", "CT_BTI_S", "CT_BTI_CI95", "MEAN_JCT_S", "MEAN_JCT_CI95", "RECONFIGURATIONS", "RECONFIGURATIONS_CI95", "SEEDS_WORSE_THAN_FCFS"}}
	cell := func(v results.Float) string {
		if !v.Known() {
			return "–"
		}
		return fmt.Sprintf("%.3f", float64(v))
	}
	for i := range rows {
		r := &rows[i]
		list.Add(strconv.Itoa(r.Jobs), r.Scenario, cell(r.CTBTI.Mean), cell(r.CTBTI.CI95), cell(r.MeanJCT.Mean), cell(r.MeanJCT.CI95),
			cell(r.Reconfigurations.Mean), cell(r.Reconfigurations.CI95), strconv.Itoa(r.Worse))
	}
	return list
}

func floats(ints []int) []float64 {
	out := make([]float64, len(ints))
	for i, n := range ints {
		out[i] = float64(n)
	}
	return out
}
