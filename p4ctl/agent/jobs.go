package agent

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// Jobs returns the jobs in a switch program's tables, by id. If no table lists members, they are the multicast group of
// the job's cluster. has is false if the pipeline lacks the program's tables; controllers then do not decide.
func (s *State) Jobs(d *program.Description) (jobs []program.Job, has bool) {
	var entries []program.Entry
	for _, t := range s.tablesOf(d) {
		has = true
		for _, e := range sortedValues(t.entries) {
			entries = append(entries, program.Entry{Table: t.Place, Key: t.Fields(e.Key), Params: e.Params[:len(t.Params)]})
		}
	}
	return d.Jobs(entries, s.jobMembers), has
}

// Admits reports whether a worker may contribute to a job of a switch program. Every worker may if the pipeline has no
// membership table. The parent switch, which also has an entry, may not.
func (s *State) Admits(d *program.Description, job olaf.ClusterID, worker olaf.WorkerID) bool {
	for _, t := range s.tablesOf(d) {
		if !t.ByMember() {
			continue
		}
		if e, ok := t.entries.get(t.Number(t.KeyOf(job, worker))); !ok || t.NamesParent(e.Params[:len(t.Params)]) {
			return false
		}
	}
	return true
}

// tablesOf returns the program's tables in the pipeline.
func (s *State) tablesOf(d *program.Description) (tables []*added) {
	if s == nil {
		return nil
	}
	for i := range s.added {
		if s.added[i].Program.Code == d.Code {
			tables = append(tables, &s.added[i])
		}
	}
	return tables
}

// jobMembers returns the workers to which a job's sums are multicast.
func (s *State) jobMembers(job olaf.ClusterID) (jobMembers []program.Member) {
	replicas, _ := s.Group(job)
	for _, r := range replicas {
		jobMembers = append(jobMembers, program.Member{Worker: olaf.WorkerID(r.Instance), Port: program.Port(r.Port)})
	}
	return jobMembers
}
