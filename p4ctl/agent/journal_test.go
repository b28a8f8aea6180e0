package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/olafctl/olaf/p4ctl/p4"
)

// crash ends the agent in such a way that the next agent sees a crashed process.
func (o *owner) crash() { o.journal.lock.Close() }

// owner is an agent with a journal. Tests call its RPCs directly, as a primary with id 1.
type owner struct {
	*Agent
	card *card
}

func newOwner(t *testing.T, path string, profile p4.Profile) (*owner, error) {
	t.Helper()
	c := newCard()
	a, err := New(Options{Backend: c, Profile: profile, Journal: path})
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { a.Close() })
	stream, _ := a.joinStream(t.Context())
	return &owner{a, c}, a.announce(stream, &v1.MasterArbitrationUpdate{DeviceId: 1, ElectionId: &v1.Uint128{Low: 1}})
}

func (o *owner) push(action v1.SetForwardingPipelineConfigRequest_Action, config *v1.ForwardingPipelineConfig) error {
	_, err := o.SetForwardingPipelineConfig(context.Background(), &v1.SetForwardingPipelineConfigRequest{DeviceId: 1,
		ElectionId: &v1.Uint128{Low: 1}, Action: action, Config: config})
	return err
}

func (o *owner) send(updates ...*v1.Update) error {
	_, err := o.Write(context.Background(), &v1.WriteRequest{DeviceId: 1, ElectionId: &v1.Uint128{Low: 1},
		Updates: updates})
	return err
}

func workerUpdate(op Op, key uint32) *v1.Update {
	return &v1.Update{Type: op, Entity: entryOf(p4.TableWorkers, key, p4.ActionSetWorker, 1, key)}
}

