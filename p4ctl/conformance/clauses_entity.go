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
		_, err := p.client.Write(p.ctx, &v1.WriteRequest{DeviceId: p.stranger()})
		p.code("write", err, codes.NotFound)
	}},
	{"D1.primary", ofWrite, "A write without the primary's election id is PERMISSION_DENIED, and has no details", false, func(p *probe) {
		err := p.write()
		p.code("write", err, codes.PermissionDenied)
		p.holds("no details", len(status.Convert(err).Details()) == 0, "details for an error of the whole request")
	}},
	asPrimary("D1.higher", ofWrite, "An election id above the primary's is PERMISSION_DENIED, too", func(p *probe) {
		p.id = p.next()
		p.code("write", p.write(), codes.PermissionDenied)
	}),
	onEmpty("D3", ofErrors, "A failed update makes the batch UNKNOWN, with one p4.v1.Error per update in their order, that of a success empty", func(p *probe) {
		p.updates("insert", p.write(insert(p.shape.entry(1, 1))), codes.OK)
		err := p.write(insert(p.shape.entry(1, 1)), insert(p.shape.entry(2, 2)), remove(p.shape.entry(3, 3)))
		p.updates("a batch of three", err, codes.AlreadyExists, codes.OK, codes.NotFound)
		if d := status.Convert(err).Details(); len(d) == 3 {
			e, _ := d[1].(*v1.Error)
			p.holds("the success says nothing else", e.GetMessage() == "" && e.GetSpace() == "", "the success says "+e.GetMessage())
		}
	}),
	onEmpty("D3.one", ofErrors, "So does a batch of one", func(p *probe) {
		p.updates("delete of nothing", p.write(remove(p.shape.entry(1, 1))), codes.NotFound)
	}),
	onEmpty("D4", ofErrors, "The details of 100 failed updates reach a client whose headers hold 8 KB, and every code is there", func(p *probe) {
		batch := make([]*v1.Update, 100)
		want := make([]codes.Code, len(batch))
		for i := range batch {
			batch[i], want[i] = remove(p.shape.entry(i, 1)), codes.NotFound
		}
		err := p.write(batch...)
		wire, _ := proto.Marshal(status.Convert(err).Proto())
		p.holds(plural(len(wire), "byte", "bytes"), len(wire)*4/3 <= 8192, plural(len(wire), "byte", "bytes")+" are above 8 KB as text")
		st := status.Convert(err)
		found := 0
		for _, d := range st.Details() {
			if e, ok := d.(*v1.Error); ok && e.CanonicalCode == int32(codes.NotFound) {
				found++
			}
		}
		p.holds(plural(found, "code", "codes"), found == len(want), plural(found, "code", "codes")+" of 100")
	}),
	onEmpty("D5", ofAtomicity, "CONTINUE_ON_ERROR tries every update", func(p *probe) {
		p.updates("a bad one first", p.write(remove(p.shape.entry(3, 3)), insert(p.shape.entry(1, 1)), insert(p.shape.entry(2, 2))), codes.NotFound, codes.OK, codes.OK)
		p.left(2)
	}),
	onEmpty("D5.unknown", ofAtomicity, "An atomicity that is not offered is UNIMPLEMENTED, and nothing is done", func(p *probe) {
		p.code("write", p.writeAs(9, insert(p.shape.entry(1, 1))), codes.Unimplemented, codes.InvalidArgument)
		p.left(0)
	}),
	onEmpty("D6", ofAtomicity, "After a batch of ROLLBACK_ON_ERROR that failed a read shows what was there before it", func(p *probe) {
		p.updates("insert", p.write(insert(p.shape.entry(1, 1)), insert(p.shape.entry(2, 2))), codes.OK)
		before := p.table()
		err := p.writeAs(rollback, insert(p.shape.entry(3, 3)), modify(p.shape.entry(1, 9)), remove(p.shape.entry(2, 2)), insert(p.shape.entry(3, 3)))
		if codeOf(err) == codes.Unimplemented {
			p.skip("rollback: UNIMPLEMENTED")
			return
		}
		p.code("batch", err, codes.Unknown)
		p.holds("the table is as before", sameEntries(p.table(), before), "the table is another one")
	}),
	onEmpty("D9", ofWrite, "INSERT of what is there is ALREADY_EXISTS and leaves it", func(p *probe) {
		p.updates("insert", p.write(insert(p.shape.entry(1, 1))), codes.OK)
		p.updates("again", p.write(insert(p.shape.entry(1, 2))), codes.AlreadyExists)
		p.holds("the old entry", sameEntries(p.table(), []*v1.Entity{ofTable(p.shape.entry(1, 1))}), "another entry: "+brief(p.table()))
	}),
	onEmpty("D9.absent", ofWrite, "MODIFY and DELETE of what is not there are NOT_FOUND", func(p *probe) {
		p.updates("modify", p.write(modify(p.shape.entry(1, 1))), codes.NotFound)
		p.updates("delete", p.write(remove(p.shape.entry(1, 1))), codes.NotFound)
	}),
	onEmpty("D10", ofWrite, "MODIFY replaces the whole entry", func(p *probe) {
		marked := p.shape.entry(1, 1)
		marked.Metadata = []byte("m")
		p.updates("insert with metadata", p.write(insert(marked)), codes.OK)
		p.updates("modify without", p.write(modify(p.shape.entry(1, 2))), codes.OK)
		p.holds("the new entry", sameEntries(p.table(), []*v1.Entity{ofTable(p.shape.entry(1, 2))}), "another entry: "+brief(p.table()))
	}),
	onEmpty("D10.delete", ofWrite, "DELETE looks at the key only", func(p *probe) {
		p.updates("insert", p.write(insert(p.shape.entry(1, 1))), codes.OK)
		p.updates("delete with other parameters and metadata", p.write(remove(p.shape.spoiled(func(e *v1.TableEntry) {
			e.Match, e.Metadata = p.shape.entry(1, 1).Match, []byte("m")
		}))), codes.OK)
		p.left(0)
	}),
	onEmpty("D11", ofWrite, "An entry beyond a table's size is RESOURCE_EXHAUSTED", func(p *probe) {
		small := p.with(func(c *v1.ForwardingPipelineConfig) {
			at := slices.IndexFunc(c.P4Info.Tables, func(t *configv1.Table) bool { return t.Preamble.Id == p.shape.table.Preamble.Id })
			c.P4Info.Tables[at].Size = 2
		})
		if p.set(push, small) != nil {
			p.skip("a smaller table is refused")
			return
		}
		p.updates("three into two", p.write(insert(p.shape.entry(1, 1)), insert(p.shape.entry(2, 2)), insert(p.shape.entry(3, 3))), codes.OK, codes.OK, codes.ResourceExhausted)
	}),
	onEmpty("D12", ofWrite, "An update without a type is refused", func(p *probe) {
		err := p.write(update(v1.Update_UNSPECIFIED, ofTable(p.shape.entry(1, 1))))
		p.code("batch", err, codes.Unknown, codes.InvalidArgument, codes.Unimplemented)
		p.left(0)
	}),
	onEmpty("D12.entity", ofWrite, "An update without an entity is INVALID_ARGUMENT", func(p *probe) {
		p.updates("update", p.write(update(v1.Update_INSERT, &v1.Entity{})), codes.InvalidArgument)
	}),
	onEmpty("D12.id", ofWrite, "Table 0 can't be written", func(p *probe) {
		p.updates("insert", p.write(insert(&v1.TableEntry{})), codes.InvalidArgument)
	}),
}

