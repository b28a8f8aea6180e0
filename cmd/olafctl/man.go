package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
)

func newManCmd(env *cli.Env) *cobra.Command {
	var folder string
	var force bool
	cmd := &cobra.Command{
		Use:   "man",
		Short: "Write manual pages, one per command",
		Long:  `Write the manual pages of all commands to a folder. They are generated from the help and list every flag.`,
		Example: `  olafctl man -w man1 && man ./man1/olafctl-bench.1
  olafctl man -w ~/.local/share/man/man1`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if folder == "" {
				return cli.UsageError("name the folder to write to: -w FOLDER")
			}
			if err := os.MkdirAll(folder, 0o755); err != nil {
				return err
			}
			return writeManual(env, cmd.Root(), folder, force)
		},
	}
	cli.AddWrite(cmd.Flags(), &folder, "folder to write to; created if missing")
	cli.AddForce(cmd.Flags(), &force, "existing pages")
	return cmd
}

// writeManual writes a manual page for every command of the tree. If one of the pages already exists, it writes
// nothing.
func writeManual(env *cli.Env, root *cobra.Command, folder string, force bool) error {
	pages, err := makeManual(root, cli.ThisBuild().Date)
	if err != nil {
		return err
	}
	for _, p := range pages {
		err = errors.Join(err, cli.RefuseExisting(filepath.Join(folder, p.name), force))
	}
	if err != nil {
		return err
	}
	for _, p := range pages {
		if err := os.WriteFile(filepath.Join(folder, p.name), p.text, 0o644); err != nil {
			return err
		}
	}
	fmt.Fprintf(env.Stderr, "wrote %d pages to %s\n", len(pages), folder)
	return nil
}

// manPage is a manual page.
type manPage struct {
	name string
	text []byte
}

// makeManual returns the manual pages of a command and its subcommands. The date is that of the build, so that equal
// programs produce equal pages.
func makeManual(cmd *cobra.Command, date time.Time) ([]manPage, error) {
	if !cmd.IsAvailableCommand() && cmd.HasParent() || cmd.IsAdditionalHelpTopicCommand() {
		return nil, nil
	}
	cmd.InitDefaultHelpFlag()
	cmd.DisableAutoGenTag = true
	var text bytes.Buffer
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	header := &doc.GenManHeader{Title: strings.ToUpper(name), Section: "1", Source: "olafctl", Manual: "olafctl",
		Date: &date}
	if err := doc.GenMan(cmd, header, &text); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	pages := []manPage{{name + ".1", text.Bytes()}}
	for _, sub := range cmd.Commands() {
		below, err := makeManual(sub, date)
		if err != nil {
			return nil, err
		}
		pages = append(pages, below...)
	}
	return pages, nil
}
