package obsfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"

	"github.com/olafctl/olaf"
)

// TestFormatIsPinned checks that stored files remain readable: the unpacked bytes of a file are pinned. The packing is
// the library's.
func TestFormatIsPinned(t *testing.T) {
	e := new(Encoder)
	for n, want := range map[int]string{
		100:                     "31424c4f 00000007 00000064, 2557 bytes: 1d0d35c53504bac7",
		3 * maxObservations / 2: "31424c4f 00000007 00002000, 216674 bytes: a84744f91e94f69e",
	} {
		raw := sample(e, n)
		word := func(i int) uint32 { return binary.LittleEndian.Uint32(raw[4*i:]) }
		columns, err := s2.Decode(nil, raw[24:24+word(4)])
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(columns)
		if got := fmt.Sprintf("%08x %08x %08x, %d bytes: %x", word(0), word(1), word(2), len(columns), sum[:8]); got != want {
			t.Errorf("%d observations: %s, want %s", n, got, want)
		}
	}
}

// TestContributorsEndABlock checks that a block also ends with the contributor that fills it.
func TestContributorsEndABlock(t *testing.T) {
	e := new(Encoder)
	e.Begin(1)
	o := olaf.Observation{Contributors: make([]olaf.Contributor, 1<<14)}
	e.Append(&o)
	if e.PendingBytes() != 0 {
		t.Error("half of the contributors end a block")
	}
	if e.Append(&o); e.PendingBytes() == 0 {
		t.Error("all contributors end no block")
	}
	o.Contributors = o.Contributors[:100]
	e.Append(&o)
	if got, err := readAll(e.End()); err != nil || len(got) != 3 {
		t.Errorf("%d observations, %v", len(got), err)
	}
}

func TestNumbersAreVarints(t *testing.T) {
	for _, v := range []uint64{0, 1, 126, 127, 128, 129, 16383, 16384, math.MaxUint64} {
		if got, want := appendNumber(nil, v), binary.AppendUvarint(nil, v); !bytes.Equal(got, want) {
			t.Errorf("%d is %x, want %x", v, got, want)
		}
	}
}

// crafted returns a block of one row and some contributors with arbitrary contents, complete and with the right
// checksum.
func crafted(row func(*[rowColumns]uint64), inside ...[insideColumns]uint64) []byte {
	e := new(Encoder)
	e.Begin(5)
	e.rows = append(e.rows, [rowColumns]uint64{})
	row(&e.rows[0])
	e.inside = inside
	return slices.Clone(e.End())
}

// TestEveryRangeIsChecked checks a block with the largest valid value of each field, and with the next larger value.
func TestEveryRangeIsChecked(t *testing.T) {
	for name, c := range map[string]struct {
		column int
		most   uint64
	}{
		"age": {colAge, olaf.GenModulus - 1}, "sequence": {colSeq, math.MaxUint32}, "cluster": {colCluster, math.MaxUint16},
		"worker": {colWorker, math.MaxUint16}, "count": {colCount, math.MaxUint16}, "flags": {colFlags, math.MaxUint8},
	} {
		for v, want := range map[uint64]error{c.most: nil, c.most + 1: ErrFormat, c.most + 2: ErrFormat} {
			r := NewReader(bytes.NewReader(crafted(func(row *[rowColumns]uint64) { row[c.column] = v })))
			var o olaf.Observation
			if run, err := r.Next(&o); !errors.Is(err, want) || err != nil && run != 0 || err == nil && run != 5 {
				t.Errorf("%s %d: run %d, %v", name, v, run, err)
			}
		}
	}
	two := func(row *[rowColumns]uint64) { row[colInside] = 2 + 2 }
	for name, c := range map[string]struct {
		inside [][insideColumns]uint64
		want   error
	}{
		"all there":     {[][insideColumns]uint64{{}, {0, olaf.GenModulus - 1, 0}}, nil},
		"one too few":   {[][insideColumns]uint64{{}}, ErrFormat},
		"an age beyond": {[][insideColumns]uint64{{}, {0, olaf.GenModulus, 0}}, ErrFormat},
	} {
		if _, err := readAll(crafted(two, c.inside...)); !errors.Is(err, c.want) {
			t.Errorf("contributors, %s: %v", name, err)
		}
	}
}

