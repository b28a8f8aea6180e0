package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/p4ctl"
	"github.com/olafctl/olaf/p4ctl/p4"
)

// ControllerFlags are the flags of a P4Runtime controller. They set the server, the election ID and the output.
type ControllerFlags struct {
	Target string
	id     string
	DryRun bool
	Out    Format
	// Atomic rejects changes that do not fit into one batch. If any part of a batch fails, the whole batch is rolled
	// back.
	Atomic bool
	// confirm, if set, asks before existing entries are changed or deleted.
	confirm *ConfirmFlag
}

// AddConfirm makes ChangeTables ask for confirmation before it changes or deletes entries.
func (f *ControllerFlags) AddConfirm(cmd *cobra.Command) {
	f.confirm = new(ConfirmFlag)
	f.confirm.Add(cmd)
}

// confirmPlan asks for confirmation if a plan changes or deletes entries.
func (f *ControllerFlags) confirmPlan(ctx context.Context, env *Env, plan p4ctl.Plan) error {
	added, changed, deleted := plan.Count()
	if f.confirm == nil || f.DryRun || changed+deleted == 0 {
		return nil
	}
	return f.confirm.Confirm(ctx, env, fmt.Sprintf("%d added, %d changed, %d deleted in the tables of %s: write this",
		added, changed, deleted, f.Target))
}

// AddTarget adds the flag --target for commands that only read tables.
func (f *ControllerFlags) AddTarget(cmd *cobra.Command) {
	f.Target = "127.0.0.1:9559"
	cmd.Flags().Var((*TargetFlag)(&f.Target), "target",
		"P4Runtime server: HOST:PORT or unix:PATH; 'olafctl device serve' starts one")
}

// TargetFlag is the value of --target. It also accepts addresses in the form that -d accepts.
type TargetFlag string

func (f *TargetFlag) String() string { return string(*f) }
func (f *TargetFlag) Type() string   { return "address" }
func (f *TargetFlag) Set(s string) error {
	target, err := testbed.AgentTarget(s)
	*f = TargetFlag(target)
	return err
}

// AddWrite adds the flags for commands that write tables.
func (f *ControllerFlags) AddWrite(cmd *cobra.Command) {
	f.AddTarget(cmd)
	cmd.Flags().StringVar(&f.id, "election-id", "",
		"election id HIGH:LOW (default 1:1, or one above a former primary's)")
	cmd.Flags().BoolVar(&f.DryRun, "dry-run", false, "print what would change and write nothing")
	AddFormatFlag(cmd, &f.Out, Table, JSON)
}

// dialServer opens a session, which must be primary unless it is read-only.
func (f *ControllerFlags) dialServer(ctx context.Context, env *Env, readOnly bool) (*p4ctl.Session, error) {
	secure, err := env.TLS.Config(env.Now())
	if err != nil {
		return nil, err
	}
	if readOnly {
		return p4ctl.Dial(ctx, f.Target, p4ctl.Options{ReadOnly: true, TLS: secure, Programs: env.Programs})
	}
	o := p4ctl.Options{Succeed: f.id == "", TLS: secure, Programs: env.Programs}
	if f.id != "" {
		if o.ElectionID, err = p4ctl.ParseElectionID(f.id); err != nil {
			return nil, UsageError("--election-id: %v", err)
		}
	}
	session, err := p4ctl.Dial(ctx, f.Target, o)
	if err != nil {
		return nil, ExplainAgent(f.Target, err)
	}
	if session.State() != p4ctl.Primary {
		return nil, errors.Join(session.Err(), session.Close())
	}
	return session, nil
}

// ExplainAgent adds a remedy to the error from an agent that serves only registers.
func ExplainAgent(target string, err error) error {
	if p4ctl.Code(err) != codes.Unimplemented {
		return err
	}
	return &Exit{olaf.Device, fmt.Errorf("%s serves no tables: %w; its agent has no driver for them "+
		"(docs/guide/card.md, step 7)", target, err)}
}

