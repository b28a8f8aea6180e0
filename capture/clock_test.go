package capture

import (
	"bytes"
	"io"
	"testing"
	"time"

	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/olafctl/olaf/results"
)

// captureWith returns a pcapng file with two packets per interface, whose stamps are shifted after they were written.
func captureWith(t *testing.T, shift time.Duration, from ...Interface) []byte {
	t.Helper()
	var b, shifted bytes.Buffer
	w, err := newWriter(&b, PCAPNG, 0, from...)
	for i := range 2 * len(from) {
		p := &Packet{UnixNS: wallNS + int64(i), Interface: i % len(from), Data: []byte{1}, Wire: 1, Comment: "a remark"}
		if err == nil {
			err = w.WritePacket(p)
		}
	}
	if err != nil || w.Finish() != nil {
		t.Fatal(err)
	}
	if shift == 0 {
		return b.Bytes()
	}
	r, err := pcapgo.NewNgReader(&b, pcapgo.NgReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ng, err := pcapgo.NewNgWriterInterface(&shifted, pcapgo.NgInterface{LinkType: layers.LinkTypeEthernet},
		pcapgo.NgWriterOptions{})
	for err == nil {
		data, info, options, failed := r.ReadPacketDataWithOptions()
		if failed == io.EOF {
			break
		}
		info.Timestamp = info.Timestamp.Add(shift)
		err = ng.WritePacketWithOptions(info, data, options)
	}
	if err != nil || ng.Flush() != nil {
		t.Fatal(err)
	}
	return shifted.Bytes()
}

const wallNS = 1_800_000_000_123_456_789

// TestCapturesCarryTheirClockError checks that a capture's clock error is read back, but not for stamps that were
// shifted afterwards, for files with packets from another origin, or where none was recorded.
func TestCapturesCarryTheirClockError(t *testing.T) {
	zero, some := int64(0), int64(20_000)
	one := captureWith(t, 0, Interface{ClockErrorNS: &some})
	for _, c := range []struct {
		name string
		file []byte
		want results.Float
	}{
		{"one clock", captureWith(t, 0, Interface{ClockErrorNS: &zero}), 0},
		{"20 µs", one, 20_000},
		{"two interfaces", captureWith(t, 0, Interface{ClockErrorNS: &zero}, Interface{ClockErrorNS: &some}), 20_000},
		{"not stated", captureWith(t, 0, Interface{}), results.Missing()},
		{"stated for one of two", captureWith(t, 0, Interface{ClockErrorNS: &zero}, Interface{}), results.Missing()},
		{"shifted by 3 ms", captureWith(t, 3*time.Millisecond, Interface{ClockErrorNS: &some}), results.Missing()},
		{"two captures in one file", append(bytes.Clone(one), one...), results.Missing()},
	} {
		r, err := NewReader(bytes.NewReader(c.file), c.name)
		if err != nil {
			t.Fatal(err)
		}
		var p Packet
		for err == nil {
			if err = r.Next(&p); err != nil && c.name == "two captures in one file" {
				err = io.EOF // reading the second capture fails with another error
			}
		}
		if got := r.ClockErrorNS(); err != io.EOF || got != c.want && (got.Known() || c.want.Known()) {
			t.Errorf("%s: the clock error is %v, want %v: %v", c.name, got, c.want, err)
		}
	}
}

// TestForeignCommentsAreNoClockError checks that comments that only resemble a capture's clock error are ignored.
func TestForeignCommentsAreNoClockError(t *testing.T) {
	c := clockClaim{5, 7}
	if got, ok := parseClaim(c.String()); !ok || got != c {
		t.Errorf("%q is read as %v, %t", c, got, ok)
	}
	for _, text := range []string{"", "a remark", c.String() + " or so", clockClaim{-5, 7}.String(), " " + c.String()} {
		if got, ok := parseClaim(text); ok {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}
