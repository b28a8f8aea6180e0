package p4ctl_test

import (
	"net/netip"
	"path/filepath"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/p4ctl"
	"github.com/olafctl/olaf/p4ctl/agent"
	"github.com/olafctl/olaf/p4ctl/p4"
)

// BenchmarkConnectAndFill is what every bench pays before its first update: agent up, session, pipeline, 27 workers in
// 9 clusters, and down again.
func BenchmarkConnectAndFill(b *testing.B) {
	for name, address := range map[string]string{"unix": "unix:" + filepath.Join(b.TempDir(), "p4"), "loopback": "127.0.0.1:0"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				a, err := agent.New(agent.Options{Backend: new(agent.Embedded), Profile: p4.Twin()})
				if err != nil {
					b.Fatal(err)
				}
				l, err := agent.Listen(address, false)
				if err != nil {
					b.Fatal(err)
				}
				running := a.Serve(l, nil)
				s, err := p4ctl.Dial(b.Context(), running.Target(), p4ctl.Options{})
				if err != nil {
					b.Fatal(err)
				}
				push(b, s, p4.Twin())
				if _, err := s.Sync(b.Context(), testbed(27, 9)); err != nil {
					b.Fatal(err)
				}
				s.Close()
				running.Close()
			}
		})
	}
}

// BenchmarkReconcile fills empty tables with so many workers through a session: read, diff, batches of 100.
func BenchmarkReconcile(b *testing.B) {
	for name, workers := range map[string]int{"10k": 10_000, "65536": 65_536} {
		b.Run(name, func(b *testing.B) {
			_, target := serve(b, p4.Twin(), "127.0.0.1:0")
			s := dial(b, target, p4ctl.ElectionID{})
			push(b, s, p4.Twin())
			desired := testbed(workers, 9)
			for b.Loop() {
				if _, err := s.Sync(b.Context(), desired); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if _, err := s.Sync(b.Context(), p4ctl.Tables{}); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(workers)*float64(b.N)/b.Elapsed().Seconds(), "entries/s")
		})
	}
}

// BenchmarkWorkerLookup is what the data path pays for a packet.
func BenchmarkWorkerLookup(b *testing.B) {
	for name, workers := range map[string]int{"27": 27, "65536": 65_536} {
		b.Run(name, func(b *testing.B) {
			backend, target := serve(b, p4.Twin(), unixAddress(b))
			s := dial(b, target, p4ctl.ElectionID{})
			push(b, s, p4.Twin())
			desired := testbed(workers, 9)
			if _, err := s.Sync(b.Context(), desired); err != nil {
				b.Fatal(err)
			}
			addresses := make([]netip.Addr, 1024)
			for i := range addresses {
				addresses[i] = desired.Workers[i*7919%workers].Address
			}
			var sum olaf.ClusterID
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				c, _, _ := backend.Tables().Worker(addresses[i&1023])
				sum += c
				i++
			}
			_ = sum
		})
	}
}
