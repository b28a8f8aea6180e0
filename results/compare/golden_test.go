package compare

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/internal/test/toy"
)

var update = flag.Bool("update", false, "write the golden files anew; read the difference before committing it")

// of returns a side with the given name, configuration and runs.
func of(name, config string, runs ...results.Run) *Side {
	return &Side{Name: name, Experiment: "table1", Config: json.RawMessage(config), Runs: runs}
}

// group returns runs of one configuration with seeds from first on.
func group(queue string, rate int64, first uint64, aom ...float64) (runs []results.Run) {
	for i, v := range aom {
		runs = append(runs, results.Run{Queue: queue, OutRateBPS: rate, Index: i, Seed: first + uint64(i),
			Declared: toy.Declared,
			Counters: toy.Counts(map[string]int64{"sent": 100, "aggregated": int64(v)}),
			Metrics: toy.Values(map[string]results.Float{"aom_cluster_ns": results.Float(v),
				"aom_worker_ns": results.Float(1000 * v)})})
	}
	return runs
}

func invalid(runs []results.Run, which ...int) []results.Run {
	for _, i := range which {
		runs[i].Invalid = []string{"the capture lost 1 frames"}
	}
	return runs
}

// besideTwin adds a twin's age to every run.
func besideTwin(runs []results.Run, plan, twin results.Float) []results.Run {
	for i := range runs {
		runs[i].TwinComparisons = map[string]results.TwinComparison{"aom_cluster_ns": {Plan: plan, Twin: twin,
			Measured: runs[i].Metrics.Of("aom_cluster_ns")}}
	}
	return runs
}

// withheld removes the ages from runs.
func withheld(runs []results.Run) []results.Run {
	for i := range runs {
		runs[i].Withhold("the pacer was late")
		b := runs[i].TwinComparisons["aom_cluster_ns"]
		b.Measured = results.Missing()
		runs[i].TwinComparisons["aom_cluster_ns"] = b
	}
	return runs
}

// clustered adds clusters to every run: the first has the run's age, and each other cluster has ten times the age of
// the one before.
func clustered(runs []results.Run, ids ...int) []results.Run {
	for i := range runs {
		age := runs[i].Metrics.Of("aom_cluster_ns")
		for _, id := range ids {
			runs[i].Clusters = append(runs[i].Clusters, results.ClusterMetric{Cluster: id, Deliveries: 5, AoM: age,
				PeakAoM: 2 * age, AoMWorker: results.Missing()})
			age *= 10
		}
	}
	return runs
}

// onTwin adds to every age of the runs the twin's ages for the plan and the replay, as multiples of it. Ages named in
// late are missing.
func onTwin(runs []results.Run, plan, twin results.Float, late string) []results.Run {
	times := func(r *results.Run, by results.Float) *results.Run {
		age := by * r.Metrics.Of("aom_cluster_ns")
		other := results.Run{Declared: toy.Declared, Metrics: toy.Values(map[string]results.Float{"aom_cluster_ns": age})}
		for i := range r.Clusters {
			c := r.Clusters[i]
			c.AoM, c.PeakAoM = by*c.AoM, by*c.PeakAoM
			other.Clusters = append(other.Clusters, c)
		}
		return &other
	}
	for i := range runs {
		planned, replayed := times(&runs[i], plan), times(&runs[i], twin)
		if late != "" {
			runs[i].Withhold(late)
		}
		runs[i].Compare(planned, replayed)
	}
	return runs
}

