package paper

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var paperTexts = flag.String("texts", "", "texts of papers in which every number with a unit must be a claim or be listed, as xagg=FILE,p4inc=FILE")

// TestNotCarried checks the list of numbers that are not claims: known papers, a number and a unit each, none twice, and each with a
// reason.
func TestNotCarried(t *testing.T) {
	seen := map[string]bool{}
	for _, n := range ListNotCarried() {
		if n.Why == "" || len(n.Numbers) == 0 || !slices.ContainsFunc(ListClaims(), func(c Claim) bool { return SystemOf(c.ID) == n.Paper }) {
			t.Errorf("%s: %q for the reason %q", n.Paper, n.Numbers, n.Why)
		}
		for _, number := range n.Numbers {
			if found := numberWithUnit.FindStringSubmatch(number); found == nil || found[0] != number {
				t.Errorf("%s: %q is not a number with a unit", n.Paper, number)
			}
			if seen[n.Paper+number] {
				t.Errorf("%s: %s is listed twice", n.Paper, number)
			}
			seen[n.Paper+number] = true
		}
	}
}

// numberWithUnit finds a number and its unit.
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

// onceRepeated undoes a fault of some extracted texts, in which a formula's number is there four times: 40404040 is 40.
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
		return SystemOf(c.ID) == name && is.MatchString(fmt.Sprint(c.Printed, " ", c.Why, " ", c.Contradiction, " ", c.Disagreement, " ", c.Untestable))
	})
}

func isListed(name, number string) bool {
	return slices.ContainsFunc(ListNotCarried(), func(n NotCarried) bool { return n.Paper == name && slices.Contains(n.Numbers, number) })
}
