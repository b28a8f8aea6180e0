package verify

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/aomcheck"
)

func newRegionCmd(env *cli.Env) *cobra.Command {
	f := &verifyFlags{objectives: true}
	var file string
	var vary []string
	cmd := &cobra.Command{
		Use:   "region",
		Short: "Map where an objective holds over one or two parameters",
		Example: `  olafctl verify region --sweep delta-t=100ms..1s/6 --sweep interval=50ms..500ms/6
  olafctl verify region --objective max-peak --bound 120ms --sweep interval=20ms..140ms:10ms
  olafctl verify region -f objective.yaml --sweep slots=1..8 -o csv`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var p aomcheck.Problem
			var err error
			if file != "" {
				p, err = readProblem(file)
			} else {
				p, err = f.buildProblem(cmd)
			}
			if err != nil {
				return err
			}
			if err = f.exploreRegion(cmd.Context(), env, p, vary); file != "" {
				return nameFile(file, err)
			}
			return nameFlag(err)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&file, "file", "f", "", "YAML file with the problem, instead of flags")
	cli.AlsoCalled(flags, "sweep", "vary")
	flags.StringArrayVar(&vary, "sweep", nil, "parameter to vary, NAME=VALUES, such as slots=1..64:x2; at most two")
	f.objective = string(aomcheck.Fairness)
	cli.Choose(cmd, &f.objective, "objective", "objective to prove", objectiveNames()...)
	f.problemFlags(cmd)
	f.searchFlags(cmd)
	cli.AddFormatFlag(cmd, &f.format)
	return cmd
}

func (f *verifyFlags) exploreRegion(ctx context.Context, env *cli.Env, p aomcheck.Problem, vary []string) error {
	var axes []aomcheck.Axis
	for _, text := range vary {
		axis, err := aomcheck.ParseAxis(text)
		if err != nil {
			return verifyError(err)
		}
		axes = append(axes, axis)
	}
	o, err := f.searchOptions(env)
	if err != nil {
		return err
	}
	o.Progress = nil
	var report func(n, of int)
	if !f.quiet && env.Interactive {
		report = func(n, of int) { env.Redraw(fmt.Sprintf("%d of %d points", n, of)) }
	}
	r, err := aomcheck.Explore(ctx, p, axes, o, report)
	if env.Interactive && !f.quiet {
		env.Redraw("")
	}
	if errors.Is(err, context.Canceled) {
		return f.interruptedRegion(env, r)
	}
	if err != nil {
		return verifyError(err)
	}
	return f.showRegion(env, r)
}

// interruptedRegion prints the points that were checked before an interruption.
func (f *verifyFlags) interruptedRegion(env *cli.Env, r *aomcheck.Region) error {
	if r == nil || len(r.Points) == 0 {
		return &cli.Exit{Kind: olaf.Interrupted,
			Err: errors.New("interrupted before the first point was done; there is nothing to show")}
	}
	err := f.showRegion(env, r)
	return errors.Join(&cli.Exit{Kind: olaf.Interrupted,
		Err: fmt.Errorf("interrupted after %s; what is shown is partial", olaf.Plural(len(r.Points), "point"))}, err)
}

func (f *verifyFlags) showRegion(env *cli.Env, r *aomcheck.Region) error {
	if f.format == cli.JSON {
		return cli.WriteJSON(env.Stdout, regionDocument(r))
	}
	g := &cli.Grid{}
	for _, axis := range r.Axes {
		g.Header = append(g.Header, strings.ToUpper(axis.Name))
	}
	g.Header = append(g.Header, "ANSWER", "WHY")
	for _, point := range r.Points {
		var row []string
		for i, v := range point.Values {
			row = append(row, r.Axes[i].Text(v))
		}
		g.Add(append(row, regionAnswer(point), point.Broken)...)
	}
	if err := g.Write(env, f.format); err != nil || f.format == cli.CSV {
		return err
	}
	for _, note := range r.Notes {
		fmt.Fprintf(env.Stdout, "note: %s\n", note)
	}
	_, err := fmt.Fprintf(env.Stdout, "\n%s", r.Plot())
	return err
}

func regionAnswer(point aomcheck.Point) string {
	if point.Answer == "" {
		return "vacuous"
	}
	return string(point.Answer)
}

// regionJSON is the JSON document olafctl.verify/v1 for a region.
type regionJSON struct {
	cli.Head
	Axes   []string          `json:"axes"`
	Notes  []string          `json:"notes"`
	Points []regionPointJSON `json:"points"`
	// Partial is set if points are missing.
	Partial bool `json:"partial,omitempty"`
}

type regionPointJSON struct {
	Values []string `json:"values"`
	Answer string   `json:"answer"`
	Reason string   `json:"why,omitempty"`
}

func regionDocument(r *aomcheck.Region) *regionJSON {
	doc := &regionJSON{Head: cli.Head{Schema: "olafctl.verify/v1", Kind: "region"},
		Notes: append([]string{}, r.Notes...), Partial: r.Partial}
	for _, axis := range r.Axes {
		doc.Axes = append(doc.Axes, axis.Name)
	}
	for _, point := range r.Points {
		item := regionPointJSON{Answer: regionAnswer(point), Reason: point.Broken}
		for i, v := range point.Values {
			item.Values = append(item.Values, r.Axes[i].Text(v))
		}
		doc.Points = append(doc.Points, item)
	}
	return doc
}
