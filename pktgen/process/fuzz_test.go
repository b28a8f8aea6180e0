package process

import (
	"bytes"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// FuzzOpen decodes arbitrary bytes as an update or an ACK. It checks that accepted bytes have a place in the vector and
// as many values as they declare, and are encoded to the same bytes.
func FuzzOpen(f *testing.F) {
	c := &Open{Packets: 3}
	dst := make([]byte, datagram)
	for _, p := range []program.Packet{
		{Kind: program.Data, Job: 5, Worker: 7, Seg: 2, Index: 9, Count: 1, Lanes: 3, Flags: program.Resend},
		{Kind: program.Data, Job: 21844, Worker: 65535, Seg: 2, Index: 1 << 31, Count: 65535, Trace: program.Trace{NewestNS: olaf.GenModulus - 1}},
		{Kind: program.Ack, Job: 5, Worker: 7, Seg: 1, Index: 9, Count: 2, Lanes: 3, Value: 3<<32 | 2<<16 | 8},
	} {
		b, err := c.Encode(dst, &p, make([]uint32, p.Lanes), -256, 0)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint16(3), bytes.Clone(b))
		f.Add(uint16(1), bytes.Clone(b[:len(b)-1]))
	}
	f.Add(uint16(65535), []byte{})
	f.Fuzz(func(t *testing.T, packets uint16, payload []byte) {
		c, sent := &Open{Packets: max(1, int(packets))}, make([]byte, olaf.MaxFrame)
		var p program.Packet
		lanes, ok := c.Decode(append(make([]byte, c.Offset()), payload...), &p)
		if !ok {
			return
		}
		if p.Seg >= uint64(c.Packets) || len(lanes) != int(p.Lanes) || p.NewestNS >= olaf.GenModulus || p.Kind != program.Data && p.Kind != program.Ack {
			t.Errorf("%+v with %d values", p, len(lanes))
		}
		b, err := c.Encode(sent, &p, lanes, int32(p.Value), 0)
		if err != nil {
			t.Fatal(err)
		}
		var again program.Packet
		back, ok := c.Decode(append(make([]byte, c.Offset()), b...), &again)
		if !ok || again != p || len(back) != len(lanes) {
			t.Errorf("%+v came back as %+v with %d values", p, again, len(back))
		}
	})
}
