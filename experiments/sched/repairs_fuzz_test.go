package sched

import (
	"strings"
	"testing"
)

// FuzzParseRepairs checks that accepted lists of repairs are written so that they read back the same.
func FuzzParseRepairs(f *testing.F) {
	for _, seed := range []string{"all", "none", "", ",", "-"} {
		f.Add(seed)
	}
	f.Add(strings.Join(AllRepairs.Names(), ","))
	f.Add("-" + strings.Join(AllRepairs.Names()[1:], ",-"))
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRepairs(text)
		if err != nil {
			return
		}
		if again, err := ParseRepairs(r.String()); err != nil || again != r {
			t.Errorf("%q is %v, which reads as %v, %v", text, r, again, err)
		}
	})
}
