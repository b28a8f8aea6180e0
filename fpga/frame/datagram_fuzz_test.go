package frame

import (
	"bytes"
	"slices"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// FuzzDatagrams receives arbitrary bytes from a socket in every format with UDP and checks that accepted packets are
// encoded to the same bytes.
func FuzzDatagrams(f *testing.F) {
	var formats []*Format
	for _, format := range allFormats() {
		if format.Carrier.Port != 0 {
			formats = append(formats, format)
		}
	}
	for i, format := range formats {
		for j := range format.Messages {
			m := &format.Messages[j]
			b, err := (&Datagrams{Format: format}).Encode(make([]byte, olaf.MaxFrame),
				&program.Packet{Kind: m.Kind, Action: m.Action, Lanes: uint16(m.Lanes.Most)}, nil, 0, 0)
			if err != nil {
				continue // a datagram cannot carry this message
			}
			f.Add(uint8(i), bytes.Clone(b))
			f.Add(uint8(i), bytes.Clone(b[:len(b)/2]))
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, payload []byte) {
		d := &Datagrams{Format: formats[int(which)%len(formats)]}
		var p, again program.Packet
		lanes, ok := d.Decode(append(make([]byte, d.Offset()), payload...), &p)
		if !ok {
			return
		}
		had := slices.Clone(lanes)
		b, err := d.Encode(make([]byte, olaf.MaxFrame), &p, had, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		back, ok := d.Decode(append(make([]byte, d.Offset()), b...), &again)
		if !ok || again != p || !slices.Equal(back, had) {
			t.Errorf("%+v came back as %+v, %v", p, again, ok)
		}
	})
}
