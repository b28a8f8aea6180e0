package sched

import (
	"strings"
	"testing"
)

// FuzzParseRepairs reads anything as a list of repairs; what is taken is written so that it reads as the same.
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
