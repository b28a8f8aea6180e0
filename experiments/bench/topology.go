package bench

import (
	"fmt"
	"slices"
	"strings"
)

// Topology selects the receivers of results.
type Topology string

// The topologies.
const (
	ToServer  Topology = "P"   // all results cross the link to the parameter server, where ages are measured; also the zero value
	ToWorkers Topology = "S"   // the switch answers its workers, over one link each; ages are measured there
	ToBoth    Topology = "P,S" // both with the same traffic: the second for systems that answer their workers
)

// ListTopologies returns the user's choices.
func ListTopologies() []string { return []string{string(ToServer), string(ToWorkers), string(ToBoth)} }

// Set parses the name of a topology. The error matches ErrSpec.
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

// UnmarshalText parses the name in a file or document.
func (t *Topology) UnmarshalText(text []byte) error {
	if err := t.Set(string(text)); err != nil { // reported later, with its position
		*t = Topology(text)
	}
	return nil
}

// String returns the topology's name.
func (t Topology) String() string {
	if t == "" {
		return string(ToServer)
	}
	return string(t)
}

// Type returns the name in help.
func (t Topology) Type() string { return "P|S|P,S" }

// muteSystems returns the names of the systems whose switches do not answer their workers.
func (s *Spec) muteSystems() (mute []string, err error) {
	systems, err := s.findSystems()
	for _, found := range systems {
		if !found.Adds() {
			mute = append(mute, found.Name)
		}
	}
	return mute, err
}

// checkTopology rejects systems whose switches do not answer if the results should go to workers.
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

// answersWorkers reports whether results of a configuration go back to the workers.
func (p *Plan) answersWorkers(c *Config) bool {
	return p.Spec.Topology == ToWorkers || c.Topology == ToWorkers
}

// Answers reports whether results of one of the plan's configurations go back to the workers.
func (p *Plan) Answers(config int) bool { return p.answersWorkers(&p.Configs[config]) }

// addAnswering adds the configurations for S to a plan with both topologies: the same ones, for the systems that
// answer.
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

// topologyStatements states where ages of a topology are measured, and which systems have none.
func (s *Spec) topologyStatements() []string {
	const switched = "topology S: the switch answers; a sum leaves by one link a worker of its cluster at the " +
		"output rate, without a limit, and ages are those at the workers. No number of topology P is one of these"
	switch s.Topology {
	case ToWorkers:
		return []string{switched}
	case ToBoth:
	default:
		return nil
	}
	said := []string{"rows that end in S are for " + switched}
	if mute, err := s.muteSystems(); err == nil && len(mute) > 0 {
		said = append(said, fmt.Sprintf("no row of %s ends in S: their switches do not answer workers, which get "+
			"models only from the server", strings.Join(mute, " and ")))
	}
	return said
}
