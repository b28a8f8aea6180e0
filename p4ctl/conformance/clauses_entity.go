package conformance

import (
	"slices"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

const (
	ofWrite     = "Write RPC"
	ofAtomicity = "Batch Atomicity"
	ofErrors    = "Error Reporting"
	ofEntry     = "TableEntry"
	ofMatch     = "Match Format"
	ofAction    = "Action Specification"
	ofDefault   = "Default Entry"
	ofBytes     = "Bytestrings"
	ofRead      = "Read RPC"
	ofWildcards = "Wildcard Reads"
	ofReadBatch = "Batch Processing"
	ofGroups    = "MulticastGroupEntry"
)

const rollback = v1.WriteRequest_ROLLBACK_ON_ERROR

var writing = []Clause{
	{"D1", ofWrite, "An unknown device is NOT_FOUND", false, func(p *probe) {
		_, err := p.client.Write(p.ctx, &v1.WriteRequest{DeviceId: p.unknownDevice()})
		p.expectStatus("write", err, codes.NotFound)
	}},
	{"D1.primary", ofWrite, "A write without the primary's election id is PERMISSION_DENIED, and has no details",
		false, func(p *probe) {
			err := p.write()
			p.expectStatus("write", err, codes.PermissionDenied)
			p.expect("no details", len(status.Convert(err).Details()) == 0, "details for an error of the whole request")
		}},
	asPrimary("D1.higher", ofWrite, "An election id above the primary's is PERMISSION_DENIED, too", func(p *probe) {
		p.id = p.next()
		p.expectStatus("write", p.write(), codes.PermissionDenied)
	}),
	onEmpty("D3", ofErrors, "A failed update makes the batch UNKNOWN, with one p4.v1.Error per update in their order, "+
		"that of a success empty", func(p *probe) {
		p.expectUpdates("insert", p.write(insertEntry(p.shape.entry(1, 1))), codes.OK)
		err := p.write(insertEntry(p.shape.entry(1, 1)), insertEntry(p.shape.entry(2, 2)), removeEntry(p.shape.entry(3, 3)))
		p.expectUpdates("a batch of three", err, codes.AlreadyExists, codes.OK, codes.NotFound)
		if d := status.Convert(err).Details(); len(d) == 3 {
			e, _ := d[1].(*v1.Error)
			p.expect("the success says nothing else", e.GetMessage() == "" && e.GetSpace() == "", "the success says "+
				e.GetMessage())
		}
	}),
	onEmpty("D3.one", ofErrors, "So does a batch of one", func(p *probe) {
		p.expectUpdates("delete of nothing", p.write(removeEntry(p.shape.entry(1, 1))), codes.NotFound)
	}),
	onEmpty("D4", ofErrors, "The details of 100 failed updates reach a "+
		"client whose headers hold 8 KB, and every code is there", func(p *probe) {
		batch := make([]*v1.Update, 100)
		want := make([]codes.Code, len(batch))
		for i := range batch {
			batch[i], want[i] = removeEntry(p.shape.entry(i, 1)), codes.NotFound
		}
		err := p.write(batch...)
		wire, _ := proto.Marshal(status.Convert(err).Proto())
		p.expect(countNoun(len(wire), "byte", "bytes"), len(wire)*4/3 <= 8192, countNoun(len(wire), "byte", "bytes")+
			" are above 8 KB as text")
		st := status.Convert(err)
		found := 0
		for _, d := range st.Details() {
			if e, ok := d.(*v1.Error); ok && e.CanonicalCode == int32(codes.NotFound) {
				found++
			}
		}
		p.expect(countNoun(found, "code", "codes"), found == len(want), countNoun(found, "code", "codes")+" of 100")
	}),
	onEmpty("D5", ofAtomicity, "CONTINUE_ON_ERROR tries every update", func(p *probe) {
		p.expectUpdates("a bad one first", p.write(removeEntry(p.shape.entry(3, 3)), insertEntry(p.shape.entry(1, 1)),
			insertEntry(p.shape.entry(2, 2))), codes.NotFound, codes.OK, codes.OK)
		p.expectEntries(2)
	}),
	onEmpty("D5.unknown", ofAtomicity, "An atomicity that is not offered is UNIMPLEMENTED, and nothing is done",
		func(p *probe) {
			p.expectStatus("write", p.writeAs(9, insertEntry(p.shape.entry(1, 1))), codes.Unimplemented, codes.InvalidArgument)
			p.expectEntries(0)
		}),
	onEmpty("D6", ofAtomicity,
		"After a batch of ROLLBACK_ON_ERROR that failed a read shows what was there before it", func(p *probe) {
			p.expectUpdates("insert", p.write(insertEntry(p.shape.entry(1, 1)), insertEntry(p.shape.entry(2, 2))), codes.OK)
			before := p.table()
			err := p.writeAs(rollback, insertEntry(p.shape.entry(3, 3)), modifyEntry(p.shape.entry(1, 9)),
				removeEntry(p.shape.entry(2, 2)), insertEntry(p.shape.entry(3, 3)))
			if codeOf(err) == codes.Unimplemented {
				p.skip("rollback: UNIMPLEMENTED")
				return
			}
			p.expectStatus("batch", err, codes.Unknown)
			p.expect("the table is as before", sameEntries(p.table(), before), "the table is another one")
		}),
	onEmpty("D9", ofWrite, "INSERT of what is there is ALREADY_EXISTS and leaves it", func(p *probe) {
		p.expectUpdates("insert", p.write(insertEntry(p.shape.entry(1, 1))), codes.OK)
		p.expectUpdates("again", p.write(insertEntry(p.shape.entry(1, 2))), codes.AlreadyExists)
		p.expect("the old entry", sameEntries(p.table(), []*v1.Entity{tableEntity(p.shape.entry(1, 1))}),
			"another entry: "+formatEntities(p.table()))
	}),
	onEmpty("D9.absent", ofWrite, "MODIFY and DELETE of what is not there are NOT_FOUND", func(p *probe) {
		p.expectUpdates("modify", p.write(modifyEntry(p.shape.entry(1, 1))), codes.NotFound)
		p.expectUpdates("delete", p.write(removeEntry(p.shape.entry(1, 1))), codes.NotFound)
	}),
	onEmpty("D10", ofWrite, "MODIFY replaces the whole entry", func(p *probe) {
		marked := p.shape.entry(1, 1)
		marked.Metadata = []byte("m")
		p.expectUpdates("insert with metadata", p.write(insertEntry(marked)), codes.OK)
		p.expectUpdates("modify without", p.write(modifyEntry(p.shape.entry(1, 2))), codes.OK)
		p.expect("the new entry", sameEntries(p.table(), []*v1.Entity{tableEntity(p.shape.entry(1, 2))}),
			"another entry: "+formatEntities(p.table()))
	}),
	onEmpty("D10.delete", ofWrite, "DELETE looks at the key only", func(p *probe) {
		p.expectUpdates("insert", p.write(insertEntry(p.shape.entry(1, 1))), codes.OK)
		p.expectUpdates("delete with other parameters and metadata",
			p.write(removeEntry(p.shape.spoil(func(e *v1.TableEntry) {
				e.Match, e.Metadata = p.shape.entry(1, 1).Match, []byte("m")
			}))), codes.OK)
		p.expectEntries(0)
	}),
	onEmpty("D11", ofWrite, "An entry beyond a table's size is RESOURCE_EXHAUSTED", func(p *probe) {
		small := p.changedConfig(func(c *v1.ForwardingPipelineConfig) {
			at := slices.IndexFunc(c.P4Info.Tables,
				func(t *configv1.Table) bool { return t.Preamble.Id == p.shape.table.Preamble.Id })
			c.P4Info.Tables[at].Size = 2
		})
		if p.setPipeline(push, small) != nil {
			p.skip("a smaller table is refused")
			return
		}
		p.expectUpdates("three into two", p.write(insertEntry(p.shape.entry(1, 1)), insertEntry(p.shape.entry(2, 2)),
			insertEntry(p.shape.entry(3, 3))), codes.OK, codes.OK, codes.ResourceExhausted)
	}),
	onEmpty("D12", ofWrite, "An update without a type is refused", func(p *probe) {
		err := p.write(newUpdate(v1.Update_UNSPECIFIED, tableEntity(p.shape.entry(1, 1))))
		p.expectStatus("batch", err, codes.Unknown, codes.InvalidArgument, codes.Unimplemented)
		p.expectEntries(0)
	}),
	onEmpty("D12.entity", ofWrite, "An update without an entity is INVALID_ARGUMENT", func(p *probe) {
		p.expectUpdates("update", p.write(newUpdate(v1.Update_INSERT, &v1.Entity{})), codes.InvalidArgument)
	}),
	onEmpty("D12.id", ofWrite, "Table 0 can't be written", func(p *probe) {
		p.expectUpdates("insert", p.write(insertEntry(&v1.TableEntry{})), codes.InvalidArgument)
	}),
}

// entries lists the clauses about an entry with a single fault.
var entries = []Clause{
	refusedClause("E1", ofEntry, "An unknown table is INVALID_ARGUMENT",
		func(_ shape, e *v1.TableEntry) { e.TableId ^= 0x00ffff00 }),
	refusedClause("E1.field", ofMatch, "An unknown match field is INVALID_ARGUMENT",
		func(_ shape, e *v1.TableEntry) { e.Match[0].FieldId += 1000 }),
	refusedClause("E1.action", ofAction, "An unknown action is INVALID_ARGUMENT",
		func(_ shape, e *v1.TableEntry) { e.Action.GetAction().ActionId ^= 0x00ffff00 }),
	refusedClause("E1.parameter", ofAction, "An unknown parameter is INVALID_ARGUMENT",
		func(_ shape, e *v1.TableEntry) { e.Action.GetAction().Params[0].ParamId += 1000 }),
	refusedClause("E2", ofEntry, "An INSERT without an action is INVALID_ARGUMENT",
		func(_ shape, e *v1.TableEntry) { e.Action = nil }),
	onEmpty("E2.kept", ofEntry, "A MODIFY without an action keeps the one that is there", func(p *probe) {
		p.expectUpdates("insert", p.write(insertEntry(p.shape.entry(1, 1))), codes.OK)
		bare := p.shape.entry(1, 1)
		bare.Action, bare.Metadata = nil, []byte("m")
		p.expectUpdates("modify", p.write(modifyEntry(bare)), codes.OK)
		want := p.shape.entry(1, 1)
		want.Metadata = bare.Metadata
		p.expect("the action is there", sameEntries(p.table(), []*v1.Entity{tableEntity(want)}), "another entry: "+
			formatEntities(p.table()))
	}),
	refusedClause("E3", ofAction, "A missing parameter is INVALID_ARGUMENT",
		func(_ shape, e *v1.TableEntry) { e.Action.GetAction().Params = e.Action.GetAction().Params[1:] }),
	refusedClause("E3.twice", ofAction, "A parameter twice is INVALID_ARGUMENT", func(_ shape, e *v1.TableEntry) {
		a := e.Action.GetAction()
		a.Params = append(a.Params, a.Params[0])
	}),
	refusedClause("E4", ofEntry, "A written entry can't be constant: INVALID_ARGUMENT",
		func(_ shape, e *v1.TableEntry) { e.IsConst = true }),
	refusedClause("E5", ofEntry, "A priority in a table with exact keys only is INVALID_ARGUMENT",
		func(_ shape, e *v1.TableEntry) { e.Priority = 1 }),
	refusedClause("E6", ofMatch, "An exact field can't be left out: INVALID_ARGUMENT",
		func(_ shape, e *v1.TableEntry) { e.Match = e.Match[1:] }),
	refusedClause("E6.kind", ofMatch, "Another kind of match in an exact field is INVALID_ARGUMENT",
		func(_ shape, e *v1.TableEntry) {
			e.Match[0].FieldMatchType = &v1.FieldMatch_Ternary_{Ternary: &v1.FieldMatch_Ternary{Value: []byte{1},
				Mask: []byte{1}}}
		}),
	refusedClause("E8", ofMatch, "A field twice is INVALID_ARGUMENT",
		func(_ shape, e *v1.TableEntry) { e.Match = append(e.Match, e.Match[0]) }),
	refusedClause("E8.unset", ofMatch, "A match without a value is INVALID_ARGUMENT",
		func(_ shape, e *v1.TableEntry) { e.Match[0].FieldMatchType = nil }),
	onEmpty("E10", ofDefault, "A default entry can't be inserted or deleted: INVALID_ARGUMENT", func(p *probe) {
		e := p.shape.entry(1, 1)
		e.Match, e.IsDefaultAction = nil, true
		p.expectUpdates("insert", p.write(insertEntry(e)), codes.InvalidArgument)
		p.expectUpdates("delete", p.write(removeEntry(e)), codes.InvalidArgument)
	}),
	onEmpty("E10.key", ofDefault, "A default entry has no key: INVALID_ARGUMENT", func(p *probe) {
		e := p.shape.entry(1, 1)
		e.IsDefaultAction = true
		p.expectUpdates("modify", p.write(modifyEntry(e)), codes.InvalidArgument)
	}),
	{"E10.constant", ofDefault, "A constant default can't be changed: PERMISSION_DENIED", true, func(p *probe) {
		if p.shape.table.ConstDefaultActionId == 0 {
			p.skip("the table's default is not constant")
			return
		}
		if p.leadEmpty(); p.isOver() {
			return
		}
		e := p.shape.entry(1, 1)
		e.Match, e.IsDefaultAction = nil, true
		p.expectUpdates("modify", p.write(modifyEntry(e)), codes.PermissionDenied)
	}},
	onEmpty("E13", ofEntry, "Metadata comes back unchanged", func(p *probe) {
		e := p.shape.entry(1, 1)
		e.Metadata = []byte{0, 255}
		p.expectUpdates("insert", p.write(insertEntry(e)), codes.OK)
		p.expect("the same metadata", sameEntries(p.table(), []*v1.Entity{tableEntity(e)}), "another entry: "+
			formatEntities(p.table()))
	}),
	refusedClause("E14", "Idle-timeout", "A timeout in a table that supports none is INVALID_ARGUMENT",
		func(s shape, e *v1.TableEntry) { e.IdleTimeoutNs = 1 }),
	refusedClause("E15", ofAction, "A member of a profile in a table without one is INVALID_ARGUMENT",
		func(_ shape, e *v1.TableEntry) {
			e.Action = &v1.TableAction{Type: &v1.TableAction_ActionProfileMemberId{ActionProfileMemberId: 1}}
		}),
	refusedClause("H5", "Direct Resources", "The data of a direct counter that the table has not is INVALID_ARGUMENT",
		func(_ shape, e *v1.TableEntry) { e.CounterData = &v1.CounterData{} }),
}

// refusedClause returns a clause about an entry with a single fault. Inserting the entry must return INVALID_ARGUMENT
// and add nothing.
func refusedClause(id, section, sentence string, spoil func(shape, *v1.TableEntry)) Clause {
	return onEmpty(id, section, sentence, func(p *probe) {
		p.expectUpdates("insert", p.write(insertEntry(p.shape.spoil(func(e *v1.TableEntry) { spoil(p.shape, e) }))),
			codes.InvalidArgument)
		p.expectEntries(0)
	})
}

var byteStrings = []Clause{
	onEmpty("F1", ofBytes, "Leading zeros are accepted, and what comes back is the shortest form", func(p *probe) {
		long := p.shape.entry(1, 0)
		for _, m := range long.Match {
			m.GetExact().Value = []byte{0, 0, 0, 1}
		}
		for _, a := range long.Action.GetAction().Params {
			a.Value = []byte{0, 0}
		}
		p.expectUpdates("insert", p.write(insertEntry(long)), codes.OK)
		p.expect("the shortest form", sameEntries(p.table(), []*v1.Entity{tableEntity(p.shape.entry(1, 0))}),
			"another form: "+formatEntities(p.table()))
	}),
	refusedClause("F2", ofBytes, "An empty byte string as a key is INVALID_ARGUMENT",
		func(_ shape, e *v1.TableEntry) { e.Match[0].GetExact().Value = nil }),
	refusedClause("F2.parameter", ofBytes, "An empty byte string as a parameter is INVALID_ARGUMENT",
		func(_ shape, e *v1.TableEntry) { e.Action.GetAction().Params[0].Value = nil }),
	wideClause("F3", "A key wider than its field is refused, by the one or the other of two codes",
		func(s shape, e *v1.TableEntry) {
			e.Match[0].GetExact().Value = wideBytes(s.table.MatchFields[0].Bitwidth)
		}),
	wideClause("F3.parameter", "A parameter wider than declared is refused, by the one or the other of two codes",
		func(s shape, e *v1.TableEntry) {
			e.Action.GetAction().Params[0].Value = wideBytes(s.action.Params[0].Bitwidth)
		}),
}

// wideClause returns a clause about a value that is too wide. It accepts OUT_OF_RANGE, as the section on byte strings
// requires, and INVALID_ARGUMENT, as the other sections require.
func wideClause(id, sentence string, spoil func(shape, *v1.TableEntry)) Clause {
	return onEmpty(id, ofBytes, sentence, func(p *probe) {
		err := p.write(insertEntry(p.shape.spoil(func(e *v1.TableEntry) { spoil(p.shape, e) })))
		p.expectStatus("batch", err, codes.Unknown)
		if d := status.Convert(err).Details(); len(d) == 1 {
			e, _ := d[0].(*v1.Error)
			p.expectCode("insert", codes.Code(e.GetCanonicalCode()), []codes.Code{codes.InvalidArgument, codes.OutOfRange})
		}
		p.expectEntries(0)
	})
}

// fill inserts three entries with the keys 1 to 3. The first has metadata.
func (p *probe) fill() (all []*v1.Entity) {
	if p.leadEmpty(); p.isOver() {
		return nil
	}
	var batch []*v1.Update
	for n := 1; n <= 3; n++ {
		e := p.shape.entry(n, n)
		if n == 1 {
			e.Metadata = []byte("m")
		}
		batch = append(batch, insertEntry(e))
		all = append(all, tableEntity(e))
	}
	p.expectUpdates("insert", p.write(batch...), codes.OK)
	return all
}

// readClause returns a clause about the result of reading three entries with a filter.
func readClause(id, sentence string, filter func(s shape, e *v1.TableEntry),
	want func(all []*v1.Entity) []*v1.Entity) Clause {
	return Clause{id, ofWildcards, sentence, true, func(p *probe) {
		all := p.fill()
		if p.isOver() {
			return
		}
		e := &v1.TableEntry{TableId: p.shape.table.Preamble.Id}
		filter(p.shape, e)
		p.expectRead("read", want(all), tableEntity(e))
	}}
}

func selectNone([]*v1.Entity) []*v1.Entity      { return nil }
func selectFirst(all []*v1.Entity) []*v1.Entity { return all[:1] }
func selectAll(all []*v1.Entity) []*v1.Entity   { return all }

var reading = []Clause{
	{"G1", ofRead, "An unknown device is NOT_FOUND", false, func(p *probe) {
		_, err := p.readOf(p.unknownDevice(), tableEntity(&v1.TableEntry{}))
		p.expectStatus("read", err, codes.NotFound)
	}},
	readClause("G3", "A table without further filters gives all its entries", func(shape, *v1.TableEntry) {}, selectAll),
	readClause("G3.all", "Table 0 gives the entries of all tables",
		func(_ shape, e *v1.TableEntry) { e.TableId = 0 }, selectAll),
	readClause("G3.key", "A whole key gives its entry", func(s shape, e *v1.TableEntry) {
		e.Match = s.entry(1,
			1).Match
	}, selectFirst),
	readClause("G3.action", "An action gives the entries that have it", func(s shape, e *v1.TableEntry) {
		e.Action = &v1.TableAction{Type: &v1.TableAction_Action{Action: &v1.Action{ActionId: s.action.Preamble.Id}}}
	}, selectAll),
	readClause("G3.metadata", "Metadata gives the entries that have it",
		func(_ shape, e *v1.TableEntry) { e.Metadata = []byte("m") }, selectFirst),
	readClause("G6", "A whole key that is absent gives nothing, and no error",
		func(s shape, e *v1.TableEntry) { e.Match = s.entry(77, 1).Match }, selectNone),
	{"G3.default", ofWildcards, "Asking for the default entry gives it alone", true, func(p *probe) {
		if p.fill(); p.isOver() {
			return
		}
		got, err := p.read(tableEntity(&v1.TableEntry{TableId: p.shape.table.Preamble.Id, IsDefaultAction: true}))
		p.expectStatus("read", err, codes.OK)
		alone := len(got) <= 1 && !slices.ContainsFunc(got,
			func(e *v1.Entity) bool { return !e.GetTableEntry().GetIsDefaultAction() })
		p.expect("defaults only", alone, "other entries: "+formatEntities(got))
	}},
	{"G3.filter", ofWildcards, "Table 0 can't be combined with another filter", true, func(p *probe) {
		if p.fill(); p.isOver() {
			return
		}
		_, err := p.read(tableEntity(&v1.TableEntry{IsDefaultAction: true}))
		p.expectUpdates("defaults of all tables", err, codes.InvalidArgument)
	}},
	{"G7", ofReadBatch, "A bad element beside good ones: these are given, " +
		"and then UNKNOWN with one p4.v1.Error per element", true, func(p *probe) {
		all := p.fill()
		if p.isOver() {
			return
		}
		got, err := p.read(&v1.Entity{}, tableEntity(&v1.TableEntry{TableId: p.shape.table.Preamble.Id}))
		p.expectUpdates("nothing, and a table", err, codes.InvalidArgument, codes.OK)
		p.expect("the table is given", sameEntries(got, all), "another answer: "+formatEntities(got))
	}},
	{"G8", ofReadBatch, "A request that asks for everything that there can be succeeds", true, func(p *probe) {
		if p.fill(); p.isOver() {
			return
		}
		_, err := p.read(readEverything()...)
		p.expectStatus("read", err, codes.OK)
	}},
	{"G9", ofRead, "A read without any element gives nothing", false, func(p *probe) {
		got, err := p.read()
		p.expectStatus("read", err, codes.OK, codes.FailedPrecondition)
		p.expect("nothing", len(got) == 0, "something: "+formatEntities(got))
	}},
}

// readEverything returns the request in the specification's example, which contains a wildcard for every kind of
// entity.
func readEverything() []*v1.Entity {
	return []*v1.Entity{
		{Entity: &v1.Entity_ExternEntry{ExternEntry: &v1.ExternEntry{}}},
		tableEntity(&v1.TableEntry{}),
		{Entity: &v1.Entity_ActionProfileMember{ActionProfileMember: &v1.ActionProfileMember{}}},
		{Entity: &v1.Entity_ActionProfileGroup{ActionProfileGroup: &v1.ActionProfileGroup{}}},
		{Entity: &v1.Entity_MeterEntry{MeterEntry: &v1.MeterEntry{}}},
		{Entity: &v1.Entity_DirectMeterEntry{DirectMeterEntry: &v1.DirectMeterEntry{}}},
		{Entity: &v1.Entity_CounterEntry{CounterEntry: &v1.CounterEntry{}}},
		{Entity: &v1.Entity_DirectCounterEntry{DirectCounterEntry: &v1.DirectCounterEntry{}}},
		groupEntity(&v1.MulticastGroupEntry{}),
		{Entity: &v1.Entity_ValueSetEntry{ValueSetEntry: &v1.ValueSetEntry{}}},
		{Entity: &v1.Entity_RegisterEntry{RegisterEntry: &v1.RegisterEntry{}}},
		{Entity: &v1.Entity_DigestEntry{DigestEntry: &v1.DigestEntry{}}},
	}
}

func newReplica(n byte) *v1.Replica {
	return &v1.Replica{PortKind: &v1.Replica_Port{Port: []byte{n}}, Instance: uint32(n)}
}

// newOldReplica returns a replica whose port is in the field that older clients use.
func newOldReplica(n uint32) *v1.Replica {
	//lint:ignore SA1019 a server must take the field as long as clients fill it
	return &v1.Replica{PortKind: &v1.Replica_EgressPort{EgressPort: n}, Instance: n}
}

// groupClause returns a clause about multicast groups. It is skipped if the server does not support them.
func groupClause(id, sentence string, try func(p *probe)) Clause {
	return onEmpty(id, ofGroups, sentence, func(p *probe) {
		err := p.write(newUpdate(v1.Update_INSERT, groupEntity(&v1.MulticastGroupEntry{MulticastGroupId: 9,
			Replicas: []*v1.Replica{newReplica(1)}})))
		if d := status.Convert(err).Details(); len(d) == 1 {
			if e, _ := d[0].(*v1.Error); codes.Code(e.GetCanonicalCode()) == codes.Unimplemented {
				p.skip("multicast groups: UNIMPLEMENTED")
				return
			}
		}
		p.expectUpdates("group 9", err, codes.OK)
		try(p)
	})
}

func (p *probe) writeGroup(kind v1.Update_Type, id uint32, replicas ...*v1.Replica) error {
	return p.write(newUpdate(kind, groupEntity(&v1.MulticastGroupEntry{MulticastGroupId: id, Replicas: replicas})))
}

var replication = []Clause{
	groupClause("I1", "Group 0 can't be written: INVALID_ARGUMENT", func(p *probe) {
		p.expectUpdates("insert", p.writeGroup(v1.Update_INSERT, 0, newReplica(1)), codes.InvalidArgument)
	}),
	groupClause("I1.all", "Group 0 reads all groups, another id that group alone", func(p *probe) {
		p.expectUpdates("group 8", p.writeGroup(v1.Update_INSERT, 8, newReplica(2)), codes.OK)
		eight := groupEntity(&v1.MulticastGroupEntry{MulticastGroupId: 8, Replicas: []*v1.Replica{newReplica(2)}})
		nine := groupEntity(&v1.MulticastGroupEntry{MulticastGroupId: 9, Replicas: []*v1.Replica{newReplica(1)}})
		p.expectRead("all", []*v1.Entity{eight, nine}, groupEntity(&v1.MulticastGroupEntry{}))
		p.expectRead("one", []*v1.Entity{eight}, groupEntity(&v1.MulticastGroupEntry{MulticastGroupId: 8}))
	}),
	groupClause("I2", "The same port and instance twice in a group is INVALID_ARGUMENT", func(p *probe) {
		p.expectUpdates("insert", p.writeGroup(v1.Update_INSERT, 8, newReplica(1), newReplica(1)), codes.InvalidArgument)
	}),
	groupClause("I2.kinds", "INSERT of a group that is there is ALREADY_EXISTS, MODIFY and DELETE of one that is not "+
		"are NOT_FOUND", func(p *probe) {
		p.expectUpdates("insert", p.writeGroup(v1.Update_INSERT, 9, newReplica(1)), codes.AlreadyExists)
		p.expectUpdates("modify", p.writeGroup(v1.Update_MODIFY, 8, newReplica(1)), codes.NotFound)
		p.expectUpdates("delete", p.writeGroup(v1.Update_DELETE, 8), codes.NotFound)
		p.expectUpdates("delete of 9 by its id", p.writeGroup(v1.Update_DELETE, 9), codes.OK)
	}),
	groupClause("I4", "The port comes back in the field in which it was written, the deprecated one too", func(p *probe) {
		p.expectUpdates("group 8 by egress_port", p.writeGroup(v1.Update_INSERT, 8, newOldReplica(3)), codes.OK)
		p.expectRead("read", []*v1.Entity{
			groupEntity(&v1.MulticastGroupEntry{MulticastGroupId: 8, Replicas: []*v1.Replica{newOldReplica(3)}}),
			groupEntity(&v1.MulticastGroupEntry{MulticastGroupId: 9, Replicas: []*v1.Replica{newReplica(1)}}),
		}, groupEntity(&v1.MulticastGroupEntry{}))
	}),
}
