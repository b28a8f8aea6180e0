package experiments

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/pktgen/trace"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/paper"
)

// TestSharesEqualWholeBench checks that a bench divided by seeds, with each share carried out separately in any order
// and returned as JSON, equals the whole bench to the byte: the document, every run and the published numbers.
func TestSharesEqualWholeBench(t *testing.T) {
	bursts := bench.DefaultSpec(system.All())
	bursts.Workload.UpdatesPerWorker, bursts.Runs = 20, 2*sharedRuns+3
	followed := bursts
	followed.Runs = sharedRuns + 2
	var err error
	followed.Trace, err = trace.NewTraffic(trace.Builtin+"lander8", &followed.Workload)
	must(t, err)
	waiting := bench.DefaultSpec(system.All())
	waiting.Queue, waiting.Versus, waiting.Runs = "switchml", "", sharedRuns+1
	waiting.MakeLoop(func(string) bool { return false }, false)
	waiting.Runs = sharedRuns + 1
	beside := func(*bench.Spec, *results.Bench) ([]results.PaperRow, []string) {
		return paper.Compare(nil), []string{"so it is"}
	}
	for name, s := range map[string]bench.Spec{"bursts": bursts, "trace": followed, "waiting": waiting} {
		whole, err := bench.MeasureSpec(t.Context(), s, bench.Options{ComparePaper: beside})
		must(t, err)
		shares := divideShares(&s)
		if n := (s.Runs + sharedRuns - 1) / sharedRuns; len(shares) != n || n < 2 {
			t.Fatalf("%s: %d shares", name, len(shares))
		}
		parts := make([]*shared, len(shares))
		for i := len(shares) - 1; i >= 0; i-- {
			var part share
			throughJSON(t, &shares[i], &part)
			part.Spec.Systems = system.All()
			one, err := part.run(t.Context())
			must(t, err)
			parts[i] = new(shared)
			throughJSON(t, one, parts[i])
		}
		together, err := combineShares(&s, parts, beside)
		must(t, err)
		for _, c := range []struct{ was, made any }{{whole.Bench, together.Bench}, {whole.Outcome.Runs, together.Outcome.Runs},
			{whole.Outcome.Device, together.Outcome.Device}} {
			was, err := json.Marshal(c.was)
			must(t, err)
			made, err := json.Marshal(c.made)
			must(t, err)
			if string(was) != string(made) {
				t.Errorf("%s: %s", name, results.Difference(c.was, c.made))
			}
		}
		if missing, err := combineShares(&s, parts[1:], nil); err != nil || !missing.Bench.Partial {
			t.Errorf("%s: without a share it is not partial, %v", name, err)
		}
	}
	if _, err := (&share{bursts, bursts.Runs - 1, 2}).run(t.Context()); !errors.Is(err, bench.ErrSpec) {
		t.Error(err)
	}
	if _, err := combineShares(&bursts, []*shared{{}}, nil); !errors.Is(err, bench.ErrSpec) {
		t.Error(err)
	}
}

// throughJSON sends a value through JSON, like to another machine.
func throughJSON(t *testing.T, from, to any) {
	t.Helper()
	raw, err := json.Marshal(from)
	must(t, err)
	must(t, json.Unmarshal(raw, to))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
