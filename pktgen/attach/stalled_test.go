package attach

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"net"
	"net/netip"
	"testing"

	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/pktgen/endpoint"
	"github.com/olafctl/olaf/pktgen/process"
)

// TestWorkerOutlivesAClientThatStopsReading makes one of two clients stop reading answers that exceed the socket's
// buffers. It checks that the other client gets its sums, and that the worker ends without waiting for long.
func TestWorkerOutlivesAClientThatStopsReading(t *testing.T) {
	big := usual
	big.Largest = 1 << 21
	j := newSumming(t, big, big)
	j.ports[0].grace = 1 // ns
	stuck, reads := dial(t, j.addresses[0]), dial(t, j.addresses[1])
	vector := make([]float32, big.Largest)
	vector[5] = 2
	message := Append(nil, KindVector, Vector{}, make([]byte, 4*big.Largest))
	binary.LittleEndian.PutUint32(message[len(message)-4*big.Largest+4*5:], math.Float32bits(2))
	if _, err := stuck.conn.Write(message); err != nil {
		t.Fatal(err)
	}
	if _, sum, err := reads.Sum(vector, 0); err != nil || sum[5] != 4 {
		t.Errorf("the other client gets %v, want its sum", err)
	}
	if err := j.ports[0].Close(errors.New("interrupted")); err != nil {
		t.Error(err)
	}
	if _, err := stuck.answer(KindSum); err == nil {
		t.Error("the client that did not read gets a whole answer, so that nothing was blocked")
	}
}

// TestServerOutlivesAClientThatStopsReading lets a server's client take an update and read nothing: later updates
// queue up to the bound, those beyond are dropped and counted, and the server ends when asked.
func TestServerOutlivesAClientThatStopsReading(t *testing.T) {
	const line, sent = 2, 6
	listen := func() (*net.UDPConn, netip.AddrPort) {
		c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		at, err := netip.ParseAddrPort(c.LocalAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		return c, at
	}
	u, address := serving(t)
	client := dial(t, address)
	if _, err := client.conn.Write(Append(nil, KindTake, nil, nil)); err != nil {
		t.Fatal(err)
	}
	conn, at := listen()
	from, worker := listen()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	codec, arrived := &process.Open{Packets: 1}, 0
	p := &process.Player{Codec: codec, Work: u,
		To: func(endpoint.Peer, *program.Packet) netip.AddrPort { return worker },
		Check: func(*program.Packet, []uint32) error {
			if arrived++; arrived == sent { // stop after this packet
				stop()
			}
			return nil
		}}
	for i := range sent {
		update := program.Packet{Kind: program.Data, Index: uint32(i), Count: 1, Lanes: 3}
		b, err := codec.Encode(make([]byte, 1<<12), &update, []uint32{uint32(u.config.code()), 0, 1}, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := from.WriteToUDPAddrPort(b, at); err != nil {
			t.Fatal(err)
		}
	}
	report, err := p.Run(ctx, conn, func(h endpoint.Host) (endpoint.Endpoint, error) {
		return endpoint.NewOpenServer(endpoint.Config{Workers: 1, Layout: endpoint.Layout{Values: 3, PerPacket: 3}, Updates: 1},
			endpoint.Olaf{Line: line}, h)
	})
	if err != nil || report.Counts["packets_received"] != sent || report.Counts["packets_crowded_out"] != sent-1-line {
		t.Errorf("the server ends with %v, %v; want %d updates, of which %d had no room", report.Counts, err, sent, sent-1-line)
	}
}
