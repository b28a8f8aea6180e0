// Package obsfile implements a compact format for stored deliveries. Observations are stored in blocks of at most
// 8,192. Each field has its own column, which contains differences as variable-length integers and is compressed with
// S2. Writing takes a few tens of nanoseconds per observation, and reading needs memory for one block. A block has a
// header of six little-endian 32-bit words (magic "OLB1", run, observations, bytes of columns, bytes compressed,
// CRC-32C of the columns), followed by the compressed columns, each preceded by its length. Blocks are independent. A
// file is a sequence of blocks, in which the blocks of one run are adjacent.
package obsfile

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"

	"github.com/klauspost/compress/s2"
	"github.com/olafctl/olaf"
)

// ErrFormat is the error for a file that does not consist of complete blocks of observations.
var ErrFormat = olaf.NewError(olaf.Failed, "columns: not a file of observations, or a damaged one")

const (
	magic       = 0x31424c4f // "OLB1"
	headerBytes = 24
	// maxObservations and maxContributors are the numbers at which a block ends. It ends at whichever is reached first.
	maxObservations = 1 << 13
	maxContributors = 1 << 15
	// maxRaw limits the unpacked size of a block. It is far above the size of any valid block.
	maxRaw = 64 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// The columns of a block, in file order.
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
	colInside // 0 without provenance, 1 if the update is its only contributor, else contributors + 2
	rowColumns
)

// The columns of contributors, which follow those of updates.
const (
	colInsideWorker = iota
	colInsideAge
	colInsideSeq
	insideColumns
)

const columnCount = rowColumns + insideColumns

// Encoder encodes the observations of successive runs as blocks. It reuses its memory and is not safe for concurrent
// use. The zero Encoder can be used immediately, starting with Begin.
type Encoder struct {
	// The open block. It has one row per observation and one per contributor. Signed values are zigzag-encoded.
	rows   [][rowColumns]uint64
	inside [][insideColumns]uint64

	column      []byte
	raw, packed []byte
	out         []byte
	run         uint32
	lastAt      olaf.Time
	lastLanes   uint16
}

// Begin starts the run with the given number.
func (e *Encoder) Begin(run uint32) {
	e.run, e.out = run, e.out[:0]
	e.clear()
}

func (e *Encoder) clear() {
	e.rows, e.inside, e.lastAt, e.lastLanes = e.rows[:0], e.inside[:0], 0, 0
}

// zigzag maps 0, −1, 1, −2, … to 0, 1, 2, 3, …, so that numbers close to 0 are encoded in few bytes.
func zigzag(v int64) uint64 { return uint64(v<<1 ^ v>>63) }

func unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

// Append adds the next observation of the current run. It does not retain o.
func (e *Encoder) Append(o *olaf.Observation) {
	u := &o.Update
	e.rows = append(e.rows, [rowColumns]uint64{
		colAt:      zigzag(int64(o.At - e.lastAt)),
		colQueued:  zigzag(int64(o.Queued)),
		colAge:     (uint64(o.At.NS()) - u.GenNS) % olaf.GenModulus,
		colSeq:     uint64(u.Seq),
		colReward:  zigzag(int64(u.Reward)),
		colCluster: uint64(u.Cluster),
		colWorker:  uint64(u.Worker),
		colCount:   uint64(u.Count),
		colLanes:   zigzag(int64(u.Lanes) - int64(e.lastLanes)),
		colFlags:   uint64(u.Flags),
		colInside:  e.appendInside(o),
	})
	e.lastAt, e.lastLanes = o.At, u.Lanes
	if len(e.rows) == maxObservations || len(e.inside) >= maxContributors {
		e.flush()
	}
}

// appendInside adds the contributors of o to the columns and returns the code for them in column colInside.
func (e *Encoder) appendInside(o *olaf.Observation) uint64 {
	u := &o.Update
	switch {
	case o.Contributors == nil:
		return 0
	case len(o.Contributors) == 1 && o.Contributors[0] == olaf.Contributor{GenNS: u.GenNS, Seq: u.Seq, Worker: u.Worker}:
		return 1
	}
	for i := range o.Contributors {
		c := &o.Contributors[i]
		e.inside = append(e.inside, [insideColumns]uint64{
			colInsideWorker: zigzag(int64(c.Worker) - int64(u.Worker)),
			colInsideAge:    (u.GenNS - c.GenNS) % olaf.GenModulus,
			colInsideSeq:    zigzag(int64(c.Seq) - int64(u.Seq)),
		})
	}
	return uint64(len(o.Contributors)) + 2
}

// appendNumber does the same as binary.AppendUvarint, but is faster for small numbers.
func appendNumber(b []byte, v uint64) []byte {
	if v < 0x80 {
		return append(b, byte(v))
	}
	return binary.AppendUvarint(b, v)
}

func (e *Encoder) closeColumn(b []byte) {
	e.raw = binary.AppendUvarint(e.raw, uint64(len(b)))
	e.raw = append(e.raw, b...)
	e.column = b
}

func (e *Encoder) flush() {
	e.raw = e.raw[:0]
	for k := range rowColumns {
		b := e.column[:0]
		for i := range e.rows {
			b = appendNumber(b, e.rows[i][k])
		}
		e.closeColumn(b)
	}
	for k := range insideColumns {
		b := e.column[:0]
		for i := range e.inside {
			b = appendNumber(b, e.inside[i][k])
		}
		e.closeColumn(b)
	}
	start := len(e.out)
	for _, word := range []uint32{magic, e.run, uint32(len(e.rows)), uint32(len(e.raw)), 0,
		crc32.Checksum(e.raw, castagnoli)} {
		e.out = binary.LittleEndian.AppendUint32(e.out, word)
	}
	e.packed = s2.Encode(e.packed[:cap(e.packed)], e.raw)
	e.out = append(e.out, e.packed...)
	binary.LittleEndian.PutUint32(e.out[start+16:], uint32(len(e.packed)))
	e.clear()
}

