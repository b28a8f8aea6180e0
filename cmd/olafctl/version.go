package main

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
)

func newVersionCmd(env *cli.Env) *cobra.Command {
	format := cli.Table
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print version, commit and toolchain",
		Example: "  olafctl version -o json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b := cli.ThisBuild()
			if format == cli.JSON {
				return cli.WriteJSON(env.Stdout, struct {
					cli.Head
					cli.Build
				}{cli.Info("version"), b})
			}
			_, err := fmt.Fprintln(env.Stdout, versionLine())
			return err
		},
	}
	cli.AddFormatFlag(cmd, &format, cli.Table, cli.JSON)
	return cmd
}

// versionLine returns the output of --version.
func versionLine() string {
	b := cli.ThisBuild()
	revision := cmp.Or(b.Revision, "unknown commit")
	if b.Dirty {
		revision += " (with local changes)"
	}
	return fmt.Sprintf("olafctl %s, %s, %s %s", b.Version, revision, b.Go, b.Platform)
}
