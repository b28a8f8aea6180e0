package p4ctl_test

import (
	"net/netip"
	"path/filepath"
	"testing"

	v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/p4ctl"
	"github.com/olafctl/olaf/p4ctl/agent"
	"github.com/olafctl/olaf/p4ctl/p4"
)

// BenchmarkConnectAndFill measures the setup for a bench before its first update: starting the agent, opening a
// session, pushing the pipeline, writing 27 workers in 9 clusters, and closing everything again.
func BenchmarkConnectAndFill(b *testing.B) {
	for name, address := range map[string]string{"unix": "unix:" + filepath.Join(b.TempDir(), "p4"),
		"loopback": "127.0.0.1:0"} {
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

// BenchmarkReconcile measures filling empty tables through a session: reading, comparing, and writing in batches of
// 100.
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

// BenchmarkWritesOverTLS measures the write rate of a controller that sends batches of 100 over loopback with TLS.
func BenchmarkWritesOverTLS(b *testing.B) {
	server, client := certificates(b)
	s, err := p4ctl.Dial(b.Context(), serveTLS(b, server), p4ctl.Options{TLS: client})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	push(b, s, p4.Twin())
	const batch = 100
	updates := make([][]*v1.Update, 2) // insert all, delete all
	for _, w := range testbed(batch, 9).Workers {
		updates[0] = append(updates[0], p4ctl.WorkerUpdate(v1.Update_INSERT, w))
		updates[1] = append(updates[1], p4ctl.WorkerUpdate(v1.Update_DELETE, w))
	}
	i := 0
	for b.Loop() {
		if err := s.Write(b.Context(), updates[i&1], v1.WriteRequest_CONTINUE_ON_ERROR); err != nil {
			b.Fatal(err)
		}
		i++
	}
	b.ReportMetric(batch*float64(b.N)/b.Elapsed().Seconds(), "writes/s")
}

// BenchmarkWorkerLookup measures the data path's lookup for one packet.
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