// filled returns an owner with a pipeline and a few batches.
func filled(t *testing.T, path string) *owner {
	t.Helper()
	o, err := newOwner(t, path, p4.Lab())
	if err != nil {
		t.Fatal(err)
	}
	if err := o.push(v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT, labConfig()); err != nil {
		t.Fatal(err)
	}
	group := &v1.Update{Type: v1.Update_INSERT, Entity: groupProto(&Group{ID: 1, Members: []Member{{1, 2}, {3, 4}},
		Metadata: []byte("m"), legacy: []bool{true, false}})}
	for _, batch := range [][]*v1.Update{
		{workerUpdate(v1.Update_INSERT, 1), workerUpdate(v1.Update_INSERT, 2)},
		{group, {Type: v1.Update_INSERT, Entity: entryOf(p4.TableClusterGroups, 1, p4.ActionSetGroup, 1)}},
		{workerUpdate(v1.Update_DELETE, 1), workerUpdate(v1.Update_INSERT, 3)},
	} {
		if err := o.send(batch...); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// dump returns everything that a controller can read.
func dump(t *testing.T, p *pipeline) string {
	t.Helper()
	var b bytes.Buffer
	emit := func(e *v1.Entity) error { fmt.Fprintln(&b, e); return nil }
	if err := p.readTables(nil, nil, emit); err != nil {
		t.Fatal(err)
	}
	if err := p.readGroups(nil, 0, emit); err != nil {
		t.Fatal(err)
	}
	wire, _ := proto.MarshalOptions{Deterministic: true}.Marshal(p.config)
	fmt.Fprintf(&b, "%x", wire)
	return b.String()
}

// TestLateAnnouncementIsIgnored checks an announcement for a stream that has already left, as from a message that was
// read late.
func TestLateAnnouncementIsIgnored(t *testing.T) {
	a, err := New(Options{Backend: newCard(), Profile: p4.Lab()})
	if err != nil {
		t.Fatal(err)
	}
	c, _ := a.joinStream(t.Context())
	a.leaveStream(c)
	if err := a.announce(c, &v1.MasterArbitrationUpdate{DeviceId: 1, ElectionId: &v1.Uint128{Low: 9}}); status.Code(
		err) != codes.Canceled || len(a.arbiter.streams) != 0 {
		t.Errorf("%v, %d streams", err, len(a.arbiter.streams))
	}
}

// TestJournalSurvivesCrash checks that another agent with an empty card restores the content after a crash.
func TestJournalSurvivesCrash(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tables")
	before := filled(t, path)
	if updates := before.send(workerUpdate(v1.Update_INSERT, 3), workerUpdate(v1.Update_INSERT,
		4)); status.Code(updates) != codes.Unknown {
		t.Fatal(updates)
	}
	before.crash()
	for round := range 3 {
		after, err := newOwner(t, path, p4.Lab())
		if err != nil {
			t.Fatal(err)
		}
		if got, want := dump(t, after.current.Load()), dump(t, before.current.Load()); got != want {
			t.Errorf("round %d: after a crash\n%s\nbefore\n%s", round, got, want)
		}
		if !after.card.holds(after.current.Load().state) || after.card.size() != 4 {
			t.Errorf("round %d: the card holds %v", round, after.card.entries)
		}
		if err := after.send(workerUpdate(v1.Update_MODIFY, 2)); err != nil {
			t.Error(err)
		}
		after.crash()
	}
}

// TestJournalKeepsCommittedOnly checks the effects of a saved pipeline and of a new commit.
func TestJournalKeepsCommittedOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tables")
	o := filled(t, path)
	if err := o.push(v1.SetForwardingPipelineConfigRequest_VERIFY_AND_SAVE, labConfig()); err != nil {
		t.Fatal(err)
	}
	if err := o.send(workerUpdate(v1.Update_INSERT, 9)); err != nil {
		t.Fatal(err)
	}
	o.crash()
	again, err := newOwner(t, path, p4.Lab())
	if err != nil || again.card.size() != 3 {
		t.Fatalf("a saved pipeline replaced the committed one: %v, %v", again.card.entries, err)
	}
	again.crash() // o continues; it crashed only for the others
	if err := o.push(v1.SetForwardingPipelineConfigRequest_COMMIT, nil); err != nil {
		t.Fatal(err)
	}
	if again, err = newOwner(t, path, p4.Lab()); err != nil || again.card.size() != 1 {
		t.Fatalf("after COMMIT: %v, %v", again.card.entries, err)
	}
}

// TestJournalHasOneAgent checks that a second agent cannot start next to a running one, and can start when that one has
// ended.
func TestJournalHasOneAgent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tables")
	first := filled(t, path)
	for range 2 { // a rejected agent does not affect the lock
		if _, err := newOwner(t, path, p4.Lab()); !errors.Is(err, ErrJournal) || !strings.Contains(err.Error(),
			"another agent uses") {
			t.Errorf("got %v", err)
		}
	}
	if err := first.send(workerUpdate(v1.Update_INSERT, 7)); err != nil {
		t.Error(err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	if second, err := newOwner(t, path, p4.Lab()); err != nil || second.card.size() != 4 {
		t.Errorf("got %v", err)
	}
}

// TestJournalFollowsNoLink places links where a journal creates its files, as another user of a shared folder could. It
// checks that the link targets stay unchanged, that no commit counts as durable, and that no agent starts.
func TestJournalFollowsNoLink(t *testing.T) {
	for _, beside := range []string{".new", ".ack.new"} {
		folder := t.TempDir()
		path, theirs := filepath.Join(folder, "tables"), filepath.Join(folder, "theirs")
		o, err := newOwner(t, path, p4.Lab())
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.WriteFile(theirs, []byte("theirs"), 0o600), os.Symlink(theirs, path+beside)); err != nil {
			t.Fatal(err)
		}
		if err := o.push(v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT, labConfig()); err == nil ||
			!strings.Contains(err.Error(), path+beside) {
			t.Errorf("%s: %v", beside, err)
		}
		if text := read(t, theirs); string(text) != "theirs" {
			t.Errorf("%s: the file behind the link holds %q", beside, text)
		}
		o.crash()
		if _, err := newOwner(t, path, p4.Lab()); !errors.Is(err, ErrJournal) || !strings.Contains(err.Error(), path+
			beside+" is a symbolic link") {
			t.Errorf("%s: the next agent: %v", beside, err)
		}
	}
}

// FuzzReadJournal checks that any bytes give an error or a journal, without a panic or a huge allocation.
func FuzzReadJournal(f *testing.F) {
	b, err := appendRecord(newHeader(1), recordPipeline, &v1.ForwardingPipelineConfig{P4DeviceConfig: []byte("x")})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	b, err = appendRecord(b, recordBatch, &v1.WriteRequest{Updates: []*v1.Update{workerUpdate(v1.Update_INSERT, 1)}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(append(b, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 2))
	f.Fuzz(func(t *testing.T, text []byte) {
		s := scanJournal(text)
		if s.version == 0 && s.fault == nil {
			t.Fatal("no journal and no fault")
		}
		for n := range s.records {
			if c, err := s.content(n + 1); err == nil && c.config == nil {
				t.Fatal("records without a pipeline")
			}
		}
	})
}

// FuzzSidecar checks that any bytes give an acknowledgement that was written, or none.
func FuzzSidecar(f *testing.F) {
	f.Add(acknowledged{1, 2, chain{3}}.bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		if a, whole := parseSlot(b); whole && !bytes.HasPrefix(b, a.bytes()) {
			t.Fatalf("%+v from %x", a, b)
		}
	})
}

// BenchmarkDurableBatch measures a batch of 100 with its synced append and acknowledgement.
func BenchmarkDurableBatch(b *testing.B) {
	j, err := openJournal(disk{}, filepath.Join(b.TempDir(), "tables"), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer j.close()
	p, err := verify(new(Embedded), build{Profile: p4.Twin()}, &v1.ForwardingPipelineConfig{P4Info: p4.Twin().Info()})
	if err != nil {
		b.Fatal(err)
	}
	if err := j.commit(p); err != nil {
		b.Fatal(err)
	}
	var changes []Change
	for i := range uint32(100) {
		changes = append(changes, Change{Op: v1.Update_INSERT, Entry: &Entry{Table: p4.TableWorkers, Key: i,
			Action: p4.ActionSetWorker}})
	}
	for b.Loop() {
		if err := j.add(p, changes); err != nil {
			b.Fatal(err)
		}
	}
}
