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

// ErrJournal is matched by all errors about a journal.
var ErrJournal = olaf.NewError(olaf.Usage, "agent: journal")

// A journal stores the tables of the device durably: the committed pipelines, and for each of them the batches accepted
// after it. Every change is appended and synced, and then its acknowledgement is written to the sidecar file and
// synced. Only then does the agent answer the RPC (see acknowledged). The end of the acknowledged content is therefore
// known exactly: damage before it is never mistaken for an incomplete append, and nothing after it is ever applied.
// When the file has become too large, it is replaced by a file with the current tables and the next epoch.
type journal struct {
	fs   fileSystem
	path string
	lock io.Closer
	warn func(string)

	file    writable // nil before the first write and after a failed one
	sidecar sidecar
	acknowledged
	size, base int64 // number of acknowledged bytes now, and after the last rewrite
	behind     bool  // the device has a pipeline that could not be written to the journal
	partial    bool  // the sidecar lacks acknowledgements that reading did not need
}

const (
	rewriteAfter    = 16 << 20 // number of appended bytes
	updatesPerBatch = 1000     // number of updates per record of a rewritten file
)

// openJournal locks the journal at path for this agent until close is called. warn receives messages for the operator.
func openJournal(fsys fileSystem, path string, warn func(string)) (*journal, error) {
	path, err := resolvePlace(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrJournal, err)
	}
	lock, err := lockfile.Take(path+".lock", 0o600) // not on the journal itself, because a rewrite replaces it
	switch {
	case errors.Is(err, lockfile.ErrHeld):
		return nil, fmt.Errorf("%w: another agent uses %s; stop that agent, or name another file", ErrJournal, path)
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: there is no folder %s for %s; create it, or name a file in another folder",
			ErrJournal,
			filepath.Dir(path), filepath.Base(path))
	case err != nil:
		return nil, fmt.Errorf("%w: %s cannot be locked: %w", ErrJournal, path, err)
	}
	return &journal{fs: fsys, path: path, lock: lock, warn: warn, sidecar: sidecar{fs: fsys, path: path + ".ack"}}, nil
}

// read returns the acknowledged content and prepares the journal for appends. If there is no file, the content is empty
// and its config is nil. Errors match ErrJournal and include a remedy. If there is an error, no file has been changed.
func (j *journal) read() (content, error) {
	b, err := j.fs.ReadFile(j.path)
	if errors.Is(err, fs.ErrNotExist) {
		return content{}, j.checkAbsent()
	}
	if err != nil {
		return content{}, fmt.Errorf("%w: %w", ErrJournal, err)
	}
	c, err := j.judge(b)
	if err != nil {
		return content{}, fmt.Errorf(
			"%s: %w; nothing was changed: restore a copy, or move the file and its .ack away to start with empty "+
				"tables", j.path, err)
	}
	return c, nil
}

// checkAbsent returns an error if the journal is missing but its sidecar file shows that content was acknowledged.
func (j *journal) checkAbsent() error {
	b, err := j.fs.ReadFile(j.sidecar.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrJournal, err)
	}
	all, whole := parseSlots(b)
	for i, a := range all {
		if !whole[i] || a.records > 0 {
			return fmt.Errorf("%w: %s is missing, but according to %s it had tables; restore it, or move that file "+
				"away too to start with empty tables", ErrJournal, j.path, j.sidecar.path)
		}
	}
	return nil
}

// judge decides how much of the file's content is valid and saves a copy of the rest.
func (j *journal) judge(b []byte) (content, error) {
	s := scanJournal(b)
	if s.fault != nil && s.version == 0 {
		return content{}, fmt.Errorf("%w: %w", ErrJournal, s.fault)
	}
	keep := len(s.records)
	if s.version == version1 { // version 1 has no acknowledgements
		if s.fault != nil {
			return content{}, fmt.Errorf("%w: %w", ErrJournal, s.fault)
		}
		return j.adopt(b, s, keep)
	}
	ack, err := readSidecar(j.fs, j.sidecar.path, s.epoch)
	switch {
	case err != nil:
		return content{}, err
	case ack.missing && s.fault != nil:
		return content{}, fmt.Errorf("%w: %s, which records what was acknowledged, is missing, and %w", ErrJournal,
			j.sidecar.path, s.fault)
	case ack.missing:
		j.report("%s is missing; all %d records in %s are complete and were used", j.sidecar.path, keep, j.path)
	case uint64(keep) < ack.records:
		return content{}, fmt.Errorf("%w: %d records were acknowledged, of which %d can be read: %w", ErrJournal,
			ack.records, keep, s.reason())
	case s.sumOf(int(ack.records)) != ack.sum:
		return content{}, fmt.Errorf("%w: its records differ from those acknowledged", ErrJournal)
	case ack.damaged && (keep > int(ack.records) || s.fault != nil):
		return content{}, fmt.Errorf(
			"%w: part of %s can't be read, so it is unknown "+
				"whether record %d was acknowledged; to keep that record, move that file away", ErrJournal,
			j.sidecar.path, ack.records+1)
	default:
		keep = int(ack.records)
	}
	j.sidecar.at, j.partial = ack.at, ack.missing || ack.damaged
	if ack.damaged {
		j.report("one of the two acknowledgements in %s is damaged; the other one covers all of %s, and the damaged "+
			"file is rewritten", j.sidecar.path, j.path)
	}
	return j.adopt(b, s, keep)
}

