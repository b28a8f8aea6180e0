package agent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"path/filepath"

	v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/proto"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/internal/lockfile"
)

// ErrJournal is the kind of every fault of a journal.
var ErrJournal = olaf.NewError(olaf.Usage, "agent: journal")

// A journal is the durable memory of the device's tables: committed pipelines, and every batch that was accepted behind
// them. What is accepted is appended and synced, then its acknowledgement is written beside it and synced, and only then
// its answer goes out (type acknowledged). So the end of what was answered for is known to the byte: damage before it is
// never taken for the torn end of an append, and what stands behind it never comes to life.
//
// A file that grew is replaced by one with the tables as they are, of the next epoch.
type journal struct {
	fs   fileSystem
	path string
	lock io.Closer
	warn func(string)

	file   writable // nil while nothing is written, and after a write that failed
	beside sidecar
	acknowledged
	size, base int64 // bytes that were acknowledged, and how many there were after the last rewrite
	behind     bool  // the device was given a pipeline that could not be written here
	partial    bool  // the sidecar lacks acknowledgements that read could do without
}

const (
	rewriteAfter    = 16 << 20 // appended bytes
	updatesPerBatch = 1000     // in a rewritten file
)

// openJournal takes the journal at path for this agent alone, until close. warn is told what a person should know.
func openJournal(fsys fileSystem, path string, warn func(string)) (*journal, error) {
	path, err := ownPlace(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrJournal, err)
	}
	lock, err := lockfile.Take(path+".lock", 0o600) // not the journal itself, which a rewrite replaces
	switch {
	case errors.Is(err, lockfile.ErrHeld):
		return nil, fmt.Errorf("%w: %s is kept by another agent; end that one, or name another file", ErrJournal, path)
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: there is no folder %s for %s; make it, or name a file in another one", ErrJournal, filepath.Dir(path), filepath.Base(path))
	case err != nil:
		return nil, fmt.Errorf("%w: %s cannot be kept: %w", ErrJournal, path, err)
	}
	return &journal{fs: fsys, path: path, lock: lock, warn: warn, beside: sidecar{fs: fsys, path: path + ".ack"}}, nil
}

// read gives what was acknowledged, and readies the journal to go on behind it. Without a file it is empty and its config
// is nil. On an error, which matches ErrJournal and says what can be done, no file was changed.
func (j *journal) read() (content, error) {
	b, err := j.fs.ReadFile(j.path)
	if errors.Is(err, fs.ErrNotExist) {
		return content{}, j.absent()
	}
	if err != nil {
		return content{}, fmt.Errorf("%w: %w", ErrJournal, err)
	}
	c, err := j.judge(b)
	if err != nil {
		return content{}, fmt.Errorf("%s: %w; nothing was changed: put a copy back, or move the file away, with its .ack, to start with empty tables", j.path, err)
	}
	return c, nil
}

// absent refuses to start empty where something was acknowledged.
func (j *journal) absent() error {
	b, err := j.fs.ReadFile(j.beside.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrJournal, err)
	}
	all, whole := slots(b)
	for i, a := range all {
		if !whole[i] || a.records > 0 {
			return fmt.Errorf("%w: %s is gone, but %s says that it held tables; put it back, or move that file away too to start with empty tables", ErrJournal, j.path, j.beside.path)
		}
	}
	return nil
}

// judge decides how much of a file's bytes counts, and keeps a copy of the rest.
func (j *journal) judge(b []byte) (content, error) {
	s := scan(b)
	if s.fault != nil && s.version == 0 {
		return content{}, fmt.Errorf("%w: %w", ErrJournal, s.fault)
	}
	keep := len(s.records)
	if s.version == version1 { // which says nothing of what was acknowledged
		if s.fault != nil {
			return content{}, fmt.Errorf("%w: %w", ErrJournal, s.fault)
		}
		return j.adopt(b, s, keep)
	}
	ack, err := readSidecar(j.fs, j.beside.path, s.epoch)
	switch {
	case err != nil:
		return content{}, err
	case ack.missing && s.fault != nil:
		return content{}, fmt.Errorf("%w: %s is missing, which says what was acknowledged, and %w", ErrJournal, j.beside.path, s.fault)
	case ack.missing:
		j.say("%s is missing; all %d records of %s are whole and were taken", j.beside.path, keep, j.path)
	case uint64(keep) < ack.records:
		return content{}, fmt.Errorf("%w: %d records were acknowledged, of which %d can be read: %w", ErrJournal, ack.records, keep, s.reason())
	case s.sum(int(ack.records)) != ack.sum:
		return content{}, fmt.Errorf("%w: its records are not those that were acknowledged", ErrJournal)
	case ack.damaged && (keep > int(ack.records) || s.fault != nil):
		return content{}, fmt.Errorf("%w: part of %s can't be read, so that nobody knows whether record %d was acknowledged; to keep it move that file away", ErrJournal, j.beside.path, ack.records+1)
	default:
		keep = int(ack.records)
	}
	j.beside.at, j.partial = ack.at, ack.missing || ack.damaged
	if ack.damaged {
		j.say("one of the two acknowledgements in %s is gone; the other one covers all of %s, and that file is written anew", j.beside.path, j.path)
	}
	return j.adopt(b, s, keep)
}

