// Package runs implements 'olafctl runs', which lists, shows, compares, verifies and removes stored runs.
package runs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	sweepcmd "github.com/olafctl/olaf/cmd/olafctl/sweep"
	traincmd "github.com/olafctl/olaf/cmd/olafctl/train"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/rl/onwire"
	"github.com/olafctl/olaf/experiments/sweep"
	"github.com/olafctl/olaf/results/archive"
	"github.com/olafctl/olaf/results/compare"
	"github.com/olafctl/olaf/results/store"
	"github.com/olafctl/olaf/results/text"
)

func New(env *cli.Env) *cobra.Command {
	var (
		where cli.StoreFlag
		out   cli.Format
	)
	cmd := &cobra.Command{
		Use:        "runs",
		SuggestFor: []string{"compare", "show", "ls"},
		Short:      "List, show, compare and verify stored runs",
		Long: `List and manage stored runs. Every bench, simulation and experiment is stored in a folder with its plan, numbers and digests,
from which everything can be recomputed. Without a subcommand the runs are listed, newest first. A run is named by its id, a
unique prefix of it, or "last".`,
		Example: `  olafctl runs
  olafctl runs show last
  olafctl runs compare 20260101-120000 last
  olafctl runs verify last`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return where.WithStore(env, func(s *store.Store) error { return listRuns(env, s, out) })
		},
	}
	cli.AddFormatFlag(cmd, &out)
	where.Add(cmd)
	cmd.AddCommand(newRunsListCmd(env, &where), newRunsShowCmd(env, &where), newRunsCompareCmd(env, &where),
		newRunsVerifyCmd(env, &where), newRunsNoteCmd(env, &where), newRunsRmCmd(env, &where),
		newRunsPruneCmd(env, &where), newRunsReindexCmd(env))
	return cmd
}

// newRunsListCmd returns the command 'runs list', which is also the default for 'runs' without a subcommand.
func newRunsListCmd(env *cli.Env, where *cli.StoreFlag) *cobra.Command {
	var out cli.Format
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List stored runs, newest first",
		Long: "List stored runs, newest first, one per line. Cells that do not fit end in …; -o json, -o csv and " +
			"runs show ID print them in full.",
		Example: "  olafctl runs list -o json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return where.WithStore(env, func(s *store.Store) error { return listRuns(env, s, out) })
		},
	}
	cli.AddFormatFlag(cmd, &out)
	return cmd
}

func newRunsShowCmd(env *cli.Env, where *cli.StoreFlag) *cobra.Command {
	var (
		out     cli.Format
		explain bool
	)
	cmd := &cobra.Command{
		Use:               "show ID",
		Short:             "Print a stored run as it was printed when it ran",
		Example:           "  olafctl runs show last -o json",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: where.CompleteRuns(env, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			return where.WithRun(env, args[0], func(_ *store.Store, f *store.Folder) error {
				if archive.HasDocument(f) {
					return cli.ShowDocument(env, f, out)
				}
				r, err := archive.Load(f, env.Declared)
				if err != nil {
					return err
				}
				if out == cli.JSON {
					return cli.WriteJSON(env.Stdout, r.Bench)
				}
				cli.ShowHead(env, f)
				return text.Bench(env.Stdout, env.View(explain), r.Bench)
			})
		},
	}
	cli.AddFormatFlag(cmd, &out, cli.Table, cli.JSON)
	cli.AddExplainFlag(cmd, &explain)
	return cmd
}

// comparisonFlags are the flags for printing a comparison.
type comparisonFlags struct {
	out           cli.Format
	all, markdown bool
}