// entries are clauses about one entry with one fault.
var entries = []Clause{
	refused("E1", ofEntry, "An unknown table is INVALID_ARGUMENT", func(_ shape, e *v1.TableEntry) { e.TableId ^= 0x00ffff00 }),
	refused("E1.field", ofMatch, "An unknown match field is INVALID_ARGUMENT", func(_ shape, e *v1.TableEntry) { e.Match[0].FieldId += 1000 }),
	refused("E1.action", ofAction, "An unknown action is INVALID_ARGUMENT", func(_ shape, e *v1.TableEntry) { e.Action.GetAction().ActionId ^= 0x00ffff00 }),
	refused("E1.parameter", ofAction, "An unknown parameter is INVALID_ARGUMENT", func(_ shape, e *v1.TableEntry) { e.Action.GetAction().Params[0].ParamId += 1000 }),
	refused("E2", ofEntry, "An INSERT without an action is INVALID_ARGUMENT", func(_ shape, e *v1.TableEntry) { e.Action = nil }),
	onEmpty("E2.kept", ofEntry, "A MODIFY without an action keeps the one that is there", func(p *probe) {
		p.updates("insert", p.write(insert(p.shape.entry(1, 1))), codes.OK)
		bare := p.shape.entry(1, 1)
		bare.Action, bare.Metadata = nil, []byte("m")
		p.updates("modify", p.write(modify(bare)), codes.OK)
		want := p.shape.entry(1, 1)
		want.Metadata = bare.Metadata
		p.holds("the action is there", sameEntries(p.table(), []*v1.Entity{ofTable(want)}), "another entry: "+brief(p.table()))
	}),
	refused("E3", ofAction, "A missing parameter is INVALID_ARGUMENT", func(_ shape, e *v1.TableEntry) { e.Action.GetAction().Params = e.Action.GetAction().Params[1:] }),
	refused("E3.twice", ofAction, "A parameter twice is INVALID_ARGUMENT", func(_ shape, e *v1.TableEntry) {
		a := e.Action.GetAction()
		a.Params = append(a.Params, a.Params[0])
	}),
	refused("E4", ofEntry, "A written entry can't be constant: INVALID_ARGUMENT", func(_ shape, e *v1.TableEntry) { e.IsConst = true }),
	refused("E5", ofEntry, "A priority in a table with exact keys only is INVALID_ARGUMENT", func(_ shape, e *v1.TableEntry) { e.Priority = 1 }),
	refused("E6", ofMatch, "An exact field can't be left out: INVALID_ARGUMENT", func(_ shape, e *v1.TableEntry) { e.Match = e.Match[1:] }),
	refused("E6.kind", ofMatch, "Another kind of match in an exact field is INVALID_ARGUMENT", func(_ shape, e *v1.TableEntry) {
		e.Match[0].FieldMatchType = &v1.FieldMatch_Ternary_{Ternary: &v1.FieldMatch_Ternary{Value: []byte{1}, Mask: []byte{1}}}
	}),
	refused("E8", ofMatch, "A field twice is INVALID_ARGUMENT", func(_ shape, e *v1.TableEntry) { e.Match = append(e.Match, e.Match[0]) }),
	refused("E8.unset", ofMatch, "A match without a value is INVALID_ARGUMENT", func(_ shape, e *v1.TableEntry) { e.Match[0].FieldMatchType = nil }),
	onEmpty("E10", ofDefault, "A default entry can't be inserted or deleted: INVALID_ARGUMENT", func(p *probe) {
		e := p.shape.entry(1, 1)
		e.Match, e.IsDefaultAction = nil, true
		p.updates("insert", p.write(insert(e)), codes.InvalidArgument)
		p.updates("delete", p.write(remove(e)), codes.InvalidArgument)
	}),
	onEmpty("E10.key", ofDefault, "A default entry has no key: INVALID_ARGUMENT", func(p *probe) {
		e := p.shape.entry(1, 1)
		e.IsDefaultAction = true
		p.updates("modify", p.write(modify(e)), codes.InvalidArgument)
	}),
	{"E10.constant", ofDefault, "A constant default can't be changed: PERMISSION_DENIED", true, func(p *probe) {
		if p.shape.table.ConstDefaultActionId == 0 {
			p.skip("the table's default is not constant")
			return
		}
		if p.fresh(); p.over() {
			return
		}
		e := p.shape.entry(1, 1)
		e.Match, e.IsDefaultAction = nil, true
		p.updates("modify", p.write(modify(e)), codes.PermissionDenied)
	}},
	onEmpty("E13", ofEntry, "Metadata comes back unchanged", func(p *probe) {
		e := p.shape.entry(1, 1)
		e.Metadata = []byte{0, 255}
		p.updates("insert", p.write(insert(e)), codes.OK)
		p.holds("the same metadata", sameEntries(p.table(), []*v1.Entity{ofTable(e)}), "another entry: "+brief(p.table()))
	}),
	refused("E14", "Idle-timeout", "A timeout in a table that supports none is INVALID_ARGUMENT", func(s shape, e *v1.TableEntry) { e.IdleTimeoutNs = 1 }),
	refused("E15", ofAction, "A member of a profile in a table without one is INVALID_ARGUMENT", func(_ shape, e *v1.TableEntry) {
		e.Action = &v1.TableAction{Type: &v1.TableAction_ActionProfileMemberId{ActionProfileMemberId: 1}}
	}),
	refused("H5", "Direct Resources", "The data of a direct counter that the table has not is INVALID_ARGUMENT", func(_ shape, e *v1.TableEntry) { e.CounterData = &v1.CounterData{} }),
}

