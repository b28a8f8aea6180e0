// Package columns is the compact form in which delivered frames are kept: blocks of at most 65,536 observations, each field
// in a column of its own, as differences in variable-length integers, compressed with Zstandard. Writing costs a few
// tens of nanoseconds an observation, reading needs no more memory than one block.
//
// A block is a header of five little-endian 32-bit words (magic "OLB1", run, observations, bytes of columns, bytes
// compressed), then the compressed columns, each preceded by its length. Blocks stand on their own; a file is blocks one
// after the other, and those of one run follow each other.
package columns

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/olafctl/olaf"
)

// ErrFormat is the kind of every file that is not whole blocks of observations.
var ErrFormat = errors.New("columns: not a file of observations, or a damaged one")

const (
	magic       = 0x31424c4f // "OLB1"
	headerBytes = 20
	// A block ends at this many observations or contributors, whichever comes first.
	maxObservations = 1 << 16
	maxContributors = 1 << 18
	// maxRaw bounds what a reader unpacks: far above what a block can take.
	maxRaw = 64 << 20
)

// The columns of a block, in the order of the file.
const (
	colAt = iota
	colQueued
	colAge
	colSeq
	colReward
	colCluster
	colWorker
	colCount
	colLanes
	colFlags
	colInside // 0 without provenance, else contributors + 1
	colInsideWorker
	colInsideAge
	colInsideSeq
	columnCount
)

// Encoder turns the observations of one run after the other into blocks. It keeps its memory and is not safe for
// concurrent use.
type Encoder struct {
	zstd         *zstd.Encoder
	column       [columnCount][]byte
	raw, out     []byte
	run          uint32
	observations int
	contributors int
	last         olaf.Observation
}

// NewEncoder makes an Encoder.
func NewEncoder() (*Encoder, error) {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(true), zstd.WithWindowSize(1<<20))
	if err != nil {
		return nil, fmt.Errorf("columns: %w", err)
	}
	return &Encoder{zstd: z}, nil
}

// Begin starts a run, which the caller numbers.
func (e *Encoder) Begin(run uint32) {
	e.run, e.out = run, e.out[:0]
	e.clear()
}

func (e *Encoder) clear() {
	for i := range e.column {
		e.column[i] = e.column[i][:0]
	}
	e.observations, e.contributors, e.last = 0, 0, olaf.Observation{}
}

func (e *Encoder) unsigned(column int, v uint64) {
	e.column[column] = binary.AppendUvarint(e.column[column], v)
}

func (e *Encoder) signed(column int, v int64) {
	e.column[column] = binary.AppendVarint(e.column[column], v)
}

// Append takes the next observation of the run. o is not kept.
func (e *Encoder) Append(o *olaf.Observation) {
	u := &o.Update
	e.signed(colAt, int64(o.At-e.last.At))
	e.signed(colQueued, int64(o.Queued))
	e.unsigned(colAge, (uint64(o.At.NS())-u.GenNS)%olaf.GenModulus)
	e.unsigned(colSeq, uint64(u.Seq))
	e.signed(colReward, int64(u.Reward))
	e.unsigned(colCluster, uint64(u.Cluster))
	e.unsigned(colWorker, uint64(u.Worker))
	e.unsigned(colCount, uint64(u.Count))
	e.signed(colLanes, int64(u.Lanes)-int64(e.last.Update.Lanes))
	e.unsigned(colFlags, uint64(u.Flags))
	if o.Contributors == nil {
		e.unsigned(colInside, 0)
	} else {
		e.unsigned(colInside, uint64(len(o.Contributors))+1)
	}
	for i := range o.Contributors {
		c := &o.Contributors[i]
		e.signed(colInsideWorker, int64(c.Worker)-int64(u.Worker))
		e.unsigned(colInsideAge, (u.GenNS-c.GenNS)%olaf.GenModulus)
		e.signed(colInsideSeq, int64(c.Seq)-int64(u.Seq))
	}
	e.last.At, e.last.Update.Lanes = o.At, u.Lanes
	e.observations++
	e.contributors += len(o.Contributors)
	if e.observations == maxObservations || e.contributors >= maxContributors {
		e.flush()
	}
}

func (e *Encoder) flush() {
	e.raw = e.raw[:0]
	for _, c := range e.column {
		e.raw = binary.AppendUvarint(e.raw, uint64(len(c)))
		e.raw = append(e.raw, c...)
	}
	start := len(e.out)
	for _, word := range []uint32{magic, e.run, uint32(e.observations), uint32(len(e.raw)), 0} {
		e.out = binary.LittleEndian.AppendUint32(e.out, word)
	}
	e.out = e.zstd.EncodeAll(e.raw, e.out)
	binary.LittleEndian.PutUint32(e.out[start+16:], uint32(len(e.out)-start-headerBytes))
	e.clear()
}

// End ends the run and returns its blocks, which are valid until the next Begin.
func (e *Encoder) End() []byte {
	if e.observations > 0 {
		e.flush()
	}
	return e.out
}

// Reader reads observations back. It holds one block at a time.
type Reader struct {
	r            io.Reader
	zstd         *zstd.Decoder
	packed, raw  []byte
	column       [columnCount][]byte
	run          uint32
	left         int
	last         olaf.Observation
	contributors []olaf.Contributor
}

