package agent

import (
	"slices"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/olafctl/olaf/p4ctl/p4"
)

// parseNumber parses a byte string as an unsigned number of at most 32 bits. It accepts leading zeros.
func parseNumber(what string, value []byte, bits int32) (uint32, error) {
	if len(value) == 0 {
		return 0, status.Errorf(codes.InvalidArgument, "%s is an empty byte string; zero is one byte 0x00", what)
	}
	for len(value) > 1 && value[0] == 0 {
		value = value[1:]
	}
	var n uint64
	if len(value) > 4 {
		return 0, tooWideError(what, value, bits)
	}
	for _, b := range value {
		n = n<<8 | uint64(b)
	}
	if n>>bits != 0 {
		return 0, tooWideError(what, value, bits)
	}
	return uint32(n), nil
}

func tooWideError(what string, value []byte, bits int32) error {
	if len(value) > 16 {
		value = value[:16]
	}
	return status.Errorf(codes.InvalidArgument, "%s 0x%x… does not fit into %d bits", what, value, bits)
}

// tableEntry checks a table entry in a write and converts it. For a MODIFY without an action, the Action of the result
// is 0. For a DELETE, only the table and the key are set.
func (s *schema) tableEntry(op Op, te *v1.TableEntry) (*Entry, error) {
	t, err := s.table(te.GetTableId())
	if err != nil {
		return nil, err
	}
	if te.IsConst {
		return nil, status.Error(codes.InvalidArgument, "is_const can't be written")
	}
	if te.IsDefaultAction {
		return nil, defaultEntryFault(op, te, t)
	}
	key, err := exactKey(t, te.Match)
	if err != nil {
		return nil, err
	}
	if te.Priority != 0 {
		return nil, status.Errorf(codes.InvalidArgument, "priority must be 0: table %s has exact keys only", nameOf(t))
	}
	e := &Entry{Table: te.TableId, Key: key}
	if op == v1.Update_DELETE {
		return e, nil
	}
	if err := noDirectResources(te, t); err != nil {
		return nil, err
	}
	e.Metadata, e.ControllerMetadata = te.Metadata, legacyMetadata(te)
	if te.Action == nil {
		if op == v1.Update_INSERT {
			return nil, status.Errorf(codes.InvalidArgument, "an entry of %s needs an action", nameOf(t))
		}
		return e, nil
	}
	return e, s.setAction(e, t, te.Action)
}

// defaultEntryFault returns the error for a write to a default entry, which is not allowed because all our default
// entries are constant.
func defaultEntryFault(op Op, te *v1.TableEntry, t *configv1.Table) error {
	switch {
	case len(te.Match) > 0 || te.Priority != 0:
		return status.Error(codes.InvalidArgument, "a default entry has neither match nor priority")
	case op != v1.Update_MODIFY:
		return status.Error(codes.InvalidArgument, "a default entry can only be modified")
	}
	return status.Errorf(codes.PermissionDenied, "the default action of %s is constant", nameOf(t))
}

func noDirectResources(te *v1.TableEntry, t *configv1.Table) error {
	switch {
	case te.IdleTimeoutNs != 0 || te.TimeSinceLastHit != nil:
		return status.Errorf(codes.InvalidArgument, "table %s has no idle timeout", nameOf(t))
	case te.MeterConfig != nil || te.MeterCounterData != nil:
		return status.Errorf(codes.InvalidArgument, "table %s has no direct meter", nameOf(t))
	case te.CounterData != nil:
		return status.Errorf(codes.InvalidArgument, "table %s has no direct counter", nameOf(t))
	}
	return nil
}