// ChangeTables reads the tables, applies edit to them and writes the differences, in a single batch if they fit.
func (f *ControllerFlags) ChangeTables(ctx context.Context, env *Env,
	edit func(p4ctl.Tables) (p4ctl.Tables, error)) (err error) {
	session, err := f.dialServer(ctx, env, f.DryRun)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	if !f.DryRun {
		if err := ensurePipeline(ctx, session); err != nil {
			return err
		}
	}
	actual, err := session.Read(ctx)
	if err != nil {
		return ExplainAgent(f.Target, err)
	}
	desired, err := edit(actual)
	if err != nil {
		return UsageError("%v", err)
	}
	plan := p4ctl.Diff(actual, desired)
	if err := f.confirmPlan(ctx, env, plan); err != nil {
		return err
	}
	if err := addTables(ctx, env, session, f.DryRun, desired); err != nil {
		return err
	}
	var applied p4ctl.Applied
	if !f.DryRun {
		write := session.Apply
		if f.Atomic {
			write = session.ApplyWhole
		}
		if applied, err = write(ctx, plan); err != nil {
			return err
		}
		back, err := session.Read(ctx)
		if err != nil {
			return fmt.Errorf("read the tables back: %w", err)
		}
		if back.Hash() != desired.Hash() {
			return fmt.Errorf("%w: the tables read back differ from what was written; 'olafctl tables diff' "+
				"shows where", fpga.ErrRefused)
		}
	}
	return f.PrintPlan(env, plan, applied, desired)
}

// addTables adds the tables of the switch programs that desired uses to the pipeline if they are missing.
func addTables(ctx context.Context, env *Env, s *p4ctl.Session, dryRun bool, desired p4ctl.Tables) error {
	programs := desired.Programs()
	if dryRun || len(programs) == 0 {
		return nil
	}
	added, err := s.AddPrograms(ctx, programs...)
	if added {
		fmt.Fprintf(env.Stderr, "the pipeline now has the tables of %s too\n",
			strings.Join(program.ProgramNames(programs), ", "))
	}
	return err
}

// ensurePipeline pushes our pipeline to a server that has none. It does not replace an existing pipeline, because a
// push clears the tables.
func ensurePipeline(ctx context.Context, s *p4ctl.Session) error {
	config, err := s.Pipeline(ctx)
	if err == nil && config.GetP4Info() != nil {
		return nil
	}
	_, err = s.PushPipeline(ctx, p4ctl.PipelineConfig(p4.Twin()))
	return err
}

// planDocument is the JSON document olafctl.table-plan/v1, which describes a change of tables.
type planDocument struct {
	Head
	DryRun  bool     `json:"dry_run"`
	Added   int      `json:"added"`
	Changed int      `json:"changed"`
	Deleted int      `json:"deleted"`
	Batches int      `json:"batches"`
	Atomic  bool     `json:"atomic"` // one batch, applied fully or not at all
	Hash    string   `json:"sha256"` // SHA-256 of the tables afterwards
	Changes []string `json:"changes"`
}

// PrintPlan prints a plan and the outcome of applying it.
func (f *ControllerFlags) PrintPlan(env *Env, plan p4ctl.Plan, applied p4ctl.Applied, desired p4ctl.Tables) error {
	d := planDocument{Head: Info("table-plan"), DryRun: f.DryRun, Batches: applied.Batches,
		Atomic: applied.Atomic, Hash: desired.Hash(), Changes: []string{}}
	d.Added, d.Changed, d.Deleted = plan.Count()
	if !plan.Empty() {
		d.Changes = strings.Split(strings.TrimRight(plan.String(), "\n"), "\n")
	}
	if f.Out == JSON {
		return WriteJSON(env.Stdout, d)
	}
	for _, line := range d.Changes {
		fmt.Fprintln(env.Stdout, line)
	}
	done := "done"
	switch {
	case f.DryRun:
		done = "not done"
	case applied.Atomic:
		done = "done as one batch"
	case applied.Batches > 1:
		done = fmt.Sprintf("done in %d batches", applied.Batches)
	}
	fmt.Fprintf(env.Stderr, "%d added, %d changed, %d deleted: %s\n", d.Added, d.Changed, d.Deleted, done)
	return nil
}
