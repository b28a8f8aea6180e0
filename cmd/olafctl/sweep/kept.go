package sweep

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	exportcmd "github.com/olafctl/olaf/cmd/olafctl/export"
	"github.com/olafctl/olaf/experiments/sweep"
	"github.com/olafctl/olaf/results/compare"
	"github.com/olafctl/olaf/results/store"
	found "github.com/olafctl/olaf/results/sweep"
)

// oneSweep is a sweep that the user named. It is either unfinished or a stored run.
type oneSweep struct {
	id      string
	folders *sweep.Folders
	store   *store.Store
	folder  *store.Folder // nil if the sweep has not finished
}

// findSweep finds a sweep by its ID, an unambiguous prefix of the ID, or "last" for the newest sweep.
func findSweep(s *store.Store, name string) (*oneSweep, error) {
	one := &oneSweep{folders: sweep.FoldersOf(s), store: s}
	entries, err := s.List()
	if err != nil {
		return nil, err
	}
	var finished []string
	for i := range entries {
		switch e := &entries[i]; {
		case e.State != store.Complete:
		case strings.HasPrefix(e.Experiment, "sweep-"):
			finished = append(finished, e.ID)
		case e.ID == name:
			return nil, fmt.Errorf("%w: %s is a run of %s; 'olafctl runs show %[2]s' prints it", sweep.ErrUnknown, e.ID,
				e.Experiment)
		}
	}
	if one.id, err = one.folders.Find(name, finished); err == nil && slices.Contains(finished, one.id) {
		one.folder, err = s.Load(one.id)
	}
	return one, err
}

// findUnfinished is like findSweep for commands that resume or remove a sweep. "last" means the newest unfinished
// sweep, if there is one.
func findUnfinished(s *store.Store, name string) (*oneSweep, error) {
	if name == "last" {
		waiting, err := sweep.FoldersOf(s).List()
		if err != nil {
			return nil, err
		}
		if len(waiting) > 0 {
			name = waiting[0]
		}
	}
	return findSweep(s, name)
}

// buildDocument returns the results of the sweep so far as a document.
func (o *oneSweep) buildDocument(env *cli.Env, metrics []string) (*found.Document, error) {
	plan, cells, err := o.loadCells(env)
	if err != nil {
		return nil, err
	}
	if len(metrics) > 0 {
		if plan.Metrics, err = plan.CheckMetrics(metrics); err != nil {
			return nil, err
		}
	}
	d, err := plan.Document(cells)
	if err != nil {
		return nil, err
	}
	if d.ID = o.id; o.folder != nil {
		d.Provenance = o.folder.Manifest.Provenance
	}
	return d, nil
}

func (o *oneSweep) loadCells(env *cli.Env) (*sweep.Plan, []found.Outcome, error) {
	if o.folder != nil {
		return sweep.ReadKept(o.folder, env.SweepCommands(env))
	}
	plan, err := o.folders.Plan(o.id, env.SweepCommands(env))
	if err != nil {
		return nil, nil, err
	}
	engine := &sweep.Engine{Plan: plan, Results: o.store.Singles()}
	cells, err := engine.FindStored()
	return plan, cells, err
}

// openUnfinished opens an unfinished sweep. It returns an error if the sweep was begun by another build.
func openUnfinished(env *cli.Env, one *oneSweep) (*sweep.Folder, error) {
	folder, err := one.folders.Open(one.id, env.SweepCommands(env))
	if err != nil {
		return nil, err
	}
	build, err := ThisBuild(env)
	if err == nil && build != folder.Plan.Build {
		err = fmt.Errorf("%w: %s was started by %v, but this is %v, whose results may differ; resume it with that "+
			"build, or start again with 'olafctl sweep run'", sweep.ErrBuild, one.id, folder.Plan.Build, build)
	}
	if err != nil {
		return nil, errors.Join(err, folder.Leave())
	}
	return folder, nil
}