// exactKey packs the match fields of a table with exact keys into a number, in the order of the fields.
func exactKey(t *configv1.Table, match []*v1.FieldMatch) (uint32, error) {
	var key uint32
	given := make(map[uint32]uint32, len(t.MatchFields))
	for _, m := range match {
		f := findByID(t.MatchFields, m.GetFieldId())
		if f == nil {
			return 0, status.Errorf(codes.InvalidArgument, "table %s has no match field %d", nameOf(t), m.GetFieldId())
		}
		if _, twice := given[f.Id]; twice {
			return 0, status.Errorf(codes.InvalidArgument, "match field %q is given twice", f.Name)
		}
		exact, ok := m.FieldMatchType.(*v1.FieldMatch_Exact_)
		if !ok {
			return 0, status.Errorf(codes.InvalidArgument, "match field %q needs an exact match", f.Name)
		}
		value, err := parseNumber("match field "+f.Name, exact.Exact.GetValue(), f.Bitwidth)
		if err != nil {
			return 0, err
		}
		given[f.Id] = value
	}
	for _, f := range t.MatchFields {
		value, ok := given[f.Id]
		if !ok {
			return 0, status.Errorf(codes.InvalidArgument, "exact match field %q of %s is missing", f.Name, nameOf(t))
		}
		key = key<<f.Bitwidth | value
	}
	return key, nil
}

// keyFields unpacks a key that exactKey packed.
func keyFields(t *configv1.Table, key uint32) []uint32 {
	values := make([]uint32, len(t.MatchFields))
	for i := len(values) - 1; i >= 0; i-- {
		bits := t.MatchFields[i].Bitwidth
		values[i] = key & (1<<bits - 1)
		key = uint32(uint64(key) >> bits)
	}
	return values
}

func (s *schema) setAction(e *Entry, t *configv1.Table, a *v1.TableAction) error {
	direct, ok := a.Type.(*v1.TableAction_Action)
	if !ok {
		return status.Errorf(codes.InvalidArgument,
			"table %s is direct: it needs an action, not a member, group or set", nameOf(t))
	}
	id := direct.Action.GetActionId()
	action, ok := s.actions[id]
	if !ok {
		return status.Errorf(codes.InvalidArgument, "unknown action id 0x%08x", id)
	}
	ref := findByID(t.ActionRefs, id)
	if ref == nil {
		return status.Errorf(codes.InvalidArgument, "table %s does not offer action %s", nameOf(t), nameOf(action))
	}
	if ref.Scope == configv1.ActionRef_DEFAULT_ONLY {
		return status.Errorf(codes.PermissionDenied, "action %s is only the default of %s", nameOf(action), nameOf(t))
	}
	e.Action = id
	return setParams(e, action, direct.Action.GetParams())
}

func setParams(e *Entry, action *configv1.Action, given []*v1.Action_Param) error {
	seen := make(map[uint32]bool, len(action.Params))
	for _, g := range given {
		at := slices.IndexFunc(action.Params, func(p *configv1.Action_Param) bool { return p.Id == g.GetParamId() })
		if at < 0 {
			return status.Errorf(codes.InvalidArgument, "action %s has no parameter %d", nameOf(action), g.GetParamId())
		}
		p := action.Params[at]
		if seen[p.Id] {
			return status.Errorf(codes.InvalidArgument, "parameter %q is given twice", p.Name)
		}
		seen[p.Id] = true
		value, err := parseNumber("parameter "+p.Name, g.GetValue(), p.Bitwidth)
		if err != nil {
			return err
		}
		e.Params[at] = value
	}
	for _, p := range action.Params {
		if !seen[p.Id] {
			return status.Errorf(codes.InvalidArgument, "action %s lacks parameter %q", nameOf(action), p.Name)
		}
	}
	return nil
}

// maxInstance is the largest instance number of a replica, which is a worker ID.
const maxInstance = 1<<16 - 1

