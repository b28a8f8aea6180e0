package cli

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/result"
	"github.com/olafctl/olaf/results/table"
	"github.com/olafctl/olaf/results/text"
)

// Format is an output format, which the flag -o selects.
type Format string

const (
	Table Format = "table"
	JSON  Format = "json"
	CSV   Format = "csv"
	JSONL Format = "jsonl" // events as they happen, then the document, one per line
	YAML  Format = "yaml"  // the plan, as a file that can be read back
)

// formatFlag is the flag -o, limited to the formats of a command.
type formatFlag struct {
	value   *Format
	allowed []Format
}

func (f formatFlag) String() string { return string(*f.value) }
func (f formatFlag) Type() string   { return "format" }
func (f formatFlag) Set(s string) error {
	if !slices.Contains(f.allowed, Format(s)) {
		return fmt.Errorf("unknown format %q; use %s", s, joinFormats(f.allowed))
	}
	*f.value = Format(s)
	return nil
}

func joinFormats(formats []Format) string {
	return strings.Join(olaf.Map(formats, func(f Format) string { return string(f) }), "|")
}

// AddFormatFlag adds -o with the allowed formats. Without allowed, the formats are table, json and csv.
func AddFormatFlag(cmd *cobra.Command, value *Format, allowed ...Format) {
	if len(allowed) == 0 {
		allowed = []Format{Table, JSON, CSV}
	}
	*value = cmp.Or(*value, Table)
	InGroup(cmd, OutputFlags, func() {
		cmd.Flags().VarP(formatFlag{value, allowed}, "output", "o", "output format: "+joinFormats(allowed))
	})
	Complete(cmd, "output", func() []string { return strings.Split(joinFormats(allowed), "|") })
}

// Complete registers a function that completes the values of a flag in the shell.
func Complete(cmd *cobra.Command, flag string, values func() []string) {
	err := cmd.RegisterFlagCompletionFunc(flag,
		func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return values(), cobra.ShellCompDirectiveNoFileComp
		})
	if err != nil {
		panic(err) // the flag was not declared: a mistake in the caller
	}
}

// CompleteArgs returns a function that completes the arguments of a command in the shell.
func CompleteArgs(values func() []string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return values(), cobra.ShellCompDirectiveNoFileComp
	}
}

// OnTerminal folds untrusted text into a single line and removes control characters.
func OnTerminal(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, text)
}

// Head is the beginning of every JSON document (docs/reference/output.md).
type Head struct {
	Schema string `json:"schema"`
	Kind   string `json:"document,omitempty"` // kind of the entries, the object or the check
}

// List returns the head of a document that lists entries of this kind.
func List(kind string) Head { return Head{"olafctl.list/v1", kind} }

// Info returns the head of a document about one object.
func Info(kind string) Head { return Head{"olafctl.info/v1", kind} }

// Check returns the head of a document with the results of checking an object.
func Check(kind string) Head { return Head{"olafctl.check/v1", kind} }

// WriteJSON prints an indented JSON document.
func WriteJSON(w io.Writer, document any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(document)
}

// WriteDocument prints a document as indented JSON, or on a single line if the format is JSONL.
func WriteDocument(env *Env, out Format, document any) error {
	if out == JSONL {
		return WriteLine(env.Stdout, document)
	}
	return WriteJSON(env.Stdout, document)
}

// Grid is a table with a header and rows, for people and scripts.
type Grid struct {
	Header []string
	Rows   [][]string
	Uncut  int // if set, every row takes one line, and cells after the first Uncut columns are cut to fit
}

func (g *Grid) Add(cells ...string) { g.Rows = append(g.Rows, cells) }

// Write prints the grid to fit the page, or as CSV with headers in snake case.
func (g *Grid) Write(env *Env, f Format) error {
	if f == CSV {
		inSnakeCase := func(h string) string { return strings.ReplaceAll(strings.ToLower(h), " ", "_") }
		return writeCSV(env.Stdout, olaf.Map(g.Header, inSnakeCase), g.Rows)
	}
	return g.Page().Write(env.Stdout, env.View(false).Columns())
}

func writeCSV(w io.Writer, header []string, rows [][]string) error {
	out := csv.NewWriter(w)
	_ = out.Write(header) // returned by Error below
	_ = out.WriteAll(rows)
	return out.Error()
}

// sentence is the number of words at which a cell's text is treated as prose and may be wrapped.
const sentence = 3