// refused returns a clause about an entry with one fault: INSERT is INVALID_ARGUMENT and adds nothing.
func refused(id, section, sentence string, spoil func(shape, *v1.TableEntry)) Clause {
	return onEmpty(id, section, sentence, func(p *probe) {
		p.updates("insert", p.write(insert(p.shape.spoiled(func(e *v1.TableEntry) { spoil(p.shape, e) }))), codes.InvalidArgument)
		p.left(0)
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
		p.updates("insert", p.write(insert(long)), codes.OK)
		p.holds("the shortest form", sameEntries(p.table(), []*v1.Entity{ofTable(p.shape.entry(1, 0))}), "another form: "+brief(p.table()))
	}),
	refused("F2", ofBytes, "An empty byte string as a key is INVALID_ARGUMENT", func(_ shape, e *v1.TableEntry) { e.Match[0].GetExact().Value = nil }),
	refused("F2.parameter", ofBytes, "An empty byte string as a parameter is INVALID_ARGUMENT", func(_ shape, e *v1.TableEntry) { e.Action.GetAction().Params[0].Value = nil }),
	wideClause("F3", "A key wider than its field is refused, by the one or the other of two codes", func(s shape, e *v1.TableEntry) {
		e.Match[0].GetExact().Value = wide(s.table.MatchFields[0].Bitwidth)
	}),
	wideClause("F3.parameter", "A parameter wider than declared is refused, by the one or the other of two codes", func(s shape, e *v1.TableEntry) {
		e.Action.GetAction().Params[0].Value = wide(s.action.Params[0].Bitwidth)
	}),
}

