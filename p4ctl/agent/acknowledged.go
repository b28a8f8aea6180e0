package agent

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
)

// chain is the checksum of a journal's records up to one of them: each sum covers the one before, from the file's header.
type chain [sha256.Size]byte

func (c chain) next(record []byte) chain {
	h := sha256.New()
	h.Write(c[:])
	h.Write(record)
	return chain(h.Sum(nil))
}

// acknowledged says how much of a journal its agent has answered for: what comes behind was never acknowledged, and
// everything up to there was.
type acknowledged struct {
	epoch   uint64 // of the journal file; a rewrite begins the next
	records uint64 // the pipeline and the batches behind it
	sum     chain  // over them
}

// The sidecar holds two acknowledgements in places of their own sectors, written in turns: whatever happens to the one
// being written, the one before is there. While a journal is rewritten they are of the old file and of the new. Neither place
// is ever left empty, so that one that is tells of a lost sector or a cut, and not of an acknowledgement that was never given.
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

// parseSlot reads one place of a sidecar; whole is false where it holds no acknowledgement.
func parseSlot(b []byte) (a acknowledged, whole bool) {
	if len(b) < slotBytes {
		padded := make([]byte, slotBytes)
		copy(padded, b)
		b = padded
	}
	b = b[:slotBytes]
	body := b[:slotBytes-4]
	if string(b[:len(slotMagic)]) != slotMagic || crc32.Checksum(body, castagnoli) != binary.BigEndian.Uint32(b[slotBytes-4:]) {
		return acknowledged{}, false
	}
	body = body[len(slotMagic):]
	return acknowledged{binary.BigEndian.Uint64(body), binary.BigEndian.Uint64(body[8:]), chain(body[16:])}, true
}

// slots gives both places of a sidecar's bytes.
func slots(b []byte) (all [slotCount]acknowledged, whole [slotCount]bool) {
	for i := range slotCount {
		all[i], whole[i] = parseSlot(b[min(len(b), i*slotStride):])
	}
	return all, whole
}

// sidecar is the file beside a journal that holds what was acknowledged of it.
type sidecar struct {
	fs   fileSystem
	path string
	file writable
	at   int // the place of the newest acknowledgement, which stays until a newer one stands in the other
}

// acknowledgement is what a sidecar says.
type acknowledgement struct {
	acknowledged
	at      int
	missing bool // there is no file
	damaged bool // one place holds none: a newer acknowledgement may have stood there
}

// readSidecar gives the newest acknowledgement of a journal's epoch. The error matches ErrJournal where there is none.
func readSidecar(fsys fileSystem, path string, epoch uint64) (acknowledgement, error) {
	b, err := fsys.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return acknowledgement{missing: true}, nil
	}
	if err != nil {
		return acknowledgement{}, fmt.Errorf("%w: %w", ErrJournal, err)
	}
	newest := acknowledgement{at: -1}
	all, whole := slots(b)
	for i, a := range all {
		newest.damaged = newest.damaged || !whole[i]
		if whole[i] && a.epoch == epoch && (newest.at < 0 || a.records > newest.records) {
			newest.acknowledged, newest.at = a, i
		}
	}
	if newest.at < 0 {
		return acknowledgement{}, fmt.Errorf("%w: %s is not of this journal, or damaged", ErrJournal, path)
	}
	return newest, nil
}

// begin makes a new file with one acknowledgement, in both places.
func (s *sidecar) begin(a acknowledged) error {
	if err := s.close(); err != nil { // of the file that the new one replaces
		return err
	}
	b := make([]byte, slotStride*(slotCount-1)+slotBytes)
	for i := range slotCount {
		copy(b[i*slotStride:], a.bytes())
	}
	s.at = 0
	return writeWhole(s.fs, s.path, b)
}

// write puts an acknowledgement durably in the place that is not the newest's; turn makes it the newest.
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

// withdraw puts the newest acknowledgement into the place, too, that write began to fill: what stands there must not be
// taken for an answer.
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

func (s *sidecar) turn() { s.at = 1 - s.at }

func (s *sidecar) close() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}
