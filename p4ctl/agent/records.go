package agent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"

	v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/proto"
)

// A journal file consists of a header and records. The header is a line with the magic string, the epoch (8 bytes,
// big-endian) and the CRC-32C of both (4). A record is the length of its payload (4), the CRC-32C of length, kind and
// payload (4), the kind (1) and the payload (protobuf). Version 1 had no epoch, and its checksums omitted the length.
const (
	journalMagic   = "olafctl.journal/v2\n"
	journalMagic1  = "olafctl.journal/v1\n"
	headerBytes    = len(journalMagic) + 8 + 4
	recordHeader   = 9
	recordPipeline = 1 // ForwardingPipelineConfig, which resets the tables; always the first record
	recordBatch    = 2 // WriteRequest; only its updates count
	maxRecord      = 128 << 20
	version1       = 1
	version2       = 2
)

func newHeader(epoch uint64) []byte {
	b := binary.BigEndian.AppendUint64([]byte(journalMagic), epoch)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

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
	binary.BigEndian.PutUint32(b[start+4:], recordSum(b[start:], version2))
	return b, nil
}

// recordSum returns the checksum of a complete record.
func recordSum(record []byte, version int) uint32 {
	sum := uint32(0)
	if version == version2 {
		sum = crc32.Checksum(record[:4], castagnoli)
	}
	return crc32.Update(sum, castagnoli, record[8:])
}

// scanned is the valid part of a file, which ends before the first bytes that are not a record.
type scanned struct {
	version int // version of the format; 0 if the header is invalid
	epoch   uint64
	records []record
	fault   error // reason why the scan ended before the end of the file
	first   int64 // offset of the first record
	start   chain // checksum of the header
}

// record is a complete record with the chain of all checksums up to it.
type record struct {
	kind    byte
	payload []byte
	end     int64
	sum     chain
}

func scanJournal(b []byte) scanned {
	s := scanned{}
	text := string(b[:min(len(b), len(journalMagic))])
	switch {
	case text == journalMagic1:
		s.version, s.first = version1, int64(len(journalMagic1))
	case strings.HasPrefix(text, journalMagic) && len(b) >= headerBytes &&
		crc32.Checksum(b[:headerBytes-4], castagnoli) == binary.BigEndian.Uint32(b[headerBytes-4:]):
		s.version, s.first = version2, int64(headerBytes)
		s.epoch = binary.BigEndian.Uint64(b[len(journalMagic):])
	default:
		s.fault = fmt.Errorf("the file does not start like a journal")
		return s
	}
	s.start = chain{}.next(b[:s.first])
	at, sum := s.first, s.start
	for at < int64(len(b)) {
		n, err := recordLength(b[at:], s.version)
		if err != nil {
			s.fault = fmt.Errorf("record %d at byte %d: %w", len(s.records)+1, at, err)
			return s
		}
		r := b[at : at+n]
		sum = sum.next(r)
		at += n
		s.records = append(s.records, record{r[8], r[recordHeader:], at, sum})
	}
	return s
}

// recordLength returns the length of the record at the beginning of b.
func recordLength(b []byte, version int) (int64, error) {
	if len(b) < recordHeader {
		return 0, errors.New("the file ends in its header")
	}
	n := recordHeader + int64(binary.BigEndian.Uint32(b))
	switch {
	case n > recordHeader+maxRecord:
		return 0, fmt.Errorf("its length of %d bytes is above the limit", n)
	case n > int64(len(b)):
		return 0, errors.New("the file ends in the middle of it")
	case recordSum(b[:n], version) != binary.BigEndian.Uint32(b[4:]):
		return 0, errors.New("its checksum is wrong")
	}
	return n, nil
}

// endOf returns the offset at which the first n records end.
func (s *scanned) endOf(n int) int64 {
	if n == 0 {
		return s.first
	}
	return s.records[n-1].end
}

// sumOf returns the chain of checksums over the first n records.
func (s *scanned) sumOf(n int) chain {
	if n == 0 {
		return s.start
	}
	return s.records[n-1].sum
}

func (s *scanned) reason() error {
	if s.fault != nil {
		return s.fault
	}
	return errors.New("the file ends there")
}

func (s scanned) acknowledgedUpTo(n int) acknowledged {
	return acknowledged{s.epoch, uint64(n), s.sumOf(n)}
}

// content is the state that a journal contains: the last committed pipeline and the batches after it.
type content struct {
	config  *v1.ForwardingPipelineConfig
	batches []*v1.WriteRequest
}

// content decodes the first n records.
func (s *scanned) content(n int) (content, error) {
	var c content
	for i, r := range s.records[:n] {
		var err error
		switch {
		case r.kind == recordPipeline:
			c = content{config: new(v1.ForwardingPipelineConfig)}
			err = proto.Unmarshal(r.payload, c.config)
		case r.kind == recordBatch && c.config != nil:
			batch := new(v1.WriteRequest)
			err = proto.Unmarshal(r.payload, batch)
			c.batches = append(c.batches, batch)
		default:
			err = fmt.Errorf("a record of kind %d is not allowed here", r.kind)
		}
		if err != nil {
			return content{}, fmt.Errorf("%w: record %d: %w", ErrJournal, i+1, err)
		}
	}
	return c, nil
}