func newSweepResumeCmd(env *cli.Env) *cobra.Command {
	f := &GridFlags{}
	cmd := &cobra.Command{
		Use:   "resume ID",
		Short: "Resume a stopped sweep",
		Long: `Resume a sweep. Stored results are not computed again, and the outcome is the same as that of an uninterrupted sweep. A sweep
is named by its id, a unique prefix of it, or "last" for the newest unfinished one.`,
		Example: "  olafctl sweep resume last",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(f.checkFlags(), f.refuseLooks(cmd)); err != nil {
				return err
			}
			return f.Store.WithStore(env, func(s *store.Store) error {
				one, err := findUnfinished(s, args[0])
				if err != nil {
					return err
				}
				if one.folder != nil {
					fmt.Fprintf(env.Stderr, "%s is already finished\n", one.id)
					return cli.ShowDocument(env, one.folder, f.Format)
				}
				folder, err := openUnfinished(env, one)
				if err != nil {
					return err
				}
				if cmd.Flags().Changed("order") {
					folder.Plan.Order = f.order
				}
				return f.carryOut(cmd.Context(), env, s, folder)
			})
		},
	}
	f.addWork(cmd)
	f.queue.AddWorkers(cmd, "work queue from which other machines take jobs ('olafctl sweep serve')")
	f.addDashboard(cmd)
	f.addOutput(cmd)
	return cmd
}

func newSweepShowCmd(env *cli.Env) *cobra.Command {
	f := &GridFlags{}
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Print a sweep's results so far",
		Long:  `Print a sweep's results, for an unfinished sweep those so far. --metric shows other stored metrics.`,
		Example: `  olafctl sweep show last
  olafctl sweep show last --metric peak_aom_ns,jain -o csv`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return f.Store.WithStore(env, func(s *store.Store) error {
				one, err := findSweep(s, args[0])
				if err != nil {
					return err
				}
				d, err := one.buildDocument(env, f.Metrics)
				if err != nil {
					return err
				}
				return cli.PrintReport(env, d, f.Format, false)
			})
		},
	}
	f.addMetrics(cmd, env)
	cli.AddFormatFlag(cmd, &f.Format)
	f.Store.Add(cmd)
	return cmd
}

// sweepStatus is the status of a sweep in the list.
type sweepStatus struct {
	ID      string `json:"id"`
	State   string `json:"state"` // running, stopped, finished
	Cells   int    `json:"cells"`
	Done    int    `json:"done"`
	Failed  int    `json:"failed"`
	Command string `json:"command"`
	// Host is the host that runs the sweep or ran it last. PerSecond is the number of lots per second; RemainingS is
	// the time left at that rate.
	Host       string            `json:"host,omitempty"`
	PerSecond  float64           `json:"lots_per_second,omitempty"`
	RemainingS float64           `json:"remaining_s,omitempty"`
	Working    map[string]string `json:"working,omitempty"`
	Failures   []sweepFailure    `json:"failures,omitempty"` // the first failures
}

// sweepFailure is a cell that failed, with the reason.
type sweepFailure struct {
	Cell  string `json:"cell"`
	Error string `json:"error"`
}

func newSweepStatusCmd(env *cli.Env) *cobra.Command {
	var where cli.StoreFlag
	var out cli.Format
	cmd := &cobra.Command{
		Use:     "status [ID]",
		Short:   "List unfinished sweeps, or show one sweep's progress by worker",
		Example: "  olafctl sweep status\n  olafctl sweep status last -o json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return where.WithStore(env, func(s *store.Store) error {
				all, err := listStatus(env, s, args)
				if err != nil {
					return err
				}
				if out == cli.JSON {
					return cli.WriteJSON(env.Stdout, struct {
						cli.Head
						Sweeps []sweepStatus `json:"sweeps"`
					}{cli.List("sweeps"), all})
				}
				if len(all) == 0 {
					fmt.Fprintln(env.Stderr, "no unfinished sweeps; 'olafctl runs' lists finished ones")
				}
				list := &cli.Grid{Header: []string{"ID", "STATE", "DONE", "FAILED", "LEFT", "COMMAND"}}
				for i := range all {
					st := &all[i]
					left := "–"
					if st.RemainingS > 0 {
						left = time.Duration(st.RemainingS * float64(time.Second)).Round(time.Second).String()
					}
					list.Add(st.ID, st.State, fmt.Sprintf("%d/%d", st.Done, st.Cells), fmt.Sprint(st.Failed), left,
						st.Command)
				}
				if err := list.Write(env, out); err != nil || len(args) == 0 {
					return err
				}
				return writeDetails(env, all, out)
			})
		},
	}
	cli.AddFormatFlag(cmd, &out)
	where.Add(cmd)
	return cmd
}

