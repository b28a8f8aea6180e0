package agent

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/olafctl/olaf/p4ctl/p4"
)

func (c *card) size() int { return len(c.entries) }

func (c *card) Verify(*configv1.P4Info, []byte) error { return c.refusePipeline }

func (c *card) AtomicBatches() bool { return c.atomic }

func (c *card) Publish(*State) {}

func (c *card) Commit(s *State) error {
	c.commits++
	clear(c.entries)
	clear(c.groups)
	if c.failCommits > 0 {
		c.failCommits--
		return errors.New("the card does not answer")
	}
	var err error
	s.Changes(func(change Change) bool {
		err = c.do(change)
		return err == nil
	})
	return err
}

func (c *card) Do(change Change) error {
	if c.hold != nil {
		close(c.reached)
		<-c.hold
		c.hold = nil
	}
	if c.fail != nil {
		if err := c.fail(change); err != nil {
			return err
		}
	}
	return c.do(change)
}

// do rejects duplicate and missing keys, as a real driver does.
func (c *card) do(change Change) error {
	if g := change.Group; g != nil {
		_, exists := c.groups[g.ID]
		if exists == (change.Op == v1.Update_INSERT) {
			return fmt.Errorf("%v of group %d, which is there: %v", change.Op, g.ID, exists)
		}
		c.groups[g.ID] = g.Members
		if change.Op == v1.Update_DELETE {
			delete(c.groups, g.ID)
		}
		return nil
	}
	key := [2]uint32{change.Entry.Table, change.Entry.Key}
	_, exists := c.entries[key]
	if exists == (change.Op == v1.Update_INSERT) {
		return fmt.Errorf("%v of entry %v, which is there: %v", change.Op, key, exists)
	}
	c.entries[key] = *change.Entry
	if change.Op == v1.Update_DELETE {
		delete(c.entries, key)
	}
	return nil
}

// holds reports whether the card has exactly the entries of the state.
func (c *card) holds(s *State) bool {
	want := newCard()
	s.Changes(func(change Change) bool { return want.do(change) == nil })
	sameEntry := func(a, b Entry) bool { return a.Action == b.Action && a.Params == b.Params }
	sameGroup := func(a, b []Member) bool { return fmt.Sprint(a) == fmt.Sprint(b) }
	return maps.EqualFunc(c.entries, want.entries, sameEntry) && maps.EqualFunc(c.groups, want.groups, sameGroup)
}

// TestDeviceFollowsState writes random batches to a card that sometimes fails. It checks that state and card always
// agree and that a failed batch with rollback changes nothing.
func TestDeviceFollowsState(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		c := newCard()
		built := p4.Lab()
		built.Workers, built.Clusters = 6, 4
		p, err := verify(c, build{Profile: built}, &v1.ForwardingPipelineConfig{P4Info: built.Info()})
		if err != nil {
			r.Fatal(err)
		}
		if err := p.commit(c, 1, nil); err != nil {
			r.Fatal(err)
		}
		c.fail = func(Change) error {
			if rapid.IntRange(0, 9).Draw(r, "fails") == 0 {
				return errors.New("ECC error")
			}
			return nil
		}
		for range rapid.IntRange(1, 12).Draw(r, "batches") {
			req := &v1.WriteRequest{Atomicity: v1.WriteRequest_Atomicity(rapid.IntRange(0, 1).Draw(r, "atomicity"))}
			for range rapid.IntRange(1, 8).Draw(r, "updates") {
				req.Updates = append(req.Updates, randomUpdate(r))
			}
			state, _, faults, err := p.writeBatch(c, nil, req)
			if err != nil {
				r.Fatal(err)
			}
			if req.Atomicity == v1.WriteRequest_ROLLBACK_ON_ERROR && faults != nil && state != p.state {
				r.Fatal("a batch that was rolled back made a new state")
			}
			next := *p
			next.state = state
			p = &next
			if !c.holds(p.state) {
				r.Fatalf("the card holds %v %v, the state says otherwise (faults %v)", c.entries, c.groups, faults)
			}
			checkCounts(r, p.state, built)
		}
	})
}

func randomUpdate(r *rapid.T) *v1.Update {
	u := &v1.Update{Type: v1.Update_Type(rapid.IntRange(1, 3).Draw(r, "op"))}
	id := rapid.Uint32Range(1, 8).Draw(r, "id")
	other := rapid.Uint32Range(1, 6).Draw(r, "other")
	switch rapid.IntRange(0, 2).Draw(r, "kind") {
	case 0:
		u.Entity = entryOf(p4.TableWorkers, id, p4.ActionSetWorker, other, id)
	case 1:
		u.Entity = entryOf(p4.TableClusterGroups, id, p4.ActionSetGroup, other)
	default:
		g := &Group{ID: id}
		for i := range rapid.IntRange(0, 3).Draw(r, "members") {
			g.Members = append(g.Members, Member{Port: uint32(i)})
			g.legacy = append(g.legacy, false)
		}
		u.Entity = groupProto(g)
	}
	return u
}

