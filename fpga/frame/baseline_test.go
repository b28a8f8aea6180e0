package frame

import (
	"bytes"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// TestLastPacketHasAMark checks that the mark of a vector's last packet is the highest bit of the packet's number, so that
// frames from before the mark, whose number has 32 bits, are still read.
func TestLastPacketHasAMark(t *testing.T) {
	at := Baseline.Carrier.payload() + 4
	for flags, want := range map[program.Flags][]byte{0: {0, 0, 1, 2}, program.Last: {0x80, 0, 1, 2}} {
		for _, kind := range []program.Kind{program.Data, program.Result} {
			b := make([]byte, olaf.MaxFrame)
			sent := program.Packet{Kind: kind, Seg: 0x102, Worker: 7, Lanes: 1, Flags: flags}
			n, err := Baseline.Encode(b, &Outer{Past: true}, &sent, []uint32{1})
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(b[at:][:4], want) {
				t.Errorf("packet 0x102 of kind %s with flags %b has the number % x, want % x", kind, flags, b[at:][:4], want)
			}
			v, err := Baseline.Decode(b[:n])
			if err != nil {
				t.Fatal(err)
			}
			var got program.Packet
			if v.Packet(&got); got.Seg != sent.Seg || got.Flags != flags {
				t.Errorf("% x is read as packet %#x with flags %b, want %#x with %b", want, got.Seg, got.Flags, sent.Seg, flags)
			}
		}
	}
}
