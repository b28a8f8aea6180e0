package sched

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/internal/exactmath"
)

// Workloads are networks and jobs like those in the paper's evaluation (§VII), generated from a seed. Parameters that
// the paper does not print (the share of jobs that are spread over units, the time for an update, the reconfiguration
// time, the switches' bandwidth) are fields with our values.

// WorkloadKind selects the kind of jobs in a workload.
type WorkloadKind string

// The kinds.
const (
	// DML is a workload of jobs that train models, with 2, 4, 8 or 16 workers and 102 to 548 MB per worker (§VII-C).
	DML WorkloadKind = "dml"
	// MapReduce is a workload of shuffles to one reducer. Widths and volumes are heavy-tailed as in coflow traces. The
	// paper does not print its 500 jobs from Facebook's trace; medians and tails are our choice.
	MapReduce WorkloadKind = "mapreduce"
	// Testbed is a workload on the four racks in §VII-B. Each job has 2 or 4 workers in the two racks with GPUs. The
	// servers are in the two racks with CPUs.
	Testbed WorkloadKind = "testbed"
)

// WorkloadKinds returns all kinds of workloads.
func WorkloadKinds() []WorkloadKind { return []WorkloadKind{DML, MapReduce, Testbed} }

// Workload contains the parameters from which a problem is generated.
type Workload struct {
	Kind  WorkloadKind `json:"kind"`
	Jobs  int          `json:"jobs"`
	Units int          `json:"units"`
	Ports int          `json:"ports"` // per unit
	INC   int          `json:"inc"`   // jobs that a switch aggregates
	// Joined connects all units evenly before slot 0.
	Joined bool `json:"joined,omitempty"`
	// PerSecond is the rate of the Poisson process of arrivals; with 0, all jobs arrive at once.
	PerSecond float64 `json:"jobs_per_second"`
	// Local is the share of jobs whose workers are all in one unit; the others use two units.
	Local           float64       `json:"local_share"`
	Volume          [2]olaf.Size  `json:"volume"` // per worker: minimum and maximum of a uniform distribution; not for MapReduce
	Update          olaf.Duration `json:"update"`
	Slot            olaf.Duration `json:"slot"`
	Reconfiguration olaf.Duration `json:"reconfiguration"`
	Step            olaf.Rate     `json:"step"`
	PortRate        olaf.Rate     `json:"port_rate"`
	ServerRate      olaf.Rate     `json:"server_rate"`
	Seed            uint64        `json:"seed"`
}

// PaperWorkload returns the workload of the simulation in §VII-C with the given number of jobs. Parameters that the
// paper does not print have our values.
func PaperWorkload(jobs int, seed uint64) Workload {
	return Workload{
		Kind: DML, Jobs: jobs, Units: 64, Ports: 24, INC: 4, PerSecond: 20, Local: 0.6, Volume: [2]olaf.Size{102e6, 548e6},
		Update: 100 * olaf.Millisecond, Slot: olaf.Second, Reconfiguration: 50 * olaf.Millisecond,
		Step: 10 * olaf.Gbps, PortRate: 40 * olaf.Gbps, ServerRate: 40 * olaf.Gbps, Seed: seed,
	}
}

// RackWorkload returns the workload of the testbed in §VII-B with the given number of jobs, which all train a model of
// the given size.
func RackWorkload(jobs int, model olaf.Size, seed uint64) Workload {
	s := PaperWorkload(jobs, seed)
	s.Kind, s.Units, s.Ports, s.PerSecond, s.Volume = Testbed, 4, 8, 1, [2]olaf.Size{model, model}
	return s
}

// Sizes of the testbed's models, for one gradient (§VII-B).
const (
	ResNet50 = 102 * olaf.Size(1e6)
	VGG16    = 528 * olaf.Size(1e6)
)

