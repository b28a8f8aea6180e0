package bench

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/internal/splitmix"
	"github.com/olafctl/olaf/p4ctl"
	"github.com/olafctl/olaf/pktgen"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
)

// Config is one point of the measurement: a queue discipline at an output rate.
type Config struct {
	// Queue is the name in rows: the system and, in a plan with both topologies, S.
	Queue   string    `json:"queue"`
	OutRate olaf.Rate `json:"out_rate"`
	// Topology is set if the plan has both topologies and the switch answers workers in this configuration.
	Topology Topology `json:"topology,omitempty"`
	// Engine cycles of 4 ns on the output (docs/reference/semantics.md, Engine cycles).
	DequeueCycles int `json:"dequeue_cycles"`
	MergeCycles   int `json:"merge_cycles"`
	// H is the number of updates per sum; absent if the system's switches do not add.
	H      int `json:"h,omitempty"`
	output engine.Output
	system *system.System
	mode   *system.Mode // for closed-loop hosts; else nil
}

// Plan is a specification with all names and defaults resolved. Equal plans produce the same numbers on the twin, bit
// for bit.
type Plan struct {
	Spec    Spec     `json:"spec"`
	Configs []Config `json:"configs"` // by output rate, the queue under test first; with both topologies, P first
	Seeds   []uint64 `json:"seeds"`   // one per run; every configuration runs under each, so that runs pair up
	// Declared overrides the counters and metrics of runs; nil for each system's own.
	Declared *metric.Declaration `json:"-"`
}

// Declaration returns the declaration of the counters and metrics in a configuration's runs.
func (p *Plan) Declaration(c *Config) *metric.Declaration {
	switch {
	case p.Declared != nil:
		return p.Declared
	case p.Spec.Loop != nil:
		return c.system.LoopDeclaration()
	}
	return c.system.Declaration()
}

// DeclareAll returns the declaration of the counters and metrics in the runs of all configurations.
func (p *Plan) DeclareAll() *metric.Declaration {
	all := make([]*metric.Declaration, len(p.Configs))
	for i := range p.Configs {
		all[i] = p.Declaration(&p.Configs[i])
	}
	return metric.Union(all...)
}

// NewPlan validates s and resolves its names and defaults. Its errors are those of Spec.Validate.
func NewPlan(s Spec) (*Plan, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	p := &Plan{Spec: s, Seeds: make([]uint64, s.Runs)}
	systems, err := s.findSystems()
	if err != nil {
		return nil, err
	}
	for _, rate := range s.OutRates {
		for _, of := range systems {
			if s.Loop != nil {
				mode, err := s.modeOf(of)
				if err != nil {
					return nil, err
				}
				p.Configs = append(p.Configs, Config{Queue: of.Name, OutRate: rate, system: of, mode: mode})
				continue
			}
			out, err := s.resolveOutput(of, rate)
			if err != nil {
				return nil, err
			}
			c := Config{Queue: of.Name, OutRate: rate, DequeueCycles: out.DequeueCycles, MergeCycles: out.MergeCycles,
				output: out, system: of}
			if of.Adds() {
				c.H = s.sumSize()
			}
			p.Configs = append(p.Configs, c)
		}
	}
	p.addAnswering()
	for i := range p.Seeds {
		// Spread neighbouring run numbers over the whole seed space.
		p.Seeds[i] = splitmix.MixBits(s.Seed*1_000_003 + uint64(i))
	}
	return p, p.checkLoops()
}

// generatorJob returns the job with which the generator sends one seed's schedule. The addresses are the same on every
// testbed, so that captures of different runs can be compared.
func (p *Plan) generatorJob(source pktgen.Source) pktgen.Job {
	w := &p.Spec.Workload
	return pktgen.Job{Placement: w.Placement, Addressing: pktgen.DefaultAddressing(), Size: w.Size, Values: w.Values,
		Source: source}
}

// queueConfig returns the card's settings for one configuration. It enables provenance whenever that costs only memory,
// because without it the workers in merged updates have no ages.
func (p *Plan) queueConfig(c *Config) fpga.QueueConfig {
	discipline, _ := engine.FindDiscipline(c.system.Discipline)
	if p.Spec.Loop != nil { // a loop's packets bypass the queue
		return fpga.QueueConfig{Discipline: discipline.Name, Depth: 1, Program: c.system.SwitchProgram(),
			H: p.Spec.workersPerJob()}
	}
	queue := fpga.QueueConfig{
		Discipline: discipline.Name, Depth: p.Spec.Slots, Output: c.output,
		RewardFilter:    p.Spec.RewardFilter && discipline.FiltersReward,
		RewardThreshold: int32(math.Round(p.Spec.RewardThreshold * 256)),
		Provenance:      true,
	}
	if c.system.Adds() {
		queue.Program, queue.H, queue.Segments = c.system.Program, c.H, p.Spec.Workload.Segments()
	}
	if p.Answers(c) { // sums cross the switch at full speed, and the links after it limit the rate
		queue.Downlink, queue.Output.Rate = queue.Output.Rate, 0
	}
	return queue
}

