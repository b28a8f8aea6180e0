package job

import (
	"fmt"

	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
)

// Patience refuses jobs that would take long or much memory for so many seeds each. The error matches netsim.ErrLong and says what
// they take, or closedloop.ErrConfig where there can be no such job. Nothing is built.
func Patience(specs []*Spec, runs int) error {
	var all netsim.Efforts
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
