package trace

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/olafctl/olaf"
)

// Layout of a trace file: a line with name and version, a line of JSON, and then blocks. A block has four little-endian
// words (updates, compressed bytes, raw bytes, CRC-32C of the compressed bytes) and one zstd frame. A block without
// updates marks the end; its 8 bytes are the total.
const (
	magic         = "olaftrace/"
	version       = 1
	blockUpdates  = 4096
	blockHeader   = 16
	maxHeaderJSON = 1 << 24
	maxBlockBytes = 1 << 24
	endBytes      = 8
	fixedBytes    = 8 + 4 + 8 // fixed-length part of a row: reward, gradient norm, digest; the rest are varints
)

var noHeader [blockHeader]byte

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Writer writes a trace as a stream. Updates that have been flushed stay readable even if later writes fail.
type Writer struct {
	out     io.Writer
	header  Header
	order   *order
	encoder *zstd.Encoder
	raw     []byte
	packed  []byte
	rows    uint32
	lastNS  int64 // time of the block's last update
	err     error
}

// NewWriter writes the header of a trace to out. The error matches ErrFormat if the header is invalid.
func NewWriter(out io.Writer, h Header) (*Writer, error) {
	if err := h.Check(); err != nil {
		return nil, err
	}
	doc, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("trace header: %w", err)
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return nil, fmt.Errorf("trace compressor: %w", err)
	}
	if _, err := fmt.Fprintf(out, "%s%d\n%s\n", magic, version, doc); err != nil {
		return nil, err
	}
	return &Writer{out: out, header: h, order: newOrder(&h), encoder: encoder}, nil
}

// Write appends an update. If the update breaks the order, Write rejects it with ErrInvalid, and the trace stays valid.
// Any other error is final.
func (w *Writer) Write(u *Update) error {
	if w.err != nil {
		return w.err
	}
	if err := w.order.checkNext(u); err != nil {
		return err
	}
	w.raw = appendRow(w.raw, u, w.lastNS)
	w.lastNS = u.GenNS
	w.rows++
	if w.rows == blockUpdates {
		return w.Flush()
	}
	return nil
}

// Flush ends the current block, which makes all written updates readable.
func (w *Writer) Flush() error {
	if w.rows == 0 { // after an error, no update is accepted and rows stays 0
		return w.err
	}
	w.packed = w.encoder.EncodeAll(w.raw, append(w.packed[:0], noHeader[:]...))
	putBlockHeader(w.packed, w.rows, len(w.raw))
	_, w.err = w.out.Write(w.packed)
	w.raw, w.rows, w.lastNS = w.raw[:0], 0, 0
	return w.err
}

// Close flushes the trace and writes the end mark. It does not close the underlying writer.
func (w *Writer) Close() error {
	if err := w.Flush(); err != nil {
		return err
	}
	block := binary.LittleEndian.AppendUint64(make([]byte, blockHeader), w.order.rows)
	putBlockHeader(block, 0, 0)
	_, err := w.out.Write(block)
	w.err = errors.Join(err, errClosed)
	return err
}

var errClosed = errors.New("trace: written after its end")

// Rows returns the number of updates that have been written.
func (w *Writer) Rows() uint64 { return w.order.rows }

func putBlockHeader(block []byte, rows uint32, raw int) {
	body := block[blockHeader:]
	binary.LittleEndian.PutUint32(block[0:], rows)
	binary.LittleEndian.PutUint32(block[4:], uint32(len(body)))
	binary.LittleEndian.PutUint32(block[8:], uint32(raw))
	binary.LittleEndian.PutUint32(block[12:], crc32.Checksum(body, castagnoli))
}

// appendRow appends the encoded update u to b. The encoded time is relative to the previous update in the block.
func appendRow(b []byte, u *Update, lastNS int64) []byte {
	for _, v := range [...]uint64{uint64(u.GenNS - lastNS), uint64(u.Worker), uint64(u.Cluster), uint64(u.Seq),
		u.BaseVersion,
		uint64(u.Episodes), uint64(u.EnvSteps), uint64(u.CostNS)} {
		b = binary.AppendUvarint(b, v)
	}
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(u.Reward))
	b = binary.LittleEndian.AppendUint32(b, math.Float32bits(u.GradNorm))
	return binary.LittleEndian.AppendUint64(b, u.Digest)
}

// parseRow decodes an update that appendRow encoded and returns the rest of b. It returns nil if b is too short or a
// value is out of range.
func parseRow(b []byte, u *Update, lastNS int64) []byte {
	var v [8]uint64
	for i := range v {
		n := 0
		v[i], n = binary.Uvarint(b)
		if n <= 0 {
			return nil
		}
		b = b[n:]
	}
	if len(b) < fixedBytes || v[0] > math.MaxInt64-uint64(lastNS) || v[1] > math.MaxUint16 || v[2] > math.MaxUint16 ||
		v[3] > math.MaxUint32 || v[5] > math.MaxUint32 || v[6] > math.MaxUint32 || v[7] > math.MaxInt64 {
		return nil
	}
	*u = Update{GenNS: lastNS + int64(v[0]), Worker: olaf.WorkerID(v[1]), Cluster: olaf.ClusterID(v[2]),
		Seq:         uint32(v[3]),
		BaseVersion: v[4], Episodes: uint32(v[5]), EnvSteps: uint32(v[6]), CostNS: int64(v[7]),
		Reward:   math.Float64frombits(binary.LittleEndian.Uint64(b)),
		GradNorm: math.Float32frombits(binary.LittleEndian.Uint32(b[8:])),
		Digest:   binary.LittleEndian.Uint64(b[12:])}
	return b[fixedBytes:]
}

