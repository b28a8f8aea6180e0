// Package verify implements 'olafctl verify', which uses SMT solvers to check properties for all arrival patterns.
package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/aomcheck"
)

func New(env *cli.Env) *cobra.Command {
	f := &verifyFlags{}
	var file string
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Prove an AoM objective for every arrival pattern, or find a counter-example",
		Long: `Decide whether an Age-of-Model objective holds for every arrival pattern that a description of clusters allows, with the
SMT solvers z3 and cvc5. A counter-example is replayed on the queue engine before it is reported. Exit codes: 0 holds, 4
violated, 5 unknown within the time limit, 2 contradictory or wrong input.`,
		Example: `  olafctl verify max-peak --clusters 3 --interval 100ms --service 2ms --bound 110ms
  olafctl verify fairness --clusters 2 --interval 100ms,300ms --delta-t 400ms --service 2ms --epsilon 0.1ms --horizon 40
  olafctl verify -f objective.yaml --dump model.smt2
  olafctl verify admit -f running.yaml --add new-cluster.yaml
  olafctl verify region --sweep delta-t=100ms..1s/6 --sweep interval=50ms..500ms/6`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return cli.UsageError("name an objective (%s) or a file with -f; see 'olafctl verify --help'",
					strings.Join(objectiveNames(), ", "))
			}
			p, err := readProblem(file)
			if err != nil {
				return err
			}
			return nameFile(file, f.verifyProblem(cmd.Context(), env, p))
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "YAML file with the problem (docs/guide/proofs.md)")
	f.searchFlags(cmd)
	f.verdictFlags(cmd)
	f.tightenFlag(cmd)
	for _, o := range objectives {
		cmd.AddCommand(newObjectiveCmd(env, o.kind, o.short, o.example))
	}
	cmd.AddCommand(newAdmitCmd(env), newRegionCmd(env))
	return cmd
}

// objectives lists the objectives that flags can describe. Bounds per cluster require a file.
var objectives = []struct {
	kind           aomcheck.Kind
	short, example string
}{
	{aomcheck.Fairness, "Prove that the mean peak AoMs of any two clusters differ by at most --epsilon",
		`  olafctl verify fairness --interval 100ms --phase 0ms,50ms --epsilon 0.1ms
  olafctl verify fairness --interval 100ms,300ms --delta-t 400ms --epsilon 0.1ms --horizon 40`},
	{aomcheck.MaxPeak, "Prove that no peak AoM exceeds --bound",
		`  olafctl verify max-peak --clusters 4 --interval 24ms --bound 30ms --horizon 8
  olafctl verify max-peak --bound 103ms --horizon 4 --dump question.smt2 --svg age.svg`},
	{aomcheck.MeanPeak, "Prove that no cluster's mean peak AoM exceeds --bound",
		`  olafctl verify mean --clusters 3 --interval 100ms,110ms,120ms --bound 130ms --horizon 10 --tighten`},
	{aomcheck.LossFree, "Prove that no update finds the queue full",
		`  olafctl verify loss-free --clusters 9 --interval 20ms --slots 8 --horizon 4`},
}

func objectiveNames() []string {
	var names []string
	for _, o := range objectives {
		names = append(names, string(o.kind))
	}
	return names
}

// verifyFlags are the flags of all verify commands. They configure the question, the search and the output.
type verifyFlags struct {
	problem                 aomcheck.Problem
	clusters                int
	interval, phase, jitter string
	trace                   string
	objective, slope, sends string
	solver, dump, svg       string
	limit                   time.Duration
	simulate                int
	force, quiet, tighten   bool
	objectives              bool // the command accepts any objective, so its bound's flag has both names
	format                  cli.Format
}

func newObjectiveCmd(env *cli.Env, kind aomcheck.Kind, short, example string) *cobra.Command {
	f := &verifyFlags{objective: string(kind)}
	cmd := &cobra.Command{
		Use:     string(kind),
		Short:   short,
		Example: example,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := f.buildProblem(cmd)
			if err == nil && f.trace != "" {
				err = f.useTrace(cmd, &p)
			}
			if err != nil {
				return err
			}
			if bound := cmd.Flags().Lookup("bound"); bound != nil && !bound.Changed {
				return cli.UsageError("add the objective's bound, such as --bound 120ms")
			}
			return nameFlag(f.verifyProblem(cmd.Context(), env, p))
		},
	}
	f.problemFlags(cmd)
	cmd.Flags().StringVar(&f.trace, "trace", "",
		"take the arrivals from a trace, the first --horizon of each cluster, such as builtin:lander8")
	f.searchFlags(cmd)
	f.verdictFlags(cmd)
	if kind != aomcheck.LossFree {
		f.tightenFlag(cmd)
	}
	return cmd
}

