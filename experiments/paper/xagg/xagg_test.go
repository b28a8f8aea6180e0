package xagg

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/program/xagg"
	"github.com/olafctl/olaf/results/paper"
)

// TestClaims checks that every claimed number is no worse than declared. Fig. 1 runs shortened, which gives no verdict,
// so its times are checked here.
func TestClaims(t *testing.T) {
	reached := map[string]bool{}
	for _, e := range Experiments(system.All()) {
		report, err := e.Run(context.Background(), experiments.Options{Quick: true})
		if err != nil || report.Err() != nil {
			t.Fatal(e.Name, err, report.Err())
		}
		for _, missed := range paper.FindMisses(report.Paper()) {
			t.Errorf("%s is %s, expected %s", missed.ID, missed.Verdict, missed.Expected)
		}
		for _, row := range report.Paper() {
			reached[row.ID] = true
			if row.Artefact != "fig1" {
				continue
			}
			// A thousandth of a vector has a pool of the same length: 0.228 of 4 s.
			tolerance := map[string]float64{"ps": 1e-5, "xagg": 3e-3, "switch": 0.229}[row.Column]
			if off := float64(row.Ours.Mean - row.Published); off > tolerance || off < -tolerance {
				t.Errorf("%s is %v, want %v", row.ID, row.Ours.Mean, row.Published)
			}
		}
	}
	for _, c := range paper.ListClaims() {
		if paper.SystemOf(c.ID) == "xagg" && c.Untestable == "" && !reached[c.ID] {
			t.Errorf("no experiment reaches %s", c.ID)
		}
	}
}

func TestModels(t *testing.T) {
	if _, err := FindModel("dqn"); !errors.Is(err, system.ErrOptions) {
		t.Errorf("an unknown model: %v", err)
	}
	for _, m := range Models() {
		if got, err := FindModel(m.Name); err != nil || got != m {
			t.Errorf("%s: %+v, %v", m.Name, got, err)
		}
	}
}

// TestTestbedIsAKTree checks that the paper's testbed is the tree built for seven workers and two servers with k = 3:
// two servers with three workers, and the seventh below the root.
func TestTestbedIsAKTree(t *testing.T) {
	servers := []xagg.Candidate{{Name: "s1"}, {Name: "s2"}}
	tree, err := xagg.BuildTree(3, make([]xagg.Worker, testbedWorkers), servers)
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.Nodes) != 2 || len(tree.Nodes[0].Workers) != 3 || len(tree.Nodes[1].Workers) != 3 || len(tree.Workers) != 1 || len(tree.Top) != 2 {
		t.Errorf("%+v", tree)
	}
}

// TestFig1WithinAPacket checks the figure's three times within one packet on the slowest link, for the reduced systems.
// The remaining difference does not grow with the model; the experiment runs it whole.
func TestFig1WithinAPacket(t *testing.T) {
	scales := []int{fig1Scales, 20}
	if testing.Short() {
		scales = scales[:1]
	}
	for _, scale := range scales {
		for i, c := range fig1Columns {
			f, err := fig1Sum(context.Background(), system.All(), &experiments.Options{}, c.system, fig1Variants[1], scale)
			if err != nil {
				t.Fatal(err)
			}
			if off := f.deviation(fig1Published[i] / float64(scale)); !(math.Abs(off) <= 1) {
				t.Errorf("%s at 1/%d is %.3f packets beside the figure", c.system, scale, off)
			}
		}
	}
}
