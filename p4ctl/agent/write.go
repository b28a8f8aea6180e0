package agent

import (
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/olafctl/olaf/p4ctl/p4"
)

// step is an update that can be applied, with its inverse.
type step struct{ do, undo Change }

// writeBatch handles a Write request after arbitration. It tries every update in order and returns the new state and
// its changes. If any update failed, it also returns one error per update. The receiver and its state are not changed.
func (p *pipeline) writeBatch(b Backend, role *Role, req *v1.WriteRequest) (next *State, changes []Change,
	faults []error, err error) {
	t, err := p.try(b, role, req)
	if err == nil {
		err = p.settle(b, t)
	}
	if err != nil {
		return p.state, nil, nil, err
	}
	for i := range t.applied {
		changes = append(changes, t.applied[i].do)
	}
	return t.state, changes, t.faults, nil
}

// tried is a batch in progress, with its state and the updates applied so far.
type tried struct {
	state       *State
	edit        *edit
	applied     []appliedUpdate
	updates     int
	faults      []error // one error per update; nil while none has failed
	stopAtFault bool
}

// appliedUpdate is an update that was applied, with its index in the batch.
type appliedUpdate struct {
	step
	at int
}

// try tries to apply the updates in a batch in order.
func (p *pipeline) try(b Backend, role *Role, req *v1.WriteRequest) (t *tried, err error) {
	t = &tried{state: p.state.next(), edit: new(edit), updates: len(req.Updates)}
	if t.stopAtFault, err = stopsAtFault(b, req.Atomicity); err != nil {
		return nil, err
	}
	for i, u := range req.Updates {
		s, err := p.prepare(t.state, role, u)
		if err == nil && p.committed {
			err = b.Do(s.do)
		}
		if err != nil {
			t.fail(i, err)
			if t.stopAtFault {
				return t, p.abort(b, t, i, i)
			}
			continue
		}
		t.state.apply(t.edit, s.do)
		t.applied = append(t.applied, appliedUpdate{s, i})
	}
	return t, nil
}

// fail records why an update was not applied.
func (t *tried) fail(at int, err error) {
	if t.faults == nil {
		t.faults = make([]error, t.updates)
	}
	t.faults[at] = err
}

// abort rolls a batch back because the update at index at failed. The updates before index end have been tried.
func (p *pipeline) abort(b Backend, t *tried, at, end int) error {
	for i := range t.faults {
		switch {
		case i == at:
		case i < end:
			t.faults[i] = status.Errorf(codes.Aborted, "rolled back because of update %d", at)
		default:
			t.faults[i] = status.Errorf(codes.Aborted, "not tried because of update %d", at)
		}
	}
	err := p.rollback(b, p.state, t.applied)
	t.state, t.applied = p.state, nil
	return err
}

// settle undoes updates that leave conflicting entries. Only the result of a batch is checked, so that jobs can
// swap places in one batch.
func (p *pipeline) settle(b Backend, t *tried) error {
	for {
		last, fault := t.findClash()
		if last < 0 {
			return nil
		}
		at := t.applied[last].at
		t.fail(at, fault)
		if t.stopAtFault {
			return p.abort(b, t, at, t.updates)
		}
		t.state.apply(t.edit, t.applied[last].undo)
		if err := p.rollback(b, t.state, t.applied[last:last+1]); err != nil {
			return err
		}
		t.applied = slices.Delete(t.applied, last, last+1)
		t.state, t.edit = t.state.next(), new(edit) // the device may have received the old state
	}
}

// stopsAtFault reports whether a batch ends at the first update that fails. It returns an error for modes that the
// backend cannot guarantee.
func stopsAtFault(b Backend, a v1.WriteRequest_Atomicity) (stopAtFault bool, err error) {
	switch a {
	case v1.WriteRequest_CONTINUE_ON_ERROR:
		return false, nil
	case v1.WriteRequest_ROLLBACK_ON_ERROR:
		return true, nil
	case v1.WriteRequest_DATAPLANE_ATOMIC:
		if b.AtomicBatches() {
			return true, nil
		}
	}
	return false, status.Errorf(codes.Unimplemented, "atomicity %v is not supported by this device", a)
}

