package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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
	cmd.InitDefaultHelpCmd()
	cmd.InitDefaultHelpFlag()
	pages := []manPage{{dashedName(cmd) + ".1", formatPage(cmd, date)}}
	for _, sub := range cmd.Commands() {
		below, err := makeManual(sub, date)
		if err != nil {
			return nil, err
		}
		pages = append(pages, below...)
	}
	return pages, nil
}

// dashedName returns the name of a command's page.
func dashedName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// formatPage returns a command's manual page in the man macros of roff.
func formatPage(cmd *cobra.Command, date time.Time) []byte {
	var b bytes.Buffer
	name := dashedName(cmd)
	fmt.Fprintf(&b, ".nh\n.TH %q \"1\" %q \"olafctl\" \"olafctl\"\n", strings.ToUpper(name), date.Format("Jan 2006"))
	section := func(title, text string) { fmt.Fprintf(&b, "\n.SH %s\n%s\n", title, text) }
	section("NAME", name+" - "+escapeRoff(cmd.Short))
	section("SYNOPSIS", bold(cmd.UseLine()))
	section("DESCRIPTION", formatText(cmp.Or(cmd.Long, cmd.Short)))
	for _, o := range []struct {
		title string
		flags *pflag.FlagSet
	}{{"OPTIONS", cmd.NonInheritedFlags()}, {"OPTIONS INHERITED FROM PARENT COMMANDS", cmd.InheritedFlags()}} {
		if o.flags.HasAvailableFlags() {
			section(o.title, formatOptions(o.flags))
		}
	}
	if cmd.Example != "" {
		section("EXAMPLE", ".EX\n"+escapeRoff(cmd.Example)+"\n.EE")
	}
	var others []string
	if cmd.HasParent() {
		others = append(others, bold(dashedName(cmd.Parent())+"(1)"))
	}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() && !c.IsAdditionalHelpTopicCommand() {
			others = append(others, bold(dashedName(c)+"(1)"))
		}
	}
	if len(others) > 0 {
		section("SEE ALSO", strings.Join(others, ", "))
	}
	return b.Bytes()
}

// formatText returns the paragraphs of a help text. Cobra's own help has headings and indented commands as well.
func formatText(text string) string {
	paragraphs := strings.Split(strings.TrimSpace(text), "\n\n")
	for i, p := range paragraphs {
		heading, isHeading := strings.CutPrefix(p, "#### ")
		switch {
		case isHeading:
			paragraphs[i] = ".SS " + heading
		case strings.HasPrefix(p, "\t"):
			paragraphs[i] = ".EX\n" + escapeRoff(strings.ReplaceAll(p[1:], "\n\t", "\n")) + "\n.EE"
		case i > 0:
			paragraphs[i] = ".PP\n" + escapeRoff(p)
		default:
			paragraphs[i] = escapeRoff(p)
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

// formatOptions returns one paragraph per flag, with the flag's default in it.
func formatOptions(flags *pflag.FlagSet) string {
	var paragraphs []string
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Deprecated != "" {
			return
		}
		name := bold("--" + f.Name)
		if f.Shorthand != "" {
			name = bold("-"+f.Shorthand) + ", " + name
		}
		value := "=" + f.DefValue
		if f.Value.Type() == "string" {
			value = fmt.Sprintf("=%q", f.DefValue)
		}
		if f.NoOptDefVal != "" {
			value = "[" + value + "]"
		}
		_, usage := pflag.UnquoteUsage(f)
		paragraphs = append(paragraphs, name+escapeRoff(value)+"\n\t"+escapeRoff(usage))
	})
	return strings.Join(paragraphs, "\n\n.PP\n")
}

func bold(s string) string { return `\fB` + escapeRoff(s) + `\fP` }

// escapeRoff escapes backslashes, and the characters that begin a request at the start of a line.
func escapeRoff(s string) string {
	s = strings.ReplaceAll(s, `\`, `\e`)
	return strings.NewReplacer("\n.", "\n\\&.", "\n'", "\n\\&'").Replace(s)
}