// writeDetails lists the workers with the cells on which they work, and the cells that failed with the reasons.
func writeDetails(env *cli.Env, all []sweepStatus, out cli.Format) (err error) {
	working := &cli.Grid{Header: []string{"WORKER", "WORKS ON"}}
	failed := &cli.Grid{Header: []string{"FAILED", "WHY"}}
	for i := range all {
		for _, name := range slices.Sorted(maps.Keys(all[i].Working)) {
			working.Add(name, all[i].Working[name])
		}
		for _, f := range all[i].Failures {
			failed.Add(f.Cell, f.Error)
		}
	}
	for _, list := range []*cli.Grid{working, failed} {
		if len(list.Rows) > 0 && out != cli.CSV {
			fmt.Fprintln(env.Stdout)
			err = errors.Join(err, list.Write(env, out))
		}
	}
	return err
}

// listStatus returns the status of the named sweep, or of all unfinished ones.
func listStatus(env *cli.Env, s *store.Store, names []string) (all []sweepStatus, err error) {
	folders := sweep.FoldersOf(s)
	ids, err := folders.List()
	if err != nil {
		return nil, err
	}
	if len(names) > 0 {
		one, err := findSweep(s, names[0])
		if err != nil {
			return nil, err
		}
		if ids = []string{one.id}; one.folder != nil {
			d, err := one.buildDocument(env, nil)
			if err != nil {
				return nil, err
			}
			return []sweepStatus{describeStatus(d, one.folder.Manifest.Provenance.Command)}, nil
		}
	}
	for _, id := range ids {
		st, err := unfinishedStatus(env, s, folders, id)
		if err != nil {
			return nil, err
		}
		all = append(all, st)
	}
	return all, nil
}

func describeStatus(d *found.Document, line []string) sweepStatus {
	st := sweepStatus{ID: d.ID, State: "finished", Cells: len(d.Cells), Command: strings.Join(line, " ")}
	for i := range d.Cells {
		switch d.Cells[i].State {
		case found.Done:
			st.Done++
		case found.Failed:
			st.Failed++
		}
	}
	return st
}

// unfinishedStatus returns the status of an unfinished sweep. It is taken from the last progress record if a process is
// running the sweep, or else from the results.
func unfinishedStatus(env *cli.Env, s *store.Store, folders *sweep.Folders, id string) (sweepStatus, error) {
	beat, told := folders.LastBeat(id)
	if folders.IsHeld(id) && told {
		st := sweepStatus{ID: id, State: "running", Cells: beat.Cells, Done: beat.Done, Failed: beat.Failed,
			Host: beat.Host, Working: beat.Working}
		for _, f := range beat.Failures {
			st.Failures = append(st.Failures, sweepFailure(f))
		}
		if plan, err := folders.Plan(id, env.SweepCommands(env)); err == nil {
			st.Command = strings.Join(plan.Line, " ")
		}
		if beat.Seconds > 0 {
			st.PerSecond = float64(beat.LotsDone-beat.Found) / beat.Seconds
		}
		if st.PerSecond > 0 {
			st.RemainingS = float64(beat.Lots-beat.LotsDone) / st.PerSecond
		}
		return st, nil
	}
	one := &oneSweep{id: id, folders: folders, store: s}
	d, err := one.buildDocument(env, nil)
	if err != nil {
		return sweepStatus{}, err
	}
	plan, err := folders.Plan(id, env.SweepCommands(env))
	if err != nil {
		return sweepStatus{}, err
	}
	st := describeStatus(d, plan.Line)
	if st.State = "stopped"; folders.IsHeld(id) {
		st.State = "running"
	}
	st.Host = beat.Host
	return st, nil
}

