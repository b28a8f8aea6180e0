package results

import "github.com/olafctl/olaf"

// places assigns consecutive indexes to clusters and workers, in the order of their jobs. With the zero places, an
// index is the same as the id.
type places struct {
	byID    []int32 // index of the cluster with an id, or -1 if there is none; nil without jobs
	ids     []int
	first   []int // by cluster: index of worker 0
	workers int
}

// place contains the index of a frame's cluster and the index of the cluster's first worker.
type place struct{ cluster, first int }

func (p place) worker(id olaf.WorkerID) int { return p.first + int(id) }

// assign assigns indexes to the clusters and workers of a configuration's jobs, and sets the configuration's numbers of
// clusters and workers.
func (p *places) assign(cfg *Config) {
	*p = places{byID: p.byID[:0], ids: p.ids[:0], first: p.first[:0]}
	if len(cfg.Jobs) == 0 {
		p.byID = nil
		return
	}
	for _, job := range cfg.Jobs {
		for i := range job.Clusters {
			id := int(job.Cluster) + i
			for len(p.byID) <= id {
				p.byID = append(p.byID, -1)
			}
			p.byID[id] = int32(len(p.ids))
			p.ids, p.first = append(p.ids, id), append(p.first, p.workers)
			p.workers += job.Workers
		}
	}
	cfg.Clusters, cfg.Workers = len(p.ids), p.workers
}

// end returns the index of the last worker in the cluster with index i, plus 1.
func (p *places) end(i int) int {
	if i+1 < len(p.first) {
		return p.first[i+1]
	}
	return p.workers
}

// id returns the id of the cluster with index i.
func (p *places) id(i int) int {
	if p.byID == nil {
		return i
	}
	return p.ids[i]
}

// placeOf returns the place of a frame. It returns false if the frame's cluster or one of its workers belongs to no
// job.
func (p *places) placeOf(o *olaf.Observation) (place, bool) {
	if p.byID == nil {
		return place{cluster: int(o.Update.Cluster)}, true
	}
	id := int(o.Update.Cluster)
	if id >= len(p.byID) || p.byID[id] < 0 {
		return place{}, false
	}
	at := place{int(p.byID[id]), p.first[p.byID[id]]}
	workers := p.end(at.cluster) - at.first
	known := int(o.Update.Worker) < workers
	for i := range o.Contributors {
		known = known && int(o.Contributors[i].Worker) < workers
	}
	return at, known
}
