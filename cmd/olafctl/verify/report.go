package verify

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/aomcheck"
)

// showVerdict prints a verdict in the requested format.
func (f *verifyFlags) showVerdict(env *cli.Env, v *aomcheck.Verdict) error {
	if f.format == cli.JSON {
		return cli.WriteJSON(env.Stdout, verdictDocument(v))
	}
	return printVerdict(env, "", v)
}

// drawPaths writes the requested drawing of a counter-example.
func (f *verifyFlags) drawPaths(env *cli.Env, v *aomcheck.Verdict) error {
	if f.svg == "" || v.Counterexample == nil {
		return nil
	}
	var b bytes.Buffer
	if err := v.Problem.SVG(&b, v.Counterexample); err != nil {
		return err
	}
	return f.writeFile(env, f.svg, b.Bytes())
}

func tightNote(t aomcheck.Tight) string {
	if t.Violated < 0 {
		return fmt.Sprintf("the least bound that was proved is %v", t.Proved)
	}
	return fmt.Sprintf("the least bound that was proved is %v; %v is violated", t.Proved, t.Violated)
}

// maxBroken is the maximum number of violations that are printed for a path.
const maxBroken = 8

// printVerdict prints headline, which may be empty, and a verdict.
func printVerdict(env *cli.Env, headline string, v *aomcheck.Verdict) error {
	p, w := &v.Problem, bytes.NewBufferString(headline)
	by := cmp.Or(v.Solver, "no solver found an answer")
	fmt.Fprintf(w, "%s: %s (%s, %.2f s)\n", p.Objective, strings.ToUpper(string(v.Answer)), by, v.Wall.Seconds())
	fmt.Fprintf(w, "covers: %s\n", p.Scope())
	for _, note := range v.Notes {
		fmt.Fprintf(w, "note: %s\n", note)
	}
	if v.Counterexample == nil {
		_, err := w.WriteTo(env.Stdout)
		return err
	}
	fmt.Fprintln(w, "\ncounter-example, replayed:")
	for i, broken := range v.Judgement.Broken {
		if i == maxBroken {
			fmt.Fprintf(w, "  … and %d more\n", len(v.Judgement.Broken)-i)
			break
		}
		fmt.Fprintf(w, "  %s\n", broken)
	}
	fmt.Fprintln(w)
	if err := clusterGrid(v.Judgement.Clusters).Page().Write(w, env.View(false).Columns()); err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%s", p.Plot(v.Counterexample))
	_, err := w.WriteTo(env.Stdout)
	return err
}

func clusterGrid(clusters []aomcheck.ClusterResult) *cli.Grid {
	g := &cli.Grid{Header: []string{"CLUSTER", "FIRST ARRIVAL", "SENT", "DELIVERED", "MERGED", "LOST", "MAX PEAK",
		"MEAN PEAK", "MEAN AOM"}}
	text := func(d *olaf.Duration) string {
		if d == nil {
			return "-"
		}
		return aomcheck.Tidy(*d)
	}
	for _, c := range clusters {
		g.Add(c.Name, aomcheck.Tidy(c.First), fmt.Sprint(c.Sent), fmt.Sprint(c.Delivered), fmt.Sprint(c.Merged),
			fmt.Sprint(c.Lost), text(c.MaxPeak), text(c.MeanPeak), text(c.MeanAoM))
	}
	return g
}

// verdictJSON is the JSON document olafctl.verify/v1 for a verdict. The same question always produces the same
// document, apart from the provenance and the choice of counter-example, since several may exist.
type verdictJSON struct {
	cli.Head
	Answer         aomcheck.Answer     `json:"answer"`
	Objective      string              `json:"objective"`
	Covers         string              `json:"covers"`
	Model          aomcheck.Model      `json:"model"`
	Notes          []string            `json:"notes"`
	Counterexample *counterexampleJSON `json:"counterexample"`
	Provenance     verdictProvenance   `json:"provenance"`
}

type counterexampleJSON struct {
	Broken   []string                 `json:"broken"`
	Clusters []aomcheck.ClusterResult `json:"clusters"`
	Paths    []aomcheck.ClusterTrace  `json:"paths"`
	// BreaksEngine reports, for a paper model, whether the same arrivals also break the objective on the engine.
	BreaksEngine *bool `json:"breaks_engine,omitempty"`
}

type verdictProvenance struct {
	Solver  string              `json:"solver"`
	Seconds float64             `json:"seconds"`
	Script  aomcheck.ScriptSize `json:"script"`
}

func verdictDocument(v *aomcheck.Verdict) *verdictJSON {
	doc := &verdictJSON{
		Head: cli.Head{Schema: "olafctl.verify/v1"}, Answer: v.Answer, Objective: v.Problem.Objective.String(),
		Covers: v.Problem.Scope(),
		Model:  v.Problem.Model, Notes: append([]string{}, v.Notes...),
		Provenance: verdictProvenance{v.Solver, v.Wall.Seconds(), v.Script},
	}
	if v.Counterexample != nil {
		doc.Counterexample = &counterexampleJSON{
			Broken: v.Judgement.Broken, Clusters: v.Judgement.Clusters, Paths: v.Problem.Trace(v.Counterexample),
		}
		if v.OnEngine != nil {
			breaks := len(v.OnEngine.Judgement.Broken) > 0
			doc.Counterexample.BreaksEngine = &breaks
		}
	}
	return doc
}

// admissionJSON is the JSON document olafctl.verify/v1 for an admission check.
type admissionJSON struct {
	cli.Head
	Accepted bool             `json:"accepted"`
	Reason   string           `json:"why"`
	Running  *aomcheck.Answer `json:"running_alone"` // null if not checked
	Together *verdictJSON     `json:"together"`
}

func admissionDocument(a *aomcheck.Admission) *admissionJSON {
	doc := &admissionJSON{Head: cli.Head{Schema: "olafctl.verify/v1", Kind: "admit"}, Accepted: a.IsAccepted(),
		Reason: admissionLine(a), Together: verdictDocument(a.Together)}
	if a.Running != nil {
		doc.Running = &a.Running.Answer
	}
	return doc
}
