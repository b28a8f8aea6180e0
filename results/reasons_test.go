package results

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/olafctl/olaf/results/internal/test/toy"
)

func TestWhyFoldsEqualReasons(t *testing.T) {
	invalid := func(index int, why string) Run { return Run{Index: index, Invalid: []string{why, "also"}} }
	many := make([]Run, 300)
	for i := range many {
		many[i] = invalid(i, "the capture lost all")
	}
	different := make([]Run, 9)
	for i := range different {
		different[i] = invalid(i, fmt.Sprintf("lost: %d", i/2))
	}
	for _, c := range []struct {
		runs []Run
		want []string
	}{
		{[]Run{{Index: 0}}, nil},
		{[]Run{invalid(4, "lost: 3")}, []string{"run 4: lost: 3"}},
		{[]Run{invalid(0, "lost"), invalid(2, "late"), invalid(5, "lost")}, []string{"runs 0, 5: lost", "run 2: late"}},
		{many, []string{"runs 0, 1, 2 and 297 more: the capture lost all"}},
		{different, []string{"runs 0, 1: lost: 0", "runs 2, 3: lost: 1", "runs 4, 5: lost: 2",
			"3 more for 2 other reasons, which the JSON document lists"}},
	} {
		row := Summarise(toy.Declared, c.runs)
		if diff := cmp.Diff(c.want, row.ExclusionReasons()); diff != "" {
			t.Error(diff)
		}
	}
	if got := (&Row{Reasons: []string{"of another tool: odd"}}).ExclusionReasons(); !cmp.Equal(got, []string{"of another tool: odd"}) {
		t.Error(got)
	}
}
