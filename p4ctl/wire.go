package p4ctl

import (
	"fmt"
	"strings"

	v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/p4ctl/p4"
)

// shape describes how a kind of table entry is written: with which table and action, and how many parameters.
type shape struct {
	table, action uint32
	params        int
}

var shapes = map[kind]shape{
	kindCluster: {p4.TableClusterGroups, p4.ActionSetGroup, 1},
	kindServer:  {p4.TableServers, p4.ActionSetServer, 0},
	kindWorker:  {p4.TableWorkers, p4.ActionSetWorker, 2},
}

// parseNumber parses a byte string with at most 32 significant bits.
func parseNumber(b []byte) (uint32, error) {
	for len(b) > 0 && b[0] == 0 {
		b = b[1:]
	}
	if len(b) > 4 {
		return 0, fmt.Errorf("byte string 0x%x is longer than 32 bits", b)
	}
	var n uint32
	for _, x := range b {
		n = n<<8 | uint32(x)
	}
	return n, nil
}

// toUpdate returns the P4Runtime update that writes the object.
func (o object) toUpdate(op v1.Update_Type) *v1.Update {
	if o.kind == kindGroup {
		m := &v1.MulticastGroupEntry{MulticastGroupId: o.key}
		if op != v1.Update_DELETE {
			for _, r := range o.members {
				m.Replicas = append(m.Replicas, &v1.Replica{Instance: uint32(r.Instance),
					PortKind: &v1.Replica_Port{Port: p4.CanonicalBytes(r.Port)}})
			}
		}
		return &v1.Update{Type: op, Entity: groupEntity(m)}
	}
	table, action, key, params := o.parts()
	te := &v1.TableEntry{TableId: table}
	for i, value := range key {
		te.Match = append(te.Match, &v1.FieldMatch{
			FieldId: uint32(i) + 1, FieldMatchType: &v1.FieldMatch_Exact_{Exact: &v1.FieldMatch_Exact{Value: p4.CanonicalBytes(value)}},
		})
	}
	if op != v1.Update_DELETE {
		a := &v1.Action{ActionId: action}
		for i, value := range params {
			a.Params = append(a.Params, &v1.Action_Param{ParamId: uint32(i) + 1, Value: p4.CanonicalBytes(value)})
		}
		te.Action = &v1.TableAction{Type: &v1.TableAction_Action{Action: a}}
	}
	return &v1.Update{Type: op, Entity: &v1.Entity{Entity: &v1.Entity_TableEntry{TableEntry: te}}}
}

// parts returns the table ID and the action ID of an entry, and the values of its key fields and parameters. The IDs of
// both count from 1.
func (o object) parts() (table, action uint32, key, params []uint32) {
	if o.kind == kindEntry {
		return o.table.ID, o.table.ActionID, o.table.Fields(o.key), o.params
	}
	s := shapes[o.kind]
	return s.table, s.action, []uint32{o.key}, []uint32{o.a, o.b}[:s.params]
}

func groupEntity(m *v1.MulticastGroupEntry) *v1.Entity {
	return &v1.Entity{Entity: &v1.Entity_PacketReplicationEngineEntry{PacketReplicationEngineEntry: &v1.PacketReplicationEngineEntry{
		Type: &v1.PacketReplicationEngineEntry_MulticastGroupEntry{MulticastGroupEntry: m}}}}
}

// readAll returns the entities for a Read request that reads all our tables and groups.
func readAll() []*v1.Entity {
	return []*v1.Entity{
		{Entity: &v1.Entity_TableEntry{TableEntry: new(v1.TableEntry)}},
		groupEntity(new(v1.MulticastGroupEntry)),
	}
}

// toObject converts an entity from a server. ok is false for entities that are not ours, such as constant defaults.
// Tables of switch programs are ours if they are in known.
func toObject(e *v1.Entity, known []p4.Table) (o object, ok bool, err error) {
	if te := e.GetTableEntry(); te != nil {
		for i := range known {
			if known[i].ID == te.GetTableId() {
				return programObject(te, &known[i])
			}
		}
		return entryObject(te)
	}
	m := e.GetPacketReplicationEngineEntry().GetMulticastGroupEntry()
	if m == nil {
		return o, false, nil
	}
	o = object{kind: kindGroup, key: m.GetMulticastGroupId()}
	for _, r := range m.GetReplicas() {
		member := Member{Instance: uint16(r.GetInstance())}
		if r.GetInstance() > 0xffff {
			return o, false, fmt.Errorf("multicast group %d has instance %d, above 65535", o.key, r.GetInstance())
		}
		member.Port, err = replicaPort(r)
		if err != nil {
			return o, false, err
		}
		o.members = append(o.members, member)
	}
	o.members = sortMembers(o.members)
	return o, true, nil
}

// replicaPort returns the port of a replica. It also accepts the deprecated numeric field, which most other controllers
// write.
func replicaPort(r *v1.Replica) (uint32, error) {
	if legacy, ok := r.GetPortKind().(*v1.Replica_EgressPort); ok {
		//lint:ignore SA1019 it is deprecated and still what others write
		return legacy.EgressPort, nil
	}
	return parseNumber(r.GetPort())
}

