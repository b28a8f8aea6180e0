package paper

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/olafctl/olaf/results/paper/papertest"
)

var paperTexts = flag.String("texts", "", "texts of papers in which every number with a unit must be a claim or be listed, as xagg=FILE,p4inc=FILE")

// TestNumbersWithoutClaims checks the list of numbers that are not claims: known papers, a number each, with a unit
// unless the number is in a table, no duplicates, and a reason each.
func TestNumbersWithoutClaims(t *testing.T) {
	seen := map[string]bool{}
	for _, n := range papertest.ListNotCarried() {
		if n.Reason == "" || len(n.Numbers) == 0 || !slices.ContainsFunc(ListClaims(), func(c Claim) bool { return SystemOf(c.ID) == n.Paper }) {
			t.Errorf("%s: %q for the reason %q", n.Paper, n.Numbers, n.Reason)
		}
		for _, number := range n.Numbers {
			if found := numberWithUnit.FindStringSubmatch(number); (found == nil || found[0] != number) && !cellNumber.MatchString(number) {
				t.Errorf("%s: %q is not a number", n.Paper, number)
			}
			if seen[n.Paper+number] {
				t.Errorf("%s: %s is listed twice", n.Paper, number)
			}
			seen[n.Paper+number] = true
		}
	}
}

// numberWithUnit matches a number and its unit.
var numberWithUnit = regexp.MustCompile(`(\d[\d,]*\.?\d*)\s*\$?\s*(×|\\times|%|[GMT]bps|Mpps|μ ?s|us|ms|ns|s\b|[KMG]B\b|packets|cores|bits?\b|bytes|workers|iterations|hours)`)

// TestEveryPrintedNumber checks that every number with a unit in a paper's text is a claim, or is listed with the reason why it is
// not. The texts are not part of this repository.
func TestEveryPrintedNumber(t *testing.T) {
	if *paperTexts == "" {
		t.Skip("needs the papers' texts: -texts xagg=FILE")
	}
	for _, one := range strings.Split(*paperTexts, ",") {
		name, file, _ := strings.Cut(one, "=")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		body, _, _ := strings.Cut(string(text), "REFERENCES")
		found := 0
		for _, at := range numberWithUnit.FindAllStringSubmatchIndex(body, -1) {
			if at[0] > 0 && strings.ContainsAny(body[at[0]-1:at[0]], "0123456789.[_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
				continue // part of a name, a reference or another number
			}
			number, unit := onceRepeated(strings.TrimRight(body[at[2]:at[3]], ".,")), strings.ReplaceAll(body[at[4]:at[5]], `\times`, "×")
			if found++; !isClaimed(name, number) && !isListed(name, number+" "+unit) {
				t.Errorf("%s prints %s %s, which is neither a claim nor listed: …%s…", name, number, unit,
					strings.Join(strings.Fields(body[max(0, at[0]-80):min(len(body), at[1]+40)]), " "))
			}
		}
		if t.Logf("%s: %d numbers with a unit", name, found); found == 0 {
			t.Errorf("%s: no number in %s", name, file)
		}
	}
}

// onceRepeated corrects an error in some extracted texts, where a formula's number is repeated four times: 40404040 is
// 40.
func onceRepeated(s string) string {
	if n := len(s) / 4; n > 0 && s == strings.Repeat(s[:n], 4) {
		return s[:n]
	}
	return s
}

// isClaimed reports whether a claim of a paper prints a number or names it in its explanation.
func isClaimed(name, number string) bool {
	is := regexp.MustCompile(`(^|[^\d.])` + regexp.QuoteMeta(number) + `($|[^\d])`)
	return slices.ContainsFunc(ListClaims(), func(c Claim) bool {
		return SystemOf(c.ID) == name && is.MatchString(fmt.Sprint(c.Printed, " ", c.Explanation, " ", c.Contradiction, " ", c.Disagreement, " ", c.Untestable))
	})
}

func isListed(name, number string) bool {
	return slices.ContainsFunc(papertest.ListNotCarried(), func(n papertest.NotCarried) bool { return n.Paper == name && slices.Contains(n.Numbers, number) })
}

