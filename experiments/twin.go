package experiments

import (
	"context"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/twin"
	"github.com/olafctl/olaf/p4ctl/agent"
)

// tableView is what one twin sees of the agent's tables.
type tableView struct {
	backend *agent.Embedded
	*agent.State
	members []olaf.WorkerID
}

// Version moves on to the newest state, so that all answers until the next call are of one state.
func (v *tableView) Version() uint64 {
	v.State = v.backend.Tables()
	return v.State.Version()
}

// Group translates replicas into the workers they stand for.
func (v *tableView) Group(c olaf.ClusterID) ([]olaf.WorkerID, bool) {
	replicas, ok := v.State.Group(c)
	v.members = v.members[:0]
	for _, r := range replicas {
		v.members = append(v.members, olaf.WorkerID(r.Instance))
	}
	return v.members, ok
}

// twinLanes builds n twins that share the agent's tables.
func twinLanes(n int, backend *agent.Embedded, o OpenOptions) ([]Lane, []*twin.Twin, error) {
	var (
		lanes []Lane
		twins []*twin.Twin
	)
	for range n {
		t, err := twin.New(twin.Config{Tables: &tableView{backend: backend}, Wire: o.Wire})
		if err != nil {
			return nil, nil, err
		}
		lanes, twins = append(lanes, Lane{t, t}), append(twins, t)
	}
	return lanes, twins, nil
}

func openTwin(ctx context.Context, _ string, o OpenOptions) (*Testbed, error) {
	return nil, ErrBackend
}