// rollback undoes changes on the device, newest first, until the device has the state to. If this fails, the device is
// reset to that state.
func (p *pipeline) rollback(b Backend, to *State, made []appliedUpdate) error {
	if !p.committed {
		return nil
	}
	for i := len(made) - 1; i >= 0; i-- {
		err := b.Do(made[i].undo)
		if err == nil {
			continue
		}
		if again := b.Commit(to); again != nil {
			return status.Errorf(codes.DataLoss,
				"the rollback failed (%v) and so did a reset of the device (%v): the contents of its tables are "+
					"unknown", err, again)
		}
		return nil
	}
	return nil
}

// prepare checks an update against the P4Info, the role and the tables, and returns the step that applies it.
func (p *pipeline) prepare(s *State, role *Role, u *v1.Update) (step, error) {
	op := u.GetType()
	if op != v1.Update_INSERT && op != v1.Update_MODIFY && op != v1.Update_DELETE {
		return step{}, status.Errorf(codes.InvalidArgument, "update type %v is not INSERT, MODIFY or DELETE", op)
	}
	switch entity := u.GetEntity().GetEntity().(type) {
	case *v1.Entity_TableEntry:
		entry, err := p.schema.tableEntry(op, entity.TableEntry)
		if err != nil {
			return step{}, err
		}
		if !role.allowsTable(entry.Table) {
			return step{}, status.Errorf(codes.PermissionDenied, "table 0x%08x is outside the role", entry.Table)
		}
		return p.schema.prepareEntry(s, op, entry)
	case *v1.Entity_PacketReplicationEngineEntry:
		m, ok := entity.PacketReplicationEngineEntry.GetType().(*v1.PacketReplicationEngineEntry_MulticastGroupEntry)
		if !ok {
			return step{}, noSuchReplicationError(entity.PacketReplicationEngineEntry)
		}
		group, err := multicastGroup(op, m.MulticastGroupEntry)
		if err != nil {
			return step{}, err
		}
		if !role.allowsGroups() {
			return step{}, status.Error(codes.PermissionDenied, "multicast groups are outside the role")
		}
		return p.schema.prepareGroup(s, op, group)
	case nil:
		return step{}, status.Error(codes.InvalidArgument, "the update has no entity")
	default:
		return step{}, unknownObject(u.Entity)
	}
}

func noSuchReplicationError(e *v1.PacketReplicationEngineEntry) error {
	if e.GetType() == nil {
		return status.Error(codes.InvalidArgument, "the replication engine entry is neither a group nor a session")
	}
	return status.Error(codes.Unimplemented, "clone sessions are not supported")
}

// unknownObject returns the error for an entity that does not exist in the P4Info.
func unknownObject(e *v1.Entity) error {
	return status.Errorf(codes.InvalidArgument, "%s: this pipeline has no such object", kindOf(e))
}

func kindOf(e *v1.Entity) string {
	var name string
	switch e.GetEntity().(type) {
	case *v1.Entity_ExternEntry:
		name = "extern_entry"
	case *v1.Entity_ActionProfileMember:
		name = "action_profile_member"
	case *v1.Entity_ActionProfileGroup:
		name = "action_profile_group"
	case *v1.Entity_MeterEntry:
		name = "meter_entry"
	case *v1.Entity_DirectMeterEntry:
		name = "direct_meter_entry"
	case *v1.Entity_CounterEntry:
		name = "counter_entry"
	case *v1.Entity_DirectCounterEntry:
		name = "direct_counter_entry"
	case *v1.Entity_ValueSetEntry:
		name = "value_set_entry"
	case *v1.Entity_RegisterEntry:
		name = "register_entry"
	case *v1.Entity_DigestEntry:
		name = "digest_entry"
	default:
		name = "entity"
	}
	return name
}

