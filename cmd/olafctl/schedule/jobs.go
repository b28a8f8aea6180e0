package schedule

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/sched"
)

// jobsFlags are the flags of schedule jobs.
type jobsFlags struct {
	workload sched.Workload
	kind     string
	file     string
	force    bool
}

func newScheduleJobsCmd(env *cli.Env) *cobra.Command {
	f := &jobsFlags{workload: sched.PaperWorkload(40, 1), kind: string(sched.DML)}
	s := &f.workload
	s.Units, s.Ports = 8, 4
	cmd := &cobra.Command{
		Use:   "jobs",
		Short: "Generate a jobs file like those of the paper's evaluation",
		Long: `Generate jobs and a network like those of the paper's evaluation, from a seed: dml (2 to 16 workers of 102 to 548 MB),
mapreduce (heavy-tailed shuffles) or testbed (four racks, two with workers). Parameters the paper does not print have flags
or stated defaults (docs/guide/scheduling.md).`,
		Example: `  olafctl schedule jobs --jobs 40 --units 8 --ports 4 -w jobs.yaml`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.writeJobs(cmd, env) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.kind, "workload", f.kind, "dml|mapreduce|testbed")
	flags.IntVar(&s.Jobs, "jobs", s.Jobs, "jobs")
	addWorkload(flags, s)
	flags.Var(&s.Reconfiguration, "reconfiguration", "reconfiguration time")
	flags.BoolVar(&s.Joined, "joined", false, "connect all units evenly before the first slot")
	flags.Uint64Var(&s.Seed, "seed", s.Seed, "seed")
	cli.AddWrite(flags, &f.file, "write to this file instead of standard output")
	cli.AddForce(flags, &f.force, "the file")
	cli.Complete(cmd, "workload", func() []string {
		return olaf.Map(sched.WorkloadKinds(), func(k sched.WorkloadKind) string { return string(k) })
	})
	return cmd
}

// writeJobs generates the jobs and prints them or writes them to a file.
func (f *jobsFlags) writeJobs(cmd *cobra.Command, env *cli.Env) error {
	if err := cli.RefuseExisting(f.file, f.force); err != nil {
		return err
	}
	s := f.workload
	s.Kind = sched.WorkloadKind(f.kind)
	if s.Kind == sched.Testbed && !cmd.Flags().Changed("units") {
		s.Units = 4
	}
	p, err := sched.GenerateProblem(s)
	if err != nil {
		return err
	}
	text, err := p.Text()
	if err != nil {
		return err
	}
	if f.file != "" {
		return cli.WriteWhole(env, f.file, text)
	}
	_, err = env.Stdout.Write(text)
	return err
}

// addWorkload adds the flags for a generated workload that all commands with such a workload have.
func addWorkload(flags *pflag.FlagSet, w *sched.Workload) {
	flags.IntVar(&w.Units, "units", w.Units, "racks or pods")
	flags.IntVar(&w.Ports, "ports", w.Ports, "optical ports per unit")
	flags.IntVar(&w.INC, "inc", w.INC, "jobs each switch can aggregate at a time")
	flags.Float64Var(&w.PerSecond, "arrivals", w.PerSecond, "job arrivals per second; 0 for all at once")
	flags.Float64Var(&w.Local, "local", w.Local, "share of jobs with all workers in one unit")
	flags.Var(&w.Slot, "slot", "length of a slot")
}
