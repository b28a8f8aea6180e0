package tables

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/p4ctl"
)

func newTablesGetCmd(env *cli.Env) *cobra.Command {
	var (
		f     cli.ControllerFlags
		path  string
		force bool
	)
	cmd := &cobra.Command{
		Use:   "get",
		Short: "Print a server's tables in the format that apply reads",
		Example: `  olafctl tables get -w tables.yaml
  olafctl tables get --target unix:/run/olaf.sock`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.RefuseExisting(path, force); err != nil {
				return err
			}
			tables, err := ReadTarget(cmd.Context(), env, f.Target)
			if err != nil {
				return err
			}
			if path != "" {
				return cli.WriteWhole(env, path, tables.AppendYAML(nil))
			}
			_, err = env.Stdout.Write(tables.AppendYAML(nil))
			return err
		},
	}
	f.AddTarget(cmd)
	cli.AddWrite(cmd.Flags(), &path, "write to this file")
	cli.AddForce(cmd.Flags(), &force, "the file")
	return cmd
}

func loadTables(env *cli.Env, path string) (p4ctl.Tables, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return p4ctl.Tables{}, cli.UsageError("%v", err)
	}
	t, err := p4ctl.ParseTables(text, env.Programs...)
	if err != nil {
		return t, cli.UsageError("%s: %v", path, err)
	}
	return t, nil
}

func newTablesApplyCmd(env *cli.Env) *cobra.Command {
	var f cli.ControllerFlags
	cmd := &cobra.Command{
		Use:   "apply FILE",
		Short: "Write a file's tables to a server",
		Long: `Write a file's tables to a server: read, compare, write the difference, and read back. Up to 100 changes are one batch,
applied fully or not at all; larger changes are split into batches of 100.`,
		Example: `  olafctl tables apply tables.yaml --dry-run
  olafctl tables apply tables.yaml --target 127.0.0.1:9559`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			desired, err := loadTables(env, args[0])
			if err != nil {
				return err
			}
			return f.ChangeTables(cmd.Context(), env, func(p4ctl.Tables) (p4ctl.Tables, error) { return desired, nil })
		},
	}
	f.AddWrite(cmd)
	return cmd
}

func newTablesDiffCmd(env *cli.Env) *cobra.Command {
	var (
		f    cli.ControllerFlags
		code bool
	)
	cmd := &cobra.Command{
		Use:     "diff FILE",
		Short:   "Print what apply would change",
		Example: "  olafctl tables diff tables.yaml --exit-code",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			desired, err := loadTables(env, args[0])
			if err != nil {
				return err
			}
			actual, err := ReadTarget(cmd.Context(), env, f.Target)
			if err != nil {
				return err
			}
			plan := p4ctl.Diff(actual, desired)
			f.DryRun = true
			if err := f.PrintPlan(env, plan, p4ctl.Applied{}, desired); err != nil {
				return err
			}
			if code && !plan.Empty() {
				return &cli.Exit{Kind: olaf.Missed}
			}
			return nil
		},
	}
	f.AddTarget(cmd)
	cli.AddFormatFlag(cmd, &f.Out, cli.Table, cli.JSON)
	cmd.Flags().BoolVar(&code, "exit-code", false, "exit with code 4 if anything differs")
	return cmd
}

func newTablesClearCmd(env *cli.Env) *cobra.Command {
	var f cli.ControllerFlags
	cmd := &cobra.Command{
		Use:     "clear",
		Short:   "Delete all table entries and groups on a server",
		Example: "  olafctl tables clear --dry-run\n  olafctl tables clear --yes   # in a script at a terminal",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.ChangeTables(cmd.Context(), env,
				func(p4ctl.Tables) (p4ctl.Tables, error) { return p4ctl.Tables{}, nil })
		},
	}
	f.AddWrite(cmd)
	f.AddConfirm(cmd)
	return cmd
}

func newTablesTakeoverCmd(env *cli.Env) *cobra.Command {
	var f cli.ControllerFlags
	cmd := &cobra.Command{
		Use:   "takeover",
		Short: "Take over as a server's primary controller",
		Long: `Take over as a server's primary controller with an election id above the highest one it has seen. The former primary can no
longer write, and a bench that it runs ends. Later commands without --election-id use the next id.`,
		Example: "  olafctl tables takeover --target 127.0.0.1:9559",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			secure, err := env.TLS.Config(env.Now())
			if err != nil {
				return err
			}
			session, err := p4ctl.DialBeside(cmd.Context(), f.Target, p4ctl.Options{TLS: secure})
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, session.Close()) }()
			if err := session.Takeover(cmd.Context()); err != nil {
				return err
			}
			fmt.Fprintf(env.Stdout, "%s\n", session.ElectionID())
			fmt.Fprintf(env.Stderr, "was primary at %s with this election id; now there is no primary\n", f.Target)
			return nil
		},
	}
	f.AddTarget(cmd)
	return cmd
}
