package trace

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/olafctl/olaf"
)

// ErrMerged is the error for a captured update that contains updates from several workers. A trace must list each of
// them separately.
var ErrMerged = errors.New("captured update is a merged one")

// Collector builds a trace from captured updates, which may be added in any order. It sorts them by generation time and
// renumbers them, because the capture may have missed some. It keeps all updates in memory.
type Collector struct {
	updates []Update
	lanes   int
}

// Add adds a captured update that was generated at generatedNS. If the update was merged by a queue, Add returns an
// error that matches ErrMerged. Retransmissions are ignored.
func (c *Collector) Add(generatedNS int64, u *olaf.Update) error {
	if u.Count != 1 {
		return fmt.Errorf("%w: %d updates inside; capture in front of the queue", ErrMerged, u.Count)
	}
	if u.Flags&olaf.Retransmission != 0 {
		return nil
	}
	c.lanes = max(c.lanes, int(u.Lanes))
	c.updates = append(c.updates, Update{GenNS: generatedNS, Worker: u.Worker, Cluster: u.Cluster, Seq: u.Seq,
		Reward: float64(u.Reward) / 256})
	return nil
}

// Source returns the trace of all added updates. Its time starts at the first update. The error matches ErrFormat if
// there are no updates, and ErrInvalid if a worker was in two clusters.
func (c *Collector) Source() (Source, error) {
	if len(c.updates) == 0 {
		return nil, fmt.Errorf("%w: no update in it", ErrFormat)
	}
	slices.SortStableFunc(c.updates, func(a, b Update) int {
		return cmp.Or(cmp.Compare(a.GenNS, b.GenNS), cmp.Compare(a.Worker, b.Worker), cmp.Compare(a.Seq, b.Seq))
	})
	h := Header{Tool: "capture", Clock: Wall, Lanes: c.lanes, Network: "as captured"}
	for _, u := range c.updates {
		h.Workers, h.Clusters = max(h.Workers, int(u.Worker)+1), max(h.Clusters, int(u.Cluster)+1)
	}
	if err := h.Check(); err != nil {
		return nil, err
	}
	s := &collected{header: h, updates: c.updates, order: newOrder(&h), start: c.updates[0].GenNS}
	return s, nil
}

type collected struct {
	header  Header
	updates []Update
	order   *order
	start   int64
}

func (s *collected) Header() *Header { return &s.header }

func (s *collected) Next(u *Update) error {
	if len(s.updates) == 0 {
		return io.EOF
	}
	*u = s.updates[0]
	s.updates = s.updates[1:]
	u.GenNS -= s.start
	u.Seq = s.order.next[u.Worker]
	return s.order.checkNext(u)
}