// NewReader makes a Reader of blocks from r. Close it after use.
func NewReader(r io.Reader) (*Reader, error) {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxRaw), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, fmt.Errorf("columns: %w", err)
	}
	return &Reader{r: r, zstd: z}, nil
}

// Close releases the decoder's memory.
func (r *Reader) Close() { r.zstd.Close() }

// Next fills o with the next observation and returns the number of its run. The contributors are reused by the next call.
// It ends with io.EOF; a damaged or truncated file gives an error that matches ErrFormat.
func (r *Reader) Next(o *olaf.Observation) (run uint32, err error) {
	for r.left == 0 {
		if err := r.block(); err != nil {
			return 0, err
		}
	}
	r.left--
	d := fields{column: &r.column}
	u := &o.Update
	o.At = r.last.At + olaf.Time(d.signed(colAt))
	o.Queued = olaf.Duration(d.signed(colQueued))
	u.GenNS = (uint64(o.At.NS()) - d.unsigned(colAge, olaf.GenModulus-1)) % olaf.GenModulus
	u.Seq = uint32(d.unsigned(colSeq, 1<<32-1))
	u.Reward = int32(d.signed(colReward))
	u.Cluster = olaf.ClusterID(d.unsigned(colCluster, 1<<16-1))
	u.Worker = olaf.WorkerID(d.unsigned(colWorker, 1<<16-1))
	u.Count = uint16(d.unsigned(colCount, 1<<16-1))
	u.Lanes = uint16(int64(r.last.Update.Lanes) + d.signed(colLanes))
	u.Flags = olaf.Flags(d.unsigned(colFlags, 1<<8-1))
	o.Contributors = r.inside(&d, u)
	r.last.At, r.last.Update.Lanes = o.At, u.Lanes
	if d.damaged {
		return 0, fmt.Errorf("%w: a column of run %d ends early or is out of range", ErrFormat, r.run)
	}
	return r.run, nil
}

func (r *Reader) inside(d *fields, u *olaf.Update) []olaf.Contributor {
	n := d.unsigned(colInside, maxContributors+olaf.MaxCount)
	if n == 0 {
		return nil
	}
	if r.contributors == nil {
		r.contributors = make([]olaf.Contributor, 0, 64)
	}
	r.contributors = r.contributors[:0]
	for range n - 1 {
		r.contributors = append(r.contributors, olaf.Contributor{
			Worker: olaf.WorkerID(int64(u.Worker) + d.signed(colInsideWorker)),
			GenNS:  (u.GenNS - d.unsigned(colInsideAge, olaf.GenModulus-1)) % olaf.GenModulus,
			Seq:    uint32(int64(u.Seq) + d.signed(colInsideSeq)),
		})
		if d.damaged {
			break
		}
	}
	return r.contributors
}

// block reads and unpacks the next block.
func (r *Reader) block() error {
	var header [headerBytes]byte
	if _, err := io.ReadFull(r.r, header[:]); err == io.EOF {
		return io.EOF
	} else if err != nil {
		return fmt.Errorf("%w: a block's header is cut (%w)", ErrFormat, err)
	}
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(header[4*i:]) }
	observations, raw, packed := word(2), word(3), word(4)
	if word(0) != magic || observations == 0 || observations > maxObservations || raw > maxRaw || packed > maxRaw {
		return fmt.Errorf("%w: no block's header where one should be", ErrFormat)
	}
	// The length is a claim: read as it comes rather than make room for it first.
	var err error
	if r.packed, err = readUpTo(r.r, r.packed[:0], int(packed)); err != nil {
		return fmt.Errorf("%w: a block is cut (%w)", ErrFormat, err)
	}
	if r.raw, err = r.zstd.DecodeAll(r.packed, r.raw[:0]); err != nil || len(r.raw) != int(raw) {
		return fmt.Errorf("%w: a block does not unpack to the %d bytes it claims (%v)", ErrFormat, raw, err)
	}
	rest := r.raw
	for i := range r.column {
		n, size := binary.Uvarint(rest)
		if size <= 0 || n > uint64(len(rest)-size) {
			return fmt.Errorf("%w: column %d is longer than its block", ErrFormat, i)
		}
		r.column[i], rest = rest[size:size+int(n)], rest[size+int(n):]
	}
	r.run, r.left, r.last = word(1), int(observations), olaf.Observation{}
	return nil
}

// readUpTo appends n bytes of r to dst, in steps.
func readUpTo(r io.Reader, dst []byte, n int) ([]byte, error) {
	const step = 1 << 16
	for n > 0 {
		k := min(n, step)
		start := len(dst)
		dst = append(dst, make([]byte, k)...)
		if _, err := io.ReadFull(r, dst[start:]); err != nil {
			return dst, err
		}
		n -= k
	}
	return dst, nil
}

// fields takes values off the columns and remembers when one was not there.
type fields struct {
	column  *[columnCount][]byte
	damaged bool
}

func (d *fields) unsigned(column int, limit uint64) uint64 {
	v, n := binary.Uvarint(d.column[column])
	if n <= 0 || v > limit {
		d.damaged = true
		return 0
	}
	d.column[column] = d.column[column][n:]
	return v
}

func (d *fields) signed(column int) int64 {
	v, n := binary.Varint(d.column[column])
	if n <= 0 {
		d.damaged = true
		return 0
	}
	d.column[column] = d.column[column][n:]
	return v
}