func settingsOf(n int, value string) string {
	var parts []string
	for i := range n {
		parts = append(parts, fmt.Sprintf(`"s%02d":%q`, i, value))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// TestStories checks whole comparisons: the document, its text, and every cell of its sheet.
func TestStories(t *testing.T) {
	both := append(group("olaf", 40e9, 0, 10, 11, 12, 13, 14, 15, 16, 17), group("fifo", 40e9, 0, 50, 51, 52)...)
	for name, sides := range map[string][2]*Side{
		"paired": {of("a", `{}`, both...), of("b", `{}`, append(group("olaf", 40e9, 0, 21, 22.5, 24, 25.5, 27, 28.5,
			30, 31.5), group("fifo", 40e9, 0, 50, 51, 52)...)...)},
		"unpaired": {of("a", settingsOf(14, "1"), both...), of("b", settingsOf(14, "2"),
			append(group("olaf", 40e9, 100, 9, 10.5, 12, 8, 9, 8.5, 7, 8), group("fifo", 40e9, 100, 60, 61, 62)...)...)},
		"few": {of("a", `{}`, group("olaf", 40e9, 0, 10)...), of("b", `{}`, group("olaf", 40e9, 0, 12)...)},
		"one-sided": {of("a", `{"list":[1,2,3]}`, append(group("olaf", 40e9, 0, 10, 11, 12, 13, 14, 15),
			group("fifo", 20e9, 0, 50)...)...),
			of("b", `{"list":[1,5,6]}`, append(group("olaf", 40e9, 0, 10, 11, 12, 13, 14, 15.5), group("fifo", 10e9, 0,
				50)...)...)},
		"invalid": {of("a", `{}`, invalid(group("olaf", 40e9, 0, 10, 11, 12, 13), 0, 1)...),
			of("b", `{}`, invalid(group("olaf", 40e9, 0, 10, 11, 12, 13), 3)...)},
		"none left": {of("a", `{}`, append(invalid(group("olaf", 40e9, 0, 10, 11), 0, 1), group("fifo", 40e9, 0, 50)...)...),
			of("b", `{}`, append(group("olaf", 40e9, 7, 10, 11), group("fifo", 40e9, 0, 50)...)...)},
		"one of another seed": {of("a", `{}`, group("olaf", 40e9, 0, 10)...), of("b", `{}`, group("olaf", 40e9, 5, 12)...)},
		"none left of b": {of("a", `{}`, append(group("olaf", 40e9, 7, 10, 11), group("fifo", 40e9, 0, 50)...)...),
			of("b", `{}`, append(invalid(group("olaf", 40e9, 0, 10, 11), 0, 1), group("fifo", 40e9, 0, 50)...)...)},
		"beside the twin": {of("a", `{}`, group("olaf", 3e6, 0, 10, 11)...),
			of("b", `{}`, append(besideTwin(group("olaf", 3e6, 0, 12, 13), 10, 11.5),
				withheld(besideTwin(group("olaf", 3e6, 2, 14), 10, 12))...)...)},
		"clusters": {of("a", `{}`, clustered(group("olaf", 3e6, 0, 10, 12, 14), 0, 4)...),
			of("b", `{}`, append(onTwin(clustered(group("olaf", 3e6, 1, 18, 21), 4, 7), 2, 0.75, ""),
				onTwin(clustered(group("olaf", 3e6, 3, 99), 4, 7), 2, 0.75, "the pacer was late")...)...)},
		"large": {of("a", `{}`, group("olaf", 40e9, 0, 999, 1000, 1000, 1001, 1000, 1000)...),
			of("b", `{}`, group("olaf", 40e9, 0, 1e6, 1e6, 1e6+1, 1e6, 1e6-1, 1e6)...)},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := CompareResults(sides[0], sides[1])
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			for _, all := range []bool{false, true} {
				if err := d.WriteMarkdown(&out, all); err != nil {
					t.Fatal(err)
				}
			}
			sheet := d.Sheet()
			for _, c := range sheet.Columns {
				fmt.Fprintf(&out, "%s (%v) ", c.Title(), c.Format)
			}
			for _, row := range sheet.Rows {
				out.WriteByte('\n')
				for i, v := range row {
					fmt.Fprintf(&out, "%s; ", sheet.Columns[i].Pretty(v))
				}
			}
			raw, err := json.MarshalIndent(d, "", " ")
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&out, "\n%s\n", raw)
			golden := filepath.Join("testdata", strings.ReplaceAll(name, " ", "-")+".golden")
			if *update {
				if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), out.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// full is a writer that accepts a limited number of bytes.
type full int

var errFull = errors.New("full")

func (f *full) Write(p []byte) (int, error) {
	if *f -= full(len(p)); *f < 0 {
		return 0, errFull
	}
	return len(p), nil
}

// everything returns a comparison with every kind of content: lines, ages next to the twin's, and single clusters.
func everything(t *testing.T) *Document {
	t.Helper()
	d, err := CompareResults(of("a", `{}`, clustered(group("olaf", 3e6, 0, 10, 12, 14), 0, 4)...),
		of("b", `{}`, onTwin(clustered(group("olaf", 3e6, 1, 18, 21), 4, 7), 2, 0.75, "")...))
	if err != nil || len(d.TwinAges) == 0 || len(d.Clusters) == 0 {
		t.Fatalf("%+v, %v", d, err)
	}
	return d
}

// once is a writer in which one write fails. Its value counts down to that write.
type once int

func (o *once) Write(p []byte) (int, error) {
	if *o--; *o == -1 {
		return 0, errFull
	}
	return len(p), nil
}

// TestFailedWriteIsReported checks that a failed write is reported although later ones succeed.
func TestFailedWriteIsReported(t *testing.T) {
	d := everything(t)
	failed := 0
	for ; ; failed++ {
		left := once(failed)
		if err := d.WriteMarkdown(&left, true); left >= 0 && err == nil {
			break
		} else if !errors.Is(err, errFull) {
			t.Fatalf("write %d: %v", failed, err)
		}
	}
	if failed < 6 {
		t.Errorf("%d writes", failed)
	}
}

// TestFullDiskIsReported checks that an error is reported if a comparison is written to a writer with room for only a
// part of it, for every size of the part.
func TestFullDiskIsReported(t *testing.T) {
	d := everything(t)
	var whole bytes.Buffer
	if err := d.WriteMarkdown(&whole, true); err != nil {
		t.Fatal(err)
	}
	for room := range whole.Len() {
		left := full(room)
		if err := d.WriteMarkdown(&left, true); !errors.Is(err, errFull) {
			t.Fatalf("with room for %d bytes of %d: %v", room, whole.Len(), err)
		}
	}
}
