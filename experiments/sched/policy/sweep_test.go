package policy

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/olafctl/olaf/experiments/sched"
)

// crowded returns a network whose optics and switches are a bottleneck.
func crowded() sched.Workload {
	s := sched.PaperWorkload(0, 1)
	s.Units, s.Ports, s.INC, s.PerSecond, s.Local = 8, 2, 1, 60, 0.2
	return s
}

// run plans workloads with different numbers of jobs.
func run(base sched.Workload, jobs []float64, seeds int) ([]Cell, error) {
	specs, err := Axes()[0].Specs(base, jobs)
	if err != nil {
		return nil, err
	}
	return Cells(context.Background(), specs, seeds, nil)
}

func TestCells(t *testing.T) {
	jobs := []float64{20, 60}
	cells, err := run(crowded(), jobs, 10)
	if err != nil {
		t.Fatal(err)
	}
	panels := Axes()[0].Panels(jobs, cells, Metrics(), "")
	again, err := run(crowded(), jobs, 10)
	if diff := cmp.Diff(panels, Axes()[0].Panels(jobs, again, Metrics(), ""), cmpopts.EquateNaNs()); diff != "" || err != nil {
		t.Errorf("the same seeds differ: %s, %v", diff, err)
	}
	time, connections := panels[0].Series, panels[2].Series
	worse := 0
	for k, s := range Scenarios() {
		for i := range cells {
			n := cells[i].Worse(k)
			if time[k].Y[i].N != 10 || s.Name == "INC-FCFS" && n != 0 {
				t.Errorf("%s: %+v, worse under %d seeds", s.Name, time[k].Y[i], n)
			}
			worse += n
			// Switches save connections, and more jobs need more.
			if k >= 2 && connections[k].Y[i].Mean >= connections[k-2].Y[i].Mean {
				t.Errorf("%v jobs: %s sets up %v connections, without switches %v", jobs[i], s.Name, connections[k].Y[i].Mean, connections[k-2].Y[i].Mean)
			}
		}
		if time[k].Y[1].Mean <= time[k].Y[0].Mean {
			t.Errorf("%s: more jobs are done sooner", s.Name)
		}
	}
	if worse == 0 {
		t.Error("TW is never worse than FCFS; on this network it is in some seeds")
	}
}

func TestCellsRefuse(t *testing.T) {
	s := crowded()
	s.Ports = 0
	if _, err := run(s, []float64{5}, 1); !errors.Is(err, sched.ErrProblem) {
		t.Error(err)
	}
	if _, err := run(crowded(), []float64{2.5}, 1); !errors.Is(err, sched.ErrProblem) {
		t.Errorf("half a job: %v", err)
	}
	if _, err := FindAxis("colour"); !errors.Is(err, sched.ErrProblem) {
		t.Error(err)
	}
}

// TestAxes checks that every axis changes the planned workload.
func TestAxes(t *testing.T) {
	for _, a := range Axes() {
		base := crowded()
		base.Jobs = 10
		v := 0.5
		if a.integer {
			v = 3
		}
		specs, err := a.Specs(base, []float64{v})
		if err != nil || specs[0] == base {
			t.Errorf("%s: %+v, %v", a.Name, specs, err)
		}
	}
}