func (s *schema) prepareEntry(st *State, op Op, e *Entry) (step, error) {
	t := s.tables[e.Table]
	entries := st.table(e.Table)
	old, exists := entries.get(e.Key)
	switch {
	case op == v1.Update_INSERT && exists:
		return step{}, status.Errorf(codes.AlreadyExists, "%s has an entry for %s", nameOf(t), keyText(t, e))
	case op != v1.Update_INSERT && !exists:
		return step{}, status.Errorf(codes.NotFound, "%s has no entry for %s", nameOf(t), keyText(t, e))
	case op == v1.Update_INSERT && entries.size >= capacity(t):
		return step{}, status.Errorf(codes.ResourceExhausted, "%s is full: it has %d entries, its limit", nameOf(t),
			entries.size)
	}
	if op == v1.Update_DELETE {
		return step{do: Change{Op: op, Entry: old}, undo: Change{Op: v1.Update_INSERT, Entry: old}}, nil
	}
	if e.Action == 0 { // a MODIFY that does not change the action
		e.Action, e.Params = old.Action, old.Params
	}
	if e.Table == p4.TableClusterGroups {
		if _, ok := st.groups.get(e.Params[0]); !ok {
			return step{}, status.Errorf(codes.NotFound,
				"multicast group %d does not exist: write the group before the cluster that uses it", e.Params[0])
		}
	}
	if op == v1.Update_INSERT {
		return step{do: Change{Op: op, Entry: e}, undo: Change{Op: v1.Update_DELETE, Entry: e}}, nil
	}
	return step{do: Change{Op: op, Entry: e}, undo: Change{Op: op, Entry: old}}, nil
}

func keyText(t *configv1.Table, e *Entry) string {
	switch {
	case e.Table == p4.TableClusterGroups:
		return fmt.Sprintf("cluster %d", e.Key)
	case e.Table != p4.TableServers && e.Table != p4.TableWorkers:
		var words []string
		for i, v := range keyFields(t, e.Key) {
			words = append(words, fmt.Sprintf("%s %d", t.MatchFields[i].Name, v))
		}
		return strings.Join(words, ", ")
	}
	return fmt.Sprintf("%d.%d.%d.%d", byte(e.Key>>24), byte(e.Key>>16), byte(e.Key>>8), byte(e.Key))
}

func (s *schema) prepareGroup(st *State, op Op, g *Group) (step, error) {
	old, exists := st.groups.get(g.ID)
	replicas := st.replicas + len(g.Members)
	if exists {
		replicas -= len(old.Members)
	}
	users, _ := st.users.get(g.ID)
	switch {
	case op == v1.Update_INSERT && exists:
		return step{}, status.Errorf(codes.AlreadyExists, "multicast group %d exists", g.ID)
	case op != v1.Update_INSERT && !exists:
		return step{}, status.Errorf(codes.NotFound, "multicast group %d does not exist", g.ID)
	case op == v1.Update_DELETE && users > 0:
		return step{}, status.Errorf(codes.FailedPrecondition, "multicast group %d is used by %d clusters", g.ID, users)
	case op == v1.Update_INSERT && st.groups.size >= s.groups:
		return step{}, status.Errorf(codes.ResourceExhausted, "there are already %d multicast groups, the limit",
			st.groups.size)
	case op != v1.Update_DELETE && replicas > s.replicas:
		return step{}, status.Errorf(codes.ResourceExhausted,
			"all multicast groups together would have %d replicas; the limit is %d", replicas, s.replicas)
	}
	switch op {
	case v1.Update_DELETE:
		return step{do: Change{Op: op, Group: old}, undo: Change{Op: v1.Update_INSERT, Group: old}}, nil
	case v1.Update_INSERT:
		return step{do: Change{Op: op, Group: g}, undo: Change{Op: v1.Update_DELETE, Group: g}}, nil
	}
	return step{do: Change{Op: op, Group: g}, undo: Change{Op: op, Group: old}}, nil
}
