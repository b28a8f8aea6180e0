package trace

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/pktgen"
)

// splitter is a Source that splits every update into frames, which leave one after another. Fragment f of an update in
// cluster c is in cluster c · frames + f. Its worker is the worker in that cluster with the same index.
type splitter struct {
	Source
	header  Header
	frames  int
	members int // number of members in a cluster
	update  Update
	next    int // next fragment; 0 means that the next update must be read
}

// newSplitter returns a Splitter for the updates of a source. All clusters in the source must have the same size. The
// error matches ErrScaling.
func newSplitter(source Source, frames int) (*splitter, error) {
	p, err := splitPlacement(pktgen.Placement{Workers: source.Header().Workers, Clusters: source.Header().Clusters}, frames)
	if err != nil {
		return nil, err
	}
	s := &splitter{Source: source, header: *source.Header(), frames: frames, members: p.Workers / p.Clusters}
	s.header.Workers, s.header.Clusters = p.Workers, p.Clusters
	return s, nil
}

// splitPlacement returns the placement of workers in clusters for updates that are split into frames. The error matches
// ErrScaling.
func splitPlacement(p pktgen.Placement, frames int) (pktgen.Placement, error) {
	const most = 1 << 16
	switch {
	case frames < 1 || p.Workers < 1 || p.Clusters < 1 || p.Workers%p.Clusters != 0:
		return p, fmt.Errorf("%w: %d workers in %d clusters with %d frames an update; use clusters of one size, and 1 frame "+
			"or more", ErrScaling, p.Workers, p.Clusters, frames)
	case p.Workers > most/frames:
		return p, fmt.Errorf("%w: %d workers with %d frames an update; frames name up to %d workers and clusters, and each "+
			"fragment has its own", ErrScaling, p.Workers, frames, most)
	}
	return pktgen.Placement{Workers: p.Workers * frames, Clusters: p.Clusters * frames}, nil
}

// Header returns a header with the workers and clusters of the fragments.
func (s *splitter) Header() *Header { return &s.header }

// Next returns the next fragment.
func (s *splitter) Next(u *Update) error {
	if s.next == 0 {
		if err := s.Source.Next(&s.update); err != nil {
			return err
		}
	}
	*u = s.update
	u.Cluster = u.Cluster*olaf.ClusterID(s.frames) + olaf.ClusterID(s.next)
	u.Worker = olaf.WorkerID(u.Cluster)*olaf.WorkerID(s.members) + s.update.Worker%olaf.WorkerID(s.members)
	s.next = (s.next + 1) % s.frames
	return nil
}