// wideClause accepts OUT_OF_RANGE, which the section on byte strings requires, and INVALID_ARGUMENT, which the
// others require.
func wideClause(id, sentence string, spoil func(shape, *v1.TableEntry)) Clause {
	return onEmpty(id, ofBytes, sentence, func(p *probe) {
		err := p.write(insert(p.shape.spoiled(func(e *v1.TableEntry) { spoil(p.shape, e) })))
		p.code("batch", err, codes.Unknown)
		if d := status.Convert(err).Details(); len(d) == 1 {
			e, _ := d[0].(*v1.Error)
			p.same("insert", codes.Code(e.GetCanonicalCode()), []codes.Code{codes.InvalidArgument, codes.OutOfRange})
		}
		p.left(0)
	})
}

// filled writes the entries 1 to 3, the first with metadata.
func (p *probe) filled() (all []*v1.Entity) {
	if p.fresh(); p.over() {
		return nil
	}
	var batch []*v1.Update
	for n := 1; n <= 3; n++ {
		e := p.shape.entry(n, n)
		if n == 1 {
			e.Metadata = []byte("m")
		}
		batch = append(batch, insert(e))
		all = append(all, ofTable(e))
	}
	p.updates("insert", p.write(batch...), codes.OK)
	return all
}

// readClause returns a clause about the result of one read filter on three entries.
func asks(id, sentence string, filter func(s shape, e *v1.TableEntry), want func(all []*v1.Entity) []*v1.Entity) Clause {
	return Clause{id, ofWildcards, sentence, true, func(p *probe) {
		all := p.filled()
		if p.over() {
			return
		}
		e := &v1.TableEntry{TableId: p.shape.table.Preamble.Id}
		filter(p.shape, e)
		p.reads("read", want(all), ofTable(e))
	}}
}

func none([]*v1.Entity) []*v1.Entity           { return nil }
func first(all []*v1.Entity) []*v1.Entity      { return all[:1] }
func everything(all []*v1.Entity) []*v1.Entity { return all }

