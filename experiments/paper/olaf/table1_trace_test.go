package olaf

import (
	"context"
	"testing"

	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results/result"
)

func TestTable1FromATrace(t *testing.T) {
	report, err := table1Trace(system.All()).Run(context.Background(), experiments.Options{Runs: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := report.Err(); err != nil {
		t.Error(err)
	}
	for _, p := range report.(*result.Result).Panels {
		if len(p.Series) != 5 {
			t.Fatalf("%s has %d series", p.Name, len(p.Series))
		}
		for _, s := range p.Series {
			if len(s.Y) != 2 || !s.Y[0].Known() || !s.Y[1].Known() {
				t.Errorf("%s, %s: %+v", p.Name, s.Name, s.Y)
			}
		}
	}
}
