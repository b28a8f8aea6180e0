//go:build unix

package netsim

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
)

func preset(b testing.TB, name string, scale Scale) *Topology {
	b.Helper()
	t, err := Preset(system.All(), name, scale)
	if err != nil {
		b.Fatal(err)
	}
	return t
}

// BenchmarkNS3Model measures whole runs of the model in docs/notes/ns3 over 60 simulated seconds; docs/notes/ns3.md
// compares packets/s.
func BenchmarkNS3Model(b *testing.B) {
	for _, perCluster := range []int{10, 100} {
		b.Run(fmt.Sprint(10*perCluster, "-workers"), func(b *testing.B) {
			t := preset(b, "ns3-fifo", Scale{WorkersPerCluster: perCluster})
			if perCluster > 10 {
				for i := range t.Links {
					t.Links[i].Rate *= 10
				}
			}
			benchmarkRuns(b, t)
		})
	}
}

// BenchmarkOlaf runs Olaf engines with ACKs on the multi-hop topology at several sizes.
func BenchmarkOlaf(b *testing.B) {
	for _, size := range []struct{ clusters, workers, seconds int }{{10, 10, 60}, {100, 10, 20}, {100, 100, 5}, {1000, 100, 10}} {
		for _, control := range []bool{false, true} {
			b.Run(fmt.Sprintf("%d-workers/tc=%v", size.clusters*size.workers, control), func(b *testing.B) {
				t := preset(b, "multihop", Scale{Clusters: size.clusters, WorkersPerCluster: size.workers})
				t.Warmup, t.Duration = 0, olaf.Duration(size.seconds)*olaf.Second
				t.Control.Enabled = control
				benchmarkRuns(b, t)
			})
		}
	}
}

// cpu returns the user and system time of this process.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// benchmarkRuns reports rates per second of CPU time, so that other load on the machine does not matter.
func benchmarkRuns(b *testing.B, t *Topology) {
	b.ReportAllocs()
	var events, packets uint64
	start := cpu(b)
	for b.Loop() {
		r, err := Run(context.Background(), t, Options{})
		if err != nil {
			b.Fatal(err)
		}
		events += r.Events
		packets += uint64(r.Of("window_sent"))
	}
	used := (cpu(b) - start).Seconds()
	b.ReportMetric(float64(events)/used/1e6, "Mevents/cpu-s")
	b.ReportMetric(float64(packets)/used/1e6, "Mpackets/cpu-s")
	b.ReportMetric(used/float64(b.N), "cpu-s/run")
}

// BenchmarkSteadyState counts allocations per event after the pools have grown.
func BenchmarkSteadyState(b *testing.B) {
	t := preset(b, "multihop", Scale{})
	t.Control.Enabled = true
	t.Duration = 30 * 24 * olaf.Hour
	s := newReadySim(b, t)
	step := func() {
		e := s.queue.Pop()
		s.now, s.order = e.At, e.Ord
		s.handleEvent(&e)
	}
	for range 1_000_000 {
		step()
	}
	b.ReportAllocs()
	start := cpu(b)
	for b.Loop() {
		step()
	}
	b.ReportMetric(float64(cpu(b)-start)/float64(b.N), "cpu-ns/event")
}