// Take removes and returns the complete blocks. They are valid until the next call.
func (e *Encoder) Take() []byte {
	whole := e.out
	e.out = e.out[:0]
	return whole
}

// PendingBytes returns the number of bytes that Take would return.
func (e *Encoder) PendingBytes() int { return len(e.out) }

// End ends the current run and returns its remaining blocks. They are valid until the next call of Begin.
func (e *Encoder) End() []byte {
	if len(e.rows) > 0 {
		e.flush()
	}
	return e.out
}

// Reader reads observations from blocks. It needs memory for one block.
type Reader struct {
	r            io.Reader
	packed, raw  []byte
	column       [columnCount][]byte
	run          uint32
	left         int
	last         olaf.Observation
	contributors []olaf.Contributor
}

// NewReader returns a Reader that reads blocks from r.
func NewReader(r io.Reader) *Reader { return &Reader{r: r} }

// Next reads the next observation into o and returns the number of its run. The next call reuses the memory of the
// contributors. At the end the error is io.EOF. For a damaged or truncated file, the error matches ErrFormat.
func (r *Reader) Next(o *olaf.Observation) (run uint32, err error) {
	for r.left == 0 {
		if err := r.readBlock(); err != nil {
			return 0, err
		}
	}
	r.left--
	d := fields{column: &r.column}
	u := &o.Update
	o.At = r.last.At + olaf.Time(d.takeSigned(colAt))
	o.Queued = olaf.Duration(d.takeSigned(colQueued))
	u.GenNS = (uint64(o.At.NS()) - d.takeUnsigned(colAge, olaf.GenModulus-1)) % olaf.GenModulus
	u.Seq = uint32(d.takeUnsigned(colSeq, 1<<32-1))
	u.Reward = int32(d.takeSigned(colReward))
	u.Cluster = olaf.ClusterID(d.takeUnsigned(colCluster, 1<<16-1))
	u.Worker = olaf.WorkerID(d.takeUnsigned(colWorker, 1<<16-1))
	u.Count = uint16(d.takeUnsigned(colCount, 1<<16-1))
	u.Lanes = uint16(int64(r.last.Update.Lanes) + d.takeSigned(colLanes))
	u.Flags = olaf.Flags(d.takeUnsigned(colFlags, 1<<8-1))
	o.Contributors = r.readInside(&d, u)
	r.last.At, r.last.Update.Lanes = o.At, u.Lanes
	if d.damaged {
		return 0, fmt.Errorf("%w: a column of run %d ends early or is out of range", ErrFormat, r.run)
	}
	return r.run, nil
}

func (r *Reader) readInside(d *fields, u *olaf.Update) []olaf.Contributor {
	code := d.takeUnsigned(colInside, maxRaw)
	if code == 0 {
		return nil
	}
	if r.contributors == nil {
		r.contributors = make([]olaf.Contributor, 0, 64)
	}
	r.contributors = r.contributors[:0]
	if code == 1 {
		r.contributors = append(r.contributors, olaf.Contributor{GenNS: u.GenNS, Seq: u.Seq, Worker: u.Worker})
		return r.contributors
	}
	for range code - 2 {
		r.contributors = append(r.contributors, olaf.Contributor{
			Worker: olaf.WorkerID(int64(u.Worker) + d.takeSigned(rowColumns+colInsideWorker)),
			GenNS:  (u.GenNS - d.takeUnsigned(rowColumns+colInsideAge, olaf.GenModulus-1)) % olaf.GenModulus,
			Seq:    uint32(int64(u.Seq) + d.takeSigned(rowColumns+colInsideSeq)),
		})
		if d.damaged {
			break
		}
	}
	return r.contributors
}

// readBlock reads and unpacks the next block.
func (r *Reader) readBlock() error {
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
	// The length may be wrong: read in steps instead of allocating that many bytes first.
	var err error
	if r.packed, err = readUpTo(r.r, r.packed[:0], int(packed)); err != nil {
		return fmt.Errorf("%w: a block is cut (%w)", ErrFormat, err)
	}
	// Unpack the data only if it has the stated length.
	if n, err := s2.DecodedLen(r.packed); err != nil || n != int(raw) {
		return fmt.Errorf("%w: a block does not unpack to the %d bytes it claims (%v)", ErrFormat, raw, err)
	}
	if r.raw, err = s2.Decode(r.raw[:cap(r.raw)], r.packed); err != nil || crc32.Checksum(r.raw, castagnoli) != word(5) {
		return fmt.Errorf("%w: a block does not match its checksum (%v)", ErrFormat, err)
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

// readUpTo reads n bytes from r and appends them to dst. It reads in steps, so that a damaged length does not allocate
// a large buffer.
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

// fields reads values from the columns of a block and records whether a value was missing or out of range.
type fields struct {
	column  *[columnCount][]byte
	damaged bool
}

func (d *fields) takeUnsigned(column int, limit uint64) uint64 {
	v, n := binary.Uvarint(d.column[column])
	if n <= 0 || v > limit {
		d.damaged = true
		return 0
	}
	d.column[column] = d.column[column][n:]
	return v
}

func (d *fields) takeSigned(column int) int64 {
	return unzigzag(d.takeUnsigned(column, math.MaxUint64))
}
