package agent

import (
	"bytes"
	"cmp"
	"slices"

	v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// readEntity answers one element of a Read request from a single snapshot, in key order.
func (p *pipeline) readEntity(role *Role, e *v1.Entity, emit func(*v1.Entity) error) error {
	switch entity := e.GetEntity().(type) {
	case *v1.Entity_TableEntry:
		return p.readTables(role, entity.TableEntry, emit)
	case *v1.Entity_PacketReplicationEngineEntry:
		m, ok := entity.PacketReplicationEngineEntry.GetType().(*v1.PacketReplicationEngineEntry_MulticastGroupEntry)
		if !ok {
			return noSuchReplicationError(entity.PacketReplicationEngineEntry)
		}
		return p.readGroups(role, m.MulticastGroupEntry.GetMulticastGroupId(), emit)
	case nil:
		return status.Error(codes.InvalidArgument, "the entity is not set: reading everything at once is not supported")
	}
	if isWildcard(e) {
		return nil // nothing to read
	}
	return unknownObject(e)
}

// isWildcard reports whether an entity, whose kind we do not support, asks for all objects of its kind.
func isWildcard(e *v1.Entity) bool {
	switch entity := e.GetEntity().(type) {
	case *v1.Entity_ActionProfileMember:
		return entity.ActionProfileMember.GetActionProfileId() == 0
	case *v1.Entity_ActionProfileGroup:
		return entity.ActionProfileGroup.GetActionProfileId() == 0
	case *v1.Entity_MeterEntry:
		return entity.MeterEntry.GetMeterId() == 0
	case *v1.Entity_CounterEntry:
		return entity.CounterEntry.GetCounterId() == 0
	case *v1.Entity_DirectMeterEntry:
		return entity.DirectMeterEntry.GetTableEntry().GetTableId() == 0
	case *v1.Entity_DirectCounterEntry:
		return entity.DirectCounterEntry.GetTableEntry().GetTableId() == 0
	case *v1.Entity_RegisterEntry:
		return entity.RegisterEntry.GetRegisterId() == 0
	case *v1.Entity_DigestEntry:
		return entity.DigestEntry.GetDigestId() == 0
	case *v1.Entity_ValueSetEntry:
		return entity.ValueSetEntry.GetValueSetId() == 0
	case *v1.Entity_ExternEntry:
		return entity.ExternEntry.GetExternTypeId() == 0
	}
	return false
}

func (p *pipeline) readTables(role *Role, filter *v1.TableEntry, emit func(*v1.Entity) error) error {
	if filter.GetTableId() != 0 {
		return p.readTable(role, filter, emit)
	}
	if !isUnfiltered(filter) {
		return status.Error(codes.InvalidArgument, "table_id 0 takes no other filter: name the table")
	}
	for _, t := range p.config.P4Info.Tables {
		if err := p.readTable(role, &v1.TableEntry{TableId: t.Preamble.Id}, emit); err != nil {
			return err
		}
	}
	return nil
}

// isUnfiltered reports whether a filter selects all entries of all tables. Fields that only ask for more details are
// not filters.
func isUnfiltered(f *v1.TableEntry) bool {
	return f == nil || len(f.GetMatch()) == 0 && f.GetAction() == nil && f.GetPriority() == 0 && !f.GetIsDefaultAction() &&
		len(f.GetMetadata()) == 0 && legacyMetadata(f) == 0
}

func (p *pipeline) readTable(role *Role, filter *v1.TableEntry, emit func(*v1.Entity) error) error {
	t, err := p.schema.table(filter.TableId)
	if err != nil {
		return err
	}
	if !role.allowsTable(filter.TableId) {
		return nil // a role reads only the tables that it covers
	}
	if filter.IsDefaultAction {
		return emit(defaultProto(t))
	}
	entries := p.state.table(filter.TableId)
	if len(filter.Match) > 0 {
		key, err := exactKey(t, filter.Match)
		if err != nil {
			return err
		}
		if e, ok := entries.get(key); ok && matchesFilter(e, filter) {
			return emit(p.schema.entryProto(e))
		}
		return nil
	}
	for _, e := range sortedValues(*entries) {
		if matchesFilter(e, filter) {
			if err := emit(p.schema.entryProto(e)); err != nil {
				return err
			}
		}
	}
	return nil
}

// matchesFilter reports whether an entry matches the parts of the filter other than the key. No entry here has a
// priority.
func matchesFilter(e *Entry, filter *v1.TableEntry) bool {
	if id := filter.GetAction().GetAction().GetActionId(); id != 0 && id != e.Action {
		return false
	}
	if asked := legacyMetadata(filter); asked != 0 && asked != e.ControllerMetadata {
		return false
	}
	if len(filter.Metadata) > 0 && !bytes.Equal(filter.Metadata, e.Metadata) {
		return false
	}
	return filter.Priority == 0
}

func (p *pipeline) readGroups(role *Role, id uint32, emit func(*v1.Entity) error) error {
	if !role.allowsGroups() {
		return nil
	}
	if id != 0 {
		if g, ok := p.state.groups.get(id); ok {
			return emit(groupProto(g))
		}
		return nil
	}
	for _, g := range sortedValues(p.state.groups) {
		if err := emit(groupProto(g)); err != nil {
			return err
		}
	}
	return nil
}

// sortedValues returns the values in a map in key order.
func sortedValues[V any](t trie[V]) []V {
	type pair struct {
		key   uint32
		value V
	}
	pairs := make([]pair, 0, t.size)
	t.all(func(key uint32, value V) bool {
		pairs = append(pairs, pair{key, value})
		return true
	})
	slices.SortFunc(pairs, func(a, b pair) int { return cmp.Compare(a.key, b.key) })
	values := make([]V, len(pairs))
	for i, p := range pairs {
		values[i] = p.value
	}
	return values
}
