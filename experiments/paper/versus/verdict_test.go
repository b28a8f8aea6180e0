package versus

import (
	"testing"

	"github.com/olafctl/olaf/results/result"
)

// TestTooFewSeedsAreNotJudged checks that an expectation over too few seeds has neither come true nor failed.
func TestTooFewSeedsAreNotJudged(t *testing.T) {
	for _, c := range []struct {
		short string
		ok    bool
		want  string
	}{{"2 of 5 seeds", true, "too short"}, {"2 of 5 seeds", false, "too short"}, {"", true, "it is so"}, {"", false, "it is NOT so"}} {
		if got := formatVerdict(&result.Result{Short: c.short}, c.ok); got != c.want {
			t.Errorf("short by %q and %v is %q, want %q", c.short, c.ok, got, c.want)
		}
	}
}
