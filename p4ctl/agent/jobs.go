package agent

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// Jobs returns the jobs in the tables of a switch program, sorted by ID. If no table lists members, they are those of
// the multicast group for the job's cluster. has is false if the pipeline does not contain the program's tables, in
// which case controllers do not determine the jobs.
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

// Admits reports whether a worker may contribute to a job of a switch program. If the pipeline has no membership table,
// every worker may. A parent switch may not, although it also has an entry.
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

// tablesOf returns the tables of a program that are in the pipeline.
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

// jobMembers returns the workers to which the sums of a job are multicast.
func (s *State) jobMembers(job olaf.ClusterID) (members []program.Member) {
	replicas, _ := s.Group(job)
	for _, r := range replicas {
		members = append(members, program.Member{Worker: olaf.WorkerID(r.Instance), Port: program.Port(r.Port)})
	}
	return members
}
