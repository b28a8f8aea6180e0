package main

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"
)

// format is the value of -o.
type format string

const (
	formatTable format = "table"
	formatJSON  format = "json"
	formatCSV   format = "csv"
)

// formatFlag is -o limited to what a command can print.
type formatFlag struct {
	value   *format
	allowed []format
}

func (f formatFlag) String() string { return string(*f.value) }
func (f formatFlag) Type() string   { return "format" }
func (f formatFlag) Set(s string) error {
	if !slices.Contains(f.allowed, format(s)) {
		return fmt.Errorf("unknown format %q; use %s", s, joinFormats(f.allowed))
	}
	*f.value = format(s)
	return nil
}

func joinFormats(formats []format) string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = string(f)
	}
	return strings.Join(names, "|")
}

// addFormatFlag adds -o; without a list all three formats are offered.
func addFormatFlag(cmd *cobra.Command, value *format, allowed ...format) {
	if len(allowed) == 0 {
		allowed = []format{formatTable, formatJSON, formatCSV}
	}
	if *value == "" {
		*value = formatTable
	}
	cmd.Flags().VarP(formatFlag{value, allowed}, "output", "o", "output format: "+joinFormats(allowed))
	complete(cmd, "output", func() []string { return strings.Split(joinFormats(allowed), "|") })
}

// complete offers the values of a flag to the shell.
func complete(cmd *cobra.Command, flag string, values func() []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return values(), cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err) // a flag that was not declared: a mistake in this package
	}
}

// completeArgs offers the values of a command's arguments to the shell.
func completeArgs(values func() []string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return values(), cobra.ShellCompDirectiveNoFileComp
	}
}

// onTerminal puts foreign text on a single line, without characters that would move or colour what stands beside it.
func onTerminal(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, text)
}

// schema heads every JSON document (docs/output.md).
type schema struct {
	Schema string `json:"schema"`
}

func writeJSON(w io.Writer, document any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(document)
}

// grid is a list for people and for scripts: one header row, then rows.
type grid struct {
	header []string
	rows   [][]string
}

func (g *grid) add(cells ...string) { g.rows = append(g.rows, cells) }

// write prints the grid aligned, or as CSV with the headers in snake case.
func (g *grid) write(w io.Writer, f format) error {
	if f == formatCSV {
		out := csv.NewWriter(w)
		header := make([]string, len(g.header))
		for i, h := range g.header {
			header[i] = strings.ReplaceAll(strings.ToLower(h), " ", "_")
		}
		_ = out.Write(header) // kept by the writer and returned by Error below
		_ = out.WriteAll(g.rows)
		return out.Error()
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{g.header}, g.rows...) {
		fmt.Fprintln(tw, strings.TrimRight(strings.Join(row, "\t"), "\t"))
	}
	return tw.Flush()
}

// refuseExisting says what to do about a target that is there already, whose folder is not, or that is no file.
func refuseExisting(path string, force bool) error {
	if path == "" {
		return nil
	}
	if path == "-" {
		return usageError("- names no file; what a command prints goes to standard output by itself")
	}
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		return usageError("%s is a directory; name a file", path)
	}
	folder := filepath.Dir(path)
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return usageError("%s can't be written: the folder %s does not exist", path, folder)
	}
	if _, err := os.Lstat(path); err == nil && !force {
		return usageError("%s exists; add --force to replace it, or choose another name", path)
	}
	return nil
}

// writeWhole makes a whole file and says so.
func writeWhole(env *environment, path string, text []byte) error {
	if err := renameio.WriteFile(path, text, 0o644); err != nil {
		return err
	}
	fmt.Fprintf(env.stderr, "wrote %s\n", path)
	return nil
}

// endsIn refuses a file name that says another format than the one that is written.
func endsIn(flag, path string, endings ...string) error {
	if path == "" || slices.Contains(endings, strings.ToLower(filepath.Ext(path))) {
		return nil
	}
	return usageError("%s %s: the name must end in %s", flag, path, strings.Join(endings, " or "))
}

// distinct refuses one name for two files; empty names stand for none.
func distinct(paths ...string) error {
	for i, path := range paths {
		for _, other := range paths[:i] {
			if path != "" && other != "" && filepath.Clean(path) == filepath.Clean(other) {
				return usageError("%s would be written twice; choose two names", path)
			}
		}
	}
	return nil
}