func (f *verifyFlags) problemFlags(cmd *cobra.Command) {
	p, flags := &f.problem, cmd.Flags()
	p.Service, p.Slots, p.Horizon = 2*olaf.Millisecond, 8, 20
	flags.IntVar(&f.clusters, "clusters", 2, "clusters")
	flags.StringVar(&f.interval, "interval", "100ms", "time between sends, for all clusters or one per cluster")
	flags.StringVar(&f.phase, "phase", "every", "first send: every (at any time), a time such as 50ms, or a range 0ms..50ms")
	flags.StringVar(&f.jitter, "jitter", "0s", "maximum delay of an arrival, for all clusters or one per cluster")
	flags.Var(&p.Service, "service", "transmission time of an update, p/C")
	flags.IntVar(&p.Slots, "slots", p.Slots, "queue slots (Qmax), including the departing update")
	flags.IntVar(&p.Horizon, "horizon", p.Horizon, "updates per cluster")
	flags.Var(&p.Separation, "separation", "minimum time between arrivals of different clusters")
	p.Model, p.Objective.Mean, f.slope = aomcheck.Engine, aomcheck.Departed, "urgency"
	cli.Choose(cmd, &p.Model, "model", "", aomcheck.Engine, "paper", "paper+service")
	cli.Choose(cmd, &p.Objective.Mean, "mean",
		"mean peak over departed updates or all (the paper's literal reading): departed|all", aomcheck.Departed, "all")
	flags.Var(&p.Control.DeltaT, "delta-t", "transmission control threshold; 0s for off")
	cli.Choose(cmd, &f.slope, "slope", "slope v of the send probability: urgency (1/delta-t) or fairness (delta-t)",
		"urgency", "fairness")
	flags.IntVar(&p.Control.Active, "active", 0, "active clusters N reported by ACKs; 0 for all clusters")
	flags.Var(&p.Control.AckDelay, "ack-delay", "time from departure to the worker's ACK")
	flags.StringVar(&f.sends, "sends", "free", "transmission control's decisions: free or seeded:N")
	for _, name := range []string{"epsilon", "bound"} {
		if f.objectives || f.objective != string(aomcheck.LossFree) &&
			(name == "epsilon") == (f.objective == string(aomcheck.Fairness)) {
			flags.Var(&p.Objective.Bound, name, map[string]string{
				"epsilon": "largest allowed difference between the means of two clusters (default 100us)",
				"bound":   "largest age that the objective allows, such as 120ms",
			}[name])
		}
	}
}

func (f *verifyFlags) searchFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.solver = aomcheck.Ways()[0]
	cli.Choose(cmd, &f.solver, "solver", "portfolio (first answer wins) | both (must agree) | z3 | cvc5",
		aomcheck.Ways()...)
	flags.DurationVar(&f.limit, "time-limit", time.Minute, "time limit; exit code 5 when it is reached")
	flags.IntVar(&f.simulate, "simulate", 200, "random paths to try on the engine before the solver; 0 for none")
	cli.AddQuiet(flags, &f.quiet)
}

// verdictFlags adds the flags for commands that return a single verdict.
func (f *verifyFlags) verdictFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.dump, "dump", "", "write the problem as SMT-LIB 2 to this file")
	flags.StringVar(&f.svg, "svg", "", "write a plot of the counter-example to this SVG file")
	cli.AddForce(flags, &f.force, "existing output files")
	cli.AddFormatFlag(cmd, &f.format, cli.Table, cli.JSON)
}

func (f *verifyFlags) tightenFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.tighten, "tighten", false, "if the objective holds, also find its smallest bound")
}

// buildProblem builds a problem from the flags.
func (f *verifyFlags) buildProblem(cmd *cobra.Command) (aomcheck.Problem, error) {
	p := f.problem
	p.Objective.Kind = aomcheck.Kind(f.objective)
	if p.Objective.Kind == aomcheck.Fairness && !cmd.Flags().Changed("epsilon") && !cmd.Flags().Changed("bound") {
		p.Objective.Bound = 100 * olaf.Microsecond // the paper's ε, read as milliseconds (§6)
	}
	if err := p.Control.SetSlope(f.slope); err != nil {
		return p, cli.UsageError("--slope: %v", err)
	}
	if err := p.Control.SetSends(f.sends); err != nil {
		return p, cli.UsageError("--sends: %v", err)
	}
	if p.Control.Sends != aomcheck.SendsFree && p.Control.Sends != aomcheck.SendsSeeded {
		return p, cli.UsageError("--sends: %q is not one of free, seeded:N; put fixed decisions into a file", f.sends)
	}
	if p.Slots < 1 {
		return p, cli.UsageError("--slots: %d is not a positive number", p.Slots)
	}
	if p.Horizon < 2 {
		return p, cli.UsageError("--horizon: %d; a peak needs at least 2 updates", p.Horizon)
	}
	if f.clusters < 1 || f.clusters > aomcheck.MaxClusters {
		return p, cli.UsageError("--clusters: %d is outside 1 … %d", f.clusters, aomcheck.MaxClusters)
	}
	p.Clusters = make([]aomcheck.Cluster, f.clusters)
	return p, f.addPeriods(p.Clusters)
}

