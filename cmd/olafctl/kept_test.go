package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	runscmd "github.com/olafctl/olaf/cmd/olafctl/runs"
	"github.com/olafctl/olaf/internal/test/raced"
	"github.com/olafctl/olaf/results/compare"
	"github.com/olafctl/olaf/results/store"
)

// keptRuns contains runs of every kind that the build of fd5604d1 stored. The frames of its table2 were left out
// because of their size, as that build does for large simulations.
const keptRuns = "testdata/kept"

// earlierStore copies the runs of an earlier build into a new store and returns their ids.
func earlierStore(t *testing.T) (*kept, []string) {
	t.Helper()
	k := newKept(t)
	runs := filepath.Join(k.dir, "store", "runs")
	if err := os.MkdirAll(runs, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(runs, os.DirFS(keptRuns)); err != nil {
		t.Fatal(err)
	}
	folders, err := os.ReadDir(runs)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, f := range folders {
		ids = append(ids, f.Name())
	}
	return k, ids
}

// TestRunsOfEarlierBuildsStayValid checks that every run that an earlier build stored can be verified, shown, compared
// and exported.
func TestRunsOfEarlierBuildsStayValid(t *testing.T) {
	raced.SkipRaced(t)
	k, ids := earlierStore(t)
	kinds := map[string]bool{}
	for _, id := range ids {
		manifest := k.manifest(id)
		kinds[manifest.Experiment] = true
		t.Run(id, func(t *testing.T) {
			k.t = t
			if said := k.olafctl("runs", "verify", id); !strings.Contains(said, id+" verified: ") {
				t.Errorf("%q was kept by an earlier build and must verify; it printed %q", manifest.Provenance.Command, said)
			}
			k.showsAsPrinted(id)
			out := filepath.Join(k.dir, id)
			k.olafctl("export", id, "--json", out+".json", "--csv", out, "--report", out+".html", "--xlsx", out+".xlsx")
			if k.comparable(id) {
				k.olafctl("runs", "compare", id, id)
			}
		})
	}
	for _, kind := range []string{"bench", "simulate", "sweep-bench", "sweep-simulate", "train", "olaf/table2", "iswitch/table5",
		"p4inc/fig6"} {
		if !kinds[kind] {
			t.Errorf("%s has no run of the kind %s", keptRuns, kind)
		}
	}
}

// manifest reads the manifest of a run.
func (k *kept) manifest(id string) (m store.Manifest) {
	k.t.Helper()
	raw, err := os.ReadFile(filepath.Join(k.dir, "store", "runs", id, "manifest.json"))
	if err == nil {
		err = json.Unmarshal(raw, &m)
	}
	if err != nil {
		k.t.Fatal(err)
	}
	return m
}

// showsAsPrinted checks that a run with its own document is shown in the form in which it was printed.
func (k *kept) showsAsPrinted(id string) {
	k.t.Helper()
	shown := k.olafctl("runs", "show", id)
	printed, err := os.ReadFile(filepath.Join(k.dir, "store", "runs", id, "printed.txt"))
	if err == nil && !strings.HasSuffix(shown, string(printed)) {
		k.t.Errorf("runs show %s must end with the words that were kept:\n%s\nbut it printed:\n%s", id, printed, shown)
	}
}

// comparable reports whether a run can be compared, which requires single runs or a sweep's cells.
func (k *kept) comparable(id string) bool {
	k.t.Helper()
	ok := false
	var where cli.StoreFlag
	err := where.WithRun(k.env, id, func(_ *store.Store, f *store.Folder) error {
		side, err := runscmd.NewSide(k.env, f)
		ok = err == nil && side != nil
		return nil
	})
	if err != nil {
		k.t.Fatal(err)
	}
	return ok
}

// TestComparingDefinitionsNamesThem compares a simulation by an earlier build with the same one by this build. It
// checks that metrics that both define are equal, and that metrics that only one defines are listed with their side.
func TestComparingDefinitionsNamesThem(t *testing.T) {
	raced.SkipRaced(t)
	k, ids := earlierStore(t)
	for _, id := range ids {
		command := k.manifest(id).Provenance.Command
		if !slices.Contains(command, "--tc") {
			continue
		}
		k.olafctl(append(command[1:], "-q")...)
		var d compare.Document
		if err := json.Unmarshal([]byte(k.olafctl("runs", "compare", id, "last", "-o", "json")), &d); err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(d.Warnings, func(w string) bool {
			return strings.Contains(w, "only B") &&
				strings.Contains(w, "window_sent")
		}) {
			t.Errorf("window_sent is new since %s was kept, which the comparison must say; it warns of %q", id, d.Warnings)
		}
		for i := range d.Lines {
			if l := &d.Lines[i]; l.A.Mean != l.B.Mean {
				t.Errorf("%s has one definition, so that both builds must have one value: %v and %v", l.Metric, l.A.Mean, l.B.Mean)
			}
		}
		return
	}
	t.Error(keptRuns + " has no simulation under transmission control")
}
