package bench

import (
	"fmt"
	"slices"
	"strings"
)

// Topology says whom results reach.
type Topology string

// The topologies.
const (
	ToServer  Topology = "P"   // everything crosses the link to the parameter server, where ages are taken; the zero value too
	ToWorkers Topology = "S"   // the switch answers its workers, by one link a worker, and ages are taken there
	ToBoth    Topology = "P,S" // in turns, under the same traffic: the second of those systems that answer their workers
)

// Topologies are what users may choose.
func Topologies() []string { return []string{string(ToServer), string(ToWorkers), string(ToBoth)} }

// Set takes a topology by its name. The error matches ErrSpec.
func (t *Topology) Set(name string) error {
	switch Topology(strings.ReplaceAll(name, " ", "")) {
	case ToServer:
		*t = "" // as a specification without one
	case ToWorkers:
		*t = ToWorkers
	case ToBoth, "S,P":
		*t = ToBoth
	default:
		return fmt.Errorf("%w: no topology is called %q; there are P, S, and P,S for both", ErrSpec, name)
	}
	return nil
}

// UnmarshalText reads it in a file or a document.
func (t *Topology) UnmarshalText(text []byte) error {
	if err := t.Set(string(text)); err != nil { // which is said once it is known where it stands
		*t = Topology(text)
	}
	return nil
}

// String is the topology's name.
func (t Topology) String() string {
	if t == "" {
		return string(ToServer)
	}
	return string(t)
}

// Type is what help calls it.
func (t Topology) Type() string { return "P|S|P,S" }

// answering are the systems whose switches answer their workers, and mute the names of the others.
func (s *Spec) answering() (mute []string, err error) {
	systems, err := s.systems()
	for _, found := range systems {
		if !found.Adds() {
			mute = append(mute, found.Name)
		}
	}
	return mute, err
}

// checkTopology refuses systems whose switches answer nobody where the workers wait for answers.
func (s *Spec) checkTopology() error {
	topology := s.Topology
	if err := topology.Set(s.Topology.String()); err != nil || topology == "" {
		return err
	}
	mute, err := s.answering()
	if err != nil {
		return err
	}
	adding := strings.Join(s.Systems.Adding().Names(), ", ")
	switch {
	case topology == ToWorkers && len(mute) > 0:
		return fmt.Errorf("%w: the switches of %s answer no worker; topology %s goes with %s, and --versus none; %s shows the others in %s beside", ErrSpec, mute[0], ToWorkers, adding, ToBoth, ToServer)
	case topology == ToBoth && len(mute) == len(s.Queues()):
		return fmt.Errorf("%w: the switches of %s answer no worker; topology %s goes with %s", ErrSpec, strings.Join(mute, ", "), ToWorkers, adding)
	}
	return nil
}

// answers says whether results of a configuration go back to the workers.
func (p *Plan) answers(c *Config) bool {
	return p.Spec.Topology == ToWorkers || c.Topology == ToWorkers
}

// Answers says whether results of one of the plan's configurations go back to the workers.
func (p *Plan) Answers(config int) bool { return p.answers(&p.Configs[config]) }

// answered adds to the plan what topology S is asked for beside P: the same configurations, of the systems that answer.
func (p *Plan) answered() {
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

// topologyStatements say whose ages those of a topology are, and which systems have none.
func (s *Spec) topologyStatements() []string {
	const switched = "topology S: the switch answers; a sum leaves by one link a worker of its cluster at the output rate, without a limit, and ages are those at the workers. No number of topology P is one of these"
	switch s.Topology {
	case ToWorkers:
		return []string{switched}
	case ToBoth:
	default:
		return nil
	}
	said := []string{"rows that end in S are for " + switched}
	if mute, err := s.answering(); err == nil && len(mute) > 0 {
		said = append(said, fmt.Sprintf("no row of %s ends in S: their switches do not answer workers, which get models only from the server", strings.Join(mute, " and ")))
	}
	return said
}