// measureConfig returns the settings with which a configuration's runs are measured.
func (p *Plan) measureConfig(c *Config) results.Config {
	if p.Spec.Loop != nil {
		return results.Config{Declared: p.Declaration(c), Clusters: p.Spec.Workload.Clusters,
			Workers: p.Spec.Workload.Workers}
	}
	rate := c.OutRate
	if p.Answers(c) { // each cluster's links carry only its sums
		rate *= olaf.Rate(p.Spec.Workload.Clusters)
	}
	config := results.Config{
		Declared: p.Declaration(c),
		Clusters: p.Spec.Workload.Clusters, Workers: p.Spec.Workload.Workers,
		OutRate: rate, OverheadBytes: p.Spec.Overhead,
		SpeedupUpdates: max(1, p.Spec.Workload.UpdatesPerWorker/speedupShare),
		Split:          splitTrace(p.Spec.Trace, &p.Spec.Workload),
	}
	if n := p.Spec.Workload.Segments(); n > 1 {
		config.Segments = n
		config.SpeedupUpdates *= n
	}
	return config
}

// speedupShare is the fraction of a worker's updates that must be delivered within the time T(N). It is a tenth, which
// FIFO can reach despite its losses.
const speedupShare = 10

// workerPort is the port of the shell to which all workers of a testbed send.
const workerPort = 0

// Tables returns the entries for the tables VNP4-1 and VNP4-2: every worker's identity, the parameter server, and one
// multicast group per cluster. If a switch program precedes the queue, the program's tables contain the workers as
// well.
func (p *Plan) Tables() (p4ctl.Tables, error) {
	w, a := &p.Spec.Workload, pktgen.DefaultAddressing()
	t := p4ctl.Tables{Servers: []netip.Addr{a.Server}}
	for i := range w.Workers {
		t.Workers = append(t.Workers, p4ctl.Worker{Address: netip.AddrFrom4(a.WorkerAddresses(i).SrcIP),
			Cluster: p.clusterID(w.Cluster(i)), ID: olaf.WorkerID(i)})
	}
	t = t.WithGroups(workerPort)
	told := map[string]bool{}
	for i := range p.Configs {
		of := p.Configs[i].system
		if p.Spec.Loop == nil && !of.Adds() || told[of.SwitchProgram().Name] {
			continue
		}
		told[of.SwitchProgram().Name] = true
		jobs, err := p.programJobs(&p.Configs[i])
		if err != nil {
			return t, err
		}
		entries, err := p4ctl.EntriesOf(of.SwitchProgram(), jobs...)
		if err != nil {
			return t, err
		}
		t.Entries = append(t.Entries, entries...)
	}
	return t.Canonical(), nil
}

// programJobs returns the clusters as jobs for a configuration's switch program. Each worker has a separate port.
func (p *Plan) programJobs(c *Config) ([]program.Job, error) {
	if p.Spec.Loop != nil {
		return p.loopJobs(c)
	}
	w := &p.Spec.Workload
	jobs := make([]program.Job, w.Clusters)
	for c := range jobs {
		jobs[c].ID = olaf.ClusterID(c)
	}
	for i := range w.Workers {
		j := &jobs[w.Cluster(i)]
		j.Members = append(j.Members, program.Member{Worker: olaf.WorkerID(i), Port: program.Port(i)})
	}
	return jobs, nil
}

// RunCount returns the number of single runs in the plan.
func (p *Plan) RunCount() int { return len(p.Configs) * len(p.Seeds) }

// Outline describes the work to the consumers of its events.
func (p *Plan) Outline() (*Outline, error) {
	config, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("write the plan: %w", err)
	}
	o := &Outline{Experiment: p.Spec.Experiment, Config: config, Seeds: p.Seeds}
	for i := range p.Configs {
		c := &p.Configs[i]
		o.Configurations = append(o.Configurations,
			Configuration{fmt.Sprintf("%s at %v", c.Queue, c.OutRate), p.measureConfig(c)})
	}
	return o, nil
}