func newRunsCompareCmd(env *cli.Env, where *cli.StoreFlag) *cobra.Command {
	var (
		print   comparisonFlags
		trained trainedFlags
	)
	cmd := &cobra.Command{
		Use:   "compare A B",
		Short: "Compare run B with run A, metric by metric",
		Long: `Compare two stored runs: means with 95 % intervals, differences and a verdict. Runs with common seeds are compared by the
paired t test with Wilcoxon's signed rank beside it, others by the exact permutation of rank sums; P values are corrected by
Holm's method over all metrics. Training runs are compared by their learning curves. See docs/guide/compare.md.`,
		Example: `  olafctl runs compare 20260101-120000 last
  olafctl runs compare 20260101-120000 last --md >> pull-request.md
  olafctl runs compare last last --between simulated,real --plots curves   # of 'train -d xdp:'`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: where.CompleteRuns(env, 2),
		RunE: func(_ *cobra.Command, args []string) error {
			return where.WithStore(env, func(s *store.Store) error {
				d, err := trained.compareRuns(env, s, args)
				if err != nil {
					return err
				}
				return print.write(env, d)
			})
		},
	}
	cli.AddFormatFlag(cmd, &print.out)
	cmd.Flags().BoolVar(&print.all, "all", false, "also list metrics that do not differ")
	cmd.Flags().BoolVar(&print.markdown, "md", false, "print Markdown tables for a pull request")
	trained.add(cmd)
	return cmd
}

func (f *comparisonFlags) write(env *cli.Env, d *compare.Document) error {
	switch {
	case f.out == cli.JSON:
		return cli.WriteJSON(env.Stdout, d)
	case f.out == cli.CSV:
		sheet := d.Sheet()
		return sheet.WriteCSV(env.Stdout)
	case f.markdown:
		return d.WriteMarkdown(env.Stdout, f.all)
	}
	return d.WriteText(env.Stdout, env.View(false), f.all)
}

func LoadSide(env *cli.Env, s *store.Store, name string) (*compare.Side, error) {
	f, err := cli.LoadRun(s, name)
	if err != nil {
		return nil, err
	}
	return NewSide(env, f)
}

// NewSide returns a stored run as one side of a comparison.
func NewSide(env *cli.Env, f *store.Folder) (*compare.Side, error) {
	if sweep.IsKept(f) {
		return sweepcmd.NewSide(env, f)
	}
	if side, err := documentSide(env, f); side != nil || err != nil {
		return side, err
	}
	r, err := archive.Load(f, env.Declared)
	if err != nil {
		return nil, err
	}
	return &compare.Side{Name: f.ID(), Experiment: f.Manifest.Experiment, Config: r.Bench.Config, Runs: r.Runs,
		Partial: r.Bench.Partial}, nil
}

func newRunsVerifyCmd(env *cli.Env, where *cli.StoreFlag) *cobra.Command {
	var out cli.Format
	cmd := &cobra.Command{
		Use:   "verify ID",
		Short: "Recompute a stored run and compare it with the stored result",
		Long: `Check every file of a stored run against its digest, measure every run again from its stored frames, rebuild the document,
and repeat runs of twin and simulator from the plan. Numbers must be equal, and files of the same build identical. Metrics
that this build measures and the storing one did not are listed and not compared.`,
		Example:           "  olafctl runs verify last\n  olafctl runs verify last -o json | jq -r .verified",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: where.CompleteRuns(env, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return where.WithRun(env, args[0], func(s *store.Store, f *store.Folder) error {
				if out == cli.JSON {
					return printVerification(cmd.Context(), env, s, f)
				}
				return verifyRun(cmd.Context(), env, s, f)
			})
		},
	}
	cli.AddFormatFlag(cmd, &out, cli.Table, cli.JSON)
	return cmd
}

// verification is the JSON document of the command runs verify.
type verification struct {
	cli.Head
	ID       string   `json:"id"`
	Verified bool     `json:"verified"`
	Reason   string   `json:"reason,omitempty"` // why it is not verified
	Report   []string `json:"report"`           // what was checked and what could not be, one line each
}

// printVerification verifies a run and prints the outcome as a JSON document, even if the verification fails.
func printVerification(ctx context.Context, env *cli.Env, s *store.Store, f *store.Folder) error {
	var page bytes.Buffer
	quiet := *env
	quiet.Stdout = &page
	err := verifyRun(ctx, &quiet, s, f)
	d := verification{Head: cli.Check("run"), ID: f.ID(), Verified: err == nil, Report: []string{}}
	if err != nil {
		d.Reason = cli.OneLine(err)
	}
	for line := range strings.Lines(page.String()) {
		d.Report = append(d.Report, strings.TrimRight(line, "\n"))
	}
	return errors.Join(cli.WriteJSON(env.Stdout, d), err)
}