// addPeriods sets the clusters' intervals, jitters and phases. Each flag has one value for all clusters or one value
// per cluster.
func (f *verifyFlags) addPeriods(clusters []aomcheck.Cluster) error {
	lists := []struct {
		flag, text string
		set        func(*aomcheck.Cluster, string) error
	}{
		{"--interval", f.interval, func(c *aomcheck.Cluster, s string) error { return c.Interval.Set(s) }},
		{"--jitter", f.jitter, func(c *aomcheck.Cluster, s string) error { return c.Jitter.Set(s) }},
		{"--phase", f.phase, (*aomcheck.Cluster).SetPhase},
	}
	for _, l := range lists {
		values := strings.Split(l.text, ",")
		if len(values) != 1 && len(values) != len(clusters) {
			return cli.UsageError("%s: %d values for %d clusters; use one for all or one each", l.flag, len(values),
				len(clusters))
		}
		for i := range clusters {
			if err := l.set(&clusters[i], strings.TrimSpace(values[i%len(values)])); err != nil {
				return cli.UsageError("%s: %v", l.flag, err)
			}
		}
	}
	return nil
}

func readProblem(file string) (aomcheck.Problem, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return aomcheck.Problem{}, cli.UsageError("%v", err)
	}
	p, err := aomcheck.ParseFile(data)
	return p, nameFile(file, err)
}

// nameFile adds the name of the file to an error about its contents.
func nameFile(file string, err error) error {
	var fault *aomcheck.FieldError
	switch {
	case errors.As(err, &fault) && isAxisError(fault):
		return nameFlag(err)
	case !errors.Is(err, aomcheck.ErrProblem) && !errors.Is(err, aomcheck.ErrFile):
		return err
	}
	return cli.UsageError("%s: %w", file, err)
}

// nameFlag replaces the field in an error with the corresponding flag.
func nameFlag(err error) error {
	var fault *aomcheck.FieldError
	if !errors.As(err, &fault) {
		return err
	}
	where, field := "", fault.Field[strings.LastIndex(fault.Field, ".")+1:]
	if _, cluster, ok := strings.Cut(fault.Field, "("); ok {
		where, _, _ = strings.Cut(cluster, ")")
		where += ": "
	}
	switch {
	case isAxisError(fault):
		field, where = "sweep", strings.TrimPrefix(fault.Field, "vary")+": "
		where = strings.TrimPrefix(strings.TrimPrefix(where, " "), ": ")
	case fault.Field == "objective.kind":
		field = "objective"
	case field == "updates":
		field = "horizon"
	}
	return cli.UsageError("--%s: %s%s", field, where, fault.Reason)
}

// isAxisError reports whether an error is about an axis of a region. Axes can be set only by flags.
func isAxisError(fault *aomcheck.FieldError) bool { return strings.HasPrefix(fault.Field, "vary") }

// searchOptions returns the options for the solver's search.
func (f *verifyFlags) searchOptions(env *cli.Env) (aomcheck.Options, error) {
	o := aomcheck.Options{Limit: f.limit, Simulate: f.simulate}
	o.Ask(f.solver)
	if f.limit <= 0 {
		return o, cli.UsageError("--time-limit: %v is not a positive time", f.limit)
	}
	if f.simulate < 0 {
		return o, cli.UsageError("--simulate: %d is negative; use 0 for none", f.simulate)
	}
	if err := cli.RefuseAnyExisting(f.force, f.dump, f.svg); err != nil {
		return o, err
	}
	if f.dump != "" {
		o.Dump = func(script []byte) error { return f.writeFile(env, f.dump, withoutModel(script)) }
	}
	if !f.quiet {
		o.Progress = func(line string) { fmt.Fprintln(env.Stderr, line) }
	}
	return o, nil
}

