package agent

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"github.com/google/renameio/v2"
	v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/proto"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/internal/lockfile"
)

// ErrJournal is the kind of every fault of a journal.
var ErrJournal = olaf.NewError(olaf.Usage, "agent: journal")

// A journal is the durable memory of the device's tables: the committed pipeline config, then every batch that was
// accepted. A commit replaces the file; a batch is appended and synced before its answer goes out.
//
// The file is one line of magic, then records: length of the payload (4 bytes, big-endian), CRC-32C of kind and payload
// (4), kind (1), payload (protobuf).
type journal struct {
	path string
	lock io.Closer
	file *os.File
	// size and base are the file's length now and when it was last rewritten.
	size, base int64
}

const (
	journalMagic    = "olafctl.journal/v1\n"
	recordHeader    = 9
	recordPipeline  = 1 // ForwardingPipelineConfig; exactly one, first
	recordBatch     = 2 // WriteRequest; only its updates mean something
	maxRecord       = 128 << 20
	rewriteAfter    = 16 << 20 // appended bytes
	updatesPerBatch = 1000     // in a rewritten file
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func appendRecord(b []byte, kind byte, m proto.Message) ([]byte, error) {
	start := len(b)
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0, kind)
	b, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend(b, m)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrJournal, err)
	}
	if len(b)-start-recordHeader > maxRecord {
		return nil, fmt.Errorf("%w: a record of %d bytes is above the limit of %d", ErrJournal, len(b)-start, maxRecord)
	}
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-recordHeader))
	binary.BigEndian.PutUint32(b[start+4:], crc32.Checksum(b[start+8:], castagnoli))
	return b, nil
}

// readJournal reads what a journal holds. A record that the end of the file cut or garbled was never acknowledged and
// is left out; damage before the end is an error.
func readJournal(r io.Reader) (config *v1.ForwardingPipelineConfig, batches []*v1.WriteRequest, err error) {
	in := bufio.NewReader(r)
	magic := make([]byte, len(journalMagic))
	if _, err := io.ReadFull(in, magic); err != nil || string(magic) != journalMagic {
		return nil, nil, fmt.Errorf("%w: the file does not start with %q", ErrJournal, journalMagic)
	}
	at := int64(len(journalMagic))
	for {
		kind, payload, whole, err := readRecord(in)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: record at byte %d: %v", ErrJournal, at, err)
		}
		if !whole {
			break
		}
		switch {
		case kind == recordPipeline && config == nil:
			config = new(v1.ForwardingPipelineConfig)
			err = proto.Unmarshal(payload, config)
		case kind == recordBatch && config != nil:
			batch := new(v1.WriteRequest)
			err = proto.Unmarshal(payload, batch)
			batches = append(batches, batch)
		default:
			err = fmt.Errorf("kind %d does not belong here", kind)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%w: record at byte %d: %v", ErrJournal, at, err)
		}
		at += recordHeader + int64(len(payload))
	}
	if config == nil {
		return nil, nil, fmt.Errorf("%w: the file holds no pipeline config", ErrJournal)
	}
	return config, batches, nil
}

// readRecord reads one record; whole is false at the end of the file, also in the middle of a record.
func readRecord(in *bufio.Reader) (kind byte, payload []byte, whole bool, err error) {
	var header [recordHeader]byte
	if _, err := io.ReadFull(in, header[:]); err != nil {
		return 0, nil, false, endOfFile(err)
	}
	if header == [recordHeader]byte{} { // what a file system may leave of an append that never was synced
		return 0, nil, false, onlyZeros(in)
	}
	length := int64(binary.BigEndian.Uint32(header[:]))
	var body bytes.Buffer // grows with what is there, not with what the header claims
	n, err := io.CopyN(&body, in, length)
	if n < length {
		return 0, nil, false, endOfFile(err)
	}
	if length > maxRecord {
		return 0, nil, false, fmt.Errorf("length %d is above the limit", length)
	}
	sum := crc32.Update(crc32.Checksum(header[8:], castagnoli), castagnoli, body.Bytes())
	if sum == binary.BigEndian.Uint32(header[4:]) {
		return header[8], body.Bytes(), true, nil
	}
	if _, err := in.Peek(1); err != nil { // nothing follows: the tail of an append that a crash interrupted
		return 0, nil, false, endOfFile(err)
	}
	return 0, nil, false, errors.New("checksum is wrong")
}

// onlyZeros is nil when nothing but zeros follows.
func onlyZeros(in *bufio.Reader) error {
	for {
		b, err := in.ReadByte()
		if err != nil {
			return endOfFile(err)
		}
		if b != 0 {
			return errors.New("an empty record")
		}
	}
}

