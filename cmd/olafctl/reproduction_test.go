package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/text"
)

const (
	reproductionPage = "../../docs/reproduction.md"
	// reproductionRun is what 'olafctl reproduce -o json' printed, without its provenance.
	reproductionRun        = "testdata/reproduction.json"
	tableBegins, tableEnds = "<!-- table -->\n", "<!-- end of table -->\n"
)

// TestReproductionPage holds docs/reproduction.md to a run of the tool and to the claims: its table is that run's, every claim is
// in it, its verdicts are those of today's rules, and what is no match leads to a heading that shows what moves it.
func TestReproductionPage(t *testing.T) {
	raw, err := os.ReadFile(reproductionRun)
	if err != nil {
		t.Fatal(err)
	}
	var run experiments.Reproduction
	if err := json.Unmarshal(raw, &run); err != nil || run.Schema != experiments.ReproduceSchema {
		t.Fatal(run.Schema, err)
	}
	old, err := os.ReadFile(reproductionPage)
	if err != nil {
		t.Fatal(err)
	}
	page := string(old)
	before, rest, begun := strings.Cut(page, tableBegins)
	_, after, ended := strings.Cut(rest, tableEnds)
	if !begun || !ended {
		t.Fatalf("%s has no place for its table", reproductionPage)
	}
	want := before + tableBegins + reproductionTable(t, run.Paper) + tableEnds + after
	if *update {
		if err := os.WriteFile(reproductionPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		page = want
	}
	if d := cmp.Diff(want, page); d != "" {
		t.Errorf("the table is not of %s (-update writes it):\n%s", reproductionRun, d)
	}
	headings := strings.Split(page, "\n")
	for _, c := range paper.Claims() {
		if c.Cause != "" && !slices.Contains(headings, "### "+c.Cause) {
			t.Errorf("%s: no heading %q tells what moves it", c.ID, c.Cause)
		}
		if c.Contradiction != "" && !strings.Contains(after, "`"+c.ID+"`") {
			t.Errorf("%s is a contradiction that the page does not explain", c.ID)
		}
	}
}

// reproductionTable lists the numbers of systems that are here, and how many others have, after it has held them to the claims.
func reproductionTable(t *testing.T, rows []results.PaperRow) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| claim | paper | ours | verdict | basis | what moves it |\n|---|---|---|---|---|---|\n")
	ours := paper.Ours{}
	for i := range rows {
		ours[rows[i].ID] = paper.Of(rows[i].Ours)
	}
	claims, anew := paper.Claims(), paper.Compare(ours)
	here, elsewhere := map[string]bool{}, map[string]int{}
	for i := range claims {
		here[paper.SystemOf(claims[i].ID)] = here[paper.SystemOf(claims[i].ID)] || claims[i].Untestable == ""
	}
	var others []string
	if len(rows) != len(claims) {
		t.Fatalf("%s has %d of %d claims; run it again", reproductionRun, len(rows), len(claims))
	}
	for i := range claims {
		c, at := &claims[i], slices.IndexFunc(rows, func(r results.PaperRow) bool { return r.ID == claims[i].ID })
		if at < 0 {
			t.Fatalf("%s lacks %s; run it again", reproductionRun, c.ID)
		}
		r := &rows[at]
		if r.Verdict != anew[i].Verdict || r.Expected != string(c.Expect) || r.Basis != string(c.Basis) {
			t.Errorf("%s: %s, expected %s, %s in %s; today %s, %s, %s", c.ID, r.Verdict, r.Expected, r.Basis, reproductionRun, anew[i].Verdict, c.Expect, c.Basis)
		}
		if system := paper.SystemOf(c.ID); !here[system] {
			if elsewhere[system]++; elsewhere[system] == 1 {
				others = append(others, system)
			}
			continue
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", c.ID, strings.TrimSpace(text.Published(r)+" "+r.Unit), oursAndOthers(r), r.Verdict, r.Basis, moved(c, r))
	}
	b.WriteString("\n")
	for _, name := range others {
		fmt.Fprintf(&b, "* %s: %s of a system that is not here, none testable\n", name, olaf.Plural(elsewhere[name], "published number"))
	}
	return b.String()
}

// oursAndOthers is our number, and what other assumptions make of it.
func oursAndOthers(r *results.PaperRow) string {
	lines := []string{text.Rounded(&r.Ours, 1)}
	for i := range r.Sensitivity {
		s := &r.Sensitivity[i]
		lines = append(lines, strings.TrimSuffix(fmt.Sprintf("%s: %s, %s", s.Assumption, text.Rounded(&s.Ours, 1), s.Verdict), ", "))
	}
	return strings.Join(lines, "<br>")
}

// moved links a number that is not the best of its kind to what moves it; of one that was not judged it says why.
func moved(c *paper.Claim, r *results.PaperRow) string {
	switch v := paper.Verdict(r.Verdict); {
	case c.Untestable != "":
		return c.Untestable
	case v == paper.Contradiction:
		return "[see below](#contradictions-of-the-papers)"
	case v == paper.Match, v == paper.BoundMet, c.Kind == paper.Trend && v == paper.TrendOnly, c.Cause == "":
		return ""
	}
	return "[" + c.Cause + "](#" + strings.ToLower(strings.ReplaceAll(c.Cause, " ", "-")) + ")"
}
