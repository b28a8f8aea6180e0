package agent

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
)

// chain is a checksum over the first records of a journal. Each record's checksum covers the checksum before it,
// starting with that of the file header.
type chain [sha256.Size]byte

func (c chain) next(record []byte) chain {
	h := sha256.New()
	h.Write(c[:])
	h.Write(record)
	return chain(h.Sum(nil))
}

// acknowledged marks the part of a journal that the agent has acknowledged to controllers. This is everything before
// the mark and nothing after it.
type acknowledged struct {
	epoch   uint64 // epoch of the journal file; each rewrite starts the next one
	records uint64 // number of records: the pipeline and the batches after it
	sum     chain  // checksum over these records
}

// The sidecar has two slots in separate sectors, which are written alternately, so that one acknowledgement survives if
// writing the other fails. During a rewrite of the journal, one slot belongs to the old file and one to the new file. A
// slot is never left empty: an empty slot means that a sector was lost or the file was cut, not that an acknowledgement
// was not written yet.
const (
	slotMagic  = "olafack1"
	slotBytes  = len(slotMagic) + 8 + 8 + sha256.Size + 4
	slotStride = 512
	slotCount  = 2
)

func (a acknowledged) bytes() []byte {
	b := append(make([]byte, 0, slotBytes), slotMagic...)
	b = binary.BigEndian.AppendUint64(b, a.epoch)
	b = binary.BigEndian.AppendUint64(b, a.records)
	b = append(b, a.sum[:]...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// parseSlot parses one slot in a sidecar file. whole is false if the slot contains no valid acknowledgement.
func parseSlot(b []byte) (a acknowledged, whole bool) {
	if len(b) < slotBytes {
		padded := make([]byte, slotBytes)
		copy(padded, b)
		b = padded
	}
	b = b[:slotBytes]
	body := b[:slotBytes-4]
	if string(b[:len(slotMagic)]) != slotMagic ||
		crc32.Checksum(body, castagnoli) != binary.BigEndian.Uint32(b[slotBytes-4:]) {
		return acknowledged{}, false
	}
	body = body[len(slotMagic):]
	return acknowledged{binary.BigEndian.Uint64(body), binary.BigEndian.Uint64(body[8:]), chain(body[16:])}, true
}

// parseSlots parses both slots in a sidecar file.
func parseSlots(b []byte) (all [slotCount]acknowledged, whole [slotCount]bool) {
	for i := range slotCount {
		all[i], whole[i] = parseSlot(b[min(len(b), i*slotStride):])
	}
	return all, whole
}

// sidecar is the file next to a journal that contains its acknowledgements.
type sidecar struct {
	fs   fileSystem
	path string
	file writable
	at   int // slot of the newest acknowledgement; the next one goes to the other slot
}

// acknowledgement is the newest acknowledgement in a sidecar file.
type acknowledgement struct {
	acknowledged
	at      int
	missing bool // the file does not exist
	damaged bool // one slot is invalid: it may have contained a newer acknowledgement
}

// readSidecar returns the newest acknowledgement for the given epoch of a journal. The error matches ErrJournal if
// there is none.
func readSidecar(fsys fileSystem, path string, epoch uint64) (acknowledgement, error) {
	b, err := fsys.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return acknowledgement{missing: true}, nil
	}
	if err != nil {
		return acknowledgement{}, fmt.Errorf("%w: %w", ErrJournal, err)
	}
	newest := acknowledgement{at: -1}
	all, whole := parseSlots(b)
	for i, a := range all {
		newest.damaged = newest.damaged || !whole[i]
		if whole[i] && a.epoch == epoch && (newest.at < 0 || a.records > newest.records) {
			newest.acknowledged, newest.at = a, i
		}
	}
	if newest.at < 0 {
		return acknowledgement{}, fmt.Errorf("%w: %s belongs to another journal or is damaged", ErrJournal, path)
	}
	return newest, nil
}

// begin creates a new file that contains the acknowledgement in both slots.
func (s *sidecar) begin(a acknowledged) error {
	if err := s.close(); err != nil { // close the old file, which the new one replaces
		return err
	}
	b := make([]byte, slotStride*(slotCount-1)+slotBytes)
	for i := range slotCount {
		copy(b[i*slotStride:], a.bytes())
	}
	s.at = 0
	return replaceFile(s.fs, s.path, b)
}

// write stores an acknowledgement durably in the slot that does not contain the newest one. The method turn then makes
// it the newest.
func (s *sidecar) write(a acknowledged) (err error) {
	if s.file == nil {
		if s.file, err = s.fs.Open(s.path); err != nil {
			s.file = nil
			return err
		}
	}
	if _, err = s.file.WriteAt(a.bytes(), int64(1-s.at)*slotStride); err == nil {
		err = s.file.Sync()
	}
	return err
}

// withdraw overwrites the slot that a failed write began to fill. It writes the newest acknowledgement there, so that
// the failed write never counts.
func (s *sidecar) withdraw(newest acknowledged) error {
	if s.file == nil {
		return nil
	}
	_, err := s.file.WriteAt(newest.bytes(), int64(1-s.at)*slotStride)
	if err == nil {
		err = s.file.Sync()
	}
	return err
}

func (s *sidecar) switchSlots() { s.at = 1 - s.at }

func (s *sidecar) close() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}