// adopt continues the journal after the first records in a file. It saves the bytes after them in another file.
func (j *journal) adopt(b []byte, s scanned, records int) (content, error) {
	c, err := s.content(records)
	if err != nil {
		return content{}, err
	}
	j.acknowledged = acknowledged{s.epoch, uint64(records), s.sumOf(records)}
	j.size = s.endOf(records)
	if tail := b[j.size:]; len(tail) > 0 {
		name := fmt.Sprintf("%s.tail-%d-%d", j.path, s.epoch, records)
		if err := replaceFile(j.fs, name, tail); err != nil {
			return content{}, fmt.Errorf("%w: save its unacknowledged end: %w", ErrJournal, err)
		}
		j.report("the last %d bytes of %s were never acknowledged and are ignored; they are saved in %s", len(tail),
			j.path, name)
	}
	if s.version == version1 {
		j.size = 0 // the journal will be rewritten in the current format
	}
	return c, nil
}

func (j *journal) report(format string, args ...any) {
	if j.warn != nil {
		j.warn(fmt.Sprintf(format, args...))
	}
}

// settle makes the files consistent with the result of read. p is the pipeline from the content, or nil.
func (j *journal) settle(p *pipeline) error {
	if j.size == 0 && p != nil {
		return j.rewrite(p)
	}
	if j.size == 0 {
		return nil // the first commit creates the file
	}
	if j.partial { // before any append, whose end would otherwise be unknown
		if err := j.sidecar.begin(j.acknowledged); err != nil {
			return fmt.Errorf("%w: %w", ErrJournal, err)
		}
		j.partial = false
	}
	return j.repair()
}

// commit stores a pipeline durably, together with its initial tables.
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

// add stores a batch of accepted changes durably. next is the pipeline that results from them.
func (j *journal) add(next *pipeline, changes []Change) error {
	switch {
	case j == nil || len(changes) == 0:
		return nil
	case j.behind: // a single batch would follow the wrong pipeline
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

// append writes n records after the acknowledged ones, followed by their acknowledgement. If it fails, the earlier
// acknowledgement remains valid, and the next append first repairs the file.
func (j *journal) append(next *pipeline, b []byte, n int) error {
	err := j.ensureFile()
	if err == nil {
		err = j.acknowledge(b, n)
	}
	if err != nil {
		j.dropFile()
		return fmt.Errorf("%w: %w", ErrJournal, err)
	}
	j.behind = false
	if j.size-j.base > rewriteAfter {
		if err := j.rewrite(next); err != nil { // not fatal: the existing file is complete and continues to grow
			j.base = j.size
			j.report("%s could not be compacted: %v", j.path, err)
		}
	}
	return nil
}

// ensureFile opens the file for appending, or creates it.
func (j *journal) ensureFile() error {
	switch {
	case j.file != nil:
		return nil
	case j.size > 0:
		return j.repair()
	}
	b := newHeader(1)
	if err := replaceFile(j.fs, j.path, b); err != nil {
		return err
	}
	a := acknowledged{epoch: 1, sum: chain{}.next(b)}
	if err := j.sidecar.begin(a); err != nil {
		return err
	}
	j.acknowledged, j.size, j.base = a, int64(len(b)), int64(len(b))
	return j.repair()
}

// repair opens the file and removes the bytes that were not acknowledged.
func (j *journal) repair() error {
	j.dropFile()
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
		j.dropFile()
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
	if err := j.sidecar.write(a); err != nil {
		// If this fails too, the next start cannot determine whether the record was acknowledged, and fails.
		return errors.Join(err, j.sidecar.withdraw(j.acknowledged))
	}
	j.sidecar.switchSlots()
	j.acknowledged, j.size = a, j.size+int64(len(b))
	return nil
}

// rewrite replaces the file with one that has the next epoch and contains the pipeline and its tables. The old file and
// its acknowledgement remain until the new file is renamed.
func (j *journal) rewrite(p *pipeline) error {
	epoch := j.epoch + 1
	b, n, err := p.records(newHeader(epoch))
	if err != nil {
		return err
	}
	a := scanJournal(b).acknowledgedUpTo(n)
	beside := j.path + ".new"
	if err := writeSynced(j.fs, beside, b); err != nil {
		return fmt.Errorf("%w: %w", ErrJournal, err)
	}
	if j.epoch == 0 { // the journal had the older format, without a sidecar
		err = j.sidecar.begin(a)
	} else {
		err = j.sidecar.write(a)
	}
	if err == nil {
		err = j.fs.Rename(beside, j.path)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrJournal, err)
	}
	if j.epoch > 0 {
		j.sidecar.switchSlots()
	}
	j.acknowledged, j.size, j.base = a, int64(len(b)), int64(len(b))
	if err := j.repair(); err != nil {
		return fmt.Errorf("%w: %w", ErrJournal, err)
	}
	return nil
}

func (j *journal) dropFile() {
	if j.file != nil {
		j.file.Close() // errors can be ignored: only the acknowledged bytes matter
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
	return errors.Join(err, j.sidecar.close(), j.lock.Close())
}

// records appends the records for the pipeline and its tables to b. n is the number of records.
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

// updateProto returns a change in the form of an update from a controller.
func (s *schema) updateProto(c Change) *v1.Update {
	if c.Group != nil {
		return &v1.Update{Type: c.Op, Entity: groupProto(c.Group)}
	}
	return &v1.Update{Type: c.Op, Entity: s.entryProto(c.Entry)}
}

// replay returns the pipeline that the content of a journal describes.
func replay(b Backend, o Options, c content) (*pipeline, error) {
	p, err := verify(b, o.build(), c.config)
	if err != nil {
		return nil, fmt.Errorf("%w: its pipeline does not fit the device: %v", ErrJournal, err)
	}
	for i, batch := range c.batches { // the state is not committed yet, so the device does not change
		t, err := p.try(b, nil, batch)
		if err != nil || t.faults != nil {
			return nil, fmt.Errorf("%w: batch %d can't be replayed: %v", ErrJournal, i, errors.Join(append(t.faults,
				err)...))
		}
		p.state = t.state
	}
	return p, nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)