// verifyRun checks a stored run against its digests, frames, exports and plan.
func verifyRun(ctx context.Context, env *cli.Env, s *store.Store, f *store.Folder) error {
	proof, err := archive.Verify(f, env.Declared)
	if err != nil {
		return err
	}
	exports, others, err := archive.VerifyExports(s, f, cli.ToolVersion(), env.Declared, env.Layouts)
	switch {
	case err != nil:
		return err
	case sweep.IsKept(f):
		return sweepcmd.VerifySweep(ctx, env, f, proof.Files, exports)
	case onwire.IsKept(f):
		return traincmd.VerifyTrainings(ctx, env, f, proof.Files, exports)
	case onwire.IsProgramKept(f):
		return verifyPrograms(env, f, proof)
	}
	stream := bench.NewStream()
	bar := cli.StartProgress(env, false, cli.ProgressOf(stream))
	repeated, err := bench.RepeatStored(ctx, env.Systems, f, stream)
	bar.Stop()
	if err != nil {
		return err
	}
	if archive.HasDocumentOnly(f) {
		return verifyDocument(ctx, env, f, proof)
	}
	fmt.Fprintf(env.Stdout, "%s verified: %s, %s measured again from %s, %d repeated from the plan, %s made again; "+
		"all as they were\n", f.ID(), olaf.Plural(proof.Files, "file"), olaf.Plural(proof.Runs, "run"),
		olaf.Plural(proof.Observations, "frame"), repeated, olaf.Plural(exports, "export"))
	if proof.Unfinished > 0 {
		fmt.Fprintf(env.Stdout, "it ended early: %s of an unfinished seed are in none of the numbers\n",
			olaf.Plural(proof.Unfinished, "frame"))
	}
	remark(env, newSinceKept, proof.New)
	remark(env, "not known to this olafctl, so not compared", proof.Unknown)
	remark(env, "invalid by a rule that is new since it was kept", proof.Doubts)
	if proof.Anew > 0 {
		fmt.Fprintf(env.Stdout, "kept with verdicts of earlier rules: %s beside the paper judged anew, %d of claims "+
			"that are no longer made left out\n", olaf.Plural(proof.Anew, "line"), proof.Dropped)
	}
	if others > 0 {
		fmt.Fprintf(env.Stdout, "not made again: %s of another build, which need not write the same bytes\n",
			olaf.Plural(others, "export"))
	}
	return nil
}

// newSinceKept is the heading of fields that this version of olafctl measures but the version that stored the run did
// not.
const newSinceKept = "new since it was kept, so not compared"

// remark prints a list of names with an introduction, if the list is not empty.
func remark(env *cli.Env, what string, names []string) {
	if len(names) > 0 {
		fmt.Fprintf(env.Stdout, "%s: %s\n", what, strings.Join(names, ", "))
	}
}

// verifyPrograms verifies a stored training run that was computed by an external program.
func verifyPrograms(env *cli.Env, f *store.Folder, proof *archive.Proof) error {
	n, err := onwire.VerifyPrograms(f)
	if err != nil {
		return err
	}
	fmt.Fprintf(env.Stdout, "%s verified: %d files are as they were; the curves follow from the points of %s, which are a "+
		"program's and are not repeated\n", f.ID(), proof.Files, olaf.Plural(n, "training"))
	return nil
}

// verifyDocument verifies a run of which only the document is stored, by running its plan again.
func verifyDocument(ctx context.Context, env *cli.Env, f *store.Folder, proof *archive.Proof) error {
	again, news, err := repeatDocument(ctx, env, f)
	if err != nil {
		return err
	}
	what := "it has no single runs to compute it from"
	if again > 0 {
		what = fmt.Sprintf("%s repeated from the plan came to the same document", olaf.Plural(again, "run"))
	}
	fmt.Fprintf(env.Stdout, "%s verified: %d files are as they were; %s\n", f.ID(), proof.Files, what)
	remark(env, newSinceKept, news)
	if proof.Earlier > 0 {
		fmt.Fprintf(env.Stdout, "kept with verdicts of earlier rules: %s beside the paper; run it again for today's\n",
			olaf.Plural(proof.Earlier, "line"))
	}
	return nil
}

