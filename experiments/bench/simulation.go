package bench

import (
	"encoding/json"
	"fmt"

	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results"
)

// Simulation is work for the simulator: networks, each under every seed.
type Simulation struct {
	Experiment string
	Networks   []Network
	Seeds      []uint64
	// Compared adds comparisons of the first network with every other one.
	Compared bool
}

// Network is one configuration of a Simulation.
type Network struct {
	Name     string // unique in the Simulation; usually the topology's Title
	Topology *netsim.Topology
}

// RunCount returns the number of single runs.
func (s *Simulation) RunCount() int { return len(s.Networks) * len(s.Seeds) }

// simulationFile is the JSON form of a Simulation, from which its stored runs are repeated.
type simulationFile struct {
	Experiment string        `json:"experiment"`
	Networks   []networkFile `json:"networks"`
	Seeds      []uint64      `json:"seeds"`
}

type networkFile struct {
	Name     string          `json:"name"`
	Topology json.RawMessage `json:"topology"`
	// Sends is the digest of the arrivals file, which the topology only names.
	Sends string `json:"sends_sha256,omitempty"`
}

// Outline describes the work to the consumers of its events.
func (s *Simulation) Outline() (*Outline, error) {
	file := simulationFile{Experiment: s.Experiment, Seeds: s.Seeds}
	o := &Outline{Experiment: s.Experiment, Seeds: s.Seeds, Repeats: true}
	for i := range s.Networks {
		n := &s.Networks[i]
		document, err := n.Topology.Document()
		if err != nil {
			return nil, fmt.Errorf("write the topology of %s: %w", n.Name, err)
		}
		topology, err := json.Marshal(document)
		if err != nil {
			return nil, fmt.Errorf("write the topology of %s: %w", n.Name, err)
		}
		sends := n.Topology.SendsDigest()
		o.Repeats = o.Repeats && sends == ""
		file.Networks = append(file.Networks, networkFile{n.Name, topology, sends})
		o.Configurations = append(o.Configurations, Configuration{n.Name, n.Topology.CollectorConfig()})
	}
	var err error
	if o.Config, err = json.Marshal(&file); err != nil {
		return nil, fmt.Errorf("write the simulation: %w", err)
	}
	return o, nil
}

// ReadSimulation parses the output of Outline, for systems of a set. Networks with arrivals from a file come without
// them and cannot run.
func ReadSimulation(systems system.Set, text []byte) (*Simulation, error) {
	var file simulationFile
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	s := &Simulation{Experiment: file.Experiment, Seeds: file.Seeds}
	for _, n := range file.Networks {
		t, err := netsim.ParseTopology(systems, n.Name, n.Topology)
		if err != nil {
			return nil, err
		}
		s.Networks = append(s.Networks, Network{n.Name, t})
	}
	return s, nil
}

// Storage per frame, and per update in a merged one, rounded up from BenchmarkSimulate.
const (
	frameBytes  = 14
	insideBytes = 5
)

// FrameBytes estimates the storage for the frames of one seed: an upper limit from the rates of workers and links.
func (s *Simulation) FrameBytes() (bytes float64) {
	for i := range s.Networks {
		sent, delivered := s.Networks[i].Topology.EstimateTraffic()
		bytes += float64(frameBytes * delivered)
		if s.Networks[i].Topology.Merges() {
			bytes += float64(insideBytes * sent)
		}
	}
	return bytes
}

// Simulated is the result of a Simulation.
type Simulated struct {
	Simulation *Simulation
	// Runs and Results are indexed by network, then by the seeds that every network has finished. A run that breaks an
	// accounting identity is invalid: it is in Runs, but not in Results.
	Runs    [][]results.Run
	Results [][]*netsim.Result
	// Stopped is the first run if its watcher ended it early; it is in neither list.
	Stopped *netsim.Result
	Partial bool // some seeds are missing
}

// Err returns nil if every run was valid and none is missing.
func (s *Simulated) Err() error {
	for i := range s.Runs {
		for k := range s.Runs[i] {
			if r := &s.Runs[i][k]; !r.Valid() {
				return fmt.Errorf("%w: %s, seed %d: %s", ErrInvalid, r.Queue, r.Seed, r.Invalid[0])
			}
		}
	}
	if s.Partial {
		return fmt.Errorf("%w: stopped before all runs were done", ErrRun)
	}
	return nil
}

// DescribeValidity describes which runs count.
func (s *Simulated) DescribeValidity() string {
	valid, total, why := 0, 0, ""
	for i := range s.Runs {
		for k := range s.Runs[i] {
			total++
			if r := &s.Runs[i][k]; r.Valid() {
				valid++
			} else if why == "" {
				why = fmt.Sprintf("%s, seed %d: %s", r.Queue, r.Seed, r.Invalid[0])
			}
		}
	}
	switch {
	case valid < total:
		return fmt.Sprintf("INVALID: %d of %d runs are left out: %s", total-valid, total, why)
	case s.Partial:
		return fmt.Sprintf("PARTIAL: stopped after %d of %d runs; every number is over what was done", total,
			s.Simulation.RunCount())
	}
	return fmt.Sprintf("valid: %d of %d runs, accounting identities exact in every run", valid, total)
}

// simulatedCounts is the remark printed about the counts of every stored simulation.
const simulatedCounts = "counts and lost_pct are over the whole run, warm-up included, with the network taken as " +
	"one queue, because only these balance; " +
	"window_* and loss_* are after the warm-up; ages are over the window, and workers are numbered within their cluster"

// toBench returns the outcome in the form of a bench: one row per network.
func (s *Simulated) toBench(o *Outline) *results.Bench {
	b := &results.Bench{
		Schema: results.BenchSchema, Experiment: o.Experiment, Config: o.Config, Partial: s.Partial,
		Window: o.Configurations[0].Measure.Window.String(), Statements: []string{simulatedCounts},
	}
	for i, runs := range s.Runs {
		row := results.Summarise(o.Configurations[i].Measure.Declared, runs)
		row.Queue, row.OutRateBPS = o.Configurations[i].Name, int64(o.Configurations[i].Measure.OutRate)
		b.Rows = append(b.Rows, row)
	}
	if s.Simulation.Compared && len(s.Runs) > 1 {
		for _, versus := range s.Runs[1:] {
			b.Comparisons = append(b.Comparisons, results.CompareRuns(s.Runs[0], versus))
		}
	}
	return b
}
