package replay

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/olafctl/olaf/capture/capturetest"
)

// TestCoarseStampsWithholdNumbers replays every form of a capture and checks that it gives either the original's
// numbers or a list of the numbers that its stamps cannot give.
func TestCoarseStampsWithholdNumbers(t *testing.T) {
	dense, sparse := crowd(5, 400, false), crowd(5, 40, false)
	for i := range sparse {
		sparse[i].atNS = int64(10_000 * (i + 1))
	}
	for _, tt := range []struct {
		name     string
		arrivals []arrival
		fine     bool // counts are exact in every form
	}{{"dense", dense, false}, {"sparse", sparse, true}} {
		original := file(t, tt.arrivals)
		want, err := Run(context.Background(), decoder(t, original), olafQueue(3), nil)
		if err != nil || want.Withheld != nil || want.StampsNS != 1 {
			t.Fatal(err, want)
		}
		for _, c := range capturetest.Copies(t, original) {
			got, err := Run(context.Background(), decoder(t, c.Data), olafQueue(3), nil)
			if err != nil || !got.Valid || got.Partial {
				t.Fatalf("%s, %s: %v, %+v", tt.name, c.Name, err, got)
			}
			coarse := c.GrainNS > 1 && !tt.fine
			if coarse != slices.Contains(got.Withheld, "lost") {
				t.Errorf("%s, %s: withheld %v", tt.name, c.Name, got.Withheld)
			}
			for i, counter := range got.Counts.Ledger().Counters {
				if c.GrainNS != 1 && !slices.Contains(got.Withheld, counter.Name) && got.Counts.At(i) != want.Counts.At(i) {
					t.Errorf("%s, %s: %s is %d, want %d", tt.name, c.Name, counter.Name, got.Counts.At(i), want.Counts.At(i))
				}
			}
			if coarse {
				checkWithheld(t, got)
			} else if got, want := got.Ages.Metrics.Of("aom_cluster_ns"),
				want.Ages.Metrics.Of("aom_cluster_ns"); c.GrainNS == 0 && got != want {
				t.Errorf("%s, %s: ages of %v, want %v", tt.name, c.Name, got, want)
			}
		}
	}
}

// checkWithheld checks that all withheld fields are null and that the remedy is given.
func checkWithheld(t *testing.T, r *Result) {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal([]byte(written(t, r)), &doc); err != nil {
		t.Fatal(err)
	}
	for _, name := range r.Withheld {
		if v, ok := doc[name]; ok && v != nil {
			t.Errorf("%s is withheld and yet %v", name, v)
		}
	}
	if doc["sent"] == nil || doc["valid"] != true || !strings.Contains(r.WithheldWhy,
		"--time-stamp-precision=nano") || r.Ages.Available() {
		t.Errorf("sent %v, valid %v, ages %q, reason %q", doc["sent"], doc["valid"], r.Ages.Reason, r.WithheldWhy)
	}
}