func newRunsNoteCmd(env *cli.Env, where *cli.StoreFlag) *cobra.Command {
	return &cobra.Command{
		Use:               "note ID TEXT",
		Short:             "Attach a note to a stored run; an empty note removes it",
		Example:           `  olafctl runs note last "before the switch was replaced"`,
		Args:              cobra.ExactArgs(2),
		Annotations:       map[string]string{cli.TakesEmpty: "TEXT"},
		ValidArgsFunction: where.CompleteRuns(env, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			return where.WithStore(env, func(s *store.Store) error {
				id, err := s.Resolve(args[0])
				if err != nil {
					return err
				}
				if err := s.Note(id, cli.OnTerminal(args[1])); err != nil {
					return err
				}
				fmt.Fprintf(env.Stderr, "%s the note of %s\n",
					map[bool]string{true: "removed", false: "wrote"}[args[1] == ""], id)
				return nil
			})
		},
	}
}

func newRunsRmCmd(env *cli.Env, where *cli.StoreFlag) *cobra.Command {
	return &cobra.Command{
		Use:               "rm ID…",
		Short:             "Remove stored runs",
		Example:           "  olafctl runs rm 20260101-120000-table1",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: where.CompleteRuns(env, math.MaxInt),
		RunE: func(_ *cobra.Command, args []string) error {
			return where.WithStore(env, func(s *store.Store) error {
				ids := make([]string, len(args))
				for i, name := range args { // check all names before removing a run
					var err error
					if ids[i], err = s.Resolve(name); err != nil {
						return err
					}
				}
				slices.Sort(ids)
				for _, id := range slices.Compact(ids) {
					if err := s.Remove(id); err != nil {
						return err
					}
					fmt.Fprintf(env.Stdout, "removed %s\n", id)
				}
				return nil
			})
		},
	}
}

func newRunsPruneCmd(env *cli.Env, where *cli.StoreFlag) *cobra.Command {
	var (
		older string
		dry   bool
	)
	cmd := &cobra.Command{
		Use:     "prune --older AGE",
		Short:   "Remove stored runs older than an age, except those with a note",
		Example: "  olafctl runs prune --older 30d --dry-run",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			age, err := ParseAge(older)
			if err != nil {
				return err
			}
			return where.WithStore(env, func(s *store.Store) error {
				entries, err := s.Older(env.Now().Add(-age))
				if err != nil {
					return err
				}
				for _, e := range entries {
					if e.Note != "" {
						continue
					}
					if !dry {
						if err := s.Remove(e.ID); err != nil {
							return err
						}
					}
					fmt.Fprintf(env.Stdout, "%s %s\n", map[bool]string{true: "would remove", false: "removed"}[dry],
						e.ID)
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&older, "older", "", "age, such as 30d or 12h")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "print what would be removed and exit")
	if err := cmd.MarkFlagRequired("older"); err != nil {
		panic(err) // the flag is declared above
	}
	return cmd
}

// maxDays is the maximum age in days. It is below 292 years, the range of time.Duration.
const maxDays = 100_000

// ParseAge parses a duration in Go's syntax or a number of days. It rejects ages that overflow, because every run would
// seem older.
func ParseAge(s string) (time.Duration, error) {
	if text, ok := strings.CutSuffix(s, "d"); ok {
		days, err := olaf.ParseNumber(text)
		if age := time.Duration(days * float64(24*time.Hour)); err == nil && days <= maxDays && age > 0 {
			return age, nil
		}
	} else if age, err := time.ParseDuration(s); err == nil && age > 0 {
		return age, nil
	}
	return 0, cli.UsageError("--older %q is not an age; use for example 30d or 12h, at most %dd", s, maxDays)
}

// newRunsReindexCmd returns a command that does nothing and exists only for compatibility, because the store no longer
// has an index.
func newRunsReindexCmd(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:     "reindex",
		Short:   "Does nothing; kept for old scripts",
		Example: "  olafctl runs reindex",
		Args:    cobra.NoArgs,
		Hidden:  true,
		RunE: func(*cobra.Command, []string) error {
			fmt.Fprintln(env.Stdout, "nothing to do: runs are listed from their folders")
			return nil
		},
	}
}