func newSweepRmCmd(env *cli.Env) *cobra.Command {
	var where cli.StoreFlag
	cmd := &cobra.Command{
		Use:     "rm ID…",
		Short:   "Remove unfinished sweeps; 'olafctl runs rm' removes finished ones",
		Example: "  olafctl sweep rm last",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return where.WithStore(env, func(s *store.Store) error {
				for _, name := range args {
					one, err := findUnfinished(s, name)
					if err != nil {
						return err
					}
					if one.folder != nil {
						return cli.UsageError("%s is finished; remove it with 'olafctl runs rm %[1]s'", one.id)
					}
					if err := one.folders.Remove(one.id); err != nil {
						return err
					}
					fmt.Fprintf(env.Stdout, "removed %s\n", one.id)
				}
				return nil
			})
		},
	}
	where.Add(cmd)
	return cmd
}

func newSweepExportCmd(env *cli.Env) *cobra.Command {
	var scripts clusterFlags
	cmd := exportcmd.New(env)
	cmd.Use = "export ID|FILE.yaml"
	cmd.Short = "Write a finished sweep as workbook, CSV, JSON, report or figures, or a script for a cluster"
	cmd.Long = `Write a finished sweep in forms that people can hand on, as 'olafctl export' does for every kept run.

Of a file, write what hands its shares to a cluster that has a scheduler: a job array for Slurm, an indexed Job for Kubernetes. Each
share calls 'olafctl sweep work --shard' and keeps its results in a store that all have in common.`
	cmd.Example = `  olafctl sweep export last --xlsx sweep.xlsx --report sweep.html --svg figures/
  olafctl sweep export slots.yaml --slurm sweep.sbatch`
	scripts.add(cmd)
	write := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if scripts.wantsScripts() {
			force, _ := cmd.Flags().GetBool("force") // the flag exists
			return scripts.writeScripts(cmd, env, args[0], force)
		}
		where := cli.StoreFlagOf(cmd)
		err := where.WithStore(env, func(s *store.Store) error {
			one, err := findSweep(s, args[0])
			if err != nil {
				return err
			}
			if args[0] = one.id; one.folder == nil {
				return fmt.Errorf("%w: %s is not finished; 'olafctl sweep resume %[2]s' continues it, 'olafctl "+
					"sweep show %[2]s -o csv' prints the results so far", sweep.ErrUnknown, one.id)
			}
			return nil
		})
		if err != nil {
			return err
		}
		return write(cmd, args)
	}
	return cmd
}

// NewSide returns a finished sweep as one side of a cell-by-cell comparison.
func NewSide(env *cli.Env, f *store.Folder) (*compare.Side, error) {
	plan, cells, err := sweep.ReadKept(f, env.SweepCommands(env))
	if err != nil {
		return nil, err
	}
	runs, err := sweep.ListRuns(plan, cells)
	return &compare.Side{Name: f.ID(), Experiment: f.Manifest.Experiment, Config: plan.Config, Runs: runs, Partial: f.Manifest.Partial}, err
}

// VerifySweep recomputes the summary of a finished sweep from its results. If this build made the results, it also
// repeats them.
func VerifySweep(ctx context.Context, env *cli.Env, f *store.Folder, files, made int) error {
	commands := env.SweepCommands(env)
	plan, cells, err := sweep.RecomputeDocument(f, commands)
	if err != nil {
		return err
	}
	build, err := ThisBuild(env)
	if err != nil {
		return err
	}
	lots := 0
	for i := range cells {
		lots += len(cells[i].Lots)
	}
	repeated := "no results repeated, because another build made them"
	if build == plan.Build {
		var done atomic.Int64
		bar := cli.StartProgress(env, false, func() (int, int) { return int(done.Load()), lots })
		err = errors.Join(sweep.RepeatResults(ctx, plan, cells, commands, &done), commands.Close())
		bar.Stop()
		repeated = olaf.Plural(lots, "result") + " repeated"
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(env.Stdout, "%s verified: %s, %s made again from their results, %s, %s made again; all as they were\n",
		f.ID(), olaf.Plural(files, "file"), olaf.Plural(len(cells), "cell"), repeated, olaf.Plural(made, "export"))
	return nil
}