// adopt goes on behind the first records of a file. What follows them is kept in a file beside it.
func (j *journal) adopt(b []byte, s scanned, records int) (content, error) {
	c, err := s.content(records)
	if err != nil {
		return content{}, err
	}
	j.acknowledged = acknowledged{s.epoch, uint64(records), s.sum(records)}
	j.size = s.end(records)
	if tail := b[j.size:]; len(tail) > 0 {
		name := fmt.Sprintf("%s.tail-%d-%d", j.path, s.epoch, records)
		if err := writeWhole(j.fs, name, tail); err != nil {
			return content{}, fmt.Errorf("%w: keep its unacknowledged end: %w", ErrJournal, err)
		}
		j.say("%d bytes at the end of %s were never acknowledged and are left out; they are kept in %s", len(tail), j.path, name)
	}
	if s.version == version1 {
		j.size = 0 // to be written anew in today's form
	}
	return c, nil
}

func (j *journal) say(format string, args ...any) {
	if j.warn != nil {
		j.warn(fmt.Sprintf(format, args...))
	}
}

// settle makes the files agree with what read decided; p is the pipeline that the content made, nil for none.
func (j *journal) settle(p *pipeline) error {
	if j.size == 0 && p != nil {
		return j.rewrite(p)
	}
	if j.size == 0 {
		return nil // the first commit makes it
	}
	if j.partial { // before anything is appended, whose end could not be told otherwise
		if err := j.beside.begin(j.acknowledged); err != nil {
			return fmt.Errorf("%w: %w", ErrJournal, err)
		}
		j.partial = false
	}
	return j.repair()
}

// commit makes a pipeline durable with the tables that it begins with.
func (j *journal) commit(next *pipeline) error {
	if j == nil {
		return nil
	}
	j.behind = true
	b, n, err := next.records(nil)
	if err != nil {
		return err
	}
	return j.append(next, b, n)
}

// add makes a batch of accepted changes durable. next is the pipeline with them.
func (j *journal) add(next *pipeline, changes []Change) error {
	switch {
	case j == nil || len(changes) == 0:
		return nil
	case j.behind: // a batch alone would stand behind another pipeline than its own
		return j.commit(next)
	}
	batch := new(v1.WriteRequest)
	for _, c := range changes {
		batch.Updates = append(batch.Updates, next.schema.updateProto(c))
	}
	b, err := appendRecord(nil, recordBatch, batch)
	if err != nil {
		return err
	}
	return j.append(next, b, 1)
}

// append writes n records behind what was acknowledged, and then their acknowledgement. When any of it fails, what was
// acknowledged before is what counts, and the next append mends the file first.
func (j *journal) append(next *pipeline, b []byte, n int) error {
	err := j.ready()
	if err == nil {
		err = j.acknowledge(b, n)
	}
	if err != nil {
		j.letGo()
		return fmt.Errorf("%w: %w", ErrJournal, err)
	}
	j.behind = false
	if j.size-j.base > rewriteAfter {
		if err := j.rewrite(next); err != nil { // the file that is there holds all, and goes on growing
			j.base = j.size
			j.say("%s could not be made smaller: %v", j.path, err)
		}
	}
	return nil
}

// ready has a file to append to.
func (j *journal) ready() error {
	switch {
	case j.file != nil:
		return nil
	case j.size > 0:
		return j.repair()
	}
	b := header(1)
	if err := writeWhole(j.fs, j.path, b); err != nil {
		return err
	}
	a := acknowledged{epoch: 1, sum: chain{}.next(b)}
	if err := j.beside.begin(a); err != nil {
		return err
	}
	j.acknowledged, j.size, j.base = a, int64(len(b)), int64(len(b))
	return j.repair()
}