// Page returns the grid as a table that can be printed on a page.
func (g *Grid) Page() *table.Grid {
	page := &table.Grid{Rows: g.Rows, Keys: g.Uncut, OneLine: g.Uncut > 0}
	for i, header := range g.Header {
		prose := slices.ContainsFunc(g.Rows,
			func(row []string) bool { return i < len(row) && len(strings.Fields(row[i])) >= sentence })
		page.Columns = append(page.Columns, table.GridColumn{Header: header, Prose: prose})
	}
	return page
}

func AddExplainFlag(cmd *cobra.Command, explain *bool) {
	InGroup(cmd, OutputFlags, func() {
		cmd.Flags().BoolVar(explain, "explain", false, "also print notes and every statistic")
	})
}

// RefuseExisting returns an error if path exists and force is not set, if its folder does not exist, or if path cannot
// be a file.
func RefuseExisting(path string, force bool) error {
	if path == "" {
		return nil
	}
	if path == "-" {
		return UsageError("\"-\" is not a file; leave the flag out to print to standard output")
	}
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		return UsageError("%s is a directory; name a file", path)
	}
	folder := filepath.Dir(path)
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return UsageError("%s cannot be written: the folder %s does not exist", path, folder)
	}
	if _, err := os.Lstat(path); err == nil && !force {
		return UsageError("%s exists; add --force to replace it, or choose another name", path)
	}
	return nil
}

// RefuseAnyExisting calls RefuseExisting for each path that is not empty.
func RefuseAnyExisting(force bool, paths ...string) error {
	for _, path := range paths {
		if err := RefuseExisting(path, force); err != nil {
			return err
		}
	}
	return nil
}

// WriteWhole writes a file atomically and prints its name on stderr.
func WriteWhole(env *Env, path string, text []byte) error {
	if err := renameio.WriteFile(path, text, 0o644); err != nil {
		return err
	}
	fmt.Fprintf(env.Stderr, "wrote %s\n", path)
	return nil
}

// CheckExtension rejects a file name that has none of the endings.
func CheckExtension(flag, path string, endings ...string) error {
	if path == "" || slices.Contains(endings, strings.ToLower(filepath.Ext(path))) {
		return nil
	}
	return UsageError("%s %s: the name must end in %s", flag, path, strings.Join(endings, " or "))
}

// CheckDistinct returns an error if two paths name the same file. It ignores empty paths.
func CheckDistinct(paths ...string) error {
	for i, path := range paths {
		for _, other := range paths[:i] {
			if path != "" && other != "" && filepath.Clean(path) == filepath.Clean(other) {
				return UsageError("%s would be written twice; choose two names", path)
			}
		}
	}
	return nil
}

// Document is implemented by results that can be printed in every format. Every result.Report is a Document.
type Document interface {
	Document() any
	WriteText(io.Writer, text.View) error
	Table() (header []string, rows [][]string)
}

// PrintReport prints a document in the given format. If explain is set, it adds notes.
func PrintReport(env *Env, r Document, out Format, explain bool) error {
	switch out {
	case JSON, JSONL:
		return WriteDocument(env, out, r.Document())
	case CSV:
		header, rows := r.Table()
		return writeCSV(env.Stdout, header, rows)
	}
	return r.WriteText(env.Stdout, env.View(explain))
}

// StampProvenance adds the provenance to reports that can contain it.
func StampProvenance(env *Env, started time.Time, r result.Report) {
	if b, ok := r.(*bench.Measurement); ok {
		b.Bench.Provenance = deviceProvenance(env, started, b.Outcome)
	}
}

// NewProvenance returns the provenance of a document that was produced without a device.
func NewProvenance(env *Env, started time.Time) results.Provenance {
	b := ThisBuild()
	return results.Provenance{
		Tool: "olafctl", Version: b.Version, Go: b.Go, Commit: b.Revision, Dirty: b.Dirty,
		Host: env.HostName(), System: b.Platform, CPUs: runtime.GOMAXPROCS(0),
		Command: append([]string{"olafctl"}, env.Args...),
		Started: started.UTC().Format(time.RFC3339Nano), Finished: env.Now().UTC().Format(time.RFC3339Nano),
	}
}

// deviceProvenance returns the provenance of a document, including the device and the digests of the programs that ran
// on it.
func deviceProvenance(env *Env, started time.Time, o *bench.Outcome) results.Provenance {
	p := NewProvenance(env, started)
	p.Device = o.Device.Address + " " + o.Device.Build
	p.RegisterMap = o.Device.MapVersion
	p.Digests, p.Hosts = o.Digests(), o.Hosts
	return p
}
