package sched

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/internal/yamlfile"
)

func TestDeterministic(t *testing.T) {
	for _, kind := range WorkloadKinds() {
		s := PaperWorkload(100, 7)
		if kind == Testbed {
			s = RackWorkload(100, VGG16, 7)
		}
		s.Kind = kind
		a, err := GenerateProblem(s)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := GenerateProblem(s)
		if diff := cmp.Diff(a, b, cmpopts.IgnoreTypes(yamlfile.Pos{})); diff != "" {
			t.Errorf("%s: %s", kind, diff)
		}
		s.Seed++
		if c, _ := GenerateProblem(s); cmp.Equal(a, c, cmpopts.IgnoreTypes(yamlfile.Pos{})) {
			t.Errorf("%s: another seed makes the same jobs", kind)
		}
	}
}

// TestPaper compares the workload with the values printed in §VII-C.
func TestPaper(t *testing.T) {
	s := PaperWorkload(20_000, 1)
	p, err := GenerateProblem(s)
	if err != nil {
		t.Fatal(err)
	}
	sizes, spread, volume := map[int]int{}, 0, 0.0
	for i := range p.Jobs {
		j := &p.Jobs[i]
		n := 0
		for _, w := range j.Workers {
			n += w
		}
		sizes[n]++
		if len(j.Workers) > 1 {
			spread++
		}
		if j.Volume < 102e6 || j.Volume > 548e6 {
			t.Fatalf("%s has %v", j.ID, j.Volume)
		}
		volume += float64(j.Volume)
	}
	near := func(name string, got, want, tolerance float64) {
		if math.Abs(got-want) > tolerance {
			t.Errorf("%s is %v, want %v ± %v", name, got, want, tolerance)
		}
	}
	// Five standard errors each.
	for _, n := range []int{2, 4, 8, 16} {
		near("share of jobs", float64(sizes[n])/20_000, 0.25, 0.016)
	}
	near("share of spread jobs", float64(spread)/20_000, 0.4, 0.018)
	near("mean volume", volume/20_000/1e6, 325, 4.6)
	near("last arrival", p.Jobs[len(p.Jobs)-1].Arrival.Seconds(), 1000, 36)
}

func TestTestbed(t *testing.T) {
	p, err := GenerateProblem(RackWorkload(50, ResNet50, 3))
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.Jobs {
		j := &p.Jobs[i]
		if j.Server == "r1" || j.Server == "r2" || j.Workers["r3"]+j.Workers["r4"] > 0 || j.Volume != 102*olaf.Size(1e6) {
			t.Fatalf("%+v", j)
		}
	}
}

func TestRefusedWorkloads(t *testing.T) {
	for name, change := range map[string]func(*Workload){
		"kind":     func(s *Workload) { s.Kind = "mpi" },
		"jobs":     func(s *Workload) { s.Jobs = 0 },
		"units":    func(s *Workload) { s.Units = 0 },
		"one unit": func(s *Workload) { s.Units = 1 },
		"testbed":  func(s *Workload) { s.Kind = Testbed },
		"local":    func(s *Workload) { s.Local = math.NaN() },
		"rate":     func(s *Workload) { s.PerSecond = -1 },
		"volume":   func(s *Workload) { s.Volume[0] = 0 },
		"no ports": func(s *Workload) { s.Ports = 0 },
	} {
		s := PaperWorkload(10, 1)
		change(&s)
		if _, err := GenerateProblem(s); !errors.Is(err, ErrProblem) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