// verifyProblem solves a problem and prints the verdict.
func (f *verifyFlags) verifyProblem(ctx context.Context, env *cli.Env, p aomcheck.Problem) error {
	o, err := f.searchOptions(env)
	if err != nil {
		return err
	}
	v, err := aomcheck.Verify(ctx, p, o)
	if err != nil {
		return verifyError(err)
	}
	stopped := false
	if f.tighten && v.Answer == aomcheck.Holds {
		o.Progress = nil
		tight, err := aomcheck.Tighten(ctx, v.Problem, o)
		if stopped = errors.Is(err, context.Canceled); err != nil && !stopped {
			return verifyError(err)
		}
		v.Notes = append(v.Notes, tightNote(tight))
		if stopped {
			v.Notes = append(v.Notes, "interrupted: a lower bound may hold as well")
		}
	}
	if err := errors.Join(f.showVerdict(env, v), f.drawPaths(env, v)); err != nil {
		return err
	}
	if stopped {
		return &cli.Exit{Kind: olaf.Interrupted, Err: errors.New("interrupted; what is shown is partial")}
	}
	return answerError(v.Answer)
}

// writeFile writes a requested file and prints its name.
func (f *verifyFlags) writeFile(env *cli.Env, path string, data []byte) error {
	if err := renameio.WriteFile(path, data, 0o644); err != nil {
		return err
	}
	if !f.quiet {
		fmt.Fprintf(env.Stderr, "wrote %s\n", path)
	}
	return nil
}

// verifyError returns a separate error if the search was interrupted before there was an answer.
func verifyError(err error) error {
	if errors.Is(err, context.Canceled) {
		return &cli.Exit{Kind: olaf.Interrupted, Err: errors.New("interrupted; no answer")}
	}
	return err
}

func answerError(a aomcheck.Answer) error {
	switch a {
	case aomcheck.Violated:
		return &cli.Exit{Kind: olaf.Missed}
	case aomcheck.Unknown:
		return &cli.Exit{Kind: olaf.Unknown}
	}
	return nil
}

func newAdmitCmd(env *cli.Env) *cobra.Command {
	f := &verifyFlags{}
	var running, added string
	cmd := &cobra.Command{
		Use:   "admit",
		Short: "Accept a new cluster if the objective still holds, or print a counter-example",
		Long: `Verify the running clusters together with new ones. The new ones are accepted (exit code 0) only if the objective is proved
for all; otherwise they are rejected with a counter-example (4), or the time limit is reached (5).`,
		Example: "  olafctl verify admit -f running.yaml --add new-cluster.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if running == "" || added == "" {
				return cli.UsageError("admit needs -f RUNNING and --add NEW")
			}
			return f.admitClusters(cmd.Context(), env, running, added)
		},
	}
	cmd.Flags().StringVarP(&running, "file", "f", "", "YAML file with the running problem")
	cmd.Flags().StringVar(&added, "add", "", "YAML file with the new cluster or a list of them")
	f.searchFlags(cmd)
	f.verdictFlags(cmd)
	return cmd
}

func (f *verifyFlags) admitClusters(ctx context.Context, env *cli.Env, running, added string) error {
	p, err := readProblem(running)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(added)
	if err != nil {
		return cli.UsageError("%v", err)
	}
	newcomers, err := aomcheck.ParseClusters(data)
	if err != nil {
		return nameFile(added, err)
	}
	o, err := f.searchOptions(env)
	if err != nil {
		return err
	}
	a, err := aomcheck.Admit(ctx, p, newcomers, o)
	if err != nil {
		return nameFile(running+" with "+added, verifyError(err))
	}
	if f.format == cli.JSON {
		err = cli.WriteJSON(env.Stdout, admissionDocument(a))
	} else {
		err = printVerdict(env, admissionLine(a)+"\n", a.Together)
	}
	if err := errors.Join(err, f.drawPaths(env, a.Together)); err != nil {
		return err
	}
	return answerError(a.Together.Answer)
}

func admissionLine(a *aomcheck.Admission) string {
	switch {
	case a.IsAccepted():
		return "ACCEPTED: the objective is proved with the new clusters"
	case a.Together.Answer == aomcheck.Unknown:
		return "UNDECIDED: no proof within the time limit"
	case a.Running == nil || a.Running.Answer == aomcheck.Unknown:
		return "REJECTED: the objective breaks with the new clusters"
	case a.Running.Answer == aomcheck.Violated:
		return "REJECTED: the objective breaks with the new clusters; it breaks without them as well"
	}
	return "REJECTED: the objective holds without the new clusters and breaks with them"
}

// withoutModel turns the query for values in the script into a comment, because solvers fail on it if the answer is
// unsat.
func withoutModel(script []byte) []byte {
	return bytes.Replace(script, []byte("\n(get-value "),
		[]byte("\n; after an answer of sat, the values are: (get-value "), 1)
}
