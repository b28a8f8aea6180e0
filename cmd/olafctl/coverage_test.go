package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/olafctl/olaf/experiments/system"
)

// coverageRow matches a row in the table of mechanisms on OLAF's page: number, mechanism, location, state.
var coverageRow = regexp.MustCompile(`(?m)^\| (\d+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$`)

// coveragePlace matches a command or path in the table.
var coveragePlace = regexp.MustCompile("`([^`]+)`")

// TestCoverageOfThePaper checks the table of mechanisms: it has 45 rows whose commands, flags, experiment choices and
// paths exist, a reason for every mechanism that is not complete, and correct counts above the table.
func TestCoverageOfThePaper(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(repository, "docs", "papers", "olaf.md"))
	if err != nil {
		t.Fatal(err)
	}
	page, published := string(raw), listExperiments(system.All())
	root, _, _ := tree(t)
	rows := coverageRow.FindAllStringSubmatch(page, -1)
	if len(rows) != 45 {
		t.Fatalf("the table has %d mechanisms, want 45", len(rows))
	}
	states := map[string]int{}
	for i, r := range rows {
		number, mechanism, where := r[1], r[2], r[3]
		if number != fmt.Sprint(i+1) {
			t.Errorf("row %d has the number %s", i+1, number)
		}
		state, reason, _ := strings.Cut(r[4], "; ")
		if states[state]++; state != "full" && reason == "" {
			t.Errorf("%s: %q without a reason", mechanism, state)
		}
		places := coveragePlace.FindAllStringSubmatch(where, -1)
		if len(places) == 0 {
			t.Errorf("%s: no place", mechanism)
		}
		for _, p := range places {
			command, isCommand := strings.CutPrefix(p[1], "olafctl ")
			switch name, isExperiment := strings.CutPrefix(command, "experiment run "); {
			case !isCommand:
				if _, err := os.Stat(filepath.Join(repository, filepath.FromSlash(p[1]))); err != nil {
					t.Errorf("%s: %v", mechanism, err)
				}
			case isExperiment:
				if _, err := published.Find(name); err != nil {
					t.Errorf("%s: %v", mechanism, err)
				}
			default:
				if what := unknownIn(root, command); what != "" {
					t.Errorf("%s: %s: %s", mechanism, p[1], what)
				}
			}
		}
	}
	if counts := fmt.Sprintf("Of 45 mechanisms, %d are complete, %d are partial and %d are missing", states["full"], states["part"],
		states["no"]); !strings.Contains(page, counts) || states["full"]+states["part"]+states["no"] != len(rows) {
		t.Errorf("the page does not count its states, %v: %q", states, counts)
	}
}