// TestEveryClaimIsChecked changes the words of a block's header one after the other and checks that each change is
// rejected.
func TestEveryClaimIsChecked(t *testing.T) {
	good := crafted(func(*[rowColumns]uint64) {})
	if _, err := readAll(good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(word func(i int, v uint32)){
		"magic":                 func(word func(int, uint32)) { word(0, magic+1) },
		"no observation":        func(word func(int, uint32)) { word(2, 0) },
		"too many observations": func(word func(int, uint32)) { word(2, maxObservations+1) },
		"one more observation":  func(word func(int, uint32)) { word(2, 2) },
		"unpacked length":       func(word func(int, uint32)) { word(3, binary.LittleEndian.Uint32(good[12:])+1) },
		"unpacked too long":     func(word func(int, uint32)) { word(3, maxRaw+1) },
		"packed too long":       func(word func(int, uint32)) { word(4, maxRaw+1) },
		"packed length":         func(word func(int, uint32)) { word(4, binary.LittleEndian.Uint32(good[16:])+1) },
		"checksum":              func(word func(int, uint32)) { word(5, binary.LittleEndian.Uint32(good[20:])+1) },
	} {
		bad := slices.Clone(good)
		change(func(i int, v uint32) { binary.LittleEndian.PutUint32(bad[4*i:], v) })
		_, err := readAll(bad)
		if beyond := strings.HasSuffix(name, "too long"); !errors.Is(err, ErrFormat) || beyond &&
			!strings.Contains(err.Error(), "no block's header") {
			t.Errorf("%s: %v", name, err) // a block that is too long is rejected before it is read
		}
	}
	for cut := 1; cut < len(good); cut++ {
		if _, err := readAll(good[:cut]); !errors.Is(err, ErrFormat) {
			t.Errorf("cut at %d: %v", cut, err)
		}
	}
	if kind, declared := olaf.KindOf(ErrFormat); !declared || kind != olaf.Failed {
		t.Errorf("kind %v", kind)
	}
}

// block returns a block of one observation that unpacks to raw, with the right header and checksum.
func block(raw []byte) (b []byte) {
	packed := s2.Encode(nil, raw)
	for _, word := range []uint32{magic, 5, 1, uint32(len(raw)), uint32(len(packed)), crc32.Checksum(raw, castagnoli)} {
		b = binary.LittleEndian.AppendUint32(b, word)
	}
	return append(b, packed...)
}

// TestWrongColumnLengthsAreRejected checks that wrong lengths of columns are rejected.
func TestWrongColumnLengthsAreRejected(t *testing.T) {
	row := bytes.Repeat([]byte{1, 0}, rowColumns) // one value each
	for name, c := range map[string]struct {
		raw  []byte
		want string
	}{
		"as it should be":     {append(row, 0, 0, 0), ""},
		"nothing":             {nil, "column 0 is longer than its block"},
		"without the last":    {append(row, 0, 0), "column 13 is longer than its block"},
		"the last by one":     {append(row, 0, 0, 1), "column 13 is longer than its block"},
		"a length of 65 bits": {append(row, bytes.Repeat([]byte{0xff}, 11)...), "column 11 is longer than its block"},
		"a length of 64 bits": {append(row, binary.AppendUvarint(nil, math.MaxUint64)...),
			"column 11 is longer than its block"},
		"a length that is cut":   {append(row, 0x80), "column 11 is longer than its block"},
		"a column of no numbers": {append([]byte{1, 0x80}, append(row[2:], 0, 0, 0)...), "a column of run 5 ends early"},
	} {
		if _, err := readAll(block(c.raw)); (err == nil) != (c.want == "") || err != nil &&
			!(errors.Is(err, ErrFormat) && strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestUnpackedSizeIsBounded checks that a few bytes cannot make a reader allocate more than 64 MiB.
func TestUnpackedSizeIsBounded(t *testing.T) {
	const most = 64 << 20
	raw := append(bytes.Repeat([]byte{1, 0}, rowColumns), 0, 0)
	raw = binary.AppendUvarint(raw, uint64(most-len(raw)-4)) // the length itself takes four bytes
	raw = append(raw, make([]byte, most-len(raw))...)
	if got, err := readAll(block(raw)); err != nil || len(got) != 1 {
		t.Errorf("%d bytes: %d observations, %v", len(raw), len(got), err)
	}
	if _, err := readAll(block(append(raw, 0))); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(),
		"no block's header") {
		t.Errorf("one byte more: %v", err)
	}
}

// TestBeginDiscardsUnfinishedRun checks that a run that was not ended has no effect on the next run.
func TestBeginDiscardsUnfinishedRun(t *testing.T) {
	e, fresh := new(Encoder), new(Encoder)
	e.Begin(1)
	e.Append(&olaf.Observation{At: 3, Update: olaf.Update{Lanes: 7}, Contributors: make([]olaf.Contributor, 2)})
	one := olaf.Observation{At: 9, Update: olaf.Update{Lanes: 4}, Contributors: make([]olaf.Contributor, 3)}
	e.Begin(2)
	fresh.Begin(2)
	e.Append(&one)
	fresh.Append(&one)
	if got, want := e.End(), fresh.End(); !bytes.Equal(got, want) {
		t.Errorf("%x after a run that was not ended, %x without one", got, want)
	}
}

// TestAllContributorsAreStored checks that all contributors are stored, whether or not the update itself is the first
// of them.
func TestAllContributorsAreStored(t *testing.T) {
	self := olaf.Contributor{GenNS: 5, Seq: 6, Worker: 7}
	other := olaf.Contributor{GenNS: 4, Seq: 9, Worker: 8}
	e := new(Encoder)
	for _, inside := range [][]olaf.Contributor{nil, {}, {self}, {self, self}, {self, other}, {other},
		{other, self}, {self, other, other}} {
		e.Begin(1)
		e.Append(&olaf.Observation{At: 9000, Update: olaf.Update{GenNS: self.GenNS, Seq: self.Seq,
			Worker: self.Worker}, Contributors: inside})
		got, err := readAll(e.End())
		if err != nil || len(got) != 1 || (got[0].Obs.Contributors == nil) != (inside == nil) ||
			!slices.Equal(got[0].Obs.Contributors, inside) {
			t.Errorf("%v: %+v, %v", inside, got, err)
		}
	}
}

// TestChecksum checks the checksum against the standard CRC-32C value for these digits.
func TestChecksum(t *testing.T) {
	if sum := crc32.Checksum([]byte("123456789"), castagnoli); sum != 0xe3069283 {
		t.Errorf("%08x", sum)
	}
}

// TestReadUpTo checks a read of more than one step, and the error for missing bytes.
func TestReadUpTo(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789"), 20000)
	for _, n := range []int{0, 1, 1<<16 - 1, 1 << 16, 1<<16 + 1, len(data)} {
		if got, err := readUpTo(bytes.NewReader(data), []byte("x"), n); err != nil ||
			!bytes.Equal(got, append([]byte("x"), data[:n]...)) {
			t.Errorf("%d bytes: %d, %v", n, len(got), err)
		}
	}
	if _, err := readUpTo(bytes.NewReader(data), nil, len(data)+1); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("one byte more: %v", err)
	}
}