// Reader reads a trace as a stream and checks it against all rules of the format.
type Reader struct {
	in      *bufio.Reader
	header  Header
	order   *order
	decoder *zstd.Decoder
	head    [blockHeader]byte
	packed  []byte
	raw     []byte
	rest    []byte // unread part of raw
	rows    uint32 // rows left in the block
	lastNS  int64
	done    bool
}

// newReader reads the header of a trace. The error matches ErrFormat, ErrVersion or ErrTruncated.
func newReader(in io.Reader) (*Reader, error) {
	r := &Reader{in: bufio.NewReaderSize(in, 1<<16)}
	if err := r.readHeader(); err != nil {
		return nil, err
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBlockBytes))
	if err != nil {
		return nil, fmt.Errorf("trace decompressor: %w", err)
	}
	r.decoder, r.order = decoder, newOrder(&r.header)
	return r, nil
}

func (r *Reader) readHeader() error {
	first, err := r.in.Peek(len(magic))
	if err != nil || string(first) != magic {
		return fmt.Errorf("%w: it does not begin with %q", ErrFormat, magic)
	}
	line, err := r.in.ReadSlice('\n')
	if err != nil {
		return fmt.Errorf("%w: no version after %q", ErrFormat, magic)
	}
	number, err := strconv.Atoi(strings.TrimSpace(string(line[len(magic):])))
	if err != nil || number < 1 {
		return fmt.Errorf("%w: no version after %q", ErrFormat, magic)
	}
	if number > version {
		return fmt.Errorf("%w: it is olaftrace/%d and this olafctl reads up to olaftrace/%d; update olafctl or "+
			"record again", ErrVersion, number, version)
	}
	doc, err := readLine(r.in, maxHeaderJSON)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(doc, &r.header); err != nil {
		return fmt.Errorf("%w: its header is not the JSON it should be: %v", ErrFormat, err)
	}
	return r.header.Check()
}

// readLine reads a line of at most longest bytes and returns it without the newline.
func readLine(in *bufio.Reader, longest int) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return bytes.TrimSuffix(line, []byte{'\n'}), nil
		case err == io.EOF:
			return nil, fmt.Errorf("%w in its header", ErrTruncated)
		case err != bufio.ErrBufferFull:
			return nil, err
		case len(line) > longest:
			return nil, fmt.Errorf("%w: its header is longer than %d bytes", ErrFormat, longest)
		}
	}
}

// Header returns the header of the trace.
func (r *Reader) Header() *Header { return &r.header }

// Next reads one update. At the regular end, it returns io.EOF. The error matches ErrTruncated if the file ends early,
// ErrFormat if a block is damaged, and ErrInvalid if an update breaks the order. These errors include the number of
// valid updates before.
func (r *Reader) Next(u *Update) error {
	for r.rows == 0 {
		if r.done {
			return io.EOF
		}
		if err := r.readBlock(); err != nil {
			return err
		}
	}
	rest := parseRow(r.rest, u, r.lastNS)
	if rest == nil {
		return r.damagedError("an update does not decode")
	}
	r.rest = rest
	r.lastNS = u.GenNS
	r.rows--
	return r.order.checkNext(u)
}

func (r *Reader) damagedError(what string) error {
	return fmt.Errorf("%w: %s after %d good updates", ErrFormat, what, r.order.rows)
}

func (r *Reader) readBlock() error {
	if _, err := io.ReadFull(r.in, r.head[:]); err != nil {
		return r.truncatedError(err)
	}
	rows := binary.LittleEndian.Uint32(r.head[0:])
	packed := binary.LittleEndian.Uint32(r.head[4:])
	raw := binary.LittleEndian.Uint32(r.head[8:])
	if packed > maxBlockBytes || raw > maxBlockBytes || rows > raw {
		return r.damagedError("a block header makes no sense")
	}
	if cap(r.packed) < int(packed) {
		r.packed = make([]byte, packed)
	}
	r.packed = r.packed[:packed]
	if _, err := io.ReadFull(r.in, r.packed); err != nil {
		return r.truncatedError(err)
	}
	if crc32.Checksum(r.packed, castagnoli) != binary.LittleEndian.Uint32(r.head[12:]) {
		return r.damagedError("a block's checksum is wrong")
	}
	if rows == 0 {
		return r.readEnd()
	}
	var err error
	r.raw, err = r.decoder.DecodeAll(r.packed, r.raw[:0])
	if err != nil || len(r.raw) != int(raw) {
		return r.damagedError("a block does not decompress")
	}
	r.rest, r.rows, r.lastNS = r.raw, rows, 0
	return nil
}

func (r *Reader) readEnd() error {
	if len(r.packed) != endBytes {
		return r.damagedError("the end mark has a wrong length")
	}
	if total := binary.LittleEndian.Uint64(r.packed); total != r.order.rows {
		return r.damagedError(fmt.Sprintf("the end mark says %d updates", total))
	}
	if _, err := r.in.ReadByte(); err != io.EOF {
		return r.damagedError("there is more behind the end mark")
	}
	r.done = true
	return nil
}

// truncatedError converts an error about an early end of the file to ErrTruncated.
func (r *Reader) truncatedError(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return fmt.Errorf("%w after %d good updates", ErrTruncated, r.order.rows)
	}
	return err
}
