package job

import (
	"fmt"

	"github.com/olafctl/olaf/experiments/netsim/closedloop"
)

// Patience rejects jobs that would take long or much memory with so many seeds each, without building anything. The
// error matches closedloop.ErrLong and gives the cost, or closedloop.ErrConfig for an invalid job.
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
