package bench

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/experiments/netsim/tc"
	"github.com/olafctl/olaf/experiments/testbed"
)

// Control is the workers' transmission control, and the meaning of N in ACKs.
type Control struct {
	tc.Control
	Count netsim.Count `json:"count,omitempty"` // default netsim.CountClusters
}

// checkControl rejects transmission control without a valid law, and for workers that wait for answers.
func (s *Spec) checkControl() error {
	if s.Control == nil {
		return nil
	}
	if s.Loop != nil {
		return errors.New("transmission control is only for open-loop workers")
	}
	_, err := s.Control.Build()
	return err
}

// startControl starts the workers' transmission control for a run, if the plan has one. stop ends it and keeps the number of
// withheld updates for judgeRun. The draws follow from the run's seed; the ACKs do not.
func (b *station) startControl(id RunID) (stop func() error, err error) {
	b.withheld = 0
	s := &b.plan.Spec
	if s.Control == nil {
		return func() error { return nil }, nil
	}
	law, err := s.Control.Build()
	if err != nil {
		return nil, err
	}
	c := &testbed.Control{Window: s.activityWindow(), Weights: make([]uint32, s.Workload.Clusters)}
	for i := range s.Workload.Workers {
		cluster := b.plan.clusterID(s.Workload.Cluster(i))
		c.Gates = append(c.Gates, tc.NewGate(law, s.Control.Ack, b.plan.Seeds[id.Index], olaf.WorkerID(i)))
		c.Clusters = append(c.Clusters, cluster)
		if c.Weights[cluster]++; s.Control.Count != netsim.CountSenders {
			c.Weights[cluster] = 1
		}
	}
	end, err := b.Device.(testbed.Answerer).StartControl(c) // checkDevice has checked the type
	if err != nil {
		return nil, err
	}
	return func() (err error) {
		b.withheld, err = end()
		return err
	}, nil
}

// activityWindow returns the window in which ACKs count clusters: the mean interval between a worker's updates; 0 if they
// count those inside.
func (s *Spec) activityWindow() olaf.Duration {
	if s.Control.Count == netsim.CountInside {
		return 0
	}
	w := &s.Workload
	return olaf.Duration(float64(w.Workers) * 8 * float64(w.Size) / float64(w.MeanRate) * float64(olaf.Second))
}

// controlStatements describes the workers' transmission control and the share of updates that it withheld; nil without one.
func (o *Outcome) controlStatements() []string {
	c := o.Plan.Spec.Control
	if c == nil {
		return nil
	}
	statements := []string{fmt.Sprintf("transmission control: law %s, threshold %v, N counts %s, read from real ACKs, whose times differ from "+
		"run to run", c.Law, c.Threshold, cmp.Or(c.Count, netsim.CountClusters))}
	for i, runs := range o.Runs {
		var sent, withheld int64
		for k := range runs {
			sent, withheld = sent+runs[k].Counters.Of("sent"), withheld+runs[k].Counters.Of("tc_withheld")
		}
		if all := sent + withheld; all > 0 {
			at := &o.Plan.Configs[i]
			statements = append(statements, fmt.Sprintf("%s at %v: workers withheld %.1f %% of %d updates (tc_withheld)", at.Queue, at.OutRate,
				100*float64(withheld)/float64(all), all))
		}
	}
	return statements
}
