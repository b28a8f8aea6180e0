package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/p4ctl"
)

func newTablesGetCmd(env *environment) *cobra.Command {
	var (
		f     controllerFlags
		path  string
		force bool
	)
	cmd := &cobra.Command{
		Use:   "get",
		Short: "Print a server's tables in the form that apply reads",
		Example: `  olafctl tables get -w tables.yaml
  olafctl tables get --target unix:/run/olaf.sock`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := refuseExisting(path, force); err != nil {
				return err
			}
			tables, err := readTarget(cmd.Context(), env, f.target)
			if err != nil {
				return err
			}
			if path != "" {
				return writeWhole(env, path, tables.AppendYAML(nil))
			}
			_, err = env.stdout.Write(tables.AppendYAML(nil))
			return err
		},
	}
	f.addTarget(cmd)
	cmd.Flags().StringVarP(&path, "write", "w", "", "write to this file")
	cmd.Flags().BoolVar(&force, "force", false, "replace the file")
	return cmd
}

// loadTables reads a file of desired tables.
func loadTables(path string) (p4ctl.Tables, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return p4ctl.Tables{}, usageError("%v", err)
	}
	t, err := p4ctl.ParseTables(text)
	if err != nil {
		return t, usageError("%s: %v", path, err)
	}
	return t, nil
}

func newTablesApplyCmd(env *environment) *cobra.Command {
	var f controllerFlags
	cmd := &cobra.Command{
		Use:   "apply FILE",
		Short: "Make a server's tables what a file says",
		Long: `Make a server's tables what a file says: read, compare, write the difference, read back. Up to 100 changes are one batch that
is done wholly or not at all; more go in batches of 100, groups before clusters before workers, and what is left out last.`,
		Example: `  olafctl tables apply tables.yaml --dry-run
  olafctl tables apply tables.yaml --target 127.0.0.1:9559`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			desired, err := loadTables(args[0])
			if err != nil {
				return err
			}
			return f.change(cmd.Context(), env, func(p4ctl.Tables) (p4ctl.Tables, error) { return desired, nil })
		},
	}
	f.addWrite(cmd)
	return cmd
}

func newTablesDiffCmd(env *environment) *cobra.Command {
	var (
		f    controllerFlags
		code bool
	)
	cmd := &cobra.Command{
		Use:     "diff FILE",
		Short:   "Say what apply would change",
		Example: "  olafctl tables diff tables.yaml --exit-code",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			desired, err := loadTables(args[0])
			if err != nil {
				return err
			}
			actual, err := readTarget(cmd.Context(), env, f.target)
			if err != nil {
				return err
			}
			plan := p4ctl.Diff(actual, desired)
			f.dryRun = true
			if err := f.print(env, plan, p4ctl.Applied{}, desired); err != nil {
				return err
			}
			if code && !plan.Empty() {
				return &exitError{kind: olaf.Missed}
			}
			return nil
		},
	}
	f.addTarget(cmd)
	addFormatFlag(cmd, &f.out, formatTable, formatJSON)
	cmd.Flags().BoolVar(&code, "exit-code", false, "end with exit code 4 when something differs")
	return cmd
}

func newTablesClearCmd(env *environment) *cobra.Command {
	var f controllerFlags
	cmd := &cobra.Command{
		Use:     "clear",
		Short:   "Empty a server's tables and groups",
		Example: "  olafctl tables clear --dry-run",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.change(cmd.Context(), env, func(p4ctl.Tables) (p4ctl.Tables, error) { return p4ctl.Tables{}, nil })
		},
	}
	f.addWrite(cmd)
	return cmd
}

func newTablesTakeoverCmd(env *environment) *cobra.Command {
	var f controllerFlags
	cmd := &cobra.Command{
		Use:   "takeover",
		Short: "Become a server's primary controller, whoever is it now",
		Long: `Become a server's primary controller by an election id above the highest one it ever saw. The controller that was primary
can no longer write; a bench that it runs ends. The server remembers the id until it restarts, so that later commands need
it with --election-id.`,
		Example: "  olafctl tables takeover --target 127.0.0.1:9559",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			secure, err := env.tls.config(env.now())
			if err != nil {
				return err
			}
			session, err := p4ctl.Dial(cmd.Context(), f.target, p4ctl.Options{ElectionID: p4ctl.ElectionID{Low: 1}, TLS: secure})
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, session.Close()) }()
			if err := session.Takeover(cmd.Context()); err != nil {
				return err
			}
			fmt.Fprintf(env.stdout, "%s\n", session.ElectionID())
			fmt.Fprintf(env.stderr, "primary at %s; go on with --election-id %s\n", f.target, session.ElectionID())
			return nil
		},
	}
	f.addTarget(cmd)
	return cmd
}