func entryObject(te *v1.TableEntry) (o object, ok bool, err error) {
	for k, s := range shapes {
		if s.table != te.GetTableId() || te.GetIsDefaultAction() || te.GetAction().GetAction().GetActionId() != s.action {
			continue
		}
		o.kind = k
		if len(te.GetMatch()) != 1 {
			return o, false, fmt.Errorf("an entry of table 0x%08x has %d match fields, want 1", s.table, len(te.GetMatch()))
		}
		if o.key, err = parseNumber(te.GetMatch()[0].GetExact().GetValue()); err != nil {
			return o, false, err
		}
		for _, p := range te.GetAction().GetAction().GetParams() {
			value, err := parseNumber(p.GetValue())
			if err != nil {
				return o, false, err
			}
			switch p.GetParamId() {
			case 1:
				o.a = value
			case 2:
				o.b = value
			}
		}
		return o, true, nil
	}
	return o, false, nil
}

// programObject converts an entry in a table of a switch program.
func programObject(te *v1.TableEntry, t *p4.Table) (o object, ok bool, err error) {
	action := te.GetAction().GetAction()
	if te.GetIsDefaultAction() || action.GetActionId() != t.ActionID {
		return o, false, nil
	}
	if len(te.GetMatch()) != len(t.Key) || len(action.GetParams()) != len(t.Params) {
		return o, false, fmt.Errorf("an entry of %s has %d match fields and %d parameters, want %d and %d", t.Name,
			len(te.GetMatch()), len(action.GetParams()), len(t.Key), len(t.Params))
	}
	key, params := make([]uint32, len(t.Key)), make([]uint32, len(t.Params))
	for _, m := range te.GetMatch() {
		if err := setField(key, t.Key, m.GetFieldId(), m.GetExact().GetValue()); err != nil {
			return o, false, fmt.Errorf("%s: %w", t.Name, err)
		}
	}
	for _, p := range action.GetParams() {
		if err := setField(params, t.Params, p.GetParamId(), p.GetValue()); err != nil {
			return o, false, fmt.Errorf("%s: %w", t.Name, err)
		}
	}
	return object{kind: kindEntry, table: t, key: t.Number(key), params: params}, true, nil
}

// setField parses a number and stores it at the index of the field with the given ID.
func setField(values []uint32, fields []program.Field, id uint32, b []byte) error {
	if id < 1 || int(id) > len(fields) {
		return fmt.Errorf("field %d does not exist", id)
	}
	v, err := parseNumber(b)
	if f := &fields[id-1]; err == nil && uint64(v)>>f.Bits != 0 {
		err = fmt.Errorf("%s is %d, which does not fit into %d bits", f.Name, v, f.Bits)
	}
	values[id-1] = v
	return err
}

// describeUpdate describes an update in words, such as "insert worker 10.0.0.1".
func describeUpdate(u *v1.Update, known []p4.Table) string {
	verb := strings.ToLower(u.GetType().String())
	if te := u.GetEntity().GetTableEntry(); te != nil {
		for i := range known {
			if known[i].ID == te.GetTableId() {
				return verb + " " + programKey(te, &known[i])
			}
		}
		for k, s := range shapes {
			if s.table == te.GetTableId() && len(te.GetMatch()) == 1 {
				if key, err := parseNumber(te.GetMatch()[0].GetExact().GetValue()); err == nil {
					return verb + " " + object{kind: k, key: key}.name()
				}
			}
		}
		return fmt.Sprintf("%s entry of table 0x%08x", verb, te.GetTableId())
	}
	if m := u.GetEntity().GetPacketReplicationEngineEntry().GetMulticastGroupEntry(); m != nil {
		return verb + " " + object{kind: kindGroup, key: m.GetMulticastGroupId()}.name()
	}
	return verb
}

// name returns the kind and the key of the object in words.
func (o object) name() string {
	switch o.kind {
	case kindGroup:
		return fmt.Sprintf("group %d", o.key)
	case kindCluster:
		return fmt.Sprintf("cluster %d", o.key)
	case kindServer:
		return "server " + keyAddress(o.key).String()
	}
	if o.kind == kindEntry {
		return o.table.Name + " " + joinNumbers(o.table.Key, o.table.Fields(o.key))
	}
	return "worker " + keyAddress(o.key).String()
}

// programKey returns the table and the key of an entry, which may be incomplete, in words.
func programKey(te *v1.TableEntry, t *p4.Table) string {
	key := make([]uint32, len(t.Key))
	for _, m := range te.GetMatch() {
		if setField(key, t.Key, m.GetFieldId(), m.GetExact().GetValue()) != nil {
			return "entry of " + t.Name
		}
	}
	return t.Name + " " + joinNumbers(t.Key, key)
}

// joinNumbers returns the names of fields with their values as text.
func joinNumbers(fields []program.Field, values []uint32) string {
	var b strings.Builder
	for i, v := range values {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%s %d", fields[i].Name, v)
	}
	return b.String()
}

// value returns the value of the object in words.
func (o object) value() string {
	switch o.kind {
	case kindGroup:
		return "members " + memberList(o.members)
	case kindCluster:
		return fmt.Sprintf("group %d", o.a)
	case kindWorker:
		return fmt.Sprintf("cluster %d worker %d", o.a, o.b)
	case kindEntry:
		value := strings.TrimRight(o.table.Action+" "+joinNumbers(o.table.Params, o.params), " ")
		if remark := o.table.Remark(o.params); remark != "" {
			value += ", " + remark
		}
		return value
	}
	return ""
}

// memberList returns the members as text, each as port/instance.
func memberList(members []Member) string {
	if len(members) == 0 {
		return "none"
	}
	var b strings.Builder
	for i, m := range members {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%d/%d", m.Port, m.Instance)
	}
	return b.String()
}
