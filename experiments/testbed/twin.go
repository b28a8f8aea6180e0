package testbed

import (
	"context"
	"errors"
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/pair"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/twin"
	"github.com/olafctl/olaf/p4ctl/agent"
	"github.com/olafctl/olaf/p4ctl/p4"
)

// TablesOf returns a view of an agent's tables for one twin. Every twin needs a separate view.
func TablesOf(backend *agent.Embedded) twin.TableLookup { return &tableView{backend: backend} }

type tableView struct {
	backend *agent.Embedded
	*agent.State
	members []olaf.WorkerID
}

// Version switches to the newest state of the tables and returns its version. All lookups until the next call use this
// state.
func (v *tableView) Version() uint64 {
	v.State = v.backend.Tables()
	return v.State.Version()
}

// Group returns the workers to which a multicast group sends copies.
func (v *tableView) Group(c olaf.ClusterID) ([]olaf.WorkerID, bool) {
	replicas, ok := v.State.Group(c)
	v.members = v.members[:0]
	for _, r := range replicas {
		v.members = append(v.members, olaf.WorkerID(r.Instance))
	}
	return v.members, ok
}

// TwinDevice returns the row of the device table for the software twin, which is built with the given switch programs.
// A testbed consists of any number of twins that share the tables of one P4Runtime agent.
func TwinDevice(built ...program.Description) Device {
	cfg := twin.Config{Programs: built}
	return LocalDevice(Device{
		Prefix: "twin:",
		Abilities: HasTables | VirtualTime | Repeats | Observable | Records | Copies | ClosesLoop | KeepsLogicTime |
			TakesPrograms | PacesPrograms | AddsUpdates | TakesLengths | HangsRacks | TakesGenerator,
		NotCard:   "the twin captures at the parameter server itself, and has its own tables",
		Programs:  built,
		Registers: func(context.Context, string, DeviceOptions) (fpga.Device, error) { return twin.New(cfg) },
	}, func(_ context.Context, _ string, o OpenOptions) (*Parts, error) { return openTwins(cfg, o) })
}

func openTwins(cfg twin.Config, o OpenOptions) (*Parts, error) {
	backend := new(agent.Embedded)
	parts := &Parts{Tables: backend, Profile: p4.Twin()}
	for number := range o.Cards {
		cfg.Tables, cfg.Wire, cfg.ReadPorts, cfg.Unit = TablesOf(backend), o.Wire, o.ReadPorts, o.Unit
		if o.Observe != nil {
			cfg.Observer = o.Observe(number)
		}
		t, err := twin.New(cfg)
		if err != nil {
			return parts, err
		}
		card := Card{t, t}
		if o.Generator != "" {
			if card, err = joinTwins(t, &o); err != nil {
				return parts, errors.Join(err, t.Close())
			}
		}
		parts.Cards = append(parts.Cards, card)
	}
	return parts, nil
}

// joinTwins connects the queue of one twin to the generator of another twin. Both are built in the same way.
func joinTwins(queue *twin.Twin, o *OpenOptions) (Card, error) {
	row, _, err := o.deviceTable().Lookup(o.Generator)
	if err != nil {
		return Card{}, err
	}
	if row.Prefix != "twin:" {
		return Card{}, fmt.Errorf("%w: the generator of %s has no cable to a twin; use twin: as --generator",
			ErrUnsupported, o.Generator)
	}
	both, err := pair.JoinTwins(queue.Replica(), queue)
	return Card{both, both}, err
}
