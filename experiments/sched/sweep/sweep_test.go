package sweep

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/olafctl/olaf/experiments/sched"
	"github.com/olafctl/olaf/experiments/sched/workload"
)

// crowded is a network whose optics and switches are short.
func crowded() workload.Spec {
	s := workload.Paper(0, 1)
	s.Units, s.Ports, s.INC, s.PerSecond, s.Local = 8, 2, 1, 60, 0.2
	return s
}

func TestRun(t *testing.T) {
	rows, err := Run(context.Background(), crowded(), Axes()[0], []float64{20, 60}, 10, nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Run(context.Background(), crowded(), Axes()[0], []float64{20, 60}, 10, nil)
	if diff := cmp.Diff(rows, again, cmpopts.EquateNaNs()); diff != "" || err != nil {
		t.Errorf("the same seeds differ: %s, %v", diff, err)
	}
	worse := 0
	for i := range rows {
		r := &rows[i]
		if r.CTBTI.N != 10 || r.Scenario == "INC-FCFS" && r.Worse != 0 {
			t.Errorf("%+v", r)
		}
		worse += r.Worse
		// Switches spare connections, and more jobs need more.
		if i%4 >= 2 && r.Reconfigurations.Mean >= rows[i-2].Reconfigurations.Mean {
			t.Errorf("%d jobs: %s sets up %v connections, without switches %v", r.Jobs, r.Scenario, r.Reconfigurations.Mean, rows[i-2].Reconfigurations.Mean)
		}
		if i >= 4 && r.CTBTI.Mean <= rows[i-4].CTBTI.Mean {
			t.Errorf("%s: more jobs are done sooner", r.Scenario)
		}
	}
	if worse == 0 {
		t.Error("TW is never worse than FCFS; on this network it is in some seeds")
	}
}

func TestRunRefuses(t *testing.T) {
	s := crowded()
	s.Ports = 0
	if _, err := Run(context.Background(), s, Axes()[0], []float64{5}, 1, nil); !errors.Is(err, sched.ErrProblem) {
		t.Error(err)
	}
	if _, err := Run(context.Background(), crowded(), Axes()[0], []float64{2.5}, 1, nil); !errors.Is(err, sched.ErrProblem) {
		t.Errorf("half a job: %v", err)
	}
	if _, err := FindAxis("colour"); !errors.Is(err, sched.ErrProblem) {
		t.Error(err)
	}
}

// Every axis changes the workload that is planned.
func TestAxes(t *testing.T) {
	for _, a := range Axes() {
		base := crowded()
		base.Jobs = 10
		v := 0.5
		if a.whole {
			v = 3
		}
		specs, err := a.Specs(base, []float64{v})
		if err != nil || specs[0] == base {
			t.Errorf("%s: %+v, %v", a.Name, specs, err)
		}
	}
}
