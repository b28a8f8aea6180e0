package job

import (
	"fmt"

	"github.com/olafctl/olaf/experiments/netsim/closedloop"
)

// Patience estimates the cost of running each job with the given number of seeds, without building anything. If the
// jobs would take too long or too much memory, the error matches closedloop.ErrLong and contains the cost. For an
// invalid job it matches closedloop.ErrConfig.
func Patience(specs []*Spec, runs int) error {
	var all closedloop.Efforts
	for _, s := range specs {
		parts, err := s.parts()
		if err != nil {
			return err
		}
		one, err := closedloop.EffortOf(s.Network, s.Job, parts)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name(), err)
		}
		all.Add(one, runs)
	}
	return all.CheckPatience()
}
