package aomcheck

import (
	"context"
	"fmt"
)

// Admission is the verifier's answer to the question whether new clusters may join the running ones.
type Admission struct {
	// Running is the verdict without the newcomers; nil if it was not needed.
	Running *Verdict
	// Together is the verdict with the newcomers, which decides their admission.
	Together *Verdict
}

// IsAccepted reports whether the objective is proved for the running clusters together with the newcomers.
func (a *Admission) IsAccepted() bool { return a.Together.Answer == Holds }

// Admit verifies the running problem with the newcomers added (paper §6: admission control). If the newcomers are
// rejected, Admit also checks the running clusters alone, so that newcomers are not blamed for an objective that was
// already violated.
func Admit(ctx context.Context, running Problem, newcomers []Cluster, opt Options) (*Admission, error) {
	if len(newcomers) == 0 {
		return nil, bad("clusters", "there is no cluster to admit")
	}
	grown := running
	grown.Clusters = append(append([]Cluster(nil), running.Clusters...), newcomers...)
	if err := uniqueNames(grown.WithDefaults().Clusters); err != nil {
		return nil, err
	}
	if running.Control.Active > 0 {
		grown.Control.Active += len(newcomers)
	}
	together, err := Verify(ctx, grown, opt)
	if err != nil {
		return nil, err
	}
	a := &Admission{Together: together}
	alone := running.Objective.Kind == Fairness && len(running.Clusters) < 2 // nothing to compare yet
	if together.Answer != Violated || len(running.Clusters) == 0 || alone {
		return a, nil
	}
	opt.Dump = nil
	a.Running, err = Verify(ctx, running, opt)
	return a, err
}

func uniqueNames(clusters []Cluster) error {
	seen := make(map[string]bool)
	for i, c := range clusters {
		if seen[c.Name] {
			return bad(fmt.Sprintf("clusters[%d].name", i), fmt.Sprintf("%q is there already", c.Name))
		}
		seen[c.Name] = true
	}
	return nil
}