// endOfFile is nil for an end, early or not.
func endOfFile(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// openJournal takes the journal at path for this agent alone, until close.
func openJournal(path string) (*journal, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%w: %s is a directory; name a file", ErrJournal, path)
	}
	lock, err := lockfile.Take(path+".lock", 0o600) // not the journal itself, which a rewrite replaces
	if errors.Is(err, lockfile.ErrHeld) {
		return nil, fmt.Errorf("%w: %s is kept by another agent; end that one, or name another file", ErrJournal, path)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s cannot be kept: %w", ErrJournal, path, err)
	}
	return &journal{path: path, lock: lock}, nil
}

// read reads the journal; without a file it is empty and config is nil.
func (j *journal) read() (config *v1.ForwardingPipelineConfig, batches []*v1.WriteRequest, err error) {
	f, err := os.Open(j.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrJournal, err)
	}
	defer f.Close()
	config, batches, err = readJournal(f)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w; move the file away to start with empty tables", j.path, err)
	}
	return config, batches, nil
}

// rewrite replaces the file by one that holds the pipeline and its state, and goes on appending to that.
func (j *journal) rewrite(p *pipeline) error {
	if j == nil {
		return nil
	}
	b, err := appendRecord([]byte(journalMagic), recordPipeline, p.config)
	batch := new(v1.WriteRequest)
	flush := func() {
		if err == nil && len(batch.Updates) > 0 {
			b, err = appendRecord(b, recordBatch, batch)
			batch = new(v1.WriteRequest)
		}
	}
	p.state.Changes(func(c Change) bool {
		batch.Updates = append(batch.Updates, p.schema.updateProto(c))
		if len(batch.Updates) == updatesPerBatch {
			flush()
		}
		return err == nil
	})
	flush()
	if err != nil {
		return err
	}
	if err := renameio.WriteFile(j.path, b, 0o600); err != nil {
		return fmt.Errorf("%w: %v", ErrJournal, err)
	}
	if j.file != nil {
		j.file.Close()
	}
	j.size, j.base = int64(len(b)), int64(len(b))
	if j.file, err = os.OpenFile(j.path, os.O_WRONLY|os.O_APPEND, 0); err != nil {
		return fmt.Errorf("%w: %v", ErrJournal, err)
	}
	return nil
}

// add makes a batch of accepted changes durable. next is the pipeline with them.
func (j *journal) add(next *pipeline, changes []Change) error {
	if j == nil || len(changes) == 0 {
		return nil
	}
	if j.file == nil || j.size-j.base > rewriteAfter {
		return j.rewrite(next)
	}
	batch := new(v1.WriteRequest)
	for _, c := range changes {
		batch.Updates = append(batch.Updates, next.schema.updateProto(c))
	}
	b, err := appendRecord(nil, recordBatch, batch)
	if err != nil {
		return err
	}
	if _, err = j.file.Write(b); err == nil {
		err = j.file.Sync()
	}
	if err != nil { // what a failed append left behind must not stay in the middle
		return errors.Join(fmt.Errorf("%w: %v", ErrJournal, err), j.file.Truncate(j.size))
	}
	j.size += int64(len(b))
	return nil
}

func (j *journal) close() error {
	if j == nil {
		return nil
	}
	var err error
	if j.file != nil {
		err = j.file.Close()
	}
	return errors.Join(err, j.lock.Close())
}

// updateProto is a change as a controller would have sent it.
func (s *schema) updateProto(c Change) *v1.Update {
	if c.Group != nil {
		return &v1.Update{Type: c.Op, Entity: groupProto(c.Group)}
	}
	return &v1.Update{Type: c.Op, Entity: s.entryProto(c.Entry)}
}

// replay makes the pipeline that a journal describes.
func replay(b Backend, o Options, config *v1.ForwardingPipelineConfig, batches []*v1.WriteRequest) (*pipeline, error) {
	p, err := verify(b, o.Profile, config)
	if err != nil {
		return nil, fmt.Errorf("%w: its pipeline does not fit the device: %v", ErrJournal, err)
	}
	for i, batch := range batches { // not committed yet, so this touches no device
		state, _, faults, err := p.write(b, nil, batch)
		if err != nil || faults != nil {
			return nil, fmt.Errorf("%w: batch %d does not replay: %v", ErrJournal, i, errors.Join(append(faults, err)...))
		}
		p.state = state
	}
	return p, nil
}