// repair opens the file and cuts off what was not acknowledged.
func (j *journal) repair() error {
	j.letGo()
	f, err := j.fs.Open(j.path)
	if err != nil {
		return err
	}
	j.file = f
	if err = f.Truncate(j.size); err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = j.fs.SyncFolder(j.path)
	}
	if err != nil {
		j.letGo()
	}
	return err
}

func (j *journal) acknowledge(b []byte, n int) error {
	if _, err := j.file.WriteAt(b, j.size); err != nil {
		return err
	}
	if err := j.file.Sync(); err != nil {
		return err
	}
	a := acknowledged{j.epoch, j.records + uint64(n), j.sum}
	for rest := b; len(rest) > 0; {
		whole := recordHeader + int(binary.BigEndian.Uint32(rest))
		a.sum, rest = a.sum.next(rest[:whole]), rest[whole:]
	}
	if err := j.beside.write(a); err != nil {
		// If this fails too, the next start finds a record of which nobody knows whether it was acknowledged, and refuses.
		return errors.Join(err, j.beside.withdraw(j.acknowledged))
	}
	j.beside.turn()
	j.acknowledged, j.size = a, j.size+int64(len(b))
	return nil
}

// rewrite replaces the file by one of the next epoch that holds the pipeline and its tables. Until the new file has the
// name, the old one and its acknowledgement stay as they are.
func (j *journal) rewrite(p *pipeline) error {
	epoch := j.epoch + 1
	b, n, err := p.records(header(epoch))
	if err != nil {
		return err
	}
	a := scan(b).acknowledged(n)
	beside := j.path + ".new"
	if err := writeSynced(j.fs, beside, b); err != nil {
		return fmt.Errorf("%w: %w", ErrJournal, err)
	}
	if j.epoch == 0 { // from an older form, which had no sidecar
		err = j.beside.begin(a)
	} else {
		err = j.beside.write(a)
	}
	if err == nil {
		err = j.fs.Rename(beside, j.path)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrJournal, err)
	}
	if j.epoch > 0 {
		j.beside.turn()
	}
	j.acknowledged, j.size, j.base = a, int64(len(b)), int64(len(b))
	if err := j.repair(); err != nil {
		return fmt.Errorf("%w: %w", ErrJournal, err)
	}
	return nil
}

func (j *journal) letGo() {
	if j.file != nil {
		j.file.Close() // whatever it says, nothing behind the acknowledged bytes counts
		j.file = nil
	}
}

func (j *journal) close() error {
	if j == nil {
		return nil
	}
	var err error
	if j.file != nil {
		err = j.file.Close()
	}
	return errors.Join(err, j.beside.close(), j.lock.Close())
}

// records appends the pipeline and its tables to b as n records.
func (p *pipeline) records(b []byte) (_ []byte, n int, err error) {
	put := func(kind byte, m proto.Message) {
		if err == nil {
			b, err = appendRecord(b, kind, m)
			n++
		}
	}
	put(recordPipeline, p.config)
	batch := new(v1.WriteRequest)
	p.state.Changes(func(c Change) bool {
		batch.Updates = append(batch.Updates, p.schema.updateProto(c))
		if len(batch.Updates) == updatesPerBatch {
			put(recordBatch, batch)
			batch = new(v1.WriteRequest)
		}
		return err == nil
	})
	if len(batch.Updates) > 0 {
		put(recordBatch, batch)
	}
	return b, n, err
}

// updateProto is a change as a controller would have sent it.
func (s *schema) updateProto(c Change) *v1.Update {
	if c.Group != nil {
		return &v1.Update{Type: c.Op, Entity: groupProto(c.Group)}
	}
	return &v1.Update{Type: c.Op, Entity: s.entryProto(c.Entry)}
}

// replay makes the pipeline that a journal describes.
func replay(b Backend, o Options, c content) (*pipeline, error) {
	p, err := verify(b, o.build(), c.config)
	if err != nil {
		return nil, fmt.Errorf("%w: its pipeline does not fit the device: %v", ErrJournal, err)
	}
	for i, batch := range c.batches { // not committed yet, so this touches no device
		t, err := p.try(b, nil, batch)
		if err != nil || t.faults != nil {
			return nil, fmt.Errorf("%w: batch %d does not replay: %v", ErrJournal, i, errors.Join(append(t.faults, err)...))
		}
		p.state = t.state
	}
	return p, nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)
