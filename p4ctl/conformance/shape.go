package conformance

import (
	"slices"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/proto"

	"github.com/olafctl/olaf/p4ctl/p4"
)

// shape describes what the clauses write: entries in a table with exact keys, with one of its actions.
type shape struct {
	table  *configv1.Table
	action *configv1.Action
}

// shapeOf returns the first table to which the clauses can write without knowing its purpose. It has exact keys with at
// least 8 bits, no references to other objects, and an action with parameters.
func shapeOf(info *configv1.P4Info) (shape, error) {
	for _, t := range info.GetTables() {
		if !isPlain(t) {
			continue
		}
		for _, ref := range t.ActionRefs {
			if ref.Scope == configv1.ActionRef_DEFAULT_ONLY {
				continue
			}
			at := slices.IndexFunc(info.Actions, func(a *configv1.Action) bool { return a.GetPreamble().GetId() == ref.Id })
			if at >= 0 && isWritable(info.Actions[at]) {
				return shape{t, info.Actions[at]}, nil
			}
		}
	}
	return shape{}, ErrUnlike
}

func isPlain(t *configv1.Table) bool {
	if t.IsConstTable || t.ImplementationId != 0 || len(t.MatchFields) == 0 || len(t.DirectResourceIds) > 0 || t.Size < 4 {
		return false
	}
	return !slices.ContainsFunc(t.MatchFields, func(f *configv1.MatchField) bool {
		return f.GetMatchType() != configv1.MatchField_EXACT || f.Bitwidth < 8 || hasReference(f.Annotations)
	})
}

func isWritable(a *configv1.Action) bool {
	return len(a.Params) > 0 && !slices.ContainsFunc(a.Params, func(p *configv1.Action_Param) bool {
		return p.Bitwidth < 8 || hasReference(p.Annotations)
	})
}

func hasReference(annotations []string) bool {
	return slices.ContainsFunc(annotations, func(a string) bool { return len(a) > 11 && a[:11] == "@refers_to(" })
}

// entry returns a complete entry in which every key field is n and every parameter is v.
func (s shape) entry(n, v int) *v1.TableEntry {
	return &v1.TableEntry{TableId: s.table.Preamble.Id, Match: s.match(p4.CanonicalBytes(uint32(n))),
		Action: s.direct(p4.CanonicalBytes(uint32(v)))}
}

func (s shape) match(key []byte) (match []*v1.FieldMatch) {
	for _, f := range s.table.MatchFields {
		match = append(match, &v1.FieldMatch{FieldId: f.Id,
			FieldMatchType: &v1.FieldMatch_Exact_{Exact: &v1.FieldMatch_Exact{Value: key}}})
	}
	return match
}

func (s shape) direct(value []byte) *v1.TableAction {
	a := &v1.Action{ActionId: s.action.Preamble.Id}
	for _, p := range s.action.Params {
		a.Params = append(a.Params, &v1.Action_Param{ParamId: p.Id, Value: value})
	}
	return &v1.TableAction{Type: &v1.TableAction_Action{Action: a}}
}

// spoil returns entry(9, 1) after the function spoil has modified it.
func (s shape) spoil(spoil func(*v1.TableEntry)) *v1.TableEntry {
	e := s.entry(9, 1)
	spoil(e)
	return e
}

// wideBytes returns a byte string that is one byte wider than a field with the given number of bits.
func wideBytes(bits int32) []byte {
	return append([]byte{1}, make([]byte, (bits+7)/8)...)
}

func tableEntity(e *v1.TableEntry) *v1.Entity {
	return &v1.Entity{Entity: &v1.Entity_TableEntry{TableEntry: e}}
}

func groupEntity(g *v1.MulticastGroupEntry) *v1.Entity {
	return &v1.Entity{Entity: &v1.Entity_PacketReplicationEngineEntry{PacketReplicationEngineEntry: &v1.PacketReplicationEngineEntry{
		Type: &v1.PacketReplicationEngineEntry_MulticastGroupEntry{MulticastGroupEntry: g}}}}
}

func newUpdate(kind v1.Update_Type, e *v1.Entity) *v1.Update {
	return &v1.Update{Type: kind, Entity: e}
}

func insertEntry(e *v1.TableEntry) *v1.Update { return newUpdate(v1.Update_INSERT, tableEntity(e)) }
func modifyEntry(e *v1.TableEntry) *v1.Update { return newUpdate(v1.Update_MODIFY, tableEntity(e)) }
func removeEntry(e *v1.TableEntry) *v1.Update { return newUpdate(v1.Update_DELETE, tableEntity(e)) }

// sameEntries reports whether two lists contain the same entities in any order.
func sameEntries(got, want []*v1.Entity) bool {
	if len(got) != len(want) {
		return false
	}
	return !slices.ContainsFunc(want, func(w *v1.Entity) bool {
		return !slices.ContainsFunc(got, func(g *v1.Entity) bool { return proto.Equal(g, w) })
	})
}