// cellNumber matches the number in a table's cell, also 1.40E+06, with its unit.
var cellNumber = regexp.MustCompile(`^(\d[\d,]*\.?\d*)(E[+-]\d+)?(?:[×M%]| [KM]B| min)?$`)

// listCells returns the numbers in a line of text if the line is a row of a table: it has bars or tabs, or at least
// three numbers and at most three other words.
func listCells(line string) (numbers []string) {
	split := strings.Fields
	for _, mark := range []string{"|", "\t"} {
		if strings.Contains(line, mark) {
			split = func(s string) []string { return strings.Split(s, mark) }
		}
	}
	words := 0
	for _, cell := range split(line) {
		m := cellNumber.FindStringSubmatch(strings.TrimSpace(cell))
		switch {
		case m == nil:
			words++
		case m[2] != "": // counts of millions are claims in millions
			n, _ := strconv.ParseFloat(m[1]+m[2], 64) // the pattern matches only numbers
			numbers = append(numbers, strconv.FormatFloat(n/1e6, 'f', 2, 64))
		default:
			numbers = append(numbers, onceRepeated(m[1]))
		}
	}
	if !strings.ContainsAny(line, "|\t") && (len(numbers) < 3 || words > 3) {
		return nil
	}
	return numbers
}

// findInTables returns the count of numbers in a text's tables, and a complaint about each that is neither a claim of the
// paper nor listed.
func findInTables(name, text string) (found int, complaints []string) {
	for line := range strings.Lines(text) {
		for _, number := range listCells(line) {
			if found++; !isClaimed(name, number) && !isListedNumber(name, number) {
				complaints = append(complaints, fmt.Sprintf("%s has %s in a table, which is neither a claim nor listed: %s", name, number, strings.TrimSpace(line)))
			}
		}
	}
	return found, complaints
}

// TestEveryTableCell checks that every number in a table of a paper's text is a claim, or is listed. A number counts as a
// claim if it is in the texts about any claim of the paper, so the test can miss small whole numbers. The papers' texts
// are not part of this repository.
func TestEveryTableCell(t *testing.T) {
	if *paperTexts == "" {
		t.Skip("needs the papers' texts: -texts iswitch=FILE")
	}
	all := 0
	for _, one := range strings.Split(*paperTexts, ",") {
		name, file, _ := strings.Cut(one, "=")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found, complaints := findInTables(name, string(text))
		for _, c := range complaints {
			t.Error(c)
		}
		t.Logf("%s: %d numbers in tables", name, found) // XAgg's paper has no table
		all += found
	}
	if all == 0 {
		t.Errorf("no table in %s", *paperTexts)
	}
}

// TestTableCellsAreFound checks that TestEveryTableCell finds numbers in each form of a table, and complains about those
// that are not claims.
func TestTableCellsAreFound(t *testing.T) {
	for text, want := range map[string]int{
		"| other | 98765.1 | 98765.2× | 98765.3 % |": 2, // no cell of the papers has a space before the sign
		"other\t98765 min\t98,765":                   2,
		"other 98765.1 98765.2 9.8E+09":              3,
		"it took 98765.1 to 98765.2 of them, in 7":   0, // a sentence
	} {
		if found, complaints := findInTables("iswitch", text); found != want || len(complaints) != want {
			t.Errorf("%q: found %d numbers with the complaints %q, want %d of both", text, found, complaints, want)
		}
	}
	if found, complaints := findInTables("iswitch", "| DQN | 6.41 MB | 3.66 |"); found != 2 || complaints != nil {
		t.Errorf("two printed numbers: found %d, complaints %q", found, complaints)
	}
}

// isListedNumber reports whether a number is listed, with any unit or none.
func isListedNumber(name, number string) bool {
	return slices.ContainsFunc(papertest.ListNotCarried(), func(n papertest.NotCarried) bool {
		return n.Paper == name && slices.ContainsFunc(n.Numbers, func(s string) bool { return s == number || strings.HasPrefix(s, number+" ") })
	})
}
