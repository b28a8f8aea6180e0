package programtest

import (
	"errors"
	"maps"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// Follower updates a program's jobs whenever the tables change.
type Follower struct {
	Program program.Program
	jobs    map[olaf.ClusterID]program.Job
}

// Update removes jobs that are missing from the list or changed, and adds new and changed jobs. Unchanged jobs keep
// their sums. Jobs that the program rejects are left out and reported in the error, which matches ErrConfig.
func (f *Follower) Update(jobs []program.Job) error {
	next := make(map[olaf.ClusterID]program.Job, len(jobs))
	for i := range jobs {
		next[jobs[i].ID] = jobs[i]
	}
	for _, id := range slices.Sorted(maps.Keys(f.jobs)) {
		if j, stays := next[id]; !stays || !equalJobs(j, f.jobs[id]) {
			f.Program.Remove(id)
			delete(f.jobs, id)
		}
	}
	if f.jobs == nil {
		f.jobs = make(map[olaf.ClusterID]program.Job, len(jobs))
	}
	var refused []error
	for i := range jobs {
		if _, known := f.jobs[jobs[i].ID]; known {
			continue
		}
		if err := f.Program.Configure(jobs[i]); err != nil {
			refused = append(refused, err)
			continue
		}
		f.jobs[jobs[i].ID] = jobs[i]
	}
	return errors.Join(refused...)
}

func equalJobs(j, k program.Job) bool {
	return slices.Equal(j.Members, k.Members) && j.Fan == k.Fan && j.Base == k.Base && j.Slots == k.Slots &&
		j.Parent == k.Parent && j.Level == k.Level && j.In == k.In && j.Out == k.Out
}