// Hash returns the SHA-256 of the plan's canonical JSON. Equal plans have equal hashes.
func (p *Plan) Hash() (string, error) {
	o, err := p.Outline()
	if err != nil {
		return "", err
	}
	return o.hashConfig(), nil
}

// Topology selects whether results are sent to the parameter server, to the workers, or to both.
type Topology string

// The topologies.
const (
	ToServer  Topology = "P"   // all results cross the link to the parameter server, where ages are measured; also the zero value
	ToWorkers Topology = "S"   // the switch answers its workers, over one link each; ages are measured there
	ToBoth    Topology = "P,S" // both with the same traffic: the second for systems that answer their workers
)

// ListTopologies returns the names of topologies that the user can choose.
func ListTopologies() []string { return []string{string(ToServer), string(ToWorkers), string(ToBoth)} }

// Set sets t from the name of a topology. The error matches ErrSpec.
func (t *Topology) Set(name string) error {
	switch Topology(strings.ReplaceAll(name, " ", "")) {
	case ToServer:
		*t = "" // like a specification without one
	case ToWorkers:
		*t = ToWorkers
	case ToBoth, "S,P":
		*t = ToBoth
	default:
		return fmt.Errorf("%w: no topology is called %q; there are P, S, and P,S for both", ErrSpec, name)
	}
	return nil
}

// UnmarshalText sets t from the name in a file or document.
func (t *Topology) UnmarshalText(text []byte) error {
	if err := t.Set(string(text)); err != nil { // reported later, with its position
		*t = Topology(text)
	}
	return nil
}

// String returns the topology's name.
func (t Topology) String() string { return string(cmp.Or(t, ToServer)) }

// Type returns the name of the flag's type, which the help shows.
func (t Topology) Type() string { return "P|S|P,S" }

// muteSystems returns the names of the systems whose switches do not send results to their workers.
func (s *Spec) muteSystems() (mute []string, err error) {
	systems, err := s.findSystems()
	for _, found := range systems {
		if !found.Adds() {
			mute = append(mute, found.Name)
		}
	}
	return mute, err
}

// checkTopology rejects systems whose switches do not reply, if results are to be sent to workers.
func (s *Spec) checkTopology() error {
	topology := s.Topology
	if err := topology.Set(s.Topology.String()); err != nil || topology == "" {
		return err
	}
	mute, err := s.muteSystems()
	if err != nil {
		return err
	}
	adding := strings.Join(s.Systems.Adding().Names(), ", ")
	switch {
	case topology == ToWorkers && len(mute) > 0:
		return fmt.Errorf("%w: the switches of %s answer no worker; topology %s goes with %s, and --versus none; "+
			"%s shows the others in %s beside", ErrSpec, mute[0], ToWorkers, adding, ToBoth, ToServer)
	case topology == ToBoth && len(mute) == len(s.Queues()):
		return fmt.Errorf("%w: the switches of %s answer no worker; topology %s goes with %s", ErrSpec,
			strings.Join(mute, ", "), ToWorkers, adding)
	}
	return nil
}

// Answers reports whether a configuration's results are sent back to the workers.
func (p *Plan) Answers(c *Config) bool {
	return p.Spec.Topology == ToWorkers || c.Topology == ToWorkers
}

// addAnswering extends a plan for both topologies. For each system whose switch can reply, it adds a copy of the
// configuration that sends results to workers.
func (p *Plan) addAnswering() {
	if p.Spec.Topology != ToBoth {
		return
	}
	for _, c := range slices.Clone(p.Configs) {
		if c.system.Adds() {
			c.Queue, c.Topology = fmt.Sprintf("%s %s", c.Queue, ToWorkers), ToWorkers
			p.Configs = append(p.Configs, c)
		}
	}
}

// topologyStatements returns statements about where a topology's ages are measured, and which systems have no ages
// there.
func (s *Spec) topologyStatements() []string {
	const switched = "topology S: the switch answers; a sum leaves over one link per worker of its cluster at " +
		"the output rate, without a limit, and ages are measured at the workers. These numbers are not " +
		"comparable with those of topology P"
	switch s.Topology {
	case ToWorkers:
		return []string{switched}
	case ToBoth:
	default:
		return nil
	}
	notes := []string{"rows that end in S are for " + switched}
	if mute, err := s.muteSystems(); err == nil && len(mute) > 0 {
		notes = append(notes, fmt.Sprintf("no row of %s ends in S, because their switches do not answer workers, "+
			"which get models only from the server", strings.Join(mute, " and ")))
	}
	return notes
}