// GenerateProblem returns the problem that a workload describes. Equal workloads produce equal problems. The error
// matches ErrProblem.
func GenerateProblem(s Workload) (*Problem, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	p := &Problem{
		Slot: s.Slot, Step: s.Step, Reconfiguration: s.Reconfiguration, PortRate: s.PortRate, ServerRate: s.ServerRate,
	}
	for v := range s.Units {
		p.Units = append(p.Units, Unit{Name: "r" + strconv.Itoa(v+1), Ports: s.Ports, INC: s.INC})
	}
	random := rand.New(rand.NewPCG(s.Seed, 0x736368656475))
	at := 0.0
	for i := range s.Jobs {
		j := Job{ID: "j" + strconv.Itoa(i+1), Update: s.Update, Workers: map[string]int{}}
		if s.PerSecond > 0 && i > 0 {
			at += exactmath.ExpFloat64(random) / s.PerSecond
		}
		j.Arrival = olaf.Duration(math.Round(at*1e6)) * olaf.Microsecond
		s.place(&j, p.Units, random)
		p.Jobs = append(p.Jobs, j)
	}
	if s.Joined {
		p = p.WithConnections()
	}
	return p, p.Check()
}

func (s *Workload) check() error {
	bad := func(format string, args ...any) error { return &Error{What: fmt.Sprintf(format, args...)} }
	switch {
	case !slices.Contains(WorkloadKinds(), s.Kind):
		return bad("unknown workload %q; use dml, mapreduce or testbed", s.Kind)
	case s.Jobs < 1 || s.Jobs > maxJobs:
		return bad("there are %d jobs; use 1 to %d", s.Jobs, maxJobs)
	case s.Units < 1 || s.Units > maxUnits:
		return bad("there are %d units; use 1 to %d", s.Units, maxUnits)
	case s.Kind == Testbed && s.Units != 4:
		return bad("the testbed has 4 units, not %d", s.Units)
	case s.Units == 1 && s.Local < 1:
		return bad("with one unit, all jobs are local")
	case math.IsNaN(s.Local) || s.Local < 0 || s.Local > 1:
		return bad("the share of local jobs is %v; use 0 to 1", s.Local)
	case math.IsNaN(s.PerSecond) || s.PerSecond < 0 || s.PerSecond > 1e6:
		return bad("%v jobs arrive per second; use 0 (all at once) to 1,000,000", s.PerSecond)
	case s.Volume[0] < 1 || s.Volume[1] < s.Volume[0] || s.Volume[1] > maxVolume:
		return bad("volumes are from %v to %v; use positive values in ascending order", s.Volume[0], s.Volume[1])
	}
	return nil
}

// place sets the workers, the volume and the server of a job.
func (s *Workload) place(j *Job, units []Unit, random *rand.Rand) {
	workers := 0
	switch s.Kind {
	case DML:
		workers = []int{2, 4, 8, 16}[random.IntN(4)]
	case Testbed:
		workers = []int{2, 4}[random.IntN(2)]
	case MapReduce:
		// Widths are up to 64, equally many in each octave. Volumes are log-normal with a median of 30 MB; 5 % are
		// above 800 MB.
		workers = 1 << random.IntN(6)
		workers += random.IntN(workers)
		j.Volume = olaf.Size(min(max(30e6*exactmath.Exp(2*exactmath.NormFloat64(random)), 1e6), 1e10))
	}
	if s.Kind != MapReduce {
		j.Volume = s.Volume[0] + olaf.Size(random.Float64()*float64(s.Volume[1]-s.Volume[0]))
	}
	hosts, servers := units, units
	if s.Kind == Testbed {
		hosts, servers = units[:2], units[2:]
	}
	first := random.IntN(len(hosts))
	if random.Float64() < s.Local || workers == 1 {
		j.Workers[hosts[first].Name] = workers
	} else {
		second := (first + 1 + random.IntN(len(hosts)-1)) % len(hosts)
		here := 1 + random.IntN(workers-1)
		j.Workers[hosts[first].Name], j.Workers[hosts[second].Name] = here, workers-here
	}
	j.Server = servers[random.IntN(len(servers))].Name
}