var reading = []Clause{
	{"G1", ofRead, "An unknown device is NOT_FOUND", false, func(p *probe) {
		_, err := p.readOf(p.stranger(), ofTable(&v1.TableEntry{}))
		p.code("read", err, codes.NotFound)
	}},
	asks("G3", "A table without further filters gives all its entries", func(shape, *v1.TableEntry) {}, everything),
	asks("G3.all", "Table 0 gives the entries of all tables", func(_ shape, e *v1.TableEntry) { e.TableId = 0 }, everything),
	asks("G3.key", "A whole key gives its entry", func(s shape, e *v1.TableEntry) { e.Match = s.entry(1, 1).Match }, first),
	asks("G3.action", "An action gives the entries that have it", func(s shape, e *v1.TableEntry) {
		e.Action = &v1.TableAction{Type: &v1.TableAction_Action{Action: &v1.Action{ActionId: s.action.Preamble.Id}}}
	}, everything),
	asks("G3.metadata", "Metadata gives the entries that have it", func(_ shape, e *v1.TableEntry) { e.Metadata = []byte("m") }, first),
	asks("G6", "A whole key that is absent gives nothing, and no error", func(s shape, e *v1.TableEntry) { e.Match = s.entry(77, 1).Match }, none),
	{"G3.default", ofWildcards, "Asking for the default entry gives it alone", true, func(p *probe) {
		if p.filled(); p.over() {
			return
		}
		got, err := p.read(ofTable(&v1.TableEntry{TableId: p.shape.table.Preamble.Id, IsDefaultAction: true}))
		p.code("read", err, codes.OK)
		alone := len(got) <= 1 && !slices.ContainsFunc(got, func(e *v1.Entity) bool { return !e.GetTableEntry().GetIsDefaultAction() })
		p.holds("defaults only", alone, "other entries: "+brief(got))
	}},
	{"G3.filter", ofWildcards, "Table 0 can't be combined with another filter", true, func(p *probe) {
		if p.filled(); p.over() {
			return
		}
		_, err := p.read(ofTable(&v1.TableEntry{IsDefaultAction: true}))
		p.updates("defaults of all tables", err, codes.InvalidArgument)
	}},
	{"G7", ofReadBatch, "A bad element beside good ones: these are given, and then UNKNOWN with one p4.v1.Error per element", true, func(p *probe) {
		all := p.filled()
		if p.over() {
			return
		}
		got, err := p.read(&v1.Entity{}, ofTable(&v1.TableEntry{TableId: p.shape.table.Preamble.Id}))
		p.updates("nothing, and a table", err, codes.InvalidArgument, codes.OK)
		p.holds("the table is given", sameEntries(got, all), "another answer: "+brief(got))
	}},
	{"G8", ofReadBatch, "A request that asks for everything that there can be succeeds", true, func(p *probe) {
		if p.filled(); p.over() {
			return
		}
		_, err := p.read(everythingThereIs()...)
		p.code("read", err, codes.OK)
	}},
	{"G9", ofRead, "A read without any element gives nothing", false, func(p *probe) {
		got, err := p.read()
		p.code("read", err, codes.OK, codes.FailedPrecondition)
		p.holds("nothing", len(got) == 0, "something: "+brief(got))
	}},
}

// everythingThereIs returns the request of the specification's example, with every kind of entity as a wildcard.
func everythingThereIs() []*v1.Entity {
	return []*v1.Entity{
		{Entity: &v1.Entity_ExternEntry{ExternEntry: &v1.ExternEntry{}}},
		ofTable(&v1.TableEntry{}),
		{Entity: &v1.Entity_ActionProfileMember{ActionProfileMember: &v1.ActionProfileMember{}}},
		{Entity: &v1.Entity_ActionProfileGroup{ActionProfileGroup: &v1.ActionProfileGroup{}}},
		{Entity: &v1.Entity_MeterEntry{MeterEntry: &v1.MeterEntry{}}},
		{Entity: &v1.Entity_DirectMeterEntry{DirectMeterEntry: &v1.DirectMeterEntry{}}},
		{Entity: &v1.Entity_CounterEntry{CounterEntry: &v1.CounterEntry{}}},
		{Entity: &v1.Entity_DirectCounterEntry{DirectCounterEntry: &v1.DirectCounterEntry{}}},
		ofGroup(&v1.MulticastGroupEntry{}),
		{Entity: &v1.Entity_ValueSetEntry{ValueSetEntry: &v1.ValueSetEntry{}}},
		{Entity: &v1.Entity_RegisterEntry{RegisterEntry: &v1.RegisterEntry{}}},
		{Entity: &v1.Entity_DigestEntry{DigestEntry: &v1.DigestEntry{}}},
	}
}