func entryOf(table, key, action uint32, params ...uint32) *v1.Entity {
	a := &v1.Action{ActionId: action}
	for i, value := range params {
		a.Params = append(a.Params, &v1.Action_Param{ParamId: uint32(i) + 1, Value: p4.CanonicalBytes(value)})
	}
	return &v1.Entity{Entity: &v1.Entity_TableEntry{TableEntry: &v1.TableEntry{TableId: table,
		Match: []*v1.FieldMatch{{FieldId: 1,
			FieldMatchType: &v1.FieldMatch_Exact_{Exact: &v1.FieldMatch_Exact{Value: p4.CanonicalBytes(key)}}}},
		Action: &v1.TableAction{Type: &v1.TableAction_Action{Action: a}}}}}
}

// checkCounts compares the state's counters with a recount, and checks references and limits.
func checkCounts(r *rapid.T, s *State, built p4.Profile) {
	replicas := 0
	users := make(map[uint32]int)
	s.groups.all(func(_ uint32, g *Group) bool { replicas += len(g.Members); return true })
	s.clusters.all(func(_ uint32, e *Entry) bool { users[e.Params[0]]++; return true })
	if replicas != s.replicas || replicas > built.Workers {
		r.Fatalf("%d replicas, counted as %d, limit %d", replicas, s.replicas, built.Workers)
	}
	for group, n := range users {
		if got, _ := s.users.get(group); got != n {
			r.Fatalf("group %d has %d users, counted as %d", group, n, got)
		}
		if _, ok := s.groups.get(group); !ok {
			r.Fatalf("group %d is used and gone", group)
		}
	}
	if s.users.size != len(users) || s.groups.size > built.Clusters || s.workers.size > built.Workers {
		r.Fatalf("%d groups in use counted as %d; %d groups, %d workers", len(users), s.users.size, s.groups.size,
			s.workers.size)
	}
}

// FuzzWrite sends any decodable WriteRequest and checks that there is one result per update and no panic, and that
// device and state agree.
func FuzzWrite(f *testing.F) {
	for _, u := range []*v1.Update{
		{Type: v1.Update_INSERT, Entity: entryOf(p4.TableWorkers, 5, p4.ActionSetWorker, 1, 2)},
		{Type: v1.Update_MODIFY, Entity: groupProto(&Group{ID: 1, Members: []Member{{1, 2}}, legacy: []bool{true}})},
		{Type: v1.Update_DELETE, Entity: entryOf(p4.TableClusterGroups, 5, p4.ActionSetGroup, 1)},
		{Type: v1.Update_INSERT, Entity: &v1.Entity{Entity: &v1.Entity_TableEntry{}}},
	} {
		wire, err := proto.Marshal(&v1.WriteRequest{DeviceId: 1, Updates: []*v1.Update{u, nil, u}})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(wire)
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		req := new(v1.WriteRequest)
		if proto.Unmarshal(wire, req) != nil {
			return
		}
		c := newCard()
		p, err := verify(c, build{Profile: p4.Lab()}, &v1.ForwardingPipelineConfig{P4Info: p4.Lab().Info()})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.commit(c, 1, nil); err != nil {
			t.Fatal(err)
		}
		state, _, faults, err := p.writeBatch(c, nil, req)
		if err != nil {
			return
		}
		if faults != nil && len(faults) != len(req.Updates) {
			t.Fatalf("%d answers to %d updates", len(faults), len(req.Updates))
		}
		if err := batchStatus("updates", faults); faults != nil && err == nil {
			t.Fatal("faults without a status")
		}
		if !c.holds(state) {
			t.Fatal("device and state differ")
		}
		p.state = state
		for _, u := range req.Updates {
			p.readEntity(nil, u.GetEntity(), func(e *v1.Entity) error { _, err := proto.Marshal(e); return err })
		}
	})
}

// FuzzPipeline checks that no decodable P4Info causes a panic.
func FuzzPipeline(f *testing.F) {
	for _, info := range []*configv1.P4Info{p4.Lab().Info(), {Tables: []*configv1.Table{nil, {}},
		Actions: []*configv1.Action{nil}}} {
		wire, err := proto.Marshal(info)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(wire)
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		info := new(configv1.P4Info)
		if proto.Unmarshal(wire, info) == nil {
			newSchema(info, build{Profile: p4.Lab()})
		}
	})
}
