package bench

import (
	"fmt"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/program"
)

// fairTerms returns the rules of a fair comparison that apply to an open-loop bench. It returns none unless systems of
// different papers are compared.
func (p *Plan) fairTerms() []string {
	systems, err := p.Spec.findSystems()
	if err != nil || p.Spec.Loop != nil || countPapers(systems) < 2 {
		return nil
	}
	s := &p.Spec
	readers := map[Topology]string{"": "P, the link from the switch to the server",
		ToWorkers: "S, the links from the switch to the workers",
		ToBoth:    "P, the link from the switch to the server; S, the links from the switch to the workers"}
	terms := []string{
		fmt.Sprintf("Same arrivals and seeds for all. Every frame takes %v + %v on the line, even where a "+
			"system's own frames are shorter. Bottleneck: %s.", s.Workload.Size, s.Overhead, readers[s.Topology]),
		"Ages are by the newest contribution, over virtual time; progress is a gradient vector. Nothing is sent " +
			"again: what finds no room is lost.",
		p.describeCosts(), "Switch memory: " + p.describeEach(systems, s.describeMemory) + ".",
		"Arithmetic: " + p.describeEach(systems, (*system.System).Arithmetic) + "; ages do not depend on it.",
	}
	return slices.DeleteFunc(terms, func(t string) bool { return t == "" })
}

// countPapers returns the number of different papers of some systems.
func countPapers(systems []*system.System) int {
	named := map[string]bool{}
	for _, s := range systems {
		named[s.Paper] = s.Paper != ""
	}
	delete(named, "")
	return len(named)
}

// describeEach formats a description of every system.
func (p *Plan) describeEach(systems []*system.System, says func(*system.System) string) string {
	said := make([]string, len(systems))
	for i, of := range systems {
		said[i] = of.Title + " " + says(of)
	}
	return strings.Join(said, ", ")
}

// describeCosts describes which systems have engine cycles, and whose accelerator is left out.
func (p *Plan) describeCosts() string {
	var pays, free, spared []string
	for i := range p.Configs {
		c := &p.Configs[i]
		if c.OutRate != p.Spec.OutRates[0] || c.Topology != "" {
			continue
		}
		if c.DequeueCycles+c.MergeCycles > 0 {
			pays = append(pays, fmt.Sprintf("%s pays %d a departure and %d a merge", c.system.Title, c.DequeueCycles,
				c.MergeCycles))
		} else {
			free = append(free, c.system.Title)
		}
		if c.system.Unit != nil && !p.Spec.Accelerator {
			spared = append(spared, c.system.Title)
		}
	}
	said := fmt.Sprintf("Engine cycles (profile %s): none are charged.", p.Spec.Profile)
	if len(pays) > 0 {
		said = fmt.Sprintf("Engine cycles (profile %s): %s; none are charged to %s. --profile ideal charges none.",
			p.Spec.Profile, strings.Join(pays, ", "), strings.Join(free, ", "))
	}
	if len(spared) > 0 {
		said += fmt.Sprintf(" The time of the accelerator of %s is left out; --accelerator charges it.",
			strings.Join(spared, ", "))
	}
	return said
}

// describeMemory describes the frame memory of a system's switch.
func (s *Spec) describeMemory(of *system.System) string {
	queue := olaf.Size(s.Slots) * s.Workload.Size
	if !of.Adds() {
		return queue.String()
	}
	segments := s.Workload.Clusters * s.Workload.Segments()
	said := fmt.Sprintf("%v with its %s", queue+olaf.Size(segments)*s.Workload.Size, olaf.Plural(segments, "segment"))
	if p, err := of.Program.New(program.Config{}); err == nil {
		said += fmt.Sprintf(" (published: %v)", p.Memory())
	}
	return said
}
