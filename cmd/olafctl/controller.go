package main

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
	"github.com/olafctl/olaf/p4ctl"
	"github.com/olafctl/olaf/p4ctl/p4"
)

// controllerFlags choose a P4Runtime server and how to be its controller.
type controllerFlags struct {
	target string
	id     string
	dryRun bool
	out    format
}

func (f *controllerFlags) addTarget(cmd *cobra.Command) {
	f.target = "127.0.0.1:9559"
	cmd.Flags().Var((*targetFlag)(&f.target), "target", "P4Runtime server: HOST:PORT or unix:PATH; 'olafctl serve' starts one")
}

// targetFlag is the value of --target, in the form of -d, too.
type targetFlag string

func (f *targetFlag) String() string { return string(*f) }
func (f *targetFlag) Type() string   { return "address" }
func (f *targetFlag) Set(s string) error {
	target, err := testbed.AgentTarget(s)
	*f = targetFlag(target)
	return err
}

// addWrite adds what writing needs too.
func (f *controllerFlags) addWrite(cmd *cobra.Command) {
	f.addTarget(cmd)
	cmd.Flags().StringVar(&f.id, "election-id", p4ctl.DefaultElectionID().String(), "HIGH:LOW; among live controllers the highest one writes")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "print what would change and write nothing")
	addFormatFlag(cmd, &f.out, formatTable, formatJSON)
}

// dial opens a session. One that shall write must be primary.
func (f *controllerFlags) dial(ctx context.Context, env *environment, readOnly bool) (*p4ctl.Session, error) {
	secure, err := env.tls.config(env.now())
	if err != nil {
		return nil, err
	}
	if readOnly {
		return p4ctl.Dial(ctx, f.target, p4ctl.Options{ReadOnly: true, TLS: secure})
	}
	id, err := p4ctl.ParseElectionID(f.id)
	if err != nil {
		return nil, usageError("--election-id: %v", err)
	}
	session, err := p4ctl.Dial(ctx, f.target, p4ctl.Options{ElectionID: id, TLS: secure})
	if err != nil {
		return nil, explainAgent(f.target, err)
	}
	if session.State() != p4ctl.Primary {
		err := fmt.Errorf("%w with election id %s; 'olafctl tables takeover' says which one would do, and ends the other controller's run", p4ctl.ErrNotPrimary, id)
		return nil, errors.Join(err, session.Close())
	}
	return session, nil
}

// explainAgent says what is missing where an agent lends registers alone.
func explainAgent(target string, err error) error {
	if p4ctl.Code(err) != codes.Unimplemented {
		return err
	}
	return &exitError{olaf.Device, fmt.Errorf("%s serves no tables: %w; its agent has no driver for them (docs/bring-up.md, step 7)", target, err)}
}

// change reads the tables, lets edit say what they shall be, and writes the difference, as one batch where it fits.
func (f *controllerFlags) change(ctx context.Context, env *environment, edit func(p4ctl.Tables) (p4ctl.Tables, error)) (err error) {
	session, err := f.dial(ctx, env, f.dryRun)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	if !f.dryRun {
		if err := ensurePipeline(ctx, session); err != nil {
			return err
		}
	}
	actual, err := session.Read(ctx)
	if err != nil {
		return explainAgent(f.target, err)
	}
	desired, err := edit(actual)
	if err != nil {
		return usageError("%v", err)
	}
	plan := p4ctl.Diff(actual, desired)
	var applied p4ctl.Applied
	if !f.dryRun {
		if applied, err = session.Apply(ctx, plan); err != nil {
			return err
		}
		back, err := session.Read(ctx)
		if err != nil {
			return fmt.Errorf("read the tables back: %w", err)
		}
		if back.Hash() != desired.Hash() {
			return fmt.Errorf("%w: the tables read back differ from what was written; 'olafctl tables diff' shows where", fpga.ErrRefused)
		}
	}
	return f.print(env, plan, applied, desired)
}

// ensurePipeline pushes our pipeline to a server that has none. One that is there stays: pushing clears tables.
func ensurePipeline(ctx context.Context, s *p4ctl.Session) error {
	config, err := s.Pipeline(ctx)
	if err == nil && config.GetP4Info() != nil {
		return nil
	}
	_, err = s.PushPipeline(ctx, p4ctl.PipelineConfig(p4.Twin()))
	return err
}

// planDocument is olafctl.table-plan/v1.
type planDocument struct {
	schema
	DryRun  bool     `json:"dry_run"`
	Added   int      `json:"added"`
	Changed int      `json:"changed"`
	Deleted int      `json:"deleted"`
	Batches int      `json:"batches"`
	Atomic  bool     `json:"atomic"` // one batch, done wholly or not at all
	Hash    string   `json:"sha256"` // of the tables afterwards
	Changes []string `json:"changes"`
}

func (f *controllerFlags) print(env *environment, plan p4ctl.Plan, applied p4ctl.Applied, desired p4ctl.Tables) error {
	d := planDocument{schema: schema{"olafctl.table-plan/v1"}, DryRun: f.dryRun, Batches: applied.Batches, Atomic: applied.Atomic, Hash: desired.Hash(), Changes: []string{}}
	d.Added, d.Changed, d.Deleted = plan.Count()
	if !plan.Empty() {
		d.Changes = strings.Split(strings.TrimRight(plan.String(), "\n"), "\n")
	}
	if f.out == formatJSON {
		return writeJSON(env.stdout, d)
	}
	for _, line := range d.Changes {
		fmt.Fprintln(env.stdout, line)
	}
	done := "done"
	switch {
	case f.dryRun:
		done = "not done"
	case applied.Atomic:
		done = "done as one batch"
	case applied.Batches > 1:
		done = fmt.Sprintf("done in %d batches", applied.Batches)
	}
	fmt.Fprintf(env.stderr, "%d added, %d changed, %d deleted: %s\n", d.Added, d.Changed, d.Deleted, done)
	return nil
}