// multicastGroup checks a multicast group in a write and converts it. For a DELETE, only the ID is set.
func multicastGroup(op Op, m *v1.MulticastGroupEntry) (*Group, error) {
	g := &Group{ID: m.GetMulticastGroupId()}
	if g.ID == 0 {
		return nil, status.Error(codes.InvalidArgument, "multicast_group_id must be greater than 0")
	}
	if op == v1.Update_DELETE {
		return g, nil
	}
	g.Metadata = m.Metadata
	g.Members = make([]Member, 0, len(m.Replicas))
	g.legacy = make([]bool, 0, len(m.Replicas))
	seen := make(map[Member]bool, len(m.Replicas))
	for i, r := range m.Replicas {
		member, legacy, err := parseReplica(r)
		if err != nil {
			return nil, status.Errorf(status.Code(err), "replica %d of group %d: %s", i, g.ID, status.Convert(err).Message())
		}
		if seen[member] {
			return nil, status.Errorf(codes.InvalidArgument, "replica %d of group %d: port %d, instance %d appears "+
				"twice",
				i, g.ID, member.Port, member.Instance)
		}
		seen[member] = true
		g.Members = append(g.Members, member)
		g.legacy = append(g.legacy, legacy)
	}
	return g, nil
}

func parseReplica(r *v1.Replica) (m Member, legacy bool, err error) {
	if len(r.GetBackupReplicas()) > 0 {
		return m, false, status.Error(codes.Unimplemented, "backup replicas are not supported")
	}
	if r.GetInstance() > maxInstance {
		return m, false, status.Errorf(codes.InvalidArgument, "instance %d is above %d", r.GetInstance(), maxInstance)
	}
	m.Instance = r.GetInstance()
	switch kind := r.GetPortKind().(type) {
	case *v1.Replica_Port:
		m.Port, err = parseNumber("port", kind.Port, 32)
	case *v1.Replica_EgressPort:
		m.Port, legacy = legacyPort(kind), true
	default:
		err = status.Error(codes.InvalidArgument, "no port")
	}
	return m, legacy, err
}

// entryProto returns an entry in the form in which controllers read it.
func (s *schema) entryProto(e *Entry) *v1.Entity {
	t, action := s.tables[e.Table], s.actions[e.Action]
	te := &v1.TableEntry{
		TableId:  e.Table,
		Metadata: e.Metadata,
	}
	for i, v := range keyFields(t, e.Key) {
		te.Match = append(te.Match, &v1.FieldMatch{FieldId: t.MatchFields[i].Id,
			FieldMatchType: &v1.FieldMatch_Exact_{Exact: &v1.FieldMatch_Exact{Value: p4.CanonicalBytes(v)}}})
	}
	setLegacyMetadata(te, e.ControllerMetadata)
	a := &v1.Action{ActionId: e.Action}
	for i, p := range action.Params {
		a.Params = append(a.Params, &v1.Action_Param{ParamId: p.Id, Value: p4.CanonicalBytes(e.Params[i])})
	}
	te.Action = &v1.TableAction{Type: &v1.TableAction_Action{Action: a}}
	return &v1.Entity{Entity: &v1.Entity_TableEntry{TableEntry: te}}
}

// defaultProto returns the constant default entry of a table.
func defaultProto(t *configv1.Table) *v1.Entity {
	a := &v1.Action{ActionId: t.ConstDefaultActionId}
	te := &v1.TableEntry{TableId: t.Preamble.Id, IsDefaultAction: true,
		Action: &v1.TableAction{Type: &v1.TableAction_Action{Action: a}}}
	return &v1.Entity{Entity: &v1.Entity_TableEntry{TableEntry: te}}
}

// groupProto returns a group in the form in which controllers read it. Every port is in the field in which it was
// written.
func groupProto(g *Group) *v1.Entity {
	m := &v1.MulticastGroupEntry{MulticastGroupId: g.ID, Metadata: g.Metadata}
	for i, member := range g.Members {
		r := &v1.Replica{Instance: member.Instance}
		if g.legacy[i] {
			r.PortKind = newLegacyPort(member.Port)
		} else {
			r.PortKind = &v1.Replica_Port{Port: p4.CanonicalBytes(member.Port)}
		}
		m.Replicas = append(m.Replicas, r)
	}
	return &v1.Entity{Entity: &v1.Entity_PacketReplicationEngineEntry{PacketReplicationEngineEntry: &v1.PacketReplicationEngineEntry{
		Type: &v1.PacketReplicationEngineEntry_MulticastGroupEntry{MulticastGroupEntry: m}}}}
}
