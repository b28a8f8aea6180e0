package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/twin"
	"github.com/olafctl/olaf/p4ctl/agent"
	"github.com/olafctl/olaf/p4ctl/p4"
)

// TablesOf is what one twin sees of an agent's tables; every twin has a view of its own.
func TablesOf(backend *agent.Embedded) twin.TableLookup { return &tableView{backend: backend} }

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

// openTwin builds twins that share the tables of one P4Runtime agent, and connects to it over a real socket.
func openTwin(ctx context.Context, name string, o OpenOptions) (*Testbed, error) {
	if err := unnamed(name); err != nil {
		return nil, err
	}
	backend := new(agent.Embedded)
	bed := new(Testbed)
	for lane := range o.Cards {
		cfg := twin.Config{Tables: TablesOf(backend), Wire: o.Wire}
		if o.Observe != nil {
			cfg.Observer = o.Observe(lane)
		}
		t, err := twin.New(cfg)
		if err != nil {
			return nil, err
		}
		bed.Cards = append(bed.Cards, Card{t, t})
		bed.close = append(bed.close, t.Close)
	}
	if err := bed.control(ctx, backend, o.Listen); err != nil {
		return nil, errors.Join(err, bed.Close())
	}
	return bed, nil
}

// control starts the agent in front of backend and makes this process its primary controller.
func (b *Testbed) control(ctx context.Context, backend agent.Backend, listen string) error {
	if listen == "" {
		address, remove, err := privateAddress()
		if err != nil {
			return err
		}
		b.close = append(b.close, remove)
		listen = address
	}
	a, err := agent.New(agent.Options{Backend: backend, Profile: p4.Twin()})
	if err != nil {
		return err
	}
	listener, err := agent.Listen(listen, false)
	if err != nil {
		return err
	}
	server := a.Serve(listener, nil)
	b.close = append(b.close, server.Close)
	return b.connect(ctx, server.Target(), nil)
}

// maxSocketPath is the longest path that a unix socket's address holds.
const maxSocketPath = 103

// privateAddress makes room for a socket that only this user can reach, until remove is called; where the temporary
// folder's path is too long for one, it is a free port of the loopback interface.
func privateAddress() (address string, remove func() error, err error) {
	dir, err := os.MkdirTemp("", "olafctl-")
	if err != nil {
		return "", nil, fmt.Errorf("make room for a private socket: %w", err)
	}
	return socketAddress(filepath.Join(dir, "s")), func() error { return os.RemoveAll(dir) }, nil
}

func socketAddress(path string) string {
	if len(path) > maxSocketPath {
		return "127.0.0.1:0"
	}
	return "unix:" + path
}