func port(n byte) *v1.Replica {
	return &v1.Replica{PortKind: &v1.Replica_Port{Port: []byte{n}}, Instance: uint32(n)}
}

// oldPort returns a replica with its port in the field that older clients use.
func oldPort(n uint32) *v1.Replica {
	//lint:ignore SA1019 a server must take the field as long as clients fill it
	return &v1.Replica{PortKind: &v1.Replica_EgressPort{EgressPort: n}, Instance: n}
}

// groupClause returns a clause about multicast groups; a server without them skips it.
func grouped(id, sentence string, try func(p *probe)) Clause {
	return onEmpty(id, ofGroups, sentence, func(p *probe) {
		err := p.write(update(v1.Update_INSERT, ofGroup(&v1.MulticastGroupEntry{MulticastGroupId: 9, Replicas: []*v1.Replica{port(1)}})))
		if d := status.Convert(err).Details(); len(d) == 1 {
			if e, _ := d[0].(*v1.Error); codes.Code(e.GetCanonicalCode()) == codes.Unimplemented {
				p.skip("multicast groups: UNIMPLEMENTED")
				return
			}
		}
		p.updates("group 9", err, codes.OK)
		try(p)
	})
}

func (p *probe) group(kind v1.Update_Type, id uint32, replicas ...*v1.Replica) error {
	return p.write(update(kind, ofGroup(&v1.MulticastGroupEntry{MulticastGroupId: id, Replicas: replicas})))
}

var replication = []Clause{
	grouped("I1", "Group 0 can't be written: INVALID_ARGUMENT", func(p *probe) {
		p.updates("insert", p.group(v1.Update_INSERT, 0, port(1)), codes.InvalidArgument)
	}),
	grouped("I1.all", "Group 0 reads all groups, another id that group alone", func(p *probe) {
		p.updates("group 8", p.group(v1.Update_INSERT, 8, port(2)), codes.OK)
		eight := ofGroup(&v1.MulticastGroupEntry{MulticastGroupId: 8, Replicas: []*v1.Replica{port(2)}})
		nine := ofGroup(&v1.MulticastGroupEntry{MulticastGroupId: 9, Replicas: []*v1.Replica{port(1)}})
		p.reads("all", []*v1.Entity{eight, nine}, ofGroup(&v1.MulticastGroupEntry{}))
		p.reads("one", []*v1.Entity{eight}, ofGroup(&v1.MulticastGroupEntry{MulticastGroupId: 8}))
	}),
	grouped("I2", "The same port and instance twice in a group is INVALID_ARGUMENT", func(p *probe) {
		p.updates("insert", p.group(v1.Update_INSERT, 8, port(1), port(1)), codes.InvalidArgument)
	}),
	grouped("I2.kinds", "INSERT of a group that is there is ALREADY_EXISTS, MODIFY and DELETE of one that is not are NOT_FOUND", func(p *probe) {
		p.updates("insert", p.group(v1.Update_INSERT, 9, port(1)), codes.AlreadyExists)
		p.updates("modify", p.group(v1.Update_MODIFY, 8, port(1)), codes.NotFound)
		p.updates("delete", p.group(v1.Update_DELETE, 8), codes.NotFound)
		p.updates("delete of 9 by its id", p.group(v1.Update_DELETE, 9), codes.OK)
	}),
	grouped("I4", "The port comes back in the field in which it was written, the deprecated one too", func(p *probe) {
		p.updates("group 8 by egress_port", p.group(v1.Update_INSERT, 8, oldPort(3)), codes.OK)
		p.reads("read", []*v1.Entity{
			ofGroup(&v1.MulticastGroupEntry{MulticastGroupId: 8, Replicas: []*v1.Replica{oldPort(3)}}),
			ofGroup(&v1.MulticastGroupEntry{MulticastGroupId: 9, Replicas: []*v1.Replica{port(1)}}),
		}, ofGroup(&v1.MulticastGroupEntry{}))
	}),
}
