package capture

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
)

// TestReadAfterEndRepeatsError cuts captures at every byte and checks that reading on after the end returns the same
// error.
func TestReadAfterEndRepeatsError(t *testing.T) {
	for _, format := range []Format{PCAP, PCAPNG} {
		whole := sample(t, format, 2)
		for n := 1; n < len(whole); n++ {
			r, err := NewReader(bytes.NewReader(whole[:n]), "cut")
			if err != nil {
				if !errors.Is(err, ErrCut) {
					t.Fatalf("format %d, %d bytes: %v", format, n, err)
				}
				continue
			}
			var p Packet
			err = r.Next(&p)
			for err == nil {
				err = r.Next(&p)
			}
			if again := r.Next(&p); again != err || !errors.Is(err, io.EOF) && !errors.Is(err, ErrCut) {
				t.Fatalf("format %d, %d bytes: %v, and then %v", format, n, err, again)
			}
		}
	}
}

// TestStampAndLengthRanges checks stamps from 1970 to 2261 and all possible frame lengths.
func TestStampAndLengthRanges(t *testing.T) {
	section, ethernet := block(0x0a0d0d0a, 0x1a2b3c4d, 1, 0xffffffff, 0xffffffff), block(1, 1, 0)
	at := func(year int, month time.Month, day int) uint64 {
		return uint64(time.Date(year, month, day, 0, 0, 0, 0, time.UTC).UnixMicro())
	}
	for _, c := range []struct {
		stamp uint64 // µs
		wire  uint32
		want  error
	}{
		{at(1970, 1, 1), 4, nil}, {at(2261, 1, 1), 4, nil}, {at(2261, 12, 31), 4, nil}, {at(2262, 1, 1), 4, ErrTime},
		{1, maxPacket, nil}, {1, maxPacket + 1, ErrFormat}, {1, 3, ErrFormat},
	} {
		file := bytes.Join([][]byte{section, ethernet, block(6, 0, uint32(c.stamp>>32), uint32(c.stamp), 4, c.wire, 0)}, nil)
		r, err := NewReader(bytes.NewReader(file), "in")
		if err != nil {
			t.Fatal(err)
		}
		var p Packet
		if err := r.Next(&p); !errors.Is(err, c.want) || err == nil && (p.UnixNS != int64(c.stamp)*1000 ||
			p.Wire != int(c.wire)) {
			t.Errorf("%+v: %+v, %v", c, p, err)
		}
	}
}

// TestSequencesAgainstASet checks the account of numbers around the window, ahead, behind and repeated, against a set
// of all numbers seen.
func TestSequencesAgainstASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a Account
		var want Losses
		seen := map[int64]bool{}
		newest := rapid.SampledFrom([]int64{100, 1<<32 - 20}).Draw(t, "first")
		oldest := newest
		seen[newest] = true
		a.Update(&olaf.Update{Seq: uint32(newest)})
		for range rapid.IntRange(1, 80).Draw(t, "updates") {
			seq := newest + rapid.OneOf(rapid.Int64Range(-8, 4), rapid.Int64Range(-70, 70),
				rapid.SampledFrom([]int64{-65, -64, -63, 63, 64, 65})).Draw(t, "step")
			a.Update(&olaf.Update{Seq: uint32(seq)})
			switch {
			case seq > newest:
				want.Missing += seq - newest - 1
				newest, seen[seq] = seq, true
			case newest-seq >= 64:
				want.Misordered++
			case seen[seq]:
				want.Duplicates++
			default:
				want.Misordered++
				seen[seq] = true
				if seq < oldest {
					want.Missing += oldest - seq - 1
					oldest = seq
				} else {
					want.Missing--
				}
			}
			if got := a.Losses(); got.Missing != want.Missing || got.Misordered != want.Misordered ||
				got.Duplicates != want.Duplicates {
				t.Fatalf("after %d: %+v, want %+v", seq, got, want)
			}
		}
	})
}
