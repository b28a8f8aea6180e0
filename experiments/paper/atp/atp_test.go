package atp

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/bench/job"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results/result"
)

func vgg(t *testing.T) Model {
	t.Helper()
	m, err := FindModel("vgg16")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestPTA checks that a job's need at its peak is found within 5 % of window × payload ÷ round trip.
func TestPTA(t *testing.T) {
	found, err := findPTA(context.Background(), system.All(), vgg(t))
	if err != nil {
		t.Fatal(err)
	}
	if off := math.Abs(float64(found)/float64(pta()) - 1); off > 0.05 {
		t.Errorf("by search %d, by formula %d", found, pta())
	}
}

// tableOf returns a grid that was run with one seed.
func tableOf(t *testing.T, g *Grid) *result.Result {
	t.Helper()
	r, err := (&Plan{Grid: g, Seeds: []uint64{1}, Systems: system.All()}).Run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return r.Report.(*result.Result)
}

// TestSharing checks that, with two workers per job, sharing wins if aggregators are scarce and costs little if they
// suffice, and that, with eight workers, it loses in between, where collisions fill the servers' links.
func TestSharing(t *testing.T) {
	for _, c := range []struct {
		workers   int
		amount    string
		low, high float64 // limits of the ratio of static to dynamic
	}{{2, "0.5pta", 2.2, 3.1}, {2, "3pta", 0.90, 1.08}, {8, "1.5pta", 0.3, 0.9}} {
		table := tableOf(t, &Grid{
			Setting:  Setting{System: "atp", Model: vgg(t), Jobs: LabJobs, Workers: c.workers, Fraction: 0.005, Updates: 1},
			Sharings: []string{system.Static, system.Dynamic}, Amounts: []string{c.amount}, Losses: []float64{0},
		})
		if err := table.Err(); err != nil {
			t.Fatal(err)
		}
		ratio := float64(table.Blocks[1].Rows[0].Cells[0].Mean)
		if ratio < c.low || ratio > c.high {
			t.Errorf("%d workers, %s: static over dynamic is %.3f, want %g to %g", c.workers, c.amount, ratio, c.low, c.high)
		}
		served := float64(table.Blocks[3].Rows[0].Cells[1].Mean)
		if served < 1 || served > float64(c.workers) {
			t.Errorf("%d workers, %s: %g packets at a server for each of a vector", c.workers, c.amount, served)
		}
	}
}

// TestHungJobsInvalidateTable checks that hung jobs make the table invalid and have no numbers in it.
func TestHungJobsInvalidateTable(t *testing.T) {
	table := tableOf(t, &Grid{
		Setting: Setting{System: "atp", Model: vgg(t), Jobs: 1, Workers: 2, Fraction: 0.001, Updates: 1,
			Options: system.Options{Recovery: system.RecoverNone}},
		Sharings: []string{system.Dynamic}, Amounts: []string{"50"}, Losses: []float64{0.01, 1},
	})
	if !errors.Is(table.Err(), job.ErrHung) {
		t.Errorf("the table says %v", table.Err())
	}
	for _, line := range table.Blocks[0].Rows {
		if line.Cells[0].Known() {
			t.Errorf("%s: %v", line.Name, line.Cells[0])
		}
	}
}

func TestAggregatorAmounts(t *testing.T) {
	for text, want := range map[string]int{"450": 450, "1pta": pta(), "0.5PTA": pta() / 2, "0": 0, "-1": 0, "pta": 0, "nanpta": 0, "1e99pta": 0, "": 0} {
		n, err := aggregators(text)
		if n != want || (err != nil) != (want == 0) || err != nil && !errors.Is(err, system.ErrOptions) {
			t.Errorf("%q is %d, %v", text, n, err)
		}
	}
	if _, err := FindModel("gpt"); !errors.Is(err, system.ErrOptions) {
		t.Error(err)
	}
	for name, c := range map[string]Setting{
		"a system":     {System: "nobody", Jobs: 1, Workers: 1},
		"no jobs":      {System: "atp", Workers: 1},
		"no workers":   {System: "atp", Jobs: 1},
		"too many":     {System: "atp", Jobs: 1, Workers: 33, Aggregators: 100, Model: models()[0], Fraction: 1e-6, Updates: 1},
		"a wide table": {System: "atp", Jobs: 1, Workers: 2, Aggregators: 70_000, Model: models()[0], Fraction: 1e-6, Updates: 1},
	} {
		if _, err := c.Run(context.Background(), system.All(), []uint64{1}, nil); err == nil {
			t.Errorf("%s is not refused", name)
		}
	}
}

// TestLoss checks that every experiment reports its progress to the end, and that loss makes no sum wrong.
func TestLoss(t *testing.T) {
	if testing.Short() {
		t.Skip("plays 40 jobs")
	}
	last := [2]int{}
	r, err := runLoss(context.Background(), system.All(), experiments.Options{Runs: 1, Progress: func(done, total int) { last = [2]int{done, total} }})
	if err != nil || r.Err() != nil {
		t.Fatal(err, r.Err())
	}
	if last[0] != last[1] || last[0] == 0 {
		t.Errorf("its progress ended with %d of %d", last[0], last[1])
	}
	inexact := r.(*result.Result).Blocks[3]
	for _, line := range inexact.Rows {
		for i, c := range line.Cells {
			if c.Mean != 0 {
				t.Errorf("%s, %s: %g inexact packets", line.Name, inexact.Columns[i], float64(c.Mean))
			}
		}
	}
}
